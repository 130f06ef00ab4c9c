"""Decisions as OpenTelemetry events, and judge calls as spans.

Names are those of the semantic conventions for generative AI, which are in development.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.integrations.annotations import ERROR, rows_of
from btdagg.judge.client import ChatClient, ChatReply, ChatRequest
from btdagg.judge.errors import ChatError

with needs("opentelemetry", "telemetry"):
    from opentelemetry import context, trace
    from opentelemetry._logs import LogRecord, get_logger
    from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode
    from opentelemetry.trace import TraceFlags as Flags

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.trace import Span, TracerProvider

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
_REQUEST = ("temperature", "top_p", "max_tokens", "seed")


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

    Raises
    ------
    InputError
        If an id is not hexadecimal, or a span has no trace; the message names the row.
    """
    rows = [(_context(place, row), row) for place, row in rows_of(annotations)]
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


def traced(
    client: ChatClient,
    *,
    provider: str = "openai",
    tracer_provider: TracerProvider | None = None,
) -> TracedClient:
    """Return a client that records a span ``chat MODEL`` for each call of another client.

    Parameters
    ----------
    client : ChatClient
        Such as `btdagg.judge.ModelClient`.
    provider : str
        ``gen_ai.provider.name``: who is asked, or whose protocol is spoken.
    tracer_provider : opentelemetry TracerProvider, optional
        The global one, unless given.

    Notes
    -----
    Spans have the model, the parameters, tokens, finish reasons and errors of a call, the item,
    order and sample that it is for (``btdagg.item`` ...), and neither prompt nor answer.
    """
    return TracedClient(client, provider, tracer_provider)


class TracedClient:
    """A judge client whose calls are spans; see `traced`. Other attributes are the client's own."""

    def __init__(
        self, client: ChatClient, provider: str, tracer_provider: TracerProvider | None
    ) -> None:
        self._client = client
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._common = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            **_address(getattr(client, "name", "")),
        }

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request as the client does, within a span."""
        attributes = self._common | {"gen_ai.request.model": request.model}
        for name in _REQUEST:
            if (value := getattr(request, name)) is not None:
                attributes[f"gen_ai.request.{name}"] = value
        if request.sample is not None:
            attributes |= {
                "btdagg.item": request.item,
                "btdagg.order": str(request.order),
                "btdagg.sample": request.sample,
            }
        if request.response_format is not None:
            attributes["gen_ai.output.type"] = "json"
        with self._tracer.start_as_current_span(
            f"chat {request.model}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                reply = await self._client.complete(request)
            except BaseException as error:  # a call that is cancelled has not worked either
                _fail(span, error)
                raise
            span.set_attributes(_of_reply(reply))
            return reply

    async def close(self) -> None:
        """Let go of the client's connections."""
        await self._client.close()

    def __getattr__(self, name: str) -> Any:
        if name == "_client":  # of an object that is being copied or unpickled
            raise AttributeError(name)
        return getattr(self._client, name)


def _context(place: str, row: Mapping[str, Any]) -> context.Context:
    """Return the context of a row's span."""
    if row["trace_id"] is None:
        raise InputError(f"{place}, column trace_id: got nothing, expected a trace")
    ids = []
    for column, digits in (("trace_id", 32), ("span_id", 16)):
        text = (row[column] or "0" * digits).removeprefix(_PREFIX)
        try:
            good = len(text) == digits and int(text, 16) >= 0
        except ValueError:
            good = False
        if not good:
            raise InputError(
                f"{place}, column {column}: got {row[column]!r}, expected {digits} hexadecimal "
                "digits"
            )
        ids.append(int(text, 16))
    span = SpanContext(*ids, is_remote=True, trace_flags=Flags(Flags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(span))


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(row["metadata"])
    found = {name: row[column] for column, name in _EVALUATION.items() if row[column] is not None}
    if RESPONSE_ID in metadata:
        found[RESPONSE_ID] = str(metadata.pop(RESPONSE_ID))
    if ERROR in metadata:
        found["error.type"] = "_OTHER"
    for column in ("annotator_kind", "annotator"):
        if row[column] is not None:
            found[f"btdagg.{column}"] = row[column]
    for key, value in metadata.items():
        name = f"btdagg.{key.removeprefix('btdagg.')}"
        found[name] = value if isinstance(value, str | int | float) else json.dumps(value)
    return found


def _of_reply(reply: ChatReply) -> dict[str, Any]:
    found: dict[str, Any] = {"gen_ai.response.finish_reasons": [reply.finish_reason]}
    if reply.model:
        found["gen_ai.response.model"] = reply.model
    if reply.usage is not None:
        found["gen_ai.usage.input_tokens"] = reply.usage.prompt
        found["gen_ai.usage.output_tokens"] = reply.usage.completion
        found["gen_ai.usage.cache_read.input_tokens"] = reply.usage.cached
        found["gen_ai.usage.reasoning.output_tokens"] = reply.usage.reasoning
    return found


def _fail(span: Span, error: BaseException) -> None:
    """Note why a call has no answer: the kind of a fault of the endpoint, or a class."""
    kind = error.kind if isinstance(error, ChatError) else type(error).__qualname__
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, " ".join(str(error).split()) or kind))


def _address(name: str) -> dict[str, Any]:
    """Return the attributes of an address, if it is one."""
    try:
        parts = urlsplit(name)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname or port is None:
        return {}
    return {"server.address": parts.hostname, "server.port": port}
