"""The one frame that every format is read to, and what is made of it.

A format gives rows with `vote` from A's point of view, `status` (``ok``, or why there is no vote)
and either `item`, or `group`, `system_a` and `system_b`, of which the id of the pair is made. All
other columns are those of docs/data.md, as far as the format has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from btdagg.aggregators.majority import majority_vote
from btdagg.tables.votes import read_votes

SEPARATOR = "|"
# Columns of what formats give: which of several answers to a request, and what the file is called.
CHOICE, FILE = "\0choice", "\0file"
_TEXTS = (
    *("judge", "rater", "order", "template", "task", "group", "system_a", "system_b", "status"),
    "turn",
)
_FIRST = (
    *("item", "vote", "judge", "rater", "order", "sample", "template", "temperature", "task"),
    *("group", "system_a", "system_b", "confidence", "margin"),
)
_LAST = ("status", "format")
_WAY = ("judge", "order", "template", "temperature", "task")


def as_one(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Join what was read of several files, and finish it: statuses, sides and ids."""
    texts: tuple[str, ...] = _TEXTS
    if any("item" in part and not part["item"].dtype.is_integer() for part in parts):
        texts = ("item", *_TEXTS)
    frame = pl.concat(
        [
            part.with_columns(pl.col(c).cast(pl.String) for c in texts if c in part)
            for part in parts
        ],
        how="diagonal_relaxed",
    )
    if CHOICE in frame:  # of all files, or a sample of one would be that of another
        sample = pl.col("sample").cast(pl.Int64) * (pl.col(CHOICE).max() + 1) + pl.col(CHOICE)
        numbered = pl.when(pl.col(CHOICE).is_null()).then("sample").otherwise(sample)
        frame = frame.with_columns(sample=numbered).drop(CHOICE)
    if "status" not in frame:
        frame = frame.with_columns(status=pl.lit(None, pl.String))
    known = pl.when(pl.col("vote").is_not_null()).then(pl.lit("ok"))
    said = pl.when(pl.col("status") != "ok").then("status").otherwise(pl.lit("unparsed"))
    frame = frame.with_columns(vote=pl.col("vote").cast(pl.Int8), status=known.otherwise(said))
    if "item" not in frame:
        frame = _with_items(_turned(frame))
    elif frame["item"].null_count():
        made = _with_items(_turned(frame.filter(pl.col("item").is_null()).drop("item")))
        there = frame.filter(pl.col("item").is_not_null())
        frame = pl.concat([there, made], how="diagonal_relaxed")
    return frame


def _turned(frame: pl.DataFrame) -> pl.DataFrame:
    """Let A be the first of two systems in alphabetical order, whatever the file calls A."""
    swap = pl.col("system_a") > pl.col("system_b")
    columns = {
        "system_a": pl.when(swap).then("system_b").otherwise("system_a"),
        "system_b": pl.when(swap).then("system_a").otherwise("system_b"),
        "vote": pl.when(swap).then(-pl.col("vote")).otherwise("vote"),
    }
    if "order" in frame:
        turned = pl.col("order").replace({"AB": "BA", "BA": "AB"})
        columns["order"] = pl.when(swap).then(turned).otherwise("order")
    return frame.with_columns(**columns)


def _with_items(frame: pl.DataFrame) -> pl.DataFrame:
    parts = [name for name in ("group", "turn") if name in frame and frame[name].null_count() == 0]
    item = pl.concat_str([*parts, "system_a", "system_b"], separator=SEPARATOR)
    return frame.with_columns(item=item)


def as_votes(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of judges, as `read_votes` takes them.

    Samples that a format does not number are numbered as they come, after those that it does.
    """
    known = "sample" in frame
    if not known or frame["sample"].null_count():
        present = [name for name in _WAY if name in frame]
        varying = frame.select(pl.col(present).n_unique() > 1).row(0) if present else ()
        key = ["item", *(name for name, varies in zip(present, varying, strict=True) if varies)]
        number = pl.int_range(pl.len()).over(key)
        if known:
            last = pl.col("sample").max().over(key).fill_null(-1)
            place = pl.col("sample").is_null().cum_sum().over(key)
            number = pl.coalesce("sample", last + place)
        frame = frame.with_columns(sample=number.cast(pl.Int64))
    return _ordered(frame, _FIRST)


def as_ratings(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of raters, as `read_ratings` takes them."""
    if "rater" not in frame:
        frame = frame.rename({"judge": "rater"})
    return _ordered(frame.drop("sample", strict=False), ("item", "rater", "vote", *_FIRST[2:]))


def _ordered(frame: pl.DataFrame, first: Sequence[str]) -> pl.DataFrame:
    """Return the columns that have a value: first those that each table has, last the format."""
    known = dict.fromkeys((*first, *frame.columns))
    named = [name for name in known if name in frame and name not in (*_LAST, "turn")]
    empty = {name for name in named if frame[name].null_count() == frame.height} - {"vote"}
    return frame.select(*(name for name in named if name not in empty), *_LAST)


def as_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one label for each item: what most say, a tie where the most votes are shared."""
    votes = read_votes(frame.select("item", "vote"))
    ids, counts = votes.counts()
    found = pl.DataFrame(
        {
            "item": pl.Series(ids.tolist(), dtype=frame["item"].dtype),
            "label": majority_vote(counts),
            "n_votes": counts.sum(axis=1),
        }
    )
    found = found.with_columns(label=pl.when(pl.col("n_votes") > 0).then("label"))
    kept = [c for c in ("task", "group", "system_a", "system_b", "format") if c in frame]
    told = frame.unique("item", keep="first", maintain_order=True).select("item", *kept)
    return found.join(told, on="item", how="left", maintain_order="left")
