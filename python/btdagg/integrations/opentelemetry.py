"""Decisions as OpenTelemetry events, and what the spans of judge calls are about.

Names are those of the semantic conventions for generative AI, which are in development.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from btdagg._util.extras import needs
from btdagg.integrations.annotations import ERROR, rows_of
from btdagg.judge.client import current_request

with needs("opentelemetry", "telemetry"):
    from opentelemetry import context, trace
    from opentelemetry._logs import LogRecord, get_logger
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import NonRecordingSpan, SpanContext
    from opentelemetry.trace import TraceFlags as Flags

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.sdk.trace import Span

    from btdagg.votes.source import Source

EVENT = "gen_ai.evaluation.result"
RESPONSE_ID = "gen_ai.response.id"

_SCOPE = "btdagg"
_PREFIX = "tr-"  # MLflow's, before the trace id
_EVALUATION = {
    "name": "gen_ai.evaluation.name",
    "score": "gen_ai.evaluation.score.value",
    "label": "gen_ai.evaluation.score.label",
    "explanation": "gen_ai.evaluation.explanation",
}


class JudgeSpans(SpanProcessor):  # type: ignore[misc]
    """Adds item, order and sample to the spans of judge calls.

    Add it to a tracer provider. Every span that begins during a call of `btdagg.judge`, such as
    those of pydantic-ai and HTTP libraries, gets the attributes ``btdagg.item``, ``btdagg.order``
    and ``btdagg.sample``. Votes asked for in batches have no spans.
    """

    def on_start(self, span: Span, parent_context: context.Context | None = None) -> None:
        """Set the attributes."""
        request = current_request.get(None)
        if request is not None and request.sample is not None:
            for name in ("item", "order", "sample"):
                span.set_attribute(f"btdagg.{name}", getattr(request, name))


def emit(annotations: Source, *, logger_provider: LoggerProvider | None = None) -> None:
    """Emit an event ``gen_ai.evaluation.result`` for each annotation.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them. `trace_id` and `span_id`
        are hexadecimal, and the event belongs to that span. The key ``gen_ai.response.id`` of
        metadata is the attribute of this name, other keys have ``btdagg.`` before them.
    logger_provider : opentelemetry LoggerProvider, optional
        The global one, unless given.
    """
    rows = [(_context(row), row) for _, row in rows_of(annotations, "trace_id")]
    logger = get_logger(_SCOPE, logger_provider=logger_provider)
    for where, row in rows:
        created = row["created"]
        logger.emit(
            LogRecord(
                timestamp=None if created is None else round(created.timestamp() * 1000) * 10**6,
                context=where,
                event_name=EVENT,
                attributes=_attributes(row),
            )
        )


def _context(row: Mapping[str, Any]) -> context.Context:
    ids = (
        int((row[column] or "0").removeprefix(_PREFIX), 16) for column in ("trace_id", "span_id")
    )
    span = SpanContext(*ids, is_remote=True, trace_flags=Flags(Flags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(span))


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(row["metadata"])
    attributes = {
        name: row[column] for column, name in _EVALUATION.items() if row[column] is not None
    }
    if RESPONSE_ID in metadata:
        attributes[RESPONSE_ID] = str(metadata.pop(RESPONSE_ID))
    if ERROR in metadata:
        attributes["error.type"] = "_OTHER"
    for column in ("annotator_kind", "annotator"):
        if row[column] is not None:
            attributes[f"btdagg.{column}"] = row[column]
    for key, value in metadata.items():
        name = f"btdagg.{key.removeprefix('btdagg.')}"
        attributes[name] = value if isinstance(value, str | int | float) else json.dumps(value)
    return attributes
