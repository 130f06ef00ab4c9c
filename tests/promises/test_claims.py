"""Sentences agree with the numbers beside them, and say what the numbers show."""

import re
import warnings

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student

import btdagg
from btdagg import Protocol
from btdagg.estimates import not_worse
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits
from btdagg.methods import by_name
from btdagg.model import CalibrationWarning
from btdagg.online import plan


def pairs(n, noise=1.0, seed=0, votes=8):
    """Counts of votes that err with some noise, and labels."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n, p=[0.35, 0.3, 0.35])
    seen = gold[:, None] + rng.normal(0, noise, (n, votes))
    vote = np.where(np.abs(seen) < 0.6, 0, np.sign(seen)).astype(int)
    return np.stack([(vote == side).sum(axis=1) for side in (-1, 0, 1)], axis=1), gold


def for_anything(n, seed=0):
    """Votes mostly for A, whatever the label is."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n, p=[0.325, 0.35, 0.325])
    shares = rng.dirichlet([1, 1.5, 5], n)
    return np.array([rng.multinomial(8, row) for row in shares]), gold


def written(counts, gold, n_labels, folder, **columns):
    item = np.arange(len(counts))
    rows = {"item": item, "minus": counts[:, 0], "tie": counts[:, 1], "plus": counts[:, 2]}
    pl.DataFrame(rows).write_csv(folder / "counts.csv")
    votes = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    pl.DataFrame({"item": item.repeat(counts.sum(axis=1)), "vote": votes}).write_csv("votes.csv")
    labels = pl.DataFrame({"item": item, "label": gold, **columns})[:n_labels]
    labels.write_csv("labels.csv")


# Intervals and tests


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("test", [GroupTest(), GroupTest(tau=0.2), GroupTest(correction="holm")])
def test_an_answer_calls_no_methods_alike_whose_interval_excludes_0(seed, test):
    counts, gold = pairs(40 + 10 * seed, noise=1 + seed % 4, seed=seed)
    methods = by_name(["weak", "davidson", "threshold", "majority"])
    protocol = Protocol(CrossFit(n_repeats=1, n_refits=10), test)
    scores = btdagg.evaluate(counts, gold, aggregators=methods, protocol=protocol)
    (cell,) = scores.cells
    ranking = cell.rankings["mae"]
    for first in range(len(methods)):
        for second in range(first):
            level = cell._level(first, second)
            _, low, high = cell.new_items.difference(first, second, level=level)
            assert (low > 0 or high < 0) == (ranking.pvalues[first, second] < test.tau)
    alike = re.match(
        r"the (best of )?\d methods do not differ significantly: ([^.]*\)); ", cell.sentence()
    )
    if alike is not None:
        places = np.flatnonzero(ranking.tied)
        assert (ranking.pvalues[np.ix_(places, places)] >= test.tau).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_comparison_names_a_better_way_where_its_interval_excludes_0(seed):
    counts, gold = pairs(12 + 10 * seed, noise=1.2, seed=seed)
    others, _ = pairs(12 + 10 * seed, noise=1.2 + seed % 3, seed=seed)
    protocol = Protocol(CrossFit(n_repeats=1, n_refits=10), GroupTest())
    result = btdagg.compare(counts, others, gold, level=0.9, protocol=protocol)
    low, high = result.difference[1:]
    assert (result.better is not None) == (low > 0 or high < 0)


@pytest.mark.parametrize("n", [12, 40])
@pytest.mark.parametrize("away", [1, 2])
def test_a_way_that_errs_alike_everywhere_may_err_less_or_more_elsewhere(n, away):
    """By at most three grades of four; of none of n Wilson's interval ends at t**2 / (n + t**2)."""
    scale, places = btdagg.Scale((1, 2, 3, 4)), np.arange(n) % (4 - away)
    right, wrong = 6 * np.eye(4, dtype=int)[places], 6 * np.eye(4, dtype=int)[places + away]
    test = {"protocol": Protocol(CrossFit(n_repeats=1, n_refits=10), GroupTest())}
    found = btdagg.compare(right, wrong, places + 1, scale=scale, methods="median", **test)
    t = student.ppf(0.975, n - 1)
    share = t**2 / (n + t**2)
    assert [*found.mae[0]] == pytest.approx([0, 0, 3 * share])
    assert [*found.mae[1]] == pytest.approx([away, away * (1 - share), away + share * (3 - away)])
    ends = [-away, -away - share * (3 - away), -away + share * (3 + away)]
    assert [*found.difference] == pytest.approx(ends)
    # The p-value is 1 less the level at which the interval ends at 0: there the share is this.
    share = away / (3 + away)
    t = np.sqrt(n * share / (1 - share))
    assert found.pvalue == pytest.approx(2 * student.sf(t, n - 1))


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_an_error_of_nothing_has_an_interval(n):
    counts = np.array([[8, 0, 0], [0, 0, 8]] * n)[:n]
    gold = np.array([-1, 1] * n)[:n]
    (cell,) = btdagg.evaluate(counts, gold, aggregators=by_name(["majority"])).cells
    mean, low, high = cell.methods[0].interval()
    assert (mean, low) == (0.0, 0.0)
    assert 2 * 2.5 / n < high * 2 < 2 * 8 / n + 2 or n < 4
    accuracy = cell.methods[0].interval("accuracy")
    assert accuracy.high == 1.0
    assert accuracy.low < 1.0


# Few labels


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        call()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_a_fit_to_few_labels_warns(n):
    counts, gold = pairs(n)
    for prior in ("weak", None):
        said = warned(lambda: btdagg.calibrate(counts, gold, prior=prior))  # noqa: B023
        assert sum("too few to calibrate on; 10 are the fewest" in text for text in said) == 1


def test_a_fit_to_few_grades_warns():
    scale = btdagg.Scale(range(1, 6))
    counts = np.eye(5, dtype=int)[[0, 1, 2, 3]] * 4
    said = warned(lambda: btdagg.calibrate(counts[:4], [1, 2, 3, 4], scale=scale))
    assert "4 labels: too few to calibrate on; 10 are the fewest" in said


def test_a_fit_to_enough_labels_does_not_warn():
    counts, gold = pairs(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        btdagg.calibrate(counts, gold)


def test_an_evaluation_of_few_labels_says_so():
    for n in (3, 9):
        scores = btdagg.evaluate(*pairs(n, seed=3))
        assert f"{n} labelled items: too few to evaluate with; 10 are the fewest" in scores.remarks
    assert not any("too few" in text for text in btdagg.evaluate(*pairs(10)).remarks)


# A judge that is no better than a constant


@pytest.mark.parametrize("seed", range(3))
def test_a_judge_without_information_is_not_called_better_than_a_constant(cli, folder, seed):
    written(*for_anything(200, seed), 40, folder)
    for command in ("evaluate", "calibrate", "check"):
        options = ("-o", "model.json") if command == "calibrate" else ()
        status, printed, remarks = cli(command, "votes.csv", "labels.csv", *options)
        said = (printed + remarks).lower()
        assert status == 0
        assert "better than a constant" in said, command
        assert "label more items or use" not in said


def test_a_judge_with_information_is():
    counts, gold = pairs(60)
    scores = btdagg.evaluate(counts, gold)
    assert not any("constant" in text for text in scores.remarks)


def test_a_judge_that_helps_a_little_is_compared_with_a_constant_by_an_interval():
    counts, gold = pairs(40, noise=3.5, seed=4)
    scores = btdagg.evaluate(counts, gold)
    (cell,) = scores.cells
    low, high = cell.less_constant(cell.calibrated)[1:]
    said = [text for text in scores.remarks if "not shown to be better than a constant" in text]
    assert low < 0 < high
    assert len(said) == 1


# Numbers in sentences


def test_calibration_sets_larger_than_asked_for_are_said():
    counts, gold = pairs(240)
    groups = np.arange(240) // 20
    splits = Protocol(RandomSplits(size=50, n_splits=4), test=None)
    scores = btdagg.evaluate(counts, gold, groups=groups, protocol=splits)
    said = "groups stay together, so models are calibrated on 60 labels on average, not on 50"
    assert said in scores.remarks
    alone = btdagg.evaluate(counts, gold, protocol=splits)
    assert not any("stay together" in text for text in alone.remarks)
    swept = btdagg.evaluate(counts, gold, groups=groups, n_labels=[50])
    assert said in swept.remarks


@pytest.mark.parametrize("n_items", [1814, 400, 97])
def test_a_certificate_does_not_ask_for_the_labels_that_there_are(n_items):
    counts, gold = pairs(n_items, noise=3)
    certificate = btdagg.certify(counts, gold, agreement=0.97)
    assert certificate.threshold is None
    assert certificate.labels_wanted is None
    some = gold.astype(float)
    some[-3:] = np.nan
    wanted = btdagg.certify(counts, some, agreement=0.9).labels_wanted
    assert wanted is None or wanted > n_items - 3


def test_a_plan_forecasts_the_cost_of_few_labels_as_a_sweep_finds_it():
    counts, gold = pairs(400, noise=2, votes=2)
    rng = np.random.default_rng(0)
    thin = np.where(rng.random(400)[:, None] < 0.5, pairs(400, noise=2, votes=8)[0], counts)
    for votes in (counts, thin):
        costs = dict(plan(votes, gold, n_items=1000, n_votes=[2], n_labels=[25, 50, 100]).labels)
        splits = Protocol(RandomSplits(n_splits=40), test=None)
        most = btdagg.evaluate(votes[:, :], gold).cells[0].methods[0].interval().mean
        swept = btdagg.evaluate(votes, gold, n_labels=[25, 100], protocol=splits)
        errors = {cell.n_labels: cell.methods[0].mae.mean() for cell in swept.cells}
        assert min(costs.values()) >= 0
        if votes is counts:
            assert costs[25] == pytest.approx(max(errors[25] - most, 0), abs=0.03)


def test_a_gate_counts_raters_who_disagree_on_its_own_items():
    rng = np.random.default_rng(0)
    n, names = 300, np.array(["old", "new", "other", "fourth"])
    sides = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    counts, gold = pairs(n)
    item = np.arange(n)
    votes = {
        "item": item.repeat(8),
        "vote": np.concatenate([np.repeat([-1, 0, 1], c) for c in counts]),
    }
    votes |= {"system_a": names[sides[:, 0]].repeat(8), "system_b": names[sides[:, 1]].repeat(8)}
    labels = {"item": item.repeat(2), "label": gold.repeat(2), "rater": ["x", "y"] * n}
    labels["label"] = np.where((np.arange(2 * n) % 6) == 0, -labels["label"], labels["label"])
    tables = btdagg.read_votes(votes), btdagg.read_labels(labels)
    gate = not_worse(*tables, candidate="new", baseline="old", margin=0.1)
    is_of_gate = np.array([{*names[pair]} == {"old", "new"} for pair in sides])
    n_disputed = int((is_of_gate & (item % 3 == 0) & (gold != 0)).sum())
    said = f"raters disagree on {n_disputed} of {is_of_gate.sum()} labelled items"
    assert sum("raters disagree" in text for text in gate.remarks) == 1
    assert any(text.startswith(said) for text in gate.remarks), gate.remarks


def test_an_evaluation_counts_raters_who_disagree_on_items_with_votes():
    counts, gold = pairs(100)
    item = np.arange(100)
    votes = {"item": item[:60].repeat(8)}
    votes["vote"] = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts[:60]])
    labels = {"item": item.repeat(2), "label": gold.repeat(2), "rater": ["x", "y"] * 100}
    labels["label"] = np.where(
        np.arange(200) % 4 == 0, 1 - np.abs(labels["label"]), labels["label"]
    )
    tables = btdagg.read_votes(votes), btdagg.read_labels(labels)
    for remarks in (btdagg.evaluate(*tables).remarks,):
        assert any(text.startswith("raters disagree on 30 of 60") for text in remarks), remarks


# Looks


def test_a_forecast_of_labels_says_that_a_level_is_for_one_look():
    counts, gold = pairs(1000, noise=2)
    some = np.where(np.arange(1000) < 60, gold, np.nan)
    gate = not_worse(counts, some, candidate="A", baseline="B", margin=0.05)
    assert gate.labels_wanted is not None
    assert "95% is for one look; a sequential gate" in gate.sentence()
    leaning = np.where(np.arange(1000) % 4 == 0, 1, some)
    step = btdagg.estimate(counts, np.where(np.isnan(some), np.nan, leaning)).sentence()
    assert "95% is for one look; btdagg gate --sequential" in step or "is better" in step
    counts, gold = pairs(1000, noise=1.5)
    some = np.where(np.arange(1000) < 60, gold, np.nan)
    certificate = btdagg.certify(counts, some, agreement=0.9)
    assert certificate.labels_wanted is not None
    assert "90% is for one look" in certificate.sentence()


@pytest.mark.soak
def test_two_looks_at_half_the_error_err_no_more_often_than_the_level():
    n_draws, errors = 500, 0
    for draw in range(n_draws):
        rng = np.random.default_rng([5, draw])
        gold = rng.choice([-1, 0, 1], 1500, p=[0.4, 0.3, 0.3])  # A is worse by the margin
        seen = gold[:, None] + rng.normal(0, 1.5, (1500, 6))
        vote = np.where(np.abs(seen) < 0.6, 0, np.sign(seen)).astype(int)
        counts = np.stack([(vote == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
        n = 100
        for _ in range(2):
            some = np.where(np.arange(1500) < n, gold, np.nan)
            gate = not_worse(counts, some, candidate="A", baseline="B", margin=0.1, level=0.975)
            if gate.outcome != "inconclusive" or gate.labels_wanted is None:
                break
            n = gate.labels_wanted
        errors += gate.passed
    assert errors / n_draws <= 0.05 + 2.33 * np.sqrt(0.05 * 0.95 / n_draws)


# Items without a label


@pytest.mark.soak
@pytest.mark.parametrize(("agreement", "noise"), [(0.65, 1.8), (0.6, 2.2)])
def test_the_bound_for_items_without_a_label_holds(agreement, noise):
    n_draws, failures = 400, 0
    for draw in range(n_draws):
        counts, gold = pairs(500, noise, seed=(7, draw), votes=6)
        some = np.where(np.arange(500) < 250, gold, np.nan)
        certificate = btdagg.certify(counts, some, agreement=agreement)
        if certificate.threshold is None:
            continue
        trusted = certificate.trusted(counts) & np.isnan(some)
        if trusted.any():
            share = (certificate.model.decide(counts) == gold)[trusted].mean()
            failures += share < min(agreement, certificate.low_unlabelled)
    assert failures / n_draws <= 0.1 + 2.33 * np.sqrt(0.1 * 0.9 / n_draws)


def test_a_certificate_says_what_holds_for_few_items_without_a_label():
    counts, gold = pairs(300, noise=1.8, votes=6, seed=1)
    some = np.where(np.arange(300) < 200, gold, np.nan)
    certificate = btdagg.certify(counts, some, agreement=0.62)
    assert certificate.threshold is not None
    assert certificate.low_unlabelled < certificate.agreement
    least = re.search(
        r"those without a label, which are few, in at least ([\d.]+)%", str(certificate)
    )
    assert float(least[1]) / 100 <= certificate.low_unlabelled
    assert btdagg.certify(counts, gold, agreement=0.62).low_unlabelled is None
