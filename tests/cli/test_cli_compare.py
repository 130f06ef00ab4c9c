"""`btdagg compare`: which of two ways of deciding the same items is better."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol
from btdagg.datasets import simulate
from btdagg.evaluation import CROSS_FITTED, CrossFit, GroupTest
from btdagg.methods import Calibrated, MajorityVote

N = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of two judges with margins, of which one lacks five items, and labels of 50 items."""
    monkeypatch.chdir(tmp_path)
    few = Protocol(CrossFit(n_folds=3, n_repeats=1, n_refits=3), GroupTest())
    monkeypatch.setitem(btdagg.compare.__kwdefaults__, "protocol", few)
    rng = np.random.default_rng(2)
    parts = []
    for judge, regime in (("a", "rb2-math"), ("b", "rb2-focus")):
        sample = replace(simulate(regime, N, 6, seed=1), items=np.arange(N))
        columns = {**sample.vote_columns(), "margin": rng.integers(1, 9, 6 * N)}
        part = pl.DataFrame(columns).with_columns(judge=pl.lit(judge))
        parts.append(part.filter((pl.col("item") >= 5) | (pl.col("judge") == "a")))
        if judge == "a":
            pl.DataFrame(sample.label_columns())[:50].write_csv("labels.csv")
    pl.concat(parts).write_csv("votes.csv")
    pl.concat(parts).drop("margin").write_csv("signs.csv")
    return tmp_path


def numbers(result):
    return [*result.difference, result.pvalue, *(interval.mean for interval in result.mae)]


@pytest.mark.parametrize(
    ("file", "arguments", "ways"),
    [
        ("votes.csv", (), ("whole votes", "strength")),
        ("signs.csv", (), ("judge=a", "judge=b")),
        ("votes.csv", ("--first", "strength=margin", "--second", "strength=none"), None),
        ("votes.csv", ("--first", "judge=a", "--second", "judge=b", "--second", "n=3"), None),
        ("votes.csv", ("-f", "judge=b", "--first", "n=2"), ("n=2", "all votes")),
        ("signs.csv", ("--first", "method=majority", "--second", "method=davidson"), None),
        ("signs.csv", ("--first", "method=panel", "--second", "judge=b"), None),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_numbers_are_those_of_compare(cli, file, arguments, ways):
    status, out, err = cli("compare", file, "labels.csv", *arguments, "--json")
    assert status == 0, err
    shown = json.loads(out)
    votes, gold = btdagg.read_votes(file), btdagg.read_labels("labels.csv")
    a, b = (votes.filter({"judge": judge}) for judge in "ab")
    first, second, options = {
        (): (votes.signs(), votes, {}) if ways and "whole votes" in ways else (a, b, {}),
        ("--first", "strength=margin"): (votes, votes.signs(), {}),
        ("--first", "judge=a"): (a, b, {"n_votes": (None, 3)}),
        ("-f", "judge=b"): (b, b, {"n_votes": (2, None)}),
        ("--first", "method=majority"): (
            votes,
            votes,
            {"methods": (MajorityVote(), Calibrated(prior=None))},
        ),
        ("--first", "method=panel"): (votes.items(panel="judge"), b, {}),
    }[arguments[:2]]
    expected = btdagg.compare(first, second, gold, **options)
    found = [shown[name] for name in ("difference", "difference_low", "difference_high")]
    found += [shown[name] for name in ("pvalue", "mae_first", "mae_second")]
    assert found == pytest.approx(numbers(expected), abs=1e-12)
    assert ways in (None, (shown["first"], shown["second"]))
    n_left_out = shown["n_only_first"], shown["n_only_second"], shown["n_unlabelled"]
    assert n_left_out == (expected.n_only_first, expected.n_only_second, 10)


@pytest.mark.usefixtures("folder")
def test_a_sentence_and_what_was_left_out(cli):
    status, out, err = cli("compare", "signs.csv", "labels.csv")
    expected = btdagg.compare(
        *(btdagg.read_votes("signs.csv").filter({"judge": judge}) for judge in "ab"),
        btdagg.read_labels("labels.csv"),
        names=("judge=a", "judge=b"),
    )
    assert status == 0
    sentence, about = out.splitlines()
    assert sentence == expected.sentence()
    assert about.startswith(
        "45 labelled items, each decided by models calibrated on 30 others; p ="
    )
    assert err.splitlines() == [
        "5 labelled items have no votes of judge=b and are left out",
        "10 items have votes but no label and are left out",
        "difference of these items: {:+.3f} ({:+.3f} to {:+.3f})".format(
            *expected.other_difference
        ),
        *expected.remarks,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("-f", "judge=a"),
            "signs.csv has no vote strength and not exactly two judges or templates",
        ),
        (("--first", "n=3", "--second", "n=3"), "--first and --second are the same, expected two"),
        (
            ("--first", "n=3", "--first", "n=4"),
            "n has several values in one of the two ways, expected one",
        ),
        (("--first", "n=0"), "n is '0', expected a whole number above 0"),
        (("--first", "method=best"), "no method 'best', expected one of neighbours, weak, davids"),
        (("--second", "judge=c"), "signs.csv: no row has judge 'c'; found a, b"),
        (("--first", "strength=margin"), "there is no column margin; found item"),
        (("--first", "judge"), "--first is 'judge', expected COLUMN=VALUE"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_compared_is_status_2(cli, arguments, message):
    status, out, err = cli("compare", "signs.csv", "labels.csv", *arguments)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.usefixtures("folder")
def test_strength_that_is_switched_off_is_not_said_to_be_absent(cli):
    off = "-f", "judge=a", "--set", "strength=none"
    status, _, err = cli("compare", "votes.csv", "labels.csv", *off)
    assert status == 2
    assert (
        "votes.csv has whole votes by --set strength=none and not exactly two judges or templates"
    ) in err


@pytest.mark.usefixtures("quick_commands")
def test_evaluate_says_whether_strength_helps_and_calibrate_warns_where_it_is_worse(cli, folder):
    sample = simulate("rb2-math", N, 6, seed=1)
    pl.DataFrame(sample.label_columns()).write_csv("gold.csv")
    margins = np.where(sample.votes == sample.labels[:, None], 9, 1).ravel()
    votes = pl.DataFrame({**sample.vote_columns(), "margin": margins})
    votes.write_csv("better.csv")
    margins = np.repeat(np.random.default_rng(0).choice([0.01, 9], N), 6)
    gold = pl.Series(np.repeat(sample.labels, 6))
    votes.with_columns(vote=gold, margin=pl.Series(margins)).write_csv("worse.csv")
    warning = "warning: vote strength is worse than whole votes: MAE 0."
    for name, line in (("worse", warning), ("better", "better: strength, MAE 0.")):
        status, out, err = cli("calibrate", f"{name}.csv", "gold.csv")
        assert status == 0
        assert (warning in err) == (name == "worse")
        status, out, err = cli("evaluate", f"{name}.csv", "gold.csv", "--json")
        assert status == 0, err
        assert any(remark.startswith(line) for remark in json.loads(out)["remarks"])
        for arguments in (("calibrate",), ("evaluate",)):
            status, _, err = cli(*arguments, f"{name}.csv", "gold.csv", "--set", "strength=none")
            assert status == 0
            assert "strength is worse" not in err
            assert "better: strength" not in err


def test_run_says_whether_strength_helps(cli, folder, quick_commands):
    assert cli("demo", "--pairs", "sums")[0] == 0
    for name in ("pairs.jsonl", "labels.csv"):
        lines = (folder / "sums" / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(lines[:31]))
    options = (
        "--labels",
        "labels.csv",
        "--model",
        "simulated",
        "-n",
        2,
        "--set",
        "judge.confidence=logprobs",
        "-o",
        "out",
    )
    status, _, err = cli("run", "pairs.jsonl", *options)
    assert status == 0, err
    (line,) = (line for line in err.splitlines() if "95% interval" in line)
    assert line in (folder / "out/report/index.html").read_text()
    assert err.count("votes count by their probabilities") == 1
    status, _, signs = cli("run", "pairs.jsonl", *options, "--set", "strength=none")
    assert (status, "votes count by" in signs, "better: " in signs) == (0, False, False)
    assert btdagg.DavidsonModel.load("out/model.json").provenance.strength == "none"
    votes = btdagg.read_votes("out/judged_votes.parquet")
    expected = btdagg.compare(
        votes.signs(),
        votes,
        btdagg.read_labels("labels.csv"),
        names=("whole votes", "strength"),
        protocol=CROSS_FITTED,
    )
    assert line == expected.sentence()
