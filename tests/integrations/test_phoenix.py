"""Annotations to and from Phoenix's own server."""

import contextlib
import os
import time

import polars as pl
import pytest

import annotated
from annotated import ordered, said
from btdagg import InputError
from btdagg.integrations.annotations import frame_of
from refusals import refused

pytestmark = pytest.mark.integration


@pytest.fixture
def client(phoenix_server):
    if os.environ.get("CI") != "true":
        pytest.importorskip("phoenix.client")
    from phoenix.client import Client

    return Client(base_url=phoenix_server)


@pytest.fixture
def ours():
    """What is tested; it is imported once there is a client."""
    from btdagg.integrations import phoenix as ours

    return ours


@pytest.fixture
def project():
    return f"test-{os.urandom(6).hex()}"


@pytest.fixture
def spans(client, project):
    """Ids of four spans in two traces, with their traces."""
    import httpx

    traces = [os.urandom(16).hex() for _ in range(2)]
    found = [(trace, os.urandom(8).hex()) for trace in traces for _ in range(2)]
    client.spans.log_spans(
        project_identifier=project,
        spans=[
            {
                "name": "answer",
                "context": {"trace_id": trace, "span_id": span},
                "span_kind": "LLM",
                "start_time": "2026-01-31T12:00:00Z",
                "end_time": "2026-01-31T12:00:01Z",
                "status_code": "OK",
            }
            for trace, span in found
        ],
    )
    for _ in range(200):  # they are stored a little later
        with contextlib.suppress(httpx.HTTPStatusError):  # so is the project
            if len(client.spans.get_spans(project_identifier=project)) == len(found):
                return found
        time.sleep(0.05)
    raise AssertionError("the spans did not come")


def annotation(target, label="A", **other):
    trace, span = target
    return annotated.annotation(trace, label, span_id=span, **other)


def everything(spans):
    """Annotations with something in every column, and with nothing."""
    one, two, three, _ = spans
    return frame_of(
        [
            annotation(one, identifier="0", score=0.1 + 0.2, explanation="A is\nbetter"),
            annotation(one, "tie", score=0, identifier="1", metadata={"order": "BA", "sample": 1}),
            annotation(one, None, identifier="2", score=-1),
            annotation(one, None, identifier="3", explanation="no verdict"),
            annotation(one, None, identifier="4", metadata={"btdagg.error": {"code": "TIMEOUT"}}),
            annotation(one, "B", annotator="claude"),
            annotation(one, "B"),
            annotation(two, "B", annotator=None, annotator_kind="CODE",
                       metadata={"n": 3, "nested": {"a": [1.5, None, "é"]}}),
            annotation(three, annotator="ada", annotator_kind="HUMAN", explanation="clearly"),
        ]
    )  # fmt: skip


def test_what_is_written_is_read_and_written_again_changes_nothing(client, ours, project, spans):
    given = everything(spans)
    ours.write(given, client)
    read = ours.read(client, project=project)
    assert said(read) == said(given)
    assert read["created"].null_count() == 0
    ours.write(given, client)
    ours.write(read, client)
    again = ours.read(client, project=project)
    assert said(again) == said(read)


def test_what_changed_is_replaced(client, ours, project, spans):
    ours.write(everything(spans), client)
    read = ours.read(client, project=project)
    changed = read.with_columns(
        label=pl.lit("tie"), explanation=pl.lit(None, pl.String), metadata=pl.lit('{"a": 1}')
    )
    ours.write(changed, client)
    again = ours.read(client, project=project)
    assert said(again) == said(changed)


def test_annotations_of_others_are_read_and_written_back_as_they_are(
    client, ours, project, spans
):  # fmt: skip
    span = spans[0][1]
    client.spans.add_span_annotation(
        span_id=span, annotation_name="tone", annotator_kind="HUMAN", label="kind", sync=True
    )
    client.spans.add_span_annotation(
        span_id=span, annotation_name="better", annotator_kind="LLM", label="A", score=0.5,
        metadata={"model": "m"}, identifier="run-1", sync=True,
    )  # fmt: skip
    client.spans.add_span_note(span_id=span, note="a note is no annotation")

    def there():
        found = client.spans.get_span_annotations(span_ids=[span], project_identifier=project)
        left_out = ("created_at", "updated_at")
        return [{k: v for k, v in each.items() if k not in left_out} for each in found]

    before = there()
    read = ours.read(client, project=project)
    assert ordered(read).select("trace_id", "span_id", "name", "label", "identifier").rows() == [
        (*spans[0], "better", "A", "run-1"),
        (*spans[0], "tone", "kind", None),
    ]
    ours.write(read, client)
    assert sorted(there(), key=lambda each: each["id"]) == sorted(
        before, key=lambda each: each["id"]
    )


def test_only_the_spans_that_are_given_are_read(client, ours, project, spans):
    ours.write(everything(spans), client)
    given = client.spans.get_spans(project_identifier=project, span_ids=[spans[2][1]])
    assert ours.read(client, project=project, spans=given)["annotator"].to_list() == ["ada"]
    assert ours.read(client, project=project, spans=[]).rows() == []


def test_what_cannot_be_written_is_an_error_that_names_the_row(client, ours, project, spans):
    unknown = ("0" * 32, "f" * 16)
    with pytest.raises(InputError, match=rf"Phoenix does not have all spans: .*{unknown[1]}"):
        ours.write(frame_of([annotation(spans[0]), annotation(unknown)]), client)
    with refused(row=1, column="span_id", source="annotations", got=None, expected="a span"):
        ours.write(frame_of([annotation(("0" * 32, None))]), client)
    rows = [annotation(spans[0], identifier="0", annotator=judge) for judge in ("m", "n")]
    with pytest.raises(InputError, match="identifiers for annotations with the same span"):
        ours.write(frame_of(rows), client)
    assert ours.read(client, project=project).height == 0
