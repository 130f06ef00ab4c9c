"""The HTTP scorer, as a real process: answers, refusals, reload, shutdown, load."""

import asyncio
import http.client
import json
import math
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import DavidsonModel, InputError, Provenance, read_votes
from btdagg.files import digest_of
from btdagg.listening import bound
from btdagg.serve import Settings
from btdagg.serve.app import create_app
from btdagg.serve.arrow import CONTENT_TYPE, read_stream, write_stream
from btdagg.serve.bodies import Items, read_items
from btdagg.serve.gate import Buckets
from btdagg.serve.models import ModelFile
from btdagg.serve.provenance_check import ProvenanceCheck

MODEL = DavidsonModel(1.2, 2.0, 0.8)
OTHER = DavidsonModel(3.0, -1.0, 0.1)
JSON = "application/json"
PROGRAM = [sys.executable, "-c", "from btdagg.cli import main; main()"]


def test_it_starts_where_there_is_no_hangup(tmp_path, monkeypatch):
    MODEL.save(tmp_path / "model.json")
    monkeypatch.delattr(signal, "SIGHUP")  # as on Windows
    app = create_app(Settings(str(tmp_path / "model.json")))

    async def start_and_stop():
        async with app.router.lifespan_context(app):
            return True

    assert asyncio.run(start_and_stop())


class Scorer:
    """`btdagg serve` on a free port."""

    def __init__(self, folder, *options, token=None):
        self.model = folder / "model.json"
        MODEL.save(self.model)
        self.log = folder / "log"
        environment = {k: v for k, v in os.environ.items() if k != "BTDAGG_SERVE_TOKEN"}
        if token is not None:
            environment["BTDAGG_SERVE_TOKEN"] = token
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, "serve", str(self.model), "--port", "0", *options],
                stdout=log,
                stderr=log,
                env=environment,
            )
        start = time.monotonic()
        while "listening on" not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < start + 60
            time.sleep(0.02)
        line = self.log.read_text().partition("listening on http://127.0.0.1:")[2]
        self.port = int(line.split()[0])

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, response.headers, content

    def post(self, path, body, **headers):
        sent = {"Content-Type": JSON, **headers}
        status, headers, content = self.ask("POST", path, json.dumps(body), sent)
        return status, json.loads(content)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(30)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def start(tmp_path):
    started = []

    def start(*options, **named):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Scorer(folder, *options, **named))
        return started[-1]

    yield start
    for scorer in started:
        scorer.close()


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    found = Scorer(tmp_path_factory.mktemp("scorer"), "--max-body", "100000")
    yield found
    found.close()


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


COUNTS = [[0, 1, 11], [5, 2, 5], [12, 0, 0]]


def test_counts_are_decided(scorer):
    status, found = scorer.post("/v1/decide", {"counts": COUNTS})
    assert (status, found) == (200, {"model": digest_of(MODEL), "labels": [1, 0, -1]})
    minus, tie, plus = (list(column) for column in zip(*COUNTS, strict=True))
    body = {"minus": minus, "tie": tie, "plus": plus, "item": ["x", "y", "z"]}
    status, found = scorer.post("/v1/decide?probabilities=true", body)
    assert found["items"] == ["x", "y", "z"]
    assert found["labels"] == [1, 0, -1]
    assert found["probabilities"] == MODEL.predict_proba(COUNTS).tolist()
    assert scorer.post("/v1/decide", {"counts": []})[1]["labels"] == []


def test_votes_are_tallied_and_a_missing_one_is_no_tie(scorer):
    body = {"item": [7, 8, 7, 7], "vote": ["A", None, 1, -1]}
    wanted = {
        "model": digest_of(MODEL),
        "items": [7, 8],
        "counts": [[1, 0, 2], [0, 0, 0]],
        "n_missing": 1,
    }
    for path in ("/v1/tally", "/v1/decide"):
        status, found = scorer.post(path, body)
        assert (status, found) == (
            200,
            {**wanted, "labels": MODEL.decide(wanted["counts"]).tolist()},
        )
    assert scorer.post("/v1/tally?decide=false", body) == (200, wanted)


def test_repeated_samples_of_a_body_count_once_and_conflicting_ones_are_422(scorer):
    body = {"item": ["x", "y", "x"], "vote": [1, 0, 1], "sample": [0, 0, 0]}
    for path in ("/v1/tally", "/v1/decide"):
        status, found = scorer.post(path, body)
        assert (status, found["counts"]) == (200, [[0, 0, 1], [0, 1, 0]])
        status, found = scorer.post(path, {**body, "vote": [1, 0, -1]})
        assert (status, found["detail"]) == (
            422,
            "body, rows 1 and 3: both have item 'x', sample 0, with votes 1 and -1",
        )


@pytest.mark.parametrize("n_rows", [0, 3, 5000])
def test_arrow_streams_are_answered_in_kind(scorer, n_rows):
    counts = np.random.default_rng(0).integers(0, 20, size=(n_rows, 3)).astype(np.uint8)
    columns = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    items = [f"i{i}" for i in range(n_rows)]
    body = write_stream({"item": pa.array(items, pa.string()), **columns}, "")
    status, headers, content = scorer.ask(
        "POST", "/v1/decide?probabilities=1", body, {"Content-Type": CONTENT_TYPE}
    )
    assert (status, headers["content-type"]) == (200, CONTENT_TYPE)
    assert headers["x-btdagg-model"] == digest_of(MODEL)
    table = pa.ipc.open_stream(content).read_all()
    assert table.schema.metadata == {b"model": digest_of(MODEL).encode()}
    assert table["item"].to_pylist() == items
    assert table["label"].to_pylist() == MODEL.decide(counts).tolist()
    assert table["p_tie"].to_pylist() == MODEL.predict_proba(counts)[:, 1].tolist()
    headers = {"Content-Type": CONTENT_TYPE, "Accept": JSON}
    assert json.loads(scorer.ask("POST", "/v1/decide", body, headers)[2])["items"] == items


def test_arrow_votes_are_tallied(scorer):
    body = write_stream({"item": ["x", "x", "y"], "vote": pa.array([1, None, 0], pa.int8())}, "")
    content = scorer.ask("POST", "/v1/tally", body, {"Content-Type": CONTENT_TYPE})[2]
    assert read_stream(content).to_dicts() == [
        {"item": "x", "minus": 0, "tie": 0, "plus": 1, "label": 0},
        {"item": "y", "minus": 0, "tie": 1, "plus": 0, "label": 0},
    ]


BAD = [
    ({"counts": [[1, 2, 3], [1, -2, 3]]}, r"counts[1, 1] (tie) is -2, want a non-negative integer"),
    ({"counts": [[1, 2]]}, "counts has shape (1, 2), want (n, 3)"),
    ({"counts": [[1, 2, 3], [1, 2]]}, "counts is not a rectangular array of numbers"),
    ({"counts": 3}, "counts is 3, want a list"),
    ({"counts": [], "extra": []}, "unknown field 'extra', want counts, item"),
    ({"counts": [[1, 2, 3]], "item": ["a", "b"]}, "item has 2 rows, want 1 as in counts"),
    ({"counts": [[1, 2, 3]], "item": [[1]]}, "item[0] is a list, want a text or an integer"),
    ({"minus": [1], "tie": [1]}, "no field 'plus'; found 'minus', 'tie'"),
    ({"minus": [1, 2], "tie": [1], "plus": [1]}, "tie has 1 rows, want 2 as in minus"),
    ({"minus": [1], "tie": [None], "plus": [1]}, "tie[0] is None, want a number"),
    ({"minus": [1], "tie": [0.5], "plus": [1]}, "counts[0, 1] (tie) is 0.5, want a non-negative"),
    ({"minus": [1], "tie": ["x"], "plus": [1]}, "tie has dtype"),
    ({"item": ["a", "b"], "vote": [1, "Z"]}, "body, row 2, column vote: got 'Z', want -1, 0, 1"),
    ({"item": ["a"], "vote": [1, 0]}, "vote has 2 rows, want 1 as in item"),
    ({"item": ["a", 1], "vote": [1, 0]}, "item[1] is 1, want all texts or all integers"),
    ({"item": ["a", "b"], "vote": [1, {}]}, "vote[1] is a dict, want a number, a text or null"),
    ({"item": [None], "vote": [1]}, "item[0] is None, want a text or an integer"),
    ({"item": [1, 2**70], "vote": [1, 1]}, "item[1] is 1180591620717411303424, want an integer of"),
    ({"vote": [1]}, "no field 'item'; found 'vote'"),
    ({"counts": [[1, 2, 3], [1, False, 3]]}, "counts[1, 1] is False, want a non-negative integer"),
    ({"counts": [[True, False, True]]}, "counts[0, 0] is True, want a non-negative integer"),
    ({"minus": [1, True], "tie": [1, 1], "plus": [1, 1]}, "minus[1] is True, want a non-negative"),
    ({"item": ["a"], "vote": [True]}, "vote[0] is True, want a number, a text or null"),
    ({"counts": COUNTS[:2], "item": ["a", "\ud800"]}, "item[1] is '\\ud800', want text without a"),
    ({"item": ["\ud800", "?"], "vote": [1, 1]}, "item[0] is '\\ud800', want text without a lone"),
    ({"item": ["a"], "vote": [1], "judge": ["x\udfff"]}, "judge[0] is 'x\\udfff', want text"),
    ({}, "no field counts, minus or vote; found none"),
    ([], "body is not a JSON object"),
]


@pytest.mark.parametrize(("body", "message"), BAD)
def test_malformed_bodies_are_422_and_named(scorer, body, message):
    status, found = scorer.post("/v1/decide", body)
    assert status == 422
    assert set(found) == {"detail"}
    assert message in found["detail"]


def test_what_is_no_json_arrow_or_tally_is_422(scorer):
    def detail(body, kind=JSON, path="/v1/decide"):
        status, _, content = scorer.ask("POST", path, body, {"Content-Type": kind})
        assert status == 422
        return json.loads(content)["detail"]

    assert "body is not JSON: " in detail(b'{"counts": [[1')
    assert "body is not JSON: " in detail(b"\xff\xfe")
    twice = b'{"counts": [[0, 1, 2]], "counts": [[2, 1, 0]]}'
    assert detail(twice) == "field 'counts' is there twice"
    assert "body is not JSON: " in detail(b"[" * 90_000)
    assert "content type is 'text/csv', want 'application/json'" in detail(b"1", "text/csv")
    assert "not an Arrow IPC stream" in detail(b"", CONTENT_TYPE)
    assert "not an Arrow IPC stream" in detail(b"ARROW1" * 9, CONTENT_TYPE)
    counts = json.dumps({"counts": [[1, 2, 3]]})
    assert "no field 'vote'; found 'counts'" in detail(counts, path="/v1/tally")
    counts = {"minus": [1, 2], "tie": [1, 1], "plus": [2, 2]}

    def of_arrow(**columns):
        return detail(stream_of(pa.table({**counts, **columns})), CONTENT_TYPE)

    assert "minus[1] is null, want" in of_arrow(minus=[1, None])
    assert "item[1] is null, want a text or an integer" in of_arrow(item=["a", None])
    assert "item is of type Float64, want texts or integers" in of_arrow(item=[1.5, math.nan])
    assert "counts[1, 0] (minus) is NaN, want" in of_arrow(minus=[1.0, math.nan])
    large = pa.array([1, 2**64 - 1], pa.uint64())
    assert f"minus[1] is {2**64 - 1}, want at most {2**63 - 1}" in of_arrow(minus=large)
    assert f"item[1] is {2**64 - 1}, want at most {2**63 - 1}" in of_arrow(item=large)
    votes = stream_of(pa.table({"item": large, "vote": [1, 1]}))
    for path in ("/v1/decide", "/v1/tally"):
        message = detail(votes, CONTENT_TYPE, path)
        assert message == f"item[1] is {2**64 - 1}, want at most {2**63 - 1}"
    assert "unknown field 'extra', want minus, tie, plus, item, vote" in of_arrow(extra=[1, 1])


def test_a_refusal_quotes_little_of_what_came(scorer):
    name = "Z" * 50_000
    for body in ({"counts": [[1, 2, 10**4000]]}, {"item": ["a"], "vote": [name]}, {name: []}):
        status, found = scorer.post("/v1/decide", body)
        assert status == 422
        assert len(found["detail"]) < 600
    body = stream_of(pa.table({name: [1]}))
    status, _, content = scorer.ask("POST", "/v1/decide", body, {"Content-Type": CONTENT_TYPE})
    assert status == 422
    assert len(content) < 600


def test_a_bad_query_is_one_message(scorer):
    status, found = scorer.post("/v1/decide?probabilities=maybe", {"counts": COUNTS})
    assert (status, found) == (422, {"detail": "probabilities is 'maybe', want true or false"})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
def test_true_is_no_count_in_any_encoding(encoding):
    with pytest.raises(InputError, match=r"counts\[1, 2\] is True, want a non-negative integer"):
        read_items('{"counts": [[1, 2, 3], [1, 2, true]]}'.encode(encoding), JSON)
    items = read_items('{"counts": [[1, 2, 3]], "item": ["true"]}'.encode(encoding), JSON)
    assert items.counts.tolist() == [[1, 2, 3]]


def test_whole_numbers_of_any_type_are_counts():
    kinds = [pa.uint8(), pa.int16(), pa.uint64(), pa.float64()]
    for kind in kinds:
        columns = {"minus": pa.array([1, 200], kind), "tie": pa.array([3, 4]), "plus": [5, 6]}
        items = read_items(stream_of(pa.table(columns)), CONTENT_TYPE)
        assert items.counts.tolist() == [[1, 3, 5], [200, 4, 6]]
        assert items.counts.dtype == (float if kind == pa.float64() else np.int64)


def stream_of(table, **options):
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema, **options) as stream:
        stream.write_table(table)
    return out.getvalue().to_pybytes()


def test_streams_that_could_unfold_are_refused():
    table = pa.table({"minus": np.zeros(100_000, np.int64)})
    compressed = stream_of(table, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    assert len(compressed) < 10_000
    with pytest.raises(InputError, match="body has a compressed batch, want it uncompressed"):
        read_stream(compressed)
    words = pa.table({"item": pa.array(["x"] * 3).dictionary_encode()})
    with pytest.raises(InputError, match="column 'item' is of type dictionary"):
        read_stream(stream_of(words))
    with pytest.raises(InputError, match="column 'minus' is of type null, want numbers or text"):
        read_stream(stream_of(pa.table({"minus": pa.nulls(5)})))
    with pytest.raises(InputError, match="column 'a' is there twice"):
        read_stream(stream_of(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])))


_STREAM = write_stream({"item": ["a", "b"], "minus": [1, 2], "tie": [0, 3], "plus": [9, 9]}, "")


def test_a_stream_that_lies_about_its_lengths_is_refused_or_read():
    """Any number of it may be the length of a message, a batch, a buffer or a column."""
    n_read = 0
    for place in range(0, len(_STREAM) - 8, 4):
        for value in (-1, 0, 1 << 20, 2**31 - 1, 2**40, 2**62):
            damaged = bytearray(_STREAM)
            struct.pack_into("<q", damaged, place, value)
            try:
                items = read_items(bytes(damaged), CONTENT_TYPE)
            except InputError:
                continue
            n_read += 1
            assert len(items.counts) <= 2
    assert n_read > 0  # lengths of the padding, say


def test_a_stream_that_does_not_begin_with_a_schema_is_refused(scorer):
    """One whose first message says that it is another would kill the process."""
    body = bytearray(stream_of(pa.table({"minus": [0], "tie": [1], "plus": [11]})))
    assert len(body) == 504
    body[150], body[20] = 99, 90
    wanted = "body is not an Arrow IPC stream: it begins with a "
    batches = stream_of(pa.table({"minus": [0]}))
    size = 8 + struct.unpack_from("<i", batches, 4)[0]
    for damaged in (bytes(body), batches[size:]):
        status, _, content = scorer.ask(
            "POST", "/v1/decide", damaged, {"Content-Type": CONTENT_TYPE}
        )
        detail = json.loads(content)["detail"]
        assert status == 422
        assert detail.startswith(wanted), detail
        assert detail.endswith(" message, want a schema")
    assert scorer.ask("GET", "/healthz")[0] == 200
    with pytest.raises(InputError, match=r"^body is not an Arrow IPC stream: it has ended$"):
        read_stream(b"\xff\xff\xff\xff\0\0\0\0")


def test_a_stream_that_was_cut_anywhere_is_refused(scorer):
    """Also after its schema or between batches, where what is left looks like a whole stream."""
    schema = pa.schema([("minus", pa.int64()), ("tie", pa.int64()), ("plus", pa.int64())])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as stream:
        for row in COUNTS[:2]:
            stream.write_batch(pa.record_batch([[count] for count in row], schema))
    whole = out.getvalue().to_pybytes()
    assert read_items(whole, CONTENT_TYPE).counts.tolist() == COUNTS[:2]
    wanted = r"body (is not an Arrow IPC stream: |has no end-of-stream mark: was it cut off\?$)"
    looks_whole = []
    for length in range(len(whole)):
        with pytest.raises(InputError, match=wanted) as caught:
            read_items(whole[:length], CONTENT_TYPE)
        if "mark" in str(caught.value):
            looks_whole.append(length)
    empty = stream_of(schema.empty_table())
    assert whole.startswith(empty[:-8])
    assert {len(empty) - 8, len(whole) - 8} <= set(looks_whole)  # after the schema, all batches

    def status_of(body):
        return scorer.ask("POST", "/v1/decide", body, {"Content-Type": CONTENT_TYPE})

    for length in {*looks_whole, *range(0, len(whole), 16)}:
        status, _, content = status_of(whole[:length])
        assert (length, status) == (length, 422)
        assert json.loads(content)["detail"].startswith("body ")
    assert status_of(empty)[0] == status_of(whole)[0] == 200


def test_a_stream_that_something_follows_is_refused():
    for rest in (_STREAM, b"\n", bytes(8)):
        with pytest.raises(InputError, match="body continues after the end of its stream"):
            read_stream(_STREAM + rest)


def test_streams_of_polars_and_of_old_writers_have_an_end():
    frame = pl.DataFrame({"minus": [0], "tie": [1], "plus": [11]})
    assert read_items(frame.write_ipc_stream(None).getvalue(), CONTENT_TYPE).counts.shape == (1, 3)
    old = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    body = stream_of(frame.to_arrow(), options=old)
    assert body[-8:-4] != b"\xff\xff\xff\xff"
    assert read_items(body, CONTENT_TYPE).counts.tolist() == [[0, 1, 11]]


def test_a_few_changed_bytes_are_read_or_refused():
    streams = [
        _STREAM,
        stream_of(pa.table({"minus": [0], "tie": [1], "plus": [11]})),
        stream_of(pa.table({"item": ["a", "bc"], "vote": ["A", None], "sample": [0, 1]})),
    ]
    random = np.random.default_rng(0)
    for number in range(3000):
        damaged = bytearray(streams[number % len(streams)])
        for place in random.integers(len(damaged), size=random.integers(1, 4)):
            damaged[place] = random.choice([0, 1, 2, 4, 8, 90, 99, 127, 128, 255])
        try:
            items = read_items(bytes(damaged), CONTENT_TYPE)
        except InputError:
            continue
        assert items.counts.shape[1] == 3


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(_STREAM) - 1), st.binary(min_size=1, max_size=4), st.booleans())
def test_a_damaged_stream_is_read_or_refused(place, bytes_, cut):
    damaged = (
        _STREAM[:place] + bytes_ + ("" if cut else _STREAM[place + len(bytes_) :].hex()).encode()
    )
    whole = _STREAM[:place] + bytes_ + (b"" if cut else _STREAM[place + len(bytes_) :])
    for body in (damaged, whole):
        try:
            items = read_items(body, CONTENT_TYPE)
        except InputError:
            continue
        assert items.counts.shape[1] == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["item", "vote", "minus", "tie", "plus", "counts", "sample", "order"])


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(names, json_values, max_size=5))
def test_any_json_is_read_or_refused(value):
    body = json.dumps(value).encode()
    try:
        items = read_items(body, JSON)
        MODEL.decide(items.counts)
    except InputError:
        return
    assert items.counts.shape[1] == 3


def test_large_bodies_are_413_before_they_are_read(scorer):
    with scorer.connect() as client:
        client.sendall(
            b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n"
            b"Content-Type: application/json\r\n\r\n"
        )
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
    with scorer.connect() as client:
        client.sendall(b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(101):  # and never the end
            client.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
    status, _, content = scorer.ask("POST", "/v1/decide", b" " * 5_000_000)
    assert status == 413
    assert json.loads(content) == {"detail": "body is larger than 100000 bytes"}


def test_health_metrics_and_pages(scorer):
    assert scorer.ask("GET", "/healthz")[2] == b'{"status":"ok"}'
    status, _, content = scorer.ask("GET", "/readyz")
    assert (status, json.loads(content)) == (200, {"status": "ready", "model": digest_of(MODEL)})
    scorer.post("/v1/decide", {"counts": [[1, 2]]})
    text = scorer.ask("GET", "/metrics")[2].decode()
    assert 'btdagg_requests_total{path="/v1/decide",status="422"}' in text
    assert "btdagg_request_seconds_bucket" in text
    scorer.ask("GET", "/no/such/path")
    assert "no/such" not in scorer.ask("GET", "/metrics")[2].decode()
    page = scorer.ask("GET", "/docs")[2].decode()
    assert "/v1/decide" in page
    assert "src=" not in page  # nothing is loaded from elsewhere
    assert "http" not in page.replace("http-equiv", "")
    description = json.loads(scorer.ask("GET", "/openapi.json")[2])
    assert "422" in description["paths"]["/v1/tally"]["post"]["responses"]


def test_no_path_is_redirected(scorer):
    """A redirect would lead to whatever Host the client, or somebody between, has sent."""
    for method, path in (
        ("POST", "/v1/decide/"), ("POST", "/v1/tally/"), ("POST", "/v1/reload/"),
        ("GET", "/healthz/"), ("GET", "/readyz/"), ("GET", "/metrics/"), ("GET", "/docs/"),
        ("GET", "/openapi.json/"),
    ):  # fmt: skip
        status, headers, content = scorer.ask(method, path, b"{}", {"Host": "evil.example"})
        assert (path, status) == (path, 404)
        assert "location" not in headers
        assert b"evil" not in content


def test_a_token_is_asked_for(start):
    scorer = start(token="secret")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
        status, sent, content = scorer.ask("POST", "/v1/decide", b"{}", headers)
        assert (status, sent["www-authenticate"]) == (401, "Bearer")
        assert "no valid bearer token" in json.loads(content)["detail"]
    assert scorer.ask("GET", "/metrics")[0] == 401
    assert scorer.ask("GET", "/healthz")[0] == 200
    for scheme in ("Bearer", "bearer"):
        status, _ = scorer.post("/v1/decide", {"counts": COUNTS}, Authorization=f"{scheme} secret")
        assert status == 200


def test_too_many_requests_are_429(start):
    scorer = start("--rate", "0.5", "--burst", "3")
    answers = [scorer.ask("POST", "/v1/decide", b"{}", {"Content-Type": JSON}) for _ in range(4)]
    assert [status for status, *_ in answers] == [422, 422, 422, 429]
    assert 1 <= int(answers[-1][1]["retry-after"]) <= 2
    assert scorer.ask("GET", "/healthz")[0] == 200


def test_a_bucket_fills_up_again():
    now = [0.0]
    buckets = Buckets(2.0, 3, lambda: now[0])
    assert [buckets.seconds_to_wait("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.seconds_to_wait("b") == 0
    now[0] = 0.5
    assert [buckets.seconds_to_wait("a") for _ in range(2)] == [0, 0.5]
    now[0] = 100
    assert [buckets.seconds_to_wait("a") for _ in range(4)] == [0, 0, 0, 0.5]


def received(client):
    """What comes until the connection is closed."""
    parts = b""
    try:
        while part := client.recv(10_000):
            parts += part
    except ConnectionResetError:
        pass
    return parts


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HT", b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"],
)
def test_slow_clients_are_cut_off(start, sent):
    scorer = start("--timeout", "0.5")
    with scorer.connect() as client:
        client.sendall(sent)
        answer = received(client)
    if b"decide" in sent:
        assert answer.startswith(b"HTTP/1.1 408 ")
    assert scorer.ask("GET", "/healthz")[0] == 200


ALIVE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def one_answer(client):
    """What comes until the end of a JSON object."""
    parts = b""
    while not parts.endswith(b"}"):
        part = client.recv(10_000)
        assert part, parts
        parts += part
    return parts


def test_a_second_request_of_a_connection_may_be_no_slower(start):
    scorer = start("--timeout", "0.5")
    with scorer.connect() as client:
        client.sendall(ALIVE)
        assert one_answer(client).startswith(b"HTTP/1.1 200 ")
        client.settimeout(0.2)
        end = time.monotonic() + 10
        for part in (ALIVE[i : i + 1] for i in range(len(ALIVE) - 1)):  # and never the end
            assert time.monotonic() < end
            try:
                client.sendall(part)
                if client.recv(1000) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("it was never cut off")


def test_a_connection_goes_on_after_a_body_that_was_refused(start):
    scorer = start("--timeout", "2", "--max-body", "1000")
    with scorer.connect() as client:
        head = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n"
        client.sendall(head + b"x" * 1000)
        assert one_answer(client).startswith(b"HTTP/1.1 413 ")
        time.sleep(1.2)
        client.sendall(b"x" * 1000)
        time.sleep(1.4)  # beyond the deadline of the first
        client.sendall(ALIVE)
        assert one_answer(client).startswith(b"HTTP/1.1 200 ")


def test_a_model_that_changes_is_used_and_a_broken_one_is_not(start):
    scorer = start("--reload-every", "0.05")

    def served():
        return json.loads(scorer.ask("GET", "/readyz")[2])["model"]

    OTHER.save(scorer.model)
    until(lambda: served() == digest_of(OTHER))
    assert (
        scorer.post("/v1/decide", {"counts": [[0, 1, 2]]})[1]["labels"]
        == OTHER.decide([[0, 1, 2]]).tolist()
    )
    scorer.model.write_text("{")
    until(lambda: "stays in use: " in scorer.log.read_text())
    status, found = scorer.post("/v1/reload", {})
    assert status == 422
    assert "not JSON" in found["detail"]
    assert served() == digest_of(OTHER)
    scorer.model.unlink()
    assert scorer.post("/v1/reload", {})[0] == 422
    assert served() == digest_of(OTHER)


def test_reload_by_request_and_by_signal(start):
    scorer = start("--reload-every", "1000")
    OTHER.save(scorer.model)
    assert scorer.post("/v1/reload", {}) == (200, {"model": digest_of(OTHER), "changed": True})
    assert scorer.post("/v1/reload", {}) == (200, {"model": digest_of(OTHER), "changed": False})
    MODEL.save(scorer.model)
    scorer.process.send_signal(signal.SIGHUP)
    until(lambda: json.loads(scorer.ask("GET", "/readyz")[2])["model"] == digest_of(MODEL))


def test_what_was_accepted_is_finished_at_shutdown(start):
    scorer = start()
    body = json.dumps({"counts": COUNTS}).encode()
    head = f"Host: x\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with scorer.connect() as client, scorer.connect() as idle:
        client.sendall(b"POST /v1/decide HTTP/1.1\r\n" + head + body[:10])
        time.sleep(0.3)
        scorer.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        with pytest.raises(OSError):
            scorer.connect()
        assert idle.recv(100) == b""
        client.sendall(body[10:])
        answer = b""
        while part := client.recv(10_000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()
    assert scorer.process.wait(30) == 0
    assert "accepted 1, answered {'200': 1}" in scorer.log.read_text()


def test_a_file_that_is_no_model_is_an_error_and_so_is_a_bad_option(tmp_path, capsys):
    from btdagg.cli import run

    assert run(["serve", str(tmp_path / "none.json")]) == 2
    assert "none.json: No such file or directory" in capsys.readouterr().err
    for arguments, message in (
        ({"max_body": 0}, "max_body is 0, want an integer of at least 1"),
        ({"rate": -1}, "rate is -1, want at least 0"),
        ({"timeout": 0}, "timeout is 0, want at least 0.01"),
        ({"token": " "}, "token is empty"),
        ({"token": "secret "}, "token begins or ends with a blank"),
        ({"token": "ä"}, "token has characters that are not printable ASCII"),
    ):
        with pytest.raises(InputError, match=message):
            Settings(model=Path("m"), **arguments)
    assert "secret" not in repr(Settings(model=Path("m"), token="secret"))


def test_an_address_that_cannot_be_listened_on_is_one_line(scorer):
    """Two servers on one port would share its requests."""
    for options, message in (
        (["--port", "99999"], "port is 99999, want 0 to 65535"),
        (["--port", "-1"], "port is -1, want 0 to 65535"),
        (["--port", str(scorer.port)], f"'127.0.0.1', port {scorer.port}: Address already in use"),
        (["--host", "no such host"], "cannot listen on 'no such host', port 8000: "),
        (["--host", "a" * 70], f"cannot listen on '{'a' * 70}', port 8000: "),
        (["--host", "192.0.2.1"], "port 8000: Cannot assign requested address"),
    ):
        done = subprocess.run(
            [*PROGRAM, "serve", str(scorer.model), *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("btdagg: ")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stdout == ""


def test_every_address_of_a_name_is_listened_on(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{i}", 0)) for i in (1, 1, 2)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    sockets = bound("two", 0)
    assert [each.getsockname()[0] for each in sockets] == ["127.0.0.1", "127.0.0.2"]
    for each in sockets:
        each.close()


def test_a_reload_says_whether_the_model_changed(tmp_path):
    file = tmp_path / "model.json"
    MODEL.save(file)
    served = ModelFile(file)
    assert not served.is_stale()
    MODEL.save(file)
    assert served.is_stale()
    assert not served.reload()
    assert not served.is_stale()
    OTHER.save(file)
    assert served.reload()
    assert served.current.digest == digest_of(OTHER)
    file.write_text("{}")
    with pytest.raises(InputError, match="no btdagg model"):
        served.reload()
    assert served.current.model == OTHER


def test_answers_say_where_items_are_not_what_the_model_was_fitted_to(start):
    known = Provenance(n_votes=12, n_labels=50, judge="g")
    scorer = start("--reload-every", "1000")
    model = replace(MODEL, provenance=known)
    model.save(scorer.model)
    assert scorer.post("/v1/reload", {}) == (200, {"model": digest_of(model), "changed": True})
    assert digest_of(model) != digest_of(MODEL)
    assert json.loads(scorer.ask("GET", "/v1/model")[2]) == {
        "model": digest_of(model),
        **MODEL.numbers,
        "provenance": {"n_votes": 12, "n_labels": 50, "judge": ["g"]},
    }
    page = scorer.ask("GET", "/docs")[2].decode()
    assert f"Model {digest_of(model)}, fitted to 12 votes an item, 50 labels, judge g." in page
    # As many votes, or fewer, which may be missing, are no difference.
    for counts in (COUNTS, [[0, 0, 1]], []):
        status, found = scorer.post("/v1/decide", {"counts": counts})
        assert (status, list(found)) == (200, ["model", "labels"])
    more = "items have up to 13 votes, and the model was fitted for 12 an item"
    _, found = scorer.post("/v1/decide", {"counts": [*COUNTS, [0, 0, 13]]})
    assert found["warnings"] == [more]
    assert found["labels"] == MODEL.decide([*COUNTS, [0, 0, 13]]).tolist()
    votes = {"item": ["x", "x"], "vote": [1, 0], "judge": ["g", "h"]}
    other = "judge is h, and the model was fitted for g"
    for path in ("/v1/decide", "/v1/tally"):
        assert scorer.post(path, votes)[1]["warnings"] == [other]
    assert "warnings" not in scorer.post("/v1/tally?decide=false", votes)[1]
    table = pa.table({"minus": [0], "tie": [0], "plus": [13]})
    headers = {"Content-Type": CONTENT_TYPE}
    _, _, content = scorer.ask("POST", "/v1/decide", stream_of(table), headers)
    metadata = pa.ipc.open_stream(content).read_all().schema.metadata
    assert json.loads(metadata[b"warnings"]) == [more]


def test_votes_that_are_always_fewer_are_logged_once(caplog):
    comparison = ProvenanceCheck(Provenance(n_votes=12))
    few, enough = Items(np.tile([1, 2, 3], (500, 1))), Items(np.array([[0, 0, 12]]))
    assert comparison.differences(few) == ()
    assert caplog.messages == []
    for _ in range(3):
        assert comparison.differences(few) == ()
    assert caplog.messages == [
        "no item of 1000 or more has had 12 votes, which the model was fitted for"
    ]
    caplog.clear()
    comparison = ProvenanceCheck(Provenance(n_votes=12))
    for items in (enough, few, few, few):
        comparison.differences(items)
    for judge in range(100):
        votes = read_votes({"item": [1], "vote": [1], "judge": [f"line\n{judge}"]})
        ProvenanceCheck(None).differences(Items(few.counts, votes=votes))
        comparison.differences(Items(few.counts, votes=votes))
    assert caplog.messages == []  # of a judge it knows nothing
    comparison = ProvenanceCheck(Provenance(judge="g"))
    for judge in range(100):
        votes = read_votes({"item": [1], "vote": [1], "judge": [f"line\n{judge}"]})
        comparison.differences(Items(few.counts, votes=votes))
    assert len(caplog.messages) == 20
    assert caplog.messages[0] == "judge is line\\n0, and the model was fitted for g"


@pytest.mark.soak
def test_under_load_no_answer_is_wrong_and_none_is_lost():
    """Twenty seconds from a process of its own; `benches/serve.py` says what it does."""
    script = Path(__file__).parents[1] / "benches/serve.py"
    for seconds in (20, 120):  # longer where the machine has other things to do
        done = subprocess.run(
            [sys.executable, str(script), "--minutes", str(seconds / 60)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        if found["answers"] > 100:
            break
    assert found["wrong"] == 0, found
    assert set(found["accepted_and_lost"].values()) == {0}, found
    assert found["accepted_without_an_end"] == 0, found
    assert found["server_errors"] == 0, found
    assert set(found["statuses"]) - {"408"} == {"200", "401", "413", "422"}, found
    assert found["statuses"]["200"] > 20
    assert found["models_seen"] >= 2
    assert found["slow_clients_cut_off"] >= 1
    assert found["answers_after_the_kill"] >= 1


def test_polars_columns_come_back_as_they_were():
    frame = read_stream(_STREAM)
    assert frame.equals(
        pl.DataFrame({"item": ["a", "b"], "minus": [1, 2], "tie": [0, 3], "plus": [9, 9]})
    )
