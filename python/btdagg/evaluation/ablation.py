"""What a change of temperature, template or the like does to the error, all else equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.comparison import evaluate, numbers_of_votes
from btdagg.evaluation.conditions import columns_to_go_by, fit_for, on_same_items
from btdagg.evaluation.parts import Key
from btdagg.evaluation.protocol import DEFAULT, Protocol
from btdagg.tables import require, text

if TYPE_CHECKING:
    from btdagg.aggregators import Aggregator
    from btdagg.evaluation.scores import Comparison
    from btdagg.labels import Labels
    from btdagg.votes import Votes

# What may differ along with what is compared, and would then be taken for its effect.
_CONDITIONS = ("judge", "template", "temperature", "order")


@dataclass(frozen=True, eq=False)
class AblationCell:
    """One comparison of aggregators.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that the ablation goes by.
    value : str
        Value of the column that is varied; an empty text where there is none.
    n_votes : int or None
        Votes per item; None for all.
    comparison : Comparison
        The scores. Of one key, those of all values are on the same items and splits.
    n_short, n_missing : int
        Items with fewer votes than `n_votes`, which keep those they have, and missing votes.
    """

    key: Key
    value: str
    n_votes: int | None
    comparison: Comparison
    n_short: int
    n_missing: int


@dataclass(frozen=True, eq=False)
class Ablation:
    """What `ablate` found.

    Attributes
    ----------
    column : str
        What was varied.
    by : tuple of str
        Columns that the ablation goes by.
    cells : tuple of AblationCell
        By key, value (numbers in ascending order, then others as first seen) and number of votes.
    n_left_out : dict of key to int
        Items without a vote under one of the values, which are left out under all.
    skipped : tuple of (key, reason)
        What could not be evaluated; the key ends in the value, if there is one.
    """

    column: str
    by: tuple[str, ...]
    cells: tuple[AblationCell, ...]
    n_left_out: dict[Key, int]
    skipped: tuple[tuple[Key, str], ...]


def ablate(
    votes: Votes,
    labels: Labels,
    column: str,
    *,
    n_votes: Sequence[int] | None = None,
    by: Sequence[str] | None = None,
    aggregators: Sequence[Aggregator] | None = None,
    confidence: str | None = None,
    protocol: Protocol = DEFAULT,
    progress: Callable[[int], Callable[[], object]] | None = None,
) -> Ablation:
    """Compare aggregators by the value of a column, on the same items and splits for all values.

    Parameters
    ----------
    votes : Votes
        Long votes. An item takes part where it has at least one vote under every value.
    labels : Labels
        Gold labels; items that share a `group` are split together.
    column : str
        What is varied, such as ``temperature`` or ``template``.
    n_votes, aggregators, confidence, protocol, progress
        See `evaluate`. The paper's table of temperatures has 20 splits.
    by : sequence of str, optional
        Columns; each of their values is looked at by itself. Task and judge, where there are such
        columns, unless given.

    Returns
    -------
    Ablation

    Raises
    ------
    InputError
        If judge, template, temperature or order are pooled and differ between the values (filter
        or go by them), or no item has votes under every value, wherever it is looked at; and where
        `evaluate` does.

    References
    ----------
    The paper's ablation over temperatures, and its calibration effect under prompt variations.
    """
    numbers_of_votes(n_votes)
    votes, chosen = columns_to_go_by(votes, labels, by, column)
    require(votes, [column])
    votes, refused = fit_for(
        votes, chosen, lambda part, key: _refuse_confounding(part, key, column, chosen)
    )
    same = on_same_items(votes, chosen, column)
    found = evaluate(
        same.votes,
        labels,
        by=(*chosen, column),
        n_votes=n_votes,
        aggregators=aggregators,
        confidence=confidence,
        protocol=protocol,
        progress=progress,
    )
    cells = [
        AblationCell(
            cell.key[:-1],
            cell.key[-1],
            cell.n_votes,
            cell.comparison,
            n_short=cell.n_short,
            n_missing=cell.n_missing,
        )
        for cell in found.cells
    ]
    keys = list(dict.fromkeys(cell.key for cell in cells))
    values = _in_order(list(dict.fromkeys(cell.value for cell in cells)))
    cells.sort(key=lambda cell: (keys.index(cell.key), values.index(cell.value)))
    skipped = (*refused, *same.empty, *found.skipped)
    return Ablation(column, chosen, tuple(cells), same.n_left_out, skipped)


def _refuse_confounding(part: Votes, key: Key, column: str, by: Sequence[str]) -> None:
    """Refuse values that differ in more than what is varied."""
    others = [c for c in _CONDITIONS if c in part.columns and c != column and c not in by]
    for other in others:
        seen: dict[frozenset[str | None], str] = {}
        for (value,), rows in part.partition([column]):
            seen.setdefault(frozenset(text(rows, other).unique()), value)
        if len(seen) > 1:
            one, two, *_ = seen.values()
            where = f", {' '.join(key)}" if key else ""
            raise InputError(
                f"{part.source}{where}: {column} {one!r} and {two!r} differ in {other} too; "
                f"filter by {other}, or go by it"
            )


def _in_order(values: list[str]) -> list[str]:
    """Numbers in ascending order, then the rest as they came."""

    def place(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            return math.inf

    return sorted(values, key=place)
