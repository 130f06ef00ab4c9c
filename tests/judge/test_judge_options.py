"""Settings of a judge: the keys of a file, which are those of `Judging`, and flags."""

import json
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest
import typer

from btdagg.cli.app import app
from btdagg.cli.flags import CommandLine
from btdagg.cli.judge_settings import KEYS, JudgeFlags
from btdagg.judge import Judging, Limits
from btdagg.judge.client import STATUSES
from commands import one_line
from judging import config, pairs_of

pytestmark = pytest.mark.usefixtures("quick_commands")

# Parameters of Judging and Limits that are no keys of a file.
NO_KEY = {"limits": "its fields are keys", "grace": "nobody changes it", "method": "--method"}


def options_of(*command):
    found = typer.main.get_command(app)
    for name in command:
        found = found.get_command(None, name)
    return {max(each.opts, key=len): each for each in found.params if hasattr(each, "is_flag")}


def test_flags_mean_the_same_in_each_command():
    judge, run, write = options_of("judge"), options_of("run"), options_of("batch", "write")
    assert [len(judge), len(run), len(write)] <= [12, 13, 8]
    for name in judge.keys() & run.keys() - {"--store", "--labels"}:
        for one in (run[name], write.get(name, run[name])):
            assert (one.opts, one.default, one.help) == (
                judge[name].opts,
                judge[name].default,
                judge[name].help,
            ), name


def test_every_parameter_of_judging_is_a_key():
    fields_of_both = {each.name for each in (*fields(Judging), *fields(Limits))}
    assert fields_of_both - set(KEYS) == NO_KEY.keys()
    settings = flags(model="m").settings()
    assert settings.judging == Judging("m")


def test_the_docs_list_every_key():
    page = (Path(__file__).parents[2] / "docs" / "judge.md").read_text()
    assert [name for name in KEYS if f"`{name}`" not in page] == []


def test_a_flag_wins_over_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, path = config(model="m", n=6, temperature="default", concurrency=3, again="all")
    read = flags(config=Path(path), n=8).settings().judging
    assert (read.model, read.n, read.temperature, read.limits.concurrency) == ("m", 8, None, 3)
    assert read.again == STATUSES[1:]


def flags(**values):
    """What the command line gives a judge, with an endpoint."""
    typed = CommandLine(typer.Context(typer.main.get_command(app)))
    return JudgeFlags(typed=typed, keys=["judge.base_url=http://localhost:1/v1"], **values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("temprature = 1", "unknown key 'temprature', expected 'temperature', for example"),
        ("structured = 1", "structured is 1, expected a valid boolean"),
        ("allow_missing = 2", "allow_missing is 2, expected less than or equal to 1"),
        ("temperature = 'warm'", "temperature is 'warm', expected a valid number or 'default'"),
        ("again = ['failed', 5]", "again is ['failed', 5], expected a valid string"),
        ("prices = { prompt = 1 }", "prices.completion is missing"),
        ("extra = { x = 2020-01-01 }", "extra.x: expected a valid JSON value"),
        ("headers = 'Bearer supersecret'", "headers: expected a valid dictionary"),
        ("headers = { X = ['supersecret'] }", "headers.X: expected a valid string"),
        ("n = ", "Invalid value (at end of document)"),
    ],
)
def test_a_file_that_cannot_be_read(cli, tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("judge.toml").write_text(text)
    line = one_line(*cli("judge", "pairs.jsonl", "--config", "judge.toml"))
    assert line == f"judge.toml: {message}"


@pytest.fixture
def folder(folder):
    """A folder to work in: 20 pairs, labels of the first 12."""
    frame = pairs_of(20).frame
    frame.write_ndjson("pairs.jsonl")
    labels = [(0, -1, 1)[number % 3] for number in range(20)]
    pl.DataFrame({"item": frame["item"], "label": labels}).head(12).write_csv("labels.csv")
    return folder


def test_a_dry_run_of_run_asks_nobody_and_writes_nothing(cli, folder, judge_server):
    server = judge_server()
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", "4"]
    options += ["--set", f"judge.base_url={server.url}"]
    status, out, err = cli(*options, "--dry-run")
    assert (status, out.splitlines()[0]) == (
        0,
        "20 pairs, 80 votes; 0 are in the store, 80 calls to make",
    ), err
    status, out, err = cli(*options, "--dry-run", "--json", "--stop", "lossless")
    assert json.loads(out)["n_calls"] == 80
    assert (
        "the estimate assumes all votes for every pair left; the stopping rule will ask for fewer"
        in err
    )
    assert server.log() == []
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["judge", "--stop", "lossless"],
            "--stop lossless is a rule to learn, which only btdagg run",
        ),
        (["judge", "--stop", "soon"], "--stop is 'soon', expected lossless, epsilon=0.05"),
        (["judge", "--stop", "epsilon=x"], "--stop is 'epsilon=x', expected lossless"),
        (
            ["judge", "--set", "judge.again=foo"],
            "again is 'foo', expected all, or some of unparsed, ref",
        ),
        (
            ["judge", "--batch", "--dry-run", "--model", "google:m"],
            "--model is 'google:m', expected a model of openai or anthropic",
        ),
        (
            ["judge", "--batch", *config(stream=True)],
            "stream cannot be combined with batches; leave it out",
        ),
        (["run", "--labels", "labels.csv", "--stop", "absent.json"], "absent.json: No such file"),
    ],
)
def test_what_cannot_be_is_refused_by_both(cli, folder, arguments, said):
    command, *options = arguments
    line = one_line(*cli(command, "pairs.jsonl", "--model", "m", *options))
    assert line.startswith(said)
    assert not (folder / "out").exists()
