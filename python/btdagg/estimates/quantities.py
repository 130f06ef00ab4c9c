"""What is estimated: shares of labels and win rates."""

from __future__ import annotations

from dataclasses import dataclass

from btdagg._util.readable import readable
from btdagg.estimates.intervals import Ends

QUANTITIES: dict[str, tuple[float, float, float]] = {
    "A": (0.0, 0.0, 1.0),
    "tie": (0.0, 1.0, 0.0),
    "B": (1.0, 0.0, 0.0),
    "net win rate": (-1.0, 0.0, 1.0),
    "win rate": (0.0, 0.5, 1.0),
}
"""Means over items of these values of the labels B, tie and A."""

SHARES = ("A", "tie", "B")
"""Those that are shares of a label."""


def ends_of(quantity: str) -> Ends:
    """Return the least and the greatest value that a quantity can have."""
    return Ends(min(QUANTITIES[quantity]), max(QUANTITIES[quantity]))


@readable
@dataclass(frozen=True)
class MeanEstimate:
    """A mean over all items, with its interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its interval.
    standard_error : float
        0 where all labelled groups have the same mean. Then nothing is seen of how groups vary, and
        the interval is as if each group were one label.
    effective_labels : float
        How many labels would be worth as much without the judge; NaN where a standard error is 0.
    weight : float
        Weight of the judge's probabilities, from 0 (labels alone) to 1.
    labels_only : MeanEstimate or None
        The same from labels alone.
    """

    value: float
    low: float
    high: float
    standard_error: float
    effective_labels: float
    weight: float = 0.0
    labels_only: MeanEstimate | None = None

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"
