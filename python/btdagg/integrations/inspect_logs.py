"""Logs of Inspect (inspect_ai): votes and labels out of them, calibrated labels into them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from zipfile import BadZipFile

from btdagg._core import InputError, __version__
from btdagg._util.extras import needs
from btdagg._util.files import digest_of, read_whole, replacing
from btdagg.integrations.inspect_scores import (
    NAMES,
    By,
    ScoreVote,
    Tallied,
    Words,
    as_decider,
    as_words,
    interval,
    label_score,
    vote_of_value,
    votes_of,
)
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.table import listing
from btdagg.votes.votes import Votes, read_votes

with needs("inspect", "reading logs of Inspect"):
    from inspect_ai.log import (
        EvalLog,
        EvalMetric,
        EvalResults,
        EvalSample,
        EvalSampleReductions,
        EvalSampleScore,
        EvalScore,
        MetadataEdit,
        ProvenanceData,
        edit_eval_log,
        edit_score,
        list_eval_logs,
        read_eval_log,
        write_eval_log,
    )
    from inspect_ai.scorer import Score, ScoreEdit

Log: TypeAlias = EvalLog | str | os.PathLike[str]

NET = "net win rate"
REDUCER = "btdagg/calibrated"

# What may be large in a sample, and says nothing of its votes.
_NOT_READ = {"messages", "events", "store", "attachments", "output", "timelines"}


def read_inspect_votes(
    logs: Log | Iterable[Log],
    *,
    scorer: str | None = None,
    words: Words | None = None,
    columns: Mapping[str, str] | None = None,
) -> Votes:
    """Read the votes of logs in which epochs of a judge are votes.

    Parameters
    ----------
    logs : EvalLog, path, or iterable of them
        A folder stands for all logs in it. Retries of a run, and copies of its log, are one run;
        another run of a task adds to its votes. Runs without samples are left out, with a warning.
    scorer : str, optional
        Name of the scores that are the votes; not needed where there is one.
    words : mapping of str to -1, 0, 1 or None, optional
        What values mean that are not -1, 0, 1, A, tie or B, such as ``{"C": 1, "I": -1}``; None is
        a missing vote, as NaN and Inspect's ``N`` (no answer) are.
    columns : mapping of str to str, optional
        More columns, by the key of the samples' metadata, such as ``{"group": "prompt_id"}``;
        ``task`` is the name of the Inspect task unless given.

    Returns
    -------
    Votes
        Columns `item` (id of the sample), `vote` (empty where missing), `sample` (the epoch; later
        runs count on), `judge`, `task`, `status` (``ok``, or why a vote is missing: ``error``,
        ``unscored``, ``invalidated``, or the reason that the scorer gave), `order` where scores
        tell it, and those of `columns`. See `missing_by_status`.

    Raises
    ------
    InputError
        If a log cannot be read, or none has samples; if it has several scorers and none is named;
        if a score is no vote (the message names sample and epoch); if runs of a task evaluate
        different models, which are not the judges; or if no sample has such metadata.
    """
    known, extra = as_words(words), dict(columns or {})
    reserved = {"item", "vote", "sample", "judge", "status", "order"} & set(extra)
    if reserved:
        raise InputError(f"columns names {listing(sorted(reserved))}, which votes have already")
    rows: list[dict[str, Any]] = []
    last: Counter[str] = Counter()
    runs: dict[str, set[tuple[str, str]]] = {}
    for log in _runs(logs):
        named, task = _scorer_of(log, scorer), log.eval.task
        judge = _judge_of(log, named)
        _check_evaluated(log, judge, runs.setdefault(task, set()))
        judged = [(sample, _votes_of_sample(sample, named, known)) for sample in log.samples or []]
        shown = {sample.epoch: [vote.order for vote in votes] for sample, votes in judged if votes}
        for sample, votes in judged:
            score = (sample.scores or {}).get(named)
            told = (score.metadata or {}) if score else {}
            # What failed would have been asked as the other samples were in that epoch.
            orders = shown.get(sample.epoch, [None])
            for vote in votes or [ScoreVote(None, order, _why(sample)) for order in orders]:
                rows.append(
                    {
                        "item": sample.id,
                        "vote": vote.vote,
                        "sample": last[task] + sample.epoch,
                        "judge": told.get("judge", judge),
                        "task": task,
                        "status": vote.status,
                        "order": vote.order,
                        **_metadata(sample, extra),
                    }
                )
        last[task] += max((sample.epoch for sample, _ in judged), default=0)
    return read_votes(_columns_of(rows, extra))


def read_inspect_labels(
    logs: Log | Iterable[Log],
    label: str = "target",
    *,
    words: Words | None = None,
    columns: Mapping[str, str] | None = None,
) -> Labels:
    """Read the labels that people gave to the samples of logs.

    Parameters
    ----------
    logs : EvalLog, path, or iterable of them
        As of `read_inspect_votes`.
    label : str
        ``target``, or a key of the samples' metadata.
    words, columns : mapping, optional
        As of `read_inspect_votes`.

    Returns
    -------
    Labels
        Samples whose label is empty, or not in the metadata, are its `unlabelled`.

    Raises
    ------
    InputError
        If a log cannot be read, a label is no vote, or a sample has two.
    """
    known, extra = as_words(words), dict(columns or {})
    rows: dict[str, dict[str, Any]] = {}
    for log in _runs(logs):
        for sample in log.samples or []:
            target = sample.target if isinstance(sample.target, str) else "".join(sample.target)
            said = target if label == "target" else sample.metadata.get(label)
            gold = vote_of_value(said, known, f"sample {sample.id!r}, {label}")
            row = {"item": sample.id, "label": gold, **_metadata(sample, extra)}
            first = rows.setdefault(f"{log.eval.task}\0{sample.id}", {"task": log.eval.task, **row})
            if first["label"] != gold:
                raise InputError(
                    f"sample {sample.id!r}, {label}: {gold}, and {first['label']} in another epoch "
                    "or log"
                )
    return read_labels(_columns_of(list(rows.values()), extra))


def missing_by_status(votes: Votes) -> dict[str, int]:
    """Return how many votes are missing, by why, the most frequent first.

    Parameters
    ----------
    votes : Votes
        As `read_inspect_votes` returns them.
    """
    import polars as pl

    missing = votes.frame.filter(pl.col("vote").is_null())["status"]
    return dict(Counter(missing.to_list()).most_common())


def write_inspect_labels(
    log: Log,
    model: str | os.PathLike[str] | By,
    output: str | os.PathLike[str],
    *,
    scorer: str | None = None,
    words: Words | None = None,
    name: str = "calibrated",
    force: bool = False,
) -> EvalLog:
    """Write a log with the calibrated label of each sample as one more score.

    Parameters
    ----------
    log : EvalLog or path
        It is left as it is.
    model : path, DavidsonModel or StoppingRule
        What decides; a rule where epochs were stopped by it.
    output : path
        A new file, ``.eval`` or ``.json``.
    scorer, words : optional
        As of `read_inspect_votes`.
    name : str
        Name of the new score. Labels of an earlier call under this name are replaced, and stay in
        the history of the score.
    force : bool
        Whether to replace a file that is there, even the log itself.

    Returns
    -------
    EvalLog
        What was written. In each epoch the sample's label is a score, with counts, probabilities
        and who wrote it in its history; reductions and results have one more entry, the latter
        with the interval of `judge_win_rate`. All else is as it was.

    Raises
    ------
    InputError
        Where `read_inspect_votes` does; if the output exists or is of another kind, or the log has
        scores of that name which btdagg did not write.
    """
    target, by = Path(output), as_decider(model)
    if target.suffix not in (".eval", ".json"):
        raise InputError(f"output is {target}, expected a name that ends in .eval or .json")
    if target.exists() and not force:
        raise InputError(f"output is {target}, which exists, expected another name or force=True")
    found = _read(log, whole=True)
    if not found.samples:
        raise InputError(f"{_place(found)}: the log has no samples")
    named, earlier = _scorer_of(found, scorer), _ours(found)
    samples = found.samples
    if name == named or any(name in (one.scores or {}) and name not in earlier for one in samples):
        raise InputError(f"name is {name!r}, a score of the log already, expected another")
    known = as_words(words)
    votes: dict[str | int, list[ScoreVote]] = {}
    for sample in samples:
        votes.setdefault(sample.id, []).extend(_votes_of_sample(sample, named, known))
    scores = {item: label_score(by, Tallied.of(some)) for item, some in votes.items()}
    wrote = ProvenanceData(
        author=f"btdagg {__version__}",
        reason=f"label by the votes of the scorer {named}",
        metadata={"decided_by": digest_of(by)},
    )
    for sample in samples:
        score = scores[sample.id]
        edit = ScoreEdit(
            **{part: getattr(score, part) for part in ("value", "answer", "explanation", "reason")},
            metadata=score.metadata or {},
            provenance=wrote,
        )
        # It looks for its sample among all of the log: one is quicker to search.
        alone = found.model_copy(update={"samples": [sample]})
        edit_score(alone, sample.id, name, edit, recompute_metrics=False, epoch=sample.epoch)
    _add_results(found, name, scores)
    told = {name: {"scorer": named, "decided_by": digest_of(by), "version": __version__}}
    entry = MetadataEdit(metadata_set={"btdagg": {**earlier, **told}})
    found = edit_eval_log(found, [entry], wrote)
    with TemporaryDirectory() as folder:
        draft = Path(folder) / target.name
        write_eval_log(found, draft)
        with replacing(target) as file:
            file.write(read_whole(draft))
    found.location = str(target)
    return found


def _add_results(log: EvalLog, name: str, scores: Mapping[str | int, Score]) -> None:
    """Put labels into the results and reductions of a log, in place of earlier ones."""
    known = [score for score in scores.values() if score.value in NAMES]
    counts = [list(score.metadata["counts"].values()) for score in known if score.metadata]
    found = interval(counts, [score.value for score in known], None, NET, 0.95)
    metrics = {
        key: EvalMetric(name=key, group="judge_win_rate", value=value)
        for key, value in found.items()
    }
    result = EvalScore(
        name=name,
        scorer=name,
        reducer=REDUCER,
        scored_samples=len(known),
        unscored_samples=len(scores) - len(known),
        metrics=metrics,
    )
    reduced = EvalSampleReductions(
        scorer=name,
        reducer=REDUCER,
        samples=[EvalSampleScore(**score.__dict__, sample_id=id) for id, score in scores.items()],
    )
    log.results = log.results or EvalResults(total_samples=len(log.samples or []))
    log.results.scores = [one for one in log.results.scores if one.name != name] + [result]
    log.reductions = [one for one in log.reductions or [] if one.scorer != name] + [reduced]


# Reading


def _runs(logs: Log | Iterable[Log]) -> Iterator[EvalLog]:
    """Read logs: one for each run with samples, which has one log more for each retry."""
    attempts: dict[str, list[EvalLog]] = {}
    for log in _each(logs):
        found = _read(log)
        attempts.setdefault(found.eval.task_id or found.eval.eval_id, []).append(found)
    empty = [
        several[-1] for several in attempts.values() if not any(one.samples for one in several)
    ]
    places = listing([_place(log) for log in empty])
    if len(empty) == len(attempts):
        raise InputError(f"{places or 'logs'}: no log has samples")
    if empty:
        warnings.warn(f"left out, as they have no samples: {places}", stacklevel=3)
    for several in attempts.values():
        if not any(one.samples for one in several):
            continue
        *earlier, last = sorted(several, key=lambda log: log.eval.created)
        # What failed was asked again, unless a rule had settled it by then.
        worked = [one for log in earlier for one in log.samples or [] if one.error is None]
        samples = {(one.id, one.epoch): one for one in [*worked, *(last.samples or [])]}
        yield last.model_copy(update={"samples": list(samples.values())})


def _each(logs: Log | Iterable[Log]) -> Iterator[Log]:
    several = [logs] if isinstance(logs, EvalLog | str | os.PathLike) else logs
    for log in several:
        if isinstance(log, EvalLog) or not os.path.isdir(log):
            yield log
            continue
        found = list_eval_logs(os.fspath(log), descending=False)
        if not found:
            raise InputError(f"{os.fspath(log)}: no logs of Inspect in this folder")
        yield from (one.name for one in found)


def _read(log: Log, whole: bool = False) -> EvalLog:
    if isinstance(log, EvalLog):
        return log.model_copy(deep=True) if whole else log
    name = os.fspath(log)
    try:
        return read_eval_log(name, exclude_fields=None if whole else _NOT_READ)
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"{name}: no log of Inspect: {why}") from None


def _place(log: EvalLog) -> str:
    return str(log.location or log.eval.task)


def _ours(log: EvalLog) -> dict[str, Any]:
    """Return what `write_inspect_labels` has written into a log, by the name of the score."""
    return dict(log.metadata.get("btdagg") or {})


def _scorer_of(log: EvalLog, scorer: str | None) -> str:
    """Return the name of the scores that are the votes."""
    names = dict.fromkeys(name for sample in log.samples or [] for name in sample.scores or {})
    if not names:  # all samples failed
        names = dict.fromkeys(one.name.rpartition("/")[2] for one in log.eval.scorers or [])
    found = [name for name in names if name not in _ours(log)]
    place = _place(log)
    if scorer is None and len(found) != 1:
        raise InputError(
            f"{place}: scores of {listing(found) or 'no scorer'}, expected one, or scorer="
        )
    if scorer is not None and scorer not in names:
        raise InputError(f"{place}: no scores of {scorer!r}; found {listing(names) or 'none'}")
    return scorer or found[0]


def _judge_of(log: EvalLog, scorer: str) -> str:
    """Return the judge that most scores of a log tell, or the evaluated model if none does."""
    scores = [(sample.scores or {}).get(scorer) for sample in log.samples or []]
    told = Counter(
        one.metadata["judge"] for one in scores if one and "judge" in (one.metadata or {})
    )
    return str(told.most_common(1)[0][0]) if told else log.eval.model


def _check_evaluated(log: EvalLog, judge: str, known: set[tuple[str, str]]) -> None:
    """Refuse runs of a task on responses of several models, unless those were the judges.

    `known` has the models that runs so far evaluated, each with the judge; it is added to.
    """
    known.add((log.eval.model, judge))
    models = sorted({model for model, _ in known})
    if len(models) > 1 and any(model != by for model, by in known):
        raise InputError(
            f"{_place(log)}: runs of the task {log.eval.task!r} evaluate {listing(models)}, whose "
            "responses differ; want logs of one of them"
        )


def _votes_of_sample(
    sample: EvalSample, scorer: str, words: Mapping[str, int | None]
) -> list[ScoreVote]:
    """Return the votes of an epoch of a sample; none where it has no score that counts."""
    score = (sample.scores or {}).get(scorer)
    if score is None or sample.invalidation is not None:
        return []
    return votes_of(score, words, f"sample {sample.id!r}, epoch {sample.epoch}, {scorer}")


def _why(sample: EvalSample) -> str:
    if sample.invalidation is not None:
        return "invalidated"
    return "unscored" if sample.error is None else "error"


def _metadata(sample: EvalSample, columns: Mapping[str, str]) -> dict[str, Any]:
    return {column: sample.metadata.get(key) for column, key in columns.items()}


def _columns_of(rows: list[dict[str, Any]], extra: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return rows as columns: ids of one type, and no column of orders where none is known."""
    found = {name: [row[name] for row in rows] for name in rows[0]}
    for name, key in extra.items():
        if all(value is None for value in found[name]):
            raise InputError(f"columns[{name!r}] is {key!r}, which no sample's metadata has")
    if not all(isinstance(item, int) for item in found["item"]):
        found["item"] = [str(item) for item in found["item"]]
    if "order" in found and all(order is None for order in found["order"]):
        del found["order"]
    return found
