"""What a model was fitted to: kept, compared, warned of."""

import copy
import dataclasses
import json
import pickle
import warnings

import numpy as np
import pytest

from btdagg import DavidsonModel, InputError, bootstrap, calibrate, read_counts, read_votes
from btdagg.datasets import simulate
from btdagg.model import CalibrationWarning, Refits, calibrate_by_mae
from btdagg.online import OnlineTally, StoppingRule
from btdagg.votes import Provenance, ProvenanceWarning

KNOWN = Provenance(
    n_votes=8, n_labels=50, judge="g", template=("a", "b"), temperature=0.5, task="math"
)
MODEL = DavidsonModel(1.2, 0.3, 0.8, provenance=KNOWN)
SAMPLE = simulate("rb2-math", 120, 8, seed=2)


def votes_of(n_votes, n_missing=0, **columns):
    """Votes on three items, the last of which are missing."""
    vote = ["A", "tie", "B"] * n_votes
    vote[len(vote) - n_missing :] = [""] * n_missing
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_votes": -1}, "n_votes is -1, expected an integer of at least 0"),
        ({"n_labels": 1.5}, "n_labels is 1.5, expected an integer of at least 0"),
        ({"judge": [None]}, "judge of provenance is None, expected text"),
        ({"task": True}, "task of provenance is True, expected text"),
    ],
)
def test_bad_values_are_named(arguments, message):
    with pytest.raises(InputError) as error:
        Provenance(**arguments)
    assert str(error.value) == message


def test_it_is_what_votes_say_of_themselves():
    votes = votes_of(2, judge="g", temperature=0.5, template="t", other=1)
    assert Provenance.of(votes) == Provenance(judge="g", temperature="0.5", template="t")
    counts = read_counts({"item": [1], "minus": [0], "tie": [1], "plus": [2], "task": ["math"]})
    assert Provenance.of(counts) == Provenance(task="math")


# The model


def test_a_model_keeps_it_and_is_equal_without_it():
    bare = DavidsonModel(1.2, 0.3, 0.8)
    assert bare == MODEL
    assert hash(MODEL) == hash(bare)
    assert repr(MODEL) == repr(bare)
    for other in (
        pickle.loads(pickle.dumps(MODEL)),
        copy.copy(MODEL),
        copy.deepcopy(MODEL),
        dataclasses.replace(MODEL, beta=2.0),
        DavidsonModel(**dataclasses.asdict(MODEL)),
        DavidsonModel(**MODEL.as_dict()),
        DavidsonModel.from_json(MODEL.to_json()),
    ):
        assert other.provenance == KNOWN
    assert MODEL.numbers == {
        "beta": 1.2, "eta0": 0.3, "gamma": 0.8, "alpha": 1.0, "kappa": 1.0
    }  # fmt: skip


def test_a_file_keeps_it_and_files_without_it_load(tmp_path):
    path = tmp_path / "model.json"
    MODEL.save(path)
    assert DavidsonModel.load(path).provenance == KNOWN
    assert json.loads(path.read_text())["provenance"] == {
        "n_votes": 8, "n_labels": 50, "judge": ["g"], "template": ["a", "b"],
        "temperature": ["0.5"], "task": ["math"],
    }  # fmt: skip
    # As files were before models knew anything.
    older = (
        '{\n  "format": "btdagg.davidson",\n  "version": 1,\n  "beta": 1.2,\n  "eta0": 0.3,\n'
        '  "gamma": 0.8,\n  "alpha": 1.0,\n  "kappa": 1.0\n}\n'
    )
    path.write_text(older)
    loaded = DavidsonModel.load(path)
    assert (loaded, loaded.provenance) == (MODEL, None)
    assert loaded.to_json() + "\n" == older


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        (8, "m: provenance is 8, expected an object"),
        (
            {"votes": 8},
            "m: unknown field 'votes' of provenance, expected n_votes, n_labels, judge, ",
        ),
        ({"n_votes": "8"}, "m: n_votes is '8', expected an integer of at least 0"),
        ({"judge": [["g"]]}, r"m: judge of provenance is \['g'\], expected text"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(provenance, message):
    text = json.dumps({**json.loads(MODEL.to_json()), "provenance": provenance})
    with pytest.raises(InputError, match=f"^{message}"):
        DavidsonModel.from_json(text, source="m")


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
    directly = calibrate_by_mae(SAMPLE.counts, SAMPLE.labels).model
    assert directly.provenance == Provenance(n_votes=8, n_labels=120)


# What differs


def test_more_votes_are_a_difference_and_missing_ones_are_none():
    of_two = Provenance(n_votes=2)
    more = "items have up to 8 votes, and the model was fitted for 2 an item"
    assert of_two.differences([[0, 1, 1], [0, 0, 8], [0, 0, 0]]) == (more,)
    assert of_two.differences([[0, 1, 1], [0, 0, 1], [0, 0, 0]]) == ()
    assert of_two.differences(np.empty((0, 3))) == ()
    assert Provenance().differences([[9, 9, 9]]) == ()
    # Where no item has as many as the model was fitted for they are systematically fewer, unless
    # they are votes that are missing.
    fewer = "no item has more than 1 vote, and the model was fitted for 2 an item"
    assert of_two.differences([[0, 1, 0], [0, 0, 1]]) == (fewer,)
    votes = votes_of(2, n_missing=3)
    assert votes.counts()[1].sum(axis=1).max() == 1
    assert of_two.differences(votes.counts()[1], votes) == ()
    first = votes_of(2).counts(1)[1]
    assert of_two.differences(first, votes_of(2), n_votes=1) == (fewer,)
    assert Provenance(n_votes=1).differences(first, votes_of(2), n_votes=1) == ()


def test_other_values_of_a_column_are_a_difference():
    alike = votes_of(8, judge="g", template="b", temperature=0.5, task="math")
    counts = alike.counts()[1]
    assert KNOWN.differences(counts, alike) == ()
    other = votes_of(8, judge="h", template="c", temperature=0.7, task="ties")
    assert KNOWN.differences(counts, other) == (
        "judge is h, and the model was fitted for g",
        "template is c, and the model was fitted for a, b",
        "temperature is 0.7, and the model was fitted for 0.5",
        "task is ties, and the model was fitted for math",
    )
    # What either side does not say is not compared.
    assert KNOWN.differences(counts, votes_of(8)) == ()
    assert Provenance(n_votes=8).differences(counts, other) == ()
    nothing = votes_of(8, judge=None, temperature="")
    assert KNOWN.differences(counts, nothing) == ()
    wide = {"item": [1], "minus": [0], "tie": [0], "plus": [8], "judge": ["h"]}
    assert KNOWN.differences([[0, 0, 8]], read_counts(wide)) == (
        "judge is h, and the model was fitted for g",
    )


# Where it is warned of


@pytest.mark.parametrize("method", ["decide", "predict_proba", "risks"])
@pytest.mark.parametrize("dtype", ["i8", "u1", "f8", "f4"])
def test_deciding_warns_where_the_first_items_have_more_votes(method, dtype):
    decide = getattr(MODEL, method)
    more = np.full((100, 3), 3).astype(dtype)
    message = "^items have up to 9 votes, and the model was fitted for 8 an item$"
    with pytest.warns(ProvenanceWarning, match=message) as caught:
        found = decide(more)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found, getattr(DavidsonModel(1.2, 0.3, 0.8), method)(more))
    with pytest.warns(ProvenanceWarning):
        decide(more[:1])
    for rows in ([[3, 3, 2]], np.empty((0, 3)), [[0, 0, 0]]):
        decide(rows)  # a warning would be an error
    more[7] = [2, 3, 3]  # one of them as it should be: the others may have votes to spare
    decide(more)
    with pytest.raises(InputError, match=r"^counts\[0, 1\]"):
        decide([[3, -1, 30]])


def test_a_model_calibrated_at_two_votes_is_not_applied_to_eight_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = calibrate(SAMPLE.first(2), SAMPLE.labels).model
    model.decide(SAMPLE.first(2))
    with pytest.warns(ProvenanceWarning, match="up to 8 votes, and the model was fitted for 2"):
        model.decide(SAMPLE.counts)


def test_a_rule_for_another_number_of_votes_is_warned_of(tmp_path):
    path = tmp_path / "rule.json"
    StoppingRule.lossless(MODEL, 8).save(path)
    assert StoppingRule.load(path).model.provenance == KNOWN
    message = "^12 votes an item are planned, and the model was fitted for 8 an item$"
    with pytest.warns(ProvenanceWarning, match=message) as caught:
        rule = StoppingRule.lossless(MODEL, 12)
    assert caught[0].filename == __file__
    rule.save(path)
    with pytest.warns(ProvenanceWarning, match=message):
        StoppingRule.load(path)


def test_what_is_kept_with_models_from_before_is_still_of_them(tmp_path):
    """Refits and tallies know their model by its numbers."""
    bare = dataclasses.replace(MODEL, provenance=None)
    tally = OnlineTally(bare)
    tally.add(["x"], [1], [0])
    tally.save(tmp_path / "tally.state")
    assert OnlineTally.load(tmp_path / "tally.state", model=MODEL).model == MODEL
    sure = bootstrap(SAMPLE.counts, SAMPLE.labels, n_refits=3)
    sure.save(tmp_path / "refits.json")
    model = dataclasses.replace(sure.calibration.model, provenance=KNOWN)
    assert Refits.load(tmp_path / "refits.json").model == model
