"""The result of an evaluation: one comparison per key and number of votes or labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from btdagg._util.display import Displayed, picture
from btdagg._util.readable import readable
from btdagg.evaluation.curves import Sweep
from btdagg.evaluation.remarks import about_methods, about_votes, left_out

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.parts import Key
    from btdagg.report.figure import ReportFigure


@readable
@dataclass(frozen=True, eq=False)
class Scores(Displayed):
    """The result of an evaluation of votes and labels.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    cells : tuple of Cell
        One per key, value of `column`, number of votes and number of labels.
    skipped : tuple of (key, reason)
        What could not be evaluated. In an ablation the key may end in a value of `column`.
    n_unlabelled, n_without_votes : int
        Items that have votes of some judge but no label, and labels of the same tasks whose item
        has no votes.
    n_sharing : int
        Items that share a prompt with another, where nothing says that they belong together.
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
        """What a reader has to know before using the numbers."""
        cells = self.at_most_votes().values()
        n_missing = sum(cell.n_missing for cell in cells)
        found = [*self.about_data]
        found += left_out(self.n_unlabelled, self.n_without_votes, n_missing)
        for cell in cells:
            found += about_votes(cell)
        found += [f"{' '.join(key)}: not evaluated: {reason}" for key, reason in self.skipped]
        if self.n_sharing:
            found.append(
                f"{self.n_sharing} items share a prompt with another, and the labels have no "
                "column group: intervals and tests take them for independent and may be too "
                "narrow; a column group with the prompt's id keeps them together"
            )
        for cell in cells:
            found += about_methods(cell)
        return tuple(found)

    def plot(self, choice: str | None = None) -> ReportFigure:
        """Draw errors against numbers of votes or labels; of one number, the labels that are given.

        Parameters
        ----------
        choice : str, optional
            Of several figures, as of several judges, the one to draw.

        Raises
        ------
        InputError
            If there are several figures, and none of that name; the message lists them.
        MissingExtraError
            If matplotlib is not installed.
        """
        return picture(self, choice)

    def by_key(self) -> dict[Key, tuple[Cell, ...]]:
        """Cells by key."""
        found: dict[Key, tuple[Cell, ...]] = {}
        for cell in self.cells:
            found[cell.key] = (*found.get(cell.key, ()), cell)
        return found

    def at_most_votes(self) -> dict[Key, Cell]:
        """For each key the cell with the most votes."""
        return {
            key: max(cells, key=lambda cell: cell.n_votes or 0)
            for key, cells in self.by_key().items()
        }

    @property
    def n_calibration(self) -> str:
        """Labels that models are calibrated on: one number, or from the least to the most."""
        numbers = [round(cell.comparison.n_calibration) for cell in self.cells]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Cells of each key as curves over the number of votes, or of labels."""
        return tuple(Sweep(key, cells) for key, cells in self.by_key().items())
