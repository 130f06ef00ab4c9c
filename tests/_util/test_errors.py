import copy
import pickle

import numpy as np
import pytest

import btdagg
from btdagg import InputError
from refusals import refused


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"argument": "labels", "row": 3, "got": "Y"}, "labels[3] is 'Y', expected this"),
        ({"argument": "labels", "row": 0, "got": None}, "labels[0] is nothing, expected this"),
        ({"argument": "counts", "row": (3, 1), "got": 2.5}, "counts[3, 1] is 2.5, expected this"),
        ({"argument": "alpha", "got": np.float64(2)}, "alpha is 2.0, expected this"),
        ({"argument": "alpha"}, "alpha: expected this"),
        ({"source": "a.csv", "row": 3, "got": "Y"}, "a.csv, row 3: got 'Y', expected this"),
        ({"source": "a.csv", "column": "vote"}, "a.csv, column vote: expected this"),
        ({"argument": "alpha", "got": "x" * 99}, f"alpha is '{'x' * 56}..., expected this"),
    ],
)
def test_fields_are_worded(fields: dict[str, object], message: str) -> None:
    error = InputError(expected="this", **fields)  # type: ignore[arg-type]
    assert str(error) == message
    assert {name: getattr(error, name) for name in fields} == fields
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is InputError
        assert str(other) == message
        assert vars(other) == vars(error)


def test_a_sentence_is_kept_and_a_command_calls_the_argument_by_its_option() -> None:
    plain = InputError("no item has a label")
    options = {"full_margin": "--set full_margin=", "columns": "--set "}.get
    assert str(plain) == plain.in_options(options) == "no item has a label"
    error = InputError(argument="full_margin", got=-1, expected="a positive number")
    assert error.in_options(options) == "--set full_margin is -1, expected a positive number"
    other = InputError("full_margins are two", argument="full_margin")
    assert other.in_options(options) == "full_margins are two"
    advice = InputError(
        "a.csv: say {advice}", advice={"columns": {"item": "an id"}, "scale": "1-5", "rater": None}
    )
    assert str(advice) == "a.csv: say columns={'item': 'an id'}, scale='1-5', rater"
    assert advice.in_options(options) == "a.csv: say --set 'item=an id' scale 1-5 rater"
    assert advice.argument == "columns"
    assert str(error.within("task x: ")) == "task x: full_margin is -1, expected a positive number"
    assert error.within("x: ").in_options(options).startswith("x: --set full_margin is -1")


def test_the_core_raises_the_same_error() -> None:
    with refused("alpha", got=-1) as caught:
        btdagg.DavidsonModel(beta=1, eta0=0, gamma=1, alpha=-1, kappa=1)
    assert type(caught.value) is InputError
    assert isinstance(caught.value, ValueError)
