"""Langfuse's scores as annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.lazy import pl
from btdagg.integrations.annotations import (
    OWN,
    changes,
    frame_of,
    identity_of,
    rows_of,
    truth_of,
)

with needs("langfuse", "reading Langfuse's scores"):
    from langfuse.api import CreateScoreRequest, LangfuseAPI
    from langfuse.api.commons import ScoreDataType

if TYPE_CHECKING:
    from btdagg.votes.source import Source

_KINDS = {"ANNOTATION": "HUMAN", "EVAL": "LLM", "API": "CODE"}
_PAGE = 100  # the most that Langfuse gives, and takes
_FIELDS = "details,subject,annotation"


def read(client: LangfuseAPI, **filters: Any) -> pl.DataFrame:
    """Read the scores of traces and observations.

    Parameters
    ----------
    client : langfuse.api.LangfuseAPI
        ``langfuse.get_client().api``.
    **filters
        Arguments of `client.scores.get_many`, such as `name`, `trace_id` or `from_timestamp`.

    Returns
    -------
    polars.DataFrame
        Annotations (see `btdagg.integrations.annotations`), without scores of sessions and
        experiments. Source ANNOTATION is kind HUMAN, EVAL is LLM, API is CODE; what btdagg wrote
        keeps its kind and identifier, else `identifier` is the score's id.
    """
    scores = (score for score in _scores(client, **filters) if score.subject is not None)
    return frame_of(
        _row(score) for score in scores if score.subject.kind in ("trace", "observation")
    )


def write(annotations: Source, client: LangfuseAPI) -> None:
    """Write annotations as scores.

    The id of a score follows from trace, span, name, annotator and identifier, so writing twice
    changes nothing. A score read from Langfuse keeps its id; if changed, its source becomes API.
    Scores are sent fifty at a time: after a failure, writing all again completes them.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them. With a label categorical,
        with a score alone numeric, true with 1 or false with 0 boolean. `span_id` is the
        observation.
    client : langfuse.api.LangfuseAPI
    """
    rows = [row for _, row in rows_of(annotations, "trace_id")]
    if any(row["label"] is None and row["score"] is None for row in rows):
        raise InputError("annotations: a row has neither label nor score, expected one of them")
    for start in range(0, len(rows), _PAGE // 2):
        _write(client, rows[start : start + _PAGE // 2])


def _write(client: LangfuseAPI, rows: list[dict[str, Any]]) -> None:
    ids = [*map(_id_of, rows), *(row["identifier"] for row in rows if row["identifier"])]
    stored = [_row(score) for score in _scores(client, id=",".join(ids))]
    requests = [_request(row, old) for row, old in changes(rows, stored)]
    reply: Any = client.scores.create(request=requests) if requests else None
    if getattr(reply, "rejected", 0):
        why = "; ".join(error.message for error in reply.errors)
        raise InputError(
            f"annotations: Langfuse rejected {reply.rejected} of {len(requests)}: {why}"
        )


def _scores(client: LangfuseAPI, **filters: Any) -> Any:
    filters = {"limit": _PAGE, **filters}
    while True:
        page = client.scores.get_many(fields=_FIELDS, **filters)
        yield from page.data
        if not page.meta.cursor:
            return
        filters["cursor"] = page.meta.cursor


def _id_of(row: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity_of(row)).encode()).hexdigest()[:32]


def _row(score: Any) -> dict[str, Any]:
    metadata = dict(score.metadata or {})
    own_fields = metadata.pop(OWN, {})
    subject, value = score.subject, score.value
    label, number = value, own_fields.get("score")
    if score.data_type == ScoreDataType.NUMERIC:
        label, number = None, value
    elif score.data_type == ScoreDataType.BOOLEAN:
        label, number = str(value).lower(), float(value)
    of_trace = subject.kind == "trace"
    return {
        "id": score.id,
        "trace_id": subject.id if of_trace else subject.trace_id,
        "span_id": None if of_trace else subject.id,
        "name": score.name,
        "label": label,
        "score": number,
        "explanation": score.comment,
        "annotator_kind": own_fields.get("annotator_kind", _KINDS[str(score.source)]),
        "annotator": own_fields.get("annotator", score.author_user_id),
        "identifier": own_fields.get("identifier", score.id),
        "metadata": metadata,
        "created": score.timestamp,
    }


def _request(row: Mapping[str, Any], old: Mapping[str, Any] | None) -> CreateScoreRequest:
    own_fields = {key: row[key] for key in ("annotator_kind", "annotator", "identifier")}
    value, kind = row["label"], ScoreDataType.CATEGORICAL
    if truth_of(row) is not None:
        value, kind = row["score"], ScoreDataType.BOOLEAN
    elif value is None:
        value, kind = row["score"], ScoreDataType.NUMERIC
    elif row["score"] is not None:
        own_fields["score"] = row["score"]
    return CreateScoreRequest(
        id=_id_of(row) if old is None else old["id"],
        trace_id=row["trace_id"],
        observation_id=row["span_id"],
        name=row["name"],
        value=value,
        data_type=kind,
        comment=row["explanation"],
        metadata=row["metadata"] | {OWN: own_fields},
        timestamp=(old or row)["created"],
    )
