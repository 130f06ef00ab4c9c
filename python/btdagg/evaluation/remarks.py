"""Remarks to read before using the numbers of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.wording import counted
from btdagg.model.calibration_set import FEWEST
from btdagg.votes.unequal import UnequalVotes

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

    yield from (unequal.within(where) for unequal in _unequal(cell))
    if cell.new_items is not None and cell.n_items < FEWEST:
        yield (
            f"{where}{counted(cell.n_items, 'labelled item')}: too few to evaluate with; {FEWEST} "
            "are the fewest"
        )


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


def _unequal(cell: Cell) -> tuple[UnequalVotes, ...]:
    return () if cell.items is None else UnequalVotes.among(cell.items)


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
    constant, error = cell.best_constant
    is_said = constant == "tie" and _tying(cell) is not None
    behind = [method for method in methods if _mae(method) >= error]
    if not behind and not is_said and (doubt := _no_better(cell)):
        yield f"{_where(cell)}{doubt}"
    elif plain is not None:
        beaten = [of for of in methods if of is not plain and _mae(of) >= _mae(plain)]
        advice = f"label more items or use {plain.name}"
        if _unequal(cell):
            advice = "one model cannot serve these unequal numbers of votes"
        elif _mae(plain) >= error:  # which is no better either
            advice = ""
        if beaten and advice:
            yield (
                f"{_where(cell)}{_not_beating(beaten)} {plain.name} (MAE {_mae(plain):.3f}) on "
                f"held-out items, fitted to {cell.n_calibration:.0f} labels: {advice}"
            )
    if is_said:
        return
    if behind and plain is not None and plain not in behind and _mae(plain) >= error:
        behind.append(plain)
    if behind:
        yield (
            f"{_where(cell)}{_not_beating(behind)} always answering {constant} (MAE {error:.3f}) "
            "on held-out items: this judge is not shown to be better than a constant label; try "
            "more votes per item, another prompt or another judge"
        )


def _no_better(cell: Cell) -> str:
    """Say that neither the calibrated model nor a plain vote is shown to beat a constant."""
    places = [place for place in (cell.calibrated, cell.baseline) if place is not None]
    if cell.calibrated is None or cell.items is None or not cell.items.is_labelled.any():
        return ""
    less = [cell.less_constant(place) for place in places]
    if any(interval.high < 0 for interval in less):
        return ""
    constant, error = cell.best_constant
    calibrated = cell.methods[cell.calibrated]
    advice = "label more items to tell"
    if _unequal(cell):
        advice = "the unequal numbers of votes may be the cause"
    return (
        f"this judge is not shown to be better than a constant label: always answering {constant} "
        f"has MAE {error:.3f}, {calibrated.name} {_mae(calibrated):.3f} on held-out items, "
        f"difference {less[0].mean:z.3f}, 95% interval {less[0].low:z.3f} to "
        f"{less[0].high:z.3f}; {advice}"
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
