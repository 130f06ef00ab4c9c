"""`btdagg bias`: the answer first, then its table, figure and JSON."""

import json
import re
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
    assert out.startswith(f"{found.answer}\n")
    assert "the judge favours length by" in found.answer
    assert [bias.of for bias in found.systems] == ["ant", "bee", "cat"]
    assert "taken as a simple random sample" in err
    page = Path("report/index.html").read_text()
    assert "What the judge favours" in page
    assert found.answer in page
    assert pl.read_csv("report/tables/bias.csv").height == 4
    assert json.loads(cli("bias", *files, "--json")[1])["covariates"][0]["finding"] == "favours"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--covariates", "standing"], "--covariates is 'standing', expected what is known of"),
        (["--covariates", "citations"], "--covariates is 'citations', expected"),
        (["--set", "labels.scale=1-3"], "column label: got .-1., expected 1, 2 or 3"),
    ],
)
def test_refusals(cli, files, words, message):
    status, _, err = cli("bias", *files, *words)
    assert status == 2
    assert re.search(message, err)
