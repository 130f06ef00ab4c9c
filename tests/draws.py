"""Counts and labels that several tests draw or list."""

import random

import numpy as np
import polars as pl

from btdagg import Protocol, calibrate, evaluate, majority_vote
from btdagg.evaluation import RandomSplits
from btdagg.evaluation.cells import Cell, MethodScores
from btdagg.paper.transfer import Transfer


def triples(n):
    for votes in range(n + 1):
        for minus in range(votes + 1):
            yield from ((minus, tie, votes - minus - tie) for tie in range(votes - minus + 1))


def drawn(n_items, n_labels, lead, seed=0):
    """Counts, and labels with NaN, of which so much more are for A than for B."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n_items, p=[0.4 - lead / 2, 0.2, 0.4 + lead / 2])
    seen = gold[:, None] + rng.normal(0, 2, (n_items, 8))
    votes = np.where(np.abs(seen) < 0.5, 0, np.sign(seen))
    counts = np.stack([(votes == value).sum(axis=1) for value in (-1, 0, 1)], axis=1)
    return counts, np.where(np.arange(n_items) < n_labels, gold, np.nan)


def random_splits(n_items, *, groups=None, **settings):
    return RandomSplits(**settings).draw(n_items, groups)


def transfer_of(tasks, mae):
    """A transfer with these errors by source, target and split, up to a thousandth."""

    def compared(errors):
        matrices = np.zeros((len(errors), 3, 3), dtype=int)
        matrices[:, 1, 0] = np.rint(1000 * errors)
        matrices[:, 1, 1] = 1000 - matrices[:, 1, 0]
        scores = MethodScores("m", matrices)
        return Cell((scores,), n_items=1000, n_calibration=9)

    return Transfer(tuple(tasks), tuple(tuple(map(compared, row)) for row in mae))


def comparison_of(counts, labels, aggregators=None, **options):
    """Methods on the same splits of arrays, or of the rows of items."""
    counts = counts.by_row() if hasattr(counts, "by_row") else counts
    (cell,) = evaluate(counts, labels, aggregators=aggregators, **options).cells
    return cell


def distributions(items, aggregators=None, **settings):
    """Confusion matrices on random splits, untested."""
    protocol = Protocol(RandomSplits(**settings), None)
    return comparison_of(items, items.label, aggregators, groups=items.group, protocol=protocol)


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


def mae_on(counts, labels, calibration, evaluation, prior="weak"):
    model = calibrate(counts[calibration], labels[calibration], prior=prior).model
    return [
        float(np.mean(np.abs(decide(counts[evaluation]) - labels[evaluation].astype(float))))
        for decide in (model.decide, majority_vote)
    ]
