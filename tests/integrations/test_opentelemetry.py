"""Events, as the SDK's in-memory exporters get them."""

import datetime as dt
import os

import polars as pl
import pytest

from btdagg import DavidsonModel, InputError
from btdagg.integrations.annotations import annotations_of, frame_of

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


def annotation(**other):
    common = {"name": "better", "annotator_kind": "LLM", "annotator": "gpt-5.4", "label": "A"}
    return {"trace_id": TRACE, "span_id": SPAN, **common, **other}


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
