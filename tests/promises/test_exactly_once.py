"""The loops of docs/production.md count each vote once, wherever their process is killed."""

import json
import random
import subprocess
import sys
from collections import Counter

import pytest

from btdagg import DavidsonModel
from btdagg.online import OnlineTally, StoppingRule
from pages import ROOT, blocks

MODEL = DavidsonModel(1.2, 2.0, 0.8)
RULE = StoppingRule.lossless(MODEL, n=4)
PAGE = [block.text for block in blocks((ROOT / "docs/production.md").read_text(encoding="utf-8"))]
(LOOP,) = (text for text in PAGE if "tally.save(state)" in text)
(WRITE,) = (text for text in PAGE if "ON CONFLICT (item, judge, sample)" in text)

# Each line of standard input is the kill points of some processes that run at once: the step
# before which a process ends itself, or 0. They have imported all that they need, and are forked.
WORKER = """
import json, os, signal, sys
import btdagg, btdagg.online

model = btdagg.DavidsonModel(1.2, 2.0, 0.8)  # imports what children need, once
model.to_sql("postgresql")
rule = btdagg.online.StoppingRule.lossless(model, 4)
btdagg.online.OnlineTally(rule=rule).add_one("x", 1, 0)
events = json.load(open("log.json"))
steps_left = 0


def step():
    global steps_left
    steps_left -= 1
    if steps_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

{code}

for line in sys.stdin:
    children = []
    for kill_point in json.loads(line):
        child = os.fork()
        if not child:
            steps_left = kill_point
            try:
                consume()
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            sys.stdout.flush()
            os._exit(0)
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.write(1, f"ended {{json.dumps(statuses)}}\\n".encode())
"""

STREAM = """
class Log:
    def read(self):
        begin = int(open("committed").read()) if os.path.exists("committed") else 0
        for offset in range(begin, len(events)):
            step()
            yield offset, events[offset]

    def commit(self, offset):
        step()
        with open("committed.new", "w") as file:
            file.write(str(offset))
        step()
        os.replace("committed.new", "committed")
        step()


def consume():
    save = btdagg.online.OnlineTally.save

    def watched(tally, path):
        step()
        save(tally, path)
        step()

    btdagg.online.OnlineTally.save = watched
    exec(LOOP, {"log": Log(), "__name__": "__main__"})
"""

DATABASE = """
import psycopg

def consume():
    names = {"model": model}
    exec(TABLES, names)
    execute = psycopg.Cursor.execute

    def watched(*arguments):
        step()
        return execute(*arguments)

    begin = names["database"].execute("SELECT next FROM offsets").fetchone()[0]
    psycopg.Cursor.execute = watched  # that of the offset, within the transaction
    for offset in range(begin, len(events), 5):
        batch = [(item, "gpt", sample, vote) for item, vote, sample in events[offset : offset + 5]]
        step()
        names["write"](batch, min(offset + 5, len(events)))
        step()
"""


class Consumers:
    """Processes that read a log in a folder, started several times."""

    def __init__(self, folder, code, events):
        (folder / "log.json").write_text(json.dumps(events))
        (folder / "worker.py").write_text(WORKER.format(code=code))
        self._process = subprocess.Popen(
            [sys.executable, "-u", "worker.py"], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *kill_points):
        """Run a process for each, and return their statuses and all that they printed."""
        self._process.stdin.write(json.dumps(kill_points) + "\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith("ended "):
                return json.loads(line.removeprefix("ended ")), printed
            printed.append(line.strip())
        raise AssertionError("the worker has ended")

    def close(self):
        self._process.communicate(timeout=20)


@pytest.fixture
def start(tmp_path):
    """Start consumers of some events; they are closed after the test."""
    started = []

    def start(code, events):
        started.append(Consumers(tmp_path, code, events))
        return started[-1]

    yield start
    for consumers in started:
        consumers.close()


def events_with_repeats(n_items):
    """Four samples of each item, some of them twice, in another order."""
    draw = random.Random(2)
    events = [(f"q{k % n_items}", draw.choice([1, 1, 0]), k // n_items) for k in range(4 * n_items)]
    events += events[::3]
    draw.shuffle(events)
    return events[: len(events) // 4 * 4]  # whole batches


def counts_by_dictionary(events):
    """Counts of distinct samples, without votes for items that were settled before them."""
    samples, settled = {}, set()
    for offset, (item, vote, sample) in enumerate(events):
        if item not in settled:
            samples.setdefault(item, {})[sample] = vote
        if offset % 4 == 3:
            counts = {
                item: tuple([*of_item.values()].count(side) for side in (-1, 0, 1))
                for item, of_item in samples.items()
            }
            settled |= {item for item, row in counts.items() if RULE.stops_one(*row)}
    return counts


@pytest.mark.integration
def test_a_stream_killed_between_any_two_steps_counts_each_vote_once(tmp_path, start):
    events = events_with_repeats(5)
    MODEL.save(tmp_path / "model.json")
    consumers = start(f"LOOP = {LOOP!r}\n{STREAM}", events)
    state, committed = tmp_path / "tally.state", tmp_path / "committed"

    def result():
        tally = OnlineTally.load(state, rule=RULE)
        ids, counts = tally.counts()
        return dict(zip(ids.tolist(), map(tuple, counts.tolist()), strict=True))

    def without_kills(kill_point=0):
        statuses, printed = consumers(kill_point)
        assert statuses[0] in (0, -9)
        if statuses[0]:
            (status,), rest = consumers(0)
            assert status == 0
            printed += rest
        return printed, statuses[0]

    printed, _ = without_kills()
    expected, lines = result(), {*printed}
    assert expected == counts_by_dictionary(events)
    n_killed = 0
    for kill_point in range(1, 1000):
        for file in (state, committed):
            file.unlink(missing_ok=True)
        printed, status = without_kills(kill_point)
        assert (result(), {*printed}) == (expected, lines), f"step {kill_point}"
        if not status:
            break
        n_killed += 1
    steps_of_a_batch = 4 + 2 + 3
    assert n_killed == len(events) // 4 * steps_of_a_batch


@pytest.mark.integration
def test_votes_in_postgresql_count_once_though_writers_are_killed_and_overlap(
    start, postgres, monkeypatch
):
    import psycopg

    events = events_with_repeats(8)
    url = postgres.database("exactly_once")
    monkeypatch.setenv("DATABASE_URL", url)
    tables = WRITE.partition("write([")[0]
    consumers = start(f"TABLES = {tables!r}\n{DATABASE}", events)
    wanted = Counter((item, vote) for item, vote, _ in {*events})
    with psycopg.connect(url, autocommit=True) as database:
        consumers(0)  # makes the tables, before several do at once
        n_steps = 3 * -(-len(events) // 5)
        for kill_points in [*([k + 1] for k in range(n_steps)), [0, 0], [7, 0, 12], [4, 4, 4, 0]]:
            database.execute("DELETE FROM votes")
            database.execute("UPDATE offsets SET next = 0")
            statuses, _ = consumers(*kill_points)
            assert {*statuses} <= {0, -9}
            assert len(kill_points) > 1 or statuses == [-9]
            assert consumers(0)[0] == [0]
            rows = database.execute("SELECT item, vote, count(*) FROM votes GROUP BY item, vote")
            assert {(item, vote): n for item, vote, n in rows} == wanted, kill_points
            assert database.execute("SELECT next FROM offsets").fetchone() == (len(events),)
