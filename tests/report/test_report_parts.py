"""The report of an evaluation where parts, or single tables, cannot be made: the rest is there."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from btdagg import Protocol, evaluate, read_labels, read_votes
from btdagg.datasets import simulate
from btdagg.evaluation import Interval, RandomSplits, Scores
from btdagg.evaluation.scores import answers_table
from btdagg.methods import Calibrated, MajorityVote, Threshold
from btdagg.paper import ablate, compare_orders
from draws import comparison_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning"),
    pytest.mark.usefixtures("figures_not_drawn"),
]

EVALUATE = (
    "paper",
    "evaluate",
    "--prior",
    "none",
    "votes.csv",
    "labels.csv",
    "--splits",
    3,
    "--report",
    "out",
)
COLUMNS = ["item", "task", "judge", "template", "temperature", "order", "sample", "vote", "sure"]


def written(
    sizes, judges=("j",), *, templates=("p",), orders=("AB", "BA"), left_out=(), unlabelled=()
):
    """Write votes and labels: so many items in each task, but not of every judge in every task."""
    rng = np.random.default_rng(5)
    votes, labels = [], []
    for task, n_items in sizes.items():
        for number in range(n_items):
            item, label = f"{task}-{number}", int(rng.choice([-1, 0, 0, 1]))
            if task not in unlabelled:
                labels.append((item, task, label))
            for judge in judges:
                if (task, judge) in left_out:
                    continue
                for template in templates:
                    for order in orders:
                        for sample in range(4 // len(orders)):
                            vote = int(rng.choice([label, label, -1, 0, 1]))
                            row = (item, task, judge, template, 1, order, sample, vote, 0.5)
                            votes.append(row)
    frame = pl.DataFrame(votes, schema=COLUMNS, orient="row")
    frame.write_csv("votes.csv")
    pl.DataFrame(labels, schema=["item", "task", "label"], orient="row").write_csv("labels.csv")
    return frame


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def described():
    """Names of the sections, what was skipped with the reason, and stems of all files."""
    found = json.loads(Path("out/report.json").read_text())
    assert found["status"] == "complete"
    return (
        [section["name"] for section in found["sections"]],
        {skipped["what"]: skipped["reason"] for skipped in found["skipped"]},
        {file.rsplit(".", 1)[0] for file in found["files"]},
    )


def test_names_in_any_script_lose_no_section(cli):
    written({"数学": 40, "u": 40}, ["Qwen-千问", "Qwen-通义"], templates=("p", "q"))
    assert cli(*EVALUATE, "-f", "template=p")[0] == 0
    names, skipped, stems = described()
    assert set(names) >= {"transfer", "ablations", "behaviour"}
    assert not any("千问" in what for what in skipped)
    for kind in ("tables", "figures"):
        transfers = [stem for stem in stems if stem.startswith(f"{kind}/transfer-qwen-")]
        assert len(transfers) == 2
    assert all(stem.isascii() for stem in stems)


def test_a_task_without_labels_is_skipped_once_and_the_rest_is_there(cli):
    written({"t": 80, "u": 80, "v": 80}, unlabelled=("v",))
    assert cli(*EVALUATE)[0] == 0
    names, skipped, _ = described()
    assert names == [
        "estimates", "scores", "agreement", "votes", "calibration", "parameters", "labels", "order",
        "behaviour", "spread", "transfer", "by-order", "ties",
    ]  # fmt: skip
    assert skipped.pop("v, j") == "labels.csv: no row has task 'v'; found t, u"
    assert list(skipped) == ["What prompt and temperature change"]
    assert set(pl.read_csv("out/tables/parameters-over-splits.csv")["task"]) == {"t j", "u j"}
    assert set(pl.read_csv("out/tables/orders.csv")["task"]) == {"t", "u"}


def confounded(judges):
    """Votes of templates that differ in temperature too, for these judges."""
    frame = written({"t": 30}, ["j", "k"], templates=("p", "q"))
    more = frame.filter(template="p").with_columns(
        temperature=pl.lit(0, pl.Int64), sample=pl.col("sample") + 9
    )
    frame = pl.concat([frame, more.filter(pl.col("judge").is_in(judges))])
    frame.write_csv("votes.csv")
    return read_votes(frame)


def test_an_ablation_leaves_out_the_parts_that_differ_in_more_than_is_varied():
    votes = confounded(["j"])
    found = ablate(
        votes,
        read_labels("labels.csv"),
        "template",
        protocol=Protocol(RandomSplits(n_splits=2, share=0.3)),
    )
    assert {cell.key for cell in found.cells} == {("t", "k")}
    ((key, reason),) = found.skipped
    assert key == ("t", "j")
    assert "differ in temperature; filter by temperature" in reason


def test_orders_are_compared_where_there_are_both():
    frame = written({"t": 30}, ["j", "k"])
    votes = read_votes(frame.filter((pl.col("judge") == "k") | (pl.col("order") == "AB")))
    found = compare_orders(
        votes, read_labels("labels.csv"), 2, protocol=Protocol(RandomSplits(n_splits=2, share=0.3))
    )
    assert list(found.by_key()) == [("t", "k")]
    ((key, reason),) = found.skipped
    assert key == ("t", "j")
    assert reason.endswith("t j: all votes have the order AB, expected several values")


def test_keys_that_would_have_one_name_are_told_apart():
    keys = [("a b", "c"), ("a", "b c")]
    rows = [(f"{task}-{n}", task, judge, n % 3 - 1) for task, judge in keys for n in range(9)]
    votes = read_votes(pl.DataFrame(rows, schema=["item", "task", "judge", "vote"], orient="row"))
    labels = read_labels(votes.frame.select("item", "task", label="vote"))
    scores = evaluate(votes, labels, protocol=Protocol(RandomSplits(share=0.3, n_splits=2)))
    assert list(scores.by_key()) == keys
    assert list(scores.items) == ["'a b' 'c'", "'a' 'b c'"]


def test_the_page_answers_first(cli):
    written({"t": 30, "u": 30})
    assert cli("evaluate", "votes.csv", "labels.csv", "--prior", "none", "--report", "out")[0] == 0
    first, then, *_ = json.loads(Path("out/report.json").read_text())["sections"]
    assert (first["title"], then["title"]) == ("How often A wins", "What to do")
    assert [Path(one["files"][0]).stem for one in then["exhibits"][:2]] == ["answers", "scores"]
    methods = [Calibrated("calibrated", prior=None), MajorityVote()]
    scores = evaluate(read_votes("votes.csv"), read_labels("labels.csv"), aggregators=methods)
    rows = pl.read_csv("out/tables/answers.csv")
    assert rows.height == len(scores.cells)
    for row in rows.iter_rows(named=True):
        (cell,) = scores.by_key()[row["task"], row["judge"]]
        errors = {method.name: method.interval().mean for method in cell.methods}
        best = min(errors, key=errors.get)
        assert (row["method"], row["mae"], row["n_items"]) == (best, errors[best], 30)
        gold = cell.gold
        constants = {
            "B": gold[1] + 2 * gold[2],
            "tie": gold[0] + gold[2],
            "A": 2 * gold[0] + gold[1],
        }
        constant = min(constants, key=constants.get)
        assert row["mae_of_constant"] == pytest.approx(constants[constant])
        assert row["use"] == (
            best if errors[best] < row["mae_of_constant"] else f"always {constant}"
        )
    settings = json.loads(Path("out/report.json").read_text())["settings"]
    assert settings["command"].startswith("btdagg evaluate")
    assert {"Python", "numpy", "polars", "scipy"} <= set(settings)


def test_a_peer_is_recommended_only_where_it_is_known_to_be_better():
    sample = simulate("rb2-safety", 90, 8, seed=0)
    compared = comparison_of(
        sample.counts, sample.labels, [Threshold(), Calibrated(), MajorityVote()]
    )
    assert (compared.calibrated, compared.baseline) == (1, 2)
    best = Interval(0.1, 0.0, 0.2)
    first = replace(compared.methods[0], of_new_items={"mae": best, "accuracy": best})
    compared = replace(compared, methods=(first, *compared.methods[1:]))
    for tied, expected in ((True, "calibrated"), (False, "threshold")):
        cell = replace(compared, key=("t",))
        ranking = compared.rankings["mae"]._replace(tied=np.array([True, tied, False]))
        cell.__dict__["rankings"] = {**compared.rankings, "mae": ranking}
        (row,) = answers_table(Scores(("task",), (cell,))).rows
        assert row[1].text == expected


def test_where_a_constant_wins_its_error_is_shown():
    rng = np.random.default_rng(0)
    gold = rng.choice([-1, 0, 1], p=[0.1, 0.2, 0.7], size=60)
    compared = comparison_of(rng.multinomial(8, [1 / 3] * 3, size=60), gold)
    table = answers_table(Scores((), (compared,)))
    error = np.abs(gold - 1).mean()
    assert [entry.text for entry in table.rows[0][1:4]] == ["always A", f"{error:.3f}", "–"]
    assert "another judge or prompt" in table.rows[0][-1].text
