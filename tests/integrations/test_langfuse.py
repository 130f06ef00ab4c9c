"""Annotations to and from Langfuse by its SDK's types, at an endpoint that keeps scores."""

import datetime as dt
import os

import polars as pl
import pytest

from annotated import GRADES, NOON, PASS, annotation, ordered, said
from btdagg import InputError
from btdagg.integrations.annotations import annotations_of, frame_of, labels_of, votes_of
from langfuse_endpoint import LangfuseEndpoint
from refusals import refused

pytestmark = pytest.mark.integration


@pytest.fixture
def server():
    if os.environ.get("CI") != "true":
        pytest.importorskip("langfuse")
    return LangfuseEndpoint()


@pytest.fixture
def client(server):
    return server.client()


@pytest.fixture
def ours(server):
    from btdagg.integrations import langfuse as ours

    return ours


def everything():
    return frame_of(
        [
            annotation(identifier="0", score=0.1 + 0.2, explanation="A is\nbetter", created=NOON),
            annotation(label="tie", score=0, identifier="1", created=NOON, metadata={"k": "v"}),
            annotation(label=None, identifier="2", created=NOON, score=-1),
            annotation(span_id="s1", label="B", annotator="claude", created=NOON),
            annotation("t2", "B", annotator=None, annotator_kind="CODE", created=NOON,
                       metadata={"n": 3, "nested": {"a": [1.5, None, "é"]}}),
            annotation("t2", annotator="ada", annotator_kind="HUMAN", created=NOON),
        ]
    )  # fmt: skip


def test_what_is_written_is_read_and_written_again_changes_nothing(server, client, ours):
    given = everything()
    ours.write(given, client)
    read = ours.read(client)
    assert ordered(read).equals(ordered(given))
    before = dict(server.scores)
    assert len(before) == given.height
    ours.write(given, client)
    ours.write(read, client)
    assert server.scores == before
    ours.write(given.with_columns(label=pl.lit("A"), metadata=pl.lit(None)), client)
    assert set(ours.read(client)["label"]) == {"A"}
    assert server.scores.keys() == before.keys()


def test_a_score_keeps_its_time(server, client, ours):
    ours.write(frame_of([annotation(created=NOON)]), client)
    ours.write(frame_of([annotation(label="B")]), client)
    ours.write(frame_of([annotation(label="B", created=NOON + dt.timedelta(days=1))]), client)
    (score,) = server.scores.values()
    assert score["value"] == "B"
    assert dt.datetime.fromisoformat(score["timestamp"]) == NOON


def test_scores_of_others_are_read_and_written_back_as_they_are(server, client, ours):
    server.add(1, "A", "CATEGORICAL", source="EVAL", comment="because")
    server.add(2, 0.5, "NUMERIC", metadata={"k": [1]})
    server.add(3, True, "BOOLEAN", source="ANNOTATION", authorUserId="ada")
    server.add(4, "well put", "TEXT", source="ANNOTATION", traceId="t2")
    server.add(5, "tie", "CATEGORICAL", source="EVAL", observationId="s1")
    server.add(6, "A", "CATEGORICAL", subject={"kind": "session", "id": "x"})
    read = ours.read(client)
    assert read.select("trace_id", "span_id", "label", "score", "annotator_kind").rows() == [
        ("t1", None, "A", None, "LLM"),
        ("t1", None, None, 0.5, "CODE"),
        ("t1", None, "true", 1.0, "HUMAN"),
        ("t2", None, "well put", None, "HUMAN"),
        ("t1", "s1", "tie", None, "LLM"),
    ]
    assert read["annotator"].to_list() == [None, None, "ada", None, None]
    before = dict(server.scores)
    ours.write(read, client)
    assert server.scores == before
    changed = read.with_columns(explanation=pl.lit("so"))
    ours.write(changed, client)
    assert ordered(ours.read(client)).equals(ordered(changed))
    assert server.scores.keys() == before.keys()
    assert votes_of(read).tally().row(0) == ("t1", 0, 1, 1)
    human = read.filter(trace_id="t1")
    assert labels_of(human, words={"true": "A"}).labels.tolist() == [1]


def test_grades_are_numbers_and_pass_or_fail_booleans(server, client, ours):
    server.add(1, True, "BOOLEAN", source="EVAL")
    server.add(2, 0, "NUMERIC", source="EVAL")
    votes = votes_of(ours.read(client), scale=PASS.scale)
    assert votes.counts()[1].tolist() == [[1, 1]]
    for model, name, value in ((PASS, "passes", True), (GRADES, "grade", 2.0)):
        decided = annotations_of({"item": ["t1"], "score": [1]}, model, name=name)
        ours.write(decided, client)
        (stored,) = (score for score in server.scores.values() if score["name"] == name)
        assert stored["dataType"] == ("BOOLEAN" if value is True else "NUMERIC")
        assert stored["value"] == value
        assert said(ours.read(client, name=name)) == said(decided)


def test_pages_and_filters(server, client, ours):
    rows = [annotation(f"t{k}", name="other" if k % 2 else "better") for k in range(120)]
    ours.write(frame_of(rows), client)
    posts = [call for call in server.calls if call[0] == "POST"]
    assert len(posts) == 3
    assert sorted(ours.read(client)["trace_id"]) == sorted(row["trace_id"] for row in rows)
    assert ours.read(client, name="other").height == 60


def test_an_identifier_that_is_the_id_of_another_score_is_no_reason_to_replace_it(
    server, client, ours
):
    server.add(1, "A", "CATEGORICAL", source="EVAL")
    ours.write(frame_of([annotation("t2", "B", identifier="score-1")]), client)
    assert len(server.scores) == 2
    assert sorted(ours.read(client)["label"]) == ["A", "B"]


def test_what_cannot_be_written_is_an_error_that_names_the_row(server, client, ours):
    with pytest.raises(InputError, match="neither label nor score"):
        ours.write(frame_of([annotation(), annotation("t2", None, explanation="?")]), client)
    with refused(row=1, column="trace_id", source="annotations", got=None, expected="a trace"):
        ours.write(frame_of([annotation(None, span_id="s")]), client)
    assert server.scores == {}
    server.rejected = ["value is too long"]
    with pytest.raises(InputError, match="annotations: Langfuse rejected 1 of 2: value is too"):
        ours.write(frame_of([annotation(), annotation("t2")]), client)
