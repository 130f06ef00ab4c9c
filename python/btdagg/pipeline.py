"""Pairs or responses and a few labels to labels of all: votes, a model for each task, decisions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg.judge.jobs import judge_pairs, opened
from btdagg.judge.pacing import Pacing
from btdagg.judge.pairs import Pair, Pairs, read_pairs
from btdagg.judge.runs import JudgeRun, total_of
from btdagg.judge.stopping import (
    RuleOf,
    differences,
    judge_by_rule,
    open_pairs,
    refuse_other_n,
    strength_for,
)
from btdagg.judge.store.store import VoteStore, votes_frame
from btdagg.model.calibration import Calibration, quiet
from btdagg.model.covariates import used_in_words
from btdagg.model.davidson import DavidsonModel
from btdagg.model.fit import calibrate, prior_among
from btdagg.model.grades import GradeModel
from btdagg.model.intervals import as_level
from btdagg.model.prior import Prior
from btdagg.online import StoppingRule
from btdagg.online.rule import RuleKind
from btdagg.questions.certify import Certificate, certify
from btdagg.questions.decisions import decisions
from btdagg.votes.grades import scales_in
from btdagg.votes.join import with_task
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.scale import Scale
from btdagg.votes.sides import UNNAMED, sides_of
from btdagg.votes.source import read_table
from btdagg.votes.standings import sources_of
from btdagg.votes.strength import STRENGTH_COLUMNS, as_full_margin
from btdagg.votes.table import Table, listing, refuse, text
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from btdagg.judge.client import ChatClient
    from btdagg.judge.judging import JudgeJob, Judging
    from btdagg.votes.source import Source
    from btdagg.votes.strength import StrengthKind


@dataclass(frozen=True)
class Fitted(Readable):
    """Fits to a task's labels: a calibration, a rule by which pairs stop, and a certificate."""

    calibration: Calibration
    rule: StoppingRule | None = None
    certificate: Certificate | None = None

    @property
    def model(self) -> DavidsonModel | GradeModel:
        """The calibrated model."""
        model: DavidsonModel | GradeModel = self.calibration.model
        return model


@dataclass(eq=False)
class Labelling(Readable):
    """Result of a pipeline.

    Attributes
    ----------
    run : JudgeRun
        The judge's run, and in `run.settled` the votes saved on pairs without a label. If
        `run.stopped` is not empty the pipeline ended early, and `decided` is None.
    votes, all_votes : Votes or None
        Votes of the pairs with all `n` (under a rule, the labelled ones), and of all.
    fitted, not_decided : dict
        By task what was fitted, and why others could not be; there may be one without a name.
    decided : polars.DataFrame or None
        A row for every pair: label, votes and probabilities. A rule's stopped items have its label
        and, in place of probabilities, the chance that all votes decide otherwise; those not
        settled, since votes were lost, have neither.
    notes : list of str
        Warnings of the fits, pairs that were left out.
    """

    run: JudgeRun
    votes: Votes | None = None
    all_votes: Votes | None = None
    fitted: dict[str, Fitted] = field(default_factory=dict)
    not_decided: dict[str, str] = field(default_factory=dict)
    decided: pl.DataFrame | None = None
    notes: list[str] = field(default_factory=list)


class Pipeline:
    """Pairs and labels that go together, before anybody is asked.

    Parameters
    ----------
    pairs : Pairs, or whatever `read_pairs` reads
        Or single responses, for a template of grades. A criterion is a task.
    labels : Labels, or whatever `read_labels` reads
        Gold labels of some; grades other than pass and fail are read by `read_labels`.
    judging : Judging
        Who judges, and how.
    rule : StoppingRule, RuleKind or str, optional
        Pairs without a label get as many votes as it wants: a rule, or a kind such as ``lossless``
        or ``epsilon=0.05``, learned for each task from its labelled pairs, which get all votes.
    prior : "weak", "neighbours", Prior or None
        See `btdagg.calibrate`. Neighbours are the other labelled tasks; without any, the weak
        prior.
    strength, full_margin : optional
        How strong votes are; see `btdagg.read_votes`. A given rule says it itself.
    agreement : float, optional
        How often trusted labels are to agree with people, see `btdagg.certify`; adds the column
        `trusted`. Under a rule, the pairs with a label, which have all votes, are certified.
    covariates : "auto", str or sequence of str, optional
        ``"standing"`` (of systems), ``"length"``, columns of numbers; ``"auto"`` is the first two,
        if the pairs have them. With a rule, which is a lossless one, standings are those of the
        labelled pairs and stay so. Certificates leave standings out.
    a, b : str, optional
        Names of A and B, unless columns `system_a` and `system_b` of the pairs have them.

    Attributes
    ----------
    tasks : list of str
        Tasks that there may be models of; one without a name where nothing says the tasks.

    Raises
    ------
    InputError
        If they do not go together.

    Warns
    -----
    ProvenanceWarning
        If the model of a given rule was fitted to another judge, template, temperature or task.
    """

    def __init__(
        self,
        pairs: Pairs | Source,
        labels: Labels | Source,
        judging: Judging,
        *,
        rule: StoppingRule | RuleKind | str | None = None,
        prior: Prior | Literal["weak", "neighbours"] | None = "weak",
        strength: StrengthKind | None = None,
        full_margin: float | None = None,
        agreement: float | None = None,
        covariates: str | Sequence[str] | None = None,
        a: str | None = None,
        b: str | None = None,
    ) -> None:
        self.judging = judging
        self.agreement = None if agreement is None else as_level(agreement, "agreement")
        self.prior = prior
        self.strength = strength
        self.full_margin = None if full_margin is None else as_full_margin(full_margin)
        self.rule = RuleKind.parse(rule) if isinstance(rule, str) else rule
        if isinstance(self.rule, StoppingRule) and (strength or full_margin):
            expected = "None, since a rule counts votes as its model does"
            got = strength or full_margin
            name = "strength" if strength else "full_margin"
            raise InputError(argument=name, got=got, expected=expected)
        scale = judging.scale
        self.labels = labels if isinstance(labels, Labels) else labels_for(judging, labels)
        for_pairs_only: dict[str, Any] = {"strength": strength, "full_margin": full_margin}
        if isinstance(prior, Prior):
            for_pairs_only["prior"] = prior
        for name, value in for_pairs_only.items():
            expected = "none, which is for pairs, since the template asks for grades"
            expect(scale.mirrored or not value, name, value, expected)
        forbid(
            scale.mode != self.labels.scale.mode,
            f"{self.labels.source} has labels of {self.labels.scale.in_words}, but the "
            f"template asks for {scale.in_words}",
            "labels",
        )
        if isinstance(self.rule, RuleKind):
            self.rule.refuse_out_of_range(judging.n, judging.step, self.labels.scale)
            has_strength = judging.gives_strength if strength is None else strength != "none"
            expected = (
                "lossless, the only rule for votes with strength (strength none: whole votes)"
            )
            is_of_whole = not (scale.mirrored and has_strength)
            expect(is_of_whole or self.rule.value is None, "stop", self.rule.name, expected)
        self.pairs = _with_tasks(pairs if isinstance(pairs, Pairs) else read_pairs(pairs))
        _refuse_other_labels(self.pairs, self.labels)
        is_shared = not scale.mirrored and self.pairs.frame["item"].is_duplicated().any()
        forbid(
            is_shared and "task" not in self.labels.columns,
            f"{self.labels.source} has no column criterion, expected one, since "
            f"{self.pairs.source} has several criteria",
        )
        self.covariates = _covariates(covariates, self.pairs, scale)
        if self.covariates and isinstance(self.rule, RuleKind) and self.rule.value is not None:
            expected = f"lossless, the only rule that allows covariates ({self.rule.name} does not)"
            raise InputError(argument="covariates", got=[*self.covariates], expected=expected)
        self._sides = sides_of(self.pairs, a, b, scale=scale)
        judging.prompt.check(self.pairs)
        self._full: Pairs = self.pairs  # these get all votes
        self._stoppable: Pairs | None = None
        if self.rule is not None:
            self._full, self._stoppable = _parted(self.pairs, self.labels)
        if isinstance(self.rule, StoppingRule):
            refuse_other_n(self.rule, judging)
            warn_of(differences(self.pairs, judging, self.rule))
        self.tasks = _tasks(self.pairs, self.labels)

    def __repr__(self) -> str:
        return f"<Pipeline of {len(self.pairs)} pairs by {self.judging.model}>"

    def pairs_to_ask(self, store: VoteStore | None) -> Pairs:
        """Pairs that may need votes: all but those that a given rule has settled."""
        if store is None or self._stoppable is None or not isinstance(self.rule, StoppingRule):
            return self.pairs
        unsettled = open_pairs(self._stoppable, self.judging, self.rule, store)
        return self.pairs.with_data(pl.concat([self._full.frame, unsettled.frame]))

    async def run(self, job: JudgeJob) -> Labelling:
        """Ask for the votes that the store does not have, fit a model to each task, decide.

        The `watch` of the job is told of each round by itself.

        Raises
        ------
        InputError
            If no task could be fitted; and as :func:`btdagg.judge.judge` does.
        """
        judging = self.judging
        job = replace(job, pacing=Pacing(judging.limits))
        run = await judge_pairs(self._full, judging, job)
        labelling = Labelling(run)
        if run.stopped:
            return labelling
        labelling.votes = votes = self._votes(job.store, self._full)
        self._fit(votes, labelling)
        if self._stoppable is not None and len(self._stoppable):
            other_pairs, rules = _with_rules(self._stoppable, labelling)
            left = run.left_of(judging.limits)
            if left is not None:
                rest = replace(judging, limits=left)
                labelling.run = total_of([run, await judge_by_rule(other_pairs, rest, rules, job)])
            elif len(open_pairs(other_pairs, judging, rules, job.store)):
                run.stopped = "the labelled pairs have used up max_calls or max_cost"
            if labelling.run.stopped:
                return labelling
            votes = self._votes(job.store, self.pairs, votes.provenance)
        labelling.all_votes = votes
        labelling.decided = decided = _decided(votes, self.labels, labelling.fitted, self.pairs)
        is_empty = decided[[*votes.columns_of_counts]].sum_horizontal() == 0
        is_left = decided["label"].is_null()
        for rows, how in ((~is_left, "are decided without any"), (is_left, "get no label")):
            if n_empty := (is_empty & rows).sum():
                labelling.notes.append(f"{n_empty} items have no vote, and {how}")
        return labelling

    def _votes(self, store: VoteStore, pairs: Pairs, provenance: Provenance | None = None) -> Votes:
        # They have the strength of votes of `provenance`, or of those that a given rule is for.
        judging = self.judging
        key = {"order": pl.String, "sample": pl.Int64}
        wanted = pl.DataFrame(judging.samples, schema=key, orient="row")
        frame = votes_frame(store, setup=judging.setup)
        on = [name for name in key if name in frame.columns]
        frame = frame.join(wanted, on=on, how="semi", maintain_order="left")
        by = ["item", *(["criterion"] if "criterion" in pairs.columns else [])]
        items = pairs.frame.select(pl.col(by).cast(pl.String))
        if (tasks := pairs.tasks) is not None:
            items = items.with_columns(tasks.alias("task"))
            frame = frame.drop("task", strict=False)
        if self.covariates:
            facts = pairs.facts.select(_sources(self.covariates, pairs, judging.scale))
            items, frame = items.hstack(facts), frame.drop(facts.columns, strict=False)
        frame = items.join(frame, on=by, maintain_order="left_right")
        frame = frame.drop("criterion", strict=False)
        strength, full_margin = self.strength, self.full_margin
        if isinstance(self.rule, StoppingRule):
            strength, full_margin = strength_for(self.rule, judging.setup)
            if not set(STRENGTH_COLUMNS.get(strength, ())) <= set(frame.columns):
                strength, full_margin = "none", None
        how: Mapping[str, Any] = {"strength": strength, "full_margin": full_margin}
        if provenance is not None and not isinstance(self.rule, StoppingRule):
            how = provenance.how_to_read(Table(frame, pairs.source))
        votes = read_votes(frame, **how)
        return votes if self._sides == UNNAMED else votes.with_names(*self._sides)

    def _fit(self, votes: Votes, labelling: Labelling) -> None:
        tasks = dict(_by_task(votes, self.labels))
        labelling.notes += self.labels.remarks
        for task, part in tasks.items():
            notes: list[str] = []
            try:
                other_parts = {name: other for name, other in tasks.items() if name != task}
                labelling.fitted[task] = self._fit_task(part, self._prior(other_parts), notes)
            except InputError as error:
                labelling.not_decided[task] = str(error)
                labelling.notes.append(f"{task or 'votes'} could not be decided: {error}")
            labelling.notes += [f"{task}: {text}" if task else text for text in notes]
        if not labelling.fitted:
            why = next(iter(labelling.not_decided.values()))
            raise InputError(f"no item could be decided: {why}")

    def _prior(self, other_parts: Mapping[str, Votes]) -> Any:
        if self.prior != "neighbours":
            return self.prior
        neighbours = {}
        for name, votes in other_parts.items():
            with suppress(InputError):  # a task without labels
                items = votes.labelled(self.labels)
                neighbours[name] = items.by_judge, items.label
        scales = self.judging.scale, self.labels.scale
        return prior_among(neighbours, *scales)

    def _fit_task(self, votes: Votes, prior: Any, notes: list[str]) -> Fitted:
        judging, rule = self.judging, self.rule
        origin = replace(votes.provenance, n_votes=judging.n)
        every = items = votes.labelled(self.labels)
        if self.covariates:  # whose scales and standings are of all pairs
            every = votes.items(self.labels, drawn=False).with_covariates(self.covariates)
            items = every.labelled()
        calibration = quiet(calibrate)(every, prior=prior, provenance=origin)
        if isinstance(rule, RuleKind):
            arguments = calibration.model, judging.n, items.by_judge, items.label
            rule = rule.learn(*arguments, step=judging.step)
        notes += [*calibration.warnings, *filter(None, [used_in_words(calibration.model, {})])]
        certificate = None
        if self.agreement is not None:
            try:
                own_facts = [name for name in self.covariates if name != "standing"]
                promise = {"agreement": self.agreement, "prior": prior}
                promise["covariates"] = own_facts or None
                certificate = certify(votes, self.labels, **promise)
                notes += certificate.remarks
            except InputError as error:
                notes.append(f"no labels are certified: {error}")
        return Fitted(calibration, rule, certificate)


def labels_for(
    judging: Judging,
    labels: Source,
    label_scale: Scale | None = None,
    raters: Literal["mean", "majority", "drop"] = "mean",
    words: Mapping[str, object] | None = None,
) -> Labels:
    """Read labels of what is judged: grades, if the template asks for them."""
    table = read_table(labels, [])
    scale = scales_in(table, table, judging.scale, label_scale, words)[1]
    return read_labels(table, scale=scale, raters=raters, words=words)


async def label_pairs(
    pairs: Pairs | Source,
    labels: Labels | Source,
    judging: Judging,
    *,
    store: VoteStore | str | os.PathLike[str],
    rule: StoppingRule | RuleKind | str | None = None,
    client: ChatClient | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    stop: asyncio.Event | None = None,
    watch: Callable[[JudgeRun], object] | None = None,
) -> Labelling:
    """Judge pairs, calibrate on the labels of some, and decide every pair.

    Re-running it after a stop, or with more labels, makes no calls for stored votes. See `Pipeline`
    for the first arguments, :func:`btdagg.judge.judge` for the others.
    """
    pipeline = Pipeline(pairs, labels, judging, rule=rule)
    endpoint = {"base_url": base_url, "api_key": api_key}
    async with opened(store, client, judging, stop, watch, **endpoint) as job:
        return await pipeline.run(job)


def _covariates(given: str | Sequence[str] | None, pairs: Pairs, scale: Scale) -> tuple[str, ...]:
    if given is None:
        return ()
    if given == "auto":
        return tuple(name for name in ("standing", "length") if _sources([name], pairs, scale))
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else [*given]
    for name in names:
        columns = ", or ".join(sources_of(name, scale))
        expected = f"a column {columns} of {pairs.source}"
        expect(_sources([name], pairs, scale), "covariates", name, expected)
    return tuple(names)


def _sources(names: Iterable[str], pairs: Pairs, scale: Scale) -> list[str]:
    found = {*pairs.with_data(pairs.frame.clear()).facts.columns}
    sources = [columns for name in names for columns in sources_of(name, scale).values()]
    return list(dict.fromkeys(chain(*(columns for columns in sources if {*columns} <= found))))


def _decided(
    votes: Votes, gold: Labels, fitted: Mapping[str, Fitted], pairs: Pairs
) -> pl.DataFrame:
    decided = []
    for task, part in _by_task(votes, gold):
        if task not in fitted:
            continue
        fit, facts = fitted[task], pl.DataFrame()
        rows: Any = part
        if fit.rule is not None:  # which may need no vote of an item
            of_task = pairs.frame
            if pairs.tasks is not None:
                of_task = of_task.filter(pairs.tasks == task)
            names = [covariate.name for covariate in fit.rule.model.covariates]
            facts = pairs.with_data(of_task).facts
            facts = facts.select(_sources(names, pairs, fit.rule.model.scale))
            items = of_task.select(pl.col("item").cast(pl.String)).hstack(facts)
            rows = items.join(part.tally(), on="item", how="left", maintain_order="left")
            rows = rows.with_columns(pl.col(*part.columns_of_counts).fill_null(0))
        by: Any = fit.rule or replace(fit.model, provenance=None)
        frame = decisions(rows, by, certificate=fit.certificate).drop(facts.columns)
        first = ["item", *(["task"] if task else []), "label"]
        frame = frame.with_columns(pl.lit(task).alias("task"))
        decided.append(frame.select(*first, pl.exclude("item", "task", "label")))
    # Where the labels alone say the task of an item, one part may have none.
    return pl.concat(decided, how="diagonal")


def _by_task(votes: Votes, gold: Labels) -> Iterator[tuple[str, Votes]]:
    votes = with_task(votes, gold)
    by = ["task"] if "task" in votes.columns else []
    for key, part in votes.partition(by):
        yield key[0] if key else "", part


def _tasks(pairs: Pairs, gold: Labels) -> list[str]:
    tasks = pairs.tasks
    if tasks is None:
        if "task" not in gold.columns:
            return [""]
        tasks = text(gold, "task")
    return tasks.drop_nulls().unique(maintain_order=True).to_list() or [""]


def _refuse_other_labels(pairs: Pairs, gold: Labels) -> None:
    items, labelled = text(pairs, "item"), text(gold, "item")
    labels = gold.frame["label"].filter(labelled.is_in(items.implode()))
    if labels.is_empty():
        wanted, got = (listing(ids.head(3).to_list()) for ids in (items, labelled))
        raise InputError(
            f"{gold.source}: no label belongs to an item of {pairs.source}; items are {got} ... "
            f"in the labels, {wanted} ... in the pairs"
        )
    forbid(
        gold.scale.mirrored and labels.n_unique() == 1,
        f"{gold.source}: all {len(labels)} labels of these pairs are {labels[0]}; calibration "
        "needs at least two different labels",
    )


def _with_tasks(pairs: Pairs) -> Pairs:
    if "task" not in pairs.columns:
        return pairs
    tasks = text(pairs, "task")
    refuse(pairs, tasks.is_null(), "task", "the name of a task, as the other pairs have")
    return pairs.with_data(pairs.frame.with_columns(tasks.alias("task")))


def _parted(pairs: Pairs, gold: Labels) -> tuple[Pairs, Pairs]:
    tasks = pairs.tasks
    if "task" in gold.columns and tasks is None:
        raise InputError(f"{pairs.source} has no column task, expected one as in {gold.source}")
    names = ["item"] if tasks is None or "task" not in gold.columns else ["item", "task"]
    keys = pairs.frame.with_columns([] if tasks is None else [tasks])
    keys, labelled = (frame.select(pl.col(names).cast(pl.String)) for frame in (keys, gold.frame))
    is_labelled = keys.select(pl.struct(names).is_in(labelled.to_struct().implode())).to_series()
    full, rest = (pairs.frame.filter(rows) for rows in (is_labelled, ~is_labelled))
    return pairs.with_data(full), pairs.with_data(rest)


def _with_rules(pairs: Pairs, labelling: Labelling) -> tuple[Pairs, RuleOf]:
    """Pairs whose task has a rule, and which; the others, which nothing could decide, are noted."""
    fitted = labelling.fitted
    rules = {task: fit.rule for task, fit in fitted.items() if fit.rule is not None}
    tasks = pairs.tasks
    if tasks is None:
        return pairs, lambda _: rules[""]

    def rule_of(pair: Pair) -> StoppingRule:
        return rules[pair.task]

    judged = pairs.frame.filter(tasks.is_in(list(rules)))
    if n_rest := len(pairs) - judged.height:
        labelling.notes.append(f"{n_rest} pairs are not judged, since their tasks have no labels")
    return pairs.with_data(judged), rule_of
