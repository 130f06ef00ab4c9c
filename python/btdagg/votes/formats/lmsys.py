"""Pairs of LMSYS: votes of people in the arena, MT-Bench's human judgments, human preferences."""

from __future__ import annotations

import polars as pl

from btdagg.votes import schema
from btdagg.votes.formats.content import Content, Format, ImportOptions
from btdagg.votes.formats.rows import HUMAN
from btdagg.votes.schema import parse
from btdagg.votes.source import ITEM_NAMES
from btdagg.votes.table import Table, as_text, refuse
from btdagg.votes.words import VOTE, as_words, voted

_WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
_WORDS = as_words(
    {
        "model_a": "A",
        "model_b": "B",
        "tie (bothbad)": "tie",
        "both_bad": "tie",
        "bothbad": "tie",
        "tie (inconsistent)": "tie",
    }
)
_ITEMS = ("question_id", *ITEM_NAMES)
# Names under which LMSYS publishes people; other judges are models.
_PEOPLE = r"^(arena_user_.+|(arena_user|author|expert|human|user)(_\d+)?)$"


def _recognizes(content: Content) -> bool:
    columns = content.columns
    return {"model_a", "model_b"} <= columns and ("winner" in columns or set(_WINNERS) <= columns)


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read comparisons of two models, of which A was shown first, or on the left."""
    table = content.table()
    if "winner" in table.columns:
        table = voted(table, "winner", {**_WORDS, **options.words})
    else:
        table = _of_flags(table)
    question = next((name for name in _ITEMS if name in table.columns), "question_id")
    names = {"group": question, "system_a": "model_a", "system_b": "model_b"}
    names |= {name: name for name in ("judge", "turn", "language") if name in table.columns}
    columns = [as_text(table, column).alias(name) for name, column in names.items()]
    votes = Table(table.rows.select("\0row", *columns, pl.col(VOTE).alias("vote")), table.source)
    kinds = dict.fromkeys(("group", "system_a", "system_b"), schema.groups)
    frame = parse(votes, kinds).frame.with_columns(order=pl.lit("AB"))
    if "judge" not in frame:
        return frame.with_columns(rater=pl.lit(HUMAN)), None
    if frame.select(pl.col("judge").str.contains(_PEOPLE).all()).item():
        frame = frame.with_columns(rater=pl.col("judge").fill_null(HUMAN)).drop("judge")
    return frame, None


def _of_flags(table: Table) -> Table:
    """Read the three columns of which one is 1."""
    table = parse(table, dict.fromkeys(_WINNERS, schema.whole_numbers))
    flags = [pl.col(name) for name in _WINNERS]
    refuse(table, pl.sum_horizontal(flags) != 1, "winner_tie", "a 1 in one of the three columns")
    return table.with_columns([(flags[0] - flags[1]).cast(pl.Int8).alias(VOTE)])


FORMAT = Format("lmsys", _recognizes, _read, ("words",))
