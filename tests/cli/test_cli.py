"""Every command in process: results, streams, exit status, messages."""

import json
import re
import shlex

import polars as pl
import pytest

import btdagg
from btdagg import DavidsonModel, Protocol, calibrate, evaluate, read_labels, read_votes
from btdagg.cli.app import COMMANDS
from btdagg.datasets import simulate
from btdagg.evaluation import PAPER_TEST, RandomSplits, SplitTest
from btdagg.methods import by_name
from btdagg.paper.conditions import COMPARED
from commands import one_line

pytestmark = pytest.mark.usefixtures("quick_commands")

SAMPLE = simulate("wmt-en-de", 120, 8, seed=1)
MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: votes of two judges, labels, counts, a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    votes = pl.DataFrame(SAMPLE.vote_columns())
    other = votes.with_columns(vote=-pl.col("vote"))
    votes = pl.concat(
        [votes.with_columns(judge=pl.lit("g")), other.with_columns(judge=pl.lit("h"))]
    )
    votes.write_csv("votes.csv")
    votes.write_parquet("votes.parquet")
    pl.DataFrame(SAMPLE.label_columns()).write_csv("labels.csv")
    counts = dict(zip(("minus", "tie", "plus"), SAMPLE.counts.T, strict=True))
    pl.DataFrame({"item": SAMPLE.items, **counts}).write_csv("counts.csv")
    MODEL.save("model.json")
    return tmp_path


# The program


def test_version_is_printed(cli):
    status, out, err = cli("--version")
    assert err == ""
    assert status == 0
    assert btdagg.__version__ in out.split()


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_commands(cli, option):
    status, out, err = cli(option)
    assert (status, err) == (0, "")
    assert "To start: btdagg demo" in out
    assert all(re.search(rf"^  {command} +[A-Z]", out, re.MULTILINE) for command in COMMANDS)


def example_of(command, cli):
    status, out, err = cli(command, "--help")
    assert (status, err) == (0, "")
    text = re.search(r"^ *Example: (.*?)\n *\n", out, re.MULTILINE | re.DOTALL)[1]
    return shlex.split(text)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_help_of_a_command_has_an_example_of_it(cli, command):
    assert example_of(command, cli)[:2] == ["btdagg", command]


def test_the_examples_work_and_leave_the_gold_labels_alone(cli, folder):
    for name in ("votes.csv", "votes.parquet"):
        votes = read_votes(name).frame.with_columns(
            template=pl.lit("base"), judge=pl.col("judge").replace("g", "gpt-5.4")
        )
        votes.write_csv(name) if name.endswith("csv") else votes.write_parquet(name)
    gold = (folder / "labels.csv").read_bytes()
    (folder / "model.json").unlink()
    for command in ("choose", "calibrate", "decide", "plan"):
        status, _, err = cli(*example_of(command, cli)[1:])
        assert status == 0, err
    assert (folder / "model.json").exists()
    assert (folder / "labels.csv").read_bytes() == gold


# Demo


SMALL = ["demo", "--items", 60]
PAPER = ["paper", "evaluate", "--prior", "none"]


def test_the_demo_is_an_evaluation_of_all_simulated_tasks(cli, folder):
    status, out, err = cli(*SMALL, "--json", "--output", folder / "demo")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["settings"] == {"items": 60, "splits": 10, "test": SplitTest().words}
    assert told["by"] == ["task"]
    by_hand = evaluate(
        read_votes(folder / "demo/demo_votes.csv"),
        read_labels(folder / "demo/demo_labels.csv"),
        n_votes=[4, 8],
        protocol=Protocol(RandomSplits(n_splits=10)),
    )
    assert told["lines"] == by_hand.as_dict()["lines"]
    assert told["averages"] == by_hand.as_dict()["averages"]
    assert told["remarks"] == list(by_hand.remarks)


def table_of(out):
    """The rows of the printed table, as texts."""
    rows = [re.split(r" {2,}", row.strip()) for row in out.splitlines() if " ±." in row]
    assert rows
    return rows


@pytest.mark.parametrize("name", ["my demo[/x]"])
def test_the_command_that_the_demo_prints_can_be_typed(cli, folder, name):
    status, out, _ = cli(*SMALL, "-o", name)
    assert status == 0
    assert "on 3 labels and scored on the rest.\nVotes and labels are drawn from Thurstone's" in out
    assert f"Wrote {name}/demo_votes.csv and {name}/demo_labels.csv." in out
    (printed,) = (line for line in out.splitlines() if line.startswith("  btdagg "))
    votes, labels = (f"{name}/demo_{table}.csv" for table in ("votes", "labels"))
    assert shlex.split(printed) == ["btdagg", "evaluate", votes, labels, "-n", "4,8"]


# Evaluate


def test_evaluate_by_other_columns_and_filters(cli, folder):
    command = [*PAPER, "votes.csv", "labels.csv", "--splits", 2, "--json"]
    told = json.loads(cli(*command, "--by", " Order ,judge")[1])
    assert told["by"] == ["order", "judge"]
    keys = [(line["order"], line["judge"]) for line in told["lines"][::2]]
    assert keys == [("AB", "g"), ("BA", "g"), ("AB", "h"), ("BA", "h")]
    filters = ["-f", " Judge = h", "--filter", "sample=0", "-f", "sample=1"]
    filtered = read_votes("votes.csv").filter({"judge": "h", "sample": ["0", "1"]})
    protocol = Protocol(RandomSplits(n_splits=2), PAPER_TEST)
    expected = evaluate(
        filtered, read_labels("labels.csv"), aggregators=by_name(COMPARED), protocol=protocol
    )
    told = json.loads(cli(*command, *filters)[1])
    assert told["lines"] == expected.as_dict()["lines"]


def test_rows_without_a_label_are_said(cli, folder):
    labels = pl.read_csv("labels.csv").with_columns(
        label=pl.when(pl.int_range(pl.len()) >= 5).then("label")
    )
    labels.write_csv("some.csv")
    status, out, err = cli(*PAPER, "votes.csv", "some.csv", "-f", "judge=g", "--splits", 2)
    assert status == 0
    assert table_of(out)[0][:3] == ["g", "all", "115"]
    assert err.splitlines()[-2:] == [
        "5 rows of some.csv have no label and are left out",
        "5 items have votes but no label and are left out",
    ]


# Calibrate and decide


FIT = ["calibrate", "--prior", "none", "-o", "new.json"]


def test_calibrate_says_in_json_how_the_fit_went(cli, folder):
    rows = [*pl.DataFrame(SAMPLE.label_columns())[5:].rows(), ("?", 1)]
    pl.DataFrame(rows, schema=["item", "label"], orient="row").write_csv("some.csv")
    status, out, err = cli(*FIT, "counts.csv", "some.csv", "--json")
    expected = calibrate(SAMPLE.counts[5:], SAMPLE.labels[5:], prior=None)
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert list(told) == [
        "model", "n_labels", "max_votes", "converged", "warnings", "drps", "log_loss",
        "at_bounds", "n_starts", "n_effective", "intervals", "nu", "n_unlabelled",
        "n_without_votes", "n_missing", "remarks", "output",
    ]  # fmt: skip
    assert DavidsonModel(**told["model"]) == expected.model == DavidsonModel.load("new.json")
    assert (told["drps"], told["nu"]) == (expected.drps, expected.model.nu)
    assert (told["n_labels"], told["max_votes"], told["converged"]) == (115, 8, True)
    assert (told["n_unlabelled"], told["n_without_votes"]) == (5, 1)
    assert (told["remarks"], told["output"]) == ([], "new.json")
    _, out, _ = cli(*FIT, "counts.csv", "some.csv")
    assert "left out: 5 items without a label, 1 labels without votes\n" in out


READERS = {
    ".csv": lambda path: pl.read_csv(path),
    ".tsv": lambda path: pl.read_csv(path, separator="\t"),
    ".jsonl": lambda path: pl.read_ndjson(path),
    ".parquet": lambda path: pl.read_parquet(path),
}
COLUMNS = ["item", "label", "minus", "tie", "plus", "p_minus", "p_tie", "p_plus"]


def assert_decided(frame, counts=SAMPLE.counts):
    assert frame.columns == COLUMNS
    assert frame["item"].to_list() == SAMPLE.items.tolist()
    assert frame["label"].to_list() == MODEL.decide(counts).tolist()
    assert frame.select("minus", "tie", "plus").rows() == [tuple(row) for row in counts.tolist()]
    p = frame.select("p_minus", "p_tie", "p_plus").to_numpy()
    assert (p == MODEL.predict_proba(counts)).all()


@pytest.mark.parametrize("suffix", READERS)
def test_decide_writes_every_format(cli, folder, suffix):
    name = f"decided{suffix}"
    status, out, err = cli("decide", "model.json", "counts.csv", "-o", name)
    assert (status, err) == (0, "")
    assert_decided(READERS[suffix](folder / name))
    labels = MODEL.decide(SAMPLE.counts).tolist()
    assert out == (
        f"decided 120 items: {labels.count(-1)} minus, {labels.count(0)} tie, {labels.count(1)} "
        f"plus; wrote {name}\n"
    )
    assert min(labels.count(label) for label in (-1, 0, 1)) > 0


def test_ids_that_a_spreadsheet_would_run_come_out_as_they_came(cli, folder):
    ids = ["=1+1", "@sum", "+cot", "-2", "'=x"]
    pl.DataFrame({"item": ids, "vote": [1] * 5}).write_csv("votes.csv")
    assert cli("decide", "model.json", "votes.csv", "-o", "decided.csv")[0] == 0
    decided = pl.read_csv("decided.csv", infer_schema=False)
    assert sorted(decided["item"]) == sorted(ids)
    assert cli("import", "votes.csv", "-o", "imported.csv")[0] == 0
    assert pl.read_csv("imported.csv", infer_schema=False)["item"].to_list() == ids


@pytest.mark.parametrize("votes", ["counts.csv", "votes.parquet"])
def test_decide_prints_where_there_is_no_output(cli, folder, votes):
    filters = [] if votes == "counts.csv" else ["--filter", "judge=g"]
    status, out, err = cli("decide", "model.json", votes, *filters)
    assert (status, err) == (0, "")
    assert_decided(pl.read_csv(out.encode()))
    status, out, err = cli("decide", "model.json", votes, *filters, "--json")
    assert (status, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert_decided(pl.DataFrame(rows))
    assert all(list(row) == COLUMNS for row in rows)


def test_decide_sums_up_in_json(cli, folder):
    votes = pl.read_csv("votes.csv").filter(judge="g")
    votes = votes.with_columns(vote=pl.when(pl.int_range(pl.len()) > 1).then("vote"))
    votes.write_csv("some.csv")
    status, out, err = cli("decide", "model.json", "some.csv", "-o", "decided.csv", "--json")
    assert (status, err) == (0, "2 votes are missing and not counted\n")
    counts = SAMPLE.counts.copy()
    for vote in SAMPLE.votes[0, :2]:
        counts[0, vote + 1] -= 1
    assert_decided(pl.read_csv("decided.csv"), counts)
    labels = MODEL.decide(counts).tolist()
    assert json.loads(out) == {
        "n_items": 120,
        "labels": {
            "minus": labels.count(-1), "tie": labels.count(0), "plus": labels.count(1)
        },
        "n_missing": 2,
        "output": "decided.csv",
    }  # fmt: skip


# Refusals


FILES = {
    "bad.csv": "item,vote\nx,1\ny,C\n",
    "none.csv": "item,label\n" + "".join(f"{item},\n" for item in SAMPLE.items[:9]),
}

EVALUATE = "paper evaluate votes.csv labels.csv --splits 2"
REFUSALS = [
    ("evaluate nope.csv labels.csv", "nope.csv: no such file"),
    ("decide model.json bad.csv", "bad.csv, row 2, column vote: got 'C', expected -1, 0, 1 or A"),
    ("evaluate votes.csv none.csv", "none.csv: no item has a label"),
    ("calibrate votes.csv labels.csv -f judge=k", "votes.csv: no row has judge 'k'; found g, h"),
    (EVALUATE + " -n 4;8", "-n is '4;8', expected whole numbers from 1 to 2147483647 separated by"),
    (
        EVALUATE + " --by temperature",
        "votes.csv: no column 'temperature'; found item, vote, sample",
    ),
    ("calibrate counts.csv labels.csv -n 4", "counts.csv: -n needs single votes, but these are"),
    ("decide model.json votes.csv -o decided.xlsx", "--output is 'decided.xlsx', expected a name"),
    ("frob", "No such command 'frob'."),
    ("decide model.json votes.csv --xyzzy", "No such option: --xyzzy"),
    ("decide model.json", "VOTES is missing: name a file, or put it into btdagg.toml"),
    (EVALUATE + " --splits 1", "--splits is 1, expected at least 2"),
]


@pytest.fixture
def bad(folder):
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize(("line", "message"), REFUSALS)
def test_bad_input_is_one_line_and_status_2(cli, line, message):
    assert one_line(*cli(*line.split())).startswith(message)
