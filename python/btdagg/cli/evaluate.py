"""`btdagg evaluate`: compare aggregators on votes and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg import remarks
from btdagg._util.errors import InputError
from btdagg.cli.common import (
    Json,
    LabelsFile,
    Reading,
    ReadingWithCovariates,
    VotesFile,
    note,
    parse_pairs,
    print_json,
    progress_bar,
    say,
    what_is_pooled,
)
from btdagg.cli.estimate import over_all_items
from btdagg.cli.prior import PriorOption, methods_with_priors, priors_beside, votes_alike
from btdagg.cli.reporting import (
    ReportOption,
    names,
    numbers_of_votes,
    print_scores,
    say_where,
)
from btdagg.evaluation import CrossFit, GroupTest
from btdagg.evaluation.parts import grouping, labelled_parts
from btdagg.evaluation.protocol import Protocol
from btdagg.methods import by_name
from btdagg.methods.base import needs_of
from btdagg.methods.registry import AGGREGATORS, aggregators_or_usual
from btdagg.questions.compare import about_strengths
from btdagg.questions.evaluate import evaluate as run_evaluation
from btdagg.report.sections import (
    QUESTIONS,
    write_agreement,
    write_biases,
    write_protocols,
    write_ranking,
    write_result,
    write_scores,
)
from btdagg.report.study import Study
from btdagg.votes.scale import Scale
from btdagg.votes.schema import checked, fractions
from btdagg.votes.votes import column_of_decisions

if TYPE_CHECKING:
    from btdagg.estimates import Certificate
    from btdagg.evaluation import Scores
    from btdagg.methods import Aggregator
    from btdagg.questions.estimate import Estimates
    from btdagg.report.folder import ReportFolder
    from btdagg.report.sections import Question
    from btdagg.votes.labels import Labels
    from btdagg.votes.votes import Votes

_NEEDS = {name: needs_of(make()) for name, make in AGGREGATORS.built_in.items()}
_CONFIDENT = [name for name, needs in _NEEDS.items() if needs.confidences]

# Labels of each part from which on neighbours of grades are left out.
_MANY = 100

By = Annotated[
    str | None,
    typer.Option(
        help="Columns to group by, separated by commas; the table has a line for each group.",
        show_default="task,judge, if these columns exist",
    ),
]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods, separated by commas: "
        + ", ".join(name for name, needs in _NEEDS.items() if needs.votes_alone)
        + "; if votes have confidences, also "
        + ", ".join(_CONFIDENT)
        + "; and, from columns of decisions, "
        + ", ".join(name for name, needs in _NEEDS.items() if needs.decisions)
        + " (gsa_4 with -n 4); neighbours, beside other tasks or judges; or those of installed "
        "packages. all uses every method that the columns and the scale allow.",
        show_default="calibrated, its variants, threshold and majority; of grades all",
    ),
]
NumbersOfVotes = Annotated[
    str | None,
    typer.Option(
        "-n",
        help="Votes per item; several numbers separated by commas: 4,8 evaluates with the first 4 "
        "votes, then with 8.",
        show_default="all",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Evaluated(ReportOption):
    """The evaluated votes and methods, and the tables to show."""

    votes: VotesFile = None
    labels: LabelsFile = None
    by: By = None
    methods: Methods = None
    n_votes: NumbersOfVotes = None
    json: Json = False


@dataclass(frozen=True)
class Additions:
    """What the paper's command adds to the comparison.

    Attributes
    ----------
    questions : sequence of Question
        Of its report.
    methods : sequence of str
        Names of the methods that it compares on pairs unless others are named.
    own : mapping of str to constructor
        Methods that no other command knows.
    varied : callable
        From the votes, the command and how it reads to the votes of each ablation, by column.
    """

    questions: Sequence[Question] = QUESTIONS
    methods: Sequence[str] = ()
    own: Mapping[str, Callable[..., Aggregator]] = field(default_factory=dict)
    varied: Callable[[Votes, Evaluated, Reading], Mapping[str, Votes]] = lambda *_: {}


_NO_ADDITIONS = Additions()


def evaluate(
    evaluated: Evaluated, reading: ReadingWithCovariates, prior: PriorOption = None
) -> None:
    """Compare the calibrated model with other methods on your labelled items.

    The scores are mean absolute error (MAE, lower is better) and pairwise accuracy (higher is
    better), with 95% intervals for new items. They come from repeated ten-fold cross-validation, so
    no item is decided by a model calibrated on its own group. Methods that do not differ
    significantly share a rank. For the paper's random splits use btdagg paper evaluate.

    Example: btdagg evaluate votes.parquet labels.csv -n 4,8 --report out
    """
    compare(evaluated, reading, prior, Protocol(CrossFit(), GroupTest()))


def compare(
    evaluated: Evaluated,
    reading: Reading,
    prior: str | None,
    protocol: Protocol,
    additions: Additions = _NO_ADDITIONS,
    **settings: Any,
) -> None:
    """Score methods by a protocol; print the scores, and write the report of --report."""
    data = reading.data(evaluated.votes, evaluated.labels)
    (gold, everything), table = data.all_parts, data.votes
    confidence = None
    if reading.project.column("votes", "confidence"):
        confidence = "confidence"  # which may be any numbers of at least 0
    budgets, by = numbers_of_votes(evaluated.n_votes), names(evaluated.by, "by")
    scales, is_mirrored = (table.scale, gold.scale), table.scale.mirrored
    if by is not None:
        by = ["task" if name == "criterion" else name for name in by]
    table.refuse_of_counts(n_votes=budgets)
    neighbours = votes_alike(everything, table)
    parts = labelled_parts(neighbours, gold, grouping(neighbours, by))
    n_parts = len(parts)
    # Of grades, neighbours are slow to fit, and with more labels of one's own of no use.
    is_slow = not is_mirrored and min(map(len, parts.values()), default=0) >= _MANY
    aggregators = _aggregators(
        evaluated.methods, table, confidence, budgets, n_parts, *scales, additions.own
    )
    plain = additions.methods
    if plain and prior in (None, "none") and is_mirrored:
        aggregators = by_name(plain) if aggregators is None else aggregators
    else:
        n_parts, fit = 1 if is_slow else n_parts, "Davidson" if plain else None
        aggregators = methods_with_priors(aggregators, prior, n_parts, *scales, fit)
    varied = additions.varied(table, evaluated, reading) if evaluated.report else {}
    chosen = [value for _, value in parse_pairs(reading.filters, "filters")]
    title = ", ".join([f"Evaluation of {Path(table.source).name}", *chosen])
    folder = evaluated.open(reading.project, title)
    options: dict[str, Any] = {
        "n_votes": budgets,
        "aggregators": aggregators,
        "confidence": confidence,
        "protocol": protocol,
        "neighbours": neighbours,
        "covariates": reading.covariates,
    }
    evaluation, is_whole = _scored(table, gold, by=by, **options)
    # Missing votes are among the remarks of the evaluation.
    about_data = [
        *evaluation.about_data,
        *what_is_pooled(table, "takes", evaluation.by, missing=False),
        *priors_beside(aggregators),
        *(about_strengths(evaluation.items) if is_whole else []),
    ]
    if gold.n_missing:
        about_data.append(remarks.unlabelled_rows(gold.n_missing, gold.source))
    evaluation = replace(evaluation, about_data=tuple(about_data))
    study = Study(evaluation, table, gold, varied=varied, progress=progress_bar, **options)
    n_parts = len(evaluation.by_key())
    overall = over_all_items(table, gold, n_parts) if is_whole else None
    if evaluated.json:
        print_json(scores_as_json(evaluation, overall, **settings, n_unlabelled=gold.n_missing))
    show_scores(
        study, overall, folder, additions.questions, printed=not evaluated.json, is_whole=is_whole
    )


def show_scores(
    study: Study,
    overall: Estimates | None,
    report: ReportFolder | None,
    questions: Iterable[Question] = QUESTIONS,
    *,
    printed: bool,
    is_whole: bool = True,
    certificates: Mapping[str, Certificate] | None = None,
) -> None:
    """Print and report scores, with the estimate of all items; exit as Ctrl-C does if it came."""
    if printed:
        print_scores(study.scores)
    with report or nullcontext():
        if report is not None:
            if is_whole:
                write_ranking(report, study.votes, study.labels)
            if overall is not None:
                write_result(report, overall, folded=True)
            write_scores(report, study.scores)
        if not is_whole:
            raise KeyboardInterrupt
        if report is not None:
            for task, certificate in (certificates or {}).items():
                write_result(report, certificate, *filter(None, [task]))
            write_agreement(report, study)
            write_biases(report, study)
            write_protocols(report, study, questions)
    if report is not None:
        say_where(report)
    if printed and overall is not None:
        say(overall.sentence())


def scores_as_json(scores: Scores, overall: Estimates | None, **settings: Any) -> dict[str, Any]:
    """Return everything that `show_scores` prints as plain values."""
    test = scores.cells[0].test
    return {
        "settings": {**settings, "test": test and test.words},
        **scores.as_dict(),
        "estimates": overall and overall.as_dict(),
    }


def _scored(votes: Votes, labels: Labels, **options: Any) -> tuple[Scores, bool]:
    """Run the comparison; return the scores, and False if only the first parts were finished."""
    finished: list[Scores] = []
    try:
        with progress_bar("evaluating") as progress:
            return run_evaluation(
                votes, labels, partial=finished.append, progress=progress, **options
            ), True
    except KeyboardInterrupt:
        if not finished:
            raise
        note("interrupted: only the parts that were finished are shown")
        return finished[-1], False


def _aggregators(
    methods: str | None,
    votes: Votes,
    confidence: str | None,
    budgets: Sequence[int] | None,
    n_parts: int,
    scale: Scale,
    label_scale: Scale,
    own: Mapping[str, Callable[..., Aggregator]],
) -> tuple[Aggregator, ...] | None:
    if methods is None:
        return None
    if methods.strip().lower() != "all":
        return by_name(methods.split(","), scale, label_scale, own)
    if not scale.mirrored:
        usual = aggregators_or_usual(None, scale, label_scale)
        other_names = ["neighbours"][n_parts < 2 :], [n for n in AGGREGATORS if n not in _NEEDS]
        before, after = (by_name(names, scale, label_scale) for names in other_names)
        return (*before, *usual, *after)
    left_out = set() if _has_confidences(votes, confidence) else set(_CONFIDENT)
    for name, needs in _NEEDS.items():
        if needs.decisions is None:
            continue
        columns = {column_of_decisions(needs.decisions, n) for n in budgets or (None,)}
        absent = columns.difference(votes.columns)
        if absent:
            left_out.add(name)
            if any(f"{column}_".startswith(f"{needs.decisions}_") for column in votes.columns):
                note(f"{name} is left out: there is no column {', '.join(sorted(absent))}")
    if n_parts < 2:
        left_out.update(name for name, needs in _NEEDS.items() if needs.neighbours)
    named = [name for name in (*AGGREGATORS, *own) if name not in left_out]
    return by_name(named, scale, label_scale, own)


def _has_confidences(votes: Votes, column: str | None) -> bool:
    if votes.are_counts or "confidence" not in votes.columns:
        return False
    if column is None:
        try:
            checked(votes, {"confidence": fractions})
        except InputError as error:
            note(f"{', '.join(_CONFIDENT)} are left out: {error}")
            return False
    return True
