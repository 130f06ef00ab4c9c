"""Mean grades, pass rates and shares with intervals: against plain formulas."""

import numpy as np
import pytest
from scipy import stats

from btdagg import PASS_FAIL, GradeModel, InputError, Scale, estimate

TEN = Scale(range(1, 11))
FIVE = {"scale": TEN, "label_scale": Scale(range(1, 6))}
PASS = {"scale": Scale(range(1, 6)), "label_scale": PASS_FAIL}
MODEL = GradeModel(1.5, (2.5, 4.5, 6.0, 8.0), **FIVE)


def drawn(rng, scales, n_items, n_labels):
    """Counts of eight votes, all grades, and labels of a simple sample; the judge is generous."""
    n_votes, n_grades = (len(scale.points) for scale in scales.values())
    gold = rng.choice(n_grades, n_items)
    places = np.arange(n_votes) / (n_votes - 1)
    seen = 0.2 + 0.7 * gold / (n_grades - 1) + rng.normal(0, 0.1, n_items)
    votes = np.exp(-8 * np.abs(places - seen[:, None]))
    counts = rng.multinomial(8, votes / votes.sum(axis=1, keepdims=True))
    gold = scales["label_scale"].values[gold]
    labels = np.full(n_items, np.nan)
    chosen = rng.permutation(n_items)[:n_labels]
    labels[chosen] = gold[chosen]
    return counts, gold, labels


def test_a_fixed_model_gives_the_published_estimate_of_every_quantity():
    counts, _, labels = drawn(np.random.default_rng(1), FIVE, 500, 90)
    known = ~np.isnan(labels)
    proba = MODEL.predict_proba(counts)
    values = {"mean grade": np.arange(1.0, 6)}
    values |= {f"share >= {g}": np.arange(1, 6) >= g for g in (2, 3, 4, 5)}
    found = estimate(counts, labels, **FIVE, model=MODEL)
    assert list(found.estimates) == list(values)
    for name, value in values.items():
        y, f, others = (
            value[labels[known].astype(int) - 1],
            *(proba[s] @ value for s in (known, ~known)),
        )
        n, m = len(y), len(others)
        together = np.mean((y - y.mean()) * (f - f.mean()))
        pooled = np.concatenate([f, others]).var(ddof=1)
        weight = min(max(together / ((1 + n / m) * pooled), 0.0), 1.0)
        mean = weight * others.mean() + (y - weight * f).mean()
        error = (weight**2 * others.var() / m + (y - weight * f).var() / n) ** 0.5
        half = stats.norm.ppf(0.975) * error
        own = found.estimates[name]
        assert (own.value, own.low, own.high) == pytest.approx((mean, mean - half, mean + half))


def test_a_model_of_another_scale_is_refused():
    counts, _, labels = drawn(np.random.default_rng(1), FIVE, 100, 30)
    for other in ({"scale": Scale(range(10, 110, 10))}, {"label_scale": Scale(range(5))}):
        model = GradeModel(1, MODEL.cuts, **(FIVE | other))
        with pytest.raises(
            InputError,
            match=r"^model is of votes .*, expected one of votes 1-10 and labels 1-5",
        ) as error:
            estimate(counts, labels, **FIVE, model=model)
        assert error.value.argument == "model"
    three = Scale((1, 2, 3))
    with pytest.raises(
        InputError, match=r"of votes 1-3 and labels 1-3, expected one of votes -1\.\.1 \(B, tie, A"
    ):
        estimate(counts[:, :3], np.sign(labels - 3), model=GradeModel(1, (1.5, 2.5), three))


def test_grades_that_are_alike_to_six_digits_have_names_of_their_own():
    far = {
        "scale": Scale(range(1_000_001, 1_000_011)),
        "label_scale": Scale(range(1_000_001, 1_000_006)),
    }
    counts, _, labels = drawn(np.random.default_rng(1), far, 100, 30)
    names = [f"share >= {grade}" for grade in far["label_scale"].points[1:]]
    assert list(estimate(counts, labels, **far).estimates) == ["mean grade", *names]


def test_pass_or_fail_is_what_pairs_without_ties_are():
    """One engine: shares of A and pass rates are the same numbers where predictions are."""
    rng = np.random.default_rng(2)
    gold, groups = rng.integers(0, 2, 300), rng.integers(0, 60, 300)
    upper = rng.binomial(8, 0.3 + 0.4 * gold)
    labels = np.where(np.arange(300) < 70, gold.astype(float), np.nan)
    model = GradeModel(3.0, (0.5,), PASS_FAIL)
    counts = np.stack([8 - upper, upper], axis=1)

    class OfPairs:
        def predict_proba(self, counts):
            return np.insert(model.predict_proba(counts[:, [0, 2]]), 1, 0.0, axis=1)

    options = {"groups": groups, "by": rng.integers(0, 2, 300)}
    graded = estimate(counts, labels, scale=model.scale, model=model, **options)
    pairs = estimate(np.insert(counts, 1, 0, axis=1), 2 * labels - 1, model=OfPairs(), **options)

    def assert_alike(one, other):
        for name, value in one.as_dict().items():
            # A is made of the net win rate, and its weight of that of ties too.
            if name != "weight":
                assert value == pytest.approx(other.as_dict()[name], rel=1e-9), name

    assert_alike(graded.estimates["pass rate"], pairs.estimates["A"])
    assert graded.estimates["mean grade"].value == pytest.approx(pairs.estimates["A"].value)
    assert_alike(graded.by[1]["pass rate"], pairs.by[1]["A"])
    differences = graded.differences[0, 1]["pass rate"], pairs.differences[0, 1]["A"]
    assert_alike(*differences)
    assert graded.labels_for(0.15, "pass rate") == pairs.labels_for(0.15, "A")


def test_the_judge_makes_intervals_narrow_and_labels_are_worth_more():
    counts, gold, labels = drawn(np.random.default_rng(3), FIVE, 600, 60)
    found = estimate(counts, labels, **FIVE)
    mean = found.estimates["mean grade"]
    assert mean.low < gold.mean() < mean.high
    assert mean.high - mean.low < 0.6 * (mean.labels_only.high - mean.labels_only.low)
    assert mean.effective_labels > 150
    assert found.main == "mean grade"
    assert found.labels_for(0.3) == found.labels_for(0.3, "mean grade") > 0
    assert str(found).startswith("mean grade ")


def test_raters_count_as_their_mean_and_a_flat_prior_is_possible():
    counts, _, labels = drawn(np.random.default_rng(4), PASS, 200, 50)
    shares = np.where(np.isnan(labels)[:, None], np.nan, np.stack([1 - labels, labels], axis=1))
    single = estimate(counts, labels, **PASS)
    assert estimate(counts, shares, **PASS).estimates == single.estimates
    shares[np.flatnonzero(labels == 1)[0]] = [0.5, 0.5]
    halved = estimate(counts, shares, **PASS).estimates["pass rate"].labels_only
    alone = single.estimates["pass rate"].labels_only
    assert halved.value == pytest.approx(alone.value - 0.5 / 50)
    flat = estimate(counts, labels, **PASS, prior=None).estimates["pass rate"]
    assert flat.value == pytest.approx(single.estimates["pass rate"].value, abs=0.05)


def test_remarks_on_labels_chosen_by_their_votes_and_on_labels_all_alike():
    counts, gold, _ = drawn(np.random.default_rng(5), FIVE, 500, 0)
    high = counts[:, 7:].sum(axis=1) > 4
    remarks = estimate(counts, np.where(high, gold, np.nan), **FIVE).remarks
    assert any("differ from the others" in text and "mean vote 8." in text for text in remarks)
    alike = np.where(np.arange(500) < 12, 4.0, np.nan)
    found = estimate(counts, alike, **FIVE)
    assert found.estimates["mean grade"].value == 4
    assert found.estimates["share >= 4"].high == 1
    assert found.estimates["share >= 4"].low < 0.85
    assert any("all labelled groups have the same mean" in text for text in found.remarks)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"labels": [4] + [None] * 19}, "labels has 1 label, expected at least 2"),
        ({"counts": [[0] * 10] + [[1] * 10] * 19}, r"counts\[0\].* at least one vote"),
        ({"counts": np.ones((20, 2, 10))}, "counts has shape"),
    ],
)
def test_bad_input(changed, text):
    arguments = {"counts": np.ones((20, 10)), "labels": [4, 1, None, 2] * 5} | FIVE
    with pytest.raises(InputError, match=text):
        estimate(**(arguments | changed))
