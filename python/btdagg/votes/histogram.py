"""Labelled counts, one row for all items that have the same counts and label, as a database has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import forbid
from btdagg._util.lazy import pl
from btdagg.votes.schema import HISTOGRAM, parse
from btdagg.votes.source import read_table
from btdagg.votes.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from btdagg.votes.source import Source

_SIDES = ["minus", "tie", "plus"]


@dataclass(frozen=True, eq=False)
class Histogram(Table):
    """Counts, labels and how many items have them: one row per triple and label.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `minus`, `tie`, `plus` (Int64, or Float64 with strengths), `number` (Int64), `label`
        (Int8, or null); where the source has them `task` and `judge` (text); and all others.
    source : str
        Name of these rows in errors.
    """

    @property
    def n_missing(self) -> int:
        """Number of votes that are missing; of counts it is not known, and 0."""
        return 0

    @property
    def n_unlabelled(self) -> int:
        """Number of items without a label."""
        return int(self.frame.filter(self.frame["label"].is_null())["number"].sum())

    def items(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Return counts, (n, 3), and labels, (n,), with one row for each labelled item."""
        rows: pl.DataFrame = self.frame.filter(self.frame["label"].is_not_null())
        number = rows["number"].to_numpy()
        forbid(not number.any(), f"{self.source}: no item has a label")
        counts = rows.select(_SIDES).to_numpy()
        whole = counts.dtype.kind in "iu"
        narrow = counts.astype(np.min_scalar_type(counts.max())) if whole else counts
        return np.repeat(narrow, number, axis=0), np.repeat(rows["label"].to_numpy(), number)


def read_histogram(source: Source, *, columns: Mapping[str, str] | None = None) -> Histogram:
    """Read a histogram of labelled counts, as the query of ``btdagg sql --labels`` gives it.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `minus`, `tie`, `plus`, `label` (empty
        without one) and `number`; optional are `task` and `judge`. Equal rows add up.
    columns : mapping of str to str, optional
        Names of columns in the source by the names above, such as ``{"number": "n"}``.

    Examples
    --------
    >>> from btdagg import calibrate
    >>> known = {"minus": [0, 9, 4], "tie": [2, 1, 4], "plus": [9, 1, 4], "label": [1, -1, 0]}
    >>> histogram = read_histogram({**known, "number": [20, 25, 12]})
    >>> calibrate(*histogram.items()).n_labels
    57
    """
    rows = parse(read_table(source, HISTOGRAM.required, columns=columns), HISTOGRAM.kinds)
    return Histogram(rows.data, rows.source, files=rows.files)
