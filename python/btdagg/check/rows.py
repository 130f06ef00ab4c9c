"""What is wrong with the rows of votes, labels and items, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from btdagg._util.wording import counted
from btdagg.check.file import as_options
from btdagg.remarks import code_of
from btdagg.votes import Table
from btdagg.votes.ids import like_ids
from btdagg.votes.labels import Labels
from btdagg.votes.orders import about_orders
from btdagg.votes.table import NUMBER, listing
from btdagg.votes.votes import Votes
from btdagg.votes.words import PAIR_WORDS, word_of

_ONE_WAY = "if they are one item, write its id in one way"
_MOST_LABELLED = 0.9  # of the items; with more labels there is little to estimate
_FEWEST_LABELLED = 50  # items of which a share is said


class Finding(NamedTuple):
    """A sentence on a file; `is_wrong` if a number is wrong before it is mended."""

    text: str
    is_wrong: bool = False


def about_rows(table: Table, ids: list[str], kind: str) -> Iterator[Finding]:
    """Yield rows of votes or labels that are repeated, and ids that look alike."""
    if kind == "votes" or "rater" in table.columns:
        yield from _about_repeats(table, kind)
    if (alike := like_ids(ids)) is not None:
        yield Finding(f"{alike}; {_ONE_WAY}")


def about_votes(
    table: Table, votes: Votes, labels: Labels | None, words: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield what is wrong with votes: their orders, judges and numbers."""
    for remark in about_orders(votes, labels):
        turn = as_options({"words": _shown_words(table, words)}, "votes.")
        is_wrong = code_of(remark) == "order-not-turned"
        cure = f"If 'A' names the response shown first, add {turn}"
        if is_wrong:
            cure = (
                "Votes in order BA look as if 'A' named the response shown first: read them with "
                f"{turn}"
            )
        yield Finding(f"{remark}. {cure}", is_wrong)
    yield from _about_judges(votes)
    if votes.are_counts:
        return
    key = [name for name in ("task", "item") if name in votes.columns]
    rows = votes.data.lazy().group_by(key, maintain_order=True)
    items = votes.collect(rows.agg(pl.col("vote").count()))
    sizes = items["vote"].value_counts().sort("count", "vote", descending=True)
    usual, n_usual = sizes.row(0)
    others = items.filter(pl.col("vote") != usual)
    if 0 < 2 * others.height <= items.height:
        ends = sorted({*others["vote"].to_list()})
        span = " to ".join(map(str, dict.fromkeys((ends[0], ends[-1]))))
        yield Finding(
            f"{n_usual:,} items have {counted(usual, 'vote')}, {others.height:,} have {span}, such "
            f"as {others['item'][0]!r}; models take any number"
        )
    if "order" in votes.columns:
        yield from _about_halves(votes, key)


def _shown_words(table: Table, said: Mapping[str, Any]) -> dict[str, str]:
    """Return the words for A and B as the names of places, which turn votes in order BA round."""
    meanings = {word_of(word): str(m).lower() for word, m in said.items()}
    places = {1: "first", -1: "second"}
    sides = {**PAIR_WORDS, "1": 1, "-1": -1}
    texts = map(word_of, table.values("vote").drop_nulls()) if "vote" in table.columns else ()
    found = {text: places.get(sides.get(meanings.get(text, text), 0), "") for text in texts}
    found = {text: place for text, place in sorted(found.items(), key=lambda of: of[1]) if place}
    return found or {"a": "first", "b": "second"}


def _about_judges(votes: Votes) -> Iterator[Finding]:
    if "judge" not in votes.columns or votes.are_counts:
        return
    name = pl.col("judge").cast(pl.String).fill_null("").str.strip_chars()
    rows = votes.data.lazy().group_by(name)
    by_judge = votes.collect(rows.agg(pl.len(), n_votes=pl.col("vote").count())).sort("judge")
    silent = by_judge.filter((pl.col("n_votes") == 0) & (pl.col("judge") != ""))["judge"]
    if len(silent):
        yield Finding(
            f"every vote of {listing(silent)} is missing: ask again, or leave the judge's rows out"
        )
    for n_rows in by_judge.filter(pl.col("judge") == "")["len"]:
        yield Finding(
            f"{counted(n_rows, 'row')} without a judge: fill in the column judge, or they count as "
            "votes of one more judge"
        )


def _about_repeats(table: Table, kind: str) -> Iterator[Finding]:
    plain = [
        name for name, kind in table.schema.items() if not (kind.is_nested() or kind == pl.Object)
    ]
    rows = table.rows.filter(~pl.struct(plain).is_first_distinct()).select(NUMBER)
    numbers = table.collect(rows.sort(NUMBER))[NUMBER]
    if not len(numbers):
        return
    name = "sample" if kind == "votes" else "rater"
    fate = f"without a column {name} each counts as a {kind[:-1]}"
    fate = "they count once" if name in table.columns else fate
    repeats = "repeats" if len(numbers) == 1 else "repeat"
    yield Finding(
        f"{counted(len(numbers), 'row')} {repeats} an earlier row in all columns, the first "
        f"is {table.where(numbers.to_list()[0]).removeprefix(f'{table.source}, ')}; {fate}"
    )


def _about_halves(votes: Votes, key: Sequence[str]) -> Iterator[Finding]:
    rows = votes.data.lazy().drop_nulls(["order", "vote"])
    orders = votes.collect(rows.group_by(key).agg(pl.col("order").unique().sort().str.join("+")))
    number = dict(orders["order"].value_counts().iter_rows())
    halves = [f"{number[name]:,} in order {name} only" for name in ("AB", "BA") if name in number]
    if halves and (n_both := number.get("AB+BA")):
        yield Finding(
            f"{n_both:,} items have votes in both orders, {' and '.join(halves)}: a judge's "
            "preference for a position does not cancel there; ask in the other order too"
        )


def about_labels(
    ids: list[str], votes: list[str], parts: Sequence[tuple[list[str], list[str]]]
) -> Iterator[Finding]:
    """Yield labels of no item of the votes, and where nearly every item has a label.

    Parts are the items of each criterion, in labels and in votes.
    """
    yield from _about_matches(ids, votes, "label")
    n_labelled = sum(len({*labelled} & {*voted}) for labelled, voted in parts)
    n_items = sum(len(voted) for _, voted in parts)
    if n_items >= _FEWEST_LABELLED and n_labelled >= _MOST_LABELLED * n_items:
        yield Finding(
            f"{n_labelled:,} of {n_items:,} items have a label, so an estimate from "
            "labels alone is nearly the same; when new votes come, label a random sample of their "
            "items"
        )


def about_items(ids: list[str], votes: list[str], what: str) -> Iterator[Finding]:
    """Yield how many items of votes, or of labels, the data on items cover."""
    yield Finding(f"covers {len({*ids} & {*votes}):,} of {len(votes):,} items of the {what}")
    if {*ids}.isdisjoint(votes):
        yield from _about_matches(ids, votes, "row", what)


def ids_in(items: pl.Series) -> list[str]:
    """Return the ids of items once each, as text without blanks around it."""
    return (
        items.cast(pl.String).str.strip_chars().unique(maintain_order=True).drop_nulls().to_list()
    )


def _about_matches(
    ids: list[str], others: list[str], thing: str, what: str = "votes"
) -> Iterator[Finding]:
    absent = sorted({*ids}.difference(others))
    if not absent:
        return
    rest = sorted({*others}.difference(ids))
    example = f"{absent[0]!r}" + f", where {what} have {rest[0]!r}" * bool(rest)
    alike = like_ids(rest, absent)
    cure = f"; {alike}: {_ONE_WAY}" if alike else ""
    if len(absent) == len({*ids}):
        cure = cure or (
            f"; name the columns that hold the same ids, --set {what}.item=... or --set "
            f"{'items' if thing == 'row' else 'labels'}.item=..."
        )
        number = counted(len(absent), thing)
        yield Finding(f"no item has both: the {number} are of {example}{cure}", is_wrong=True)
        return
    cure = cure or "; they are not used, correct their ids if they should match"
    # Labels that are dropped for how their ids are written are missed in every number.
    yield Finding(
        f"{len(absent):,} of {len({*ids}):,} ids of {thing}s match no item of the {what}, such as "
        f"{example}{cure}",
        is_wrong=alike is not None,
    )
