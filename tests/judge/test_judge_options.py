"""`judge` and `run` have the same options, which are those of `Judging`."""

import json
from dataclasses import fields

import polars as pl
import pytest
import typer

from btdagg.cli.app import app
from btdagg.cli.judge_options import JudgeOptions
from btdagg.judge import Judging, Limits
from btdagg.online import StoppingRule
from commands import one_line
from judging import pairs_of, rows_of

pytestmark = pytest.mark.usefixtures("figures_not_drawn")

# Options of one command, and why the other has none of the kind.
JUDGE_ONLY = {
    "--method": "its decisions are not votes, so run could not calibrate on them",
    "--examples": "of the method few-shot",
}
RUN_ONLY = {
    "--output": "judge writes to its store alone",
    "--force": "of files in the output folder",
    "--splits": "of the evaluation",
    "--seed": "of the splits",
    "--prior": "of the calibration",
}
# Parameters of Judging without an option of the same name.
NO_OPTION = {
    "extra": "--extra-body, as JSON",
    "limits": "an option for each of its fields",
    "prices": "--price-in and --price-out",
    "grace": "nobody has wanted another",
    "method": "--method and --stop",
}


def options_of(command):
    found = typer.main.get_command(app).get_command(None, command).params
    return {max(each.opts, key=len): each for each in found if each.param_type_name == "option"}


def test_judge_and_run_have_the_same_options():
    judge, run = options_of("judge"), options_of("run")
    assert judge.keys() - run.keys() == JUDGE_ONLY.keys()
    assert run.keys() - judge.keys() == RUN_ONLY.keys()
    apart = {"--store", "--labels"}  # in the folder unless given; required
    for name in judge.keys() & run.keys() - apart:
        one, other = judge[name], run[name]
        assert (one.opts, one.secondary_opts, one.default, one.help) == (
            other.opts,
            other.secondary_opts,
            other.default,
            other.help,
        ), name


def test_every_parameter_of_judging_is_an_option_with_its_default():
    options = {each.name: each for each in fields(JudgeOptions)}
    parsed = {"values", "temperature", "again"}  # text on the command line
    assert {each.name for each in fields(Judging)} - options.keys() == NO_OPTION.keys()
    assert {each.name for each in fields(Limits)} <= options.keys()
    for each in (*fields(Judging), *fields(Limits)):
        if each.name not in NO_OPTION.keys() | parsed:
            assert options[each.name].default == each.default, each.name
    assert JudgeOptions(model="m").judging() == Judging("m")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: 20 pairs, labels of the first 12."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    frame = pairs_of(20).frame
    frame.write_ndjson("pairs.jsonl")
    labels = [(0, -1, 1)[number % 3] for number in range(20)]
    pl.DataFrame({"item": frame["item"], "label": labels}).head(12).write_csv("labels.csv")
    return tmp_path


def test_run_asks_as_its_options_say(cli, folder, judge_server):
    server = judge_server()
    status, _, err = cli(
        *("run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", "3"),
        *("--base-url", server.url, "--order", "BA", "--confidence", "verbal", "--structured"),
        *("--attempts", "2", "--drop-exchanges", "--splits", "2"),
        *("--tokens-per-minute", "1e9", "--max-calls", "60", "--max-tokens", "1000000"),
        *("--max-answer-tokens", "300"),
    )
    assert status == 0, err
    rows = rows_of("out/votes.db")
    assert {row["order"] for row in rows} == {"BA"}
    assert len(rows) == 60
    assert len(server.log()) == 60
    decided = pl.read_csv("out/decided.csv")
    assert decided.select(pl.sum_horizontal("minus", "tie", "plus")).to_series().max() == 3
    assert json.loads((folder / "out/model.json").read_text())["provenance"]["n_votes"] == 3


def test_a_dry_run_of_run_asks_nobody_and_writes_nothing(cli, folder, judge_server):
    server = judge_server()
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", "4"]
    options += ["--base-url", server.url]
    status, out, err = cli(*options, "--dry-run")
    assert (status, out.splitlines()[0]) == (
        0,
        "20 pairs, 80 votes; 0 are in the store, 80 calls to make",
    ), err
    status, out, err = cli(*options, "--dry-run", "--json", "--stop", "lossless")
    assert json.loads(out)["n_calls"] == 80
    assert "the estimate counts all votes of the other pairs; the rule asks for fewer" in err
    assert server.log() == []
    assert not (folder / "out").exists()


@pytest.mark.parametrize("stop", ["lossless", "rule.json"])
def test_stop_means_the_same_in_both(cli, folder, judge_server, stop):
    """What judge has asked for is all that run needs, and the other way round."""
    server = judge_server()
    common = ["pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", "4"]
    common += ["--base-url", server.url]
    if stop == "rule.json":
        status, _, err = cli(
            "run", *common, "--splits", "2", "--stop", "epsilon=0.2", "-o", "first"
        )
        assert status == 0, err
        (folder / "first/rule.json").rename("rule.json")
    before = len(server.log())
    status, out, err = cli("judge", *common, "--stop", stop, "-s", "v.db", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["n_calls"] == len(rows_of("v.db")) == len(server.log()) - before <= 80
    assert (found["n_items"], found["n_full"]) == (8, 32)
    per_item = pl.DataFrame(rows_of("v.db")).group_by("item").len()
    full = dict(per_item.iter_rows())
    assert {full[f"q{k}"] for k in range(12)} == {4}
    asked = len(server.log())
    status, _, err = cli("run", *common, "--splits", "2", "--stop", stop, "-s", "v.db", "-o", "out")
    assert status == 0, err
    assert len(server.log()) == asked
    rule = StoppingRule.load("out/rule.json")
    if stop == "rule.json":
        assert rule == StoppingRule.load("rule.json")
    decided = pl.read_csv("out/decided.csv")
    counts = decided["minus", "tie", "plus"].to_numpy()
    assert decided["label"].to_list() == rule.decide(counts).tolist()
    assert decided["settled"].all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judge", "--stop", "lossless"], "--stop lossless wants --labels: the rule is learned"),
        (["judge", "--stop", "soon"], "--stop is 'soon', expected lossless, epsilon=0.05"),
        (["judge", "--stop", "epsilon=x"], "--stop is 'epsilon=x', expected lossless"),
        (["judge", "--labels", "labels.csv", "--stop", "epsilon=0.7"], "epsilon is 0.7"),
        (["run", "--labels", "labels.csv", "--stop", "absent.json"], "absent.json: No such file"),
        (
            ["run", "--labels", "labels.csv", "--confidence", "high"],
            "confidence is 'high', expected",
        ),
        (
            ["run", "--labels", "labels.csv", "--max-calls", "0"],
            "--max-calls is 0, expected at least",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_both(cli, folder, arguments, said):
    command, *options = arguments
    line = one_line(*cli(command, "pairs.jsonl", "--model", "m", *options))
    assert line.startswith(said)
    assert not (folder / "out").exists()
