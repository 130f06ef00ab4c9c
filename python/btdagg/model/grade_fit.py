"""Fitting the model of grades: a convex loss, and a prior of what votes may be worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._util.errors import expect
from btdagg._util.validation import as_list, effective_weights, same_index, same_length
from btdagg.model.calibration_set import ENOUGH, Calibration
from btdagg.model.covariates import Covariate, Design, KnownOfItems
from btdagg.model.grades import GradeModel
from btdagg.model.newton import minimum
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import Scale, listed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Beta stays between these, for means whose standard deviation is 1.
_LEAST_BETA, _MOST_BETA = 1e-6, 100.0

# Where beta of the prior is looked at first, in standard deviations of its logarithm.
_POINTS = np.linspace(-6, 6, 9)

_WIDER = 1.25  # of quantiles that votes and grades are linked by
_NOTHING = 0.1  # share of "the votes say nothing"
_WEAK = 0.1  # share of the parts without neighbours beside neighbours


class _PriorPart(NamedTuple):
    """Where a part of the prior expects beta and the cuts, in steps from the middle of the scale.

    Standard deviations: of the `shift` and `stretch` of all cuts, the `spread` of each by itself,
    and the `frequency` of the log odds of neighbouring grades whatever the votes are.
    """

    name: str
    share: float
    beta: float
    factor: float  # standard deviation of the logarithm of beta
    cuts: Floats
    shift: float
    stretch: float
    spread: float
    frequency: float


class _LabelledMeans(NamedTuple):
    """Labelled items by their distinct mean votes, in steps from the middle of the scale."""

    means: Floats
    weights: Floats  # of each grade at each mean, (n, K)
    offsets: Floats | None = None  # with which items of equal means differ

    def loss(self, theta: Floats, *, with_hessian: bool = False) -> tuple[float, Floats, Floats]:
        beta, intercepts = float(theta[0]), theta[1:].copy()
        rows = self.means, self.weights
        return _core.grade_loss(*rows, beta, intercepts, with_hessian, self.offsets)

    @property
    def spread(self) -> tuple[float, float]:
        sizes = self.weights.sum(axis=1)
        centre = np.average(self.means, weights=sizes)
        variance = np.average((self.means - centre) ** 2, weights=sizes)
        return float(centre), math.sqrt(variance) if variance > 1e-18 else 1.0

    def minimum(self, start: Floats, least: float = _LEAST_BETA) -> tuple[Floats, bool]:
        """Return beta and intercepts of least loss, and whether they are an optimum."""
        # Beta times the standard deviation of the means is at least `least`.
        centre, deviation = self.spread
        standard = self._replace(means=(self.means - centre) / deviation)
        total = self.weights.sum()

        def loss(theta: Floats) -> tuple[float, Floats, Floats]:
            value, gradient, hessian = standard.loss(theta, with_hessian=True)
            return value / total, gradient / total, hessian / total

        theta = np.array([start[0] * deviation, *(start[1:] - start[0] * centre)])
        bounds = least, max(least, _MOST_BETA)
        theta[0] = np.clip(theta[0], *bounds)
        theta, (_, gradient, _) = minimum(loss, theta, 1e-18, bounds)
        beta = theta[0] / deviation
        theta = np.array([beta, *(theta[1:] + beta * centre)])
        return theta, bool(np.abs(gradient).max() < 1e-6)

    def has_no_end(self, theta: Floats) -> bool:
        further, _ = self.minimum(theta, 2 * theta[0] * self.spread[1])
        return bool(self.loss(further)[0] <= self.loss(theta)[0] + 1e-7 * self.weights.sum())


def fit_cuts(
    counts: ArrayLike,
    labels: ArrayLike,
    scale: Scale,
    label_scale: Scale,
    *,
    prior: GradeModel | Sequence[GradeModel] | Literal["weak"] | None = "weak",
    weights: ArrayLike | None = None,
    provenance: Provenance | None = None,
    known: KnownOfItems | None = None,
) -> Calibration:
    """Fit the model of grades to labelled counts; arguments are those of `btdagg.calibrate`.

    It warns if there are grades that nobody gave, all labels or mean votes are the same, the model
    decides one grade whatever the votes, or without a prior labels do not determine it.

    Notes
    -----
    The log likelihood is concave in beta and ``beta * cuts``. The prior is a mixture weighed by the
    marginal likelihood of the labels: "right" (cuts between the votes that match the grades),
    "shifted" (all cuts move, grades rarer or more common), "linked" (cuts where grades given alike
    divide the mean votes), "nothing" (weight 0.1: the distribution of the labels), and "neighbours"
    (0.9, other criteria, judges or tasks). The model is the one closest to the mixture's mean
    prediction. Beta times the standard deviation of the mean votes is from 1e-6 to 100.

    References
    ----------
    Agresti (1992); Platt (1999), whose scaling this is for two grades; Tierney and Kadane (1986);
    Kolen and Brennan (2014), Test Equating, Scaling, and Linking.
    """
    same_index(counts=counts, labels=labels, weights=weights)
    array = scale.counts(counts)
    places = label_scale.places(labels)
    same_length("labels", len(places), "counts", len(array))
    scale.require_votes(array)
    expect(len(places), "labels", [], "at least one label")
    sizes = effective_weights(weights, len(array))
    has_weight = sizes > 0
    array, places, sizes = array[has_weight], places[has_weight], sizes[has_weight]
    n_labels = len(places)
    x = np.empty((n_labels, 0)) if known is None else known.columns[has_weight]
    step = (scale.points[-1] - scale.points[0]) / (len(label_scale.points) - 1)
    means = _core.grade_means(array, scale.floats, 1)
    distinct, row = np.unique((means - scale.middle) / step, return_inverse=True)
    by_grade = np.zeros((len(distinct), len(label_scale.points)))
    np.add.at(by_grade, (row, places), sizes)
    rows, cuts = _LabelledMeans(distinct, by_grade), _matched_cuts(scale, label_scale, step)
    start, design = np.array([1.0, *cuts]), None
    covariates: tuple[Covariate, ...] = ()
    if known is not None and known.covariates:
        by_grade = np.zeros((n_labels, len(label_scale.points)))
        by_grade[np.arange(n_labels), places] = sizes
        design = Design.of_grades(distinct[row], by_grade, x, cuts)
        fit = design.fit()
        covariates = known.weighted(fit.weights)
        offsets = known._replace(columns=x).offsets(fit.weights)
        rows = _LabelledMeans(distinct[row], by_grade, offsets)
        beta = math.exp(fit.numbers[0])
        start = np.array([beta, *(beta * cuts + fit.numbers[1:])])
    if prior is None or (covariates and n_labels > ENOUGH):
        theta, converged = rows.minimum(start)
        shares: dict[str, float] = {}
    else:
        parts = _parts(prior, scale, label_scale, step, rows)
        theta, converged, shares = _closest_to_mixture(rows, parts)
    beta = float(theta[0])
    cuts = scale.middle + step * theta[1:] / beta
    max_votes = math.ceil(array.sum(axis=1).max() - 1e-6)
    origin = (provenance or Provenance()).of_fit(max_votes, n_labels)
    model = GradeModel(beta / step, tuple(cuts.tolist()), scale, label_scale, origin, covariates)
    log_loss = rows.loss(theta)[0] / by_grade.sum()
    notes = _notes(model, rows, prior is not None, theta)
    notes += () if converged else ("the fit did not converge",)
    notes += () if known is None else known.remarks
    sizes_of_fit = n_labels, max_votes
    fitted = Calibration(model, *sizes_of_fit, converged, notes, log_loss=log_loss, shares=shares)
    return replace(fitted, _design=design)


def _matched_cuts(scale: Scale, label_scale: Scale, step: float) -> Floats:
    n_grades = len(label_scale.points)
    matched = np.linspace(scale.points[0], scale.points[-1], n_grades)
    if len(scale.points) == n_grades:
        matched = scale.floats
    return np.asarray(((matched[:-1] + matched[1:]) / 2 - scale.middle) / step)


def _parts(
    prior: Any, scale: Scale, label_scale: Scale, step: float, rows: _LabelledMeans
) -> list[_PriorPart]:
    cuts = _matched_cuts(scale, label_scale, step)
    centre, size = rows.spread
    normal, n_grades = NormalDist(), len(label_scale.points)
    steps = [normal.inv_cdf(grade / n_grades) for grade in range(1, n_grades)]
    # A little further out than quantiles: means of votes are noisier than what grades are of.
    linked = centre + size * _WIDER * (np.array(steps) - steps[::-1]) / 2  # mirrored to the bit
    parts = [
        _PriorPart("right", 0.6, 2.0, 0.6, cuts, 0.0, 0.0, 0.15, 0.0),
        _PriorPart("shifted", 0.2, 2.0, 0.6, cuts, 0.7, 0.3, 0.25, 1.0),
        _PriorPart("linked", 0.2, 3 / size, 0.6, linked, 0.7 * size, 0.0, 0.3 * size, 0.5),
    ]
    if isinstance(prior, str) and prior == "weak":
        return parts
    expected = '"weak", None, or models of neighbours of the same scale'
    models = as_list([prior] if isinstance(prior, GradeModel) else prior, "prior", expected)
    for place, model in enumerate(models):
        scales = scale, label_scale
        good = isinstance(model, GradeModel) and (model.scale, model.label_scale) == scales
        expect(good, "prior", model, expected, row=place)
    neighbours = [
        _PriorPart(
            "neighbours",
            (1 - _WEAK) / len(models),
            model.beta * step,
            0.4,
            (np.array(model.cuts) - scale.middle) / step,
            0.25,
            0.15,
            0.25,
            0.25,
        )
        for model in models
    ]
    return [*(part._replace(share=_WEAK * part.share) for part in parts), *neighbours]


def _closest_to_mixture(
    rows: _LabelledMeans, parts: list[_PriorPart]
) -> tuple[Floats, bool, dict[str, float]]:
    names, evidence, thetas = [], [], []
    for part in parts:
        for beta, log_density, intercepts in _along_beta(rows, part):
            names.append(part.name)
            evidence.append(log_density + math.log(part.share))
            thetas.append(np.array([beta, *intercepts]))
    # Labels drawn whatever the votes are, from any distribution (a uniform prior) or one of few
    # grades (Perks's). One label more of each grade would draw the median of few labels to the
    # middle of a long scale, so the prediction has at most half of one, as Jeffreys has.
    by_grade = rows.weights.sum(axis=0)
    n_grades = len(by_grade)
    lgamma = np.vectorize(math.lgamma)
    of_nothing = []
    for pseudo in (1.0, 1 / n_grades):
        all_pseudo = pseudo * n_grades
        likelihood = (lgamma(by_grade + pseudo) - math.lgamma(pseudo)).sum()
        likelihood += math.lgamma(all_pseudo) - math.lgamma(all_pseudo + by_grade.sum())
        names.append("nothing")
        evidence.append(likelihood + math.log(_NOTHING / 2 / (1 - _NOTHING)))
        after = by_grade + min(pseudo, 0.5)
        of_nothing.append(after / after.sum())
    posterior = np.exp(np.array(evidence) - max(evidence))
    posterior /= posterior.sum()
    # The scale as a whole counts as one more label, so that few labels determine a model.
    half = (n_grades - 1) / 2
    grid = np.linspace(-half, half, 2 * n_grades - 1)
    means = np.concatenate([rows.means, grid])
    offsets = None if rows.offsets is None else np.concatenate([rows.offsets, 0 * grid])
    sizes = np.concatenate([rows.weights.sum(axis=1), np.full(len(grid), 1 / len(grid))])
    predicted = np.tile(posterior[-2:] @ np.stack(of_nothing), (len(means), 1))
    for share, theta in zip(posterior, thetas, strict=False):
        predicted += share * _core.grade_probabilities(
            means, theta[0], theta[1:].copy(), 1, offsets
        )
    start = np.tensordot(posterior[:-2], np.stack(thetas), 1)
    every = _LabelledMeans(means, predicted * sizes[:, None], offsets)
    theta, converged = every.minimum(start)
    shares = dict.fromkeys(names, 0.0)
    for name, share in zip(names, posterior.tolist(), strict=True):
        shares[name] += share
    return theta, converged, shares


def _along_beta(rows: _LabelledMeans, part: _PriorPart) -> list[tuple[float, float, Floats]]:
    """Return betas with their log share of the marginal likelihood, closer where it is largest."""
    fits: dict[float, tuple[float, float, Floats]] = {}
    points = _POINTS.tolist()
    for _ in range(4):
        for point in points:
            beta = min(part.beta * math.exp(part.factor * point), _MOST_BETA)
            likelihood, intercepts = _laplace(rows, part, beta)
            fits[point] = beta, likelihood - point**2 / 2, intercepts
        ordered = sorted(fits)
        place = ordered.index(max(fits, key=lambda point: fits[point][1]))
        adjacent = ordered[max(place - 1, 0) : place] + ordered[place + 1 : place + 2]
        points = [(ordered[place] + other) / 2 for other in adjacent]
    widths = np.gradient(ordered) / math.sqrt(2 * math.pi)
    return [
        (beta, likelihood + math.log(width), intercepts)
        for width, (beta, likelihood, intercepts) in zip(
            widths, (fits[point] for point in ordered), strict=True
        )
    ]


def _laplace(rows: _LabelledMeans, part: _PriorPart, beta: float) -> tuple[float, Floats]:
    centre = beta * part.cuts
    covariance = part.shift**2 + part.stretch**2 * np.outer(part.cuts, part.cuts)
    alone = beta**2 * part.spread**2 + part.frequency**2
    precision = np.linalg.inv(beta**2 * covariance + alone * np.eye(len(centre)))

    def loss(intercepts: Floats) -> tuple[float, Floats, Floats]:
        of_rows = rows.means, rows.weights, beta, intercepts, True, rows.offsets
        value, gradient, hessian = _core.grade_loss(*of_rows)
        off = intercepts - centre
        slope = precision @ off
        return value + float(off @ slope) / 2, gradient[1:] + slope, hessian[1:, 1:] + precision

    intercepts, (value, _, hessian) = minimum(loss, centre, 1e-6)
    spread = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(hessian)[1]
    return float(spread / 2 - value), intercepts


def _notes(
    model: GradeModel, rows: _LabelledMeans, has_prior: bool, theta: Floats
) -> tuple[str, ...]:
    notes = []
    grades = model.label_scale.points
    given = rows.weights.sum(axis=0) > 0
    hint = "the cuts of grades without a label rest on the prior"
    if not has_prior:
        hint = 'nothing fixes the cuts of grades without a label; pass prior="weak"'
    if given.sum() == 1:
        notes.append(f"every label is {grades[int(given.argmax())]}: {hint}")
    elif not given.all():
        absent = tuple(g for g, is_given in zip(grades, given, strict=True) if not is_given)
        names = listed(absent) if len(absent) > 1 else str(absent[0])
        notes.append(f"no label is {names}: {hint}")
    if np.ptp(rows.means) == 0:
        notes.append("all labelled items have the same mean vote, so beta cannot be identified")
    elif not has_prior and given.sum() > 1:
        size = theta[0] * rows.spread[1]
        if size < 10 * _LEAST_BETA:
            notes.append("higher votes do not go with higher grades: beta is at its lower bound")
        elif size > 1 and rows.has_no_end(theta):
            notes.append(
                "the votes separate the labels perfectly, so beta has no finite estimate; pass "
                'prior="weak"'
            )
    if len(model.reachable) == 1 and not model.covariates:
        notes.append(
            f"the fitted model says {next(iter(model.reachable))} whatever the votes: the judge "
            "is no better than a constant answer"
        )
    return tuple(notes)
