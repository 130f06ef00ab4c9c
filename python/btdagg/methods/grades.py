"""Methods of grades: calibrated, plain statistics of the votes, isotonic, and a constant."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import same_length
from btdagg.methods.base import Aggregator, Calibrated, Needs, WithoutFit, not_fitted
from btdagg.methods.mean_vote import isotonic_points
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import quiet
from btdagg.model.grade_fit import GradeCalibration
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Statistic = Literal["mode", "median", "rounded mean"]

# Numbers that should be half way between two grades may miss it by a rounding error.
_ROUNDING = 1e-9


def _nearest(label_scale: Scale, values: NDArray[np.float64]) -> NDArray[Any]:
    """Return the nearest grade; half way, the one nearer the middle, in the middle the lower."""
    grades = label_scale.floats
    halves = (grades[1:] + grades[:-1]) / 2
    away = values[:, None] - halves
    is_above = np.where(halves < (grades[0] + grades[-1]) / 2, away >= -_ROUNDING, away > _ROUNDING)
    return np.asarray(label_scale.values[is_above.sum(axis=1)])


def _counted(scale: Scale, counts: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return counts, and the mean vote of each item."""
    array = scale.counts(counts)
    scale.require_votes(array)
    return array, array @ scale.floats / array.sum(axis=1)


def _labelled(
    scale: Scale, label_scale: Scale, counts: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the mean vote and the grade of each item of a calibration set."""
    _, means = _counted(scale, counts)
    grades = label_scale.values[label_scale.places(labels)]
    same_length("labels", len(grades), "counts", len(means))
    if not len(grades):
        raise InputError("labels is empty, expected at least one item", argument="labels")
    return means, grades


@readable
@dataclass(frozen=True)
class CalibratedGrades(Calibrated):
    """The model of `btdagg.calibrate`.

    With the prior ``"neighbours"`` evaluations choose them: the other criteria, tasks or judges,
    without what they evaluate on.
    """

    scale: Scale
    label_scale: Scale
    name: str = ""
    prior: Any = "weak"
    calibration: GradeCalibration | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if not self.name:
            suffix = ", neighbours" if self.needs.neighbours else ""
            object.__setattr__(self, "name", f"calibrated{suffix}")

    @property
    def needs(self) -> Needs:
        """Neighbours, unless it has a prior."""
        return Needs(neighbours=isinstance(self.prior, str) and self.prior == "neighbours")

    def among(self, prior: Any) -> Self:
        """Return the same aggregator with models of neighbours."""
        return replace(self, prior=prior)

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> Any:
        if self.needs.neighbours:
            raise InputError("neighbours needs votes of other criteria, tasks or judges")
        how: Any = {name: getattr(self, name) for name in ("scale", "label_scale", "prior")}
        return quiet(calibrate)(counts, labels, **how)


@dataclass(frozen=True)
class VotedGrade(WithoutFit):
    """Mode, median or rounded mean of an item's votes, which is its `name`.

    Where votes share the mode, it is their mean. Where votes and grades have different scales, the
    ends of one are those of the other, and it is linear between. The grade is the nearest one.
    """

    scale: Scale
    label_scale: Scale
    name: Statistic = "mode"

    def __post_init__(self) -> None:
        if self.name not in get_args(Statistic):
            expected = ", ".join(get_args(Statistic))
            raise InputError(argument="name", came=self.name, expected=f"one of {expected}")

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        array, values = _counted(self.scale, counts)
        votes = self.scale.floats
        if self.name == "mode":
            is_most = array == array.max(axis=1, keepdims=True)
            values = is_most @ votes / is_most.sum(axis=1)
        elif self.name == "median":
            share = np.cumsum(array, axis=1) / array.sum(axis=1, keepdims=True) - 0.5
            ends = (share >= -_ROUNDING).argmax(axis=1), (share > _ROUNDING).argmax(axis=1)
            values = (votes[ends[0]] + votes[ends[1]]) / 2
        low, *_, high = self.label_scale.points
        share = (values - votes[0]) / (votes[-1] - votes[0])
        return _nearest(self.label_scale, low + share * (high - low))


@dataclass(frozen=True, eq=False)
class IsotonicGrade:
    """The grade nearest to an isotonic regression on the mean vote; `fit` sets `points`.

    The regression is straight between the mean votes of the calibration set and flat beyond them.
    """

    scale: Scale
    label_scale: Scale
    name: str = "isotonic"
    points: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) grades and return itself."""
        means, grades = _labelled(self.scale, self.label_scale, counts, labels)
        object.__setattr__(self, "points", isotonic_points(means, grades))
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        if self.points is None:
            raise not_fitted(self.name)
        means = _counted(self.scale, counts)[1]
        return _nearest(self.label_scale, np.interp(means, *self.points))


@dataclass(frozen=True)
class ConstantGrade:
    """The grade of least absolute error on the calibration set; `fit` sets `grade`."""

    scale: Scale
    label_scale: Scale
    name: str = "constant"
    grade: float | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) grades and return itself."""
        _, grades = _labelled(self.scale, self.label_scale, counts, labels)
        median = np.median(grades, keepdims=True)
        object.__setattr__(self, "grade", _nearest(self.label_scale, median)[0])
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        if self.grade is None:
            raise not_fitted(self.name)
        return np.full(len(self.scale.counts(counts)), self.grade)


def methods_of_grades(scale: Scale, label_scale: Scale) -> tuple[Aggregator, ...]:
    """Return the calibrated model and what it is compared with."""
    both = scale, label_scale
    voted = (VotedGrade(*both, name) for name in get_args(Statistic))
    return (CalibratedGrades(*both), *voted, IsotonicGrade(*both), ConstantGrade(*both))
