"""Grades from few labels: the model of grades, with the prior of votes and with neighbours, against
mode, median and rounded mean of the votes, a constant, and fits of scikit-learn and statsmodels.

Mean absolute error over random calibration sets of judges and tasks, on items whose groups gave no
label. BTDAGG_SHARED names the folder of the public grades; without it only the simulated judges are
shown, whose grades come from a latent quality and from no model of this family.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import btdagg

try:
    from statsmodels.miscmodels.ordinal_model import OrderedModel
except ImportError:
    OrderedModel = None

SIZES = (10, 20, 50, 100)
PLAIN = ("mode", "median", "rounded")
FOUR, FIVE, TEN = (btdagg.Scale(range(1, n)) for n in (5, 6, 11))
PUBLIC = {"rb2_scores": (TEN, btdagg.PASS_FAIL), "rubric": (FOUR, FOUR)}


def public_cells(data, name):
    """Counts, labels and groups of every judge and task."""
    points = [str(point) for point in PUBLIC[name][0].points]
    votes = pl.read_parquet(data / name / "votes.parquet")
    votes = votes.with_columns(pl.col("item", "judge", "task").cast(str)).drop_nulls("score")
    counts = votes.group_by("judge", "task", "item").agg(
        (pl.col("score") == int(point)).sum().alias(point) for point in points
    )
    labels = pl.read_csv(data / name / "labels.csv").select("item", "group", "label")
    joined = counts.join(labels, on="item").sort("judge", "task", "item")
    return {
        key: (
            part.select(points).to_numpy().astype(np.int64),
            part["label"].to_numpy(),
            np.unique(part["group"].to_numpy(), return_inverse=True)[1],
        )
        for key, part in joined.partition_by("judge", "task", as_dict=True).items()
    }


def simulated_cells(scales, number, *, slope=1.0, shift=0.0, noise=0.5, lean=0.0, n_votes=6, n=600):
    """Three judges of items of a latent quality, whose grades have other distributions."""
    cells, (points, grades) = {}, (scale.values for scale in scales)
    for place, skew in enumerate((0.0, 0.6, -0.4)):
        rng = np.random.default_rng([number, place])
        quality = rng.normal(size=n)
        seen = slope * quality + shift + noise * rng.normal(size=n)
        votes = seen[:, None] + noise * rng.normal(size=(n, n_votes))
        ends = [
            np.linspace(-1.3, 1.3, 2 * len(values) - 1)[1:-1:2] - skew - high
            for values, high in ((points, 0.0), (grades, lean))
        ]
        labels = np.searchsorted(ends[1], quality + 0.5 * rng.normal(size=n))
        votes = np.searchsorted(ends[0], votes)
        counts = (votes[:, :, None] == np.arange(len(points))).sum(axis=1)
        cells[place, 0] = counts, grades[labels], np.arange(n)
    return cells


def simulated():
    fives, tens = (FIVE, FIVE), (TEN, TEN)
    settings = {
        "right": (fives, {"noise": 0.2}),
        "right, one vote": (fives, {"noise": 0.2, "n_votes": 1}),
        "shifted": (fives, {"shift": 0.8}),
        "shifted down": (fives, {"shift": -1.2}),
        "squeezed": (fives, {"slope": 0.4, "noise": 0.3}),
        "noisy": (fives, {"noise": 1.5}),
        "no signal": (fives, {"slope": 0.0}),
        "1-10 to 1-5": ((TEN, FIVE), {"shift": 0.4}),
        "1-5 to pass": ((FIVE, btdagg.PASS_FAIL), {"shift": 0.4}),
        "1-10, no signal, most labels 10": (tens, {"slope": 0.0, "lean": 2.0}),
    }
    for number, (name, (scales, options)) in enumerate(settings.items()):
        yield name, scales, simulated_cells(scales, number, **options)


def plain(counts, scale, label_scale):
    """Grades of the mode, the median and the mean of the votes, none where the scales differ."""
    votes, grades = scale.floats, label_scale.values
    if len(votes) != len(grades):
        return {}
    n = counts.sum(axis=1)
    median = (2 * counts.cumsum(axis=1) < n[:, None]).sum(axis=1)
    nearest = np.abs((counts @ votes / n)[:, None] - votes).argmin(axis=1)
    places = {"mode": counts.argmax(axis=1), "median": median, "rounded": nearest}
    return {name: grades[place] for name, place in places.items()}


def median_grade(p, grades):
    """The grade at which the cumulative probability reaches one half."""
    return np.asarray(grades)[np.minimum((p.cumsum(axis=1) < 0.5).sum(axis=1), len(grades) - 1)]


def fitted_peers(means, labels, new_means, grades):
    """Grades of new items of fits to the mean votes of labelled ones."""
    constant = np.quantile(labels, 0.5, method="lower")
    decided = {"constant": np.full(len(new_means), constant)}
    curve = IsotonicRegression(out_of_bounds="clip").fit(means, labels).predict(new_means)
    decided["isotonic"] = grades[np.abs(curve[:, None] - grades).argmin(axis=1)]
    decided["logistic"] = decided["ordered"] = decided["constant"]
    given = np.unique(labels)
    if len(given) > 1:
        fit = LogisticRegression(max_iter=1000).fit(means[:, None], labels)
        decided["logistic"] = median_grade(fit.predict_proba(new_means[:, None]), given)
    if OrderedModel is None:
        del decided["ordered"]
    elif len(given) > 1 and np.ptp(means) > 0:
        try:
            places = np.searchsorted(given, labels)
            fit = OrderedModel(places, means[:, None], distr="logit").fit(method="bfgs", disp=False)
            p = np.asarray(fit.predict(new_means[:, None]))
            decided["ordered"] = median_grade(np.nan_to_num(p), given)
        except (ValueError, np.linalg.LinAlgError):
            pass  # no fit: the constant
    return decided


def errors_of(cells, scales, number, n_sets):
    """Mean absolute error by size and method: over cells of the mean over sets."""
    both = dict(zip(("scale", "label_scale"), scales, strict=True))
    votes, grades = (scale.floats for scale in scales)
    full = {
        key: btdagg.calibrate(counts, labels, **both).model
        for key, (counts, labels, _) in cells.items()
    }
    errors = {}
    for place, (key, (counts, labels, groups)) in enumerate(cells.items()):
        near = [model for name, model in full.items() if name[1] != key[1]]
        means = counts @ votes / counts.sum(axis=1)
        rng = np.random.default_rng([28, number, place])
        for _ in range(n_sets):
            order = rng.permutation(len(labels))
            for size in SIZES:
                known = order[:size]
                if size > len(labels) // 2:
                    continue
                rest = np.flatnonzero(~np.isin(groups, groups[known]))
                decided = plain(counts[rest], *scales)
                decided |= fitted_peers(means[known], labels[known], means[rest], grades)
                for name, prior in (("btdagg", "weak"), ("neighbours", near)):
                    if len(prior):
                        fit = btdagg.calibrate(counts[known], labels[known], **both, prior=prior)
                        decided[name] = fit.model.decide(counts[rest])
                for name, own in decided.items():
                    error = np.abs(labels[rest] - own).mean()
                    errors.setdefault((size, name), {}).setdefault(key, []).append(error)
    return {
        name: float(np.mean([np.mean(sets) for sets in of_cells.values()]))
        for name, of_cells in errors.items()
    }


def show(families, n_sets):
    fits = ("isotonic", "logistic", *(("ordered",) if OrderedModel else ()))
    columns = (*PLAIN, "constant", *fits, "btdagg", "neighbours")
    print("| votes | labels | " + " | ".join(columns) + " |")
    print("|---|---:|" + "---:|" * len(columns))
    everywhere = {}
    for number, (family, scales, cells) in enumerate(families):
        errors = errors_of(cells, scales, number, n_sets)
        for size in SIZES:
            row = {name: errors[size, name] for name in columns if (size, name) in errors}
            if not row:
                continue
            for name, error in row.items():
                everywhere.setdefault((size, name), {})[family] = error
            best = min(row[name] for name in (*PLAIN, "constant") if name in row)
            mark = " (!)" if row["btdagg"] > best + 0.010 else ""
            texts = [f"{row[name]:.3f}" if name in row else "–" for name in columns]
            texts[columns.index("btdagg")] += mark
            print(f"| {family} | {size} | " + " | ".join(texts) + " |", flush=True)
    print("\nMean over families; of each method on those it is for, less btdagg on the same.\n")
    print("| labels | btdagg | " + " | ".join(columns[:-2]) + " |")
    print("|---:|---:|" + "---:|" * (len(columns) - 2))
    for size in SIZES:
        own = everywhere[size, "btdagg"]
        means = []
        for name in columns[:-2]:
            theirs = everywhere.get((size, name), {})
            gaps = [error - own[family] for family, error in theirs.items()]
            means.append(f"{np.mean(gaps):+.3f}" if gaps else "–")
        print(f"| {size} | {np.mean(list(own.values())):.3f} | " + " | ".join(means) + " |")


def show_times(n):
    counts = np.random.default_rng(1).multinomial(8, np.ones(5) / 5, size=1000)
    counts = np.tile(counts, (n // 1000, 1))
    pairs = np.ascontiguousarray(counts[:, :3])
    grades = btdagg.GradeModel(2, (1.5, 2.5, 3.5, 4.5), FIVE)
    three = btdagg.GradeModel(2, (1.5, 2.5), btdagg.Scale((1, 2, 3)))
    pairs[pairs.sum(axis=1) == 0] = 1
    for name, model, own in (
        ("pairs", btdagg.DavidsonModel(1.2, 2.0, 0.8), pairs),
        ("three grades", three, pairs),
        ("five grades", grades, counts),
    ):
        best = np.inf
        for _ in range(3):
            started = time.perf_counter()
            model.decide(own)
            best = min(best, time.perf_counter() - started)
        print(f"decide, {name}: {best / n * 1e9:.2f} ns an item")
    labels = grades.decide(counts[:1000])
    for size in (20, 100, 1000):
        started = time.perf_counter()
        btdagg.calibrate(counts[:size], labels[:size], scale=FIVE)
        print(f"calibrate, {size} labels: {1e3 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one set of few cells")
    parser.add_argument("--sets", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    families = list(simulated())[: 2 if args.smoke else None]
    for name, scales in PUBLIC.items():
        if (data / name).is_dir():
            cells = list(public_cells(data, name).items())
            families.append((name, scales, dict(cells[: 2 if args.smoke else None])))
    show(families, 1 if args.smoke else args.sets)
    show_times(100_000 if args.smoke else 10_000_000)
