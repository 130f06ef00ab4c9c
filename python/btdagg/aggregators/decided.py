"""What others have decided, so that it enters the same tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from btdagg.aggregators.base import Needs
from btdagg.evidence import Evidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Decided:
    """Decisions that come with the evidence, such as those of a generative aggregator.

    There are no categories to break a tie between. It is mirror-symmetric where what decided was.

    Parameters
    ----------
    column : str
        Name of the decisions in the evidence, and of their column where votes are read.
    name : str
        Name in tables; the column in capitals unless given.

    References
    ----------
    The paper's baselines GSA (Li et al., 2025) and USC (Chen et al., 2023).
    """

    column: str
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.column.upper())

    @property
    def needs(self) -> Needs:
        """The decisions of its column."""
        return Needs(decisions=self.column)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,), as it was decided.

        Raises
        ------
        InputError
            If the evidence has no such decisions, or none of an item; the message names it.
        """
        return Evidence.of(counts).require_decisions(self.column)
