"""Bootstrap of a calibration: refits to resampled items or groups."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from btdagg import _core
from btdagg._util.display import Displayed
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer
from btdagg.model.bounds import PARAMETERS
from btdagg.model.calibration import Calibration
from btdagg.model.intervals import ParameterInterval, Stability, as_level
from btdagg.model.refit_file import Refits, save_refits
from btdagg.model.resampling import FitOptions, estimates, labelled_items
from btdagg.model.stability import stability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior

# Share of refits at a bound from which an interval is said to end there.
_OFTEN = 0.025


@readable
@dataclass(frozen=True, eq=False)
class Bootstrap(Displayed):
    """Result of `bootstrap`: refits to resampled items.

    Attributes
    ----------
    calibration : Calibration
        The fit to the items themselves.
    parameters : (n_refits, 3) array of float64
        beta, eta0 (the log of nu) and gamma of each refit.
    drps : (n_refits,) array of float64
        Mean DRPS of each refit on its own resample.
    at_bounds : (n_refits, 3) array of bool
        Which parameters of each refit are at one of their bounds.
    converged : (n_refits,) array of bool
        Whether each refit is at an optimum.
    beta, nu, gamma : ParameterInterval
        Percentile intervals. If an end is a bound of the fit, the note says so.
    mae : ParameterInterval
        Mean absolute error of the fitted model on new items: the error on the calibration items,
        corrected for the optimism of scoring a fit on its own items. The percentiles are shifted by
        the same amount.
    n_units : int
        Items, or groups, that a resample draws.
    level : float
        Nominal coverage of the intervals.
    """

    calibration: Calibration
    parameters: NDArray[np.float64]
    drps: NDArray[np.float64]
    at_bounds: NDArray[np.bool_]
    converged: NDArray[np.bool_]
    beta: ParameterInterval
    nu: ParameterInterval
    gamma: ParameterInterval
    mae: ParameterInterval
    n_units: int
    level: float

    def stability(
        self, counts: ArrayLike, *, level: float | None = None, n_threads: int = 1
    ) -> Stability:
        """Return for each item whether its decision is stable under the refits.

        Parameters
        ----------
        counts : (n, 3) array of non-negative integers
            Items to decide; any, not only those of the calibration.
        level : float, optional
            Share of the refits that must give the same label as the model. By default the level of
            the intervals.
        n_threads : int
            Threads over the refits; they do not change a bit of the result.

        Returns
        -------
        Stability

        Raises
        ------
        InputError
            If a count is invalid, or an argument is out of range.
        """
        return stability(
            self.calibration.model,
            self.parameters,
            counts,
            level=self.level if level is None else level,
            n_threads=n_threads,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the refits as JSON, which `load_refits` and ``btdagg decide --refits`` read.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        save_refits(path, Refits(self.calibration.model, self.parameters, self.level))

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
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_refits: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    n_threads: int = 1,
    prior: Prior | Literal["weak"] | None = None,
    **options: Unpack[FitOptions],
) -> Bootstrap:
    """Bootstrap the calibration of labelled counts, by item or by group.

    Each refit draws as many items (or groups) as there are, with replacement, and fits the model as
    `calibrate` does. A refit takes some tenths of a millisecond, with a prior some milliseconds.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order: minus, tie, plus.
    labels : (n,) array of -1, 0, 1
        Gold labels.
    weights : (n,) array of non-negative numbers, optional
        Weight of each item. 1 unless given.
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
    prior : Prior or "weak", optional
        As for `calibrate`: of the fit and of every refit.
    **options
        `alpha`, `kappa` and `bounds`, as for `calibrate`.

    Returns
    -------
    Bootstrap

    Raises
    ------
    InputError
        Where `calibrate` does, or if there are fewer than two items (or groups) with a weight.

    Notes
    -----
    Warnings of `calibrate` are in ``.calibration.warnings``.

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
    items = labelled_items(
        counts,
        labels,
        weights,
        groups,
        n_threads=n_threads,
        prior=prior,
        **options,
    )
    model = items.calibration.model
    parts, own, original = [], [], []
    shares = items.weights / items.weights.sum()
    for drawn in items.draws(n_refits, seed):
        parts.append(items.refit(drawn, n_threads))
        decided = _core.decide_under(
            parts[-1][0], model.alpha, model.kappa, items.counts, n_threads
        )
        errors = items.errors(decided)
        own.append((errors * drawn).sum(axis=1) / drawn.sum(axis=1))
        original.append(errors @ shares)
    thetas, drps, converged, at_bounds = (np.concatenate(part) for part in zip(*parts, strict=True))
    values = np.column_stack([thetas[:, 0], np.exp(thetas[:, 1]), thetas[:, 2]])
    tails = [(1 - level) / 2, (1 + level) / 2]
    intervals = {}
    for column, (name, estimate) in enumerate(estimates(items.calibration).items()):
        low, high = np.quantile(values[:, column], tails)
        share = at_bounds[:, column].mean()
        note = f"{share:.0%} of the refits are at a bound" if share >= _OFTEN else ""
        intervals[name] = ParameterInterval(estimate, float(low), float(high), note)
    apparent = float(items.errors(model.decide(items.counts)) @ shares)
    errors_of_own = np.concatenate(own)
    optimism = float((np.concatenate(original) - errors_of_own).mean())
    low, high = np.clip(np.quantile(errors_of_own, tails) + optimism, 0, 2)
    return Bootstrap(
        calibration=items.calibration,
        parameters=thetas,
        drps=drps,
        at_bounds=at_bounds,
        converged=converged,
        mae=ParameterInterval(min(max(apparent + optimism, 0.0), 2.0), float(low), float(high)),
        n_units=items.n_units,
        level=level,
        **intervals,
    )
