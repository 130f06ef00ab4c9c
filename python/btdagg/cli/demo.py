"""`btdagg demo`: calibration on simulated judges."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

import btdagg
from btdagg._util.errors import forbid
from btdagg._util.files import write_table
from btdagg._util.outputs import OutputFolder
from btdagg.cli.common import Json, print_json, progress_bar, say, say_in_words
from btdagg.cli.evaluate import scores_as_json
from btdagg.cli.reporting import print_scores
from btdagg.datasets import REGIMES, Thurstone, simulate
from btdagg.datasets.sums import simulated_pairs
from btdagg.evaluation import RandomSplits
from btdagg.evaluation.protocol import Protocol
from btdagg.questions.evaluate import evaluate

_BUDGETS = (4, 8)
_VOTES, _LABELS = "demo_votes.csv", "demo_labels.csv"
_PAIRS, _SOME, _ALL = "pairs.jsonl", "labels.csv", "truth.csv"
_N_ITEMS, _N_PAIRS, _LABELLED = 1000, 300, 0.2
_N_SPLITS = 100


_ABOUT = (
    "Votes and labels are drawn from Thurstone's model, not from the model that is calibrated. "
    "Judges are biased by item and by position, and gold labels have errors."
)


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the simulated votes and labels to this folder, as examples of the format.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FOLDER",
            help="Instead, write pairs, and labels for a fifth of them, to this folder: try btdagg "
            "judge --model simulated on them.",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(min=60, help="Items per task.", show_default="1000; with --pairs 300"),
    ] = None,
    json: Json = False,
) -> None:
    """See what calibration does, on simulated judges that resemble the paper's eight tasks.

    Each judge votes on the items of one task. The model is calibrated on 5% of the labels; the
    other labels score it and majority vote. Shares of gold labels and ties are those of the paper;
    the judges' errors are invented (see docs/simulation.md). Nothing is downloaded.

    Example: btdagg demo --output demo
    """
    if pairs is not None:
        forbid(output is not None, "--pairs and --output cannot be combined")
        _write_pairs(OutputFolder(pairs), items or _N_PAIRS, json=json)
        return
    items = items or _N_ITEMS
    folder = None if output is None else OutputFolder(output).claim((_VOTES, _LABELS))
    samples = [simulate(name, items, max(_BUDGETS), seed=0, truth=Thurstone()) for name in REGIMES]
    votes, labels = (
        pl.concat(
            pl.DataFrame(columns).with_columns(task=pl.lit(sample.regime.name))
            for sample, columns in zip(samples, tables, strict=True)
        )
        for tables in ([s.vote_columns() for s in samples], [s.label_columns() for s in samples])
    )
    with progress_bar("simulated judges") as progress:
        evaluation = evaluate(
            btdagg.read_votes(votes),
            btdagg.read_labels(labels),
            n_votes=_BUDGETS,
            protocol=Protocol(RandomSplits(n_splits=_N_SPLITS)),
            progress=progress,
        )
    if folder is not None:
        _write(folder, {_VOTES: votes, _LABELS: labels})
    if json:
        print_json(scores_as_json(evaluation, None, items=items, splits=_N_SPLITS))
        return
    calibrated = round(evaluation.cells[0].n_calibration)
    for line in (
        f"Eight simulated judges, {items} items each. In each of {_N_SPLITS} random splits the "
        f"model is calibrated on {calibrated} labels and scored on the rest.",
        _ABOUT,
        "",
    ):
        say_in_words(line)
    print_scores(evaluation)
    if output is not None:
        files = [str(output / name) for name in (_VOTES, _LABELS)]
        say("", f"Wrote {' and '.join(files)}. To evaluate them, or your own files:")
        say(f"  {shlex.join(['btdagg', 'evaluate', *files, '-n', '4,8'])}")


def _write_pairs(folder: OutputFolder, n_items: int, *, json: bool) -> None:
    folder.claim((_PAIRS, _SOME, _ALL))
    n_labelled = round(_LABELLED * n_items)
    texts, truth = simulated_pairs(n_items)
    first = {name: column[:n_labelled] for name, column in truth.items()}
    _write(folder, {_PAIRS: texts, _SOME: first, _ALL: truth})
    pairs, labels, all_labels = (str(folder.path / name) for name in (_PAIRS, _SOME, _ALL))
    if json:
        files = {"pairs": pairs, "labels": labels, "truth": all_labels}
        print_json({"items": n_items, "labelled": n_labelled, **files})
        return
    say(
        f"wrote {pairs}: {n_items} pairs; {labels}: labels of {n_labelled} of them; {all_labels}: "
        "labels of all, to check results against"
    )


def _write(folder: OutputFolder, tables: dict[str, Any]) -> None:
    for name, columns in tables.items():
        with folder.replacing(name) as file:
            write_table(pl.DataFrame(columns), file, Path(name).suffix)
