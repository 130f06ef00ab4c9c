"""A label between two points is a mean of raters: shares of both, and one label for models."""

import numpy as np
import pytest

import btdagg
from btdagg import PAIRS, PASS_FAIL, InputError, Scale, read_labels, read_votes
from refusals import refused

THREE = Scale("1-3")
GRADES = {
    "item": [*"abcdef"],
    "label": [1.667, 2, 2.5, 1.5, None, 3],
    "n_raters": [3, 3, 2, 2, 0, 1],
}
GRADES["n_raters"][4] = None
PAIR = {"item": [*"abcdef"], "label": ["0.333", "A", "-0.5", "0.75", "", "tie"]}
SHARES = {
    "grades": [[1 / 3, 2 / 3, 0], [0, 1, 0], [0, 0.5, 0.5], [0.5, 0.5, 0], [0, 0, 1]],
    "pairs": [[0, 2 / 3, 1 / 3], [0, 0, 1], [0.5, 0.5, 0], [0, 0.25, 0.75], [0, 1, 0]],
}
NEAREST = {"grades": [2, 2, 2, 2, 3], "pairs": [0, 1, 0, 1, 0]}
TABLES = {"grades": (GRADES, THREE), "pairs": (PAIR, PAIRS)}


@pytest.mark.parametrize("kind", TABLES)
def test_a_mean_is_shares_of_both_points_and_the_nearer_label(kind):
    rows, scale = TABLES[kind]
    labels = read_labels(rows, scale=scale)
    np.testing.assert_allclose(labels.shares, SHARES[kind], atol=1e-3)
    assert labels.labels.tolist() == NEAREST[kind]
    assert (labels.n_disputed, labels.n_missing) == (3, 1)
    assert labels.remarks[0].startswith("raters disagree on 3 of 5 labelled items: each gets the ")


@pytest.mark.parametrize("kind", TABLES)
def test_what_is_made_of_means_is_chosen_as_of_raters(kind):
    rows, scale = TABLES[kind]
    majority = read_labels(rows, scale=scale, raters="majority")
    assert majority.shares.tolist() == scale.shares(NEAREST[kind]).tolist()
    agreed = read_labels(rows, scale=scale, raters="drop")
    assert agreed.ids.tolist() == (["b", "f"])
    assert agreed.n_disputed == 3


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("kind", TABLES)
def test_means_are_what_rows_of_their_raters_are(kind):
    """Two raters of neighbouring labels, and their mean."""
    scale = TABLES[kind][1]
    low, middle, high = scale.points
    pairs = [(low, middle), (middle, high), (middle, middle), (high, high)] * 5
    items = [f"q{n}" for n in range(len(pairs))]
    each = {
        "item": np.repeat(items, 2),
        "rater": [1, 2] * len(pairs),
        "label": np.ravel(pairs).tolist(),
    }
    means = {"item": items, "label": np.mean(pairs, axis=1), "n_raters": [2] * len(pairs)}
    read = [read_labels(rows, scale=scale) for rows in (each, means)]
    assert read[0].shares.tolist() == read[1].shares.tolist()
    assert read[0].labels.tolist() == read[1].labels.tolist()
    rng = np.random.default_rng(2)
    votes = {"item": np.repeat(items, 4), "vote": rng.choice(scale.points, 4 * len(items))}
    table = read_votes(votes, scale=scale)
    joined = [table.labelled(labels) for labels in read]
    assert joined[0].facts["ratings"].tolist() == joined[1].facts["ratings"].tolist()
    estimates = [btdagg.estimate(table, labels).estimates for labels in read]
    for name, own in estimates[0].items():
        assert own.value == pytest.approx(estimates[1][name].value, abs=1e-12)
        assert own.low == pytest.approx(estimates[1][name].low, abs=1e-12)
    models = [btdagg.calibrate(table, labels).model for labels in read]
    assert models[0].as_dict() == models[1].as_dict()


def test_a_mean_without_a_number_of_raters_has_no_ratings():
    labels = read_labels({"item": ["a", "b"], "label": [1.5, 3]}, scale=THREE)
    votes = read_votes({"item": ["a", "b"], "score": [1, 3]}, scale=THREE)
    assert "ratings" not in votes.labelled(labels).facts


def test_shares_that_pass():
    labels = read_labels({"item": ["a", "b", "c"], "label": ["0.667", "pass", 0]}, scale=PASS_FAIL)
    np.testing.assert_allclose(labels.shares[:, 1], [0.667, 1, 0])
    assert labels.labels.tolist() == [1, 1, 0]


def test_points_need_not_be_evenly_apart():
    labels = read_labels({"item": ["a", "b", "c"], "label": [2, 5, 6]}, scale=Scale((1, 3, 9)))
    np.testing.assert_allclose(labels.shares, [[0.5, 0.5, 0], [0, 2 / 3, 1 / 3], [0, 0.5, 0.5]])
    assert labels.labels.tolist() == [3, 3, 3]


def test_words_come_before_means():
    words = {"0": "B", "0.5": "tie", "1": "A"}
    labels = read_labels({"item": [*"abc"], "label": ["0", "0.5", "1"]}, words=words)
    assert labels.labels.tolist() == [-1, 0, 1]
    assert labels.n_disputed == 0


@pytest.mark.parametrize(
    ("label", "scale"), [(3.2, THREE), (0.9, THREE), (-1.5, PAIRS), ("x", THREE)]
)
def test_what_is_off_the_scale_is_refused(label, scale):
    with refused(row=2, column="label", source="data frame"):
        read_labels({"item": ["a", "b"], "label": ["1", str(label)]}, scale=scale)
    with refused(row=1, column="n_raters", source="data frame", got="0"):
        read_labels({"item": ["a"], "label": ["1"], "n_raters": ["0"]}, scale=scale)


# Counts of several judges and tasks

JUDGES = {
    "item": ["x", "y", "x", "y"],
    "judge": ["g", "g", "h", "h"],
    "minus": [1, 0, 2, 0],
    "tie": [0, 1, 0, 0],
    "plus": [1, 2, 0, 4],
}
OF_GRADES = {
    "item": ["x", "y", "x"],
    "judge": ["g", "g", "h"],
    "1": [1, 0, 2],
    "2": [0, 3, 0],
    "3": [1] * 3,
}


@pytest.mark.parametrize(
    ("rows", "scale", "counts"),
    [(JUDGES, PAIRS, [[3, 0, 1], [0, 1, 6]]), (OF_GRADES, THREE, [[3, 0, 2], [0, 3, 1]])],
)
def test_counts_of_several_judges_are_pooled(rows, scale, counts):
    votes = read_votes(rows, scale=scale)
    ids, pooled = votes.counts()
    assert (ids.tolist(), pooled.tolist()) == (["x", "y"], counts)
    assert votes.filter({"judge": "h"}).counts()[0].tolist() == rows["item"][2:]
    assert votes.items().pooled.tolist() == counts


@pytest.mark.parametrize("scale", [PAIRS, THREE])
def test_counts_of_several_tasks_are_not(scale):
    rows, _ = (JUDGES, 0) if scale is PAIRS else (OF_GRADES, 0)
    rows = {name if name != "judge" else "task": column for name, column in rows.items()}
    votes = read_votes(rows, scale=scale)
    with pytest.raises(InputError, match="item 'x' is in two tasks, 'g' and 'h'"):
        votes.counts()
    assert votes.filter({"task": "h"}).counts()[0].tolist() == rows["item"][2:]
    label = scale.points[0]
    labels = read_labels(
        {"item": ["x", "x"], "task": ["g", "h"], "label": [label] * 2}, scale=scale
    )
    assert votes.filter({"task": "g"}).labelled(labels).label.tolist() == [label]
