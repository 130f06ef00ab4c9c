"""What every aggregator does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class Aggregator(Protocol):
    """Turns what is known of items into labels.

    That is `btdagg.Evidence`, or a plain (n, 3) array of counts in label order. One that needs
    counts alone may take either as an array (`numpy.asarray`, or any function of btdagg that takes
    counts); one that needs more takes `Evidence.of` it and asks that for what it needs.

    Every implementation states its rule for ties between categories. The rule depends neither on
    the order of the votes nor on which side is called A: swapping A and B mirrors every label.
    """

    @property
    def name(self) -> str:
        """Name in tables."""

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Learn from a calibration set of n items and their (n,) labels, and return itself.

        What was learned before is replaced. An aggregator without parameters has nothing to learn
        and checks nothing. The evaluations fit copies (`copy.copy`) and leave what they are given
        as it is, so that the splits, and threads, do not see one another's fits.
        """

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): -1, 0 or +1."""
