"""`--stop` of judge and run, and decisions by a rule."""

import json
import warnings
from collections import Counter

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import DavidsonModel
from btdagg.datasets import simulate
from btdagg.estimates import Certificate
from btdagg.online import StoppingRule, VoteDistribution
from commands import one_line
from judging import asked_of, config, pairs_of, rows_of

pytestmark = pytest.mark.usefixtures("quick_commands")

N = 8
MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
VOTES = VoteDistribution([(0.4, (1.0, 3.0, 1.0)), (0.6, (0.5, 1.0, 3.0))])
RULE = StoppingRule.risk_bounded(MODEL, N, VOTES, epsilon=0.1, step=2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: 60 pairs, labels of the first 30, a model and rules."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    frame = pairs_of(60).frame
    frame.write_ndjson("pairs.jsonl")
    labels = [(0, -1, 1)[number % 3] for number in range(60)]
    pl.DataFrame({"item": frame["item"], "label": labels}).head(30).write_csv("labels.csv")
    MODEL.save("model.json")
    RULE.save("rule.json")
    StoppingRule.lossless(MODEL, N, step=2).save("lossless.json")
    StoppingRule.lossless(MODEL, N).save("one-by-one.json")
    return tmp_path


def counts_by_item(rows):
    found = {}
    for row in rows:
        counts = found.setdefault(row["item"], [0, 0, 0])
        counts[row["vote"] + 1] += 1
    return found


def test_judge_asks_as_far_as_the_rule_wants(cli, folder, judge_server):
    server = judge_server()
    options = asked_of(server.url, "-s", "v.db")
    status, out, err = cli(*options, "--stop", "rule.json", "--dry-run")
    assert status == 0
    assert f"expected to ask for {RULE.expected_votes:.2f} of 8 votes a pair" in err
    assert server.log() == []
    status, out, err = cli(*options, "--stop", "rule.json")
    assert status == 0, err
    rows = rows_of("v.db")
    assert len(server.log()) == len(rows) < 60 * N
    assert f"60 of 60 pairs settled, {len(rows) / 60:.2f} of 8 votes a pair, " in out
    orders = Counter((row["item"], row["order"]) for row in rows)
    assert all(orders[f"q{k}", "AB"] == orders[f"q{k}", "BA"] for k in range(60))
    status, out, _ = cli(*options, "--stop", "rule.json", "-n", N, "--json")
    found = json.loads(out)
    assert found["n_calls"] == 0
    saved = {"n_items": 60, "n_settled": 60, "n_samples": len(rows), "n_full": 60 * N}
    assert found["settled"] == saved
    assert found["is_complete"]

    cli("votes", "v.db", "--export", "votes.csv")
    decided = pl.read_ndjson(cli("decide", "rule.json", "votes.csv", "--json")[1].encode())
    counts = counts_by_item(rows)
    assert dict(zip(decided["item"], decided["label"], strict=True)) == {
        item: RULE.decide_one(*several) for item, several in counts.items()
    }
    assert decided["settled"].all()
    assert decided["change_risk"].max() < 0.1
    _, out, err = cli(*options, "--stop", "rule.json", "--dry-run", "--json")
    assert json.loads(out)["n_calls"] == 0
    assert "60 pairs are settled" in err
    assert "p_tie" not in decided.columns


def test_run_learns_a_rule_from_the_labelled_pairs(cli, folder, judge_server):
    server = judge_server()
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-o", "out"]
    options += ["--set", f"judge.base_url={server.url}", "-n", N, "--stop", "epsilon=0.2"]
    status, out, err = cli(*options)
    assert status == 0, err
    rule = StoppingRule.load("out/rule.json")
    assert (rule.kind, rule.epsilon, rule.n, rule.step) == ("risk-bounded", 0.2, N, 2)
    assert rule.model == DavidsonModel.load("out/model.json")
    counts = counts_by_item(rows_of("out/votes.db"))
    assert all(sum(counts[f"q{k}"]) == N for k in range(30))
    others = np.array([counts.get(f"q{k}", [0, 0, 0]) for k in range(30, 60)])
    assert rule.stops(others).all()
    assert others.sum() < 30 * N
    assert f"30 of 30 pairs settled, {others.sum() / 30:.2f} of 8 votes a pair" in out
    labels = pl.read_csv("out/decided.csv")
    assert labels["item"].to_list() == [f"q{k}" for k in range(60)]
    assert labels["label"][30:].to_list() == rule.decide(others).tolist()
    few = pl.Series(others.sum(axis=1) < N)
    assert labels[30:].filter(few)["p_tie"].null_count() == few.sum() > 0
    assert labels[:30]["p_tie"].null_count() == 0
    assert json.loads((folder / "out/evaluation.json").read_text())["lines"][0]["n_items"] == 30
    # Labelled pairs have more votes than the others; the win rate takes as many of each.
    fewest = int(others.sum(axis=1).min())
    gold = dict(pl.read_csv("labels.csv").select("item", "label").iter_rows())
    items, first = btdagg.read_votes("out/judged_votes.parquet").counts(fewest)
    assert set(first.sum(axis=1)) == {fewest}
    place = np.argsort([int(item[1:]) for item in items.tolist()])
    known = np.array([gold.get(f"q{k}", np.nan) for k in range(60)], dtype=float)
    rate = btdagg.estimate(first[place], known).estimates["win rate"]
    assert f"A wins {rate.value:.1%} (95% interval {rate.low:.1%} to {rate.high:.1%})" in out
    n_calls = len(server.log())
    found = json.loads(cli(*options, "--json")[1])
    assert len(server.log()) == n_calls  # nobody was asked again
    assert found["evaluation"]["estimates"]["estimates"]["win rate"]["low"] == rate.low
    assert found["run"]["settled"]["n_samples"] == others.sum()
    assert found["models"][""]["rule"] == "out/rule.json"


def test_run_certifies_which_labels_can_be_trusted(cli, folder):
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "simulated", "-n", N]
    options += ["--stop", "epsilon=0.2", "--prior", "weak"]
    assert cli(*options, "-o", "plain")[0] == 0
    status, out, err = cli(*options, "-o", "out", "--agreement", "0.3")
    assert status == 0, err
    certificate = Certificate.load("out/certificate.json")
    assert certificate.agreement == 0.3
    assert certificate.model == DavidsonModel.load("out/model.json")
    assert certificate.n_items == 30  # those without a label have other numbers of votes
    decided = pl.read_csv("out/decided.csv")
    counts = decided["minus", "tie", "plus"].to_numpy()
    trusted = certificate.trusted(counts, n_votes=N)
    assert 0 < trusted.sum() < 60
    assert decided["trusted"].to_list() == trusted.tolist()
    assert decided.drop("trusted").equals(pl.read_csv("plain/decided.csv"))
    assert str(certificate).splitlines()[0] in out
    assert f"trusted: {trusted.sum()} of 60 labels" in out
    assert "approximate" in err
    assert str(certificate).splitlines()[0] in (folder / "out/report/index.html").read_text()
    found = json.loads(cli(*options, "-o", "out", "--agreement", "0.3", "--json")[1])
    assert found["n_trusted"] == trusted.sum()
    assert found["models"][""]["certificate"] == "out/certificate.json"


def test_run_decides_where_nothing_can_be_certified(cli, folder):
    pl.read_csv("labels.csv").with_columns(group=pl.lit("g")).write_csv("labels.csv")
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "simulated", "-n", N]
    status, _, err = cli(*options, "--agreement", "0.8", "--prior", "weak")
    assert status == 0
    assert "no labels are certified: labels has 1 group with labels" in err
    assert "trusted" not in pl.read_csv("out/decided.csv").columns
    assert not (folder / "out/certificate.json").exists()
    status, _, err = cli(*options, "--agreement", "80", "-o", "other")
    assert status == 2
    assert "--agreement is 80.0, expected a number above 0 and below 1" in err


def test_run_calibrates_with_the_prior_that_is_asked_for(cli, folder):
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "simulated", "-n", N]
    options += ["-o", "out"]
    far = simulate("rb2-ties", 200, N, seed=3)
    prior = btdagg.fit_prior({"far": (far.counts, far.labels)})
    prior.save("prior.json")
    gold = pl.read_csv("labels.csv")
    found = {}
    for name, known in (("none", None), ("prior.json", prior)):
        status, out, err = cli(*options, "--prior", name)
        assert status == 0, err
        counts = counts_by_item(rows_of("out/votes.db"))
        of_gold = np.array([counts[item] for item in gold["item"]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = btdagg.calibrate(of_gold, gold["label"].to_numpy(), prior=known).model
        found[name] = DavidsonModel.load("out/model.json")
        assert found[name] == wanted
        assert ("prior: " in out + err) == (known is not None), (out, err)
    assert len(set(found.values())) == 2


@pytest.mark.soak
def test_caps_hold_over_labelled_and_other_pairs(cli, folder, judge_server):
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", N]
    options += ["--stop", "lossless"]
    keys = {"prices": {"prompt": 1, "completion": 1}, "max_answer_tokens": 300}
    server = judge_server()
    served = [*options, "--set", f"judge.base_url={server.url}"]
    status, _, err = cli(*served, "-o", "free", "--json", *config(**keys))
    assert status == 0, err
    whole = sum(row["cost"] for row in rows_of("free/votes.db"))
    cap = 0.4 * whole
    status, _, err = cli(*served, *config(**keys, max_cost=cap), "-o", "capped")
    assert status == 3, err
    assert "max_cost" in err
    assert 0 < sum(row["cost"] or 0.0 for row in rows_of("capped/votes.db")) <= cap


def test_an_unsettled_item_has_no_risk(cli, folder, judge_server):
    server = judge_server("--faults", "unparsed=0.5")
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "m", "-n", N]
    options += ["--set", f"judge.base_url={server.url}", "--stop", "lossless", "-o", "out"]
    status, _, err = cli(*options, *config(allow_missing=1))
    assert status == 0, err
    labels = pl.read_csv("out/decided.csv")
    assert labels["change_risk"].is_null().to_list() == (~labels["settled"]).to_list()
    assert 0 < labels["settled"].sum() < 60
    pl.DataFrame({"item": ["a", "b"], "vote": [None, 1]}).write_csv("few.csv")
    decided = pl.read_ndjson(cli("decide", "rule.json", "few.csv", "--json")[1].encode())
    assert decided["change_risk"].to_list() == [None, None]


@pytest.mark.soak
def test_every_task_has_a_rule_and_those_without_labels_cost_nothing(cli, folder, judge_server):
    task = pl.Series("task", ["x", "y z"] * 15 + ["x", "y z", "unknown"] * 10)
    pairs_of(60).frame.with_columns(task).write_ndjson("pairs.jsonl")
    pl.read_csv("labels.csv").with_columns(task.head(30)).write_csv("labels.csv")
    options = [
        "--labels",
        "labels.csv",
        "--model",
        "m",
        "--set",
        f"judge.base_url={judge_server().url}",
    ]
    options += ["-n", "4", "--stop", "lossless"]
    status, _, err = cli("run", "pairs.jsonl", *options)
    assert status == 0, err
    assert "10 pairs are not judged, since their tasks" in err
    assert {file.name for file in (folder / "out").glob("rule*")} == {
        "rule-x.json",
        "rule-y z.json",
    }
    assert pl.read_csv("out/decided.csv").height == 50
    assert len({row["item"] for row in rows_of("out/votes.db")}) == 50
    pairs_of(60).frame.write_ndjson("pairs.jsonl")
    line = one_line(*cli("run", "pairs.jsonl", *options, "-o", "other"))
    assert line == ("pairs.jsonl has no column task, expected one as in labels.csv")
    assert not (folder / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judge", "--stop", "rule.json", "-n", "6"],
         "-n is 6, expected the 8 of the stopping rule"),
        (["judge", "--stop", "rule.json", "--method", "gsa"], "--stop needs --method sample"),
        (["judge", "--stop", "one-by-one.json"],
         "the rule has step 1, expected an even number"),
        (["run", "--labels", "labels.csv", "--stop", "lossless=1"], "--stop is 'lossless=1', "
                                                                    "expected"),
    ],
)  # fmt: skip
def test_what_cannot_stop_is_refused(cli, folder, judge_server, arguments, said):
    command, *options = arguments
    server = judge_server()
    line = one_line(
        *cli(
            command,
            "pairs.jsonl",
            "--model",
            "m",
            "--set",
            f"judge.base_url={server.url}",
            *options,
        )
    )
    assert line.startswith(said)
    assert server.log() == []


def test_decisions_by_a_rule_want_no_more_votes_than_it_has(cli, folder):
    votes = pl.DataFrame({"item": ["a"] * 9 + ["b"], "vote": [1] * 10})
    votes.write_csv("votes.csv")
    line = one_line(*cli("decide", "rule.json", "votes.csv"))
    assert line == "item 'a' has more votes than the 8 of the rule"
    votes[1:].write_csv("votes.csv")
    status, out, _ = cli("decide", "lossless.json", "votes.csv")
    assert status == 0
    assert out.splitlines() == ["item,label,minus,tie,plus,settled", "a,1,0,0,8,true",
                                f"b,{MODEL.decide_one(0, 0, 1)},0,0,1,false"]  # fmt: skip
    (folder / "rule.json").write_text((folder / "rule.json").read_text()[:-20])
    assert one_line(*cli("decide", "rule.json", "votes.csv")).startswith("rule.json: not JSON")
