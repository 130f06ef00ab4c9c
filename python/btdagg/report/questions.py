"""The questions of a report: one per section, with its tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from btdagg._core import InputError
from btdagg.aggregators import needs_of, usual_among
from btdagg.evaluation import (
    ablate,
    compare_orders,
    fitted_parameters,
    label_distributions,
    positional_bias,
    sweep_calibration,
    sweep_votes,
    tie_rates,
    transfer_matrix,
)
from btdagg.evaluation.engine import quiet_fit
from btdagg.report import figures, tables
from btdagg.report.table import Entry, ReportTable
from btdagg.report.wording import key_of, stem
from btdagg.tables import Votes
from btdagg.tables.join import with_task

if TYPE_CHECKING:
    from btdagg.evaluation import Comparison, LabelledItems, Scores, Transfer
    from btdagg.evaluation.parts import Key
    from btdagg.report.figure import ReportFigure
    from btdagg.report.study import Study

Part = TypeVar("Part")
Result = TypeVar("Result")

MOST_MAPPED = 20
"""Votes of the map of behaviours, as in the paper, where there are more."""


@dataclass(frozen=True)
class Skipped:
    """Something that a section does not have, and why."""

    what: str
    reason: str


Exhibits: TypeAlias = "Iterator[ReportTable | ReportFigure]"
Made: TypeAlias = "Iterator[ReportTable | ReportFigure | Skipped]"


@dataclass(frozen=True)
class Question:
    """What a section answers: its title, what it is for, and what makes its tables and figures.

    What makes them raises an `InputError` where the votes allow none; one that fails while others
    do not is yielded as `Skipped`.
    """

    name: str
    title: str
    text: str
    answer: Callable[[Study], Made]


def _each(
    parts: Mapping[str, Part], make: Callable[[Part], Result]
) -> tuple[dict[str, Result], list[Skipped]]:
    """Make something of each part; one that cannot be made leaves the others.

    Raises
    ------
    InputError
        If all fail for one reason.
    """
    found: dict[str, Result] = {}
    skipped: list[Skipped] = []
    for name, part in parts.items():
        try:
            found[name] = make(part)
        except InputError as error:
            skipped.append(Skipped(name, str(error)))
    if not found and len({one.reason for one in skipped}) == 1:
        raise InputError(skipped[0].reason)
    return found, skipped


def _or_skipped(what: str, made: Made) -> Made:
    """Make exhibits; what fails leaves the others of the section."""
    try:
        yield from made
    except InputError as error:
        yield Skipped(what, str(error))


def _left_out(study: Study, found: Scores) -> Iterator[Skipped]:
    """What a protocol skipped, but for the parts that nothing could be made of."""
    for key, reason in found.skipped:
        if not any(key[: len(part)] == part for part in study.refused):
            yield Skipped(key_of(key), reason)


def _vote_sweep(study: Study) -> Made:
    budgets = study.budgets()
    if study.votes.are_counts or len(budgets) < 2:
        raise InputError("this needs single votes, at several numbers of votes")
    found = study.run("number of votes", sweep_votes, study.votes, budgets)
    yield from _left_out(study, found)
    yield from figures.vote_figures(found)
    yield tables.vote_sweep_table(found)


def _calibration_sweep(study: Study) -> Made:
    sizes = study.calibration_sizes()
    if len(sizes) < 2:
        raise InputError("there are too few labelled items for two sizes of a calibration set")
    found = study.run(
        "number of labels", sweep_calibration, study.votes, sizes, n_votes=study.most_votes
    )
    yield from _left_out(study, found)
    yield from figures.calibration_figures(found)
    yield tables.calibration_sweep_table(found)


def _parameters(study: Study) -> Made:
    fitted, skipped = _each(
        study.items, lambda items: fitted_parameters(items, protocol=study.few_splits)
    )
    yield from skipped
    if fitted:
        yield tables.parameters_table(fitted)


def _transfer(study: Study) -> Made:
    several = study.tasks()
    if all(len(tasks) < 2 for tasks in several.values()):
        raise InputError("this needs several tasks with votes of one judge and labels")
    named = {key_of(key): (key, tasks) for key, tasks in several.items()}
    found, skipped = _each(named, lambda one: (one[0], _transfer_of(study, *one)))
    yield from skipped
    # One scale for all, so that what looks alike is alike.
    limit = figures.transfer_limit(one for _, one in found.values()) if found else None
    for key, one in found.values():
        yield _of(figures.transfer_figure(one, limit), *key)
        yield _of(tables.transfer_table(one), *key)


def _transfer_of(study: Study, key: Key, tasks: Mapping[str, LabelledItems]) -> Transfer:
    with study.progress(" ".join(("transfer", *key))) as progress:
        step = progress(study.splits.splitter.n_splits)
        return transfer_matrix(tasks, protocol=study.splits, progress=step)


def _labels(study: Study) -> Made:
    gold = study.gold_items
    yield figures.gold_figure(gold)
    yield tables.gold_table(gold)
    with study.progress("confusion") as progress:
        step = progress(len(study.items) * study.few_splits.splitter.n_splits)
        found, skipped = _each(study.items, lambda items: _distributions(study, items, step))
    yield from skipped
    if not found:
        return
    for name, one in found.items():
        yield figures.confusion_figure(name, one)
        yield figures.distribution_figure(name, one)
    column = ", ".join(study.columns) or "items"
    yield _stacked(
        column,
        "labels",
        "Label distributions",
        {name: tables.distribution_table(name, one) for name, one in found.items()},
    )
    yield _stacked(
        column,
        "confusion",
        "Confusion matrices",
        {name: tables.confusion_table(name, one) for name, one in found.items()},
    )


def _distributions(
    study: Study, items: LabelledItems, step: Callable[[], object] | None = None
) -> Comparison:
    methods = usual_among(study.methods)
    return label_distributions(items, methods, protocol=study.few_splits, progress=step)


def _ablations(study: Study) -> Made:
    if not study.varied:
        raise InputError("no column has several values to compare")
    for column, votes in study.varied.items():
        yield from _or_skipped(column, _ablation(study, column, votes))


def _ablation(study: Study, column: str, votes: Votes) -> Made:
    by = [name for name in study.columns if name != column]
    n_votes = None if study.most_votes is None else [study.most_votes]
    found = study.run(f"by {column}", ablate, votes, column, n_votes=n_votes, by=by)
    for one in _left_out(study, found):
        yield replace(one, what=f"{column}, {one.what}")
    yield tables.ablation_table(found)
    shown = found.by_key()
    for key, part in with_task(votes, study.labels).partition(by):
        if key in shown:
            conditions = _conditions(study, column, key, part)
            yield from _or_skipped(key_of((column, *key)), conditions)


def _conditions(study: Study, column: str, key: Key, votes: Votes) -> Made:
    """How labels are distributed under each value."""
    items, _ = study.parts_by([column], votes)
    if len(items) < 2:
        return
    named = {value: one for (value,), one in items.items()}
    found, skipped = _each(named, lambda one: _distributions(study, one))
    for one in skipped:
        yield replace(one, what=key_of((*key, f"{column} {one.what}")))
    if len(found) > 1:
        yield _of(figures.condition_figure(column, found), *key)


def _orders(study: Study) -> Made:
    votes = study.votes
    if votes.are_counts or "order" not in votes.columns:
        raise InputError("the votes have no column order")
    by = [column for column in ("judge",) if column in votes.columns]
    bias = positional_bias(votes, by=by)
    yield tables.positional_bias_table(bias, by)
    yield from _or_skipped("figure of positional bias", map(figures.positional_bias_figure, [bias]))
    yield from _or_skipped("error by order", _error_by_order(study, votes))


def _error_by_order(study: Study, votes: Votes) -> Made:
    n_votes = study.most_votes or max(study.budgets())
    each = n_votes // 2 - n_votes // 2 % 2  # votes that an item has of either order
    if each < 2:
        raise InputError(f"this needs two votes of each order, and an item has {n_votes}")
    found = study.run("order", compare_orders, votes, each)
    yield from _left_out(study, found)
    yield tables.order_table(found)


def _ties(study: Study) -> Made:
    votes = study.votes
    if votes.are_counts:
        raise InputError("this needs single votes, and the table has counts")
    votes = study.varied.get("template", votes)
    columns = [name for name in ("judge", "template", "task") if name in votes.columns]
    if len(columns) < 2:
        raise InputError("this needs two of the columns judge, template and task")
    found = tie_rates(votes, *columns[:2])
    yield figures.tie_rate_figure(found, *columns[:2])
    yield tables.tie_rate_table(found, *columns[:2])


def _behaviour(study: Study) -> Made:
    def drawn(items: LabelledItems) -> ReportFigure:
        # What neighbours a method has is for an evaluation to say.
        alone = [one for one in study.own_methods if not needs_of(one).neighbours]
        fitted = [quiet_fit(method, items.rows, items.labels) for method in alone]
        most = int(items.evidence.counts.sum(axis=1).max())
        by_name = {method.name: method for method in fitted}
        return figures.behaviour_figure(by_name, min(most, MOST_MAPPED))

    found, skipped = _each(study.items, drawn)
    yield from skipped
    for name, figure in found.items():
        yield _of(figure, name) if name and len(found) > 1 else figure


def _of(exhibit: ReportTable | ReportFigure, *whose: str) -> ReportTable | ReportFigure:
    """Name an exhibit after the judge or part that it is of, of which a selector shows one."""
    if not whose:
        return exhibit
    return replace(
        exhibit,
        name=stem(exhibit.name, *whose),
        title=f"{exhibit.title}, {key_of(whose)}",
        family=exhibit.name,
        choice=key_of(whose),
    )


def _stacked(column: str, name: str, title: str, found: Mapping[str, ReportTable]) -> ReportTable:
    """Put tables with one header under each other, with a column that says whose rows are."""
    first = next(iter(found.values()))
    return replace(
        first,
        name=name,
        title=title,
        header=(column, *first.header),
        rows=tuple((Entry(key), *row) for key, table in found.items() for row in table.rows),
        records=tuple(record for table in found.values() for record in table.records),
        n_label_columns=first.n_label_columns + 1,
    )


QUESTIONS = (
    Question(
        "votes",
        "How many votes are worth their price",
        "The error against the number of votes per item, on the same items and splits.",
        _vote_sweep,
    ),
    Question(
        "calibration",
        "How many labels are enough",
        "The error against the number of labels to calibrate on. Every number is scored on the "
        "same "
        "items, and smaller calibration sets are parts of larger ones.",
        _calibration_sweep,
    ),
    Question(
        "parameters",
        "What calibration finds",
        "The model's three numbers, fitted again on every split. A high nu moves labels "
        "towards ties; a low nu leaves the votes as they are.",
        _parameters,
    ),
    Question(
        "labels",
        "Which labels are mistaken for which",
        "Gold labels against those of the calibrated model and of majority vote.",
        _labels,
    ),
    Question(
        "transfer",
        "Whether a calibration carries over",
        "Calibrated on one task (row) and used on another (column), compared with calibrating on "
        "the task itself.",
        _transfer,
    ),
    Question(
        "ablations",
        "What prompt and temperature change",
        "The same items and splits under every value.",
        _ablations,
    ),
    Question(
        "order",
        "Whether the judge favours a position",
        "Votes for the response that was shown first against those for the second.",
        _orders,
    ),
    Question("ties", "How often judges call a tie", "", _ties),
    Question(
        "behaviour",
        "How each method decides",
        "All possible counts of an item, and how each method decides them.",
        _behaviour,
    ),
)
"""In the order in which they stand in the report."""
