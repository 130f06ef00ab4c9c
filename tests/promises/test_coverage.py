"""Intervals hold as often as they say: few errors, rare large groups, prompts of several items."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import hypergeom, t

import btdagg
from btdagg.datasets import REGIMES, simulate

FINITE = "finite"


def judged(rng, n_items=120, rate=0.02, n_votes=4):
    """Pairs, half won by each side, and a unanimous judge that errs at a rate."""
    truth = rng.choice([-1, 1], n_items)
    called = np.where(rng.random(n_items) < rate, -truth, truth)
    return truth, n_votes * np.eye(3)[called + 1]


def some_of(rng, truth, n_labels):
    labels = np.full(len(truth), np.nan)
    drawn = rng.permutation(len(truth))[:n_labels]
    labels[drawn] = truth[drawn]
    return labels


def most_unseen(n_items, n_labels, tail):
    """Most disagreements among all items with a chance above `tail` that no label shows one."""
    numbers = np.arange(n_items - n_labels + 1)
    return numbers[hypergeom.pmf(0, n_items, numbers, n_labels) > tail].max()


@pytest.mark.parametrize(("n_items", "n_labels", "level"), [(120, 60, 0.95), (90, 25, 0.8)])
def test_where_no_label_disagrees_the_ends_are_the_exact_ones(n_items, n_labels, level):
    rng = np.random.default_rng(3)
    truth, counts = judged(rng, n_items, rate=0)
    labels = some_of(rng, truth, n_labels)
    found = btdagg.estimate(counts, labels, population=FINITE, level=level).estimates
    unseen = most_unseen(n_items, n_labels, (1 - level) / 2)
    for name, far in (("net win rate", 2), ("win rate", 1), ("A", 1)):
        values = {"net win rate": truth, "win rate": (truth + 1) / 2, "A": truth == 1}[name]
        ends = found[name].low, found[name].high
        assert ends == pytest.approx(values.mean() + unseen * far / n_items * np.array([-1, 1]))
    assert (found["tie"].low, found["tie"].high) == pytest.approx((0, unseen / n_items))


def test_labels_that_are_all_alike_end_at_the_exact_number_of_others():
    rng = np.random.default_rng(4)
    labels = some_of(rng, np.ones(80), 40)
    counts = rng.multinomial(5, [0.3, 0.3, 0.4], 80)
    alone = btdagg.estimate(counts, labels, population=FINITE).estimates["A"].labels_only
    assert (alone.low, alone.high) == pytest.approx((1 - most_unseen(80, 40, 0.025) / 80, 1))


def test_grades_and_verdicts_end_at_the_exact_number_of_others():
    rng = np.random.default_rng(5)
    truth = rng.permutation(np.arange(100) % 2)
    counts = 3 * np.eye(2, dtype=int)[truth]
    labels = some_of(rng, truth.astype(float), 40)
    found = btdagg.estimate(counts, labels, scale=btdagg.PASS_FAIL, population=FINITE)
    ends = found.estimates["pass rate"].low, found.estimates["pass rate"].high
    assert ends == pytest.approx(0.5 + most_unseen(100, 40, 0.025) / 100 * np.array([-1, 1]))


def test_a_disagreement_more_makes_no_interval_narrower():
    rng = np.random.default_rng(6)
    truth, counts = judged(rng, 200, rate=0)
    labels = some_of(rng, truth, 100)
    labelled = np.flatnonzero(~np.isnan(labels))
    widths = []
    for n_wrong in (0, 1, 2, 4, 8):
        shown = counts.copy()
        shown[labelled[:n_wrong]] = shown[labelled[:n_wrong], ::-1]
        mean = btdagg.estimate(shown, labels, population=FINITE).estimates["win rate"]
        widths.append(mean.high - mean.low)
    assert np.all(np.diff(widths) > -0.01)


def test_forecasts_are_of_the_interval_that_is_shown():
    rng = np.random.default_rng(7)
    for rate in (0.0, 0.03, 0.2):
        truth, counts = judged(rng, 120, rate)
        for population in ("new", FINITE):
            labels = some_of(rng, truth, 60)
            found = btdagg.estimate(counts, labels, population=population)
            mean = found.estimates[found.main]
            assert found.width_with(60) == pytest.approx(mean.high - mean.low)


def test_new_items_too_allow_for_errors_that_no_label_shows():
    rng = np.random.default_rng(8)
    truth, counts = judged(rng, 5000, rate=0)
    found = btdagg.estimate(counts, some_of(rng, truth, 60)).estimates["win rate"]
    assert found.low < found.value - 0.02 < found.value + 0.02 < found.high


def with_large_groups(rng, n_groups=400, n_labelled=60):
    """3% of the prompts have 25 items, on which the judge is sure and wrong."""
    is_large = np.arange(n_groups) < 0.03 * n_groups
    groups = np.repeat(np.arange(n_groups), np.where(is_large, 25, 1))
    of_large = is_large[groups]
    truth = np.where(of_large, -1, rng.choice([-1, 1], len(groups)))
    is_wrong = of_large | (rng.random(len(groups)) < 0.07)
    called = np.where(is_wrong, -truth, truth)
    counts = 8 * np.eye(3)[called + 1]
    drawn = rng.permutation(n_groups)[:n_labelled]
    return counts, truth, groups, drawn, is_large


def test_no_certificate_where_groups_of_a_size_have_no_label():
    counts, truth, groups, _, is_large = with_large_groups(np.random.default_rng(9))
    labels = np.where(np.isin(groups, np.flatnonzero(~is_large)[:60]), truth, np.nan)
    certificate = btdagg.certify(counts, labels, groups=groups)
    assert not certificate.trusted(counts).any()
    assert certificate.labels_wanted is None
    found = btdagg.estimate(counts, labels, groups=groups, units=groups, population=FINITE)
    mean = found.estimates["win rate"]
    assert mean.low <= (truth.mean() + 1) / 2 <= mean.high
    assert mean.high - mean.low > 0.4


@pytest.mark.parametrize(("n_groups", "size"), [(12, 5), (20, 3), (30, 2)])
@pytest.mark.parametrize("confidence", [0.8, 0.9])
def test_labels_of_groups_that_all_agree_are_worth_as_many_labels_as_groups(
    n_groups, size, confidence
):
    """Clopper and Pearson's bound at Korn and Graubard's number of labels, by hand."""
    groups = np.arange(n_groups).repeat(size)
    gold = np.where(np.arange(len(groups)) % 2, 1, -1)
    counts = 6 * np.eye(3, dtype=int)[gold + 1]
    certificate = btdagg.certify(counts, gold, groups=groups, agreement=0.6, confidence=confidence)
    few = t.ppf(confidence, len(groups) - 1) / t.ppf(confidence, n_groups - 1)
    last = certificate.curve[-1]
    assert (last.coverage, last.agreement, last.n_labels) == (1, 1, len(groups))
    assert last.low == pytest.approx((1 - confidence) ** (1 / (n_groups * few**2)), abs=1e-9)


def test_intervals_hold_where_two_groups_have_most_of_the_labels():
    """Two prompts of twenty items whose labels are all alike, and ten of one item."""
    sizes, model = np.array([20] * 2 + [1] * 10), btdagg.DavidsonModel(1.0, 1.0, 0.5)
    groups, held = np.arange(len(sizes)).repeat(sizes), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        gold = rng.choice([-1.0, 0, 1], len(sizes), p=[0.3, 0.4, 0.3])[groups]
        counts = rng.multinomial(4, [0.3, 0.4, 0.3], len(groups))
        found = btdagg.estimate(counts, gold, groups=groups, model=model)
        mean = found.estimates["net win rate"]
        held.append([one.low <= 0 <= one.high for one in (mean, mean.labels_only)])
    assert (np.mean(held, axis=0) > 0.925).all()


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_it_does_not_matter_which_system_of_an_item_without_a_label_is_called_a(share):
    rng = np.random.default_rng(10)
    skill = np.array([0.8, 0.2, 0.0, -0.9])
    a = rng.integers(0, 4, 400)
    b = (a + rng.integers(1, 4, 400)) % 4
    lead = skill[a] - skill[b] + rng.normal(0, 0.8, 400)
    gold = np.where(np.abs(lead) < 0.5, 0, np.sign(lead))
    seen = lead[:, None] + rng.normal(0, 0.7, (400, 6))
    vote = np.where(np.abs(seen) < 0.5, 0, np.sign(seen))
    counts = np.stack([(vote == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    labels, names = np.where(np.arange(400) < 60, gold, np.nan), np.array([*"wxyz"])
    turned = np.isnan(labels) & (rng.random(400) < share)
    other = np.where(turned[:, None], counts[:, ::-1], counts)
    groups = np.arange(400) // 2
    one = btdagg.estimate_systems(counts, labels, names[a], names[b], groups=groups)
    two = btdagg.estimate_systems(
        other, labels, names[np.where(turned, b, a)], names[np.where(turned, a, b)], groups=groups
    )
    assert one.weight > 0.05
    assert two.weight == pytest.approx(one.weight, rel=1e-6)
    assert [*one.systems] == [*two.systems]
    np.testing.assert_allclose(one.covariance, two.covariance, rtol=1e-6)
    np.testing.assert_allclose(one.pvalues, two.pvalues, rtol=1e-6, atol=1e-12)
    for name, system in one.systems.items():
        others = two.systems[name].strength
        for end in ("low", "estimate", "high"):
            assert getattr(system.strength, end) == pytest.approx(getattr(others, end), rel=1e-6)


@pytest.mark.soak
def test_estimates_hold_where_a_few_large_groups_have_most_errors():
    hits = {"new": [], FINITE: []}
    for seed in range(150):
        counts, truth, groups, drawn, _ = with_large_groups(np.random.default_rng(seed))
        labels = np.where(np.isin(groups, drawn), truth, np.nan)
        for population, held in hits.items():
            found = btdagg.estimate(
                counts, labels, groups=groups, units=groups, population=population
            ).estimates["win rate"]
            held.append(found.low <= (truth.mean() + 1) / 2 <= found.high)
    for held in hits.values():
        assert np.mean(held) > 0.925 - 2.33 * np.sqrt(0.925 * 0.075 / 150)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("n_items", "n_labels", "rate"),
    [(120, 60, 0.02), (120, 30, 0.02), (120, 100, 0.02), (240, 60, 0.01), (120, 60, 0.05)],
)
def test_intervals_of_these_items_hold_where_the_judge_errs_seldom(n_items, n_labels, rate):
    n_draws, held = 200, 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        truth, counts = judged(rng, n_items, rate)
        labels = some_of(rng, truth, n_labels)
        found = btdagg.estimate(counts, labels, population=FINITE).estimates["net win rate"]
        held += found.low - 1e-9 <= truth.mean() <= found.high + 1e-9
    assert held / n_draws > 0.925 - 2.33 * np.sqrt(0.925 * 0.075 / n_draws)


def with_a_covariate(rng, n_items, size):
    """Pairs in prompts, whose items have one value of a covariate and err alike."""
    groups = np.arange(n_items) // size
    x, alike = rng.normal(size=(2, groups.max() + 1))[:, groups]
    seen = rng.normal(size=n_items)
    margin = seen + 0.5 * x + 1.2 * alike * (size > 1)
    odds = np.exp(np.stack([-margin, np.full(n_items, 0.3), margin], axis=1))
    below = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    labels = (rng.random((n_items, 1)) > below).sum(axis=1) - 1.0
    chances = np.exp(np.stack([-seen, np.full(n_items, -0.5), seen], axis=1))
    counts = rng.multinomial(6, chances / chances.sum(axis=1, keepdims=True))
    return counts, labels, {"x": (x, 1.0)}, groups


def test_items_that_a_prompt_repeats_tell_no_more_of_a_model():
    counts, labels, covariates, _ = with_a_covariate(np.random.default_rng(1), 90, 1)
    repeated = np.repeat(np.arange(90), 6)
    values, scale = covariates["x"]
    more = counts[repeated], labels[repeated]
    often = {"x": (values[repeated], scale)}
    once = btdagg.calibrate(counts, labels, covariates=covariates)
    grouped = btdagg.calibrate(*more, covariates=often, groups=repeated)
    single = btdagg.calibrate(*more, covariates=often)
    wanted = once.weights()["x"]
    width = wanted.high - wanted.low
    assert grouped.weights()["x"].estimate == pytest.approx(wanted.estimate, abs=1e-4)
    assert grouped.weights()["x"].high - grouped.weights()["x"].low > 0.9 * width
    assert single.weights()["x"].high - single.weights()["x"].low < 0.6 * width
    for name, interval in grouped.intervals().items():
        ends = once.intervals()[name], single.intervals()[name]
        all_widths = [np.log(of.high - of.low) for of in (interval, *ends)]
        assert abs(all_widths[0] - all_widths[1]) < 0.35 * abs(all_widths[2] - all_widths[1]), name


@pytest.mark.parametrize("prior", ["weak", None])
def test_intervals_beside_refits_are_as_wide_as_groups_and_no_narrower_by_a_prior(prior):
    counts, labels, _, _ = with_a_covariate(np.random.default_rng(1), 90, 1)
    repeated = np.repeat(np.arange(90), 6)
    how = {"prior": prior, "n_refits": 2}
    once = btdagg.bootstrap(counts, labels, **how)
    grouped = btdagg.bootstrap(counts[repeated], labels[repeated], groups=repeated, **how)
    single = btdagg.bootstrap(counts[repeated], labels[repeated], **how)
    for name in ("beta", "nu", "gamma"):
        ends = (getattr(found, name) for found in (once, grouped, single))
        wanted, allowed, narrow = (np.log(of.high - of.low) for of in ends)
        assert abs(allowed - wanted) < 0.35 * abs(narrow - wanted), name
    if prior is None:
        with_prior = btdagg.bootstrap(counts, labels, n_refits=2)
        assert once.gamma.low < with_prior.gamma.estimate < once.gamma.high


@pytest.mark.soak
@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize("regime", ["wmt-en-de", "rb2-focus", "rb2-ties"])
def test_intervals_beside_refits_hold_for_judges_unlike_the_prior(regime, prior):
    true, held = REGIMES[regime], {"beta": [], "nu": [], "gamma": []}
    for seed in range(100):
        sample = simulate(regime, 50, 12, seed=seed)
        found = btdagg.bootstrap(sample.counts, sample.labels, n_refits=2, prior=prior)
        for name, hits in held.items():
            interval, value = getattr(found, name), getattr(true, name)
            hits.append(interval.low * (1 - 1e-9) <= value <= interval.high * (1 + 1e-9))
    for hits in held.values():
        assert np.mean(hits) > 0.925 - 2.33 * np.sqrt(0.925 * 0.075 / 100)


def judged_tasks(shared):
    """Counts and labels of tasks of several judges of RewardBench 2."""
    votes = pl.read_parquet(shared / "data/rb2/votes.parquet").with_columns(
        pl.col("item", "judge", "task", "template", "temperature").cast(pl.String)
    )
    labels = pl.read_csv(shared / "data/rb2/labels.csv").select("item", "label")
    names = ["minus", "tie", "plus"]
    numbers = [
        (pl.col("vote") == vote).sum().cast(pl.Int64).alias(name)
        for vote, name in zip((-1, 0, 1), names, strict=True)
    ]
    rows = votes.filter(template="base", temperature="default").group_by("judge", "task", "item")
    rows = rows.agg(numbers).join(labels, on="item").sort("judge", "task", "item")
    for part in rows.partition_by("judge", "task", maintain_order=True)[::2]:
        yield part.select(names).to_numpy(), part["label"].to_numpy()


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("n_labels", [20, 50])
def test_stable_says_how_often_another_draw_of_labels_decides_alike(shared, n_labels):
    said, true, of_stable = [], [], []
    for counts, labels in judged_tasks(shared):
        for seed in range(4):
            order = np.random.default_rng(seed).permutation(len(counts))
            first, *others = np.split(order[: 4 * n_labels], 4)
            rest = counts[order[4 * n_labels :]]
            refits = btdagg.bootstrap(counts[first], labels[first], n_refits=200, seed=seed)
            stability = refits.stability(rest)
            alike = np.mean(
                [
                    btdagg.calibrate(counts[some], labels[some]).model.decide(rest)
                    == stability.labels
                    for some in others
                ],
                axis=0,
            )
            said.append(stability.agreement.mean())
            true.append(alike.mean())
            of_stable.append([(alike * stability.stable).sum(), stability.stable.sum()])
    assert np.mean(said) - np.mean(true) < 0.02
    agreeing, stable = np.sum(of_stable, axis=0)
    assert agreeing > (0.95 if n_labels > 20 else 0.94) * stable


@pytest.mark.filterwarnings("ignore:this judge is not shown")
def test_the_estimate_of_a_weight_lies_in_its_interval_and_the_shrunk_one_is_named():
    for seed in range(20):
        counts, labels, covariates, groups = with_a_covariate(np.random.default_rng(seed), 60, 6)
        fitted = btdagg.calibrate(counts, labels, covariates=covariates, groups=groups)
        interval = fitted.weights()["x"]
        assert interval.low < interval.estimate < interval.high
        assert f"{fitted.model.covariates[0].weight:.4g}" in interval.note


@pytest.mark.filterwarnings("ignore:this judge is not shown")
@pytest.mark.soak
def test_intervals_of_weights_hold_where_items_of_a_prompt_are_alike():
    large = with_a_covariate(np.random.default_rng(0), 120_000, 6)
    truth = btdagg.calibrate(*large[:2], prior=None, covariates=large[2]).weights()["x"].estimate
    held = []
    for seed in range(200):
        counts, labels, covariates, groups = with_a_covariate(np.random.default_rng(seed), 120, 6)
        fitted = btdagg.calibrate(counts, labels, covariates=covariates, groups=groups)
        held.append(fitted.weights()["x"].low <= truth <= fitted.weights()["x"].high)
    assert np.mean(held) > 0.925 - 2.33 * np.sqrt(0.925 * 0.075 / 200)
