"""Whether some items are like others: by mean features of votes, and by sizes of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import fdtrc

from btdagg import remarks
from btdagg._util.errors import expect
from btdagg._util.numbers import as_number
from btdagg._util.readable import readable
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.quantities import features_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.inference.label_means import Proxies
    from btdagg.inference.sample import LabelledSample
    from btdagg.remarks import Remark
    from btdagg.votes.scale import Scale

    Floats: TypeAlias = NDArray[np.float64]

_BETWEEN_BATCHES = 0.1  # standard deviations by which means of one kind of items differ
_FEWEST = 10  # items, or groups, whose means can be compared
_ROUNDING = 1e-9
_UNLIKE = 0.01  # p-value below which labelled items are said to be unlike the others
_FEWER = 0.05  # share of votes by which one kind of items may have more than the other


@readable
class VoteProfile(NamedTuple):
    """Means and covariance of features of votes over items, judge by judge.

    The features do not depend on the number of votes: two means (for pairs the margin and the tie
    rate), and how often two votes of an item differ (for pairs: are for different sides). `n` is
    the effective number of items.
    """

    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    n: float

    @classmethod
    def of(
        cls,
        counts: NDArray[Any],
        scale: Scale,
        groups: NDArray[np.int64] | None = None,
        n_features: int | None = None,
    ) -> VoteProfile | None:
        """Return the profile of counts, of so many features; None of fewer than ten units."""
        values = np.array(list(features_of(scale).values())).T
        by_judge = counts.astype(np.float64).reshape(-1, *counts.shape[1:-1] or (1,), len(values))
        if n_features is None:
            has_two = by_judge.sum(axis=2).max(axis=0).min() >= 2
            n_features = (3 if has_two else 2) * by_judge.shape[1]
        has_two = n_features == 3 * by_judge.shape[1]
        keep = (by_judge.sum(axis=2) >= 1 + has_two).all(axis=1)
        by_judge = by_judge[keep]
        names = np.arange(len(by_judge))
        if groups is not None:
            names = np.unique(groups[keep], return_inverse=True)[1]
        if len(np.unique(names)) < _FEWEST:
            return None
        n_votes = by_judge.sum(axis=2, keepdims=True)
        features = by_judge @ values / n_votes
        if has_two:
            differ = 1.0 - np.eye(len(values))
            if scale.mirrored:  # a vote of some strength is for a side and a tie
                differ[1] = differ[:, 1] = 0
            pairs = ((by_judge @ differ) * by_judge).sum(axis=2, keepdims=True)
            pairs = pairs / (n_votes * (n_votes - 1))
            features = np.concatenate([features, pairs], axis=2)
        features = features.reshape(len(features), -1)
        covariance = np.atleast_2d(np.cov(features.T))
        effect = 1.0
        if groups is not None:
            away = features - features.mean(axis=0)
            sums = np.stack([np.bincount(names, column) for column in away.T], axis=1)
            inverse = np.linalg.pinv(covariance, hermitian=True)
            rank = max(np.linalg.matrix_rank(covariance, hermitian=True), 1)
            spread = np.trace(inverse @ (sums.T @ sums)) / (len(features) * rank)
            effect = max(spread * len(sums) / (len(sums) - 1), 1.0)
        rows = tuple(map(tuple, covariance.tolist()))
        return cls(tuple(features.mean(axis=0).tolist()), rows, len(features) / effect)

    @classmethod
    def from_list(cls, fields: list[Any]) -> VoteProfile:
        """Return the profile from its fields as JSON has them."""
        means, covariance, n = fields
        return cls(tuple(means), tuple(map(tuple, covariance)), n)

    def require_possible(self) -> None:
        """Check that the means are finite, and the covariance is one; a file may have others."""
        means, covariance = (np.asarray(values, dtype=np.float64) for values in self[:2])
        is_finite = np.isfinite(means).all() and np.isfinite(covariance).all()
        expect(is_finite and means.ndim == 1, "profile.means", self.means, "finite numbers")
        is_one = covariance.shape == 2 * means.shape and np.array_equal(covariance, covariance.T)
        is_one = is_one and np.linalg.eigvalsh(covariance).min(initial=0) > -_ROUNDING
        expect(is_one, "profile.covariance", self.covariance, "a covariance of the means")
        as_number(self.n, "profile.n", above=0)

    def pvalue(self, other: VoteProfile) -> float:
        """P-value of means differing no more than batches of one kind do (Hotelling's test)."""
        away, n = np.subtract(self.means, other.means), self.n + other.n
        covariances = np.array([self.covariance, other.covariance])
        covariance = np.einsum("p,pij->ij", [self.n / n, other.n / n], covariances)
        inverse = np.linalg.pinv(covariance, hermitian=True)
        if np.abs(away - covariance @ inverse @ away).max() > _ROUNDING:
            return 0.0  # neither varies, and they differ
        variance = 1 / self.n + 1 / other.n + _BETWEEN_BATCHES**2
        return hotelling(away, variance * covariance, n - 1)


def remarks_on_sizes(
    sizes: NDArray[np.int64], of_all: NDArray[np.int64], sample: LabelledSample
) -> list[Remark]:
    """Say where labelled items come from larger or smaller groups than all items."""
    mean_of_all = float(of_all.mean())
    mean = labelled_mean(sizes.astype(np.float64), sample, (-np.inf, np.inf))
    if abs(mean.value - mean_of_all) < 1e-9 * mean_of_all:
        return []
    # Where all labelled items are of groups of one size: how likely it is to draw no other.
    p = float(np.mean(of_all == sizes[0])) ** sample.n_groups
    if mean.variance > 0:
        p = mean.pvalue(mean_of_all)
    return [remarks.unlike_sizes(mean.value, mean_of_all)] if p < _UNLIKE else []


def remarks_on_votes(features: Proxies, sample: LabelledSample, scale: Scale) -> list[Remark]:
    """Say where votes of labelled items, or their numbers, are unlike those of the others."""
    mean = sample.weights @ features.labelled
    of_others = sample.weights @ features.means
    pvalue = _pvalue(features, sample, mean - of_others)
    *_, n = mean
    *_, n_of_others = of_others
    about = []
    if pvalue < _UNLIKE:
        means = {
            name: (f"{value:{sign}.2f}", f"{other:{sign}.2f}")
            for (name, values), value, other in zip(
                features_of(scale).items(), mean, of_others, strict=False
            )
            for sign in ["+" if min(values) < 0 else ""]
        }
        about.append(remarks.unlike_votes(pvalue, means))
    if abs(n - n_of_others) > _FEWER * max(n, n_of_others):
        about.append(remarks.other_numbers_of_votes(n, n_of_others))
    return about


def _pvalue(features: Proxies, sample: LabelledSample, away: Floats) -> float:
    """P-value of a difference of mean margins and tie shares, by groups (Hotelling, 1931)."""
    deviations = sample.deviations(features.labelled[:, :2]) - features.shared[:, :2]
    between = sample.jackknifed(deviations)
    rest = features.rest[:, :2]
    covariance = between.T @ between + rest.T @ rest
    return hotelling(away[:2], covariance, sample.n_groups)


def hotelling(away: Floats, covariance: Floats, n: float) -> float:
    """P-value of a difference of k means with such a covariance, of n units (Hotelling, 1931)."""
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    degrees = n - rank
    if rank == 0 or degrees <= 0:
        return 1.0
    distance = float(away @ np.linalg.pinv(covariance, hermitian=True) @ away)
    return float(fdtrc(rank, degrees, distance * degrees / (rank * (n - 1))))
