"""Langfuse's scores as annotations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.integrations.annotations import OWN, frame_of, identity_of, rows_of, says_the_same

with needs("langfuse", "reading Langfuse's scores"):
    from langfuse.api import CreateScoreRequest, LangfuseAPI
    from langfuse.api.commons import ScoreDataType

if TYPE_CHECKING:
    import polars as pl

    from btdagg.votes.source import Source

# Metadata of an annotation whose score in Langfuse is neither a number nor a category.
DATA_TYPE = "langfuse.data_type"

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
        Annotations (see `btdagg.integrations.annotations`), without the scores of sessions and
        experiments. A score is of kind HUMAN if its source is ANNOTATION, LLM if EVAL, CODE if API;
        what btdagg wrote has the kind that it had. `identifier` is the score's id, unless btdagg
        wrote it.
    """
    scores = (score for score in _scores(client, **filters) if score.subject is not None)
    return frame_of(
        _row(score) for score in scores if score.subject.kind in ("trace", "observation")
    )


def write(annotations: Source, client: LangfuseAPI) -> None:
    """Write annotations as scores.

    The id of a score follows from trace, span, name, annotator and identifier. One that is there
    keeps its time, so that writing twice changes nothing. One that was read from Langfuse keeps its
    id; if it has changed its source becomes API, the only one that can be written. Scores are sent
    fifty at a time, so those sent before a failure stay; writing all again completes them.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them. One with a label is
        categorical, one with a score alone numeric. `span_id` is the observation. A new score has
        the time `created`, or that of writing.
    client : langfuse.api.LangfuseAPI

    Raises
    ------
    InputError
        If an annotation has no trace, or neither label nor score, or Langfuse rejects scores.
    """
    rows = []
    for place, row in rows_of(annotations, "trace_id"):
        if row["label"] is None and row["score"] is None:
            raise InputError(f"{place}: neither label nor score, expected one")
        rows.append(row)
    for start in range(0, len(rows), _PAGE // 2):
        _write(client, rows[start : start + _PAGE // 2])


def _write(client: LangfuseAPI, rows: list[dict[str, Any]]) -> None:
    candidates = [*map(_id_of, rows), *(row["identifier"] for row in rows if row["identifier"])]
    there = {score.id: score for score in _scores(client, id=",".join(candidates))}
    requests = []
    for row in rows:
        score_id = _id_of(row)
        foreign = there.get(row["identifier"])
        if foreign is not None and identity_of(_row(foreign)) == identity_of(row):
            score_id = foreign.id
        known = there.get(score_id)
        if known is None:
            requests.append(_request(row, score_id, row["created"]))
        elif not says_the_same(_row(known), row):
            requests.append(_request(row, score_id, known.timestamp))
    if not requests:
        return
    said = client.scores.create(request=requests)
    if getattr(said, "rejected", 0):
        why = "; ".join(error.message for error in said.errors)
        raise InputError(
            f"annotations: Langfuse rejected {said.rejected} of {len(requests)}: {why}"
        )


def _scores(client: LangfuseAPI, **filters: Any) -> Any:
    """Yield scores, page by page."""
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
    own = metadata.pop(OWN, {})
    subject, value = score.subject, score.value
    label, number = None, own.get("score")
    if score.data_type == ScoreDataType.NUMERIC:
        number = value
    elif score.data_type == ScoreDataType.BOOLEAN:
        label, number = str(value).lower(), float(value)
    else:
        label = value
    if score.data_type not in (ScoreDataType.NUMERIC, ScoreDataType.CATEGORICAL):
        metadata[DATA_TYPE] = str(score.data_type)
    of_trace = subject.kind == "trace"
    return {
        "trace_id": subject.id if of_trace else subject.trace_id,
        "span_id": None if of_trace else subject.id,
        "name": score.name,
        "label": label,
        "score": number,
        "explanation": score.comment,
        "annotator_kind": own.get("annotator_kind", _KINDS[str(score.source)]),
        "annotator": own.get("annotator", score.author_user_id),
        "identifier": own.get("identifier", score.id),
        "metadata": metadata,
        "created": score.timestamp,
    }


def _request(row: Mapping[str, Any], score_id: str, timestamp: Any) -> CreateScoreRequest:
    metadata = dict(row["metadata"])
    own = {key: row[key] for key in ("annotator_kind", "annotator", "identifier")}
    kind = metadata.pop(DATA_TYPE, "NUMERIC" if row["label"] is None else "CATEGORICAL")
    value = row["label"]
    if kind in ("NUMERIC", "BOOLEAN"):
        value = row["score"]
    elif row["score"] is not None:
        own["score"] = row["score"]
    return CreateScoreRequest(
        id=score_id,
        trace_id=row["trace_id"],
        observation_id=row["span_id"],
        name=row["name"],
        value=value,
        data_type=ScoreDataType(kind),
        comment=row["explanation"],
        metadata=metadata | {OWN: own},
        timestamp=timestamp,
    )
