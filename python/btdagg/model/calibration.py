"""Fitting the model on a few labelled items by minimum DRPS."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from btdagg import remarks
from btdagg._util.errors import expect
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_number,
)
from btdagg.model.calibration_set import (
    ENOUGH,
    FEWEST,
    PARAMETERS,
    Bounds,
    Calibration,
    calibration_set,
    label_weights,
    quiet,
    warning,
)
from btdagg.model.covariates import Covariate, Design
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grade_fit import fit_cuts
from btdagg.model.labelled import FittedItems, fitted_items
from btdagg.model.panel import calibrated_panel
from btdagg.model.posterior import Posterior
from btdagg.model.prior import Neighbour, Prior, fit_prior
from btdagg.remarks import Remark
from btdagg.votes.items import Items
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.unequal import unequal_votes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from btdagg._core import CalibrationSet, Fit


class _Default(StrEnum):
    """The prior where none is named: equal to its text, and one object however it is copied."""

    WEAK = "weak"

    def __repr__(self) -> str:
        return repr(self.value)


_NOTHING = 0.05  # probability from which on votes may say nothing

WEAK = cast("Literal['weak']", _Default.WEAK)


@warning
def calibrate(
    counts: Any,
    labels: ArrayLike | None = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    weights: ArrayLike | None = None,
    prior: Any = WEAK,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    provenance: Provenance | None = None,
    covariates: Any = None,
    groups: ArrayLike | None = None,
    n_threads: int = 1,
) -> Calibration:
    """Fit a model to labelled vote counts: Davidson's to those of pairs, cuts to grades.

    With a prior (by default ``"weak"``) labels may be few, all the same, or absent: the fit is the
    model closest to the posterior mean, in DRPS over the counts that occur; with many labels it is
    the paper's fit. Counts of several judges make a panel.

    ``prior=None`` is the paper's fit by minimum DRPS, over the whole box: a grid finds the basins
    of the loss, which has local minima for small sets, and Newton steps the bottom of the best few.
    Parameters that labels cannot identify stay neutral: beta at 1 where no item leans to a side,
    gamma at 0 where all items have one share of ties, unless another gamma gives a lower DRPS.

    Parameters
    ----------
    counts : (n, 3) array of non-negative numbers
        Votes per item in label order: minus, tie, plus (or columns of these names); of grades (n,
        J), a column for each point; of several judges (n, judges, 3), as in
        `btdagg.calibrate_panel`. Or votes, as `btdagg.read_votes` returns them.
    labels : (n,) array of -1, 0, 1, or None for soft labels
        Gold labels, points of their scale. With votes, labels as `btdagg.read_labels` returns them:
        the fit is to items with both. None with `btdagg.votes.Items` that hold their own.
    scale, label_scale : Scale, optional
        Scale of the votes, by default pairs, and of the labels if it differs; tables have
        their own.
    weights : (n,) or, for soft labels, (n, 3) array of non-negative numbers, optional
        Weight of each item, or of each label; 1 unless given. With a prior they are scaled to sum
        to the effective number of labels, ``weights.sum()**2 / (weights**2).sum()``.
    prior : "weak", Prior or None
        Prior: built-in values for judges in general (``"weak"``), or from neighbours
        (`btdagg.fit_prior`; for grades a list of their models). None is the paper's fit, for grades
        a flat prior. With a prior, `labels` and `weights` may be left out: the counts of unlabelled
        items then only say how often each occurs.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature, of pairs.
    bounds : Bounds, optional
        Bounds of the parameters. Giving them selects the paper's fit, unless a prior is named.
    provenance : Provenance, optional
        Where the votes are from, for the model to keep; known of votes that were read. The number
        of labels and, unless given, the most votes of an item are added.
    covariates : mapping of str to (n,) array, data frame, or (n, d) array, optional
        Numbers known of each item besides its votes, NaN where missing; for pairs a difference of A
        and B, which changes its sign when they are swapped. The model then needs these columns to
        decide. Labels may be NaN: such items only help to scale a covariate, which is done on all
        rows unless it comes as a pair of column and scale. `btdagg.standing` makes standings. For
        items or tables also names, see `btdagg.votes.Items.with_covariates`.
    groups : (n,) array, optional
        Group of each item, such as its prompt; tables have their own. Intervals of parameters and
        weights allow for items of a group that are alike.
    n_threads : int
        Threads over the distinct rows; they do not change a bit of the result.

    Warns
    -----
    CalibrationWarning
        If labels are few, items have unequal numbers of votes, or the model decides every item
        alike; with a prior, if its neighbours do not fit the labels
        or have fewer votes an item; without, if the fit did not converge, a parameter is at a bound
        or not identified. For grades, if nobody gave some of them.

    References
    ----------
    The paper's equation for empirical DRPS and its appendix on fitted parameters; Davidson
    (1970); Gneiting and Raftery (2007). Bissiri, Holmes and Walker (2016) for posteriors of a loss;
    Robbins (1956) for neighbours as a prior.

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> calibration = calibrate(counts, [1, 0, -1, 0, 1, 0])
    >>> calibration.model.decide_one(minus=1, tie=0, plus=11), calibration.at_bounds
    (1, ())
    """
    if isinstance(counts, Items) and counts.judges and labels is not None:
        counts = replace(counts, counts=counts.pooled, origin=replace(counts.origin, judges=()))
    rows = fitted_items(
        counts,
        labels,
        covariates=covariates,
        weights=weights,
        groups=groups,
        scale=scale,
        label_scale=label_scale,
    )
    return calibrated_items(
        rows,
        prior=prior,
        alpha=alpha,
        kappa=kappa,
        bounds=bounds,
        provenance=provenance,
        n_threads=n_threads,
    )


def calibrated_items(
    rows: FittedItems,
    *,
    prior: Any = WEAK,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    provenance: Provenance | None = None,
    n_threads: int = 1,
) -> Calibration:
    """Fit a model to items as `calibrate` does, without its warnings."""
    items, weights, known = rows
    counts, labels = items.by_judge, rows.labels
    groups = None if items.group is None else as_groups(items.group, "counts", len(items))
    provenance = items.provenance if provenance is None else provenance
    scales = [items.scale, items.label_scale]
    scale, label_scale = scales
    if counts.ndim == 3:
        _require({"bounds": bounds, "prior": prior}, "for a panel", bounds=None, prior=WEAK)
        of_panel: Any = {"alpha": alpha, "kappa": kappa, "provenance": provenance}
        return calibrated_panel(rows, items.judges, **of_panel)
    prior = prior_beside(prior, bounds)
    if not scale.mirrored:
        named = {"alpha": alpha, "kappa": kappa, "bounds": bounds}
        _require(named, "for grades", alpha=1, kappa=1, bounds=None)
        expect(labels is not None, "labels", None, "a label for every item of grades")
        of_items: dict[str, Any] = {"weights": weights, "provenance": provenance, "known": known}
        of_items["groups"] = groups
        fitted_cuts = fit_cuts(counts, labels, *scales, prior=prior, **of_items)
        return _with_warnings(fitted_cuts, counts, weights)
    smoothing: Any = {"alpha": as_number(alpha, "alpha"), "kappa": as_number(kappa, "kappa")}
    labels = None if labels is None else label_scale.sides(labels)
    n_threads = as_integer(n_threads, "n_threads", 1)
    design = offsets = None
    weighted: tuple[Covariate, ...] = ()
    if known is not None and known.covariates:
        features = DavidsonModel(0.0, 0.0, 0.0, **smoothing).features(counts)
        of_labels = label_weights(labels, weights)
        design = Design.of_pairs(*features, of_labels, known.columns, groups)
        fit = design.fit()
        offsets, weighted = known.offsets(fit.weights), known.weighted(fit.weights)
        prior = None if len(offsets) > ENOUGH else prior  # which looks at each item
    if prior is None:
        gathered = calibration_set(counts, labels, weights, **smoothing, offsets=offsets)
        how = bounds or Bounds(), provenance, smoothing, n_threads
        fitted = _of_least_drps(gathered, *how, weighted)
    else:
        given = counts, labels, weights, prior, *smoothing.values(), provenance, offsets, weighted
        given = *given, groups
        fitted = _closest_to_posterior(Posterior.of(*given))
    fitted = _with_warnings(fitted, counts, weights)
    if known is not None:
        warnings = (*fitted.warnings, *known.remarks)
        fitted = replace(fitted, warnings=warnings, _design=design)
    if scales == [PAIRS, PAIRS]:
        return fitted
    return replace(fitted, model=replace(fitted.model, scale=scale, label_scale=label_scale))


def _with_warnings(fitted: Calibration, counts: Any, weights: Any) -> Calibration:
    """Warn of too few labels, and of items whose numbers of votes one model cannot serve."""
    if not fitted.n_labels:
        return fitted
    warnings = [*fitted.warnings]
    if fitted.n_labels < FEWEST:
        warnings.append(remarks.few_labels(fitted.n_labels, FEWEST))
    always_ties = getattr(fitted.model, "always_ties", None)
    is_constant = always_ties is not None and fitted.max_votes and always_ties(fitted.max_votes)
    if not is_constant and (doubt := about_judge(fitted)) is not None:  # else it is said
        warnings.append(doubt)
    if (unequal := unequal_votes(counts, weights)) is not None:
        warnings.append(unequal)
    return replace(fitted, warnings=tuple(warnings))


def about_judge(fitted: Calibration) -> Remark | None:
    """Say that the labels do not rule out that the votes say nothing; None where they do."""
    nothing = fitted.shares.get("nothing", 0.0)
    if fitted.posterior is not None:
        nothing = fitted.posterior.nothing
    if not fitted.n_labels or nothing <= _NOTHING:
        return None
    return remarks.useless_judge(nothing)


def prior_among(
    neighbours: Mapping[str, tuple[ArrayLike, ArrayLike]], scale: Scale, label_scale: Scale
) -> Prior | list[Any] | Literal["weak"]:
    """Return the prior of neighbours, counts and labels by name (of grades models), or weak."""
    if not neighbours:
        return "weak"
    scales = scale, label_scale
    return prior_of({k: neighbour_of(*of, *scales, name=k) for k, of in neighbours.items()})


def neighbour_of(
    counts: ArrayLike, labels: ArrayLike, scale: Scale, label_scale: Scale, *, name: str = "1"
) -> Any:
    """Return what a prior takes of a neighbour: a `Neighbour`, or of grades a model."""
    if scale.mirrored:
        return fit_prior({name: (counts, label_scale.sides(labels))}).neighbours[name]
    return quiet(calibrate)(counts, labels, scale=scale, label_scale=label_scale).model


def prior_of(neighbours: Mapping[str, Any]) -> Prior | list[Any]:
    """Return the prior of neighbours by name, as `neighbour_of` returns them."""
    models = [
        neighbour for neighbour in neighbours.values() if not isinstance(neighbour, Neighbour)
    ]
    return models or Prior(neighbours)


def _require(named: dict[str, Any], where: str, **usual: Any) -> None:
    for name, value in usual.items():
        expect(named[name] == value, name, named[name], f"{value} {where}")


def prior_beside(prior: Any, bounds: Bounds | None) -> Any:
    """Return the prior of a fit: none beside bounds, which are of the paper's fit alone."""
    expect(isinstance(bounds, Bounds | None), "bounds", bounds, "a btdagg.Bounds or None")
    if bounds is None or prior is None:
        return prior
    expect(prior is WEAK, "bounds", bounds, "None, since bounds need the paper's fit (prior=None)")
    return None


def _of_least_drps(
    items: CalibrationSet,
    bounds: Bounds,
    provenance: Provenance,
    smoothing: dict[str, float],
    n_threads: int,
    covariates: tuple[Covariate, ...] = (),
) -> Calibration:
    lower, upper = bounds.box()
    fit = items.fit(lower.tolist(), upper.tolist(), n_threads)
    provenance = provenance.of_fit(items.max_votes, items.n_items)
    numbers = *fit.parameters, smoothing["alpha"], smoothing["kappa"]
    model = DavidsonModel(*numbers, provenance=provenance, covariates=covariates)
    at_bounds = tuple(name for name, hit in zip(PARAMETERS, fit.at_bounds, strict=True) if hit)
    return Calibration(
        model=model,
        drps=fit.drps,
        converged=fit.converged,
        at_bounds=at_bounds,
        n_labels=items.n_items,
        max_votes=items.max_votes,
        n_starts=fit.n_starts,
        warnings=tuple(_warnings_of(fit, items, model, at_bounds)),
    )


def _closest_to_posterior(posterior: Posterior) -> Calibration:
    model, items = posterior.model, posterior.labelled_items
    theta = [model.beta, model.eta0, model.gamma]
    n_labels = items.n_items if posterior.n_labels else 0  # of which the effective number
    ends = zip(PARAMETERS, theta, *Bounds().box(), strict=True)
    return Calibration(
        model=model,
        drps=items.loss(np.array(theta), 1)[0] if n_labels else math.nan,
        converged=True,
        at_bounds=tuple(name for name, value, low, high in ends if value in (low, high)),
        n_labels=n_labels,
        max_votes=items.max_votes,
        n_starts=0,
        warnings=(*posterior.warnings, *_constant_of(items, model)),
        posterior=posterior,
    )


def _warnings_of(
    fit: Fit, items: CalibrationSet, model: DavidsonModel, at_bounds: tuple[str, ...]
) -> list[Remark]:
    notes = _unidentified(items, model, gamma_is_neutral=fit.neutral[2])
    if not fit.converged:
        notes.append(remarks.no_convergence())
    if at_bounds:
        notes.append(remarks.at_bounds({name: getattr(model, name) for name in at_bounds}))
    return notes + _constant_of(items, model)


def _constant_of(items: CalibrationSet, model: DavidsonModel) -> list[Remark]:
    if not (items.max_votes and model.always_ties(items.max_votes)):
        return []
    return [remarks.always_ties(items.max_votes)]


def _unidentified(
    items: CalibrationSet, model: DavidsonModel, *, gamma_is_neutral: bool
) -> list[Remark]:
    notes = []
    weights = zip((-1, 0, 1), items.label_weights, strict=True)
    labels = [label for label, weight in weights if weight > 0]
    if len(labels) == 1:
        notes.append(remarks.one_label(labels[0]))
    if items.max_votes == 0:
        notes.append(remarks.no_votes())
        return notes
    if not items.has_margins:
        notes.append(remarks.no_margins(model.beta))
    if not items.has_tie_contrast:
        notes.append(remarks.one_share_of_ties(model.gamma if gamma_is_neutral else None))
    return notes
