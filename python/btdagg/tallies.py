"""Long votes summed up by item, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.columns import vote_values
from btdagg.evidence import Confidences
from btdagg.tables import Table, require

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

CONFIDENCE = "\0confidence"  # no column of a source is called that
_WITHOUT_VOTES = ("greedy", "few_shot")  # decided by calls of their own, not on the votes
_LABELS = (("minus", -1), ("tie", 0), ("plus", 1))


def tallied(frame: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """Count the chosen votes of every item of the frame.

    Returns
    -------
    polars.DataFrame
        Columns `item`, `minus`, `tie`, `plus`; and where there is a column `CONFIDENCE` the
        fields of `Confidences` for each of those. One row per item, in the order of the frame.
    """
    import polars as pl

    columns = []
    for name, vote in _LABELS:
        columns.append((pl.col("vote") == vote).sum().cast(pl.Int64).alias(name))
        if CONFIDENCE in chosen.columns:
            # In ascending order, so that the order of the votes does not change a bit of a sum.
            values = pl.col(CONFIDENCE).filter(pl.col("vote") == vote).sort()
            absent = values.is_null().any()
            columns += [
                pl.when(absent).then(float("nan")).otherwise(value).alias(f"{kind} {name}")
                for kind, value in (
                    ("total", values.sum()),
                    ("least", values.min().fill_null(float("inf"))),
                    ("log_product", values.log().sum()),
                )
            ]
    items = frame.select(pl.col("item").unique(maintain_order=True))
    found = chosen.group_by("item").agg(columns)
    rows = items.join(found, on="item", how="left", maintain_order="left")
    least = [column for column in rows.columns if column.startswith("least ")]
    return rows.with_columns(pl.col(least).fill_null(float("inf"))).fill_null(0)


def confidences_of(rows: pl.DataFrame) -> Confidences:
    """Return the confidences that `tallied` has summed up."""

    def values(kind: str) -> NDArray[np.float64]:
        return rows.select(f"{kind} {name}" for name, _ in _LABELS).to_numpy(order="c")

    return Confidences(values("total"), values("least"), values("log_product"))


def column_of_decisions(name: str, n_votes: int | None) -> str:
    """Name of the column that holds the decisions of that name, on so many votes or on all."""
    return name if n_votes is None or name in _WITHOUT_VOTES else f"{name}_{n_votes}"


def decisions_of(table: Table, column: str, items: pl.Series) -> NDArray[np.float64]:
    """Decisions that a column holds: (n,) array of -1, 0, 1, NaN for an item without one.

    Raises
    ------
    InputError
        If there is no such column, a value has not the words of a vote (the message names the
        row), or two rows of an item hold different decisions.
    """
    import polars as pl

    require(table, [column])
    rows = table.frame.select("item", vote_values(table, column).alias("decision"))
    known = rows.drop_nulls().unique(maintain_order=True)
    twice = known.filter(pl.col("item").is_duplicated())
    if twice.height:
        raise InputError(
            f"{table.source}, column {column}: item {twice['item'][0]!r} has different decisions; "
            "filter or partition by judge first"
        )
    found = items.to_frame().join(known, on="item", how="left", maintain_order="left")
    return found["decision"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
