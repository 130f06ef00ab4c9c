"""Where decisions of the Davidson model change: the corners of the regions of equal decisions."""
# An item with margin `s` > 0 and tie feature `t` is decided for a side where ``L(beta s) - gamma t
# > eta0``, ``L(x) = log(2 sinh x)``: one surface over (beta, eta0, gamma). Every region has a
# corner of three surfaces or faces of the box.

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from btdagg._util.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]

# Halvings of an interval until nothing but rounding is left.
_HALVINGS = 64
_SLACK = 1e-12
_PORTION = 600_000


@readable
class Corners(NamedTuple):
    """Corners, (k, 3) each: `theta`, `items` (-1: fewer than three), `at_bounds`."""

    # Three items meet once or never, since the mean of `s` at which they do grows with beta, by
    # ``tanh(beta1 s) / tanh(beta2 s)``; so two meet on a face of gamma at most once, of eta0 twice.
    # Items of one `s` meet at gamma = 0, where no region has corners alone: they are left out.

    theta: Floats
    items: Integers
    at_bounds: NDArray[np.bool_]

    def those(self, rows: slice | NDArray[np.bool_]) -> Corners:
        """Return some of them."""
        return Corners(self.theta[rows], self.items[rows], self.at_bounds[rows])


def log_lead(x: Floats) -> Floats:
    """Return ``log(2 sinh x)`` for x > 0."""
    return np.asarray(x + np.log(-np.expm1(-2 * x)))


def corners(s: Floats, t: Floats, lower: Floats, upper: Floats) -> Iterator[Corners]:
    """Corners of the regions that m distinct items make in a box, in portions."""
    # `s` > 0 and `t` < 0 are (m,), bounds of (beta, eta0, gamma) (3,). 0 may be no bound of gamma.
    betas, eta0s, gammas = (np.unique(pair) for pair in zip(lower, upper, strict=True))
    # At any beta each surface is a line, a eta0 + b gamma = height: faces of the box, then items.
    sizes, n_faces = (len(eta0s), len(gammas), len(s)), len(eta0s) + len(gammas)
    a, fixed = np.repeat([1.0, 0.0, 1.0], sizes), np.repeat([1, 2, -1], sizes)
    b = np.concatenate([0 * eta0s, 1 + 0 * gammas, t])
    face = np.concatenate([eta0s, gammas, 0 * t])
    lean = np.append(np.full(n_faces, np.nan), s)

    def heights(beta: Floats, which: Integers) -> Floats:
        return np.where(fixed[which] < 0, log_lead(beta * lean[which]), face[which])

    def slopes(beta: Floats, which: Integers) -> Floats:
        return np.where(fixed[which] < 0, lean[which] / np.tanh(beta * lean[which]), 0.0)

    def angle(i: Integers, j: Integers) -> Floats:
        return np.asarray(a[i] * b[j] - a[j] * b[i])

    def weighted(
        of: Callable[[Floats, Integers], Floats],
        which: Integers,
        weights: Floats,
        beta: Floats,
        at: Integers,
    ) -> Floats:
        return np.asarray((weights[:, at] * of(beta, which[:, at])).sum(axis=0))

    def meeting(beta: Floats, *which: Integers) -> Corners:
        """Where two lines meet, and a third with them, or else a bound of beta."""
        i, j = which[:2]
        first, second, of_two = heights(beta, i), heights(beta, j), angle(i, j)
        eta0 = (first * b[j] - second * b[i]) / of_two
        theta = np.stack([beta, eta0, (a[i] * second - a[j] * first) / of_two], axis=1)
        items, at_bound = np.full(theta.shape, -1), np.zeros(theta.shape, dtype=np.bool_)
        at_bound[:, 0] = len(which) == 2
        for place, line in enumerate(which):
            items[:, place] = np.where(fixed[line] < 0, line - n_faces, -1)
            at_bound |= fixed[line][:, None] == [0, 1, 2]
        slack = _SLACK * (1 + np.abs(theta))
        inside = ((theta >= lower - slack) & (theta <= upper + slack)).all(axis=1)
        nearest = np.where(theta - lower < upper - theta, lower, upper)
        theta = np.where(at_bound, nearest, np.clip(theta, lower, upper))
        return Corners(theta, items, at_bound).those(inside)

    n = len(a)
    i, j = np.triu_indices(n, 1)
    crossing = (lean[i] != lean[j]) & (angle(i, j) != 0)
    for beta in betas:
        yield meeting(np.full(crossing.sum(), beta), i[crossing], j[crossing])
    for firsts in np.array_split(np.arange(n), 1 + n**3 // _PORTION):
        which = np.concatenate([_triples(first, n) for first in firsts], axis=1)
        i, j, k = lean[which]
        which = which[:, (i != j) & (j != k) & (k != i)]
        weights = np.stack([angle(which[k - 2], which[k - 1]) for k in range(3)])
        gap, rise = (partial(weighted, of, which, weights) for of in (heights, slopes))
        low, high, peak = (np.full(which.shape[1], beta) for beta in betas[[0, -1, -1]])
        # On a face of eta0 the gap may rise to a peak, and fall from there.
        faced = int((which[0] < len(eta0s)).sum())
        inside, tops = _roots(rise, low[:faced], high[:faced])
        peak[inside] = tops
        for start, stop in ((low, peak), (peak, high)):
            at, beta = _roots(gap, start, stop)
            # The two of the three that cross at the largest angle say where.
            largest = np.abs(weights[:, at]).argmax(axis=0)
            yield meeting(beta, *(which[(largest + step) % 3, at] for step in (1, 2, 3)))


def _triples(first: int, n: int) -> Integers:
    second, third = (rest + first + 1 for rest in np.triu_indices(n - first - 1, 1))
    return np.stack([np.full(len(second), first), second, third])


def _roots(
    gap: Callable[[Floats, Integers], Floats], low: Floats, high: Floats
) -> tuple[Integers, Floats]:
    everywhere = np.arange(len(low))
    left = gap(low, everywhere)
    at = np.flatnonzero(left * gap(high, everywhere) < 0)
    low, high, left = low[at], high[at], left[at]
    for _ in range(_HALVINGS):
        centre = (low + high) / 2
        same = gap(centre, at) * left > 0
        low, high = np.where(same, centre, low), np.where(same, high, centre)
    return at, (low + high) / 2
