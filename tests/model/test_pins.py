"""What a seed decides, to the last digit: numbers on real votes in pins.json, written once.

Loops and enumerations elsewhere check what is done with the splits, signs and draws. These numbers
say that the same seed still gives the same ones.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol, evaluate, read_labels, read_votes
from btdagg.evaluation import PAPER_TEST, RandomSplits
from btdagg.methods import by_name
from btdagg.methods.registry import PAPERS
from btdagg.online import forecast, plan
from btdagg.paper import leave_one_rater_out, read_ratings, transfer_matrix

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

PINS = json.loads((Path(__file__).parent / "pins.json").read_text())
METHODS = by_name(("davidson", "majority", "median", "isotonic", "davidson-mae", "ci-sc"))


@pytest.fixture(scope="module")
def real(shared):
    """Votes of a judge of two tasks, and labels."""
    rows = pl.read_parquet(shared / "data/rb2/votes.parquet").filter(
        pl.col("task").is_in(["precise-if", "math"]),
        template="base",
        temperature="default",
        judge="gpt-5.4",
    )
    votes = read_votes(rows.cast({pl.Categorical: pl.String}), strength="none")
    return votes, read_labels(shared / "data/rb2/labels.csv")


def scores(votes, labels):
    protocol = Protocol(RandomSplits(n_splits=3))
    paper = Protocol(RandomSplits(share=0.2, n_splits=3, seed=4), PAPER_TEST)
    of_margin = {"aggregators": METHODS, "confidence": "margin"}
    results = [
        evaluate(votes, labels, n_votes=[8], protocol=protocol, **of_margin),
        evaluate(votes, labels, n_votes=[2, 4], protocol=paper, aggregators=by_name(PAPERS)),
    ]
    plain = [result.as_dict() for result in results]
    every = [of["lines"] + of["averages"] for of in plain]
    return [
        [{k: v for k, v in line.items() if k != "n_calibration"} for line in of] for of in every
    ]


def curves(votes, labels):
    protocol = Protocol(RandomSplits(n_splits=3))
    papers = by_name(PAPERS)
    swept = evaluate(votes, labels, n_labels=[20, 60], protocol=protocol, aggregators=papers)
    tasks = votes.items(labels).labelled().parts("task")
    moved = transfer_matrix(tasks, protocol=protocol)
    of_sweeps = [
        [
            [method.mae.tolist() for method in curve]
            for curve in zip(*(cell.methods for cell in cells), strict=True)
        ]
        for cells in swept.by_key().values()
    ]
    return [*of_sweeps, moved.mae.tolist()]


def texts(votes, labels):
    """What refits, plans and forecasts print."""
    items = votes.filter({"task": "math"}).labelled(labels)
    counts, gold = items.counts[:60], items.labels[:60]
    prior = btdagg.fit_prior({"a": (counts, gold), "b": (items.counts[60:], items.labels[60:])})
    groups = np.arange(60) // 2
    return [
        str(btdagg.bootstrap(counts, gold, n_refits=200, groups=groups, seed=3, prior=None)),
        str(btdagg.bootstrap(counts, gold, n_refits=20, prior=prior)),
        str(plan(counts, gold, n_items=1000, n_votes=[4, 8], n_labels=[25], seed=2, prior=None)),
        str(forecast(prior, n_items=1000, n_labels=[10])),
        str(btdagg.calibrate(counts, gold, prior=prior).posterior),
    ]


def equal(value, expected):
    if isinstance(expected, dict):
        return list(value) == list(expected) and all(equal(value[k], expected[k]) for k in value)
    if isinstance(expected, list):
        return len(value) == len(expected) and all(map(equal, value, expected))
    if isinstance(expected, float):
        # Exponentials differ in the last bits on other machines.
        return value == pytest.approx(expected, rel=1e-12, abs=0)
    return value == expected


@pytest.mark.parametrize("made", [scores, curves, texts], ids=lambda made: made.__name__)
def test_real_votes_have_the_pinned_numbers(real, made):
    assert equal(json.loads(json.dumps(made(*real))), PINS[made.__name__])


def test_raters_have_the_pinned_numbers(shared):
    votes = read_votes(shared / "data/vicuna80/votes.csv").filter({"judge": "gpt4"})
    wide = pl.read_csv(shared / "data/vicuna80/labels.csv")
    wide = wide.with_columns(group=pl.col("item").str.slice(0, 11))
    humans = ["human1", "human2", "human3"]
    long = wide.unpivot(humans, index=["item", "group"], variable_name="rater", value_name="vote")
    protocol = Protocol(RandomSplits(n_splits=3))
    result = leave_one_rater_out(read_ratings(long), votes, group="group", protocol=protocol)
    judged = [
        [*r.compared.methods[0].mae, *r.compared.methods[1].mae, *r.mae_gain]
        for r in result.raters
        if r.compared
    ]
    assert equal([[float(x) for x in row] for row in judged], PINS["raters"])
