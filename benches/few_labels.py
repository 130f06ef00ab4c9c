"""Few labels on public votes: the paper's fit, the weak prior, neighbours, and plain peers.

Tables of mean absolute error over random calibration sets of judges and tasks, with neighbours of
the same family and of another; warnings; then, on simulated judges, coverage and width of the
intervals, stable decisions, and time, beside the bootstrap. BTDAGG_SHARED names the folder of the
public votes; without it only the simulated part is shown.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import btdagg
from btdagg.datasets.simulation import REGIMES, simulate
from btdagg.methods import Isotonic, MajorityVote, Threshold
from btdagg.model.intervals import ParameterInterval

SIZES = (0, 5, 10, 20, 50, 100, 200)
COLUMNS = ("majority", "fit", "isotonic", "threshold", "weak", "own", "foreign")


def cells_of(votes, labels, by):
    """Counts and labels of every task and judge, by name."""
    counts = votes.group_by(*by, "item").agg(
        *(
            (pl.col("vote") == value).sum().alias(name)
            for value, name in ((-1, "m"), (0, "t"), (1, "p"))
        )
    )
    joined = counts.join(labels.select("item", "label"), on="item").sort(*by, "item")
    return {
        key: (part.select("m", "t", "p").to_numpy().astype(np.int64), part["label"].to_numpy())
        for key, part in joined.partition_by(*by, as_dict=True).items()
    }


def families(data):
    """Cells by family, and of each cell those that are its neighbours."""
    votes = pl.read_parquet(data / "rb2/votes.parquet")
    votes = votes.with_columns(pl.col("item", "judge", "task", "template", "temperature").cast(str))
    votes = votes.filter(template="base", temperature="default")
    rb2 = cells_of(votes, pl.read_csv(data / "rb2/labels.csv"), ["judge", "task"])
    votes = pl.read_csv(data / "vicuna80/votes.csv")
    labels = pl.read_csv(data / "vicuna80/labels.csv")
    vicuna = cells_of(votes, labels, ["judge"])
    pooled = cells_of(votes.with_columns(judge=pl.lit("pooled")), labels, ["judge"])
    vicuna |= pooled
    return {
        "rb2": (rb2, lambda a, b: a[1] != b[1]),
        "vicuna80": (vicuna, lambda a, b: a != b),
    }


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return btdagg.calibrate(*args, **options)


def scores(counts, labels, known, own, foreign):
    """Absolute errors on the rest of each method calibrated on `known`, and what was warned."""
    rest = np.setdiff1d(np.arange(len(labels)), known)
    gold, votes, on = counts[known], counts[rest], labels[known]
    found = {"majority": MajorityVote().decide(votes)}
    warned = {}
    given = {"weak": "weak", "own": own, "foreign": foreign}
    if len(known):
        found["fit"] = quiet(gold, on, prior=None).model.decide(votes)
        found["isotonic"] = Isotonic().fit(gold, on).decide(votes)
        found["threshold"] = Threshold().fit(gold, on).decide(votes)
    for name, prior in given.items():
        fitted = quiet(gold, on, prior=prior) if len(known) else quiet(counts, None, prior=prior)
        found[name] = fitted.model.decide(votes)
        warned[name] = name != "weak" and fitted.shares["neighbours"] < 0.5
    error = {name: np.abs(labels[rest] - decided).mean() for name, decided in found.items()}
    return error, warned


def show_errors(data, n_sets):
    every = families(data)
    for family, (cells, is_neighbour) in every.items():
        other = next(cells for name, (cells, _) in every.items() if name != family)
        far = btdagg.fit_prior({" ".join(key): pair for key, pair in other.items()})
        errors = {}
        warned = {}
        for place, (key, (counts, labels)) in enumerate(cells.items()):
            near = btdagg.fit_prior(
                {" ".join(k): pair for k, pair in cells.items() if is_neighbour(key, k)}
            )
            rng = np.random.default_rng([2024, place])
            for _ in range(n_sets):
                order = rng.permutation(len(labels))
                for size in SIZES:
                    if size and (size > max(len(labels) // 2, 50) or size > len(labels) - 20):
                        continue
                    error, said = scores(counts, labels, order[:size], near, far)
                    for name, value in error.items():
                        errors.setdefault((size, name), {}).setdefault(key, []).append(value)
                    for name, value in said.items():
                        warned.setdefault((size, name), []).append(value)
        print(f"\n{family}: mean MAE over {len(cells)} cells, {n_sets} calibration sets each\n")
        print("| labels | " + " | ".join(COLUMNS) + " | warned, own | warned, foreign |")
        print("|---:|" + "---:|" * (len(COLUMNS) + 2))
        for size in SIZES:
            means = [
                np.mean([np.mean(v) for v in errors[size, name].values()])
                if (size, name) in errors
                else np.nan
                for name in COLUMNS
            ]
            shown = ["–" if np.isnan(mean) else f"{mean:.4f}" for mean in means]
            rates = [
                f"{np.mean(warned[size, name]):.1%}" if size else "–" for name in ("own", "foreign")
            ]
            print(f"| {size} | " + " | ".join([*shown, *rates]) + " |")
        print("\nStandard errors over the sets of the difference to the paper's fit (weak, own):")
        for size in SIZES[1:]:
            shown = []
            for name in ("weak", "own"):
                by_set = [
                    np.subtract(errors[size, name][key], errors[size, "fit"][key])
                    for key in errors[size, "fit"]
                ]
                spread = np.mean([np.var(v, ddof=1) / len(v) for v in by_set]) / len(by_set)
                shown.append(f"{np.mean([v.mean() for v in by_set]):+.4f} ({np.sqrt(spread):.4f})")
            print(f"  {size}: " + ", ".join(shown))


def show_intervals(n_sets, n_bootstraps):
    print("\nSimulated judges, 12 votes: intervals of 95%, and decisions called stable\n")
    print("| labels | parameter | coverage | least of 8 | width | bootstrap: coverage | width |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    stable, clock = [], []
    for n in (50, 100, 400):
        rows = {name: [] for name in ("beta", "nu", "gamma")}
        wrong, called, boot_wrong, boot_called = [], [], [], []
        spent, spent_boot = 0.0, 0.0
        for place, regime in enumerate(REGIMES.values()):
            sample = simulate(regime, 30_000, 12, seed=1)
            true = {"beta": regime.beta, "nu": regime.nu, "gamma": regime.gamma}
            truth = btdagg.DavidsonModel(regime.beta, np.log(regime.nu), regime.gamma)
            new = sample.counts[:5_000]
            right = truth.decide(new)
            rng = np.random.default_rng([n, place])
            inside = {name: [] for name in true}
            width = {name: [] for name in true}
            boot_inside = {name: [] for name in true}
            boot_width = {name: [] for name in true}
            for number in range(n_sets):
                known = rng.choice(30_000, n, replace=False)
                counts, labels = sample.counts[known], sample.labels[known]
                fitted = quiet(counts, labels)
                start = time.process_time()
                found = fitted.intervals()
                spent += time.process_time() - start
                sure = btdagg.bootstrap(counts, labels, n_refits=100, seed=number).stability(new)
                called.append(sure.stable.mean())
                wrong.append((sure.stable & (sure.labels != right)).mean())
                collect(found, true, inside, width)
                if number < n_bootstraps:
                    start = time.process_time()
                    boot = btdagg.bootstrap(counts, labels, n_refits=1000, seed=number, prior=None)
                    spent_boot += time.process_time() - start
                    collect(spread_of(boot), true, boot_inside, boot_width)
                    again = boot.stability(new)
                    boot_called.append(again.stable.mean())
                    boot_wrong.append((again.stable & (again.labels != right)).mean())
            for name in true:
                rows[name].append(
                    [
                        np.mean(inside[name]),
                        np.median(width[name][: max(n_bootstraps, 1)]),
                        np.mean(boot_inside[name] or [np.nan]),
                        np.median(boot_width[name] or [np.nan]),
                    ]
                )
        for name, values in rows.items():
            mean, least = np.mean(values, axis=0), np.min(values, axis=0)
            what = "log nu" if name == "nu" else name
            print(
                f"| {n} | {what} | {mean[0]:.1%} | {least[0]:.1%} | {mean[1]:.2f} | "
                f"{mean[2]:.1%} | {mean[3]:.2f} |"
            )
        stable.append(
            f"| {n} | {np.mean(called):.1%} | {np.sum(wrong) / np.sum(called):.2%} | "
            f"{np.mean(boot_called):.1%} | {np.sum(boot_wrong) / np.sum(boot_called):.2%} |"
        )
        each = spent / (n_sets * len(REGIMES))
        each_boot = spent_boot / max(n_bootstraps * len(REGIMES), 1)
        clock.append(
            f"| {n} | {each * 1e3:.2f} ms | {each_boot * 1e3:.0f} ms | {each_boot / each:.0f} |"
        )
    print("\n| labels | called stable | of these wrong | bootstrap: stable | wrong |")
    print("|---:|---:|---:|---:|---:|", *stable, sep="\n")
    print("\nProcessor time\n\n| labels | intervals | 1,000 refits | ratio |")
    print("|---:|---:|---:|---:|", *clock, sep="\n")


def spread_of(boot):
    """Percentiles of the refits, which hold less often than the intervals that are printed."""
    low, high = np.quantile(boot.parameters[:, :3], [0.025, 0.975], axis=0)
    low[1], high[1] = np.exp([low[1], high[1]])
    pairs = zip(("beta", "nu", "gamma"), low, high, strict=True)
    return {name: ParameterInterval(0.0, *ends) for name, *ends in pairs}


def collect(found, true, inside, width):
    for name, interval in found.items():
        inside[name].append(
            interval.low <= true[name] * (1 + 1e-9) and true[name] * (1 - 1e-9) <= interval.high
        )
        ends = (
            np.log([interval.low, interval.high]) if name == "nu" else [interval.low, interval.high]
        )
        width[name].append(ends[1] - ends[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="little data, to show that it runs")
    parser.add_argument("--sets", type=int, default=10, help="calibration sets of each cell")
    parser.add_argument("--draws", type=int, default=100, help="simulated sets of each judge")
    parser.add_argument("--bootstraps", type=int, default=10, help="of these with a bootstrap")
    given = parser.parse_args()
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    if data.is_dir():
        show_errors(data, 1 if given.smoke else given.sets)
    else:
        print(f"no public votes in {data}")
    if given.smoke:
        show_intervals(2, 1)
    else:
        show_intervals(given.draws, given.bootstraps)


if __name__ == "__main__":
    main()
