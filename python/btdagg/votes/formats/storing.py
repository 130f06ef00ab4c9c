"""Imported votes in a vote store, as if `btdagg judge` had asked for them."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from btdagg._core import InputError
from btdagg.judge.client import STATUSES, Asked, Order, digest_of
from btdagg.judge.judging import Judging, digest_of_pair
from btdagg.judge.pairs import Pairs
from btdagg.judge.store import Answered, Owner, StoreError, VoteStore
from btdagg.votes.formats.reading import Imported
from btdagg.votes.table import listing

_ROWS = 5000  # in one transaction
_COLUMNS = ("task", "confidence", "template", "temperature")


class Stored(NamedTuple):
    """How many samples were new, there already, and being asked for by others."""

    n_new: int
    n_there: int
    n_elsewhere: int


def store_votes(
    imported: Imported,
    place: str | os.PathLike[str],
    *,
    judging: Judging | None = None,
    pairs: Pairs | None = None,
) -> Stored:
    """Write votes into a store.

    Parameters
    ----------
    imported : Imported
        Votes with the columns `judge` and `order`.
    place : path or URL
        A store, which is made if it is not there.
    judging : Judging, optional
        How the judge was asked. With it `btdagg judge` asks for no sample that was imported;
        without it the votes are of a template of their own.
    pairs : Pairs, optional
        The texts of the items. Without them whatever texts are judged under these ids first are
        taken to be theirs.

    Raises
    ------
    InputError
        If the rows are no votes of judges, or do not tell judge or order; if an item is not in
        `pairs`; if the store has another vote for a sample, or other texts for an item.
    """
    frame = _checked(imported, judging)
    digests = None if pairs is None else {pair.item: digest_of_pair(pair) for pair in pairs}
    if digests is not None:
        for item in frame.filter(~pl.col("item").is_in(list(digests)))["item"].head(1):
            raise InputError(f"item {item!r} is not among the pairs", argument="pairs")
    n_new = n_elsewhere = 0
    ways = list(_ways(frame, judging))
    with VoteStore(place, keep_exchanges=False) as store:
        for asked, rows in ways:
            _refuse_other_votes(store, asked, rows)
        with store.owner() as owner:
            for asked, rows in ways:
                ask = store.ask_of(asked)
                for part in rows.iter_slices(_ROWS):
                    claimed, elsewhere = _write(owner, ask, part, digests or {})
                    n_new += claimed
                    n_elsewhere += elsewhere
    return Stored(n_new, frame.height - n_new - n_elsewhere, n_elsewhere)


def _checked(imported: Imported, judging: Judging | None) -> pl.DataFrame:
    frame = imported.frame
    if imported.kind != "votes":
        raise InputError(
            f"a store holds votes of judges, and these are {imported.kind}; the kind votes takes "
            "them for such",
            argument="kind",
        )
    for column in ("judge", "order"):
        if column not in frame or frame[column].null_count():
            raise InputError(
                f"a store needs the {column} of every vote, which the files do not tell and "
                f"constants may: judge=NAME, or order=AB if A was shown first",
                argument="constants",
            )
    is_status = pl.col("status").is_in(STATUSES)
    failed = pl.col("status") == "error"
    other = pl.when(failed).then(pl.lit("failed")).otherwise(pl.lit("unparsed"))
    frame = frame.with_columns(
        pl.col("item").cast(pl.String),
        *(pl.lit(None).alias(name) for name in _COLUMNS if name not in frame),
        status=pl.when(is_status).then("status").otherwise(other),
        reason=pl.when(is_status).then(pl.lit("")).otherwise("status"),
    )
    tasks = frame.group_by("item").agg(pl.col("task").unique())
    for item, values in tasks.filter(pl.col("task").list.len() > 1).iter_rows():
        raise InputError(
            f"item {item!r} is in the tasks {listing(map(str, values))}, and a store has one task "
            "for an item; import the tasks into stores of their own"
        )
    for column in ("template", "temperature") if judging is not None else ():
        if frame[column].n_unique() > 1:
            values = listing(str(value) for value in frame[column].unique(maintain_order=True))
            raise InputError(
                f"votes of several {column}s ({values}) cannot be those of one way to ask; import "
                "them apart"
            )
    return frame.sort("item", maintain_order=True)


def _ways(frame: pl.DataFrame, judging: Judging | None) -> Iterator[tuple[Asked, pl.DataFrame]]:
    """Yield what was asked, and its rows."""
    by = ["judge", "template", "temperature"]
    for (judge, template, temperature), rows in frame.group_by(by, maintain_order=True):
        if judging is not None:
            yield replace(judging.asked, judge=str(judge)), rows
            continue
        try:
            number = None if temperature in (None, "default") else float(str(temperature))
        except ValueError:
            number = math.nan
        if number is not None and not math.isfinite(number):
            raise InputError(
                source=f"item {rows['item'][0]!r}",
                column="temperature",
                came=temperature,
                expected="a number or default",
            )
        format = rows["format"][0]
        template = str(template or format)
        prompt = digest_of(["imported", format, template])
        yield Asked(str(judge), template, prompt, temperature=number), rows


def _refuse_other_votes(store: VoteStore, asked: Asked, rows: pl.DataFrame) -> None:
    """Refuse another vote for a sample before anything is written."""
    for part in rows.drop_nulls("vote").iter_slices(_ROWS):
        stored = store.samples_of(asked, part["item"].unique().to_list())
        for item, order, sample, vote in part.select("item", "order", "sample", "vote").iter_rows():
            _, other = stored.get(item, {}).get((order, sample), (None, None))
            if other not in (None, vote):
                raise StoreError(
                    f"{store.name}: item {item!r}, order {order}, sample {sample} has vote "
                    f"{other}, and {vote} is imported; import the files of several runs in one "
                    "command, so that their samples are counted on"
                )


def _write(
    owner: Owner, ask: int, part: pl.DataFrame, digests: Mapping[str, str]
) -> tuple[int, int]:
    """Write rows that are not there; how many, and how many others are asking for."""
    rows: dict[tuple[str, Order, int], dict[str, Any]] = {}
    votes: dict[str, list[tuple[Order, int]]] = defaultdict(list)
    missing: dict[str, list[tuple[Order, int]]] = defaultdict(list)
    for row in part.iter_rows(named=True):
        rows[row["item"], row["order"], row["sample"]] = row
        samples = missing if row["vote"] is None else votes
        samples[row["item"]].append((row["order"], row["sample"]))
    items = part.select("item", "task").unique("item", keep="first").iter_rows()
    owner.know_items([(item, digests.get(item, ""), task) for item, task in items])
    # A vote takes the place of a sample without one.
    claimed, elsewhere, _ = owner.claim(ask, votes, STATUSES[1:])
    also_claimed, also_elsewhere, _ = owner.claim(ask, missing)
    answers = []
    for sample in (*claimed, *also_claimed):
        row = rows[sample.item, sample.order, sample.sample]
        answers.append(
            Answered(
                sample.item,
                sample.order,
                sample.sample,
                row["status"],
                row["vote"],
                sample.attempts + 1,
                confidence=row["confidence"],
                reason=row["reason"],
            )
        )
    if answers:
        owner.save(ask, answers)
    owner.commit()
    return len(answers), sum(map(len, (*elsewhere.values(), *also_elsewhere.values())))
