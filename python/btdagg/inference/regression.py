"""Least squares whose variances are clustered by group, and hold with few groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_WHOLE = 1 - 1e-9  # leverage of a group that alone knows a covariate


class Regression(NamedTuple):
    """Least squares of k outcomes on d columns, with variances by group."""

    # `freedom`, (d,), are degrees of freedom of each slope. If a column is a sum of those before
    # it, only `collinear`, its place, is known.

    slopes: Floats
    covariances: Floats
    freedom: Floats
    collinear: int | None = None

    @classmethod
    def of(cls, design: Floats, outcomes: Floats, groups: NDArray[np.int64]) -> Regression:
        """Regress (n, k) outcomes on an (n, d) design; groups are numbers from 0."""
        # CR2: with H the projection on the design, residuals of a group are multiplied by ``(1 -
        # H_gg)**-1/2``; in the basis Q of the design by the eigenvalues of ``Q_g' Q_g``, (d, d).
        q, r = np.linalg.qr(design)
        least = 1e-8 * np.linalg.norm(design, axis=0)
        if (bad := np.flatnonzero(np.abs(np.diag(r)) <= least)).size:
            return cls(np.empty(0), np.empty(0), np.empty(0), int(bad[0]))
        inverse = np.linalg.inv(r)
        slopes = q.T @ outcomes
        residuals = outcomes - q @ slopes
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
        of_q = np.add.reduceat((q[:, :, None] * q[:, None, :])[order], starts)
        of_residuals = np.add.reduceat((q[:, :, None] * residuals[:, None, :])[order], starts)
        values, vectors = np.linalg.eigh(of_q)
        values = np.clip(values, 0.0, 1.0)
        raised = np.where(values < _WHOLE, 1 / np.sqrt(np.maximum(1 - values, 1e-300)), 0.0)
        turned = np.swapaxes(vectors, 1, 2)
        scores = vectors @ (raised[:, :, None] * (turned @ of_residuals))
        sandwich = np.einsum("gik,gjk->kij", scores, scores)
        # Satterthwaite: twice the squared mean of a slope's variance over its variance.
        at = turned @ inverse.T  # (groups, d, slopes)
        diagonal = np.einsum("gis,gi->gs", at**2, values * raised**2)
        mixed = vectors @ ((values * raised)[:, :, None] * at)
        squares = np.einsum("gis,gis->gs", mixed, mixed)
        together = np.einsum("gis,gjs->sij", mixed, mixed)
        mean = (diagonal - squares).sum(axis=0)
        square = (diagonal**2 - 2 * diagonal * squares).sum(axis=0) + (together**2).sum(axis=(1, 2))
        return cls(
            inverse @ slopes, inverse @ sandwich @ inverse.T, mean**2 / np.maximum(square, 1e-300)
        )
