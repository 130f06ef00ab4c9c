"""Every protocol of the evaluation to the last digit: numbers in pins.json, written once.

What is counted (errors, labels, votes) is compared exactly. What goes through exponentials (fitted
parameters, p-values, intervals) may differ in the last bits on another machine.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from btdagg import read_labels, read_votes
from btdagg.evaluation import (
    PAPER_TEST,
    Protocol,
    RandomSplits,
    compare,
    evaluate,
    labelled_tasks,
    positional_bias,
    sweep_calibration,
)
from btdagg.evaluation.scores import averages, lines
from btdagg.methods import Davidson, MajorityVote, by_name
from btdagg.paper import (
    ablate,
    compare_orders,
    fitted_parameters,
    leave_one_rater_out,
    read_ratings,
    tie_rates,
    transfer_matrix,
)
from draws import distributions

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

PINS = json.loads((Path(__file__).parent / "pins.json").read_text())
EVERY = ("davidson", "majority", "median", "soft-sc-mean", "soft-sc-product", "ci-sc", "gsa")
PAIR = (Davidson(), MajorityVote())


# What is kept of each result


def of_comparison(found):
    return {
        "n": [found.n_items, found.n_calibration, found.gold_tie_share],
        "mae": {method.name: method.mae.tolist() for method in found.methods},
        "accuracy": {method.name: method.accuracy.tolist() for method in found.methods},
        "tie_share": {
            method.name: (m.sum(axis=1)[:, 1] / m.sum(axis=(1, 2))).tolist()
            for method in found.methods
            for m in [method.matrices]
        },
        "constant": {
            method.name: ((method.matrices.sum(axis=1) > 0).sum(axis=1) == 1).tolist()
            for method in found.methods
        },
    }


def of_ranking(found):
    return {
        "pvalues": [
            found.tested.pvalues["mae"].tolist(),
            found.tested.pvalues["accuracy"].tolist(),
        ],
        "ranks": [
            ranking.ranks.tolist() for ranking in (found.mae_ranking, found.accuracy_ranking)
        ],
        "tied": found.mae_ranking.tied.tolist(),
    }


def of_evaluation(found):
    return {
        "by": list(found.by),
        "skipped": [[list(key), reason] for key, reason in found.skipped],
        "left out": [found.n_unlabelled, found.n_without_votes],
        "cells": [
            {
                "key": [*cell.key, cell.n_votes],
                "left out": [cell.n_missing, cell.n_empty],
                **of_comparison(cell.comparison),
                **of_ranking(cell.comparison),
                "fitted": None if cell.fitted is None else of_model(cell.fitted.calibration.model),
            }
            for cell in found.cells
        ],
        "lines": [line.as_dict(found.by) for line in lines(found)],
        "averages": [line.as_dict(()) for line in averages(found)],
        "remarks": list(found.remarks),
    }


def of_model(model):
    return [model.beta, model.eta0, model.gamma]


def of_sweeps(found):
    return {
        "by": list(found.by),
        "skipped": [[list(key), reason] for key, reason in found.skipped],
        "sweeps": [
            {
                "key": list(sweep.key),
                "points": list(sweep.points),
                "n": [
                    sweep.cells[0].comparison.n_items,
                    [cell.comparison.n_calibration for cell in sweep.cells],
                    [cell.comparison.n_evaluation for cell in sweep.cells],
                ],
                "mae": {
                    curve[0].name: [point.mae.tolist() for point in curve] for curve in sweep.curves
                },
                "accuracy": {
                    curve[0].name: [point.accuracy.tolist() for point in curve]
                    for curve in sweep.curves
                },
            }
            for sweep in found.sweeps
        ],
    }


def of_ablation(found):
    return {
        "column": found.column,
        "by": list(found.by),
        "skipped": [[list(key), reason] for key, reason in found.skipped],
        "left out": [[list(key), number] for key, number in found.n_left_out.items()],
        "cells": [
            {
                "key": [*cell.key, cell.value, cell.n_votes],
                "left out": [cell.n_missing],
                **of_comparison(cell.comparison),
            }
            for cell in found.cells
        ],
    }


def of_orders(found):
    return {
        "by": list(found.by),
        "skipped": [[list(key), reason] for key, reason in found.skipped],
        "comparisons": [
            {"key": [*key, cells[0].n_votes, found.n_left_out[key]]}
            | {cell.value: of_comparison(cell.comparison) for cell in cells}
            for key, cells in found.by_key().items()
        ],
    }


def of_transfer(found):
    return {
        "tasks": list(found.tasks),
        "mae": found.mae.tolist(),
        "mean": found.mean_mae.tolist(),
        "change": found.change.tolist(),
    }


def of_parameters(found):
    return {
        "parameters": [found.beta.tolist(), found.nu.tolist(), found.gamma.tolist()],
        "spreads": {name: list(spread) for name, spread in found.spreads.items()},
        "at_bounds": found.at_bounds.tolist(),
        "ties": [found.gold_tie_share, found.judge_tie_share],
        "regime": str(found.regime),
    }


def of_distributions(found):
    return {
        "gold": found.gold.tolist(),
        "methods": {
            method.name: {
                "matrices": method.matrices.tolist(),
                "counts": method.counts.tolist(),
                "percentages": method.percentages.tolist(),
                "predicted": method.predicted.tolist(),
            }
            for method in found.methods
        },
    }


def of_raters(found):
    return {
        "wins": [found.n_wins, found.n_wins_by_mae],
        "skipped": [[rater, reason] for rater, reason in found.skipped],
        "raters": [
            {
                "rater": one.rater,
                "n": [one.n_items, one.n_alone, one.n_shared, one.n_without_votes],
                "scores": [one.accuracy, one.mae],
                "judge": None
                if one.judge is None
                else {
                    "accuracy": one.judge.accuracy.tolist(),
                    "mae": one.judge.mae.tolist(),
                    "human": [
                        one.compared.methods[1].accuracy.tolist(),
                        one.compared.methods[1].mae.tolist(),
                    ],
                    "wins": [one.wins, one.wins_by_mae],
                    "intervals": [list(one.accuracy_gain), list(one.mae_gain)],
                },
            }
            for one in found.raters
        ],
    }


def of_ties(found):
    return {
        "names": [list(found.row_names), list(found.column_names)],
        "counts": [
            part.tolist() for part in (found.ties, found.totals, found.n_items, found.n_missing)
        ],
    }


def of_bias(found):
    return [
        {
            "key": [*one.key, one.setting],
            "counts": [one.first, one.second, one.tie, one.n_missing, one.n_ab, one.n_ba],
            "n_items": one.n_items,
            "bias": one.bias,
            "intervals": None if one.interval is None else list(one.interval),
        }
        for one in found
    ]


# Simulated votes: prompts of three items, missing votes, two of everything that can be varied


def simulated():
    draw = np.random.default_rng(11)
    votes, labels = [], []
    for task, n_items in (("s", 48), ("t", 61), ("alike", 12)):
        for number in range(n_items):
            item, label = f"{task}{number}", int(draw.choice([-1, 0, 0, 1]))
            label = 1 if task == "alike" else label
            labels.append((item, task, f"{task}{number // 3}", label))
            decided = int(draw.choice([label, 0]))
            for judge, tilt in (("j", 0.1), ("k", 0.4)):
                for template in "pq":
                    for order in ("AB", "BA"):
                        for sample in range(3):
                            own = int(draw.choice([label, -1, 0, 1]))
                            lean = 1 if order == "AB" else -1
                            vote = lean if draw.random() < tilt else own
                            vote = None if draw.random() < 0.02 else vote
                            row = (item, task, judge, template, order, sample, vote)
                            votes.append((*row, float(draw.random()), decided, decided))
    of_votes = ["item", "task", "judge", "template", "order", "sample", "vote", "confidence"]
    frame = pl.DataFrame(votes, schema=[*of_votes, "gsa", "gsa_4"], orient="row")
    return (
        read_votes(frame.filter((pl.col("item") != "s3") | (pl.col("template") != "q"))),
        read_labels(pl.DataFrame(labels, schema=["item", "task", "group", "label"], orient="row")),
    )


def ratings_of(labels):
    draw = np.random.default_rng(12)
    rows = [
        (item, rater, int(draw.choice([label, label, 0])), group)
        for item, group, label in labels.frame.select("item", "group", "label").iter_rows()
        for rater in draw.permutation(["r1", "r2", "r3", "r4"])[: draw.integers(1, 5)].tolist()
    ]
    schema = ["item", "rater", "vote", "doc"]
    return read_ratings(pl.DataFrame(rows, schema=schema, orient="row"))


@pytest.fixture(scope="module")
def made():
    return simulated()


def arrays(votes, labels):
    items = labelled_tasks(votes.filter({"judge": "j", "template": "p"}), labels)["t"]
    return items.evidence, items.labels, items.groups


def pinned_compare(votes, labels):
    counts, gold, groups = arrays(votes, labels)
    found = compare(
        counts,
        gold,
        PAIR,
        groups=groups,
        protocol=Protocol(RandomSplits(size=9, n_splits=5, seed=2)),
    )
    alone = compare(counts, gold, PAIR, protocol=Protocol(RandomSplits(share=0.2, n_splits=4)))
    paper = compare(
        counts, gold, PAIR, groups=groups, protocol=Protocol(RandomSplits(n_splits=4), PAPER_TEST)
    )
    return [{**of_comparison(one), **of_ranking(one)} for one in (found, alone, paper)]


def pinned_evaluate(votes, labels):
    return of_evaluation(
        evaluate(
            votes.filter({"template": "p"}),
            labels,
            n_votes=[2, 4],
            aggregators=by_name([name for name in EVERY if name != "gsa"]),
            protocol=Protocol(RandomSplits(size=12, n_splits=4, seed=1)),
        )
    )


def pinned_evaluate_all_votes(votes, labels):
    votes = votes.filter({"template": "p", "judge": "k"})
    return of_evaluation(
        evaluate(
            votes, labels, aggregators=by_name(EVERY), protocol=Protocol(RandomSplits(n_splits=4))
        )
    )


def pinned_sweep_votes(votes, labels):
    votes = votes.filter({"template": "p"})
    return of_sweeps(
        evaluate(
            votes,
            labels,
            n_votes=[2, 4, 6],
            protocol=Protocol(RandomSplits(size=10, n_splits=4, seed=3), None),
        )
    )


def pinned_sweep_calibration(votes, labels):
    votes = votes.filter({"template": "p", "task": ["s", "t"]})
    found = sweep_calibration(
        votes, labels, [20, 5, 10], n_votes=4, protocol=Protocol(RandomSplits(n_splits=4, seed=3))
    )
    return of_sweeps(found)


def pinned_ablate(votes, labels):
    return of_ablation(
        ablate(
            votes,
            labels,
            "template",
            n_votes=[4],
            protocol=Protocol(RandomSplits(size=10, n_splits=4)),
        )
    )


def pinned_compare_orders(votes, labels):
    votes = votes.filter({"template": "p"})
    return of_orders(
        compare_orders(votes, labels, 2, protocol=Protocol(RandomSplits(size=10, n_splits=4)))
    )


def pinned_transfer_matrix(votes, labels):
    votes = votes.filter({"template": "p", "judge": "j"})
    return of_transfer(
        transfer_matrix(
            labelled_tasks(votes, labels),
            protocol=Protocol(RandomSplits(size=8, n_splits=4, seed=5)),
        )
    )


def pinned_fitted_parameters(votes, labels):
    tasks = labelled_tasks(votes.filter({"judge": "j"}), labels)
    return {name: of_parameters(fitted_parameters(items)) for name, items in tasks.items()}


def pinned_label_distributions(votes, labels):
    tasks = labelled_tasks(votes.filter({"judge": "k"}), labels, n_votes=4)
    del tasks["alike"]  # rows without an item have no percentages
    return {
        name: of_distributions(distributions(items, share=0.2, n_splits=3))
        for name, items in tasks.items()
    }


def pinned_leave_one_rater_out(votes, labels):
    ratings, votes = ratings_of(labels), votes.filter({"judge": "j", "template": "q"})
    return [
        of_raters(found)
        for found in (
            leave_one_rater_out(ratings),
            leave_one_rater_out(ratings, shared="drop"),
            leave_one_rater_out(
                ratings, votes, group="doc", protocol=Protocol(RandomSplits(size=20, n_splits=4))
            ),
            leave_one_rater_out(
                ratings,
                votes,
                *by_name(["ci-sc"]),
                n_votes=4,
                protocol=Protocol(RandomSplits(share=0.3, n_splits=4, seed=8)),
            ),
        )
    ]


def pinned_tie_rates(votes, labels):
    return [of_ties(tie_rates(votes))]


def pinned_positional_bias(votes, labels):
    return [
        *of_bias(positional_bias(votes, setting="template")),
        *of_bias(positional_bias(votes, gold_ties=labels)),
    ]


# Real votes


def rb2(shared):
    columns = {"judge": "gpt-5.4", "task": "precise-if"}
    frame = pl.read_parquet(shared / "data/rb2/votes.parquet").filter(**columns)
    votes = read_votes(frame.cast({pl.Categorical: pl.String}))
    labels = read_labels(shared / "data/rb2/labels.csv")
    plain = votes.filter({"template": "base", "temperature": "default"})
    both = read_votes(
        pl.read_parquet(shared / "data/rb2/votes.parquet")
        .filter(template="base", temperature="default", judge="gpt-5.4")
        .filter(pl.col("task").is_in(["precise-if", "math"]))
        .cast({pl.Categorical: pl.String})
    )
    tasks = labelled_tasks(both, labels)
    names = ("davidson", "majority", "median", "isotonic", "davidson-mae", "ci-sc")
    margin = {"aggregators": by_name(names), "confidence": "margin"}
    return {
        "evaluate": of_evaluation(
            evaluate(
                plain, labels, n_votes=[8], **margin, protocol=Protocol(RandomSplits(n_splits=3))
            )
        ),
        "sweep_votes": of_sweeps(
            evaluate(
                both, labels, n_votes=[2, 8], protocol=Protocol(RandomSplits(n_splits=3), None)
            )
        ),
        "sweep_calibration": of_sweeps(
            sweep_calibration(plain, labels, [20, 60], protocol=Protocol(RandomSplits(n_splits=3)))
        ),
        "ablate": of_ablation(
            ablate(
                votes.filter({"template": "base"}),
                labels,
                "temperature",
                protocol=Protocol(RandomSplits(n_splits=3)),
            )
        ),
        "transfer_matrix": of_transfer(
            transfer_matrix(tasks, protocol=Protocol(RandomSplits(n_splits=3)))
        ),
        "fitted_parameters": of_parameters(fitted_parameters(tasks["math"])),
        "label_distributions": of_distributions(distributions(tasks["math"], n_splits=3)),
        "tie_rates": of_ties(tie_rates(votes, "template", "temperature")),
    }


def vicuna80(shared):
    votes = read_votes(shared / "data/vicuna80/votes.csv")
    wide = pl.read_csv(shared / "data/vicuna80/labels.csv").with_columns(
        group=pl.col("item").str.slice(0, 11)
    )
    labels = read_labels(wide.select("item", "label", "group"))
    humans = ["human1", "human2", "human3"]
    long = wide.unpivot(humans, index=["item", "group"], variable_name="rater", value_name="vote")
    two = votes.filter({"judge": ["gpt4", "claude"]})
    return {
        "evaluate": of_evaluation(
            evaluate(two, labels, protocol=Protocol(RandomSplits(n_splits=3)))
        ),
        "leave_one_rater_out": of_raters(
            leave_one_rater_out(
                read_ratings(long),
                votes.filter({"judge": "gpt4"}),
                group="group",
                protocol=Protocol(RandomSplits(n_splits=3)),
            )
        ),
        "positional_bias": of_bias(positional_bias(votes)),
        "tie_rates": of_ties(tie_rates(votes, "judge", "order", gold_ties=labels)),
    }


def wmt23(shared):
    ratings = read_ratings(shared / "data/wmt23/ratings_ende.csv")
    return {
        "tie": of_raters(leave_one_rater_out(ratings)),
        "drop": of_raters(leave_one_rater_out(ratings, shared="drop")),
    }


# Comparing


def assert_equal(found, wanted, where=""):
    """The same values in the same order; what is no count up to the last bits."""
    if isinstance(wanted, dict):
        assert list(found) == list(wanted), where
        for name, value in wanted.items():
            assert_equal(found[name], value, f"{where}.{name}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_equal(one, other, f"{where}[{place}]")
    elif isinstance(wanted, float) and any(word in where for word in ROUNDED):
        assert found == pytest.approx(wanted, rel=1e-12, abs=0), where
    else:
        assert found == wanted, where


ROUNDED = (".pvalues", ".parameters", ".spreads", ".fitted", ".intervals", ".mean", ".change",
           "_low", "_high", "_pvalue")  # fmt: skip
SIMULATED = {name[7:]: made for name, made in globals().items() if name.startswith("pinned_")}


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_votes_have_the_pinned_numbers(made, name):
    assert_equal(json.loads(json.dumps(SIMULATED[name](*made))), PINS["simulated"][name])


@pytest.mark.parametrize("data", [rb2, vicuna80, wmt23], ids=lambda data: data.__name__)
def test_real_votes_have_the_pinned_numbers(shared, data):
    assert_equal(json.loads(json.dumps(data(shared))), PINS[data.__name__])
