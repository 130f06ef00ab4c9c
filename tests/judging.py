"""What the tests of the judge share: pairs, a way of asking."""

import json
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl
import sqlalchemy as sa

from btdagg.judge import VoteStore
from btdagg.judge.client import Setup, Verdict, samples_of
from btdagg.judge.judging import Work
from btdagg.judge.pairs import Pair, read_pairs
from btdagg.judge.store import database as schema


def pairs_of(n_items, n_correct=1):
    """Sums, of which the first answer is right, or wrong, or both are right."""
    rows = [
        {
            "item": f"q{number}",
            "prompt": f"What is {number} + {number}?",
            "a": f"{number} + {number} = {2 * number + (number % 3 == 1)}. That is all.",
            "b": f"{number} + {number} = {2 * number + (number % 3 == 2)}. I am sure.",
        }
        for number in range(n_items)
    ]
    return read_pairs(pl.DataFrame(rows))


def asked_of(url, *options):
    """The command that has a server judge `pairs.jsonl`."""
    at = f"judge.base_url={url}"
    return ["judge", "pairs.jsonl", "--model", "m", "--set", at, *options]


def plan_of(n_items, n=4):
    """Work whose messages name item and order."""
    for number in range(n_items):
        item = f"q{number}"

        def messages(order, item=item):
            return ({"role": "user", "content": f"{item} {order} [[A]] [[B]] [[TIE]]"},)

        yield Work(Pair(item), samples_of(n), messages, read=read)


SETUP = Setup("sim", "plain", "digest of plain")
VOTES = {"[[A]]": 1, "[[TIE]]": 0, "[[B]]": -1}


def read(reply, order):
    """A vote for what stands at the end."""
    if reply.finish_reason == "length":
        return Verdict("truncated", reason="cut off")
    if not reply.text:
        return Verdict("empty", reason="no text")
    for word, vote in VOTES.items():
        if reply.text.endswith(word):
            return Verdict("ok", vote if order == "AB" else -vote)
    return Verdict("unparsed", reason="no verdict")


def rows_of(place):
    """Every row of the votes of a store, as mappings."""
    with VoteStore(place, create=False) as store, store.reading() as connection:
        return [dict(row) for row in connection.execute(sa.select(schema.votes)).mappings()]


def statuses_of(place):
    return Counter(row["status"] for row in rows_of(place))


def config(**keys):
    """`--config` and a new file, in a folder of its own, that has these keys."""
    path = Path(tempfile.mkdtemp(), "judge.toml")
    path.write_text("".join(f"{name} = {toml(value)}\n" for name, value in keys.items()))
    return ["--config", str(path)]


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)
