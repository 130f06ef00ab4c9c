"""Shares and win rates with intervals: against plain formulas."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import btdagg
from btdagg import InputError, estimate
from refusals import refused

MODEL = btdagg.DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8)
VALUES = {
    "A": np.array([0, 0, 1]),
    "tie": np.array([0, 1, 0]),
    "B": np.array([1, 0, 0]),
    "net win rate": np.array([-1, 0, 1]),
    "win rate": np.array([0, 0.5, 1]),
}


def drawn(n_items, n_labels, seed=0):
    """Counts, all labels, and labels of a simple sample."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], size=n_items, p=[0.25, 0.3, 0.45])
    votes = np.array([[0.6, 0.25, 0.15], [0.25, 0.4, 0.35], [0.1, 0.2, 0.7]])
    counts = rng.multinomial(8, votes[gold + 1])
    labels = np.full(n_items, np.nan)
    chosen = rng.permutation(n_items)[:n_labels]
    labels[chosen] = gold[chosen]
    return counts, gold, labels


def published(labels, proxies, others, level=0.95):
    """PPI++ of a mean by its formulas, without this package."""
    n, m = len(labels), len(others)
    together = np.mean((labels - labels.mean()) * (proxies - proxies.mean()))
    pooled = np.concatenate([proxies, others]).var(ddof=1)
    weight = min(max(together / ((1 + n / m) * pooled), 0.0), 1.0)
    value = weight * others.mean() + (labels - weight * proxies).mean()
    error = (weight**2 * others.var() / m + (labels - weight * proxies).var() / n) ** 0.5
    half = stats.norm.ppf((1 + level) / 2) * error
    return value, value - half, value + half, error


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_fixed_model_and_independent_items_give_the_published_estimate(level):
    counts, _, labels = drawn(900, 120)
    found = estimate(counts, labels, model=MODEL, level=level).estimates
    known = ~np.isnan(labels)
    chances = MODEL.predict_proba(counts)
    for name, values in VALUES.items():
        y = values[labels[known].astype(int) + 1]
        expected = published(y, chances[known] @ values, chances[~known] @ values, level)
        one = found[name]
        assert (one.value, one.low, one.high, one.standard_error) == pytest.approx(
            expected, abs=1e-10
        )


@pytest.mark.integration
def test_and_it_is_that_of_ppi_python():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries say on import
        import ppi_py

    counts, _, labels = drawn(900, 120)
    found = estimate(counts, labels, model=MODEL).estimates
    known = ~np.isnan(labels)
    chances = MODEL.predict_proba(counts)
    for name, values in VALUES.items():
        y = values[labels[known].astype(int) + 1]
        given = y, chances[known] @ values, chances[~known] @ values
        ends = ppi_py.ppi_mean_ci(*given, alpha=0.05)
        expected = [
            float(np.squeeze(one)) for one in (ppi_py.ppi_mean_pointestimate(*given), *ends)
        ]
        one = found[name]
        assert [one.value, one.low, one.high] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("is_known", [False, True])
def test_each_item_is_predicted_by_a_model_that_did_not_see_its_group(is_known):
    """Of ten labelled groups each is left out once; the judge is so good that its weight is 1."""
    rng = np.random.default_rng(2)
    gold = rng.choice([-1, 0, 1], 320, p=[0.15, 0.2, 0.65])
    counts = rng.multinomial(1, (0.97 * np.eye(3) + 0.01)[gold + 1])
    x = gold + rng.normal(0, 1, 320)
    groups, is_labelled = np.arange(320) // 2, np.arange(320) < 20
    told = {"covariates": {"x": x}} if is_known else {}

    def predicted(seen):
        """What a model of some labels expects of all items."""
        own = {"covariates": {"x": (x[seen], float(np.sqrt((x**2).mean())))}} if is_known else {}
        model = btdagg.calibrate(counts[seen], gold[seen], groups=groups[seen], **own).model
        return model.predict_proba(counts, **told) @ [-1, 0, 1]

    def corrected(means, own):
        return (means[~is_labelled].mean() + (gold - means)[own].mean()) / 10

    of_groups = [groups == group for group in range(10)]
    apart = sum(corrected(predicted(is_labelled & ~own), own) for own in of_groups)
    together = sum(corrected(predicted(is_labelled), own) for own in of_groups)
    labels = np.where(is_labelled, gold, np.nan)
    one = estimate(counts, labels, groups=groups, **told).estimates["net win rate"]
    assert one.weight == 1
    assert one.value == pytest.approx(apart, abs=3e-4)
    assert abs(apart - together) > 1e-3


def test_groups_of_one_item_give_nearly_the_published_estimate():
    counts, _, labels = drawn(200, 100)
    known = ~np.isnan(labels)
    chances = MODEL.predict_proba(counts)
    found = estimate(counts, labels, model=MODEL, groups=np.arange(200)).estimates
    for name, values in VALUES.items():
        y, f, others = (
            values[labels[known].astype(int) + 1],
            *(chances[of] @ values for of in (known, ~known)),
        )
        value, _, _, error = published(y, f, others)
        assert found[name].value == pytest.approx(value, abs=0.01)
        assert found[name].standard_error == pytest.approx(error, rel=0.05)
        if name not in ("A", "B"):  # which are made of ties and the net win rate
            weight = np.cov(y, f)[0, 1] / (2 * np.concatenate([f, others]).var(ddof=1))
            assert found[name].weight == pytest.approx(min(weight, 1), rel=0.15)


def test_labels_alone_are_the_plain_mean_with_a_jackknife():
    _, _, labels = drawn(300, 50)
    found = estimate(np.ones((300, 3), dtype=int), labels)
    y = labels[~np.isnan(labels)]
    one = found.estimates["net win rate"]
    assert one.weight == 0
    assert one.value == one.labels_only.value == pytest.approx(y.mean(), abs=1e-14)
    assert one.standard_error == pytest.approx(y.std(ddof=1) / 50**0.5, rel=1e-12)
    assert one.effective_labels == pytest.approx(50)
    half = stats.t.ppf(0.975, 49) * one.standard_error
    assert (one.low, one.high) == pytest.approx((y.mean() - half, y.mean() + half), abs=0.03)
    rate = found.estimates["win rate"]
    assert (rate.low, rate.high) == pytest.approx(((1 + one.low) / 2, (1 + one.high) / 2))


def test_where_groups_do_not_vary_it_is_said():
    counts, _, labels = drawn(600, 0)
    group = np.arange(600) // 6
    labels[:120] = np.tile([0, 0, 0, 1, -1, 1], 20)
    found = estimate(counts, labels, groups=group)
    tie = found.estimates["tie"]
    assert (tie.value, tie.standard_error) == (pytest.approx(0.5), 0.0)
    assert 0.35 < tie.low < 0.42 < 0.58 < tie.high < 0.65
    assert np.isnan(tie.effective_labels)
    assert any("same mean of" in text and "tie" in text for text in found.remarks)
    alike = np.full(600, np.nan)
    alike[:10] = 1
    found = estimate(counts, alike)
    assert found.estimates["A"].high == 1.0
    assert 0.6 < found.estimates["A"].low < 0.8
    assert found.estimates["tie"].low == 0.0


def test_labels_that_were_chosen_by_their_votes_are_noticed_and_weighed():
    counts, gold, _ = drawn(4000, 0, seed=1)
    rng = np.random.default_rng([1, 1])
    chance = np.where(counts[:, 2] > 3, 0.15, 0.02)
    chosen = rng.random(4000) < chance
    labels = np.where(chosen, gold, np.nan)
    naive = estimate(counts, labels)
    assert any("differ from the others" in text for text in naive.remarks)
    weighed = estimate(counts, labels, probabilities=chance)
    assert not weighed.remarks
    one = weighed.estimates["net win rate"]
    assert one.low < gold.mean() < one.high
    assert naive.estimates["net win rate"].labels_only.low > gold.mean()
    y, w = gold[chosen], 1 / chance[chosen]
    assert one.labels_only.value == pytest.approx((w @ y) / w.sum())


def test_by_gives_each_value_its_own_estimates_and_pairs_their_difference():
    counts, _, labels = drawn(600, 120, seed=8)
    by = np.where(np.arange(600) < 300, "x", "y")
    found = estimate(counts, labels, model=MODEL, by=by)
    alone = estimate(counts[:300], labels[:300], model=MODEL)
    for name, one in alone.estimates.items():
        of_x = found.by["x"][name]
        assert (of_x.low, of_x.high) == pytest.approx((one.low, one.high), abs=1e-12)
    difference = found.differences["x", "y"]["net win rate"]
    x, y = (found.by[name]["net win rate"] for name in "xy")
    assert difference.value == pytest.approx(x.value - y.value)
    assert difference.standard_error == pytest.approx(np.hypot(x.standard_error, y.standard_error))
    # The same items under two names differ by nothing seen, since their groups pair them.
    twice = estimate(
        np.concatenate([counts] * 2),
        np.concatenate([labels] * 2),
        groups=np.tile(np.arange(600), 2),
        by=np.repeat(["x", "y"], 600),
        model=MODEL,
    )
    same = twice.differences["x", "y"]["tie"]
    assert (same.value, same.standard_error) == pytest.approx((0, 0), abs=1e-8)
    one = twice.by["x"]["tie"]
    q = ndtri(0.975)
    assert same.high == -same.low == pytest.approx(q**2 / (120 + q**2), rel=0.05)
    assert same.high < (one.high - one.low) / 4


def test_a_difference_without_any_spread_has_the_pvalue_of_its_interval():
    counts = np.tile([[2, 2, 2]], (40, 1))
    labels = np.full(40, np.nan)
    labels[:8], labels[20:28] = 1, -1
    found = estimate(counts, labels, by=np.arange(40) < 20)
    (difference,) = found.differences.values()
    net = difference["net win rate"]
    assert (net.value, net.standard_error) == (-2, 0)
    # Fisher's exact test of 8 against 8 has 2 / 12,870; all pairs of signs have 2**-7.
    assert 2 / 12_870 < net.pvalue < 2.0**-7
    assert difference["tie"].pvalue == 1


def test_differences_are_corrected_for_their_number():
    counts, _, labels = drawn(900, 300, seed=9)
    by = np.arange(900) % 3
    found = estimate(counts, labels, model=MODEL, by=by)
    two = by < 2
    pair = estimate(counts[two], labels[two], model=MODEL, by=by[two])
    of_three = found.differences[0, 1]["net win rate"]
    of_two = pair.differences[0, 1]["net win rate"]
    assert of_three.value == pytest.approx(of_two.value)
    assert of_three.high - of_three.low > 1.15 * (of_two.high - of_two.low)
    assert of_three.pvalue >= of_two.pvalue
    assert list(found.differences) == list(itertools.combinations([0, 1, 2], 2))


def test_more_labels_make_an_interval_narrower():
    counts, _, labels = drawn(20_000, 200, seed=1)
    found = estimate(counts, labels)
    one = found.estimates["net win rate"]
    wanted = (one.high - one.low) / 2
    n = found.labels_for(wanted)
    assert 700 < n < 900
    assert found.labels_for(0.001) is None
    assert found.labels_for(one.high - one.low + 0.05) < 200


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"labels": [1, None, None, None]}, "labels"),
        ({"groups": [1, 1, 2, 3]}, "labels"),  # one group with labels
        ({"by": [1, 2, 3]}, "by"),
        ({"counts": np.zeros((0, 3)), "labels": []}, "counts"),
    ],
)
def test_bad_input_is_named(change, argument):
    given = {"counts": [[1, 2, 5]] * 4, "labels": [1, 0, None, None], **change}
    with pytest.raises(InputError) as error:
        estimate(given.pop("counts"), given.pop("labels"), **given)
    assert error.value.argument == argument


def test_quantities_widths_and_models_are_checked():
    counts, _, labels = drawn(100, 20)
    found = estimate(counts, labels)
    with refused("quantity", got="wins", expected="one of A, tie"):
        found.labels_for(0.1, "wins")
    for width, most, quantity in ((3, 2, "net win rate"), (1.5, 1, "tie")):
        with refused("width", got=width, expected=f"a number above 0 and below {most}"):
            found.labels_for(width, quantity)

    class Sevens:
        def predict_proba(self, counts):
            return 7.0 * counts

    with pytest.raises(InputError, match=" probabilities of B, tie and A"):
        estimate(counts, labels, model=Sevens())


@pytest.mark.parametrize(("n_others", "in_groups_of"), [(1, 1), (4, 3), (9, 1)])
def test_votes_of_few_items_without_a_label_have_no_weight(n_others, in_groups_of):
    """The mean of a few proxies varies more than they do around it."""
    n = 60 * in_groups_of + n_others
    counts, gold, _ = drawn(n, 0)
    groups = np.arange(n) // in_groups_of
    labels = np.where(np.arange(n) < n - n_others, gold.astype(float), np.nan)
    found = estimate(counts, labels, groups=groups)
    assert found.estimates["net win rate"].weight == 0
    assert any("too few for the votes" in text for text in found.remarks)


def test_one_label_of_each_group_is_noticed_where_sizes_differ():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 200)
    groups = np.repeat(np.arange(200), sizes)
    counts, gold, _ = drawn(len(groups), 0)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    chosen = first[rng.permutation(200)[:80]]
    labels = np.full(len(groups), np.nan)
    labels[chosen] = gold[chosen]
    found = estimate(counts, labels, groups=groups)
    assert any("you labelled one item per group" in text for text in found.remarks)
    told = estimate(counts, labels, groups=groups, probabilities=80 / 200 / sizes[groups])
    assert not any("one item per group" in text for text in told.remarks)
    labels = np.full(len(groups), np.nan)
    chosen = rng.permutation(len(groups))[:80]
    labels[chosen] = gold[chosen]
    found = estimate(counts, labels, groups=groups)
    assert not any("one item per group" in text for text in found.remarks)


@pytest.mark.soak
def test_a_judge_of_noise_costs_next_to_nothing_and_a_good_one_is_worth_labels():
    for is_noise, low, high in ((True, 0.98, 1.02), (False, 0.0, 0.85)):
        for n_labels in (25, 100):
            with_judge = alone = 0.0
            for draw in range(50):
                counts, gold, _ = drawn(1000, 0, seed=draw)
                if is_noise:
                    counts = np.random.default_rng(draw).permutation(counts)
                labels = np.where(np.arange(1000) < n_labels, gold.astype(float), np.nan)
                net = estimate(counts, labels).estimates["net win rate"]
                with_judge += net.high - net.low
                alone += net.labels_only.high - net.labels_only.low
            assert low < with_judge / alone < high


def test_votes_that_do_not_narrow_the_interval_are_said():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(4, [0.3, 0.3, 0.4], 300)
    labels = np.where(np.arange(300) < 60, rng.integers(-1, 2, 300), np.nan)
    found = btdagg.estimate(counts, labels)
    assert found.estimates["win rate"].weight == 0
    assert "by 60 labels alone, since the votes do not make it narrower; ties" in found.sentence()


def test_the_answer_is_first_and_frames_have_the_numbers():
    counts, _, labels = drawn(300, 60)
    by = np.arange(300) % 2
    found = estimate(counts, labels, model=MODEL, by=by)
    rate = found.estimates["win rate"]
    assert str(found).splitlines()[0] == found.sentence()
    assert found.sentence().startswith(f"A wins {100 * rate.value:.1f}% (95% interval ")
    assert "by 60 labels and the votes of 300 items" in found.sentence()
    frame = found.to_frame()
    (row,) = frame.filter(by="", quantity="win rate").to_dicts()
    assert row == {"by": "", "quantity": "win rate", **found.as_dict()["estimates"]["win rate"]}
    (row,) = frame.filter(by="1", quantity="A").to_dicts()
    assert row["value"] == found.by[1]["A"].value
    how = {"margin": 0.05, "candidate": "A", "baseline": "B"}
    gate = btdagg.estimates.not_worse(counts, labels, model=MODEL, **how)
    (row,) = gate.to_frame().to_dicts()
    assert (row["outcome"], row["estimate"]) == (gate.outcome, gate.estimate)
    certificate = btdagg.certify(counts, labels, agreement=0.5, model=MODEL)
    of_shares = {point.coverage: point.low for point in certificate.curve}
    shown = dict(certificate.to_frame().select("coverage", "low").iter_rows())
    assert shown.items() <= of_shares.items()
    assert certificate.coverage in shown
    few = ~np.isnan(labels)
    planned = btdagg.online.plan(counts[few], labels[few], n_items=9, n_votes=(2,), n_labels=(25,))
    assert planned.to_frame()["rule"].to_list() == [row.rule for row in planned.budgets]
    noise = np.tile([2, 2, 2], (300, 1))  # which votes that say nothing are
    assert "and the votes" not in estimate(noise, labels, model=MODEL).sentence()


def test_the_width_with_more_labels_is_that_which_labels_for_looks_for():
    counts, _, labels = drawn(300, 60)
    found = estimate(counts, labels, model=MODEL)
    mean = found.estimates["net win rate"]
    assert found.width_with(60) == pytest.approx(mean.high - mean.low, rel=0.02)  # a forecast
    wanted = found.labels_for(0.3)
    assert found.width_with(wanted) <= 0.3 < found.width_with(wanted - 1)
    with refused("n_labels", got=301):
        found.width_with(301)
