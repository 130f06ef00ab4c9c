"""Judgments of FastChat's MT-Bench: two games of a pair, or scores of single answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg.judge.answers import AnswerFormat, parse_verdict, vote_of
from btdagg.votes.formats.content import Content, Format, ImportOptions
from btdagg.votes.formats.rows import votes_of_scores
from btdagg.votes.table import Table

_WINNERS = {"model_1": 1, "model_2": -1, "tie": 0, "error": None}
_NO_ANSWER = "$ERROR$"  # what FastChat keeps in place of an answer
_TAGS = AnswerFormat(tie="C")


def _has_games(content: Content) -> bool:
    return {"question_id", "model_1", "model_2", "g1_winner"} <= content.columns


def _has_scores(content: Content) -> bool:
    return {"question_id", "model", "judge", "score", "judgment"} <= content.columns


def _read_games(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read two votes of each pair, one in each order; one where scores were compared."""
    rows = [row for judged in content.objects() for row in _games(content, judged)]
    return pl.DataFrame(rows, infer_schema_length=None), None


def _read_scores(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read scores of answers, and compare every two models."""
    rows = []
    for judged in content.objects():
        score = content.number_in(judged, "score")
        failed = _NO_ANSWER in str(judged.get("judgment"))
        rows.append(
            {
                **_about(content, judged),
                "system": content.name_in(judged, "model"),
                "score": None if score is None or score < 0 else score,
                "status": "failed" if failed else "unparsed",
            }
        )
    scores = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"score": pl.Float64})
    return votes_of_scores(Table(scores, content.name)), None


def _games(content: Content, judged: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pair = {
        **_about(content, judged),
        "system_a": content.name_in(judged, "model_1"),
        "system_b": content.name_in(judged, "model_2"),
    }
    if pair["system_a"] == pair["system_b"]:
        raise content.refusal("model_2", judged["model_2"], "another one than model_1")
    if "m1_score" in judged:  # answers were scored alone: one comparison, not two
        first, second = (content.number_in(judged, key) for key in ("m1_score", "m2_score"))
        if first is None or second is None or min(first, second) < 0:
            yield pair | {"vote": None}
        else:
            yield pair | {"vote": _WINNERS[judged["g1_winner"]], "margin": abs(first - second)}
        return
    for order, game in (("AB", "g1"), ("BA", "g2")):
        winner, text = judged[f"{game}_winner"], judged.get(f"{game}_judgment")
        if winner not in list(_WINNERS):
            raise content.refusal(f"{game}_winner", winner, "model_1, model_2, tie or error")
        vote, status = _WINNERS[winner], None
        if vote is None:
            vote = vote_of(parse_verdict(text, _TAGS), order)
            status = "failed" if _NO_ANSWER in str(text) else "unparsed"
        yield pair | {"vote": vote, "status": status, "order": order}


def _about(content: Content, judged: Mapping[str, Any]) -> dict[str, Any]:
    judge, turn = judged.get("judge"), judged.get("turn")
    model, template = judge[:2] if isinstance(judge, list) else (judge, None)
    return {
        "group": content.name_in(judged, "question_id"),
        "turn": None if turn is None else str(turn),
        "judge": model,
        "template": template,
    }


FORMATS = (
    Format("fastchat", _has_games, _read_games),
    Format("fastchat-scores", _has_scores, _read_scores),
)
