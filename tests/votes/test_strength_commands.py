"""Commands that read tables of votes with a strength: what they refuse, warn of and keep."""

import json

import polars as pl
import pytest

from btdagg import read_votes
from btdagg.votes import Provenance
from commands import one_line

ITEMS = [f"q{number}" for number in range(24)]
# Each item has a vote of each size: clear ones for A, clear ones for B, and near ties.
SIDES = [number % 3 - 1 for number in range(24)]
VOTES = [
    {"item": item, "judge": "j", "sample": sample, "vote": side, "margin": abs(side) * size}
    for item, side in zip(ITEMS, SIDES, strict=True)
    for sample, size in enumerate((1.0, 2.0, 6.0))
]


@pytest.fixture
def folder(folder):
    pl.DataFrame({"item": ITEMS, "label": SIDES}).write_csv("labels.csv")
    return folder


def write(rows, path="votes.csv"):
    pl.DataFrame(rows, infer_schema_length=None, strict=False).write_csv(path)
    return path


def test_the_full_margin_is_printed_kept_and_used_again(folder, cli):
    status, _, err = cli("calibrate", write(VOTES), "labels.csv", "-o", "model.json")
    assert status == 0
    assert "votes count by their margin; a full win is 4 (j)" in err
    provenance = json.loads((folder / "model.json").read_text())["provenance"]
    assert provenance["full_margins"] == [["j", "", 4.0]]
    few = [{"item": "x", "judge": "j", "vote": 1, "margin": 1.0}]
    status, _, err = cli("decide", "model.json", write(few, "few.csv"), "-o", "out.csv")
    assert status == 0
    assert pl.read_csv("out.csv").select("minus", "tie", "plus").rows() == [(0, 0.75, 0.25)]
    assert "a full win is 4 (j)" in err


def test_margins_that_are_all_0_or_empty_decide_by_what_is_left(folder, cli):
    write([own | {"margin": 0.0} for own in VOTES], "zero.csv")
    assert set(read_votes("zero.csv").counts()[1][:, 1].tolist()) == {3}
    write([own | {"margin": ""} for own in VOTES], "empty.csv")
    assert Provenance.of(read_votes("empty.csv")).strength == "none"
    assert cli("calibrate", "empty.csv", "labels.csv")[0] == 0


def without_margins():
    kept = ("item", "judge", "sample", "vote")
    return [{name: own[name] for name in kept} for own in VOTES]


def test_a_model_of_strength_on_signs_and_the_reverse_warn_once(folder, cli):
    for options, path in (((), "strong.json"), (("--set", "strength=none"), "signs.json")):
        assert cli("calibrate", write(VOTES), "labels.csv", "-o", path, *options)[0] == 0
    write(without_margins(), "signs.csv")
    _, _, err = cli("decide", "strong.json", "signs.csv", "-o", "out.csv")
    warning = "votes count without their strength, but the model was fitted to their margin"
    assert err.count(warning) == 1
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]
    _, _, err = cli("decide", "signs.json", "votes.csv", "-o", "out.csv")
    assert err.count("votes have a margin, but the model was fitted without vote strength") == 1
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]
    _, _, err = cli("decide", "strong.json", "votes.csv", "-o", "out.csv", "--set", "strength=none")
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]


@pytest.mark.parametrize(
    ("more", "options", "said"),
    [
        ({"strength": 1}, "", "has columns for margin and strength; choose one by --set strength"),
        ({}, "--set full_margin=2 --set strength=none", "--set full_margin is given"),
        ({}, "--set strength=strength", "is strength, but there is no column"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(folder, cli, more, options, said):
    write([own | more for own in VOTES])
    assert said in one_line(*cli("calibrate", "votes.csv", "labels.csv", *options.split()))


def test_counts_have_no_strength(folder, cli):
    write([{"item": item, "minus": 1, "tie": 0, "plus": 2} for item in ITEMS])
    line = ("calibrate", "votes.csv", "labels.csv", "--set", "strength=margin")
    assert "--set strength needs single votes, but these are" in one_line(*cli(*line))
