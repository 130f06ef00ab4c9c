"""Remarks to read before using the numbers of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell, MethodScores


def about_votes(cell: Cell) -> Iterator[str]:
    """Say which items have fewer votes or decisions than were asked for."""
    where = _where(cell)
    if cell.n_empty and cell.scale.mirrored:
        yield (
            f"{where}{cell.n_empty} of {cell.n_items} items have only missing votes, and are "
            "decided without votes"
        )
    elif cell.n_empty:
        yield f"{where}{cell.n_empty} items have only missing votes, and are left out"
    if cell.n_undecided:
        items = "item has" if cell.n_undecided == 1 else "items have"
        yield (
            f"{where}{cell.n_undecided} {items} no decision by some method (its prompt shows them "
            "as examples, or an answer is missing) and are left out for all methods"
        )
    if cell.n_asked != cell.n_votes and cell.n_votes is not None:
        yield f"{where}no item has {cell.n_asked} votes; all {cell.n_votes} were used"


def about_scores(cell: Cell) -> Iterator[str]:
    """Say where methods are no better than a plain vote, a constant answer or another rater."""
    if (calibration := _tying(cell)) is not None and cell.calibrated is not None:
        yield (
            f"{_where(cell)}fitted to all {calibration.n_labels} labels, the model calls every "
            f"item with up to {calibration.max_votes} votes a tie, whatever the votes: here this "
            "judge is no better than a constant answer. Always answering tie has MAE "
            f"{cell.errors_of_constants[1]:.3f}; the scored models, each calibrated on "
            f"{cell.n_calibration:.0f} labels, have {_mae(cell.methods[cell.calibrated]):.3f}"
        )
    if cell.new_items is not None:
        yield from _against(cell)
        yield from _beaten(cell)
        yield from _beside_raters(cell)


def _where(cell: Cell) -> str:
    return f"{' '.join(cell.key)}: " if cell.key else ""


def _mae(method: MethodScores) -> float:
    return method.interval("mae").mean


def _against(cell: Cell) -> Iterator[str]:
    if cell.baseline is None or not cell.scale.mirrored:
        return
    counts = cell.methods[cell.baseline].counts
    right, wrong = counts[0, 0] + counts[-1, -1], counts[0, -1] + counts[-1, 0]
    if wrong - right > 2 * np.sqrt(right + wrong):  # two standard errors of a fair coin
        yield (
            f"{_where(cell)}majority vote picks the opposite side of the label for {wrong:.0f} "
            f"items and the same side for {right:.0f}: votes and labels disagree. Check first "
            "that A and B are the same responses in votes and labels"
        )


def _beaten(cell: Cell) -> Iterator[str]:
    methods = list(cell.methods)
    if cell.calibrated is not None:  # others are there to be compared with
        methods = [cell.methods[cell.calibrated]]
    plain = None if cell.baseline is None else cell.methods[cell.baseline]
    if plain is not None:
        behind = [of for of in methods if of is not plain and _mae(of) >= _mae(plain)]
        if behind:
            yield (
                f"{_where(cell)}{_not_beating(behind)} {plain.name} (MAE {_mae(plain):.3f}) on "
                f"held-out items, fitted to {cell.n_calibration:.0f} labels: label more items or "
                f"use {plain.name}"
            )
    constant, error = cell.best_constant
    if constant == "tie" and _tying(cell) is not None:
        return  # said already
    behind = [method for method in methods if _mae(method) >= error]
    if behind and plain is not None and plain not in behind and _mae(plain) >= error:
        behind.append(plain)
    if behind:
        yield (
            f"{_where(cell)}{_not_beating(behind)} always answering {constant} (MAE {error:.3f}) "
            "on held-out items: these votes have too little information; try more votes per item, "
            "another prompt or another judge"
        )


def _not_beating(methods: Sequence[MethodScores]) -> str:
    names = ", ".join(f"{method.name} (MAE {_mae(method):.3f})" for method in methods)
    return f"{names} {'does' if len(methods) == 1 else 'do'} not beat"


def _beside_raters(cell: Cell) -> Iterator[str]:
    raters = None if cell.new_items is None else cell.new_items.raters
    if raters is None:
        return
    place, people = cell.calibrated or 0, len(cell.methods)
    less = raters.difference(place, people)
    verdict = "about as close to a rater as raters are to each other"
    if less.high < 0 or less.low > 0:
        verdict = (
            f"{'closer' if less.high < 0 else 'less close'} to a rater than raters are to each "
            "other"
        )
    yield (
        f"{_where(cell)}on {len(raters.groups)} items with several raters "
        f"{cell.methods[place].name} is {verdict}: it is off by {raters.interval(place).mean:.3f} "
        f"on average, another rater by {raters.interval(people).mean:.3f}; difference "
        f"{less.mean:z.3f}, 95% interval {less.low:z.3f} to {less.high:z.3f}; Krippendorff's "
        f"alpha of the raters is {raters.alpha:.2f}"
    )


def _tying(cell: Cell) -> Any:
    if cell.fitted is None or not cell.scale.mirrored:
        return None
    fitted: Any = cell.fitted.calibration
    ties = fitted is not None and fitted.max_votes and fitted.model.always_ties(fitted.max_votes)
    return fitted if ties else None
