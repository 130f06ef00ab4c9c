"""`btdagg choose`, top-ups of what it drew, and `btdagg estimate` of it."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import choose
from commands import one_line

DRAWN = [
    *("item", "unit", "stratum", "probability", "least_probability"),
    *("design", "seed", "round", "label"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """300 items with eight votes each, their prompts in the votes, and all labels in gold.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    gold = rng.choice([-1, 0, 1], size=300, p=[0.2, 0.3, 0.5])
    seen = gold[:, None] + rng.normal(0, 0.9, (300, 8))
    votes = np.sign(np.where(np.abs(seen) < 0.5, 0, seen)).astype(int)
    items = [f"q{number}" for number in range(300)]
    pl.DataFrame(
        {
            "item": np.repeat(items, 8),
            "prompt": np.repeat([f"p{number // 3}" for number in range(300)], 8),
            "vote": votes.ravel(),
        }
    ).write_csv("votes.csv")
    pl.DataFrame({"item": items, "label": gold}).write_csv("gold.csv")
    return tmp_path


def test_grades_of_several_criteria_are_drawn_and_topped_up_by_item(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    grade = rng.integers(1, 6, (2, 200))
    score = np.clip(grade[:, :, None] + rng.integers(-1, 2, (2, 200, 3)), 1, 5)
    criterion, item, _ = np.indices(score.shape).reshape(3, -1)
    columns = {"item": [f"r{row}" for row in item], "criterion": np.array(["a", "b"])[criterion]}
    pl.DataFrame(columns | {"score": score.ravel()}).write_csv("votes.csv")
    first = drawn(cli, "--items", "30", "--design", "stratified", "--set", "votes.scale=1-5")
    assert len(first) == 60
    assert first["item"].n_unique() == 30
    assert set(first["task"]) == {"a", "b"}
    assert first["stratum"].str.starts_with("mean ").all()
    places = {"a": 0, "b": 1}
    labels = [
        grade[places[task], int(item[1:])] for item, task in first.select("item", "task").rows()
    ]
    first.with_columns(label=pl.Series(labels)).write_csv("labelled.csv")
    told = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5")
    more = drawn(cli, "--items", "50", "--after", "labelled.csv", *told, name="more.csv")
    assert more["item"].n_unique() == 50
    assert more["label"].to_list()[:60] == labels
    options = ("votes.csv", "more.csv", *told, "--json")
    estimates = json.loads(cli("estimate", *options)[1])
    assert (estimates["n_labels"], estimates["n_groups"]) == (60, 30)
    mean = estimates["by"]["a"]["mean grade"]
    assert mean["low"] < grade[0].mean() < mean["high"]


def drawn(cli, *options, name="to_label.csv"):
    """The table that the command writes."""
    status, _, err = cli("choose", "votes.csv", *options, "-o", name)
    assert (status, err.removeprefix("votes are grades: 1, 2, 3, 4 or 5\n")) == (0, "")
    return pl.read_csv(name)


def labelled(name, to=None):
    """Fill in the labels of a file, as people do."""
    rows = pl.read_csv(name).drop("label")
    rows = rows.join(pl.read_csv("gold.csv"), on="item", maintain_order="left")
    rows.with_columns(note=pl.lit("fine, I think")).write_csv(to or name)
    return rows


@pytest.mark.parametrize("design", ["simple", "stratified"])
def test_the_file_says_what_is_drawn(cli, folder, design):
    found = drawn(cli, "--items", "40", "--design", design)
    votes = btdagg.read_votes("votes.csv")
    expected = choose(votes, 40, design=design)
    assert found.columns == DRAWN
    assert found["item"].to_list() == votes.ids[expected.rows].tolist()
    assert found["probability"].to_list() == expected.probabilities[expected.rows].tolist()
    assert found["stratum"].to_list() == expected.strata[expected.rows].tolist()
    assert found.select("design", "seed", "round").unique().rows() == [(design, 0, 1)]
    assert found["label"].null_count() == 40
    assert found["unit"].unique().to_list() == ["item"]
    assert found["least_probability"].unique().to_list() == [expected.probabilities.min()]


@pytest.mark.parametrize("options", [["--design", "stratified"], ["--group", "prompt"], []])
def test_a_sample_in_rounds_is_the_sample_in_one_go(cli, folder, options):
    by_group = [option for option in options if option in ("--group", "prompt")]
    drawn(cli, "--items", "20", *options)
    before = labelled("to_label.csv")
    drawn(cli, "--items", "21", "--after", "to_label.csv", *by_group, name="more.csv")
    found = drawn(cli, "--items", "50", "--after", "more.csv", *by_group, name="last.csv")
    whole = drawn(cli, "--items", "50", *options, name="whole.csv")
    key = ["item", "stratum", "probability", "design", "seed"]
    assert found.select(key).sort("item").equals(whole.select(key).sort("item"))
    # Rows of before come first, with labels and notes.
    n = before.height
    assert found["item"][:n].to_list() == before["item"].to_list()
    assert found["label"][:n].to_list() == before["label"].to_list()
    assert found["note"].to_list() == ["fine, I think"] * n + [None] * (found.height - n)
    assert found["label"].null_count() == found.height - n
    per_unit = 3 if by_group else 1
    numbers = found["round"].value_counts().sort("round")["count"].to_list()
    assert numbers == [20 * per_unit, per_unit, 29 * per_unit]


def test_groups_come_whole_with_their_names(cli, folder):
    found = drawn(cli, "--items", "10", "--group", "Prompt")
    assert found.columns == ["item", "group", *DRAWN[1:]]
    assert found["group"].n_unique() == 10
    assert found["unit"].unique().to_list() == ["group"]
    assert found.height == 30
    assert all(group == f"p{int(item[1:]) // 3}" for item, group in found["item", "group"].rows())
    more = ["--items", "12", "--group", "prompt", "--after", "to_label.csv", "-o", "more.csv"]
    assert cli("choose", "votes.csv", *more)[1] == (
        "drew 12 of 100 groups with 36 items, 6 of them new: simple sample, seed 0, "
        "probability 0.12; wrote more.csv\n"
    )


def test_a_file_from_before_there_were_units_is_topped_up(cli, folder):
    drawn(cli, "--items", "20")
    edited(lambda rows: rows.drop("unit", "least_probability"))
    more = drawn(cli, "--items", "30", "--after", "to_label.csv", name="more.csv")
    assert more.columns == DRAWN
    assert more.select("unit", "least_probability").unique().rows() == [("item", 0.1)]


def test_items_of_several_tasks_are_known_by_both(cli, folder):
    votes = pl.read_csv("votes.csv")
    both = pl.concat([votes.with_columns(task=pl.lit(task)) for task in ("x", "y")])
    both.with_columns(item=pl.col("item").str.slice(1).cast(int)).write_csv("votes.csv")
    found = drawn(cli, "--items", "310")
    assert set(found["task"]) == {"x", "y"}
    assert found["item"].n_unique() < 310  # some of both tasks
    more = drawn(cli, "--items", "390", "--after", "to_label.csv", name="more.csv")
    assert more.select("task", "item").unique().height == 390
    assert more[:310].select("task", "item").equals(found.select("task", "item"))
    # Names that occur once are the same without the task.
    both.filter(task="x").write_csv("votes.csv")
    by_item = choose(btdagg.read_votes("votes.csv"), 60)
    found = drawn(cli, "--items", "60", name="one.csv")
    assert found["item"].to_list() == btdagg.read_votes("votes.csv").ids[by_item.rows].tolist()


def test_what_is_printed(cli, folder):
    out = cli("choose", "votes.csv", "--items", "30", "-o", "to_label.csv")[1]
    assert out == (
        "drew 30 of 300 items: simple sample, seed 0, probability 0.1; wrote to_label.csv\n"
    )
    out = cli("choose", "votes.csv", "--items", "60", "--after", "to_label.csv", "-o", "more.csv")[
        1
    ]
    assert out.startswith("drew 60 of 300 items, 30 of them new: simple sample")
    out = cli("choose", "votes.csv", "--items", "60", "--design", "stratified", "-o", "other.csv")[
        1
    ]
    lines = [line.split() for line in out.splitlines()[1:-1]]
    assert sum(int(line[-3]) for line in lines) == 300
    assert sum(int(line[-2]) for line in lines) == 60


def edited(change):
    """Change the rows of the file."""
    change(pl.read_csv("to_label.csv")).write_csv("to_label.csv")


def without_an_item(item):
    votes = pl.read_csv("votes.csv")
    votes.filter(pl.col("item") != item).write_csv("votes.csv")


@pytest.mark.parametrize(
    ("before", "options", "message"),
    [
        (
            None,
            "--items 20",
            "--items is 20, expected more than the 20 items that to_label.csv has",
        ),
        (None, "--items 30 --design simple", "--design is 'simple', expected 'stratified' as in"),
        (None, "--items 30 --group prompt", "to_label.csv: no column 'group'"),
        (
            lambda: edited(lambda rows: rows[1:]),
            "--items 30",
            (
                "does not match a sample from votes.csv, expected all rows of the sample "
                "unchanged (unlabelled ones"
            ),
        ),
        (
            lambda: without_an_item(
                sorted({f"q{n}" for n in range(300)} - set(pl.read_csv("to_label.csv")["item"]))[0]
            ),
            "--items 30",
            "does not match a sample from votes.csv",
        ),
    ],
)
def test_a_top_up_that_is_none_is_refused_in_a_line(cli, folder, before, options, message):
    drawn(cli, "--items", "20", "--design", "stratified")
    if before is not None:
        before()
    said = one_line(*cli("choose", "votes.csv", "--after", "to_label.csv", *options.split()))
    assert message in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--items 0", "--items is 0, expected an integer of at least 1"),
        ("--items 5 --design best", "'best' is not one of 'simple', 'stratified'."),
        (
            "--items 5 --group vote",
            "column vote: item 'q0' has '0' and '1', expected a column ",
        ),
        ("--items 5 -o votes.csv", "--output is votes.csv, an input file"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(cli, folder, options, message):
    assert message in one_line(*cli("choose", "votes.csv", *options.split()))


def test_labels_are_not_overwritten(cli, folder):
    drawn(cli, "--items", "20")
    drawn(cli, "--items", "21")  # no label is in it yet
    labelled("to_label.csv")
    kept = Path("to_label.csv").read_bytes()
    said = one_line(*cli("choose", "votes.csv", "--items", "20", "-o", "to_label.csv"))
    assert "--output is to_label.csv, which already has labels" in said
    top_up = "choose votes.csv --items 30 --after to_label.csv -o to_label.csv"
    assert "an input file" in one_line(*cli(*top_up.split()))
    assert Path("to_label.csv").read_bytes() == kept


# Estimates of what was drawn


def test_items_without_a_label_in_the_file_itself_are_counted(cli, folder):
    drawn(cli, "--items", "80")
    rows = labelled("to_label.csv")
    rows.with_columns(label=pl.when(pl.int_range(80) >= 3).then("label")).write_csv("some.csv")
    err = cli("estimate", "votes.csv", "some.csv")[2]
    assert err.startswith("3 items of some.csv were drawn but not labelled")


def test_labels_without_a_design_are_said_to_be_taken_as_a_simple_sample(cli, folder):
    pl.read_csv("gold.csv").sample(60, seed=0).write_csv("labels.csv")
    status, _, err = cli("estimate", "votes.csv", "labels.csv")
    assert status == 0
    assert err.startswith(
        "labels.csv does not say how its items were drawn; they are assumed to be a "
        "simple random sample, such as btdagg choose draws\n"
    )
    # With a label of every item there is nothing to draw.
    assert "does not say" not in cli("estimate", "votes.csv", "gold.csv")[2]
