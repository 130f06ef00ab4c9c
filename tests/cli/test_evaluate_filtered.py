"""`evaluate` with filters scores the model that `calibrate` with the same filters writes."""

import json

import polars as pl
import pytest

from btdagg.datasets import simulate

pytestmark = pytest.mark.usefixtures("quick_commands")

TASKS = ("math", "ties")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of one judge on two tasks under two templates, labels of both, and of one."""
    monkeypatch.chdir(tmp_path)
    votes, labels = [], []
    for seed, task in enumerate(TASKS):
        sample = simulate(("rb2-math", "rb2-factuality")[seed], 60, 8, seed=seed)
        named = (pl.col("item") + f"-{task}", pl.lit(task).alias("task"))
        template = pl.when(pl.col("sample") < 4).then(pl.lit("base")).otherwise(pl.lit("terse"))
        columns = pl.DataFrame(sample.vote_columns()).with_columns(*named)
        votes.append(columns.with_columns(template=template, sample=pl.col("sample") % 4))
        labels.append(pl.DataFrame(sample.label_columns()).with_columns(*named))
    pl.concat(votes).write_csv("votes.csv")
    pl.concat(labels).write_csv("labels.csv")
    labels[0].write_csv("math.csv")
    return tmp_path


def lines(cli, *arguments):
    status, out, err = cli("evaluate", "votes.csv", *arguments, "--json")
    assert status == 0, err
    return {line["method"]: line for line in json.loads(out)["lines"] if line.get("task") == "math"}


def test_a_filtered_task_has_the_others_as_neighbours(cli, folder):
    alone = lines(cli, "labels.csv", "-f", "task=math", "-f", "template=base")
    among = lines(cli, "labels.csv", "-f", "template=base")
    assert next(iter(alone)) == "calibrated"
    assert alone == among


def test_the_model_of_a_filtered_report_is_the_one_that_is_written(cli, folder):
    filters = ("-f", "task=math")
    assert cli("calibrate", "votes.csv", "labels.csv", *filters, "-o", "model.json")[0] == 0
    written = json.loads((folder / "model.json").read_text())
    status, _, err = cli("evaluate", "votes.csv", "labels.csv", *filters, "--report", "out")
    assert status == 0, err
    page = (folder / "out/index.html").read_text()
    (row,) = pl.read_csv("out/tables/parameters.csv").filter(parameter="beta").rows(named=True)
    assert row["value"] == pytest.approx(written["beta"], rel=1e-6)
    behaviour = page[page.rindex("How each method decides") :]
    assert "calibrated" in behaviour


def test_tasks_without_labels_are_no_neighbours(cli, folder):
    assert next(iter(lines(cli, "math.csv"))) == "calibrated"
