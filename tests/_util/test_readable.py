"""Reprs: a line for each object, whatever its size; nothing computed, nothing raised."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import btdagg
from btdagg._util.readable import readable
from btdagg.judge import ModelClient, VoteStore
from gallery import gallery, simulated


@pytest.fixture(scope="module")
def results():
    return gallery()


def test_a_repr_is_a_line_that_begins_with_the_name_of_the_class(results):
    for name, found in results.items():
        text = repr(found)
        assert "\n" not in text, name
        assert len(text) < 800, name
        assert type(found).__name__ in text[:40], name
        assert " object at 0x" not in text, name


class Untouchable:
    """What nobody may look at."""

    def __repr__(self):
        raise AssertionError("looked at")


def test_a_repr_does_not_grow_with_the_data_and_does_not_look_at_it():
    counts, _ = simulated(30)
    large = np.zeros((1_000_000, 3), dtype=np.int64)
    assert repr(btdagg.votes.as_items(large)) == repr(btdagg.votes.as_items(counts)).replace(
        "30", "1000000"
    )
    ids = np.array([Untouchable()] * 1000, dtype=object)

    @readable
    class Found(NamedTuple):
        ids: Any
        by_name: Any = None
        broken: Any = None

    assert repr(Found(ids)) == "Found(ids=<object (1000,)>, by_name=None, broken=None)"
    names = {f"system {number}": Found(ids) for number in range(200_000)}
    text = repr(Found(ids, names))
    assert text.startswith("Found(ids=<object (1000,)>, by_name={'system 0': Found(ids=<object (")
    assert len(text) == 400
    assert "<Untouchable instance at" in repr(Found(Untouchable()))  # and does not raise


def test_no_secret_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    client = ModelClient("openai", "http://me:password@localhost:1/v1")
    assert repr(client) == "ModelClient('http://localhost:1/v1')"
    with VoteStore(tmp_path / "votes.db") as store:
        assert repr(store) == f"VoteStore({str(tmp_path / 'votes.db')!r})"
