"""Refits to resampled items: the bootstrap of a calibration, and what it says of decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from btdagg._util.display import Displayed
from btdagg._util.errors import expect
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    columns_of,
    distinct_rows,
)
from btdagg._util.wording import in_lines
from btdagg.model.calibration import WEAK, calibrate, calibrated_items, prior_beside
from btdagg.model.calibration_set import PARAMETERS, Bounds, Calibration, quiet
from btdagg.model.intervals import (
    ParameterInterval,
    Stability,
    as_level,
    distinct_items,
    stability_of,
)
from btdagg.model.labelled import FittedItems, fitted_items
from btdagg.model.posterior import Posterior, decisions_under, refitted
from btdagg.result import ResultTable
from btdagg.votes.by_id import counts_and_sides
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.prior import Prior

# Weights that are drawn, and decisions that are held, at once.
_DRAWN, _HELD = 1 << 22, 1 << 24


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
        Intervals by what the labels alone tell, by group; see `Posterior.intervals`. Refits with a
        prior are drawn towards it, and vary less than the model is off.
    mae : ParameterInterval
        Mean absolute error of the fitted model on new items: that on the calibration items,
        corrected for optimism; percentiles are shifted by the same amount.
    n_units : int
        Items, or groups, that a resample draws.
    weights : dict of str to ParameterInterval
        Intervals of the weights of covariates, by name; see `Calibration.weights`.
    """

    calibration: Calibration
    parameters: NDArray[np.float64]
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
        threads = as_integer(n_threads, "n_threads", 1)
        smoothing = self.model.alpha, self.model.kappa
        step = max(1, _HELD // len(self.parameters))
        model = self.model
        center = np.array([model.beta, model.eta0, model.gamma, *_weights_of(model)])
        drawn = center + math.sqrt(2) * (self.parameters - center)
        drawn[:, :3] = np.clip(drawn[:, :3], *Bounds().box())

        decided = self.model.decide(counts, covariates=covariates)
        n_items, columns = len(decided), None
        if self.weights:
            by_name = columns_of(covariates, n_items, [*self.weights])
            columns = _scaled(self.model, by_name, n_items)
        rows, columns, place = distinct_items(counts, columns)
        shares = np.empty((len(rows), 3))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            known = None if columns is None else columns[part]
            under = decisions_under(drawn, *smoothing, rows[part], threads, known)
            for column, label in enumerate((-1, 0, 1)):
                shares[part, column] = (under == label).mean(axis=0)
        level = self.level if level is None else level
        return stability_of(decided, level, shares[place])

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
    `calibrate` does, covariates anew each time on the model's scales. A refit takes a millisecond
    or two; without a prior a fraction of one, with covariates tens.

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
    model, bounds = calibration.model, options.get("bounds") or Bounds()
    known = None if rows.known is None else rows.known.columns
    cells = _cells_of(items.pooled, rows.labels, items.group, known)
    shares = cells.repeats @ cells.units / (cells.repeats @ cells.units).sum()

    def errors_of(decided: NDArray[np.int8]) -> NDArray[np.int64]:
        return np.asarray(np.abs(decided.astype(np.int64) - cells.labels))

    def decide(thetas: NDArray[np.float64]) -> NDArray[np.int8]:
        how = model.alpha, model.kappa, cells.counts, n_threads
        return decisions_under(thetas, *how, cells.known)

    parts: list[NDArray[np.float64]] = []
    resampled, original = [], []
    for drawn in cells.draws(n_refits, seed):
        if model.covariates:
            parts.append(
                cells.refitted(drawn, [covariate.name for covariate in model.covariates], how)
            )
        else:
            named = prior, model.alpha, model.kappa, bounds, n_threads
            parts.append(refitted(cells.counts, cells.labels, drawn, *named))
        errors = errors_of(decide(parts[-1]))
        resampled.append((errors * drawn).sum(axis=1) / drawn.sum(axis=1))
        original.append(errors @ shares)
    thetas, tails = np.concatenate(parts), [(1 - level) / 2, (1 + level) / 2]
    numbers = model.beta, model.eta0, model.gamma, *_weights_of(model)
    apparent = float(errors_of(decide(np.array([numbers]))[0]) @ shares)
    resampled_errors = np.concatenate(resampled)
    optimism = float((np.concatenate(original) - resampled_errors).mean())
    low, high = np.clip(np.quantile(resampled_errors, tails) + optimism, 0, 2)
    return Bootstrap(
        parameters=thetas,
        level=level,
        calibration=calibration,
        mae=ParameterInterval(min(max(apparent + optimism, 0.0), 2.0), float(low), float(high)),
        n_units=int(cells.repeats.sum()),
        weights=calibration.weights(level=level),
        **_intervals(calibration, rows, bounds, level),
    )


def _intervals(
    calibration: Calibration, rows: FittedItems, bounds: Bounds, level: float
) -> dict[str, ParameterInterval]:
    """Return intervals of beta, nu and gamma, within the bounds of the fit."""
    model, posterior = calibration.model, calibration.posterior
    if posterior is None:  # of a fit without a prior
        offsets = None if rows.known is None else rows.known.columns @ _weights_of(model)
        items = rows.items
        groups = None if items.group is None else as_groups(items.group, "counts", len(items))
        given = items.pooled, items.label_scale.sides(items.label), None, WEAK
        how: Any = {"offsets": offsets, "covariates": model.covariates, "groups": groups}
        origin = model.provenance or Provenance()
        posterior = Posterior.of(*given, model.alpha, model.kappa, origin, **how)
        posterior = replace(posterior, model=model)
    box = np.column_stack(bounds.box())
    box[1] = np.exp(box[1])
    intervals: dict[str, ParameterInterval] = posterior.intervals(level=level)
    for (name, interval), (low, high) in zip([*intervals.items()], box.tolist(), strict=True):
        if low > interval.low or high < interval.high:
            ends = max(interval.low, low), min(interval.high, high)
            intervals[name] = ParameterInterval(interval.estimate, *ends, "to a bound of the fit")
    return intervals


class _Cells(NamedTuple):
    """Labelled items reduced to cells, which are alike in counts, label and covariates."""

    # `units`, (u, k): items of each cell in a unit; `repeats`, (u,): how many such units there are.

    counts: NDArray[np.float64]
    labels: NDArray[np.int8]
    units: csr_array[Any, Any]
    repeats: NDArray[np.int64]
    known: NDArray[np.float64]

    def refitted(
        self, drawn: NDArray[np.float64], names: Sequence[str], how: dict[str, Any]
    ) -> NDArray[np.float64]:
        thetas, fit = [], quiet(calibrate)
        for times in drawn.astype(np.int64):
            rows = np.repeat(np.arange(len(times)), times)
            columns = zip(names, self.known[rows].T, strict=True)
            scaled = {name: (x, 1.0) for name, x in columns}
            model = fit(self.counts[rows], self.labels[rows], covariates=scaled, **how).model
            weights = dict.fromkeys(names, 0.0)  # where a draw has one value of a covariate alone
            weights |= {covariate.name: covariate.weight for covariate in model.covariates}
            thetas.append([model.beta, model.eta0, model.gamma, *weights.values()])
        return np.array(thetas)

    def draws(self, n_draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
        rng = np.random.default_rng(seed)
        n_units = int(self.repeats.sum())
        step = max(1, _DRAWN // (len(self.repeats) + len(self.labels)))
        for start in range(0, n_draws, step):
            size = min(step, n_draws - start)
            times = rng.multinomial(n_units, self.repeats / n_units, size=size)
            yield np.ascontiguousarray(times @ self.units, dtype=np.float64)


def _weights_of(model: DavidsonModel) -> list[float]:
    return [covariate.weight for covariate in model.covariates]


def _scaled(
    model: DavidsonModel, columns: Mapping[str, NDArray[np.float64]], n_items: int
) -> NDArray[np.float64]:
    scaled = [covariate.of(columns[covariate.name]) for covariate in model.covariates]
    return np.stack(scaled, axis=1) if scaled else np.empty((n_items, 0))


def _cells_of(
    counts: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None,
    known: NDArray[np.float64] | None = None,
) -> _Cells:
    from scipy.sparse import coo_array, csr_array, eye_array

    checked, gold = counts_and_sides(counts, labels)
    table = checked.astype(np.float64)
    known = np.empty((len(table), 0)) if known is None else known
    first, cell = distinct_rows(*table.T, gold, *known.T)
    repeats, units = np.bincount(cell), eye_array(len(first), format="csr")
    if groups is not None:
        names = as_groups(groups, "counts", len(table))
        repeats = np.ones(int(names.max()) + 1, dtype=np.int64)
        shape = (len(repeats), len(first))
        units = csr_array(coo_array((np.ones(len(cell)), (names, cell)), shape=shape))
    expected = f"at least two {'items' if groups is None else 'groups'}"
    expect(repeats.sum() >= 2, "counts", checked.tolist(), expected)
    return _Cells(np.ascontiguousarray(table[first]), gold[first], units, repeats, known[first])
