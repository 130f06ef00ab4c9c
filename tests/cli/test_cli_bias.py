"""`btdagg bias`: the answer first, then its table, figure and JSON."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg


@pytest.fixture
def files(folder):
    """Votes that favour long responses, and labels of half of the items."""
    rng = np.random.default_rng(5)
    n, names = 400, np.array(["ant", "bee", "cat"])
    first, second = np.array([rng.choice(3, 2, replace=False) for _ in range(n)]).T
    chars = rng.lognormal(6, 0.5, (n, 2)).astype(int)
    doublings = np.log2((1 + chars[:, 0]) / (1 + chars[:, 1]))
    seen = np.sign(np.round(doublings[:, None] + rng.logistic(size=(n, 4)))).astype(int)
    votes = pl.DataFrame({"item": np.repeat(np.arange(n), 4), "vote": seen.ravel()})
    systems = {"system_a": names[first], "system_b": names[second]}
    known = {**systems, "chars_a": chars[:, 0], "chars_b": chars[:, 1]}
    votes.with_columns(
        **{name: pl.Series(np.repeat(values, 4)) for name, values in known.items()}
    ).write_csv("votes.csv")
    labels = rng.integers(-1, 2, n)[:200]
    pl.DataFrame({"item": np.arange(200), "label": labels}).write_csv("labels.csv")
    return "votes.csv", "labels.csv"


def test_the_answer_comes_first_and_python_gives_the_same(cli, files):
    status, out, err = cli("bias", *files, "--report", "report")
    found = btdagg.bias(btdagg.read_votes(files[0]), btdagg.read_labels(files[1]))
    assert status == 0
    assert out.startswith(f"{found.sentence()}\n")
    assert "the judge favours length by" in found.sentence()
    assert [bias.of for bias in found.systems] == ["ant", "bee", "cat"]
    assert "assumed to be a simple random sample" in err
    page = Path("report/index.html").read_text()
    assert "What the judge favours" in page
    assert found.sentence() in page
    assert pl.read_csv("report/tables/bias.csv").height == 4
    assert json.loads(cli("bias", *files, "--json")[1])["covariates"][0]["finding"] == "favours"


@pytest.mark.usefixtures("quick_commands")
def test_a_report_of_evaluate_says_what_each_judge_favours(cli, files):
    cli("bias", *files, "--report", "of_one")
    rows = pl.read_csv("votes.csv")
    fair = pl.DataFrame({"item": range(200)}).with_columns(
        vote=pl.lit(0, pl.Int64), judge=pl.lit("fair")
    )
    fair = fair.join(rows.drop("vote").unique("item"), on="item")
    both = [rows.with_columns(judge=pl.lit("long")), fair]
    pl.concat(both, how="diagonal").write_csv("both.csv")
    words = ["both.csv", "labels.csv", "--methods", "majority", "--report", "of_both"]
    assert cli("evaluate", *words, "--covariates", "standing,length")[0] == 0
    sections = [own for own in report_of("of_both")["sections"] if own["name"] == "bias"]
    assert [own["title"].rpartition(": ")[2] for own in sections] == ["long", "fair"]
    found = btdagg.bias(btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv"))
    assert found.sentence() in Path("of_both/index.html").read_text()
    of_long = Path("of_both/tables/bias.csv").read_text()
    assert of_long == Path("of_one/tables/bias.csv").read_text()


@pytest.mark.usefixtures("quick_commands")
def test_a_report_says_once_why_no_judge_has_a_section(cli, files):
    rows = pl.read_csv("votes.csv").with_columns(chars_a=1000, chars_b=1000).drop("^system_.$")
    known, nothing = rows, rows.select("item", "vote")
    for name, votes in {"known": known, "nothing": nothing}.items():
        both = [votes.with_columns(judge=pl.lit(judge)) for judge in ("x", "y")]
        pl.concat(both).write_csv("both.csv")
        words = ["both.csv", "labels.csv", "--methods", "majority", "--report", name]
        assert cli("evaluate", *words)[0] == 0
    skipped = [
        own for own in report_of("known")["skipped"] if "What the judge favours" in own["what"]
    ]
    assert [own["what"] for own in skipped] == ["What the judge favours: x, y"]
    assert "What the judge favours" not in Path("nothing/index.html").read_text()


def report_of(folder):
    return json.loads(Path(folder, "report.json").read_text())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--covariates", "standing"], "--covariates is 'standing', expected covariates"),
        (["--set", "labels.scale=1-3"], "column label: got '-1', expected 1, 2 or 3"),
    ],
)
def test_refusals(cli, files, words, message):
    status, _, err = cli("bias", *files, *words)
    assert (status, message in err) == (2, True), err
