"""Labelled counts that a database sums up give the very model that single votes give."""

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import DavidsonModel, InputError, calibrate, fit_prior
from btdagg.model import LabelsTable, VotesTable, histogram_query
from btdagg.votes import read_histogram

NAMES = ["task", "minus", "tie", "plus", "label", "number"]
KINDS = {"item": "text", "task": "text", "sample": "int", "vote": "int"}
LABEL_KINDS = {"item": "text", "task": "text", "label": "text"}


@pytest.fixture
def tables(tmp_path):
    """Votes and labels of two tasks as rows and as files; a fifth of the items has no label."""
    random = np.random.default_rng(4)
    votes, labels = [], []
    for task, n in (("x", 300), ("y", 200)):
        gold = random.integers(-1, 2, n)
        for number, label in enumerate(gold.tolist()):
            item = f"{task}{number}"
            seen = np.clip(np.round(label + random.normal(0, 1.5, 6)), -1, 1).astype(int)
            votes += [(item, task, sample, int(vote)) for sample, vote in enumerate(seen)]
            if number % 5:
                labels.append((item, task, "B" if label < 0 else str(label)))
    pl.DataFrame(votes, list(KINDS), orient="row").write_csv(tmp_path / "votes.csv")
    pl.DataFrame(labels, list(LABEL_KINDS), orient="row").write_csv(tmp_path / "labels.csv")
    return votes, labels


def counted(folder):
    """The histogram by hand."""
    items = btdagg.read_votes(folder / "votes.csv")
    ids, counts = items.counts()
    gold = btdagg.read_labels(folder / "labels.csv")
    known = dict(zip(gold.ids, gold.labels.tolist(), strict=True))
    rows = Counter(
        (item[0], *row, known.get(item)) for item, row in zip(ids, counts.tolist(), strict=True)
    )
    return {(*row, number) for row, number in rows.items()}


def test_a_query_counts_items_by_counts_and_label(engine, tables, tmp_path):
    votes, labels = tables
    engine.table("votes", KINDS, [*votes, *votes[::7]])  # some samples twice
    engine.table("gold", LABEL_KINDS, labels)
    for task in (None, "task"):
        query = histogram_query(
            engine.dialect,
            VotesTable("votes", sample="sample", task="task"),
            LabelsTable("gold", task=task),
        )
        rows = engine.rows(query)
        assert len(rows) == len(set(rows))
        assert set(rows) == counted(tmp_path)


def test_a_histogram_calibrates_as_its_items_do(tables, tmp_path):
    rows = pl.DataFrame(sorted(counted(tmp_path), key=str), NAMES, orient="row")
    histogram = read_histogram(rows)
    votes = btdagg.read_votes(tmp_path / "votes.csv")
    gold = btdagg.read_labels(tmp_path / "labels.csv")
    assert histogram.n_unlabelled == 100
    prior = {}
    for (task,), part in histogram.partition(["task"]):
        of_task, known = votes.filter({"task": task}), gold.filter({"task": task})
        counts, labels = part.items()
        assert counts.dtype == np.uint8
        prior[task] = (counts, labels)
        for given in (None, "weak"):
            one, other = (
                calibrate(counts, labels, prior=given),
                calibrate(of_task, known, prior=given),
            )
            assert one.model == other.model
            assert one.n_labels == other.n_labels == len(labels)
            assert one.drps == other.drps
    from_items = {
        task: (votes.filter({"task": task}), gold.filter({"task": task})) for task in ("x", "y")
    }
    one, other = fit_prior(prior), fit_prior(from_items)
    for name, neighbour in one.neighbours.items():
        np.testing.assert_array_equal(neighbour.counts, other.neighbours[name].counts)
        np.testing.assert_array_equal(neighbour.labels, other.neighbours[name].labels)


@pytest.mark.parametrize("prior", ["none", "neighbours"])
def test_the_command_fits_the_same_model_to_a_histogram(tables, tmp_path, cli, prior):
    rows = sorted(counted(tmp_path), key=str)
    pl.DataFrame(rows, NAMES, orient="row").write_csv(tmp_path / "histogram.csv")
    files = {name: tmp_path / f"{name}.json" for name in ("one", "other")}
    options = ["--filter", "task=x", "--prior", prior, "--json", "-o"]
    said = cli("calibrate", tmp_path / "histogram.csv", *options, files["one"])
    two = [tmp_path / "votes.csv", tmp_path / "labels.csv"]
    also = cli("calibrate", *two, *options, files["other"])
    assert said[0] == also[0] == 0
    assert files["one"].read_text() == files["other"].read_text()
    assert DavidsonModel.load(files["one"]).provenance.task == ("x",)
    told, also = json.loads(said[1]), json.loads(also[1])
    assert told.pop("output") != also.pop("output")
    assert told == also


def test_what_needs_items_says_so(tables, tmp_path, cli):
    file = tmp_path / "histogram.csv"
    pl.DataFrame(sorted(counted(tmp_path), key=str), NAMES, orient="row").write_csv(file)
    for line, message in (
        (("evaluate", file, tmp_path / "labels.csv"), "no column 'item'"),
        (("calibrate", file, "-n", "3"), "-n needs single votes, but"),
        (("calibrate", file, "--set", "strength=none"), "--set strength needs single votes, but"),
        (
            ("calibrate", file, "--set", "full_margin=3"),
            "--set full_margin needs single votes, but",
        ),
        (("calibrate", tmp_path / "votes.csv"), "LABELS is missing"),
    ):
        status, _, err = cli(*line)
        assert status == 2
        assert message in err


def test_a_histogram_has_no_margins(cli):
    arguments = "sql", "--votes", "votes", "--labels", "gold", "--set"
    for column in ("margin=m", "template=t"):
        status, _, err = cli(*arguments, column)
        assert status == 2
        assert "a histogram counts whole votes, expected no column of margins or templates" in err


def test_a_histogram_without_labels_is_refused():
    rows = {"minus": [1], "tie": [0], "plus": [3], "label": [None], "number": [5]}
    with pytest.raises(InputError, match="data frame: no item has a label"):
        read_histogram(rows).items()


def test_histograms_of_different_items_add_up():
    rows = {"minus": [1, 1], "tie": [0, 0], "plus": [3, 3], "label": [1, 1], "number": [5, 6]}
    counts, labels = read_histogram(rows).items()
    assert counts.tolist() == [[1, 0, 3]] * 11
    assert labels.tolist() == [1] * 11
    wide = read_histogram(rows | {"plus": [3, 2**40]}).items()[0]
    assert wide[-1].tolist() == [1, 0, 2**40]
