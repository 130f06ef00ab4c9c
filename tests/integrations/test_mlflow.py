"""Annotations to and from MLflow's own server."""

import os

import polars as pl
import pytest

from annotated import GRADES, NOON, PASS, annotation, said
from btdagg import InputError
from btdagg.integrations.annotations import (
    annotations_of,
    frame_of,
    labels_of,
    missing_by_status,
    votes_of,
)
from refusals import refused

pytestmark = [
    pytest.mark.integration,
    # MLflow says so of its own types, once it is used.
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType:UserWarning"),
]


@pytest.fixture
def mlflow(mlflow_server, monkeypatch):
    """MLflow with an experiment of the test's own."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server)
    import mlflow

    mlflow.set_experiment(f"test-{os.urandom(6).hex()}")
    return mlflow


@pytest.fixture
def traces(mlflow):
    """Ids of two traces, and of a span of each."""
    found = []
    for question in ("one", "two"):
        with mlflow.start_span(name="answer") as span:
            span.set_inputs({"question": question})
            span.set_outputs({"a": "A", "b": "B"})
        found.append((span.trace_id, span.span_id))
    mlflow.flush_trace_async_logging()
    return found


@pytest.fixture
def ours():
    """What is tested; it is imported once there is an MLflow."""
    from btdagg.integrations import mlflow as ours

    return ours


def everything(traces):
    """Annotations with something in every column, and with nothing."""
    (one, span), (two, _) = traces
    return frame_of(
        [
            annotation(one, identifier="0", score=0.1 + 0.2, explanation="1\n2", created=NOON),
            annotation(one, "tie", score=0, identifier="1", metadata={"order": "BA", "sample": 1}),
            annotation(one, None, identifier="2", score=-1),
            annotation(one, None, identifier="3", explanation="no verdict"),
            annotation(one, None, identifier="4", metadata={
                "btdagg.error": {"error_code": "TIMEOUT", "error_message": "60 s"}}),
            annotation(one, "B", span_id=span, annotator="claude"),
            annotation(two, "B", annotator=None, annotator_kind="CODE",
                       metadata={"n": 3, "text": "3", "nested": {"a": [1.5, None, "é"]}}),
            annotation(two, "A", annotator="ada", annotator_kind="HUMAN", explanation="clearly"),
            annotation(two, "A", name="gold", annotator="ada", annotator_kind="HUMAN",
                       explanation="by the guideline", score=1.0,
                       metadata={"mlflow.expectation": True, "group": "p1"}),
        ]
    )  # fmt: skip


def assessments(mlflow, trace):
    found = mlflow.get_trace(trace).info.assessments
    return {each.assessment_id: (each.name, each.value) for each in found}


def test_what_is_written_is_read_and_written_again_changes_nothing(mlflow, ours, traces):
    given = everything(traces)
    ours.write(given)
    read = ours.read()
    assert read.filter(created=NOON).height == 1
    assert read["created"].null_count() == 0
    assert said(read) == said(given)
    before = [assessments(mlflow, trace) for trace, _ in traces]
    assert [len(each) for each in before] == [6, 3]
    ours.write(given)
    ours.write(read)
    assert [assessments(mlflow, trace) for trace, _ in traces] == before
    assert said(ours.read()) == said(read)


def test_what_changed_is_updated_in_its_place(mlflow, ours, traces):
    given = everything(traces)
    ours.write(given)
    read = ours.read()
    changed = read.with_columns(
        label=pl.when(pl.col("label") == "A").then(pl.lit("B")).otherwise(pl.col("label")),
        explanation=pl.lit(None, pl.String),
        metadata=pl.when(name="better", annotator_kind="CODE").then(pl.lit('{"text": "4"}'))
        .otherwise(pl.col("metadata")),
    )  # fmt: skip
    before = [set(assessments(mlflow, trace)) for trace, _ in traces]
    ours.write(changed)
    assert [set(assessments(mlflow, trace)) for trace, _ in traces] == before
    assert said(ours.read()) == said(changed)
    ours.write(read)
    assert said(ours.read()) == said(read)


def test_assessments_of_others_are_read_and_written_back_as_they_are(mlflow, ours, traces):
    from mlflow.entities import AssessmentSource

    trace = traces[0][0]
    judge = AssessmentSource("LLM_JUDGE", "gpt-5.4")
    values = ["A", 0.25, 3, True, ["x", 1.5], {"a": "b"}]
    for value in values:
        mlflow.log_feedback(
            trace_id=trace, name="any", value=value, source=judge, rationale="so",
            metadata={"k": "v"},
        )  # fmt: skip
    mlflow.log_feedback(trace_id=trace, name="any", error=ValueError("no answer"), source=judge)
    mlflow.log_expectation(trace_id=trace, name="gold", value="tie")
    before = assessments(mlflow, trace)
    read = ours.read()
    assert read["label"].to_list().count(None) == 3
    assert read["score"].drop_nulls().to_list() == [0.25, 3.0]
    assert read.filter(name="any")["annotator_kind"].unique().to_list() == ["LLM"]
    assert read.filter(name="gold").select("label", "annotator_kind", "annotator").row(0) == (
        "tie",
        "HUMAN",
        "default",
    )
    ours.write(read)
    assert assessments(mlflow, trace) == before
    ours.write(read.with_columns(explanation=pl.lit("because")))
    assert assessments(mlflow, trace).keys() == before.keys()
    assert ours.read().filter(name="any")["explanation"].unique().to_list() == ["because"]
    votes = votes_of(read, name="any", words={"true": "A"})
    assert votes.tally().row(0) == (trace, 0, 0, 2)
    assert missing_by_status(votes) == {"unparsed": 4, "failed": 1}


def test_grades_are_numbers_and_pass_or_fail_booleans(mlflow, ours, traces):
    from mlflow.entities import AssessmentSource

    trace, judge = traces[0][0], AssessmentSource("LLM_JUDGE", "gpt-5.4")
    for value in (True, False, True, "no idea"):
        mlflow.log_feedback(trace_id=trace, name="polite", value=value, source=judge)
    votes = votes_of(ours.read(), name="polite", scale=PASS.scale)
    assert votes.counts()[1].tolist() == [[1, 2]]
    assert missing_by_status(votes) == {"unparsed": 1}
    for model, name, value in ((PASS, "passes", True), (GRADES, "grade", 2.0)):
        decided = annotations_of({"item": [trace], "score": [1]}, model, name=name)
        ours.write(decided)
        ours.write(decided)
        (stored,) = (
            own for own_name, own in assessments(mlflow, trace).values() if own_name == name
        )
        assert (stored, type(stored)) == (value, type(value))
        read = ours.read().filter(name=name)
        assert said(read) == said(decided)
        labels = labels_of(read, kind="CODE", scale=model.label_scale)
        assert labels.labels.tolist() == [value]


def test_an_assessment_that_is_overridden_is_left_out(mlflow, ours, traces):
    from mlflow.entities import AssessmentSource

    trace = traces[0][0]
    source = AssessmentSource("HUMAN", "ada")
    first = mlflow.log_feedback(trace_id=trace, name="gold", value="A", source=source)
    mlflow.override_feedback(
        trace_id=trace, assessment_id=first.assessment_id, value="B", source=source
    )
    assert labels_of(ours.read()).labels.tolist() == [-1]


def test_what_cannot_be_written_is_an_error_that_names_the_row(mlflow, ours, traces):
    trace = traces[0][0]
    before = ours.read().height
    with pytest.raises(InputError) as caught:
        ours.write(frame_of([annotation(trace), annotation("tr-0")]))
    assert ours.read().height == before  # nor was the row before it
    message = "annotations, row 2, column trace_id: MLflow has no trace 'tr-0'"
    assert str(caught.value) == message
    with refused(row=1, column="trace_id", source="annotations", got=None, expected="a trace"):
        ours.write(frame_of([annotation(None, span_id="s")]))
    ours.write(frame_of([annotation(trace)]))
    expected = annotation(trace, "B", metadata={"mlflow.expectation": True})
    with pytest.raises(mlflow.exceptions.MlflowException, match="expectation"):
        ours.write(frame_of([expected]))
