"""Decisions made elsewhere, to compare them in the same tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg.methods.base import Needs, WithoutFit
from btdagg.votes.evidence import Evidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Decided(WithoutFit):
    """Decisions that come with the evidence, such as those of a generative aggregator.

    It breaks no ties. It is mirror-symmetric if the decisions are.

    Parameters
    ----------
    column : str
        Name of the decisions in the evidence, which is their column in tables of votes.
    name : str
        Name in tables; by default the column in capitals.
    some : bool
        Whether items may have no decision; evaluations then leave them out, for every method.

    References
    ----------
    The paper's baselines GSA (Li et al., 2025) and USC (Chen et al., 2023).
    """

    column: str
    name: str = ""
    some: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.column.upper())

    @property
    def needs(self) -> Needs:
        """The decisions of its column."""
        return Needs(decisions=self.column, some_decisions=self.some)

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Decision on each item, (n,); without one the item is named in an `InputError`."""
        return Evidence.of(counts).require_decisions(self.column)
