"""Annotations of AlpacaEval: preferences from 1 to 2, which are B's probability plus 1."""

from __future__ import annotations

import polars as pl

from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import INPUT
from btdagg.votes import schema
from btdagg.votes.schema import Parser, lead, parse
from btdagg.votes.table import Table, as_text

_NAMES = {"group": "instruction", "system_a": "generator_1", "system_b": "generator_2"}
_MORE = {"judge": "annotator", INPUT: "input"}
_MIDDLE = 1.5


def _recognizes(content: Content) -> bool:
    return {*_NAMES.values(), "preference"} <= content.columns


def _read(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    table = parse(content.table(), {"preference": _preferences})
    names = _NAMES | {name: column for name, column in _MORE.items() if column in table.columns}
    texts = [as_text(table, column).alias(name) for name, column in names.items()]
    preference = pl.col("preference")
    ahead = lead(pl.lit(_MIDDLE), preference)
    rows = Table(
        table.rows.select(
            "\0row",
            *texts,
            ahead.sign().cast(pl.Int8).alias("vote"),
            (preference - 1).alias("p_minus"),
            pl.when(preference.is_not_null()).then(0.0).alias("p_tie"),
            (2 - preference).alias("p_plus"),
            pl.when(preference.is_null()).then(pl.lit("empty")).alias("status"),
        ),
        table.source,
    )
    frame = parse(rows, dict.fromkeys(_NAMES, schema.groups)).frame
    is_weighted = frame.select((~pl.col("p_minus").is_in([0.0, 0.5, 1.0])).any()).item()
    return frame if is_weighted else frame.drop("p_minus", "p_tie", "p_plus"), None


def _preferences(table: Table, column: str) -> Parser:
    parser = schema.finite_numbers(table, column)
    value = pl.when(parser.value == 0).then(_MIDDLE).otherwise(parser.value)  # both are ties
    bad = ~value.is_between(1, 2)
    return Parser(value, ~bad, value, [*parser.checks, (bad, "0, or a number from 1 to 2")])


FORMAT = Format("alpaca-eval", _recognizes, _read)
