"""Labelled items as a sample: of new items, or of a finite population, by unit and stratum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from btdagg._util.readable import Readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

Population = Literal["new", "finite"]
"""What an estimate is of: new items of the kind, or these items and no others."""

_ROUNDING = 1e-14  # of deviations


@dataclass(frozen=True, eq=False)
class LabelledSample(Readable):
    """Labelled items of one domain: a sample of new items, or of a finite population.

    Attributes
    ----------
    weights : (n,) array
        Share of each labelled item in the mean; they sum to 1.
    stand_in : (n,) array
        Weights by which labelled items stand for those that a proxy is averaged over. In a finite
        population they sum to `left`; of new items they are `weights`.
    groups : (n,) array of int
        Group of each, from 0; of a finite population the unit drawn, an item or a whole group.
    names : (G,) array of int
        Numbers of these groups among those of all items.
    left : float
        Share of the population that has no label: 1 of new items.
    strata : (n,) array of int, or None
        Stratum of each labelled item, from 0, where units are a simple sample of each; None where
        they were drawn independently.

    Notes
    -----
    In a finite population a labelled item counts for itself and, by its inverse probability less
    one, for items without a label, scaled to add up to these (Hájek). With e the deviations from
    the mean the variance is ``sum w (w - 1) e**2`` for units drawn independently, and for n units
    of N the usual one, ``(1 - n / N) / n``.
    """

    weights: Floats
    stand_in: Floats
    groups: NDArray[np.int64]
    names: NDArray[np.int64]
    left: float = 1.0
    strata: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        inverse: Floats,
        units: NDArray[np.int64],
        n_items: int,
        population: Population,
        strata: NDArray[np.int64] | None,
    ) -> LabelledSample:
        """Return the sample from the inverse probability of each labelled item, (n,)."""
        names, groups = np.unique(units, return_inverse=True)
        groups = groups.reshape(-1)
        if population == "new":
            weights = inverse / max(inverse.sum(), 1e-300)
            return cls(weights, weights, groups, names)
        n, beyond = len(inverse), inverse - 1
        if not beyond.any():  # whoever has no label was certain to get one: it was not given
            beyond = np.ones(n)
        left = (n_items - n) / n_items if n_items else 1.0
        beyond = beyond * (left / max(beyond.sum(), 1e-300))
        return cls(1 / max(n_items, 1) + beyond, beyond, groups, names, left, strata)

    @property
    def n_groups(self) -> int:
        """Number of groups with a label."""
        return len(self.names)

    @cached_property
    def loads(self) -> Floats:
        """Error of the mean per unit of each labelled item's value, (n,)."""
        return np.sqrt(self.weights * self.stand_in)

    @property
    def is_finite(self) -> bool:
        """Whether the mean is that of a finite population."""
        return self.left < 1

    @property
    def is_whole(self) -> bool:
        """Whether all items of a finite population have a label."""
        return self.left == 0

    @property
    def has_spread(self) -> bool:
        """Whether labels of two groups, or of all items, tell how far off a mean is."""
        return self.n_groups > 1 or self.is_whole

    @property
    def is_equal(self) -> bool:
        """Whether all items have one weight."""
        return bool((self.loads == self.loads[:1]).all())

    @property
    def n_effective(self) -> float:
        """Kish's (1965) effective sample size; infinite where every item has a label."""
        return np.inf if self.is_whole else 1 / float(self.loads @ self.loads)

    @property
    def n_alike(self) -> float:
        """How many labels to count where all have one value, and how they vary is not seen."""
        return np.inf if self.is_whole else min(self.n_groups / self.left, self.n_effective)

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of Student's t: of as many equal groups as would vary as much."""
        if self.is_whole:
            return np.inf
        share = self.by_group(self.loads) / self.loads.sum()
        return max(1 / float(share @ share) - 1, 1.0)

    def by_group(self, values: Floats) -> Floats:
        """Sums by group of values of the labelled items, (G,), or (G, k) of (n, k)."""
        return sums_by(self.groups, values, self.n_groups)

    def deviations(self, values: Floats) -> Floats:
        """Sums by group of what (n,) or (n, k) values differ from the mean of their stratum by."""
        codes, _, n = self._strata
        each, of_strata = (np.newaxis,) * (values.ndim - 1), self._in_stratum
        stand_in, loads = self.stand_in[:, *each], self.loads[:, *each]
        mean = self.stand_in @ values / max(self.left, 1e-300)
        centre = sums_by(codes, stand_in * values, len(n)) / of_strata[:, *each]
        centre = np.where(n[:, *each] > 1, centre, mean)  # one unit says nothing of its stratum
        deviations = self.by_group(loads * (values - centre[codes]))
        return np.where(np.abs(deviations) < _ROUNDING, 0.0, deviations)

    def jackknifed(self, errors: Floats) -> Floats:
        """Scale (G,) or (G, k) errors so that sums of squares are the jackknife's variances."""
        _, of_groups, n_units = self._strata
        n = n_units[of_groups]
        rest = 1 - self.by_group(self.stand_in) / self._in_stratum[of_groups]
        scale = np.sqrt((n - 1) / n) / np.maximum(rest, 1 / n**2)
        scale = np.where(n > 1, scale, 1.0)
        return np.asarray(errors * scale[:, *(np.newaxis,) * (errors.ndim - 1)])

    def least_variance(self, residuals: Floats) -> float:
        """Return the variance where (n,) residuals do not depend on the weights.

        A sample without any rare item of great weight varies too little by itself, unless in
        strata.
        """
        if self.is_equal or self.strata is not None:
            return 0.0
        away = residuals - self.weights @ residuals
        return float(self.weights @ away**2 * (self.loads @ self.loads))

    @cached_property
    def _strata(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        codes = np.zeros_like(self.groups) if self.strata is None else self.strata
        of_groups = np.zeros(self.n_groups, dtype=np.int64)
        of_groups[self.groups] = codes
        return codes, of_groups, np.bincount(of_groups).astype(np.float64)

    @cached_property
    def _in_stratum(self) -> Floats:
        return np.maximum(np.bincount(self._strata[0], self.stand_in), 1e-300)


def sums_by(groups: NDArray[np.int64], values: Floats, n_groups: int) -> Floats:
    """Sums of (n,) or (n, k) values by group, numbered from 0: (n_groups,) or (n_groups, k)."""
    if values.ndim == 1:
        return np.bincount(groups, values, n_groups).astype(np.float64)
    return np.stack([np.bincount(groups, column, n_groups) for column in values.T], axis=1)
