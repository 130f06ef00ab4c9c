"""Certificates with what else is known of items."""

import json
import sqlite3

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import Certificate
from refusals import refused


def judged(n=600, n_labels=200, seed=0):
    """Two noisy votes an item, a covariate that says more, and labels of some."""
    rng = np.random.default_rng(seed)
    x = rng.normal(2, 3, size=n)
    quality = 0.4 * (x - 2) + 0.7 * rng.normal(size=n)

    def shares(u):
        odds = np.exp(np.column_stack([-u, np.full(n, -0.5), u]))
        return odds / odds.sum(axis=1, keepdims=True)

    own = shares(2 * quality).cumsum(axis=1)[:, :2]
    labels = (rng.random(n)[:, None] > own).sum(axis=1) - 1.0
    counts = rng.multinomial(2, shares(0.5 * quality))
    return counts, np.where(np.arange(n) < n_labels, labels, np.nan), x - 2


def test_covariates_certify_items_that_votes_alone_do_not():
    counts, labels, x = judged()
    alone = btdagg.certify(counts, labels, agreement=0.75)
    known = btdagg.certify(counts, labels, agreement=0.75, covariates={"x": x})
    assert known.coverage > alone.coverage
    (own,) = known.model.covariates
    assert own.scale == pytest.approx(np.sqrt(np.mean(x[:200] ** 2)))
    told = {"covariates": {"x": x}}
    trusted = known.trusted(counts, **told)
    assert trusted.mean() == pytest.approx(known.coverage)
    shares = known.model.predict_proba(counts, **told)
    decided = known.model.decide(counts, **told)
    of_label = shares[np.arange(len(shares)), decided + 1]
    np.testing.assert_array_equal(trusted, of_label >= known.threshold)
    with refused("covariates", got=None, expected="x of each item"):
        known.trusted(counts)
    fewer = counts - (counts == counts.max(axis=1, keepdims=True))  # a vote is missing
    fewer = np.maximum(fewer, 0)
    early = known.trusted(fewer, **told)
    every = [known.trusted(fewer + row, n_votes=0, **told) for row in np.eye(3, dtype=int)]
    full = fewer.sum(axis=1) == 1
    assert early[full].any()
    np.testing.assert_array_equal(
        early[full] <= np.all(every, axis=0)[full], np.ones(full.sum(), dtype=bool)
    )


@pytest.fixture
def files(folder):
    counts, labels, x = judged()
    names = np.array(["ant", "bee"])[np.arange(len(x)) % 2]
    columns = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    frame = pl.DataFrame({"item": np.arange(len(x)), **columns, "x": x})
    frame.with_columns(system_a=pl.Series(names), system_b=pl.Series(names[::-1])).write_csv(
        "v.csv"
    )
    gold = pl.DataFrame({"item": np.arange(len(x)), "label": labels}, nan_to_null=True)
    gold.with_columns(pl.col("label").cast(pl.Int64)).write_csv("l.csv")
    return "v.csv", "l.csv"


def test_commands_tables_and_a_saved_certificate_agree(cli, files):
    votes, labels = btdagg.read_votes(files[0]), btdagg.read_labels(files[1])
    wanted = btdagg.certify(votes, labels, agreement=0.75, covariates="x")
    items = votes.items(labels).with_covariates("x")
    assert btdagg.certify(items, agreement=0.75).curve == wanted.curve
    words = ("--set", "covariates=x", "--agreement", "0.75", "-o", "c.json", "--json")
    out = cli("certify", *files, *words)[1]
    assert json.loads(out)["coverage"] == wanted.coverage > 0
    saved = Certificate.load("c.json")
    assert saved.model.covariates[0].name == "x"
    assert cli("decide", "c.json", files[0], "-o", "d.csv")[0] == 0
    decided = pl.read_csv("d.csv")
    counts, known = items.pooled, items.covariates
    rows = decided["item"].to_numpy().argsort()
    of = np.argsort(items.ids.astype(int))
    trusted = wanted.trusted(counts, covariates=known)
    np.testing.assert_array_equal(decided["trusted"].to_numpy()[rows], trusted[of])
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (minus, tie, plus, x)")
    told = zip(counts.tolist(), known["x"].tolist(), strict=True)
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(*row, x) for row, x in told])
    found = [own for (own,) in base.execute(f"SELECT {saved.to_sql('sqlite')} FROM t")]
    np.testing.assert_array_equal(found, trusted)


def test_standings_are_refused_and_left_out_of_auto(files):
    votes, labels = btdagg.read_votes(files[0]), btdagg.read_labels(files[1])
    with refused("covariates", got="standing"):
        btdagg.certify(votes, labels, covariates="standing")
    alone = btdagg.certify(votes, labels)
    assert btdagg.certify(votes, labels, covariates="auto").curve == alone.curve


def test_trusted_grades_of_such_a_model_have_no_sql():
    counts, labels, x = judged()
    how = {"scale": btdagg.Scale((1, 2, 3)), "agreement": 0.6}
    found = btdagg.certify(counts, labels + 2, covariates={"x": x}, **how)
    assert found.trusted(counts, covariates={"x": x}).any()
    with refused("model", got="one with x", expected="this one needs x of each item"):
        found.to_sql("duckdb")
