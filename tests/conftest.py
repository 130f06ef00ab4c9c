"""What several test modules share."""

import os
from pathlib import Path

import pytest

from btdagg.cli import run


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
