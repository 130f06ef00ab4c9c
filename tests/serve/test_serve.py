"""The HTTP scorer, as a real process: answers, refusals, shutdown, load."""

import http.client
import json
import math
import os
import re
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
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from btdagg import DavidsonModel, InputError
from btdagg._util.files import digest_of
from btdagg._util.listening import bound
from btdagg.serve import create_app
from btdagg.serve.arrow import CONTENT_TYPE, read_stream, write_stream
from btdagg.serve.items import of_arrow, of_json
from btdagg.votes import Provenance

MODEL = DavidsonModel(1.2, 2.0, 0.8)
OTHER = DavidsonModel(3.0, -1.0, 0.1)
JSON = "application/json"
PROGRAM = [sys.executable, "-c", "from btdagg.cli import main; main()"]


class Scorer:
    """`btdagg serve` on a free port."""

    def __init__(self, folder, *options, token=None, missing=()):
        self.model = folder / "model.json"
        MODEL.save(self.model)
        OTHER.save(folder / "other.json")
        self.log = folder / "log"
        environment = {k: v for k, v in os.environ.items() if k != "BTDAGG_SERVE_TOKEN"}
        if token is not None:
            environment["BTDAGG_SERVE_TOKEN"] = token
        *python, code = PROGRAM
        code = f"import sys; sys.modules.update(dict.fromkeys({missing})); {code}"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *python,
                    code,
                    "serve",
                    self.model,
                    folder / "other.json",
                    "--port",
                    "0",
                    *options,
                ],
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


def test_whole_numbers_of_any_type_are_counts():
    kinds = [pa.uint8(), pa.int16(), pa.uint64(), pa.float64()]
    for kind in kinds:
        columns = {"minus": pa.array([1, 200], kind), "tie": pa.array([3, 4]), "plus": [5, 6]}
        items = of_arrow(stream_of(pa.table(columns)), False)
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
    with pytest.raises(InputError, match="body has a compressed batch, expected it uncompressed"):
        read_stream(compressed)
    words = pa.table({"item": pa.array(["x"] * 3).dictionary_encode()})
    with pytest.raises(InputError, match="column 'item' is of type dictionary"):
        read_stream(stream_of(words))
    with pytest.raises(
        InputError, match="column 'minus' is of type null, expected numbers or text"
    ):
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
                items = of_arrow(bytes(damaged), False)
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
        assert detail.endswith(" message, expected a schema")
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
    assert of_arrow(whole, False).counts.tolist() == COUNTS[:2]
    wanted = r"body (is not an Arrow IPC stream: |has no end-of-stream mark: was it cut off\?$)"
    looks_whole = []
    for length in range(len(whole)):
        with pytest.raises(InputError, match=wanted) as caught:
            of_arrow(whole[:length], False)
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
    assert of_arrow(frame.write_ipc_stream(None).getvalue(), False).counts.shape == (1, 3)
    old = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    body = stream_of(frame.to_arrow(), options=old)
    assert body[-8:-4] != b"\xff\xff\xff\xff"
    assert of_arrow(body, False).counts.tolist() == [[0, 1, 11]]


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
            items = of_arrow(bytes(damaged), False)
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
            items = of_arrow(body, False)
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
        items = of_json(body, False)
        MODEL.decide(items.counts)
    except (InputError, ValidationError):
        return
    assert items.counts.shape[1] == 3


BAD = [
    ({"counts": [[1, 2, 3], [1, -2, 3]]}, "counts[1][1]: "),
    ({"counts": [[1, 2]]}, "counts[0]: "),
    ({"counts": [[1, 2, 3, 4]]}, "counts[0]: "),
    ({"counts": 3}, "counts: "),
    ({"counts": [], "extra": []}, "extra: "),
    ({"counts": [[1, 2, 3]], "item": ["a", "b"]}, "item has 2 rows"),
    ({"counts": [[1, 2, 3]], "item": [[1]]}, "item: "),
    ({"minus": [1], "tie": [1]}, "plus: "),
    ({"minus": [1, 2], "tie": [1], "plus": [1]}, "tie has 1 rows"),
    ({"minus": [1], "tie": [None], "plus": [1]}, "tie[0]: "),
    ({"minus": [1], "tie": [0.5], "plus": [1]}, "tie[0]: "),
    ({"minus": [1, True], "tie": [1, 1], "plus": [1, 1]}, "minus[1]: "),
    ({"counts": [[1, 2, 3], [1, False, 3]]}, "counts[1][1]: "),
    ({"counts": [[1, 2, 2**63]]}, "counts[0][2]: "),
    ({"counts": [[1, 2, 10**4000]]}, "counts[0][2]: "),
    ({"item": ["a", "b"], "vote": [1, "Z"]}, "vote[1]: "),
    ({"item": ["a", "b"], "vote": [1, {}]}, "vote[1]: "),
    ({"item": ["a"], "vote": [True]}, "vote[0]: "),
    ({"item": ["a"], "vote": [1, 0]}, "vote has 2 rows"),
    ({"item": ["a", 1], "vote": [1, 0]}, "item: "),
    ({"item": [None], "vote": [1]}, "item: "),
    ({"item": [1, 2**70], "vote": [1, 1]}, "item: "),
    ({"item": ["\ud800"], "vote": [1]}, "body: "),
    ({"item": ["a"], "vote": [1], "order": ["XY"]}, "order[0]: "),
    ({"vote": [1]}, "item: "),
    ({"Z" * 50_000: []}, "body: "),
    ({}, "body: "),
    ([], "body: "),
]


@pytest.mark.parametrize(("body", "place"), BAD)
def test_malformed_bodies_are_422_and_name_the_place(scorer, body, place):
    for path in ("/v1/decide", "/v1/tally") if "vote" in body else ("/v1/decide",):
        status, found = scorer.post(path, body)
        assert (status, list(found)) == (422, ["detail"])
        assert found["detail"].startswith(place)
        assert len(found["detail"]) < 600


def test_other_refusals_have_one_message(scorer):
    def refused(path, body=b"", kind=JSON):
        status, _, content = scorer.ask("POST", path, body, {"Content-Type": kind})
        assert list(json.loads(content)) == ["detail"]
        return status, json.loads(content)["detail"]

    assert refused("/v1/decide", b'{"counts": [[1')[0] == 422
    assert refused("/v1/decide", b"\xff\xfe")[0] == 422
    assert refused("/v1/decide", b"[" * 90_000)[0] == 422
    assert refused("/v1/decide")[0] == 422
    assert refused("/v1/decide", b"1", "text/csv")[0] == 415
    assert refused("/v1/decide", b"ARROW1" * 9, CONTENT_TYPE)[0] == 422
    assert refused("/v1/decide?model=none", b'{"counts": []}') == (
        404,
        "no model 'none'; expected model, other",
    )
    status, detail = refused("/v1/decide?probabilities=maybe", b'{"counts": []}')
    assert (status, detail.split(":")[0]) == (422, "probabilities")
    counts = {"minus": [1, 2], "tie": [1, 1], "plus": [2, 2]}

    def of_arrow_columns(path="/v1/decide", **columns):
        return refused(path, stream_of(pa.table({**counts, **columns})), CONTENT_TYPE)[1]

    assert "minus[1] is null" in of_arrow_columns(minus=[1, None])
    assert "item[1] is null" in of_arrow_columns(item=["a", None])
    assert "item is of type Float64" in of_arrow_columns(item=[1.5, math.nan])
    assert "counts[1, 0] (minus) is NaN" in of_arrow_columns(minus=[1.0, math.nan])
    large = pa.array([1, 2**64 - 1], pa.uint64())
    assert "minus has a count of 2^63 or more" in of_arrow_columns(minus=large)
    assert "unknown field 'extra'" in of_arrow_columns(extra=[1, 1])
    assert "unknown field 'minus'" in of_arrow_columns("/v1/tally")
    for path in ("/v1/decide", "/v1/tally"):
        votes = stream_of(pa.table({"item": large, "vote": [1, 1]}))
        assert refused(path, votes, CONTENT_TYPE)[0] == 422


def test_models_are_chosen_by_name(scorer):
    status, found = scorer.post("/v1/decide?model=other", {"counts": [[0, 1, 2], [5, 2, 4]]})
    labels = OTHER.decide([[0, 1, 2], [5, 2, 4]]).tolist()
    assert (status, found) == (200, {"model": digest_of(OTHER), "labels": labels})
    listed = json.loads(scorer.ask("GET", "/v1/models")[2])
    assert [(each["name"], each["model"]) for each in listed] == [
        ("model", digest_of(MODEL)),
        ("other", digest_of(OTHER)),
    ]
    assert {name: listed[1][name] for name in OTHER.numbers} == OTHER.numbers


def test_answers_say_where_items_are_not_what_the_model_was_fitted_to():
    known = Provenance(n_votes=12, n_labels=50, judge="g")
    client = TestClient(create_app({"m": replace(MODEL, provenance=known)}))
    assert client.get("/v1/models").json()[0]["provenance"] == known.as_dict()

    def answer(path, body):
        return client.post(path, json=body).json()

    # As many votes, or fewer, which may be missing, are no difference.
    for counts in (COUNTS, [[0, 0, 1]], []):
        assert "warnings" not in answer("/v1/decide", {"counts": counts})
    more = "items have up to 13 votes, and the model was fitted for 12 an item"
    found = answer("/v1/decide", {"counts": [*COUNTS, [0, 0, 13]]})
    assert found["warnings"] == [more]
    assert found["labels"] == MODEL.decide([*COUNTS, [0, 0, 13]]).tolist()
    votes = {"item": ["x", "x"], "vote": [1, 0], "judge": ["g", "h"]}
    for path in ("/v1/decide", "/v1/tally"):
        assert len(answer(path, votes)["warnings"]) == 1
    assert "warnings" not in answer("/v1/tally?decide=false", votes)
    body = stream_of(pa.table({"minus": [0], "tie": [0], "plus": [13]}))
    found = client.post("/v1/decide", content=body, headers={"content-type": CONTENT_TYPE})
    metadata = pa.ipc.open_stream(found.content).read_all().schema.metadata
    assert json.loads(metadata[b"warnings"]) == [more]


def test_health_metrics_and_page(scorer):
    assert scorer.ask("GET", "/healthz")[2] == b'{"status":"ok"}'
    scorer.post("/v1/decide", {"counts": [[1, 2]]})
    scorer.ask("GET", "/no/such/path")
    text = scorer.ask("GET", "/metrics")[2].decode()
    assert 'btdagg_requests_total{path="/v1/decide",status="422"}' in text
    assert "btdagg_request_seconds_bucket" in text
    assert "no/such" not in text
    for path in ("/", "/docs"):
        status, _, page = scorer.ask("GET", path)
        assert status == 200
        assert b"/v1/decide" in page
        assert b"src=" not in page  # nothing is loaded from elsewhere
        assert b"http" not in page.replace(b"http-equiv", b"")


def test_the_description_says_what_is_refused_and_names_operations():
    described = TestClient(create_app({"m": MODEL}, token="t")).get("/openapi.json").json()
    operations = {
        operation["operationId"]: operation
        for methods in described["paths"].values()
        for operation in methods.values()
    }
    assert set(operations) == {"decide", "tally", "list_models", "show_metrics", "healthz"}
    (scheme,) = described["components"]["securitySchemes"]
    for name in ("decide", "tally"):
        responses = operations[name]["responses"]
        assert set(responses) == {"200", "401", "404", "413", "415", "422"}
        assert operations[name]["security"] == [{scheme: []}]
        for status in ("401", "422"):
            schema = responses[status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Error"}
    assert "security" not in operations["healthz"]
    text = json.dumps(described)
    refs = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert refs <= set(described["components"]["schemas"])
    without = TestClient(create_app({"m": MODEL})).get("/openapi.json").json()
    assert "security" not in without["paths"]["/v1/decide"]["post"]


def test_no_path_is_redirected(scorer):
    """A redirect would lead to whatever Host the client, or somebody between, has sent."""
    for path in ("/v1/decide/", "/v1/models/", "/healthz/", "/metrics/", "/docs/"):
        status, headers, _ = scorer.ask("GET", path, None, {"Host": "evil.example"})
        assert (path, status) == (path, 404)
        assert "location" not in headers


def test_who_leaves_within_a_body_leaves_no_traceback(start):
    scorer = start()
    head = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{"
    for _ in range(3):
        with scorer.connect() as client:
            client.sendall(head)
            time.sleep(0.1)
    time.sleep(0.3)
    assert scorer.ask("GET", "/healthz")[0] == 200
    assert "Traceback" not in scorer.log.read_text()


def test_a_file_that_is_no_model_is_an_error_and_so_is_a_bad_option(cli, tmp_path):
    MODEL.save(tmp_path / "a.json")
    (tmp_path / "b").mkdir()
    MODEL.save(tmp_path / "b" / "a.json")
    for arguments, message in (
        ([tmp_path / "none.json"], "none.json"),
        ([tmp_path / "a.json", tmp_path / "b" / "a.json"], "same name"),
        ([tmp_path / "a.json", "--max-body", "0"], "--max-body is 0"),
    ):
        status, _, err = cli("serve", *arguments)
        assert status == 2
        assert message in err
    for token in ("", " ", "ä"):
        with pytest.raises(InputError, match="token is not printable ASCII"):
            create_app({"m": MODEL}, token=token)
    with pytest.raises(InputError, match="models is empty"):
        create_app({})


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


@pytest.mark.parametrize("missing", [(), ("httptools", "uvloop")])
def test_what_was_accepted_is_finished_at_shutdown(start, missing):
    """With each of uvicorn's protocols: it takes httptools where that is installed."""
    scorer = start(missing=missing)
    body = json.dumps({"counts": COUNTS}).encode()
    head = f"Host: x\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
    with scorer.connect() as client, scorer.connect() as idle:
        for connection in (client, idle):
            connection.settimeout(60)
        client.sendall(f"POST /v1/decide HTTP/1.1\r\n{head}Expect: 100-continue\r\n\r\n".encode())
        assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"  # the request is accepted
        scorer.process.send_signal(signal.SIGTERM)
        assert idle.recv(100) == b""  # nothing else is
        with pytest.raises(OSError):
            scorer.connect()
        client.sendall(body)
        answer = b""
        while part := client.recv(10_000):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.lower().count(b"\r\nconnection: close\r\n") == 1
    assert scorer.process.wait(60) == 0


def test_an_address_that_cannot_be_listened_on_is_one_line(scorer):
    """Two servers on one port would share its requests."""
    for options, message in (
        (["--port", "99999"], "port is 99999, expected 0 to 65535"),
        (["--port", "-1"], "port is -1, expected 0 to 65535"),
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


@pytest.mark.soak
def test_under_load_no_answer_is_wrong_and_none_is_lost():
    """Twenty seconds from a process of its own; `benches/serve.py` says what it does."""
    script = Path(__file__).parents[2] / "benches/serve.py"
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
    assert found["cut_answers"] == 0, found
    assert found["server_errors"] == 0, found
    assert set(found["statuses"]) == {"200", "401", "413", "422"}, found
    assert found["statuses"]["200"] > 20
    assert found["models_seen"] >= 2
    assert found["answers_after_the_kill"] >= 1


def test_polars_columns_come_back_as_they_were():
    frame = read_stream(_STREAM)
    assert frame.equals(
        pl.DataFrame({"item": ["a", "b"], "minus": [1, 2], "tie": [0, 3], "plus": [9, 9]})
    )
