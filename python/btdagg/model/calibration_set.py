"""What a fit is made of: labelled counts, the box of its parameters, and what it warns of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.validation import (
    as_counts,
    as_labels,
    as_number,
    as_weights,
    labelled,
    same_index,
    same_length,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.davidson import DavidsonModel

PARAMETERS = ("beta", "nu", "gamma")


class CalibrationWarning(UserWarning):
    """A calibration that did not converge, hit a bound, or that the labels cannot identify."""


@dataclass(frozen=True)
class Bounds:
    """Box constraints of a fit, each a (lower, upper) pair; the paper's unless given.

    Raises
    ------
    InputError
        If a pair is not two finite numbers in ascending order, or nu's are not above 0.
    """

    beta: tuple[float, float] = (1e-3, 5.0)
    nu: tuple[float, float] = (1e-4, 1e3)
    gamma: tuple[float, float] = (-10.0, 10.0)

    def __post_init__(self) -> None:
        for name in PARAMETERS:
            pair: Any = getattr(self, name)
            try:
                lower, upper = (as_number(value, f"bounds of {name}") for value in pair)
            except (TypeError, ValueError):
                lower, upper = math.nan, math.nan
            if not lower <= upper or (name == "nu" and lower <= 0):
                above = " above 0" if name == "nu" else ""
                raise InputError(
                    f"bounds of {name} are {pair!r}, expected two finite numbers{above} in "
                    "ascending order"
                )
            object.__setattr__(self, name, (lower, upper))

    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of beta, eta0 (the log of nu) and gamma, each (3,)."""
        pairs = [self.beta, tuple(math.log(nu) for nu in self.nu), self.gamma]
        lower, upper = np.array(pairs, dtype=np.float64).T
        return lower, upper


def calibration_set(
    counts: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    *,
    alpha: float,
    kappa: float,
) -> _core.CalibrationSet:
    """Check labelled counts, as `btdagg.calibrate` takes them, and gather their distinct rows.

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range (the message names its row), or no weight is
        above 0.
    """
    counts, labels, _ = labelled(counts, labels, weights=weights)
    rows = as_counts(counts)
    if labels is None and weights is None:
        raise InputError("labels is None and weights is None, expected one of them")
    gold = None if labels is None else as_labels(labels)
    if gold is not None:
        same_length("labels", len(gold), "counts", len(rows))
    weight = None if weights is None else as_weights(weights, soft=gold is None)
    if weight is not None:
        same_length("weights", len(weight), "counts", len(rows))
    same_index(counts=counts, labels=labels, weights=weights)
    if gold is None:
        assert weight is not None
        return _core.CalibrationSet.soft(rows, weight, alpha, kappa)
    return _core.CalibrationSet(rows, gold, weight, alpha, kappa)


def warnings_of(
    fit: _core.Fit, items: _core.CalibrationSet, model: DavidsonModel, at_bounds: tuple[str, ...]
) -> list[str]:
    """Say what the labels cannot identify, and where the fit or its model is not to be trusted."""
    notes = _unidentified(items, model, gamma_is_neutral=fit.neutral[2])
    if not fit.converged:
        notes.append("the fit did not converge")
    if at_bounds:
        values = (f"{name} is at its bound {getattr(model, name):.4g}" for name in at_bounds)
        notes.append(", ".join(values))
    return notes + constant_of(items, model)


def constant_of(items: _core.CalibrationSet, model: DavidsonModel) -> list[str]:
    """Say so where a model calls everything a tie."""
    if not (items.max_votes and model.always_ties(items.max_votes)):
        return []
    return [
        f"the fitted model calls every item with up to {items.max_votes} votes a tie, however "
        "they fall: the judge adds nothing that a constant would not"
    ]


def _unidentified(
    items: _core.CalibrationSet, model: DavidsonModel, *, gamma_is_neutral: bool
) -> list[str]:
    """Say which parameters the labelled items cannot identify, and why."""
    notes = []
    weights = zip((-1, 0, 1), items.label_weights, strict=True)
    labels = [label for label, weight in weights if weight > 0]
    if len(labels) == 1:
        notes.append(f"every label is {labels[0]}: beta, nu and gamma cannot be identified")
    if items.n_items < len(PARAMETERS):
        plural = "label" if items.n_items == 1 else "labels"
        notes.append(
            f"{items.n_items} {plural}: three parameters cannot be identified by fewer than three"
        )
    if items.max_votes == 0:
        notes.append("no item has votes: beta and gamma cannot be identified and are left neutral")
        return notes
    if not items.has_margins:
        notes.append(
            f"no item leans to a side: beta cannot be identified and is left at {model.beta:g}"
        )
    if not items.has_tie_contrast:
        notes.append(
            "all items have the same share of ties: gamma cannot be told apart from nu "
            + (f"and is left at {model.gamma:g}" if gamma_is_neutral else "and makes up for it")
        )
    return notes
