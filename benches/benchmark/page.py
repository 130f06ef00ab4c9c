"""The page `docs/benchmark.md`, its figures, and its numbers on other pages, of results.parquet.

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

How many labels, how many votes, which method, which judge: every method on the same votes, the same
labels and the same {splits} random splits. A method is a file of at most 40 lines in
[`benches/benchmark/entrants`](../benches/benchmark); `make benchmark` runs all and makes this page
(with `OPTIONS=--download` of votes from their original sources, but for vicuna80).
Errors are mean absolute errors on the items that gave no label, labels being drawn by item up to 20
and by group (such as a prompt) from 50 on; a set is the mean over its judges and tasks. In brackets
is the difference to `btdagg` as it comes, on the same splits, with half the width of its 95%
interval over splits; positive is worse than btdagg.

<!-- not run: half an hour on public votes -->
```console
make benchmark
```

![Mean absolute error against the number of labels, by set and
method](figures/benchmark_labels.svg)

![Mean absolute error against the number of votes, with 100 labels, or as many as there are, by set
and method](figures/benchmark_votes.svg)
"""


def paired(frame, *by):
    """Means over splits, and differences to btdagg with half of their 95% interval."""
    ours = frame.filter(entrant=OURS).select(*by, "split", ours="value")
    joined = frame.join(ours, on=[*by, "split"], how="left")
    apart = pl.col("value") - pl.col("ours")
    n = pl.col("split").count()
    return joined.group_by("entrant", *by, maintain_order=True).agg(
        pl.col("value").mean(),
        apart.mean().alias("apart"),
        (apart.std() / n.sqrt() * stats.t.ppf(0.975, 19)).alias("half"),
    )


def cell_of(row, digits=3):
    if row is None:
        return "–"
    text = f"{row['value']:.{digits}f}"
    if row["entrant"] == OURS or row["apart"] is None:
        return text
    return f"{text} ({row['apart']:+z.{digits}f} ± {row['half'] or 0:.{digits}f})"


def order_of(names):
    """Ours first, then the others by name."""
    return sorted(names, key=lambda name: (not name.startswith(OURS), name))


def table(rows, columns, title):
    lines = [
        f"| {title} | " + " | ".join(map(str, columns)) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    return [*lines, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows), ""]


def by_column(frame, column, title, digits=3):
    """A table of entrants against a column, each cell with its difference to btdagg."""
    found = {(row["entrant"], row[column]): row for row in paired(frame, column).to_dicts()}
    columns = sorted(frame[column].unique())
    rows = [
        (name, [cell_of(found.get((name, value)), digits) for value in columns])
        for name in order_of(frame["entrant"].unique())
    ]
    return table(rows, columns, title)


def labels_of(results):
    mae = results.filter(pl.col("task") == "labels", pl.col("metric") == "MAE")
    lines = ["## Labels", ""]
    for name in results["set"].unique(maintain_order=True):
        own = mae.filter(pl.col("set") == name)
        most = own["votes"].max()
        votes = "1 vote" if most == 1 else f"{most} votes"
        lines += [f"### {name}, {votes} an item", ""]
        lines += by_column(own.filter(votes=most), "labels", "labels")
        if own["votes"].n_unique() > 1:
            size = 100 if 100 in own["labels"] else own["labels"].max()
            lines += [f"By the number of votes, with {size} labels:", ""]
            lines += by_column(own.filter(labels=size), "votes", "votes")
    return lines


def losses_of(results):
    """Where another method is better than btdagg as it comes, beyond the interval."""
    mae = results.filter(
        pl.col("task") == "labels", pl.col("metric") == "MAE", pl.col("labels") > 0
    )
    found = paired(mae, "set", "votes", "labels").filter(
        ~pl.col("entrant").str.starts_with(OURS), pl.col("apart") + pl.col("half") < 0
    )
    n_cells = mae.select("set", "votes", "labels").n_unique()
    lines = ["## Where btdagg loses", ""]
    lines += [
        f"Of {n_cells} combinations of set, votes and labels another method is better, beyond the "
        "interval, in these:",
        "",
    ]
    rows = [
        (f"{r['set']}, {r['votes']} votes, {r['labels']} labels", [r["entrant"], cell_of(r)])
        for r in found.sort("set", "votes", "labels", "apart").to_dicts()
    ]
    return lines + table(rows, ["method", "error (difference)"], "where")


def others_of(results):
    """Accuracy and log loss at 100 labels and the most votes, on the mean over the sets."""
    own = results.filter(pl.col("task") == "labels", pl.col("labels") == 100)
    own = own.filter(pl.col("votes") == pl.col("votes").max().over("set"))
    lines = ["## Accuracy and log loss, 100 labels", ""]
    for metric in ("accuracy", "log loss"):
        found = own.filter(metric=metric)
        lines += by_column(found, "set", metric)
    return lines


def shares_of(frame, metrics, scale=100, digits=0):
    found = frame.group_by("entrant", "metric").agg(pl.col("value").mean())
    value = {(row["entrant"], row["metric"]): row["value"] for row in found.to_dicts()}
    for name in order_of(frame["entrant"].unique()):
        cells = [value.get((name, metric)) for metric in metrics]
        yield name, ["–" if own is None else f"{scale * own:.{digits}f}" for own in cells]


def estimates_of(results):
    lines = ["## Estimates of the mean label", ""]
    lines += [
        "Items are drawn anew with replacement. Coverage of 95% intervals in %, their width, and "
        "what a label is worth: how many labels alone would give the same width.",
        "",
    ]
    own = results.filter(task="estimates")
    for name in own["set"].unique(maintain_order=True):
        part = own.filter(set=name)
        columns, cells = [], {entrant: [] for entrant in order_of(part["entrant"].unique())}
        for size in sorted(part["labels"].unique()):
            columns += [f"{size}: covered", "width", "worth"]
            means = (
                part.filter(labels=size).group_by("entrant", "metric").agg(pl.col("value").mean())
            )
            value = {(row["entrant"], row["metric"]): row["value"] for row in means.to_dicts()}
            alone = value["labels alone", "width"]
            for entrant, texts in cells.items():
                width = value[entrant, "width"]
                worth = "–" if entrant == "votes alone" else f"{(alone / width) ** 2:.2f}"
                texts += [f"{100 * value[entrant, 'covered']:.0f}", f"{width:.3f}", worth]
        lines += [f"### {name}: estimates", "", *table(cells.items(), columns, "labels")]
    return lines


def trust_of(results):
    lines = ["## Labels that need no look", ""]
    lines += [
        "Share of items that are trusted with 100 labels, and how often fewer of them than "
        "promised agree with people, in %. btdagg promises each certificate with 90%; conformal "
        "thresholds hold on the mean over draws alone.",
        "",
    ]
    own = results.filter(pl.col("task") == "trust", pl.col("labels") == 100)
    metrics = [f"{what} at {level}%" for level in (70, 80, 90) for what in ("share", "violated")]
    for name in own["set"].unique(maintain_order=True):
        rows = shares_of(own.filter(set=name), metrics)
        lines += [f"### {name}: trust", "", *table(rows, metrics, "method")]
    return lines


def calls_of(results):
    lines = ["## Calls", ""]
    lines += [
        "Eight votes an item at most, one after the other, with 100 labels: votes that were asked, "
        "labels that all eight votes would have changed, and the error.",
        "",
    ]
    own, metrics = results.filter(task="calls"), ["votes", "changed", "MAE"]
    for name in own["set"].unique(maintain_order=True):
        rows = shares_of(own.filter(set=name), metrics, scale=1, digits=3)
        lines += [f"### {name}: calls", "", *table(rows, metrics, "rule")]
    return lines


def draw(results, column):
    """Error against the number of labels, or of votes: a panel a set, a line a method."""
    mae = results.filter(
        pl.col("task") == "labels", pl.col("metric") == "MAE", pl.col("labels") > 0
    )
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
    parts = (labels_of, losses_of, others_of, estimates_of, trust_of, calls_of)
    lines = [HEAD.format(**versions)]
    for part in parts:
        lines += part(results)
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "splits")
    return "\n".join([*lines, f"Made with {told}.", ""])


def quoted(text, results):
    """A page, each number that it has from here as it is now."""
    mae = results.filter(task="labels", metric="MAE")

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
    for file in (DOCS.parent / "README.md", *DOCS.glob("*.md")):
        file.write_text(quoted(file.read_text(), results))
    for column in ("labels", "votes"):
        name = f"benchmark_{column}"
        svg = ReportFigure(name, "Benchmark", "", partial(draw, results, column)).svg()
        (DOCS / f"figures/{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
