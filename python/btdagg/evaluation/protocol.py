"""The protocol of an evaluation: one value that says how items are split and methods tested."""

from __future__ import annotations

from dataclasses import dataclass, field

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.evaluation.ranking import GroupTest, SplitTest
from btdagg.evaluation.splitters import CrossFit, RandomSplits, Splitter


@dataclass(frozen=True)
class Protocol:
    """How aggregators are evaluated.

    Parameters
    ----------
    splitter : Splitter
        Splits items into those to calibrate on and those to evaluate: 100 times at random with a
        twentieth calibrated on, unless given.
    test : SplitTest, GroupTest or None
        How differences between methods are tested: exactly, and the p-value over splits is twice
        their median, unless given. ``PAPER_TEST`` is the paper's reading; `GroupTest` is for
        `CrossFit`; None tests nothing.

    Raises
    ------
    InputError
        If the test is not one of the splitter's.
    """

    splitter: Splitter = field(default_factory=RandomSplits)
    test: SplitTest | GroupTest | None = field(default_factory=SplitTest)

    def __post_init__(self) -> None:
        if isinstance(self.test, GroupTest) and not isinstance(self.splitter, CrossFit):
            raise InputError("test is a GroupTest, which wants the splitter CrossFit")
        if isinstance(self.test, SplitTest) and isinstance(self.splitter, CrossFit):
            raise InputError("test is a SplitTest, and the splitter CrossFit wants a GroupTest")

    @property
    def untested(self) -> Protocol:
        """The same splits without a test."""
        return Protocol(self.splitter, None)

    def require_intervals(self) -> None:
        """Refuse a number of splits that has no interval.

        Raises
        ------
        InputError
            If there are fewer than two.
        """
        as_integer(self.splitter.n_splits, "n_splits", 2)


CROSS_FITTED = Protocol(CrossFit(), GroupTest())
"""Scores the model that `calibrate` would write, with intervals for new items; the default."""

SPLITS = Protocol()
"""The paper's splits with exact tests, for what compares settings and not methods."""

FEW_SPLITS = Protocol(RandomSplits(n_splits=20))
"""The paper's 20 splits for fitted parameters and confusion matrices."""
