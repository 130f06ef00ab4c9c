"""Evaluation of grades: scores by plain NumPy, methods by hand."""

from dataclasses import replace
from itertools import permutations

import krippendorff
import numpy as np
import pytest

import btdagg
from btdagg import PAIRS, PASS_FAIL, InputError, Protocol, Scale, compare, evaluate
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits, Scores
from btdagg.methods import Calibrated, Constant, Isotonic, MajorityVote, RoundedMean, by_name
from btdagg.votes import as_items
from refusals import refused

FIVE = Scale(range(1, 6))
TEN = Scale(range(1, 11))
QUICK = Protocol(CrossFit(n_folds=4, n_repeats=1, n_refits=4), GroupTest())
PLAIN = by_name(["majority", "median", "mean"], FIVE)


def drawn(seed, n_items, scale=FIVE, label_scale=None):
    """Counts of eight votes of a judge that is generous, and grades."""
    rng = np.random.default_rng(seed)
    grades = (label_scale or scale).values
    gold = rng.choice(len(grades), n_items)
    places = np.arange(len(scale.points)) / (len(scale.points) - 1)
    seen = 0.25 + 0.6 * gold / (len(grades) - 1) + rng.normal(0, 0.1, n_items)
    votes = np.exp(-6 * np.abs(places - seen[:, None]))
    return rng.multinomial(8, votes / votes.sum(axis=1, keepdims=True)), grades[gold]


def kappa(gold, predicted):
    """Quadratic-weighted kappa by its definition, over all pairs of items."""
    by_chance = (np.subtract.outer(gold, predicted) ** 2).mean()
    return 1 - np.mean((np.asarray(gold) - predicted) ** 2) / by_chance


def test_scores_of_methods_without_a_fit_are_those_of_numpy():
    counts, gold = drawn(0, 90)
    result = evaluate(counts, gold, scale=FIVE, aggregators=PLAIN, protocol=QUICK)
    for method, line in zip(PLAIN, result.lines, strict=True):
        predicted = method.decide(counts)
        expected = {
            "mae": np.abs(predicted - gold).mean(),
            "accuracy": (predicted == gold).mean(),
            "bias": (predicted - gold).mean(),
            "kappa": kappa(gold, predicted),
        }
        for score, value in expected.items():
            interval = line[score]
            assert interval.mean == pytest.approx(value, abs=1e-12)
            assert interval.low < value < interval.high
        assert {"kappa", "bias_low"} <= result.record(line).keys()
    matrix = result.cells[0].methods[0].counts
    rows = PLAIN[0].decide(counts)
    assert matrix.tolist() == [
        [((gold == g) & (rows == p)).sum() for p in range(1, 6)] for g in range(1, 6)
    ]


def test_each_item_is_decided_by_models_that_did_not_see_it():
    counts, gold = drawn(2, 60)
    kinds = Calibrated, Isotonic, Constant
    methods = [kind(scale=FIVE) for kind in kinds]
    groups = np.arange(60) // 2
    fit = CrossFit(n_folds=4, n_repeats=1, n_refits=2)
    options = {"aggregators": methods, "protocol": Protocol(fit, GroupTest())}
    result = evaluate(counts, gold, scale=FIVE, groups=groups, **options)
    content = [counts, gold]
    errors = np.zeros((3, 60))
    for seen, left in fit.draw(60, groups, content):
        for place, kind in enumerate(kinds):
            method = kind(scale=FIVE).fit(counts[seen], gold[seen])
            errors[place, left] = np.abs(method.decide(counts[left]) - gold[left])
    means = [line["mae"].mean for line in result.lines]
    assert means == pytest.approx(errors.mean(axis=1).tolist())
    fitted = result.cells[0].fitted.calibration
    assert fitted.model == btdagg.calibrate(counts, gold, scale=FIVE).model


def test_the_calibrated_model_is_better_than_a_generous_judge_and_it_shows():
    counts, gold = drawn(3, 150)
    result = evaluate(counts, gold, scale=FIVE, protocol=QUICK)
    compared = result.cells[0]
    names = [method.name for method in compared.methods]
    assert names == ["calibrated", *(method.name for method in PLAIN), "isotonic", "constant"]
    assert (compared.baseline, compared.calibrated) == (1, 0)
    assert (compared.scale, compared.label_scale) == (FIVE, FIVE)
    calibrated, mode, *_, constant = result.lines
    assert calibrated["mae_less_majority"].mean < 0
    assert "mae_less_majority" not in mode
    assert constant["kappa"].mean == pytest.approx(0, abs=0.1)
    assert compared.best_constant[1] == pytest.approx(np.abs(gold - 3).mean(), abs=0.2)
    assert not result.remarks
    twice = tuple(replace(compared, key=(name,)) for name in "xy")
    assert Scores(("of",), twice).averages[0]["kappa"] == calibrated["kappa"]
    assert "kappa" in result._repr_html_()
    assert compared.plot()
    assert result.plot()


def test_grades_that_are_alike_to_six_digits_have_names_of_their_own():
    far = Scale(range(1_000_001, 1_000_006))
    methods = [MajorityVote(scale=far)]
    result = evaluate(*drawn(3, 40, far), scale=far, aggregators=methods, protocol=QUICK)
    assert result.cells[0].label_scale.names == tuple(map(str, far.points))


def test_pass_or_fail_has_the_scores_of_its_shares():
    counts, gold = drawn(4, 80, TEN, PASS_FAIL)
    methods = [RoundedMean(scale=TEN, label_scale=PASS_FAIL)]
    options = {"scale": TEN, "label_scale": PASS_FAIL, "protocol": QUICK}
    result = evaluate(counts, gold, aggregators=methods, **options)
    (line,) = result.lines
    assert line["mae"].mean == pytest.approx(1 - line["accuracy"].mean)
    compared = result.cells[0]
    assert (compared.scale, compared.label_scale) == (TEN, PASS_FAIL)
    assert compared.label_scale.names == ("fail", "pass")
    noise = evaluate(counts[::-1], gold, **options)
    assert any("always answering" in text for text in noise.remarks)


@pytest.mark.parametrize(
    ("counts", "mode", "median", "mean"),
    [
        ([0, 0, 3, 1, 0], 3, 3, 3),
        ([2, 0, 0, 2, 0], 3, 3, 3),  # between 1 and 4: the one nearer the middle
        ([2, 2, 0, 0, 0], 2, 2, 2),
        ([0, 0, 0, 2, 2], 4, 4, 4),
        ([0, 0, 0.5, 0.25, 0.5], 4, 4, 4),
        ([3, 0, 0, 0, 2], 1, 1, 3),
        ([1, 1, 1, 0, 5], 5, 5, 4),
    ],
)
def test_plain_methods_by_hand(counts, mode, median, mean):
    assert [method.decide([counts])[0] for method in PLAIN] == [mode, median, mean]


def test_votes_and_grades_of_different_scales_are_aligned_by_their_ends():
    votes = np.eye(10)
    for method in by_name(["majority", "median", "mean"], TEN, PASS_FAIL):
        assert method.decide(votes).tolist() == [0] * 5 + [1] * 5
    three = MajorityVote(scale=TEN, label_scale=Scale((1, 2.5, 4)))
    assert three.decide(votes).tolist() == [1] * 3 + [2.5] * 4 + [4] * 3


def test_isotonic_and_constant_by_hand():
    counts = np.eye(5)[[0, 1, 2, 2, 3, 4]]
    fitted = Isotonic(scale=FIVE).fit(counts, [1, 3, 2, 1, 4, 5])
    # 3 and the mean of 2 and 1 are out of order: all three are 2.
    assert fitted.points[1].tolist() == [1, 2, 2, 4, 5]
    assert fitted.decide(np.eye(5)).tolist() == [1, 2, 2, 4, 5]
    assert fitted.decide([[0, 0, 1, 1, 0]]).tolist() == [3]
    constant = Constant(scale=FIVE).fit(counts, [5, 5, 1, 5, 4, 1])
    assert constant.decide(counts).tolist() == [4] * 6
    for kind in (Calibrated, Isotonic, Constant):
        method = kind(scale=FIVE)
        with pytest.raises(InputError, match=f"{method.name} is not fitted"):
            method.decide(counts)


def test_two_judges_of_different_scales_are_compared():
    counts, gold = drawn(5, 100)
    noise = np.random.default_rng(5).multinomial(6, [0.1] * 10, size=100)
    scales = {"scale": (FIVE, TEN), "label_scale": FIVE}
    result = compare(counts, noise, gold, **scales, names=("good", "noise"), protocol=QUICK)
    assert result.better == "good"
    methods = [Calibrated(scale=FIVE)]
    alone = evaluate(counts, gold, scale=FIVE, aggregators=methods, protocol=QUICK)
    assert result.mae[0].mean == pytest.approx(alone.lines[0]["mae"].mean, abs=0.08)
    same = compare(counts, counts, gold, scale=FIVE, methods=tuple(PLAIN[:2]), protocol=QUICK)
    away = [np.abs(method.decide(counts) - gold).mean() for method in PLAIN[:2]]
    assert [interval.mean for interval in same.mae] == pytest.approx(away)


def test_scales_of_two_ways_have_the_same_grades_and_belong_to_how_they_decide():
    scale = Scale(range(3))
    counts, gold = drawn(6, 60, scale)
    quick = {"methods": MajorityVote(scale=scale), "protocol": QUICK}
    stretched = Scale((0, 1, 9))
    for other in (Scale((0, 1, 2, 3)), PAIRS):
        few = np.minimum(gold, 1)  # which are on each of the scales
        columns = np.pad(counts, ((0, 0), (0, len(other.points) - 3)))
        methods = {"methods": (MajorityVote(scale=scale), btdagg.methods.MajorityVote())}
        methods = methods if other.mirrored else {}
        with refused("label_scale", got=None):
            compare(counts, columns, few, scale=(scale, other), **methods, protocol=QUICK)
    with pytest.raises(InputError, match="votes are grades, but labels compare pairs") as error:
        compare(counts, counts[::-1], gold, scale=scale, label_scale=PAIRS, **quick)
    assert error.value.argument == "label_scale"
    for own in (PAIRS, Scale((0, 1, 5))):
        with refused("scale", got="0-2", expected=str(own)):
            compare(as_items(counts, scale=own), counts, gold, scale=scale, **quick)
    of_evidence = compare(as_items(counts, scale=scale), counts[::-1], gold, scale=scale, **quick)
    assert of_evidence.mae == compare(counts, counts[::-1], gold, scale=scale, **quick).mae
    with pytest.raises(InputError, match="the same votes, decided in the same way"):
        compare(counts, counts, gold, scale=(scale, Scale(range(3))), protocol=QUICK)
    two = {"scale": (scale, stretched), "label_scale": scale}
    result = compare(counts, counts, gold, **two, protocol=QUICK)
    for own, interval in zip((scale, stretched), result.mae, strict=True):
        methods = {"aggregators": [Calibrated(scale=own, label_scale=scale)], "protocol": QUICK}
        alone = evaluate(counts, gold, scale=own, label_scale=scale, **methods)
        assert interval == alone.lines[0]["mae"]


def test_kappa_is_0_where_labels_of_one_side_are_alike():
    class Always:
        name = "always"

        def __init__(self, grade):
            self.grade = grade

        def fit(self, counts, labels):
            return self

        def decide(self, counts):
            return np.full(len(counts), self.grade)

    for seed in range(2):
        counts, gold = drawn(seed, 57 + seed)
        constants = [Always(grade) for grade in FIVE.points]
        for protocol in (QUICK, Protocol(RandomSplits(size=30, n_splits=3))):
            result = evaluate(counts, gold, scale=FIVE, aggregators=constants, protocol=protocol)
            compared = result.cells[0]
            for method in compared.methods:
                assert method.interval("kappa").mean == 0
                assert (method.kappa == 0).all()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"labels": [2, None] * 10}, r"labels\[1\]"),
        ({"labels": [4] * 20}, "all 20 labels are 4, expected at least two different ones"),
        ({"votes": [[1] * 5, [0] * 5] * 10}, r"counts\[1\]"),
        ({"votes": [[1] * 5] * 20, "groups": [1] * 20}, "all 20 items are in one group"),
        ({"aggregators": [MajorityVote(scale=TEN, label_scale=PASS_FAIL)]}, "counts has shape"),
        ({"aggregators": [btdagg.methods.MajorityVote()]}, r"counts has shape \(\d+, 5\)"),
    ],
)
def test_bad_input(changed, text):
    arguments = {"votes": np.ones((20, 5)), "labels": [4, 1] * 10, "scale": FIVE}
    with pytest.raises(InputError, match=text):
        evaluate(**(arguments | changed), protocol=QUICK)


def test_scales_of_tables_are_their_own():
    votes = btdagg.read_votes({"item": ["a", "b"], "vote": [1, -1]})
    labels = btdagg.read_labels({"item": ["a", "b"], "label": [1, -1]})
    for name in ("scale", "label_scale"):
        with refused(name, got="1-5", expected="-1..1 (B, tie, A, mirrored)"):
            evaluate(votes, labels, **{name: FIVE})
        with refused(name, got="1-5", expected="-1..1 (B, tie, A, mirrored)"):
            compare(votes, votes, labels, **{name: FIVE}, n_votes=(1, None))


def test_the_judge_is_as_close_to_raters_as_they_are_to_each_other():
    """Against sums over every two raters; items of one rater do not count."""
    counts, gold = drawn(7, 120)
    rng = np.random.default_rng(7)
    people = np.clip(gold[:, None] + rng.integers(-1, 2, (120, 3)), 1, 5)
    n_raters = rng.integers(1, 4, 120)
    given = [of[:n] for of, n in zip(people, n_raters, strict=True)]
    ratings = np.array([[(of == grade).sum() for grade in FIVE.points] for of in given])
    items = as_items(counts, gold, scale=FIVE)
    options = {"aggregators": PLAIN, "protocol": QUICK}
    scores = evaluate(items.with_facts({"ratings": ratings}), **options)
    shared = [k for k in range(120) if n_raters[k] > 1]
    among = [np.mean([abs(a - b) for a, b in permutations(given[k], 2)]) for k in shared]
    mode = [np.abs(given[k] - PLAIN[0].decide(counts)[k]).mean() for k in shared]
    (remark,) = [text for text in scores.remarks if "raters" in text]
    assert f"on {len(shared)} items with several raters majority vote is" in remark
    assert f"it is off by {np.mean(mode):.3f} on average" in remark
    assert f"another rater by {np.mean(among):.3f}" in remark
    assert f"difference {np.mean(mode) - np.mean(among):z.3f}" in remark
    table = np.full((3, 120), np.nan)
    for k, of in enumerate(given):
        table[: len(of), k] = of
    alpha = krippendorff.alpha(reliability_data=table, level_of_measurement="interval")
    assert f"alpha of the raters is {alpha:.2f}" in remark
    alone = evaluate(items.with_facts({"ratings": np.minimum(ratings, 0)}), **options)
    assert not any("raters" in text for text in alone.remarks)
