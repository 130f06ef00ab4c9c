"""Fitted parameters over splits and their regimes; the paper's table and real votes."""

import statistics
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from btdagg import Bounds, Protocol, calibrate, majority_vote, read_labels, read_votes
from btdagg.evaluation import RandomSplits
from btdagg.methods import Calibrated
from btdagg.paper import fitted_parameters
from btdagg.votes import as_items
from draws import random_splits

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

# The paper's table: quartiles of nu, and what its text calls the task.
PAPER = {
    "WMT EN-DE": (0.70, 1.27, "Low-Correction"),
    "WMT ZH-EN": (0.37, 0.64, "Low-Correction"),
    "RB2-Precise IF": (4.0, 9.2, "Low-Correction"),
    "RB2-Factuality": (8.7, 1000, "Mismatched"),
    "RB2-Math": (317, 1000, "High-Correction"),
    "RB2-Focus": (778, 1000, "High-Correction"),
    "RB2-Safety": (217, 1000, "High-Correction"),
    "RB2-Ties": (1000, 1000, "High-Correction"),
}


@pytest.mark.parametrize(("low", "high", "regime"), PAPER.values(), ids=PAPER)
def test_the_rule_names_the_papers_tasks_as_the_paper_does(low, high, regime):
    fitted = fitted_parameters(some_items(60), protocol=Protocol(RandomSplits(size=20, n_splits=2)))
    assert replace(fitted, nu=np.array([low, low, high, high])).regime == regime


def some_items(n_items=150):
    rng = np.random.default_rng(3)
    labels = rng.integers(-1, 2, n_items)
    p = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])[labels + 1]
    return as_items([rng.multinomial(7, row) for row in p], labels, np.arange(n_items) // 3)


def test_parameters_are_those_of_every_fit():
    items, bounds = some_items(), Bounds(nu=(0.5, 2.0))
    found = fitted_parameters(
        items,
        Calibrated(alpha=0.5, bounds=bounds),
        protocol=Protocol(RandomSplits(share=0.2, n_splits=20, seed=9)),
    )
    splits = list(random_splits(150, share=0.2, n_splits=20, seed=9, groups=items.group))
    fits = [calibrate(items.pooled[c], items.label[c], alpha=0.5, bounds=bounds) for c, _ in splits]
    for place, name in enumerate(("beta", "nu", "gamma")):
        values = [getattr(fit.model, name) for fit in fits]
        np.testing.assert_array_equal(getattr(found, name), values)
        assert found.at_bounds[:, place].tolist() == [name in fit.at_bounds for fit in fits]
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        assert found.spreads[name] == pytest.approx((statistics.mean(values), low, high))
    assert found.at_bounds.any()
    assert found.regime == "Low-Correction"
    assert found.gold_tie_share == (items.label == 0).sum() / 150
    assert found.judge_tie_share == (majority_vote(items.pooled) == 0).sum() / 150


def test_real_judges_differ_in_regime_by_task(shared):
    frame = pl.read_parquet(shared / "data/rb2/votes.parquet").filter(
        template="base", temperature="default", judge="gpt-5.4"
    )
    votes = read_votes(frame.cast({pl.Categorical: pl.String}), strength="none")
    labels = read_labels(shared / "data/rb2/labels.csv")
    tasks = votes.items(labels).labelled().parts("task")
    found = {name: fitted_parameters(items) for name, items in tasks.items()}
    # As in the paper: the one nears the bound of nu, the other is far from it.
    assert found["safety"].regime == "High-Correction"
    assert found["precise-if"].regime == "Low-Correction"
    for parameters in found.values():
        assert parameters.gold_tie_share == pytest.approx(0.5, abs=0.01)
