"""Files of LMSYS: judgments of MT-Bench (FastChat) and Arena-Hard, and votes of people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import HUMAN, votes_of_scores
from btdagg.judge.answers import AnswerFormat, parse_verdict
from btdagg.votes import schema
from btdagg.votes.scale import PAIRS
from btdagg.votes.schema import ITEM_NAMES, checked, parse
from btdagg.votes.table import Table, as_text, refuse
from btdagg.votes.verdicts import as_words, verdicts_on
from btdagg.votes.words import USUAL_WORDS

# MT-Bench

_GAME_WINNERS = {"model_1": 1, "model_2": -1, "tie": 0, "error": None}
_NO_ANSWER = "$ERROR$"  # what FastChat keeps in place of an answer
_TAGS = AnswerFormat(tie="C")


def _has_games(content: Content) -> bool:
    return {"question_id", "model_1", "model_2", "g1_winner"} <= content.columns


def _has_scores(content: Content) -> bool:
    return {"question_id", "model", "judge", "score", "judgment"} <= content.columns


def _read_games(content: Content, _: ImportOptions) -> tuple[pl.DataFrame, None]:
    rows = [row for judged in content.objects() for row in _games(content, judged)]
    return pl.DataFrame(rows, infer_schema_length=None), None


def _read_scores(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read scores of answers, and compare every two models unless they are grades."""
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
    return scores if options.grades else votes_of_scores(Table(scores, content.name)), None


def _games(content: Content, judged: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pair = {
        **_about(content, judged),
        "system_a": content.name_in(judged, "model_1"),
        "system_b": content.name_in(judged, "model_2"),
    }
    is_other = pair["system_a"] != pair["system_b"]
    content.expect(is_other, "model_2", judged["model_2"], "a model other than model_1")
    if "m1_score" in judged:  # answers were scored alone: one comparison, not two
        first, second = (content.number_in(judged, key) for key in ("m1_score", "m2_score"))
        if first is None or second is None or min(first, second) < 0:
            yield pair | {"vote": None}
        else:
            yield pair | {"vote": _GAME_WINNERS[judged["g1_winner"]], "margin": abs(first - second)}
        return
    for order, game in (("AB", "g1"), ("BA", "g2")):
        winner, text = judged[f"{game}_winner"], judged.get(f"{game}_judgment")
        is_known = winner in list(_GAME_WINNERS)
        content.expect(is_known, f"{game}_winner", winner, "model_1, model_2, tie or error")
        vote, status = _GAME_WINNERS[winner], None
        if vote is None:
            vote = parse_verdict(text, _TAGS, order=order).vote
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


# Arena-Hard

_SCORE = re.compile(r"\[*\s*([AB])\s*(>>|>|=|<|<<)\s*([AB])\s*\]*")


def _has_arena_games(content: Content) -> bool:
    columns = content.columns
    return {"model", "judge", "games"} <= columns and bool(columns & {"uid", "question_id"})


def _read_arena_hard(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read two votes of each question: the baseline is shown first, then the model."""
    rows: list[dict[str, Any]] = []
    unnamed = False
    for row in content.objects():
        model = content.name_in(row, "model")
        question = content.name_in(row, "uid" if "uid" in row else "question_id")
        are_two = isinstance(row["games"], list) and len(row["games"]) == 2
        content.expect(are_two, "games", row["games"], "a list of two")
        baseline = row.get("baseline") or options.constants.get("baseline")
        unnamed = unnamed or not baseline
        for order, game in zip(("AB", "BA"), row["games"], strict=True):
            vote, margin = _arena_vote(game)
            rows.append(
                {
                    "group": question,
                    "system_a": str(baseline or "baseline"),
                    "system_b": model,
                    "vote": vote if vote is None or order == "AB" else -vote,
                    "margin": margin,
                    "status": "failed" if game is None else "unparsed",
                    "order": order,
                    "judge": row.get("judge"),
                    "task": row.get("category"),
                }
            )
    remark = "the files do not name the baseline; set constants.baseline" if unnamed else None
    return pl.DataFrame(rows, infer_schema_length=None), remark


def _arena_vote(game: Any) -> tuple[int | None, float | None]:
    score = _SCORE.fullmatch(str((game or {}).get("score")).strip())
    if score is None or score[1] == score[3]:
        return None, None
    lead = (score[2].count(">") - score[2].count("<")) * (1 if score[1] == "A" else -1)
    return (lead > 0) - (lead < 0), float(abs(lead))


# People

_WINNERS = ("winner_model_a", "winner_model_b", "winner_tie")
_WORDS = as_words(
    {
        word: USUAL_WORDS[word]
        for word in (
            *("model_a", "model_b"),
            *("tie (bothbad)", "both_bad", "bothbad", "tie (inconsistent)"),
        )
    }
)
_VOTE = "\0vote"  # no column of a source is called that
_ITEMS = ("question_id", *ITEM_NAMES)
# Names under which LMSYS publishes people; other judges are models.
_PEOPLE = r"^(arena_user_.+|(arena_user|author|expert|human|user)(_\d+)?)$"


def _has_pairs(content: Content) -> bool:
    columns = content.columns
    return {"model_a", "model_b"} <= columns and ("winner" in columns or set(_WINNERS) <= columns)


def _read_pairs(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    table = content.table()
    if "winner" in table.columns:
        meanings = {**_WORDS, **as_words(options.words)}
        by_name = verdicts_on(PAIRS, meanings, systems=("model_a", "model_b"))
        (vote,) = checked(table, {"winner": by_name})
        table = table.with_columns([vote.alias(_VOTE)])
    else:
        table = _of_flags(table)
    question = next((name for name in _ITEMS if name in table.columns), "question_id")
    names = {"group": question, "system_a": "model_a", "system_b": "model_b"}
    names |= {name: name for name in ("judge", "turn", "language") if name in table.columns}
    columns = [as_text(table, column).alias(name) for name, column in names.items()]
    votes = Table(table.rows.select("\0row", *columns, pl.col(_VOTE).alias("vote")), table.source)
    kinds = dict.fromkeys(("group", "system_a", "system_b"), schema.groups)
    frame = parse(votes, kinds).frame.with_columns(order=pl.lit("AB"))
    if "judge" not in frame:
        return frame.with_columns(rater=pl.lit(HUMAN)), None
    if frame.select(pl.col("judge").str.contains(_PEOPLE).all()).item():
        frame = frame.with_columns(rater=pl.col("judge").fill_null(HUMAN)).drop("judge")
    return frame, None


def _of_flags(table: Table) -> Table:
    table = parse(table, dict.fromkeys(_WINNERS, schema.whole_numbers))
    flags = [pl.col(name) for name in _WINNERS]
    refuse(
        table,
        pl.sum_horizontal(flags) != 1,
        "winner_tie",
        "a 1 in exactly one of the three columns",
    )
    return table.with_columns([(flags[0] - flags[1]).cast(pl.Int8).alias(_VOTE)])


FORMATS = (
    Format("arena-hard", _has_arena_games, _read_arena_hard),
    Format("fastchat", _has_games, _read_games),
    Format("fastchat-scores", _has_scores, _read_scores, ("grades",)),
    Format("lmsys", _has_pairs, _read_pairs, ("words",)),
)
