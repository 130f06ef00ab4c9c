"""Exports of annotations: of Phoenix's spans, and of Langfuse's scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg.integrations.annotations import frame_of, votes_of
from btdagg.votes.formats.content import Content, values_of
from btdagg.votes.formats.frames import HUMAN
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.table import listing

# Who a Langfuse score is from.
_SOURCES = {"ANNOTATION": "HUMAN", "EVAL": "LLM", "API": "CODE"}
_KEPT = ("judge", "order", "sample", "template", "temperature", "task", "group", "confidence")
_ITEMS = ("trace_id", "span_id")


def is_phoenix(content: Content) -> bool:
    """Whether spans have annotations."""
    columns = content.columns
    return {"span_id", "annotator_kind"} <= columns and bool(columns & {"name", "annotation_name"})


def is_langfuse(content: Content) -> bool:
    """Whether traces have scores, as the API, an export of the page or of a bucket has them."""
    plain = {column.replace("_", "") for column in content.columns}
    return {"name", "value", "source", "datatype"} <= plain and bool(plain & {"traceid", "subject"})


def read_phoenix(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read annotations as the client and the REST interface return them, or its frames."""
    rows = [_of_phoenix(content, number, each) for number, each in _objects(content)]
    return _votes(content, rows, options, "span_id"), None


def read_langfuse(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read scores of traces and observations."""
    rows = [_of_langfuse(content, number, each) for number, each in _objects(content)]
    of_traces = [row for row in rows if row["trace_id"]]
    others = [row for row in rows if not row["trace_id"] and options.name in (None, row["name"])]
    said = f"scores of sessions or runs, which have no trace: {len(others)}" if others else None
    if not of_traces:
        raise InputError(f"{content.name}: no score has a trace")
    return _votes(content, of_traces, options, "trace_id"), said


def _objects(content: Content) -> Iterator[tuple[int, dict[str, Any]]]:
    if content.is_json:
        return content.objects()
    return enumerate(content.table().frame.iter_rows(named=True), start=1)


def _of_phoenix(content: Content, number: int, each: Mapping[str, Any]) -> dict[str, Any]:
    span, kind = values_of(content, number, each, "span_id", "annotator_kind")
    result = _object(each.get("result"))
    found = {
        key: result.get(key, each.get(f"result.{key}", each.get(key)))
        for key in ("label", "score", "explanation")
    }
    return {
        **found,
        "span_id": span,
        "trace_id": each.get("trace_id"),
        "name": each.get("annotation_name") or each.get("name"),
        "score": _number(found["score"]),
        "annotator_kind": kind,
        "annotator": each.get("user_id"),
        "identifier": each.get("identifier") or each.get("id"),
        "metadata": _object(each.get("metadata")),
    }


def _of_langfuse(content: Content, number: int, given: Mapping[str, Any]) -> dict[str, Any]:
    each = {key.replace("_", "").lower(): value for key, value in given.items()}
    name, value, source, kind = values_of(
        content, number, each, "name", "value", "source", "datatype"
    )
    subject = _object(each.get("subject"))
    of_trace = subject.get("kind") == "trace"
    known = subject.get("traceId") or subject.get("trace_id")
    said = each.get("stringvalue")
    label = said if said not in (None, "") else value if _number(value) is None else None
    if str(source) not in _SOURCES:
        raise InputError(
            f"{content.name}, row {number}: source is {source!r}, expected "
            f"{listing(list(_SOURCES))}"
        )
    return {
        "trace_id": (subject.get("id") if of_trace else known) or each.get("traceid"),
        "span_id": each.get("observationid") or (None if of_trace else subject.get("id")),
        "name": name,
        "label": None if label is None or kind == "NUMERIC" else str(label),
        "score": _number(value),
        "explanation": each.get("comment"),
        "annotator_kind": _SOURCES[str(source)],
        "annotator": each.get("authoruserid"),
        "identifier": each.get("id"),
        "metadata": _object(each.get("metadata")),
    }


def _votes(
    content: Content, rows: list[dict[str, Any]], options: ImportOptions, item: str
) -> pl.DataFrame:
    """Return annotations as rows of judges, or of people where only they annotated."""
    kinds = {row["annotator_kind"] for row in rows if options.name in (None, row["name"])}
    people = options.kind in ("ratings", "labels") or "LLM" not in kinds
    kind = "HUMAN" if people and "HUMAN" in kinds else "LLM" if "LLM" in kinds else "CODE"
    item = options.columns.get("item", item)
    if item not in _ITEMS or set(options.columns) - {"item"}:
        raise InputError(f"--map of annotations takes item alone, {' or '.join(_ITEMS)}")
    words = {word: vote for word, vote in options.words.items() if vote is not None}
    names = {row["name"] for row in rows if row["annotator_kind"] == kind}
    if options.name is None and len(names) > 1:
        raise InputError(
            f"{content.name}: annotations are called {listing(sorted(map(str, names)))}; --name "
            "picks one"
        )
    votes = votes_of(frame_of(rows), name=options.name, kind=kind, item=item, words=words)
    frame = votes.frame
    kept = [name for name in _KEPT if name in frame.columns]
    frame = frame.select("item", "vote", "status", *kept)
    if kind != "HUMAN":
        return frame
    rater = pl.col("judge").fill_null(HUMAN) if "judge" in kept else pl.lit(HUMAN)
    return frame.with_columns(rater=rater).drop("judge", strict=False)


def _object(value: Any) -> dict[str, Any]:
    """Return an object, or the object that a text of JSON is."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    return dict(value) if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
