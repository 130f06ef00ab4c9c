"""`btdagg difference`: columns of systems, long tables, groups, and what is wrong with them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import difference, differences, read_scores
from commands import one_line


@pytest.fixture(autouse=True)
def scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    old = rng.integers(1, 6, 90)
    table = pl.DataFrame({
        "id": [f"q{row:02}" for row in range(90)],
        "prompt": np.arange(90) // 3,
        "old": old,
        "new": np.clip(old + rng.integers(-1, 3, 90), 1, 5),
        "other": rng.integers(1, 6, 90),
    })  # fmt: skip
    table.write_csv("wide.csv")
    long = table.unpivot(
        ["new", "old", "other"],
        index=["id", "prompt"],
        variable_name="experiment",
        value_name="score",
    )
    long.write_ndjson("long.jsonl")
    return table


@pytest.mark.parametrize(
    "source", [("wide.csv", "--systems", "new,old"), ("long.jsonl", "--systems", "new,old")]
)
def test_both_shapes_of_a_table_say_what_the_library_says(cli, scores, source):
    done = cli("difference", *source, "--group", "prompt", "--better", "higher", "--json")
    assert done[0] == 0, done
    expected = difference(
        scores["new"].to_numpy(),
        scores["old"].to_numpy(),
        groups=scores["prompt"].to_numpy(),
        better="higher",
        names=("new", "old"),
    )
    assert json.loads(done[1]) == json.loads(json.dumps(expected.as_dict()))
    status, out, _ = cli("difference", *source, "--group", "prompt", "--better", "higher")
    assert status == 0
    assert out.startswith(f"{expected.sentence()}\n")
    assert "new is better" in out


def test_all_pairs_of_a_long_table(cli, scores):
    values = {name: scores[name].to_numpy() for name in ("new", "old", "other")}
    status, out, _ = cli("difference", "long.jsonl", "--better", "higher", "--json")
    expected = differences(values, better="higher")
    assert status == 0
    assert json.loads(out) == json.loads(json.dumps(expected.as_dict()))
    status, out, _ = cli(
        "difference",
        "long.jsonl",
        "--better",
        "lower",
        "--against",
        "old",
        "--correction",
        "none",
        "--report",
        "page",
    )
    assert status == 0
    assert "2 differences" in out
    assert "new" in Path("page/index.html").read_text()


def test_margins(cli):
    how = ("difference", "wide.csv", "--systems", "new,old", "--better", "higher")
    status, out, _ = cli(*how, "--alternative", "not-worse", "--margin", "0.2")
    assert status == 0
    assert out.startswith("new is not worse than old by more than 0.2")
    status, out, _ = cli(*how, "--alternative", "equivalent", "--margin", "0.1")
    assert "it is not shown that new and old differ by less than 0.1" in out


def test_what_is_missing_or_repeated_is_said(cli):
    frame = pl.read_ndjson("long.jsonl")
    frame = frame.filter(~((pl.col("id") == "q03") & (pl.col("experiment") == "old")))
    pl.concat([frame, frame.head(2)]).write_csv("some.csv")
    status, _, err = cli("difference", "some.csv", "--systems", "new,old", "--better", "higher")
    assert status == 0
    assert "left out: 1 item without a value of each" in err
    assert "2 rows repeat an item of a system" in err
    with_gap = pl.read_csv("wide.csv").with_columns(
        old=pl.when(pl.col("id") == "q05").then(None).otherwise(pl.col("old"))
    )
    read = read_scores(with_gap, systems=["new", "old"])
    assert np.isnan(read.values).sum() == 1
    assert read.shared().values.shape == (2, 89)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("wide.csv",), "no column system or method"),
        (("wide.csv", "--systems", "new"), "two names or more"),
        (("wide.csv", "--systems", "new,newer"), "no column 'newer'"),
        (("wide.csv", "--systems", "new,new"), "two names or more, each once"),
        (("wide.csv", "--systems", "id,new"), "other columns than those of items"),
        (("wide.csv", "--systems", "new,old", "--value", "other"), "--value is 'other'"),
        (("long.jsonl", "--systems", "new,newer"), "newer"),
        (("long.jsonl", "--against", "newest"), "newest"),
        (("long.jsonl", "--value", "id"), "a number, or nothing"),
        (("wide.csv", "--systems", "new,old", "--item", "prompt"), "items have several rows"),
        (("long.jsonl", "--alternative", "not-worse"), "--margin is 0.0, expected above 0"),
        (("long.jsonl", "--group", "task"), "no column 'task'"),
        (("none.csv",), "none.csv"),
    ],
)
def test_what_is_wrong_is_named(cli, words, said):
    assert said in one_line(*cli("difference", *words, "--better", "higher"))


def test_which_values_are_better_has_to_be_said(cli):
    status, _, err = cli("difference", "wide.csv", "--systems", "new,old")
    assert status == 2
    assert "--better" in err


def test_verdicts_in_words_are_ones_and_zeros(tmp_path):
    words = ["Pass", "fail", "true", "no", "1", ""]
    expected = [1, 0, 1, 0, 1, np.nan]
    read = read_scores({"new": words, "old": [True, False] * 3}, systems=["new", "old"])
    np.testing.assert_array_equal(read.values, [expected, [1, 0] * 3])
    with pytest.raises(
        btdagg.InputError, match="row 2, column new: got 'maybe', expected a number"
    ):
        read_scores({"new": ["1", "maybe"], "old": [1, 2]}, systems=["new", "old"])


def test_an_item_is_of_one_group():
    table = {
        "item": [1, 1, 2, 2],
        "system": [*"abab"],
        "score": [1, 2, 3, 4],
        "group": [1, 2, 3, 3],
    }
    with pytest.raises(btdagg.InputError, match="item '1' is of two groups"):
        read_scores(table)
