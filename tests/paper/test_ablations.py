"""Ablations against slow loops."""

import numpy as np
import pytest

from btdagg import InputError, Protocol, read_labels, read_votes
from btdagg.evaluation import RandomSplits
from btdagg.paper import ablate
from draws import balanced_counts, made, mae_on, random_splits, table
from refusals import refused


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
        assert cell.n_items == 58
        for number, split in enumerate(random_splits(58, size=12, n_splits=3, groups=groups)):
            wanted = mae_on(counts, known, *split, prior=None)
            got = [method.mae[number] for method in cell.methods]
            assert got == pytest.approx(wanted, abs=1e-12)


def test_an_ablation_refuses_what_differs_in_more_than_one_thing():
    votes, labels = made()
    rows = [{**v, "temperature": 0.1 if v["template"] == "p" else 0.9} for v in votes]
    votes, labels = read_votes(table(rows)), read_labels(table(labels))
    with pytest.raises(
        InputError, match="differ in template; filter by template, or compare by template"
    ):
        ablate(votes, labels, "temperature")
    with pytest.raises(
        InputError, match="by contains 'template', the column whose values are compared"
    ):
        ablate(votes, labels, "template", by=["template"])
    with pytest.raises(InputError, match=r"no column 'prompt'"):
        ablate(votes, labels, "prompt")
    apart = table([{**r, "item": r["item"] + r["template"]} for r in rows]).drop("temperature")
    with pytest.raises(InputError, match="no item has 1 or more votes for every template"):
        ablate(read_votes(apart), labels, "template")
    counts = read_votes({"item": [1], "minus": [1], "tie": [0], "plus": [0]})
    with refused("votes", got="a table of counts"):
        ablate(counts, labels, "template")
