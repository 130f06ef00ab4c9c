"""Fitting a model to labelled items: one fit of any design, and the doors to it."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from btdagg import _core, remarks
from btdagg._util.errors import expect, forbid
from btdagg._util.validation import (
    as_counts,
    as_groups,
    as_integer,
    as_list,
    as_number,
    as_panel_counts,
    as_weights,
    effective_weights,
    names_of_judges,
    require_rows,
    same_length,
    totals,
)
from btdagg.model.calibration import (
    FEWEST,
    PARAMETERS,
    Bounds,
    Calibration,
    quiet,
    warning,
)
from btdagg.model.covariates import KnownOfItems, known_of, without_scales
from btdagg.model.davidson import DavidsonModel
from btdagg.model.design import Design, GradesDesign, PairsDesign, Rows, joined, nothing_believed
from btdagg.model.grades import GradeModel
from btdagg.model.prior import WEAK_SHARE, Neighbour, Prior, fit_prior
from btdagg.model.sandwich import LabelsAlone, drps, probabilities
from btdagg.votes.by_id import as_items
from btdagg.votes.items import Items
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from btdagg.remarks import Remark
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]


class _Default(StrEnum):
    """The prior where none is named: equal to its text, and one object however it is copied."""

    WEAK = "weak"

    def __repr__(self) -> str:
        return repr(self.value)


WEAK = cast("Literal['weak']", _Default.WEAK)

_NOTHING = 0.05  # probability from which on votes may say nothing
_FIT = 0.5  # neighbours that hold less are said not to fit
_UNKNOWN = 0.0625  # variance of the parameters of a neighbour of which the model alone is known


class FittedItems(NamedTuple):
    """Items that have a label, their weights, and their covariates on scales of all items.

    With soft labels, or with none, they are all items; `weights` are then (n, 3), or None.
    """

    items: Items
    weights: Any
    known: KnownOfItems | None

    @property
    def labels(self) -> Any:
        """One label of each item, (n,); None if labels are soft or there are none."""
        return self.items.label if self.items.is_labelled.any() else None


def fitted_items(
    counts: Any,
    labels: Any,
    *,
    covariates: Any = None,
    weights: Any = None,
    groups: Any = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    panel: str | None = None,
    judges: Sequence[str] | None = None,
) -> FittedItems:
    """Bring arguments of `btdagg.calibrate` into items, of a panel by the column of its judges."""
    covariates, scales = without_scales(covariates)
    is_soft = labels is None and not isinstance(counts, Items)
    items = as_items(
        counts,
        labels,
        groups,
        scale=scale,
        label_scale=label_scale,
        partial=covariates is not None,
        panel=panel,
        judges=judges,
        weights=None if is_soft else weights,
        covariates=covariates,
    )
    has_labels = bool(items.is_labelled.any())
    rows = np.flatnonzero(items.is_labelled) if has_labels else np.arange(len(items))
    known = None
    if items.covariates:
        expected = "labels, which weigh covariates"
        expect(has_labels or weights is not None, "labels", None, expected)
        standings = items.origin.standings
        known = known_of(items.covariates, rows, items.scale, standings=standings, scales=scales)
    if has_labels:
        items = items.labelled()
    return FittedItems(items, weights if is_soft else items.facts.get("weights"), known)


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

    With a prior (by default ``"weak"``) labels may be few, all the same, or absent. Each part of
    the prior is fitted by DRPS and weighed by the likelihood of the labels; the model is the one
    closest to their mean, in DRPS over the counts that occur. With many labels it is the fit of
    least DRPS.

    ``prior=None`` is the paper's fit by minimum DRPS, over the whole box: a grid finds the basins
    of the loss, which has local minima for small sets, and Newton steps the bottom of the best few.
    Parameters that labels cannot identify stay neutral: beta at 1 where no item leans to a side,
    gamma at 0 where all items have one share of ties, unless another gamma gives a lower DRPS.

    Items may have unequal numbers of votes. The model compares their features with those of the
    usual number, that most items have, each as a share of that of a unanimous item.

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
        a prior so wide that it says nothing; covariates keep the prior of their weights. With a
        prior, `labels` and `weights` may be left out: the counts of unlabelled items then only say
        how often each occurs.
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
        If labels are few, or the model decides every item alike; with a prior, if its neighbours do
        not fit the labels; without, if the fit did not converge, a parameter is at a bound
        or not identified. For grades, if nobody gave some of them.

    References
    ----------
    The paper's equation for empirical DRPS and its appendix on fitted parameters; Davidson
    (1970); Gneiting and Raftery (2007). Bissiri, Holmes and Walker (2016) for posteriors of a loss;
    Tierney and Kadane (1986) for Laplace's method; Agresti (1992) for grades.

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


@warning
def calibrate_panel(
    counts: Any,
    labels: Any = None,
    *,
    judges: Sequence[str] | None = None,
    weights: Any = None,
    groups: Any = None,
    alpha: float = 1.0,
    kappa: float = 1.0,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    provenance: Provenance | None = None,
    covariates: Any = None,
) -> Calibration:
    """Fit one model to the votes of several judges on the same labelled items.

    Each judge has a beta and a gamma of its own, and all share one eta0. They are fitted as those
    of one judge, with a prior of what judges say together and of how far they are apart.

    Parameters
    ----------
    counts : (n, judges, 3) array of non-negative numbers
        Votes per item and judge in label order: minus, tie, plus; a judge without votes on an item
        is absent, see `btdagg.PanelModel`. Or votes with a column `judge`, or items of a panel.
    labels : (n,) array of -1, 0, 1
        As for `btdagg.calibrate`.
    judges : sequence of str, optional
        Names of the judges; by default numbers from 1, or of votes those in the column.
    weights : (n,) array of non-negative numbers, optional
        Weight of each item, scaled as for `btdagg.calibrate` with a prior.
    groups : (n,) array, optional
        Group of each item, such as its prompt, for intervals of the weights of covariates.
    alpha, kappa, scale, label_scale, provenance
        As for `btdagg.calibrate`.
    covariates : optional
        As for `btdagg.calibrate`.

    Warns
    -----
    CalibrationWarning
        If a judge has no votes on the labelled items (it is left out of every decision), all labels
        are the same, or a fit did not converge.

    References
    ----------
    Davidson (1970); Gneiting and Raftery (2007).

    Examples
    --------
    >>> from btdagg.datasets import simulate
    >>> first = simulate("rb2-math", 60, 8, seed=1)
    >>> noise = np.random.default_rng(2).multinomial(8, [1 / 3] * 3, size=60)
    >>> model = calibrate_panel(np.stack([first.counts, noise], axis=1), first.labels).model
    >>> model.beta[0] > model.beta[1]
    True
    """
    rows = fitted_items(
        counts,
        labels,
        covariates=covariates,
        weights=weights,
        groups=groups,
        scale=scale,
        label_scale=label_scale,
        panel="judge",
        judges=judges,
    )
    how: dict[str, Any] = {"alpha": alpha, "kappa": kappa, "provenance": provenance}
    return calibrated_items(rows, judges=judges, is_panel=True, **how)


def calibrated_items(
    rows: FittedItems,
    *,
    prior: Any = WEAK,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    provenance: Provenance | None = None,
    judges: Sequence[str] | None = None,
    is_panel: bool = False,
    n_threads: int = 1,
) -> Calibration:
    """Fit a model to items as `calibrate` does, without its warnings."""
    items, _, known = rows
    scales = items.scale, items.label_scale
    is_panel = is_panel or items.by_judge.ndim == 3
    is_of_pairs = items.scale.mirrored
    if is_panel:
        _require({"bounds": bounds, "prior": prior}, "for a panel", bounds=None, prior=WEAK)
    elif not is_of_pairs:
        given = {"alpha": alpha, "kappa": kappa, "bounds": bounds}
        _require(given, "for grades", alpha=1, kappa=1, bounds=None)
    prior = prior_beside(prior, bounds)
    smoothing = as_number(alpha, "alpha", above=0), as_number(kappa, "kappa", above=0)
    n_threads = as_integer(n_threads, "n_threads", 1)
    counts = _counts_of(items, is_panel=is_panel)
    outcomes, n_effective = _outcomes(rows, needs_one=is_panel or not is_of_pairs)
    has_weight = totals(outcomes) > 0 if n_effective else np.ones(len(counts), dtype=np.bool_)
    n_labels = int(has_weight.sum()) if n_effective else 0
    known = known or KnownOfItems((), np.empty((len(items), 0)), ())
    if not has_weight.all():
        counts, outcomes = counts[has_weight], outcomes[has_weight]
        known = known._replace(columns=known.columns[has_weight])
    covariates, columns, about = known
    design: Design
    if is_of_pairs:
        names = names_of_judges(judges or items.judges or None, counts.shape[1]) if is_panel else ()
        if is_panel:
            expect(counts.any(), "counts", items.counts, "votes of at least one judge")
        design = PairsDesign.of(counts, *smoothing, *scales, covariates, judges=names)
    else:
        design = GradesDesign(*scales, covariates)
    sizes = totals(counts)
    max_votes = math.ceil(sizes.max() - 1e-6)
    origin = items.provenance if provenance is None else provenance
    origin = origin.of_fit(max_votes, n_labels, _numbers(sizes) if n_labels else ())
    groups = None if items.group is None else as_groups(items.group, "counts", len(items))
    if groups is not None:
        groups = np.unique(groups[has_weight], return_inverse=True)[1].reshape(-1)
    few, known_few, of_few = joined(counts, columns, outcomes if n_labels else outcomes + 1.0)
    fitted_rows = design.rows(few, known_few, of_few[None])
    at_bounds: tuple[str, ...] = ()
    n_starts, shares = 0, {}
    if prior is None and isinstance(design, PairsDesign):
        expect(n_labels, "labels", None, "labels or soft weights")
        theta = np.zeros(len(design.names))
        if design.covariates:
            theta = fit(design, fitted_rows, None, n_threads).parameters[0]
        gathered = _gathered(design, few, known, of_few, theta)
        found = gathered.fit(*_box(bounds), n_threads)
        theta, converged, n_starts = _beside(design, theta, found), found.converged, found.n_starts
        at_bounds = _at_bounds(found)
        model = design.model(theta, origin)
        doubts = _of_paper(gathered, found, model)
    else:
        fitted = fit(design, fitted_rows, prior, n_threads, has_labels=n_labels > 0)
        theta, converged = fitted.parameters[0], bool(fitted.converged[0])
        model = design.model(theta, origin)
        shares = {} if prior is None else fitted.shares_of(0)
        if is_of_pairs and not is_panel and model.beta <= Bounds().beta[0]:
            at_bounds = ("beta",)
        doubts = _doubts(model, prior, shares, n_labels, counts, outcomes)
        if not converged:
            doubts.append(remarks.no_convergence("a fit"))
    alone, losses = None, (math.nan, math.nan)
    if n_labels:
        alone = LabelsAlone(design, counts, columns, outcomes, groups, n_effective, theta)
        losses = _losses_of(model, (few, of_few), fitted_rows, theta)
    return Calibration(
        model,
        n_labels,
        max_votes,
        converged,
        (*doubts, *_of_any_fit(model, shares, n_labels, max_votes), *about),
        *losses,
        at_bounds=at_bounds,
        n_starts=n_starts,
        shares=shares,
        n_effective=n_effective,
        _alone=alone,
    )


def _numbers(sizes: NDArray[Any]) -> tuple[int, ...]:
    """Return the whole numbers of votes among some, if they are several."""
    distinct = np.unique(np.rint(sizes[sizes > 0.5]).astype(np.int64))
    return tuple(distinct.tolist()) if len(distinct) > 1 else ()


class Fits(NamedTuple):
    """Parameters of m fits, (m, p), what is held by the kinds of parts, (m, 3), and convergence."""

    parameters: Floats
    shares: Floats
    covariances: Floats
    converged: NDArray[np.bool_]

    def shares_of(self, number: int) -> dict[str, float]:
        """Return what is held by each kind of parts, by name."""
        names = "neighbours", "votes", "nothing"
        return dict(zip(names, self.shares[number].tolist(), strict=True))


def fit(
    design: Design, rows: Rows, prior: Any, n_threads: int = 1, *, has_labels: bool = True
) -> Fits:
    """Fit a design to rows of it under each weighting of their labels.

    Without labels the weights say how often items occur.
    """
    believed = _believed(design, rows, prior)
    if has_labels:
        return Fits(*believed.posteriors(*rows, n_threads))
    occurring = np.ascontiguousarray(rows.weights[0].sum(axis=1))
    none = np.zeros_like(rows.weights)
    return Fits(*believed.posteriors(rows.values, none, n_threads, rows.values, occurring))


def refitted(
    counts: NDArray[Any],
    outcomes: Floats,
    scales: tuple[Scale, Scale],
    prior: Any,
    *,
    known: KnownOfItems | None = None,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    judges: Sequence[str] = (),
    usual_votes: float | None = None,
    n_threads: int = 1,
) -> list[Any]:
    """Return the model fitted under each of m weightings of the labels of items, (m, n, K).

    The usual number of votes of one judge may be known of more items than these.
    """
    known = known or KnownOfItems((), np.empty((len(counts), 0)), ())
    covariates = known.covariates
    prior = prior_beside(prior, bounds)
    if counts.ndim == 3:
        _require({"prior": prior}, "for a panel", prior=WEAK)
    if not scales[0].mirrored:
        design: Design = GradesDesign(*scales, covariates)
    else:
        if counts.ndim == 3:
            judges = judges or names_of_judges(None, counts.shape[1])
        about = *scales, covariates, judges, usual_votes
        design = PairsDesign.of(counts, alpha, kappa, *about)
    papers = design if prior is None and isinstance(design, PairsDesign) else None
    if papers is not None and not covariates:
        row, place = np.nonzero(outcomes.any(axis=0))
        cells = np.ascontiguousarray(counts[row], dtype=np.float64), (place - 1).astype(np.int8)
        of_cells = np.ascontiguousarray(outcomes[:, row, place])
        refits = _core.Refits(*cells, alpha, kappa, *_box(bounds), papers.usual_votes[0])
        thetas = refits.fit(of_cells, n_threads)[0]
    else:
        rows = design.rows(counts, known.columns, outcomes)
        thetas = fit(design, rows, prior, n_threads).parameters
        if papers is not None:
            sets = [
                _gathered(papers, counts, known, weights, theta)
                for weights, theta in zip(outcomes, thetas, strict=True)
            ]
            found = [of.fit(*_box(bounds), 1) for of in sets]
            thetas = np.stack([_beside(papers, *both) for both in zip(thetas, found, strict=True)])
    return [design.model(theta) for theta in thetas]


def _believed(design: Design, rows: Rows, prior: Any) -> _core.Prior:
    weak = design.believed(rows)
    n_covariates = len(design.covariates)
    if prior is None:
        believed = nothing_believed(design, rows, weak)
    elif isinstance(prior, str) and prior == WEAK:
        believed = weak
    elif isinstance(design, PairsDesign):
        expect(isinstance(prior, Prior), "prior", prior, 'a Prior, "weak" or None')
        believed = prior.beside(weak, design.usual_votes[0], design.alpha, design.kappa)
    else:
        believed = _of_models(design, weak, prior)
    return believed.with_covariates(n_covariates, design.n_slopes)


def _of_models(design: GradesDesign, weak: _core.Prior, prior: Any) -> _core.Prior:
    expected = '"weak", None, or models of neighbours of the same scale'
    models = as_list([prior] if isinstance(prior, GradeModel) else prior, "prior", expected)
    for place, model in enumerate(models):
        scales = design.scale, design.label_scale
        good = isinstance(model, GradeModel) and (model.scale, model.label_scale) == scales
        expect(good, "prior", model, expected, row=place)
    distinct = [model for place, model in enumerate(models) if model not in models[:place]]
    parameters = np.stack([design.parameters(model) for model in distinct])
    unknown = _UNKNOWN * np.eye(parameters.shape[1])
    return weak.with_neighbours(parameters, np.stack([unknown] * len(distinct)), WEAK_SHARE)


def _counts_of(items: Items, *, is_panel: bool) -> NDArray[Any]:
    if is_panel:
        return as_panel_counts(items.counts)
    counts = items.by_judge
    if items.scale.mirrored:
        checked = np.array(as_counts(counts))
        forbid(not len(checked), "counts is empty, expected at least one item", "counts")
        return checked
    array = items.scale.counts(counts)
    items.scale.require_votes(array)
    return np.asarray(array)


def _outcomes(rows: FittedItems, *, needs_one: bool) -> tuple[Floats, float]:
    """Return weights of the labels of each item, (n, K), and the effective number of labels."""
    items, weights, _ = rows
    label_scale, k = items.label_scale, len(items.label_scale.points)
    if rows.labels is None:
        what = "labels, or items that have them" if items.judges else "a label for every item"
        expect(not needs_one, "labels", None, what)
        if weights is None:
            return np.zeros((len(items), k)), 0.0
        soft = np.array(as_weights(weights, soft=True), dtype=np.float64)
        same_length("weights", len(soft), "counts", len(items))
        good = np.isfinite(soft) & (soft >= 0)
        require_rows(good, soft, "weights", "a finite number of at least 0")
        forbid(not soft.any(), "weights are all 0, expected at least one above 0", "weights")
        share = soft.sum(axis=1) / soft.max()
        worth = float(share.sum() ** 2 / (share**2).sum())
        return soft * (worth / soft.sum()), worth
    places = label_scale.places(rows.labels)
    expect(len(places), "labels", [], "at least one label")
    sizes = effective_weights(weights, len(items))
    outcomes = np.zeros((len(items), k))
    outcomes[np.arange(len(items)), places] = sizes
    return outcomes, float(sizes.sum())


def _gathered(
    design: PairsDesign, counts: NDArray[Any], known: KnownOfItems, outcomes: Floats, theta: Floats
) -> _core.CalibrationSet:
    """Gather items for the paper's fit, beside the weights of covariates that parameters have."""
    about = design.alpha, design.kappa, design.usual_votes[0]
    outcomes = np.ascontiguousarray(outcomes)
    if not design.covariates:
        return _core.CalibrationSet.soft(counts, outcomes, *about)
    offsets = known.offsets(theta[1 : 1 + len(design.covariates)])
    return _core.CalibrationSet.with_offsets(counts, outcomes, offsets, *about)


def _beside(design: PairsDesign, theta: Floats, found: Any) -> Floats:
    """Return parameters with beta, eta0 and gamma of the paper's fit."""
    beta, eta0, gamma = found.parameters
    return np.array([beta, *theta[1 : 1 + len(design.covariates)], eta0, gamma])


def _of_paper(gathered: _core.CalibrationSet, found: Any, model: DavidsonModel) -> list[Remark]:
    notes = _unidentified(gathered, model, gamma_is_neutral=found.neutral[2])
    if not found.converged:
        notes.append(remarks.no_convergence())
    at_bounds = _at_bounds(found)
    if at_bounds:
        notes.append(remarks.at_bounds({name: getattr(model, name) for name in at_bounds}))
    return notes


def _box(bounds: Bounds | None) -> tuple[list[float], list[float]]:
    lower, upper = (bounds or Bounds()).box()
    return lower.tolist(), upper.tolist()


def _at_bounds(found: Any) -> tuple[str, ...]:
    return tuple(name for name, hit in zip(PARAMETERS, found.at_bounds, strict=True) if hit)


def _losses_of(
    model: Any, labelled: tuple[NDArray[Any], Floats], rows: Rows, theta: Floats
) -> tuple[float, float]:
    """Return the mean DRPS and log loss of labels."""
    values, (weights,) = rows
    size = weights.sum(axis=1).sum()
    if isinstance(model, DavidsonModel) and not model.covariates:
        plain = replace(model, provenance=None, label_scale=PAIRS, scale=PAIRS)
        mean = plain.drps(labelled[0], None, labelled[1])  # to the bit what the model says of them
    else:
        mean = drps(values, weights, theta) / size
    p = probabilities(values, theta)
    with np.errstate(divide="ignore"):
        log_loss = -np.where(weights > 0, weights * np.log(p), 0.0).sum() / size
    return float(mean), float(log_loss)


def _doubts(
    model: Any,
    prior: Any,
    shares: Mapping[str, float],
    n_labels: int,
    counts: NDArray[Any],
    outcomes: Floats,
) -> list[Remark]:
    """Return what is said of a fit with a prior, or of grades or a panel."""
    notes: list[Remark] = []
    given = outcomes.sum(axis=0) > 0
    points = model.label_scale.points
    if isinstance(prior, Prior) and n_labels and shares["neighbours"] < _FIT:
        notes.append(remarks.unfit_neighbours(n_labels, shares["neighbours"]))
    if model.judges:
        notes += [remarks.silent_judge(name) for name in model.unheard]
        if given.sum() == 1:
            notes.append(remarks.one_label(points[int(given.argmax())], "the parameters"))
    if not isinstance(model, GradeModel):
        return notes
    has_prior = prior is not None
    if given.sum() == 1:
        notes.append(remarks.unused_grades(str(points[int(given.argmax())]), True, has_prior))
    elif not given.all():
        absent = tuple(g for g, is_given in zip(points, given, strict=True) if not is_given)
        names = listed(absent) if len(absent) > 1 else str(absent[0])
        notes.append(remarks.unused_grades(names, False, has_prior))
    means = _core.grade_means(counts, model.scale.floats, 1)
    if np.ptp(means) == 0:
        notes.append(remarks.one_mean_vote())
    elif not has_prior and given.sum() > 1:
        if model.beta * float(means.std()) < 1e-4:
            notes.append(remarks.falling_grades())
        elif _are_separated(means, outcomes):
            notes.append(remarks.separated_grades())
    if len(model.reachable) == 1 and not model.covariates:
        notes.append(remarks.always_one_grade(next(iter(model.reachable))))
    return notes


def _are_separated(means: Floats, outcomes: Floats) -> bool:
    """Return whether no item with a lower grade has a higher mean vote, but for rounding."""
    item, place = np.nonzero(outcomes)
    rounding = 1e-9 * float(np.abs(means).max())
    cuts = range(1, outcomes.shape[1])
    sides = ((means[item[place < cut]], means[item[place >= cut]]) for cut in cuts)
    return all(
        below.max() <= above.min() + rounding for below, above in sides if len(below) and len(above)
    )


def _of_any_fit(
    model: Any, shares: Mapping[str, float], n_labels: int, max_votes: int
) -> tuple[Remark, ...]:
    notes: list[Remark] = []
    is_constant = isinstance(model, DavidsonModel) and max_votes and model.always_ties(max_votes)
    if is_constant:
        notes.append(remarks.always_ties(max_votes))
    if n_labels and n_labels < FEWEST and not model.judges:
        notes.append(remarks.few_labels(n_labels, FEWEST))
    nothing = shares.get("nothing", 0.0)
    if n_labels and not is_constant and nothing > _NOTHING and not model.judges:
        notes.append(remarks.useless_judge(nothing))
    return tuple(notes)


def about_judge(fitted: Calibration) -> Remark | None:
    """Say that the labels do not rule out that the votes say nothing; None where they do."""
    nothing = fitted.shares.get("nothing", 0.0)
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


def prior_beside(prior: Any, bounds: Bounds | None) -> Any:
    """Return the prior of a fit: none beside bounds, which are of the paper's fit alone."""
    expect(isinstance(bounds, Bounds | None), "bounds", bounds, "a btdagg.Bounds or None")
    if bounds is None or prior is None:
        return prior
    expect(prior is WEAK, "bounds", bounds, "None, since bounds need the paper's fit (prior=None)")
    return None


def _require(named: dict[str, Any], where: str, **usual: Any) -> None:
    for name, value in usual.items():
        expect(named[name] == value, name, named[name], f"{value} {where}")


def _unidentified(
    items: _core.CalibrationSet, model: DavidsonModel, *, gamma_is_neutral: bool
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
