"""What is estimated: shares of labels and win rates, and intervals that stay within their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from btdagg._util.readable import readable
from btdagg.evaluation.intervals import wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


class Ends(NamedTuple):
    """The least and the greatest value that a mean can have."""

    least: float
    greatest: float


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
        0 where all labelled groups have the same mean. Then it is unknown how groups vary, and the
        interval is as if each group were one label.
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


def effective_number(value: float, variance: float, ends: Ends) -> float:
    """Return how many independent labels, each one of two ends, would have a variance above 0.

    Where the mean is nearer to an end than one standard error, it is taken to be that far from it:
    a mean that is corrected can come to lie anywhere there by chance.
    """
    span = ends.greatest - ends.least
    error = min(variance**0.5 / span, 0.5)
    p = min(max((value - ends.least) / span, error), 1 - error)
    return float(p * (1 - p) / error**2)


def limits_of(
    value: float, n: NDArray[np.float64], quantile: float, ends: Ends
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low and high ends of Wilson's interval of a mean between two ends.

    References
    ----------
    Korn and Graubard (1998) for effective numbers n, (k,); Franco, Little, Louis and Slud (2019)
    compare such intervals for samples of groups.
    """
    span = ends.greatest - ends.least
    share = min(max((value - ends.least) / span, 0.0), 1.0)
    low, high = wilson(share, n, quantile)
    return ends.least + span * low, ends.least + span * high
