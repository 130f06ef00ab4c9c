"""What a reader should know of scores: what was left out, and what a judge does not add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell, MethodScores

# Labels in label order.
_ANSWERS = ("B", "tie", "A")

# Share of splits with fits that call everything a tie, from which it is worth a word.
_OFTEN = 0.25

# Items to evaluate from which all being ties is no accident.
_ENOUGH = 20


def left_out(n_unlabelled: int, n_without_votes: int, n_missing: int) -> list[str]:
    """Say how many items, labels and votes are left out."""
    found = []
    for one, many, count in (
        ("item has votes but no label", "items have votes but no label", n_unlabelled),
        ("label has no votes", "labels have no votes", n_without_votes),
        ("vote is missing", "votes are missing", n_missing),
    ):
        if count:
            found.append(f"1 {one}" if count == 1 else f"{count} {many}")
            found[-1] += " and is left out" if count == 1 else " and are left out"
    return found


def about_votes(cell: Cell) -> list[str]:
    """Say which items of a cell have fewer votes or decisions than were asked for."""
    found, where = [], _where(cell)
    if cell.n_empty:
        found.append(
            f"{where}{cell.n_empty} of {cell.comparison.n_items} items have only "
            "missing votes, and are decided without votes"
        )
    if cell.n_undecided:
        items = "item has" if cell.n_undecided == 1 else "items have"
        found.append(
            f"{where}{cell.n_undecided} {items} no decision of some method (its prompt shows "
            "them as examples, or an answer is missing) and count for none"
        )
    if cell.n_asked != cell.n_votes and cell.n_votes is not None:
        found.append(f"{where}no item has {cell.n_asked} votes; all {cell.n_votes} were used")
    return found


def about_methods(cell: Cell) -> list[str]:
    """Say where a judge adds nothing that a constant or majority vote would not."""
    found = _constant(cell)
    if cell.comparison.new_items is not None:
        found += [*_against(cell), *_beaten(cell)]
    return found


def _where(cell: Cell) -> str:
    return f"{' '.join(cell.key)}: " if cell.key else ""


def _against(cell: Cell) -> list[str]:
    """Say so where majority vote picks the wrong side more often than the right one."""
    compared = cell.comparison
    if compared.baseline is None:
        return []
    matrices = compared.methods[compared.baseline].matrices.sum(axis=0)
    times = matrices.sum() / compared.n_items  # how often an item was decided
    right = (matrices[0, 0] + matrices[2, 2]) / times
    wrong = (matrices[0, 2] + matrices[2, 0]) / times
    if wrong - right <= 2 * np.sqrt(right + wrong):  # two standard errors of a fair coin
        return []
    return [
        f"{_where(cell)}majority vote picks the other side than the label for {wrong:.0f} items "
        f"and the same for {right:.0f}: the votes are against the labels. Check first that A and B "
        "are the same responses in votes and labels"
    ]


def _beaten(cell: Cell) -> list[str]:
    """Name the methods that do not beat majority vote, or the best constant, on held-out items."""
    compared, where, found = cell.comparison, _where(cell), []
    methods = [
        method for place, method in enumerate(compared.methods) if place != compared.baseline
    ]
    constant, error = compared.best_constant
    if compared.baseline is not None:
        majority = compared.methods[compared.baseline]
        behind = [method for method in methods if method.mean_mae >= majority.mean_mae]
        if behind:
            found.append(
                f"{where}{_with_mae(behind)} {_does(behind)} not beat majority vote (MAE "
                f"{majority.mean_mae:.3f}) on held-out items: with {compared.n_calibration:.0f} "
                "labels to learn from, label more items or use majority vote"
            )
        methods.append(majority)
    if constant == 0 and _always_ties(cell) and cell.fitted is not None:  # which is said
        methods = [method for method in methods if method.name != cell.fitted.name]
    behind = [method for method in methods if method.mean_mae >= error]
    if behind:
        found.append(
            f"{where}{_with_mae(behind)} {_does(behind)} not beat always answering "
            f"{_ANSWERS[constant + 1]} (MAE {error:.3f}) on held-out items: these votes say "
            "too little; try more votes an item, another prompt or another judge"
        )
    return found


def _with_mae(methods: Sequence[MethodScores]) -> str:
    return ", ".join(f"{method.name} (MAE {method.mean_mae:.3f})" for method in methods)


def _does(methods: Sequence[MethodScores]) -> str:
    return "does" if len(methods) == 1 else "do"


def _always_ties(cell: Cell) -> bool:
    """Whether the model that is fitted to all labels calls every item a tie."""
    fitted = None if cell.fitted is None else cell.fitted.calibration
    return (
        fitted is not None and bool(fitted.max_votes) and fitted.model.always_ties(fitted.max_votes)
    )


def _constant(cell: Cell) -> list[str]:
    """Say so where the model calls everything a tie."""
    if cell.fitted is None or (calibration := cell.fitted.calibration) is None:
        return []
    where = _where(cell)
    compared = cell.comparison
    scores = next(method for method in compared.methods if method.name == cell.fitted.name)
    if _always_ties(cell):
        return [
            f"{where}fitted to all {calibration.n_labels} labels, the model calls every item with "
            f"up to {calibration.max_votes} votes a tie, whatever the votes: here this judge adds "
            "nothing to a constant answer. Always answering tie has MAE "
            f"{1 - compared.gold_tie_share:.3f}; the scored models, each calibrated on "
            f"{compared.n_calibration:.0f} labels, have {scores.mean_mae:.3f}"
        ]
    n_evaluated = compared.n_items - compared.n_calibration
    share = float(np.mean(scores.tie_share == 1)) if n_evaluated >= _ENOUGH else 0.0
    if share >= _OFTEN:
        return [
            f"{where}calibrated on {compared.n_calibration:.0f} labels, the model calls every item "
            f"a tie on {share:.0%} of the splits: calibrate on more labels"
        ]
    return []
