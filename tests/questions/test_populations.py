"""Estimates of these items, and of new ones like them."""

import numpy as np
import pandas as pd
import pytest

import btdagg
from btdagg import estimate, estimate_systems
from btdagg.estimates import choose, not_worse

NAMES = ("minus", "tie", "plus")
SCALE = btdagg.Scale(range(1, 6))


def drawn_items(n_items=120, n_labels=60, seed=0, whole=False):
    """Counts, labels of some, all labels, and groups of three."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n_items) // 3
    lean = rng.beta(1.5, 1.2, n_items)[groups]
    gold = np.where(rng.random(n_items) < 0.3, 0, np.where(rng.random(n_items) < lean, 1, -1))
    votes = np.sign(np.round(gold[:, None] + rng.normal(0, 1, (n_items, 8))))
    counts = np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)
    units = groups if whole else np.arange(n_items)
    chosen = rng.permutation(units.max() + 1)[: n_labels // (3 if whole else 1)]
    labels = np.where(np.isin(units, chosen), gold, np.nan)
    return counts, labels, gold, groups


def finite(counts, labels, **options):
    return estimate(counts, labels, population="finite", **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_with_all_labelled_the_value_is_the_mean_and_the_width_0(weighted, grouped):
    counts, _, gold, groups = drawn_items()
    options = {"by": np.arange(120) % 2}
    if grouped:
        options |= {"groups": groups, "units": groups}
    if weighted:
        options["probabilities"] = np.linspace(0.1, 1, 120)
    found = finite(counts, gold.astype(float), **options)
    for name, mean in (("net win rate", gold.mean()), ("tie", (gold == 0).mean())):
        one = found.estimates[name]
        assert (one.low, one.high) == (one.value, one.value)
        assert one.value == pytest.approx(mean, abs=1e-12)
        assert one.standard_error == 0
    (difference,) = found.differences.values()
    net = difference["net win rate"]
    away = gold[0::2].mean() - gold[1::2].mean()
    assert [net.value, net.low, net.high] == pytest.approx([away] * 3, abs=1e-12)
    assert net.pvalue < 1e-300
    assert found.labels_for(0.1) == 120
    assert not any("same mean" in text for text in found.remarks)


def test_a_simple_sample_without_a_judge_is_the_textbooks():
    """Mean and variance of a sample of n of N items: Cochran (1977), section 2."""
    counts, labels, _, _ = drawn_items()
    own = labels[~np.isnan(labels)]
    alone = finite(counts, labels).estimates["net win rate"].labels_only
    assert alone.value == pytest.approx(own.mean(), abs=1e-12)
    assert alone.standard_error**2 == pytest.approx((1 - 60 / 120) * own.var(ddof=1) / 60)
    with_votes = finite(counts, labels).estimates["net win rate"]
    n = with_votes.effective_labels
    assert 60 < n < 120
    of_n = (1 / n - 1 / 120) * own.var(ddof=1)
    assert with_votes.standard_error**2 == pytest.approx(of_n)


def test_strata_and_probabilities_have_the_textbooks_variances():
    counts, _, gold, _ = drawn_items(600)
    strata = choose(counts, 200, design="stratified").strata
    counts, gold = (of[~np.isin(strata, ["tie clear", "no votes"])] for of in (counts, gold))
    n_items = len(gold)
    chosen = choose(counts, 200, design="stratified")
    labels = np.full(n_items, np.nan)
    labels[chosen.rows] = gold[chosen.rows]
    p, strata = chosen.probabilities, chosen.strata
    found = finite(counts, labels, probabilities=p, strata=strata)
    alone = found.estimates["net win rate"].labels_only
    value, variance = 0.0, 0.0
    for name in set(strata):
        own = labels[(strata == name) & ~np.isnan(labels)]
        size = (strata == name).sum()
        value += size / n_items * own.mean()
        if len(own) > 1:
            variance += (size / n_items) ** 2 * (1 - len(own) / size) * own.var(ddof=1) / len(own)
    assert alone.value == pytest.approx(value, abs=1e-12)
    assert alone.standard_error**2 == pytest.approx(variance)
    assert any("with a fixed number from each stratum" in text for text in found.remarks)
    without = finite(counts, labels, probabilities=p)
    assert any("independently of each other" in text for text in without.remarks)
    # Independent draws: Horvitz and Thompson's of the labels less their mean.
    rng = np.random.default_rng(1)
    p = np.clip(counts.std(axis=1) / 8, 0.1, 1)
    labels = np.where(rng.random(n_items) < p, gold, np.nan)
    alone = finite(counts, labels, probabilities=p).estimates["net win rate"].labels_only
    is_own = ~np.isnan(labels)
    beyond = (1 / p[is_own] - 1) / (1 / p[is_own] - 1).sum() * (~is_own).sum()
    assert alone.value == pytest.approx(labels[is_own] @ (1 + beyond) / n_items)


def test_whole_groups_are_the_units_where_they_were_drawn():
    counts, labels, _, groups = drawn_items(whole=True)
    by_group = finite(counts, labels, groups=groups, units=groups).estimates["net win rate"]
    by_item = finite(counts, labels, groups=groups, units=np.arange(120)).estimates["net win rate"]
    sums = np.bincount(groups, np.nan_to_num(labels))[np.unique(groups[~np.isnan(labels)])]
    expected = (1 - 20 / 40) * (sums / 3).var(ddof=1) / 20
    assert by_group.labels_only.standard_error**2 == pytest.approx(expected)
    assert by_item.labels_only.standard_error < by_group.labels_only.standard_error
    with pytest.raises(btdagg.InputError) as error:
        finite(counts, labels, groups=groups)
    assert error.value.argument == "units"


def test_where_many_items_are_labelled_a_remark_gives_the_other_interval():
    counts, labels, _, _ = drawn_items()
    new, these = estimate(counts, labels), finite(counts, labels)
    rate = new.estimates["win rate"], these.estimates["win rate"]
    assert rate[1].high - rate[1].low < rate[0].high - rate[0].low
    assert f"win rate of these 120 items: {rate[1]}" in new.remarks
    assert f"win rate of new items like these: {rate[0]}" in these.remarks
    few = np.where(np.arange(120) < 12, drawn_items()[2], np.nan)
    assert not any("these" in text for text in estimate(counts, few).remarks)


def test_a_gate_and_systems_of_these_items():
    counts, labels, gold, _ = drawn_items()
    sides = {"candidate": "A", "baseline": "B", "margin": 0.1}
    new = not_worse(counts, labels, **sides)
    these = not_worse(counts, labels, population="finite", **sides)
    assert these.upper - these.lower < new.upper - new.lower
    assert "bound" in new.remarks[-1]
    assert f"{these.lower:+.3f} and {these.upper:+.3f}" in new.remarks[-1]
    whole = not_worse(counts, gold.astype(float), population="finite", **sides)
    assert whole.lower == whole.upper == pytest.approx(gold.mean())
    a = np.array(["x", "y", "z"])[np.arange(120) % 3]
    b = np.array(["y", "z", "x"])[np.arange(120) % 3]
    some = estimate_systems(counts, labels, a, b, population="finite")
    for_new = estimate_systems(counts, labels, a, b)
    for name, system in some.systems.items():
        wide = for_new.systems[name].strength
        assert system.strength.high - system.strength.low < 0.9 * (wide.high - wide.low)
    assert any(text.startswith("strengths of these 120 items: ") for text in for_new.remarks)
    for system in estimate_systems(
        counts, gold.astype(float), a, b, population="finite"
    ).systems.values():
        strength, rate = system.strength, system.mean
        assert strength.low == strength.estimate == strength.high
        assert rate.low == rate.value == rate.high


def test_labels_of_other_items_are_one_more_number_where_a_finite_population_is_left():
    """About half of the labels for half of the width, and with all of them there is none."""
    counts, labels, _, _ = drawn_items()
    found = finite(counts, labels)
    net = found.estimates["net win rate"]
    assert 60 < found.labels_for((net.high - net.low) / 2) < 120
    assert found.labels_for(1e-4) <= 120
    assert estimate(counts, labels).labels_for(0.01) is None


# Differences, sums, probabilities, sizes of groups


def two_systems_graded(seed, n_labels):
    """Grades of two systems, of which few have a label."""
    rng = np.random.default_rng(seed)
    grade = np.clip(np.round(rng.normal([[4.2], [3.6]], 1.1, (2, 40))), 1, 5)
    votes = np.clip(np.round(grade[..., None] + rng.normal(0, 1, (2, 40, 4))), 1, 5)
    counts = (votes[..., None] == np.arange(1, 6)).sum(axis=2).reshape(80, 5)
    labels = np.where(np.arange(40) < n_labels, grade, np.nan).ravel()
    return counts, labels, np.repeat(["x", "y"], 40)


@pytest.mark.parametrize("population", ["new", "finite"])
def test_a_pvalue_is_below_5_percent_just_where_the_interval_is_on_one_side_of_0(population):
    sides, options = set(), {} if population == "new" else {"population": population}
    model = btdagg.calibrate(*two_systems_graded(99, 40)[:2], scale=SCALE).model
    counts, labels, system = two_systems_graded(6, 8)
    three = np.where(np.arange(80) % 40 < 20, system, "z")
    for by in (system, three):
        found = estimate(counts, labels, scale=SCALE, by=by, model=model, **options)
        for pair, differences in found.differences.items():
            for of in (differences, found.difference(*pair)):
                for one in of.values():
                    is_beyond = one.low > 0 or one.high < 0
                    assert is_beyond == (one.pvalue < 0.05)
                    sides.add(is_beyond)
    assert sides == {True, False}


def test_two_ways_that_differ_alike_on_all_items_have_the_pvalue_of_their_interval():
    """The interval is Wilson's of groups that may do otherwise, and so is the p-value."""
    counts = np.array([[0, 0, 8], [8, 0, 0]] * 3)
    ties = np.array([[0, 8, 0]] * 6)
    found = btdagg.compare(counts, ties, [1, -1] * 3, methods=btdagg.methods.MajorityVote())
    assert found.difference.mean == -1
    assert (found.difference.high < 0) == (found.pvalue < 0.05)
    assert found.better is None


def test_where_parts_do_not_add_up_to_all_items_a_remark_says_why():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(6, [0.3, 0.3, 0.4], 360)
    labels = np.where(rng.random(360) < 0.2, rng.integers(-1, 2, 360), np.nan)
    found = estimate(counts, labels, by=np.arange(360) // 60)
    parts = np.mean([part["net win rate"].value for part in found.by.values()])
    whole = found.estimates["net win rate"].value
    assert f"{whole:.3f}" != f"{parts:.3f}"
    said = f"net win rate is {whole:.3f} over all items but {parts:.3f} as the mean of the parts"
    assert any(text.startswith(said) for text in found.remarks)


def test_equal_probabilities_change_nothing():
    counts, labels, _, groups = drawn_items()
    for options in ({}, {"groups": groups}):
        simple = estimate(counts, labels, **options)
        of_equal = estimate(counts, labels, probabilities=np.full(120, 0.37), **options)
        for name, mean in of_equal.estimates.items():
            assert mean.labels_only == simple.estimates[name].labels_only


def test_columns_of_units_have_the_index_of_counts():
    counts, labels, _, groups = drawn_items(whole=True)
    frame = pd.DataFrame(counts)
    units = pd.Series(groups)[::-1]
    for column in ("units", "strata"):
        with pytest.raises(btdagg.InputError, match=f"{column}.*index"):
            finite(frame, labels, groups=groups, **{column: units})
        with pytest.raises(btdagg.InputError, match=f"{column}.*index"):
            estimate_systems(
                frame,
                labels,
                system_a=["a"] * 120,
                system_b=["b"] * 120,
                groups=groups,
                population="finite",
                **{column: units},
            )


def test_one_missing_answer_does_not_make_groups_look_unlike():
    counts, labels, gold, _ = drawn_items(120)
    groups = np.arange(120) // 6
    rows = np.arange(120) != 119  # the answer that is missing
    labels = np.where(groups < 8, gold, np.nan)
    found = estimate(counts[rows], labels[rows], groups=groups[rows])
    assert not any("groups of" in text for text in found.remarks)
    # One of each of many groups of two sizes is still told.
    sizes = np.repeat(np.arange(60), np.where(np.arange(60) % 2, 1, 9))
    first = np.unique(sizes, return_index=True)[1]
    counts, _, gold, _ = drawn_items(300)
    labels = np.full(300, np.nan)
    labels[first] = gold[first]
    assert any("groups of" in text for text in estimate(counts, labels, groups=sizes).remarks)


def test_two_ways_are_compared_on_these_items():
    counts, labels, _, _ = drawn_items()
    items = [f"q{row}" for row in range(120)]
    votes = btdagg.read_votes({"item": items, **dict(zip(NAMES, counts.T, strict=True))})
    known = ~np.isnan(labels)
    rows = {"item": np.array(items)[known], "label": labels[known].astype(int)}
    told = {"methods": (None, btdagg.methods.MajorityVote())}
    new = btdagg.compare(votes, votes, btdagg.read_labels(rows), **told)
    these = btdagg.compare(votes, votes, btdagg.read_labels(rows), population="finite", **told)
    assert new.other_difference == these.difference
    widths = [one.difference.high - one.difference.low for one in (these, new)]
    assert widths[0] < 0.75 * widths[1]
    whole = btdagg.compare(counts[known], counts[known], labels[known], population="finite", **told)
    assert whole.difference.low == whole.difference.high == new.difference.mean
    grouped = btdagg.read_labels(rows | {"group": np.arange(known.sum()) // 2})
    for refused in (
        lambda: btdagg.compare(votes, votes, grouped, population="finite", **told),
        lambda: finite(votes, grouped),
    ):
        with pytest.raises(btdagg.InputError, match="labels have no column unit, expected one"):
            refused()


def test_a_plan_for_these_items_knows_those_of_the_pilot():
    counts, _, gold, _ = drawn_items(60)
    job = {"n_votes": [8], "n_labels": [30], "n_items": 240}
    new = btdagg.online.plan(counts, gold, **job).budgets[0]
    these = btdagg.online.plan(counts, gold, **job, population="finite").budgets[0]
    assert these.mae == pytest.approx(new.mae * 180 / 240)
    assert new.calls - these.calls == 60 * 8
    with pytest.raises(btdagg.InputError) as error:
        btdagg.online.plan(counts, gold, **job | {"n_items": 60}, population="finite")
    assert error.value.argument == "n_items"
