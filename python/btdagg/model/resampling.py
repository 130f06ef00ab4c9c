"""Labelled items as cells with weights, and how a bootstrap draws them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.distinct import distinct_rows
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_labels,
    as_weights,
    as_whole_counts,
    labelled,
    same_index,
    same_length,
)
from btdagg.model.bounds import PARAMETERS, Bounds, box_of
from btdagg.model.calibration import Calibration, calibrate
from btdagg.model.calibration_set import calibration_set
from btdagg.model.few_labels import refitted
from btdagg.model.warnings import CalibrationWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    from btdagg.model.prior import Prior

_Refit: TypeAlias = (
    "tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]"
)

# Of the largest weight: items that weigh less would vanish from the sums.
_LEAST_SHARE = 1e-100
# Weights that are drawn at once.
_DRAWN = 1 << 22


class FitOptions(TypedDict, total=False):
    """Options of `btdagg.calibrate` that a fit and its refits share."""

    alpha: float
    kappa: float
    bounds: Bounds | None


@readable
@dataclass(frozen=True)
class WeightedItems:
    """Labelled counts with a weight above 0, reduced to cells: items alike in counts and label.

    Attributes
    ----------
    counts, labels : (k, 3) array of uint64, (k,) array of int8
        Of each cell.
    kinds : (u, k) sparse array
        Weight that a unit of each kind, an item or a group, gives to each cell.
    repeats : (u,) array of int64
        Units of each kind.
    calibration : Calibration
        The fit to all of them.
    bounds : Bounds
        Its bounds.
    prior : Prior, "weak" or None
        Its prior.
    """

    counts: NDArray[np.uint64]
    labels: NDArray[np.int8]
    kinds: csr_array[Any, Any]
    repeats: NDArray[np.int64]
    calibration: Calibration
    bounds: Bounds
    prior: Prior | Literal["weak"] | None = None

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each cell, (k,)."""
        return np.asarray(self.repeats @ self.kinds)

    @cached_property
    def refits(self) -> _core.Refits:
        """What fits them under other weights."""
        model = self.calibration.model
        lower, upper = box_of(self.bounds)
        return _core.Refits(
            self.counts, self.labels, model.alpha, model.kappa, lower.tolist(), upper.tolist()
        )

    def refit(self, drawn: NDArray[np.float64], n_threads: int) -> _Refit:
        """Fit them under each row of weights as `calibration` is fitted: (r, k) to r fits."""
        if self.prior is None:
            return self.refits.fit(drawn, n_threads)
        model = self.calibration.model
        smoothing = {"alpha": model.alpha, "kappa": model.kappa}
        thetas = refitted(self.counts, self.labels, drawn, self.prior, **smoothing)
        losses = [
            calibration_set(self.counts, self.labels, times, **smoothing).loss(theta, 1)[0]
            for times, theta in zip(drawn, thetas, strict=True)
        ]
        at_bounds = (thetas == box_of(Bounds())[0]) | (thetas == box_of(Bounds())[1])
        return thetas, np.array(losses), np.ones(len(thetas), dtype=np.bool_), at_bounds

    @property
    def n_units(self) -> int:
        """Number of items, or of groups."""
        return int(self.repeats.sum())

    def draws(self, n_draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
        """Weights of the cells when as many units are drawn with replacement, block by block."""
        rng = np.random.default_rng(seed)
        shares = self.repeats / self.n_units
        step = max(1, _DRAWN // (len(shares) + len(self.labels)))
        for start in range(0, n_draws, step):
            times = rng.multinomial(self.n_units, shares, size=min(step, n_draws - start))
            yield np.ascontiguousarray(times @ self.kinds, dtype=np.float64)

    def errors(self, decided: NDArray[np.int8]) -> NDArray[np.int64]:
        """Absolute error of each cell under decisions of shape (..., k)."""
        found: NDArray[np.int64] = np.abs(decided.astype(np.int64) - self.labels)
        return found


def labelled_items(
    counts: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None,
    groups: ArrayLike | None,
    *,
    n_threads: int,
    prior: Prior | Literal["weak"] | None = None,
    **options: Unpack[FitOptions],
) -> WeightedItems:
    """Check labelled items, fit them, and reduce them to cells.

    Raises
    ------
    InputError
        Where `calibrate` does; if there is not one group per item; or if there are fewer than two
        items, or groups, with a weight above 0.
    """
    from scipy.sparse import coo_array, csr_array

    if labels is None:
        raise InputError("labels is None, expected -1, 0 or 1 of each item")
    if weights is not None and prior is not None:
        raise InputError("weights and prior are both given, and refits with a prior count items")
    counts, labels, groups = labelled(counts, labels, groups, weights)
    checked, known = as_whole_counts(counts), as_labels(labels)
    same_length("labels", len(known), "counts", len(checked))
    by_item = np.ones(len(known)) if weights is None else as_weights(weights, soft=False)
    same_length("weights", len(by_item), "counts", len(checked))
    group = None if groups is None else as_groups(groups, "counts", len(checked))
    same_index(counts=counts, labels=labels, weights=weights, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # they are in `calibration`
        calibration = calibrate(
            checked,
            known,
            weights=None if prior is not None else by_item,
            prior=prior,
            n_threads=as_integer(n_threads, "n_threads", 1),
            **options,
        )
    used = by_item > 0
    least, most = by_item[used].min(), by_item.max()
    if least / most < _LEAST_SHARE:
        raise InputError(
            f"weights go from {least:g} to {most:g}, expected a ratio of 1e100 at most"
        )
    table = checked[used].astype(np.uint64)
    # Mean 1, so that sums of them neither overflow nor underflow.
    scaled = by_item[used] / by_item.max()
    scaled /= scaled.mean()
    first, cell = distinct_rows(*table.T, known[used])
    if group is None:
        # Items of a cell that weigh the same are units of one kind.
        kind_first, kind = distinct_rows(cell, scaled)
        repeats = np.bincount(kind)
        rows, columns, values = np.arange(len(repeats)), cell[kind_first], scaled[kind_first]
    else:
        _, rows = np.unique(group[used], return_inverse=True)
        repeats = np.ones(int(rows.max()) + 1, dtype=np.int64)
        columns, values = cell, scaled
    if repeats.sum() < 2:
        what = "item" if group is None else "group"
        raise InputError(f"counts hold one {what} with a weight above 0, expected at least two")
    shape = (len(repeats), len(first))
    return WeightedItems(
        counts=np.ascontiguousarray(table[first]),
        labels=known[used][first],
        kinds=csr_array(coo_array((values, (rows, columns)), shape=shape)),
        repeats=repeats,
        calibration=calibration,
        bounds=options.get("bounds") or Bounds(),
        prior=prior,
    )


def estimates(calibration: Calibration) -> dict[str, float]:
    """Return beta, nu and gamma of a calibration by name."""
    model = calibration.model
    return {name: getattr(model, name) for name in PARAMETERS}
