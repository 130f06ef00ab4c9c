"""The frame of annotations: what is read of it, what is written to it, and what is refused."""

import datetime as dt
import json

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from annotated import annotation
from btdagg import Covariate, DavidsonModel, GradeModel, InputError, Scale
from btdagg.integrations.annotations import (
    COLUMNS,
    annotations_of,
    frame_of,
    labels_of,
    missing_by_status,
    read_annotations,
    rows_of,
    votes_of,
)
from refusals import refused

MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)


def frame(*rows):
    return frame_of(rows)


def drawn(n_traces=40, n_votes=8):
    """Votes as annotations, and their counts."""
    rng = np.random.default_rng(3)
    counts = rng.multinomial(n_votes, (0.3, 0.2, 0.5), size=n_traces)
    rows = [
        annotation(f"t{k}", word, identifier=str(number), metadata={"sample": number})
        for k, of_item in enumerate(counts)
        for number, word in enumerate(np.repeat(["B", "tie", "A"], of_item))
    ]
    return frame(*rows), counts


def test_votes_of_judges_are_counted_by_item():
    annotations, counts = drawn()
    votes = votes_of(annotations)
    ids, found = votes.counts()
    assert ids.tolist() == [f"t{k}" for k in range(len(counts))]
    np.testing.assert_array_equal(found, counts)
    assert votes.values("judge").to_list() == ["gpt-5.4"]
    assert votes.frame["sample"].dtype == pl.Int64
    assert missing_by_status(votes) == {}


LIBRARIES = {
    "pandas": lambda given: given.to_pandas(),
    "pyarrow": lambda given: given.to_arrow(),
    "narwhals": nw.from_native,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_any_library_says_the_same(library):
    given = frame(
        annotation(score=1.0, created=NOON, metadata={"task": "chat"}),
        annotation("t2", None, score=-1, explanation="worse", span_id="s"),
    )
    other = LIBRARIES[library](given)
    assert isinstance(other, pd.DataFrame | pa.Table | nw.DataFrame | dict)
    read = read_annotations(other).frame
    assert read.select(COLUMNS).equals(given)
    assert votes_of(other).frame["vote"].to_list() == [1, -1]


def test_a_file_says_the_same(tmp_path):
    given = frame(annotation(created=NOON, score=0.25, metadata={"a": [1, {"b": None}]}))
    for name, write in (("a.csv", given.write_csv), ("a.parquet", given.write_parquet)):
        write(tmp_path / name)
        assert read_annotations(tmp_path / name).frame.select(COLUMNS).equals(given)


def test_what_is_no_vote_is_missing_and_counted_by_reason():
    votes = votes_of(
        frame(
            annotation(),
            annotation(label="It depends."),
            annotation(label="better A"),
            annotation(label=None),
            annotation(label=" "),
            annotation(label=None, score=0.5),
            annotation(metadata={"btdagg.error": {"error_code": "TIMEOUT"}}),
        )
    )
    assert votes.n_missing == 6
    assert votes.tally().row(0) == ("t1", 0, 0, 1)
    assert missing_by_status(votes) == {"unparsed": 3, "empty": 2, "failed": 1}


def test_words_are_the_users():
    given = frame(
        annotation(label="First"),
        annotation(label=" second "),
        annotation(label="B"),
        annotation(label=None, score=2),
        annotation(label=None, score=0.5),
    )
    votes = votes_of(given, words={"first": "A", "SECOND": -1, "2": "b", "0.5": "same"})
    assert votes.frame["vote"].to_list() == [1, -1, -1, -1, 0]
    # A word that is given replaces one that is known.
    assert votes_of(frame(annotation(label="A")), words={"A": "B"}).frame["vote"].item() == -1
    with refused("words", got="second=x"):
        votes_of(given, words={"first": 1, "second": "x"})


def test_keys_of_metadata_are_columns_of_votes():
    votes = votes_of(
        frame(
            annotation(metadata={"order": "BA", "sample": 0, "confidence": 0.5, "task": "chat"}),
            annotation(label="B", metadata={"order": "AB", "sample": 1, "temperature": 0.3}),
        )
    )
    chosen = votes.frame.select("order", "sample", "confidence", "task", "temperature").rows()
    assert chosen == [("BA", 0, 0.5, "chat", None), ("AB", 1, None, None, "0.3")]
    twice = annotation(metadata={"sample": 0}), annotation(label="B", metadata={"sample": 0})
    with pytest.raises(InputError, match="annotations, rows 1 and 2: both have item 't1'"):
        votes_of(frame(*twice))


def test_systems_and_lengths_are_in_metadata_or_joined_columns():
    covariates = (
        Covariate("standing", 0.9, 0.5, standings={"ant": 0.5, "bee": -0.5}),
        Covariate("length", 0.8, 1.0),
    )
    model = DavidsonModel(0.4, 0.5, 0.3, covariates=covariates)
    own = {"system_a": "bee", "system_b": "ant", "chars_a": 9, "chars_b": 90}
    chars = {"standing": [-1.0], "length": [np.log1p(9.0) - np.log1p(90.0)]}
    label = model.decide([[0, 0, 1]], covariates=chars)[0]
    assert label == -1
    bare = frame(annotation(label="A"))
    joined = bare.with_columns(**{name: pl.lit(value) for name, value in own.items()})
    for given in (frame(annotation(label="A", metadata=own)), joined):
        assert annotations_of(votes_of(given), model)["score"].to_list() == [label]
    columns = "or a column standing, or system_a and system_b"
    with refused("covariates", got="standing", expected=columns):
        annotations_of(votes_of(bare), model)
    columns = "standing, or a column length, or chars_a and chars_b"
    with refused("covariates", got="length", expected=columns):
        annotations_of(votes_of(joined.drop("chars_b")), model)


def test_an_item_is_a_trace_a_span_or_any_column():
    given = frame(annotation(span_id="s1"), annotation(span_id="s2", label="B"))
    assert votes_of(given).ids.tolist() == ["t1"]
    assert votes_of(given, item="span_id").ids.tolist() == ["s1", "s2"]
    other = given.with_columns(pair=pl.Series([7, 8]))
    assert votes_of(other, item="pair").ids.tolist() == [7, 8]
    with pytest.raises(InputError, match="annotations: no column 'pair'"):
        votes_of(given, item="pair")
    with refused(row=1, column="span_id", source="annotations", got=None, expected="an item"):
        votes_of(frame(annotation()), item="span_id")


def test_kinds_and_names_are_told_apart():
    given = frame(
        annotation(),
        annotation(label="B", annotator_kind="HUMAN"),
        annotation(label="tie", name="tone"),
    )
    with refused("name", got=None, expected="one of better, tone"):
        votes_of(given)
    assert votes_of(given, name="tone").frame["vote"].to_list() == [0]
    assert votes_of(given, name="better", kind="HUMAN").frame["vote"].to_list() == [-1]
    with pytest.raises(InputError, match="no row has name 'colour'; found better, tone"):
        votes_of(given, name="colour")


def human(trace="t1", label="A", **other):
    return annotation(trace, label, annotator_kind="HUMAN", annotator="ada", **other)


def test_labels_are_those_of_people():
    labels = labels_of(
        frame(
            human(metadata={"group": "p1"}),
            annotation("t2"),
            human("t3", None, score=-1, metadata={"group": "p2"}),
            human("t4", None, metadata={"group": "p2"}),
            human(metadata={"group": "p1"}),  # who agrees
        )
    )
    assert labels.ids.tolist() == ["t1", "t3"]
    assert labels.labels.tolist() == [1, -1]
    assert labels.groups.tolist() == ["p1", "p2"]
    assert labels.unlabelled["item"].to_list() == ["t4"]


def test_a_label_that_cannot_be_read_is_an_error():
    with pytest.raises(InputError) as caught:
        labels_of(frame(annotation(), human("t2", "fine")))
    assert str(caught.value) == (
        "annotations, row 2, column label: got 'fine', expected -1, 0, 1 or A, tie, B"
    )
    with refused(
        row=1, column="score", source="annotations", got=2.0, expected="yes, -1, 0, 1 or A"
    ):
        labels_of(frame(human(label=None, score=2)), words={"yes": "A"})
    with pytest.raises(InputError, match="rows 1 and 3: both have item 't1', with labels 1 and -1"):
        labels_of(frame(human(), human("t2"), human(label="B")))


def test_decisions_are_those_of_the_model_and_can_be_read_back():
    annotations, counts = drawn()
    decided = annotations_of(votes_of(annotations), MODEL, name="label")
    assert tuple(decided.columns) == COLUMNS
    back = labels_of(decided, name="label", kind="CODE")
    np.testing.assert_array_equal(back.labels, MODEL.decide(counts))
    np.testing.assert_array_equal(decided["score"], MODEL.decide(counts))
    metadata = [json.loads(text) for text in decided["metadata"]]
    sides = ("minus", "tie", "plus")
    assert [[each[side] for side in sides] for each in metadata] == counts.tolist()
    np.testing.assert_array_equal(
        [[each[f"p_{side}"] for side in sides] for each in metadata], MODEL.predict_proba(counts)
    )
    assert decided.height == len(list(rows_of(decided)))


TONE = Scale(range(1, 6))


def graded(score, label=None, **other):
    return annotation(other.pop("trace", "t1"), label, score=score, **other)


def test_scores_of_judges_are_grades_and_what_is_none_is_missing():
    votes = votes_of(
        frame(
            graded(4),
            graded(5, "excellent"),
            graded(None, "2"),
            graded(None, "Good"),
            graded(3.5),
            graded(11, trace="t2"),
            graded(None, "fine", trace="t2"),
            graded(None, trace="t2"),
        ),
        words={"good": 4},
        scale=TONE,
    )
    assert votes.counts()[1].tolist() == [[0, 1, 0, 2, 1], [0, 0, 0, 0, 0]]
    assert missing_by_status(votes) == {"unparsed": 3, "empty": 1}


@pytest.mark.parametrize("points", [(0, 1), (0, 0.5, 1)])
def test_booleans_are_grades_of_pass_and_fail(points):
    rows = [graded(1, "true"), graded(None, "Pass"), graded(0, "false"), graded(1.0)]
    votes = votes_of(frame(*rows), scale=Scale(points))
    assert votes.scale == Scale(points)
    assert votes.counts()[1][0, [0, -1]].tolist() == ([1, 3] if len(points) == 2 else [1, 2])


@pytest.mark.parametrize("grades", [(1, 2, 3, 4, 5), (0, 1)])
def test_decided_grades_are_scores_and_can_be_read_back(grades):
    cuts, scales = (2.5, 3, 4, 4.8)[: len(grades) - 1], (TONE, Scale(grades))
    model = GradeModel(1.5, cuts, *scales)
    counts = np.random.default_rng(2).multinomial(6, (0.1, 0.2, 0.2, 0.3, 0.2), size=20)
    rows = [
        graded(int(grade), trace=f"t{k}")
        for k, own in enumerate(counts) for grade in np.repeat(range(1, 6), own)
    ]  # fmt: skip
    votes = votes_of(frame(*rows, graded(None, "?", trace="unread")), scale=scales[0])
    decided = annotations_of(votes, model, name="tone")
    assert decided["trace_id"].to_list() == [f"t{k}" for k in range(20)]
    np.testing.assert_array_equal(decided["score"], model.decide(counts))
    words = {0: "false", 1: "true"} if len(grades) == 2 else {}
    assert decided["label"].to_list() == [words.get(score) for score in decided["score"]]
    back = labels_of(decided, name="tone", kind="CODE", scale=scales[1])
    np.testing.assert_array_equal(back.labels, model.decide(counts))
    metadata = [json.loads(text) for text in decided["metadata"]]
    assert [[each[str(grade)] for grade in range(1, 6)] for each in metadata] == counts.tolist()
    shares = [[each[f"p_{grade}"] for grade in grades] for each in metadata]
    np.testing.assert_array_equal(shares, model.predict_proba(counts))
    one, *_ = counts.tolist()
    assert decided["explanation"][0].startswith(f"votes: {one[0]} of 1, {one[1]} of 2, ")


def test_a_decision_says_what_it_rests_on():
    decided = annotations_of({"item": ["t1"] * 3, "vote": ["A", "A", "tie"]}, MODEL)
    share = MODEL.predict_proba([[0, 1, 2]])[0]
    assert decided["explanation"].item() == (
        "votes: 0 B, 1 tie, 2 A; "
        f"probabilities: B {share[0]:.3f}, tie {share[1]:.3f}, A {share[2]:.3f}"
    )
    assert decided.select("name", "annotator_kind", "annotator").row(0) == (
        "calibrated",
        "CODE",
        "btdagg",
    )


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("annotator_kind", "ROBOT", "LLM, HUMAN, CODE"),
        ("name", " ", "a name"),
        ("trace_id", None, "a trace, or a span in span_id"),
        ("score", "high", "a number, or nothing"),
        ("metadata", "{", "a JSON object"),
        ("created", "today", "a time such as 2026-01-31T12"),
    ],
)
def test_a_bad_row_is_named(column, value, expected):
    rows = [annotation(), annotation("t2") | {column: value}]
    columns = {key: [row.get(key) for row in rows] for key in {**rows[0], **rows[1]}}
    got = None if value == " " else value
    with refused(source="annotations", row=2, column=column, got=got, expected=expected):
        read_annotations(columns)


def test_times_are_in_utc():
    for text in ("2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-01-31 12:00:00"):
        read = read_annotations({**{k: [v] for k, v in annotation().items()}, "created": [text]})
        assert read.frame["created"].to_list() == [NOON]
    naive = frame(annotation(created=NOON)).with_columns(
        pl.col("created").dt.replace_time_zone(None).dt.cast_time_unit("ns")
    )
    assert read_annotations(naive).frame["created"].to_list() == [NOON]


def test_annotations_that_are_the_same_are_not_written_twice():
    rows = annotation(identifier="1"), annotation(identifier="2"), annotation(identifier="1")
    with pytest.raises(InputError, match="annotations, rows 1 and 3: both have trace_id 't1'"):
        list(rows_of(frame(*rows)))
