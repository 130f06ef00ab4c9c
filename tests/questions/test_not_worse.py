"""Whether a candidate is not worse by a margin: bounds and outcomes."""

import math

import numpy as np
import pytest
from scipy import stats

import btdagg
from btdagg import estimate, read_labels, read_votes
from btdagg.estimates import not_worse
from draws import drawn
from refusals import refused

B = {"candidate": "B", "baseline": "A"}
A = {"candidate": "A", "baseline": "B"}


def test_bounds_are_one_sided():
    """Each is that of a z-test at the level: labels alone and a fixed model of no use."""
    counts, labels = drawn(600, 400, 0.1)
    noise = np.random.default_rng(1).permutation(counts)
    options = {"model": btdagg.DavidsonModel(1e-9, 0.1, 0.0)}
    found, of_a = (not_worse(noise, labels, **side, level=0.9, **options) for side in (B, A))
    gold = labels[:400]
    half = stats.norm.ppf(0.9) * gold.std(ddof=1) / 20
    assert found.upper == pytest.approx(half - gold.mean(), abs=0.002)
    assert found.lower == pytest.approx(-half - gold.mean(), abs=0.002)
    net = estimate(noise, labels, level=0.8, **options).estimates["net win rate"]
    assert (of_a.estimate, of_a.lower, of_a.upper) == (net.value, net.low, net.high)
    assert (found.estimate, found.lower, found.upper) == (-net.value, -net.high, -net.low)
    assert (found.n_items, found.n_labels, found.level) == (600, 400, 0.9)


@pytest.mark.parametrize("sides", [A, B])
@pytest.mark.parametrize(
    ("lead", "n_labels", "outcome"),
    [(0.2, 300, "not worse"), (-0.3, 300, "worse"), (0.0, 20, "inconclusive")],
)
def test_outcomes_follow_from_the_bounds(sides, lead, n_labels, outcome):
    """The lead is that of the candidate."""
    found = not_worse(
        *drawn(1000, n_labels, lead if sides is A or not lead else -lead), margin=0.05, **sides
    )
    assert found.outcome == outcome
    assert found.passed == (outcome == "not worse")
    assert (found.lower > -0.05) == (outcome == "not worse")
    assert (found.upper < -0.05) == (outcome == "worse")
    assert (found.labels_wanted is None) == (outcome != "inconclusive")
    name, other = sides.values()
    verdict = f"{name} is {outcome}"
    begins = f"cannot tell whether {name} is worse" if outcome == "inconclusive" else verdict
    sentence = f"{begins} than {other} by more than 0.05: net win rate of {name} on new items "
    assert str(found).startswith(f"{sentence}like these {found.estimate:+.3f}, one-sided 95% ")


def test_the_labels_that_are_wanted_are_those_of_an_interval_that_ends_at_the_margin():
    few = not_worse(*drawn(20_000, 60, -0.1), margin=0.05, **B)
    assert few.outcome == "inconclusive"
    assert few.labels_wanted > 60
    both = estimate(*drawn(20_000, 60, -0.1), level=0.9)
    assert both.labels_to_tell(0.05) == few.labels_wanted
    # Nearly as a width is found that ends at the margin.
    net = both.estimates["net win rate"]
    assert few.labels_wanted == pytest.approx(both.labels_for(2 * (0.05 - net.value)), rel=0.15)


def test_where_no_number_of_labels_would_tell_it_is_said():
    counts, labels = drawn(60, 40, 0.0)
    at = estimate(counts, labels).estimates["net win rate"].value
    found = not_worse(counts, labels, margin=abs(at), **(A if at < 0 else B))
    assert found.outcome == "inconclusive"
    assert found.labels_wanted is None
    sentence = str(found).partition("\n")[0]
    assert sentence.endswith("; labels on all items would not be enough; add items")


def test_the_items_that_are_wanted_would_tell():
    counts, labels = drawn(60, 60, 0.0)
    few = not_worse(counts, labels, margin=0.02, **A)
    assert few.labels_wanted is None
    times = few.items_wanted / 60
    assert 1 < times < 100
    assert f"add items: it would take about {few.items_wanted:,} labelled items" in str(few)
    for n, outcome in ((round(0.7 * times), "inconclusive"), (math.ceil(1.3 * times), "not worse")):
        many = not_worse(np.tile(counts, (n, 1)), np.tile(labels, n), margin=0.02, **A)
        assert many.outcome == outcome


def test_tables_and_groups_are_taken_as_estimate_takes_them():
    counts, labels = drawn(300, 100, -0.3)
    groups = np.arange(300) // 2
    found = not_worse(counts, labels, groups=groups, seed=4, **B)
    net = estimate(counts, labels, groups=groups, seed=4, level=0.9).estimates["net win rate"]
    assert found.lower == pytest.approx(-net.high, abs=1e-12)
    assert not_worse(*tables(counts, labels), **B).n_labels == 100


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("margin", -0.1),
        ("margin", 1.0),
        ("level", 0.5),
        ("level", 95),
        ("candidate", "chat-new"),
        ("baseline", "B"),
        ("quantity", "win rate"),
        ("quantity", "share >= 4"),
        ("by", "system"),
    ],
)
def test_bad_arguments_are_named(name, value):
    with refused(name, got=value):
        not_worse(*drawn(100, 20, 0.0), **(B | {name: value}))


# The names of A and B


def tables(counts, labels, **columns):
    """Tables of arrays, with columns of the votes that have a value for each item."""
    item = np.array([f"q{number}" for number in range(len(counts))])
    rows = np.repeat(np.arange(len(counts)), counts.sum(axis=1).astype(int))
    vote = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    own = {name: np.asarray(values)[rows] for name, values in columns.items()}
    votes = read_votes({"item": item[rows], "vote": vote, **own})
    is_labelled = ~np.isnan(labels)
    gold = {"item": item[is_labelled], "label": labels[is_labelled].astype(int)}
    return votes, read_labels(gold)


NEW = {"candidate": "new", "baseline": "old"}
OLD = {"candidate": "old", "baseline": "new"}


def test_the_columns_or_names_say_which_side_the_candidate_is():
    counts, labels = drawn(400, 120, 0.2)
    named = tables(counts, labels, system_a=["new"] * 400, system_b=["old"] * 400)
    votes, gold = tables(counts, labels)
    expected = not_worse(votes, gold, **A)
    for told in (named[0], read_votes(votes, a="new", b="old")):
        found, back = (not_worse(told, gold, **pair) for pair in (NEW, OLD))
        assert (found.lower, found.upper) == (expected.lower, expected.upper)
        assert (back.lower, back.upper) == (-found.upper, -found.lower)
    for pair, bad in (
        (B, "candidate"),
        ({"candidate": "new", "baseline": "A"}, "baseline"),
        ({"candidate": "old", "baseline": "x"}, "baseline"),
    ):
        with refused(bad, got=pair[bad], expected="one of new, old"):
            not_worse(*named, **pair)
    with refused("candidate", got="new", expected="one of A, B"):
        not_worse(votes, gold, **NEW)


def test_of_many_systems_the_items_are_used_in_which_the_two_meet_on_either_side():
    rng = np.random.default_rng(0)
    counts, labels = drawn(600, 200, 0.2)
    is_turned, is_other = rng.random(600) < 0.5, np.arange(600) % 3 == 2
    other = np.where(is_other, "third", "old")
    system_a, system_b = np.where(is_turned, other, "new"), np.where(is_turned, "new", other)
    shown = np.where(is_turned[:, None], counts[:, ::-1], counts)
    votes, gold = tables(
        shown, np.where(is_turned, -labels, labels), system_a=system_a, system_b=system_b
    )
    found, back = (not_worse(votes, gold, **pair) for pair in (NEW, OLD))
    assert (found.n_items, found.n_labels) == ((~is_other).sum(), (~is_other[:200]).sum())
    net = estimate(counts[~is_other], labels[~is_other], level=0.9).estimates["net win rate"]
    assert (found.estimate, found.lower, found.upper) == pytest.approx(
        (net.value, net.low, net.high), abs=0.01
    )  # whose folds are others
    assert (back.lower, back.upper) == (-found.upper, -found.lower)
    with pytest.raises(
        btdagg.InputError, match="no item compares A with B, expected two of new, old, thi"
    ):
        not_worse(votes, gold, **A)
    with pytest.raises(
        btdagg.InputError, match="no item compares old with third, expected two of new, old, third"
    ):
        not_worse(votes, gold, candidate="old", baseline="third")


V2 = {"candidate": "v2", "baseline": "v1"}


def two_systems(lead, n_labels, n=400):
    """Arguments of `not_worse`: grades of two systems on n prompts, the second better by `lead`.

    The judge flatters it.
    """
    rng = np.random.default_rng(0)
    quality = rng.normal(3.4, 0.9, n) + np.array([[0], [lead]]) + rng.normal(0, 0.5, (2, n))
    grades = np.clip(np.round(quality), 1, 5).reshape(-1)
    seen = grades[:, None] + np.repeat([0, 0.6], n)[:, None] + rng.normal(0, 0.9, (2 * n, 6))
    votes = np.clip(np.round(seen), 1, 5)
    prompt = np.tile(np.arange(n), 2)
    scale = btdagg.Scale(range(1, 6))
    return {
        "counts": (votes[:, :, None] == np.arange(1, 6)).sum(axis=1),
        "labels": np.where(prompt < n_labels, grades, np.nan),
        "scale": scale,
        "model": btdagg.GradeModel(2.0, (1.9, 2.9, 3.9, 4.9), scale),
        "by": np.repeat(["v1", "v2"], n),
        "groups": prompt,
    }


@pytest.mark.parametrize(
    ("lead", "margin", "outcome", "quantity"),
    [
        (0.5, 0.05, "not worse", "mean grade"),
        (-0.7, 0.03, "worse", "share >= 4"),
        (0.0, 0.0, "inconclusive", "mean grade"),
    ],
)
def test_grades_of_a_system_have_not_fallen(quantity, lead, margin, outcome):
    data = two_systems(lead, 120)
    found = not_worse(**data, **V2, quantity=quantity, margin=margin)
    rise = estimate(**data, level=0.9).difference("v2", "v1")[quantity]
    assert (found.estimate, found.lower, found.upper) == (rise.value, rise.low, rise.high)
    assert (found.n_items, found.n_labels, found.quantity) == (800, 240, quantity)
    assert found.outcome == outcome
    assert (found.labels_wanted or 0) <= 800
    verdict = "cannot tell whether v2 is worse" if outcome == "inconclusive" else f"v2 is {outcome}"
    expected = (
        f"{verdict} than v1 by more than {margin:g}: {quantity} of v2 minus that of v1 "
        f"on new items like these {rise.value:+.3f}"
    )
    assert str(found).startswith(expected)
    back = not_worse(**data, candidate="v1", baseline="v2", quantity=quantity, margin=margin)
    assert (back.lower, back.upper) == pytest.approx((-rise.high, -rise.low), abs=1e-12)


def test_a_third_system_costs_two_that_were_named_nothing():
    data = two_systems(0.0, 120)
    third = np.where(data["groups"] % 4 == 3, "v3", data["by"])
    found = estimate(**(data | {"by": third}), level=0.9)
    own, of_all = found.difference("v1", "v2"), found.differences["v1", "v2"]
    for quantity, difference in own.items():
        assert difference.value == of_all[quantity].value
        assert difference.low > of_all[quantity].low
        assert difference.high < of_all[quantity].high


def test_the_forecast_of_a_difference_begins_with_what_there_is():
    quantity = "share >= 4"
    found, pair = estimate(**two_systems(0.1, 60, 4000)), ("v1", "v2")
    now = found.difference(*pair)[quantity]
    width = now.high - now.low
    assert found.labels_for(width, quantity, pair) == pytest.approx(120, abs=2)
    assert found.labels_for(0.8 * width, quantity, pair) > 140
    assert found.labels_for(0.001, quantity, pair) is None
    assert found.labels_to_tell(now.low, quantity, pair) == pytest.approx(120, abs=2)
    more = estimate(**two_systems(0.1, 120, 4000)).difference(*pair)[quantity]
    n = found.labels_for(more.high - more.low, quantity, pair)
    assert n == pytest.approx(240, rel=0.25)


def test_two_runs_of_the_same_items_are_compared_as_tables_and_as_arrays():
    data = two_systems(-0.2, 120)

    def run(name):
        own = data["by"] == name
        counts, labels = data["counts"][own], data["labels"][own]
        item = [f"q{row}" for row in range(len(labels))]
        score = np.concatenate([np.repeat(np.arange(1, 6), row) for row in counts])
        votes = read_votes({"item": np.repeat(item, 6), "score": score}, scale=data["scale"])
        gold = {"item": item[:120], "label": labels[:120].astype(int)}
        return votes, read_labels(gold, scale=data["scale"])

    options = {"quantity": "share >= 4", "margin": 0.03, "model": data["model"]}
    found = not_worse(*run("v2"), than=run("v1"), **V2, **options)
    expected = not_worse(**data, **V2, units=data["groups"], quantity="share >= 4", margin=0.03)
    numbers = [(one.estimate, one.lower, one.upper) for one in (found, expected)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-9)
    assert (found.n_items, found.n_labels, str(found)) == (800, 240, str(expected))
    votes, labels = run("v1")
    some = votes.filter({"item": ["q1", "q2", "q300"]}), labels
    assert not_worse(*run("v2"), than=some, model=data["model"], **V2).n_items == 403
    with refused("by", got="system", expected="'than'"):
        not_worse(*run("v2"), than=run("v1"), by="system", **V2)
    with refused("labels", got=data["labels"], expected="labels from read_labels"):
        not_worse(data["counts"], data["labels"], than=run("v1"), **V2)
    pairs = tables(*drawn(100, 40, 0.0))
    with pytest.raises(btdagg.InputError, match="'than': votes are on pairs, expected grades"):
        not_worse(*pairs, than=pairs, **V2)


def test_a_gate_of_grades_wants_labels_of_two_groups_of_each_system():
    data = two_systems(0.0, 60) | V2 | {"labels": np.where(np.arange(800) < 401, 3.0, np.nan)}
    with pytest.raises(btdagg.InputError, match="v2 has 1 group with labels"):
        not_worse(**data)
