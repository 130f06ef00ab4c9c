"""Grades: which grade a person would give an item whose votes are grades."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._util.display import Drawn
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.files import MADE_ANEW, FileFormat
from btdagg._util.validation import as_integer, as_number, counts_alone
from btdagg.model.covariates import Covariate, weights_in_words
from btdagg.model.model import Model
from btdagg.model.tables import fitted_to, grades_table
from btdagg.result import ResultTable
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

GRADES_FILE = FileFormat("btdagg.grades", "model of grades")

# Of beta times a cut or a vote, beyond which the log odds of far grades overflow.
_LARGEST = 1e300


class _OfMeans(NamedTuple):
    """What the core makes of counts by a model's numbers."""

    model: GradeModel

    def means(self, counts: Any, n_threads: int) -> Floats:
        return _core.grade_means(counts, self.model.scale.floats, n_threads)

    def decide(self, counts: Any, n_threads: int, offsets: Floats | None = None) -> NDArray[Any]:
        shifts = None if offsets is None else offsets / self.model.beta
        how = np.array(self.model.thresholds), n_threads, self.model.label_scale.labels, shifts
        return _core.grade_decisions(counts, self.model.scale.floats, *how)

    def predict_proba(self, counts: Any, n_threads: int, offsets: Floats | None = None) -> Floats:
        numbers = self.model.beta, self.model.intercepts
        means = self.means(counts, n_threads)
        return _core.grade_probabilities(means, *numbers, n_threads, offsets)

    def risks(self, counts: Any, n_threads: int, offsets: Floats | None = None) -> Floats:
        grades = self.model.label_scale.floats
        distances = np.abs(grades[:, None] - grades)
        return np.asarray(self.predict_proba(counts, n_threads, offsets) @ distances)


@dataclass(frozen=True)
class GradeModel(Model, Drawn):
    """Adjacent-categories model of people's grades given a judge's.

    A frozen value, as `DavidsonModel` is. `btdagg.calibrate` fits it.

    Parameters
    ----------
    beta : float
        How much a higher mean vote says, above 0.
    cuts : sequence of float
        The mean vote at which each two neighbouring grades are equally likely, in any order.
    scale, label_scale : Scale
        Scale of the votes, and of the labels, the same unless given.
    provenance : Provenance, optional
        Origin of the fitted data. It affects neither decisions nor equality.
    covariates : sequence of Covariate
        Covariates of items: each adds its weight times its value to ``beta * m``. `decide`,
        `predict_proba` and `risks` then need a column of each.

    Notes
    -----
    With m the mean vote of an item, ``log(p[k+1] / p[k]) = beta * (m - cuts[k])``. The decision is
    the median, the grade of least expected absolute error: each grade is decided from a threshold
    of the mean vote on. Of equal risks the grade nearer to the middle is decided, of the two middle
    ones the lower; but for that case, reversing both scales mirrors every result.

    Counts are (n, J) arrays with a column for each point of the scale of votes, or data frames with
    columns of these names. An item without votes is an error: it has no mean vote.

    References
    ----------
    Agresti (1992), Analysis of ordinal paired comparison data; Davidson (1970), whose model is this
    one with three grades and symmetric cuts.

    Examples
    --------
    >>> model = GradeModel(beta=2, cuts=(1.5, 2.5, 3.5, 4.5), scale=Scale(range(1, 6)))
    >>> model.decide([[0, 0, 1, 2, 0], [5, 0, 0, 0, 0]]).tolist()
    [4, 1]
    >>> print(model)
    People say 1; from a mean of 1.44 on 2; from 2.5 on 3; from 3.5 on 4; from 4.56 on 5.
    """

    FILE: ClassVar[FileFormat] = GRADES_FILE
    SAVED = ("beta", "cuts", "scale", "label_scale")
    COLUMNS = ("mean",)

    beta: float
    cuts: tuple[float, ...]
    scale: Scale
    label_scale: Scale = None  # type: ignore[assignment]  # that of the votes
    provenance: Provenance | None = field(default=None, compare=False, repr=False)
    covariates: tuple[Covariate, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        beta = as_number(self.beta, "beta", above=0)
        scale, label_scale = self.scale, self.label_scale
        expected = "scales of grades; for pairs use DavidsonModel"
        expect(not scale.mirrored, "scale", str(scale), expected)
        n_cuts = len(label_scale.points) - 1
        try:
            values = list(self.cuts)
        except TypeError:
            expected = f"{n_cuts} numbers"
            raise InputError(argument="cuts", got=self.cuts, expected=expected) from None
        cuts = tuple(as_number(cut, "cuts", row=row) for row, cut in enumerate(values))
        expect(len(cuts) == n_cuts, "cuts", cuts, f"{n_cuts} numbers")
        largest = max(map(abs, (*cuts, *scale.points)))
        expected = f"at most {_LARGEST / largest:g}, for cuts and votes of up to {largest:g}"
        expect(beta * largest <= _LARGEST, "beta", beta, expected)
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "cuts", cuts)

    def sentence(self) -> str:
        """Return the fitted numbers, and what they say."""
        numbers = f"beta {self.beta:.4g}, cuts {', '.join(f'{c:.4g}' for c in self.cuts)}"
        numbers += weights_in_words(self.covariates)
        return f"{numbers} (p{str(self).removesuffix('.')[1:]})"

    def parameters(self, note: str = "", _: Any = None) -> ResultTable:
        """Return the mean vote from which on each grade is decided, as a table."""
        return grades_table({"calibrated": self}, note=fitted_to(self, note))

    @property
    def intercepts(self) -> Floats:
        """``beta * cuts``; with beta these are what the likelihood is concave in."""
        return self.beta * np.array(self.cuts)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """The mean votes from which each grade but the lowest is decided, in ascending order."""
        return tuple(_core.grade_thresholds(self.beta, self.intercepts).tolist())

    @cached_property
    def least_means(self) -> tuple[float, ...]:
        """The least mean vote that each grade but the lowest is decided at, as the core has it.

        Within rounding, a mean is on a threshold, where the grade nearer to the middle is decided.
        """
        size = max(map(abs, self.scale.points))
        least = []
        for place, threshold in enumerate(self.thresholds, 1):
            rounding = 8 * math.ulp(1.0) * max(size, min(abs(threshold), _LARGEST))
            if 2 * place <= len(self.thresholds):
                least.append(threshold - rounding)
            else:
                least.append(math.nextafter(threshold + rounding, math.inf))
        return tuple(least)

    def means(self, counts: ArrayLike, *, n_threads: int = 1) -> Floats:
        """Mean vote of each item, (n,)."""
        return self._kernel.means(self._read(counts), as_integer(n_threads, "n_threads", 1))

    def _read(self, counts: ArrayLike) -> NDArray[Any]:
        return self.scale.read_counts(counts_alone(counts))

    @property
    def _kernel(self) -> _OfMeans:
        return _OfMeans(self)

    @property
    def reachable(self) -> dict[float, float]:
        """The grades that the model can decide, each with the mean vote at which it begins.

        The first begins at the lowest vote. At that mean itself, a grade above the middle is not
        decided yet.
        """
        low, high = self.scale.points[0], self.scale.points[-1]
        starts = (-math.inf, *self.thresholds)
        least = (-math.inf, *self.least_means, math.inf)
        spans = zip(self.label_scale.points, starts, pairwise(least), strict=True)
        return {
            grade: max(low, start)
            for grade, start, (first, end) in spans
            if max(low, first) < end and first <= high
        }

    def __str__(self) -> str:
        known = " for an item with average covariates" if self.covariates else ""
        (lowest, _), *higher = self.reachable.items()
        if not higher:
            return f"People say {lowest}, whatever the votes{known}."
        votes = self.scale.points
        digits = 3 + int(math.log10(max(map(abs, votes)) / (votes[-1] - votes[0]) + 1))
        # Of grades that begin at the same mean, as it is written, only the last has a place.
        starts = {f"{start:.{digits}g}": grade for grade, start in higher}
        first, *later = (f"{start} on {grade}" for start, grade in starts.items())
        texts = [f"People say {lowest}; from a mean of {first}", *later]
        return "; from ".join(texts) + known + "."

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers, the scale and the provenance, if there is one, as plain values."""
        return {**super().as_dict(), "cuts": list(self.cuts)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> GradeModel:
        """Return the model from the fields of `as_dict`."""
        forbid("grades" in fields.get("scale", ()), f"scale has votes and grades; {MADE_ANEW}")
        return super().from_dict(fields)
