"""Commands that read tables of votes with a strength: what they refuse, warn of and keep."""

import json

import polars as pl
import pytest

from btdagg import read_votes, tally
from btdagg.votes.provenance import Provenance
from commands import one_line

ITEMS = [f"q{number}" for number in range(24)]
# Each item has a vote of each size: clear ones for A, clear ones for B, and near ties.
SIDES = [number % 3 - 1 for number in range(24)]
VOTES = [
    {"item": item, "judge": "j", "sample": sample, "vote": side, "margin": abs(side) * size}
    for item, side in zip(ITEMS, SIDES, strict=True)
    for sample, size in enumerate((1.0, 2.0, 6.0))
]
WIN, LOSS, TIE = 6, 0, 3  # the first rows of each


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"item": ITEMS, "label": SIDES}).write_csv("labels.csv")
    return tmp_path


def write(rows, path="votes.csv"):
    pl.DataFrame(rows, infer_schema_length=None, strict=False).write_csv(path)
    return path


def changed(row, **values):
    """The votes, of which one row has other values."""
    rows = [{**own, **{name: str(own[name]) for name in values}} for own in VOTES]
    rows[row] |= values
    return rows


def renamed(**columns):
    """The votes with other columns in place of the margin."""
    kept = ("item", "judge", "sample", "vote")
    return [{name: own[name] for name in kept} | columns for own in VOTES]


def shares(row=None, **values):
    """Probabilities alone."""
    even = {"p_minus": "0.25", "p_tie": "0.25", "p_plus": "0.5"}
    rows = [{"item": own["item"], "sample": own["sample"], **even} for own in VOTES]
    if row is not None:
        rows[row] |= values
    return rows


def at(row, came, expected, column="margin"):
    return f"votes.csv, row {row}, column {column}: got {came}, expected {expected}"


SIZE = "a number of at most 1e+100 in size, or nothing"
SIGN = "a margin of the sign of its vote, or sizes of at least 0 in all rows"
REFUSED = {
    "negative at a win": (changed(WIN, margin="-1"), "", at(7, "-1.0", SIGN)),
    "negative at a loss": (changed(LOSS, margin="-1"), "", at(1, "-1.0", SIGN)),
    "NaN": (changed(WIN, margin="nan"), "", at(7, "'nan'", SIZE)),
    "infinite": (changed(TIE, margin="inf"), "", at(4, "'inf'", SIZE)),
    "huge": (changed(WIN, margin="1e300"), "", at(7, "'1e300'", SIZE)),
    "text": (changed(WIN, margin="big"), "", at(7, "'big'", SIZE)),
    "missing": (
        changed(WIN, margin=""), "",
        at(7, "nothing", "a margin of every vote but ties (1 of 48 votes have none); --strength"),
    ),
    "a repeat with another margin": (
        [*VOTES, VOTES[WIN] | {"margin": 5.0}], "",
        "rows 7 and 73: both have item 'q2', judge 'j', sample 0, with margins 1.0 and 5.0",
    ),
    "strength above 1": (
        renamed(strength=1.5), "", at(1, "'1.5'", "a number from 0 to 1", "strength"),
    ),
    "two kinds": (
        [own | {"strength": 1} for own in VOTES], "",
        "votes.csv: --strength is not chosen, and there are columns for margin and strength; none",
    ),
    "shares above 1": (
        shares(3, p_minus="0.9"), "",
        at(4, "0.9", "three probabilities that add up to 1", "p_minus"),
    ),
    "a share missing": (
        shares(3, p_minus=""), "",
        at(4, "nothing", "three probabilities that add up to 1", "p_minus"),
    ),
    "a negative share": (
        shares(3, p_tie="-0.25"), "",
        at(4, "'-0.25'", "a number from 0 to 1", "p_tie"),
    ),
    "full margin 0": (VOTES, "--full-margin 0", "--full-margin is 0.0, expected a number above 0"),
    "full margin below 0": (VOTES, "--full-margin -2", "--full-margin is -2.0, expected a number"),
    "full margin NaN": (VOTES, "--full-margin nan", "--full-margin is nan, expected a finite"),
    "full margin infinite": (VOTES, "--full-margin inf", "--full-margin is inf, expected a finite"),
    "full margin of signs": (VOTES, "--full-margin 2 --strength none", "--full-margin is given"),
    "full margin of strengths": (
        renamed(strength=1), "--full-margin 2", "--full-margin is for a column margin, and votes",
    ),
    "no such column": (
        VOTES, "--strength strength", "votes.csv: --strength is strength, and there is no column",
    ),
    "counts": (
        [{"item": item, "minus": 1, "tie": 0, "plus": 2} for item in ITEMS], "--strength margin",
        "--strength needs single votes, and these are counts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_in_a_sentence(folder, cli, case):
    rows, options, message = REFUSED[case]
    write(rows)
    refusal = one_line(*cli("calibrate", "votes.csv", "labels.csv", *options.split()))
    assert message in refusal
    assert not (folder / "model.json").exists()


def test_the_full_margin_is_printed_kept_and_used_again(folder, cli):
    status, _, err = cli("calibrate", write(VOTES), "labels.csv", "-o", "model.json")
    assert status == 0
    assert "votes count by their margin; a whole win is 4 (j)" in err
    provenance = json.loads((folder / "model.json").read_text())["provenance"]
    assert provenance["full_margins"] == [["j", "", 4.0]]
    few = [{"item": "x", "judge": "j", "vote": 1, "margin": 1.0}]
    status, _, err = cli("decide", "model.json", write(few, "few.csv"), "-o", "out.csv")
    assert status == 0
    assert pl.read_csv("out.csv").select("minus", "tie", "plus").rows() == [(0, 0.75, 0.25)]
    assert "a whole win is 4 (j)" in err
    # In any order of the rows, and where samples are repeated.
    shuffled = pl.DataFrame([*VOTES, *VOTES[:9]]).sample(fraction=1, shuffle=True, seed=1)
    again = read_votes(shuffled, full_margin=4).tally().sort("item")
    assert again.equals(read_votes(VOTES, full_margin=4).tally().sort("item"))
    counts = tally(["x"] * 3, [1, 2, 6], full_margin=4)[1]
    assert counts.tolist() == [[0, 1.25, 1.75]]
    assert again.filter(pl.col("item") == "q2").select("minus", "tie", "plus").rows() == [
        (0, 1.25, 1.75)
    ]


def test_a_model_of_strength_on_signs_and_the_reverse_warn_once(folder, cli):
    for options, path in (((), "strong.json"), (("--strength", "none"), "signs.json")):
        assert cli("calibrate", write(VOTES), "labels.csv", "-o", path, *options)[0] == 0
    write(renamed(), "signs.csv")
    _, _, err = cli("decide", "strong.json", "signs.csv", "-o", "out.csv")
    assert err.count("votes count by their sign, and the model was fitted to their margin") == 1
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]
    _, _, err = cli("decide", "signs.json", "votes.csv", "-o", "out.csv")
    assert err.count("votes have a margin, and the model was fitted to signs") == 1
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]
    _, _, err = cli("decide", "strong.json", "votes.csv", "-o", "out.csv", "--strength", "none")
    assert pl.read_csv("out.csv")["plus"].to_list() == [3 * (side > 0) for side in SIDES]


def test_margins_that_are_all_0_or_empty_decide_by_what_is_left(folder, cli):
    write([own | {"margin": 0.0} for own in VOTES], "zero.csv")
    assert set(read_votes("zero.csv").counts()[1][:, 1].tolist()) == {3}
    write([own | {"margin": ""} for own in VOTES], "empty.csv")
    assert Provenance.of(read_votes("empty.csv")).strength == "none"
    assert cli("calibrate", "empty.csv", "labels.csv")[0] == 0
