"""From the votes of a job to models, stopping rules and labels, task by task."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import btdagg
from btdagg.calibration import Calibration
from btdagg.cli.common import note
from btdagg.cli.provenance import provenance_of
from btdagg.cli.stopping import how_sure
from btdagg.tables.join import with_task

if TYPE_CHECKING:
    import polars as pl

    from btdagg.cli.stopping import Stopping
    from btdagg.judge.pairs import Pairs
    from btdagg.online import StoppingRule
    from btdagg.outputs import OutputFolder


@dataclass(frozen=True)
class Fitted:
    """What a task's labels give: a calibration, and the rule under which its pairs stop."""

    calibration: Calibration
    rule: StoppingRule | None

    @property
    def model(self) -> btdagg.DavidsonModel:
        """The calibrated model."""
        return self.calibration.model


def votes_of(frame: pl.DataFrame, n: int, pairs: Pairs) -> btdagg.Votes:
    """Return the first n votes on each of some pairs, in their order; a store may have more."""
    import polars as pl

    first = frame.filter(pl.col("sample") < n // 2)  # of each order
    wanted = pairs.frame.select(pl.col("item").cast(pl.String))
    if "task" in pairs.columns:
        wanted = wanted.with_columns(pairs.frame["task"].cast(pl.String))
        first = first.drop("task", strict=False)
    return btdagg.read_votes(wanted.join(first, on="item", maintain_order="left_right"))


def fit_tasks(
    votes: btdagg.Votes, gold: btdagg.Labels, n: int, stopping: Stopping | None
) -> tuple[dict[str, Fitted], dict[str, str]]:
    """Fit a model, and a rule where one is asked for, to each task.

    Returns
    -------
    tuple of (dict of str to Fitted, dict of str to str)
        By task, of which there may be one without a name; and for the rest the reason why not.

    Raises
    ------
    InputError
        If no task could be fitted; the message says why.
    """
    fitted, refused = {}, {}
    for task, part in _by_task(votes, gold):
        try:
            items = part.labelled(gold)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", btdagg.CalibrationWarning)  # printed below
                calibration = btdagg.calibrate(
                    items.counts, items.labels, provenance=provenance_of(part, n)
                )
            rule = None
            if stopping is not None:
                rule = stopping.rule_for(calibration.model, n, items.counts, items.labels)
        except btdagg.InputError as error:
            refused[task] = str(error)
            note(f"{task or 'votes'}: not decided: {error}")
            continue
        for warning in calibration.warnings:
            note(f"{task + ': ' if task else ''}{warning}")
        fitted[task] = Fitted(calibration, rule)
    if not fitted:
        raise btdagg.InputError(f"nothing could be decided: {next(iter(refused.values()))}")
    return fitted, refused


def names_of_files(tasks: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Names of the model and the rule of each task, told apart where tasks would share them."""
    found: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()
    for task in dict.fromkeys(tasks):
        end = next(end for end in _ends_of_names(task) if end.casefold() not in taken)
        taken.add(end.casefold())
        found[task] = (f"model{end}", f"rule{end}")
    return found


def save_fitted(
    fitted: Mapping[str, Fitted], folder: OutputFolder, tasks: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Write the model of each task, and its rule where there is one; say where, by task.

    `tasks` are those that were expected, so that names do not depend on which could be fitted.
    """
    told = {}
    names = names_of_files([*tasks, *fitted])
    for task, one in fitted.items():
        model, rule = names[task]
        folder.write(model, one.model.to_json() + "\n")
        told[task] = {"file": str(folder.path / model), "n_labels": one.calibration.n_labels}
        if one.rule is not None:
            folder.write(rule, one.rule.to_json() + "\n")
            told[task]["rule"] = str(folder.path / rule)
    return told


def label_items(
    votes: btdagg.Votes, gold: btdagg.Labels, fitted: Mapping[str, Fitted]
) -> pl.DataFrame:
    """Decide the items of every task that is fitted.

    Under a rule the label is the rule's. An item that it stopped has no probabilities, since the
    model is not calibrated for its few votes, but the chance that all votes decide otherwise. One
    that is not settled, since votes were lost, has neither.
    """
    import polars as pl

    decided = []
    for task, part in _by_task(votes, gold):
        if task not in fitted:
            continue
        ids, counts = part.counts()
        model, rule = fitted[task].model, fitted[task].rule
        columns: dict[str, Any] = {"item": ids.tolist()}
        if task:
            columns["task"] = [task] * len(ids)
        columns["label"] = model.decide(counts) if rule is None else rule.decide(counts)
        columns |= dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
        names = ("p_minus", "p_tie", "p_plus")
        columns |= dict(zip(names, model.predict_proba(counts).T, strict=True))
        frame = pl.DataFrame(columns)
        if rule is not None:
            full = pl.sum_horizontal("minus", "tie", "plus") >= rule.n
            frame = frame.with_columns(
                *(pl.when(full).then(pl.col(name)) for name in names), **how_sure(rule, counts)
            )
        decided.append(frame)
    # Where the labels alone say the task of an item, one part may have none.
    labelled = pl.concat(decided, how="diagonal")
    n_empty = labelled.filter(pl.sum_horizontal("minus", "tie", "plus") == 0).height
    if n_empty:
        note(f"{n_empty} items have no vote, and are decided without any")
    return labelled


def _by_task(votes: btdagg.Votes, gold: btdagg.Labels) -> Iterator[tuple[str, btdagg.Votes]]:
    votes = with_task(votes, gold)
    by = ["task"] if "task" in votes.columns else []
    for key, part in votes.partition(by):
        yield key[0] if key else "", part


def _ends_of_names(task: str) -> Iterator[str]:
    if not task:
        yield ".json"
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in task).lstrip(".") or "task"
    yield f"-{name}.json"
    yield from (f"-{name}-{number}.json" for number in count(2))
