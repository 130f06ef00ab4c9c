"""Whether labelled items are like the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.mean import LabelledSample, Proxies

_UNLIKE = 0.01
_FEWER = 0.05  # share of votes by which one kind of items may have more than the other


def features_of(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return margin, share of ties and number of votes of counts, as (k, 3)."""
    minus, tie, plus = rows.reshape(len(rows), -1, 3).sum(axis=1).T
    n = minus + tie + plus
    votes = np.maximum(n, 1)
    return np.stack([(plus - minus) / votes, tie / votes, n.astype(np.float64)], axis=1)


def unlike_sizes(
    sizes: NDArray[np.int64], mean_of_all: float, sample: LabelledSample
) -> str | None:
    """Say whether labelled items are of smaller or larger groups than items drawn by chance."""
    mean = float(sample.weights @ sizes)
    errors = sample.jackknifed(sample.deviations(sizes.astype(np.float64)))
    error = float(np.sqrt(errors @ errors))
    away = abs(mean - mean_of_all)
    if away < 1e-9 * mean_of_all:
        return None
    if error > 0 and 2 * stats.t.sf(away / error, sample.degrees_of_freedom) >= _UNLIKE:
        return None
    return (
        f"labelled items are of groups of {mean:.3g} items on the mean, all items of "
        f"{mean_of_all:.3g}, as where one item of each group is labelled; such labels want the "
        "probability by which each item was chosen"
    )


def unlike_votes(features: Proxies | None, sample: LabelledSample) -> list[str]:
    """Say whether the mean features of labelled items are not those of the others.

    References
    ----------
    Hotelling (1931), with variances between groups.
    """
    if features is None:
        return []
    mean = sample.weights @ features.labelled
    of_others = sample.weights @ features.means
    pvalue = _hotelling(features, sample, mean - of_others)
    (margin, ties, n), (margin_of_others, ties_of_others, n_of_others) = mean, of_others
    remarks = []
    if pvalue < _UNLIKE:
        remarks.append(
            f"labelled items are not like the others (p = {pvalue:.1g}): mean margin of "
            f"votes {margin:+.2f} against {margin_of_others:+.2f}, share of tie votes "
            f"{ties:.2f} against {ties_of_others:.2f}; intervals hold for items that were "
            "chosen by chance, or with the probabilities by which they were chosen"
        )
    if abs(n - n_of_others) > _FEWER * max(n, n_of_others):
        remarks.append(
            f"labelled items have {n:.3g} votes on the mean and the others {n_of_others:.3g}, "
            "so the judge's probabilities err in different ways; use as many votes of each"
        )
    return remarks


def _hotelling(features: Proxies, sample: LabelledSample, away: NDArray[np.float64]) -> float:
    """P-value of a difference of mean margins and shares of ties; 1 where it cannot be tested."""
    columns = zip(features.labelled.T[:2], features.shared.T[:2], strict=True)
    between = np.stack(
        [sample.jackknifed(sample.deviations(own) - shared) for own, shared in columns], axis=1
    )
    rest = features.rest[:, :2]
    covariance = between.T @ between + rest.T @ rest
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    degrees = sample.n_groups - rank
    if rank == 0 or degrees < 1:
        return 1.0
    away = away[:2]
    distance = float(away @ np.linalg.pinv(covariance, hermitian=True) @ away)
    return float(stats.f.sf(distance * degrees / (rank * (sample.n_groups - 1)), rank, degrees))
