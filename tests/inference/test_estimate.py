"""Estimates: intervals by formulas, p-values that agree with them, and several together."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import stdtrit

import btdagg
from btdagg.evaluation.new_items import Losses, NewItems
from btdagg.inference.estimate import Estimate, Together, combined, jackknifed
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.population import PredictedItems
from btdagg.inference.sample import LabelledSample


def sample_of(groups):
    return LabelledSample.of(np.ones(len(groups)), groups, len(groups), "new", None)


def mean_of(values, ends=(0.0, 1.0), groups=None):
    groups = np.arange(len(values)) if groups is None else groups
    return labelled_mean(np.asarray(values, float), sample_of(groups), ends)


def wilson(p, n, z):
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return centre - half, centre + half


def test_a_share_has_wilsons_interval_by_students_t():
    values = np.arange(40) % 4 == 0
    mean = mean_of(values)
    n = 0.25 * 0.75 / (values.var(ddof=1) / 40)
    assert mean.interval(0.9) == pytest.approx((0.25, *wilson(0.25, n, stats.t.ppf(0.95, 39))))


def test_without_ends_it_is_students_t():
    values = np.random.default_rng(0).normal(size=30)
    mean = mean_of(values, (-np.inf, np.inf))
    test = stats.ttest_1samp(values, 0.1)
    interval = test.confidence_interval(0.95)
    assert mean.interval() == pytest.approx((values.mean(), *interval))
    assert mean.pvalue(0.1) == pytest.approx(test.pvalue)


@pytest.mark.parametrize(("value", "low", "high"), [(0, 0, 1), (1, 0, 1), (0.5, -1, 1)])
def test_where_all_groups_are_alike_a_share_of_others_may_not_be(value, low, high):
    mean = mean_of(np.full(20, value), (low, high))
    t = stats.t.ppf(0.975, 19)
    unlike = t**2 / (20 + t**2)
    expected = value - unlike * (value - low), value + unlike * (high - value)
    assert mean.interval()[1:] == pytest.approx(expected)
    if value == low:  # Wilson's interval of a share of none
        assert mean.interval().high == pytest.approx(wilson(0, 20, t)[1])


def drawn_estimates():
    rng = np.random.default_rng(1)
    groups = np.arange(60) // 3
    a, b = rng.random((2, 60)) < [[0.7], [0.5]]
    means = {"share": mean_of(a, groups=groups), "all": mean_of(np.ones(12))}
    means["grade"] = mean_of(rng.integers(1, 6, 25), (1, 5))
    means["difference"] = means["share"] - mean_of(b, groups=groups)
    means["with a constant"] = means["share"] - means["all"]
    means["unbounded"] = mean_of(rng.normal(0.3, 1, 15), (-np.inf, np.inf))
    counts = rng.multinomial(6, [0.3, 0.2, 0.5], 200)
    labels = np.where(np.arange(200) < 50, btdagg.majority_vote(counts), np.nan)
    found = btdagg.estimate(counts, labels)
    means["allowance"] = found.compared("win rate", None)
    return means


@pytest.mark.parametrize(("name", "estimate"), drawn_estimates().items())
def test_an_interval_excludes_what_the_p_value_does(name, estimate):
    interval = estimate.interval(0.5)
    for end in (interval.low, interval.high):
        if end in estimate.ends:
            continue
        assert estimate.pvalue(end) == pytest.approx(0.5, abs=1e-6), name
    for level in (0.6, 0.9, 0.99):
        low, high = estimate.interval(level)[1:]
        for null in np.linspace(*np.clip(estimate.ends, -3, 3), 41):
            is_outside = null < low - 1e-9 or null > high + 1e-9
            assert is_outside == (estimate.pvalue(null) < 1 - level - 1e-9), (name, null)


def test_a_difference_allows_for_groups_that_are_shared():
    rng = np.random.default_rng(2)
    groups = np.arange(40)
    shared = rng.normal(size=40)
    a, b = shared + rng.normal(size=(2, 40)) * 0.3
    ends = -np.inf, np.inf
    difference = mean_of(a, ends) - mean_of(b, ends)
    assert difference.error == pytest.approx((a - b).std(ddof=1) / 40**0.5)
    np.testing.assert_allclose(
        difference.influence, mean_of(a - b, ends, groups).influence, atol=1e-12
    )
    apart = mean_of(a, ends) - mean_of(b, ends, groups + 40)
    assert apart.error > 2 * difference.error


def test_where_no_group_differs_a_share_of_others_may():
    a = np.random.default_rng(3).integers(0, 2, 40).astype(float)
    one = mean_of(a)
    same = one - mean_of(a)
    q = float(stdtrit(one.freedom, 0.975))
    assert same.interval() == pytest.approx((0, -(q**2) / (40 + q**2), q**2 / (40 + q**2)))
    assert same.pvalue() == 1
    # So it is where a judge makes the difference of these labels vary.
    noise = np.random.default_rng(4).normal(0, 0.001, 40)
    by_judge = [replace(of, influence=of.influence + k * noise) for k, of in enumerate([one, one])]
    corrected = [replace(of, alone=one) for of in by_judge]
    assert (corrected[0] - corrected[1]).interval()[2] > same.interval()[2] - 1e-9
    # What adds to an error besides groups does not tell of them either.
    none = mean_of(np.zeros(40), (-1, 1))
    with_refits = replace(none, variance=1e-6)
    assert with_refits.interval()[1:] == none.interval()[1:]
    low = none.interval(1 - with_refits.pvalue(0.05))[2]
    assert low == pytest.approx(0.05)


def test_without_a_value_an_interval_is_all_there_can_be():
    nothing = Estimate(np.nan, 0.01, ends=(0, 1))
    assert nothing.interval()[1:] == (0, 1)


def test_slopes_are_those_of_the_delta_method():
    a, b = (mean_of(np.arange(50) % k == 0) for k in (2, 5))
    ratio = combined([(1 / b.value, a), (-a.value / b.value**2, b)], a.value / b.value, (0, np.inf))
    assert ratio.value == 2.5
    slopes = np.array([1 / b.value, -a.value / b.value**2])
    influence = slopes @ [a.influence, b.influence]
    assert ratio.variance == pytest.approx(influence @ influence)
    assert ratio.interval().low < 2.5 < ratio.interval().high


def test_a_function_of_sums_is_jackknifed_by_group():
    rng = np.random.default_rng(3)
    groups = np.arange(90) // 3
    columns = np.column_stack([rng.random(90), rng.random(90) + 1])
    sums = np.stack([np.bincount(groups, column) for column in columns.T], axis=1)
    ratio = jackknifed(lambda s: s[:, 0] / s[:, 1], sums, np.full(30, 3.0), (0, 1))
    without = [columns[groups != g, 0].sum() / columns[groups != g, 1].sum() for g in range(30)]
    assert ratio.value == pytest.approx(columns[:, 0].sum() / columns[:, 1].sum())
    spread = 29 / 30 * ((np.array(without) - ratio.value) ** 2).sum()
    assert ratio.variance == pytest.approx(spread)
    assert ratio.freedom == pytest.approx(29)
    only = jackknifed(lambda s: s[:, 0] / s[:, 1], sums[:1], np.ones(1), (0, 1))
    assert np.isnan(only.variance)
    assert only.interval()[1:] == (0, 1)


def independent(k, n=200):
    rng = np.random.default_rng(4)
    values = rng.normal(size=(k, n)) + 0.2
    return [mean_of(v, (-np.inf, np.inf), np.arange(n) + n * j) for j, v in enumerate(values)]


@pytest.mark.parametrize("k", [2, 5, 20])
def test_independent_estimates_together_hold_as_sidak_says(k):
    together = Together(independent(k))
    assert together.level(0.95) == pytest.approx(0.95 ** (1 / k), abs=0.1 * 0.05 / k)
    assert together.pvalue(0.01) == pytest.approx(1 - 0.99**k, rel=0.1)


def test_estimates_that_share_their_errors_are_one():
    (estimate,) = independent(1)
    together = Together([estimate] * 8)
    assert together.level(0.95) == pytest.approx(0.95, abs=0.005)
    assert together.pvalue(0.03) == pytest.approx(0.03, abs=0.005)
    assert Together([estimate]).level(0.9) == 0.9
    assert Together([]).pvalue(0.2) == 0.2


def test_estimates_that_show_no_error_count_as_independent_ones():
    rng = np.random.default_rng(6)
    alike = [mean_of(np.ones(30), groups=np.arange(30)) for _ in range(4)]
    together = Together(alike)
    assert together.level(0.95) == pytest.approx(0.95**0.25, abs=0.002)
    assert together.pvalue(0.01) == pytest.approx(1 - 0.99**4, rel=0.1)
    varying = mean_of(rng.integers(0, 2, 30))
    with_varying = [varying - of for of in alike]  # one influence, but not one error
    assert Together(with_varying).level(0.95) == pytest.approx(0.95**0.25, abs=0.002)
    known = [varying - Estimate.known(0.1 * k) for k in range(4)]
    assert Together(known).level(0.95) == pytest.approx(0.95, abs=0.002)
    assert Together(known).level(0.95) >= 0.95


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
def test_together_intervals_exclude_what_the_p_values_do(level):
    estimates = independent(6)
    together = Together(estimates)
    own = together.level(level)
    assert level < own <= 1 - (1 - level) / 6 + 1e-12
    for estimate in estimates:
        for null in np.linspace(-0.1, 0.5, 200):
            _, low, high = estimate.interval(own)
            is_outside = null < low - 1e-9 or null > high + 1e-9
            assert is_outside == (together.pvalue(estimate.pvalue(null)) < 1 - level - 1e-12)


@pytest.mark.soak
def test_differences_of_five_equal_parts_hold_together():
    held = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        by, gold = np.arange(400) % 5, rng.choice([-1.0, 0, 1], 400)
        chances = np.array([[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]])
        counts = np.array([rng.multinomial(4, chances[int(g) + 1]) for g in gold])
        labels = np.where(rng.permutation(400) < 150, gold, np.nan)
        found = btdagg.estimate(counts, labels, by=by).differences.values()
        held.append(all(d["net win rate"].low <= 0 <= d["net win rate"].high for d in found))
    assert np.mean(held) > 0.95 - 2.33 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize("population", ["new", "finite"])
def test_shares_add_up_and_a_win_rate_is_made_of_them(population):
    rng = np.random.default_rng(5)
    gold = rng.choice([-1, 0, 1], 500, p=[0.3, 0.3, 0.4])
    seen = gold[:, None] + rng.normal(0, 1.2, (500, 8))
    votes = np.where(np.abs(seen) < 0.6, 0, np.sign(seen))
    counts = np.stack([(votes == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    labels = np.where(np.arange(500) < 80, gold, np.nan)
    found = btdagg.estimate(counts, labels, population=population).estimates
    a, tie, b, net, rate = (found[n].value for n in ("A", "tie", "B", "net win rate", "win rate"))
    assert found["A"].weight > 0.3
    assert a + tie + b == pytest.approx(1, abs=1e-12)
    assert (net, rate) == (pytest.approx(a - b), pytest.approx(a + tie / 2))


def test_shares_add_up_where_a_correction_is_beyond_an_end():
    rng = np.random.default_rng(8)
    counts = rng.multinomial(6, [0.1, 0.1, 0.8], 60)
    labels = np.where(np.arange(60) < 12, np.where(np.arange(60) == 0, -1, 1), np.nan)
    added = 0
    for seed in range(20):
        own = np.random.default_rng(seed).permutation(60)
        found = btdagg.estimate(counts[own], labels).estimates
        a, tie, b, net = (found[name].value for name in ("A", "tie", "B", "net win rate"))
        assert a + tie + b == pytest.approx(1, abs=1e-12)
        assert net == pytest.approx(a - b, abs=1e-12)
        added += min(a, tie, b) == 0
    assert added


@pytest.mark.parametrize("n", [20, 40])
def test_errors_that_cancel_leave_no_less_than_their_difference_has(n):
    rng = np.random.default_rng(11)
    held = []
    for _ in range(200):
        x = rng.choice([1.0, 5.0], n, p=[0.2, 0.8])
        y = np.where(x == 5, 5.0, 3.0)  # always as good or better, by 0.4 on the mean
        less = mean_of(y, (1, 5)) - mean_of(x, (1, 5))
        _, low, high = less.interval()
        held.append(low <= 0.4 <= high)
        half = less.error * stdtrit(less.freedom, 0.975)
        assert high - low >= half
    assert np.mean(held) > 0.93


def test_one_group_more_on_either_side_hides_nothing():
    shared = np.random.default_rng(9).integers(0, 2, 40).astype(float)
    groups = np.arange(41)
    x = mean_of(np.append(shared, 1.0), groups=groups)
    y = mean_of(np.append(shared, 0.0), groups=np.append(groups[:-1], 41))
    q = float(stdtrit(min(x.freedom, y.freedom), 0.975))
    value, low, high = (x - y).interval()
    assert high - value > q**2 / (41 + q**2) * 0.95
    assert value - low > q**2 / (41 + q**2) * 0.95


def test_p_values_agree_with_bounds_of_whole_items():
    rng = np.random.default_rng(5)
    n_exact = 0
    for _ in range(25):
        n, right = int(rng.integers(20, 60)), rng.uniform(0.7, 1)
        gold = rng.choice([-1, 0, 1], n)
        chances = np.where(np.eye(3)[gold + 1] == 1, right, (1 - right) / 2)
        counts = np.stack([rng.multinomial(5, p) for p in chances])
        labels = np.where(np.arange(n) < 0.7 * n, gold, np.nan)
        items = btdagg.votes.Items(counts=counts, labels=labels)
        population = PredictedItems.of(items, population="finite")
        for estimate in population.domain().values():
            if estimate.unseen is None or np.isnan(estimate.unseen.calls):
                continue
            n_exact += 1
            _, low, high = estimate.interval()
            for null in rng.uniform(*estimate.ends, 6):
                p = estimate.pvalue(null)
                if abs(p - 0.05) > 0.002:
                    assert (low - 1e-9 <= null <= high + 1e-9) == (p > 0.05)
    assert n_exact > 10


def test_a_domain_of_few_labels_is_not_that_of_many():
    rng = np.random.default_rng(6)
    gold = rng.choice([-1, 0, 1], 600)
    counts = rng.multinomial(4, [0.3, 0.3, 0.4], 600)
    labels = np.where(np.arange(600) < 100, gold, np.nan)
    items = btdagg.votes.Items(counts=counts, labels=labels)
    model = btdagg.DavidsonModel(beta=1.0, eta0=0.5, gamma=1.0)
    population = PredictedItems.of(items, model=model)
    few = np.arange(600) % 20 == 0
    assert population.is_published()
    assert not population.is_published(few)
    assert np.isfinite(population.domain(few)["net win rate"].freedom)


def test_losses_that_are_all_the_same_are_alike_to_rounding():
    losses, refits = np.full(30, 0.1), np.array([0.1, 0.101])
    groups = np.arange(30)
    of_items = np.stack([losses, losses / 2])
    found = NewItems(
        {"mae": Losses(of_items, np.stack([refits, refits]), None, 2.0)}, groups
    ).interval(0, "mae")
    q2 = stdtrit(29, 0.975) ** 2
    assert found.high >= 0.1 + q2 / (30 + q2) * 1.9 - 1e-9


def test_what_nothing_is_known_of_has_no_p_value():
    nothing = Estimate(np.nan, np.nan, ends=(0, 1))
    assert np.isnan(nothing.pvalue(0.5))
    assert np.isnan((nothing - Estimate.known(0.3)).pvalue())
    assert Estimate.known(0.3).pvalue() < 1e-300
    assert Estimate(1.0, 0.0, ends=(0, 1), n_alike=5).pvalue(1.5) < 1e-300
