"""`btdagg run`: label all pairs, given labels of a few.

Not run.py, since `btdagg.cli.run` is the function that runs a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

import btdagg
from btdagg._util.files import write_table
from btdagg._util.outputs import OutputFolder, require_no_link
from btdagg.cli.common import (
    Json,
    differences_said,
    note,
    print_json,
    progress_bar,
    say,
)
from btdagg.cli.estimate import over_all_items
from btdagg.cli.evaluate import scores_as_json, show_scores
from btdagg.cli.flags import CommandLine
from btdagg.cli.judge_output import run_asking, say_estimate, say_rule, say_run, status_of
from btdagg.cli.judge_settings import JudgeFlags, PairsFile
from btdagg.cli.prior import PriorOption, methods_with_priors, prior_of_tasks, priors_of
from btdagg.cli.reporting import open_report
from btdagg.evaluation import CrossFit, GroupTest
from btdagg.evaluation.protocol import Protocol
from btdagg.questions.compare import about_strengths
from btdagg.questions.evaluate import evaluate as run_evaluation
from btdagg.report.study import Study

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pairs
    from btdagg.pipeline import Fitted
    from btdagg.votes.votes import Votes

# None has a name that a user's own file is likely to have.
_DECIDED, _VOTES, _EVALUATION = "decided.csv", "judged_votes.parquet", "evaluation.json"


def run(
    typed: CommandLine,
    flags: JudgeFlags,
    pairs: PairsFile = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            "-l",
            help="Gold labels of some pairs (columns item, label; optional task, group).",
            show_default="of btdagg.toml",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the results, and for the votes unless the settings name a store.",
        ),
    ] = Path("out"),
    prior: PriorOption = None,
    agreement: Annotated[
        float | None,
        typer.Option(
            help="Also certify which labels can be used without review: the share of them that "
            "must agree with people, such as 0.8. Adds the column trusted.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Judge pairs, or grade responses, calibrate on the labels, label all, and evaluate the result.

    Votes that are already stored are not asked for again, so you can re-run the command after a
    stop or with more labels. With --stop, labelled pairs get all votes and the other pairs as many
    as a stopping rule needs; the rule is learned from the labelled pairs, or read from a file. With
    --agreement, the column trusted says which labels can be used without review; the labelled pairs
    must be a random sample, such as btdagg choose draws. Labels, template and folder are checked
    before the first call, and by --dry-run. The folder gets decided.csv, a model (and rule, and
    certificate) for each task, evaluation.json, judged_votes.parquet and a report,
    report/index.html.

    Example: btdagg run pairs.jsonl --labels labels.csv --model gpt-5.4 -n 12 -o out
    """
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.store.store import VoteStore, votes_frame
    from btdagg.pipeline import Pipeline, labels_for

    settings = flags.settings()
    judging, rule = settings.judging, settings.rule
    page = output / "report"
    project = flags.project
    pairs_file = project.place("pairs", pairs)
    sources = (("pairs", pairs_file), ("labels", project.place("labels", labels)))
    raw_pairs, raw_labels = flags.tables(settings.columns, *sources)
    said = {name: project.setting(name) for name in ("a", "b", "strength", "full_margin")}
    gold = labels_for(judging, raw_labels, project.scale("labels"), **project.how_labelled)
    with differences_said():
        pipeline = Pipeline(
            read_pairs(raw_pairs, criteria=settings.criteria),
            gold,
            judging,
            rule=rule,
            prior=prior_of_tasks(prior),
            agreement=agreement,
            covariates=flags.covariates,
            **said,
        )
    kinds = ["model", *["rule"] * (rule is not None), *["certificate"] * (agreement is not None)]
    names = _files(pipeline.tasks, kinds)
    title = project.setting("title", f"{judging.setup.judge} on {Path(pairs_file).name}")
    if not typed.is_given("output"):
        require_no_link(output)
    require_no_link(page)
    open_report(typed, title, page)  # which is refused before the work
    folder = OutputFolder(output, reads=typed.files("output")).claim(names)
    place = settings.store or str(output / "votes.db")
    if not settings.store:
        require_no_link(place)
    if flags.dry_run:
        wanted = say_estimate(judging, pipeline.pairs_to_ask, settings.base_url, place, json)
        if rule is not None:
            say_rule(rule, len(pipeline.pairs) - len(wanted))
        return 0
    output.mkdir(parents=True, exist_ok=True)
    with VoteStore(place, keep_exchanges=not settings.drop_exchanges) as opened:
        total = judging.n * len(pipeline.pairs)
        done = run_asking(pipeline.run, opened, total, settings)
        note(*done.notes, *priors_of(done.fitted, pipeline.prior))
        if done.decided is None or done.votes is None or done.all_votes is None:
            return say_run(done.run, settings, place, json)
        everything = votes_frame(opened)
    if done.votes.strength is not None:
        note(str(done.votes.strength))
    if not json:
        say_run(done.run, settings, place)
    with folder.replacing(_VOTES) as file:
        write_table(everything, file, ".parquet")
    with folder.replacing(_DECIDED) as file:
        write_table(done.decided, file, ".csv")
    results: dict[str, Any] = {
        "n_items": done.decided.height,
        "models": _save_fitted(done.fitted, folder),
        "not_decided": done.not_decided,
        "labels": str(output / _DECIDED),
        "evaluation": None,
    }
    certificates = {
        task: fit.certificate for task, fit in done.fitted.items() if fit.certificate is not None
    }
    if certificates:
        results["n_trusted"] = int(done.decided["trusted"].sum())
    if certificates and not json:
        for task, certificate in certificates.items():
            say(f"{task}: {certificate}".removeprefix(": ").partition("\n")[0])
        say(f"trusted: {results['n_trusted']:,} of {done.decided.height:,} labels")
    # Under a rule only the labelled pairs have all votes, as the model that is scored wants them.
    votes = _with_prompts(done.votes, pipeline.pairs)
    protocol = Protocol(CrossFit(), GroupTest())
    methods = None
    if votes.scale.mirrored:
        methods = methods_with_priors(None, prior, len(done.fitted))
    options: dict[str, Any] = {"aggregators": methods, "protocol": protocol}
    known = pipeline.covariates or None
    try:
        with progress_bar("evaluating") as progress:
            evaluation = run_evaluation(votes, gold, progress=progress, covariates=known, **options)
    except btdagg.InputError as error:
        note(f"could not be evaluated: {error}")
    else:
        about_data = (*evaluation.about_data, *about_strengths(evaluation.items))
        evaluation = replace(evaluation, about_data=about_data)
        study = Study(evaluation, votes, gold, progress=progress_bar, **options)
        many = {"as_many": rule is not None}
        n_votes = done.decided[[*votes.columns_of_counts]].sum_horizontal()
        # Where covariates settle some pairs without a vote, the others are no sample of all.
        of_all = done.votes if rule is not None and (n_votes == 0).any() else done.all_votes
        overall = over_all_items(of_all, gold, len(done.fitted), **many)
        results["evaluation"] = scores_as_json(evaluation, overall)
        folder.write(_EVALUATION, dumps(results["evaluation"], indent=2) + "\n")
        opened_report = open_report(typed, title, page)
        show_scores(study, overall, opened_report, printed=not json, certificates=certificates)
    if json:
        print_json({**results, "run": done.run.as_dict()})
    return status_of(done.run, settings.allow_missing)


def _with_prompts(votes: Votes, pairs: Pairs) -> Votes:
    import polars as pl

    if "prompt" not in pairs.columns:
        return votes
    rows = votes.numbered()
    prompts = pairs.frame.select(
        pl.col("item").cast(rows["item"].dtype), pl.col("prompt").rank("dense")
    )
    prompts = prompts.unique("item", keep="first")  # of rows by criteria
    return votes.with_data(rows.join(prompts, on="item", how="left", maintain_order="left"))


def _files(tasks: Iterable[str], kinds: Iterable[str]) -> list[str]:
    names = [_file_of(kind, task) for task in dict.fromkeys(tasks) for kind in kinds]
    if len({name.casefold() for name in names}) < len(names):  # one file on some systems
        raise btdagg.InputError("two tasks have names that differ only in case; rename one")
    return [_DECIDED, _VOTES, _EVALUATION, *names]


def _file_of(kind: str, task: str) -> str:
    return f"{kind}-{quote(task, safe=' ')}.json" if task else f"{kind}.json"


def _save_fitted(fitted: Mapping[str, Fitted], folder: OutputFolder) -> dict[str, dict[str, Any]]:
    written = {}
    for task, fit in fitted.items():
        model = _file_of("model", task)
        folder.write(model, fit.model.to_json() + "\n")
        written[task] = {"file": str(folder.path / model), "n_labels": fit.calibration.n_labels}
        for kind, saved in {"rule": fit.rule, "certificate": fit.certificate}.items():
            if saved is not None:
                folder.write(_file_of(kind, task), saved.to_json() + "\n")
                written[task][kind] = str(folder.path / _file_of(kind, task))
    return written
