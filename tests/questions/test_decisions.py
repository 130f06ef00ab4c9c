"""A frame of votes, with columns and words of its own, to a frame of labels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg.datasets import Thurstone, simulate
from btdagg.model import CalibrationWarning
from btdagg.votes import ProvenanceWarning
from refusals import refused

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


def test_labels_are_of_people_and_else_of_the_model_that_calibrate_fits():
    with pytest.warns(CalibrationWarning, match="the confidence is approximate"):
        decided = btdagg.decide(FRAME, PEOPLE, agreement=0.6, **HOW)
    assert list(decided.columns) == ["Prompt ID", "label", "source", "probability", "trusted"]
    assert decided["Prompt ID"].tolist() == ITEMS
    assert decided["source"].tolist() == ["people"] * 80 + ["model"] * 120
    model = btdagg.calibrate(JUDGE.counts[:80], JUDGE.labels[:80]).model
    labels = [*JUDGE.labels[:80].tolist(), *model.decide(JUDGE.counts)[80:].tolist()]
    assert decided["label"].tolist() == labels
    own = model.predict_proba(JUDGE.counts)[np.arange(200), np.array(labels) + 1]
    np.testing.assert_allclose(decided["probability"], own, atol=1e-12)
    certificate = btdagg.certify(JUDGE.counts, [*labels[:80], *[None] * 120], agreement=0.6)
    trusted = certificate.trusted(JUDGE.counts[80:]).tolist()
    assert decided["trusted"].tolist() == [True] * 80 + trusted
    assert 0 < sum(trusted) < 120
    without = btdagg.decide(FRAME, PEOPLE, **HOW)
    pd.testing.assert_frame_equal(without, decided.drop(columns="trusted"))


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_the_answer_is_a_frame_of_the_same_kind(make):
    expected = btdagg.decide(FRAME, PEOPLE, **HOW)
    decided = btdagg.decide(make(FRAME), PEOPLE, **HOW)
    assert type(decided) is type(make(FRAME))
    pd.testing.assert_frame_equal(decided.to_pandas(), expected, check_dtype=False)


def counted(frame, reads):
    """A lazy frame that notes when it is read."""
    return frame.lazy().map_batches(lambda rows: reads.append(rows.columns) or rows)


GRADED = pl.DataFrame({"id": [1, 1, 2, 2, 3, 3, 4], "score": [1, 2, 5, 5, 3, None, None]})
OF_GRADES = {"id": [1, 2, 3], "label": [1, 5, 3]}
FIVE, HALVES = btdagg.Scale("1-5"), btdagg.Scale("0.5,1,1.5,2,2.5")


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize(
    ("frame", "labels", "how"),
    [
        (pl.from_pandas(FRAME), PEOPLE, HOW),
        (pl.from_pandas(FRAME), PEOPLE, HOW | {"agreement": 0.6}),
        (GRADED, OF_GRADES, {"scale": FIVE, "label_scale": FIVE}),
        (
            GRADED.with_columns(pl.col("score") / 2),
            {"id": [1, 2], "label": [0.5, 2.5]},
            {"scale": HALVES, "label_scale": HALVES},
        ),
        (GRADED.with_columns(grades=pl.lit("1-5")), OF_GRADES, {"label_scale": FIVE}),
        (GRADED.with_columns(grades=pl.lit("1-5")), OF_GRADES | {"grades": ["1-5"] * 3}, {}),
        (GRADED, {"id": [1, 2, 3], "label": ["pass", "fail", "pass"]}, {"scale": FIVE}),
        (pl.DataFrame({"item": ["x", "y"], "b": [1, 4], "same": [0] * 2, "a": [5, 0]}),
         {"item": ["x"], "label": [1]}, {}),
    ],
)  # fmt: skip
def test_a_lazy_frame_comes_back_lazy_and_is_not_read_before(frame, labels, how):
    reads = []
    decided = btdagg.decide(counted(frame, reads), labels, **how)
    assert isinstance(decided, pl.LazyFrame)
    assert not reads
    expected = btdagg.decide(frame, labels, **how)
    assert decided.collect_schema() == expected.schema
    assert decided.collect().equals(expected)
    assert decided.collect(engine="streaming").equals(expected)
    # What is asked of the answer changes no model.
    name = expected.columns[0]
    later = decided.filter(pl.col(name) == expected[name][-1]).select(name, "label")
    assert later.collect().rows() == expected[-1:].select(name, "label").rows()
    assert decided.head(1).collect().equals(expected[:1])


def test_what_is_wrong_with_a_lazy_frame_is_said_when_it_is_collected():
    decided = btdagg.decide(pl.from_pandas(FRAME).lazy(), PEOPLE, columns=NAMES)
    with refused("words", row=1, column="gold", source="data frame", got="draw"):
        decided.collect()
    with pytest.raises(btdagg.InputError, match="no column 'item'"):
        btdagg.decide(pl.LazyFrame({"x": [1], "vote": ["A"]}), PEOPLE)


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


@pytest.mark.filterwarnings("ignore:no label is:btdagg.model.CalibrationWarning")
@pytest.mark.filterwarnings("ignore:. labels. too few:btdagg.model.CalibrationWarning")
@pytest.mark.filterwarnings("ignore:items have unequal numbers:btdagg.model.CalibrationWarning")
def test_grades_and_items_without_any():
    scores = {"id": [1, 1, 2, 2, 3, 3, 4], "score": [1, 2, 5, 5, 3, None, None]}
    told = {"scale": FIVE, "label_scale": FIVE}
    decided = btdagg.decide(scores, {"id": [1, 2, 3], "label": [1, 5, 3]}, **told)
    assert decided.columns == ["id", "label", "source", "probability"]
    assert decided["label"].to_list() == [1, 5, 3, None]
    assert decided["source"].to_list() == [*["people"] * 3, None]
    named = btdagg.decide(scores, {"id": [1, 2, 4], "label": [1, 5, 2]}, **told)
    assert named["label"].to_list()[3] == 2  # of people, without a vote
    assert named["source"].to_list() == ["people", "people", "model", "people"]
    assert named["probability"].is_null().to_list() == [False, False, False, True]


def test_too_few_labels_are_said_and_unknown_columns_refused():
    with pytest.warns(CalibrationWarning, match="no items can be certified") as said:
        decided = btdagg.decide(FRAME, PEOPLE, agreement=0.99, **HOW)
    # A confidence in nothing is neither exact nor approximate.
    assert not [own for own in said if "approximate" in str(own.message)]
    assert decided["trusted"].tolist() == (decided["source"] == "people").tolist()
    with pytest.raises(btdagg.InputError, match="no column 'golden'"):
        btdagg.decide(FRAME, PEOPLE, columns=NAMES | {"label": "golden"}, words=WORDS)


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_votes_unlike_those_that_were_certified_are_not_trusted_by_any_door():
    """Table, frame, counts and their array; a certificate beside its model; and votes cut short."""
    noise = pl.DataFrame({"item": COLUMNS["item"], "vote": np.roll(COLUMNS["vote"], 7)})
    others = btdagg.read_votes(noise)
    table = others.tally()
    certificate = btdagg.certify(JUDGE.counts, JUDGE.labels[:120].tolist() + [None] * 80)
    by = (certificate,), (certificate.model, certificate)
    for votes in (others, noise, others.items(), table, others.counts()[1]):
        for model, *more in by:
            how = {"certificate": more[0]} if more else {}
            with pytest.warns(ProvenanceWarning, match=r"differ .* \(p = .*no label is tr"):
                assert not btdagg.decisions(votes, model, **how)["trusted"].any()
        with pytest.warns(ProvenanceWarning, match="trusted all the same"):
            decided = btdagg.decisions(votes, certificate, trust_unlike=True)
        assert decided["trusted"].to_list() == certificate.trusted(others.counts()[1]).tolist()
    # Noise that comes after the second vote of an item is seen, and the order of votes is not.
    place = pl.int_range(pl.len()).over("item")
    late = pl.DataFrame(COLUMNS).with_columns(
        vote=pl.when(place < 2).then("vote").otherwise(pl.Series(np.roll(COLUMNS["vote"], 7)))
    )
    with pytest.warns(ProvenanceWarning, match="differ from those that were certified"):
        assert not btdagg.decisions(btdagg.read_votes(late), certificate)["trusted"].any()
    # Nor does one item with few votes hide the others' later ones.
    short = late.filter((pl.col("item") != COLUMNS["item"][0]) | (place < 2))
    with pytest.warns(ProvenanceWarning, match="differ from those that were certified"):
        assert not btdagg.decisions(btdagg.read_votes(short), certificate)["trusted"].any()
    with refused("trust_unlike", got=True):
        btdagg.decisions(table, certificate.model, trust_unlike=True)
    # Those of a kind that end when they agree are alike, by as many votes as all have.
    own = btdagg.read_votes(COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProvenanceWarning)
        assert btdagg.decisions(own, certificate)["trusted"].any()
        in_order = pl.DataFrame(COLUMNS).sort("item", "vote")
        fewer = in_order.filter((pl.col("item") != COLUMNS["item"][0]) | (place < 2))
        for rows in (in_order, fewer):
            assert btdagg.decisions(btdagg.read_votes(rows), certificate)["trusted"].any()
        lead = pl.col("vote").cum_sum().over("item").abs().cum_max().over("item")
        stopped = own.frame.filter(lead.shift(1).over("item").fill_null(0) < 2)
        btdagg.decisions(btdagg.read_votes(stopped), certificate)
