"""Inspect's scores as votes, and its logs: votes and labels out of them, labels into them."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from zipfile import BadZipFile

from btdagg._core import InputError, __version__
from btdagg._util.errors import expect, forbid, reworded
from btdagg._util.extras import needs
from btdagg._util.files import digest_of, load_any, require_zip
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.online.rule import StoppingRule
from btdagg.questions.decisions import covariates_in, decided_columns
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import PAIRS, PASS_FAIL, Scale
from btdagg.votes.standings import FACTS, columns_needed
from btdagg.votes.table import listing
from btdagg.votes.verdicts import meanings_of
from btdagg.votes.votes import Votes, read_votes
from btdagg.votes.words import PAIR_WORDS, PASS_WORDS

with needs("inspect", "reading logs of Inspect"):
    from inspect_ai.log import (
        EvalLog,
        EvalSample,
        ProvenanceData,
        edit_score,
        list_eval_logs,
        read_eval_log,
        write_eval_log,
    )
    from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL, Score, ScoreEdit

Log: TypeAlias = EvalLog | str | os.PathLike[str]
By: TypeAlias = DavidsonModel | StoppingRule | GradeModel
Words: TypeAlias = Mapping[str, object]

ORDERS = ("AB", "BA")
ANSWERS = "answers"  # what `pairwise` keeps in the metadata of a score: by order, a status
NAMES = dict(zip(PAIRS.points, PAIRS.names, strict=True))
_LETTERS = {CORRECT.lower(): 1, PARTIAL.lower(): 0.5, INCORRECT.lower(): 0, **PASS_WORDS}
# What may be large in a sample, and says nothing of its votes.
_NOT_READ = {"messages", "events", "store", "attachments", "output", "timelines"}


# Scores as votes


class Meanings(NamedTuple):
    """Meaning of values, by word in lower case, and their scale."""

    words: Mapping[str, float | None]
    scale: Scale


class LogWarning(UserWarning):
    """Logs of which a part is not read, or is doubtful."""


_UNGRADED = "Grade not found in model output"


class ScoreVote(NamedTuple):
    """A vote of a score, None where it is missing; ``ok``, or why missing."""

    # Votes on pairs have the order shown, grades their criterion, if there are several.

    vote: float | None
    order: str | None
    status: str
    criterion: str | None = None


def tally_of(votes: Iterable[ScoreVote]) -> Counter[float | None]:
    """Count votes by their value, None where they are missing."""
    listed_votes = list(votes)
    if criteria := {vote.criterion for vote in listed_votes if vote.criterion is not None}:
        raise InputError(f"score: grades by {listing(sorted(criteria))}, expected one grade")
    return Counter(vote.vote for vote in listed_votes)


def meanings(words: Words | None, scale: Scale = PAIRS) -> Meanings:
    """Return what values mean: words of btdagg's tables, Inspect's letters, and `words`."""
    missing = {NOANSWER.lower(): None, "": None}
    vote_words: Mapping[str, float] = PAIR_WORDS
    if not scale.mirrored:
        vote_words = {word: of for word, of in _LETTERS.items() if {0, 1, of} <= {*scale.points}}
    return Meanings({**vote_words, **missing, **meanings_of(words, scale)}, scale)


def vote_of_value(value: object, meant: Meanings, where: str) -> float | None:
    """Return the vote that a value means; None where it is missing, as NaN is."""
    word, (words, scale) = str(value).strip().lower(), meant
    if isinstance(value, str) and word in words:
        value = words[word]
    if value is None:
        return None
    try:
        is_word = isinstance(value, bool) and (scale.mirrored or not {0, 1} <= {*scale.points})
        number = math.inf if is_word else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.inf
    if math.isnan(number):
        return None
    if number not in scale.points:
        is_grade = scale.mirrored and word in _LETTERS
        advice = {"scale": PASS_FAIL} if is_grade else {"words": {str(value): "..."}}
        what = "responses that pass or fail are read with" if is_grade else "for other words pass"
        expected = f"expected {scale.choices}; {what} {{advice}}"
        raise InputError(f"{where}: {value!r}, {expected}", advice=advice)
    return int(number) if number.is_integer() else number


def votes_of(score: Score, meant: Meanings, where: str = "score") -> list[ScoreVote]:
    """Return the votes of a score: one, one for each order, or grades by criterion."""
    value, answers = score.value, (score.metadata or {}).get(ANSWERS) or {}
    by_part: Mapping[Any, object] = dict.fromkeys(answers or [None], value)
    if isinstance(value, Mapping):
        if not value or (meant.scale.mirrored and not set(value) <= set(ORDERS)):
            raise InputError(f"{where}: {dict(value)!r}, expected one vote, or votes by AB and BA")
        by_part = value
    # Inspect's model_graded_qa has the value I where the grader gave no grade.
    is_ungraded = str(score.explanation or "").startswith(_UNGRADED)
    votes = []
    for part, part_value in by_part.items():
        vote = None if is_ungraded else vote_of_value(part_value, meant, where)
        why = "unparsed" if is_ungraded else answers.get(part, {}).get("status") or score.reason
        why = why or ("no answer" if isinstance(part_value, str) else "unscored")
        order, criterion = (part, None) if meant.scale.mirrored else (None, part)
        votes.append(ScoreVote(vote, order, why if vote is None else "ok", criterion))
    return votes


def as_decider(model: str | os.PathLike[str] | By) -> By:
    """Return a model or a rule, from its file unless it is one."""
    if isinstance(model, By):
        return model
    loaded: By = load_any(model, DavidsonModel, StoppingRule, GradeModel)
    return loaded


def scales_by(by: By | None) -> tuple[Scale, Scale]:
    """Return the scales of votes and labels: of pairs where the majority decides."""
    model = by.model if isinstance(by, StoppingRule) else by
    return (PAIRS, PAIRS) if model is None else (model.scale, model.label_scale)


def label_score(
    by: By | None,
    tally: Counter[float | None],
    metadata_of_scores: Iterable[Mapping[str, Any]] = (),
) -> Score:
    """Return the score of an item by its votes, unscored without a vote."""
    # A model decides, a rule (from its `n` votes on its model), or the majority (None).
    scale, label_scale = scales_by(by)
    counts, missing = tuple(tally[vote] for vote in scale.points), tally[None]
    metadata: dict[str, Any] = {
        "counts": dict(zip(scale.columns, counts, strict=True)),
        "missing": missing,
        "decided_by": "majority vote" if by is None else digest_of(by),
    }
    if not sum(counts):
        why = f"none of {missing} votes can be read"
        return Score.unscored(reason="scoring_failed", explanation=why, metadata=metadata)
    mean = None
    if by is None:
        from btdagg.methods.majority import majority_vote

        label: float = int(majority_vote([counts])[0])
    else:
        decider: Any = by
        if isinstance(by, StoppingRule) and sum(counts) > by.n:
            decider, metadata["settled"] = by.model, True
        model = by.model if isinstance(by, StoppingRule) else by
        known = known_by_scores(model, counts, metadata_of_scores)
        columns = decided_columns(decider, [counts], covariates=known)
        decided = {name: column.tolist()[0] for name, column in columns.items()}
        decided = {name: value for name, value in decided.items() if value == value}  # not NaN
        label, mean = decided.pop("label"), decided.pop("mean", None)
        if chances := [name for name in decided if name.startswith("p_")]:
            metadata["probabilities"] = {name[2:]: decided.pop(name) for name in chances}
        metadata |= decided
    if mean is None:
        minus, tie, plus = counts
        why = f"votes: {plus} for A, {tie} ties, {minus} for B, {missing} missing"
    else:
        why = f"mean of {sum(counts)} grades: {mean:.3g}, {missing} missing"
    answer = dict(zip(label_scale.points, label_scale.names, strict=True))[label]
    return Score(value=label, answer=answer, explanation=why, metadata=metadata)


def known_by_scores(
    model: DavidsonModel | GradeModel, counts: Sequence[int], metadata: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return covariates that a model needs of an item, by the metadata of its scores."""
    facts: dict[str, list[Any]] = {}
    names = columns_needed(model)
    for name, fact in (
        (name, entry[name]) for entry in metadata for name in names if name in entry
    ):
        if fact not in facts.setdefault(name, [fact]):
            got = f"{facts[name][0]!r} and {fact!r}, which differ between epochs of a sample"
            expected = "one value, as votes are on one response"
            raise InputError(argument=name, got=got, expected=expected)
    return covariates_in(facts, model, [counts], "metadata of the scores")


def interval(
    counts: Sequence[Sequence[int]],
    labels: Sequence[float | None],
    groups: Sequence[str] | None,
    quantity: str,
    level: float,
) -> dict[str, float]:
    """An estimate and its interval by their names in a log; NaN with fewer than two labels."""
    import numpy as np

    from btdagg.questions.estimate import estimate

    gold = np.array(labels, dtype=float)
    labelled = np.flatnonzero(~np.isnan(gold)).tolist()
    units = labelled if groups is None else {groups[row] for row in labelled}
    if len(units) < 2:
        return dict.fromkeys((quantity, "low", "high"), math.nan)
    mean = estimate(counts, gold, groups=groups, level=level).estimates[quantity]
    return {quantity: float(mean.value), "low": float(mean.low), "high": float(mean.high)}


# Logs


def read_inspect_votes(
    logs: Log | Iterable[Log],
    *,
    scorer: str | None = None,
    words: Words | None = None,
    columns: Mapping[str, str] | None = None,
    scale: Scale = PAIRS,
) -> Votes:
    """Read the votes of logs in which epochs of a judge are votes.

    Parameters
    ----------
    logs : EvalLog, path, or iterable of them
        A folder stands for its logs. Retries and copies are one run; another run of a task adds to
        its votes. Runs without samples are left out, with a warning.
    scorer : str, optional
        Name of the scores that are the votes; not needed where there is one.
    words : mapping of str to -1, 0, 1 or None, optional
        Values besides -1, 0, 1, A, tie or B, such as ``{"C": 1, "I": -1}``; None is a missing vote,
        as NaN and Inspect's ``N`` (no answer) are.
    columns : mapping of str to str, optional
        More columns, by the key of the samples' metadata, such as ``{"group": "prompt_id"}``;
        ``task`` is by default the name of the Inspect task.
    scale : Scale
        Scale of scores that are grades. ``C`` and ``I``, pass and fail are 1 and 0 where these are
        points, and ``P`` 0.5. Scores by several criteria, as a mapping, have the criterion as
        `task`.

    Returns
    -------
    Votes
        Columns `item` (id of the sample), `vote` (empty where missing), `sample` (the epoch; later
        runs count on), `judge`, `task`, `status` (``ok``, ``error``, ``unscored``, ``invalidated``,
        or the scorer's reason), `order`, systems and characters if known, and those of `columns`.
    """
    by_word, extra = meanings(words, scale), columns or {}
    rows: list[dict[str, Any]] = []
    last: Counter[str] = Counter()
    evaluated: dict[str, set[tuple[str, str]]] = {}
    asked: dict[tuple[str, Any], set[str]] = {}
    for log in _runs(logs):
        name, task = _scorer_of(log, scorer), log.eval.task
        judge = _judge_of(log, name)
        evaluated.setdefault(task, set()).add((log.eval.model, judge))
        _refuse_mixed(task, evaluated[task])
        judged = [(sample, _votes_of_sample(sample, name, by_word)) for sample in log.samples or []]
        shown = {sample.epoch: [vote.order for vote in votes] for sample, votes in judged if votes}
        for sample, votes in judged:
            asked.setdefault((task, sample.id), set()).add(_text_of(sample.input))
            score = (sample.scores or {}).get(name)
            metadata = (score.metadata or {}) if score else {}
            own_judge = metadata.get("judge", judge)
            # What failed would have been asked as the other samples were in that epoch.
            orders = shown.get(sample.epoch, [None])
            for vote in votes or [ScoreVote(None, order, _why(sample)) for order in orders]:
                rows.append(
                    {
                        "item": sample.id,
                        "vote": vote.vote,
                        "sample": last[task] + sample.epoch,
                        "judge": own_judge,
                        "task": vote.criterion or task,
                        "status": vote.status,
                        "order": vote.order,
                        **{key: metadata.get(key) for key in FACTS},
                        **_metadata(sample, extra),
                    }
                )
        last[task] += max((sample.epoch for sample, _ in judged), default=0)
    if several := [repr(item) for (_, item), texts in asked.items() if len(texts) > 1]:
        text = f"samples with one id and several inputs are read as one item: {listing(several)}"
        warnings.warn(text, LogWarning, stacklevel=2)
    return read_votes(_columns_of(rows, extra), scale=scale)


def read_inspect_labels(
    logs: Log | Iterable[Log],
    label: str = "target",
    *,
    words: Words | None = None,
    columns: Mapping[str, str] | None = None,
    scale: Scale = PAIRS,
) -> Labels:
    """Read the labels that people gave to the samples of logs.

    Parameters
    ----------
    logs, words, columns, scale
        As in `read_inspect_votes`.
    label : str
        ``target``, or a key of the samples' metadata.

    Returns
    -------
    Labels
        Samples whose label is empty, or not in the metadata, are its `unlabelled`.
    """
    by_word, extra = meanings(words, scale), columns or {}
    rows: dict[tuple[str, Any], dict[str, Any]] = {}
    for log in _runs(logs):
        for sample in log.samples or []:
            value = sample.metadata.get(label)
            if label == "target":
                value = "".join(sample.target)
            gold = vote_of_value(value, by_word, f"sample {sample.id!r}, {label}")
            row = {"task": log.eval.task, "item": sample.id, "label": gold}
            row |= _metadata(sample, extra)
            first = rows.setdefault((log.eval.task, sample.id), row)
            if first["label"] != gold:
                raise InputError(
                    f"sample {sample.id!r}, {label}: label {gold}, but {first['label']} in "
                    "another epoch or log"
                )
    return read_labels(_columns_of(list(rows.values()), extra), scale=scale)


def write_inspect_labels(
    log: Log,
    model: str | os.PathLike[str] | By,
    output: str | os.PathLike[str],
    *,
    scorer: str | None = None,
    words: Words | None = None,
    name: str = "calibrated",
) -> EvalLog:
    """Write a log with the calibrated label of each sample as one more score.

    Parameters
    ----------
    log : EvalLog or path
        It is left as it is.
    model : path, DavidsonModel, GradeModel or StoppingRule
        Model or rule; a rule where epochs were stopped by it.
    output : path
        A new file, ``.eval`` or ``.json``.
    scorer, words : optional
        As in `read_inspect_votes`.
    name : str
        Name of the new score.

    Returns
    -------
        The log written: in each epoch the sample's label is a score, with counts, probabilities and
        its author in the history. All else is as it was.
    """
    target, by = Path(output), as_decider(model)
    expect(not target.exists(), "output", str(target), "a new file")
    labelled = _read(log, whole=True)
    samples = labelled.samples or []
    votes_name = _scorer_of(labelled, scorer)
    expect(
        not any(name in (sample.scores or {}) for sample in samples),
        "name",
        name,
        "no score of the log",
    )
    by_word = meanings(words, scales_by(by)[0])
    votes: dict[str | int, list[ScoreVote]] = {}
    metadata: dict[str | int, list[Mapping[str, Any]]] = {}
    for sample in samples:
        votes.setdefault(sample.id, []).extend(_votes_of_sample(sample, votes_name, by_word))
        score = (sample.scores or {}).get(votes_name)
        metadata.setdefault(sample.id, []).append(
            {**sample.metadata, **((score.metadata or {}) if score else {})}
        )
    scores = {
        item: label_score(by, tally_of(sample_votes), metadata[item])
        for item, sample_votes in votes.items()
    }
    provenance = ProvenanceData(
        author=f"btdagg {__version__}",
        reason=f"label by the votes of the scorer {votes_name}",
        metadata={"decided_by": digest_of(by)},
    )
    for sample in samples:
        score = scores[sample.id]
        parts = ("value", "answer", "explanation", "reason", "metadata")
        edit = ScoreEdit(**{part: getattr(score, part) for part in parts}, provenance=provenance)
        # It looks for its sample among all of the log: one is quicker to search.
        alone = labelled.model_copy(update={"samples": [sample]})
        edit_score(alone, sample.id, name, edit, recompute_metrics=False, epoch=sample.epoch)
    write_eval_log(labelled, target)
    labelled.location = str(target)
    return labelled


def _runs(logs: Log | Iterable[Log]) -> Iterator[EvalLog]:
    runs: dict[str, list[EvalLog]] = {}
    for log in map(_read, _files(logs)):
        runs.setdefault(log.eval.task_id or log.eval.eval_id, []).append(log)
    empty = [run for run, attempts in runs.items() if not any(log.samples for log in attempts)]
    places = listing(_place(runs[run][-1]) for run in empty)
    forbid(len(empty) == len(runs), f"{places or 'logs'}: no log has samples")
    if empty:
        warnings.warn(f"logs without samples, left out: {places}", LogWarning, stacklevel=3)
    for run, attempts in runs.items():
        if run in empty:
            continue
        *earlier, last = sorted(attempts, key=lambda log: log.eval.created)
        # What failed was asked again, unless a rule had settled it by then.
        worked = [sample for log in earlier for sample in log.samples or [] if not sample.error]
        samples = {(sample.id, sample.epoch): sample for sample in [*worked, *(last.samples or [])]}
        yield last.model_copy(update={"samples": list(samples.values())})


def _files(logs: Log | Iterable[Log]) -> Iterator[Log]:
    for log in [logs] if isinstance(logs, EvalLog | str | os.PathLike) else logs:
        if isinstance(log, EvalLog) or not os.path.isdir(log):
            yield log
            continue
        files = list_eval_logs(os.fspath(log), descending=False)
        forbid(not files, f"{os.fspath(log)}: no logs of Inspect in this folder")
        yield from (file.name for file in files)


def _read(log: Log, whole: bool = False) -> EvalLog:
    if isinstance(log, EvalLog):
        return log.model_copy(deep=True) if whole else log
    name = os.fspath(log)
    if os.path.isfile(name):
        require_zip(name, os.path.getsize(name), name)
    damage = (OSError, ValueError, KeyError, BadZipFile)
    with reworded(damage, f"{name}: not a log of Inspect: {{error}}"):
        return read_eval_log(name, exclude_fields=None if whole else _NOT_READ)


def _place(log: EvalLog) -> str:
    return str(log.location or log.eval.task)


def _scorer_of(log: EvalLog, scorer: str | None) -> str:
    names = dict.fromkeys(name for sample in log.samples or [] for name in sample.scores or {})
    if not names:  # all samples failed
        names = dict.fromkeys(scored.name.rpartition("/")[2] for scored in log.eval.scorers or [])
    matching = [name for name in names if scorer in (None, name)]
    if scorer is None and len(names) > 1:
        text = f"{_place(log)}: samples have scores of {listing(names)}; name one as the scorer, "
        text += f"such as btdagg import --set scorer={next(iter(names))}"
        raise InputError(text, argument="scorer")
    forbid(
        len(matching) != 1,
        f"{_place(log)}: scorer is {scorer!r}, expected one of {listing(names) or 'none'}",
        "scorer",
    )
    return str(matching[0])


def _judge_of(log: EvalLog, scorer: str) -> str:
    """Return the judge that most scores of a log tell, or the evaluated model if none does."""
    scores = [(sample.scores or {}).get(scorer) for sample in log.samples or []]
    metadata = [score.metadata or {} for score in scores if score]
    judges = Counter(values["judge"] for values in metadata if "judge" in values)
    return str(judges.most_common(1)[0][0]) if judges else log.eval.model


def _refuse_mixed(task: str, evaluated: set[tuple[str, str]]) -> None:
    """Refuse runs that evaluate several models, unless each model judged itself."""
    models = sorted({model for model, _ in evaluated})
    forbid(
        len(models) > 1 and any(model != judge for model, judge in evaluated),
        f"runs of the task {task!r} evaluate several models ({listing(models)}); give the "
        "logs of one model",
        "logs",
    )


def _votes_of_sample(sample: EvalSample, scorer: str, words: Meanings) -> list[ScoreVote]:
    score = (sample.scores or {}).get(scorer)
    if score is None or sample.invalidation is not None:
        return []
    return votes_of(score, words, f"sample {sample.id!r}, epoch {sample.epoch}, {scorer}")


def _why(sample: EvalSample) -> str:
    if sample.invalidation is not None:
        return "invalidated"
    return "unscored" if sample.error is None else "error"


def _text_of(asked: Any) -> str:
    # Messages have ids of their own in each log.
    return asked if isinstance(asked, str) else "\n".join(message.text for message in asked)


def _metadata(sample: EvalSample, columns: Mapping[str, str]) -> dict[str, Any]:
    return {column: sample.metadata.get(key) for column, key in columns.items()}


def _columns_of(rows: list[dict[str, Any]], extra: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return rows as columns: ids of one type, and no column of orders where none is known."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, key in extra.items():
        forbid(
            all(value is None for value in columns[name]),
            f"columns[{name!r}] is {key!r}, which is in no sample's metadata",
            "columns",
        )
    if not all(isinstance(item, int) for item in columns["item"]):
        columns["item"] = [str(item) for item in columns["item"]]
    for name in {"order", *FACTS} & columns.keys():
        if all(value is None for value in columns[name]):
            columns.pop(name)
    return columns
