"""Least squares by group: slopes, and what each group adds to their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from btdagg.inference.estimate import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_WHOLE = 1 - 1e-9  # leverage of a group that alone knows a covariate
_ROUNDING = 1e-9  # of a standard error


class Regression(NamedTuple):
    """Least squares of k outcomes on d columns.

    Attributes
    ----------
    slopes : (d, k) array
    influence : (G, d, k) array
        Error that each group adds, by the jackknife: slopes without it are as far off.
    freedom : (d,) array
        Degrees of freedom of each slope: of as many equal groups less one.
    collinear : int or None
        The first column that is a sum of those before it; nothing else is known then.

    References
    ----------
    Bell and McCaffrey (2002) for the jackknife by groups.
    """

    slopes: Floats
    influence: Floats
    freedom: Floats
    collinear: int | None = None

    @classmethod
    def of(cls, design: Floats, outcomes: Floats, groups: NDArray[np.int64]) -> Regression:
        """Regress (n, k) outcomes on an (n, d) design; groups are numbers from 0."""
        q, r = np.linalg.qr(design)
        least = 1e-8 * np.linalg.norm(design, axis=0)
        if (bad := np.flatnonzero(np.abs(np.diag(r)) <= least)).size:
            return cls(np.empty(0), np.empty(0), np.empty(0), int(bad[0]))
        inverse = np.linalg.inv(r)
        slopes = q.T @ outcomes
        residuals = outcomes - q @ slopes
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
        # In the basis q the design's products are the identity, of which a group has a part.
        of_q = np.add.reduceat((q[:, :, None] * q[:, None, :])[order], starts)
        of_residuals = np.add.reduceat((q[:, :, None] * residuals[:, None, :])[order], starts)
        values, vectors = np.linalg.eigh(of_q)
        raised = np.where(values < _WHOLE, 1 / np.maximum(1 - values, 1e-300), 0.0)
        turned = np.swapaxes(vectors, 1, 2)
        steps = vectors @ (raised[:, :, None] * (turned @ of_residuals))
        shares = np.einsum("ia,gab,ib->gi", inverse, of_q, inverse)
        shares = shares / shares.sum(axis=0)
        n_groups = len(starts)
        influence = np.sqrt((n_groups - 1) / n_groups) * (inverse @ steps)
        return cls(inverse @ slopes, influence, 1 / (shares**2).sum(axis=0) - 1)

    def slope(self, column: int, outcome: int, unit: float = 1.0) -> Estimate:
        """Estimate a slope, times a unit of its column."""
        influence = unit * self.influence[:, column, outcome]
        variance = float(influence @ influence)
        variance = variance if variance > (unit * _ROUNDING) ** 2 else 0.0
        value, groups = unit * float(self.slopes[column, outcome]), np.arange(len(influence))
        freedom = max(float(self.freedom[column]), 1.0)
        return Estimate(value, variance, influence, groups, freedom=freedom)

    def errors_at(self, rows: Floats, outcome: int) -> Floats:
        """Standard errors of the fitted values of (m, d) rows, (m,)."""
        errors: Floats = np.sqrt(((rows @ self.influence[:, :, outcome].T) ** 2).sum(axis=1))
        return errors
