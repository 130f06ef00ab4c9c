"""The one frame that every format is read to, and what is made of it.

A format gives rows with `vote` from A's point of view, `status` (``ok``, or why there is no vote)
and either `item`, or `group`, `system_a` and `system_b`, of which the id of the pair is made. All
other columns are those of docs/data.md, as far as the format has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.judge.answers import AnswerFormat, parse_verdict, vote_of
from btdagg.methods.majority import majority_vote
from btdagg.votes.schema import VOTES
from btdagg.votes.table import Table, refuse_duplicates
from btdagg.votes.votes import read_votes
from btdagg.votes.words import blanks

SEPARATOR = "|"
# Columns of what formats give: which of several answers to a request, and what the file is called.
CHOICE, FILE = "\0choice", "\0file"
HUMAN = "human"  # a person without a name
_TEXTS = (
    *("item", "judge", "rater", "order", "template", "task", "group", "system_a", "system_b"),
    *("status", "turn"),
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
_OF_SCORES = ("group", "turn", "task", "judge", "rater", "template", "temperature")
_TAG = re.compile(r"\[\[([^\[\]\n]{1,20})\]\]")


class JudgeText(NamedTuple):
    """A text of a judge, who of the pair was shown first, and how the text ended."""

    text: str | None
    order: str = "AB"
    finish_reason: str | None = None
    refusal: str | None = None
    failed: bool = False


def votes_of_answers(
    answers: Iterable[JudgeText], expected: AnswerFormat
) -> tuple[pl.DataFrame, str | None]:
    """Read the verdicts of texts by the parser of `btdagg judge`.

    Returns the columns `vote`, `status` and `confidence`, and what would let more be read.
    """
    parse = lru_cache(maxsize=4096)(parse_verdict)
    rows: list[tuple[int | None, str, float | None]] = []
    unknown: Counter[str] = Counter()
    example = None  # an answer without a verdict
    for answer in answers:
        text = answer.text or ""
        # Short texts repeat, long ones do not.
        read = parse if len(text) < 64 else parse_verdict
        verdict = read(
            answer.text, expected, finish_reason=answer.finish_reason, refusal=answer.refusal
        )
        if verdict.status == "unparsed":
            unknown.update(tag.strip() for tag in _TAG.findall(text)[-1:])
            example = example or text
        if answer.failed:
            rows.append((None, "failed", None))
        else:
            rows.append((vote_of(verdict, answer.order), verdict.status, verdict.confidence))
    schema = {"vote": pl.Int8, "status": pl.String, "confidence": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    asked = {word.upper() for word in expected.words}
    for word, n in unknown.most_common():
        if word.upper() not in asked:
            return frame, f"answers that say [[{word}]]: {n}; {blanks([word.lower()])}"
    if example is None or expected.pattern is not None:
        return frame, None
    last = example.strip().rpartition("\n")[2][-80:]
    return frame, f"an unparsed answer ends in {last!r}; answer_pattern says where the verdict is"


def votes_of_scores(table: Table) -> pl.DataFrame:
    """Compare every two systems by their scores for a prompt: the k-th sample of one with the k-th.

    `table` has `group` (the prompt), `system` and `score` (Float64, null where there is none);
    `status` says why a score is missing. `margin` of the votes is the difference of the scores.
    """
    scores = table.frame
    key = [name for name in _OF_SCORES if name in scores]
    if "sample" in scores:
        refuse_duplicates(table, [*key, "system", "sample"])
    else:
        scores = scores.with_columns(sample=pl.int_range(pl.len()).over(*key, "system"))
    key.append("sample")
    if "status" not in scores:
        scores = scores.with_columns(status=pl.lit(None, pl.String))
    scores = scores.with_row_index("place")
    other = scores.select(*key, "place", "system", "score", "status")
    both = scores.join(other, on=key, how="inner", nulls_equal=True, suffix="_b")
    both = both.filter(pl.col("system") < pl.col("system_b")).sort("place", "place_b")
    difference = pl.col("score") - pl.col("score_b")
    votes = both.with_columns(
        vote=difference.sign().cast(pl.Int8),
        margin=difference.abs(),
        status=pl.coalesce(
            pl.when(pl.col("score").is_null()).then("status"),
            pl.when(pl.col("score_b").is_null()).then("status_b"),
        ),
        system_a="system",
    )
    return votes.drop("place", "place_b", "system", "score", "score_b", "status_b")


def as_one(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Join what was read of several files, and finish it: statuses, sides and ids."""
    whole = all(part["item"].dtype.is_integer() for part in parts if "item" in part)
    texts = _TEXTS[1:] if whole else _TEXTS
    columns = [[pl.col(c).cast(pl.String) for c in texts if c in part] for part in parts]
    frame = pl.concat(
        [part.with_columns(own) for part, own in zip(parts, columns, strict=True)],
        how="diagonal_relaxed",
    )
    if CHOICE in frame:  # of all files, or a sample of one would be that of another
        sample = pl.col("sample").cast(pl.Int64) * (pl.col(CHOICE).max() + 1) + pl.col(CHOICE)
        numbered = pl.when(pl.col(CHOICE).is_null()).then("sample").otherwise(sample)
        frame = frame.with_columns(sample=numbered).drop(CHOICE)
    if "status" not in frame:
        frame = frame.with_columns(status=pl.lit(None, pl.String))
    missing = pl.when(pl.col("status") != "ok").then("status").otherwise(pl.lit("unparsed"))
    status = pl.when(pl.col("vote").is_not_null()).then(pl.lit("ok")).otherwise(missing)
    frame = frame.with_columns(vote=pl.col("vote").cast(pl.Int8), status=status)
    judges = set(frame["judge"].drop_nulls()) if "judge" in frame else set()
    if len(judges) == 1:  # a request that failed does not say which model would have answered
        judge = pl.when(pl.col("status") == "failed").then(pl.lit(*judges))
        frame = frame.with_columns(judge=pl.coalesce("judge", judge))
    if "item" not in frame:
        return _paired(frame)
    if frame["item"].null_count():
        made = _paired(frame.filter(pl.col("item").is_null()).drop("item"))
        frame = pl.concat([frame.drop_nulls("item"), made], how="diagonal_relaxed")
    return frame


def _paired(frame: pl.DataFrame) -> pl.DataFrame:
    """Make ids of pairs, and let A be the first of two systems in alphabetical order."""
    swap = pl.col("system_a") > pl.col("system_b")
    columns = {
        "system_a": pl.min_horizontal("system_a", "system_b"),
        "system_b": pl.max_horizontal("system_a", "system_b"),
        "vote": pl.when(swap).then(-pl.col("vote")).otherwise("vote"),
    }
    if "order" in frame:
        turned = pl.col("order").replace({"AB": "BA", "BA": "AB"})
        columns["order"] = pl.when(swap).then(turned).otherwise("order")
    # A row without a turn has an id without it, whatever the other rows have.
    parts = [name for name in ("group", "turn", "system_a", "system_b") if name in frame.columns]
    item = pl.concat_str(parts, separator=SEPARATOR, ignore_nulls=True)
    return frame.with_columns(**columns).with_columns(item=item)


def as_votes(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return rows of judges, as `read_votes` takes them, and how many others repeated a sample.

    Samples that a format does not number are numbered as they come, after those that it does.
    """
    is_numbered = "sample" in frame
    if not is_numbered or frame["sample"].null_count():
        key = ["item", *(name for name in _WAY if name in frame and frame[name].n_unique() > 1)]
        number = pl.int_range(pl.len()).over(key)
        if is_numbered:
            last = pl.col("sample").max().over(key).fill_null(-1)
            place = pl.col("sample").is_null().cum_sum().over(key)
            number = pl.coalesce("sample", last + place)
        frame = frame.with_columns(sample=number.cast(pl.Int64))
    once = _without_repeats(frame) if is_numbered else frame
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
        sample = ", ".join(f"{name} {shown(row[name])}" for name in key if row[name] is not None)
        first, file = row["\0first"], row["\0in"]
        raise InputError(
            f"{row[FILE]}: {sample} has vote {row['vote']}, and {first} in {file}; expected one "
            "vote for a sample"
        )
    stands_back = pl.col("vote").is_null() & pl.col("vote").is_not_null().any().over(key)
    return frame.filter(~stands_back).unique(key, keep="first", maintain_order=True)


def as_ratings(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of raters, one of each for an item, as `read_ratings` takes them.

    People who are not named are numbered, where several voted on an item.
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
            f"{row[FILE]}: rater {row['rater']!r} has two votes on item {row['item']!r}; the kind "
            "labels takes what most say, votes every vote",
            argument="kind",
        )
    return _ordered(frame.drop("sample", strict=False), ("item", "rater", "vote", *_FIRST[2:]))


def as_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one label for each item: what most say, a tie where the most votes are shared.

    Columns of the items are kept, those of single votes are not.
    """
    ids, counts = read_votes(frame.select("item", "vote")).counts()
    labels = pl.DataFrame(
        {
            "item": pl.Series(ids.tolist(), dtype=frame["item"].dtype),
            "label": majority_vote(counts),
            "n_votes": counts.sum(axis=1),
        }
    ).with_columns(label=pl.when(pl.col("n_votes") > 0).then("label"))
    ordered = _ordered(frame, ("task", "group", "system_a", "system_b"))
    kept = [name for name in ordered.columns if name not in ("item", "format", *_OF_VOTES)]
    for name in kept:
        values = pl.col(name).drop_nulls().unique(maintain_order=True)
        by_item = frame.group_by("item", maintain_order=True).agg(values)
        for item, (first, second, *_) in by_item.filter(pl.col(name).list.len() > 1).iter_rows():
            raise InputError(
                f"item {item!r} has {name} {first!r} and {second!r}, and a label has one"
            )
    of_item = frame.group_by("item").agg(pl.col(*kept, "format").drop_nulls().first())
    return labels.join(of_item, on="item", how="left", maintain_order="left")


def _ordered(frame: pl.DataFrame, first: Sequence[str]) -> pl.DataFrame:
    """Return the columns that have a value: first those that each table has, last the format."""
    names = [name for name in dict.fromkeys((*first, *frame.columns)) if name in frame]
    kept = [
        name
        for name in names
        if name not in (*_LAST, "turn", FILE)
        and (name == "vote" or frame[name].null_count() < frame.height)
    ]
    return frame.select(*kept, *_LAST)
