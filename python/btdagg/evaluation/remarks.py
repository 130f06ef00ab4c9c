"""Remarks to read before using the numbers of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg.model.calibration import FEWEST
from btdagg.remarks import Remark

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell, MethodScores


def about_votes(cell: Cell) -> Iterator[Remark]:
    """Say which items have fewer votes or decisions than were asked for."""
    if cell.n_empty:
        yield remarks.items_without_votes(cell.n_empty, cell.n_items, cell.scale.mirrored)
    if cell.n_undecided:
        yield remarks.undecided_items(cell.n_undecided)
    if cell.new_items is not None and cell.n_items < FEWEST:
        yield remarks.few_items(cell.n_items, FEWEST)


def about_scores(cell: Cell) -> Iterator[Remark]:
    """Say where methods are no better than a plain vote, a constant answer or another rater."""
    if (calibration := _tying(cell)) is not None and cell.calibrated is not None:
        yield remarks.always_tying_fit(
            calibration.n_labels,
            calibration.max_votes,
            cell.errors_of_constants[1],
            cell.n_calibration,
            _mae(cell.methods[cell.calibrated]),
        )
    if cell.new_items is not None:
        yield from _against(cell)
        yield from _beaten(cell)
        yield from _beside_raters(cell)


def _mae(method: MethodScores) -> float:
    return method.interval("mae").mean


def _against(cell: Cell) -> Iterator[Remark]:
    if cell.baseline is None or not cell.scale.mirrored:
        return
    counts = cell.methods[cell.baseline].counts
    right, wrong = counts[0, 0] + counts[-1, -1], counts[0, -1] + counts[-1, 0]
    if wrong - right > 2 * np.sqrt(right + wrong):  # two standard errors of a fair coin
        yield remarks.sides_disagree(wrong, right)


def _beaten(cell: Cell) -> Iterator[Remark]:
    methods = list(cell.methods)
    if cell.calibrated is not None:  # others are there to be compared with
        methods = [cell.methods[cell.calibrated]]
    plain = None if cell.baseline is None else cell.methods[cell.baseline]
    constant, error = cell.best_constant
    is_said = constant == "tie" and _tying(cell) is not None
    behind = [method for method in methods if _mae(method) >= error]
    if not behind and not is_said and (doubt := _no_better(cell)) is not None:
        yield doubt
    elif plain is not None:
        beaten = [of for of in methods if of is not plain and _mae(of) >= _mae(plain)]
        advice = f"label more items or use {plain.name}"
        if _mae(plain) >= error:  # which is no better either
            advice = ""
        if beaten and advice:
            errors, mae = _errors(beaten), _mae(plain)
            yield remarks.beaten_by_plain(errors, plain.name, mae, cell.n_calibration, advice)
    if is_said:
        return
    if behind and plain is not None and plain not in behind and _mae(plain) >= error:
        behind.append(plain)
    if behind:
        yield remarks.beaten_by_constant(_errors(behind), constant, error)


def _errors(methods: Sequence[MethodScores]) -> dict[str, float]:
    return {method.name: _mae(method) for method in methods}


def _no_better(cell: Cell) -> Remark | None:
    """Say that neither the calibrated model nor a plain vote is shown to beat a constant."""
    places = [place for place in (cell.calibrated, cell.baseline) if place is not None]
    if cell.calibrated is None or cell.items is None or not cell.items.is_labelled.any():
        return None
    less = [cell.less_constant(place) for place in places]
    if any(interval.high < 0 for interval in less):
        return None
    calibrated = cell.methods[cell.calibrated]
    of_method = calibrated.name, _mae(calibrated)
    return remarks.not_shown_better(*cell.best_constant, *of_method, less[0])


def _beside_raters(cell: Cell) -> Iterator[Remark]:
    raters = None if cell.new_items is None else cell.new_items.raters
    if raters is None:
        return
    place, people = cell.calibrated or 0, len(cell.methods)
    yield remarks.beside_raters(
        len(raters.groups),
        cell.methods[place].name,
        raters.interval(place).mean,
        raters.interval(people).mean,
        raters.difference(place, people),
        raters.alpha,
    )


def _tying(cell: Cell) -> Any:
    if cell.fitted is None or not cell.scale.mirrored:
        return None
    fitted: Any = cell.fitted.calibration
    ties = fitted is not None and fitted.max_votes and fitted.model.always_ties(fitted.max_votes)
    return fitted if ties else None
