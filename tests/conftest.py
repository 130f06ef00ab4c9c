"""What several test modules share."""

import os
from pathlib import Path

import pytest

from btdagg.cli import run
from databases import PostgreSQL, postgres_programs
from judge_endpoints import Endpoint
from simulated_judge import SimulatedJudge


@pytest.fixture(scope="session")
def shared():
    """Folder that holds the public votes, as `data`; BTDAGG_SHARED, or beside the checkout."""
    folder = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("the public votes are not here: set BTDAGG_SHARED")
    return folder


@pytest.fixture
def cli(capsys):
    """Run a command; exit status, standard output and standard error."""

    def call(*arguments):
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def judge_server(tmp_path):
    """Start simulated judges, by their command-line options; they are stopped after the test."""
    started = []

    def start(*arguments):
        folder = tmp_path / f"judge-{len(started)}"
        folder.mkdir()
        started.append(SimulatedJudge(folder, *arguments))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def endpoint():
    """Start endpoints that answer as a function says; they are stopped after the test."""
    started = []

    def start(answer):
        started.append(Endpoint(answer))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; tests are skipped where there is none, but not where CI runs."""
    programs = postgres_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed")
    server = PostgreSQL(programs)
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_place(request, tmp_path):
    """Where a vote store goes: a file, and a database of a server."""
    if request.param == "sqlite":
        return str(tmp_path / "votes.db")
    return request.getfixturevalue("postgres").database(f"votes_{os.urandom(6).hex()}")
