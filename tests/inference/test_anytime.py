"""Confidence sequences against a grid of all means, at every look, by groups."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btdagg
from btdagg import ConfidenceSequence, InputError
from btdagg.inference.anytime import _SHARES, _WEIGHTS
from refusals import refused


def by_grid(sums, sizes, ends, most, level, grid):
    """Ends and p-values after each group by the definition: a table of wealth over all means."""
    alpha, weights = 1 - level, np.exp(_WEIGHTS)
    above, below = np.ones((2, len(grid), len(_SHARES)))
    alive, found = np.ones(len(grid), dtype=bool), []
    for total, size in zip(sums, sizes, strict=True):
        gain = (total - grid * size) / most
        with np.errstate(over="ignore"):
            above *= 1 + np.outer(gain / np.maximum(grid - ends[0], 1e-9), _SHARES)
            below *= 1 + np.outer(-gain / np.maximum(ends[1] - grid, 1e-9), _SHARES)
        alive &= (above @ weights < 2 / alpha) & (below @ weights < 2 / alpha)
        found.append((grid[alive].min(), grid[alive].max()))
    return np.array(found)


@given(st.integers(0, 10**6), st.sampled_from([(-1, 1), (0, 4), (-2.5, 0.5)]), st.booleans())
@settings(deadline=None, max_examples=25)
def test_ends_are_those_of_all_means_that_no_bet_ruled_out(seed, ends, has_groups):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 60) if has_groups else np.ones(60, dtype=int)
    groups = np.repeat(np.arange(60), sizes)
    values = rng.choice(np.linspace(*ends, 5), len(groups), p=[0.1, 0.1, 0.2, 0.3, 0.3])
    found = ConfidenceSequence(ends, null=ends[0], largest_group=3)
    found.add(values, groups)
    grid = np.linspace(*ends, 4001)
    sums = np.bincount(groups, values)
    wanted = by_grid(sums, sizes, ends, 3, 0.95, grid)
    step = grid[1] - grid[0]
    # An end waits until it has moved by a part of its way.
    widest = 0.02 * (wanted[:, 1] - wanted[:, 0]) + 2 * step
    assert np.all(found.path.low <= wanted[:, 0] + 2 * step)
    assert np.all(found.path.high >= wanted[:, 1] - 2 * step)
    assert np.all(found.path.low >= wanted[:, 0] - widest)
    assert np.all(found.path.high <= wanted[:, 1] + widest)
    assert found.n_items == len(values)
    assert found.path.n_items.tolist() == np.cumsum(sizes).tolist()


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_interval_leaves_the_null_out_where_the_test_rules_it_out(alternative):
    rng = np.random.default_rng(0)
    for lead in (-0.3, 0.0, 0.3):
        p = [0.35 - lead / 2, 0.3, 0.35 + lead / 2]
        one = ConfidenceSequence((-1, 1), alternative=alternative, level=0.9)
        for value in rng.choice([-1, 0, 1], 300, p=p):
            one.add([value])
            assert one.is_decided == (one.low > 0 or one.high < 0)
            assert one.is_decided == (one.pvalue <= 0.1 + 1e-9)
        assert (one.low == -1) == (alternative == "less")
        assert (one.high == 1) == (alternative == "greater")


def test_all_at_once_and_one_by_one_are_the_same_and_mirror():
    values = np.random.default_rng(1).choice([-1, 0, 1], 200, p=[0.2, 0.3, 0.5])
    whole, mirrored = (ConfidenceSequence((-1, 1)).add(x) for x in (values, -values))
    parts = ConfidenceSequence((-1, 1))
    for value in values:
        parts.add(value)
    assert (whole.low, whole.high, whole.pvalue) == (parts.low, parts.high, parts.pvalue)
    assert mirrored.low == pytest.approx(-whole.high, abs=1e-6)
    assert mirrored.pvalue == pytest.approx(whole.pvalue)
    assert np.all(np.diff(whole.path.low) >= 0)
    assert np.all(np.diff(whole.path.high) <= 0)


def test_it_is_saved_and_goes_on(tmp_path):
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    values = rng.choice([-1.0, 0.0, 1.0], len(groups), p=[0.2, 0.3, 0.5])
    first = groups < 25
    half = ConfidenceSequence((-1, 1), largest_group=4, level=0.9, null=0.1)
    half.add(values[first], groups[first])
    half.save(tmp_path / "half.json")
    loaded = ConfidenceSequence.load(tmp_path / "half.json")
    for one in (half, loaded, pickle.loads(pickle.dumps(loaded))):
        one.add(values[~first], groups[~first])
        assert (one.low, one.high, one.pvalue, one.n_items) == (
            *(half.low, half.high, half.pvalue),
            len(values),
        )
    with pytest.raises(InputError, match="groups is '24', expected groups that were not added"):
        loaded.add([1], [24])
    (tmp_path / "other.json").write_text('{"format": "tally"}')
    with pytest.raises(InputError, match="not a btdagg confidence sequence"):
        ConfidenceSequence.load(tmp_path / "other.json")


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e300])
def test_values_may_be_of_any_size(scale):
    values = np.random.default_rng(4).choice([-1, 0, 1], 60, p=[0.1, 0.2, 0.7])
    one = ConfidenceSequence((-1, 1)).add(values)
    scaled = ConfidenceSequence((-scale, scale)).add(scale * values)
    assert (scaled.low, scaled.high) == pytest.approx((scale * one.low, scale * one.high), rel=1e-5)
    assert scaled.pvalue == pytest.approx(one.pvalue)
    with refused("ends", got=(-1.7e308, 1.7e308)):
        ConfidenceSequence((-1.7e308, 1.7e308))


def test_bad_values_are_named_and_nothing_is_added():
    one = ConfidenceSequence((-1, 1), largest_group=2)
    for values, groups, said in (
        ([0, 2], None, r"values\[1\] is 2.0, expected a number from -1 to 1"),
        ([0, np.nan], None, "values"),
        ([0, 1, 1], ["a", "b"], "groups has 2 rows"),
        ([0, 1, 1], ["a", "a", "a"], "group 'a' has 3 items, expected at most 2"),
    ):
        with pytest.raises(InputError, match=said):
            one.add(values, groups)
    assert one.n_items == 0
    assert np.isnan(one.mean)
    for arguments in ({"ends": (1, 1)}, {"null": 3.0}, {"alternative": "more"}, {"level": 95}):
        name, value = next(iter(arguments.items()))
        with refused(name, got=value):
            ConfidenceSequence(**({"ends": (-1, 1)} | arguments))


def test_about_how_many_items_would_decide():
    """Where differences go on as they did, the forecast is about right."""
    rng, ratios = np.random.default_rng(3), []
    for _ in range(40):
        values = rng.choice([-1, 0, 1], 3000, p=[0.25, 0.35, 0.4])
        one = ConfidenceSequence((-1, 1)).add(values[:100])
        forecast = one.items_wanted
        decided = next(
            (n for n in range(100, 3000) if one.is_decided or one.add(values[n]).is_decided), 3000
        )
        if forecast is not None and decided > 100:
            ratios.append(forecast / decided)
    assert len(ratios) > 15
    assert 0.5 < np.median(ratios) < 2
    assert btdagg.ConfidenceSequence((-1, 1)).add([1] * 5).items_wanted > 5
    assert btdagg.ConfidenceSequence((-1, 1)).add([1] * 4).items_wanted is None
