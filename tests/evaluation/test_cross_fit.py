"""Cross-fitted evaluation: folds by group, losses by item, intervals and a test for new items."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import btdagg
from btdagg import Protocol, evaluate
from btdagg.datasets import simulate
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.evaluation import _sharing
from btdagg.evaluation.new_items import Losses, NewItems
from btdagg.evaluation.protocol import CROSS_FITTED
from btdagg.methods import Calibrated, Decided, Isotonic, by_name
from btdagg.paper import transfer_matrix
from btdagg.paper.conditions import COMPARED
from btdagg.votes import Items, as_items
from draws import comparison_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
SAMPLE = simulate("rb2-math", 90, 6, seed=3)
COUNTS, LABELS = SAMPLE.counts, SAMPLE.labels
GROUPS = np.repeat(np.arange(30), 3)
THREE = btdagg.Scale("1-3")


def test_every_repetition_has_each_item_in_one_fold_and_no_group_in_two():
    splits = list(CrossFit(n_folds=4, n_repeats=3, seed=5).draw(90, GROUPS))
    assert len(splits) == CrossFit(n_folds=4, n_repeats=3).n_splits == 12
    for repetition in range(3):
        folds = splits[4 * repetition : 4 * repetition + 4]
        assert sorted(np.concatenate([fold.evaluation for fold in folds])) == list(range(90))
        assert sorted(len(set(GROUPS[fold.evaluation])) for fold in folds) == [7, 7, 8, 8]
        for known, left in folds:
            assert sorted([*known, *left]) == list(range(90))
            assert not set(GROUPS[known]) & set(GROUPS[left])
    same, other = (
        [tuple(left) for _, left in CrossFit(4, 3, seed=seed).draw(90, GROUPS)] for seed in (5, 6)
    )
    assert same == [tuple(left) for _, left in splits]
    assert other != same
    assert same[:4] != same[4:8]


def test_few_groups_are_left_out_one_by_one_and_once():
    splits = list(CrossFit().draw(12, np.repeat(list("abc"), 4)))
    assert sorted(tuple(left) for _, left in splits) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]


def test_an_item_s_loss_is_of_models_that_did_not_see_its_group():
    splitter = CrossFit(n_folds=5, n_repeats=2, n_refits=3, seed=1)
    found = comparison_of(COUNTS, LABELS, groups=GROUPS, protocol=Protocol(splitter, GroupTest()))
    errors = np.zeros(90)
    for known, left in splitter.draw(90, GROUPS):
        model = btdagg.calibrate(COUNTS[known], LABELS[known]).model
        errors[left] += np.abs(model.decide(COUNTS[left]) - LABELS[left])
    assert found.new_items.losses["mae"].of_items[0].tolist() == (errors / 2).tolist()
    majority = np.abs(btdagg.majority_vote(COUNTS) - LABELS)
    assert found.new_items.losses["mae"].of_items[1].tolist() == majority.tolist()
    assert found.methods[0].interval().mean == pytest.approx(errors.mean() / 2)
    assert found.new_items.losses["mae"].of_refits[1].tolist() == [majority.mean()] * 3
    assert found.n_calibration == 72


@pytest.mark.parametrize("prior", [None, "weak", "of another task"])
def test_models_fitted_at_once_decide_as_those_fitted_one_by_one(prior):
    if prior == "of another task":
        other = simulate("rb2-focus", 90, 6, seed=4)
        prior = btdagg.fit_prior({"focus": (other.counts, other.labels)})
    folds = Protocol(CrossFit(n_folds=5, n_repeats=2, n_refits=3, seed=1), GroupTest())
    random = Protocol(RandomSplits(size=30, n_splits=8), test=None)
    uneven = SAMPLE.first(2)
    uneven[7] = COUNTS[7]  # without this item models have a prior for fewer votes
    for counts in (COUNTS, COUNTS * 0.7, uneven):
        items, method = Items(counts=counts, labels=LABELS), Calibrated(prior=prior)
        for protocol in (folds, random):
            at_once, one_by_one = (
                cross_scores([items], [method], protocol, observe=observe)[0][0].methods[0]
                for observe in (None, lambda fitted: None)
            )
            assert (at_once.counts == one_by_one.counts).all()


def test_refits_under_weights_are_fits_to_the_items_drawn():
    weights = CrossFit(n_refits=20, seed=2).resampled(GROUPS)
    assert (weights.sum(axis=1) == 90).all()
    assert (weights[:, ::3] == weights[:, 2::3]).all()  # whole groups
    assert len({tuple(row) for row in weights}) == 20
    refitted = Calibrated().refitted(COUNTS, LABELS, weights)(COUNTS)
    for labels, times in zip(refitted, weights.astype(int), strict=True):
        drawn = np.repeat(np.arange(90), times)
        model = btdagg.calibrate(COUNTS[drawn], LABELS[drawn]).model
        # Alike but where two labels are equally good to the digits that both fits agree in.
        risks, rows = model.risks(COUNTS), np.arange(90)
        assert risks[rows, labels + 1] == pytest.approx(risks.min(axis=1), abs=1e-6)


@pytest.mark.parametrize("prior", ["weak", [btdagg.GradeModel(2, (1, 3), THREE, THREE)]])
def test_refits_of_grades_are_fits_to_the_items_drawn(prior):
    labels = LABELS + 2
    weights = CrossFit(n_refits=5, seed=2).resampled(GROUPS)
    refitted = Calibrated(scale=THREE, prior=prior).refitted(COUNTS, labels, weights)(COUNTS)
    for decided, times in zip(refitted, weights.astype(int), strict=True):
        drawn = np.repeat(np.arange(90), times)
        fit = btdagg.calibrate(COUNTS[drawn], labels[drawn], scale=THREE, prior=prior)
        assert (decided == fit.model.decide(COUNTS)).all()


def new_items(errors, refits, groups, own=None):
    """Absolute errors of methods on items, as `NewItems`."""
    return NewItems({"mae": Losses(errors, refits, own, 2.0)}, groups)


def test_intervals_and_the_test_are_student_s_over_groups_with_the_models_variance():
    rng = np.random.default_rng(4)
    groups = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])
    errors, wrong = rng.integers(0, 3, (2, 10)) / 1.0, rng.integers(0, 2, (2, 10)) / 1.0
    refits, refit_wrong = rng.random((2, 5)), rng.random((2, 5))
    mae, accuracy = Losses(errors, refits, None, 2.0), Losses(wrong, refit_wrong)
    found = NewItems({"mae": mae, "accuracy": accuracy}, groups)

    def by_hand(losses, of_refits):
        mean = losses.mean()
        sums = [(losses[groups == g] - mean).sum() for g in range(4)]
        variance = 4 / 3 * sum(s * s for s in sums) / 100 + np.var(of_refits, ddof=1)
        return mean, np.sqrt(variance)

    t = stats.t(3).ppf(0.975)
    mean, error = by_hand(errors[0], refits[0])
    assert found.interval(0) == pytest.approx(
        (mean, max(mean - t * error, 0), min(mean + t * error, 2))
    )
    mean, error = by_hand(wrong[1], refit_wrong[1])
    assert found.interval(1, "accuracy") == pytest.approx(
        (1 - mean, max(1 - mean - t * error, 0), min(1 - mean + t * error, 1))
    )
    mean, error = by_hand(errors[0] - errors[1], refits[0] - refits[1])
    assert found.difference(0, 1) == pytest.approx((mean, mean - t * error, mean + t * error))
    p = found.pvalues()
    assert p[0, 1] == p[1, 0] == pytest.approx(2 * stats.t(3).sf(abs(mean) / error))
    assert p.diagonal().tolist() == [1, 1]
    mean, error = by_hand(wrong[0] - wrong[1], refit_wrong[0] - refit_wrong[1])
    assert found.difference(0, 1, "accuracy").mean == pytest.approx(-mean)


@pytest.mark.parametrize("n_groups", [4, 12, 60])
def test_a_certain_difference_has_the_pvalue_of_its_interval_which_has_a_width(n_groups):
    # Each second item is wrong by 1 more, in fifths as of five repetitions: rounding is no spread.
    groups = np.repeat(np.arange(n_groups), 2)
    better = np.tile([0.2, 0.4], n_groups)
    errors = np.stack([better, better + np.tile([0.0, 1.0], n_groups)])
    refits = np.repeat([[0.3], [0.8]], 5, axis=1)
    found = new_items(errors, refits, groups)
    mean, low, high = found.difference(0, 1)
    p = found.pvalues()[0, 1]
    assert (p < 0.05) == (high < 0)
    assert found.difference(0, 1, level=1 - p).high == pytest.approx(0, abs=1e-9)
    assert mean == pytest.approx(-0.5)
    assert -2 <= low < mean < high
    # Of few groups there may be many others that do otherwise.
    assert high < 0 or n_groups < 20


def test_methods_of_which_one_is_always_right_have_different_ranks():
    right, wrong = Decided("right"), Decided("wrong")
    gold = np.tile([-1, 0, 1], 10)
    decided = {"right": gold.astype(float), "wrong": np.tile([0.0, 1.0, 0.0], 10)}
    evidence = as_items(np.ones((30, 3), dtype=np.int64), decisions=decided)
    found = comparison_of(evidence, gold, [wrong, right], protocol=CROSS_FITTED)
    assert found.rankings["mae"].ranks.tolist() == [2, 1]
    assert 2.0**-29 < found.rankings["mae"].pvalues[0, 1] < 0.001


def test_a_method_without_refits_of_its_own_is_fitted_to_the_items_drawn():
    protocol = Protocol(CrossFit(n_folds=3, n_repeats=1, n_refits=4), GroupTest())
    found = comparison_of(COUNTS, LABELS, [Isotonic()], groups=GROUPS, protocol=protocol)
    weights = protocol.splitter.resampled(GROUPS).astype(int)
    drawn = np.repeat(np.arange(90), weights[3])
    method = Isotonic().fit(COUNTS[drawn], LABELS[drawn])
    errors = np.abs(method.decide(COUNTS) - LABELS)
    assert found.new_items.losses["mae"].of_refits[0][3] == errors.mean()


def test_a_difference_reaches_to_what_the_written_models_do_on_their_own_labels():
    rng = np.random.default_rng(6)
    errors, own = (rng.integers(0, 3, size=(2, 50)).astype(float) for _ in range(2))
    refits = rng.normal(1, 0.02, size=(2, 30))
    groups = np.arange(50)
    alone, found = new_items(errors, refits, groups), new_items(errors, refits, groups, own)
    ends = stats.ttest_1samp(own[0] - own[1], 0).confidence_interval(0.95)
    mean, low, high = alone.difference(0, 1)
    both = (mean, min(low, ends.low), max(high, ends.high))
    assert found.difference(0, 1) == pytest.approx(both)
    for shift in np.linspace(-1, 1, 21):  # significant where the interval says so, and not else
        moved = np.stack([np.zeros(50), np.full(50, shift)])
        one = new_items(errors + moved, refits, groups, own + 0.5 * moved)
        low, high = one.difference(0, 1)[1:]
        assert (one.pvalues()[0, 1] < 0.05) == (low > 0 or high < 0)


def test_models_that_decide_all_items_alike_share_a_rank():
    """Written, the model is majority vote; what folds calibrate is not always, and fares worse."""
    several = {  # counts of B, tie and A: items whose label is B, tie, A
        (0, 0, 2): (0, 0, 2), (0, 1, 1): (1, 4, 3), (0, 2, 0): (0, 3, 1), (1, 0, 1): (1, 0, 5),
        (1, 1, 0): (2, 1, 0), (2, 0, 0): (7, 0, 0),
    }  # fmt: skip
    counts = np.repeat(list(several), [sum(n) for n in several.values()], axis=0)
    gold = np.concatenate([np.repeat([-1, 0, 1], n) for n in several.values()])
    model = btdagg.calibrate(counts, gold, prior=None).model
    assert (model.decide(counts) == btdagg.majority_vote(counts)).all()
    found = comparison_of(counts, gold, by_name(COMPARED), protocol=CROSS_FITTED)
    assert (
        found.new_items.losses["mae"].of_items[0].mean()
        > found.new_items.losses["mae"].of_items[1].mean()
    )
    assert found.rankings["mae"].ranks.tolist() == [1, 1]
    assert found.rankings["mae"].pvalues[0, 1] == 1
    _, low, high = found.new_items.difference(0, 1)
    assert low <= 0 <= high


def test_what_is_beaten_by_majority_vote_or_a_constant_is_said():
    rng = np.random.default_rng(0)
    gold = rng.choice([-1, 0, 1], p=[0.1, 0.2, 0.7], size=60)
    noise = rng.multinomial(8, [1 / 3] * 3, size=60)
    text = next(text for text in said_of(noise, gold) if "always answering" in text)
    assert text.startswith("calibrated (MAE ")
    assert "majority vote (MAE " in text
    assert "do not beat always answering A (MAE 0." in text
    against = np.stack([gold == 1, gold == 0, gold == -1], axis=1) * 8
    texts = said_of(against, gold)
    wrong = int((gold != 0).sum())
    assert (
        f"majority vote picks the opposite side of the label for {wrong} items and the same "
        "side for 0: votes and labels disagree. Check first that A and B are the same responses in "
        "votes and labels"
    ) in texts
    right = np.stack([gold == -1, gold == 0, gold == 1], axis=1) * 8
    (text,) = said_of(right, gold)
    assert text.startswith("calibrated (MAE 0.000) does not beat majority vote (MAE 0.000) on held")


def said_of(counts, gold):
    labels = btdagg.read_labels({"item": list(range(60)), "label": gold.tolist()})
    columns = dict(zip(("minus", "tie", "plus"), counts.T.tolist(), strict=True))
    votes = btdagg.read_votes({"item": list(range(60)), **columns})
    return evaluate(votes, labels).remarks


def test_items_that_share_a_prompt_without_a_group_are_said():
    gold = [-1, 0, 1] * 10
    votes = btdagg.read_votes(
        {"item": list(range(30)), "minus": [1, 1, 0] * 10, "tie": [0, 1, 1] * 10, "plus": [1] * 30}
    )
    labels = {
        "item": list(range(30)),
        "label": gold,
        "prompt": [n // 2 for n in range(28)] + [7, 8],
    }
    said = [text for text in evaluate(votes, btdagg.read_labels(labels)).remarks if "share" in text]
    assert said == [
        (
            "30 items share a prompt with another item, but neither votes nor labels have a "
            "column group. Intervals treat them as independent and may be too narrow; add a "
            "column group with the prompt's id"
        )
    ]
    grouped = btdagg.read_labels({**labels, "group": [str(p) for p in labels["prompt"]]})
    assert not any("share" in text for text in evaluate(votes, grouped).remarks)
    told = votes.with_columns([pl.Series("group", [str(p) for p in labels["prompt"]])])
    assert not any("share" in text for text in evaluate(told, btdagg.read_labels(labels)).remarks)
    apart = btdagg.read_labels({**labels, "prompt": list(range(30))})
    assert not any("share" in text for text in evaluate(votes, apart).remarks)


def test_a_pair_that_is_in_two_tasks_shares_no_prompt():
    rows = {"item": [1, 2, 1, 2], "task": ["x", "x", "y", "y"], "prompt": ["p", "q", "p", "q"]}
    votes = btdagg.read_votes({**rows, "minus": [1] * 4, "tie": [0] * 4, "plus": [3] * 4})
    labels = btdagg.read_labels({**rows, "label": [1, -1, 0, 1]})
    assert _sharing(votes, labels) == 0
    twins = btdagg.read_labels({**rows, "label": [1, -1, 0, 1], "prompt": ["p"] * 4})
    assert _sharing(votes, twins) == 2


def test_refits_of_one_task_decide_another():
    """The interval of a transferred calibration is of models fitted to groups of its source."""
    first, second = (
        as_items(sample.counts, sample.labels)
        for sample in (simulate("rb2-math", 40, 4, seed=1), simulate("rb2-focus", 60, 4, seed=2))
    )
    splitter = CrossFit(n_folds=4, n_repeats=2, n_refits=6, seed=3)
    protocol = Protocol(splitter, None)
    found = transfer_matrix({"a": first, "b": second}, protocol=protocol)
    ((own,),) = cross_scores([second], [Calibrated(prior=None)], protocol)
    assert found.mae_interval("b", "b") == own.methods[0].interval()
    assert found.change_interval("b", "b").mean == 0
    weights = splitter.resampled(first.group_numbers, first.content).astype(int)
    errors = []
    for times in weights:
        drawn = np.repeat(np.arange(40), times)
        own = first.pooled[drawn], first.label[drawn]
        model = btdagg.calibrate(*own, prior=None).model
        errors.append(np.abs(model.decide(second.pooled) - second.label).mean())
    np.testing.assert_allclose(
        found.compared[0][1].new_items.losses["mae"].of_refits[0], errors, atol=0.05
    )
    change = found.change_interval("a", "b")
    assert change.mean == pytest.approx(
        found.mae_interval("a", "b").mean - found.mae_interval("b", "b").mean
    )
    assert change.low < change.mean < change.high
