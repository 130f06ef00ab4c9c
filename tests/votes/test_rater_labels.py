"""Labels of several raters, as `btdagg label` writes them, read as labels and as ratings."""

import itertools

import numpy as np
import polars as pl
import pytest

from btdagg import InputError, majority_vote, paper, read_labels


def test_the_gold_label_is_the_majority_of_raters(tmp_path):
    votes = list(itertools.product((-1, 0, 1, None), repeat=3))
    rows = [(f"q{k}", r, v) for k, of in enumerate(votes) for r, v in zip("xyz", of, strict=True)]
    frame = pl.DataFrame(rows, ["item", "rater", "label"], orient="row")
    found = read_labels(frame.with_columns(note=pl.col("item") + pl.col("rater")))
    counts = np.array([[of.count(v) for v in (-1, 0, 1)] for of in votes])
    said = counts.sum(axis=1) > 0
    assert found.labels.tolist() == majority_vote(counts)[said].tolist()
    assert found.ids.tolist() == [f"q{k}" for k in np.flatnonzero(said)]
    assert found.unlabelled["item"].to_list() == [f"q{k}" for k in np.flatnonzero(~said)]
    assert found.frame["note"].to_list() == [f"q{k}x" for k in np.flatnonzero(said)]
    assert "rater" not in found.columns


def test_a_rater_with_two_labels_on_an_item_is_refused():
    frame = {"item": ["q", "q"], "rater": ["x", "x"], "label": [1, 0]}
    with pytest.raises(InputError, match="q"):
        read_labels(frame)
    alone = {"item": ["q", "r"], "rater": ["x", "y"], "label": [1, 0]}
    assert read_labels(alone).frame["rater"].to_list() == ["x", "y"]


def test_labels_of_raters_are_ratings_too():
    frame = {"item": ["q", "q"], "rater": ["x", "y"], "label": ["A", None], "note": ["", ""]}
    found = paper.read_ratings(frame)
    assert found.counts().tolist() == [[0, 0, 1]]
    assert found.n_missing == 1
    with pytest.raises(InputError, match="vote"):
        paper.read_ratings({"item": ["q"], "rater": ["x"]})
