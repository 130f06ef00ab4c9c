"""The questions of the paper's report: those of every report, and its own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from btdagg import InputError, Protocol
from btdagg._util.errors import forbid
from btdagg.evaluation import RandomSplits
from btdagg.paper import figures, tables
from btdagg.paper.conditions import ablate, compare_orders
from btdagg.paper.parameters import fitted_parameters
from btdagg.paper.ties import tie_rates
from btdagg.paper.transfer import transfer_matrix
from btdagg.report import QUESTIONS as USUAL
from btdagg.report import Question, condition_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from btdagg import Votes
    from btdagg.methods import Aggregator
    from btdagg.report import ReportFolder, Study
    from btdagg.votes import Items


def _spread(study: Study, report: ReportFolder) -> None:
    splitter = study.protocol.splitter
    if not isinstance(splitter, RandomSplits):
        raise InputError("this needs random splits")
    few = Protocol(replace(splitter, n_splits=20), None)
    fitted = {}
    for name, items in study.scores.items.items():
        with report.skipping(name):
            fitted[name] = fitted_parameters(items, _davidson(study), protocol=few)
    if fitted:
        report.add(tables.parameters_table(fitted))


def _transfer(study: Study, report: ReportFolder) -> None:
    forbid("task" not in study.scores.by, "this needs votes on several tasks, and a column task")
    place = study.scores.by.index("task")
    by_key: dict[tuple[str, ...], dict[str, Items]] = {}
    for key, cell in study.scores.at_most_votes().items():
        by_key.setdefault((*key[:place], *key[place + 1 :]), {})[key[place]] = cell.items
    forbid(
        all(len(tasks) < 2 for tasks in by_key.values()),
        "this needs several tasks with votes of one judge and labels",
    )
    transfers = {}
    for key, tasks in by_key.items():
        with report.skipping(_name_of(key)), study.progress(" ".join(("transfer", *key))) as start:
            step = start(study.protocol.splitter.n_splits)
            transfers[key] = transfer_matrix(
                tasks, _davidson(study), protocol=study.protocol, progress=step
            )
    # One scale for all, so that what looks alike is alike.
    limit = figures.transfer_limit(transfers.values()) if transfers else None
    for exhibit in (partial(figures.transfer_figure, limit=limit), tables.transfer_table):
        report.choose(
            {_name_of(key): exhibit(of).named_after(*key) for key, of in transfers.items()}
        )


def _davidson(study: Study) -> Aggregator | None:
    """The calibration without neighbours: what is used elsewhere has none there."""
    place = next(iter(study.scores.at_most_votes().values())).calibrated
    return None if place is None else study.methods[place]


def _name_of(key: Sequence[str]) -> str:
    return ", ".join(key) or "all"


def _ablations(study: Study, report: ReportFolder) -> None:
    forbid(not study.varied, "no column has several values to compare")
    for column, votes in study.varied.items():
        with report.skipping(column):
            _ablation(study, report, column, votes)


def _ablation(study: Study, report: ReportFolder, column: str, votes: Votes) -> None:
    by = [name for name in study.scores.by if name != column]
    n_votes = None if study.most_votes is None else [study.most_votes]
    scores = study.run(f"by {column}", ablate, votes, column, n_votes=n_votes, by=by)
    study.skip_left_out(report, scores, [column])
    report.add(tables.ablation_table(scores))
    bars = {}
    for key, cells in scores.by_key().items():
        by_value = {cell.value: cell.main for cell in cells}
        if len(by_value) > 1:
            bars[_name_of(key)] = condition_figure(column, by_value).named_after(*key)
    report.choose(bars)


def _error_by_order(study: Study, report: ReportFolder) -> None:
    votes = study.votes
    forbid(votes.are_counts or "order" not in votes.columns, "the votes have no column order")
    n_votes = study.most_votes or max(study.budgets())
    of_each = n_votes // 2 - n_votes // 2 % 2  # votes that an item has of either order
    forbid(of_each < 2, f"this needs two votes in each order, but an item has {n_votes}")
    scores = study.run("order", compare_orders, votes, of_each)
    study.skip_left_out(report, scores)
    report.add(tables.order_table(scores))


def _ties(study: Study, report: ReportFolder) -> None:
    votes = study.varied.get("template", study.votes)
    columns = [name for name in ("judge", "template", "task") if name in votes.columns]
    forbid(
        votes.are_counts or len(columns) < 2,
        "this needs single votes, and two of the columns judge, template and task",
    )
    rates = tie_rates(votes, *columns[:2])
    report.add(
        figures.tie_rate_figure(rates, *columns[:2]), tables.tie_rate_table(rates, *columns[:2])
    )


QUESTIONS = (
    *USUAL,
    Question(
        "spread",
        "How the fits differ between splits",
        "Medians and quartiles of the three numbers over 20 splits.",
        _spread,
        paired=True,
    ),
    Question(
        "transfer",
        "Whether a calibration carries over",
        "Models calibrated on one task (row) and used on another (column), compared with "
        "calibration on the same task.",
        _transfer,
        paired=True,
    ),
    Question(
        "ablations",
        "What prompt and temperature change",
        "The same items for every value.",
        _ablations,
        paired=True,
    ),
    Question("by-order", "Whether showing both orders lowers the error", "", _error_by_order, True),
    Question("ties", "How often judges call a tie", "", _ties, True),
)
"""In the order in which they stand in the report."""
