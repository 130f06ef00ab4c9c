"""Where decisions of the Davidson model change: the corners of the regions of equal decisions.

An item that leans to a side by `s` > 0 and has tie feature `t` is decided for that side, and not a
tie, where ``L(beta s) - gamma t > eta0`` with ``L(x) = log(2 sinh x)``. Over the parameters (beta,
eta0, gamma) each item has one such surface, and the surfaces cut the box of bounds into regions of
equal decisions. Every region has a corner: a point of three surfaces, or of two on a face of the
box, or of one on an edge, or a corner of the box. There are finitely many, and this module finds
all that matter.

Three items, the second between the others in both `s` and `t`, meet where ``L(beta s2)`` is the
mean of ``L(beta s1)`` and ``L(beta s3)`` with weights given by `t`. The mean of `s` that this
defines grows with beta, from the geometric to the arithmetic: ``L'(beta2 s) / L'(beta1 s)`` is
proportional to ``tanh(beta1 s) / tanh(beta2 s)``, which grows with `s` where beta2 > beta1. So
three items meet once or never, and a sign at either end says which; the same ratio says that on a
face of gamma two items meet at most once, and on a face of eta0 at most twice.

Items of the same `s` meet at gamma = 0 whatever beta is. No region has such corners alone, so they
are left out; callers see to it that 0 is no bound of gamma.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
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


@readable
class Corners(NamedTuple):
    """Corners of the regions.

    Attributes
    ----------
    theta : (k, 3) array
        beta, eta0, gamma.
    items : (k, 3) array of int
        Items whose surfaces meet there; -1 where there are fewer than three.
    held : (k, 3) array of bool
        Parameters that are at a bound, as many as there are -1 in `items`.
    """

    theta: Floats
    items: Integers
    held: NDArray[np.bool_]

    def those(self, rows: slice | NDArray[np.bool_]) -> Corners:
        """Return some of them."""
        return Corners(self.theta[rows], self.items[rows], self.held[rows])


def log_lead(x: Floats) -> Floats:
    """Return ``log(2 sinh x)`` for x > 0."""
    return np.asarray(x + np.log(-np.expm1(-2 * x)))


def corners(s: Floats, t: Floats, lower: Floats, upper: Floats) -> Iterator[Corners]:
    """Corners of the regions that m distinct items make in a box, in portions.

    Parameters
    ----------
    s, t : (m,) arrays
        Margin, above 0, and tie feature, below 0, of each item.
    lower, upper : (3,) arrays
        The box: bounds of beta, eta0, gamma.

    Yields
    ------
    Corners
    """
    order = np.lexsort((s, t))
    for middle in range(1, len(s) - 1):
        yield _kept(_triples(s, t, order, middle, lower, upper), lower, upper)
    for portion in (
        *(_on_beta_face(s, t, beta) for beta in {lower[0], upper[0]}),
        *(_on_eta0_face(s, t, eta0, lower, upper) for eta0 in {lower[1], upper[1]}),
        *(_on_gamma_face(s, t, gamma, lower, upper) for gamma in {lower[2], upper[2]}),
        *_on_edges(s, t, lower, upper),
    ):
        yield _kept(portion, lower, upper)
    ends = np.array(list(product(*zip(lower, upper, strict=True))))
    yield Corners(ends, np.full((8, 3), -1), np.ones((8, 3), dtype=np.bool_))


def _triples(
    s: Floats, t: Floats, order: Integers, middle: int, lower: Floats, upper: Floats
) -> Corners:
    """Where three items meet, the second of which is the one at a place in the order of `t`."""
    j = order[middle]
    before, after = order[t[order] < t[j]], order[t[order] > t[j]]
    i, k = (grid.ravel() for grid in np.meshgrid(before, after, indexing="ij"))
    weight = (t[k] - t[j]) / (t[k] - t[i])
    between = (s[i] - s[j]) * (s[k] - s[j]) < 0
    i, k, weight = i[between], k[between], weight[between]
    j = np.full(len(i), j)

    def gap(beta: Floats, at: Integers) -> Floats:
        first, second, third = (log_lead(beta * s[which[at]]) for which in (i, j, k))
        return np.asarray(second - weight[at] * first - (1 - weight[at]) * third)

    at, beta = _roots(gap, *_interval(len(i), lower, upper))
    return _through(s, t, beta, i[at], j[at], k[at])


def _on_beta_face(s: Floats, t: Floats, beta: float) -> Corners:
    i, j = _pairs(s, t)
    return _holding(_through(s, t, np.full(len(i), beta), i, j, None), 0)


def _on_eta0_face(s: Floats, t: Floats, eta0: float, lower: Floats, upper: Floats) -> Corners:
    i, j = _pairs(s, t)
    i, j = np.where(t[i] < t[j], i, j), np.where(t[i] < t[j], j, i)
    weight = t[j] / t[i]

    def gap(beta: Floats, at: Integers) -> Floats:
        first, second = log_lead(beta * s[i[at]]), log_lead(beta * s[j[at]])
        return np.asarray(second - weight[at] * first - (1 - weight[at]) * eta0)

    def slope(beta: Floats, at: Integers) -> Floats:
        first, second = s[i[at]] / np.tanh(beta * s[i[at]]), s[j[at]] / np.tanh(beta * s[j[at]])
        return np.asarray(second - weight[at] * first)

    # The gap rises up to its peak and falls from there; where the slope has one sign the peak is
    # an end.
    low, high = _interval(len(i), lower, upper)
    peak = np.where(slope(high, np.arange(len(i))) > 0, high, low)
    inside, tops = _roots(slope, low, high)
    peak[inside] = tops
    rising, falling = _roots(gap, low, peak), _roots(gap, peak, high)
    at, beta = (np.concatenate(both) for both in zip(rising, falling, strict=True))
    theta = np.stack([beta, np.full(len(at), eta0), (log_lead(beta * s[i[at]]) - eta0) / t[i[at]]])
    return _holding(_meeting(theta.T, i[at], j[at]), 1)


def _on_gamma_face(s: Floats, t: Floats, gamma: float, lower: Floats, upper: Floats) -> Corners:
    i, j = _pairs(s, t, same_t=True)

    def gap(beta: Floats, at: Integers) -> Floats:
        first, second = log_lead(beta * s[i[at]]), log_lead(beta * s[j[at]])
        return np.asarray(first - second - gamma * (t[i[at]] - t[j[at]]))

    at, beta = _roots(gap, *_interval(len(i), lower, upper))
    eta0 = log_lead(beta * s[i[at]]) - gamma * t[i[at]]
    theta = np.stack([beta, eta0, np.full(len(at), gamma)], axis=1)
    return _holding(_meeting(theta, i[at], j[at]), 2)


def _on_edges(s: Floats, t: Floats, lower: Floats, upper: Floats) -> Iterator[Corners]:
    (betas, eta0s, gammas), m = zip(lower, upper, strict=True), len(s)
    for beta, gamma in product(betas, gammas):
        theta = np.stack([np.full(m, beta), log_lead(beta * s) - gamma * t, np.full(m, gamma)])
        yield _holding(_meeting(theta.T, np.arange(m)), 0, 2)
    for beta, eta0 in product(betas, eta0s):
        theta = np.stack([np.full(m, beta), np.full(m, eta0), (log_lead(beta * s) - eta0) / t])
        yield _holding(_meeting(theta.T, np.arange(m)), 0, 1)
    for eta0, gamma in product(eta0s, gammas):
        beta = np.arcsinh(np.exp(eta0 + gamma * t) / 2) / s
        theta = np.stack([beta, np.full(m, eta0), np.full(m, gamma)])
        yield _holding(_meeting(theta.T, np.arange(m)), 1, 2)


def _pairs(s: Floats, t: Floats, same_t: bool = False) -> tuple[Integers, Integers]:
    """Pairs of items that differ in `s`, and in `t` too unless they need not."""
    i, j = np.triu_indices(len(s), 1)
    apart = (s[i] != s[j]) & (same_t | (t[i] != t[j]))
    return i[apart], j[apart]


def _interval(n: int, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    return np.full(n, lower[0]), np.full(n, upper[0])


def _roots(
    gap: Callable[[Floats, Integers], Floats], low: Floats, high: Floats
) -> tuple[Integers, Floats]:
    """Places whose monotone gap has another sign at either end, and where it changes."""
    everywhere = np.arange(len(low))
    left = gap(low, everywhere)
    at = np.flatnonzero(left * gap(high, everywhere) < 0)
    low, high, left = low[at], high[at], left[at]
    for _ in range(_HALVINGS):
        centre = (low + high) / 2
        same = gap(centre, at) * left > 0
        low, high = np.where(same, centre, low), np.where(same, high, centre)
    return at, (low + high) / 2


def _through(
    s: Floats, t: Floats, beta: Floats, i: Integers, j: Integers, k: Integers | None
) -> Corners:
    """Return the corners where two items meet at the given beta, and a third does with them."""
    # Of three the outer two, whose difference in t is the largest.
    last = j if k is None else k
    first, second = log_lead(beta * s[i]), log_lead(beta * s[last])
    gamma = (first - second) / (t[i] - t[last])
    theta = np.stack([beta, first - gamma * t[i], gamma], axis=1)
    return _meeting(theta, i, j) if k is None else _meeting(theta, i, j, k)


def _meeting(theta: Floats, *meeting: Integers) -> Corners:
    items = np.full((len(theta), 3), -1)
    for place, which in enumerate(meeting):
        items[:, place] = which
    return Corners(theta, items, np.zeros((len(theta), 3), dtype=np.bool_))


def _holding(corners: Corners, *parameters: int) -> Corners:
    corners.held[:, list(parameters)] = True
    return corners


def _kept(all_corners: Corners, lower: Floats, upper: Floats) -> Corners:
    """Those in the box, up to rounding."""
    theta = all_corners.theta
    slack = _SLACK * (1 + np.abs(theta))
    inside = ((theta >= lower - slack) & (theta <= upper + slack)).all(axis=1)
    return all_corners.those(np.asarray(inside))._replace(
        theta=np.clip(theta[inside], lower, upper)
    )
