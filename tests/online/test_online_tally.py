"""Running tallies against a dictionary, in any order, merged, saved, and with bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import DavidsonModel, InputError
from btdagg.online import OnlineTally, StoppingRule
from refusals import refused

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
RULE = StoppingRule.lossless(MODEL, 4)

vote_rows = st.tuples(
    st.integers(-3, 3),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["AB", "BA"]),
    st.sampled_from([0, 1, 5, 63, 64, 4095]),
    st.sampled_from([-1, 0, 1]),
)
vote_lists = st.lists(vote_rows, max_size=40)
kinds = st.sampled_from([int, "item {}".format])


def tally_of(rows, kind=int, **settings):
    tally = OnlineTally(**settings)
    if rows:
        items, judges, orders, samples, votes = zip(*rows, strict=True)
        samples = None if settings.get("deduplicate") is False else list(samples)
        tally.add([kind(i) for i in items], votes, samples, judges=judges, orders=orders)
    return tally


def by_hand(rows):
    """Votes of every sample, and counts of those that came with one."""
    seen = {}
    for item, judge, order, sample, vote in rows:
        seen.setdefault((item, judge, order, sample), set()).add(vote)
    counts = {item: [0, 0, 0] for item, *_ in rows}
    for (item, *_), votes in seen.items():
        if len(votes) == 1:
            counts[item][votes.pop() + 1] += 1
            votes.add(9)
    conflicts = [key for key, votes in seen.items() if len(votes) > 1]
    return counts, sorted(conflicts)


def as_dict(tally):
    ids, counts = tally.counts()
    assert ids.tolist() == sorted(ids.tolist())
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


@given(vote_lists, kinds)
@settings(deadline=None)
def test_a_tally_is_what_a_dictionary_says(rows, kind):
    tally = tally_of(rows, kind)
    counts, conflicts = by_hand(rows)
    assert as_dict(tally) == {kind(item): row for item, row in counts.items()}
    found = [(c.item, c.judge, c.order, c.sample) for c in tally.conflicts()]
    assert found == sorted((kind(item), *rest) for item, *rest in conflicts)
    assert len(tally) == len(counts)
    for item, row in counts.items():
        assert tally.counts_one(kind(item)) == tuple(row)


@given(vote_lists, vote_lists, vote_lists, kinds, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_repetition_and_merging_do_not_matter(a, b, c, kind, random):
    whole = tally_of([*a, *b, *c], kind)
    mixed = [*a, *b, *c, *a]
    random.shuffle(mixed)
    one_by_one = OnlineTally()
    for item, judge, order, sample, vote in mixed:
        one_by_one.add_one(kind(item), vote, sample, judge, order)
    assert one_by_one.to_bytes() == whole.to_bytes()

    def merged(*parts):
        first, *rest = (
            part if isinstance(part, OnlineTally) else tally_of(part, kind) for part in parts
        )
        for other in rest:
            first.merge(other)
        return first

    states = {
        merged(merged(a, b), c).to_bytes(),
        merged(a, merged(b, c)).to_bytes(),
        merged(c, b, a).to_bytes(),
        merged(a, b, c, a).to_bytes(),
    }
    assert states == {whole.to_bytes()}


@given(vote_lists, vote_lists, kinds)
@settings(deadline=None)
def test_without_samples_every_row_counts(a, b, kind):
    counts = {}
    for item, *_, vote in [*a, *b]:
        counts.setdefault(kind(item), [0, 0, 0])[vote + 1] += 1
    parts = [tally_of(rows, kind, deduplicate=False) for rows in (a, b)]
    one, other = (tally_of(rows, kind, deduplicate=False) for rows in (a, b))
    parts[0].merge(parts[1])
    other.merge(one)
    assert as_dict(parts[0]) == as_dict(other) == counts
    assert parts[0].to_bytes() == other.to_bytes()
    assert parts[0].conflicts() == []


@given(vote_lists, kinds, st.booleans())
@settings(deadline=None)
def test_a_state_goes_on_as_if_nothing_had_been(rows, kind, deduplicate):
    tally = tally_of(rows, kind, rule=RULE, deduplicate=deduplicate, late="drop")
    tally.settle()
    for copy in (
        lambda t: OnlineTally.from_bytes(t.to_bytes(), rule=RULE),
        lambda t: pickle.loads(pickle.dumps(t)),
    ):
        other = copy(tally)
        assert other.to_bytes() == tally.to_bytes()
        for one in (tally, other):
            one.add_one(kind(0), 1, 7 if deduplicate else None)
        assert other.to_bytes() == tally.to_bytes()
        assert other.n_late == tally.n_late
        assert other.settle().ids.tolist() == tally.settle().ids.tolist()


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    items, votes = rng.integers(-(2**62), 2**62, 5_000), rng.integers(-1, 2, 200_000)
    rows, samples = rng.integers(0, 5_000, 200_000), rng.integers(0, 100, 200_000)
    for ids in (items[rows], np.array([f"né {i}" for i in items])[rows]):
        states = set()
        for n_threads in (1, 2, 7):
            tally = OnlineTally()
            tally.add(ids, votes, samples, n_threads=n_threads)
            states.add(tally.to_bytes())
        assert len(states) == 1


NAMES = ["zoë", "", "a", "日本", "b" * 40, "a"]


@pytest.mark.parametrize(
    "items",
    [
        NAMES,
        tuple(NAMES),
        np.array(NAMES),
        np.array(NAMES).astype(np.array(NAMES).dtype.newbyteorder()),
        np.array(NAMES, dtype=object),
        np.array(NAMES, dtype=np.dtypes.StringDType()),
        pd.Series(NAMES),
        pl.Series(NAMES),
        pl.Series(NAMES).cast(pl.Categorical),
        pa.array(NAMES),
        pa.array(["x", *NAMES], pa.large_string())[1:],
        pa.chunked_array([NAMES[:2], NAMES[2:]]),
        pa.array(NAMES, pa.string_view()),
        pa.array(NAMES).dictionary_encode(),
    ],
    ids=lambda items: f"{type(items).__module__}.{type(items).__name__}",
)
def test_strings_of_any_library_are_the_same_ids(items):
    tally = OnlineTally()
    tally.add(items, [1, 0, -1, 1, 1, 1], range(6))
    wanted = {"": [0, 1, 0], "a": [1, 0, 1], "b" * 40: [0, 0, 1], "zoë": [0, 0, 1]}
    assert as_dict(tally) == {**wanted, "日本": [0, 0, 1]}


@pytest.mark.parametrize(
    "items",
    [
        [5, -2, 5],
        np.array([5, -2, 5], dtype=np.int8),
        np.array([5, -2, 5, 0, 0, 0])[:3],
        np.array([5, -2, 5], dtype=">i8"),
        np.array([5, -2, 5], dtype=object),
        pd.Series([5, -2, 5]),
        pl.Series([5, -2, 5]),
        pa.array([5, -2, 5]),
    ],
)
def test_integers_of_any_library_are_the_same_ids(items):
    tally = OnlineTally()
    tally.add(items, [1, 0, 0], [0, 0, 1])
    assert as_dict(tally) == {-2: [0, 1, 0], 5: [0, 1, 1]}


# Decisions


def test_decisions_and_newly_settled_items():
    tally = OnlineTally(rule=RULE)
    tally.add(["b", "a", "b", "c"], [1, 1, 1, 0], [0, 0, 1, 0])
    ids, labels = tally.decide()
    assert ids.tolist() == ["a", "b", "c"]
    _, counts = tally.counts()
    np.testing.assert_array_equal(labels, RULE.decide(counts))
    open_items = set(ids[~RULE.stops(counts)])
    first = tally.settle()
    assert set(first.ids) == set(ids) - open_items
    tally.add(["a"] * 3, [1, 1, 1], [1, 2, 3])
    settled = tally.settle()
    assert settled.ids.tolist() == ["a"]
    assert settled.labels.tolist() == [MODEL.decide_one(0, 0, 4)]
    assert settled.counts.tolist() == [[0, 0, 4]]
    assert tally.settle().ids.tolist() == []


def test_more_votes_than_the_rule_knows_are_decided_by_the_model():
    tally = OnlineTally(rule=RULE)
    tally.add([1] * 6, [1] * 5 + [-1], range(6))
    assert tally.decide()[1].tolist() == [MODEL.decide_one(1, 0, 5)]
    settled = tally.settle()
    assert settled.ids.tolist() == [1]
    assert settled.labels.tolist() == [MODEL.decide_one(1, 0, 5)]


def test_late_votes_are_refused_or_dropped():
    for late in ("refuse", "drop"):
        tally = OnlineTally(rule=RULE, late=late)
        tally.add(["x"] * 4, [1] * 4, range(4))
        assert tally.settle().ids.tolist() == ["x"]
        before = tally.to_bytes()
        tally.add(["x"], [1], [2])  # known: no news
        assert tally.to_bytes() == before
        if late == "refuse":
            with pytest.raises(
                InputError, match=r"items\[1\] is 'x', which is settled, expected vot"
            ):
                tally.add(["y", "x"], [0, 0], [0, 9])
            assert tally.to_bytes() == before
        else:
            tally.add(["y", "x", "né"], [0, 0, 1], [0, 9, 0])
            tally.add_one("x", 0, 9)
            assert tally.n_late == 2
            assert as_dict(tally) == {"né": [0, 0, 1], "x": [0, 0, 4], "y": [0, 1, 0]}


def test_many_judges_and_samples():
    rng = np.random.default_rng(5)
    n_rows = 20_000
    items, votes = rng.integers(0, 40, n_rows), rng.integers(-1, 2, n_rows)
    judges = np.array([f"j{k}" for k in range(300)])[rng.integers(0, 300, n_rows)]
    samples = rng.integers(0, 4096, n_rows)
    tally = OnlineTally()
    tally.add(items, votes, samples, judges=judges)
    keys = set(zip(items.tolist(), judges.tolist(), samples.tolist(), strict=True))
    in_conflict = len(tally.conflicts())
    assert tally.counts()[1].sum() == len(keys) - in_conflict
    other = OnlineTally()
    half = n_rows // 2
    other.add(items[half:], votes[half:], samples[half:], judges=judges[half:])
    first = OnlineTally()
    first.add(items[:half], votes[:half], samples[:half], judges=judges[:half])
    other.merge(first)
    assert other.to_bytes() == tally.to_bytes()


# What is wrong


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.add([1, 2], [0], [0, 0]), "votes has 1 rows, expected 2 as in items"),
        (lambda t: t.add([1, 2], [0, 1], [0, -1]), r"samples\[1\] is -1, expected an integer from"),
        (lambda t: t.add([1], [0]), "samples is nothing, expected the number of each vote's"),
        (lambda t: t.add(["x", 1], [0, 0], [0, 0]), r"items\[1\] is 1 of <class 'int'>, expected"),
        (
            lambda t: t.add(pa.array(["x", None]), [0, 0], [0, 0]),
            r"items\[1\] is nothing, expected",
        ),
        (lambda t: t.counts_one("x"), "items are of another kind than before, expected"),
        (lambda t: t.decide(), "model is nothing, expected a DavidsonModel to decide by"),
        (lambda t: t.merge(OnlineTally(deduplicate=False)), "deduplicate of other is False, expec"),
        (lambda _: OnlineTally(DavidsonModel(1, 1, 1), RULE), r"model is Davidson.*, expected the"),
    ],
)
def test_messages(make, message):
    tally = tally_of([(1, "", "", 0, 1)])
    before = tally.to_bytes()
    with pytest.raises(InputError, match=message):
        make(tally)
    assert tally.to_bytes() == before


def test_the_first_votes_say_whether_votes_have_numbers():
    tally, other = OnlineTally(), OnlineTally()
    with pytest.raises(InputError):
        tally.add_one("x", vote=2)
    tally.add_one("x", vote=1)
    tally.add(["x", "y"], [1, 0])
    assert tally.counts_one("x") == (0, 0, 2)
    with refused("samples", got=[3]):
        tally.add_one("x", vote=1, sample=3)
    other.merge(OnlineTally.from_bytes(tally.to_bytes()))
    other.add_one("x", vote=-1)
    assert other.counts_one("x") == (1, 0, 2)
    tally.merge(OnlineTally())
    numbered = OnlineTally()
    numbered.add_one("x", vote=1, sample=0)
    numbered.add_one("x", vote=1, sample=0)
    assert numbered.counts_one("x") == (0, 0, 1)
    with refused("deduplicate of other", got=True):
        tally.merge(numbered)


def test_states_that_are_none(tmp_path):
    tally = tally_of([(1, "", "", 0, 1), (2, "", "", 0, 1)], str, rule=RULE)
    path = tmp_path / "tally.state"
    tally.save(path)
    assert OnlineTally.load(path, rule=RULE).to_bytes() == tally.to_bytes()
    assert OnlineTally.load(path, rule=RULE).rule == RULE
    whole = path.read_bytes()
    for size in range(0, len(whole), 137):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="not a btdagg tally, or a damaged one"):
            OnlineTally.load(path, rule=RULE)
    for place in range(0, len(whole), 41):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        try:
            back = OnlineTally.from_bytes(bytes(damaged), rule=RULE)
        except InputError:
            continue
        # What a zip does not check, such as a date, does not matter.
        assert back.to_bytes() == tally.to_bytes()
    with pytest.raises(InputError, match=r"absent: No such file"):
        OnlineTally.load(tmp_path / "absent")
