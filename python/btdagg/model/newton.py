"""Newton's method for convex losses of a few numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Loss = Callable[[Floats], tuple[float, Floats, Floats]]

# In log odds: far out, where labels are separated, a step has no end.
_LONGEST_STEP = 10.0


def minimum(
    loss: Loss, x: Floats, tolerance: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Floats, tuple[float, Floats, Floats]]:
    """Minimise a convex loss by Newton's method; derivatives at an active bound are zero."""
    low, high = bounds
    value, gradient, hessian = loss(x)
    for _ in range(200):
        if (x[0] <= low and gradient[0] > 0) or (x[0] >= high and gradient[0] < 0):
            gradient[0] = hessian[0, 1:] = hessian[1:, 0] = 0.0
        # Where labels say nothing of a cut the curvature vanishes far out.
        hessian.flat[:: len(x) + 1] += 1e-14 * hessian.trace() + 1e-300
        direction = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ direction)
        if not decrease > tolerance:
            break
        size = min(1.0, _LONGEST_STEP / np.abs(direction).max())
        while True:
            step = x - size * direction
            step[0] = min(max(step[0], low), high)
            trial = loss(step)
            # Less a rounding of the loss.
            if trial[0] <= value - 1e-4 * size * decrease + 1e-15 * abs(value) or size < 1e-6:
                break
            size /= 2
        x, (value, gradient, hessian) = step, trial
    return x, (value, gradient, hessian)
