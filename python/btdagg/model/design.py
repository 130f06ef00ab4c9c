"""Designs: what each parameter adds to the logits of the labels, and the model of its parameters.

A model on another kind of labels is another design: what it has to say is its columns, (n, K, p),
what is believed of its parameters, and which model these make.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._util.validation import distinct_rows, totals
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.model.panel import PanelModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from btdagg.model.covariates import Covariate
    from btdagg.votes.provenance import Provenance
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

_FARTHEST = 30.0  # standard deviation of parameters of which nothing is believed


class Rows(NamedTuple):
    """Distinct rows of a design, (n, K, p), and weights of their labels in m fits, (m, n, K)."""

    values: Floats
    weights: Floats


def usual_number(counts: NDArray[Any], times: Floats | None = None) -> float:
    """Return how many votes most items with votes have, the larger of equals; 1 without any.

    `times` is how often each row occurs, by default once.
    """
    sizes = totals(counts)
    if sizes.dtype.kind == "f":
        whole = np.rint(sizes)
        sizes = np.where(np.abs(sizes - whole) <= 1e-9 * whole, whole, sizes)
    first, place = distinct_rows(sizes)
    number = np.bincount(place, times) * (sizes[first] > 0)
    most = len(first) - 1 - number[::-1].argmax()
    return float(sizes[first[most]]) or 1.0


@dataclass(frozen=True)
class PairsDesign:
    """Logits -u, eta and u: u of margin features and covariates, eta of a 1 and tie features.

    Counts are (n, 3), or (n, judges, 3) of a panel; features are those of each judge's usual number
    of votes. A judge without votes on an item has the mean features of the others.
    """

    usual_votes: tuple[float, ...]
    alpha: float
    kappa: float
    scale: Scale
    label_scale: Scale
    covariates: tuple[Covariate, ...] = ()
    judges: tuple[str, ...] = ()
    heard: tuple[bool, ...] = (True,)

    @classmethod
    def of(
        cls,
        counts: NDArray[Any],
        alpha: float,
        kappa: float,
        scale: Scale,
        label_scale: Scale,
        covariates: tuple[Covariate, ...] = (),
        judges: Sequence[str] = (),
        usual_votes: float | None = None,
    ) -> PairsDesign:
        """Return the design of a judge's counts, or of those of the judges that have any votes.

        The usual number of votes of one judge may be known of more items than these.
        """
        of_judges = counts.swapaxes(0, 1) if judges else counts[None]
        heard = tuple(bool(of_judge.any()) for of_judge in of_judges) if judges else (True,)
        kept = [of_judge for of_judge, on in zip(of_judges, heard, strict=True) if on]
        usual = tuple(usual_votes or usual_number(of_judge) for of_judge in kept)
        about = alpha, kappa, scale, label_scale, covariates, tuple(judges)
        return cls(usual, *about, heard)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        n = range(1, len(self.usual_votes) + 1) if self.judges else ("",)
        known = (covariate.name for covariate in self.covariates)
        return (*(f"beta{k}" for k in n), *known, "eta0", *(f"gamma{k}" for k in n))

    def _features(self, counts: NDArray[Any]) -> tuple[Floats, Floats]:
        heard = np.flatnonzero(self.heard)
        several = counts[:, heard] if self.judges else counts[:, None]
        columns = []
        for usual, of_judge in zip(self.usual_votes, several.swapaxes(0, 1), strict=True):
            plain = _core.Model(0.0, 0.0, 0.0, self.alpha, self.kappa, usual)
            columns.append(plain.features(np.ascontiguousarray(of_judge), 1))
        s, t = np.stack(columns, axis=2).swapaxes(0, 1)
        absent = several.sum(axis=2) == 0
        n_present = np.maximum(len(heard) - absent.sum(axis=1, keepdims=True), 1)
        s += absent * (s.sum(axis=1, keepdims=True) / n_present)  # features of an absent one are 0
        t += absent * (t.sum(axis=1, keepdims=True) / n_present)
        return s, t

    def values(self, counts: NDArray[Any], known: Floats) -> Floats:
        """Return the design of items, (n, 3, p), with their covariates in scale, (n, d)."""
        s, t = self._features(counts)
        return _core.pairs_design(np.hstack([s, known]), np.column_stack([np.ones(len(t)), t]))

    def rows(self, counts: NDArray[Any], known: Floats, weights: Floats) -> Rows:
        """Return distinct rows with the weights of their labels; a mirrored one is the same row."""
        s, t = self._features(counts)
        sides, ties = np.hstack([s, known]) + 0.0, np.column_stack([np.ones(len(t)), t])
        lead = np.zeros(len(sides))
        for column in sides.T:  # the side that the first column that is for one is for
            lead = np.where(lead == 0, column, lead)
        sides *= np.where(lead < 0, -1.0, 1.0)[:, None]
        weights = np.where((lead < 0)[:, None], weights[..., ::-1], weights)
        both = weights[..., :1] + weights[..., 2:]
        even = np.concatenate([0 * both, weights[..., 1:2], both], axis=-1)
        weights = np.where((lead == 0)[:, None], even, weights)
        first, weights = _merged((*(sides + 0.0).T, *t.T), weights)
        values = _core.pairs_design(
            np.ascontiguousarray(sides[first]), np.ascontiguousarray(ties[first])
        )
        return Rows(values, weights)

    def units(self, rows: Rows) -> Floats:
        """Return what a change of one means for each parameter, (p, p), without covariates."""
        return np.eye(rows.values.shape[2] - len(self.covariates))

    def believed(self, rows: Rows) -> _core.Prior:
        """Return the weak prior of judges in general."""
        del rows
        return _core.Prior.of_pairs(list(self.usual_votes))

    @property
    def n_slopes(self) -> int:
        """Parameters that stand before the weights of covariates."""
        return len(self.usual_votes)

    def model(self, theta: Floats, provenance: Provenance | None = None) -> Any:
        """Return the model of some parameters."""
        n, numbers = len(self.usual_votes), iter(theta.tolist())
        beta = [*islice(numbers, n)]
        known = tuple(covariate.weighing(next(numbers)) for covariate in self.covariates)
        eta0, *gamma = numbers
        common: dict[str, Any] = {
            "alpha": self.alpha,
            "kappa": self.kappa,
            "scale": self.scale,
            "label_scale": self.label_scale,
            "provenance": provenance,
            "covariates": known,
        }
        if not self.judges:
            (one_usual,) = self.usual_votes
            return DavidsonModel(beta[0], eta0, gamma[0], usual_votes=one_usual, **common)
        of_all = np.zeros((3, len(self.judges)))
        of_all[2] = 1.0
        of_all[:, list(self.heard)] = beta, gamma, self.usual_votes
        betas, gammas, usual = (tuple(row) for row in of_all.tolist())
        pairs = zip(self.judges, self.heard, strict=True)
        unheard = tuple(name for name, on in pairs if not on)
        return PanelModel(
            self.judges,
            betas,
            eta0,
            gammas,
            unheard=unheard,
            usual_votes=usual,
            **common,
        )


@dataclass(frozen=True)
class GradesDesign:
    """Log odds of neighbouring grades, linear in the mean vote and in covariates, less intercepts.

    Means are in grades of the labels, from the middle of the scale of votes.
    """

    scale: Scale
    label_scale: Scale
    covariates: tuple[Covariate, ...] = ()

    n_slopes = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        known = (covariate.name for covariate in self.covariates)
        return "beta", *known, *(f"cut{k}" for k in range(1, len(self.label_scale.points)))

    @property
    def step(self) -> float:
        """Votes that a grade is worth."""
        low, *_, high = self.scale.points
        return (high - low) / (len(self.label_scale.points) - 1)

    def _columns(self, counts: NDArray[Any], known: Floats) -> Floats:
        means = _core.grade_means(counts, self.scale.floats, 1)
        return np.column_stack([(means - self.scale.middle) / self.step, known])

    def values(self, counts: NDArray[Any], known: Floats) -> Floats:
        """Return the design of items, (n, K, p), with their covariates in scale, (n, d)."""
        columns = self._columns(counts, known)
        return _core.grades_design(columns, len(self.label_scale.points))

    def rows(self, counts: NDArray[Any], known: Floats, weights: Floats) -> Rows:
        """Return distinct rows with the weights of their labels."""
        columns = self._columns(counts, known)
        first, weights = _merged(tuple(columns.T), weights)
        values = _core.grades_design(
            np.ascontiguousarray(columns[first]), len(self.label_scale.points)
        )
        return Rows(values, weights)

    def _spread(self, rows: Rows) -> tuple[float, float]:
        means = rows.values[:, -1, 0] / ((rows.values.shape[1] - 1) / 2)
        sizes = rows.weights.sum(axis=(0, 2))
        centre = float(np.average(means, weights=sizes))
        variance = float(np.average((means - centre) ** 2, weights=sizes))
        return centre, variance**0.5 if variance > 1e-18 else 1.0

    def units(self, rows: Rows) -> Floats:
        """Return what a change of one means for each parameter, (p, p), without covariates."""
        centre, spread = self._spread(rows)
        units = np.eye(len(self.label_scale.points))
        units[0, 0], units[1:, 0] = 1 / spread, centre / spread
        return units

    def believed(self, rows: Rows) -> _core.Prior:
        """Return the weak prior, by how the mean votes of the labelled items are spread."""
        return _core.Prior.of_grades(rows.values.shape[1], *self._spread(rows))

    def model(self, theta: Floats, provenance: Provenance | None = None) -> GradeModel:
        """Return the model of some parameters."""
        d = len(self.covariates)
        beta, delta, intercepts = np.split(theta, [1, 1 + d])
        known = tuple(c.weighing(w) for c, w in zip(self.covariates, delta.tolist(), strict=True))
        cuts = self.scale.middle + self.step * intercepts / beta
        numbers = float(beta[0]) / self.step, tuple(cuts.tolist())
        return GradeModel(*numbers, self.scale, self.label_scale, provenance, known)

    def parameters(self, model: GradeModel) -> Floats:
        """Return the parameters of a model without covariates."""
        beta = model.beta * self.step
        cuts = (np.array(model.cuts) - self.scale.middle) / self.step
        return np.array([beta, *(beta * cuts)])


Design = PairsDesign | GradesDesign


def nothing_believed(design: Design, rows: Rows, weak: _core.Prior) -> _core.Prior:
    """Return a prior so wide that labels alone tell what they can: around the weak one's means."""
    shares, means, _ = weak.parts
    units = design.units(rows)
    wide = _FARTHEST**2 * units @ units.T
    return _core.Prior(shares, means, np.stack([wide] * len(means)), weak.least)


def joined(
    counts: NDArray[Any], known: Floats, weights: Floats
) -> tuple[NDArray[Any], Floats, Floats]:
    """Join items of equal counts, where no covariate tells them apart and the sums are exact."""
    if known.size or not _are_whole(weights):
        return counts, known, weights
    first, sums = _merged(tuple(counts.reshape(len(counts), -1).T), weights[None])
    return counts[first], known[first], sums[0]


def _are_whole(weights: Floats) -> bool:
    return bool((weights == np.rint(weights)).all())


def _merged(columns: tuple[Floats, ...], weights: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return where each distinct row is first, and weights, (m, n, K), summed by distinct rows."""
    first, place = distinct_rows(*columns)
    m, n, k = weights.shape
    if m == 1 and _are_whole(weights):  # whole numbers have the same sum in any order
        of_labels: list[Any] = [np.bincount(place, column, len(first)) for column in weights[0].T]
        return first, np.stack(of_labels, axis=1)[None]
    flat = weights.transpose(1, 0, 2).reshape(n, m * k)
    # In an order of their own, so that no sum depends on that of the items.
    order = np.lexsort((*flat.T[: 3 * k], place))
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.add.reduceat(flat[order], starts, axis=0).reshape(len(first), m, k)
    return first, np.ascontiguousarray(sums.transpose(1, 0, 2))
