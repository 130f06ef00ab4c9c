"""What labels are, of pairs or grades: the only place where estimates know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from btdagg.estimates.mean import QUANTITIES, Quantities
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import quiet
from btdagg.model.panel import as_panel_counts, calibrate_panel
from btdagg.votes.scale import PAIRS as OF_PAIRS
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
    scale, label_scale : Scale
        Of the votes and of the labels.
    """

    labels: tuple[str, ...]
    quantities: Quantities
    main: str
    features: Mapping[str, tuple[float, ...]]
    counts: Callable[[ArrayLike], NDArray[Any]]
    outcomes: Callable[[ArrayLike], NDArray[np.float64]]
    calibrated: Callable[..., Predictor]
    scale: Scale
    label_scale: Scale


def kind_of(scale: Scale, label_scale: Scale) -> Kind:
    """Return what votes and labels of these scales are: of two sides, or grades."""
    grades, names = label_scale.points, label_scale.names
    if scale.mirrored:
        main, (minus, tie, plus) = "net win rate", names
        values = QUANTITIES.values()
        quantities = dict(zip((plus, tie, minus, "net win rate", "win rate"), values, strict=True))
        features = {
            "mean margin of votes": QUANTITIES["net win rate"],
            "share of tie votes": QUANTITIES["tie"],
        }
    else:
        main, quantities = "mean grade", {"mean grade": tuple(map(float, grades))}
        for least in grades[1:]:
            quantity = "pass rate" if len(grades) == 2 else f"share >= {least}"
            quantities[quantity] = tuple(float(grade >= least) for grade in grades)
        top = scale.points[-1]
        features = {
            "mean vote": tuple(map(float, scale.points)),
            f"share of votes of {top}": tuple(float(vote == top) for vote in scale.points),
        }

    def counts(counts: ArrayLike) -> NDArray[Any]:
        if scale.mirrored and np.ndim(counts) == 3:
            return as_panel_counts(counts)
        array = scale.counts(counts)
        if not scale.mirrored:  # whose median of no votes is a tie
            scale.require_votes(array)
        return array

    def calibrated(
        counts: NDArray[Any],
        places: NDArray[np.int64],
        weights: NDArray[np.float64],
        groups: NDArray[np.int64],
        prior: Any,
    ) -> Any:
        if counts.ndim == 3:
            fit = quiet(calibrate_panel)
            model = fit(counts, places.astype(np.int8) - 1, weights=weights, groups=groups).model
            return replace(model, scale=scale, label_scale=label_scale)
        # Whatever a fit is worth, the labels correct it.
        how: Any = {"scale": scale, "label_scale": label_scale, "prior": prior, "weights": weights}
        return quiet(calibrate)(counts, label_scale.labels[places], **how).model

    return Kind(
        names,
        quantities,
        main,
        features,
        counts,
        label_scale.shares,
        calibrated,
        scale,
        label_scale,
    )


PAIRS = kind_of(OF_PAIRS, OF_PAIRS)
