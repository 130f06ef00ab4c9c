"""The frame that every format is read to, and the votes, ratings or labels that are made of it."""
# Rows have `vote` from A's point of view (of grades `score`), `status`, and `item`, or `group` with
# `system_a` and `system_b` (of grades `system`), of which ids are made; see docs/data.md.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from btdagg._util.wording import counted
from btdagg.judge.answers import AnswerFormat, parse_verdict
from btdagg.votes.scale import listed
from btdagg.votes.schema import LABELS, VOTES, lead
from btdagg.votes.strength import PROBABILITIES
from btdagg.votes.table import Table, refuse, refuse_duplicates, without_repeats
from btdagg.votes.verdicts import grade_words
from btdagg.votes.words import PASS_WORDS

if TYPE_CHECKING:
    from btdagg.formats.content import ImportOptions

CHOICE = "\0choice"  # a column: which of several answers to a request
INPUT = "\0input"  # a column: what an item, or the group, was asked
HUMAN = "human"  # a person without a name
_HOW_STRONG = ("margin", "strength", *PROBABILITIES)
_FIRST = (
    *("item", "vote", "judge", "rater", "criterion", "order", "sample", "template", "temperature"),
    *("task", "group", "system", "system_a", "system_b", "confidence", *_HOW_STRONG),
)
_LAST = ("status", "format")
_OF_VOTES = (
    *("judge", "rater", "order", "sample", "template", "temperature", "confidence", *_HOW_STRONG),
    *("status", "turn"),
)
_WAY = ("judge", "order", "template", "temperature", "task", "criterion")
_LABELLED = (*LABELS.key, "criterion")  # what a label is of
_OF_SCORES = ("group", "turn", "task", "judge", "rater", "template", "temperature")


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
    """Read `vote`, `status` and `confidence` from texts, and remark on what would help."""
    parse = lru_cache(maxsize=4096)(parse_verdict)
    rows: list[tuple[float | None, str, float | None]] = []
    unparsed = None  # an answer without a verdict
    for answer in answers:
        text = answer.text or ""
        # Short texts repeat, long ones do not.
        read = parse if len(text) < 64 else parse_verdict
        verdict = read(
            answer.text,
            expected,
            order=answer.order,
            finish_reason=answer.finish_reason,
            refusal=answer.refusal,
        )
        if answer.failed:
            rows.append((None, "failed", None))
            continue
        vote = verdict.vote if expected.grades is None else verdict.grade
        rows.append((vote, verdict.status, verdict.confidence))
        if verdict.status == "unparsed":
            unparsed = unparsed or text
    schema = {"vote": pl.Float64, "status": pl.String, "confidence": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    if unparsed is None or expected.pattern is not None:
        return frame, None
    last = unparsed.strip().rpartition("\n")[2][-80:]
    return frame, (
        f"an unparsed answer ends in {last!r}; set words to the meaning of its verdicts, or "
        "answer_pattern to find them"
    )


def votes_of_scores(table: Table) -> pl.DataFrame:
    """Compare every two systems by their scores for a prompt, the k-th samples of both."""
    # `table` has `group` (the prompt), `system`, `score`, and `status`: why a score is missing.
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
    difference = lead(pl.col("score"), pl.col("score_b"))
    votes = both.with_columns(
        vote=difference.sign().cast(pl.Int8),
        margin=difference.abs(),
        status=pl.when(pl.col("score").is_null()).then("status").otherwise("status_b"),
        system_a="system",
    )
    return votes.drop("place", "place_b", "system", "score", "score_b", "status_b")


def graded(table: Table, options: ImportOptions) -> pl.DataFrame:
    """Return rows of grades with an item, and `vote` for `score`: a point, or null if none."""
    words = grade_words(options.words).items()
    text = pl.col("score").cast(pl.String).str.strip_chars().str.to_lowercase()
    text = text.replace({word: "" if grade is None else str(grade) for word, grade in words})
    grade = text.cast(pl.Float64, strict=False)
    # Of each criterion, words are of pass and fail where there are no numbers.
    has_numbers = grade.is_not_null().any()
    has_numbers = has_numbers.over("criterion") if "criterion" in table.columns else has_numbers
    passed = text.replace({word: str(grade) for word, grade in PASS_WORDS.items()})
    is_passed = pl.lit(True) if options.passes else ~has_numbers
    grade = pl.when(is_passed).then(passed.cast(pl.Float64, strict=False)).otherwise(grade)
    grade = pl.when(grade.is_finite()).then(grade)
    if options.times > 1:
        refuse(table, ~grade.is_between(0, 1), "score", "a number from 0 to 1", {"scale": None})
        grade = (grade * options.times).round()
    elif options.points is not None:
        is_point = grade.is_in([float(point) for point in options.points])
        refuse(table, ~is_point, "score", listed(options.points), {"scale": None})
    why = pl.when(text.fill_null("") == "").then(pl.lit("empty"))
    status = pl.coalesce("status", why) if "status" in table.columns else why
    frame = table.frame.with_columns(grade.alias("vote"), status.alias("status")).drop("score")
    frame = frame.select(c for c in frame if c.name == "vote" or c.null_count() < c.len())
    if "item" not in frame:
        parts = [name for name in ("group", "turn", "system") if name in frame]
        frame = frame.with_columns(item=pl.concat_str(parts, separator="|", ignore_nulls=True))
    return frame


def told_apart(parts: list[pl.DataFrame]) -> tuple[list[pl.DataFrame], str | None]:
    """Number the ids that stand for several inputs, over all files, and remark on them."""
    if not any(INPUT in part for part in parts):
        return parts, None
    keys = [
        part.select(
            id=pl.col("item" if "item" in part else "group").cast(pl.String),
            # Ids of items may begin again in another task.
            task="task" if {"item", "task"} <= {*part.columns} else pl.lit(None, pl.String),
            input=INPUT if INPUT in part else pl.lit(None, pl.String),
        )
        for part in parts
    ]
    inputs = pl.concat(keys, how="vertical_relaxed").drop_nulls("input").unique(maintain_order=True)
    inputs = inputs.with_columns(number=pl.int_range(1, pl.len() + 1).over("id", "task"))
    repeated = inputs.filter(pl.col("number") > 1)
    parts = [part.drop(INPUT, strict=False) for part in parts]
    if not repeated.height:
        return parts, None
    named = []
    for part, key in zip(parts, keys, strict=True):
        column = "item" if "item" in part else "group"
        whole = key.join(
            repeated,
            on=["id", "task", "input"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        numbered = pl.concat_str(pl.col("id"), pl.lit(" #"), pl.col("number"))
        ids = whole.select(pl.coalesce(numbered, "id").alias(column))
        named.append(part.with_columns(ids))
    first = repeated.row(0, named=True)
    n_ids = repeated.select("id", "task").n_unique()
    return named, (
        f"{counted(n_ids, 'id')} with several inputs: they are told apart by a number, so that the "
        f"second input of {first['id']!r} is '{first['id']} #2'"
    )


def finished(parts: list[pl.DataFrame], are_grades: bool = False) -> pl.DataFrame:
    """Join what was read of several files, and give it statuses, sides and ids."""
    frame = pl.concat(parts, how="diagonal_relaxed")
    if CHOICE in frame:  # of all files, or a sample of one would be that of another
        sample = pl.col("sample").cast(pl.Int64) * (pl.col(CHOICE).max() + 1) + pl.col(CHOICE)
        numbered = pl.when(pl.col(CHOICE).is_null()).then("sample").otherwise(sample)
        frame = frame.with_columns(sample=numbered).drop(CHOICE)
    if "status" not in frame:
        frame = frame.with_columns(status=pl.lit(None, pl.String))
    missing = pl.when(pl.col("status") != "ok").then("status").otherwise(pl.lit("unparsed"))
    status = pl.when(pl.col("vote").is_not_null()).then(pl.lit("ok")).otherwise(missing)
    vote = pl.col("vote").cast(pl.Float64 if are_grades else pl.Int8)
    if are_grades and frame.select((vote == vote.floor()).all()).item():
        vote = vote.cast(pl.Int64)
    frame = frame.with_columns(vote=vote, status=status)
    judges = set(frame["judge"].drop_nulls()) if "judge" in frame else set()
    if len(judges) == 1:  # a request that failed does not say which model would have answered
        judge = pl.when(pl.col("status") == "failed").then(pl.lit(*judges))
        frame = frame.with_columns(judge=pl.coalesce("judge", judge))
    if "item" in frame and not frame["item"].null_count():
        return frame
    return _paired(frame)


def _paired(frame: pl.DataFrame) -> pl.DataFrame:
    swap = pl.col("system_a") > pl.col("system_b")
    if "item" in frame:  # of some rows
        swap &= pl.col("item").is_null()
    first, second, vote = pl.col("system_a"), pl.col("system_b"), pl.col("vote")
    columns = {
        "system_a": pl.when(swap).then(second).otherwise(first),
        "system_b": pl.when(swap).then(first).otherwise(second),
        "vote": pl.when(swap).then(-vote).otherwise(vote),
    }
    if "p_minus" in frame:
        for side, turned_side in (("p_minus", "p_plus"), ("p_plus", "p_minus")):
            columns[side] = pl.when(swap).then(turned_side).otherwise(side)
    if "order" in frame:
        turned = pl.col("order").replace({"AB": "BA", "BA": "AB"})
        columns["order"] = pl.when(swap).then(turned).otherwise("order")
    # A row without a turn has an id without it, whatever the other rows have.
    parts = [name for name in ("group", "turn", "system_a", "system_b") if name in frame.columns]
    item = pl.concat_str(parts, separator="|", ignore_nulls=True)
    named = [pl.col("item").cast(pl.String)] if "item" in frame else []
    return frame.with_columns(**columns).with_columns(item=pl.coalesce(*named, item))


def as_votes(rows: Table) -> tuple[pl.DataFrame, int]:
    """Rows of judges, and how many repeated a sample; missing numbers follow those given."""
    frame = rows.frame
    if "rater" in frame:
        judge = pl.coalesce(*(name for name in ("judge", "rater") if name in frame))
        frame = frame.with_columns(judge=judge).drop("rater")
    has_samples = "sample" in frame
    if not has_samples or frame["sample"].null_count():
        key = ["item", *(name for name in _WAY if name in frame and frame[name].n_unique() > 1)]
        number = pl.int_range(pl.len()).over(key)
        if has_samples:
            last = pl.col("sample").max().over(key).fill_null(-1)
            place = pl.col("sample").is_null().cum_sum().over(key)
            number = pl.coalesce("sample", last + place)
        frame = frame.with_columns(sample=number.cast(pl.Int64))
    unique = rows.with_data(frame)
    if has_samples:
        key = [name for name in (*VOTES.key, "criterion") if name in frame]
        strengths = [name for name in _HOW_STRONG if name in frame]
        unique = without_repeats(unique, key, "vote", *strengths)
    return _ordered(unique.frame, _FIRST), frame.height - unique.height


def as_ratings(rows: Table) -> tuple[pl.DataFrame, int]:
    """Rows of raters, and how many repeated one; unnamed people are numbered."""
    frame = rows.frame
    if "rater" not in frame:
        frame = frame.rename({"judge": "rater"})
    key = [name for name in _LABELLED if name in frame]
    unnamed = pl.col("rater") == HUMAN
    number = unnamed.cum_sum().over(key)
    if (frame.select(number.filter(unnamed).max()).item() or 0) > 1:
        numbered = pl.concat_str(pl.lit(f"{HUMAN}_"), number)
        frame = frame.with_columns(rater=pl.when(unnamed).then(numbered).otherwise("rater"))
    unique = without_repeats(
        rows.with_data(frame),
        [*key, "rater"],
        "vote",
        remedy="; read as votes, both would count",
        argument="kind",
    ).frame
    ratings = unique.drop("sample", strict=False)
    n_repeats = frame.height - unique.height
    return _ordered(ratings, ("item", "rater", "vote", *_FIRST[2:])), n_repeats


def as_labels(rows: Table) -> pl.DataFrame:
    """Return the label of each item, which its rows agree on, and the columns that are of items."""
    labels = rows.frame.drop(_OF_VOTES, strict=False).rename({"vote": "label"})
    key = [name for name in _LABELLED if name in labels]
    remedy = "; if several people labelled it, name them by {advice}"
    advice = {"columns": {"rater": "NAME"}}
    whole = rows.with_data(labels)
    frame = without_repeats(whole, key, "label", remedy=remedy, advice=advice).frame
    return frame.select("item", "label", pl.exclude("item", "label", "format"), "format")


def _ordered(frame: pl.DataFrame, first: Sequence[str]) -> pl.DataFrame:
    kept = [
        name
        for name in dict.fromkeys((*first, *frame.columns))
        if name in frame
        and name not in (*_LAST, "turn")
        and (name == "vote" or frame[name].null_count() < frame.height)
    ]
    return frame.select(*kept, *_LAST)
