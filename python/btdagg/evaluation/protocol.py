"""The protocol of an evaluation: one value that says how items are split and methods tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.evaluation.significance import Method, Rule, split_pvalues
from btdagg.evaluation.splitters import CrossFit, RandomSplits, Splitter
from btdagg.model.intervals import as_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

Correction: TypeAlias = Literal["none", "holm"]


@dataclass(frozen=True)
class SplitTest:
    """How methods are tested against each other over splits.

    Parameters
    ----------
    method : {"auto", "exact", "monte-carlo"}
        See `btdagg.paired_permutation_test`. Absolute and zero-one errors are integers, so that
        ``"auto"`` is exact, by item or by group.
    n_resamples : int
        Sign patterns that Monte Carlo draws for each split.
    rule : {"twice-median", "mean"}
        How p-values of splits become one; see `btdagg.evaluation.combine_pvalues`.
    tau : float
        Level of significance, above 0 and below 1.
    correction : {"none", "holm"}
        Whether p-values are corrected for the number of pairs of methods.
    """

    method: Method = "auto"
    n_resamples: int = 10_000
    rule: Rule = "twice-median"
    tau: float = 0.05
    correction: Correction = "none"

    def __post_init__(self) -> None:
        for name, kind in (("method", Method), ("rule", Rule), ("correction", Correction)):
            value, options = getattr(self, name), get_args(kind)
            if value not in options:
                raise InputError(f"{name} is {value!r}, expected {' or '.join(map(repr, options))}")
        as_integer(self.n_resamples, "n_resamples", 1)
        as_level(self.tau, "tau")

    def pvalues(
        self, losses: Sequence[NDArray[Any]], groups: Sequence[NDArray[Any]] | None, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P-values of every two of m methods on each split, of losses and of there being any.

        Parameters
        ----------
        losses : sequence of (m, items) arrays
            Integer losses on the evaluation set of each split.
        groups : sequence of (items,) arrays or None
        seed : int
            Of random sign patterns.

        Returns
        -------
        pair of (splits, m, m) arrays
        """
        if len(losses[0]) == 1:  # nothing to compare
            alone = np.ones((len(losses), 1, 1))
            return alone, alone
        how: dict[str, Any] = {"method": self.method, "n_resamples": self.n_resamples, "seed": seed}
        wrong = [errors > 0 for errors in losses]
        return split_pvalues(losses, groups=groups, **how), split_pvalues(
            wrong, groups=groups, **how
        )

    @property
    def words(self) -> str:
        """The test in words, for a caption."""
        is_drawn = self.method == "monte-carlo"
        how = f"{self.n_resamples} random sign patterns a split" if is_drawn else (
            "exact on each split"
        )  # fmt: skip
        combined = "the mean" if self.rule == "mean" else "twice the median"
        return (
            f"paired permutation test, {how}; p is {combined} over splits"
            f"{_corrected(self.correction)}; level {self.tau:g}"
        )


@dataclass(frozen=True)
class GroupTest:
    """How methods are tested against each other where they are cross-fitted.

    Student's t of the difference of their mean losses over groups, with the variance that the
    fitted models bring; see `btdagg.evaluation.NewItems`.

    Parameters
    ----------
    tau : float
        Level of significance, above 0 and below 1.
    correction : {"none", "holm"}
        Whether p-values are corrected for the number of pairs of methods.
    """

    tau: float = 0.05
    correction: Correction = "none"

    def __post_init__(self) -> None:
        SplitTest(tau=self.tau, correction=self.correction)  # which checks them

    @property
    def rule(self) -> Rule:
        """How p-values of splits become one; there is only one."""
        return "mean"

    @property
    def words(self) -> str:
        """The test in words, for a caption."""
        corrected = _corrected(self.correction)
        return f"t test over groups of cross-fitted errors{corrected}; level {self.tau:g}"


def _corrected(correction: Correction) -> str:
    return ", corrected after Holm" if correction == "holm" else ""


PAPER_TEST = SplitTest(method="monte-carlo", n_resamples=100, rule="mean")
"""The paper's reading: 100 random sign patterns a split, and the mean of the p-values."""


@dataclass(frozen=True)
class Protocol:
    """How aggregators are evaluated.

    Parameters
    ----------
    splitter : Splitter
        Splits items into those to calibrate on and those to evaluate: 100 times at random with a
        twentieth calibrated on, unless given.
    test : SplitTest, GroupTest or None
        How differences between methods are tested: exactly, with twice the median of the p-values
        over splits, unless given. ``PAPER_TEST`` is the paper's reading; `GroupTest` goes with
        `CrossFit`, `SplitTest` with other splitters; None tests nothing.
    """

    splitter: Splitter = field(default_factory=RandomSplits)
    test: SplitTest | GroupTest | None = field(default_factory=SplitTest)

    def __post_init__(self) -> None:
        of_folds = isinstance(self.splitter, CrossFit)
        if self.test is not None and isinstance(self.test, GroupTest) != of_folds:
            raise InputError(
                f"test is a {type(self.test).__name__} and splitter a "
                f"{type(self.splitter).__name__}, expected GroupTest with CrossFit and SplitTest "
                "with other splitters"
            )

    @property
    def untested(self) -> Protocol:
        """The same splits without a test."""
        return Protocol(self.splitter, None)

    def require_intervals(self) -> None:
        """Refuse fewer than two splits, whose scores have no interval."""
        as_integer(self.splitter.n_splits, "n_splits", 2)


CROSS_FITTED = Protocol(CrossFit(), GroupTest())
"""Scores the model that `calibrate` would write, with intervals for new items; the default."""

SPLITS = Protocol()
"""The paper's splits with exact tests, for what compares settings and not methods."""

FEW_SPLITS = Protocol(RandomSplits(n_splits=20))
"""The paper's 20 splits for fitted parameters and confusion matrices."""
