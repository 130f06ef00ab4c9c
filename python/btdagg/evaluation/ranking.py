"""Which methods differ over splits: ranks in clusters, and the set that is tied with the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer, as_number
from btdagg.evaluation.significance import (
    Method,
    Rule,
    combine_pvalues,
    holm,
    rank_clusters,
    split_pvalues,
    statistically_tied,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    Raises
    ------
    InputError
        If a value is none of these or out of range.
    """

    method: Method = "auto"
    n_resamples: int = 10_000
    rule: Rule = "twice-median"
    tau: float = 0.05
    correction: Literal["none", "holm"] = "none"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("method", self.method, ("auto", "exact", "monte-carlo")),
            ("rule", self.rule, ("twice-median", "mean")),
            ("correction", self.correction, ("none", "holm")),
        ):
            if value not in known:
                raise InputError(f"{name} is {value!r}, expected {' or '.join(map(repr, known))}")
        as_integer(self.n_resamples, "n_resamples", 1)
        if not 0 < as_number(self.tau, "tau") < 1:
            raise InputError(f"tau is {self.tau}, expected a number above 0 and below 1")

    def pvalues(
        self, losses: Sequence[NDArray[Any]], groups: Sequence[NDArray[Any]] | None, seed: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """P-values of every two of m methods on each split, of losses and of there being any.

        Parameters
        ----------
        losses : sequence of (m, items) arrays
            Integer losses on the evaluation set of each split.
        groups : sequence of (items,) arrays or None
            What the items share; see `btdagg.evaluation.split_pvalues`.
        seed : int
            Of random sign patterns.

        Returns
        -------
        pair of (splits, m, m) arrays
        """
        if len(losses[0]) == 1:  # nothing to be tested
            alone = np.ones((len(losses), 1, 1))
            return alone, alone
        of_losses, of_wrong = (
            split_pvalues(
                values,
                method=self.method,
                n_resamples=self.n_resamples,
                seed=seed,
                groups=groups,
            )
            for values in (losses, [errors > 0 for errors in losses])
        )
        return of_losses, of_wrong

    @property
    def words(self) -> str:
        """What is done, as a caption says it."""
        how = (
            f"{self.n_resamples} random sign patterns a split"
            if self.method == "monte-carlo"
            else "exact on each split"
        )
        combined = {
            "twice-median": "twice the median over splits",
            "mean": "the mean over splits",
        }[self.rule]
        corrected = ", corrected after Holm" if self.correction == "holm" else ""
        return f"paired permutation test, {how}; p is {combined}{corrected}; level {self.tau:g}"


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

    Raises
    ------
    InputError
        If a value is none of these or out of range.
    """

    tau: float = 0.05
    correction: Literal["none", "holm"] = "none"

    def __post_init__(self) -> None:
        SplitTest(tau=self.tau, correction=self.correction)  # which checks them

    @property
    def rule(self) -> Rule:
        """How p-values of splits become one; there is one alone."""
        return "mean"

    @property
    def words(self) -> str:
        """What is done, as a caption says it."""
        corrected = ", corrected after Holm" if self.correction == "holm" else ""
        return f"t test over groups of cross-fitted errors{corrected}; level {self.tau:g}"


PAPER_TEST = SplitTest(method="monte-carlo", n_resamples=100, rule="mean")
"""The paper's reading: 100 random sign patterns a split, and the mean of the p-values."""


@readable
@dataclass(frozen=True, eq=False)
class Ranking:
    """Methods by one score.

    Attributes
    ----------
    pvalues : (m, m) array
        Of every two methods, over all splits, corrected where the test says so.
    ranks : (m,) array of int64
        Cluster of each method, 1 the best; see `btdagg.rank_clusters`.
    tied : (m,) array of bool
        Whether the method cannot be told from the best; see `btdagg.evaluation.statistically_tied`.
    """

    pvalues: NDArray[np.float64]
    ranks: NDArray[np.int64]
    tied: NDArray[np.bool_]


def rank(
    losses: NDArray[np.float64], pvalues: NDArray[np.float64], test: SplitTest | GroupTest
) -> Ranking:
    """Rank methods by their mean loss over splits.

    Parameters
    ----------
    losses : (m,) array
        Lower is better.
    pvalues : (splits, m, m) array
    test : SplitTest or GroupTest
    """
    combined = combine_pvalues(pvalues, rule=test.rule)
    if test.correction == "holm":
        combined = holm(combined)
    return Ranking(
        combined,
        rank_clusters(losses, combined, test.tau),
        statistically_tied(losses, combined, test.tau),
    )
