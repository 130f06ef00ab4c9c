"""`btdagg votes`: summarize votes, or export a vote store."""

from __future__ import annotations

from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._util.errors import InputError, expect
from btdagg._util.files import write_table
from btdagg._util.wording import MISSING
from btdagg.cli.common import (
    Json,
    LabelsFile,
    Signs,
    VotesFile,
    note,
    out,
    print_json,
    say,
)
from btdagg.cli.flags import TABLE
from btdagg.cli.reporting import ReportOption, say_answer, show_exhibits
from btdagg.evaluation import positional_bias
from btdagg.evaluation.tables import positional_bias_table
from btdagg.questions.agreement import agreement
from btdagg.report import figures
from btdagg.result import Entry, ResultTable, Row
from btdagg.votes.orders import about_orders
from btdagg.votes.source import is_store
from btdagg.votes.verdicts import about_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from btdagg.result import Exhibit
    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes


_LETTERS = {"plus": "A", "minus": "B"}
# Of a store, with the header and the format of each.
_COLUMNS = {
    "judge": ("judge", ""),
    "template": ("template", ""),
    "method": ("method", ""),
    "temperature": ("temp.", "g"),
    "n_items": ("items", ""),
    "n_votes": ("votes", ""),
    "missing": ("no vote", ""),
    "mean_grade": ("mean", ".2f"),
    "tie_rate": ("ties", ".1%"),
    "positional_bias": ("bias", "+.3f"),
    "tokens": ("tokens", ""),
    "cost": ("cost", ".4g"),
    "latency": ("seconds", ".2f"),
}


def votes(
    selection: Signs,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    disagreements: Annotated[
        Path | None,
        typer.Option(
            help="Write items on which the judge's majority vote is not people's label to this "
            "file, the worst first: .csv, .tsv, .jsonl, .ndjson or .parquet.",
        ),
        TABLE,
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            "-o",
            help="Write the votes of a store to this file: .parquet, .csv, .tsv, .jsonl or "
            ".ndjson.",
        ),
        TABLE,
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="With --export: methods of the judge whose votes are exported, separated by "
            "commas.",
            show_default="sample",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Summarize votes: how many, ties, positional bias, and how often the judge agrees with itself.

    With labels it also says how often the judge agrees with people, and people with each other
    (labels with a column rater compare raters). For a vote store alone it prints one line per
    judge, template and method, with tokens and cost. --export writes the votes of a store to a
    file.

    Example: btdagg votes votes.csv labels.csv --report out
    """
    if votes is None and labels is None and selection.project.file("labels") is not None:
        labels = selection.project.place("labels")  # all is what the project says
    looks = bool(reporting.report or selection.filters or selection.keys or labels)
    votes = selection.project.place("votes", votes)
    looks = looks or disagreements is not None
    expected = "none without LABELS, which say what people think"
    given = None if disagreements is None else str(disagreements)
    expect(given is None or labels is not None, "disagreements", given, expected)
    if export is not None or methods is not None:
        if export is None or looks or not is_store(votes):
            raise InputError(
                "--export writes the votes of a store by --method and takes no other option; use "
                "other options on the exported file"
            )
        _export_store(votes, export, [name.strip() for name in (methods or "sample").split(",")])
    elif is_store(votes) and not looks:
        _show_store(votes, json=json)
    else:
        if labels is None:
            tables = selection.project.read(("votes", votes))
            table, gold = selection.votes(selection.filtered(*tables)[0]), None
        else:
            data = selection.data(votes, labels)
            table, gold = data.votes, data.gold
        found = agreement(table, gold)
        folder = reporting.open(selection.project, f"Votes of {Path(table.source).name}")
        exhibits = [*_exhibits(table), *found.tables()]
        if (figure := found.figure()) is not None:
            exhibits.append(figure)
        shown = [of for of in exhibits if not isinstance(of, ResultTable) or of.rows]
        if not json:
            say_answer(found.sentence())
        section = "votes", "What votes look like", f"{found.sentence()}."
        show_exhibits(shown, folder, *section, json=json)
        note(*about_words(table), *about_orders(table, gold), *found.remarks)
        if disagreements is not None:
            write_table(found.disagreements, disagreements, disagreements.suffix)
            say(f"wrote {disagreements}: {found.disagreements.height} items")


def _exhibits(table: Votes) -> Iterator[Exhibit]:
    judge = [column for column in ("judge",) if column in table.columns]
    yield _counts(table, judge)
    if "order" in table.columns and len(table.scale.mode.orders) > 1:
        yield from bias_by_judge(table)


def bias_by_judge(table: Votes, *more: str, gold_ties: Labels | None = None) -> Iterator[Exhibit]:
    """Yield the figure, if there is anything to draw, and the table of the positional bias."""
    by = [column for column in ("judge", *more) if column in table.columns]
    bias = positional_bias(table, by=by, gold_ties=gold_ties)
    if any(row.interval for row in bias):
        yield figures.positional_bias_figure(bias)
    yield positional_bias_table(bias, by)


def _counts(table: Votes, judge: list[str]) -> ResultTable:
    points = table.columns_of_counts
    if table.scale.mirrored:  # A first
        points = dict(reversed([*points.items()]))
    tasks = [column for column in table.scale.mode.criteria if column in table.columns]
    rows = []
    for key, part in table.partition([*tasks, *judge]):
        ids, counts = part.counts()
        by_column = dict(zip(table.columns_of_counts, counts.sum(axis=0).tolist(), strict=True))
        sums = {column: by_column[column] for column in points}
        n_votes = sum(sums.values())
        labels = key if judge else (*key, "all")
        record: dict[str, Any] = dict(zip((*tasks, "judge"), labels, strict=True))
        n_rows: float = len(part.frame)  # missing votes are rows as well
        if part.are_counts:
            n_rows = int(n_votes) if n_votes % 1 == 0 else n_votes
        record |= {"n_items": len(ids), "n_votes": n_rows, "n_missing": part.n_missing}
        names = {"n_items": "items", "n_votes": "votes", "n_missing": "missing"}
        cells = {name: str(record[column]) for column, name in names.items()}
        if not table.scale.mirrored:
            total = sum(map(mul, sums.values(), points.values()))
            record["mean"] = total / n_votes if n_votes else None
            cells["mean"] = f"{total / n_votes:.2f}" if n_votes else MISSING
        for column, number in sums.items():
            cells[_LETTERS.get(column, column)] = f"{100 * number / max(n_votes, 1):.1f}"
        rows.append(Row(labels, cells, [record | sums]))
    note = "Shares are in percent of the votes that are not missing."
    return ResultTable.of_rows("votes", "Votes", note, (*tasks, "judge"), rows)


def _show_store(store: str, *, json: bool = False) -> None:
    from btdagg.judge.store.store import VoteStore, summaries

    with VoteStore(store, create=False) as opened:
        summed = summaries(opened)
    if json:
        print_json(summed)
        return
    if not summed:
        say("no votes yet")
        return
    for row in summed:
        row["missing"] = sum(row["statuses"].values()) - row["n_votes"]
        row["tokens"] = row["prompt_tokens"] + row["completion_tokens"]
    # Of grades there are no ties, of pairs no means.
    columns = [c for c in _COLUMNS if any(row[c] is not None for row in summed)]
    rows = [
        [Entry("" if row[c] is None else format(row[c], _COLUMNS[c][1])) for c in columns]
        for row in summed
    ]
    out.print_rows([_COLUMNS[column][0] for column in columns], rows, n_labels=3)
    for row in summed:
        without = {name: n for name, n in row["statuses"].items() if name != "ok"}
        way = f"{row['judge']}, {row['template']}"
        if without:
            listed = ", ".join(f"{n} {name}" for name, n in without.items())
            note(f"{way}, {row['method']}: samples without a vote: {listed}")
        if row["method"] == "sample" and row["n_ab"] != row["n_ba"]:
            note(f"{way}: {row['n_ab']} votes with A first, {row['n_ba']} with B first")


def _export_store(store: str, file: Path, methods: list[str]) -> None:
    from btdagg.judge.methods import METHODS
    from btdagg.judge.store.store import VoteStore, votes_frame

    for method in methods:
        expected = f"one of sample, {', '.join(METHODS)}"
        expect(method in ("sample", *METHODS), "methods", method, expected)
    with VoteStore(store, create=False) as opened:
        frame = votes_frame(opened, methods=methods)
    write_table(frame, file, file.suffix)
    missing = frame["vote" if "vote" in frame.columns else "score"].null_count()
    say(f"wrote {file}: {frame.height - missing} votes, {missing} samples without one")
