"""What commands say where a model is used for something else than it was fitted to."""

import json
from dataclasses import replace

import polars as pl
import pytest

from btdagg import DavidsonModel, PanelModel, read_votes
from btdagg.datasets import simulate
from btdagg.online import StoppingRule
from btdagg.votes import Provenance
from commands import one_line
from judging import config, pairs_of

pytestmark = pytest.mark.usefixtures("quick_commands")

SAMPLE = simulate("rb2-math", 120, 8, seed=1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of two judges on two halves of the items, labels whose task the votes do not say."""
    monkeypatch.chdir(tmp_path)
    votes = pl.DataFrame(SAMPLE.vote_columns())
    for judge in ("g", "h"):
        known = votes.with_columns(
            judge=pl.lit(judge), template=pl.lit("base"), temperature=pl.lit(0.5)
        )
        known.write_csv(f"{judge}.csv")
    votes.write_csv("bare.csv")
    labels = pl.DataFrame(SAMPLE.label_columns())
    labels.with_columns(task=pl.lit("math")).write_csv("labels.csv")
    counts = dict(zip(("minus", "tie", "plus"), SAMPLE.counts.T, strict=True))
    pl.DataFrame({"item": SAMPLE.items, **counts}).write_csv("counts.csv")
    return tmp_path


def provenance(path="model.json"):
    return DavidsonModel.load(path).provenance


CARRY = (
    "to carry the model over to the new judge, ask it about labelled items: "
    "btdagg rejudge OLD_VOTES LABELS --pairs PAIRS"
)
OTHER_JUDGE = ["warning: judge is h, but the model was fitted for g", f"{CARRY} --model h"]


def calibrated(cli, *options):
    status, _, err = cli("calibrate", "--prior", "none", "g.csv", "labels.csv", *options)
    assert status == 0, err


@pytest.mark.usefixtures("folder")
def test_calibrate_writes_what_is_known(cli):
    calibrated(cli)
    wanted = Provenance(
        strength="none",
        n_votes=8,
        n_labels=120,
        judge="g",
        template="base",
        temperature=0.5,
        task="math",
    )
    assert provenance() == wanted
    calibrated(cli, "-n", "2", "-o", "two.json")
    assert provenance("two.json") == replace(wanted, n_votes=2)
    status, out, _ = cli(
        "calibrate", "--prior", "none", "counts.csv", "labels.csv", "-o", "c.json", "--json"
    )
    assert status == 0
    assert provenance("c.json") == Provenance(n_votes=8, n_labels=120, task="math", strength="none")
    assert json.loads(out)["model"]["provenance"]["n_votes"] == 8


@pytest.mark.usefixtures("folder")
def test_decide_warns_of_more_votes_and_takes_the_first(cli):
    calibrated(cli, "-n", "2")
    status, every, err = cli("decide", "model.json", "g.csv")
    assert status == 0
    assert "items have up to 8 votes, but the model was fitted for 2 votes an item\n" in err
    status, out, err = cli("decide", "model.json", "g.csv", "-n", "2")
    assert (status, err) == (0, "")
    frame = pl.read_csv(out.encode())
    assert frame["item"].to_list() == SAMPLE.items.tolist()
    assert (frame["minus"] + frame["tie"] + frame["plus"] == 2).all()
    first = read_votes("g.csv").counts(2)[1]
    assert frame["label"].to_list() == DavidsonModel.load("model.json").decide(first).tolist()
    assert out != every
    status, _, err = cli("decide", "model.json", "g.csv", "-n", "1")
    assert "no item has more than 1 vote, but the model was fitted for 2 votes an item" in err


@pytest.mark.usefixtures("folder")
def test_decide_warns_of_other_values_and_of_nothing_else(cli):
    calibrated(cli)
    for votes in ("g.csv", "bare.csv", "counts.csv"):
        status, _, err = cli("decide", "model.json", votes)
        assert (status, err) == (0, ""), votes
    other = pl.read_csv("h.csv").with_columns(
        template=pl.lit("brief"), temperature=pl.lit(0), task=pl.lit("ties")
    )
    other.write_csv("other.csv")
    status, _, err = cli("decide", "model.json", "other.csv", "-o", "decided.csv")
    assert status == 0
    assert err.splitlines() == [
        "warning: judge is h, but the model was fitted for g",
        "warning: template is brief, but the model was fitted for base",
        "warning: temperature is 0, but the model was fitted for 0.5",
        "warning: task is ties, but the model was fitted for math",
        f"{CARRY} --model h --set judge.template=brief --set judge.temperature=0",
    ]


@pytest.mark.usefixtures("folder")
def test_plan_warns_and_the_rule_carries_what_its_model_knows(cli):
    calibrated(cli)
    status, _, err = cli("plan", "model.json", "g.csv", "labels.csv", "-n", 8, "-o", "rule.json")
    assert (status, err) == (0, "")
    assert StoppingRule.load("rule.json").model.provenance == provenance()
    status, _, err = cli("plan", "model.json", "h.csv", "labels.csv", "-n", 8, "-o", "other.json")
    assert (status, err.splitlines()) == (0, OTHER_JUDGE)
    # The rows of other numbers are of other models: those of this one beside them cannot be.
    status, _, err = cli("plan", "model.json", "g.csv", "labels.csv", "-n", 4, "-o", "four.json")
    assert (status, err.count("the model was calibrated at 8 votes an item")) == (2, 1)


@pytest.mark.usefixtures("folder")
def test_a_strength_that_votes_do_not_have_is_said_once_by_each_command(cli):
    both = pl.read_csv("[gh].csv")
    margins = both.with_columns(margin=pl.col("vote").abs() * (pl.col("sample") + 1))
    for name, votes in (("signs", both), ("margins", margins)):
        votes.write_csv(f"both-{name}.csv")
        votes.filter(judge="g").write_csv(f"{name}.csv")
    assert cli("calibrate", "--prior", "none", "margins.csv", "labels.csv")[0] == 0
    panel = PanelModel(("g", "h"), (1.0, 1.0), 0.5, (0.8, 0.8), provenance=provenance())
    panel.save("panel.json")
    line = "warning: votes count without their strength, but the model was fitted to their margin"
    for command in (
        ("decide", "model.json", "VOTES"),
        ("plan", "model.json", "VOTES", "labels.csv", "-n", 8),
        ("estimate", "VOTES", "labels.csv", "--model", "model.json"),
        ("estimate", "both-VOTES", "labels.csv", "--set", "panel=judge", "--model", "panel.json"),
    ):
        for name, times in (("signs", 1), ("margins", 0)):
            status, _, err = cli(*(str(text).replace("VOTES", f"{name}.csv") for text in command))
            assert (status, err.splitlines().count(line)) == (0, times), (command, name, err)
    _, _, err = cli("decide", "model.json", "margins.csv", "--set", "strength=none")
    assert err.splitlines().count(line) == 1


@pytest.mark.usefixtures("folder")
def test_decide_by_a_rule_takes_fewer_votes_without_a_word(cli):
    calibrated(cli)
    cli("plan", "model.json", "g.csv", "labels.csv", "-n", 8, "-o", "rule.json")
    status, _, err = cli("decide", "rule.json", "g.csv", "-n", 4)
    assert (status, err) == (0, "")
    _, _, err = cli("decide", "rule.json", "h.csv", "-n", 4)
    assert err.splitlines() == OTHER_JUDGE


def test_judge_warns_where_it_is_not_what_the_rule_is_for(cli, folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pairs_of(4).frame.with_columns(task=pl.lit("ties")).write_ndjson("pairs.jsonl")
    known = Provenance(n_votes=8, judge="g", template="response", temperature="0.50", task="math")
    model = DavidsonModel(1.2, 0.3, 0.8, provenance=known)
    StoppingRule.lossless(model, 8, step=2).save("rule.json")
    ask = ["judge", "pairs.jsonl", "--stop", "rule.json", "--dry-run"]
    status, _, err = cli(*ask, "--model", "g")
    assert status == 0
    assert [line for line in err.splitlines() if "warning" in line] == [
        "warning: task is ties, but the model was fitted for math"
    ]
    _, _, err = cli(*ask, "--model", "g", *config(judge="h", temperature=1))
    assert [line for line in err.splitlines() if "warning" in line] == [
        "warning: judge is h, but the model was fitted for g",
        "warning: temperature is 1, but the model was fitted for 0.5",
        "warning: task is ties, but the model was fitted for math",
    ]


def test_run_writes_what_is_known(cli, folder):
    frame = pairs_of(40).frame
    frame.write_ndjson("pairs.jsonl")
    labels = [(0, -1, 1)[number % 3] for number in range(40)]
    pl.DataFrame({"item": frame["item"], "label": labels}).write_csv("gold.csv")
    options = ["--labels", "gold.csv", "--model", "simulated", "-n", 4, "-o", "out"]
    status, _, err = cli("run", "pairs.jsonl", *options)
    assert status == 0, err
    known = {"judge": "simulated", "template": "response", "temperature": 0.5}
    wanted = Provenance(strength="none", n_votes=4, n_labels=40, **known)
    assert provenance("out/model.json") == wanted


def test_run_refuses_tasks_whose_files_some_systems_take_for_one(cli, folder):
    tasks = ["de", "DE"] * 20
    pairs_of(40).frame.with_columns(task=pl.Series(tasks)).write_ndjson("pairs.jsonl")
    items = pairs_of(40).frame["item"]
    pl.DataFrame({"item": items, "label": [0, -1, 1, 1] * 10, "task": tasks}).write_csv("gold.csv")
    options = ["--labels", "gold.csv", "--model", "simulated", "-n", 4, "-o", "out"]
    line = one_line(*cli("run", "pairs.jsonl", *options))
    assert line == "two tasks have names that differ only in case; rename one"
    assert not (folder / "out").exists()
