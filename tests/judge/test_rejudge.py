"""`btdagg rejudge`: votes of a new judge on labelled items alone, and the model carried over."""

import json

import polars as pl
import pytest

import btdagg

pytestmark = [
    pytest.mark.usefixtures("quick_commands"),
    pytest.mark.filterwarnings("ignore"),
]
NEW = ("--model", "simulated", "--set", "judge.temperature=1.0", "-n", "4")


@pytest.fixture
def folder(folder, cli):
    """Pairs, labels of 60 of them, and votes of an old judge."""
    rows = [
        {"item": f"q{n}", "prompt": "?", "a": "x" * (n * 7 % 41 + 1), "b": "y" * (n * 11 % 37 + 1)}
        for n in range(100)
    ]
    pl.DataFrame(rows).write_ndjson("pairs.jsonl")
    leads = [(row["item"], len(row["a"]) - len(row["b"])) for row in rows[:60]]
    labels = [{"item": i, "label": 0 if abs(d) < 6 else 1 if d > 0 else -1} for i, d in leads]
    pl.DataFrame(labels).write_csv("labels.csv")
    assert cli("judge", "pairs.jsonl", "--model", "simulated", "-n", "4", "-s", "old.db")[0] == 0
    assert cli("votes", "old.db", "-o", "old.csv")[0] == 0
    return folder


def rejudged(cli, *options, status=0):
    command = ("rejudge", "old.csv", "labels.csv", "--pairs", "pairs.jsonl", *NEW, "--json")
    found, out, err = cli(*command, *options)
    assert found == status, err
    return json.loads(out), err


def test_labelled_items_alone_are_asked_about_and_more_of_them_go_on(cli, folder):
    first, _ = rejudged(cli, "--items", "20")
    assert (first["n_labels"], first["n_again"], first["run"]["n_calls"]) == (60, 20, 80)
    second, _ = rejudged(cli, "--items", "50")
    assert (second["n_again"], second["run"]["n_calls"]) == (50, 120)
    everything, _ = rejudged(cli)
    assert (everything["n_again"], everything["run"]["n_calls"]) == (60, 40)
    assert cli("votes", "rejudged.db", "-o", "new.csv")[0] == 0
    assert pl.read_csv("new.csv")["item"].n_unique() == 60


def test_the_model_is_that_of_python_on_the_same_votes(cli, folder):
    rejudged(cli, "--items", "30")
    assert cli("votes", "rejudged.db", "-o", "new.csv")[0] == 0
    votes = [btdagg.read_votes(name) for name in ("old.csv", "new.csv")]
    wanted = btdagg.recalibrate(*votes, btdagg.read_labels("labels.csv"))
    found = btdagg.DavidsonModel.load("rejudged.json")
    assert (found.beta, found.gamma) == (wanted.model.beta, wanted.model.gamma)
    assert found.provenance.ancestry == ("simulated, 60 labels",)
    assert found.provenance.temperature == ("1",)
    assert cli("decide", "rejudged.json", "new.csv")[0] == 0


def test_a_budget_ends_the_run_and_the_same_command_goes_on(cli, folder):
    few, _ = rejudged(cli, "--set", "judge.max_calls=100", status=3)
    assert 15 <= few["n_again"] <= 25  # those that have all their votes
    rest, _ = rejudged(cli)
    assert rest["n_again"] == 60
    assert few["run"]["n_calls"] + rest["run"]["n_calls"] == 240


def test_another_file_of_the_default_name_is_kept(cli, folder):
    (folder / "rejudged.json").write_text("{}")
    command = ("rejudge", "old.csv", "labels.csv", "--pairs", "pairs.jsonl", *NEW)
    status, _, err = cli(*command)
    assert status == 2
    assert "rejudged.json exists and is not a model" in err
    assert not (folder / "rejudged.db").exists()


def test_nothing_is_asked_by_a_dry_run(cli, folder):
    command = ("rejudge", "old.csv", "labels.csv", "--pairs", "pairs.jsonl", *NEW, "--dry-run")
    status, out, _ = cli(*command)
    assert status == 0
    assert "60 pairs, 240 votes; 0 are in the store, 240 calls to make" in out
    assert not (folder / "rejudged.db").exists()
    assert not (folder / "rejudged.json").exists()


def test_the_same_judge_is_noticed(cli, folder):
    _, err = rejudged(cli, "--set", "judge.temperature=0.5")
    assert "votes of old.csv are by simulated too, with the same template and temperature" in err
    assert "are by simulated too" not in rejudged(cli)[1]


def test_a_project_names_the_files(cli, folder):
    wanted, _ = rejudged(cli, "--items", "20")
    files = {"votes": "old.csv", "labels": "labels.csv", "pairs": "pairs.jsonl"}
    lines = [f'[{kind}]\nfile = "{name}"' for kind, name in files.items()]
    (folder / "other.toml").write_text("\n".join(lines))
    how = ("--items", "20", "--project", "other.toml", "--json", "-o", "other.json")
    status, out, err = cli("rejudge", *NEW, *how)
    assert status == 0, err
    assert json.loads(out)["sentence"] == wanted["sentence"]
    assert (folder / "other.json").read_text() == (folder / "rejudged.json").read_text()


def test_the_temperature_of_the_endpoint_may_be_the_new_one(cli, folder):
    _, err = rejudged(cli, "--set", "judge.temperature=default", "--items", "12")
    assert "are by simulated too" not in err


def test_the_old_votes_stay_apart_and_outputs_are_checked_first(cli, folder):
    command = ("rejudge", "old.db", "labels.csv", "--pairs", "pairs.jsonl", *NEW)
    status, _, err = cli(*command, "--store", "old.db")
    assert (status, "expected a store other than that of the old votes" in err) == (2, True)
    status, _, err = cli(*command, "-o", "nowhere/x.json")
    assert status == 2
    assert not (folder / "rejudged.db").exists()
    old = pl.read_csv("old.csv")
    pl.concat([old, old.with_columns(judge=pl.lit("other"))]).write_csv("old.csv")
    found, err = rejudged(cli, "--items", "12")
    assert "pooling 2 values of judge" in err
    assert "simulated and the old judge" in found["sentence"]


def test_grades_are_carried_over(cli, folder):
    rows = [{"item": f"r{n}", "prompt": "?", "response": "z" * (n % 23 + 1)} for n in range(60)]
    pl.DataFrame(rows).write_ndjson("pairs.jsonl")
    grades = [{"item": f"r{n}", "label": n % 23 // 5 + 1} for n in range(40)]
    pl.DataFrame(grades).write_csv("labels.csv")
    template = ("--set", "judge.template=grade-5")
    how = ("--model", "simulated", "-n", "4", *template)
    assert cli("judge", "pairs.jsonl", *how, "-s", "grades.db")[0] == 0
    assert cli("votes", "grades.db", "-o", "old.csv")[0] == 0
    found, _ = rejudged(cli, *template, "--items", "25", "--set", "labels.scale=1-5")
    assert (found["n_labels"], found["n_again"]) == (40, 25)
    assert btdagg.GradeModel.load("rejudged.json").provenance.ancestry
    command = ("rejudge", "old.csv", "labels.csv", "--pairs", "pairs.jsonl", *NEW)
    _, _, err = cli(*command, "--set", "labels.scale=1-5")
    assert "template response asks for pairs" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("old.csv", "labels.csv", *NEW), "PAIRS is missing"),
        (("old.csv", "--pairs", "pairs.jsonl", *NEW), "LABELS is missing"),
        (("old.csv", "labels.csv", "--pairs", "pairs.jsonl"), "--model is missing"),
        (("old.csv", "labels.csv", "--pairs", "labels.csv", *NEW), "no column a"),
        (
            ("old.csv", "labels.csv", "--pairs", "other.csv", *NEW),
            "none of its items has both a label",
        ),
    ],
)
def test_what_is_missing_is_named(cli, folder, words, message):
    (folder / "other.csv").write_text("item,prompt,a,b\nz1,?,x,y\n")
    status, _, err = cli("rejudge", *words)
    assert status == 2
    assert message in " ".join(err.split())
    assert not (folder / "rejudged.db").exists()
