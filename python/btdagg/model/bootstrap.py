"""Refits to resampled items: the bootstrap of a calibration, and what it says of decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from btdagg._util.display import Displayed
from btdagg._util.errors import expect
from btdagg._util.folds import resampled as resampled_groups
from btdagg._util.readable import Readable
from btdagg._util.validation import as_groups, as_integer, columns_of, distinct_rows
from btdagg._util.wording import in_lines
from btdagg.model.calibration import PARAMETERS, Bounds, Calibration, box_around
from btdagg.model.fit import WEAK, calibrated_items, fitted_items, prior_beside, refitted
from btdagg.model.intervals import (
    ParameterInterval,
    Stability,
    as_level,
    distinct_items,
    stability_of,
)
from btdagg.result import ResultTable
from btdagg.votes.scale import PAIRS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.prior import Prior

    Floats = NDArray[np.float64]

# Weights that are drawn at once.
_DRAWN = 1 << 22

_NORMAL = 1.959964  # quantile of the normal distribution at 0.975


class FitOptions(TypedDict, total=False):
    """Options of `btdagg.calibrate` that a fit and its refits share."""

    alpha: float
    kappa: float
    bounds: Bounds | None


@dataclass(frozen=True, eq=False)
class Bootstrap(Displayed, Readable):
    """Refits of a model to resampled items: intervals, and whether decisions are stable.

    Attributes
    ----------
    calibration : Calibration
        The fit to the items themselves.
    parameters : (n_refits, 3 + d) array of float64
        beta, eta0 (the log of nu), gamma and the weights of d covariates of each refit.
    level : float
        Nominal coverage of the intervals.
    beta, nu, gamma : ParameterInterval
        Intervals by what the labels alone tell, by group; see `Calibration.intervals`. Refits with
        a prior are drawn towards it, and vary less than the model is off.
    mae : ParameterInterval
        Mean absolute error of the fitted model on new items: that on the calibration items,
        corrected for optimism; percentiles are shifted by the same amount.
    n_units : int
        Items, or groups, that a resample draws.
    weights : dict of str to ParameterInterval
        Intervals of the weights of covariates, by name; see `Calibration.weights`.
    """

    calibration: Calibration
    parameters: Floats
    level: float
    beta: ParameterInterval
    nu: ParameterInterval
    gamma: ParameterInterval
    mae: ParameterInterval
    n_units: int
    weights: Mapping[str, ParameterInterval] = field(default_factory=dict)

    @property
    def model(self) -> DavidsonModel:
        """The model that was refitted."""
        model: DavidsonModel = self.calibration.model
        return model

    def stability(
        self,
        counts: ArrayLike,
        *,
        covariates: Any = None,
        level: float | None = None,
        n_threads: int = 1,
    ) -> Stability:
        """Say of each item how likely another draw of labels would decide it as the model does.

        `counts` are of any items; a decision is stable from the agreement `level` on, by default
        that of the intervals; `covariates` are those of ``model.decide``.
        """
        # A refit is as far from the model as the model from the truth; another draw of labels has
        # an error of its own besides, so that it is further from the model by a factor of sqrt(2).
        # Refits of few labels, whose parameters fit them, are too near by the degrees of freedom,
        # as Student's distribution has it.
        threads = as_integer(n_threads, "n_threads", 1)
        center = _numbers_of(self.model)
        from scipy.special import stdtrit

        freedom = max(self.n_units - len(center), 1)
        further = math.sqrt(2 * self.n_units / freedom) * stdtrit(freedom, 0.975) / _NORMAL
        drawn = center + further * (self.parameters - center)
        drawn[:, :3] = np.clip(drawn[:, :3], *box_around(self.parameters[:, :3]))

        decided = self.model.decide(counts, covariates=covariates)
        known = None
        if self.weights:
            by_name = columns_of(covariates, len(decided), [*self.weights])
            known = np.stack([by_name[name] for name in self.weights], axis=1)
        rows, known, place = distinct_items(counts, known)
        times = np.zeros((3, len(rows)))
        names = [covariate.name for covariate in self.model.covariates]
        columns = None if known is None else dict(zip(names, known.T, strict=True))
        for numbers in drawn.tolist():
            model = _with_numbers(self.model, numbers)
            under = model.decide(rows, covariates=columns, n_threads=threads)
            points = self.model.label_scale.labels
            times += under == points[:, None]
        level = self.level if level is None else level
        shares = (times / len(drawn)).T[place]
        return stability_of(self.model.label_scale.sides(decided), level, shares)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the parameters with their intervals."""
        intervals = {name: getattr(self, name) for name in PARAMETERS}
        return (self.model.parameters(f"{100 * self.level:.3g}% intervals.", intervals),)

    def __str__(self) -> str:
        values = [(name, getattr(self, name)) for name in PARAMETERS]
        values += [*self.weights.items(), ("mae", self.mae)]
        return in_lines(
            [
                f"{self.level:.0%} intervals, {len(self.parameters)} refits",
                *(f"{name} {value}" for name, value in values),
            ]
        )


def bootstrap(
    counts: Any,
    labels: Any = None,
    *,
    groups: Any = None,
    n_refits: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    n_threads: int = 1,
    prior: Prior | Literal["weak"] | None = WEAK,
    covariates: Any = None,
    **options: Unpack[FitOptions],
) -> Bootstrap:
    """Bootstrap the calibration of labelled counts, by item or by group.

    Each refit draws as many items (or groups) as there are, with replacement, and fits them as
    `calibrate` does, with the scales of covariates and the usual number of votes of all. A refit
    takes a fraction of a millisecond, with covariates a few.

    Parameters
    ----------
    counts, labels
        As for `calibrate`, with one label each.
    groups : (n,) array, optional
        Group of each item, such as its prompt. Whole groups are drawn.
    n_refits : int
        Number of refits, at least 2.
    level : float
        Coverage of the intervals, above 0 and below 1.
    seed, n_threads : int
        The same seed draws the same items, at any number of threads over the refits.
    prior, covariates, **options
        As for `calibrate`, where the options are `alpha`, `kappa` and `bounds`. With covariates
        labels may be NaN: these items give scales alone.

    References
    ----------
    Efron (1979); Field and Welsh (2007) for whole groups; Noma et al. (2021) for the interval of
    an error corrected for optimism. Intervals of parameters are not by the refits.

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> sure = bootstrap(counts, [1, 0, -1, 0, 1, 0], n_refits=200)
    >>> sure.stability([[0, 1, 11], [2, 3, 7]]).agreement.shape
    (2,)
    """
    n_refits, seed = as_integer(n_refits, "n_refits", 2), as_integer(seed, "seed", 0)
    level, n_threads = as_level(level), as_integer(n_threads, "n_threads", 1)
    prior = prior_beside(prior, options.get("bounds"))
    rows = fitted_items(counts, labels, groups=groups, covariates=covariates)
    items = rows.items
    expected = "votes of pairs; btdagg.calibrate takes grades"
    expect(items.scale == PAIRS, "counts", f"votes of {items.scale}", expected)
    expect(rows.labels is not None, "labels", None, "a label of every item")
    how: Any = {"prior": prior, "n_threads": n_threads, **options}
    calibration = calibrated_items(rows, **how)  # what it warns of is in it
    model, known = calibration.model, rows.known
    counted = np.asarray(items.pooled, dtype=np.float64)
    places = items.label_scale.places(rows.labels)
    columns = np.empty((len(counted), 0)) if known is None else known.columns
    first, cell = distinct_rows(*counted.T, places, *columns.T)
    units = _units(cell, items.group, items.pooled)
    if known is not None:
        known = known._replace(columns=columns[first])
    labelled = np.eye(3)[places[first]]
    by_name = None
    if model.covariates:
        pairs = zip(model.covariates, columns[first].T, strict=True)
        by_name = {c.name: c.centre + c.scale * values for c, values in pairs}

    def errors_of(fitted: DavidsonModel) -> NDArray[np.int64]:
        plain = replace(fitted, provenance=None, label_scale=PAIRS, scale=PAIRS)
        decided = plain.decide(counted[first], covariates=by_name, n_threads=n_threads)
        return np.asarray(np.abs(decided.astype(np.int64) - (places[first] - 1)))

    shares = units.sum(axis=0) / units.sum()
    thetas, resampled, original = [], [], []
    for drawn in _draws(units, n_refits, seed):
        outcomes = drawn[:, :, None] * labelled
        scales = items.scale, items.label_scale
        usual = model.usual_votes
        models = refitted(counted[first], outcomes, scales, known=known, usual_votes=usual, **how)
        errors = np.stack([errors_of(refit) for refit in models])
        thetas += [_numbers_of(refit) for refit in models]
        resampled.append((errors * drawn).sum(axis=1) / drawn.sum(axis=1))
        original.append(errors @ shares)
    tails = [(1 - level) / 2, (1 + level) / 2]
    apparent = float(errors_of(model) @ shares)
    resampled_errors = np.concatenate(resampled)
    optimism = float((np.concatenate(original) - resampled_errors).mean())
    low, high = np.clip(np.quantile(resampled_errors, tails) + optimism, 0, 2)
    return Bootstrap(
        parameters=np.stack(thetas),
        level=level,
        calibration=calibration,
        mae=ParameterInterval(min(max(apparent + optimism, 0.0), 2.0), float(low), float(high)),
        n_units=units.shape[0],
        weights=calibration.weights(level=level),
        **_within(calibration.intervals(level=level), options.get("bounds")),
    )


def _within(
    intervals: dict[str, ParameterInterval], bounds: Bounds | None
) -> dict[str, ParameterInterval]:
    """Return intervals within the bounds of a fit, if it has any."""
    if bounds is None:
        return intervals
    box = np.column_stack(bounds.box())
    box[1] = np.exp(box[1])
    for (name, interval), (low, high) in zip([*intervals.items()], box.tolist(), strict=True):
        if low > interval.low or high < interval.high:
            ends = max(interval.low, low), min(interval.high, high)
            intervals[name] = ParameterInterval(interval.estimate, *ends, "to a bound of the fit")
    return intervals


def _numbers_of(model: DavidsonModel) -> Floats:
    weights = (covariate.weight for covariate in model.covariates)
    return np.array([model.beta, model.eta0, model.gamma, *weights])


def _with_numbers(model: DavidsonModel, numbers: list[float]) -> DavidsonModel:
    beta, eta0, gamma, *weights = numbers
    pairs = zip(model.covariates, weights, strict=True)
    covariates = tuple(covariate.weighing(weight) for covariate, weight in pairs)
    named: dict[str, Any] = {"beta": beta, "eta0": eta0, "gamma": gamma, "covariates": covariates}
    return replace(model, provenance=None, **named)


def _units(cell: NDArray[np.intp], groups: ArrayLike | None, counts: Any) -> Any:
    """Return how many items of each cell each unit has, (units, cells)."""
    names = np.arange(len(cell))
    if groups is not None:
        names = as_groups(groups, "counts", len(cell))
    expected = f"at least two {'items' if groups is None else 'groups'}"
    expect(len(names) and names.max() >= 1, "counts", counts.tolist(), expected)
    from scipy.sparse import coo_array, csr_array

    shape = int(names.max()) + 1, int(cell.max()) + 1
    return csr_array(coo_array((np.ones(len(cell)), (names, cell)), shape=shape))


def _draws(units: Any, n_draws: int, seed: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    n_units = units.shape[0]
    step = max(1, _DRAWN // sum(units.shape))
    for start in range(0, n_draws, step):
        size = min(step, n_draws - start)
        yield np.ascontiguousarray(resampled_groups(n_units, size, rng) @ units, dtype=np.float64)
