"""Any table, whose columns are named by the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat

import polars as pl

from btdagg._core import InputError
from btdagg.votes import schema
from btdagg.votes.formats.content import Content, Format, ImportOptions
from btdagg.votes.formats.rows import JudgeText, votes_of_answers, votes_of_scores
from btdagg.votes.schema import parse, parse_column
from btdagg.votes.source import ITEM_NAMES
from btdagg.votes.table import Table, as_text, listing, require, text
from btdagg.votes.words import VOTE, shown_second, voted

VERDICTS = ("vote", "label", "answer", "score", "score_a")
_PAIR = ("group", "system_a", "system_b")
_STATUS, _SECOND = "\0status", "\0second"
_HOW = "columns={'item': 'id', 'vote': 'winner'} says which is which"

KINDS: dict[str, schema.Kind] = {
    "item": schema.ids,
    **{name: kind for name, kind in schema.VOTES.kinds.items() if name not in ("item", "vote")},
    **dict.fromkeys(("rater", "group", "system", "system_a", "system_b"), schema.names),
    "confidence": schema.fractions,
    "margin": schema.amounts,
    **dict.fromkeys(("score", "score_a", "score_b"), schema.finite_numbers),
}


def _recognizes(content: Content) -> bool:
    """Whether a file has the columns of votes, or of scores of responses, under their names."""
    columns = content.columns
    has_scores = {"system", "score"} <= columns and bool(columns & {"group", "item"})
    return has_scores or (bool(columns & {"item", *ITEM_NAMES}) and "vote" in columns)


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read the columns that a user names, and those that have the names of docs/data.md."""
    mapped = {name.lower(): column.strip().lower() for name, column in options.columns.items()}
    table = content.table()
    require(table, mapped.values())
    names = _names(table, mapped)
    verdict = _verdict(names, mapped, table)
    _require_items(names, verdict, options, table)
    second = None if options.flip_where is None else shown_second(table, *options.flip_where)
    if second is not None and verdict == "score":
        raise InputError("flip_where is of pairs, and score of one response", argument="flip_where")
    remark, added = None, {}
    if verdict == "answer":
        votes, remark = _answers(table, names, options, turned=second is not None)
        table = Table(table.frame, table.source).with_columns(
            [votes["vote"].alias(VOTE), votes["status"].alias(_STATUS)]
        )
        added = {"vote": pl.col(VOTE), "status": pl.col(_STATUS)}
    elif verdict in ("vote", "label"):
        table = voted(table, names[verdict], options.words)
        blank = as_text(table, names[verdict]).fill_null("").str.strip_chars() == ""
        added = {"vote": pl.col(VOTE), "status": pl.when(blank).then(pl.lit("empty"))}
    if second is not None:
        added[_SECOND] = second
        if "order" not in names:
            added["order"] = pl.when(second).then(pl.lit("BA")).otherwise(pl.lit("AB"))
    dropped = {"vote", "label", "answer"} | ({"margin"} if verdict == "score_a" else set())
    kept = {name: pl.col(column) for name, column in names.items() if name not in dropped}
    selected = [column.alias(name) for name, column in (kept | added).items()]
    rows = Table(table.rows.select("\0row", *selected), table.source, files=table.files)
    kinds = {name: kind for name, kind in KINDS.items() if name in kept or name == "order"}
    if verdict == "score" or "item" not in names:  # ids are made of them
        kinds |= {name: schema.groups for name in (*_PAIR, "system") if name in names}
    rows = parse(rows, kinds)
    if verdict == "score":
        prompts = rows.data if "group" in names else rows.data.rename({"item": "group"})
        return votes_of_scores(rows.with_data(prompts.drop("item", strict=False))), remark
    frame = rows.frame
    if verdict == "score_a":
        difference = pl.col("score_a") - pl.col("score_b")
        frame = frame.with_columns(vote=difference.sign().cast(pl.Int8), margin=difference.abs())
        frame = frame.drop("score_a", "score_b")
    if second is not None:
        vote = pl.when(_SECOND).then(-pl.col("vote")).otherwise("vote")
        frame = frame.with_columns(vote=vote).drop(_SECOND)
    return frame, remark


def _names(table: Table, mapped: Mapping[str, str]) -> dict[str, str]:
    """Return columns by name: those that are mapped, and others under their own names."""
    own = [name for name in (*KINDS, *VERDICTS) if name in table.columns]
    names = {name: name for name in own if name not in mapped.values()} | dict(mapped)
    free = [name for name in ITEM_NAMES if name in table.columns and name not in names.values()]
    return names if "item" in names or not free else names | {"item": free[0]}


def _verdict(names: Mapping[str, str], mapped: Mapping[str, str], table: Table) -> str:
    """Return which column says who is better: the one that is mapped, or one of its own name."""
    chosen = [name for name in VERDICTS if name in mapped]
    if len(chosen) > 1:
        raise InputError(argument="columns", came=chosen, expected="one of them")
    verdict = next((name for name in (*chosen, *VERDICTS) if name in names), None)
    if verdict is None or (verdict == "score_a" and "score_b" not in names):
        raise InputError(
            f"{table.source}: no column of votes among {listing(table.columns)}; {_HOW}: vote, "
            "answer for texts, score (with system) for scores of responses, score_a and score_b "
            "for scores of both",
            argument="columns",
        )
    return verdict


def _require_items(
    names: Mapping[str, str], verdict: str, options: ImportOptions, table: Table
) -> None:
    needed = {"item"} if "item" in names else set(_PAIR)
    # Scores are compared before anything is set.
    constants = set() if verdict == "score" else set(options.constants)
    if verdict == "score":
        needed = {"system"} | needed & {"item", "group"}
    if absent := sorted(needed.difference(names, constants)):
        raise InputError(
            f"{table.source}: no column for {' and '.join(absent)} among "
            f"{listing(table.columns)}; {_HOW}",
            argument="columns",
        )


def _answers(
    table: Table, names: Mapping[str, str], options: ImportOptions, *, turned: bool
) -> tuple[pl.DataFrame, str | None]:
    orders: Iterable[str] = repeat("AB" if turned else options.constants.get("order", "AB"))
    if not turned and "order" in names and "order" not in options.constants:
        orders = parse_column(table, names["order"], schema.orders)
    return votes_of_answers(map(JudgeText, text(table, names["answer"]), orders), options.answer)


FORMAT = Format("table", _recognizes, _read, ("columns", "words", "flip_where", "answer_pattern"))
