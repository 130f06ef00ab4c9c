"""Sweeps over votes and labels, ablations: against slow loops, and on real votes."""

import random

import numpy as np
import polars as pl
import pytest

from btdagg import InputError, calibrate, majority_vote, read_labels, read_votes
from btdagg.evaluation import Protocol, RandomSplits, evaluate, sweep_calibration
from btdagg.methods import Davidson, MajorityVote
from btdagg.paper import ablate, compare_orders
from draws import random_splits


def made(n_items=60, n_samples=4, templates=("p", "q"), seed=1, orders=("AB", "BA")):
    """Rows of votes and of labels, made with the standard library."""
    draw = random.Random(seed)
    votes, labels = [], []
    for item in range(n_items):
        label = draw.choice([-1, 0, 0, 1])
        labels.append({"item": f"i{item}", "label": label, "group": f"g{item // 2}"})
        votes += [
            {
                "item": f"i{item}",
                "judge": "j",
                "template": template,
                "order": order,
                "sample": sample,
                "vote": draw.choice([label, label, -1, 0, 1]),
            }
            for template in templates
            for order in orders
            for sample in range(n_samples)
        ]
    draw.shuffle(votes)
    return votes, labels


def table(rows):
    return pl.DataFrame(rows, infer_schema_length=None)


def balanced_counts(votes, items, n):
    """Half of the votes of either order, by sample."""
    found = []
    for item in items:
        chosen = [
            vote["vote"] for vote in votes if vote["item"] == item and vote["sample"] < n // 2
        ]
        assert len(chosen) == n
        found.append([chosen.count(-1), chosen.count(0), chosen.count(1)])
    return np.array(found)


def mae_on(counts, labels, calibration, evaluation):
    model = calibrate(counts[calibration], labels[calibration]).model
    return [
        float(np.mean(np.abs(decide(counts[evaluation]) - labels[evaluation].astype(float))))
        for decide in (model.decide, majority_vote)
    ]


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_sweep_over_votes_has_balanced_orders_and_the_same_splits():
    votes, labels = made(templates=("p",))
    items = list(dict.fromkeys(vote["item"] for vote in votes))
    gold = {row["item"]: row for row in labels}
    known = np.array([gold[item]["label"] for item in items])
    groups = [gold[item]["group"] for item in items]
    found = evaluate(
        read_votes(table(votes)),
        read_labels(table(labels)),
        n_votes=[2, 4, 8],
        protocol=Protocol(RandomSplits(size=15, n_splits=4)),
    )
    assert found.by == ("judge",)
    (sweep,) = found.sweeps
    assert (sweep.key, sweep.points) == (("j",), (2, 4, 8))
    assert [curve[0].name for curve in sweep.curves] == ["Davidson", "majority vote"]
    for cell in sweep.cells:
        assert cell.comparison.n_items == 60
        assert cell.comparison.n_calibration == 16  # whole groups of two
        assert cell.comparison.n_evaluation == 44
    for point, n in enumerate(sweep.points):
        counts = balanced_counts(votes, items, n)
        for number, (inside, outside) in enumerate(
            random_splits(60, size=15, n_splits=4, groups=groups)
        ):
            wanted = mae_on(counts, known, inside, outside)
            got = [curve[point].mae[number] for curve in sweep.curves]
            assert got == pytest.approx(wanted, abs=1e-12)


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_sweep_over_labels_keeps_the_evaluation_set():
    votes, labels = made(templates=("p",))
    for row in labels:
        del row["group"]
    items = list(dict.fromkeys(vote["item"] for vote in votes))
    gold = {row["item"]: row["label"] for row in labels}
    known = np.array([gold[item] for item in items])
    found = sweep_calibration(
        read_votes(table(votes)),
        read_labels(table(labels)),
        [30, 10, 20],
        n_votes=4,
        protocol=Protocol(RandomSplits(n_splits=5)),
    )
    (sweep,) = found.sweeps
    assert sweep.points == (10, 20, 30)
    assert [cell.comparison.n_calibration for cell in sweep.cells] == [10, 20, 30]
    assert [cell.comparison.n_evaluation for cell in sweep.cells] == [30, 30, 30]
    counts = balanced_counts(votes, items, 4)
    for number in range(5):
        # The order of the items of split k, as it is documented to come from seed and k alone.
        order = np.random.default_rng([0, number]).permutation(60)
        for point, size in enumerate(sweep.points):
            wanted = mae_on(counts, known, np.sort(order[:size]), order[30:])
            got = [curve[point].mae[number] for curve in sweep.curves]
            assert got == pytest.approx(wanted, abs=1e-12)
    # What learns nothing does not change with the number of labels.
    assert len({tuple(point.mae) for point in sweep.curves[1]}) == 1


CALLS = [
    evaluate,
    lambda votes, labels, **options: sweep_calibration(votes, labels, [10], **options),
    lambda votes, labels, **options: ablate(votes, labels, "order", **options),
    lambda votes, labels, **options: compare_orders(votes, labels, 2, **options),
]


def test_sweeps_say_what_is_wrong():
    votes, labels = made(templates=("p",))
    votes, labels = read_votes(table(votes)), read_labels(table(labels))
    with pytest.raises(InputError, match=r"^n_votes is 4, expected a sequence of at least one"):
        evaluate(votes, labels, n_votes=4)
    with pytest.raises(InputError, match=r"^sizes is 0, expected an integer of at least 1$"):
        sweep_calibration(votes, labels, [10, 0])
    with pytest.raises(InputError, match=r"^calibrating on 60 of 60 items leaves none"):
        sweep_calibration(votes, labels, [10, 60])
    for refused in CALLS:
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'protocl'$"):
            refused(votes, labels, protocl=1)
        with pytest.raises(InputError, match=r"^labels is a ndarray, expected what read_labels"):
            refused(votes, np.zeros(60))


# Ablations


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_an_ablation_has_the_same_items_and_splits_for_all_values():
    votes, labels = made()
    # One item has no vote under p that is not missing, one no row under q at all.
    for vote in votes:
        if vote["item"] == "i7" and vote["template"] == "p":
            vote["vote"] = None
    votes = [v for v in votes if (v["item"], v["template"]) != ("i9", "q")]
    items = list(dict.fromkeys(vote["item"] for vote in votes))
    items = [item for item in items if item not in ("i7", "i9")]
    gold = {row["item"]: row for row in labels}
    known = np.array([gold[item]["label"] for item in items])
    groups = [gold[item]["group"] for item in items]
    found = ablate(
        read_votes(table(votes)),
        read_labels(table(labels)),
        "template",
        n_votes=[2, 4],
        protocol=Protocol(RandomSplits(size=12, n_splits=3)),
    )
    assert (found.column, found.by, found.skipped) == ("template", ("judge",), ())
    assert found.n_left_out == {("j",): 2}
    assert {(cell.value, cell.n_votes) for cell in found.cells} == {
        ("p", 2), ("p", 4), ("q", 2), ("q", 4)
    }  # fmt: skip
    for cell in found.cells:
        counts = balanced_counts(
            [v for v in votes if v["template"] == cell.value], items, cell.n_votes
        )
        assert cell.comparison.n_items == 58
        for number, split in enumerate(random_splits(58, size=12, n_splits=3, groups=groups)):
            wanted = mae_on(counts, known, *split)
            got = [method.mae[number] for method in cell.comparison.methods]
            assert got == pytest.approx(wanted, abs=1e-12)


def test_an_ablation_refuses_what_differs_in_more_than_one_thing():
    votes, labels = made()
    rows = [{**v, "temperature": 0.1 if v["template"] == "p" else 0.9} for v in votes]
    votes, labels = read_votes(table(rows)), read_labels(table(labels))
    with pytest.raises(
        InputError, match=r"differ in template too; filter by template, or go by it"
    ):
        ablate(votes, labels, "temperature")
    with pytest.raises(
        InputError, match="by names 'template', the column whose values are compared"
    ):
        ablate(votes, labels, "template", by=["template"])
    with pytest.raises(InputError, match=r"no column 'prompt'"):
        ablate(votes, labels, "prompt")
    apart = table([{**r, "item": r["item"] + r["template"]} for r in rows]).drop("temperature")
    with pytest.raises(InputError, match=r"no item has 1 or more votes under each template"):
        ablate(read_votes(apart), labels, "template")
    counts = read_votes({"item": [1], "minus": [1], "tie": [0], "plus": [0]})
    with pytest.raises(InputError, match=r"^votes is a table of counts, expected single votes"):
        ablate(counts, labels, "template")


# Real votes


@pytest.fixture(scope="module")
def math_votes(shared):
    votes = pl.scan_parquet(shared / "data/rb2/votes.parquet").filter(
        pl.col("task").cast(pl.String) == "math", pl.col("judge").cast(pl.String) == "gpt-5.4"
    )
    return read_votes(votes.collect()), read_labels(shared / "data/rb2/labels.csv")


def test_real_sweeps_go_the_papers_way(math_votes):
    votes, labels = math_votes
    votes = votes.filter({"template": "base", "temperature": "default"})
    (over_votes,) = evaluate(
        votes, labels, n_votes=[1, 4, 8], protocol=Protocol(RandomSplits(size=100, n_splits=10))
    ).sweeps
    davidson, majority = ([point.mae.mean() for point in curve] for curve in over_votes.curves)
    assert davidson[2] < davidson[0]
    assert davidson[2] < majority[2]
    methods = (Davidson(), MajorityVote())
    (over_labels,) = sweep_calibration(
        votes, labels, [20, 200], aggregators=methods, protocol=Protocol(RandomSplits(n_splits=20))
    ).sweeps
    few, many = (point.mae.mean() for point in over_labels.curves[0])
    assert many < few


def test_parts_that_fail_are_named():
    votes, labels = made(templates=("p",))
    for row in votes:
        if row["item"] == "i0" and row["sample"] > 1:
            row["vote"] = None
    few = [{**row, "judge": "few"} for row in votes if row["item"] in ("i0", "i1")]
    labels = read_labels(table(labels))
    found = sweep_calibration(
        read_votes(table(votes + few)),
        labels,
        [10, 20],
        n_votes=6,
        protocol=Protocol(RandomSplits(n_splits=2)),
    )
    (sweep,) = found.sweeps
    assert sweep.key == ("j",)
    ((key, reason),) = found.skipped
    assert key == ("few",)
    assert reason.startswith("calibrating on 10 of 2 items leaves none")
    over_votes = evaluate(
        read_votes(table(votes + few)),
        labels,
        n_votes=[4, 6],
        protocol=Protocol(RandomSplits(size=10, n_splits=2)),
    )
    assert [sweep.key for sweep in over_votes.sweeps] == [("j",)]
    assert [key for key, _ in over_votes.skipped] == [("few",)]
