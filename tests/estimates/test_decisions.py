"""A frame of votes, with columns and words of its own, to a frame of labels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg.datasets import Thurstone, simulate
from btdagg.model import CalibrationWarning

JUDGE = simulate("wmt-en-de", 200, 6, seed=0, truth=Thurstone())
WORDS = {"left": "A", "draw": "tie", "right": "B"}
NAMES = {"item": "prompt id", "vote": "Winner", "label": "gold"}
COLUMNS = JUDGE.vote_columns()


def in_words(votes):
    return [{1: "left", 0: "draw", -1: "right"}[vote] for vote in votes]


FRAME = pd.DataFrame({"Prompt ID": COLUMNS["item"], "winner": in_words(COLUMNS["vote"])})
ITEMS = FRAME["Prompt ID"].drop_duplicates().tolist()
PEOPLE = pd.DataFrame({"Prompt ID": ITEMS[:80], "gold": in_words(JUDGE.labels[:80])})
HOW = {"columns": NAMES, "words": WORDS}


def test_labels_are_those_of_the_certified_model():
    decided = btdagg.decide(FRAME, PEOPLE, agreement=0.6, **HOW)
    assert list(decided.columns) == ["Prompt ID", "label", "probability", "trusted"]
    assert decided["Prompt ID"].tolist() == ITEMS
    labels = [*JUDGE.labels[:80].tolist(), *[None] * 120]
    certificate = btdagg.certify(JUDGE.counts, labels, agreement=0.6)
    shares = certificate.model.predict_proba(JUDGE.counts)
    assert decided["label"].tolist() == certificate.model.decide(JUDGE.counts).tolist()
    own = shares[np.arange(200), decided["label"].to_numpy() + 1]
    np.testing.assert_allclose(decided["probability"], own, atol=1e-12)
    assert decided["trusted"].tolist() == certificate.trusted(JUDGE.counts).tolist()
    assert 0 < decided["trusted"].sum() < 200
    without = btdagg.decide(FRAME, PEOPLE, **HOW)
    pd.testing.assert_frame_equal(without, decided.drop(columns="trusted"))


@pytest.mark.parametrize(
    "make", [pl.from_pandas, pa.Table.from_pandas, lambda frame: pl.from_pandas(frame).lazy()]
)
def test_the_answer_is_a_frame_of_the_same_kind(make):
    expected = btdagg.decide(FRAME, PEOPLE, **HOW)
    decided = btdagg.decide(make(FRAME), PEOPLE, **HOW)
    assert type(decided) in (pl.DataFrame, pa.Table)
    assert decided["label"].to_pylist() if isinstance(decided, pa.Table) else True
    rows = decided.to_pandas()
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


@pytest.mark.parametrize("labels", ["gold", " GOLD "])
def test_labels_may_be_a_column_of_the_same_frame(labels):
    both = FRAME.merge(PEOPLE, how="left")
    both.loc[0, "gold"] = None  # nothing in one row of an item
    decided = btdagg.decide(
        both, labels, columns={k: NAMES[k] for k in ("item", "vote")}, words=WORDS
    )
    pd.testing.assert_frame_equal(decided, btdagg.decide(FRAME, PEOPLE, **HOW))
    both.loc[1, "gold"] = next(word for word in WORDS if word != both.loc[2, "gold"])
    with pytest.raises(btdagg.InputError, match="rows 2 and 3: both have prompt id"):
        btdagg.decide(both, labels, **HOW)


def test_grades_and_items_without_any():
    scores = {"id": [1, 1, 2, 2, 3, 3, 4], "score": [1, 2, 5, 5, 3, None, None]}
    decided = btdagg.decide(scores, {"id": [1, 2, 3], "label": [1, 5, 3]})
    assert decided.columns == ["id", "label", "probability"]
    assert decided["label"].to_list() == [1, 5, 3, None]


def test_too_few_labels_are_said_and_unknown_columns_refused():
    with pytest.warns(CalibrationWarning, match="no items are certain"):
        decided = btdagg.decide(FRAME, PEOPLE, agreement=0.99, **HOW)
    assert not decided["trusted"].any()
    with pytest.raises(btdagg.InputError, match="no column 'golden'"):
        btdagg.decide(FRAME, PEOPLE, columns=NAMES | {"label": "golden"}, words=WORDS)
