"""What several test modules share."""

import os
from pathlib import Path

import pytest

from btdagg.cli import run
from databases import PostgreSQL, postgres_programs


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
