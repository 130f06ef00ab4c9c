"""Grades: which grade a person would give an item whose votes are grades."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Displayed
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import readable
from btdagg._util.validation import as_number, as_weights, same_length
from btdagg.model.calibration_set import CalibrationWarning
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

GRADES_FILE = FileFormat("btdagg.grades", "model of grades")
_SAVED = ("beta", "cuts", "scale")


@readable
@dataclass(frozen=True)
class GradeModel(SavedAsJson, Displayed):
    """Adjacent-categories model of people's grades given a judge's.

    A frozen value, as `DavidsonModel` is. `btdagg.calibrate_grades` fits it.

    Parameters
    ----------
    beta : float
        How much a higher mean vote says, above 0.
    cuts : sequence of float
        For each two neighbouring grades the mean vote at which both are equally likely, in any
        order.
    scale : Scale
        The grades of votes and of labels.
    provenance : Provenance, optional
        What the model was fitted to.

    Notes
    -----
    With m the mean vote of an item, ``log p[k+1] / p[k] = beta * (m - cuts[k])``. The decision is
    the grade of least expected absolute error, which is the median of that distribution: a grade is
    decided from its threshold of the mean vote on. Of equal risks the grade nearer to the middle of
    the scale is decided, and in the middle the lower.

    Counts are (n, J) arrays with a column for each point of the scale of votes. An item without
    votes is an error: it has no mean vote.

    References
    ----------
    Agresti (1992), Analysis of ordinal paired comparison data; Davidson (1970), whose model is this
    one with three grades and symmetric cuts.

    Examples
    --------
    >>> scale = Scale(votes=range(1, 6), grades=range(1, 6))
    >>> model = GradeModel(beta=2, cuts=(1.5, 2.5, 3.5, 4.5), scale=scale)
    >>> model.decide([[0, 0, 1, 2, 0], [5, 0, 0, 0, 0]]).tolist()
    [4, 1]
    """

    FILE: ClassVar[FileFormat] = GRADES_FILE

    beta: float
    cuts: tuple[float, ...]
    scale: Scale
    provenance: Provenance | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        beta = as_number(self.beta, "beta")
        if beta <= 0:
            raise InputError(argument="beta", came=beta, expected="a number above 0")
        if not isinstance(self.scale, Scale):
            raise InputError(argument="scale", came=self.scale, expected="a btdagg.Scale")
        cuts = tuple(as_number(cut, f"cuts[{row}]") for row, cut in enumerate(self.cuts))
        same_length("cuts", len(cuts) + 1, "the grades of scale, less one", len(self.scale.grades))
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "cuts", cuts)
        if not isinstance(self.provenance, Provenance | None):
            object.__setattr__(self, "provenance", Provenance.from_dict(self.provenance))

    @property
    def intercepts(self) -> Floats:
        """``beta * cuts``, in which with beta the likelihood is convex."""
        return self.beta * np.array(self.cuts)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The mean votes from which each grade but the lowest is decided, in ascending order."""
        return tuple(_threshold(self, place) for place in range(1, len(self.scale.grades)))

    def means(self, counts: ArrayLike) -> Floats:
        """Mean vote of each item, (n,)."""
        array = self.scale.counts(counts)
        self.scale.require_votes(array)
        return np.asarray(array @ np.array(self.scale.votes, dtype=np.float64) / array.sum(axis=1))

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of least expected absolute error for each item, (n,): values of the scale."""
        places = np.searchsorted(self.thresholds, self.means(counts), side="right")
        return np.asarray(self.scale.grade_values[places])

    def decide_one(self, *counts: float) -> float:
        """Grade of one item from its counts, one for each point of the scale of votes."""
        return self.decide([counts])[0].item()  # type: ignore[no-any-return]

    def predict_proba(self, counts: ArrayLike) -> Floats:
        """Probabilities of the grades for each item, (n, K)."""
        return _probabilities(self.means(counts), self.beta, self.intercepts)

    def risks(self, counts: ArrayLike) -> Floats:
        """Expected absolute error of answering each grade, (n, K)."""
        grades = np.array(self.scale.grades, dtype=np.float64)
        return self.predict_proba(counts) @ np.abs(grades[:, None] - grades)

    def __str__(self) -> str:
        grades, votes = self.scale.grades, self.scale.votes
        parts = []
        for grade, threshold in zip(grades[1:], self.thresholds, strict=True):
            if votes[0] < threshold <= votes[-1]:
                parts.append(f"from a mean of {threshold:.3g} on, people say {grade}")
        if not parts:
            return f"whatever the votes, people say {self._at(votes[0])}"
        return f"below, people say {self._at(votes[0])}; " + "; ".join(parts)

    def _at(self, mean: float) -> float:
        return self.scale.grades[int(np.searchsorted(self.thresholds, mean, side="right"))]

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (self.beta, self.cuts, self.scale, self.provenance)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, the scale and the provenance, if there is one, as plain values."""
        origin = {} if self.provenance is None else {"provenance": self.provenance.as_dict()}
        numbers = {"beta": self.beta, "cuts": list(self.cuts), "scale": self.scale.as_dict()}
        return {**numbers, **origin}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the model from the fields of `as_dict`."""
        if fields.keys() - {"provenance"} != set(_SAVED):
            raise InputError(argument="fields", came=sorted(fields), expected=f"{sorted(_SAVED)}")
        return cls(**{**fields, "scale": Scale(**fields["scale"])})


def _probabilities(means: Floats, beta: float, intercepts: Floats) -> Floats:
    steps = beta * means[:, None] - intercepts
    logits = np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0)))
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _threshold(model: GradeModel, place: int) -> float:
    """Return the mean vote at which a grade from `place` on is as likely as one below."""
    low, high = min(model.cuts) - 50 / model.beta, max(model.cuts) + 50 / model.beta
    for _ in range(200):
        middle = (low + high) / 2
        p = _probabilities(np.array([middle]), model.beta, model.intercepts)[0]
        low, high = (low, middle) if p[place:].sum() >= 0.5 else (middle, high)
    return high


@readable
@dataclass(frozen=True)
class GradeCalibration(Displayed):
    """A fitted model of grades and how the fit went.

    Attributes
    ----------
    model : GradeModel
    log_loss : float
        Its weighted mean log loss on the calibration set, in natural-log units.
    shares : dict of str to float
        How much of the model comes from each part of the prior, where it has parts; they sum to 1.
    converged : bool
        Whether the fit is an optimum.
    n_labels : int
        Labelled items with a weight above 0.
    warnings : tuple of str
        What was warned of, as text.
    """

    model: GradeModel
    log_loss: float
    shares: dict[str, float]
    converged: bool
    n_labels: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"beta {self.model.beta:.4g}, cuts {', '.join(f'{cut:.4g}' for cut in self.model.cuts)}"
            f" from {self.n_labels} labels; log loss {self.log_loss:.4f}",
            str(self.model),
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n".join(lines)


def calibrate_grades(
    counts: ArrayLike,
    labels: ArrayLike,
    scale: Scale,
    *,
    prior: GradeModel | Sequence[GradeModel] | Literal["votes"] | None = "votes",
    weights: ArrayLike | None = None,
    provenance: Provenance | None = None,
) -> GradeCalibration:
    """Fit the model of grades to labelled counts, with a prior for few labels.

    Parameters
    ----------
    counts : (n, J) array of non-negative numbers
        Votes per item at each point of the scale of votes, which may be fractions.
    labels : (n,) array
        Grades of people.
    scale : Scale
        The grades of votes and of labels.
    prior : "votes", GradeModel or sequence of GradeModel, or None
        What is known before the labels: that votes are often right, or also models of neighbours:
        other criteria, judges or tasks. None is a flat prior.
    weights : (n,) array of non-negative numbers, optional
        Weight of each item, scaled as for `btdagg.calibrate` with a prior.
    provenance : Provenance, optional
        Where the votes are from, for the model to keep.

    Returns
    -------
    GradeCalibration
    """
    from scipy.optimize import minimize

    array = scale.counts(counts)
    places = scale.label_numbers(labels)
    same_length("labels", len(places), "counts", len(array))
    if not len(places):
        raise InputError("labels is empty, expected at least one item", argument="labels")
    scale.require_votes(array)
    w = np.ones(len(places)) if weights is None else as_weights(weights, soft=False)
    same_length("weights", len(w), "counts", len(array))
    points = np.array(scale.votes, dtype=np.float64)
    means = array @ points / array.sum(axis=1)
    n_cuts = len(scale.grades) - 1
    step = (points[-1] - points[0]) / n_cuts
    middles = points[0] + (np.arange(n_cuts) + 0.5) * step
    observed = np.eye(n_cuts + 1)[places] * w[:, None]

    def loss(theta: Floats) -> tuple[float, Floats]:
        value, gradient = _loss(means, observed, theta)
        if prior is not None:
            beta, off = theta[0] * step, theta[1:] - theta[0] * middles
            value += (beta - math.log(beta)) + (off**2).sum() / 2
            gradient[0] += step - 1 / theta[0] - off @ middles
            gradient[1:] += off
        return value, gradient

    start = np.concatenate([[2 / step], 2 / step * middles])
    bounds = [(1e-6 / step, None)] + [(None, None)] * n_cuts
    fit = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    beta, intercepts = float(fit.x[0]), fit.x[1:]
    origin = replace(provenance or Provenance(), n_labels=int((w > 0).sum()))
    model = GradeModel(beta, tuple((intercepts / beta).tolist()), scale, origin)
    notes = () if fit.success else ("the fit did not converge",)
    for text in notes:
        warnings.warn(text, CalibrationWarning, stacklevel=2)
    log_loss = _loss(means, observed, fit.x)[0] / w.sum()
    return GradeCalibration(model, log_loss, {}, bool(fit.success), int((w > 0).sum()), notes)


def _loss(means: Floats, observed: Floats, theta: Floats) -> tuple[float, Floats]:
    """Return the log loss of (n, K) weights of grades and its gradient by beta and intercepts."""
    p = _probabilities(means, theta[0], theta[1:])
    above = np.cumsum((observed.sum(axis=1, keepdims=True) * p - observed)[:, ::-1], axis=1)
    above = above[:, -2::-1]  # excess of grades from k + 1 on
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -np.where(observed > 0, observed * np.log(p), 0.0).sum()
    return float(value), np.concatenate([[(above.sum(axis=1) * means).sum()], -above.sum(axis=0)])
