"""Refits to resampled items: the bootstrap of a calibration, and what it says of decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from btdagg._util.display import Displayed
from btdagg._util.errors import expect
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    distinct_rows,
    same_index,
)
from btdagg.model.calibration import WEAK, calibrate, prior_beside
from btdagg.model.calibration_set import PARAMETERS, Bounds, Calibration, quiet
from btdagg.model.intervals import (
    ParameterInterval,
    Stability,
    as_level,
    distinct_items,
    stability_of,
)
from btdagg.model.posterior import decisions_under, refitted
from btdagg.votes.join import labelled, labelled_items

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.prior import Prior

# Share of refits at a bound from which an interval is said to end there.
_OFTEN = 0.025
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
    parameters : (n_refits, 3) array of float64
        beta, eta0 (the log of nu) and gamma of each refit.
    level : float
        Nominal coverage of the intervals.
    beta, nu, gamma : ParameterInterval
        Percentile intervals. If an end is a bound of the fit, the note says so.
    mae : ParameterInterval
        Mean absolute error of the fitted model on new items: the error on the calibration items,
        corrected for the optimism of scoring a fit on its own items. The percentiles are shifted by
        the same amount.
    n_units : int
        Items, or groups, that a resample draws.
    """

    calibration: Calibration
    parameters: NDArray[np.float64]
    level: float
    beta: ParameterInterval
    nu: ParameterInterval
    gamma: ParameterInterval
    mae: ParameterInterval
    n_units: int

    @property
    def model(self) -> DavidsonModel:
        """The model that was refitted."""
        model: DavidsonModel = self.calibration.model
        return model

    def stability(
        self, counts: ArrayLike, *, level: float | None = None, n_threads: int = 1
    ) -> Stability:
        """Return for each item whether its decision is stable under the refits.

        `counts` are of any items, not only those of the calibration; `level` is the share of the
        refits that must give the model's label, unless given the level of the intervals.
        """
        threads = as_integer(n_threads, "n_threads", 1)
        smoothing = self.model.alpha, self.model.kappa
        step = max(1, _HELD // len(self.parameters))

        rows, _, place = distinct_items(counts)
        shares = np.empty((len(rows), 3))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            decided = decisions_under(self.parameters, *smoothing, part, threads)
            for column, label in enumerate((-1, 0, 1)):
                shares[start : start + step, column] = (decided == label).mean(axis=0)
        level = self.level if level is None else level
        return stability_of(self.model.decide(counts), level, shares[place])

    def __str__(self) -> str:
        values = [(name, getattr(self, name)) for name in (*PARAMETERS, "mae")]
        return "\n".join(
            [
                f"{self.level:.0%} intervals of {len(self.parameters)} refits",
                *(f"{name} {value}" for name, value in values),
            ]
        )


def bootstrap(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_refits: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    n_threads: int = 1,
    prior: Prior | Literal["weak"] | None = WEAK,
    **options: Unpack[FitOptions],
) -> Bootstrap:
    """Bootstrap the calibration of labelled counts, by item or by group.

    Each refit draws as many items (or groups) as there are, with replacement, and fits the model as
    `calibrate` does. A refit takes some milliseconds, without a prior some tenths of one.

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
    seed : int
        The same seed draws the same items, at any number of threads.
    n_threads : int
        Threads over the refits; they do not change a bit of the result.
    prior, **options
        As for `calibrate`, where the options are `alpha`, `kappa` and `bounds`.

    References
    ----------
    Efron (1979); Field and Welsh (2007) for whole groups; Noma et al. (2021) for the interval of
    an error corrected for optimism.

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
    known: Any = options.get("covariates") or getattr(counts, "covariates", None) or {}
    expected = "none: refits are of votes alone, and weights() of a calibration has intervals"
    expect(not known, "covariates", [*known], expected)
    counts, labels, groups = labelled(counts, labels, groups)
    same_index(counts=counts, labels=labels, groups=groups)
    cells = _cells_of(counts, labels, groups)
    fit = quiet(calibrate)  # what it warns of is in `calibration`
    calibration = fit(counts, labels, prior=prior, n_threads=n_threads, **options)
    model, bounds = calibration.model, options.get("bounds") or Bounds()
    shares = cells.repeats @ cells.units / (cells.repeats @ cells.units).sum()

    def errors_of(decided: NDArray[np.int8]) -> NDArray[np.int64]:
        return np.asarray(np.abs(decided.astype(np.int64) - cells.labels))

    parts: list[NDArray[np.float64]] = []
    own, original = [], []
    for drawn in cells.draws(n_refits, seed):
        how = prior, model.alpha, model.kappa, bounds, n_threads
        parts.append(refitted(cells.counts, cells.labels, drawn, *how))
        errors = errors_of(
            decisions_under(parts[-1], model.alpha, model.kappa, cells.counts, n_threads)
        )
        own.append((errors * drawn).sum(axis=1) / drawn.sum(axis=1))
        original.append(errors @ shares)
    thetas, (lower, upper) = np.concatenate(parts), bounds.box()
    at_bounds = ((thetas == lower) | (thetas == upper)) & (lower < upper)
    values = np.column_stack([thetas[:, 0], np.exp(thetas[:, 1]), thetas[:, 2]])
    tails = [(1 - level) / 2, (1 + level) / 2]
    intervals = {}
    for column, name in enumerate(PARAMETERS):
        low, high = np.quantile(values[:, column], tails)
        share = at_bounds[:, column].mean()
        note = f"{share:.0%} of the refits are at a bound" if share >= _OFTEN else ""
        intervals[name] = ParameterInterval(getattr(model, name), float(low), float(high), note)
    apparent = float(errors_of(model.decide(cells.counts)) @ shares)
    errors_of_own = np.concatenate(own)
    optimism = float((np.concatenate(original) - errors_of_own).mean())
    low, high = np.clip(np.quantile(errors_of_own, tails) + optimism, 0, 2)
    return Bootstrap(
        parameters=thetas,
        level=level,
        calibration=calibration,
        mae=ParameterInterval(min(max(apparent + optimism, 0.0), 2.0), float(low), float(high)),
        n_units=int(cells.repeats.sum()),
        **intervals,
    )


class _Cells(NamedTuple):
    """Labelled items reduced to cells, which are alike in counts and label.

    `units`, (u, k), has how many items of each cell a unit has, an item or a group, and `repeats`,
    (u,), how many such units there are.
    """

    counts: NDArray[np.float64]
    labels: NDArray[np.int8]
    units: csr_array[Any, Any]
    repeats: NDArray[np.int64]

    def draws(self, n_draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
        """Weights of the cells when as many units are drawn with replacement, block by block."""
        rng = np.random.default_rng(seed)
        n_units = int(self.repeats.sum())
        step = max(1, _DRAWN // (len(self.repeats) + len(self.labels)))
        for start in range(0, n_draws, step):
            size = min(step, n_draws - start)
            times = rng.multinomial(n_units, self.repeats / n_units, size=size)
            yield np.ascontiguousarray(times @ self.units, dtype=np.float64)


def _cells_of(counts: ArrayLike, labels: ArrayLike, groups: ArrayLike | None) -> _Cells:
    from scipy.sparse import coo_array, csr_array, eye_array

    checked, gold = labelled_items(counts, labels)
    table = checked.astype(np.float64)
    first, cell = distinct_rows(*table.T, gold)
    repeats, units = np.bincount(cell), eye_array(len(first), format="csr")
    if groups is not None:
        names = as_groups(groups, "counts", len(table))
        repeats = np.ones(int(names.max()) + 1, dtype=np.int64)
        shape = (len(repeats), len(first))
        units = csr_array(coo_array((np.ones(len(cell)), (names, cell)), shape=shape))
    expected = f"at least two {'items' if groups is None else 'groups'}"
    expect(repeats.sum() >= 2, "counts", counts, expected)
    return _Cells(np.ascontiguousarray(table[first]), gold[first], units, repeats)
