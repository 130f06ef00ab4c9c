"""The sections of the report of an evaluation: scores, and an answer to each further question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from btdagg._core import InputError
from btdagg.evaluation import evaluate, positional_bias, sweep_calibration
from btdagg.evaluation.engine import quiet_fit
from btdagg.evaluation.parts import names_of
from btdagg.methods import Aggregator
from btdagg.methods.base import needs_of
from btdagg.report import figures, tables
from btdagg.report.table import ReportTable
from btdagg.report.wording import key_of, stem

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.evaluation import Comparison, LabelledItems, Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.model.davidson import DavidsonModel
    from btdagg.report.figure import ReportFigure
    from btdagg.report.folder import ReportFolder
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


def each(
    parts: Mapping[str, Part], make: Callable[[Part], Result]
) -> tuple[dict[str, Result], list[Skipped]]:
    """Make something of each part; one that cannot be made leaves the others.

    If all fail for one reason, that is an `InputError`.
    """
    made: dict[str, Result] = {}
    skipped: list[Skipped] = []
    for name, part in parts.items():
        try:
            made[name] = make(part)
        except InputError as error:
            skipped.append(Skipped(name, str(error)))
    if not made and len({fault.reason for fault in skipped}) == 1:
        raise InputError(skipped[0].reason)
    return made, skipped


def or_skipped(what: str, made: Made) -> Made:
    """Make exhibits; what fails leaves the others of the section."""
    try:
        yield from made
    except InputError as error:
        yield Skipped(what, str(error))


def left_out(study: Study, found: Scores) -> Iterator[Skipped]:
    """What a protocol skipped, but for the parts that nothing could be made of."""
    for key, reason in found.skipped:
        if not any(key[: len(part)] == part for part in study.refused):
            yield Skipped(key_of(key), reason)


def _vote_sweep(study: Study) -> Made:
    budgets = study.budgets()
    if study.votes.are_counts or len(budgets) < 2:
        raise InputError("this needs single votes, at several numbers of votes")
    found = study.run(
        "number of votes",
        evaluate,
        study.votes,
        n_votes=budgets,
        protocol=study.protocol.untested,
    )
    yield from left_out(study, found)
    yield from figures.vote_figures(found)
    yield tables.vote_sweep_table(found)


def _calibration_sweep(study: Study) -> Made:
    sizes = study.calibration_sizes()
    if len(sizes) < 2:
        raise InputError("there are too few labelled items for two sizes of a calibration set")
    found = study.run(
        "number of labels", sweep_calibration, study.votes, sizes, n_votes=study.most_votes
    )
    yield from left_out(study, found)
    yield from figures.calibration_figures(found)
    yield tables.calibration_sweep_table(found)


def _parameters(study: Study) -> Made:
    written = study.calibrations()
    if not written:
        raise InputError("no method calibrates a model")
    yield _headed(tables.calibrations_table(written), study.columns)


def _labels(study: Study) -> Made:
    gold = study.gold_items
    yield figures.gold_figure(gold)
    yield _headed(tables.gold_table(gold), ("task",) if "task" in study.columns else study.columns)
    compared = {name: main_methods(study, cell) for name, cell in study.cells().items()}
    for name, comparison in compared.items():
        yield figures.confusion_figure(name, comparison)
        yield figures.distribution_figure(name, comparison)
    yield _headed(tables.distribution_table(compared), study.columns)
    yield _headed(tables.confusion_table(compared), study.columns)


def main_methods(study: Study, cell: Cell) -> Comparison:
    """The model that is written and majority vote, of all methods of a comparison."""
    names = [method.name for method in study.main_methods]
    methods = tuple(method for method in cell.comparison.methods if method.name in names)
    return replace(cell.comparison, methods=methods, tested=None, new_items=None)


def _orders(study: Study) -> Made:
    votes = study.votes
    if votes.are_counts or "order" not in votes.columns:
        raise InputError("the votes have no column order")
    by = [column for column in ("judge",) if column in votes.columns]
    bias = positional_bias(votes, by=by)
    yield tables.positional_bias_table(bias, by)
    yield from or_skipped("figure of positional bias", map(figures.positional_bias_figure, [bias]))


def _behaviour(study: Study) -> Made:
    written = {name: cell.fitted for name, cell in study.cells().items()}

    def drawn(part: tuple[str, LabelledItems]) -> ReportFigure:
        name, items = part
        known = written.get(name)
        by_name: dict[str, Aggregator] = {} if known is None else {known.name: known}
        # What neighbours a method has is for an evaluation to say.
        for method in study.own_methods:
            if method.name not in by_name and not needs_of(method).neighbours:
                by_name[method.name] = quiet_fit(method, items.rows, items.labels)
        most = int(items.evidence.counts.sum(axis=1).max())
        return figures.behaviour_figure(by_name, min(most, MOST_MAPPED))

    found, skipped = each({name: (name, items) for name, items in study.items.items()}, drawn)
    yield from skipped
    for name, figure in found.items():
        yield named_after(figure, name) if name and len(found) > 1 else figure


def named_after(exhibit: ReportTable | ReportFigure, *whose: str) -> ReportTable | ReportFigure:
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


def _headed(table: ReportTable, columns: Sequence[str]) -> ReportTable:
    """Head the first column, which names the parts, by the columns that the evaluation goes by."""
    return replace(table, header=(", ".join(columns) or "items", *table.header[1:]))


QUESTIONS = (
    Question(
        "votes",
        "How many votes are worth their price",
        "The error against the number of votes per item, on the same items.",
        _vote_sweep,
    ),
    Question(
        "calibration",
        "How many labels are enough",
        "The error against the number of labels to calibrate on. Every number is scored on the "
        "same items, and smaller calibration sets are parts of larger ones.",
        _calibration_sweep,
    ),
    Question(
        "parameters",
        "What calibration finds",
        "The three numbers of the model. A high nu moves labels towards ties; a low nu leaves the "
        "votes as they are.",
        _parameters,
    ),
    Question(
        "labels",
        "Which labels are mistaken for which",
        "Gold labels against those of the calibrated model and of majority vote.",
        _labels,
    ),
    Question(
        "order",
        "Whether the judge favours a position",
        "Votes for the response that was shown first against those for the second.",
        _orders,
    ),
    Question(
        "behaviour",
        "How each method decides",
        "All possible counts of an item, and how each method decides them.",
        _behaviour,
    ),
)
"""In the order in which they stand in the report."""

_READ = (
    "One line for each judge and task. The sections below answer further questions; open those "
    "that you have."
)


_ESTIMATED = (
    "What share of all items A wins, B wins or both tie. Labels of some items, and the votes of "
    "all: the labelled items measure how the judge errs, the votes make the intervals narrower."
)

_RANKED = (
    "How strong each system is, by labels of some of its items and the votes of all. Strengths "
    "allow for opponents, win rates do not."
)


def write_scores(report: ReportFolder, evaluation: Scores) -> None:
    """Write what to use, and below it which method is best and whether the difference is real."""
    report.section("scores", "What to use", _READ)
    for remark in evaluation.remarks:
        report.remark(remark)
    report.add(tables.answers_table(evaluation), tables.methods_table(evaluation))
    several = len(evaluation.cells[0].comparison.methods) > 1
    details = list(tables.score_tables(evaluation, _ranks if several else None))
    if several:
        details.append(tables.pvalue_table(evaluation))
    report.add(*(replace(table, folded=True) for table in details))
    report.show_models(_models(evaluation), _most_votes(evaluation))


def write_protocols(
    report: ReportFolder, study: Study, questions: Iterable[Question] = QUESTIONS
) -> None:
    """Write all other sections; what the votes do not allow is skipped, with the reason."""
    for key, reason in study.refused.items():
        report.skipped(key_of(key), reason)
    for question in questions:
        title, begun = question.title, False
        try:
            for found in question.answer(study):
                if isinstance(found, Skipped):
                    report.skipped(f"{title}: {found.what}", found.reason)
                    continue
                if not begun:
                    report.section(question.name, title, question.text, folded=True)
                    begun = True
                try:
                    report.add(found)
                except InputError as error:
                    report.skipped(f"{title}: {found.title}", str(error))
        except InputError as error:
            report.skipped(f"{title}: the rest" if begun else title, str(error))


def _ranks(comparison: Comparison, score: Literal["mae", "accuracy"]) -> NDArray[np.int64]:
    ranking = comparison.mae_ranking if score == "mae" else comparison.accuracy_ranking
    return ranking.ranks


def _most_votes(evaluation: Scores) -> int:
    fits = [cell.fitted.calibration for cell in evaluation.cells if cell.fitted is not None]
    return max((fit.max_votes for fit in fits if fit is not None), default=0) or MOST_MAPPED


def _models(evaluation: Scores) -> dict[str, DavidsonModel]:
    """Models fitted to all labels of a part at its largest number of votes, as they are written."""
    most = evaluation.at_most_votes()
    return {
        ": ".join(filter(None, (cell.fitted.name, name))): cell.fitted.calibration.model
        for name, cell in zip(names_of(most), most.values(), strict=True)
        if cell.fitted is not None and cell.fitted.calibration is not None
    }


def write_estimates(report: ReportFolder, found: Estimates, by: str | None = None) -> None:
    """Write shares and win rates over all items, with the judge and without."""
    report.section("estimates", "How often A wins", _ESTIMATED)
    for remark in found.remarks:
        report.remark(remark)
    differences = None if by is None else tables.differences_table(found, by)
    exhibits = (figures.estimates_figure(found, by), tables.estimates_table(found, by), differences)
    _add(report, "How often A wins", filter(None, exhibits))


def write_systems(report: ReportFolder, found: SystemEstimates) -> None:
    """Write how strong systems are, and how often each wins, with the judge and without."""
    title = "Which system is best"
    report.section("systems", title, _RANKED)
    for remark in found.remarks:
        report.remark(remark)
    _add(report, title, [tables.systems_table(found), figures.systems_figure(found)])


def _add(report: ReportFolder, title: str, exhibits: Iterable[ReportFigure | ReportTable]) -> None:
    """Add tables and figures; one that cannot be written is skipped."""
    for exhibit in exhibits:
        try:
            report.add(exhibit)
        except InputError as error:
            report.skipped(f"{title}: {exhibit.title}", str(error))
