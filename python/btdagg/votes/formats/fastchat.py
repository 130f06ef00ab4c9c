"""Judgments of FastChat's MT-Bench: two games of a pair, or scores of single answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.judge.answers import AnswerFormat
from btdagg.votes.formats.content import Content, name_of, number_of, values_of
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.formats.scores import votes_of_scores
from btdagg.votes.formats.texts import vote_in
from btdagg.votes.table import Table

_WINNERS = {"model_1": 1, "model_2": -1, "tie": 0}
_NO_ANSWER = "$ERROR$"  # what FastChat keeps in place of an answer
_ABOUT = {"group": pl.String, "turn": pl.String, "judge": pl.String, "template": pl.String}
_GAME = {
    **_ABOUT,
    "system_a": pl.String,
    "system_b": pl.String,
    "vote": pl.Int8,
    "status": pl.String,
    "order": pl.String,
    "margin": pl.Float64,
}
_SCORE = {**_ABOUT, "system": pl.String, "score": pl.Float64, "status": pl.String}
_TAGS = AnswerFormat(tie="C")


def is_fastchat(content: Content) -> bool:
    """Whether games have winners."""
    return {"question_id", "model_1", "model_2", "g1_winner"} <= content.columns


def is_fastchat_scores(content: Content) -> bool:
    """Whether single answers have scores."""
    return {"question_id", "model", "judge", "score", "judgment"} <= content.columns


def read_fastchat(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read two votes of each pair, one in each order; one where scores were compared."""
    rows = [row for number, each in content.objects() for row in _games(content, number, each)]
    return pl.DataFrame(rows, schema=_GAME, orient="row"), None


def read_fastchat_scores(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read scores of answers, and compare every two models."""
    rows = []
    for number, each in content.objects():
        question = name_of(content, number, each, "question_id")
        model = name_of(content, number, each, "model")
        score = number_of(content, number, each, "score")
        status = "failed" if _NO_ANSWER in str(each.get("judgment")) else "unparsed"
        known = None if score is None or score < 0 else score
        rows.append((question, *_about(each), model, known, status))
    scores = pl.DataFrame(rows, schema=_SCORE, orient="row")
    return votes_of_scores(Table(scores, content.name)), None


def _games(content: Content, number: int, each: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `_GAME` for each comparison."""
    question, first, second = (
        name_of(content, number, each, key) for key in ("question_id", "model_1", "model_2")
    )
    if first == second:
        raise InputError(
            f"{content.name}, row {number}: model_1 and model_2 are both {shown(first)}, "
            "expected two"
        )
    winners = values_of(content, number, each, "g1_winner", "g2_winner")
    pair = (question, *_about(each), first, second)
    if "m1_score" in each:  # each answer was scored alone: one comparison, not two
        one, other = (number_of(content, number, each, key) for key in ("m1_score", "m2_score"))
        if one is None or other is None or min(one, other) < 0:
            yield *pair, None, None, None, None
        else:
            yield *pair, _WINNERS[winners[0]], None, None, abs(one - other)
        return
    for order, winner, key in zip(("AB", "BA"), winners, ("g1", "g2"), strict=True):
        vote, status = _WINNERS.get(str(winner)), None
        if vote is None:
            if winner != "error":
                raise InputError(
                    f"{content.name}, row {number}: {key}_winner is {shown(winner)}, expected "
                    "model_1, model_2, tie or error"
                )
            text = each.get(f"{key}_judgment")
            if not isinstance(text, str | None):
                raise InputError(
                    f"{content.name}, row {number}: {key}_judgment is {shown(text)}, expected a "
                    "text"
                )
            vote = vote_in(text, _TAGS, order)
            status = "failed" if _NO_ANSWER in str(text) else "unparsed"
        yield *pair, vote, status, order, None


def _about(each: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Return turn, judge and template."""
    judge = each.get("judge")
    model, template = (
        (judge[0], judge[1]) if isinstance(judge, list) and len(judge) > 1 else (judge, None)
    )
    turn = each.get("turn")
    return None if turn is None else str(turn), model, template
