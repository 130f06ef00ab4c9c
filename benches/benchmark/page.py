"""The page `docs/benchmark.md`, its figures, `labels.csv` and numbers on other pages.

All are made of results.parquet.

A number on another page is followed by a comment that says which error it is, such as
`0.335<!-- benchmark: rb2, 8 votes, 20 labels, btdagg, strength -->`.
"""

from __future__ import annotations

import argparse
import json
import re
from functools import partial
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure
from scipy import stats

from btdagg.report.figure import ReportFigure
from btdagg.report.style import draw_legend, series_styles

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
OURS = "btdagg"
QUOTE = re.compile(
    r"[\d.]+(?P<mark><!-- benchmark: (?P<set>.+?), (?P<votes>\d+) votes?, (?P<labels>\d+) labels, "
    r"(?P<entrant>.+?) -->)"
)
SHOWN = ["majority vote", "isotonic regression", "the paper's fit", OURS]  # in the figures
SHOWN += [f"{OURS}, {more}" for more in ("covariates", "neighbours", "strength", "panel")]
HEAD = """# Benchmark

How many labels, how many votes, which method: every method on the same votes, the same labels and
the same {splits} random splits. A method is a file of at most 40 lines in
[`benches/benchmark/entrants`](../benches/benchmark).

Errors are mean absolute errors on the items that were not used as labels; a set is the mean over
its judges and tasks. Up to 20 labels are drawn by item, from 50 on by group, such as a prompt.
`vicuna80`: 80 questions, answers of systems in pairs, five judges in both orders. `topical`: graded
answers in dialogues. `wmt23`: translations, rated by experts. `rb2`: pairs of RewardBench 2, three
judges (`panel`: together), and `rb2_scores` the scores behind them. `rubric`: dialogues graded by
eight criteria. `simulated`: judges of tasks like the paper's.

[labels.csv](../benches/benchmark/labels.csv) has every set, method, number of votes and number of
labels, with accuracy and log loss, and the difference to `btdagg` with half the width of two 95%
intervals: over splits of these items, and for new items. The second is by group, such as a prompt,
which the judges and tasks of a set share, and allows for other labels; it alone decides here what
is significant.

<!-- not run: half an hour on public votes -->
```console
make benchmark                       # makes this page
make benchmark OPTIONS=--download    # with votes from their sources, except vicuna80
```

![Mean absolute error against the number of labels, by set and
method](figures/benchmark_labels.svg)

![Mean absolute error against the number of votes, with 100 labels, or as many as there are, by set
and method](figures/benchmark_votes.svg)
"""


def paired(frame, *by):
    """Means over splits, and differences to btdagg with half of two 95% intervals.

    One is over splits of the same items (`half`), and one for new items (`new`).
    """
    is_split = pl.col("split").is_not_null()
    new = frame.filter(~is_split).select(*by, "entrant", new="value")
    frame = frame.filter(is_split)
    ours = frame.filter(entrant=OURS).select(*by, "split", ours="value")
    joined = frame.join(ours, on=[*by, "split"], how="left")
    apart = pl.col("value") - pl.col("ours")
    n = pl.col("split").count()
    means = joined.group_by("entrant", *by, maintain_order=True).agg(
        pl.col("value").mean(),
        apart.mean().alias("apart"),
        (apart.std() / n.sqrt() * stats.t.ppf(0.975, 19)).alias("half"),
    )
    return means.join(new, on=["entrant", *by], how="left", maintain_order="left")


def order_of(names):
    """Ours first, then the others by name."""
    return sorted(names, key=lambda name: (not name.startswith(OURS), name))


def table(rows, columns, title):
    lines = [
        f"| {title} | " + " | ".join(map(str, columns)) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    return [*lines, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows), ""]


def mae_of(results):
    """Errors with labels, of every method."""
    return results.filter(
        pl.col("task") == "labels", pl.col("metric") == "MAE", pl.col("labels") > 0
    )


def better(row):
    return row["apart"] + row["new"] < 0


def worse(row):
    return row["apart"] - row["new"] > 0


def labels_of(results):
    own = mae_of(results).filter(pl.col("votes") == pl.col("votes").max().over("set"))
    sets = list(results["set"].unique(maintain_order=True))
    votes = {name: own.filter(set=name)["votes"].max() for name in sets}
    most = max(votes.values())
    fewer = " and ".join(f"{name} ({n})" for name, n in votes.items() if n < most)
    lines = ["## Labels", ""]
    lines += [
        f"All votes of a set: {most} an item, except {fewer}. ↓ is significantly better than "
        f"`{OURS}` on new items, ↑ significantly worse. A constant is the label with the least "
        "error on the labelled items, whatever the votes.",
        "",
    ]
    for size in (20, 100):
        found = {
            (row["entrant"], row["set"]): row
            for row in paired(own.filter(labels=size), "set").to_dicts()
        }
        entrants = order_of({entrant for entrant, _ in found})
        wide = [name for name in entrants if sum((name, value) in found for value in sets) > 1]
        rows = []
        for name in wide:
            cells = [found.get((name, value)) for value in sets]
            rows.append((name, ["–" if row is None else _arrowed(row) for row in cells]))
        lines += table(rows, sets, f"{size} labels")
        alone = {}
        for (name, value), row in found.items():
            if name not in wide:
                alone.setdefault(value, []).append(f"{name} {_arrowed(row)}")
        lines += [f"- {value} alone: {'; '.join(sorted(alone[value]))}" for value in sorted(alone)]
        lines += [""]
    return lines


def _arrowed(row):
    mark = "" if row["entrant"] == OURS else "↓" * better(row) + "↑" * worse(row)
    return f"{row['value']:.3f}{mark}"


def losses_of(results):
    """Where another method is significantly better than btdagg."""
    mae = mae_of(results)
    found = paired(mae, "set", "votes", "labels").filter(
        ~pl.col("entrant").str.starts_with(OURS), pl.col("apart") + pl.col("new") < 0
    )
    n_cells = mae.select("set", "votes", "labels").n_unique()
    n_lost = found.select("set", "votes", "labels").n_unique()
    lines = ["## Where btdagg loses", ""]
    lines += [
        f"In {n_lost} of {n_cells} combinations of set, votes and labels another method is "
        "significantly better on new items. Its difference to btdagg there, and half of its 95% "
        "interval for new items; in brackets that over splits of these items:",
        "",
    ]
    sizes = sorted(found["labels"].unique())
    cells = {}
    for row in found.sort("set", "votes", "entrant", "labels").to_dicts():
        key = row["set"], row["votes"], row["entrant"]
        cells.setdefault(key, dict.fromkeys(sizes, ""))[row["labels"]] = _difference(row)
    equal = {}  # methods that lose nothing to each other share a row
    for (name, votes, entrant), by_size in cells.items():
        equal.setdefault((name, votes, *by_size.values()), []).append(entrant)
    rows = [
        (name, [str(votes), "; ".join(entrants), *by_size])
        for (name, votes, *by_size), entrants in equal.items()
    ]
    lines += table(rows, ["votes", "method", *(f"{size} labels" for size in sizes)], "set")
    for metric in ("accuracy", "log loss"):
        lines += [f"- **{metric.capitalize()}**, 100 labels, all votes: {_lost(results, metric)}."]
    return [*lines, ""]


def _difference(row):
    return f"{row['apart']:+z.3f} ±{row['new']:.3f} ({row['half']:.3f})"


def _lost(results, metric):
    """Cells of another metric in which another method is better, as a text."""
    own = results.filter(task="labels", labels=100, metric=metric)
    own = own.filter(pl.col("votes") == pl.col("votes").max().over("set"))
    sign = -1 if metric == "accuracy" else 1
    lost = paired(own, "set").filter(
        ~pl.col("entrant").str.starts_with(OURS), sign * pl.col("apart") + pl.col("new") < 0
    )
    rows = lost.sort("set", "entrant").to_dicts()
    texts = [f"{row['set']}, {row['entrant']} {_difference(row)}" for row in rows]
    return "; ".join(texts) or "no other method is better"


def means_of(frame, *by):
    """Values over splits, by `by` and metric."""
    found = frame.group_by(*by, "metric").agg(pl.col("value").mean()).to_dicts()
    return {(*(row[name] for name in by), row["metric"]): row["value"] for row in found}


def monte_carlo_errors(frame, *by):
    """Standard errors of shares of draws, by `by` and metric.

    Judges of one draw have the same items, so the error is that of the draws' means, or that of as
    many independent draws (Agresti and Coull 1998) where it is larger, as where all are alike.
    """
    draws = pl.col("cells").sum()
    share = (pl.col("value") * pl.col("cells")).sum().add(2) / (draws + 4)
    of_one = (share * (1 - share) / (draws + 4)).sqrt()
    of_draws = pl.col("value").std() / pl.len().sqrt()
    error = pl.max_horizontal(of_one, of_draws)
    found = frame.group_by(*by, "metric").agg(error.alias("error")).to_dicts()
    return {(*(row[name] for name in by), row["metric"]): row["error"] for row in found}


def estimates_of(results):
    own = results.filter(task="estimates")
    n_draws = own["split"].n_unique()
    lines = ["## Estimates of the mean label", ""]
    lines += [
        "How often 95% intervals cover the mean, in %, with its Monte Carlo standard error, and in "
        "brackets what a label is worth: how many labels alone give an interval of that width. "
        f"Items are drawn anew with replacement, {n_draws} times for each judge and task.",
        "",
    ]
    names, value = order_of(own["entrant"].unique()), means_of(own, "set", "labels", "entrant")
    errors, rows = monte_carlo_errors(own, "set", "labels", "entrant"), []
    for name in own["set"].unique(maintain_order=True):
        for size in sorted(own.filter(set=name)["labels"].unique()):
            cells = []
            for entrant in names:
                covered = value.get((name, size, entrant, "covered"))
                text = "–"
                if covered is not None:
                    error = errors[name, size, entrant, "covered"]
                    text = f"{100 * covered:.0f} ±{100 * error:.0f}"
                if covered is not None and not entrant.endswith("alone"):
                    alone = value[name, size, "labels alone", "width"]
                    text += f" ({(alone / value[name, size, entrant, 'width']) ** 2:.2f})"
                cells.append(text)
            rows.append((f"{name}, {size}", cells))
    return [*lines, *table(rows, names, "set, labels"), *_narrower(own, value)]


def _narrower(own, value):
    """Where a peer's intervals are narrower than btdagg's, with what they cover there."""
    peer, lines = "ppi_py", []
    for size in sorted(own["labels"].unique()):
        sets = [name for name in own["set"].unique(maintain_order=True)
                if (name, size, peer, "width") in value]  # fmt: skip
        means = {
            (entrant, metric): sum(value[name, size, entrant, metric] for name in sets) / len(sets)
            for entrant in (OURS, peer) for metric in ("covered", "width")
        }  # fmt: skip
        less = 1 - means[peer, "width"] / means[OURS, "width"]
        if less > 0.005:
            lines.append(
                f"- With {size} labels the intervals of {peer} are {less:.0%} narrower on the "
                f"mean; they cover {means[peer, 'covered']:.1%}, and those of {OURS} "
                f"{means[OURS, 'covered']:.1%}."
            )
    if lines:
        lines += [
            "",
            f"{peer} takes normal quantiles where {OURS} takes Student's, and no account of its "
            f"tuned weight. {OURS} allows for another model of other labels, which costs most "
            "where there are few.",
        ]
    return [*lines, ""] if lines else []


def trust_of(results):
    own = results.filter(pl.col("task") == "trust", pl.col("labels") == 100)
    n_draws = own["split"].n_unique()
    lines = ["## Labels that are trusted without review", ""]
    lines += [
        "Share of items that are trusted at 70, 80 and 90% agreement with 100 labels, and in "
        "brackets how often fewer than promised agree with people, with its Monte Carlo standard "
        f"error, all in %. Of {n_draws} draws for each judge and task each method may break a "
        "promise in 10%; fixed sequences test thresholds of majority vote one after the other at "
        "that level (Learn then Test).",
        "",
    ]
    names, value = order_of(own["entrant"].unique()), means_of(own, "set", "entrant")
    errors, rows = monte_carlo_errors(own, "set", "entrant"), []
    for name in own["set"].unique(maintain_order=True):
        cells = []
        for entrant in names:
            keys = [[(name, entrant, f"{metric} at {level}%") for level in (70, 80, 90)]
                    for metric in ("share", "violated")]  # fmt: skip
            if keys[0][0] not in value:
                cells.append("–")
                continue
            shares = "/".join(f"{100 * value[key]:.0f}" for key in keys[0])
            broken = "/".join(f"{100 * value[key]:.0f}±{100 * errors[key]:.0f}" for key in keys[1])
            cells.append(f"{shares} ({broken})")
        rows.append((name, cells))
    return lines + table(rows, names, "set")


def calls_of(results):
    lines = ["## Calls", ""]
    lines += [
        "Votes that were asked of at most 8 an item, one after the other, with 100 labels; in "
        "brackets the error and the share of labels that all eight votes would have changed.",
        "",
    ]
    own = results.filter(task="calls")
    names, value = order_of(own["entrant"].unique()), means_of(own, "set", "entrant")
    rows = []
    for name in own["set"].unique(maintain_order=True):
        cells = []
        for entrant in names:
            found = [value.get((name, entrant, metric)) for metric in ("votes", "MAE", "changed")]
            cells.append("–" if None in found else "{:.2f} ({:.3f}, {:.3f})".format(*found))
        rows.append((name, cells))
    return lines + table(rows, names, "set")


def every_label(results):
    """Each error, accuracy and log loss of a method, and its difference to btdagg."""
    keys = ["set", "votes", "labels", "entrant"]
    frame = None
    for metric in ("MAE", "accuracy", "log loss"):
        own = paired(results.filter(task="labels", metric=metric), *keys[:-1])
        own = own.select(
            *keys,
            pl.col("value").alias(metric),
            pl.col("apart").alias(f"{metric} less btdagg"),
            pl.col("half").alias(f"{metric} half interval"),
            pl.col("new").alias(f"{metric} half interval, new items"),
        )
        frame = own if frame is None else frame.join(own, on=keys, how="left")
    return frame.sort(keys).write_csv(float_precision=4)


def draw(results, column):
    """Error against the number of labels, or of votes: a panel a set, a line a method."""
    mae = mae_of(results).drop_nulls("split")
    styles = series_styles(SHOWN)
    sets = mae["set"].unique(maintain_order=True)
    panels = {name: mae.filter(set=name) for name in sets}
    panels = {name: own for name, own in panels.items() if own[column].n_unique() > 1}
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.subplots(2, -(-len(panels) // 2)).flat
    for axis, (name, own) in zip(axes, panels.items(), strict=False):
        if column == "labels":
            own = own.filter(votes=own["votes"].max())
        else:
            own = own.filter(labels=100 if 100 in own["labels"] else own["labels"].max())
        for entrant, style in styles.items():
            line = own.filter(entrant=entrant).group_by(column).agg(pl.col("value").mean())
            if line.height:
                axis.plot(*line.sort(column).select(column, "value").to_numpy().T, **style)
        axis.set(title=name, xscale="log", xlabel=column, ylabel="MAE")
        ticks = sorted(own[column].unique())
        axis.set_xticks(ticks, map(str, ticks))
        axis.minorticks_off()
    for axis in axes[len(panels) :]:
        axis.axis("off")
    drawn = mae.filter(pl.col("set").is_in([*panels]))["entrant"].unique()
    draw_legend(figure, {name: styles[name] for name in SHOWN if name in drawn})
    return figure


def page(results, versions):
    parts = (labels_of, losses_of, estimates_of, trust_of, calls_of)
    lines = [HEAD.format(**versions)]
    for part in parts:
        lines += part(results)
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "splits")
    return "\n".join([*lines, f"Made with {told}.", ""])


def quoted(text, results):
    """A page, each number that it has from here as it is now."""
    mae = results.filter(task="labels", metric="MAE").drop_nulls("split")

    def number(found):
        cell = {name: found[name] for name in ("set", "entrant")}
        cell |= {name: int(found[name]) for name in ("votes", "labels")}
        return f"{mae.filter(**cell)['value'].mean():.3f}{found['mark']}"

    return QUOTE.sub(number, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=HERE / "results.parquet")
    path = parser.parse_args().results
    results = pl.read_parquet(path)
    versions = json.loads(pl.read_parquet_metadata(path)["benchmark"])
    (DOCS / "benchmark.md").write_text(page(results, versions))
    (HERE / "labels.csv").write_text(every_label(results))
    for file in (DOCS.parent / "README.md", *DOCS.glob("*.md")):
        file.write_text(quoted(file.read_text(), results))
    for column in ("labels", "votes"):
        name = f"benchmark_{column}"
        svg = ReportFigure(name, "Benchmark", "", partial(draw, results, column)).svg()
        (DOCS / f"figures/{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
