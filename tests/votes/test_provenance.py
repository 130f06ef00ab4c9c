"""What a model was fitted to: kept, compared, warned of."""

import dataclasses
import pickle

import numpy as np
import pytest

from btdagg import DavidsonModel, calibrate, read_votes
from btdagg.datasets import simulate
from btdagg.online import StoppingRule
from btdagg.votes import Provenance, ProvenanceWarning

KNOWN = Provenance(
    n_votes=8, n_labels=50, judge="g", template=("a", "b"), temperature=0.5, task="math"
)
MODEL = DavidsonModel(1.2, 0.3, 0.8, provenance=KNOWN)
SAMPLE = simulate("rb2-math", 120, 8, seed=2)


def votes_of(n_votes, **columns):
    """Votes on three items."""
    vote = ["A", "tie", "B"] * n_votes
    items = ["x", "y", "z"] * n_votes
    return read_votes(
        {"item": items, "vote": vote, **{k: [v] * len(items) for k, v in columns.items()}}
    )


# The value


def test_values_are_texts_however_they_come():
    assert KNOWN.judge == ("g",)
    assert KNOWN.temperature == ("0.5",)
    assert Provenance(temperature=["0.50", 0.5, "5e-1", np.float32(0.5)]) == Provenance(
        temperature="0.5"
    )
    assert Provenance(temperature=["default", 1, 0.0]).temperature == ("default", "1", "0")
    assert Provenance(task=[2023, "2023"]).task == ("2023",)
    assert str(KNOWN) == (
        "8 votes an item, 50 labels, judge g, template a, b, temperature 0.5, task math"
    )
    assert str(Provenance()) == "not known"
    assert str(Provenance(judge=list("abcdefg"))) == "judge a, b, c, d, e and 2 more"


def test_it_is_what_votes_say_of_themselves():
    votes = votes_of(2, judge="g", temperature=0.5, template="t", other=1)
    assert Provenance.of(votes) == Provenance(
        judge="g", temperature="0.5", template="t", strength="none"
    )
    counts = read_votes({"item": [1], "minus": [0], "tie": [1], "plus": [2], "task": ["math"]})
    assert Provenance.of(counts) == Provenance(task="math", strength="none")
    # Read once, since each model of a cross-fitting asks.
    assert votes.provenance == Provenance.of(votes)
    assert votes.provenance is votes.provenance


# The model


def test_a_model_keeps_it_and_is_equal_without_it():
    bare = DavidsonModel(1.2, 0.3, 0.8)
    assert bare == MODEL
    assert hash(MODEL) == hash(bare)
    assert repr(MODEL) == repr(bare)
    for other in (
        pickle.loads(pickle.dumps(MODEL)),
        dataclasses.replace(MODEL, beta=2.0),
        DavidsonModel.from_json(MODEL.to_json()),
    ):
        assert other.provenance == KNOWN


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_calibration_says_what_it_knows():
    weights = np.repeat([1.0, 0.0], 60)
    fitted = calibrate(SAMPLE.counts, SAMPLE.labels, weights=weights)
    assert fitted.model.provenance == Provenance(n_votes=8, n_labels=60)
    asked = Provenance(n_votes=10, judge="g")
    fitted = calibrate(SAMPLE.counts, SAMPLE.labels, provenance=asked)
    assert fitted.model.provenance == Provenance(n_votes=10, n_labels=120, judge="g")
    empty = calibrate(np.zeros((4, 3), dtype=int), [1, 0, -1, 0]).model
    assert empty.provenance == Provenance(n_labels=4)


# What differs


def test_more_votes_are_a_difference_and_fewer_of_every_item():
    of_two = Provenance(n_votes=2)
    more = "items have up to 8 votes, but the model was fitted for 2 votes an item"
    assert of_two.differences([[0, 1, 1], [0, 0, 8], [0, 0, 0]]) == (more,)
    assert of_two.differences([[0, 1, 1], [0, 0, 1], [0, 0, 0]]) == ()
    assert of_two.differences(np.empty((0, 3))) == ()
    assert Provenance().differences([[9, 9, 9]]) == ()
    # Where no item has as many as the model was fitted for they are systematically fewer.
    fewer = "no item has more than 1 vote, but the model was fitted for 2 votes an item"
    assert of_two.differences([[0, 1, 0], [0, 0, 1]]) == (fewer,)
    first = votes_of(2).counts(1)[1]
    assert of_two.differences(first, votes_of(2)) == (fewer,)
    assert Provenance(n_votes=1).differences(first, votes_of(2)) == ()


def test_other_values_of_a_column_are_a_difference():
    alike = votes_of(8, judge="g", template="b", temperature=0.5, task="math")
    counts = alike.counts()[1]
    assert KNOWN.differences(counts, alike) == ()
    other = votes_of(8, judge="h", template="c", temperature=0.7, task="ties")
    assert KNOWN.differences(counts, other) == (
        "judge is h, but the model was fitted for g",
        "template is c, but the model was fitted for a, b",
        "temperature is 0.7, but the model was fitted for 0.5",
        "task is ties, but the model was fitted for math",
    )
    # What either side does not say is not compared.
    assert KNOWN.differences(counts, votes_of(8)) == ()
    assert Provenance(n_votes=8).differences(counts, other) == ()
    nothing = votes_of(8, judge=None, temperature="")
    assert KNOWN.differences(counts, nothing) == ()
    wide = {"item": [1], "minus": [0], "tie": [0], "plus": [8], "judge": ["h"]}
    assert KNOWN.differences([[0, 0, 8]], read_votes(wide)) == (
        "judge is h, but the model was fitted for g",
    )


# Where it is warned of


def test_a_rule_for_another_number_of_votes_is_warned_of(tmp_path):
    path = tmp_path / "rule.json"
    StoppingRule.lossless(MODEL, 8).save(path)
    assert StoppingRule.load(path).model.provenance == KNOWN
    message = "^12 votes an item are planned, but the model was fitted for 8 votes an item$"
    with pytest.warns(ProvenanceWarning, match=message) as caught:
        rule = StoppingRule.lossless(MODEL, 12)
    assert caught[0].filename == __file__
    rule.save(path)
    with pytest.warns(ProvenanceWarning, match=message):
        StoppingRule.load(path)
