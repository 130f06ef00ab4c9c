"""`btdagg evaluate`: compare aggregators on votes and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import btdagg
from btdagg.cli.common import (
    Filters,
    Force,
    Json,
    LabelsFile,
    VotesFile,
    at_least,
    files_read,
    filtered,
    note,
    out,
    parse_filters,
    print_json,
    progress_bar,
    what_is_pooled,
)
from btdagg.cli.estimate import estimates_as_json, over_all_items, win_rate_line
from btdagg.cli.panel import refuse_beside_panel, show_panel
from btdagg.cli.prior import PriorOption, methods_with_priors, priors_beside, votes_alike
from btdagg.cli.reporting import ReportOption, names, numbers, open_report, refuse_report, say_where
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.cli.tables import Columns, tables_of
from btdagg.evaluation import PAPER_TEST, CrossFit, GroupTest, Protocol, RandomSplits, SplitTest
from btdagg.evaluation import evaluate as run_evaluation
from btdagg.evaluation.parts import USUAL, grouping, labelled_parts
from btdagg.methods import AGGREGATORS, by_name
from btdagg.methods.base import needs_of
from btdagg.paper.questions import QUESTIONS
from btdagg.report.sections import write_estimates, write_protocols, write_scores
from btdagg.report.study import Study, with_several
from btdagg.votes.join import with_task
from btdagg.votes.schema import checked, fractions
from btdagg.votes.table import require
from btdagg.votes.votes import column_of_decisions

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.methods import Aggregator
    from btdagg.votes import Labels, Votes

_NEEDS = {name: needs_of(make()) for name, make in AGGREGATORS.items()}
_CONFIDENT = [name for name, needs in _NEEDS.items() if needs.confidences]

# What an ablation varies by default.
_VARIED = ("template", "temperature")


class ProtocolKind(StrEnum):
    """How items are split into those calibrated on and those scored."""

    SPLITS = "splits"
    CROSS_FIT = "cross-fit"
    PAPER = "paper"


class TestKind(StrEnum):
    """How differences are tested on each split."""

    EXACT = "exact"
    PAPER = "paper"


class Combination(StrEnum):
    """How the p-values of splits become one."""

    TWICE_MEDIAN = "twice-median"
    MEAN = "mean"


def evaluate(
    context: typer.Context,
    votes: VotesFile,
    labels: LabelsFile,
    filters: Filters = None,
    columns: Columns = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Columns to group by, separated by commas: one line for each of their values.",
            show_default="task,judge, if these columns exist",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas: "
            + ", ".join(name for name, needs in _NEEDS.items() if needs.votes_alone)
            + "; if votes have confidences, also "
            + ", ".join(_CONFIDENT)
            + "; and, from columns of decisions, "
            + ", ".join(name for name, needs in _NEEDS.items() if needs.decisions)
            + " (gsa_4 with --votes 4). all uses every method that the columns allow.",
            show_default="davidson, those with a prior, threshold and majority",
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            help="Column with the confidences of votes, numbers of at least 0.",
            show_default="confidence, if it exists",
        ),
    ] = None,
    n_votes: Annotated[
        str | None,
        typer.Option(
            "--votes",
            "-n",
            help="Numbers of votes per item, separated by commas: 4,8 uses the first 4, then 8.",
            show_default="all",
        ),
    ] = None,
    protocol: Annotated[
        ProtocolKind | None,
        typer.Option(
            help="cross-fit: repeated ten-fold cross-validation by group, which scores the model "
            "that btdagg calibrate would write, with intervals and a test for new items. splits: "
            "random splits that calibrate on --share or --size items. paper: the paper's 100 "
            "splits of 5%, 100 sign patterns and mean p-values.",
            show_default="cross-fit; splits with an option of splits",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="Share of the items to calibrate on.", show_default="0.05"),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            help="Number of items to calibrate on, instead of a share.", show_default=False
        ),
    ] = None,
    splits: Annotated[
        int | None, typer.Option(help="Number of random splits, at least 2.", show_default="100")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the splits.")] = 0,
    test: Annotated[
        TestKind | None,
        typer.Option(
            help="How differences are tested on each split: exactly, or as in the paper by 100 "
            "random sign patterns.",
            show_default="exact; paper with --protocol paper",
        ),
    ] = None,
    combine: Annotated[
        Combination | None,
        typer.Option(
            help="How the p-values of the splits are combined. Twice the median is valid for "
            "dependent splits, the mean is not.",
            show_default="twice-median; mean with --test paper",
        ),
    ] = None,
    tau: Annotated[float, typer.Option(help="Significance level.")] = 0.05,
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
    vary: Annotated[
        str | None,
        typer.Option(
            help="Columns that the report's ablations vary, separated by commas. An ablation "
            "ignores the --filter on its own column.",
            show_default="template,temperature, if they have several values",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            help="Numbers of labels in the report's sweep, separated by commas.",
            show_default="20,40,...,200, as far as there are items",
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Compare the calibrated model with other methods on your labelled items.

    Every item is decided by models that were calibrated without its group: mean absolute error
    (MAE, lower is better) and pairwise accuracy (higher is better), with 95% intervals for new
    items. Methods that do not differ significantly share a rank.

    Example: btdagg evaluate votes.parquet labels.csv --votes 4,8 --report out
    """
    if splits is not None:
        at_least(splits, "--splits", 2)
    if report is None and (vary is not None or sizes is not None):
        raise btdagg.InputError(f"--{'vary' if sizes is None else 'sizes'} wants --report")
    asked = {
        "--share": share, "--size": size, "--splits": splits, "--test": test, "--combine": combine
    }  # fmt: skip
    given = [option for option, value in asked.items() if value is not None]
    if protocol is None:
        protocol = ProtocolKind.SPLITS if given else ProtocolKind.CROSS_FIT
    if protocol is ProtocolKind.CROSS_FIT and given:
        raise btdagg.InputError(f"{given[0]} wants --protocol splits, and --protocol is cross-fit")
    if panel is not None:
        refuse_beside_panel(
            {
                "--methods": methods,
                "--confidence": confidence,
                "--prior": None if prior in ("weak", "none") else prior,
                "--report": report,
            }
        )
    correction: Literal["none", "holm"] = "holm" if holm else "none"
    if protocol is ProtocolKind.CROSS_FIT:
        # A panel is slow to fit: few refits are enough to say how much they differ.
        splitter = CrossFit(seed=seed) if panel is None else CrossFit(seed=seed, n_refits=25)
        how = Protocol(splitter, GroupTest(tau, correction))
        settings = {"protocol": protocol.value, "seed": seed}
    else:
        paper = TestKind.PAPER in (test, protocol)
        splits = 100 if splits is None else splits
        split_test = SplitTest(
            method=PAPER_TEST.method if paper else "auto",
            n_resamples=PAPER_TEST.n_resamples,
            rule=combine.value if combine else PAPER_TEST.rule if paper else SplitTest.rule,
            tau=tau,
            correction=correction,
        )
        how = Protocol(RandomSplits(share, size, splits, seed), split_test)
        settings = {"protocol": protocol.value, "splits": splits, "seed": seed}
    raw_votes, raw_labels = tables_of(columns, votes, labels)
    gold = btdagg.read_labels(raw_labels)
    everything = with_task(btdagg.read_votes(raw_votes), gold)
    table = filtered(everything, filters)
    confidence = None if confidence is None else confidence.strip().lower()
    budgets = numbers(n_votes, "--votes", "4,8")
    table.refuse_of_counts(**{"--votes": budgets})
    if panel is not None:
        show_panel(
            table,
            gold,
            panel=panel,
            by=None if by is None else names(by, "--by"),
            n_votes=budgets,
            prior=None if prior == "none" else "weak",
            protocol=how,
            json=json,
            settings=settings,
        )
        return
    beside = votes_alike(everything, table)
    n_parts = _n_labelled_parts(beside, gold, by)
    varied = names(vary, "--vary") if vary is not None else _VARIED if report else ()
    study = Study(
        table,
        gold,
        varied=_varied(everything, filters, varied, asked=vary is not None),
        by=None if by is None else names(by, "--by"),
        n_votes=budgets,
        aggregators=methods_with_priors(
            _aggregators(methods, table, confidence, budgets, n_parts),
            prior,
            methods is None,
            n_parts,
        ),
        confidence=confidence,
        protocol=how,
        neighbours=beside,
        sizes=numbers(sizes, "--sizes", "20,40,80"),
        progress=progress_bar,
    )
    refuse_report(report, reads := files_read(context, "report"), force)
    evaluation, whole = _scored(study)
    study = replace(study, scores=evaluation)
    n_unlabelled = study.labels.n_missing
    # Missing votes are among the remarks of the evaluation.
    about_data = [
        *evaluation.about_data,
        *what_is_pooled(study.votes, "takes", evaluation.by, missing=False),
        *priors_beside(study.aggregators),
    ]
    if n_unlabelled:
        about_data.append(f"{n_unlabelled} rows of {gold.source} have no label and are left out")
    evaluation = replace(evaluation, about_data=tuple(about_data))
    overall = over_all_items(study.votes, gold) if whole else None
    if json:
        found = evaluation_as_json(evaluation, **settings, n_unlabelled=n_unlabelled)
        print_json({**found, "estimates": overall and estimates_as_json(overall)})
    else:
        print_table(evaluation)
        if overall is not None:
            out.print(win_rate_line(overall), soft_wrap=True)
    if report is not None:
        title = f"Evaluation of {Path(table.source).name}"
        with open_report(report, title, context, reads, force, study.sizes_used) as folder:
            write_scores(folder, evaluation)
            if not whole:
                raise KeyboardInterrupt
            if overall is not None:
                write_estimates(folder, overall)
            write_protocols(folder, study, QUESTIONS)
        say_where(report)
    if not whole:
        raise KeyboardInterrupt


def _scored(study: Study) -> tuple[Scores, bool]:
    """Run the comparison; return the scores, and False if only the first parts were finished."""
    so_far: list[Scores] = []
    options: dict[str, Any] = {
        "n_votes": study.n_votes,
        "aggregators": study.aggregators,
        "protocol": study.protocol,
        "neighbours": study.neighbours,
    }
    try:
        return study.run(
            "evaluating", run_evaluation, study.votes, **options, partial=so_far.append
        ), True
    except KeyboardInterrupt:
        if not so_far:
            raise
        note("interrupted: only the finished parts are shown")
        return so_far[-1], False


def _varied(
    everything: Votes,
    filters: Sequence[str] | None,
    columns: Sequence[str],
    asked: bool,
) -> dict[str, Votes]:
    """Return the votes for the ablation of each column, without the filters on that column."""
    wanted = parse_filters(filters)
    found = {}
    for column in columns:
        votes = everything.filter({k: v for k, v in wanted.items() if k != column} or {})
        by = [name for name in USUAL if name in votes.columns and name != column]
        if asked:
            require(votes, [column])
        if not votes.are_counts and (worth := with_several(votes, by, column)):
            found[column] = worth
        elif asked:
            raise btdagg.InputError(f"--vary: column {column!r} has one value only")
    return found


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
    wanting = set() if _has_confidences(votes, confidence) else set(_CONFIDENT)
    for name, needs in _NEEDS.items():
        if needs.decisions is None:
            continue
        wanted = {column_of_decisions(needs.decisions, n) for n in budgets or (None,)}
        absent = wanted.difference(votes.columns)
        if absent:
            wanting.add(name)
            if any(f"{column}_".startswith(f"{needs.decisions}_") for column in votes.columns):
                note(f"{name} is left out: there is no column {', '.join(sorted(absent))}")
    if n_parts < 2:
        wanting.update(name for name, needs in _NEEDS.items() if needs.neighbours)
    return by_name([name for name in AGGREGATORS if name not in wanting])


def _n_labelled_parts(votes: Votes, gold: Labels, by: str | None) -> int:
    """Number of parts that have labels, so that each has the others as neighbours."""
    columns = grouping(votes, None if by is None else names(by, "--by"))
    return len(labelled_parts(votes, gold, by=columns)[0])


def _has_confidences(votes: Votes, column: str | None) -> bool:
    """Whether votes have confidences, in the named column or valid ones in `confidence`."""
    if votes.are_counts or (column or "confidence") not in votes.columns:
        return False
    if column is None:
        try:
            checked(votes, {"confidence": fractions})
        except btdagg.InputError as error:
            note(f"{', '.join(_CONFIDENT)} are left out: {error}")
            return False
    return True
