"""The model as a value: equality, text, pickles, files."""

import json
import math
import os
import stat
import warnings

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel, InputError
from refusals import refused

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.1 + 0.2, alpha=0.5, kappa=3)


@pytest.mark.parametrize(("name", "value"), [("eta0", math.inf), ("gamma", "0.5"), ("beta", None)])
def test_bad_parameters_are_named(name, value):
    with refused(name, got=value):
        DavidsonModel(**{"beta": 1, "eta0": 0, "gamma": 0, name: value})


def test_what_a_model_was_fitted_to_may_be_plain_values():
    model = DavidsonModel(1, 1, 0.5, provenance={"judge": "a", "n_votes": 2})
    assert model.provenance.judge == ("a",)
    assert DavidsonModel.from_json(model.to_json()).provenance == model.provenance


def test_a_saved_model_is_the_model(tmp_path):
    path = tmp_path / "model.json"
    MODEL.save(path)
    assert DavidsonModel.load(path) == MODEL
    assert DavidsonModel.load(str(path)) == MODEL
    assert json.loads(path.read_text()) == {
        "format": "btdagg.davidson",
        "version": 1,
        "beta": 1.2,
        "eta0": 2.0,
        "gamma": 0.30000000000000004,
        "alpha": 0.5,
        "kappa": 3.0,
    }
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


VALID = json.loads(MODEL.to_json())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.json: not JSON"),
        ("[1, 2]", 'm.json: not a btdagg model, expected an object with "format"'),
        (json.dumps({**VALID, "delta": 1}), r"m.json: fields is \['alpha', .*, expected \["),
        (json.dumps({**VALID, "beta": math.nan}), "beta is nan, expected a finite number"),
        (json.dumps({**VALID, "kappa": 0}), "kappa is 0, expected a finite number above 0"),
    ],
)
def test_bad_model_files_are_named(text, message, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        DavidsonModel.load(path)


@pytest.mark.parametrize(("n_votes", "gamma"), [(10**15, 2.0), (10**15, -2.0), (2**63, -0.1)])
def test_always_ties_answers_at_once_for_any_number_of_votes(n_votes, gamma):
    assert not DavidsonModel(1.0, 3.0, gamma).always_ties(n_votes)
    assert DavidsonModel(1e-3, 60.0, gamma / 100).always_ties(n_votes)


def test_memory_that_there_is_not_is_a_memory_error():
    counts = np.broadcast_to(np.array([1, 2, 3]), (2**50, 3))
    with pytest.raises(MemoryError):
        MODEL.decide(counts)
    with pytest.raises(MemoryError):
        MODEL.predict_proba(counts)


def test_batches_of_any_size_decide_alike_and_one_item_is_a_batch_of_one():
    counts = np.random.default_rng(0).multinomial(12, [0.3, 0.3, 0.4], size=3_000)
    numbers = {"beta": 1.2, "eta0": 2.0, "gamma": 0.8}
    whole = DavidsonModel(**numbers)
    expected = whole.decide(counts), whole.predict_proba(counts), whole.risks(counts)
    for size in (1, 10, 600):
        model = DavidsonModel(**numbers)
        for start in range(0, 1_200, size):
            rows = slice(start, start + size)
            found = (of(counts[rows]) for of in (model.decide, model.predict_proba, model.risks))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other[rows])
    for row, p in zip(counts[:50].tolist(), expected[1], strict=False):
        assert whole.predict_proba_one(*row) == tuple(p)
    panel = btdagg.PanelModel(("a", "b"), (1.0, 0.4), 1.0, (0.5, 0.2))
    votes = [[0, 1, 7], [1, 3, 4]]
    assert panel.predict_proba_one(*votes) == tuple(panel.predict_proba([votes])[0])


def test_more_votes_than_a_model_was_fitted_for_are_said_once():
    model = DavidsonModel(1.2, 2.0, 0.8, provenance=btdagg.votes.Provenance(n_votes=8))
    with pytest.warns(btdagg.votes.ProvenanceWarning, match="up to 9 votes"):
        model.decide([[1, 2, 6]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.decide([[1, 2, 6]])
        model.decide([[1, 2, 5]])
    with pytest.warns(btdagg.votes.ProvenanceWarning, match="up to 12 votes"):
        model.decide(np.array([[1, 2, 9]]))
    with pytest.raises(btdagg.InputError, match=r"counts\[0, 0\]"):
        model.decide([[np.nan, 20, 30]])
