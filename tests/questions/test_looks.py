"""A gate that is looked at again and again: what it counts, keeps and refuses, and its level."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import btdagg
from btdagg import InputError, read_labels, read_votes
from btdagg.estimates import not_worse
from btdagg.inference.anytime import ConfidenceSequence
from draws import drawn

SIDES = {"candidate": "A", "baseline": "B"}
FIVE = btdagg.Scale(range(1, 6))


@pytest.fixture
def state(tmp_path):
    return tmp_path / "gate.json"


def labelled(labels, rows):
    known = np.full(len(labels), np.nan)
    known[rows] = labels[rows]
    return known


def numbers(gate):
    return gate.estimate, gate.lower, gate.upper, gate.outcome, gate.n_labels


def graded(n_groups=60, lead=0.0, seed=0):
    """Votes and labels of two systems on the same prompts, in groups of two to five responses."""
    rng = np.random.default_rng(seed)
    group, system, labels = [], [], []
    for prompt in range(n_groups):
        quality = rng.normal(3, 1)
        for name, n in (("new", rng.integers(1, 4)), ("old", rng.integers(1, 3))):
            for _ in range(n):
                group.append(prompt)
                system.append(name)
                labels.append(quality + lead * (name == "new") + rng.normal(0, 0.5))
    labels = np.clip(np.round(labels), 1, 5)
    votes = np.clip(np.round(labels[:, None] + rng.normal(0, 1, (len(labels), 5))), 1, 5)
    counts = np.stack([(votes == point).sum(axis=1) for point in range(1, 6)], axis=1)
    return counts, labels, np.array(group), np.array(system)


def test_of_new_items_the_bounds_are_those_of_a_confidence_sequence_of_labels(state):
    counts, labels = drawn(300, 300, 0.2)
    gate = not_worse(counts, labels, margin=0.05, **SIDES, sequential=state)
    order = [
        int(row) for row in (unit["unit"] for unit in json.loads(state.read_text())["counted"])
    ]
    assert sorted(order) == list(range(300))
    assert order != sorted(order)
    both = ConfidenceSequence((-1, 1), level=0.9, null=-0.05).add(labels[order])
    assert (gate.lower, gate.upper) == pytest.approx((both.low, both.high), abs=1e-3)
    assert gate.estimate == pytest.approx(labels.mean())
    assert (gate.n_looks, gate.n_labels, gate.n_items) == (1, 300, 300)
    assert "at every look" in gate.sentence()


@pytest.mark.parametrize("population", ["new", "finite"])
def test_a_repeated_look_counts_nothing_twice_and_others_go_on(state, population):
    counts, labels = drawn(300, 300, 0.2)
    order = np.random.default_rng(0).permutation(300)
    how = {**SIDES, "population": population, "sequential": state}
    first = not_worse(counts, labelled(labels, order[:40]), **how)
    again = not_worse(counts, labelled(labels, order[:40]), **how)
    assert numbers(first) == numbers(again)
    assert (first.n_looks, again.n_looks) == (1, 2)
    looks = [again, *(not_worse(counts, labelled(labels, order[:n]), **how) for n in (41, 90, 200))]
    assert [look.n_labels for look in looks] == [40, 41, 90, 200]
    for one, later in pairwise(looks):
        assert later.lower >= one.lower
        assert later.upper <= one.upper
    if population == "finite":
        whole = not_worse(counts, labels, **how)
        assert whole.lower == whole.upper == pytest.approx(labels.mean())


def test_sides_are_mirrored(tmp_path):
    counts, labels = drawn(200, 120, 0.2)
    for population in ("new", "finite"):
        a, b = (
            not_worse(
                counts,
                labels,
                candidate=name,
                baseline=other,
                population=population,
                sequential=tmp_path / f"{population}-{name}.json",
            )
            for name, other in ("AB", "BA")
        )
        assert a.estimate == pytest.approx(-b.estimate, abs=1e-6)
        assert a.lower == pytest.approx(-b.upper, abs=2e-3)


def test_groups_wait_until_they_are_whole_and_count_once(state):
    counts, labels = drawn(120, 120, 0.2)
    groups = np.repeat(np.arange(40), 3)
    how = {**SIDES, "groups": groups, "units": groups, "sequential": state}
    some = not_worse(counts, labelled(labels, np.arange(32)), **how)
    assert some.n_labels == 30
    assert [remark.code for remark in some.remarks][:1] == ["waiting-labels"]
    more = not_worse(counts, labelled(labels, np.arange(33)), **how)
    assert more.n_labels == 33
    with pytest.raises(InputError, match="no item can be counted"):
        not_worse(counts, labelled(labels, [0]), **(how | {"sequential": state.with_name("x")}))
    assert not state.with_name("x").exists()


def test_groups_are_drawn_whole_or_refused(tmp_path):
    """Of drawn items few groups are whole, and those the small ones."""
    sizes = np.repeat([1, 4], 50)
    groups = np.repeat(np.arange(100), sizes)
    labels = np.where(sizes[groups] == 1, 1.0, -1.0)
    counts = 4 * np.eye(3, dtype=int)[labels.astype(int) + 1]
    known = labelled(labels, np.random.default_rng(0).permutation(len(labels))[:80])
    how = {**SIDES, "groups": groups, "sequential": tmp_path / "gate"}
    with pytest.raises(InputError, match="an item or a group was drawn"):
        not_worse(counts, known, **how)
    with pytest.raises(InputError, match="items were drawn, expected whole groups"):
        not_worse(counts, known, **how, units=np.arange(len(labels)))
    assert not (tmp_path / "gate").exists()
    finite = not_worse(counts, known, **how, units=np.arange(len(labels)), population="finite")
    assert finite.n_labels == 80
    assert finite.lower < labels.mean() < finite.upper
    rows = np.repeat(np.arange(len(labels)), 4)
    votes = read_votes({"item": rows, "vote": labels[rows].astype(int)})
    for unit, taken in (("group", True), ("item", False)):
        gold = read_labels(
            {
                "item": np.arange(len(labels)),
                "label": labels,
                "group": groups,
                "unit": [unit] * len(labels),
            }
        )
        how = {**SIDES, "sequential": tmp_path / unit}
        if taken:
            assert not_worse(votes, gold, **how).estimate == pytest.approx(labels.mean())
        else:
            with pytest.raises(InputError, match="items were drawn, expected whole groups"):
                not_worse(votes, gold, **how)


def test_groups_that_are_labelled_whole_were_drawn_whole(state):
    counts, labels = drawn(120, 120, 0.2)
    groups = np.repeat(np.arange(40), 3)
    how = {**SIDES, "groups": groups, "sequential": state}
    assert not_worse(counts, labelled(labels, np.arange(32)), **how).n_labels == 30
    with pytest.raises(InputError, match="an item or a group was drawn"):
        not_worse(counts, labelled(labels, [*range(32), 40]), **how)


def test_grades_are_compared_within_groups(state):
    counts, labels, group, system = graded(lead=0.4)
    pair = {"candidate": "new", "baseline": "old"}
    how = {"scale": FIVE, "by": system, "groups": group, "units": group, **pair, "margin": 0.2}
    gate = not_worse(counts, labels, **how, sequential=state)
    means = [
        labels[(group == g) & (system == "new")].mean()
        - labels[(group == g) & (system == "old")].mean()
        for g in range(60)
    ]
    assert gate.estimate == pytest.approx(np.mean(means))
    assert gate.quantity == "mean grade"
    assert gate.lower < np.mean(means) < gate.upper
    finite = not_worse(
        counts, labels, **how, population="finite", sequential=state.with_name("finite.json")
    )
    assert finite.lower == finite.upper == pytest.approx(np.mean(means))
    with pytest.raises(InputError, match="no group has responses of both new and old"):
        not_worse(counts, labels, scale=FIVE, by=system, **pair, sequential=state.with_name("y"))


def test_a_given_model_and_covariates_are_used(tmp_path):
    counts, labels = drawn(300, 300, 0.1)
    known = labelled(labels, np.arange(100))
    model = btdagg.calibrate(*drawn(300, 300, 0.0, seed=5)).model
    length = labels + np.random.default_rng(0).normal(0, 0.3, 300)
    widths = []
    for name, more in (
        ("plain", {}),
        ("model", {"model": model}),
        ("known", {"covariates": {"length": length}}),
    ):
        gate = not_worse(
            counts, known, **SIDES, population="finite", **more, sequential=tmp_path / name
        )
        widths.append(gate.upper - gate.lower)
    plain, of_model, of_known = widths
    assert of_model < 1.1 * plain
    assert of_known < 0.95 * plain
    alone = not_worse(counts, known, **SIDES, sequential=tmp_path / "alone")
    assert plain < alone.upper - alone.lower


def test_what_is_of_another_gate_is_refused_and_left_as_it_is(state, tmp_path):
    counts, labels = drawn(100, 100, 0.2)
    how = {**SIDES, "sequential": state}
    not_worse(counts, labels, **how)
    kept = state.read_bytes()
    flipped = labels.copy()
    flipped[3] = -flipped[3] or 1
    for changed, said in (
        ({"margin": 0.1}, "is of a gate with margin 0.02, not 0.1"),
        ({"level": 0.9}, "is of a gate with level 0.95, not 0.9"),
        ({"candidate": "B", "baseline": "A"}, "is of a gate with candidate 'A', not 'B'"),
        ({"population": "finite"}, "is of a gate with population 'new', not 'finite'"),
        ({"seed": 1}, "is of a gate with seed 0, not 1"),
        ({"foo": 1}, "foo is no option, expected one of population"),
    ):
        with pytest.raises(InputError, match=said):
            not_worse(counts, labels, **how | changed)
    with pytest.raises(InputError, match="item '3' was counted as"):
        not_worse(counts, flipped, **how)
    with pytest.raises(InputError, match=r"item '7' was counted as .* and now has no label"):
        not_worse(counts, labelled(labels, np.delete(np.arange(100), 7)), **how)
    with pytest.raises(InputError, match="50 of 100 items that were counted are not here"):
        not_worse(counts[:50], labels[:50], **how)
    assert state.read_bytes() == kept
    finite = {**SIDES, "population": "finite", "sequential": tmp_path / "finite.json"}
    not_worse(counts, labels, **finite)
    with pytest.raises(InputError, match="votes or units are not those of the first look"):
        not_worse(counts + 1, labels, **finite)
    for content, said in (
        ("item,label\n", "not JSON"),
        ('{"format": "tally"}', "not a btdagg state"),
    ):
        other = Path(tmp_path / "other")
        other.write_text(content)
        with pytest.raises(InputError, match=said):
            not_worse(counts, labels, **SIDES, sequential=other)
        assert other.read_text() == content


def test_tables_need_a_simple_sample(tmp_path):
    counts, labels = drawn(60, 60, 0.2)
    rows = np.repeat(np.arange(60), counts.sum(axis=1))
    votes = read_votes(
        {"item": rows, "vote": np.concatenate([np.repeat([-1, 0, 1], c) for c in counts])}
    )
    gold = {"item": np.arange(60), "label": labels}
    state = tmp_path / "gate.json"
    equal = not_worse(
        votes, read_labels(gold | {"probability": [0.5] * 60}), **SIDES, sequential=state
    )
    assert equal.n_labels == 60
    unequal = read_labels(gold | {"probability": [0.5, 0.4] * 30})
    with pytest.raises(InputError, match="a simple random sample"):
        not_worse(votes, unequal, **SIDES, sequential=tmp_path / "other")


@pytest.mark.parametrize("population", ["new", "finite"])
def test_about_so_many_labels_are_wanted(tmp_path, population):
    counts, labels = drawn(2000, 2000, 0.14)
    order = np.random.default_rng(1).permutation(2000)
    how = {**SIDES, "population": population, "margin": 0.02}
    few = not_worse(counts, labelled(labels, order[:60]), **how, sequential=tmp_path / "few")
    if few.outcome == "inconclusive":
        assert few.labels_wanted is None or 60 < few.labels_wanted <= 2000
        assert "is for one look" not in few.sentence()
    one_look = not_worse(counts, labelled(labels, order[:20]), **how)
    if one_look.labels_wanted is not None:
        assert "btdagg gate --sequential FILE" in one_look.sentence()
