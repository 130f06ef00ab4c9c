"""The sections of the report of an evaluation: scores, and an answer to each further question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from btdagg._core import InputError
from btdagg.evaluation.parts import names_of
from btdagg.report import figures, tables
from btdagg.report.questions import MOST_MAPPED, QUESTIONS, Question, Skipped
from btdagg.report.wording import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from btdagg.estimates import Estimates, SystemEstimates
    from btdagg.evaluation import Comparison, Scores
    from btdagg.model.davidson import DavidsonModel
    from btdagg.report.figure import ReportFigure
    from btdagg.report.folder import ReportFolder
    from btdagg.report.study import Study
    from btdagg.report.table import ReportTable


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
    exhibits: list[ReportFigure | ReportTable] = [figures.estimates_figure(found, by)]
    exhibits.append(tables.estimates_table(found, by))
    if by is not None and (differences := tables.differences_table(found, by)) is not None:
        exhibits.append(differences)
    _add(report, "How often A wins", exhibits)


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
