"""Any table, whose columns are named by the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat

import polars as pl

from btdagg._core import InputError
from btdagg.votes import schema
from btdagg.votes.formats.content import Content
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.formats.scores import votes_of_scores
from btdagg.votes.formats.texts import Said, heard
from btdagg.votes.schema import Parser, parse, parse_column
from btdagg.votes.source import ITEM_NAMES
from btdagg.votes.table import Table, as_text, listing, text
from btdagg.votes.words import VOTE, shown_second, voted

VERDICTS = ("vote", "label", "answer", "score", "score_a")


def _temperatures(table: Table, column: str) -> Parser:
    """Temperatures as text, such as 0.5 and default: equal numbers are written in one way."""
    named = schema.names(table, column).value
    number = as_text(table, column).str.strip_chars().cast(pl.Float64, strict=False)
    value = pl.coalesce(number.cast(pl.String), named)
    return Parser(value, pl.lit(False), value)


KINDS: dict[str, schema.Kind] = {
    "item": schema.ids,
    **{name: kind for name, kind in schema.VOTES.kinds.items() if name not in ("item", "vote")},
    "temperature": _temperatures,
    "rater": schema.ids,
    **dict.fromkeys(("group", "system", "system_a", "system_b"), schema.names),
    "confidence": schema.fractions,
    "margin": schema.amounts,
    **dict.fromkeys(("score", "score_a", "score_b"), schema.finite_numbers),
}
_PAIR = ("group", "system_a", "system_b")


def is_table(content: Content) -> bool:
    """Whether a file has the columns of votes, or of scores of responses, under their names."""
    columns = content.columns
    scored = {"system", "score"} <= columns and bool(columns & {"group", "item"})
    return scored or (bool(columns & {"item", *ITEM_NAMES}) and "vote" in columns)


def read_mapped(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read the columns that a user names, and those that have the names of docs/data.md."""
    columns = {name.lower(): column.strip().lower() for name, column in options.columns.items()}
    table = content.table()
    for name, column in columns.items():
        if column not in table.columns:
            raise InputError(
                f"--map {name}={column}: no column {column!r}; {table.source} has "
                f"{listing(table.columns)}"
            )
    known = [name for name in (*KINDS, *VERDICTS) if name in table.columns]
    names = {name: name for name in known if name not in columns.values()} | columns
    if "item" not in names:
        free = (name for name in ITEM_NAMES if name in table.columns)
        its = next((name for name in free if name not in names.values()), None)
        names |= {} if its is None else {"item": its}
    verdict = _verdict(names, columns, table)
    _require_items(names, options.constants, verdict, table)
    flipped = None if options.flip_where is None else shown_second(table, *options.flip_where)
    table, hint = _with_verdict(table, names, verdict, flipped, options)
    kept = [
        pl.col(column).alias(name)
        for name, column in names.items()
        if (name not in VERDICTS or name == "score") and f"\0{name}" not in table.columns
    ]
    added = [
        pl.col(f"\0{c}").alias(c) for c in ("vote", "status", "margin") if f"\0{c}" in table.columns
    ]
    if flipped is not None and "order" not in names:
        added.append(pl.when(flipped).then(pl.lit("BA")).otherwise(pl.lit("AB")).alias("order"))
    found = Table(table.rows.select("\0row", *kept, *added), table.source, files=table.files)
    kinds = {n: k for n, k in KINDS.items() if n in names or n == "order"}
    if verdict == "score" or "item" not in names:  # ids are made of them
        kinds |= {name: schema.groups for name in (*_PAIR, "system") if name in names}
    found = parse(found, kinds)
    if verdict == "score":
        prompts = found.data if "group" in names else found.data.rename({"item": "group"})
        return votes_of_scores(found.renumbered(prompts.drop("item", strict=False))), hint
    return found.frame, hint


def _verdict(names: Mapping[str, str], mapped: Mapping[str, str], table: Table) -> str:
    """Return which column says who is better: the one that is mapped, or one of its own name."""
    several = [name for name in VERDICTS if name in mapped]
    if len(several) > 1:
        raise InputError(f"--map names {' and '.join(several)}, expected one of them")
    found = next((name for name in (*several, *VERDICTS) if name in names), None)
    if found is None:
        raise InputError(
            f"{table.source}: no column of votes; found {listing(table.columns)}; name it, as in "
            "--map item=id,vote=winner (or answer= for texts, score= for scores of responses)"
        )
    if found == "score_a" and "score_b" not in names:
        raise InputError("--map score_a wants score_b too")
    return found


def _require_items(
    names: Mapping[str, str], constants: Mapping[str, str], verdict: str, table: Table
) -> None:
    if verdict == "score":
        known: set[str] = set(names)  # they are compared before anything is set
        wanted = [("system",), ("group", "item")]
    else:
        known = {*names, *constants}
        wanted = [("item", *_PAIR)] if "item" in names else [(name,) for name in _PAIR]
    for several in wanted:
        if not any(name in known for name in several):
            raise InputError(
                f"{table.source}: no column for {several[0]!r}; found {listing(table.columns)}; "
                + (
                    "scores of responses want --map group=...,system=...,score=..."
                    if verdict == "score"
                    else "votes want --map item=..., or group=...,system_a=...,system_b=..."
                )
            )


def _with_verdict(
    table: Table,
    names: Mapping[str, str],
    verdict: str,
    flipped: pl.Expr | None,
    options: ImportOptions,
) -> tuple[Table, str | None]:
    """Add the columns of what each row says, under names that no column has."""
    hint = None
    if verdict == "score":
        if flipped is not None:
            raise InputError("--flip-where wants votes on pairs, and score is of one response")
        return table, None
    if verdict == "answer":
        orders: Iterable[str] = repeat(options.constants.get("order", "AB"))
        if flipped is not None:  # says itself which rows are to be turned
            orders = repeat("AB")
        elif "order" in names and "order" not in options.constants:
            orders = parse_column(table, names["order"], schema.orders)
        said = heard(map(Said, text(table, names["answer"]), orders), options.answer)
        vote = pl.Series(said.votes, dtype=pl.Int8)
        table = Table(table.frame, table.source).with_columns(
            [pl.Series("\0status", said.statuses), vote.alias(VOTE)]
        )
        hint = said.hint
    elif verdict == "score_a":
        table = table.with_columns(
            [pl.col(names[name]).alias(f"\0{name}") for name in ("score_a", "score_b")]
        )
        kinds = {f"\0{name}": schema.finite_numbers for name in ("score_a", "score_b")}
        table = parse(table, kinds)
        difference = pl.col("\0score_a") - pl.col("\0score_b")
        table = table.with_columns(
            [difference.sign().cast(pl.Int8).alias(VOTE), difference.abs().alias("\0margin")]
        )
    else:
        table = voted(table, names[verdict], options.words)
        blank = as_text(table, names[verdict]).fill_null("").str.strip_chars() == ""
        status = pl.when(blank).then(pl.lit("empty"))
        table = table.with_columns([status.alias("\0status")])
    if flipped is not None:
        table = table.with_columns(
            [pl.when(flipped).then(-pl.col(VOTE)).otherwise(VOTE).alias(VOTE)]
        )
    return table, hint
