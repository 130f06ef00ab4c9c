"""What a calibration warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from btdagg.model.bounds import PARAMETERS

if TYPE_CHECKING:
    from btdagg._core import CalibrationSet, Fit
    from btdagg.model.davidson import DavidsonModel


class CalibrationWarning(UserWarning):
    """A calibration that did not converge, hit a bound, or that the labels cannot identify."""


def warnings_of(
    fit: Fit, items: CalibrationSet, model: DavidsonModel, at_bounds: tuple[str, ...]
) -> list[str]:
    """Say what the labels cannot identify, and where the fit or its model is not to be trusted."""
    notes = _unidentified(items, model, fit.neutral)
    if not fit.converged:
        notes.append("the fit did not converge")
    if at_bounds:
        values = (f"{name} is at its bound {getattr(model, name):.4g}" for name in at_bounds)
        notes.append(", ".join(values))
    return notes + constant_of(items, model)


def constant_of(items: CalibrationSet, model: DavidsonModel) -> list[str]:
    """Say so where a model calls everything a tie."""
    if not (items.max_votes and model.always_ties(items.max_votes)):
        return []
    return [
        f"the fitted model calls every item with up to {items.max_votes} votes a tie, however "
        "they fall: the judge adds nothing that a constant would not"
    ]


def _unidentified(
    items: CalibrationSet, model: DavidsonModel, neutral: tuple[bool, bool, bool]
) -> list[str]:
    """Say which parameters the labelled items cannot identify, and why."""
    notes = []
    seen = [
        label for label, weight in zip((-1, 0, 1), items.label_weights, strict=True) if weight > 0
    ]
    if len(seen) == 1:
        notes.append(f"every label is {seen[0]}: beta, nu and gamma cannot be identified")
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
            + (f"and is left at {model.gamma:g}" if neutral[2] else "and makes up for it")
        )
    return notes
