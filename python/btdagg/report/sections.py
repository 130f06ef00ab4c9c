"""The sections of the report of an evaluation: a protocol each, as far as the votes allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from btdagg._core import InputError
from btdagg.aggregators import Davidson, MajorityVote
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
from btdagg.evaluation.fitting import quiet_fit
from btdagg.evaluation.summary import remarks
from btdagg.report import figures, tables
from btdagg.report.markup import file_stem
from btdagg.report.table import Entry, ReportTable
from btdagg.votes import Votes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from btdagg.evaluation import Comparison, Distributions, Evaluation
    from btdagg.evaluation.protocol import Cell
    from btdagg.model import DavidsonModel
    from btdagg.report.figure import ReportFigure
    from btdagg.report.folder import ReportFolder
    from btdagg.report.study import Study

Exhibits: TypeAlias = "Iterator[ReportTable | ReportFigure]"

# The paper's number of splits for fitted parameters and confusion matrices.
_FEW_SPLITS = 20

# Votes of the map of behaviours, as in the paper, where there are more.
_MAPPED = 20


@dataclass(frozen=True)
class Section:
    """A section: its title, what it is for, and what makes its tables and figures."""

    name: str
    title: str
    text: str
    make: Callable[[Study], Exhibits]


def write_scores(report: ReportFolder, evaluation: Evaluation) -> None:
    """Write the first section: which method is best, and whether the difference is real."""
    compared = evaluation.cells[0].comparison
    several = len(compared.methods) > 1
    test = f"Whether methods differ: {compared.test.words}." if several else ""
    report.section(
        "scores",
        "Which method is best",
        "Every split calibrates on a few labels and scores the rest: mean absolute error (MAE, "
        f"lower is better) and pairwise accuracy (higher is better). {test}",
    )
    for remark in remarks(evaluation):
        report.remark(remark)
    report.add(*tables.score_tables(evaluation, _ranks if several else None))
    if several:
        report.add(_pvalues(evaluation))
    report.show_models(_models(evaluation), _most_votes(evaluation))


def write_protocols(report: ReportFolder, study: Study) -> None:
    """Write all other sections; those that the votes do not allow are skipped, with the reason."""
    for section in SECTIONS:
        begun = False
        try:
            for exhibit in section.make(study):
                if not begun:
                    report.section(section.name, section.title, section.text)
                    begun = True
                report.add(exhibit)
        except InputError as error:
            report.skipped(section.title, str(error))


def _ranks(comparison: Comparison, score: Literal["mae", "accuracy"]) -> NDArray[np.int64]:
    ranking = comparison.mae_ranking if score == "mae" else comparison.accuracy_ranking
    return ranking.ranks


def _pvalues(evaluation: Evaluation) -> ReportTable:
    """Every two methods of every cell."""
    rows: list[tuple[Entry, ...]] = []
    records: list[dict[str, object]] = []
    for cell in evaluation.cells:
        found = cell.comparison
        names = [method.name for method in found.methods]
        budget = "all" if cell.n_votes is None else str(cell.n_votes)
        for one in range(len(names)):
            for other in range(one + 1, len(names)):
                mae = float(found.mae_ranking.pvalues[one, other])
                accuracy = float(found.accuracy_ranking.pvalues[one, other])
                texts = (*cell.key, budget, names[one], names[other])
                significant = [Entry(f"{p:.2g}", p < found.test.tau) for p in (mae, accuracy)]
                rows.append((*map(Entry, texts), *significant))
                records.append(
                    {
                        **dict(zip(evaluation.by, cell.key, strict=True)),
                        "n_votes": cell.n_votes,
                        "method": names[one],
                        "other": names[other],
                        "mae_pvalue": mae,
                        "accuracy_pvalue": accuracy,
                    }
                )
    return ReportTable(
        "pvalues",
        "P-values of every two methods",
        f"{found.test.words[0].upper()}{found.test.words[1:]}. Bold: below that level.",
        (*evaluation.by, "votes", "method", "other", "p (MAE)", "p (accuracy)"),
        tuple(rows),
        tuple(records),
        n_label_columns=len(evaluation.by) + 3,
    )


def _most_votes(evaluation: Evaluation) -> int:
    fits = [cell.fitted.calibration for cell in evaluation.cells if cell.fitted is not None]
    return max((fit.max_votes for fit in fits if fit is not None), default=_MAPPED) or _MAPPED


def _models(evaluation: Evaluation) -> dict[str, DavidsonModel]:
    """Models fitted to all labels of a part, at its largest number of votes."""
    most: dict[str, Cell] = {}
    for cell in evaluation.cells:
        name = " ".join(cell.key) or "all items"
        other = most.setdefault(name, cell)
        if (cell.n_votes or 0) > (other.n_votes or 0):
            most[name] = cell
    return {
        name: cell.fitted.calibration.model
        for name, cell in most.items()
        if cell.fitted is not None and cell.fitted.calibration is not None
    }


def _vote_sweep(study: Study) -> Exhibits:
    budgets = study.budgets()
    if not isinstance(study.votes, Votes) or len(budgets) < 2:
        raise InputError("it wants single votes, and more than one number of them")
    with study.progress("number of votes") as progress:
        found = sweep_votes(
            study.votes,
            study.labels,
            budgets,
            by=study.by,
            aggregators=study.swept_methods,
            confidence=study.confidence,
            share=study.share,
            size=study.size,
            n_splits=study.n_splits,
            seed=study.seed,
            progress=progress,
        )
    yield from figures.vote_figures(found)
    yield tables.vote_sweep_table(found)


def _calibration_sweep(study: Study) -> Exhibits:
    sizes = study.calibration_sizes()
    if len(sizes) < 2:
        raise InputError("there are too few labelled items for two sizes of a calibration set")
    with study.progress("number of labels") as progress:
        found = sweep_calibration(
            study.votes,
            study.labels,
            sizes,
            n_votes=study.most_votes,
            by=study.by,
            aggregators=study.swept_methods,
            confidence=study.confidence,
            n_splits=study.n_splits,
            seed=study.seed,
            progress=progress,
        )
    yield from figures.calibration_figures(found)
    yield tables.calibration_sweep_table(found)


def _parameters(study: Study) -> Exhibits:
    fitted = {
        name: fitted_parameters(
            items, share=study.share, size=study.size, n_splits=_FEW_SPLITS, seed=study.seed
        )
        for name, items in study.items.items()
    }
    yield tables.parameters_table(fitted)


def _transfer(study: Study) -> Exhibits:
    if "task" not in study.columns:
        raise InputError("it wants votes of several tasks, and a column that says which")
    judges = study.judges()
    for judge, votes in judges.items():
        tasks = study.items_by(["task"], votes)
        with study.progress(f"transfer {judge}".strip()) as progress:
            found = transfer_matrix(
                tasks,
                share=study.share,
                size=study.size,
                n_splits=study.n_splits,
                seed=study.seed,
                progress=progress(study.n_splits),
            )
        yield _of(figures.transfer_figure(found), judge)
        yield _of(tables.transfer_table(found), judge)


def _labels(study: Study) -> Exhibits:
    yield figures.gold_figure(study.items)
    yield tables.gold_table(study.items)
    found: dict[str, Distributions] = {}
    with study.progress("confusion") as progress:
        step = progress(len(study.items) * _FEW_SPLITS)
        for name, items in study.items.items():
            found[name] = label_distributions(
                items,
                _pair(study),
                share=study.share,
                size=study.size,
                n_splits=_FEW_SPLITS,
                seed=study.seed,
                progress=step,
            )
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


def _pair(study: Study) -> list[Davidson | MajorityVote]:
    """The paper's two: its own method and majority vote, as they were given."""
    own = [method for method in study.methods if isinstance(method, Davidson | MajorityVote)]
    return own or [Davidson(), MajorityVote()]


def _ablations(study: Study) -> Exhibits:
    if not study.varied:
        raise InputError("no column was named or found that has several values to compare")
    for column, votes in study.varied.items():
        by = [name for name in study.columns if name != column]
        with study.progress(f"by {column}") as progress:
            found = ablate(
                votes,
                study.labels,
                column,
                n_votes=None if study.most_votes is None else [study.most_votes],
                by=by,
                aggregators=study.swept_methods,
                confidence=study.confidence,
                share=study.share,
                size=study.size,
                n_splits=study.n_splits,
                seed=study.seed,
                progress=progress,
            )
        yield tables.ablation_table(found)
        yield from _conditions(study, column, votes, by)


def _conditions(study: Study, column: str, votes: Votes, by: list[str]) -> Exhibits:
    """How labels are distributed under each value."""
    for key, part in votes.partition(by):
        items = study.items_by([column], part)
        if len(items) > 1:
            found = {
                value: label_distributions(
                    chosen,
                    _pair(study),
                    share=study.share,
                    size=study.size,
                    n_splits=_FEW_SPLITS,
                    seed=study.seed,
                )
                for value, chosen in items.items()
            }
            yield _of(figures.condition_figure(column, found), " ".join(key))


def _orders(study: Study) -> Exhibits:
    votes = study.votes
    if not isinstance(votes, Votes) or "order" not in votes.columns:
        raise InputError("the votes have no column order")
    by = [column for column in ("judge",) if column in votes.columns]
    bias = positional_bias(votes, by=by)
    yield figures.positional_bias_figure(bias)
    yield tables.positional_bias_table(bias, by)
    n_votes = study.most_votes or max(study.budgets())
    each = n_votes // 2 - n_votes // 2 % 2  # votes that an item has of either order
    if each >= 2:
        with study.progress("order") as progress:
            found = compare_orders(
                votes,
                study.labels,
                each,
                by=study.by,
                aggregators=study.swept_methods,
                share=study.share,
                size=study.size,
                n_splits=study.n_splits,
                seed=study.seed,
                progress=progress,
            )
        yield tables.order_table(found)


def _ties(study: Study) -> Exhibits:
    votes = study.votes
    if not isinstance(votes, Votes):
        raise InputError("it wants single votes")
    votes = study.varied.get("template", votes)
    columns = [name for name in ("judge", "template", "task") if name in votes.columns]
    if len(columns) < 2:
        raise InputError("it wants two of the columns judge, template and task")
    found = tie_rates(votes, *columns[:2])
    yield figures.tie_rate_figure(found, *columns[:2])
    yield tables.tie_rate_table(found, *columns[:2])


def _behaviour(study: Study) -> Exhibits:
    name, items = next(iter(study.items.items()))
    fitted = [quiet_fit(method, items.rows, items.labels) for method in study.own_methods]
    most = int(items.evidence.counts.sum(axis=1).max())
    yield _of(
        figures.behaviour_figure({method.name: method for method in fitted}, min(most, _MAPPED)),
        f"fitted to {name}" if name else "",
    )


def _of(exhibit: ReportTable | ReportFigure, whose: str) -> ReportTable | ReportFigure:
    """Name an exhibit after the judge or part that it is of."""
    if not whose:
        return exhibit
    return replace(
        exhibit,
        name=file_stem(f"{exhibit.name}-{whose}"),
        title=f"{exhibit.title}, {whose}",
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


SECTIONS = (
    Section(
        "votes",
        "How many votes are worth their price",
        "The error against the number of votes per item, on the same items and splits.",
        _vote_sweep,
    ),
    Section(
        "calibration",
        "How many labels are enough",
        "The error against the number of labels calibrated on. The items that are scored are the "
        "same for every number, and a smaller set is part of a larger one.",
        _calibration_sweep,
    ),
    Section(
        "parameters",
        "What calibration finds",
        "The model's three numbers, fitted again on every split. A high nu says that votes are to "
        "be moved towards ties, a low one that they are to be taken as they are.",
        _parameters,
    ),
    Section(
        "labels",
        "Which labels are taken for which",
        "Gold labels against those of the calibrated model and of majority vote.",
        _labels,
    ),
    Section(
        "transfer",
        "Whether a calibration carries over",
        "Calibrated on one task (row) and used on another (column), against the calibration of "
        "the task itself.",
        _transfer,
    ),
    Section(
        "ablations",
        "What prompt and temperature change",
        "The same items and splits under every value.",
        _ablations,
    ),
    Section(
        "order",
        "Whether the judge favours a position",
        "Votes for the response that was shown first against those for the second.",
        _orders,
    ),
    Section("ties", "How often judges call a tie", "", _ties),
    Section(
        "behaviour",
        "How each method decides",
        "Every way in which the votes of an item can fall, and what each method makes of it.",
        _behaviour,
    ),
)
"""In the order in which they stand in the report."""
