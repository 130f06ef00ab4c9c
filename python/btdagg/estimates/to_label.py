"""The table of items to label: how they were drawn, beside each, and more of them later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.estimates.items import facts_of
from btdagg.estimates.sample_design import ChosenItems, Design, choose
from btdagg.votes.schema import LABELS, Spec, fractions, names, parse, whole_numbers
from btdagg.votes.table import Table, refuse_duplicates, require
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

COLUMNS = ("item", "task", "group", "stratum", "probability", "design", "seed", "round", "label")
"""Columns of the table, `task` and `group` where there are any. Labels are filled in by people."""

_ROUNDING = 1e-9  # of probabilities that went through other programs
_MOST = 2**53 - 1  # whole numbers that a table can hold

_DRAWN = Spec(
    ("item", "stratum", "probability", "design", "seed", "round"),
    {
        **LABELS.kinds,
        "stratum": names,
        "probability": fractions,
        "design": names,
        "seed": whole_numbers,
        "round": whole_numbers,
    },
    LABELS.key,
)


class Drawing:
    """Items of votes, ready to be drawn.

    Parameters
    ----------
    votes : Votes
    group : str, optional
        Column of the votes: draw whole groups.
    """

    def __init__(self, votes: Votes, group: str | None = None) -> None:
        import polars as pl

        self.source, self._group = votes.source, group
        columns = [] if group is None else [group]
        require(votes, columns)
        parts, counts = [], []
        for key, part in votes.partition(["task"] if "task" in votes.columns else []):
            ids, of_items = part.counts()
            rows = facts_of(part, ids, columns, required=columns)
            rows.columns = ["item", *("group" for _ in columns)]
            task = [pl.lit(text or None, pl.String).alias("task") for text in key]
            parts.append(rows.select("item", *task, *rows.columns[1:]))
            counts.append(of_items)
        self.items: pl.DataFrame = pl.concat(parts)
        self.counts: NDArray[np.int64] = np.concatenate(counts)

    def first(self, n: int, design: Design, seed: int) -> tuple[ChosenItems, pl.DataFrame]:
        """Draw a sample, and return it with its table."""
        chosen = self._chosen(n, design, as_integer(seed, "seed", 0, _MOST))
        return chosen, self._table(chosen, round_=1)

    def more(
        self, n: int, after: Table, design: Design | None = None, seed: int | None = None
    ) -> tuple[ChosenItems, pl.DataFrame]:
        """Top up a sample to n units, and return all of it with its table.

        `after` is what `first` or `more` returned before, perhaps with labels and other columns.
        Its
        rows come first, with whatever is written beside them, and with the probabilities of the
        larger
        sample. `design` and `seed` are those of before.
        """
        import polars as pl

        before = parse_drawn(after)
        for column in ("task", "group"):
            if (column in self.items.columns) != (column in before.columns):
                raise InputError(
                    f"of {self.source} and {before.source} one is by {column} and the other is "
                    "not, expected the same as before"
                )
        drawn_by = cast("Design", _single(before, "design", design))
        drawn_with = int(_single(before, "seed", seed))
        place = self._places(before)
        n_before = len(np.unique(self._chosen(1, "simple", drawn_with).units[place]))
        if n <= n_before:
            what = "items" if self._group is None else "groups"
            expected = f"more than the {n_before} {what} that {before.source} has"
            raise InputError(argument="n", came=n, expected=expected)
        self._refuse_another_draw(before, place, self._chosen(n_before, drawn_by, drawn_with))
        chosen = self._chosen(n, drawn_by, drawn_with)
        new = chosen.rows[~np.isin(chosen.rows, place)]
        rounds = before.frame["round"]
        kept = self._table(replace(chosen, rows=place), rounds)
        beside = [name for name in after.columns if name not in COLUMNS[:-1]]
        kept = kept.drop(beside, strict=False).hstack(after.frame.select(beside))
        added = self._table(replace(chosen, rows=new), int(cast("int", rounds.max())) + 1)
        added = added.drop("label") if "label" in beside else added
        return chosen, pl.concat([kept, added], how="diagonal")

    def _chosen(self, n: int, design: Design, seed: int) -> ChosenItems:
        ids = self.items["item"].to_list()
        if self.items["item"].is_duplicated().any():  # in several tasks
            tasks = self.items["task"].fill_null("").to_list()
            ids = [f"{task}\0{item}" for task, item in zip(tasks, ids, strict=True)]
        groups = None if self._group is None else self.items["group"].to_list()
        return choose(self.counts, n, ids=ids, groups=groups, design=design, seed=seed)

    def _table(self, chosen: ChosenItems, round_: int | pl.Series) -> pl.DataFrame:
        import polars as pl

        return self.items[chosen.rows].with_columns(
            stratum=pl.Series(chosen.strata[chosen.rows].tolist(), dtype=pl.String),
            probability=pl.Series(chosen.probabilities[chosen.rows]),
            design=pl.lit(chosen.design),
            seed=pl.lit(chosen.seed, pl.Int64),
            round=pl.lit(round_, pl.Int64) if isinstance(round_, int) else round_,
            label=pl.lit(None, pl.Int8),
        )

    def _places(self, before: Table) -> NDArray[np.int64]:
        """Return the numbers of the items of before."""
        key = [name for name in ("task", "item") if name in self.items.columns]
        rows = self.items.select(*_keys(self.items, key)).rows()
        place = {row: number for number, row in enumerate(rows)}
        drawn = before.frame.select(*_keys(before.frame, key)).rows()
        for *_, item in filter(lambda row: row not in place, drawn):
            raise InputError(
                f"{before.source}: item {item!r} has no votes in {self.source}, expected the votes "
                "that it was drawn from"
            )
        return np.array([place[row] for row in drawn], dtype=np.int64)

    def _refuse_another_draw(
        self, before: Table, place: NDArray[np.int64], again: ChosenItems
    ) -> None:
        """Check that the rows of before are what is drawn again, all of it."""
        away = before.frame["probability"].to_numpy() - again.probabilities[place]
        differs = ~np.isin(place, again.rows) | ~(np.abs(away) <= _ROUNDING)
        differs |= before.frame["stratum"].to_numpy() != again.strata[place]
        rows = place[differs] if differs.any() else np.setdiff1d(again.rows, place)
        if len(rows):
            raise InputError(
                f"{before.source}: item {self.items['item'][int(rows[0])]!r} is not as it would be "
                f"drawn from {self.source}, expected all rows as they were drawn, with an empty "
                "label where there is none, and the same votes"
            )


def parse_drawn(table: Table) -> Table:
    """Check a table of items that were drawn."""
    require(table, _DRAWN.required)
    rows = parse(table, _DRAWN.kinds)
    refuse_duplicates(rows, _DRAWN.key_of(rows))
    if not rows.frame.height:
        raise InputError(f"{table.source} has no rows, expected items that were drawn")
    return rows


def _single(before: Table, column: str, option: object) -> Any:
    """Return the one value of a column, which is that of an option unless it is None."""
    values = before.frame[column].unique(maintain_order=True).to_list()
    if len(values) > 1 or values[0] is None:
        raise InputError(
            f"{before.source}, column {column}: {values[0]!r} and {values[-1]!r}, expected one "
            "value"
        )
    if option is not None and option != values[0]:
        expected = f"{values[0]!r} as in {before.source}"
        raise InputError(argument=column, came=option, expected=expected)
    return values[0]


def _keys(frame: pl.DataFrame, key: Sequence[str]) -> list[pl.Expr]:
    import polars as pl

    return [pl.col(name).cast(pl.String).str.strip_chars() for name in key]
