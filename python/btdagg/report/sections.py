"""The sections of the report of an evaluation: scores, and an answer to each further question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import InputError, forbid
from btdagg._util.wording import MISSING
from btdagg.evaluation import CrossFit, positional_bias
from btdagg.evaluation.engine import quiet_fit
from btdagg.evaluation.tables import positional_bias_table, pvalue_table, sweep_table
from btdagg.evaluation.wording import key_of
from btdagg.methods import Calibrated
from btdagg.methods.base import needs_of
from btdagg.model.davidson import DavidsonModel
from btdagg.model.tables import grades_table, parameters_table
from btdagg.questions.agreement import agreement
from btdagg.questions.bias import FAVOURED, bias
from btdagg.questions.evaluate import evaluate
from btdagg.questions.systems import BEST, estimate_systems
from btdagg.report import figures
from btdagg.result import Result
from btdagg.votes.standings import STANDINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from btdagg.evaluation import Scores
    from btdagg.methods import Aggregator
    from btdagg.report.folder import ReportFolder
    from btdagg.report.study import Study
    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes

MOST_MAPPED = 20
"""Votes of the map of behaviours, as in the paper, where there are more."""

_MOST_GRADES = 12  # that a table or a figure has room for


@dataclass(frozen=True)
class Question:
    """A section of a report: the question that it answers.

    Attributes
    ----------
    name : str
        Name in ``report.json``.
    title, text : str
        Heading, and the sentence below it.
    answer : callable
        Takes the study and the report, to which it adds tables and figures; it raises an
        `InputError` where the votes allow no answer, which the page then says.
    paired : bool
        Whether it is asked of votes on pairs alone.
    """

    name: str
    title: str
    text: str
    answer: Callable[[Study, ReportFolder], None]
    paired: bool = False


def _vote_sweep(study: Study, report: ReportFolder) -> None:
    budgets = study.budgets()
    forbid(len(budgets) < 2, "this needs single votes, at several numbers of votes")
    untested = study.protocol.untested
    if isinstance(splitter := untested.splitter, CrossFit):
        n_refits = min(splitter.n_refits, study.effort.n_refits)
        untested = replace(untested, splitter=replace(splitter, n_refits=n_refits))
    how: dict[str, Any] = {"protocol": untested, "covariates": study.covariates}
    scores = study.run("number of votes", evaluate, study.votes, n_votes=budgets, **how)
    # Their scores at all votes are those of the evaluation: a quantity has one source.
    wholes, cells = study.scores.at_most_votes(), []
    for cell in scores.cells:
        whole = wholes.get(cell.key)
        if whole is not None and cell.n_votes == whole.items.pooled.sum(axis=1).max():
            names = [method.name for method in cell.methods]
            cell = replace(whole.among(names), n_votes=cell.n_votes)
        cells.append(cell)
    _add_sweep(study, report, replace(scores, cells=tuple(cells)))


def _calibration_sweep(study: Study, report: ReportFolder) -> None:
    sizes = study.calibration_sizes()
    forbid(len(sizes) < 2, "there are too few labelled items for two sizes of a calibration set")
    n_votes = None if study.most_votes is None else [study.most_votes]
    how: dict[str, Any] = {"n_votes": n_votes, "covariates": study.covariates}
    scores = study.run("number of labels", evaluate, study.votes, n_labels=sizes, **how)
    _add_sweep(study, report, scores)


def _add_sweep(study: Study, report: ReportFolder, scores: Scores) -> None:
    study.skip_left_out(report, scores)
    report.choose(figures.sweep_figures(scores))
    report.add(sweep_table(scores))


def _parameters(study: Study, report: ReportFolder) -> None:
    calibrations: dict[str, Any] = {
        name: fitted.calibration
        for name, fitted in _fits(study.scores).items()
        if fitted.calibration is not None
    }
    forbid(not calibrations, "no method calibrates a model")
    _refuse_long(study)
    models = {name: calibration.model for name, calibration in calibrations.items()}
    more = {name: {"labels": f"{fit.n_labels:,}"} for name, fit in calibrations.items()}
    note = "For the model fitted to all labels"
    if not study.votes.scale.mirrored:
        table = grades_table(models, more, label="task", note=f"{note}.")
    else:
        for name, calibration in calibrations.items():
            more[name]["at a bound"] = ", ".join(calibration.at_bounds) or MISSING
        table = parameters_table(
            models,
            {
                name: intervals
                for name, calibration in calibrations.items()
                if (intervals := calibration.intervals())
            },
            more,
            label="task",
            note=f"{note}, with 95% intervals by the labels alone.",
        )
    # The parts are by the columns that the evaluation goes by.
    header = (", ".join(study.scores.by) or "items", *table.header[1:])
    report.add(replace(table, header=header))


def _labels(study: Study, report: ReportFolder) -> None:
    _refuse_long(study)
    cells = {name: cell.main for name, cell in study.scores.parts.items()}
    for figure in (figures.confusion_figure, figures.distribution_figure):
        report.choose({name: figure(name, cell) for name, cell in cells.items()})


def _refuse_long(study: Study) -> None:
    scale = study.labels.scale
    forbid(
        len(scale.points) > _MOST_GRADES,
        f"labels have {len(scale.points)} grades, more than {_MOST_GRADES}",
    )


def _orders(study: Study, report: ReportFolder) -> None:
    votes = study.votes
    forbid(votes.are_counts or "order" not in votes.columns, "the votes have no column order")
    by = [column for column in ("judge",) if column in votes.columns]
    biases = positional_bias(votes, by=by)
    report.add(positional_bias_table(biases, by))
    if any(bias.interval for bias in biases):
        report.add(figures.positional_bias_figure(biases))


def _behaviour(study: Study, report: ReportFolder) -> None:
    fits, maps = _fits(study.scores), {}
    for name, items in study.scores.items.items():
        calibration = fits[name].calibration if name in fits else None
        if calibration is not None and not calibration.model.scale.mirrored:
            whose = (name,) if len(study.scores.items) > 1 else ()
            maps[name] = figures.grades_figure(calibration.model).named_after(*whose)
            continue
        with report.skipping(name):
            by_name: dict[str, Aggregator] = {fits[name].name: fits[name]} if name in fits else {}
            # What neighbours a method has is for an evaluation to say.
            for method in study.own_methods:
                if method.name not in by_name and not needs_of(method).neighbours:
                    by_name[method.name] = quiet_fit(method, items.decided_by, items.label)
            most = int(items.pooled.sum(axis=1).max())
            figure = figures.behaviour_figure(by_name, min(most, MOST_MAPPED))
            maps[name] = figure.named_after(name) if len(study.scores.items) > 1 else figure
    report.choose(maps)


def _fits(scores: Scores) -> dict[str, Calibrated]:
    return {name: cell.fitted for name, cell in scores.parts.items() if cell.fitted is not None}


QUESTIONS = (
    Question(
        "votes",
        "How many votes are enough",
        "The error by the number of votes per item, on the same items.",
        _vote_sweep,
    ),
    Question(
        "calibration",
        "How many labels are enough",
        "The error by the number of labels to calibrate on. Every number is scored on the same "
        "items, and larger calibration sets contain the smaller ones.",
        _calibration_sweep,
    ),
    Question(
        "parameters",
        "What calibration finds",
        "The parameters of the model. For pairs, a high nu moves labels towards ties, and a low "
        "nu leaves the votes as they are. For grades: the mean vote at which each grade begins.",
        _parameters,
    ),
    Question(
        "labels",
        "Which labels are confused",
        "People's labels against those of the calibrated model and of the plain vote.",
        _labels,
    ),
    Question(
        "order",
        "Whether the judge favours a position",
        "Votes for the response shown first, against votes for the second.",
        _orders,
        paired=True,
    ),
    Question(
        "behaviour",
        "How each method decides",
        "The decision for every possible combination of votes on an item.",
        _behaviour,
    ),
)
"""In the order in which they stand in the report."""


def write_scores(report: ReportFolder, scores: Scores) -> None:
    """Write what to use, and below it which method is best and whether the difference is real."""
    report.section(
        "scores",
        "What to do",
        f"{scores.sentence()}. There is one line for each part, such as a judge and task; "
        "calibrated is the model fitted to all these labels. The sections below answer further "
        "questions.",
    )
    report.add_result(scores)
    if len(scores.cells[0].methods) > 1:
        report.add(pvalue_table(scores), folded=True)
    models, most = {}, 0
    for name, fitted in _fits(scores).items():
        calibration = fitted.calibration
        if calibration is not None and isinstance(calibration.model, DavidsonModel):
            models[": ".join(filter(None, (fitted.name, name)))] = calibration.model
            most = max(most, calibration.max_votes)
    report.show_models(models, most or MOST_MAPPED)


def write_protocols(
    report: ReportFolder, study: Study, questions: Iterable[Question] = QUESTIONS
) -> None:
    """Write all other sections; what the votes do not allow is skipped, with the reason."""
    for key, reason in study.scores.skipped:
        report.skipped(key_of(key), reason)
    for question in questions:
        if question.paired and not study.votes.scale.mirrored:
            continue
        report.section(question.name, question.title, question.text, folded=True)
        with report.skipping():
            question.answer(study, report)


def write_result(report: ReportFolder, result: Result, *part: str, folded: bool = False) -> None:
    """Write what a question was answered with, of a part such as a task."""
    title = ": ".join([result.heading, *([key_of(part)] if part else [])])
    report.section(result.table().name, title, f"{result.sentence()}.")
    report.add_result(result, folded=folded)


def write_agreement(report: ReportFolder, study: Study) -> None:
    """Write how often judges agree with themselves and with people."""
    with report.skipping("agreement"):
        write_result(report, agreement(study.votes, study.labels), folded=True)


def write_biases(report: ReportFolder, study: Study) -> None:
    """Write what each judge favours, where lengths, other numbers or systems are known."""
    votes = study.votes
    apart = ["judge", *votes.scale.mode.criteria]
    names = [name.strip() for name in (study.covariates or "auto").split(",")]
    known = ",".join(name for name in names if name not in STANDINGS) or "auto"
    reasons: dict[str, list[str]] = {}
    for key, part in votes.partition([name for name in apart if name in votes.columns]):
        try:
            found = bias(part.items(study.labels), covariates=known)
            write_result(report, found, *key)
        except InputError as error:
            if (error.argument, error.got) != ("covariates", "nothing"):
                reasons.setdefault(str(error), []).append(": ".join(key))
    for reason, whose in reasons.items():
        report.skipped(": ".join(filter(None, [FAVOURED, ", ".join(whose)])), reason)


def write_ranking(report: ReportFolder, votes: Votes, labels: Labels) -> None:
    """Write which system is best, where the votes name their systems and have one scale."""
    named = {*votes.scale.systems} <= {*votes.columns}
    parts = {*votes.scale.mode.criteria} & {*votes.columns}  # which have means of their own
    if named and all(len(votes.values(name)) < 2 for name in parts):
        try:
            write_result(report, estimate_systems(votes.items(labels)))
        except InputError as error:
            report.skipped(BEST, str(error))
