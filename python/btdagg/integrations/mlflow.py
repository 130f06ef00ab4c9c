"""Assessments of MLflow traces as annotations, and a scorer that calibrates judges' votes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.integrations.annotations import (
    ERROR,
    OWN,
    annotations_of,
    frame_of,
    identity_of,
    rows_of,
    says_the_same,
    votes_of,
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
    from mlflow.genai.scorers import Scorer

if TYPE_CHECKING:
    import polars as pl

    from btdagg.votes.source import Source

# Metadata of an annotation that is an expectation in MLflow; and of one whose value there, neither
# text nor a number, is the label as JSON.
EXPECTATION, VALUE = "mlflow.expectation", "mlflow.value"

_KINDS = {"LLM_JUDGE": "LLM", "HUMAN": "HUMAN", "CODE": "CODE"}
_SOURCES = {kind: source for source, kind in _KINDS.items()}


def read(traces: Iterable[Trace] | None = None, **search: Any) -> pl.DataFrame:
    """Read the assessments of traces.

    Parameters
    ----------
    traces : iterable of mlflow.entities.Trace, optional
        Those that `mlflow.search_traces` finds, unless given.
    **search
        Arguments of `mlflow.search_traces`, such as `locations` and `filter_string`.

    Returns
    -------
    polars.DataFrame
        Annotations (see `btdagg.integrations.annotations`), one per feedback or expectation that no
        other one overrides. A value that is text is the label, a number the score. `identifier` is
        the assessment's id, unless btdagg wrote it. An expectation has the key
        ``mlflow.expectation`` in its metadata, a failed feedback ``btdagg.error``.
    """
    if traces is None:
        search = {"include_spans": False, **search}
        traces = mlflow.search_traces(return_type="list", **search)
    return frame_of(_row(each) for trace in traces for each in _assessments(trace))


def write(annotations: Source) -> None:
    """Log annotations as assessments of their traces.

    One that agrees in trace, span, name, annotator and identifier with an assessment of the trace
    updates it, and does nothing if that says the same, so writing twice changes nothing. Each is
    logged by itself: what was logged before a failure stays, and writing all again completes it.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them. One with the key
        ``mlflow.expectation`` in its metadata becomes an expectation, any other one feedback. The
        label is the value, or the score where there is no label. `created` is kept for new
        assessments.

    Raises
    ------
    InputError
        If a trace is not known or not given, or an assessment cannot become what a row says; the
        message names the row.
    """
    stored: dict[str, dict[tuple[Any, ...], Assessment]] = {}
    rows = list(rows_of(annotations, "trace_id"))
    for place, row in rows:  # all before the first is written
        trace_id = row["trace_id"]
        if trace_id not in stored:
            trace = mlflow.get_trace(trace_id, silent=True)
            if trace is None:
                raise InputError(f"{place}, column trace_id: MLflow has no trace {trace_id!r}")
            stored[trace_id] = {identity_of(_row(each)): each for each in _assessments(trace)}
    for place, row in rows:
        trace_id = row["trace_id"]
        old = stored[trace_id].get(identity_of(row))
        if old is None:
            mlflow.log_assessment(trace_id, _assessment(row))
        elif not says_the_same(_row(old), row):
            new = _assessment(row, old)
            if type(new) is not type(old):
                kind = type(old).__name__.lower()
                raise InputError(f"{place}: in MLflow it is of type {kind}, which cannot change")
            mlflow.update_assessment(trace_id, old.assessment_id, new)


class DavidsonScorer(Scorer):  # type: ignore[misc]
    """An MLflow scorer: the calibrated label of a trace, from the judges' votes that it has.

    Parameters
    ----------
    model : DavidsonModel
    votes : str, optional
        Name of the assessments by LLM judges that are votes; needed where they have several names.
    words : mapping of str to -1, 0, 1 or A, tie, B; optional
        What other words mean; see `btdagg.integrations.annotations.votes_of`.
    name : str
        Name of the feedback.

    Examples
    --------
    >>> scorer = DavidsonScorer(model=model, votes="preference")  # doctest: +SKIP
    >>> mlflow.genai.evaluate(data=mlflow.search_traces(), scorers=[scorer])  # doctest: +SKIP
    """

    name: str = "calibrated"
    model: Any  # a DavidsonModel
    votes: str | None = None
    words: Mapping[str, Any] | None = None

    def __call__(self, *, trace: Trace) -> Feedback:
        """Return feedback A, tie or B; counts and probabilities are in its metadata."""
        annotations = read([trace])
        votes = votes_of(annotations, name=self.votes, words=self.words)
        decided = annotations_of(votes, self.model, name=self.name)
        ((_, row),) = rows_of(decided)
        return _assessment(row)


def _assessments(trace: Trace) -> list[Assessment]:
    """Feedback and expectations of a trace, without those that others override."""
    return [
        each
        for each in trace.info.assessments
        if isinstance(each, Feedback | Expectation) and each.valid is not False
    ]


def _row(assessment: Assessment) -> dict[str, Any]:
    """Return an assessment as a row of annotations."""
    metadata: dict[str, Any] = dict(assessment.metadata or {})
    own = json.loads(metadata.pop(OWN, "{}"))
    metadata = {
        key: json.loads(value) if key in own.get("json", ()) else value
        for key, value in metadata.items()
        if key not in own.get("removed", ())
    }
    label = score = None
    value = assessment.value
    if isinstance(value, str):
        label, score = value, own.get("score")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        score = float(value)
    elif value is not None:
        label, metadata[VALUE] = json.dumps(value), "json"
    if isinstance(assessment, Expectation):
        metadata[EXPECTATION] = True
    elif assessment.feedback.error is not None:
        error = assessment.feedback.error.to_dictionary()
        metadata[ERROR] = {key: each for key, each in error.items() if each is not None}
    source = assessment.source
    return {
        "trace_id": assessment.trace_id,
        "span_id": assessment.span_id,
        "name": assessment.name,
        "label": label,
        "score": score,
        "explanation": assessment.rationale or own.get("explanation"),
        "annotator_kind": _KINDS.get(source.source_type, "CODE"),
        "annotator": source.source_id,
        "identifier": own.get("identifier", assessment.assessment_id),
        "metadata": metadata,
        "created": datetime.fromtimestamp(assessment.create_time_ms / 1000, UTC),
    }


def _assessment(row: Mapping[str, Any], old: Assessment | None = None) -> Assessment:
    """Return a row of annotations as an assessment, or as what updates an old one."""
    metadata = dict(row["metadata"])
    expected, error = metadata.pop(EXPECTATION, False), metadata.pop(ERROR, None)
    value, own = row["label"], {"identifier": row["identifier"]}
    if metadata.pop(VALUE, None) is not None:
        value = json.loads(value)
    elif value is None:
        value = row["score"]
    elif row["score"] is not None:
        own["score"] = row["score"]
    own["json"] = [key for key, each in metadata.items() if not isinstance(each, str)]
    kept = {key: json.dumps(metadata[key]) for key in own["json"]}
    # An update adds keys to the metadata, and takes none away.
    before = set(old.metadata or {}) if old is not None else set()
    own["removed"] = sorted(before - set(metadata) - {OWN})
    given: dict[str, Any] = {
        "name": row["name"],
        "value": value,
        "source": AssessmentSource(_SOURCES[row["annotator_kind"]], row["annotator"]),
        "trace_id": row["trace_id"],
        "span_id": row["span_id"],
    }
    if row["created"] is not None:
        given["create_time_ms"] = round(row["created"].timestamp() * 1000)
    if expected:
        own["explanation"] = row["explanation"]
        return Expectation(**given, metadata=metadata | kept | {OWN: _json(own)})
    if error is not None:
        given["error"] = AssessmentError.from_dictionary(error)
    given["rationale"] = row["explanation"] or ("" if old is not None else None)
    return Feedback(**given, metadata=metadata | kept | {OWN: _json(own)})


def _json(own: Mapping[str, Any]) -> str:
    """Return what MLflow has no field for, as it is kept in its metadata."""
    return json.dumps({k: v for k, v in own.items() if k == "identifier" or v not in (None, [])})
