"""The HTTP scorer: answers, refusals, shutdown, load."""

import asyncio
import http.client
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from btdagg import Covariate, DavidsonModel, GradeModel, InputError, Scale
from btdagg._util.files import digest_of
from btdagg._util.listening import bound
from btdagg._util.workers import Workers
from btdagg.serve import create_app
from btdagg.serve.bodies import ARROW, JSON, ServedModel, write_stream
from btdagg.votes import Provenance

MODEL = DavidsonModel(1.2, 2.0, 0.8)
SERVED = ServedModel(MODEL)
PROGRAM = [sys.executable, "-c", "from btdagg.cli import main; main()"]
HEAD = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
SECRET = {"Authorization": "Bearer secret"}
COUNTS = [[0, 1, 11], [5, 2, 5], [12, 0, 0]]


class Scorer:
    """`btdagg serve` on a free port."""

    def __init__(self, folder, token=None, *options):
        self.model = folder / "model.json"
        MODEL.save(self.model)
        self.log = folder / "log"
        environment = {k: v for k, v in os.environ.items() if k != "BTDAGG_SERVE_TOKEN"}
        environment["TMPDIR"] = str(folder)
        if token is not None:
            environment["BTDAGG_SERVE_TOKEN"] = token
        command = [*PROGRAM, "serve", self.model, "--port", "0", *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
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
        return response.status, content

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def served(self):
        return json.loads(self.ask("GET", "/readyz")[1]).get("model")

    def eventually(self, condition):
        start = time.monotonic()
        while not condition():
            assert time.monotonic() < start + 60, self.log.read_text()
            time.sleep(0.02)

    def workers(self):
        """Numbers of all processes that have answered, in the order of their starts."""
        return [int(pid) for pid in re.findall(r"server process \[(\d+)\]", self.log.read_text())]

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    """A process that the tests share; the last of them ends it."""
    scorer = Scorer(tmp_path_factory.mktemp("scorer"), token="secret")
    yield scorer
    scorer.close()


@pytest.fixture
def client():
    return TestClient(create_app(MODEL, max_body=100_000))


def stream_of(table, **options):
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema, **options) as stream:
        stream.write_table(table)
    return out.getvalue().to_pybytes()


def posted(client, content, kind=ARROW, query="", **headers):
    headers = {"content-type": kind, **headers}
    return client.post(f"/v1/decide{query}", content=content, headers=headers)


def refusal(client, content, kind=ARROW, query=""):
    answer = posted(client, content, kind, query)
    assert list(answer.json()) == ["detail"]
    assert len(answer.json()["detail"]) < 600
    return answer.status_code, answer.json()["detail"]


def test_counts_are_decided(client):
    answer = client.post("/v1/decide", json={"counts": COUNTS})
    assert answer.json() == {"model": digest_of(MODEL), "labels": [1, 0, -1]}
    minus, tie, plus = (list(column) for column in zip(*COUNTS, strict=True))
    body = {"minus": minus, "tie": tie, "plus": plus, "item": ["x", "y", "z"]}
    answer = client.post("/v1/decide?probabilities=true", json=body).json()
    assert answer["items"] == ["x", "y", "z"]
    assert answer["labels"] == [1, 0, -1]
    assert answer["probabilities"] == MODEL.predict_proba(COUNTS).tolist()
    assert client.post("/v1/decide", json={"counts": []}).json()["labels"] == []


def test_votes_are_counted_and_a_missing_one_is_no_tie(client):
    body = {"item": [7, 8, 7, 7], "vote": ["A", None, 1, -1]}
    counts = [[1, 0, 2], [0, 0, 0]]
    assert client.post("/v1/decide", json=body).json() == {
        "model": digest_of(MODEL),
        "items": [7, 8],
        "counts": counts,
        "n_missing": 1,
        "labels": MODEL.decide(counts).tolist(),
    }


def test_repeated_samples_of_a_body_count_once_and_conflicting_ones_are_422(client):
    body = {"item": ["x", "y", "x"], "vote": [1, 0, 1], "sample": [0, 0, 0]}
    assert client.post("/v1/decide", json=body).json()["counts"] == [[0, 0, 1], [0, 1, 0]]
    answer = client.post("/v1/decide", json={**body, "vote": [1, 0, -1]})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "body, rows 1 and 3: both have item 'x', sample 0, with votes 1 and -1",
    )


@pytest.mark.parametrize("n_rows", [0, 3, 5000])
def test_arrow_streams_are_answered_in_kind(client, n_rows):
    counts = np.random.default_rng(0).integers(0, 20, size=(n_rows, 3)).astype(np.uint8)
    columns = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    items = [f"i{i}" for i in range(n_rows)]
    body = write_stream({"item": pa.array(items, pa.string()), **columns}, "")
    answer = posted(client, body, query="?probabilities=1")
    assert answer.headers["content-type"] == ARROW
    assert answer.headers["x-btdagg-model"] == digest_of(MODEL)
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.schema.metadata == {b"model": digest_of(MODEL).encode()}
    assert table["item"].to_pylist() == items
    assert table["label"].to_pylist() == MODEL.decide(counts).tolist()
    assert table["p_tie"].to_pylist() == MODEL.predict_proba(counts)[:, 1].tolist()
    assert posted(client, body, accept=JSON).json()["items"] == items


def test_arrow_votes_are_counted(client):
    body = write_stream({"item": ["x", "x", "y"], "vote": pa.array([1, None, 0], pa.int8())}, "")
    assert pl.read_ipc_stream(posted(client, body).content).to_dicts() == [
        {"item": "x", "minus": 0, "tie": 0, "plus": 1, "label": 0},
        {"item": "y", "minus": 0, "tie": 1, "plus": 0, "label": 0},
    ]


_STREAM = write_stream({"item": ["a", "b"], "minus": [1, 2], "tie": [0, 3], "plus": [9, 9]}, "")


def test_a_stream_that_lies_about_its_lengths_is_refused_or_read():
    """Any number of it may be the length of a message, a batch, a buffer or a column."""
    n_read = 0
    for place in range(0, len(_STREAM) - 8, 4):
        for value in (-1, 0, 1 << 20, 2**31 - 1, 2**40, 2**62):
            damaged = bytearray(_STREAM)
            struct.pack_into("<q", damaged, place, value)
            try:
                items = SERVED.read(bytes(damaged), ARROW)
            except InputError:
                continue
            n_read += 1
            assert len(items.counts) <= 2
    assert n_read > 0  # lengths of the padding, say


def test_a_stream_that_was_cut_anywhere_is_refused(client):
    """Also after its schema or between batches, where what is left looks like a whole stream."""
    schema = pa.schema([("minus", pa.int64()), ("tie", pa.int64()), ("plus", pa.int64())])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, schema) as stream:
        for row in COUNTS[:2]:
            stream.write_batch(pa.record_batch([[count] for count in row], schema))
    whole = out.getvalue().to_pybytes()
    assert SERVED.read(whole, ARROW).counts.tolist() == COUNTS[:2]
    looks_whole = []
    for length in range(len(whole)):
        with pytest.raises(InputError) as caught:
            SERVED.read(whole[:length], ARROW)
        if "mark" in str(caught.value):
            looks_whole.append(length)
    empty = stream_of(schema.empty_table())
    assert whole.startswith(empty[:-8])
    assert {len(empty) - 8, len(whole) - 8} <= set(looks_whole)  # after the schema, all batches
    for length in looks_whole:
        assert refusal(client, whole[:length])[0] == 422
    assert posted(client, empty).status_code == posted(client, whole).status_code == 200
    for rest in (whole, b"\n", bytes(8)):
        with pytest.raises(InputError, match="no end-of-stream mark"):
            SERVED.read(whole + rest, ARROW)


def test_compressed_streams_are_refused_before_they_unfold(client):
    zeros = np.zeros(10_000_000, dtype=np.uint8)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    body = stream_of(pa.table(dict.fromkeys(("minus", "tie", "plus"), zeros)), options=options)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(InputError, match="body: the batches are compressed"):
        SERVED.read(body, ARROW)
    assert pa.default_memory_pool().max_memory() == before
    few = pa.table({"minus": [0], "tie": [1], "plus": [11]})
    assert refusal(client, stream_of(few, options=options))[0] == 422


def test_a_stream_of_other_messages_is_refused():
    few = pa.table({"minus": [0], "tie": [1], "plus": [11]})
    schema, batch = (
        m.serialize().to_pybytes() for m in pa.ipc.MessageReader.open_stream(stream_of(few))
    )
    words = pa.table({"item": pa.array(["x"]).dictionary_encode()})
    _, dictionary, _ = (
        m.serialize().to_pybytes() for m in pa.ipc.MessageReader.open_stream(stream_of(words))
    )
    end = _STREAM[-8:]
    for body in (batch + schema, schema + schema + batch, schema + dictionary + batch, b""):
        with pytest.raises(InputError, match="body: not an Arrow IPC stream"):
            SERVED.read(body + end, ARROW)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["item", "vote", "minus", "tie", "plus", "counts", "sample", "order"])


@given(st.dictionaries(names, json_values, max_size=5))
def test_any_json_is_read_or_refused(value):
    try:
        items = SERVED.read(json.dumps(value).encode(), JSON)
        MODEL.decide(items.counts)
    except (InputError, ValidationError):
        return
    assert items.counts.shape[1] == 3


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"counts": [[1, 2, 3], [1, -2, 3]]}, "counts[1][1]: "),
        ({"minus": [1], "tie": [1]}, "plus: "),
        (
            {"counts": [], "vote": []},
            "body: got counts, vote, expected either counts, or minus and ",
        ),
        ({"item": ["a", "b"], "vote": [1, "Z"]}, "body, row 2, column vote: "),
        ({"item": ["a"], "vote": [True]}, "vote[0]: "),
        ({"item": ["\ud800"], "vote": [1]}, "body: "),
        ({"counts": [[1, 2, 3]], "tie": [1]}, "body: got counts, tie, expected either"),
        ({"counts": [[1, 2, 3]], "judge": ["x"]}, "judge: not allowed with counts, expected only"),
        ({"counts": [[1, 2, 3]] * 2, "item": ["x", 2]}, "item[1]: Input should be a valid string"),
        ({"item": ["x", "y"], "vote": [1]}, "item has 2 rows, expected 1 as in vote"),
        ({"Z" * 50_000: []}, "Z"),
    ],
)
def test_malformed_bodies_are_422_and_name_the_place(client, body, place):
    status, detail = refusal(client, json.dumps(body), JSON)
    assert status == 422
    assert detail.startswith(place)


def test_other_refusals_have_one_message(client):
    for body in (b'{"counts": [[1', b"\xff\xfe", b"[" * 90_000, b""):
        assert refusal(client, body, JSON)[0] == 422
    assert refusal(client, b"1", "text/csv")[0] == 415
    assert refusal(client, b"ARROW1" * 9)[0] == 422
    # A client that names a model, or misspells a name, is not answered as if it had not.
    for query in ("?model=other", "?probabilites=true"):
        status, detail = refusal(client, b'{"counts": []}', JSON, query)
        assert (status, detail.split(":")[0]) == (422, query[1:].partition("=")[0])
    status, detail = refusal(client, b'{"counts": []}', JSON, "?probabilities=maybe")
    assert (status, detail.split(":")[0]) == (422, "probabilities")
    counts = {"minus": [1, 2], "tie": [1, 1], "plus": [2, 2]}

    def of_columns(**columns):
        return refusal(client, stream_of(pa.table({**counts, **columns})))[1]

    assert "counts[1, 0] (minus) is NaN" in of_columns(minus=[1, None])
    assert "extra: unknown column" in of_columns(extra=[1, 1])
    for items in (["x", None], [1.0, 2.0], [1, None]):
        assert "item: expected all texts or all whole numbers" in of_columns(item=items)
    words = pa.array(["x", "y"]).dictionary_encode()
    assert "item: of type dictionary" in of_columns(item=words)
    assert "tie: of type null, expected numbers or text" in of_columns(tie=pa.nulls(2))


def test_answers_say_where_items_are_not_what_the_model_was_fitted_to():
    provenance = Provenance(n_votes=12, n_labels=50, judge="g")
    client = TestClient(create_app(replace(MODEL, provenance=provenance)))
    assert client.get("/v1/model").json()["provenance"] == provenance.as_dict()

    def answer(body):
        return client.post("/v1/decide", json=body).json()

    # As many votes, or fewer, which may be missing, are no difference.
    for counts in (COUNTS, [[0, 0, 1]], []):
        assert "warnings" not in answer({"counts": counts})
    more = "items have up to 13 votes, but the model was fitted for 12 votes an item"
    assert answer({"counts": [*COUNTS, [0, 0, 13]]})["warnings"] == [more]
    votes = {"item": ["x", "x"], "vote": [1, 0], "judge": ["g", "h"]}
    assert len(answer(votes)["warnings"]) == 1
    content = posted(client, stream_of(pa.table({"minus": [0], "tie": [0], "plus": [13]}))).content
    metadata = pa.ipc.open_stream(content).read_all().schema.metadata
    assert json.loads(metadata[b"warnings"]) == [more]


def test_votes_with_strength_are_sent_as_counts():
    provenance = Provenance(strength="margin", full_margins=[("", "", 4.0)])
    client = TestClient(create_app(replace(MODEL, provenance=provenance)))
    counts = [[0, 1.25, 0.75], [1, 0, 0]]
    answer = client.post("/v1/decide", json={"counts": counts}).json()
    assert answer["labels"] == MODEL.decide(counts).tolist()
    assert "warnings" not in answer
    votes = {"item": ["x", "x", "y"], "vote": [1, 1, -1]}
    expected = "vote: the model has vote strength, expected counts of each item"
    assert refusal(client, json.dumps(votes), JSON) == (422, expected)
    assert refusal(client, stream_of(pa.table(votes))) == (422, expected)


@pytest.mark.parametrize("name", ["margin", "strength", "p_plus"])
def test_columns_of_strength_are_refused_and_not_left_out(client, name):
    votes = {"item": ["x", "y"], "vote": [1, -1], name: [0.5, 0.25]}
    for refused in (
        refusal(client, json.dumps(votes), JSON),
        refusal(client, stream_of(pa.table(votes))),
    ):
        assert (refused[0], refused[1].split(":")[0]) == (422, name)


GRADES = GradeModel(
    2,
    (1.5, 2.5, 3.5, 4.5),
    Scale(range(1, 6)),
    provenance=Provenance(n_votes=5, judge="g"),
)
GRADED = [[0, 0, 1, 2, 0], [5, 0, 0, 0, 0]]


@pytest.fixture
def grader():
    return TestClient(create_app(GRADES))


def test_grades_are_decided_by_counts_scores_and_rows(grader):
    columns = {str(point): list(own) for point, own in enumerate(zip(*GRADED, strict=True), 1)}
    named = {"counts": GRADED, "item": ["x", "y"]}
    rows = {"item": [*"xxxyyyyyx"], "score": [4, "3", 4.0, 1, 1, 1, 1, 1, None]}
    expected = {"model": digest_of(GRADES), "labels": GRADES.decide(GRADED).tolist()}
    expected["probabilities"] = GRADES.predict_proba(GRADED).tolist()
    for body in ({"counts": GRADED}, columns, named, rows):
        answer = grader.post("/v1/decide?probabilities=1", json=body).json()
        told = {"items": ["x", "y"]} if "item" in body else {}
        told |= {"counts": GRADED, "n_missing": 1} if body is rows else {}
        assert answer == expected | told
    for table, kept in ((columns, []), (rows | {"score": [4, 3, 4, *[1] * 5, None]}, ["item"])):
        answer = posted(grader, stream_of(pa.table(table)), query="?probabilities=1").content
        decided = pa.ipc.open_stream(answer).read_all().to_pydict()
        assert [name for name in decided if name[:2] != "p_"] == [
            *kept, *(columns if kept else []), "label", "mean"
        ]  # fmt: skip
        assert decided["label"] == expected["labels"]
        assert decided["p_4"] == GRADES.predict_proba(GRADED)[:, 3].tolist()
    warned = grader.post("/v1/decide", json={"counts": [[0, 0, 6, 0, 0]]}).json()["warnings"]
    assert warned == ["items have up to 6 votes, but the model was fitted for 5 votes an item"]
    listed = grader.get("/v1/model").json()
    assert listed["scale"] == listed["label_scale"] == GRADES.scale.as_dict()
    assert (listed["cuts"], listed["provenance"]) == (
        list(GRADES.cuts),
        {"n_votes": 5, "judge": ["g"]},
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"counts": [[1, 0, 0, 0, 0], [0] * 5]}, "counts[1] holds no votes"),
        ({"scores": [[4]]}, "scores: Extra inputs"),
        ({"item": ["x"], "score": ["four"]}, "got 'four', expected 1, 2"),
        ({"item": ["x"], "score": [3.5]}, "got 3.5, expected 1, 2"),
        ({"item": ["x", "x"], "score": [4, 11]}, "got 11.0, expected 1, 2"),
        ({"item": ["x", "y"], "score": [1, None]}, "counts[1] holds no votes"),
        ({"counts": [[1, 2, 3]]}, "counts[0]: List should have at least 5 items"),
        ({"minus": [1], "tie": [0], "plus": [1]}, "minus: Extra inputs"),
        ({"1": [1], "2": [1], "4": [1], "5": [0]}, "3: missing, expected 1 and 2 and 3"),
        ({}, "body: got no columns, expected either counts, or 1 and 2 and"),
    ],
)
def test_bad_grades_are_422_and_no_grade_in_the_middle(grader, body, message):
    status, detail = refusal(grader, json.dumps(body), JSON)
    assert status == 422
    assert message in detail


KNOWING = replace(
    MODEL,
    provenance=None,
    covariates=(
        Covariate("standing", 0.6, 0.5, standings={"x": 0.4, "y": -0.2}),
        Covariate("price", -0.3, 2.0),
    ),
)


def test_covariates_are_columns_and_systems_stand_for_standings():
    knowing = TestClient(create_app(KNOWING))
    counts, price = [[0, 1, 3], [2, 0, 2]], [1.5, -4]
    known = {"standing": [0.6, -0.6], "price": price}
    labels = KNOWING.decide(counts, covariates=known).tolist()
    shares = KNOWING.predict_proba(counts, covariates=known).tolist()
    sides = {"system_a": ["x", "y"], "system_b": ["y", "x"], "price_a": [2.5, 1], "price_b": [1, 5]}
    columns = dict(zip(("minus", "tie", "plus"), zip(*counts, strict=True), strict=True))
    for told in (known, sides):
        for body in ({"counts": counts, **told}, {**{k: [*v] for k, v in columns.items()}, **told}):
            answer = knowing.post("/v1/decide?probabilities=1", json=body).json()
            assert answer["labels"] == labels
            np.testing.assert_allclose(answer["probabilities"], shares, rtol=1e-12)
            assert "warnings" not in answer
        table = {name: [*values] for name, values in (columns | told).items()}
        answer = posted(knowing, stream_of(pa.table(table))).content
        assert pa.ipc.open_stream(answer).read_all()["label"].to_pylist() == labels
    stranger = {"counts": counts, **sides, "system_a": ["new", "y"]}
    answer = knowing.post("/v1/decide", json=stranger).json()
    assert answer["warnings"] == ["standing is missing for 1 items and has no effect on them"]
    listed = knowing.get("/v1/model").json()["covariates"]
    assert [own["name"] for own in listed] == ["standing", "price"]
    described = knowing.get("/openapi.json").json()["components"]["schemas"]["Body"]
    assert {"standing", "price", "system_a"} <= described["properties"].keys()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "body: expected standing, or system_a and system_b, a covariate of the model"),
        (
            {"standing": [0.1]},
            "body: expected price, or price_a and price_b, a covariate",
        ),
        ({"system_a": ["x"], "price": [1]}, "body: expected standing, or system_a and system_b"),
        ({"standing": [0.1], "price": [None]}, "price[0]: Input should be a valid number"),
        ({"standing": [0.1], "price": [1], "length": [1]}, "length: Extra inputs"),
        ({"standing": [0.1, 0.2], "price": [1]}, "standing has 2 rows, expected 1 as in counts"),
    ],
)
def test_bodies_without_covariates_or_with_others_are_refused_by_name(told, message):
    knowing = TestClient(create_app(KNOWING))
    status, detail = refusal(knowing, json.dumps({"counts": [[0, 1, 3]], **told}), JSON)
    assert (status, message in detail) == (422, True)
    nan = '{"counts": [[0, 1, 3]], "standing": [NaN], "price": [1]}'
    assert refusal(knowing, nan, JSON) == (422, "standing[0]: Input should be a finite number")
    table = {"minus": [0], "tie": [1], "plus": [3], "standing": [float("nan")], "price": [1.0]}
    assert refusal(knowing, stream_of(pa.table(table))) == (
        422,
        "standing[0] is nan, expected a number",
    )
    votes = {"item": ["x"], "vote": ["A"]}
    expected = "vote: the model has covariates, expected counts of each item"
    assert refusal(knowing, json.dumps(votes), JSON) == (422, expected)


def test_health_metrics_and_description(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    client.post("/v1/decide", json={"counts": [[1, 2]]})
    client.get("/no/such/path")
    text = client.get("/metrics").text
    assert 'btdagg_requests_total{path="/v1/decide",status="422"}' in text
    assert "btdagg_request_seconds_bucket" in text
    assert "no/such" not in text
    described = client.get("/openapi.json").text
    refs = set(re.findall(r'"#/components/schemas/(\w+)"', described))
    assert refs == {"Body", "DecidedItems", "Error"}
    assert refs <= set(json.loads(described)["components"]["schemas"])
    assert "swagger" in client.get("/docs").text


def test_a_token_is_asked_for():
    client = TestClient(create_app(MODEL, token="secret"))
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
        answer = client.post("/v1/decide", content=b"{}", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "no valid bearer token" in answer.json()["detail"]
    assert client.get("/metrics").status_code == 401
    assert client.get("/readyz").json() == {"status": "ready", "model": digest_of(MODEL)}
    described = client.get("/openapi.json").json()["paths"]
    for path, method in (("/v1/decide", "post"), ("/v1/model", "get"), ("/metrics", "get")):
        assert "401" in described[path][method]["responses"]
    assert "401" not in described["/readyz"]["get"]["responses"]
    assert "415" in described["/v1/decide"]["post"]["responses"]
    assert client.get("/healthz").status_code == 200
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} secret"}
        assert client.post("/v1/decide", json={"counts": []}, headers=headers).status_code == 200


def test_bad_arguments_are_refused(cli, tmp_path):
    MODEL.save(tmp_path / "a.json")
    for arguments, message in (
        ([tmp_path / "none.json"], "none.json"),
        ([tmp_path / "a.json", tmp_path / "b.json"], "unexpected extra argument"),
        (
            [tmp_path / "a.json", "--port", "99999"],
            "port is 99999, expected an integer of at most 65535",
        ),
        ([tmp_path / "a.json", "--host", "no such host"], "cannot listen on 'no such host'"),
        ([tmp_path / "a.json", "--workers", "0"], "--workers is 0, expected an integer of at"),
        ([tmp_path / "none.json", "--workers", "2"], "none.json"),
    ):
        status, _, err = cli("serve", *arguments)
        assert status == 2
        assert message in err
    with pytest.raises(InputError, match="token is empty"):
        create_app(MODEL, token="")


def test_a_body_that_is_too_large_is_not_read_whole(scorer):
    """100 MB in chunks to a server that takes 16 MB."""

    def peak():
        status = Path(f"/proc/{scorer.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])

    assert scorer.ask("POST", "/v1/decide", b'{"counts": []}', SECRET)[0] == 200
    before = peak()
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    with scorer.connect() as client:
        client.sendall(head)
        try:
            for _ in range(100):
                client.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")
        except OSError:
            pass  # it no longer listens
        else:
            assert b" 413 " in client.recv(100)
    assert peak() - before < 90_000
    assert scorer.ask("GET", "/healthz")[0] == 200
    assert 'status="413"} 1.0' in scorer.ask("GET", "/metrics", headers=SECRET)[1].decode()


def test_who_leaves_within_a_body_leaves_no_traceback_and_a_port_is_not_shared(scorer):
    head = HEAD + b"Content-Length: 900\r\n\r\n{"
    for _ in range(3):
        with scorer.connect() as client:
            client.sendall(head)
            time.sleep(0.1)
    with pytest.raises(InputError, match="Address already in use"):
        bound("127.0.0.1", scorer.port)
    assert scorer.ask("GET", "/healthz")[0] == 200
    assert "Traceback" not in scorer.log.read_text()


def test_no_answer_waits_for_the_acknowledgement_of_its_headers():
    with (
        bound("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_what_was_accepted_is_finished_at_shutdown(scorer):
    body = json.dumps({"counts": COUNTS}).encode()
    assert scorer.ask("POST", "/v1/decide", body)[0] == 401
    head = f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    with scorer.connect() as client, scorer.connect() as idle:
        client.sendall(HEAD + head.encode())
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
    assert scorer.process.wait(60) == 0


def test_another_model_takes_the_place_of_the_one_that_is_served():
    app = create_app(MODEL)
    client = TestClient(app)
    assert client.post("/v1/decide", json={"counts": COUNTS}).json()["labels"] == [1, 0, -1]
    ties = DavidsonModel(0.1, 6.0, 0.8)
    app.state.scorer.use(ties)
    answer = client.post("/v1/decide", json={"counts": COUNTS}).json()
    assert answer == {"model": digest_of(ties), "labels": [0, 0, 0]}
    grades = GradeModel(2, (1.5, 2.5), Scale(range(1, 4)))
    app.state.scorer.use(grades)
    assert client.post("/v1/decide", json={"1": [0], "2": [1], "3": [7]}).json()["labels"] == [3]
    assert client.get("/v1/model").json()["cuts"] == [1.5, 2.5]
    body = client.get("/openapi.json").json()["components"]["schemas"]["Body"]
    assert "score" in body["properties"]


def test_a_model_file_is_loaded_anew_and_at_the_end_the_server_drains(tmp_path):
    scorer = Scorer(tmp_path, None, "--drain", "2")
    try:
        served, eventually = scorer.served, scorer.eventually
        assert served() == digest_of(MODEL)
        other = DavidsonModel(0.5, 1.0, 0.25)
        other.save(scorer.model)
        eventually(lambda: served() == digest_of(other))
        scorer.model.write_text("{")
        eventually(lambda: "the model stays as it is" in scorer.log.read_text())
        assert served() == digest_of(other)
        log = len(scorer.log.read_text())
        broken = json.loads(other.to_json()) | {"covariates": [3]}
        scorer.model.write_text(json.dumps(broken))
        eventually(lambda: "covariates[0] is 3" in scorer.log.read_text()[log:])
        log = len(scorer.log.read_text())
        scorer.process.send_signal(signal.SIGHUP)
        eventually(lambda: "the model stays as it is" in scorer.log.read_text()[log:])
        body = json.dumps({"counts": COUNTS})
        json_type = {"content-type": JSON}
        assert scorer.ask("POST", "/v1/decide", body, json_type)[0] == 200
        scorer.process.send_signal(signal.SIGTERM)
        eventually(lambda: scorer.ask("GET", "/readyz")[0] == 503)
        assert scorer.ask("POST", "/v1/decide", body, json_type)[0] == 200
        assert scorer.ask("GET", "/healthz")[0] == 200
        assert scorer.process.wait(60) == 0
        assert "Traceback" not in scorer.log.read_text()
    finally:
        scorer.close()


def test_a_second_signal_ends_a_drain_and_what_was_accepted_is_answered(tmp_path):
    scorer = Scorer(tmp_path, None, "--drain", "60")
    body = json.dumps({"counts": COUNTS}).encode()
    head = f"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
    head += f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    try:
        with scorer.connect() as client:
            client.sendall(head.encode())
            assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
            scorer.process.send_signal(signal.SIGINT)
            start = time.monotonic()
            while scorer.ask("GET", "/readyz")[0] != 503:
                assert time.monotonic() < start + 30
            scorer.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            client.sendall(body)
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert scorer.process.wait(30) == 0
        assert time.monotonic() < start + 40
    finally:
        scorer.close()


@contextmanager
def stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def ask_until_refused(scorer, answers):
    """Ask over connections that are kept open, and over new ones, until nobody listens."""
    body, headers = json.dumps({"counts": COUNTS}), {"content-type": JSON}
    for number in itertools.count():
        connection = http.client.HTTPConnection("127.0.0.1", scorer.port, timeout=30)
        try:
            connection.connect()
        except OSError:
            return
        try:
            for _ in range(1 + number % 5):
                connection.request("POST", "/v1/decide", body, headers)
                response = connection.getresponse()
                response.read()
                answers.append(response.status)
                if response.will_close:
                    break
        except (OSError, http.client.HTTPException) as error:
            answers.append(error)
        connection.close()


def test_workers_have_one_model_and_one_account_and_lose_no_request_at_the_end(tmp_path):
    scorer = Scorer(tmp_path, None, "--workers", "2", "--drain", "0.3")
    try:
        first, second = scorer.workers()
        body, headers = json.dumps({"counts": COUNTS}), {"content-type": JSON}
        for other, n_requests in ((first, 2), (second, 3)):
            with stopped([other]):
                for _ in range(n_requests):
                    assert scorer.ask("POST", "/v1/decide", body, headers)[0] == 200
        model = DavidsonModel(0.5, 1.0, 0.25)
        model.save(scorer.model)
        scorer.process.send_signal(signal.SIGHUP)
        scorer.eventually(lambda: digest_of(model) in scorer.log.read_text())
        for other in (first, second):
            with stopped([other]):
                scorer.eventually(lambda: scorer.served() == digest_of(model))
        scorer.model.unlink()

        os.kill(first, signal.SIGKILL)
        scorer.eventually(lambda: len(scorer.workers()) == 3)
        assert f"worker {first} ended with status -9" in scorer.log.read_text()
        with stopped([second]):
            assert scorer.served() == digest_of(model)
            metrics = scorer.ask("GET", "/metrics")[1].decode()
        assert "btdagg_items_total 15.0" in metrics
        assert 'btdagg_requests_total{path="/v1/decide",status="200"} 5.0' in metrics

        answers = []
        clients = [Thread(target=ask_until_refused, args=(scorer, answers)) for _ in range(4)]
        for client in clients:
            client.start()
        scorer.eventually(lambda: len(answers) > 20)
        scorer.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join()
        assert set(answers) == {200}
        assert scorer.process.wait(60) == 0
        log = scorer.log.read_text()
        assert "Traceback" not in log
        assert log.count("listening on") == 1
        assert not [*tmp_path.glob("btdagg-metrics-*")]
    finally:
        scorer.close()


def test_workers_that_cannot_start_are_an_error_and_without_a_parent_they_end(tmp_path):
    with (
        bound("127.0.0.1", 0) as listening,
        pytest.raises(ChildProcessError, match="ended before it could answer"),
    ):
        asyncio.run(Workers(2, print, MODEL, listening).run(lambda: None))
    scorer = Scorer(tmp_path, None, "--workers", "2")
    scorer.close()

    def is_listening():
        try:
            scorer.connect().close()
        except OSError:
            return False
        return True

    scorer.eventually(lambda: not is_listening() and not [*tmp_path.glob("btdagg-metrics-*")])


@pytest.mark.soak
def test_under_load_no_answer_is_wrong_and_none_is_lost():
    """Twenty seconds from a process of its own; `benches/serve.py` says what it does."""
    script = Path(__file__).parents[2] / "benches/serve.py"
    done = subprocess.run(
        [sys.executable, str(script), "--minutes", str(20 / 60)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == 0, found
    assert found["cut_answers"] == 0, found
    assert found["server_errors"] == 0, found
    assert set(found["statuses"]) == {"200", "401", "413", "422"}, found
    assert found["answers_after_the_kill"] >= 1
