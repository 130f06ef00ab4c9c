"""What goes wrong besides bad input: bugs, missing libraries, Ctrl-C, readers that go away."""

import os
import re
import signal
import subprocess
import sys

import polars as pl
import pytest

from btdagg import DavidsonModel
from commands import QUICK, ended, one_line

MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: a model, counts, votes, labels and pairs."""
    monkeypatch.chdir(tmp_path)
    items = [f"q{k}" for k in range(40)]
    counts = {"item": items, "minus": 1, "tie": 2, "plus": 3}
    pl.DataFrame(counts).write_csv("counts.csv")
    pl.DataFrame({"item": items * 2, "vote": [1, 0, -1, 1] * 20}).write_csv("votes.csv")
    pl.DataFrame({"item": items, "label": [1, 0, -1, 1] * 10}).write_csv("labels.csv")
    pl.DataFrame({"item": items, "prompt": "p", "a": "x", "b": "y"}).write_ndjson("pairs.jsonl")
    MODEL.save("model.json")
    return tmp_path


# Bugs


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), pl.exceptions.ComputeError("x"), ImportError("x"), AssertionError()],
)
def test_an_error_that_is_not_bad_input_is_called_a_bug(cli, folder, monkeypatch, error):
    def broken(*arguments, **options):
        raise error

    monkeypatch.setattr("btdagg.calibrate", broken)
    status, out, err = cli(
        "calibrate", "--prior", "none", "votes.csv", "labels.csv", "-o", "new.json"
    )
    assert (status, out) == (70, "")
    assert err.count("\n") == 1
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    assert err.startswith(f"btdagg: this is a bug in btdagg, not in your input: {what} (")
    assert re.search(r"\(test_cli_errors.py, line \d+\); please report it", err)
    assert "--debug" in err
    assert "Traceback" not in err
    assert not (folder / "new.json").exists()


def test_debug_shows_the_traceback(cli, folder, monkeypatch):
    monkeypatch.setattr("btdagg.calibrate", lambda *_, **__: [][0])
    files = ["votes.csv", "labels.csv"]
    status, _, err = cli("calibrate", "--prior", "none", "--debug", *files)
    assert status == 70
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.splitlines()[-1].startswith("btdagg: this is a bug in btdagg")
    status, _, err = cli("--debug", "calibrate", "--prior", "none", "nope.csv", "labels.csv")
    assert status == 2
    assert "InputError: nope.csv: no such file" in err
    assert err.endswith("\nbtdagg: nope.csv: no such file\n")


def test_ctrl_c_is_a_line_and_writes_nothing(cli, folder, monkeypatch):
    monkeypatch.setattr("btdagg.calibrate", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    found = cli("calibrate", "votes.csv", "labels.csv", "--prior", "none", "-o", "new.json")
    assert found == (130, "", "btdagg: interrupted\n")
    assert not (folder / "new.json").exists()


# Readers that go away


COMMANDS = {
    "small": ["decide", "model.json", "counts.csv"],
    "sql": ["sql", "model.json"],
}


def test_nobody_reads_standard_output(folder):
    reader, writer = os.pipe()
    os.close(reader)
    status, _, err = ended(*COMMANDS["small"], stdout=writer)
    os.close(writer)
    assert (status, err) == (141, "")


def test_a_reader_that_leaves_does_not_stop_the_work(folder):
    reader, writer = os.pipe()
    os.close(reader)
    options = ["--report", "report", "--prior", "none"]
    evaluate = ["evaluate", "votes.csv", "labels.csv", *options]
    status, _, err = ended(*evaluate, before=QUICK, stdout=writer)
    os.close(writer)
    assert status == 141
    assert (folder / "report" / "index.html").exists()
    assert not re.search("Traceback|Error|btdagg:|Broken pipe", err)


def test_standard_output_that_takes_nothing_is_an_error(folder):
    with open("/dev/full", "w") as full:
        status, _, err = ended(*COMMANDS["sql"], stdout=full)
    assert status == 2
    assert err.splitlines()[-1] == "btdagg: standard output: No space left on device"
    command = [sys.executable, "-m", "btdagg", *COMMANDS["sql"]]
    done = subprocess.run(
        ["bash", "-c", '"$@" >&-', "-", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "btdagg: standard output: Bad file descriptor"


# Ctrl-C


INTERRUPTED = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(10_000):  # a signal is seen to between two steps
                    pass
            except KeyboardInterrupt:  # some libraries lose it like this
                raise {error}

sys.meta_path.insert(0, Press())
"""


@pytest.mark.parametrize(
    ("module", "error"),
    [("typer", ""), ("polars", "TypeError('expected a message argument') from None")],
)
def test_ctrl_c_while_a_library_is_loaded_is_a_line(folder, module, error):
    before = INTERRUPTED.format(module=module, error=error)
    status, out, err = ended(
        "calibrate", "--prior", "none", "votes.csv", "labels.csv", before=before
    )
    assert (status, out, err) == (130, "", "btdagg: interrupted\n")


def test_ctrl_c_stays_ignored_where_it_was(folder):
    before = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    before += INTERRUPTED.format(module="typer", error="")
    assert ended("sql", "model.json", before=before)[0] == 0


# Ways to call it


@pytest.mark.parametrize("name", ["label", "vote"])
def test_the_option_that_names_the_raters_can_be_typed(cli, folder, name):
    rows = "".join(f"q{k},{who},{k % 3 - 1}\n" for k in range(20) for who in "xy")
    (folder / "gold.csv").write_text(f"item,who,{name}\n{rows}")
    (folder / "seen.csv").write_text("item,vote\n" + rows.replace(",x", "").replace(",y", ""))
    command = ["calibrate", "seen.csv", "gold.csv", "-o", "new.json"]
    said = one_line(*cli(*command))
    assert f"by --set rater=NAME; found item, who, {name}" in said
    assert cli(*command, "--set", "rater=who")[0] == 0


def test_the_option_that_names_the_item_can_be_typed(cli, folder):
    (folder / "two.csv").write_text("id,item_id,vote\nq1,1,A\n")
    said = one_line(*cli("votes", "two.csv"))
    assert "two.csv: columns 'id' and 'item_id' could both be the item" in said
    option = said.partition("as in ")[2]
    assert option == "--set item=id"
    assert cli("votes", "two.csv", *option.split())[0] == 0
