"""The one frame that every format is read to, and what is made of it.

A format gives rows with `vote` from A's point of view, `status` (``ok``, or why there is no vote)
and either `item`, or `group`, `system_a` and `system_b`, of which the id of the pair is made. All
other columns are those of docs/data.md, as far as the format has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.methods.majority import majority_vote
from btdagg.votes.schema import VOTES
from btdagg.votes.votes import read_votes

SEPARATOR = "|"
# Columns of what formats give: which of several answers to a request, and what the file is called.
CHOICE, FILE = "\0choice", "\0file"
HUMAN = "human"  # a person without a name
_TEXTS = (
    *("judge", "rater", "order", "template", "task", "group", "system_a", "system_b", "status"),
    "turn",
)
_FIRST = (
    *("item", "vote", "judge", "rater", "order", "sample", "template", "temperature", "task"),
    *("group", "system_a", "system_b", "confidence", "margin"),
)
_LAST = ("status", "format")
_OF_VOTES = (
    *("vote", "judge", "rater", "order", "sample", "template", "temperature", "confidence"),
    *("margin", "status"),
)
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
    judges = set(frame["judge"].drop_nulls()) if "judge" in frame else set()
    if len(judges) == 1:  # a request that failed does not say which model would have answered
        judge = pl.when(pl.col("status") == "failed").then(pl.lit(*judges))
        frame = frame.with_columns(judge=pl.coalesce("judge", judge))
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
    parts = [name for name in ("group", "turn") if name in frame]
    # A row without a turn has an id without it, whatever the other rows have.
    item = pl.concat_str([*parts, "system_a", "system_b"], separator=SEPARATOR, ignore_nulls=True)
    return frame.with_columns(item=item)


def as_votes(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return rows of judges, as `read_votes` takes them, and how many others repeated a sample.

    Samples that a format does not number are numbered as they come, after those that it does.

    Raises
    ------
    InputError
        If a sample has two different votes.
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
    once = _without_repeats(frame) if known else frame
    return _ordered(once, _FIRST), frame.height - once.height


def _without_repeats(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out repeated samples; a missing vote stands back behind one that is not."""
    key = [name for name in VOTES.key if name in frame]
    if frame.select(pl.struct(key).is_unique().all()).item():
        return frame
    earlier = {"\0first": pl.col("vote").first(), "\0in": pl.col(FILE).first()}
    other = frame.drop_nulls("vote").with_columns(**{c: e.over(key) for c, e in earlier.items()})
    other = other.filter(pl.col("vote") != pl.col("\0first"))
    if other.height:
        row = other.row(0, named=True)
        its = ", ".join(f"{name} {shown(row[name])}" for name in key if row[name] is not None)
        first, file = row["\0first"], row["\0in"]
        raise InputError(
            f"{row[FILE]}: {its} has vote {row['vote']}, and {first} in {file}; want one vote for "
            "a sample"
        )
    stands_back = pl.col("vote").is_null() & pl.col("vote").is_not_null().any().over(key)
    return frame.filter(~stands_back).unique(key, keep="first", maintain_order=True)


def as_ratings(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of raters, as `read_ratings` takes them.

    People who are not named are numbered, where several voted on an item.

    Raises
    ------
    InputError
        If a rater has two votes on an item.
    """
    if "rater" not in frame:
        frame = frame.rename({"judge": "rater"})
    unnamed = pl.col("rater") == HUMAN
    number = unnamed.cum_sum().over("item")
    if (frame.select(number.filter(unnamed).max()).item() or 0) > 1:
        numbered = pl.concat_str(pl.lit(f"{HUMAN}_"), number)
        frame = frame.with_columns(rater=pl.when(unnamed).then(numbered).otherwise("rater"))
    twice = frame.filter(~pl.struct("item", "rater").is_first_distinct())
    if twice.height:
        row = twice.row(0, named=True)
        raise InputError(
            f"{row[FILE]}: rater {row['rater']!r} has two votes on item {row['item']!r}; --as "
            "labels takes what most say, --as votes every vote"
        )
    return _ordered(frame.drop("sample", strict=False), ("item", "rater", "vote", *_FIRST[2:]))


def _ordered(frame: pl.DataFrame, first: Sequence[str]) -> pl.DataFrame:
    """Return the columns that have a value: first those that each table has, last the format."""
    known = dict.fromkeys((*first, *frame.columns))
    named = [name for name in known if name in frame and name not in (*_LAST, "turn", FILE)]
    empty = {name for name in named if frame[name].null_count() == frame.height} - {"vote"}
    return frame.select(*(name for name in named if name not in empty), *_LAST)


def as_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one label for each item: what most say, a tie where the most votes are shared.

    Columns of the items are kept, those of single votes are not.

    Raises
    ------
    InputError
        If a column that is kept has two values for an item.
    """
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
    ordered = _ordered(frame, ("task", "group", "system_a", "system_b"))
    kept = [name for name in ordered.columns if name not in ("item", "format", *_OF_VOTES)]
    for name in kept:
        values = pl.col(name).drop_nulls()
        several = frame.group_by("item", maintain_order=True).agg(
            values.unique(maintain_order=True)
        )
        several = several.filter(pl.col(name).list.len() > 1)
        if several.height:
            item, (first, second, *_) = several.row(0)
            raise InputError(
                f"item {item!r} has {name} {first!r} and {second!r}, and a label wants one"
            )
    told = frame.group_by("item").agg(pl.col(*kept, "format").drop_nulls().first())
    return found.join(told, on="item", how="left", maintain_order="left")
