"""Forecasts of jobs on RewardBench 2 against what came, before the first label and with fifty.

Each judge and task in turn is the new one. Before the first label its forecast is from the other
tasks of every judge; with labels it is the plan from a pilot of fifty. What came is the error on
the items without a label, and the votes of the lossless rule in the order in which they were cast.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import btdagg
from btdagg import online

N, PILOT, SIZES, EXCESS = 8, 50, (0, 10, 50), (25, 50, 100)


def cells_of(data):
    """Votes in their order, (items, 8), and labels of every judge and task."""
    text = pl.col("item", "task", "judge", "template", "temperature").cast(pl.String)
    votes = pl.read_parquet(data / "rb2/votes.parquet").with_columns(text)
    votes = votes.filter(template="base", temperature="default").drop_nulls("vote")
    labels = pl.read_csv(data / "rb2/labels.csv").select("item", "label")
    found = {}
    for key, rows in sorted(votes.group_by("judge", "task")):
        wide = rows.pivot(on="sample", index="item", values="vote").drop_nulls().sort("item")
        wide = wide.join(labels, on="item", maintain_order="left")
        found[key] = wide.select(str(k) for k in range(N)).to_numpy(), wide["label"].to_numpy()
    return found


def counts_of(votes):
    return np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)


def what_came(votes, labels, known, prior):
    """Error and votes of an item on the rest of what is calibrated on `known`, or on all."""
    counts, rest = counts_of(votes), np.arange(len(labels))
    if known is None:
        known = rest
    else:
        rest = np.setdiff1d(rest, known)
    pair = (counts[known], labels[known]) if len(known) else (counts, None)
    model = btdagg.calibrate(*pair, prior=prior).model
    followed = online.StoppingRule.lossless(model, N).follow(votes[rest])
    return np.abs(followed.labels - labels[rest]).mean(), followed.n_votes.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="little data, to show that it runs")
    parser.add_argument("--draws", type=int, default=4, help="label sets of each judge and task")
    given = parser.parse_args()
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    if not data.is_dir():
        print(f"no public votes in {data}")
        return
    warnings.simplefilter("ignore")
    n_draws = 1 if given.smoke else given.draws
    cells = cells_of(data)
    ahead, inside = {size: [] for size in SIZES}, []
    pilots, held, excess = ({None: [], "weak": []} for _ in range(3))
    for place, (key, (votes, labels)) in enumerate(
        list(cells.items())[: 2 if given.smoke else None]
    ):
        others = {" ".join(k): (counts_of(v), y) for k, (v, y) in cells.items() if k[1] != key[1]}
        prior = btdagg.fit_prior(others)
        found = online.forecast(
            prior, n_items=1000, n_votes=[N], n_labels=SIZES, n_draws=1 if given.smoke else 2
        )
        rng = np.random.default_rng([7, place])
        orders = [rng.permutation(len(labels)) for _ in range(n_draws)]
        sets = [rng.permutation(len(labels)) for _ in range(5 * n_draws)]
        for row in found.rows:
            got = [what_came(votes, labels, o[: row.n_labels], prior) for o in orders]
            error, used = np.mean(got, axis=0)
            ahead[row.n_labels].append((row.mae, error, 1 - row.votes / N, 1 - used / N))
            inside.append(row.low <= error <= row.high)
        for prior in pilots:
            least = what_came(votes, labels, None, prior)[0]
            got = [
                np.mean([what_came(votes, labels, o[:k], prior)[0] for o in sets]) - least
                for k in EXCESS
            ]
            for order in orders:
                known = order[:PILOT]
                pair = counts_of(votes[known]), labels[known]
                plan = online.plan(*pair, n_items=1000, n_votes=[N], n_labels=EXCESS, prior=prior)
                (row,) = (row for row in plan.budgets if row.rule == "lossless")
                error, used = what_came(votes, labels, known, prior)
                pilots[prior].append((row.mae, error, 1 - row.votes / N, 1 - used / N))
                held[prior].append(row.low <= error <= row.high)
                excess[prior].append((got, [of for _, of in plan.labels]))
    print("| forecast | MAE forecast | came | difference | savings forecast | came | difference |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for size, rows in ahead.items():
        show(f"before the first label: {size} labels", np.array(rows))
    for prior, rows in pilots.items():
        means = np.array(rows).reshape(-1, n_draws, 4).mean(axis=1)
        show(f"plan of a pilot of {PILOT}, prior {prior}", means)
    for prior, rows in excess.items():
        got, planned = np.mean(rows, axis=0).round(4)
        print(f"\nprior {prior}: the interval held {np.mean(held[prior]):.0%}; excess of {EXCESS} ")
        print(f"labels {planned}, came {got}")
    print(f"\nwithin the range of the neighbours: {np.mean(inside):.0%}")


def show(name, rows):
    error, saved = rows[:, 0] - rows[:, 1], rows[:, 2] - rows[:, 3]
    spread = [np.std(x, ddof=1) / np.sqrt(len(x)) for x in (error, saved)]
    mean = rows.mean(axis=0)
    print(
        f"| {name} | {mean[0]:.3f} | {mean[1]:.3f} | {error.mean():+.3f} ({spread[0]:.3f}) | "
        f"{mean[2]:.1%} | {mean[3]:.1%} | {saved.mean():+.1%} ({spread[1]:.1%}) |"
    )


if __name__ == "__main__":
    main()
