"""Assessments of MLflow traces as annotations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import forbid
from btdagg._util.extras import needs
from btdagg._util.lazy import pl
from btdagg.integrations.annotations import (
    ERROR,
    OWN,
    changes,
    frame_of,
    rows_of,
    truth_of,
)

with needs("mlflow", "reading MLflow's traces"):
    import mlflow
    from mlflow.entities import (
        Assessment,
        AssessmentError,
        AssessmentSource,
        Expectation,
        Feedback,
        Trace,
    )

if TYPE_CHECKING:
    from btdagg.votes.source import Source

EXPECTATION = "mlflow.expectation"  # in the metadata of an annotation that is one in MLflow

_KINDS = {"LLM_JUDGE": "LLM", "HUMAN": "HUMAN", "CODE": "CODE"}
_SOURCES = {kind: source for source, kind in _KINDS.items()}


def read(traces: Iterable[Trace] | None = None, **search: Any) -> pl.DataFrame:
    """Read the assessments of traces.

    Parameters
    ----------
    traces : iterable of mlflow.entities.Trace, optional
        By default those that `mlflow.search_traces` finds.
    **search
        Arguments of `mlflow.search_traces`, such as `locations` and `filter_string`.

    Returns
    -------
    polars.DataFrame
        Annotations (see `btdagg.integrations.annotations`), without feedback that is overridden. A
        number is the score, any other value the label. `identifier` is the assessment's id, unless
        btdagg wrote it. An expectation has the key ``mlflow.expectation`` in its metadata, a failed
        feedback ``btdagg.error``.
    """
    if traces is None:
        search = {"include_spans": False, **search}
        traces = mlflow.search_traces(return_type="list", **search)
    return frame_of(_row(item) for trace in traces for item in _assessments(trace))


def write(annotations: Source) -> None:
    """Log annotations as assessments of their traces.

    An annotation replaces an assessment with the same trace, span, name, annotator and identifier,
    so writing twice changes nothing, and writing again after a failure completes it.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them; with the metadata key
        ``mlflow.expectation`` an expectation, else feedback. The value is the label, else the
        score, or a boolean: true with 1, false with 0.
    """
    stored: dict[str, list[dict[str, Any]]] = {}
    rows = list(rows_of(annotations, "trace_id"))
    for place, row in rows:  # all before the first is written
        trace_id = row["trace_id"]
        if trace_id not in stored:
            trace = mlflow.get_trace(trace_id, silent=True)
            forbid(trace is None, f"{place}, column trace_id: MLflow has no trace {trace_id!r}")
            stored[trace_id] = [_row(assessment) for assessment in _assessments(trace)]
    for row, old in changes((row for _, row in rows), chain.from_iterable(stored.values())):
        if old is None:
            mlflow.log_assessment(row["trace_id"], _assessment(row))
        else:
            # An update takes no text away: an empty one replaces it.
            changed = _assessment(row | {"explanation": row["explanation"] or ""})
            mlflow.update_assessment(row["trace_id"], old["id"], changed)


def _assessments(trace: Trace) -> list[Assessment]:
    """Feedback and expectations of a trace, without those that others override."""
    return [
        item
        for item in trace.info.assessments
        if isinstance(item, Feedback | Expectation) and item.valid is not False
    ]


def _row(assessment: Assessment) -> dict[str, Any]:
    metadata: dict[str, Any] = dict(assessment.metadata or {})
    own_fields = json.loads(metadata.pop(OWN, "{}"))
    metadata = own_fields.get("metadata", metadata)
    value: Any = assessment.value
    score = own_fields.get("score")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value, score = None, float(value)
    elif value is not None and not isinstance(value, str):
        value = json.dumps(value)
    if isinstance(assessment, Expectation):
        metadata[EXPECTATION] = True
    elif assessment.feedback.error is not None:
        error = assessment.feedback.error.to_dictionary()
        metadata[ERROR] = {key: text for key, text in error.items() if text is not None}
    source = assessment.source
    return {
        "id": assessment.assessment_id,
        "trace_id": assessment.trace_id,
        "span_id": assessment.span_id,
        "name": assessment.name,
        "label": value,
        "score": score,
        "explanation": assessment.rationale or own_fields.get("explanation") or None,
        "annotator_kind": _KINDS.get(source.source_type, "CODE"),
        "annotator": source.source_id,
        "identifier": own_fields.get("identifier", assessment.assessment_id),
        "metadata": metadata,
        "created": datetime.fromtimestamp(assessment.create_time_ms / 1000, UTC),
    }


def _assessment(row: Mapping[str, Any]) -> Assessment:
    metadata = dict(row["metadata"])
    is_expectation, error = metadata.pop(EXPECTATION, False), metadata.pop(ERROR, None)
    # What MLflow has no field for; the metadata too, of which it keeps texts alone.
    own_fields = {"identifier": row["identifier"], "metadata": metadata}
    value, truth = row["score"] if row["label"] is None else row["label"], truth_of(row)
    if row["label"] is not None and row["score"] is not None:
        own_fields["score"] = row["score"]
    if is_expectation:
        own_fields["explanation"] = row["explanation"]
    texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
    fields: dict[str, Any] = {
        "name": row["name"],
        "value": value if truth is None else truth,
        "source": AssessmentSource(_SOURCES[row["annotator_kind"]], row["annotator"]),
        "trace_id": row["trace_id"],
        "span_id": row["span_id"],
        "metadata": texts | {OWN: json.dumps(own_fields)},
    }
    if row["created"] is not None:
        fields["create_time_ms"] = round(row["created"].timestamp() * 1000)
    if is_expectation:
        return Expectation(**fields)
    if error is not None:
        fields["error"] = AssessmentError.from_dictionary(error)
    return Feedback(**fields, rationale=row["explanation"])
