"""A folder from elsewhere does nothing that nobody asked for."""

import contextlib
import gzip
import json
import os
import socket
import sqlite3
import threading
import zlib
from pathlib import Path

import polars as pl
import pytest

import btdagg
from batch_server import BatchServer
from btdagg import InputError
from btdagg._util.wording import visible
from btdagg.estimates import Certificate
from btdagg.online import StoppingRule
from commands import ended

VOTES = "item,vote,sample\n" + "".join(
    f"q{n},{(n + k) % 3 - 1},{k}\n" for n in range(12) for k in range(3)
)
LABELS = "item,label\n" + "".join(f"q{n},{n % 3 - 1}\n" for n in range(12))


@pytest.fixture
def place(folder):
    """A folder from elsewhere, in which commands run, beside other files."""
    inner = folder / "elsewhere"
    inner.mkdir()
    for name, text in {"votes.csv": VOTES, "labels.csv": LABELS}.items():
        (folder / name).write_text(text)
        (inner / name).write_text(text)
    pl.read_csv(folder / "votes.csv").write_parquet(folder / "votes.parquet")
    os.chdir(inner)
    return inner


@contextlib.contextmanager
def listening():
    """A server that nobody calls: its port, and a list of what came."""
    calls = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    calls.append(connection.recv(100))
                    connection.close()

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1], calls


def project(votes, labels='"labels.csv"'):
    text = f"[votes]\nfile = {votes}\n[labels]\nfile = {labels}\n"
    Path("btdagg.toml").write_text(text)


ADDRESSES = (
    '"postgresql://me@127.0.0.1:{port}/db"',
    '"postgres://me@127.0.0.1:{port}/db"',
    '"postgresql+psycopg://me@/db?hostaddr=127.0.0.1&port={port}"',
    '"postgresql:///?service=stranger&passfile=/tmp/x"',
    '"sqlite:////etc/votes.db"',
    '"file:///etc/votes.parquet"',
    '["http://127.0.0.1:{port}/a.parquet"]',
    '["s3://bucket/a.parquet"]',
    '["a.parquet", "gs://bucket/a.parquet"]',
    '["az://bucket/a.parquet"]',
    '["hf://datasets/a/b.parquet"]',
    '"http://127.0.0.1:{port}/a.parquet"',
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_of_a_found_project_are_not_called(cli, place, monkeypatch, address):
    monkeypatch.setenv("PGPASSWORD", "secret-of-a-user")
    with listening() as (port, calls):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        project(address.format(port=port))
        for command in ("estimate", "evaluate", "votes"):
            status, out, err = cli(command)
            assert (status, out) == (2, ""), command
            assert "--project btdagg.toml" in err
        with pytest.raises(InputError, match=r"btdagg\.toml, line 2: votes\.file"):
            _ = btdagg.Project.load().votes
        assert not calls


@pytest.mark.parametrize("table", ["labels", "pairs", "items"])
def test_every_table_of_a_found_project_is_bounded(cli, place, table):
    (place.parent / "more.csv").write_text(
        "item,length,label,a,b,prompt\n"
        + "".join(f"q{n},{n},{n % 3 - 1},x,y,z\n" for n in range(12))
    )
    tables = {"votes": "votes.csv", "labels": "labels.csv", table: "../more.csv"}
    lines = "".join(f'[{kind}]\nfile = "{file}"\n' for kind, file in tables.items())
    Path("btdagg.toml").write_text(lines)
    command = ["judge", "--model", "simulated", "-n", "2"] if table == "pairs" else ["estimate"]
    status, out, err = cli(*command)
    assert (status, out) == (2, "")
    assert f"{table}.file" in err
    assert cli("--project", "btdagg.toml", *command)[0] == 0
    if table != "pairs":
        assert cli("votes")[0] == 2
        assert f"{table}.file" in cli("votes")[2]


@pytest.mark.parametrize(
    "file",
    [
        '"../votes.csv"',
        '"{outside}/votes.csv"',
        '"inner/../../votes.csv"',
        '"link.csv"',
        '"linked/votes.csv"',
        '"linked"',
        '"linked/*.parquet"',
        '"*/votes.parquet"',
        '["own.parquet", "../votes.parquet"]',
        '["~/votes.parquet"]',
        '"~/votes.parquet"',
    ],
)
def test_a_found_project_reads_its_folder_alone(cli, place, monkeypatch, file):
    monkeypatch.setenv("HOME", str(place.parent))
    (place / "link.csv").symlink_to(place.parent / "votes.csv")
    (place / "linked").symlink_to(place.parent)
    (place / "inner").mkdir()
    pl.read_csv("votes.csv").write_parquet("own.parquet")
    project(file.format(outside=place.parent))
    status, out, err = cli("estimate")
    assert (status, out) == (2, "")
    assert "btdagg.toml, line 2: votes.file" in err
    if "link" in file or file.startswith('"..'):
        named = cli("estimate", "--project", "btdagg.toml")
        typed = cli("estimate", place.parent / "votes.csv")
        assert typed[0] == 0, typed
        assert named[0] == 0 or "~" in file, named


def test_a_found_project_that_is_a_link_is_not_read(cli, place):
    outside = place.parent / "other.toml"
    outside.write_text('[votes]\nfile = "votes.csv"\n')
    Path("btdagg.toml").symlink_to(outside)
    status, _, err = cli("votes")
    assert status == 2
    assert "btdagg.toml" in err
    assert cli("votes", "--project", "btdagg.toml")[0] == 0


def test_files_that_are_typed_or_below_are_read(cli, place):
    (place / "data").mkdir()
    Path("votes.csv").rename("data/votes.csv")
    (place / "near.csv").symlink_to("data/votes.csv")
    for file in ('"data/votes.csv"', '"near.csv"', f'"{place}/data/votes.csv"'):
        project(file)
        assert cli("estimate")[0] == 0, file
    project('"postgresql://me@127.0.0.1:1/db"')
    assert cli("estimate", "data/votes.csv")[0] == 0
    assert cli("estimate", "--set", f"votes.file={place.parent}/votes.csv")[0] == 0


def report_folder(place):
    """A folder that says that it has a report, as one from elsewhere may."""
    files = ["index.html", "report.json", "figures/x.svg", "figures/estimates.svg"]
    manifest = {"format": "btdagg.manifest", "version": 1, "files": files}
    (place / "out").mkdir()
    (place / "out/btdagg-manifest.json").write_text(json.dumps(manifest))
    for name in files[:2]:
        (place / "out" / name).write_text("{}")


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.parametrize("name", ["figures", "tables"])
def test_a_report_leaves_files_behind_a_link_alone(cli, place, name):
    victim = place.parent / "victim"
    victim.mkdir()
    for file in ("x.svg", "estimates.svg"):
        (victim / file).write_text("precious")
    report_folder(place)
    (place / "out" / name).symlink_to(victim)
    status, _, err = cli("estimate", "votes.csv", "labels.csv", "--report", "out")
    assert status == 2
    assert f"out/{name} is a link" in err
    assert {file.read_text() for file in victim.iterdir()} == {"precious"}
    assert len([*victim.iterdir()]) == 2


def test_files_that_nobody_named_are_not_written_through_links(cli, place):
    outside = place.parent / "outside"
    for name in ("model.json", "btdagg.toml", "votes.db", "human.db", "out"):
        (place / name).symlink_to(outside)
    rows = "".join(f"q{n},x,y,z\n" for n in range(12))
    Path("pairs.csv").write_text(f"item,prompt,a,b\n{rows}")
    model = place.parent / "named.toml"
    model.write_text("")
    named = ("--project", str(model))
    for command in (
        ("calibrate", "votes.csv", "labels.csv", *named),
        ("judge", "pairs.csv", "--model", "simulated", "-n", "2", *named),
        ("label", "pairs.csv", "-o", "human.csv", "--export", *named),
        ("run", "pairs.csv", "--labels", "labels.csv", "--model", "simulated", "-n", "2", *named),
        ("check", "votes.csv", "--save"),
    ):
        status, _, err = cli(*command)
        assert status == 2, command
        assert "is a link" in err, command
        assert not outside.exists(), command


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "pipe"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl", "votes.parquet", "votes.json"])
def test_devices_and_pipes_are_no_tables(cli, place, device, name):
    if device == "pipe":
        os.mkfifo("pipe")
    Path("link").mkdir()
    (place / "link" / name).symlink_to(place / "pipe" if device == "pipe" else device)
    status, out, err = cli("check", f"link/{name}")
    assert status == 2
    assert "a device or a pipe" in out + err


def test_devices_and_silent_pipes_are_no_models(cli, place, monkeypatch):
    monkeypatch.setattr("btdagg._util.files._PIPE_SECONDS", 0.1)
    os.mkfifo("pipe.json")
    for model in ("/dev/zero", "pipe.json"):
        assert cli("decide", model, "votes.csv")[0] == 2


def test_a_model_is_read_from_a_pipe(place):
    btdagg.DavidsonModel(1.2, 0.5, 0.8).save("model.json")
    reader, writer = os.pipe()
    os.write(writer, Path("model.json").read_bytes())
    os.close(writer)
    status, out, err = ended("decide", f"/dev/fd/{reader}", "votes.csv", pass_fds=[reader])
    os.close(reader)
    assert status == 0, err
    assert out.startswith("item,")


def packed_twice(text):
    return gzip.compress(gzip.compress(text))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("votes.csv.gz", lambda: gzip.compress(b"item,vote\n" + b"x,1\n" * 30_000_000, 1)),
        ("votes.jsonl.gz", lambda: gzip.compress(b'{"item":1}\n' * 10_000_000, 1)),
        ("pairs.csv.gz", lambda: gzip.compress(b"item,a,b\n" + b"x,y,z\n" * 20_000_000, 1)),
        ("votes.csv.gz", lambda: packed_twice(b"item,vote\nx,1\n")),
        ("votes.csv", lambda: zlib.compress(b"item,vote\nx,1\n")),
        ("votes.jsonl", lambda: zlib.compress(b'{"item":"x","vote":1}\n')),
        ("votes.csv", lambda: b"\x28\xb5\x2f\xfd" + b"item,vote\n"),
        ("votes.csv", lambda: b",".join(b"c%d" % n for n in range(20_000)) + b"\n"),
        ("votes.tsv", lambda: b'"a\n"' + b"\tc" * 20_000 + b"\n"),
        ("votes.jsonl", lambda: json.dumps({f"c{n}": 1 for n in range(20_000)}).encode()),
        ("votes.csv", lambda: b",".join(b"c%d" % n for n in range(9000)) + b"\n" + b"x\n" * 20_000),
        ("votes.jsonl", lambda: b'{"item":"x","vote":' + b'{"a":' * 900 + b"1" + b"}" * 901),
    ],
)
def test_sizes_are_bounded_before_they_are_read(place, name, content):
    Path(name).write_bytes(content())
    with pytest.raises(InputError):
        btdagg.read_votes(name)


def test_a_file_larger_than_the_memory_is_not_read(place):
    with open("votes.csv", "ab") as file:
        file.truncate(2**42)
    with pytest.raises(InputError, match="memory"):
        btdagg.read_votes("votes.csv")


def test_a_parquet_file_of_endless_rows_is_not_read(place):
    pl.select(item=pl.repeat("q", 60_000_000, dtype=pl.Categorical), vote=1).write_parquet(
        "v.parquet"
    )
    with pytest.raises(InputError, match="rows in"):
        btdagg.read_votes("v.parquet")


def test_a_store_computes_nothing(cli, place):
    Path("pairs.csv").write_text("item,prompt,a,b\nq1,x,y,z\n")
    assert cli("judge", "pairs.csv", "--model", "simulated", "-n", "2")[0] == 0
    assert cli("votes", "votes.db")[0] == 0
    with sqlite3.connect("votes.db") as database:
        database.execute("ALTER TABLE btdagg_votes RENAME TO kept")
        database.execute("CREATE VIEW btdagg_votes AS SELECT * FROM kept")
    status, _, err = cli("votes", "votes.db")
    assert status == 2
    assert "view" in err


@pytest.fixture
def written_batch(cli, place, monkeypatch):
    """A store from elsewhere, with a batch that is written; and the server that it names."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-a-user")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    Path("pairs.csv").write_text("item,prompt,a,b\nq1,x,y,z\n")
    server = BatchServer()
    command = "batch", "write", "pairs.csv", "-m", "m", "-n", "2"
    assert cli(*command, "--set", f"judge.base_url={server.url}")[0] == 0
    yield server
    server.stop()


@pytest.mark.parametrize("command", ["send", "collect", "cancel"])
def test_an_address_in_a_store_gets_no_key(cli, written_batch, command):
    for key in ("timeout = 60.0", 'model = "m"', 'base_url = "https://api.openai.com/v1"'):
        Path("config.toml").write_text(key)
        if command != "send":
            with sqlite3.connect("votes.db") as store:
                store.execute("UPDATE btdagg_batches SET remote = 'batch_0', state = 'sent'")
        status, out, err = cli("batch", command, "1", "--config", "config.toml")
        assert (status, out) == (2, "")
        assert f"--set judge.base_url={written_batch.url}" in err
    assert not written_batch.calls


@pytest.mark.parametrize("place_of_address", ["typed", "config", "project", "environment"])
def test_an_address_that_a_person_gave_gets_the_key(
    cli, written_batch, monkeypatch, place_of_address
):
    url = written_batch.url
    Path("config.toml").write_text(f'base_url = "{url}"')
    Path("btdagg.toml").write_text(f'[judge]\nbase_url = "{url}"')
    assert cli("batch", "send")[0] == 2  # nobody named the project file
    options = {
        "typed": ("--set", f"judge.base_url={url}"),
        "config": ("--config", "config.toml"),
        "project": ("--project", "btdagg.toml"),
    }
    if place_of_address == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert cli("batch", "send", *options.get(place_of_address, ()))[0] == 0
    assert written_batch.calls == ["upload", "create"]


@pytest.mark.parametrize("is_link", [False, True])
def test_a_store_sends_files_of_requests_alone(cli, place, written_batch, is_link):
    (place.parent / "precious").write_text("secret\n")
    with sqlite3.connect("votes.db") as store:
        if is_link:
            ((file,),) = store.execute("SELECT file FROM btdagg_batches")
            Path(file).unlink()
            Path(file).symlink_to(place.parent / "precious")
        else:
            store.execute("UPDATE btdagg_batches SET file = ?", [str(place.parent / "precious")])
    status, _, err = cli("batch", "send", "--set", f"judge.base_url={written_batch.url}")
    assert status == 2
    assert "not a file of requests" in err
    assert not written_batch.calls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("new\n::error::x", "new\n\\x3a:error::x"),
        ("  ::set-output name=a::b", "  \\x3a:set-output name=a::b"),
        ("a\r::error::x", "a\\r::error::x"),
        ("a\u2028b\u2029\x85\x1b[31m", "a\\u2028b\\u2029\\x85\\x1b[31m"),
        ("a ##vso[task.setvariable]", "a #\\x23vso[task.setvariable]"),
    ],
)
def test_names_are_no_commands_of_a_ci_server(text, shown):
    assert visible(text) == shown


def test_a_name_with_a_line_feed_begins_no_command(cli, place):
    rows = [(f"q{n}-{s}", f"q{n}", s, n % 2, k) for n in range(12) for s in "ab" for k in range(2)]
    systems = {"a": "::warning::x", "b": "new\n::error::x"}
    frame = pl.DataFrame(rows, ["item", "group", "system", "score", "sample"], orient="row")
    frame.with_columns(pl.col("system").replace(systems)).write_csv("v.csv")
    frame.select("item", label="score").unique(maintain_order=True).write_csv("l.csv")
    status, out, err = cli("estimate", "v.csv", "l.csv", "--systems", "auto")
    assert status == 0, err
    assert "error::x" in out
    assert not [line for line in (out + err).splitlines() if line.strip().startswith("::")]


HOSTILE = "x\n::error::y"
TABLES = "votes.csv", "labels.csv"
PRINTS = [
    ("check", *TABLES),
    ("votes", "votes.csv"),
    ("evaluate", *TABLES),
    ("evaluate", *TABLES, "--by", "task,judge"),
    ("estimate", *TABLES, "--by", "task"),
    ("estimate", "pairs.csv", "labels.csv", "--systems", "auto"),
    ("compare", "pairs.csv", "labels.csv"),
    ("calibrate", *TABLES, "-o", f"{HOSTILE}.json"),
    ("certify", *TABLES, "-o", f"{HOSTILE}.json"),
    ("bias", "pairs.csv", "labels.csv"),
    ("demo", "--pairs", HOSTILE),
    ("evaluate", "votes.csv", f"{HOSTILE}.csv"),
    ("evaluate", *TABLES, "--filter", f"judge={HOSTILE}"),
    (HOSTILE,),
]


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.parametrize("command", PRINTS, ids=lambda words: "-".join(words[:1] + words[3:4]))
def test_no_name_begins_a_line(cli, place, command):
    rows = [
        (*(f"{name}{HOSTILE}" for name in (f"q{n}", f"j{k % 2}", "A", "B", f"t{n % 2}")), k, vote)
        for n in range(24)
        for k, vote in enumerate(((n + n // 5) % 3 - 1, n % 3 - 1, n % 3 - 1, n % 3 - 1))
    ]
    columns = ["item", "judge", "system_a", "system_b", "task", "sample", "vote"]
    frame = pl.DataFrame(rows, columns, orient="row")
    frame.write_csv("votes.csv")
    frame.drop("task").write_csv("pairs.csv")
    labels = frame.filter(sample=1).select("item", label="vote")
    labels.write_csv("labels.csv")
    _, out, err = cli(*command)
    assert out + err
    began = (line.strip() for line in (out + err).splitlines())
    assert not [line for line in began if line.startswith(("::", "\\x3a:", "error::"))]


@pytest.mark.parametrize("value", ["NaN", "1e400", "-Infinity", "-1"])
@pytest.mark.parametrize(
    "path",
    [("profile", 2), ("profile", 1, 2, 2), ("profile", 0, 0), ("confidence",), ("coverage",),
     ("curve", 0, 4), ("curve", 0, 3), ("n_items",), ("model", "beta")],
)  # fmt: skip
def test_impossible_numbers_of_a_certificate_are_refused(place, path, value):
    if value == "-1" and path in (("profile", 0, 0), ("model", "beta")):
        return  # which may be negative
    votes, labels = btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")
    saved = json.loads(btdagg.certify(votes, labels, agreement=0.1).to_json())
    part = saved
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = "@@"
    text = json.dumps(saved).replace('"@@"', value)
    with pytest.raises(InputError):
        Certificate.from_json(text)


@pytest.mark.parametrize("value", ["NaN", "1e400", "-Infinity"])
def test_numbers_of_saved_files_are_finite(place, value):
    model = btdagg.DavidsonModel(1.25, 0.5, 0.75)
    for saved in (model, StoppingRule.lossless(model, 8)):
        text = saved.to_json().replace("1.25", value)
        with pytest.raises(InputError):
            type(saved).from_json(text)


def test_commands_that_check_advises_read_files_of_another_folder(cli, place):
    files = "../votes.csv", "../labels.csv"
    status, out, _ = cli("check", *files, "--save")
    (command,) = (line.split() for line in out.splitlines() if "btdagg estimate" in line)
    assert status == 0
    assert command[-2:] == ["--project", "btdagg.toml"]
    assert cli(*command[1:])[0] == 0
    assert cli("check", "votes.csv", "labels.csv", "--save", "--force")[0] == 0
    assert cli("estimate")[0] == 0
