"""Fitting the model by least empirical absolute error: the direct way, as an ablation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from btdagg import PAIRS, Bounds, DavidsonModel, Scale
from btdagg._util.errors import expect, forbid
from btdagg._util.readable import Readable
from btdagg.evaluation import discrete_ranked_probability_score
from btdagg.methods import Calibrated, Needs
from btdagg.model import CalibrationWarning
from btdagg.paper.corners import Corners, corners, log_lead
from btdagg.votes import Items, Table, as_items

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

# Distinct items with more corners than anyone wants to wait for.
_MOST_ITEMS = 300
# Where 0 is a bound of gamma, the items that meet there would be no general position.
_INWARD = 1e-6
# What is nearer to a surface counts as on it; parameters that are chosen keep off by as much.
_NEAR = 1e-9
_HALVINGS = 40
_PORTION = 20_000


@dataclass(frozen=True)
class MaeCalibration(Readable):
    """Outcome of `calibrate_by_mae`.

    Attributes
    ----------
    model : DavidsonModel
        The fitted model.
    mae : float
        Its mean absolute error on the calibration set.
    bound : float
        No parameters in the box have a lower one: a model that reaches it is proven to be best.
    drps : float
        Mean discrete ranked probability score of the model on the calibration set.
    n_labels : int
        Labelled items.
    warnings : tuple of str
        Warnings, as text.
    """

    model: DavidsonModel
    mae: float
    bound: float
    drps: float
    n_labels: int
    warnings: tuple[str, ...] = ()


def calibrate_by_mae(
    counts: Any,
    labels: Any = None,
    *,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
) -> MaeCalibration:
    """Fit the Davidson model to labelled vote counts by minimum absolute error of its decisions.

    The paper's first fitting equation, which it advises against.

    Finitely many regions of the parameters have a constant error. All their corners are found; the
    least error next to any is a `bound` that no parameters beat, and a model whose `mae` equals it
    is proven best. They can differ where the best region is narrower than about 1e-9. Of equally
    good parameters those of `btdagg.calibrate` are taken, else those of least DRPS among the points
    found.

    More than 300 distinct pairs of margin and share of ties are refused: the number of corners
    grows with the third power. A warning says if the least error is not proven.

    Parameters
    ----------
    counts : (n, 3) array of non-negative numbers, or Items
        Votes per item in label order: minus, tie, plus. Of tables ``votes.labelled(labels)``.
    labels : (n,) array of -1, 0, 1, or None
        Gold labels of an array; items hold their own.
    alpha, kappa, bounds, scale, label_scale
        As for `btdagg.calibrate`. A bound of 0 on gamma is moved inwards by 1e-6.
    """
    expected = "an array, or the items of tables: votes.labelled(labels)"
    expect(not isinstance(counts, Table), "counts", "a table", expected)
    is_apart = labels is None or not isinstance(counts, Items)
    expect(is_apart, "labels", "labels beside items", "none, since items hold their own")
    fitted = _fitted(counts, labels, alpha, kappa, bounds, scale, label_scale)
    for text in fitted.warnings:
        warnings.warn(text, CalibrationWarning, stacklevel=2)
    return fitted


@dataclass(frozen=True)
class DavidsonMae(Readable):
    """The model that `calibrate_by_mae` fits, as an aggregator for `btdagg.evaluate`.

    The paper's ablation of the loss: pass it beside ``"davidson"``, which fits by DRPS.
    """

    name: str = "Davidson MAE"
    scale: Scale = field(default=PAIRS, kw_only=True)
    label_scale: Scale | None = field(default=None, kw_only=True)
    needs: Needs = field(default=Needs(time=True), init=False)
    calibration: MaeCalibration | None = field(default=None, init=False, hash=False)

    def __post_init__(self) -> None:
        self.scale.require_sides(f"{self.name}, a Davidson model")

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Set `calibration` by counts and (n,) labels, and return itself."""
        scales = self.scale, self.label_scale or self.scale
        object.__setattr__(self, "calibration", _fitted(counts, labels, 1.0, 1.0, None, *scales))
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,); equal risks give a tie."""
        text = f"{self.name} is not fitted: call fit with labelled counts first"
        forbid(self.calibration is None, text)
        assert self.calibration is not None
        return np.asarray(self.calibration.model.decide(as_items(counts).pooled))


def _fitted(
    counts: Any,
    labels: Any,
    alpha: float,
    kappa: float,
    bounds: Bounds | None,
    scale: Scale | None,
    label_scale: Scale | None,
) -> MaeCalibration:
    given = as_items(counts, labels, scale=scale, label_scale=label_scale).labelled()
    given.scale.require_sides("a fit by absolute error")
    rows, gold = given.scale.counts(given.pooled), given.label_scale.sides(given.label)
    bounds = Bounds() if bounds is None else bounds
    paper = Calibrated(prior=None, alpha=alpha, kappa=kappa, bounds=bounds)
    usual: DavidsonModel = paper.fit_quietly(rows, gold).calibration.model
    items = _items_of(rows, gold, alpha, kappa, with_ties=bounds.gamma != (0.0, 0.0))
    forbid(
        len(items.s) > _MOST_ITEMS,
        f"counts have {len(items.s)} distinct pairs of margin and share of ties, expected at "
        f"most {_MOST_ITEMS} to fit by absolute error",
        "counts",
    )

    def drps_of(model: DavidsonModel) -> float:
        scores = discrete_ranked_probability_score(gold, model.predict_proba(rows))
        return math.fsum(scores) / len(gold)

    def scored(model: DavidsonModel) -> tuple[float, ...]:
        """Return a model's errors, then its DRPS up to rounding, then its parameters."""
        # Rounding differs where sides are swapped: it is not to choose between equal scores.
        errors = int(np.abs(gold.astype(np.int64) - model.decide(rows)).sum())
        return errors, round(drps_of(model), 12), model.beta, model.eta0, model.gamma

    usual = replace(usual, usual_votes=None)  # the paper has one number of votes
    model, best = usual, scored(usual)
    lower, upper = bounds.box()
    if lower[2] < upper[2]:
        lower[2] = _INWARD if lower[2] == 0 else lower[2]
        upper[2] = -_INWARD if upper[2] == 0 else upper[2]
    least, theta = _least_errors(items, lower, upper, enough=int(best[0]))
    for point in theta:
        beta, eta0, gamma = point.tolist()
        candidate = replace(usual, beta=beta, eta0=eta0, gamma=gamma)
        if (reached := scored(candidate)) < best:
            best, model = reached, candidate
    errors, n = int(best[0]), len(gold)
    unproven = f"absolute error {errors} on {n} labels, where {least} is not ruled out"
    return MaeCalibration(
        model=replace(model, scale=given.scale, label_scale=given.label_scale),
        mae=errors / n,
        bound=min(errors, least) / n,
        drps=drps_of(model),
        n_labels=n,
        warnings=(unproven,) if errors > least else (),
    )


class _LeaningItems(NamedTuple):
    """Distinct items that lean to a side, mirrored to lean to A, and what deciding them costs."""

    s: Floats
    t: Floats
    cost: NDArray[np.int64]  # errors of calling them A, less those of calling them ties
    base: int  # errors of calling everything a tie


def _items_of(
    counts: NDArray[np.int64], labels: NDArray[np.int8], alpha: float, kappa: float, with_ties: bool
) -> _LeaningItems:
    """Gather labelled counts into distinct items, by margin alone where it is not `with_ties`."""
    # Cost is in errors: a mirrored preference costs one more than a tie, a gold tie that is decided
    # one, and a preference that is met saves one.
    minus, tie, plus = counts.T.astype(np.float64)
    lead = np.log((np.maximum(minus, plus) + alpha) / (np.minimum(minus, plus) + alpha)) / 2
    share = np.log((tie + kappa) / (minus + tie + plus + kappa))
    if not with_ties:
        share = np.full(len(share), -1.0)
    leans = plus != minus
    pairs, place = np.unique(np.stack([lead, share], axis=1)[leans], axis=0, return_inverse=True)
    right = labels[leans] == np.sign(plus - minus)[leans]
    cost = np.bincount(place.ravel(), np.where(right, -1, 1), len(pairs)).astype(np.int64)
    matters = cost != 0
    s, t = pairs[matters].T
    return _LeaningItems(s, t, cost[matters], int(np.abs(labels.astype(np.int64)).sum()))


def _least_errors(
    items: _LeaningItems, lower: Floats, upper: Floats, enough: int
) -> tuple[int, Floats]:
    # Returns the bound of errors and the parameters that reach it, (k, 3): none if `enough` is as
    # low.
    portions = list(_portions(corners(items.s, items.t, lower, upper)))
    promises = [_promised(items, portion) for portion in portions]
    least = min(int(promised.min()) for promised in promises)
    for cost in range(least, enough - items.base):
        portion_points = [
            _interior_points(items, portion.those(promised == cost), cost, lower, upper)
            for portion, promised in zip(portions, promises, strict=True)
        ]
        points = np.concatenate(portion_points)
        if len(points):
            return least + items.base, _with_means(items, points, cost)
    return least + items.base, np.empty((0, 3))


def _portions(groups: Iterable[Corners]) -> Iterator[Corners]:
    for group in groups:
        for start in range(0, len(group.theta), _PORTION):
            yield group.those(slice(start, start + _PORTION))


def _heights(items: _LeaningItems, theta: Floats) -> Floats:
    s, place = np.unique(items.s, return_inverse=True)
    beta, eta0, gamma = theta.T[:, :, None]
    return np.asarray(log_lead(beta * s)[:, place] - gamma * items.t - eta0)


def _promised(items: _LeaningItems, portion: Corners) -> NDArray[np.int64]:
    """Least cost next to each corner, where the items that meet there may fall either way."""
    heights = _heights(items, portion.theta)
    _, eta0, gamma = np.abs(portion.theta.T)[:, :, None]
    free = np.abs(heights) <= _NEAR * (1 + eta0 + gamma * np.abs(items.t))
    for which in portion.items.T:
        meeting = np.flatnonzero(which >= 0)
        free[meeting, which[meeting]] = True
    cost = np.where(free, np.minimum(items.cost, 0), np.where(heights > 0, items.cost, 0))
    return np.asarray(cost.sum(axis=1))


def _interior_points(
    items: _LeaningItems, portion: Corners, cost: int, lower: Floats, upper: Floats
) -> Floats:
    """Step from corners into the region of that cost, as far as a power of two allows."""
    theta, which, at_bound = portion
    if not len(theta):
        return theta
    beta = theta[:, 0]
    wanted = np.zeros((len(theta), 3))
    rows = np.zeros((len(theta), 3, 3))
    # One equation for each item that meets there, and one for each parameter that stays.
    for place in range(3):
        at = np.flatnonzero(which[:, place] >= 0)
        item = which[at, place]
        s = items.s[item]
        rows[at, place] = np.stack(
            [s / np.tanh(beta[at] * s), np.full(len(at), -1.0), -items.t[item]], axis=1
        )
        wanted[at, place] = np.where(items.cost[item] < 0, 1.0, -1.0)
    corner, parameter = np.nonzero(at_bound)
    rows[corner, np.nonzero(which < 0)[1], parameter] = 1.0
    step = (np.linalg.pinv(rows) @ wanted[:, :, None])[:, :, 0]
    reached, size = [], 1.0
    for _ in range(_HALVINGS):
        points = np.clip(theta + size * step, lower, upper)
        good = _keeps(items, points, cost)
        reached.append(points[good])
        theta, step, size = theta[~good], step[~good], size / 2
        if not len(theta):
            break
    return np.concatenate([np.empty((0, 3)), *reached])


def _keeps(items: _LeaningItems, points: Floats, cost: int) -> NDArray[np.bool_]:
    heights = _heights(items, points)
    clear = (np.abs(heights) > _NEAR).all(axis=1)
    return np.asarray(clear & ((heights > 0) @ items.cost == cost))


def _with_means(items: _LeaningItems, points: Floats, cost: int) -> Floats:
    region = np.unique(_heights(items, points) > 0, axis=0, return_inverse=True)[1].ravel()
    sizes = np.bincount(region)
    means = np.stack([np.bincount(region, column) / sizes for column in points.T], axis=1)
    return np.concatenate([points, means[_keeps(items, means, cost)]])
