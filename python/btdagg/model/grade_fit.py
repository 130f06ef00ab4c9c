"""Fitting the model of grades: a convex loss, and a prior of what votes may be worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg import _core, remarks
from btdagg._util.errors import expect
from btdagg._util.validation import as_list, effective_weights, same_index, same_length
from btdagg.model.calibration_set import ENOUGH, Calibration
from btdagg.model.covariates import Covariate, Design, KnownOfItems
from btdagg.model.grades import GradeModel
from btdagg.model.newton import minima
from btdagg.remarks import Remark
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import Scale, listed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Beta stays between these, for means whose standard deviation is 1.
_LEAST_BETA, _MOST_BETA = 1e-6, 100.0

# Where beta of the prior is looked at first, in standard deviations of its logarithm.
_POINTS = np.linspace(-6, 6, 9)

# Second derivatives that are held at once, of several fits.
_HELD = 1 << 18

_WIDER = 1.25  # of quantiles that votes and grades are linked by
_NOTHING = 0.1  # share of "the votes say nothing"
_WEAK = 0.1  # share of the parts without neighbours beside neighbours


class _PriorPart(NamedTuple):
    # Where a part of the prior expects beta and the cuts, in steps from the middle of the scale.
    # Standard deviations: of the `shift` and `stretch` of all cuts, the `spread` of each by itself,
    # and the `frequency` of the log odds of neighbouring grades whatever the votes are.

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

    def losses(self, thetas: Floats, *, with_hessian: bool = True) -> tuple[Floats, Floats, Floats]:
        return _core.grade_loss(self.means, self.weights, thetas, with_hessian, self.offsets)

    def loss(self, theta: Floats) -> float:
        return float(self.losses(theta[None], with_hessian=False)[0][0])

    @classmethod
    def of(
        cls, means: Floats, places: NDArray[np.intp], sizes: Floats, n_grades: int
    ) -> _LabelledMeans:
        distinct, row = np.unique(means, return_inverse=True)
        by_grade = np.zeros((len(distinct), n_grades))
        np.add.at(by_grade, (row, places), sizes)
        return cls(distinct, by_grade)

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

        def losses(thetas: Floats, _: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
            value, gradient, hessian = standard.losses(thetas)
            return value / total, gradient / total, hessian / total

        theta = np.array([start[0] * deviation, *(start[1:] - start[0] * centre)])
        bounds = least, max(least, _MOST_BETA)
        theta[0] = np.clip(theta[0], *bounds)
        (theta,), (_, gradient, _) = minima(losses, theta[None], 1e-18, bounds)
        beta = theta[0] / deviation
        theta = np.array([beta, *(theta[1:] + beta * centre)])
        return theta, bool(np.abs(gradient).max() < 1e-6)

    def has_no_end(self, theta: Floats) -> bool:
        further, _ = self.minimum(theta, 2 * theta[0] * self.spread[1])
        return self.loss(further) <= self.loss(theta) + 1e-7 * float(self.weights.sum())


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
    groups: NDArray[np.int64] | None = None,
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
    n_grades, step = len(label_scale.points), _step(scale, label_scale)
    means = _mean_votes(array, scale, step)
    rows = _LabelledMeans.of(means, places, sizes, n_grades)
    cuts = _matched_cuts(scale, label_scale, step)
    start, design = np.array([1.0, *cuts]), None
    covariates: tuple[Covariate, ...] = ()
    if known is not None and known.covariates:
        by_grade = np.zeros((n_labels, n_grades))
        by_grade[np.arange(n_labels), places] = sizes
        codes = None if groups is None else groups[has_weight]
        design = Design.of_grades(means, by_grade, x, cuts, codes)
        fit = design.fit()
        covariates = known.weighted(fit.weights)
        offsets = known._replace(columns=x).offsets(fit.weights)
        rows = _LabelledMeans(means, by_grade, offsets)
        beta = math.exp(fit.numbers[0])
        start = np.array([beta, *(beta * cuts + fit.numbers[1:])])
    if prior is None or (covariates and n_labels > ENOUGH):
        theta, converged = rows.minimum(start)
        shares: dict[str, float] = {}
    else:
        parts = _parts(prior, scale, label_scale, step, rows)
        ((theta, converged, shares),) = _closest_to_mixtures([(rows, parts)])
    max_votes = math.ceil(array.sum(axis=1).max() - 1e-6)
    origin = (provenance or Provenance()).of_fit(max_votes, n_labels)
    numbers = _numbers(theta, scale, step)
    model = GradeModel(*numbers, scale, label_scale, origin, covariates)
    log_loss = rows.loss(theta) / rows.weights.sum()
    notes = _notes(model, rows, prior is not None, theta)
    notes += () if converged else (remarks.no_convergence(),)
    notes += () if known is None else known.remarks
    sizes_of_fit = n_labels, max_votes
    fitted = Calibration(model, *sizes_of_fit, converged, notes, log_loss=log_loss, shares=shares)
    return replace(fitted, _design=design)


def refitted_cuts(
    counts: NDArray[Any],
    places: NDArray[np.intp],
    weights: Floats,
    scale: Scale,
    label_scale: Scale,
    prior: Any,
) -> list[GradeModel]:
    """Fit the model by a prior with each row of weights, (m, n), as `fit_cuts` does one by one."""
    # A weight is how often an item counts, and not only how much beside others.
    n_grades, step = len(label_scale.points), _step(scale, label_scale)
    means = _mean_votes(counts, scale, step)
    fits = []
    for of_fit in weights:
        some = of_fit > 0
        rows = _LabelledMeans.of(means[some], places[some], of_fit[some], n_grades)
        fits.append((rows, _parts(prior, scale, label_scale, step, rows)))
    thetas = [theta for theta, _, _ in _closest_to_mixtures(fits)]
    return [GradeModel(*_numbers(theta, scale, step), scale, label_scale) for theta in thetas]


def _step(scale: Scale, label_scale: Scale) -> float:
    return (scale.points[-1] - scale.points[0]) / (len(label_scale.points) - 1)


def _mean_votes(counts: NDArray[Any], scale: Scale, step: float) -> Floats:
    return (_core.grade_means(counts, scale.floats, 1) - scale.middle) / step


def _numbers(theta: Floats, scale: Scale, step: float) -> tuple[float, tuple[float, ...]]:
    beta = float(theta[0])
    return beta / step, tuple((scale.middle + step * theta[1:] / beta).tolist())


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


def _closest_to_mixtures(
    fits: Sequence[tuple[_LabelledMeans, list[_PriorPart]]],
) -> list[tuple[Floats, bool, dict[str, float]]]:
    # Several at once: with few labels Newton's steps cost more than the losses that they ask for.
    n_grades, n_parts = fits[0][0].weights.shape[1], len(fits[0][1])
    step = max(1, _HELD // (n_parts * len(_POINTS) * n_grades**2))
    found = []
    for start in range(0, len(fits), step):
        some = fits[start : start + step]
        along = iter(_along_beta([(rows, part) for rows, parts in some for part in parts]))
        found += [_closest_to(rows, parts, [next(along) for _ in parts]) for rows, parts in some]
    return found


def _closest_to(
    rows: _LabelledMeans, parts: list[_PriorPart], along: list[list[tuple[float, Floats]]]
) -> tuple[Floats, bool, dict[str, float]]:
    names, evidence, thetas = [], [], []
    for part, fits in zip(parts, along, strict=True):
        for log_density, theta in fits:
            names.append(part.name)
            evidence.append(log_density + math.log(part.share))
            thetas.append(theta)
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


def _along_beta(
    jobs: list[tuple[_LabelledMeans, _PriorPart]],
) -> list[list[tuple[float, Floats]]]:
    # Closer betas where their share of a part's evidence is largest.
    fits: list[dict[float, tuple[float, Floats]]] = [{} for _ in jobs]
    points = [_POINTS.tolist() for _ in jobs]
    for _ in range(4):
        asked = [(place, point) for place, several in enumerate(points) for point in several]
        at = [jobs[place] for place, _ in asked]
        betas = [
            min(part.beta * math.exp(part.factor * point), _MOST_BETA)
            for (_, part), (_, point) in zip(at, asked, strict=True)
        ]
        found = zip(asked, *_laplace(at, np.array(betas)), strict=True)
        for (place, point), likelihood, theta in found:
            fits[place][point] = float(likelihood) - point**2 / 2, theta
        points = [_between(of_part) for of_part in fits]
    return [_with_widths(of_part) for of_part in fits]


def _between(fits: dict[float, tuple[float, Floats]]) -> list[float]:
    ordered = sorted(fits)
    place = ordered.index(max(fits, key=lambda point: fits[point][0]))
    adjacent = ordered[max(place - 1, 0) : place] + ordered[place + 1 : place + 2]
    return [(ordered[place] + other) / 2 for other in adjacent]


def _with_widths(fits: dict[float, tuple[float, Floats]]) -> list[tuple[float, Floats]]:
    ordered = sorted(fits)
    widths = np.gradient(ordered) / math.sqrt(2 * math.pi)
    both = zip(widths, (fits[point] for point in ordered), strict=True)
    return [(likelihood + math.log(width), theta) for width, (likelihood, theta) in both]


def _laplace(jobs: list[tuple[_LabelledMeans, _PriorPart]], betas: Floats) -> tuple[Floats, Floats]:
    # Of a part at each beta: log likelihoods of the labels, and the numbers of the fits.
    cuts = np.stack([part.cuts for _, part in jobs])
    columns = [(part.shift, part.stretch, part.spread, part.frequency) for _, part in jobs]
    shift, stretch, spread, frequency = (np.array(column) for column in zip(*columns, strict=True))
    centres, squares = betas[:, None] * cuts, betas**2
    together = shift[:, None, None] ** 2 + stretch[:, None, None] ** 2 * (
        cuts[:, :, None] * cuts[:, None]
    )
    alone = squares * spread**2 + frequency**2
    identity = np.eye(cuts.shape[1])
    precisions = np.linalg.inv(squares[:, None, None] * together + alone[:, None, None] * identity)
    of_rows = np.array([id(rows) for rows, _ in jobs])

    def losses(intercepts: Floats, which: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        thetas = np.concatenate([betas[which, None], intercepts], axis=1)
        ends = [*np.flatnonzero(np.diff(of_rows[which])) + 1, len(which)]
        found = [
            jobs[which[start]][0].losses(thetas[start:end]) for start, end in pairwise([0, *ends])
        ]
        value, gradient, hessian = (np.concatenate(part) for part in zip(*found, strict=True))
        off, precision = intercepts - centres[which], precisions[which]
        slope = (precision @ off[..., None])[..., 0]
        value += (off * slope).sum(axis=1) / 2
        return value, gradient[:, 1:] + slope, hessian[:, 1:, 1:] + precision

    intercepts, (value, _, hessian) = minima(losses, centres, 1e-6)
    volume = np.linalg.slogdet(precisions)[1] - np.linalg.slogdet(hessian)[1]
    return volume / 2 - value, np.concatenate([betas[:, None], intercepts], axis=1)


def _notes(
    model: GradeModel, rows: _LabelledMeans, has_prior: bool, theta: Floats
) -> tuple[Remark, ...]:
    notes = []
    grades = model.label_scale.points
    given = rows.weights.sum(axis=0) > 0
    if given.sum() == 1:
        notes.append(remarks.unused_grades(str(grades[int(given.argmax())]), True, has_prior))
    elif not given.all():
        absent = tuple(g for g, is_given in zip(grades, given, strict=True) if not is_given)
        names = listed(absent) if len(absent) > 1 else str(absent[0])
        notes.append(remarks.unused_grades(names, False, has_prior))
    if np.ptp(rows.means) == 0:
        notes.append(remarks.one_mean_vote())
    elif not has_prior and given.sum() > 1:
        size = theta[0] * rows.spread[1]
        if size < 10 * _LEAST_BETA:
            notes.append(remarks.falling_grades())
        elif size > 1 and rows.has_no_end(theta):
            notes.append(remarks.separated_grades())
    if len(model.reachable) == 1 and not model.covariates:
        notes.append(remarks.always_one_grade(next(iter(model.reachable))))
    return tuple(notes)
