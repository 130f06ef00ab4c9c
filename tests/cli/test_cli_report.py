"""The commands that write reports: what is in them, and what is left when something goes wrong."""

import html
import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits, positional_bias
from btdagg.paper import compare_orders, tie_rates
from commands import one_line

pytestmark = pytest.mark.usefixtures("quick_commands")

TASKS = ("math", "ties")
JUDGES = {"g": 1, "h": -1}
EVALUATE = (
    *("paper", "evaluate", "votes.csv", "labels.csv", "--prior", "none"),
    *("-n", "2,8", "--splits", 3, "--size", 20),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of two judges on two tasks under two templates in both orders; labels; ratings."""
    monkeypatch.chdir(tmp_path)
    votes, labels = [], []
    for seed, task in enumerate(TASKS):
        sample = simulate(("rb2-math", "rb2-factuality")[seed], 80, 16, seed=seed)
        columns = pl.DataFrame(sample.vote_columns()).with_columns(
            item=pl.col("item") + f"-{task}", task=pl.lit(task)
        )
        for judge, sign in JUDGES.items():
            of_judge = columns.with_columns(judge=pl.lit(judge), vote=sign * pl.col("vote"))
            half = pl.col("sample") % 8
            votes.append(
                of_judge.with_columns(
                    template=pl.when(pl.col("sample") < 8)
                    .then(pl.lit("base"))
                    .otherwise(pl.lit("terse")),
                    order=pl.when(half % 2 == 0).then(pl.lit("AB")).otherwise(pl.lit("BA")),
                    sample=half,
                )
            )
        labels.append(
            pl.DataFrame(sample.label_columns()).with_columns(
                item=pl.col("item") + f"-{task}", task=pl.lit(task)
            )
        )
    pl.concat(votes).write_csv("votes.csv")
    pl.concat(labels).write_csv("labels.csv")
    rng = np.random.default_rng(0)
    gold = pl.concat(labels)
    ratings = [
        gold.select("item", vote="label").with_columns(
            rater=pl.lit(f"r{rater}"),
            vote=pl.when(pl.Series(rng.random(len(gold)) < 0.8)).then(pl.col("vote")).otherwise(0),
        )
        for rater in range(3)
    ]
    pl.concat(ratings).write_csv("ratings.csv")
    return tmp_path


def described(path):
    return json.loads((path / "report.json").read_text())


def assert_tables_hold(lines):
    """The tables have the numbers of the terminal."""
    scores = pl.read_csv("out/tables/scores.csv").drop_nulls("task")
    for line in lines:
        row = scores.filter(
            (pl.col("task") == line["task"])
            & (pl.col("judge") == line["judge"])
            & (pl.col("n_votes") == line["n_votes"])
            & (pl.col("method") == line["method"])
        )
        assert row["mae"].to_list() == [line["mae"]]
    pvalues = pl.read_csv("out/tables/pvalues.csv")
    assert len(pvalues) == 8  # one pair of methods in each of eight cells
    assert pvalues["mae_pvalue"].is_between(0, 1).all()
    significant = pvalues.filter(pl.col("mae_pvalue") < 0.05)
    second = [line for line in lines if line["rank"] == 2]
    assert len(second) == len(significant)


def test_a_report_has_every_section_that_the_votes_allow(cli, folder):
    status, out, err = cli(*EVALUATE, "-f", "template=base", "--report", "out", "--json")
    assert status == 0
    assert_tables_hold(json.loads(out)["lines"])
    assert "wrote out/index.html" in err
    found = described(folder / "out")
    assert found["status"] == "complete"
    assert [section["name"] for section in found["sections"]] == [
        "estimates", "scores", "agreement", "votes", "calibration", "parameters", "labels", "order",
        "behaviour", "spread", "transfer", "ablations", "by-order", "ties",
    ]  # fmt: skip
    assert found["skipped"] == []
    assert set(found["models"]) == {
        f"Davidson: {name}" for name in ("math g", "math h", "ties g", "ties h")
    }
    assert found["settings"]["n_votes"] == "2,8"
    on_disk = {
        str(file.relative_to(folder / "out"))
        for kind in ("tables", "figures")
        for file in (folder / "out" / kind).iterdir()
    }
    assert on_disk == set(found["files"])
    stems = {file.rsplit(".", 1)[0] for file in on_disk}
    assert {f"{stem}.{end}" for stem in stems if stem[0] == "t" for end in ("md", "csv", "tex")} | {
        f"{stem}.{end}" for stem in stems if stem[0] == "f" for end in ("svg", "png")
    } == on_disk
    assert {
        "tables/scores", "tables/pvalues", "tables/parameters",
        "tables/transfer-g", "tables/transfer-h", "tables/positional-bias",
        "figures/transfer-g", "figures/positional-bias",
    } <= stems  # fmt: skip


@pytest.mark.parametrize("graded", [False, True])
def test_a_report_begins_with_the_ranking_of_systems(cli, tmp_path, graded):
    rng = np.random.default_rng(0)
    system, n = rng.permuted(np.tile(["x", "y", "z"], (120, 1)), axis=1), 120
    level = {"x": 0.8, "y": 0.3, "z": 0.0}
    if graded:
        own = pl.DataFrame({"item": np.arange(n), "system": system[:, 0]})
        base = 2 + 2 * np.array([level[name] for name in system[:, 0]])
        label, score = (np.clip(np.round(base + rng.normal(0, 0.6, n)), 1, 5) for _ in range(2))
        votes, options = own.with_columns(score=score.astype(int)), ["--set", "votes.scale=1-5"]
        options += ["--set", "labels.scale=1-5"]
    else:
        own = pl.DataFrame(
            {"item": np.arange(n), "system_a": system[:, 0], "system_b": system[:, 1]}
        )
        lead = np.array([level[a] - level[b] for a, b in system[:, :2]])
        label, vote = (np.clip(np.round(lead * 2 + rng.normal(0, 0.7, n)), -1, 1) for _ in range(2))
        votes, options = own.with_columns(vote=vote.astype(int)), []
    votes.write_csv(tmp_path / "votes.csv")
    gold = pl.DataFrame({"item": np.arange(n), "label": label.astype(int)})
    gold.head(60).write_csv(tmp_path / "labels.csv")
    files = (tmp_path / "votes.csv", tmp_path / "labels.csv")
    status, _, err = cli("evaluate", *files, *options, "--report", tmp_path / "report")
    assert status == 0, err
    page = (tmp_path / "report" / "index.html").read_text()
    first = page.index("<section")
    assert "Which system is best" in page[first : first + 400]
    scale = btdagg.Scale(range(1, 6)) if graded else btdagg.PAIRS
    judged = btdagg.read_votes(files[0], scale=scale)
    people = btdagg.read_labels(files[1], scale=scale)
    named = {"by": "system"} if graded else {"systems": ("system_a", "system_b")}
    ranked = btdagg.estimate_systems(judged.items(people, **named))
    assert f"{ranked.sentence()}." in html.unescape(page)
    if graded:
        assert ranked.ends == (1.0, 5.0)
        assert tuple(ranked.plot().draw().axes[0].get_xlim()) == (1.0, 5.0)


def test_ablations_lift_the_filter_of_their_column_alone(cli, folder):
    assert cli(*EVALUATE, "-f", "template=base", "-f", "judge=g", "--report", "out")[0] == 0
    table = pl.read_csv("out/tables/ablation-template.csv")
    assert set(table["template"]) == {"base", "terse"}
    assert set(table["judge"]) == {"g"}
    scores = pl.read_csv("out/tables/scores.csv")
    assert set(scores["judge"].drop_nulls()) == {"g"}


def test_what_the_votes_do_not_allow_is_skipped_with_the_reason(cli, folder):
    counts = pl.read_csv("votes.csv").filter(judge="g", template="base", task="math")
    counts.group_by("item").agg(
        minus=(pl.col("vote") == -1).sum(),
        tie=(pl.col("vote") == 0).sum(),
        plus=(pl.col("vote") == 1).sum(),
    ).write_csv("counts.csv")
    options = ("--prior", "none", "--splits", 2, "--size", 20, "--report", "out")
    status, _, _ = cli("paper", "evaluate", "counts.csv", "labels.csv", *options)
    assert status == 0
    found = described(folder / "out")
    assert found["status"] == "complete"
    reasons = {skipped["what"]: skipped["reason"] for skipped in found["skipped"]}
    assert "How many votes are enough" in reasons
    assert "single votes" in reasons["How often judges call a tie"]
    assert all(reasons.values())


def test_an_interrupted_evaluation_keeps_the_parts_that_were_finished(cli, folder, monkeypatch):
    from btdagg.questions import evaluate as evaluation

    calls = 0

    def two_parts(*arguments, **more):
        nonlocal calls
        calls += 1
        if calls > 4:  # two numbers of votes in each part
            raise KeyboardInterrupt
        return cross_scores(*arguments, **more)

    cross_scores = evaluation.cross_scores
    monkeypatch.setattr(evaluation, "cross_scores", two_parts)
    status, out, err = cli(*EVALUATE, "-f", "template=base", "--report", "out")
    assert status == 130
    assert "interrupted: only the parts that were finished are shown" in err
    assert err.endswith("btdagg: interrupted\n")
    assert "math" in out
    assert "ties" not in out
    found = described(folder / "out")
    assert found["status"] == "interrupted"
    assert set(pl.read_csv("out/tables/scores.csv")["task"].drop_nulls()) == {"math", "average"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((), "labels are 1"),
        (("--size", 500), "calibrating on 500 of 80 items"),
        (("--methods", "gsa"), "no column 'gsa_2'"),
        (("--methods", "ci-sc"), "confidence"),
        (
            ("--by", "template,"),
            "--by is 'template,', expected names of columns separated by commas",
        ),
    ],
)
def test_bad_input_is_a_line_and_leaves_no_report(cli, folder, change, message):
    if not change:
        labels = pl.read_csv("labels.csv").with_columns(label=pl.lit(1))
        labels.write_csv("labels.csv")
    found = cli(*EVALUATE, "-f", "template=base", *change, "--report", "out")
    assert message in one_line(*found)
    assert not (folder / "out").exists()


def test_all_methods_are_those_that_the_columns_allow(cli, folder):
    votes = pl.read_csv("votes.csv").filter(template="base", task="math")
    votes.write_csv("votes.csv")
    plain = json.loads(cli(*EVALUATE, "--methods", "all", "--json")[1])
    assert {line["method"] for line in plain["lines"]} == {
        "Davidson", "majority vote", "rounded median", "Davidson MAE", "isotonic",
        "calibrated, neighbours", "calibrated", "threshold", "rounded mean", "constant",
    }  # fmt: skip
    votes.with_columns(confidence=0.5, gsa_2=pl.lit(1), gsa_8=pl.lit(0)).write_csv("votes.csv")
    more = json.loads(cli(*EVALUATE, "--methods", "all", "--json")[1])
    names = {line["method"] for line in more["lines"]}
    assert {"CI-SC", "Soft-SC mean", "GSA"} <= names
    assert "USC" not in names
    votes.with_columns(confidence=50.0, gsa_2=pl.lit(1)).write_csv("votes.csv")
    status, _, err = cli(*EVALUATE, "--methods", "all", "-n", "2,4")
    assert status == 0
    assert "ci-sc are left out: votes.csv, row 1, column confidence: got '50.0'" in err
    assert "gsa is left out: there is no column gsa_4" in err


def test_the_paper_has_a_test_of_its_own(cli, folder):
    files = ("votes.csv", "labels.csv", "-f", "template=base", "--methods", "majority", "--json")
    paper, usual = (
        json.loads(cli(*command, *files)[1])["settings"]["test"]
        for command in (("paper", "evaluate", "--splits", 2), ("evaluate",))
    )
    assert "100 random sign patterns a split; p is the mean over splits" in paper
    assert "sign patterns a split" not in usual


# Raters


def test_raters_are_compared_with_a_judge_at_several_numbers_of_votes(cli, folder):
    command = "paper raters ratings.csv votes.csv -f judge=g -f template=base -n 2,8 --splits 3"
    status, out, _ = cli(*command.split())
    assert status == 0
    assert out.count("wins") >= 2
    assert "several raters" not in out
    message = one_line(*cli("paper", "raters", "ratings.csv", "votes.csv"))
    assert "judges, 'g' and 'h'" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paper", "raters", "ratings.csv", "-n", "4"), "-n needs the votes of a judge"),
        (("paper", "raters", "ratings.csv", "-f", "colour=red"), "no column 'colour'"),
        (("paper", "raters", "labels.csv"), "rater"),
        (("paper", "votes", "votes.csv", "--gold-ties"), "--gold-ties needs --labels"),
        (("votes", "labels.csv"), "no column"),
    ],
)
def test_bad_input_to_raters_and_votes_is_a_line(cli, folder, arguments, message):
    assert message in one_line(*cli(*arguments, "--report", "out"))
    assert not (folder / "out").exists()


# Votes


def test_votes_are_counted_and_looked_at(cli, folder):
    votes = btdagg.read_votes("votes.csv").filter({"template": "base"})
    biases = [one.bias for one in positional_bias(votes)]
    status, out, _ = cli("votes", "votes.csv", "-f", "template=base", "--json", "--report", "seen")
    assert status == 0
    found = json.loads(out)
    assert [row["n_votes"] for row in found["votes"]] == [2 * 80 * 8] * 2
    assert [row["bias"] for row in found["positional-bias"]] == biases
    assert described(folder / "seen")["status"] == "complete"
    arguments = ("paper", "votes", "votes.csv", "--labels", "labels.csv", "-f", "template=base")
    status, out, _ = cli(*arguments, "--splits", 2, "--json", "--report", "out")
    assert status == 0
    found = json.loads(out)
    assert [row["bias"] for row in found["positional-bias"]] == biases
    rates = tie_rates(votes, "judge", "task")
    assert [row["ties"] for row in found["tie-rates"]] == rates.ties.ravel().tolist()
    labels = btdagg.read_labels("labels.csv")
    orders = compare_orders(votes, labels, 4, protocol=Protocol(RandomSplits(n_splits=2)))
    assert len(orders.by_key()) == 4
    assert len(found["orders"]) == 4 * 2 * 3  # parts, methods, orders
    assert described(folder / "out")["status"] == "complete"


def test_raters_and_their_judge_have_one_error(cli, folder):
    one = ("-f", "task=math", "-f", "judge=g", "-f", "template=base")
    status, out, _ = cli("paper", "raters", "ratings.csv", "votes.csv", *one, "--json")
    assert status == 0
    rater = json.loads(out)["raters"][0]
    assert rater["human_mae_evaluated"] == pytest.approx(rater["mae"])
