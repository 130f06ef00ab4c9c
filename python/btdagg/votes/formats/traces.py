"""Exports of annotations: of Phoenix's spans, and of Langfuse's scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg.integrations.annotations import frame_of, votes_of
from btdagg.votes.formats.content import Content, Format, ImportOptions
from btdagg.votes.formats.rows import HUMAN
from btdagg.votes.table import listing

# Who a Langfuse score is from.
_SOURCES = {"ANNOTATION": "HUMAN", "EVAL": "LLM", "API": "CODE"}
_KEPT = ("judge", "order", "sample", "template", "temperature", "task", "group", "confidence")
_ITEMS = ("trace_id", "span_id")


def _is_phoenix(content: Content) -> bool:
    columns = content.columns
    return {"span_id", "annotator_kind"} <= columns and bool(columns & {"name", "annotation_name"})


def _is_langfuse(content: Content) -> bool:
    """Whether traces have scores, as the API, an export of the page or of a bucket has them."""
    columns = {column.replace("_", "") for column in content.columns}
    has_target = bool(columns & {"traceid", "subject"})
    return {"name", "value", "source", "datatype"} <= columns and has_target


def _read_phoenix(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read annotations as the client and the REST interface return them, or its frames."""
    return _votes(content, _rows(content, _of_phoenix), options, "span_id"), None


def _read_langfuse(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read scores of traces and observations."""
    rows = _rows(content, _of_langfuse)
    of_traces = [row for row in rows if row["trace_id"]]
    others = [row for row in rows if not row["trace_id"] and options.name in (None, row["name"])]
    remark = f"scores of sessions or runs, which have no trace: {len(others)}" if others else None
    if not of_traces:
        raise InputError(f"{content.name}: no score has a trace")
    return _votes(content, of_traces, options, "trace_id"), remark


def _rows(
    content: Content, row_of: Callable[[Content, Mapping[str, Any]], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [row_of(content, row) for row in content.objects()]


def _of_phoenix(content: Content, row: Mapping[str, Any]) -> dict[str, Any]:
    result = _object(row.get("result"))
    label, score = (
        result.get(key, row.get(f"result.{key}", row.get(key))) for key in ("label", "score")
    )
    return {
        "label": label,
        "score": _number(score),
        "span_id": row["span_id"],
        "trace_id": row.get("trace_id"),
        "name": row.get("annotation_name") or row.get("name"),
        "annotator_kind": row["annotator_kind"],
        "annotator": row.get("user_id"),
        "identifier": row.get("identifier") or row.get("id"),
        "metadata": _object(row.get("metadata")),
    }


def _of_langfuse(content: Content, row: Mapping[str, Any]) -> dict[str, Any]:
    row = {key.replace("_", "").lower(): value for key, value in row.items()}
    subject = _object(row.get("subject"))
    of_trace = subject.get("kind") == "trace"
    trace = subject.get("traceId") or subject.get("trace_id")
    score, label = _number(row["value"]), row.get("stringvalue")
    if label in (None, ""):
        label = row["value"] if score is None else None
    if row["source"] not in list(_SOURCES):
        raise content.refusal("source", row["source"], listing(_SOURCES))
    return {
        "trace_id": (subject.get("id") if of_trace else trace) or row.get("traceid"),
        "span_id": row.get("observationid") or (None if of_trace else subject.get("id")),
        "name": row["name"],
        "label": None if label is None or row["datatype"] == "NUMERIC" else str(label),
        "score": score,
        "annotator_kind": _SOURCES[row["source"]],
        "annotator": row.get("authoruserid"),
        "identifier": row.get("id"),
        "metadata": _object(row.get("metadata")),
    }


def _votes(
    content: Content, rows: list[dict[str, Any]], options: ImportOptions, item: str
) -> pl.DataFrame:
    """Return annotations as rows of judges, or of people where only they annotated."""
    kinds = {row["annotator_kind"] for row in rows if options.name in (None, row["name"])}
    people = options.kind == "ratings" or "LLM" not in kinds
    kind = "HUMAN" if people and "HUMAN" in kinds else "LLM" if "LLM" in kinds else "CODE"
    item = options.columns.get("item", item)
    if item not in _ITEMS or set(options.columns) - {"item"}:
        expected = f"item alone, {' or '.join(_ITEMS)}, for annotations"
        raise InputError(argument="columns", came=dict(options.columns), expected=expected)
    words = {word: vote for word, vote in options.words.items() if vote is not None}
    names = {str(row["name"]) for row in rows if row["annotator_kind"] == kind}
    if options.name is None and len(names) > 1:
        raise InputError(
            f"{content.name}: annotations are called {listing(sorted(names))}; name chooses which",
            argument="name",
        )
    votes = votes_of(frame_of(rows), name=options.name, kind=kind, item=item, words=words).frame
    votes = votes.select(
        "item", "vote", "status", *(name for name in _KEPT if name in votes.columns)
    )
    if kind != "HUMAN":
        return votes
    rater = pl.col("judge").fill_null(HUMAN) if "judge" in votes.columns else pl.lit(HUMAN)
    return votes.with_columns(rater=rater).drop("judge", strict=False)


def _object(value: Any) -> dict[str, Any]:
    """Return an object, or the object that a text of JSON is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


_USES = ("columns", "words", "name")
FORMATS = (
    Format("phoenix", _is_phoenix, _read_phoenix, _USES),
    Format("langfuse", _is_langfuse, _read_langfuse, _USES),
)
