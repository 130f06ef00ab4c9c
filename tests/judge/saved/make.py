"""Makes the files of this folder: a store as btdagg wrote it in November 2026, and its exports.

It is run with the code of that time (commit 9d2a22e), in an empty folder. The files are never made
again: later versions open these stores, or export what is in them.

    git checkout 9d2a22e && OPENAI_API_KEY=sk-test PYTHONPATH=python:tests python make.py
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from batch_server import BatchServer
from btdagg.cli import main
from btdagg.judge import ChatReply, FunctionClient, Judging, VoteStore, judge, read_pairs
from btdagg.judge.client import ChatError
from btdagg.judge.judging import JudgeJob
from btdagg.judge.methods import decide_by
from btdagg.judge.simulated import SimulatedClient
from btdagg.labelling.store import Answer, LabelStore
from judging import pairs_of

PAIRS, FEW = pairs_of(6), pairs_of(2)
CRITERIA = {"clear": "5: clear. 1: not.", "right": "5: right. 1: wrong."}
ITEMS = read_pairs(
    [{"item": f"r{k}", "prompt": f"{k} + {k}?", "response": f"It is {2 * k}."} for k in range(3)],
    criteria=CRITERIA,
)
TEXTS = {"q1": "I like both.", "q2": "I'm sorry, but I can't help with that.", "q4": ""}


async def troubled(request):
    """Answers of the simulated judge, but for four of six pairs."""
    if request.item == "q3":
        raise ChatError("HTTP 400: too long", "rejected", status=400)
    if request.item in TEXTS:
        return ChatReply(TEXTS[request.item])
    return await SimulatedClient().complete(request)


def ask(pairs, client=None, judge_name="sim", store="store.db", **options):
    judging = Judging(judge_name, **{"n": 4, "request_seed": 0, **options})
    asyncio.run(judge(pairs, judging, store=store, client=client or SimulatedClient()))


def decide_by_usc():
    judging = Judging("sim", n=4, request_seed=0)
    with VoteStore("store.db") as store:
        asyncio.run(decide_by("usc", FEW, judging, JudgeJob(store, SimulatedClient())))


def label(place, *answers):
    with LabelStore(place) as store:
        store.keep(*(Answer(*answer) for answer in answers))


def make():
    ask(PAIRS, FunctionClient(troubled))
    ask(FEW, template="response-steps")
    ask(FEW, judge_name="sure", confidence="logprobs")
    decide_by_usc()
    ask(ITEMS, store="grades.db", template="grade-5", n=2)
    label(
        "store.db",
        ("q0", "ann", 1.0, 4.5, "clear", "AB", "texts"),
        ("q0", "bob", 0.0, 7.25, "", "BA", "texts"),
        ("q1", "ann", None, 2.0, "skipped, as = is no sum", "AB", "texts"),
    )
    label(
        "grades.db",
        ("r0", "ann", 4.0, 3.0, "", "AB", "texts", "clear"),
        ("r0", "ann", 5.0, 1.5, "", "AB", "texts", "right"),
    )
    PAIRS.frame.write_ndjson("pairs.jsonl")
    server = BatchServer()
    asked = ["-m", "m", "--set", f"judge.base_url={server.url}", "--store", "store.db"]
    command("batch", "write", "pairs.jsonl", "-n", "2", *asked)
    command("batch", "send", "--store", "store.db")
    server.stop()
    (requests,) = Path("store.db-batches").iterdir()
    requests.rename("requests.jsonl")
    for name in ("store", "grades"):
        command("votes", f"{name}.db", "--export", f"{name}.csv")
        with closing(sqlite3.connect(f"{name}.db", isolation_level=None)) as database:
            # No folder and no port of the machine that made it; and smaller.
            away = (f"store.db-batches/{requests.name}", "http://127.0.0.1:9/v1")
            database.execute("UPDATE btdagg_batches SET file = ?, endpoint = ?", away)
            for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 1024", "VACUUM"):
                database.execute(statement)


def command(*arguments):
    try:
        main([*arguments])
    except SystemExit as done:
        if done.code:
            raise


if __name__ == "__main__":
    make()
