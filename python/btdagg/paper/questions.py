"""The questions of the paper's report: those of every report, and its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.protocol import Protocol
from btdagg.methods import Davidson
from btdagg.paper import figures, tables
from btdagg.paper.conditions import ablate, compare_orders
from btdagg.paper.parameters import fitted_parameters
from btdagg.paper.ties import tie_rates
from btdagg.paper.transfer import transfer_matrix
from btdagg.report import sections as usual
from btdagg.report.figures import condition_figure
from btdagg.report.sections import (
    Question,
    each,
    left_out,
    main_methods,
    named_after,
    or_skipped,
)
from btdagg.report.wording import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from btdagg.evaluation import LabelledItems
    from btdagg.evaluation.parts import Key
    from btdagg.paper.transfer import Transfer
    from btdagg.report.sections import Made
    from btdagg.report.study import Study
    from btdagg.votes import Votes


def _spread(study: Study) -> Made:
    if study.is_cross_fitted:
        raise InputError("this needs random splits")
    few = Protocol(study.protocol.splitter.times(20), None)
    fitted, skipped = each(
        study.items, lambda items: fitted_parameters(items, _davidson(study), protocol=few)
    )
    yield from skipped
    if fitted:
        yield tables.parameters_table(fitted)


def _transfer(study: Study) -> Made:
    several = study.tasks()
    if all(len(tasks) < 2 for tasks in several.values()):
        raise InputError("this needs several tasks with votes of one judge and labels")
    named = {key_of(key): (key, tasks) for key, tasks in several.items()}
    found, skipped = each(named, lambda one: (one[0], _transfer_of(study, *one)))
    yield from skipped
    # One scale for all, so that what looks alike is alike.
    limit = figures.transfer_limit(one for _, one in found.values()) if found else None
    for key, one in found.values():
        yield named_after(figures.transfer_figure(one, limit), *key)
        yield named_after(tables.transfer_table(one), *key)


def _transfer_of(study: Study, key: Key, tasks: Mapping[str, LabelledItems]) -> Transfer:
    with study.progress(" ".join(("transfer", *key))) as progress:
        step = progress(study.protocol.splitter.n_splits)
        return transfer_matrix(tasks, _davidson(study), protocol=study.protocol, progress=step)


def _davidson(study: Study) -> Davidson | None:
    """The calibration without neighbours: what is used elsewhere has none there."""
    return next((one for one in study.methods if isinstance(one, Davidson)), None)


def _ablations(study: Study) -> Made:
    if not study.varied:
        raise InputError("no column has several values to compare")
    for column, votes in study.varied.items():
        yield from or_skipped(column, _ablation(study, column, votes))


def _ablation(study: Study, column: str, votes: Votes) -> Made:
    by = [name for name in study.columns if name != column]
    n_votes = None if study.most_votes is None else [study.most_votes]
    found = study.run(f"by {column}", ablate, votes, column, n_votes=n_votes, by=by)
    for one in left_out(study, found):
        yield replace(one, what=f"{column}, {one.what}")
    yield tables.ablation_table(found)
    for key, cells in found.by_key().items():
        named = {cell.value: main_methods(study, cell) for cell in cells}
        if len(named) > 1:
            yield named_after(condition_figure(column, named), *key)


def _error_by_order(study: Study) -> Made:
    votes = study.votes
    if votes.are_counts or "order" not in votes.columns:
        raise InputError("the votes have no column order")
    n_votes = study.most_votes or max(study.budgets())
    of_each = n_votes // 2 - n_votes // 2 % 2  # votes that an item has of either order
    if of_each < 2:
        raise InputError(f"this needs two votes of each order, and an item has {n_votes}")
    found = study.run("order", compare_orders, votes, of_each)
    yield from left_out(study, found)
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


QUESTIONS = (
    *usual.QUESTIONS,
    Question(
        "spread",
        "How the fits differ between splits",
        "Medians and quartiles of the three numbers over 20 splits.",
        _spread,
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
        "The same items under every value.",
        _ablations,
    ),
    Question("by-order", "Whether showing both orders lowers the error", "", _error_by_order),
    Question("ties", "How often judges call a tie", "", _ties),
)
"""In the order in which they stand in the report."""
