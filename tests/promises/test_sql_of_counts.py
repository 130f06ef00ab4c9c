"""SQL decides columns of counts, by the query of the page, and refuses what it would not do."""

import random
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import reference
from pages import ROOT, blocks

MODEL = btdagg.DavidsonModel(1.2, 0.5, 0.8)
PAGE = blocks((ROOT / "docs/sql.md").read_text(encoding="utf-8"))


def connected(engine):
    """A database in memory, whose `execute(...)` has `fetchall`."""
    return (
        pytest.importorskip("duckdb").connect()
        if engine == "duckdb"
        else sqlite3.connect(":memory:")
    )


def votes_in_words():
    """Rows of votes in words, some twice; every tenth item has a word that is none."""
    draw = random.Random(5)
    words = ["left", "Left ", "right", "RIGHT", "draw", "", None]
    rows = []
    for number in range(400):
        word = draw.choice([*words, *["left"] * (9 if number % 40 < 9 else 0)])
        rows.append((f"q{number % 40}", number // 40, draw.choice(["yes", "no"]), word))
    return rows + rows[::7]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_the_query_of_the_page_reads_words_as_the_command_does(cli, folder, engine):
    (query,) = (block.text for block in PAGE if "TABLE judged_counts" in block.text)
    rows = votes_in_words()
    pl.DataFrame(rows, ["item", "sample", "order", "vote"], orient="row").write_csv("votes.csv")
    MODEL.save("model.json")
    words = ["words.left=first", "words.right=second", "words.draw=tie"]
    orders = ["orders.yes=BA", "orders.no=AB"]
    typed = [text for key in words + orders for text in ("--set", key)]
    status, _, err = cli("decide", "model.json", "votes.csv", "-o", "decided.csv", *typed)
    assert status == 0, err
    database = connected(engine)
    database.execute("CREATE TABLE judged (item TEXT, sample INTEGER, swapped TEXT, winner TEXT)")
    unread = [("other", 0, "no", "left"), ("other", 1, "no", "lfet"), ("third", 0, "NO", "left")]
    database.executemany("INSERT INTO judged VALUES (?, ?, ?, ?)", rows + unread)
    database.execute(query)
    label = f"CASE WHEN unread = 0 THEN {MODEL.to_sql(engine)} END"
    found = dict(database.execute(f"SELECT item, {label} FROM judged_counts").fetchall())
    assert (found.pop("other"), found.pop("third")) == (None, None)
    decided = pl.read_csv("decided.csv")
    assert found == dict(zip(decided["item"], decided["label"], strict=True))
    assert {*found.values()} == {-1, 0, 1}


@pytest.mark.parametrize(
    "options",
    [
        ("--votes", "votes"),
        ("--labels", "labels"),
        ("--filter", "judge=j"),
        ("-d", "snowflake"),
        *(("--set", f"{key}=x") for key in ("item", "vote", "sample", "task", "judge", "order")),
        *(("--set", key) for key in ("words.left=first", "orders.yes=BA", "votes.vote=winner")),
        *(("--set", key) for key in ("strength=none", "margin=m", "mean=m", "plus=a=b")),
    ],
    ids=" ".join,
)
def test_options_that_are_gone_are_refused(cli, folder, options):
    """Beside a project file as well, whose words no expression over counts can drop."""
    MODEL.save("model.json")
    Path("btdagg.toml").write_text('[votes]\nfile = "votes.csv"\nwords = {left = "first"}\n')
    status, out, err = cli("sql", "model.json", *options)
    assert (status, out) == (2, "") or options == ("--set", "plus=a=b")
    if out:  # a column may be called so
        assert out == MODEL.to_sql("duckdb", plus="a=b") + "\n"
    else:
        assert options[0] in err or options[1] in err


def test_counts_of_a_database_calibrate_as_votes_do(cli, folder):
    """The page's export of counts, and the votes that it was made of, give one model."""
    draw = random.Random(1)
    votes = [
        (f"q{n % 50}", n // 50, max(-1, min(1, round(n % 50 / 24.5 - 1 + draw.gauss(0, 0.7)))))
        for n in range(300)
    ]
    labels = [(f"q{n}", max(-1, min(1, round(n / 24.5 - 1)))) for n in range(30)]
    pl.DataFrame(votes, ["item", "sample", "vote"], orient="row").write_csv("votes.csv")
    pl.DataFrame(labels, ["item", "label"], orient="row").write_csv("labels.csv")
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE votes (item TEXT, sample INTEGER, vote INTEGER)")
    database.executemany("INSERT INTO votes VALUES (?, ?, ?)", votes)
    sides = {"minus": -1, "tie": 0, "plus": 1}
    each = ", ".join(
        f"count(CASE WHEN vote = {v} THEN 1 END) AS {name}" for name, v in sides.items()
    )
    counted = database.execute(f"SELECT item, {each} FROM votes GROUP BY item").fetchall()
    pl.DataFrame(counted, ["item", *sides], orient="row").write_csv("counts.csv")
    for name in ("votes", "counts"):
        status, _, err = cli("calibrate", f"{name}.csv", "labels.csv", "-o", f"{name}.json")
        assert status == 0, err
    ours, theirs = map(btdagg.DavidsonModel.load, ("votes.json", "counts.json"))
    assert (ours.beta, ours.eta0, ours.gamma) == (theirs.beta, theirs.eta0, theirs.gamma)


@pytest.mark.parametrize("points", [(-1, 0, 1), (0, 1, 2), (1, 2, 3), (-2, 0, 2)])
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_items_are_trusted_as_the_probability_of_their_label_says(points, engine):
    """Whatever points the labels have: the reference gives the probabilities."""
    rng = np.random.default_rng(0)
    gold = rng.integers(-1, 2, 400)
    seen = gold[:, None] + rng.normal(0, 1.1, (400, 6))
    vote = np.where(np.abs(seen) < 0.6, 0, np.sign(seen)).astype(int)
    counts = np.stack([(vote == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    labels, scale = np.array(points)[gold + 1], btdagg.Scale(points, mirrored=True)
    certificate = btdagg.certify(counts, labels, label_scale=scale, agreement=0.85)
    model = certificate.model
    features = reference.features(counts, model.alpha, model.kappa)
    p = reference.probabilities(*features, model.beta, model.eta0, model.gamma)
    of_label = p[np.arange(len(p)), reference.decide(p) + 1]
    clear = np.abs(of_label - certificate.threshold) > 1e-9
    expected = of_label >= certificate.threshold
    assert 0.1 < expected.mean() < 0.9
    assert 0 in reference.decide(p)[expected]
    database = connected(engine)
    database.execute("CREATE TABLE counts (item INTEGER, minus INTEGER, tie INTEGER, plus INTEGER)")
    rows = [(item, *row) for item, row in enumerate(counts.tolist())]
    database.executemany("INSERT INTO counts VALUES (?, ?, ?, ?)", rows)
    query = f"SELECT {certificate.to_sql(engine)} FROM counts ORDER BY item"
    by_sql = np.array([trusted for (trusted,) in database.execute(query).fetchall()])
    for trusted in (by_sql == 1, certificate.trusted(counts, n_votes=0)):
        assert trusted[clear].tolist() == expected[clear].tolist()


def test_a_histogram_is_no_table_of_counts(cli, folder):
    rows = "minus,tie,plus,label,number\n0,1,4,1,20\n1,3,1,0,10\n4,1,0,-1,9\n"
    Path("histogram.csv").write_text(rows)
    Path("labels.csv").write_text("item,label\n1,1\n2,0\n")
    status, out, err = cli("calibrate", "histogram.csv", "labels.csv")
    assert (status, out) == (2, "")
    assert "item" in err
    status, _, err = cli("calibrate", "histogram.csv")
    assert status == 2
    assert not Path("model.json").exists()
