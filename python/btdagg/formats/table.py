"""Any table, whose columns are named by the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import polars as pl

from btdagg._util.errors import InputError, expect, forbid
from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import JudgeText, votes_of_answers, votes_of_scores
from btdagg.remarks import guessed_numbers
from btdagg.votes import schema
from btdagg.votes.scale import PAIRS
from btdagg.votes.schema import ITEM_NAMES, lead, parse, parse_column
from btdagg.votes.source import literal, read_table, with_item
from btdagg.votes.strength import PROBABILITIES, StrengthKind, with_votes
from btdagg.votes.table import NUMBER, Table, as_text, listing, refuse, text
from btdagg.votes.verdicts import are_guessed, verdicts_on, with_orders
from btdagg.votes.words import UNPARSABLE

VERDICTS = ("vote", "label", "answer", "score", "score_a")
# Columns that are votes where no other is.
_ALONE: dict[str, StrengthKind] = {"margin": "margin", "p_minus": "probabilities"}
_PAIR = ("group", "system_a", "system_b")
_GROUP = " (the prompt of each row; number the rows if no two have the same)"
_OF_PAIRS = ("vote", "answer", "margin", "score_a", "p_tie")
_STATUS = "\0status"
WHICH = {"columns": {"item": "id", "vote": "winner"}}
"""An example of what says which columns a table has."""

KINDS: dict[str, schema.Kind] = {
    "item": schema.ids,
    "criterion": schema.names,
    **{name: kind for name, kind in schema.VOTES.kinds.items() if name not in ("item", "vote")},
    **dict.fromkeys(("rater", "group", "system", "system_a", "system_b"), schema.names),
    **dict.fromkeys(("confidence", "strength", *PROBABILITIES), schema.fractions),
    "margin": schema.amounts,
    **dict.fromkeys(("score", "score_a", "score_b"), schema.finite_numbers),
}


def _recognizes(content: Content) -> bool:
    columns = content.columns
    has_scores = {"system", "score"} <= columns and bool(columns & {"group", "item"})
    has_votes = bool(columns & {"vote", "label", "answer", "margin", "score"})
    has_votes |= columns >= {"score_a", "score_b"} or columns >= {*PROBABILITIES}
    has_votes &= not (columns >= {"label", *PROBABILITIES})  # as decisions have
    return has_scores or (bool(columns & {"item", *ITEM_NAMES}) and has_votes)


def are_labels(content: Content, options: ImportOptions) -> bool:
    """Whether the verdicts of a table are labels: no other column has any, or is named for them."""
    columns = {*content.columns, *(name.lower() for name in options.columns)}
    return "label" in columns and not columns & {*VERDICTS[2:], "vote", *_ALONE}


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    mapped = [name.strip().lower() for name in options.columns]
    raw = content.table()
    columns = {name: literal(column, raw) for name, column in options.columns.items()}
    table = with_item(read_table(raw, [], columns=columns))
    remark: str | None = None
    if graded := _columns_of_grades(table, mapped, options):
        if options.grades and "answer" in mapped:
            votes, remark = _answers(table, options)
            table = table.with_columns([votes["vote"].alias("answer")])
        return _grades(table, graded, mapped), remark
    verdict = _verdict(table, mapped)
    _require_items(table, verdict, options)
    table = with_orders(table, options.order)
    added: dict[str, pl.Expr | pl.Series] = {}
    if verdict == "answer":
        votes, remark = _answers(table, options)
        added = {"vote": votes["vote"], "status": votes["status"]}
        table = Table(table.frame, table.source)
    elif verdict in ("vote", "label"):
        is_guess = are_guessed(table, verdict, options.words)
        remark = guessed_numbers(f"{verdict}s") if is_guess else None
        words = as_text(table, verdict)
        blank = words.fill_null("").str.strip_chars() == ""
        status = pl.when(blank).then(pl.lit("empty")).alias(_STATUS)
        table = table.with_columns([words.alias("vote"), status])
        table = parse(table, {"vote": verdicts_on(PAIRS, options.words)})
        added = {"vote": pl.col("vote"), "status": pl.col(_STATUS)}
    dropped = {"vote", "label", "answer"} | ({"margin"} if verdict == "score_a" else set())
    names = [name for name in (*KINDS, *mapped) if name in table.columns]
    kept = {name: pl.col(name) for name in names if name not in dropped}
    selected = [column.alias(name) for name, column in (kept | added).items()]
    rows = Table(table.rows.select(NUMBER, *selected), table.source, files=table.files)
    kinds = {name: KINDS[name] for name in kept if name in KINDS}
    if "margin" in kept and verdict != "score":
        kinds["margin"] = schema.margins
    if verdict == "score" or "item" not in kept:  # ids are made of them
        kinds |= {name: schema.groups for name in (*_PAIR, "system") if name in kept}
    rows = parse(rows, kinds)
    if verdict == "score":
        prompts = rows.data if "group" in kept else rows.data.rename({"item": "group"})
        return votes_of_scores(rows.with_data(prompts.drop("item", strict=False))), remark
    frame = rows.frame
    if verdict == "score_a":
        difference = lead(pl.col("score_a"), pl.col("score_b"))
        frame = frame.with_columns(vote=difference.sign().cast(pl.Int8), margin=difference.abs())
        frame = frame.drop("score_a", "score_b")
    elif verdict in _ALONE:
        frame = with_votes(rows, _ALONE[verdict]).frame
    elif "margin" in kept:
        _refuse_other_signs(rows)
    return frame.with_columns(pl.col("margin").abs()) if "margin" in kept else frame, remark


def _columns_of_grades(
    table: Table, mapped: Sequence[str], options: ImportOptions
) -> list[tuple[str, str, str]]:
    if options.wide:
        wide = options.wide.items()
        return [(kind, n, c.strip().lower()) for kind, columns in wide for n, c in columns.items()]
    are_compared = "system" in table.columns or {*_OF_PAIRS} & {*table.columns}
    if not options.grades and (are_compared or "score" not in table.columns):
        return []
    chosen = [name for name in VERDICTS if name in mapped]
    verdict = next((name for name in (*chosen, "score") if name in table.columns), None)
    return [("", "", verdict or _verdict(table, mapped))]


def _grades(
    table: Table, columns: Sequence[tuple[str, str, str]], mapped: Sequence[str]
) -> pl.DataFrame:
    absent = [] if "item" in table.columns else sorted({"group", "system"} - {*table.columns})
    _refuse_without(table, absent)
    dropped = {*VERDICTS, *(column for _, _, column in columns)}
    kept = [n for n in (*KINDS, *mapped) if n in table.columns and n not in dropped]
    parts = []
    for kind, name, column in columns:
        added = [pl.lit(name).alias(kind)] if kind else []
        score = as_text(table, column)
        if column == "score" and "label" in table.columns:
            label = as_text(table, "label").str.strip_chars()
            score = pl.when(label.str.to_uppercase() == UNPARSABLE).then(label).otherwise(score)
        cells = table.rows.select(NUMBER, *dict.fromkeys(kept), score.alias("score"))
        parts.append(cells.with_columns(added))
    whole = table.with_data(pl.concat(parts).sort(NUMBER, maintain_order=True))
    rows = parse(whole, {name: KINDS[name] for name in kept if name in KINDS})
    if {"item", "system"} <= {*kept}:
        several = pl.col("system").n_unique().over("item") > 1
        expected = "an item for each system's response; {advice}"
        refuse(rows, several, "item", expected, {"columns": {"group": "..."}})
    return rows.numbered()


def _refuse_other_signs(rows: Table) -> None:
    """Refuse margins whose sign is not that of their vote; sizes have none."""
    vote, margin = pl.col("vote"), pl.col("margin")
    is_signed = ((vote == -1) & (margin < 0)).any()
    is_other = ((vote == 1) & (margin < 0)) | ((vote == -1) & (margin > 0) & is_signed)
    expected = "a margin with the same sign as its vote, or sizes of at least 0 in all rows"
    refuse(rows, is_other, "margin", expected)


def _verdict(table: Table, mapped: Sequence[str]) -> str:
    chosen = [name for name in VERDICTS if name in mapped]
    expect(len(chosen) <= 1, "columns", chosen, "one of them")
    names = (*chosen, *VERDICTS, *_ALONE)
    verdict = next((name for name in names if name in table.columns), None)
    needed = {"score_a": ("score_b",), "p_minus": PROBABILITIES}.get(str(verdict), ())
    if verdict is None or not {*needed} <= {*table.columns}:
        raise InputError(
            f"{table.source}: no column of votes among {listing(table.columns)}; name it by "
            "{advice}: vote, answer (texts with a verdict), score (with system: scores of "
            "responses), score_a and score_b (scores of both sides), margin (A's score minus "
            "B's), or p_minus, p_tie and p_plus",
            advice=WHICH,
        )
    return verdict


def _require_items(table: Table, verdict: str, options: ImportOptions) -> None:
    names = set(table.columns)
    needed = {"item"} if "item" in names else set(_PAIR)
    if verdict == "score":
        needed = {"system", "item" if "item" in names else "group"}
    else:  # scores are compared before anything is set
        names |= set(options.constants)
    _refuse_without(table, sorted(needed - names))


def _refuse_without(table: Table, absent: Sequence[str]) -> None:
    example = {"group": "prompt", "item": "id", "system": "model"}
    forbid(
        absent,
        f"{table.source}: no column for {' and '.join(absent)} among {listing(table.columns)}"
        f"{_GROUP if 'group' in absent else ''}; name it by {{advice}}",
        advice={"columns": {name: example.get(name, "NAME") for name in absent}},
    )


def _answers(table: Table, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    orders: Iterable[str] = repeat(options.constants.get("order", "AB"))
    if "order" in table.columns and "order" not in options.constants:
        orders = parse_column(table, "order", schema.orders)
    return votes_of_answers(map(JudgeText, text(table, "answer"), orders), options.answer)


_USES = ("columns", "words", "order", "answer_pattern", "grades", "wide")
FORMAT = Format("table", _recognizes, _read, _USES)
