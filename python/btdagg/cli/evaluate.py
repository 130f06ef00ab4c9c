"""`btdagg evaluate`: compare aggregators on votes and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import btdagg
from btdagg.cli.common import (
    Columns,
    Filters,
    Force,
    Json,
    LabelsFile,
    VotesFile,
    files_read,
    filtered,
    note,
    out,
    print_json,
    progress_bar,
    renames,
    tables_of,
    what_is_pooled,
)
from btdagg.cli.estimate import estimates_as_json, over_all_items, win_rate_line
from btdagg.cli.prior import PriorOption, methods_with_priors, priors_beside, votes_alike
from btdagg.cli.reporting import ReportOption, names, numbers, open_report, refuse_report, say_where
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.evaluation import CrossFit, GroupTest, Protocol
from btdagg.evaluation import evaluate as run_evaluation
from btdagg.evaluation.panel import evaluate_panel
from btdagg.evaluation.parts import USUAL, grouping, labelled_parts
from btdagg.methods import AGGREGATORS, Davidson, by_name
from btdagg.methods.base import needs_of
from btdagg.paper.questions import QUESTIONS
from btdagg.report.sections import write_estimates, write_protocols, write_scores
from btdagg.report.study import Study, varying
from btdagg.votes.join import with_task
from btdagg.votes.schema import checked, fractions
from btdagg.votes.votes import column_of_decisions

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.methods import Aggregator
    from btdagg.votes import Labels, Votes

_NEEDS = {name: needs_of(make()) for name, make in AGGREGATORS.items()}
_CONFIDENT = [name for name, needs in _NEEDS.items() if needs.confidences]

# What an ablation varies.
_VARIED = ("template", "temperature")

By = Annotated[
    str | None,
    typer.Option(
        help="Columns to group by, separated by commas: one line for each of their values.",
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
        + " (gsa_4 with -n 4). all uses every method that the columns allow.",
        show_default="davidson, those with a prior, threshold and majority",
    ),
]
NumbersOfVotes = Annotated[
    str | None,
    typer.Option(
        "-n",
        help="Votes per item, several separated by commas: 4,8 uses the first 4, then 8.",
        show_default="all",
    ),
]


def evaluate(
    context: typer.Context,
    votes: VotesFile,
    labels: LabelsFile,
    filters: Filters = None,
    columns: Columns = None,
    by: By = None,
    methods: Methods = None,
    n_votes: NumbersOfVotes = None,
    prior: PriorOption = None,
    panel: Annotated[
        str | None,
        typer.Option(
            help="Column whose values are the judges of a panel, such as judge: compare one label "
            "from all their votes with each judge alone and with the pooled votes, and show what "
            "each costs.",
            show_default=False,
        ),
    ] = None,
    holm: Annotated[
        bool, typer.Option("--holm", help="Correct p-values for the number of pairs of methods.")
    ] = False,
    report: ReportOption = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compare the calibrated model with other methods on your labelled items.

    Every item is decided by models that were calibrated without its group, by repeated ten-fold
    cross-validation: mean absolute error (MAE, lower is better) and pairwise accuracy (higher is
    better), with 95% intervals for new items. Methods that do not differ significantly share a
    rank. The paper's random splits are btdagg paper evaluate.

    Example: btdagg evaluate votes.parquet labels.csv -n 4,8 --report out
    """
    test = GroupTest(correction="holm" if holm else "none")
    if panel is None:
        compare(
            context, Protocol(CrossFit(), test), {}, by, methods, prior, n_votes=n_votes, json=json
        )
        return
    for option, value in (("methods", methods), ("report", report)):
        if value is not None or prior not in (None, "weak", "none"):
            option = option if value is not None else "prior"
            raise btdagg.InputError(
                f"--{option} is given with --panel, which compares the panel, its judges and "
                "their pooled votes and nothing else; expected one of the two"
            )
    gold, _, table = _read(context.params)
    weak: Literal["weak"] | None = None if prior == "none" else "weak"
    with progress_bar("evaluating") as progress:
        scores, cost = evaluate_panel(
            table,
            gold,
            panel=panel.strip().lower(),
            by=None if by is None else names(by, "--by"),
            n_votes=numbers(n_votes, "-n", "4,8"),
            prior=weak,
            # A panel is slow to fit: few refits are enough to say how much they differ.
            protocol=Protocol(CrossFit(n_refits=25), test),
            progress=progress,
        )
    if json:
        told = evaluation_as_json(scores, panel=panel, n_unlabelled=gold.n_missing)
        print_json({**told, "votes_per_item": cost})
        return
    print_table(scores)
    costs = ", ".join(f"{name} {spent:.1f}" for name, spent in cost.items())
    out.print(f"judges and pooled votes by themselves: {Davidson(prior=weak).name}", soft_wrap=True)
    out.print(f"cost, in votes of a label: {costs}", soft_wrap=True)
    if gold.n_missing:
        note(f"{gold.n_missing} rows of {gold.source} have no label and are left out")


def compare(
    context: typer.Context,
    protocol: Protocol,
    settings: Mapping[str, Any],
    by: str | None,
    methods: str | None,
    prior: str | None,
    *,
    n_votes: str | None,
    json: bool,
    sizes: str | None = None,
) -> None:
    """Score methods by a protocol; print the scores, and write the report of --report."""
    report, force = context.params["report"], context.params["force"]
    gold, everything, table = _read(context.params)
    confidence = None
    if "confidence" in renames(context.params["columns"]):
        confidence = "confidence"  # which may be any numbers of at least 0
    budgets = numbers(n_votes, "-n", "4,8")
    table.refuse_of_counts(**{"-n": budgets})
    beside = votes_alike(everything, table)
    grouped = grouping(beside, None if by is None else names(by, "--by"))
    n_parts = len(labelled_parts(beside, gold, by=grouped)[0])
    aggregators = _aggregators(methods, table, confidence, budgets, n_parts)
    study = Study(
        table,
        gold,
        varied=_varied(everything, context.params["filters"]) if report else {},
        by=None if by is None else names(by, "--by"),
        n_votes=budgets,
        aggregators=methods_with_priors(aggregators, prior, methods is None, n_parts),
        confidence=confidence,
        protocol=protocol,
        neighbours=beside,
        sizes=numbers(sizes, "--sizes", "20,40,80"),
        progress=progress_bar,
    )
    refuse_report(report, reads := files_read(context, "report"), force)
    evaluation, is_whole = _scored(study)
    study = replace(study, scores=evaluation)
    # Missing votes are among the remarks of the evaluation.
    about_data = [
        *evaluation.about_data,
        *what_is_pooled(study.votes, "takes", evaluation.by, missing=False),
        *priors_beside(study.aggregators),
    ]
    if gold.n_missing:
        about_data.append(f"{gold.n_missing} rows of {gold.source} have no label and are left out")
    evaluation = replace(evaluation, about_data=tuple(about_data))
    overall = over_all_items(study.votes, gold) if is_whole else None
    if json:
        told = evaluation_as_json(evaluation, **settings, n_unlabelled=gold.n_missing)
        print_json({**told, "estimates": overall and estimates_as_json(overall)})
    else:
        print_table(evaluation)
        if overall is not None:
            out.print(win_rate_line(overall), soft_wrap=True)
    if report is not None:
        title = f"Evaluation of {Path(table.source).name}"
        with open_report(report, title, context, reads, force) as folder:
            write_scores(folder, evaluation)
            if not is_whole:
                raise KeyboardInterrupt
            if overall is not None:
                write_estimates(folder, overall)
            write_protocols(folder, study, QUESTIONS)
        say_where(report)
    if not is_whole:
        raise KeyboardInterrupt


def _read(parameters: Mapping[str, Any]) -> tuple[Labels, Votes, Votes]:
    """The labels, all votes, and those that pass the filters."""
    files = parameters["votes"], parameters["labels"]
    raw_votes, raw_labels = tables_of(parameters["columns"], *files)
    gold = btdagg.read_labels(raw_labels)
    everything = with_task(btdagg.read_votes(raw_votes), gold)
    return gold, everything, filtered(everything, parameters["filters"])


def _scored(study: Study) -> tuple[Scores, bool]:
    """Run the comparison; return the scores, and False if only the first parts were finished."""
    finished: list[Scores] = []
    options: dict[str, Any] = {"n_votes": study.n_votes, "aggregators": study.aggregators}
    try:
        return study.run(
            "evaluating", run_evaluation, study.votes, **options, partial=finished.append
        ), True
    except KeyboardInterrupt:
        if not finished:
            raise
        note("interrupted: only the finished parts are shown")
        return finished[-1], False


def _varied(everything: Votes, filters: Sequence[str] | None) -> dict[str, Votes]:
    """Return the votes for the ablation of each column, without the filters on that column."""
    varied = {}
    for column in _VARIED:
        others = [text for text in filters or () if text.partition("=")[0].strip() != column]
        votes = filtered(everything, others)
        by = [name for name in USUAL if name in votes.columns and name != column]
        if not votes.are_counts and (rows := varying(votes, by, column)):
            varied[column] = rows
    return varied


def _aggregators(
    methods: str | None,
    votes: Votes,
    confidence: str | None,
    budgets: Sequence[int] | None,
    n_parts: int,
) -> tuple[Aggregator, ...] | None:
    """Return aggregators by name; `all` means those that the columns of the votes allow."""
    if methods is None:
        return None
    if methods.strip().lower() != "all":
        return by_name(methods.split(","))
    left_out = set() if _has_confidences(votes, confidence) else set(_CONFIDENT)
    for name, needs in _NEEDS.items():
        if needs.decisions is None:
            continue
        wanted = {column_of_decisions(needs.decisions, n) for n in budgets or (None,)}
        absent = wanted.difference(votes.columns)
        if absent:
            left_out.add(name)
            if any(f"{column}_".startswith(f"{needs.decisions}_") for column in votes.columns):
                note(f"{name} is left out: there is no column {', '.join(sorted(absent))}")
    if n_parts < 2:
        left_out.update(name for name, needs in _NEEDS.items() if needs.neighbours)
    return by_name([name for name in AGGREGATORS if name not in left_out])


def _has_confidences(votes: Votes, column: str | None) -> bool:
    """Whether votes have confidences, valid ones unless the user named the column."""
    if votes.are_counts or "confidence" not in votes.columns:
        return False
    if column is None:
        try:
            checked(votes, {"confidence": fractions})
        except btdagg.InputError as error:
            note(f"{', '.join(_CONFIDENT)} are left out: {error}")
            return False
    return True
