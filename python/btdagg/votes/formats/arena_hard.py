"""Judgments of Arena-Hard: two games of a model and the baseline, with scores such as ``A>>B``."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from btdagg.votes.formats.content import Content, Format, ImportOptions

_SCORE = re.compile(r"\[*\s*([AB])\s*(>>|>|=|<|<<)\s*([AB])\s*\]*")
_VOTES = {">>": 1, ">": 1, "=": 0, "<": -1, "<<": -1}
_MARGINS = {">>": 2.0, "<<": 2.0, ">": 1.0, "<": 1.0, "=": 0.0}


def _recognizes(content: Content) -> bool:
    columns = content.columns
    return {"model", "judge", "games"} <= columns and bool(columns & {"uid", "question_id"})


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read two votes of each question: the baseline is shown first, then the model."""
    rows: list[dict[str, Any]] = []
    unnamed = False
    for row in content.objects():
        model = content.name_in(row, "model")
        question = content.name_in(row, "uid" if "uid" in row else "question_id")
        if not isinstance(row["games"], list) or len(row["games"]) != 2:
            raise content.refusal("games", row["games"], "a list of two")
        baseline = row.get("baseline") or options.constants.get("baseline")
        unnamed = unnamed or not baseline
        for order, game in zip(("AB", "BA"), row["games"], strict=True):
            vote, margin = _vote(game)
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
    remark = "the files do not name the baseline; the constant baseline does" if unnamed else None
    return pl.DataFrame(rows, infer_schema_length=None), remark


def _vote(game: Any) -> tuple[int | None, float | None]:
    """Return the vote, from the point of view of what was shown as A, and the margin."""
    score = _SCORE.fullmatch(str((game or {}).get("score")).strip())
    if score is None or score[1] == score[3]:
        return None, None
    vote = _VOTES[score[2]]
    return (vote if score[1] == "A" else -vote), _MARGINS[score[2]]


FORMAT = Format("arena-hard", _recognizes, _read)
