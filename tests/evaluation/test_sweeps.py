"""Sweeps over votes and labels: against slow loops."""

import numpy as np
import pytest

from btdagg import InputError, Protocol, evaluate, read_labels, read_votes
from btdagg.evaluation import RandomSplits
from draws import balanced_counts, made, mae_on, table
from refusals import refused


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_sweep_over_labels_keeps_the_evaluation_set():
    votes, labels = made(templates=("p",))
    for row in labels:
        del row["group"]
    items = list(dict.fromkeys(vote["item"] for vote in votes))
    gold = {row["item"]: row["label"] for row in labels}
    known = np.array([gold[item] for item in items])
    found = evaluate(
        read_votes(table(votes)),
        read_labels(table(labels)),
        n_labels=[30, 10, 20],
        n_votes=[4],
        protocol=Protocol(RandomSplits(n_splits=5)),
    )
    (cells,) = found.by_key().values()
    assert [cell.point for cell in cells] == [10, 20, 30]
    assert [cell.n_calibration for cell in cells] == [10, 20, 30]
    assert [cell.n_evaluation for cell in cells] == [30, 30, 30]
    counts = balanced_counts(votes, items, 4)
    for number in range(5):
        # The order of the items of split k, as it is documented to come from seed and k alone.
        order = np.random.default_rng([0, number]).permutation(60)
        for cell in cells:
            size = cell.n_labels
            wanted = mae_on(counts, known, np.sort(order[:size]), order[30:])
            got = [method.mae[number] for method in cell.methods]
            assert got == pytest.approx(wanted, abs=1e-12)
    # What learns nothing does not change with the number of labels.
    assert len({tuple(cell.methods[1].mae) for cell in cells}) == 1


def test_sweeps_say_what_is_wrong():
    votes, labels = made(templates=("p",))
    votes, labels = read_votes(table(votes)), read_labels(table(labels))
    with refused("n_votes", got=4):
        evaluate(votes, labels, n_votes=4)
    with refused("n_labels", got=0) as error:
        evaluate(votes, labels, n_labels=[10, 0])
    assert error.value.expected == "an integer of at least 1"
    with pytest.raises(InputError, match=r"^calibrating on 60 of 60 items leaves none"):
        evaluate(votes, labels, n_labels=[10, 60])
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'protocl'$"):
        evaluate(votes, labels, protocl=1)
    with refused("labels", expected="read_labels"):
        evaluate(votes, np.zeros(60))


def test_parts_that_fail_are_named():
    votes, labels = made(templates=("p",))
    for row in votes:
        if row["item"] == "i0" and row["sample"] > 1:
            row["vote"] = None
    few = [{**row, "judge": "few"} for row in votes if row["item"] in ("i0", "i1")]
    labels = read_labels(table(labels))
    found = evaluate(
        read_votes(table(votes + few)),
        labels,
        n_labels=[10, 20],
        n_votes=[6],
        protocol=Protocol(RandomSplits(n_splits=2)),
    )
    assert list(found.by_key()) == [("j",)]
    ((key, reason),) = found.skipped
    assert key == ("few",)
    assert reason.startswith("calibrating on 10 of 2 items leaves none")
