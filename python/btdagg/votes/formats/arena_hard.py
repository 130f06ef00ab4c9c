"""Judgments of Arena-Hard: two games of a model and the baseline, with scores such as ``A>>B``."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.votes.formats.content import Content, name_of, values_of
from btdagg.votes.formats.options import ImportOptions

_SCORE = re.compile(r"\[*\s*([AB])\s*(>>|>|=|<|<<)\s*([AB])\s*\]*")
_MARGINS = {">>": 2.0, "<<": 2.0, ">": 1.0, "<": 1.0, "=": 0.0}
_BASELINE = "baseline"


def is_arena_hard(content: Content) -> bool:
    """Whether a model has games."""
    return {"model", "judge", "games"} <= content.columns and bool(
        content.columns & {"uid", "question_id"}
    )


def read_arena_hard(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read two votes of each question: the baseline is shown first, then the model.

    The margin is 2 for ``>>``, 1 for ``>`` and 0 for a tie.
    """
    rows: list[dict[str, Any]] = []
    unnamed = False
    for number, each in content.objects():
        model = name_of(content, number, each, "model")
        question = name_of(content, number, each, "uid" if "uid" in each else "question_id")
        (games,) = values_of(content, number, each, "games")
        if not isinstance(games, list) or len(games) != 2:
            raise InputError(
                f"{content.name}, row {number}: games is {shown(games)}, expected a list of two"
            )
        baseline = each.get("baseline") or options.constants.get("baseline")
        unnamed = unnamed or not baseline
        for order, game in zip(("AB", "BA"), games, strict=True):
            vote, margin = _read(game)
            rows.append(
                {
                    "group": question,
                    "system_a": str(baseline or _BASELINE),
                    "system_b": model,
                    "vote": vote if vote is None or order == "AB" else -vote,
                    "margin": margin,
                    "status": "failed" if game is None else "unparsed",
                    "order": order,
                    "judge": each.get("judge"),
                    "task": each.get("category"),
                }
            )
    said = "the files do not name the baseline: --set baseline=NAME does" if unnamed else None
    return pl.DataFrame(rows, infer_schema_length=None), said


def _read(game: Any) -> tuple[int | None, float | None]:
    """Return the vote, from the point of view of what was shown as A, and the margin."""
    found = _SCORE.fullmatch(str((game or {}).get("score")).strip())
    if found is None or found[1] == found[3]:
        return None, None
    better = {">": 1, "=": 0, "<": -1}[found[2][0]]
    return (better if found[1] == "A" else -better), _MARGINS[found[2]]
