"""The regions of equal decisions of the Davidson model, and one that makes the fewest errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from btdagg._util.readable import readable
from btdagg.model.thresholds import Corners, corners, log_lead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# What is nearer to a surface counts as on it; parameters that are chosen keep off by as much.
_NEAR = 1e-9
_HALVINGS = 40
_PORTION = 20_000


@readable
class LeaningItems(NamedTuple):
    """Distinct items that lean to a side, mirrored to lean to A, and what deciding them costs."""

    s: Floats
    t: Floats
    cost: NDArray[np.int64]  # errors of calling them A, less those of calling them ties
    base: int  # errors of calling everything a tie


def items_of(
    counts: NDArray[np.int64], labels: NDArray[np.int8], alpha: float, kappa: float, with_ties: bool
) -> LeaningItems:
    """Gather labelled counts into distinct items, by margin alone where it is not `with_ties`.

    What it costs to decide an item is its errors: a mirrored preference costs one more than a tie
    does, a gold tie that is decided one, and a preference that is met saves one.
    """
    minus, tie, plus = counts.T.astype(np.float64)
    lead = np.log((np.maximum(minus, plus) + alpha) / (np.minimum(minus, plus) + alpha)) / 2
    share = np.log((tie + kappa) / (minus + tie + plus + kappa))
    if not with_ties:
        share = np.full(len(share), -1.0)
    leans = plus != minus
    pairs, place = np.unique(np.stack([lead, share], axis=1)[leans], axis=0, return_inverse=True)
    right = labels[leans] == np.sign(plus - minus)[leans]
    cost = np.bincount(place.ravel(), np.where(right, -1, 1), len(pairs)).astype(np.int64)
    matters = cost != 0
    s, t = pairs[matters].T
    return LeaningItems(s, t, cost[matters], int(np.abs(labels.astype(np.int64)).sum()))


def least_errors(
    items: LeaningItems, lower: Floats, upper: Floats, enough: int
) -> tuple[int, Floats]:
    """Find the parameters of a box that make the fewest errors.

    Parameters
    ----------
    items : LeaningItems
    lower, upper : (3,) arrays
        Bounds of beta, eta0, gamma; 0 is none of gamma unless it is both.
    enough : int
        Errors that are known to be reached; only parameters that make fewer are looked for.

    Returns
    -------
    bound : int
        Errors that no parameters in the box are below.
    theta : (k, 3) array
        Parameters that make the fewest errors found, which is `bound` but for rounding. None
        where `enough` is as low.
    """
    found = list(_portions(corners(items.s, items.t, lower, upper)))
    promises = [_promised(items, portion) for portion in found]
    least = min(int(promised.min()) for promised in promises)
    for cost in range(least, enough - items.base):
        beside = [
            _beside(items, portion.those(promised == cost), cost, lower, upper)
            for portion, promised in zip(found, promises, strict=True)
        ]
        points = np.concatenate(beside)
        if len(points):
            return least + items.base, _with_means(items, points, cost)
    return least + items.base, np.empty((0, 3))


def _portions(several: Iterable[Corners]) -> Iterator[Corners]:
    """Cut up what is large, leave out what is empty."""
    for found in several:
        for start in range(0, len(found.theta), _PORTION):
            yield found.those(slice(start, start + _PORTION))


def _heights(items: LeaningItems, theta: Floats) -> Floats:
    """Height of each item over the threshold, (k, m): it is decided where that is above 0."""
    s, place = np.unique(items.s, return_inverse=True)
    beta, eta0, gamma = theta.T[:, :, None]
    return np.asarray(log_lead(beta * s)[:, place] - gamma * items.t - eta0)


def _promised(items: LeaningItems, portion: Corners) -> NDArray[np.int64]:
    """Least cost next to each corner, where the items that meet there may fall either way."""
    heights = _heights(items, portion.theta)
    _, eta0, gamma = np.abs(portion.theta.T)[:, :, None]
    free = np.abs(heights) <= _NEAR * (1 + eta0 + gamma * np.abs(items.t))
    for which in portion.items.T:
        meeting = np.flatnonzero(which >= 0)
        free[meeting, which[meeting]] = True
    cost = np.where(free, np.minimum(items.cost, 0), np.where(heights > 0, items.cost, 0))
    return np.asarray(cost.sum(axis=1))


def _beside(
    items: LeaningItems, portion: Corners, cost: int, lower: Floats, upper: Floats
) -> Floats:
    """Step from corners into the region of that cost, as far as a power of two allows."""
    theta, which, held = portion
    if not len(theta):
        return theta
    beta = theta[:, 0]
    wanted = np.zeros((len(theta), 3))
    rows = np.zeros((len(theta), 3, 3))
    # One equation for each item that meets there, and one for each parameter that stays.
    for place in range(3):
        at = np.flatnonzero(which[:, place] >= 0)
        item = which[at, place]
        s = items.s[item]
        rows[at, place] = np.stack(
            [s / np.tanh(beta[at] * s), np.full(len(at), -1.0), -items.t[item]], axis=1
        )
        wanted[at, place] = np.where(items.cost[item] < 0, 1.0, -1.0)
    corner, parameter = np.nonzero(held)
    rows[corner, np.nonzero(which < 0)[1], parameter] = 1.0
    step = (np.linalg.pinv(rows) @ wanted[:, :, None])[:, :, 0]
    reached, size = [], 1.0
    for _ in range(_HALVINGS):
        points = np.clip(theta + size * step, lower, upper)
        good = _keeps(items, points, cost)
        reached.append(points[good])
        theta, step, size = theta[~good], step[~good], size / 2
        if not len(theta):
            break
    return np.concatenate([np.empty((0, 3)), *reached])


def _keeps(items: LeaningItems, points: Floats, cost: int) -> NDArray[np.bool_]:
    """Whether parameters have that cost and no item is on its threshold up to rounding."""
    heights = _heights(items, points)
    clear = (np.abs(heights) > _NEAR).all(axis=1)
    return np.asarray(clear & ((heights > 0) @ items.cost == cost))


def _with_means(items: LeaningItems, points: Floats, cost: int) -> Floats:
    """Points, and the mean of those with the same decisions where it is as good."""
    region = np.unique(_heights(items, points) > 0, axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(region)
    means = np.stack([np.bincount(region, column) / sizes for column in points.T], axis=1)
    return np.concatenate([points, means[_keeps(items, means, cost)]])
