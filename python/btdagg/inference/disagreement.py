"""Labels that differ from the calls of a model, and how many more an interval must allow for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import btdtria, gammaln, ndtri

from btdagg._util.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ends: TypeAlias = tuple[float, float]

_ROUNDING = 1e-12
_N_HALVINGS = 60
_LEAST_TAIL = 1e-15  # probability beyond an end of an interval
_LEAST_SHARE = 1e-9  # of labelled units: that of new items, of which there is no end


class StandIns(Protocol):
    """The labelled items: how they stand for those without a label."""

    @property
    def stand_in(self) -> Floats:
        """Weights of the labelled items for those without a label."""

    @property
    def left(self) -> float:
        """Share of the population that has no label."""

    @property
    def is_finite(self) -> bool:
        """Whether the mean is of a finite population."""

    def by_group(self, values: Floats) -> Floats:
        """Sums by group of values of the labelled items."""


@readable
class Disagreement(NamedTuple):
    """Disagreement of labels with calls of a model, downwards and upwards: arrays (..., 2).

    The variance of the labelled items' errors shows nothing of an error that none of them has. This
    adds it: a judge that erred on none, or few, of the labelled items may err on others.

    Attributes
    ----------
    count : (..., 2) array
        Effective number of labelled units, items or groups, that disagree.
    size : (..., 2) array
        Average size of one of these, in the mean.
    unseen : (..., 2) array
        Greatest size of one that was not seen.
    most : (..., 2) array
        How far the mean moves if every call on an item without a label is wrong.
    n : (...) array
        Effective number of labelled units.
    share : (...) array
        Share of the units that is labelled; of new items 0.
    calls : (...) array
        Of these items, if no label disagrees: their mean if no other call is wrong. Else NaN.
    is_simple : (...) array
        Whether units are single items, all equally likely to be labelled.
    beyond : (..., 2) array
        How far the mean moves with items of groups of a size that no labelled group has.

    Notes
    -----
    The number of disagreeing units without a label, given the number with one, is taken as negative
    binomial; where none of these items disagrees it is hypergeometric. Sizes that differ are
    averaged as in Fay and Feuer (1997), with half an unseen disagreement of the greatest size.
    Its bound exceeds that of a normal distribution; of this excess, in squares, an interval gets
    the share that disagreements have in its variance, divided by their number: the more are
    seen, the less the variance of the labelled items' errors leaves out.
    """

    count: Any
    size: Any
    unseen: Any
    most: Any
    n: Any
    share: Any
    calls: Any
    is_simple: Any
    beyond: Any

    @classmethod
    def of(
        cls,
        values: Floats,
        called: Floats,
        rest: Floats,
        sample: StandIns,
        ends: Ends,
        beyond: Floats,
    ) -> Disagreement:
        """Return that of labelled items' values with their (n,) calls; (m,) calls are of others."""
        away = values - called
        away = np.where(np.abs(away) < _ROUNDING, 0.0, away)
        by_group = sample.by_group(sample.stand_in)
        sizes = np.array(
            [sample.by_group(sample.stand_in * np.maximum(s, 0)) for s in (-away, away)]
        )
        total, squares = sizes.sum(axis=1), (sizes**2).sum(axis=1)
        seen = total > 0
        count = np.divide(total**2, squares, out=np.zeros(2), where=seen)
        size = np.divide(squares, total, out=np.zeros(2), where=seen)
        jumps = np.array([rest - ends[0], ends[1] - rest])
        n = sample.left**2 / float(by_group @ by_group)
        n_items = len(values) + len(rest)
        unseen = jumps.max(axis=1, initial=0.0) * sample.left / n
        share, calls, is_simple = 0.0, np.nan, False
        if sample.is_finite:
            of_items = sample.left**2 / float(sample.stand_in @ sample.stand_in)
            share = of_items / (of_items + len(rest))
            is_simple = bool(np.isclose(of_items, len(values)) and np.isclose(n, of_items))
            if not seen.any():
                calls = float(values.sum() + rest.sum()) / n_items
        most = np.maximum(jumps.sum(axis=1) / n_items, beyond)
        return cls(count, size, unseen, most, n, share, calls, is_simple, beyond)

    @classmethod
    def stack(cls, parts: Sequence[Disagreement]) -> Disagreement:
        """Return the disagreement of k means as arrays."""
        return cls(*(np.array(field) for field in zip(*parts, strict=True)))

    def widened(
        self, value: Any, low: Any, high: Any, alone: tuple[Floats, Floats], tail: Any
    ) -> tuple[Floats, Floats]:
        """Widen intervals, each of whose ends has the probability `tail` beyond it.

        They become no wider than those of labels `alone`, except for ends that are exact.
        """
        if not self.unseen.any() and not self.beyond.any():
            return low, high
        value, tail = np.asarray(value), np.clip(tail, _LEAST_TAIL, 0.5)
        share = np.maximum(self.share, _LEAST_SHARE)
        widest = np.asarray((alone[1] - alone[0]) / 2)[..., None]
        halves = np.stack(np.broadcast_arrays(value - low, high - value), axis=-1)
        wide = np.sqrt(halves**2 + self._excess(share, tail, halves**2))
        wide = np.minimum(wide, np.maximum(halves, widest)) + self.beyond
        low, high = value - wide[..., 0], value + wide[..., 1]
        is_exact = ~np.isnan(self.calls)
        if not is_exact.any():
            return low, high
        unlabelled = self._unseen(share, tail)
        unlabelled = np.where(self.is_simple, np.floor(unlabelled * (1 + _ROUNDING)), unlabelled)
        moved = (unlabelled * share / (1 - share))[..., None] * self.unseen
        widest = np.where(np.asarray(self.is_simple)[..., None], np.inf, widest)
        moved = np.minimum(np.minimum(moved, widest) + self.beyond, self.most)
        return (
            np.where(is_exact, np.minimum(value, self.calls - moved[..., 0]), low),
            np.where(is_exact, np.maximum(value, self.calls + moved[..., 1]), high),
        )

    def _excess(self, share: Any, tail: Any, squares: Floats) -> Floats:
        """Squares to add to those of the lower and the upper half of an interval, (..., 2)."""
        share, tail = np.asarray(share)[..., None], np.asarray(tail)[..., None]
        count, size, n_more = self.count, self.size, 1 + self.count
        # Of these items exact where none is seen, and mid-P where many are, as of new ones.
        pseudo = 0.5 + 0.5 * (share > _LEAST_SHARE) / n_more
        unseen = size + (self.unseen - size) / n_more
        total = count * size + pseudo * unseen
        of_sizes = count * size**2 + pseudo * unseen**2
        shape = np.divide(total**2, of_sizes, out=np.ones_like(total), where=of_sizes > 0)
        scale = np.divide(of_sizes, total, out=np.zeros_like(total), where=total > 0)
        odds = share / (1 - share)
        most = (btdtria(tail, shape, 1 - share) - 0.5 * (count > 0)) * odds * scale
        least = (btdtria(1 - tail, count + 0.5, 1 - share) - 0.5) * odds * size
        of_one = ndtri(tail) ** 2 / (1 - share)
        normal = of_one * count * size**2
        farther = ((most - count * size) ** 2 - normal) / np.maximum(count, 1)
        nearer = ((count * size - np.maximum(least, 0.0)) ** 2 - normal) / np.maximum(count, 1)
        excess = np.maximum(farther + nearer[..., ::-1], 0.0)
        # Such variance as disagreements have, and as one more on each side would give them.
        shown = normal.sum(axis=-1, keepdims=True)
        one_more = of_one * n_more * np.where(count > 0, size, self.unseen) ** 2
        share_of_squares = np.divide(
            one_more.sum(axis=-1, keepdims=True),
            squares,
            out=np.ones_like(excess),
            where=squares > 0,
        )
        of_shown = np.divide(squares, shown, out=np.ones_like(excess), where=shown > 0)
        allowance: Floats = excess * np.minimum(share_of_squares, 1.0) * np.minimum(of_shown, 1.0)
        return allowance

    def _unseen(self, share: Any, tail: Any) -> Floats:
        """Greatest number of disagreeing units without a label where no labelled unit disagrees."""
        n = np.asarray(self.n)
        m = n * (1 - share) / share
        low, high = np.zeros(np.broadcast(m, tail).shape), m + np.zeros_like(tail)
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            log_p = gammaln(m + 1) - gammaln(m + n + 1)
            log_p = log_p + gammaln(m + n - middle + 1) - gammaln(m - middle + 1)
            is_likely = log_p >= np.log(tail)
            low, high = np.where(is_likely, middle, low), np.where(is_likely, high, middle)
        return np.asarray(high)

    def with_labels(self, grown: Floats, left: Any) -> Disagreement:
        """Return that with (k,) times as many labels, of which `left` times as many are left."""
        grown = np.maximum(grown, 1e-300)
        times, share = grown[:, None], np.asarray(self.share)
        odds = share * grown / np.maximum(share * grown + (1 - share) * left, 1e-300)
        per_unit = (left / grown)[:, None] if self.share else 1 / times
        k = np.zeros_like(grown)
        return Disagreement(
            self.count * times,
            self.size * per_unit,
            self.unseen * per_unit,
            self.most * (left[:, None] if self.share else 1.0),
            self.n * grown,
            np.minimum(odds, 1 - _LEAST_SHARE),
            self.calls + k,
            self.is_simple + k > 0,
            self.beyond + 0 * times,
        )


NO_DISAGREEMENT = Disagreement(
    np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), 1.0, 0.0, np.nan, False, np.zeros(2)
)
"""What labels alone, without any call, say of others."""
