"""A folder from elsewhere does nothing that nobody asked for."""

import contextlib
import os
import socket
import threading
from pathlib import Path

import polars as pl
import pytest

import btdagg
from btdagg import InputError

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
