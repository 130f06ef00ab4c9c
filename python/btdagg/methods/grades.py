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
from btdagg.model.calibration_set import quiet
from btdagg.model.grade_fit import GradeCalibration, calibrate_grades
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Statistic = Literal["mode", "median", "rounded mean"]

# Numbers that should be half way between two grades may miss it by a rounding error.
_ROUNDING = 1e-9


def _nearest(scale: Scale, values: NDArray[np.float64]) -> NDArray[Any]:
    """Return the nearest grade; half way, the one nearer the middle, in the middle the lower."""
    grades = np.array(scale.grades, dtype=np.float64)
    halves = (grades[1:] + grades[:-1]) / 2
    away = values[:, None] - halves
    is_above = np.where(halves < (grades[0] + grades[-1]) / 2, away >= -_ROUNDING, away > _ROUNDING)
    return np.asarray(scale.grade_values[is_above.sum(axis=1)])


def _counted(scale: Scale, counts: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return counts, and the mean vote of each item."""
    array = scale.counts(counts)
    scale.require_votes(array)
    return array, array @ scale.vote_values / array.sum(axis=1)


def _labelled(
    scale: Scale, counts: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the mean vote and the grade of each item of a calibration set."""
    _, means = _counted(scale, counts)
    grades = scale.grade_values[scale.label_numbers(labels)]
    same_length("labels", len(grades), "counts", len(means))
    if not len(grades):
        raise InputError("labels is empty, expected at least one item", argument="labels")
    return means, grades


@readable
@dataclass(frozen=True)
class CalibratedGrades(Calibrated):
    """The model of `btdagg.calibrate_grades`.

    With the prior ``"neighbours"`` evaluations choose them: the other criteria, tasks or judges,
    without what they evaluate on.
    """

    scale: Scale
    name: str = ""
    prior: Any = "votes"
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

    def _calibrate(self, counts: ArrayLike, labels: ArrayLike) -> GradeCalibration:
        if self.needs.neighbours:
            raise InputError("neighbours needs votes of other criteria, tasks or judges")
        return quiet(calibrate_grades)(counts, labels, self.scale, prior=self.prior)


@dataclass(frozen=True)
class VotedGrade(WithoutFit):
    """Mode, median or rounded mean of an item's votes, which is its `name`.

    Where votes share the mode, it is their mean. Where votes and grades have different scales, the
    ends of one are those of the other, and it is linear between. The grade is the nearest one.
    """

    scale: Scale
    name: Statistic = "mode"

    def __post_init__(self) -> None:
        if self.name not in get_args(Statistic):
            expected = ", ".join(get_args(Statistic))
            raise InputError(argument="name", came=self.name, expected=f"one of {expected}")

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        array, values = _counted(self.scale, counts)
        votes = self.scale.vote_values
        if self.name == "mode":
            is_most = array == array.max(axis=1, keepdims=True)
            values = is_most @ votes / is_most.sum(axis=1)
        elif self.name == "median":
            share = np.cumsum(array, axis=1) / array.sum(axis=1, keepdims=True) - 0.5
            ends = (share >= -_ROUNDING).argmax(axis=1), (share > _ROUNDING).argmax(axis=1)
            values = (votes[ends[0]] + votes[ends[1]]) / 2
        low, *_, high = self.scale.grades
        share = (values - votes[0]) / (votes[-1] - votes[0])
        return _nearest(self.scale, low + share * (high - low))


@dataclass(frozen=True, eq=False)
class IsotonicGrade:
    """The grade nearest to an isotonic regression on the mean vote; `fit` sets `points`.

    The regression is straight between the mean votes of the calibration set and flat beyond them.
    """

    scale: Scale
    name: str = "isotonic"
    points: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) grades and return itself."""
        means, grades = _labelled(self.scale, counts, labels)
        object.__setattr__(self, "points", isotonic_points(means, grades))
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        if self.points is None:
            raise not_fitted(self.name)
        return _nearest(self.scale, np.interp(_counted(self.scale, counts)[1], *self.points))


@dataclass(frozen=True)
class ConstantGrade:
    """The grade of least absolute error on the calibration set; `fit` sets `grade`."""

    scale: Scale
    name: str = "constant"
    grade: float | None = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, J) counts and (n,) grades and return itself."""
        _, grades = _labelled(self.scale, counts, labels)
        object.__setattr__(self, "grade", _nearest(self.scale, np.median(grades, keepdims=True))[0])
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Grade of each item, (n,)."""
        if self.grade is None:
            raise not_fitted(self.name)
        return np.full(len(self.scale.counts(counts)), self.grade)


def methods_of_grades(scale: Scale) -> tuple[Aggregator, ...]:
    """Return the calibrated model and what it is compared with."""
    voted = (VotedGrade(scale, name) for name in get_args(Statistic))
    return (CalibratedGrades(scale), *voted, IsotonicGrade(scale), ConstantGrade(scale))
