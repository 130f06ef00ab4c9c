"""`btdagg import` on annotations that Phoenix and Langfuse export, made by their own types."""

import json
import os

import polars as pl
import pytest

from btdagg import InputError, read_labels
from btdagg.paper import read_ratings
from btdagg.votes.formats import read

pytestmark = pytest.mark.integration
NOON = "2026-01-31T12:00:00.000Z"


def needs(library):
    if os.environ.get("CI") != "true":
        pytest.importorskip(library)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(value, name):
    with open(name, "w", encoding="utf-8") as file:
        json.dump(value, file)
    return name


def rows(found, *columns):
    return found.frame.select(columns).sort(columns).rows()


# Phoenix


def of_span(span, label, kind="LLM", name="better", score=None, **metadata):
    """An annotation as the REST interface returns it."""
    from phoenix.client.__generated__ import v1

    made = v1.SpanAnnotation(
        id=f"{span}-{label}-{kind}-{len(metadata)}", created_at=NOON, updated_at=NOON, source="API",
        user_id="ada" if kind == "HUMAN" else None, name=name, annotator_kind=kind, span_id=span,
        result={"label": label, "score": score, "explanation": ""}, metadata=metadata,
        identifier="",
    )  # fmt: skip
    assert set(made) <= set(v1.SpanAnnotation.__annotations__)
    return made


def phoenix(*annotations, name="spans.json"):
    return document({"data": list(annotations), "next_cursor": None}, name)


def test_annotations_of_spans(cli):
    needs("phoenix.client")
    file = phoenix(
        of_span("s1", "A", order="AB"), of_span("s1", "B", order="BA"),
        of_span("s2", None, score=0, order="AB"), of_span("s2", "It depends.", order="BA"),
        of_span("s3", None, order="AB", judge="x"),
    )  # fmt: skip
    found = read(file, constants={"judge": "gpt-5.4"})
    assert (found.formats, found.kind, dict(found.unread)) == (
        ("phoenix",), "votes", {"unparsed": 1, "empty": 1}
    )  # fmt: skip
    assert rows(found, "item", "order", "vote", "status", "sample", "judge") == [
        ("s1", "AB", 1, "ok", 0, "gpt-5.4"), ("s1", "BA", -1, "ok", 0, "gpt-5.4"),
        ("s2", "AB", 0, "ok", 0, "gpt-5.4"), ("s2", "BA", None, "unparsed", 0, "gpt-5.4"),
        ("s3", "AB", None, "empty", 0, "gpt-5.4"),
    ]  # fmt: skip


def test_annotations_of_people_are_ratings_and_labels(cli):
    needs("phoenix.client")
    people = [of_span("s1", "first", "HUMAN", "gold"), of_span("s2", "second", "HUMAN", "gold")]
    file = phoenix(of_span("s1", "first"), *people)
    words = ("--words", "first=A,second=B")
    assert rows(read(file, words={"first": "A"}), "item", "vote") == [("s1", 1)]
    assert cli("import", file, "--as", "ratings", "-o", "gold.csv", *words)[0] == 0
    labels = read_labels("gold.csv")
    assert dict(zip(labels.ids, labels.labels, strict=True)) == {"s1": 1, "s2": -1}
    assert cli("import", phoenix(*people), "-o", "people.csv", *words)[0] == 0
    assert read_ratings("people.csv").raters.tolist() == ["ada"]


def test_frames_of_the_client(cli):
    needs("phoenix.client")
    frame = {"span_id": ["s1", "s2"], "annotation_name": ["better"] * 2,
             "result.label": ["A", "tie"], "result.score": [1.0, 0.0],
             "annotator_kind": ["LLM"] * 2, "metadata": ['{"order": "BA"}', '{"order": "AB"}']
             }  # fmt: skip
    pl.DataFrame(frame).write_csv("frame.csv")
    assert rows(read("frame.csv"), "item", "vote", "order") == [("s1", 1, "BA"), ("s2", 0, "AB")]


def test_several_names_want_one():
    needs("phoenix.client")
    file = phoenix(of_span("s1", "A"), of_span("s1", "B", name="other"))
    with pytest.raises(
        InputError, match="annotations are called better, other; name chooses which"
    ):
        read(file)
    assert rows(read(file, name="other"), "item", "vote") == [("s1", -1)]
    with pytest.raises(
        InputError, match="expected item alone, trace_id or span_id, for annotations"
    ):
        read(file, name="other", columns={"vote": "label"})


# Langfuse


def of_trace(trace, value, number=0, *, source="EVAL", name="better", **more):
    """A score as the API of before returns it, checked by the SDK's types."""
    from langfuse.api import Score
    from langfuse.api.core.pydantic_utilities import parse_obj_as

    kind = "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
    same = {"id": f"{trace}-{number}", "traceId": trace, "name": name, "source": source,
            "timestamp": NOON, "createdAt": NOON, "updatedAt": NOON, "environment": "default",
            "metadata": {}, "dataType": kind, **more}  # fmt: skip
    said = {"value": 0.0, "stringValue": value} if kind == "CATEGORICAL" else {"value": value}
    parse_obj_as(Score, same | said)
    return same | said


def test_scores_of_traces():
    needs("langfuse")
    scores = [
        of_trace("t1", "A"), of_trace("t1", "tie", 1),
        of_trace("t2", -1.0), of_trace("t2", "both bad", 1),
        of_trace("t1", "B", 2, source="ANNOTATION", authorUserId="ada"),
    ]  # fmt: skip
    file = document({"data": scores, "meta": {"page": 1}}, "scores.json")
    found = read(file)
    assert (found.formats, found.kind, dict(found.unread)) == (
        ("langfuse",), "votes", {"unparsed": 1}
    )  # fmt: skip
    assert rows(found, "item", "vote", "status") == [
        ("t1", 0, "ok"), ("t1", 1, "ok"), ("t2", None, "unparsed"), ("t2", -1, "ok"),
    ]  # fmt: skip
    found = read(file, words={"both bad": "tie"})
    assert found.frame.filter(pl.col("item") == "t2")["vote"].to_list() == [-1, 0]
    assert rows(read(file, kind="ratings"), "item", "rater", "vote") == [("t1", "ada", -1)]


def test_scores_without_a_trace_are_counted():
    same = {"name": "better", "value": 1.0, "source": "EVAL", "dataType": "NUMERIC"}
    of_run = {"id": "2", "traceId": None, "datasetRunId": "r", **same}
    scores = [{"id": "1", "traceId": "t1", **same}, of_run, of_run | {"name": "other"}]
    found = read(document(scores, "scores.json"), name="better")
    assert rows(found, "item", "vote") == [("t1", 1)]
    assert found.remarks == ("scores of sessions or runs, which have no trace: 1",)
    with pytest.raises(InputError, match=r"^runs.json: no score has a trace$"):
        read(document([of_run], "runs.json"))


def test_scores_of_the_newer_api_and_of_exports():
    needs("langfuse")
    from langfuse.api import ScoreV3
    from langfuse.api.core.pydantic_utilities import parse_obj_as

    made = {"id": "1", "projectId": "p", "name": "better", "value": "B", "dataType": "CATEGORICAL",
            "source": "EVAL", "timestamp": NOON, "environment": "default", "createdAt": NOON,
            "updatedAt": NOON, "metadata": {}, "subject": {"kind": "trace", "id": "t1"}
            }  # fmt: skip
    parse_obj_as(ScoreV3, made)
    file = document([made], "v3.json")
    assert rows(read(file), "item", "vote") == [("t1", -1)]
    exported = {"id": ["1", "2"], "trace_id": ["t1", "t2"], "observation_id": ["", "o"],
                "name": ["better"] * 2, "value": ["1", ""], "string_value": ["", "tie"],
                "data_type": ["NUMERIC", "CATEGORICAL"], "source": ["EVAL"] * 2,
                "comment": ["", "x"]}  # fmt: skip
    pl.DataFrame(exported).write_csv("scores.csv")
    assert rows(read("scores.csv"), "item", "vote") == [("t1", 1), ("t2", 0)]
    exported["source"] = ["EVAL", "OTHER"]
    pl.DataFrame(exported).write_csv("scores.csv")
    with pytest.raises(InputError, match="row 2, column source: got 'OTHER', expected ANNOTATION"):
        read("scores.csv")
