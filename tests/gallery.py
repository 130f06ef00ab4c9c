"""One of each result that users get, of small simulated data."""

import warnings

import numpy as np
import polars as pl

import btdagg
from btdagg import datasets, judge, online, paper
from btdagg.methods import by_name
from btdagg.methods.registry import AGGREGATORS

N = 240


def simulated(n_items=N, n_votes=8):
    """Counts and labels."""
    draw = np.random.default_rng(3)
    labels = draw.integers(-1, 2, n_items)
    chances = np.array([[0.6, 0.3, 0.1], [0.15, 0.45, 0.4], [0.02, 0.18, 0.8]])
    return np.array([draw.multinomial(n_votes, chances[one + 1]) for one in labels]), labels


def tables_of(counts, labels, name="q"):
    """Votes and labels of the same items as tables."""
    item = [f"{name}{number}" for number in range(len(labels))]
    votes = {
        "item": np.repeat(item, counts.sum(axis=1)),
        "vote": np.concatenate([np.repeat([-1, 0, 1], row) for row in counts]),
    }
    votes["sample"] = np.concatenate([np.arange(n) for n in counts.sum(axis=1)])
    frame = pl.DataFrame(votes).with_columns(judge=pl.lit("j"), template=pl.lit("base"))
    return btdagg.read_votes(frame), btdagg.read_labels(
        pl.DataFrame({"item": item, "label": labels})
    )


def gallery():
    """Results by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
        return _gallery()


def _gallery():
    counts, labels = simulated()
    votes, gold = tables_of(counts, labels)
    partly = np.where(np.arange(N) % 4 == 0, labels, np.nan)
    calibration = btdagg.calibrate(counts, labels, provenance=btdagg.votes.Provenance(judge="j"))
    model = calibration.model
    few = btdagg.calibrate(counts[:40], labels[:40], prior="weak")
    prior = btdagg.fit_prior({"s": (counts, labels), "t": (counts[:90], labels[:90])})
    panel = btdagg.calibrate_panel(np.stack([counts, counts[:, ::-1]], axis=1), labels)
    refits = btdagg.bootstrap(counts, labels, n_refits=20)
    short = btdagg.Protocol(btdagg.evaluation.RandomSplits(n_splits=3, size=40))
    few_methods = by_name(["davidson", "majority"])
    compared = btdagg.evaluate(counts, labels, aggregators=few_methods).cells[0]
    scores = btdagg.evaluate(votes, gold, n_votes=[4, 8], aggregators=few_methods, protocol=short)
    chances = online.fit_votes(counts, labels)
    rule = online.StoppingRule.risk_bounded(model, 8, chances, epsilon=0.05)
    items = btdagg.votes.as_items(counts, labels)
    monitor = online.DriftMonitor(counts)
    running = online.OnlineTally(rule=rule)
    running.add(["x", "y"], [1, 0], [0, 0])
    ones = np.ones((N, 3))
    by = np.repeat(["x", "y"], N // 2)
    return {
        "model": model,
        "calibration": calibration,
        "with a prior": few,
        "stability": refits.stability(counts),
        "features": model.features(counts),
        "by error": btdagg.paper.calibrate_by_mae(counts[:20], labels[:20]),
        "prior": prior,
        "panel": panel.model,
        "panel's calibration": panel,
        "bootstrap": refits,
        "estimates": btdagg.estimate(counts, partly),
        "estimates by": (parted := btdagg.estimate(counts, partly, by=by)),
        "certificate": btdagg.certify(counts, partly),
        "difference": parted.differences["x", "y"]["A"],
        "systems": btdagg.estimate_systems(
            counts, partly, np.arange(N) % 3, (np.arange(N) + 1) % 3
        ),
        "comparison": compared,
        "new items": compared.new_items,
        "ranking": compared.rankings["mae"],
        "random splits": btdagg.evaluate(counts, labels, aggregators=few_methods, protocol=short),
        "scores": scores,
        "scores at one number": btdagg.evaluate(
            votes, gold, aggregators=few_methods, protocol=short
        ),
        "labels swept": btdagg.evaluate(
            votes, gold, n_labels=[20, 40], aggregators=few_methods, protocol=short
        ),
        "votes": votes,
        "labels": gold,
        "labelled votes": votes.labelled(gold),
        "panel's counts": votes.items(panel="judge"),
        "items": items,
        "confidences": btdagg.votes.Confidences(ones, ones, np.log(ones)),
        "parameters": paper.fitted_parameters(items, protocol=short),
        "transfer": paper.transfer_matrix({"s": items, "t": items}, protocol=short),
        "ties": paper.tie_rates(votes),
        "votes expected": chances,
        "rule": rule,
        "lossless rule": online.StoppingRule.lossless(model, 8),
        "stopped": rule.follow(np.tile([1, 0, -1, 1, 1, 0, 0, 1], (N, 1))),
        "plan": online.plan(counts, labels, n_items=900, n_votes=[2, 4], n_labels=[25, 50]),
        "forecast": online.forecast(
            prior, n_items=900, n_votes=[4, 8], n_labels=[20, 40], n_draws=1
        ),
        "monitor": monitor,
        "drift": monitor.observe(counts),
        "running tally": running,
        "settled": running.settle(),
        "simulated": datasets.simulate("wmt-en-de", 50, seed=0),
        "test": btdagg.paired_permutation_test(np.abs(labels), np.abs(labels[::-1])),
        "template": judge.get_template("translation"),
        **{f"method {name}": make() for name, make in AGGREGATORS.items()},
    }
