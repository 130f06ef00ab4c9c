"""The example of a Rust service counts and decides as Python does, and survives its own death."""

import http.client
import json
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from btdagg import DavidsonModel, InputError
from btdagg.online import OnlineTally, StoppingRule

FOLDER = Path(__file__).parents[2] / "examples/rust_service"
MODEL = DavidsonModel(2.2345678901234567, 0.6, 0.4, 0.5, 2.0, usual_votes=9)
N_VOTES = 8

pytestmark = pytest.mark.integration


class Service:
    """A process of the service, and a connection to it."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().removeprefix("listening on ").strip()
        self.connection = http.client.HTTPConnection(address, timeout=10)

    def ask(self, method, path, body=None):
        """Status and answer: JSON, or the text of a refusal."""
        content = None if body is None else json.dumps(body)
        self.connection.request(method, path, content, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read().decode()
        is_json = response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(text) if is_json else text

    def end(self, with_signal):
        """End it, with a connection still open; return the exit status."""
        self.process.send_signal(with_signal)
        status = self.process.wait(timeout=20)
        self.connection.close()
        self.process.stdout.close()
        return status


@pytest.fixture(scope="module")
def program(cargo):
    subprocess.run(["cargo", "build", "--quiet", "--locked"], cwd=FOLDER, check=True)
    return FOLDER / "target/debug/btdagg-service"


@pytest.fixture
def start(program, tmp_path):
    """Start the service on the folder's model and state, as often as the test wants."""
    MODEL.save(tmp_path / "model.json")
    services = []

    def started():
        files = [tmp_path / "model.json", tmp_path / "tally.state"]
        services.append(Service([program, *files, str(N_VOTES), "127.0.0.1:0"]))
        return services[-1]

    yield started
    for service in services:
        if service.process.returncode is None:
            service.end(signal.SIGKILL)


def refusal(program, *arguments):
    """What it says where it does not start."""
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=20
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_counts_are_decided_as_python_decides_them(start):
    service = start()
    counts = np.vstack([np.random.default_rng(0).integers(0, 40, (300, 3)), [[2**40, 3, 7]]])
    counts = np.vstack([counts, counts * 0.3])
    status, answer = service.ask("POST", "/decide", counts.tolist())
    assert status == 200
    assert answer["labels"] == MODEL.decide(counts).tolist()
    assert answer["probabilities"] == MODEL.predict_proba(counts).tolist()
    expected = "counts[1, 0] (minus) is -1, expected a finite number of at least 0"
    assert service.ask("POST", "/decide", [[1, 2, 3], [-1, 2, 3]]) == (422, expected)
    for body, status in [([[1, 2]], 422), ("x", 422), ([[1, 2, None]], 422)]:
        assert service.ask("POST", "/decide", body)[0] == status
    assert service.ask("GET", "/decide")[0] == 405
    assert service.ask("POST", "/decide", []) == (200, {"labels": [], "probabilities": []})


def test_votes_are_counted_across_kills_as_python_counts_them(start, tmp_path):
    random = np.random.default_rng(1)
    rows = [
        {"item": f"item {item} é/?", "judge": judge, "sample": sample, "vote": int(vote)}
        for (item, judge, sample), vote in zip(
            ((item, judge, sample) for item in range(80) for judge in "ab" for sample in range(3)),
            random.choice([-1, 0, 1, 1, 1], 480),
            strict=True,
        )
    ]
    rows = [rows[place] for place in random.permutation(len(rows))]
    rule = StoppingRule.lossless(MODEL, N_VOTES)
    tally = OnlineTally(MODEL, late="drop", max_items=1_000_000)

    def add(batch):
        columns = ([row[name] for row in batch] for name in ("item", "vote", "sample"))
        tally.add(*columns, judges=[row["judge"] for row in batch])

    service = start()
    first, second, third = rows[:200], rows[200:400], rows[400:]
    assert service.ask("POST", "/votes", first) == (
        200,
        {"accepted": 200, "late": [], "refused": []},
    )
    assert service.ask("POST", "/snapshot") == (200, {"items": len({r["item"] for r in first})})
    service.ask("POST", "/votes", second)
    assert service.end(signal.SIGKILL) == -signal.SIGKILL  # loses the second batch

    service = start()
    service.ask("POST", "/votes", rows[100:400])  # again, more than was lost
    for row in third:
        assert service.ask("POST", "/votes", row)[1]["accepted"] == 1
    withdrawn = {name: rows[0][name] for name in ("item", "judge", "sample")}
    assert service.ask("DELETE", "/votes", withdrawn) == (200, {"was_settled": False})
    gone = "/items/" + "item%207%20%C3%A9%2F%3F"
    assert service.ask("DELETE", gone) == (200, {"forgotten": 1})
    assert service.ask("GET", gone) == (404, 'no votes for "item 7 é/?"')
    add(rows)
    tally.withdraw(withdrawn["item"], withdrawn["sample"], withdrawn["judge"])
    tally.forget(["item 7 é/?"])
    assert service.end(signal.SIGTERM) == 0

    state = (tmp_path / "tally.state").read_bytes()
    saved = OnlineTally.from_bytes(state, MODEL)
    assert saved.to_bytes() == tally.to_bytes()
    ids, counts = tally.counts()
    service = start()
    p = MODEL.predict_proba(counts)
    for item, row, label, chances in zip(ids, counts, MODEL.decide(counts), p, strict=True):
        path = "/items/" + "".join(f"%{byte:02x}" for byte in item.encode())
        expected = {"counts": row.tolist(), "label": label, "probabilities": chances.tolist()}
        assert service.ask("GET", path) == (200, expected)
    settled = rule.stops(counts)
    expected = [
        {"item": item, "label": label}
        for item, label in zip(ids[settled], rule.decide(counts[settled]).tolist(), strict=True)
    ]
    assert 0 < len(expected) < len(ids)
    assert service.ask("POST", "/settle") == (200, expected)
    assert service.ask("POST", "/settle") == (200, [])
    open_item = ids[~settled][0]
    late = [
        {"item": expected[0]["item"], "sample": 100, "vote": 1},
        {"item": open_item, "sample": 100, "vote": 1},
    ]
    answer = {"accepted": 1, "late": [0], "refused": []}
    assert service.ask("POST", "/votes", late) == (200, answer)
    assert service.end(signal.SIGINT) == 0
    assert start().ask("POST", "/votes", late) == (200, answer)  # still settled


def test_bad_votes_are_listed_and_the_others_count(start):
    service = start()
    good = {"item": "q", "sample": 0, "vote": 1}
    batch = [
        good,
        good | {"vote": 2},
        good | {"sample": 4096},
        good | {"sample": -1},
        good | {"vote": 300},
        {"item": "q", "sample": 1},
        {"item": 7, "sample": 1, "vote": 1},
        good | {"votes": 1},
        "q",
        good | {"sample": 1},
    ]
    status, answer = service.ask("POST", "/votes", batch)
    assert (status, answer["accepted"], answer["late"]) == (200, 2, [])
    details = {row["row"]: row["detail"] for row in answer["refused"]}
    assert list(details) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert details[1] == "votes[1] is 2, expected -1, 0 or 1"
    assert details[2] == "samples[2] is 4096, expected an integer from 0 to 4095"
    assert details[5] == "missing field `vote`"
    assert service.ask("GET", "/items/q")[1]["counts"] == [0, 0, 2]
    status, answer = service.ask("POST", "/votes", good | {"vote": -2})
    assert (status, answer["refused"]) == (
        422,
        [{"row": 0, "detail": "votes[0] is -2, expected -1, 0 or 1"}],
    )
    assert service.ask("POST", "/votes", []) == (200, {"accepted": 0, "late": [], "refused": []})
    assert service.ask("DELETE", "/votes", {"item": "q", "sample": 4096})[0] == 422


def test_what_it_does_not_start_with_is_named(program, start, tmp_path):
    service = start()
    service.ask("POST", "/votes", {"item": "q", "sample": 0, "vote": 1})
    service.end(signal.SIGTERM)
    model, state, other = (tmp_path / name for name in ("model.json", "tally.state", "other.json"))
    DavidsonModel(0.9, 1.5, 0.8).save(other)
    with pytest.raises(InputError, match="by which the saved votes were decided"):
        OnlineTally.load(state, DavidsonModel.load(other))
    assert "tally.state: another model or rule decided its votes" in refusal(
        program, other, state, "6"
    )
    other.write_text("{}")
    assert "other.json: format is null, expected" in refusal(program, other, state, "6")
    assert "usage: btdagg-service MODEL STATE VOTES" in refusal(program, model)
    assert "none/state cannot be written: No such file" in refusal(
        program, model, tmp_path / "none/state", "6"
    )
    state.write_bytes(state.read_bytes()[:-1])
    assert "tally.state: state is damaged" in refusal(program, model, state, "6")
