"""Imported votes in a vote store, as if `btdagg judge` had asked for them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import polars as pl

from btdagg._core import InputError
from btdagg.judge.calls import STATUSES, Asked, Order, Status, digest_of
from btdagg.judge.judging import Judging, digest_of_pair
from btdagg.judge.pairs import Pairs
from btdagg.judge.store import Answered, Owner, StoreError, VoteStore
from btdagg.votes.formats.reading import Imported
from btdagg.votes.table import listing

_ROWS = 5000  # in one transaction
_WAY = ("judge", "template", "temperature")
# Why votes are missing, where other tools have other words for it.
_FAILED = ("error", "failed")


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
        The texts of the items. Without them the texts are not known, and whatever texts are judged
        under these ids first are taken to be theirs.

    Returns
    -------
    Stored

    Raises
    ------
    InputError
        If the rows are no votes of judges, or do not tell judge or order; if an item is not in
        `pairs`; if the store has another vote for a sample, or other texts for an item.
    """
    frame = _checked(imported)
    for column in ("template", "temperature") if judging is not None else ():
        values = frame[column].unique(maintain_order=True).to_list() if column in frame else []
        if len(values) > 1:
            listed = listing(["" if value is None else str(value) for value in values])
            raise InputError(
                f"votes of several {column}s ({listed}) cannot be those of one way to ask; import "
                "them apart"
            )
    digests = None if pairs is None else {pair.item: digest_of_pair(pair) for pair in pairs}
    if digests is not None:
        absent = frame.filter(~pl.col("item").is_in(list(digests)))["item"]
        if len(absent):
            raise InputError(f"item {absent[0]!r} is not among the pairs")
    n_new = n_there = n_elsewhere = 0
    parts = list(_ways(frame, judging))
    with VoteStore(place, keep_exchanges=False) as store:
        for asked, rows in parts:
            _refuse_other_votes(store, asked, rows)
        with store.owner() as owner:
            for asked, rows in parts:
                ask = store.ask_of(asked)
                for part in rows.iter_slices(_ROWS):
                    claimed, elsewhere = _write(owner, ask, part, digests)
                    n_new += claimed
                    n_elsewhere += elsewhere
                    n_there += part.height - claimed - elsewhere
    return Stored(n_new, n_there, n_elsewhere)


def _checked(imported: Imported) -> pl.DataFrame:
    frame = imported.frame
    if imported.kind != "votes":
        raise InputError(
            f"a store holds votes of judges, and these are {imported.kind}; --as votes takes them "
            "for such"
        )
    for column, meant in (("judge", "judge=NAME"), ("order", "order=AB, if A was shown first")):
        if column not in frame or frame[column].null_count():
            raise InputError(
                f"a store wants the {column} of every vote, which the files do not tell: --set "
                f"{meant}"
            )
    known = pl.col("status").is_in(STATUSES)
    failed = pl.when(pl.col("status").is_in(_FAILED)).then(pl.lit("failed"))
    frame = frame.with_columns(
        pl.col("item").cast(pl.String),
        status=pl.when(known).then("status").otherwise(failed.otherwise(pl.lit("unparsed"))),
        reason=pl.when(known).then(pl.lit("")).otherwise("status"),
    )
    if "confidence" not in frame:
        # A margin of scores from 0 to 1 is such a number, others are not.
        margin = pl.col("margin") if "margin" in frame else pl.lit(None, pl.Float64)
        fits = frame.select(margin.max().fill_null(0.0)).item() <= 1
        frame = frame.with_columns(confidence=margin if fits else pl.lit(None, pl.Float64))
    if "task" not in frame:
        frame = frame.with_columns(task=pl.lit(None, pl.String))
    tasks = frame.select("item", "task").unique(maintain_order=True)
    shared = tasks.filter(pl.col("item").is_duplicated())
    if shared.height:
        item = shared["item"][0]
        first, second = shared.filter(pl.col("item") == item)["task"][:2]
        raise InputError(
            f"item {item!r} is in task {first!r} and in task {second!r}, and a store has one task "
            "for an item; import the tasks into stores of their own"
        )
    return frame.sort("item", maintain_order=True)


def _ways(frame: pl.DataFrame, judging: Judging | None) -> Iterator[tuple[Asked, pl.DataFrame]]:
    """Yield what was asked, and its rows."""
    by = [name for name in _WAY if name in frame]
    for key, rows in frame.partition_by(by, as_dict=True, maintain_order=True).items():
        told = dict(zip(by, key, strict=True))
        if judging is not None:
            yield replace(judging.asked, judge=str(told["judge"])), rows
            continue
        template = str(told.get("template") or rows["format"][0])
        mark = digest_of(["imported", rows["format"][0], template])
        yield (
            Asked(
                str(told["judge"]),
                template,
                mark,
                temperature=_temperature(told.get("temperature")),
            ),
            rows,
        )


def _temperature(told: object) -> float | None:
    """Return a number, or None where the endpoint used its own."""
    if told in (None, "default"):
        return None
    try:
        number = float(str(told))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"temperature is {told!r}, expected a number or default")
    return number


def _refuse_other_votes(store: VoteStore, asked: Asked, rows: pl.DataFrame) -> None:
    """Refuse another vote for a sample before anything is written."""
    for part in rows.iter_slices(_ROWS):
        there = store.samples_of(asked, part["item"].unique().to_list())
        for item, order, sample, vote in part.select("item", "order", "sample", "vote").iter_rows():
            known = there.get(item, {}).get((order, sample), (None, None))[1]
            if known is not None and vote is not None and known != vote:
                raise StoreError(
                    f"{store.name}: item {item!r}, order {order}, sample {sample} has vote "
                    f"{known}, and {vote} is imported; import the files of several runs in one "
                    "command, so that their samples are counted on"
                )


def _write(
    owner: Owner, ask: int, part: pl.DataFrame, digests: Mapping[str, str] | None
) -> tuple[int, int]:
    """Write rows that are not there; how many, and how many others are asking for."""
    items = part.select("item", "task").unique("item", keep="first").iter_rows()
    rows: dict[tuple[str, Order, int], dict[str, Any]] = {}
    wanted: dict[bool, dict[str, list[tuple[Order, int]]]] = {True: {}, False: {}}
    for row in part.iter_rows(named=True):
        rows[row["item"], row["order"], row["sample"]] = row
        of_kind = wanted[row["vote"] is not None]
        of_kind.setdefault(row["item"], []).append((row["order"], row["sample"]))
    try:
        owner.know_items([(item, (digests or {}).get(item, ""), task) for item, task in items])
        # A vote takes the place of a sample without one.
        claimed, elsewhere, _ = owner.claim(ask, wanted[True], STATUSES[1:])
        others, more, _ = owner.claim(ask, wanted[False])
        claimed += others
        if claimed:
            told = [(each, rows[each.item, each.order, each.sample]) for each in claimed]
            owner.save(
                ask,
                [
                    Answered(
                        each.item,
                        each.order,
                        each.sample,
                        cast("Status", row["status"]),
                        row["vote"],
                        each.attempts + 1,
                        confidence=row["confidence"],
                        reason=row["reason"],
                    )
                    for each, row in told
                ],
            )
        owner.commit()
    except BaseException:
        owner.roll_back()
        raise
    return len(claimed), sum(map(len, (*elsewhere.values(), *more.values())))
