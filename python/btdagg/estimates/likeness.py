"""Whether labelled items are like the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.mean import LabelledSample, LabelProxies

_UNLIKE = 0.01


class Likeness(NamedTuple):
    """Comparison of the votes of labelled items with those of the items that stand for all.

    Attributes
    ----------
    pvalue : float
        Of their being alike; 1 where that cannot be tested.
    labelled, others : tuple of float
        Mean margin (votes for A less votes for B, per vote) and mean share of ties of each.
    """

    pvalue: float
    labelled: tuple[float, float]
    others: tuple[float, float]

    @property
    def remark(self) -> str | None:
        """What to say where they differ."""
        if not self.pvalue < _UNLIKE:
            return None
        (margin, ties), (margin_of_others, ties_of_others) = self.labelled, self.others
        return (
            f"labelled items are not like the others (p = {self.pvalue:.1g}): mean margin of votes "
            f"{margin:+.2f} against {margin_of_others:+.2f}, share of tie votes {ties:.2f} against "
            f"{ties_of_others:.2f}; intervals hold for items that were chosen by chance, or with "
            "the probabilities by which they were chosen"
        )


def features_of(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return margin and share of ties of counts, (k, 3) or (k, judges, 3), as (k, 2)."""
    counts = rows.reshape(len(rows), -1, 3).sum(axis=1)
    n = np.maximum(counts.sum(axis=1), 1)
    found: NDArray[np.float64] = (
        np.stack([counts[:, 2] - counts[:, 0], counts[:, 1]], axis=1) / n[:, None]
    )
    return found


def likeness(features: LabelProxies | None, sample: LabelledSample) -> Likeness:
    """Test whether the mean features of labelled items are those of the others.

    Parameters
    ----------
    features : LabelProxies or None
        Margin and share of ties in place of probabilities.
    sample : LabelledSample

    References
    ----------
    Hotelling (1931), with variances between groups.
    """
    nothing = (float("nan"), float("nan"))
    if features is None:
        return Likeness(1.0, nothing, nothing)
    mean = sample.weights @ features.labelled
    of_others = sample.weights @ features.means
    errors = [sample.deviations(column) for column in features.labelled.T]
    between = np.stack(
        [sample.jackknifed(column) for column in (np.stack(errors, axis=1) - features.shared).T],
        axis=1,
    )
    covariance = between.T @ between + features.rest.T @ features.rest
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    degrees = sample.n_groups - rank
    away = mean - of_others
    means = tuple(mean.tolist()), tuple(of_others.tolist())
    if rank == 0 or degrees < 1:
        return Likeness(1.0, *means)
    distance = float(away @ np.linalg.pinv(covariance, hermitian=True) @ away)
    scaled = distance * degrees / (rank * (sample.n_groups - 1))
    return Likeness(float(stats.f.sf(scaled, rank, degrees)), *means)
