"""The result of an evaluation: cells, remarks on them, and lines of a table with their averages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Displayed, picture
from btdagg._util.extras import as_frame
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg._util.wording import in_lines
from btdagg.evaluation.metrics import Interval, mean_interval
from btdagg.evaluation.parts import names_of
from btdagg.evaluation.remarks import about_scores, about_votes

if TYPE_CHECKING:
    from btdagg._util.display import Picture
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.parts import Key
    from btdagg.votes.items import Items

# Of a line, what its record has.
_RECORDED = (
    *("n_votes", "n_labels", "n_items", "method", "mae", "accuracy", "rank", "accuracy_rank"),
    *("tied", "n_calibration", "mae_less_majority", "kappa", "bias"),
)


@dataclass(frozen=True, eq=False)
class Scores(Displayed, Readable):
    """The result of an evaluation of votes and labels.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    cells : tuple of Cell
        One per key, value of `column`, number of votes and number of labels.
    skipped : tuple of (key, reason)
        Parts that could not be evaluated. In an ablation the key may end in a value of `column`.
    n_unlabelled, n_without_votes : int
        Items with votes but no label, and labels of the same tasks whose item has no votes.
    n_sharing : int
        Items that share a prompt with another, without a group that says so.
    column : str
        In an ablation, the column that is varied.
    n_left_out : dict of key to int
        In an ablation, the number of items left out because they lack votes under one value.
    about_data : tuple of str
        Remarks on the votes and labels that were read.
    """

    by: Key
    cells: tuple[Cell, ...]
    skipped: tuple[tuple[Key, str], ...] = ()
    n_unlabelled: int = 0
    n_without_votes: int = 0
    n_sharing: int = 0
    column: str = ""
    n_left_out: Mapping[Key, int] = field(default_factory=dict)
    about_data: tuple[str, ...] = ()

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Remarks to read before using the numbers."""
        cells = self.at_most_votes().values()
        remarks = [*self.about_data]
        for single, plural, count in (
            ("item has votes but no label", "items have votes but no label", self.n_unlabelled),
            ("label has no votes", "labels have no votes", self.n_without_votes),
            ("vote is missing", "votes are missing", sum(cell.n_missing for cell in cells)),
        ):
            if count:
                which = f"{count} {plural} and are" if count > 1 else f"1 {single} and is"
                remarks.append(f"{which} left out")
        remarks += [text for cell in cells for text in about_votes(cell)]
        remarks += [f"{' '.join(key)}: not evaluated: {reason}" for key, reason in self.skipped]
        if self.n_sharing:
            remarks.append(
                f"{self.n_sharing} items share a prompt with another item, but neither votes nor "
                "labels have a column group. Intervals treat them as independent and may be too "
                "narrow; add a column group with the prompt's id"
            )
        remarks += self._about_averages()
        return *remarks, *(text for cell in cells for text in about_scores(cell))

    def _about_averages(self) -> Iterator[str]:
        """Say where an average is over judges, or templates, of different items."""
        most = self.at_most_votes() if self.averages else {}
        for place, column in enumerate(self.by):
            parts: dict[Key, list[set[Any]]] = {}
            for key, cell in most.items():
                if column not in ("task", "criterion") and cell.items is not None:
                    parts.setdefault((*key[:place], *key[place + 1 :]), []).append(
                        {*cell.items.ids.tolist()}
                    )
            for rest, items in parts.items():
                if any(ids != items[0] for ids in items):
                    where = f"{' '.join(rest)}: " if rest else ""
                    numbers = ", ".join(f"{len(ids):,}" for ids in items)
                    yield (
                        f"{where}values of {column} have different labelled items ({numbers}; "
                        f"{len(set.intersection(*items)):,} in common), so the average mixes "
                        "differences between them with differences between items"
                    )

    @property
    def answer(self) -> str:
        """Which method has the least error, in a sentence; of several parts, in how many."""
        most = self.at_most_votes().values()
        if len(most) == 1:
            return next(iter(most)).answer
        best = Counter(cell.best.name for cell in most)
        parts = (f"{name} in {n}" for name, n in best.most_common())
        return f"lowest error, in {len(most)} parts: {', '.join(parts)}"

    def __str__(self) -> str:
        return in_lines([self.answer, *(f"remark: {text}" for text in self.remarks)])

    def plot(self, choice: str | None = None) -> Picture:
        """Draw errors against numbers of votes or labels; of one number, the labels that are given.

        `choice` names one of several figures, as of several judges; an unknown name is an
        `InputError` that lists them.
        """
        return picture(self, choice)

    def by_key(self) -> dict[Key, tuple[Cell, ...]]:
        """Cells by key: where there are several of each, curves over the votes or labels."""
        cells: dict[Key, tuple[Cell, ...]] = {}
        for cell in self.cells:
            cells[cell.key] = (*cells.get(cell.key, ()), cell)
        return cells

    def at_most_votes(self) -> dict[Key, Cell]:
        """For each key the cell with the most votes."""
        return {key: most_voted(cells) for key, cells in self.by_key().items()}

    @property
    def parts(self) -> dict[str, Cell]:
        """The cell of each part with the most votes, by the part's name."""
        most = self.at_most_votes()
        return dict(zip(names_of(most), most.values(), strict=True))

    @property
    def items(self) -> dict[str, Items]:
        """Labelled items of each part, by its name."""
        return {name: cell.items for name, cell in self.parts.items()}

    @property
    def n_calibration(self) -> str:
        """Labels that models are calibrated on: one number, or from the least to the most."""
        numbers = [round(cell.n_calibration) for cell in self.cells]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"

    @property
    def lines(self) -> tuple[dict[str, Any], ...]:
        """Values in tables for each cell and method, by name; see `Cell.lines`."""
        return tuple(line for cell in self.cells for line in cell.lines)

    @cached_property
    def averages(self) -> tuple[dict[str, Any], ...]:
        """Means over cells by number of votes, all weighed equally; none for one cell each."""
        budgets = list(dict.fromkeys(cell.n_votes for cell in self.cells))
        if len(self.cells) == len(budgets):
            return ()
        name = name_of_average({value for cell in self.cells for value in cell.key[:1]})
        key, averages = (name, *("" for _ in self.by[1:])), []
        for budget in budgets:
            cells = [cell for cell in self.cells if cell.n_votes == budget]
            if len(cells) < len(self.by_key()):  # a mean over fewer would look comparable
                continue
            for place, of_cells in enumerate(zip(*(cell.lines for cell in cells), strict=True)):
                line = {"key": key, "n_votes": budget, "method": of_cells[0]["method"]}
                for score in (*cells[0].scores, "mae_less_majority"):
                    if score not in of_cells[0]:
                        continue
                    if cells[0].new_items is not None:
                        # Cells may share items: no smaller interval holds whatever they share.
                        mean = np.mean([of[score] for of in of_cells], axis=0)
                        line[score] = Interval(*mean.tolist())
                    else:  # split by split
                        of_splits = [getattr(cell.methods[place], score) for cell in cells]
                        line[score] = mean_interval(np.mean(of_splits, axis=0))
                averages.append(line)
        return tuple(averages)

    def record(self, line: Mapping[str, Any], names: Sequence[str] = _RECORDED) -> dict[str, Any]:
        """Plain values of a line, with its key first; a score is a mean and its interval's ends."""
        fields: dict[str, Any] = {}
        for name in names:
            if isinstance(line.get(name), Interval):
                fields |= spread(name, line[name])
            elif name in line:
                fields[name] = line[name]
        return record(dict(zip(self.by, line["key"], strict=False)), fields)

    def as_dict(self) -> dict[str, Any]:
        """Return the lines, their averages and the remarks as plain values."""
        averages = [self.record({**line, "key": ()}) for line in self.averages]
        lines = [self.record(line) for line in self.lines]
        remarks = list(self.remarks)
        return {"by": list(self.by), "lines": lines, "averages": averages, "remarks": remarks}

    def to_frame(self) -> pl.DataFrame:
        """Return the lines as a data frame."""
        return as_frame([self.record(line) for line in self.lines])


def most_voted(cells: Sequence[Cell]) -> Cell:
    """Return the cell with the most votes, and labels in a sweep over them."""
    return max(cells, key=lambda cell: (cell.n_votes or 0, cell.n_labels or 0))


def spread(name: str, interval: Interval | None) -> dict[str, object]:
    """Fields of a record for a mean and its interval."""
    mean, low, high = (None, None, None) if interval is None else interval
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def record(where: Mapping[str, str | None], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the columns that votes are grouped by, and then a result's own."""
    for column in where.keys() & fields:
        raise InputError(f"column {column!r} has the name of a field of the results; rename it")
    return {**where, **fields}


def name_of_average(names: Container[str]) -> str:
    """Name of an average, which no part has."""
    name = "average"
    while name in names:
        name += " of all"
    return name
