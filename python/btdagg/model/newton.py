"""Newton's method for convex losses of a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Loss = Callable[[Floats], tuple[float, Floats, Floats]]
    Losses = Callable[[Floats, NDArray[np.intp]], tuple[Floats, Floats, Floats]]

# In log odds: far out, where labels are separated, a step has no end.
_LONGEST_STEP = 10.0
_MOST_STEPS = 200


def minimum(
    loss: Loss, x: Floats, tolerance: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Floats, tuple[float, Floats, Floats]]:
    """Minimise a convex loss by Newton's method; derivatives at an active bound are zero."""

    def losses(points: Floats, _: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        value, gradient, hessian = loss(points[0])
        return np.array([value]), gradient[None], hessian[None]

    found, (value, gradient, hessian) = minima(losses, x[None], tolerance, bounds)
    return found[0], (float(value[0]), gradient[0], hessian[0])


def minima(
    losses: Losses, x: Floats, tolerance: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Minimise several convex losses at once, (m, d), each by steps of its own."""
    # `losses` is asked at some points, and told which of the m losses each is for.
    low, high = bounds
    is_bounded = low > -np.inf or high < np.inf
    left, identity = np.arange(len(x)), np.eye(x.shape[1])
    point, found = x.copy(), losses(x, left)
    results = point, *found
    for n_steps in range(_MOST_STEPS + 1):
        value, gradient, hessian = found
        if is_bounded:
            first, slope = point[:, 0], gradient[:, 0]
            at_bound = ((first <= low) & (slope > 0)) | ((first >= high) & (slope < 0))
            gradient[at_bound, 0] = hessian[at_bound, 0, 1:] = hessian[at_bound, 1:, 0] = 0.0
        # Where labels say nothing of a cut the curvature vanishes far out.
        trace = hessian.trace(axis1=1, axis2=2)[:, None, None]
        hessian += (1e-14 * trace + 1e-300) * identity
        direction = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        decrease = (gradient * direction).sum(axis=1)
        goes_on = (decrease > tolerance) & (n_steps < _MOST_STEPS)
        if not goes_on.all():
            for result, part in zip(results, (point, *found), strict=True):
                result[left] = part
            if not goes_on.any():
                break
            left, point, value = left[goes_on], point[goes_on], value[goes_on]
            direction, decrease = direction[goes_on], decrease[goes_on]
        size = np.minimum(1.0, _LONGEST_STEP / np.abs(direction).max(axis=1))
        start, before = point, value + 1e-15 * abs(value)  # and a rounding of the loss
        point = _stepped(start, size, direction, bounds)
        found = losses(point, left)
        while (is_more := ~(found[0] <= before - 1e-4 * size * decrease) & (size >= 1e-6)).any():
            rows = np.flatnonzero(is_more)
            size[rows] /= 2
            point[rows] = _stepped(start[rows], size[rows], direction[rows], bounds)
            for whole, part in zip(found, losses(point[rows], left[rows]), strict=True):
                whole[rows] = part
    x, value, gradient, hessian = results
    return x, (value, gradient, hessian)


def _stepped(
    start: Floats, size: NDArray[Any], direction: NDArray[Any], bounds: tuple[float, float]
) -> Floats:
    point: Floats = start - size[:, None] * direction
    point[:, 0] = point[:, 0].clip(*bounds)
    return point
