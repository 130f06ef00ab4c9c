"""Events and spans, as the SDK's in-memory exporters get them."""

import asyncio
import datetime as dt
import os

import pytest

from btdagg import DavidsonModel, InputError
from btdagg.integrations.annotations import annotations_of, frame_of
from btdagg.judge import Judging, judge
from btdagg.judge.client import ChatReply, ChatRequest, FunctionClient, Usage
from btdagg.judge.errors import ChatError

pytestmark = pytest.mark.integration

NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=dt.UTC)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def ours():
    """What is tested; it is imported once there is an SDK."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("opentelemetry.sdk")
    from btdagg.integrations import opentelemetry as ours

    return ours


@pytest.fixture
def logs(ours):
    """A provider, and what it has exported."""
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    provider, exporter = LoggerProvider(), InMemoryLogRecordExporter()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    yield provider, lambda: [each.log_record for each in exporter.get_finished_logs()]
    provider.shutdown()


@pytest.fixture
def spans(ours):
    """A provider, and what it has exported."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter.get_finished_spans
    provider.shutdown()


def annotation(**other):
    common = {"name": "better", "annotator_kind": "LLM", "annotator": "gpt-5.4", "label": "A"}
    return {"trace_id": TRACE, "span_id": SPAN, **common, **other}


def test_a_decision_is_an_event_of_its_span(ours, logs):
    provider, exported = logs
    model = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
    votes = {"item": [SPAN] * 4, "vote": [1, 1, 0, 1]}
    decided = annotations_of(votes, model, item="span_id", targets=frame_of([annotation()]))
    ours.emit(decided, logger_provider=provider)
    (event,) = exported()
    assert event.event_name == "gen_ai.evaluation.result"
    assert (event.trace_id, event.span_id) == (int(TRACE, 16), int(SPAN, 16))
    shares = model.predict_proba([[0, 1, 3]])[0].tolist()
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "calibrated",
        "gen_ai.evaluation.score.label": "A",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.explanation": decided["explanation"].item(),
        "btdagg.annotator_kind": "CODE",
        "btdagg.annotator": "btdagg",
        "btdagg.minus": 0,
        "btdagg.tie": 1,
        "btdagg.plus": 3,
        "btdagg.p_minus": shares[0],
        "btdagg.p_tie": shares[1],
        "btdagg.p_plus": shares[2],
    }


def test_an_event_of_a_trace_a_response_and_an_error(ours, logs):
    provider, exported = logs
    metadata = {"gen_ai.response.id": "chatcmpl-1", "btdagg.error": {"code": "T"}, "n": [1]}
    rows = annotation(trace_id=f"tr-{TRACE}", span_id=None, created=NOON, label=None,
                      metadata=metadata)  # fmt: skip
    ours.emit(frame_of([rows]), logger_provider=provider)
    (event,) = exported()
    assert (event.trace_id, event.span_id) == (int(TRACE, 16), 0)
    assert event.timestamp == 1769860800_123_000_000
    assert event.attributes["gen_ai.response.id"] == "chatcmpl-1"
    assert event.attributes["error.type"] == "_OTHER"
    assert event.attributes["btdagg.n"] == "[1]"
    assert "gen_ai.evaluation.score.label" not in event.attributes


def test_an_id_that_is_none_is_an_error_that_names_the_row(ours, logs):
    provider, exported = logs
    for change, message in (
        ({"trace_id": "t1"}, "column trace_id: got 't1', expected 32 hexadecimal digits"),
        ({"span_id": "x" * 16}, "column span_id: got 'x{16}', expected 16 hexadecimal digits"),
        ({"trace_id": None}, "column trace_id: got nothing, expected a trace"),
    ):
        rows = [annotation(), annotation(identifier="2") | change]
        with pytest.raises(InputError, match=f"annotations, row 2, {message}"):
            ours.emit(frame_of(rows), logger_provider=provider)
    assert exported() == []


REQUEST = ChatRequest(
    messages=[{"role": "user", "content": "secret"}],
    model="gpt-5.4",
    temperature=0.5,
    max_tokens=100,
)


class Client:
    """Answers as it is told."""

    name = "https://judge.example/v1"
    retries = 3

    def __init__(self, answer):
        self._answer, self.closed = answer, False

    async def complete(self, request):
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    async def close(self):
        self.closed = True


def test_a_call_is_a_span(ours, spans):
    from opentelemetry.trace import SpanKind, StatusCode

    provider, exported = spans
    usage = Usage(prompt=20, completion=5, reasoning=2, cached=8)
    reply = ChatReply("A", usage=usage, model="gpt-5.4-2026")
    client = ours.traced(Client(reply), provider="acme", tracer_provider=provider)
    assert asyncio.run(client.complete(REQUEST)) is reply
    (span,) = exported()
    assert (span.name, span.kind) == ("chat gpt-5.4", SpanKind.CLIENT)
    assert span.status.status_code == StatusCode.UNSET
    assert span.end_time >= span.start_time
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "acme",
        "server.address": "judge.example",
        "server.port": 443,
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.model": "gpt-5.4-2026",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (ChatError("HTTP 429", "limited", retry_after=1.0), "limited", "HTTP 429"),
        (RuntimeError("two\nlines"), "RuntimeError", "two lines"),
        (asyncio.CancelledError(), "CancelledError", "CancelledError"),
    ],
)
def test_a_call_that_fails_says_why(ours, spans, fault, kind, said):
    from opentelemetry.trace import StatusCode

    provider, exported = spans
    client = ours.traced(Client(fault), tracer_provider=provider)
    with pytest.raises(type(fault)) as caught:
        asyncio.run(client.complete(REQUEST))
    assert caught.value is fault or isinstance(fault, asyncio.CancelledError)
    (span,) = exported()
    assert span.attributes["error.type"] == kind
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, said)
    assert span.events == ()


def test_other_attributes_are_those_of_the_client(ours, spans):
    inner = Client(ChatReply("A"))
    client = ours.traced(inner, tracer_provider=spans[0])
    assert (client.name, client.retries) == (inner.name, 3)
    assert getattr(client, "nothing", "") == ""
    asyncio.run(client.close())
    assert inner.closed
    # A client without a name has no address.
    plain = ours.traced(FunctionClient(lambda request: "A"), tracer_provider=spans[0])
    assert getattr(plain, "name", "") == ""
    asyncio.run(plain.complete(REQUEST))
    assert "server.address" not in spans[1]()[-1].attributes


def test_a_run_of_a_judge_has_a_span_for_each_call(ours, spans, tmp_path):
    provider, exported = spans
    calls = []

    def answer(request):
        calls.append(request)
        return "[[C]]"

    pairs = {"item": ["x", "y"], "a": ["1", "2"], "b": ["3", "4"], "prompt": ["p", "p"]}
    client = ours.traced(FunctionClient(answer), tracer_provider=provider)
    made = judge(pairs, Judging("gpt-5.4", n=4), store=tmp_path / "votes.db", client=client)
    assert asyncio.run(made).n_calls == len(calls) == len(exported()) == 8
    asked = [
        tuple(span.attributes[f"btdagg.{name}"] for name in ("item", "order", "sample"))
        for span in exported()
    ]
    every = {(item, order, n) for item in "xy" for order in ("AB", "BA") for n in range(2)}
    assert sorted(asked) == sorted(every)
