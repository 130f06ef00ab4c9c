"""`btdagg demo`: calibration on simulated judges."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import btdagg
from btdagg._core import InputError
from btdagg._util.files import write_table
from btdagg._util.outputs import OutputFolder
from btdagg.cli.common import Force, Json, at_least, is_given, out, print_json, progress_bar
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.datasets import REGIMES, Thurstone, simulate, simulated_pairs
from btdagg.evaluation import Protocol, RandomSplits, Scores, evaluate
from btdagg.evaluation.scores import averages, lines

_BUDGETS = (4, 8)
_VOTES, _LABELS = "demo_votes.csv", "demo_labels.csv"
_PAIRS, _SOME, _ALL = "pairs.jsonl", "labels.csv", "truth.csv"
_N_PAIRS, _LABELLED = 300, 0.2


_ABOUT = (
    "Votes and labels are drawn from Thurstone's model, not from the model that is calibrated. "
    "Judges are biased by item and by position, and gold labels have errors."
)


def demo(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the simulated votes and labels to this folder, as examples of the format.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FOLDER",
            help="Write pairs, and labels of a fifth of them, to this folder instead: to try "
            "btdagg judge on, with --model simulated.",
            show_default=False,
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(help="Items per task, at least 60.", show_default="1000; of --pairs 300"),
    ] = None,
    splits: Annotated[int, typer.Option(help="Random splits, at least 2.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the simulation and the splits.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """See what calibration does, on judges simulated after the paper's eight tasks.

    Each judge votes on the items of one task. The model is calibrated on 5% of the labels; the
    other labels score it and majority vote. Shares of gold labels and ties are the paper's; how the
    judges err is made up (see docs/simulation.md). Nothing is downloaded.

    Example: btdagg demo --output demo
    """
    at_least(items, "--items", 60)
    if pairs is not None:
        if output is not None:
            raise InputError("--pairs and --output are both given, expected one of them")
        if is_given(context, "splits"):
            raise InputError("--pairs and --splits are both given, expected one of them")
        n_items = _N_PAIRS if items is None else items
        _write_pairs(OutputFolder(pairs, force=force), n_items, seed, json=json)
        return
    items = 1000 if items is None else items
    at_least(splits, "--splits", 2)
    folder = None if output is None else OutputFolder(output, force=force).claim((_VOTES, _LABELS))
    vote_columns, label_columns = _simulated(items, seed)
    with progress_bar("simulated judges") as progress:
        evaluation = evaluate(
            btdagg.read_votes(vote_columns),
            btdagg.read_labels(label_columns),
            n_votes=_BUDGETS,
            protocol=Protocol(RandomSplits(n_splits=splits, seed=seed)),
            progress=progress,
        )
    if folder is not None:
        _write(vote_columns, folder, _VOTES)
        _write(label_columns, folder, _LABELS)
    if json:
        print_json(evaluation_as_json(evaluation, items=items, splits=splits, seed=seed))
        return
    calibrated = round(evaluation.cells[0].comparison.n_calibration)
    out.print(
        f"Eight simulated judges, {items} items each. In each of {splits} random splits the model "
        f"is calibrated on {calibrated} labels and scored on the rest.\n{_ABOUT}\n"
    )
    print_table(evaluation)
    _say_what_it_means(evaluation)
    if output is not None:
        votes, labels = output / _VOTES, output / _LABELS
        out.print(f"\nWrote {votes} and {labels}. To evaluate them, or your own files:")
        command = [
            *("btdagg", "paper", "evaluate", str(votes), str(labels)),
            *("-n", "4,8", "--prior", "none", "--exact"),
        ]
        for option, value, usual in (("--splits", splits, 100), ("--seed", seed, 0)):
            command += [option, str(value)] if value != usual else []
        out.print(f"  {shlex.join(command)}", soft_wrap=True)


def _write_pairs(folder: OutputFolder, n_items: int, seed: int, *, json: bool) -> None:
    """Write pairs, labels of the first of them, and what is true of all."""
    import polars as pl

    folder.claim((_PAIRS, _SOME, _ALL))
    n_labelled = round(_LABELLED * n_items)
    texts, truth = (pl.DataFrame(columns) for columns in simulated_pairs(n_items, seed=seed))
    with folder.replacing(_PAIRS) as file:
        write_table(texts, file, ".jsonl")
    for name, labels in ((_SOME, truth.head(n_labelled)), (_ALL, truth)):
        with folder.replacing(name) as file:
            write_table(labels, file, ".csv")
    if json:
        paths = {name: str(folder.path / name) for name in (_PAIRS, _SOME, _ALL)}
        print_json(
            {
                "items": n_items,
                "labelled": n_labelled,
                "seed": seed,
                "pairs": paths[_PAIRS],
                "labels": paths[_SOME],
                "truth": paths[_ALL],
            }
        )
        return
    out.print(
        f"wrote {folder.path / _PAIRS}: {n_items} pairs; {folder.path / _SOME}: labels of "
        f"{n_labelled} of them; {folder.path / _ALL}: labels of all, to check results by",
        soft_wrap=True,
    )


def _simulated(n_items: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Simulate all tasks; return the columns of the votes and of the labels."""
    simulated = [
        simulate(name, n_items, max(_BUDGETS), seed=seed, truth=Thurstone()) for name in REGIMES
    ]
    return (
        _stacked([{**s.vote_columns(), "task": _task(s, s.votes.size)} for s in simulated]),
        _stacked([{**s.label_columns(), "task": _task(s, len(s.labels))} for s in simulated]),
    )


def _task(simulated: Any, n_rows: int) -> Any:
    return np.full(n_rows, simulated.regime.name)


def _stacked(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _write(columns: dict[str, Any], folder: OutputFolder, name: str) -> None:
    import polars as pl

    with folder.replacing(name) as file:
        write_table(pl.DataFrame(columns), file, ".csv")


def _say_what_it_means(evaluation: Scores) -> None:
    """Print where majority vote is better, and what more votes change on average."""
    found = lines(evaluation)
    both = list(zip(found[::2], found[1::2], strict=True))  # the model, majority vote
    better = [
        f"{majority.key[0]} at {majority.n_votes} votes"
        for model, majority in both
        if majority.mae.mean < model.mae.mean
    ]
    where = f" ({', '.join(better)})" if better else ""
    n_alike = sum(bool(model.tied and majority.tied) for model, majority in both)
    out.print(
        f"\nMajority vote has the lower mean error in {len(better)} of {len(both)} cases{where}. "
        f"In {n_alike} of the {len(both)} cases the test cannot tell the two methods apart."
    )
    model_few, few, model_many, many = (line.mae.mean for line in averages(evaluation))
    out.print(
        f"Going from {_BUDGETS[0]} to {_BUDGETS[1]} votes changes the mean error of majority vote "
        f"from {few:.3f} to {many:.3f}, and that of the calibrated model from {model_few:.3f} to "
        f"{model_many:.3f}."
    )
