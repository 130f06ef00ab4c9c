"""What is in a store: as a table of votes, and summed up."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from btdagg._core import InputError
from btdagg._util.files import TABLE_SUFFIXES, write_table
from btdagg.judge.calls import STATUSES, Asked
from btdagg.judge.store import schema
from btdagg.judge.store.soundness import refuse_unsound
from btdagg.judge.store.store import VoteStore

if TYPE_CHECKING:
    import polars as pl

_DECISIONS = re.compile(r"(greedy|few_shot|gsa|usc)(_\d+)?")  # names of columns of decisions

_ROWS = 10_000  # fetched at a time
_COLUMNS = {
    "item": "String",
    "order": "String",
    "sample": "Int64",
    "vote": "Int8",
    "status": "String",
    "confidence": "Float64",
    "reason": "String",
    "attempts": "Int64",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "reasoning_tokens": "Int64",
    "cost": "Float64",
    "latency": "Float64",
    "finished": "Float64",
}
_EXCHANGE = {
    "model": "String",
    "finish_reason": "String",
    "messages": "String",
    "reasoning": "String",
    "answer": "String",
}


@dataclass(frozen=True)
class Summary:
    """What a store has of one judge, asked in one way.

    Attributes
    ----------
    judge, template, method, temperature, reasoning_effort
        Who was asked, and how.
    n_items : int
    statuses : dict of status to int
        Samples; ``asking`` are those that a run asks for now, or asked for when it was killed.
    minus, tie, plus : int
        Votes, from A's point of view.
    first, second : int
        Votes for the response shown first, and for the one shown second.
    n_ab, n_ba : int
        Votes by order.
    prompt_tokens, completion_tokens, reasoning_tokens : int
    cost : float or None
        None where no run was given prices.
    latency : float or None
        Mean seconds of a call.
    """

    judge: str
    template: str
    method: str
    temperature: float | None
    reasoning_effort: str | None
    n_items: int
    statuses: dict[str, int]
    minus: int
    tie: int
    plus: int
    first: int
    second: int
    n_ab: int
    n_ba: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cost: float | None
    latency: float | None

    @property
    def n_votes(self) -> int:
        """Samples with a vote."""
        return self.minus + self.tie + self.plus

    @property
    def tie_rate(self) -> float | None:
        """Share of ties among votes."""
        return self.tie / self.n_votes if self.n_votes else None

    @property
    def positional_bias(self) -> float | None:
        """``(first - second) / (first + second)``."""
        decisive = self.first + self.second
        return (self.first - self.second) / decisive if decisive else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            **asdict(self),
            "n_votes": self.n_votes,
            "tie_rate": self.tie_rate,
            "positional_bias": self.positional_bias,
        }


def summaries(store: VoteStore) -> list[Summary]:
    """Sum up a store by judge, template and method, in the order in which they were first asked.

    Raises
    ------
    StoreError
        If the store cannot be read, or has a value that no run has written, such as a vote of 7;
        the message names the row.
    """
    votes, asks = schema.votes, schema.asks
    by_kind = sa.select(
        votes.c.ask,
        votes.c.order,
        votes.c.status,
        votes.c.vote,
        sa.func.count(),
        sa.func.sum(votes.c.prompt_tokens),
        sa.func.sum(votes.c.completion_tokens),
        sa.func.sum(votes.c.reasoning_tokens),
        sa.func.sum(votes.c.cost),
        sa.func.sum(votes.c.latency),
        sa.func.count(votes.c.latency),
    ).group_by(votes.c.ask, votes.c.order, votes.c.status, votes.c.vote)
    by_item = sa.select(votes.c.ask, sa.func.count(sa.distinct(votes.c.item)))
    with store.reading() as connection:
        refuse_unsound(connection, store.name, (schema.asks, schema.votes))
        kinds: dict[int, list[Any]] = defaultdict(list)
        for row in connection.execute(by_kind):
            kinds[row[0]].append(row)
        n_items: dict[int, int] = {
            row[0]: row[1] for row in connection.execute(by_item.group_by(votes.c.ask))
        }
        asked = connection.execute(sa.select(asks).order_by(asks.c.id)).mappings().all()
    return [_summary(ask, n_items.get(ask["id"], 0), kinds[ask["id"]]) for ask in asked]


def _summary(ask: Any, n_items: int, rows: list[Any]) -> Summary:
    statuses: Counter[str] = Counter()
    by_vote: Counter[tuple[str, int]] = Counter()
    totals = [0, 0, 0, 0]
    cost, seconds = None, 0.0
    for _, order, status, vote, n, *sums in rows:
        statuses[status or "asking"] += n
        if status == "ok":
            by_vote[order, vote] += n
        for place, number in enumerate((*sums[:3], sums[5])):
            totals[place] += int(number or 0)
        if sums[3] is not None:
            cost = (cost or 0.0) + float(sums[3])
        seconds += float(sums[4] or 0.0)
    orders = ("AB", "BA")
    minus, tie, plus = (sum(by_vote[order, vote] for order in orders) for vote in (-1, 0, 1))
    known = {status: statuses[status] for status in (*STATUSES, "asking") if statuses[status]}
    return Summary(
        ask["judge"],
        ask["template"],
        ask["method"],
        ask["temperature"],
        ask["reasoning_effort"],
        n_items,
        known,
        minus,
        tie,
        plus,
        first=by_vote["AB", 1] + by_vote["BA", -1],
        second=by_vote["AB", -1] + by_vote["BA", 1],
        n_ab=sum(by_vote["AB", vote] for vote in (-1, 0, 1)),
        n_ba=sum(by_vote["BA", vote] for vote in (-1, 0, 1)),
        prompt_tokens=totals[0],
        completion_tokens=totals[1],
        reasoning_tokens=totals[2],
        cost=cost,
        latency=seconds / totals[3] if totals[3] else None,
    )


def votes_frame(
    store: VoteStore,
    *,
    methods: Collection[str] = ("sample",),
    exchanges: bool = False,
    asked: Asked | None = None,
) -> pl.DataFrame:
    """Votes of a store, one row per sample, as `read_votes` takes them.

    Parameters
    ----------
    methods : collection of str
        Votes of these methods. What other methods decided is in columns of their own, such as
        ``gsa_8``, the same in every row of an item, judge and template.
    exchanges : bool
        Whether to add what was sent and answered.
    asked : Asked, optional
        Only votes that were asked for like this, by whatever method.

    Returns
    -------
    polars.DataFrame
        Columns `item`, `task` where it is known, `judge`, `template`, `temperature`,
        `reasoning_effort` and `method`, and those of docs/store.md. `vote` is null where there is
        none. Where one judge was asked in ways that go by the same name, the name of the template
        is followed by a part of the prompt's digest.

    Raises
    ------
    StoreError
        If the store cannot be read, or has a value that no run has written, such as a vote of 7;
        the message names the row.
    """
    import polars as pl

    votes, asks, items = schema.votes, schema.asks, schema.items
    names = [*_COLUMNS, *(_EXCHANGE if exchanges else ())]
    selected: list[Any] = [votes.c.ask, items.c.task, *(votes.c[name] for name in _COLUMNS)]
    source: Any = votes.join(asks, asks.c.id == votes.c.ask).outerjoin(
        items, items.c.item == votes.c.item
    )
    if exchanges:
        kept, sent = schema.exchanges, schema.requests
        source = source.outerjoin(kept, _same(votes, kept, "ask", "item", "order", "sample"))
        source = source.outerjoin(sent, _same(votes, sent, "ask", "item", "order"))
        selected += [sent.c.messages if name == "messages" else kept.c[name] for name in _EXCHANGE]
    query = (
        sa.select(*selected)
        .select_from(source)
        .where(votes.c.status.is_not(None))
        .order_by(votes.c.ask, votes.c.item, votes.c.sample, votes.c.order)
    )
    kinds = {"ask": "Int64", "task": "String"} | {
        name: (_COLUMNS | _EXCHANGE)[name] for name in names
    }
    if asked is None:
        query = query.where(asks.c.method.in_(list(methods)))
    else:
        query = query.where(asks.c.judge == asked.judge, asks.c.prompt == asked.prompt)
    types = {name: getattr(pl, kind) for name, kind in kinds.items()}
    parts = [pl.DataFrame(schema=types)]
    texts = (schema.requests, schema.exchanges) if exchanges else ()
    with store.reading() as connection:
        refuse_unsound(
            connection,
            store.name,
            (schema.asks, schema.items, schema.votes, schema.decisions, *texts),
        )
        known = connection.execute(sa.select(asks)).mappings().all()
        for rows in connection.execution_options(yield_per=_ROWS).execute(query).partitions():
            parts.append(pl.DataFrame([tuple(row) for row in rows], schema=types, orient="row"))
        decided: list[Any] = [*connection.execute(sa.select(schema.decisions)).mappings()]
    frame = pl.concat(parts)
    ways = pl.DataFrame(
        {
            "ask": [ask["id"] for ask in known],
            "judge": [ask["judge"] for ask in known],
            "template": _names(known),
            "template_digest": [ask["template_digest"] for ask in known],
            "temperature": [ask["temperature"] for ask in known],
            "reasoning_effort": [ask["reasoning_effort"] for ask in known],
            "method": [ask["method"] for ask in known],
        },
        schema_overrides={
            "ask": pl.Int64,
            "temperature": pl.Float64,
            **dict.fromkeys(
                ("judge", "template", "template_digest", "reasoning_effort", "method"), pl.String
            ),
        },
    )
    frame = frame.join(ways, on="ask", how="left", maintain_order="left")
    columns = ["item", "task", "judge", "template", "temperature", "reasoning_effort", "method"]
    for name in sorted({row["name"] for row in decided}):
        mine = [row for row in decided if row["name"] == name]
        one = pl.DataFrame(
            {
                "judge": [row["judge"] for row in mine],
                "template_digest": [row["template_digest"] for row in mine],
                "item": [row["item"] for row in mine],
                name: [row["decision"] for row in mine],
            },
            schema_overrides={name: pl.Int8},
        )
        key = ["judge", "template_digest", "item"]
        frame = frame.join(one, on=key, how="left", maintain_order="left")
        columns.append(name)
    if frame["task"].null_count() == frame.height:
        columns.remove("task")
    if frame["reasoning_effort"].null_count() == frame.height:
        columns.remove("reasoning_effort")
    return frame.select(*columns, *(name for name in names if name not in columns))


def export(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write votes to a file, of a kind that its name says.

    Raises
    ------
    InputError
        If it is of another kind, or cannot be written.
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(f"{name}: want a name in {', '.join(TABLE_SUFFIXES)}")
    try:
        write_table(frame, Path(name), suffix)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror or error}") from None


def _same(left: sa.Table, right: sa.Table, *names: str) -> sa.ColumnElement[bool]:
    return sa.and_(*(left.c[name] == right.c[name] for name in names))


def _names(asked: Any) -> list[str]:
    """Names of the templates, told apart where another prompt would be taken for the same."""
    keys = [
        (ask["judge"], ask["template"], ask["temperature"], ask["reasoning_effort"], ask["method"])
        for ask in asked
    ]
    shared = {key for key, n in Counter(keys).items() if n > 1}
    return [
        f"{ask['template']}#{ask['prompt'][:8]}" if key in shared else ask["template"]
        for ask, key in zip(asked, keys, strict=True)
    ]
