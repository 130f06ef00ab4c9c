"""Events and spans, as the SDK's in-memory exporters get them."""

import asyncio
import os

import polars as pl
import pytest

import annotated
from annotated import NOON
from btdagg import DavidsonModel
from btdagg.integrations.annotations import annotations_of, frame_of
from btdagg.judge import FunctionClient, judge
from judge_endpoints import completion, error
from judging import pairs_of

pytestmark = pytest.mark.integration

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
    """A provider with the item, order and sample of calls, and what it has exported."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(ours.JudgeSpans())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter.get_finished_spans
    provider.shutdown()


SAMPLES = [
    (f"q{item}", order, sample) for item in (0, 1) for order in ("AB", "BA") for sample in (0, 1)
]


def samples_of(spans):
    names = ("btdagg.item", "btdagg.order", "btdagg.sample")
    return [tuple(span.attributes[name] for name in names) for span in spans]


def votes_on(folder, **judging):
    """Four votes on each of two pairs."""
    return asyncio.run(judge(pairs_of(2), store=folder / "votes.db", n=4, **judging))


def annotation(**other):
    return annotated.annotation(**{"trace": TRACE, "span_id": SPAN, **other})


def test_a_decision_is_an_event_of_its_span(ours, logs):
    provider, exported = logs
    model = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
    votes = {"item": [SPAN] * 4, "vote": [1, 1, 0, 1]}
    decided = annotations_of(votes, model, item="span_id")
    ours.emit(decided.with_columns(trace_id=pl.lit(TRACE)), logger_provider=provider)
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
    rows = annotation(trace=f"tr-{TRACE}", span_id=None, created=NOON, label=None,
                      metadata=metadata)  # fmt: skip
    ours.emit(frame_of([rows]), logger_provider=provider)
    (event,) = exported()
    assert (event.trace_id, event.span_id) == (int(TRACE, 16), 0)
    assert event.timestamp == 1769860800_123_000_000
    assert event.attributes["gen_ai.response.id"] == "chatcmpl-1"
    assert event.attributes["error.type"] == "_OTHER"
    assert event.attributes["btdagg.n"] == "[1]"
    assert "gen_ai.evaluation.score.label" not in event.attributes


def test_no_event_is_emitted_where_an_id_cannot_be_read(ours, logs):
    provider, exported = logs
    for change in ({"trace_id": "t1"}, {"span_id": "x" * 16}, {"trace_id": None}):
        rows = [annotation(), annotation(identifier="2") | change]
        with pytest.raises(ValueError, match=r"invalid literal|expected a trace"):
            ours.emit(frame_of(rows), logger_provider=provider)
    assert exported() == []


def test_the_span_of_a_call_has_its_item_order_and_sample(spans, endpoint, tmp_path):
    from pydantic_ai import Agent, InstrumentationSettings

    provider, exported = spans
    answers = iter([(503, error("busy"))])
    server = endpoint(lambda _: next(answers, (200, completion())))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, include_content=False))
    try:
        run = votes_on(tmp_path, model="gpt-5.4", base_url=server.url)
    finally:
        Agent.instrument_all(False)
    assert (run.n_votes, run.n_retries) == (8, 1)
    calls = exported()
    assert {call.name for call in calls} == {"chat gpt-5.4"}
    assert len(calls) == 9
    assert sum(not call.status.is_ok for call in calls) == 1
    assert sorted({*samples_of(calls)}) == SAMPLES


def test_spans_within_a_function_that_judges_have_them_too(spans, tmp_path):
    provider, exported = spans
    tracer = provider.get_tracer("tests")

    def answer(request):
        with tracer.start_as_current_span("think"):
            return "[[A]]"

    votes_on(tmp_path, model="a function", client=FunctionClient(answer))
    tracer.start_span("later").end()
    *calls, later = exported()
    assert sorted(samples_of(calls)) == SAMPLES
    assert not later.attributes
