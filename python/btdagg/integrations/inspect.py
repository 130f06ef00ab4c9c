"""Epochs of Inspect (inspect_ai) as votes: reducers, metrics, an early stopper and a scorer."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from logging import getLogger
from typing import TYPE_CHECKING, Any, Literal

from btdagg._util.errors import InputError, expect, forbid, given, one_of
from btdagg._util.extras import needs
from btdagg.integrations.annotations import missing_by_status
from btdagg.integrations.inspect_logs import (
    ANSWERS,
    NAMES,
    ORDERS,
    By,
    Words,
    as_decider,
    interval,
    known_by_scores,
    label_score,
    meanings,
    read_inspect_labels,
    read_inspect_votes,
    scales_by,
    tally_of,
    vote_of_value,
    votes_of,
    write_inspect_labels,
)
from btdagg.online.rule import StoppingRule
from btdagg.votes.labels import Labels

# Inspect looks up the types of metrics when it runs, so they are imported here.
with needs("inspect", "btdagg.integrations.inspect"):
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, Model, get_model
    from inspect_ai.scorer import (
        Metric,
        SampleScore,
        Score,
        Scorer,
        ScoreReducer,
        Target,
        Value,
        mean,
        metric,
        score_reducer,
        scorer,
    )
    from inspect_ai.solver import TaskState
    from inspect_ai.util import EarlyStop, collect

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSpec

    from btdagg.judge.client import Verdict
    from btdagg.judge.pairs import Pair
    from btdagg.judge.prompts import PromptTemplate

__all__ = [
    "StopByRule",
    "calibrated",
    "graded",
    "judge_win_rate",
    "missing_by_status",
    "pairwise",
    "read_inspect_labels",
    "read_inspect_votes",
    "tallied",
    "win_rate",
    "write_inspect_labels",
]

MODEL_VARIABLE = "BTDAGG_MODEL"
_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser}


# Reducers


@score_reducer  # type: ignore[untyped-decorator]
def calibrated(
    model: str | os.PathLike[str] | By | None = None, *, words: Words | None = None
) -> ScoreReducer:
    """Reduce the epochs of a sample, each a vote or one vote by order, to the calibrated label.

    Parameters
    ----------
    model : path, DavidsonModel, GradeModel or StoppingRule, optional
        Model or rule; a rule where epochs are stopped by it. By default the file in the environment
        variable BTDAGG_MODEL, as for ``inspect eval-retry``.
    words : mapping of str to -1, 0, 1 or None, optional
        Values besides -1, 0, 1, A, tie, B or grades of the model's scale; None is a missing vote.

    Covariates of the model are read from the metadata of scores, as `pairwise` and `graded` write
    it.

    Returns
    -------
    ScoreReducer
        Scores are labels -1, 0, 1, so that ``mean()`` is the net win rate, or grades; `answer` has
        words, metadata counts, probabilities and whether the rule stops. Samples without a readable
        vote are unscored.
    """
    expected = f"a model, or its file in the environment variable {MODEL_VARIABLE}"
    by = given(os.environ.get(MODEL_VARIABLE), "model", expected) if model is None else model
    return _reducer(as_decider(by), words)


@score_reducer  # type: ignore[untyped-decorator]
def tallied(*, words: Words | None = None) -> ScoreReducer:
    """Reduce the epochs of a sample to the majority vote; its counts are in the metadata.

    For `win_rate` with human labels where there is no model yet. `words` is as in `calibrated`.
    """
    return _reducer(None, words)


def _reducer(by: By | None, words: Words | None) -> ScoreReducer:
    by_word = meanings(words, scales_by(by)[0])

    def reduce(scores: list[Score]) -> Score:
        votes = (vote for score in scores for vote in votes_of(score, by_word))
        return label_score(by, tally_of(votes), [score.metadata or {} for score in scores])

    return reduce


# Metrics


@metric(scores="reduced")  # type: ignore[untyped-decorator]
def win_rate(
    labels: str | Labels,
    *,
    groups: str | None = None,
    quantity: str = "net win rate",
    words: Words | None = None,
    level: float = 0.95,
) -> Metric:
    """Estimate how often A wins, from people's labels of some samples and the votes of all.

    It is `btdagg.estimate`: the interval holds for new samples, whatever the judge is worth.

    Parameters
    ----------
    labels : str or Labels
        Labels of samples chosen by chance: a key of the samples' metadata, which may be absent or
        None, or what `btdagg.read_labels` returns.
    groups : str, optional
        Key of the metadata for what samples share, such as their prompt. Variances are between
        groups.
    quantity : str
        ``net win rate``, ``win rate`` (ties as half), ``A``, ``tie`` or ``B``.
    words : mapping of str to -1, 0, 1 or None, optional
        As in `calibrated`, for labels in the metadata.
    level : float
        Confidence level of the interval.

    Returns
    -------
    Metric
        Such as ``{"net win rate": 0.1, "low": -0.1, "high": 0.3, "labels": 20}``; NaN with fewer
        than two labels or groups, and, with a warning, if epochs were not reduced by `calibrated`
        or `tallied`.
    """
    by_word = meanings(words)
    by_item: dict[str, int] = {}
    if isinstance(labels, Labels):
        by_item = dict(zip(map(str, labels.ids), labels.labels.tolist(), strict=True))
        expect(len(by_item) >= len(labels.ids), "labels", "several votes per item", "one task's")

    def gold(score: SampleScore) -> float | None:
        if isinstance(labels, Labels):
            return by_item.get(str(score.sample_id))
        value = (score.sample_metadata or {}).get(labels)
        return vote_of_value(value, by_word, f"sample {score.sample_id!r}, {labels}")

    return _metric(gold, groups, quantity, level)


@metric(scores="reduced")  # type: ignore[untyped-decorator]
def judge_win_rate(
    *, groups: str | None = None, quantity: str = "net win rate", level: float = 0.95
) -> Metric:
    """Estimate how often A would win on new samples if the judge's labels were the truth.

    The interval ignores what the judge gets wrong on every sample; that of `win_rate` does not.
    Parameters and value are as there, without the number of labels.
    """
    return _metric(None, groups, quantity, level)


def _metric(
    gold: Callable[[SampleScore], float | None] | None,
    groups: str | None,
    quantity: str,
    level: float,
) -> Metric:
    from btdagg.inference.quantities import quantities_of
    from btdagg.model.intervals import as_level
    from btdagg.votes.scale import PAIRS

    as_level(level)
    one_of(quantity, quantities_of(PAIRS), "quantity")

    def compute(scores: list[SampleScore]) -> Value:
        reduced = [pair for score in scores if (pair := _reduced(score.score)) is not None]
        group = None if groups is None else [_group(score, groups) for score in scores]
        labels = [label for _, label in reduced] if gold is None else [*map(gold, scores)]
        number = {} if gold is None else {"labels": sum(label is not None for label in labels)}
        if len(reduced) < len(scores):
            _warn_of_means()
            reduced, labels = [], []
        counts = [sample_counts for sample_counts, _ in reduced]
        return {**interval(counts, labels, group, quantity, level), **number}

    return compute


@cache
def _warn_of_means() -> None:
    # Inspect computes metrics again and again while samples are completed.
    getLogger(__name__).warning(
        "win rates need votes but got mean scores: use Epochs(n, calibrated(model)) or tallied()"
    )


def _reduced(score: Score) -> tuple[list[int], int | None] | None:
    """Return counts and the label by them; None if a score is a mean of votes."""
    counts = (score.metadata or {}).get("counts")
    if isinstance(counts, dict) and score.value in NAMES:
        return list(counts.values()), int(score.value)
    try:
        tally = tally_of(votes_of(score, meanings(None)))
    except InputError:
        return None
    label = label_score(None, tally).value
    return [tally[side] for side in NAMES], int(label) if label in NAMES else None


def _group(score: SampleScore, key: str) -> str:
    group = (score.sample_metadata or {}).get(key)
    forbid(
        group is None,
        f"sample {score.sample_id!r}: metadata has no {key!r}, expected the sample's group",
    )
    return str(group)


# Early stopping


class StopByRule:
    """Leaves out epochs of samples that a rule says are settled: ``Task(early_stopping=...)``.

    With epochs in series the votes are those of the rule; epochs at the same time cost some of its
    saving. Inspect asks it only where samples are logged (``log_samples=True``, its default).

    Parameters
    ----------
    rule : StoppingRule or path
    scorer : str, optional
        Name of the scorer whose scores are the votes; of a task with one scorer, that one.
    words : mapping of str to -1, 0, 1 or None, optional
        As in `calibrated`.
    """

    def __init__(
        self,
        rule: str | os.PathLike[str] | StoppingRule,
        *,
        scorer: str | None = None,
        words: Words | None = None,
    ) -> None:
        by = as_decider(rule)
        if not isinstance(by, StoppingRule):
            raise InputError(argument="rule", got=rule, expected="a stopping rule, not a model")
        self.rule = by
        self._named = scorer
        self._words = meanings(words, scales_by(by)[0])
        self._scorer: str | None = scorer
        self._running: tuple[str, str] | None = None
        self._votes: dict[str | int, dict[int, Counter[float | None]]] = {}
        self._metadata: dict[str | int, list[dict[str, Any]]] = {}

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Begin without votes; see Inspect's EarlyStopping."""
        run, this = task.run_id, task.task_id
        forbid(
            self._running is not None and self._running[0] == run and self._running[1] != this,
            f"task {task.task!r}: this StopByRule already belongs to another task; give each "
            "task its own",
        )
        names = [scored.name.rpartition("/")[2] for scored in task.scorers or []]
        self._scorer = self._named or (names[0] if len(names) == 1 else None)
        expected = f"one of the task's: {', '.join(names)}"
        expect(self._scorer in names, "scorer", self._named, expected)
        self._running, self._votes, self._metadata = (run, this), {}, {}
        return f"btdagg {self.rule.kind}"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Leave out an epoch of a sample that is settled."""
        metadata, model = self._metadata.get(id, []), self.rule.model
        if not metadata and model.covariates:  # which scores tell
            return None
        tally = sum(self._votes.get(id, {}).values(), Counter[float | None]())
        counts = [tally[vote] for vote in self._words.scale.points]
        known = known_by_scores(model, counts, metadata)
        if sum(counts) < self.rule.n and not self.rule.stops([counts], covariates=known)[0]:
            return None
        score = label_score(self.rule, tally, metadata)
        reason = f"settled after {sum(counts)} votes: {score.answer}"
        return EarlyStop(id=id, epoch=epoch, reason=reason, metadata=score.metadata)

    async def complete_sample(
        self, id: str | int, epoch: int, scores: dict[str, SampleScore]
    ) -> None:
        """Count the votes of an epoch."""
        if self._scorer in scores:
            where = f"sample {id!r}, epoch {epoch}"
            score = scores[self._scorer].score
            votes = votes_of(score, self._words, where)
            self._metadata.setdefault(id, []).append(score.metadata or {})
            self._votes.setdefault(id, {})[epoch] = tally_of(votes)

    async def complete_task(self) -> dict[str, Any]:
        """Return what was spent."""
        self._running = None
        tallies = [tally for by_epoch in self._votes.values() for tally in by_epoch.values()]
        missing = sum(tally[None] for tally in tallies)
        votes = sum(tally.total() for tally in tallies) - missing
        return {"rule": self.rule.kind, "n": self.rule.n, "votes": votes, "votes_missing": missing}


# Scorer


@scorer(metrics=[judge_win_rate()])  # type: ignore[untyped-decorator]
def pairwise(
    a: str = "output",
    b: str = "target",
    *,
    template: str | os.PathLike[str] | PromptTemplate = "response",
    orders: Literal["both", "alternate"] = "both",
    reference: str | None = None,
    model: str | Model | None = None,
    model_role: str | None = "grader",
) -> Scorer:
    """Ask a model which of two responses is better, with either shown first.

    Parameters
    ----------
    a, b : str
        Where the responses are: ``output`` of the model, ``target`` of the sample, or a key of its
        metadata.
    template : str, path or PromptTemplate
        A name or a .toml file, as in `btdagg judge`; other placeholders come from the metadata of
        the sample, ``{prompt}`` is its input.
    orders : "both" or "alternate"
        Two votes in each epoch, one in each order; or one, AB in the first epoch, BA in the second.
    reference : str, optional
        Key of the metadata for a good response, for templates with ``{reference}``.
    model : str or Model, optional
        The judge; else the model of the role.
    model_role : str, optional
        By default the model that is evaluated.

    Returns
    -------
    Scorer
        With both orders ``{"AB": 1, "BA": 0}``, votes from A's point of view; else one vote. An
        unreadable verdict is NaN, a score without any vote unscored, with the reason
        ``grader_failed``; answers are in its explanation.
    """
    from btdagg.judge.prompts import get_template

    prompt = get_template(template)
    expect(orders in ("both", "alternate"), "orders", orders, "both or alternate")

    async def score(state: TaskState, target: Target) -> Score:
        judge = get_model(model) if model is not None else get_model(role=model_role)
        shown = ORDERS if orders == "both" else (ORDERS[(state.epoch - 1) % 2],)
        pair = _pair(state, target, a, b, reference)
        answers = await collect(*(_ask(judge, prompt, pair, order) for order in shown))
        replies = dict(zip(shown, answers, strict=True))
        known = _known(state, _a=(a, pair.a), _b=(b, pair.b))
        return _pairwise_score(replies, {"judge": str(judge), "template": prompt.name, **known})

    return score


@scorer(metrics=[mean()])  # type: ignore[untyped-decorator]
def graded(
    response: str = "output",
    *,
    template: str | os.PathLike[str] | PromptTemplate = "grade-5",
    reference: str | None = None,
    model: str | Model | None = None,
    model_role: str | None = "grader",
) -> Scorer:
    """Ask a model for the grade of a response, with parameters as of `pairwise`.

    `template` is ``pass-fail``, ``grade-5``, ``grade-10`` or a .toml file for grades. The value is
    the grade (pass and fail 1 and 0), or unscored without one.
    """
    from btdagg.judge.prompts import get_template

    prompt = get_template(template)
    expect(prompt.answer.grades is not None, "template", prompt.name, "a template for grades")

    async def score(state: TaskState, target: Target) -> Score:
        judge = get_model(model) if model is not None else get_model(role=model_role)
        item = _pair(state, target, response, None, reference)
        text, verdict = await _ask(judge, prompt, item, "AB")
        metadata = {"judge": str(judge), "template": prompt.name, "status": verdict.status}
        metadata |= _known(state, **{"": (response, item.response)})
        if verdict.grade is None:
            why = "grader_failed"
            return Score.unscored(reason=why, explanation=text, metadata=metadata)
        grade = verdict.grade
        return Score(value=grade, answer=str(grade), explanation=text, metadata=metadata)

    return score


async def _ask(judge: Model, prompt: PromptTemplate, pair: Pair, order: Any) -> tuple[str, Verdict]:
    from btdagg.judge.answers import parse_verdict

    messages = [_MESSAGES[m["role"]](content=m["content"]) for m in prompt.render(pair, order)]
    reply = await judge.generate(messages)
    text, end = reply.completion, reply.stop_reason
    verdict = parse_verdict(
        text, prompt.answer, order=order, finish_reason=end, responses=pair.responses
    )
    return text, verdict


def _pair(state: TaskState, target: Target, a: str, b: str | None, reference: str | None) -> Pair:
    from btdagg.judge.pairs import Pair

    def text(name: str) -> str:
        if name == "output":
            return str(state.output.completion)
        value = target.text if name == "target" else state.metadata.get(name)
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"sample {state.sample_id!r}, {name}: {value!r}, expected a text")
        return value

    fields = {name: str(value) for name, value in state.metadata.items()}
    good = "" if reference is None else text(reference)
    common: Any = {"prompt": state.input_text, "reference": good, "fields": fields}
    if b is None:
        return Pair(str(state.sample_id), response=text(a), **common)
    return Pair(str(state.sample_id), text(a), text(b), **common)


def _known(state: TaskState, **responses: tuple[str, str]) -> dict[str, Any]:
    """Return, by side, how long responses are and, where the metadata or the task say it, whose."""
    known: dict[str, Any] = {}
    for side, (place, text) in responses.items():
        model = str(state.model) if place == "output" else None
        known[f"system{side}"] = state.metadata.get(f"system{side}", model)
        known[f"chars{side}"] = len(text)
    return {name: value for name, value in known.items() if value is not None}


def _pairwise_score(replies: dict[str, tuple[str, Verdict]], metadata: dict[str, Any]) -> Score:
    votes = {order: verdict.vote for order, (_, verdict) in replies.items()}
    metadata[ANSWERS] = {
        order: {"status": verdict.status, "reason": verdict.reason}
        for order, (_, verdict) in replies.items()
    }
    texts = "\n\n".join(f"{order}:\n{text}" for order, (text, _) in replies.items())
    if all(vote is None for vote in votes.values()):
        return Score.unscored(reason="grader_failed", explanation=texts, metadata=metadata)
    by_order = {order: float("nan") if vote is None else vote for order, vote in votes.items()}
    value = by_order if len(by_order) > 1 else next(iter(by_order.values()))
    words = (f"{order}: {'-' if vote is None else NAMES[vote]}" for order, vote in votes.items())
    return Score(value=value, answer=", ".join(words), explanation=texts, metadata=metadata)
