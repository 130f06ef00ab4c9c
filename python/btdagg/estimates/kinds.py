"""What labels are, of pairs or grades: the only place where estimates know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_checked_counts, as_outcomes
from btdagg.estimates.mean import QUANTITIES, Quantities
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import quiet
from btdagg.model.grade_fit import calibrate_grades
from btdagg.model.panel import as_panel_counts, calibrate_panel
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Predictor(Protocol):
    """What has probabilities of labels for counts: a model, a panel, or a user's own."""

    def predict_proba(self, counts: Any) -> NDArray[np.float64]:
        """Return probabilities of B, tie and A, (n, 3), or of the grades, (n, K)."""


class Kind(NamedTuple):
    """A kind of labels.

    Attributes
    ----------
    labels : tuple of str
        Their names, in label order.
    quantities : mapping of str to tuple
        What is estimated.
    main : str
        The quantity that is meant where none is named.
    features : mapping of str to tuple
        Two means of an item's votes, of a value for each vote: by them labelled items are compared
        with the others.
    counts, outcomes : callable
        Check votes, and labels, which become shares of an item's raters: (N, labels).
    calibrated : callable
        Calibrates on counts, places of labels in label order, weights and groups, with a prior, of
        which "weak" is the usual one.
    scale : Scale or None
        Of grades.
    """

    labels: tuple[str, ...]
    quantities: Quantities
    main: str
    features: Mapping[str, tuple[float, ...]]
    counts: Callable[[ArrayLike], NDArray[Any]]
    outcomes: Callable[[ArrayLike], NDArray[np.float64]]
    calibrated: Callable[..., Predictor]
    scale: Scale | None = None


def _calibrated_pairs(
    counts: NDArray[Any],
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    groups: NDArray[np.int64],
    prior: Any,
) -> Predictor:
    labels = places.astype(np.int8) - 1
    if counts.ndim == 3:
        return quiet(calibrate_panel)(counts, labels, weights=weights, groups=groups).model
    # Whatever a fit is worth, the labels correct it.
    return quiet(calibrate)(counts, labels, weights=weights, prior=prior).model


def _counts_of_pairs(counts: ArrayLike) -> NDArray[Any]:
    """Return counts of a judge, (n, 3), or of a panel, (n, judges, 3)."""
    return as_panel_counts(counts) if np.ndim(counts) == 3 else as_checked_counts(counts)


PAIRS = Kind(
    ("B", "tie", "A"),
    QUANTITIES,
    "net win rate",
    {
        "mean margin of votes": QUANTITIES["net win rate"],
        "share of tie votes": QUANTITIES["tie"],
    },
    _counts_of_pairs,
    as_outcomes,
    _calibrated_pairs,
)


def kind_of(scale: Scale | None) -> Kind:
    """Return what labels are: grades if there is a scale."""
    if scale is None:
        return PAIRS
    if not isinstance(scale, Scale):
        raise InputError(argument="scale", came=scale, expected="a btdagg.Scale or None")
    names = tuple(map(str, scale.grades))
    quantities = {"mean grade": tuple(map(float, scale.grades))}
    for least, name in zip(scale.grades[1:], names[1:], strict=True):
        quantity = "pass rate" if len(names) == 2 else f"share >= {name}"
        quantities[quantity] = tuple(float(grade >= least) for grade in scale.grades)
    top = scale.votes[-1]
    features = {
        "mean vote": tuple(map(float, scale.votes)),
        f"share of votes of {top}": tuple(float(vote == top) for vote in scale.votes),
    }

    def counts(counts: ArrayLike) -> NDArray[Any]:
        array = scale.counts(counts)
        scale.require_votes(array)
        return array

    def outcomes(labels: ArrayLike) -> NDArray[np.float64]:
        return as_outcomes(labels, names, lambda own: scale.label_numbers(own, partial=True))

    def calibrated(
        counts: NDArray[Any],
        places: NDArray[np.int64],
        weights: NDArray[np.float64],
        _: NDArray[np.int64],
        prior: Any,
    ) -> Predictor:
        prior, labels = "votes" if prior == "weak" else prior, scale.grade_values[places]
        fit = quiet(calibrate_grades)
        return fit(counts, labels, scale, prior=prior, weights=weights).model

    return Kind(names, quantities, "mean grade", features, counts, outcomes, calibrated, scale)
