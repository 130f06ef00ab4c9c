"""Scores of Inspect as votes, and votes as the score that a model or a rule gives them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.files import digest_of, read_whole
from btdagg.model.davidson import DavidsonModel
from btdagg.online.rule import RULE_FILE, StoppingRule
from btdagg.votes.schema import VOTE_WORDS

with needs("inspect", "btdagg.integrations.inspect"):
    from inspect_ai.scorer import NOANSWER, Score

if TYPE_CHECKING:
    import os

By: TypeAlias = DavidsonModel | StoppingRule
Words: TypeAlias = Mapping[str, int | None]

ORDERS = ("AB", "BA")
ANSWERS = "answers"  # what `pairwise` keeps in the metadata of a score: by order, a status
NAMES = {-1: "B", 0: "tie", 1: "A"}
_SIDES = ("minus", "tie", "plus")
_MISSING = {NOANSWER.lower(): None, "": None}


class ScoreVote(NamedTuple):
    """A vote of a score.

    Attributes
    ----------
    vote : -1, 0, 1 or None
        None where it is missing.
    order : "AB", "BA" or None
        None where the score does not tell.
    status : str
        ``ok``, or why it is missing.
    """

    vote: int | None
    order: str | None
    status: str


class Tallied(NamedTuple):
    """Votes of an item: how many for B, ties, for A, and how many are missing."""

    minus: int
    tie: int
    plus: int
    missing: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """The votes that are not missing, in label order."""
        return self.minus, self.tie, self.plus

    @classmethod
    def of(cls, votes: Iterable[ScoreVote]) -> Tallied:
        """Count votes."""
        found = [vote.vote for vote in votes]
        return cls(*(found.count(kind) for kind in (-1, 0, 1, None)))

    @classmethod
    def sum(cls, several: Iterable[Tallied]) -> Tallied:
        """Add up the votes of epochs."""
        return cls(*(sum(kind) for kind in zip((0, 0, 0, 0), *several, strict=True)))


def as_words(words: Words | None) -> dict[str, int | None]:
    """Return what values mean, by word in lower case: those of btdagg's tables, and `words`.

    Raises
    ------
    InputError
        If a word means anything but -1, 0, 1 or None.
    """
    given = {str(word).strip().lower(): vote for word, vote in (words or {}).items()}
    for word, vote in given.items():
        if vote is not None and vote not in NAMES:
            raise InputError(
                f"words[{word!r}] is {vote!r}, expected -1, 0, 1, or None where missing"
            )
    return {**VOTE_WORDS, **_MISSING, **given}


def vote_of_value(value: object, words: Mapping[str, int | None], where: str) -> int | None:
    """Return the vote that a value means; None where it is missing, as NaN is.

    Raises
    ------
    InputError
        If it means none; `where` is what the message begins with.
    """
    if value is None:
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        if word in words:
            return words[word]
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            number = math.inf
        if math.isnan(number):
            return None
        if number in NAMES:
            return int(number)
    known = "-1, 0, 1 or A, tie, B"
    raise InputError(
        f"{where}: {value!r}, expected {known}; words={{...}} says what other words mean"
    )


def votes_of(
    score: Score, words: Mapping[str, int | None], where: str = "score"
) -> list[ScoreVote]:
    """Return the votes of a score: one, or one for each order.

    Raises
    ------
    InputError
        If its value is neither a vote nor votes by order, such as ``{"AB": 1, "BA": 0}``.
    """
    value, answers = score.value, (score.metadata or {}).get(ANSWERS) or {}
    if isinstance(value, Mapping):
        if not value or not set(value) <= set(ORDERS):
            raise InputError(f"{where}: {dict(value)!r}, expected one vote, or votes by AB and BA")
        by_order: dict[str | None, object] = {order: value[order] for order in value}
    else:
        by_order = dict.fromkeys(answers or [None], value)
    found = []
    for order, one in by_order.items():
        vote = vote_of_value(one, words, where)
        why = answers.get(order, {}).get("status") or score.reason
        why = why or ("no answer" if isinstance(one, str) else "unscored")
        found.append(ScoreVote(vote, order, why if vote is None else "ok"))
    return found


def as_decider(model: str | os.PathLike[str] | By) -> By:
    """Return a model or a rule, from its file unless it is one.

    Raises
    ------
    InputError
        If it is neither, or the file holds neither.
    """
    if isinstance(model, DavidsonModel | StoppingRule):
        return model
    if not isinstance(model, str | Path):
        raise InputError(f"model is {model!r}, expected a DavidsonModel, a StoppingRule or a file")
    content = read_whole(model)
    is_rule = f'"{RULE_FILE.name}"'.encode() in content[:200]
    kind = StoppingRule if is_rule else DavidsonModel
    return kind.from_json(content, source=str(model))


def label_score(by: By | None, tallied: Tallied) -> Score:
    """Return the score of an item by its votes.

    Parameters
    ----------
    by : DavidsonModel, StoppingRule or None
        What decides; None is majority vote. A rule decides up to its `n` votes, and from there on
        its model does.
    tallied : Tallied

    Returns
    -------
    Score
        The label -1, 0, 1; in words as `answer`. Its metadata has `counts`, how many votes are
        `missing`, and `decided_by`; of a model `probabilities`; of a rule `settled` and, if it
        knows it, `change_risk`. Without a vote it is unscored.
    """
    counts, missing = tallied.counts, tallied.missing
    told: dict[str, Any] = {
        "counts": dict(zip(_SIDES, counts, strict=True)),
        "missing": missing,
        "decided_by": "majority vote" if by is None else digest_of(by),
    }
    if not sum(counts):
        why = f"none of {missing} votes can be read"
        return Score.unscored(reason="scoring_failed", explanation=why, metadata=told)
    if by is None:
        from btdagg.methods.majority import majority_vote

        label = int(majority_vote([counts])[0])
    else:
        model = by.model if isinstance(by, StoppingRule) else by
        label = model.decide_one(*counts)
        if isinstance(by, StoppingRule):
            told["settled"] = sum(counts) >= by.n or by.stops_one(*counts)
            if sum(counts) <= by.n:
                label = by.decide_one(*counts)
                if told["settled"] and by.votes is not None:
                    told["change_risk"] = float(by.change_risk([counts])[0])
        shares = model.predict_proba([counts])[0].tolist()
        told["probabilities"] = dict(zip(_SIDES, shares, strict=True))
    minus, tie, plus = counts
    said = f"votes: {plus} for A, {tie} ties, {minus} for B, {missing} missing"
    return Score(value=label, answer=NAMES[label], explanation=said, metadata=told)


def interval(
    counts: Sequence[Sequence[int]],
    labels: Sequence[int | None],
    groups: Sequence[str] | None,
    quantity: str,
    level: float,
) -> dict[str, float]:
    """Return an estimate over all items and the ends of its interval, under their names in a log.

    They are NaN with fewer than two labels, or groups of labels.
    """
    import numpy as np

    from btdagg.estimates.prediction_powered import estimate

    gold = np.array(labels, dtype=float)
    labelled = np.flatnonzero(~np.isnan(gold))
    units = set(labelled.tolist()) if groups is None else {groups[int(k)] for k in labelled}
    found = [math.nan] * 3
    if len(units) >= 2:
        mean = estimate(counts, gold, groups=groups, level=level).estimates[quantity]
        found = [float(mean.value), float(mean.low), float(mean.high)]
    return dict(zip((quantity, "low", "high"), found, strict=True))
