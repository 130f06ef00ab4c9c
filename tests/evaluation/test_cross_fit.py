"""Cross-fitted evaluation: folds by group, errors of models that did not see an item, remarks."""

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol, evaluate
from btdagg.datasets import simulate
from btdagg.evaluation import CrossFit, GroupTest
from btdagg.methods import Calibrated, Decided, MajorityVote
from btdagg.votes import as_items
from draws import comparison_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
SAMPLE = simulate("rb2-math", 90, 6, seed=3)
COUNTS, LABELS = SAMPLE.counts, SAMPLE.labels
GROUPS = np.repeat(np.arange(30), 3)


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


@pytest.mark.parametrize("prior", [None, "weak", "of another task"])
def test_errors_are_of_models_that_did_not_see_an_item_s_group(prior):
    if prior == "of another task":
        other = simulate("rb2-focus", 90, 6, seed=4)
        prior = btdagg.fit_prior({"focus": (other.counts, other.labels)})
    splitter = CrossFit(n_folds=5, n_repeats=2, n_refits=3, seed=1)
    methods = [Calibrated(prior=prior), MajorityVote()]
    uneven = SAMPLE.first(2)
    uneven[7] = COUNTS[7]  # without this item models have a prior for fewer votes
    for counts in (COUNTS, COUNTS * 0.7, uneven):
        protocol = Protocol(splitter, GroupTest())
        found = comparison_of(counts, LABELS, methods, groups=GROUPS, protocol=protocol)
        errors = []
        for known, left in splitter.draw(90, GROUPS, [counts, LABELS]):
            model = btdagg.calibrate(counts[known], LABELS[known], prior=prior).model
            errors.append(np.abs(model.decide(counts[left]) - LABELS[left]).sum())
        calibrated, majority = (line["mae"].mean for line in found.lines)
        assert calibrated == pytest.approx(sum(errors) / 180)
        assert majority == pytest.approx(np.abs(btdagg.majority_vote(counts) - LABELS).mean())
        assert found.n_calibration == 72


def test_methods_of_which_one_is_always_right_have_different_ranks():
    gold = np.tile([-1, 0, 1], 10)
    decided = {"right": gold.astype(float), "wrong": np.tile([0.0, 1.0, 0.0], 10)}
    evidence = as_items(np.ones((30, 3), dtype=np.int64), decisions=decided)
    found = btdagg.evaluate(evidence, gold, aggregators=[Decided("wrong"), Decided("right")])
    assert [line["rank"] for line in found.lines] == [2, 1]


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
    found = btdagg.evaluate(counts, gold, aggregators=["davidson", "majority"])
    davidson, majority = found.lines
    assert davidson["mae"].mean > majority["mae"].mean
    assert davidson["rank"] == majority["rank"] == 1
    assert davidson["mae_less_majority"].low <= 0 <= davidson["mae_less_majority"].high


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
    items = np.tile(np.arange(30), 2)
    rows = {"item": items, "task": np.repeat(["x", "y"], 30), "prompt": items}
    votes = btdagg.read_votes({**rows, "minus": items % 2, "tie": items % 3, "plus": [3] * 60})
    for prompt, is_said in ((items, False), (items // 2, True)):
        labels = {**rows, "label": items % 3 - 1, "prompt": prompt}
        remarks = evaluate(votes, btdagg.read_labels(labels)).remarks
        assert any("share a prompt" in text for text in remarks) == is_said
