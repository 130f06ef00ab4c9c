"""Differences of losses: intervals against inverted enumeration, one-sided, within a margin."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import btdagg
from btdagg import difference, differences, paired_permutation_test, pairwise_pvalues
from btdagg.evaluation import holm
from btdagg.inference.sign_flips import SignFlips


def enumerated(sums, sizes):
    """P-value of any mean, by all subsets of units that could be flipped, and their means."""
    subsets = np.array(list(product([0, 1], repeat=len(sums))))
    items, totals = subsets @ sizes, subsets @ sums

    def pvalue(mean, side):
        greater = (totals - mean * items <= 1e-9).mean()
        less = (totals - mean * items >= -1e-9).mean()
        return {"greater": greater, "less": less}.get(side, min(1, 2 * min(greater, less)))

    return pvalue, totals[items > 0] / items[items > 0]


def grouped(seed, has_groups, most=3):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    sizes = rng.integers(1, 4, n) if has_groups else np.ones(n, dtype=int)
    groups = np.repeat(np.arange(n), sizes)
    return rng.integers(0, most, len(groups)), rng.integers(0, most, len(groups)), groups


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=60)
def test_pvalues_and_ends_are_those_of_all_sign_patterns(seed, has_groups):
    a, b, groups = grouped(seed, has_groups)
    flips = SignFlips(a * 1.0, b * 1.0, groups)
    pvalue, means = enumerated(flips.sums, flips.sizes)
    of_units = flips.sums / flips.sizes
    for side in ("two-sided", "less", "greater"):
        for mean in (-0.7, 0.0, 1 / 3, 1.0):
            assert flips.pvalue(mean, side) == pytest.approx(pvalue(mean, side), abs=1e-12)
        for is_low in (True, False):
            if side != "two-sided" and is_low == (side == "less"):
                continue
            found = flips.end(0.1, side, is_low=is_low)
            beyond = of_units.min() - 1e-3 if is_low else of_units.max() + 1e-3
            inside = [mean for mean in means if pvalue(mean, side) > 0.1] or [flips.mean]
            wanted = min(inside) if is_low else max(inside)
            if pvalue(beyond, side) > 0.1:
                wanted = -np.inf if is_low else np.inf
            assert found == pytest.approx(wanted, abs=1e-9)


@given(st.integers(0, 10**6), st.booleans())
@settings(deadline=None, max_examples=15)
def test_signs_that_are_drawn_invert_the_same_test(seed, has_groups):
    a, b, groups = grouped(seed, has_groups)
    rng = np.random.default_rng(seed)
    a, b = a + rng.normal(0, 0.2, len(a)), b + rng.normal(0, 0.2, len(b))
    flips = SignFlips(a, b, groups, n_resamples=2000)
    for side, is_low in (
        ("two-sided", True),
        ("two-sided", False),
        ("less", False),
        ("greater", True),
    ):
        end = flips.end(0.1, side, is_low=is_low)
        if np.isinf(end):
            continue
        outward = -1 if is_low else 1
        step = 0.003 * max(1, abs(end)) * outward
        assert flips.pvalue(end - step, side) > 0.1
        assert flips.pvalue(end + step, side) <= 0.1 + 1e-12
        shifted = paired_permutation_test(a - end, b, side, groups=groups, n_resamples=2000)
        assert flips.pvalue(end, side) == shifted.pvalue


ASKED = [
    ("two-sided", 0.0),
    ("less", 0.0),
    ("greater", 0.0),
    ("not worse", 0.3),
    ("equivalent", 0.4),
]


@pytest.mark.parametrize(("alternative", "margin"), ASKED)
@pytest.mark.parametrize("better", ["lower", "higher"])
@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_leaves_the_null_out_where_the_test_does(alternative, margin, better, paired):
    n_real = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a = rng.choice(3, 40, p=[0.5, 0.3, 0.2])
        b = np.clip(a + rng.choice([-1, 0, 1], 40, p=[0.1, 0.5, 0.4]), 0, 2)
        a, b = (a, b) if seed % 2 else (b, a)
        a, b = (a + 0.01 * rng.random(40), b * 1.0) if seed % 3 == 0 else (a, b)
        found = difference(
            a, b, alternative=alternative, margin=margin, better=better, level=0.9, paired=paired
        )
        _, low, high = found.difference
        lows, highs = {
            "two-sided": (low > 0 or high < 0, True),
            "less": (high < 0, True),
            "greater": (low > 0, True),
            "not worse": (high < margin if better == "lower" else low > -margin, True),
            "equivalent": (low > -margin, high < margin),
        }[alternative]
        assert found.is_significant == (lows and highs)
        assert np.isinf(low) == (
            alternative == "less" or (alternative, better) == ("not worse", "lower")
        )
        assert low <= found.difference.mean <= high
        n_real += found.is_significant
    assert 0 < n_real < 60


def test_pvalues_are_those_of_the_permutation_test():
    rng = np.random.default_rng(0)
    a, b, groups = rng.integers(0, 3, 90), rng.integers(0, 3, 90), np.arange(90) // 3
    for side in ("two-sided", "less", "greater"):
        for first, second in ((a, b), (a + 0.5 * rng.random(90), b)):
            found = difference(first, second, groups=groups, alternative=side)
            wanted = paired_permutation_test(first, second, side, groups=groups)
            assert found.pvalue == wanted.pvalue
            assert found.method == wanted.method
    first, second = difference(a, b), difference(b, a)
    assert first.pvalue == second.pvalue
    assert first.difference.low == pytest.approx(-second.difference.high, abs=1e-9)
    wins = first.n_first_better, first.n_equal, first.n_second_better
    assert wins == ((a < b).sum(), (a == b).sum(), (a > b).sum())
    spread = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    assert first.effect_size == pytest.approx((a.mean() - b.mean()) / spread)


def test_unpaired_values_are_compared_by_welch():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 30), rng.normal(0.5, 2, 50)
    found = difference(a, b, paired=False)
    wanted = stats.ttest_ind(a, b, equal_var=False)
    assert found.pvalue == pytest.approx(wanted.pvalue, rel=1e-6)
    ends = wanted.confidence_interval(0.95)
    assert found.difference[1:] == pytest.approx((ends.low, ends.high), rel=1e-6)
    one = difference(a, b, paired=False, alternative="less")
    one_sided = stats.ttest_ind(a, b, equal_var=False, alternative="less").pvalue
    assert one.pvalue == pytest.approx(one_sided, rel=1e-6)
    groups = np.arange(30) // 2, 100 + np.arange(50) // 5
    grouped = difference(a, b, paired=False, groups=groups)
    assert grouped.n_groups == 25
    assert grouped.pvalue != found.pvalue


def test_where_few_differ_ends_allow_for_others():
    first, second = np.zeros(40), np.zeros(40)
    second[:3] = 1
    found = difference(first, second)
    assert found.difference.low < -0.15  # Wilson's of 3 of 40 is 0.199
    assert found.difference.high >= 0
    assert [remark.code for remark in found.remarks] == ["few-differ"]
    same = difference(first, first)
    assert same.difference == (0, 0, 0)
    assert [remark.code for remark in same.remarks] == ["alike-differences"]
    known = difference(first, first, ends=(0, 2))
    assert -0.3 < known.difference.low < -0.1
    assert known.difference.high == -known.difference.low
    assert np.isinf(difference([0, 0, 1], [1, 1, 1]).difference.low)


@pytest.mark.parametrize(("n", "share"), [(20, 0.05), (50, 0.1), (100, 0.05)])
def test_a_margin_is_not_shown_by_what_few_items_do_not_show(n, share):
    """Values that are 1, and 0 in a share of the items that is the margin: 5% may pass."""
    rng, asked = np.random.default_rng(0), {"better": "higher", "alternative": "not worse"}
    for ends in (None, (0, 1)):
        passed = 0
        for _ in range(200):
            first = 1.0 * (rng.random(n) >= share)
            passed += difference(first, np.ones(n), margin=share, ends=ends, **asked).is_significant
        assert passed / 200 <= 0.05 + 2 * 0.0154
    same = difference(np.ones(n), np.ones(n), margin=share, **asked)
    assert (same.pvalue, same.is_significant, same.items_wanted) == (1, False, None)
    with_ends = difference(np.ones(n), np.ones(n), margin=0.3, ends=(0, 1), **asked)
    assert with_ends.is_significant == (n >= 20)


def test_many_methods_and_experiments():
    rng = np.random.default_rng(2)
    base = rng.integers(0, 3, 80)
    values = {
        name: np.clip(base + rng.integers(0, k, 80), 0, 4)
        for name, k in (("x", 1), ("y", 2), ("z", 4))
    }
    found = differences(values)
    rows = np.stack([*values.values()])
    matrix = pairwise_pvalues(rows, correction="max-t")
    alone = [one.pvalue for one in found.each]
    wanted = np.maximum(matrix[np.triu_indices(3, 1)], alone)
    assert found.pvalues == pytest.approx(wanted)
    assert found.ranks == {"x": 1, "y": 2, "z": 3}
    by_holm = differences(rows, names=[*"xyz"], correction="holm")
    assert by_holm.pvalues == pytest.approx(holm(alone))
    against = differences(values, against="x", alternative="greater")
    assert [one.names for one in against.each] == [("y", "x"), ("z", "x")]
    assert against.ranks == {}
    experiments = {f"prompt {k}": (values["x"], values[name]) for k, name in enumerate("xyz")}
    of_experiments = differences(experiments, correction="benjamini-hochberg")
    ps = [one.pvalue for one in of_experiments.each]
    assert of_experiments.pvalues == pytest.approx(stats.false_discovery_control(ps))
    assert len(of_experiments.significant) == sum(p <= 0.05 for p in of_experiments.pvalues)
    assert len(of_experiments.table().rows) == 3
    for frame in (pl.DataFrame(values), pd.DataFrame(values)):
        assert differences(frame).pvalues == found.pvalues
    for one in (found, of_experiments, found.each[0]):
        assert one.sentence() in str(one)
        assert one.as_dict()["sentence"] == one.sentence()
        assert one.figure().points


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"second": [0, 1]}, "second"),
        ({"first": [0, 1, np.nan]}, "first[2]"),
        ({"alternative": "better"}, "alternative"),
        ({"alternative": "not worse"}, "margin"),
        ({"margin": 0.1}, "margin"),
        ({"better": "more"}, "better"),
        ({"level": 1.0}, "level"),
        ({"names": "ab"}, "names"),
        ({"groups": [1, 1, 1]}, "groups"),
        ({"groups": [1, 2], "paired": False}, "groups"),
        ({"ends": (1, 0), "second": [0, 1, 2]}, "ends"),
        ({"seed": -1}, "seed"),
        ({"seeds": 1}, "seeds"),
        ({"names": None}, "names"),
        ({"names": ("a", "a")}, "names"),
        ({"ends": 5}, "ends"),
        ({"ends": (0, 1), "second": [0, 1, 2]}, "first[2]"),
        ({"alternative": "equivalent", "margin": 1, "level": 0.4}, "level"),
        ({"first": [1, 1, 1], "second": [2, 2, 2], "paired": False}, "first"),
        ({"ends": (0, 2), "second": [0, 1, 2], "paired": False}, "paired"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(btdagg.InputError) as caught:
        difference(**({"first": [0, 1, 2], "second": [1, 1, 2]} | arguments))
    error = caught.value
    assert error.argument + ("" if error.row is None else f"[{error.row}]") == name


def test_bad_sets_of_methods_are_named():
    for arguments, name in (
        ({"values": {"x": [1, 2]}}, "values"),
        ({"values": {"x": [1, 2], "y": [1, 2, 3]}}, "values['y']"),
        ({"values": [[1, 2], [3, 4]], "names": ["x"]}, "names"),
        ({"values": {"x": [1, 2], "y": [2, 2]}, "against": "z"}, "against"),
        (
            {"values": {"x": [1, 2], "y": [2, 2]}, "against": "x", "correction": "max-t"},
            "correction",
        ),
        ({"values": {"x": ([1, 2], [2, 2])}, "correction": "bonferroni"}, "correction"),
        ({"values": {"x": ([1, 2], [2, 2])}, "groups": {"y": [1, 2]}}, "groups"),
        ({"values": {"x": [1, 2], "y": [2, 2]}, "paired": False}, "paired"),
        ({"values": {"x": pd.Series([1, 2], [1, 0]), "y": pd.Series([2, 2])}}, "values['y']"),
    ):
        with pytest.raises(btdagg.InputError) as caught:
            differences(**arguments)
        assert caught.value.argument == name
