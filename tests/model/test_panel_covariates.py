"""Panels with covariates: an offset of each item, and weights beside what all judges say."""

import json
import math
import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Covariate, InputError, PanelModel, calibrate_panel, reference
from btdagg.votes import Items
from oracle import oracle
from refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

MODEL = PanelModel(
    ("x", "y", "z"), (0.9, 0.4, 0.7), 0.3, (0.8, -0.3, 0.5),
    covariates=(Covariate("standing", 0.6, 0.5), Covariate("price", -0.4, 2.0)),
)  # fmt: skip


def judged(n=120, seed=0, slope=0.9, n_judges=3):
    """Votes of judges, of whom some are absent, on items with a covariate; and labels."""
    rng = np.random.default_rng(seed)
    counts, x = rng.integers(0, 4, (n, n_judges, 3)), rng.normal(size=n)
    if n_judges > 1:
        counts[rng.random((n, n_judges)) < 0.1] = 0
    numbers = np.array([1.0, 0.2, 0.5])[:n_judges], 0.4, np.array([0.6, 0.2, 0.1])[:n_judges]
    p = reference.panel_probabilities(counts, *numbers, slope * x)
    return counts, (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1) - 1, x


def offsets_of(known):
    return 0.6 * known["standing"] / 0.5 - 0.4 * np.nan_to_num(known["price"]) / 2


@pytest.fixture(scope="module")
def items():
    counts, _, x = judged(3000)
    price = np.random.default_rng(2).normal(0, 3, 3000)
    price[:100] = np.nan
    return counts, {"standing": x, "price": price}


def test_an_offset_of_each_item_is_added(items):
    counts, known = items
    p = reference.panel_probabilities(counts, MODEL.beta, 0.3, MODEL.gamma, offsets_of(known))
    np.testing.assert_allclose(MODEL.predict_proba(counts, covariates=known), p, rtol=1e-11)
    np.testing.assert_array_equal(MODEL.decide(counts, covariates=known), reference.decide(p))
    found = MODEL.risks(counts, covariates=known)
    np.testing.assert_allclose(found, reference.risks(p), rtol=1e-11)
    turned = {name: -values for name, values in known.items()}
    for name, wanted in (
        ("decide", -MODEL.decide(counts[..., ::-1], covariates=turned)),
        ("predict_proba", MODEL.predict_proba(counts[..., ::-1], covariates=turned)[:, ::-1]),
    ):
        np.testing.assert_array_equal(getattr(MODEL, name)(counts, covariates=known), wanted)
        plain, zero = replace(MODEL, covariates=()), {k: 0 * v for k, v in known.items()}
        without = getattr(plain, name)(counts)
        np.testing.assert_array_equal(getattr(MODEL, name)(counts, covariates=zero), without)
    for columns, message in [
        (None, "expected standing, price of each item"),
        (
            {"standing": known["standing"]},
            r"covariates is \['standing'\], expected exactly standing, price",
        ),
        ({k: v[:5] for k, v in known.items()}, "has 5 rows, expected 3000"),
    ]:
        with pytest.raises(InputError, match=message):
            MODEL.decide(counts, covariates=columns)


@pytest.mark.parametrize("offset", [-700.0, -3.25, 1e-12, 0.7, 30.0])
def test_probabilities_are_those_of_high_precision(offset):
    counts = np.array([[0, 1, 7], [5, 0, 2], [3, 3, 3], [0, 1, 0], [2**40, 1, 0]])
    known = (Covariate("o", 1.0, 1.0),)
    twice = PanelModel(("x", "y"), (0.7, 1.0), -0.4, (0.4, 0.5), covariates=known)
    same = np.stack([counts, counts], axis=1)
    found = twice.predict_proba(same, covariates={"o": np.full(5, offset)})
    for row, p in zip(counts.tolist(), found.tolist(), strict=True):
        wanted = oracle(row, 1.7, -0.4, 0.9, offset=offset).p
        np.testing.assert_allclose(p, [float(x) for x in wanted], rtol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_a_panel_of_one_is_the_fit_of_that_judge(seed):
    counts, labels, x = judged(100, seed, n_judges=1)
    gold = np.where(np.arange(100) < 70, labels, np.nan)
    own = {"covariates": {"x": x, "y": x**3}}
    one, panel = (
        btdagg.calibrate(counts[:, 0], gold, **own),
        calibrate_panel(counts, gold, **own),
    )
    assert panel.model.covariates == one.model.covariates
    assert panel.weights() == one.weights()
    found = panel.model.beta[0], panel.model.eta0, panel.model.gamma[0]
    assert found == pytest.approx((one.model.beta, one.model.eta0, one.model.gamma), rel=1e-5)
    assert panel.drps == pytest.approx(one.drps, rel=1e-9)


def test_weights_are_found_and_rows_and_sides_change_no_bit():
    counts, labels, x = judged(3000)
    fitted = calibrate_panel(counts, labels, covariates={"x": x}).model
    (own,) = fitted.covariates
    assert own.weight / own.scale == pytest.approx(0.9, abs=0.1)
    p = fitted.predict_proba(counts, covariates={"x": x})
    gold = labels[:, None] == [-1, 0, 1]
    known = (replace(own, weight=0.9, scale=1.0),)
    true = PanelModel(fitted.judges, (1.0, 0.2, 0.5), 0.4, (0.6, 0.2, 0.1), covariates=known)
    wanted = true.predict_proba(counts, covariates={"x": x})
    assert -np.log(p[gold]).mean() < -np.log(wanted[gold]).mean() + 0.01
    few = slice(0, 90)
    gold = np.where(np.arange(200) < 60, labels[:200], np.nan)
    known = {"x": x[:200], "y": np.round(x[:200], 1)}
    fitted = calibrate_panel(counts[:200], gold, covariates=known)
    order = np.random.default_rng(3).permutation(200)
    turned = {name: -values[order] for name, values in known.items()}
    other = calibrate_panel(counts[:200][order][..., ::-1], -gold[order], covariates=turned)
    assert other.model == fitted.model
    assert fitted.n_labels == 60
    assert fitted.model.covariates[0].scale == math.sqrt((np.sort(x[:200] ** 2)).mean())
    assert "x 0." in str(fitted)
    # Labelled rows alone, with the scale that all rows gave.
    scaled = {c.name: (known[c.name][few][:60], c.scale) for c in fitted.model.covariates}
    again = calibrate_panel(counts[:60], labels[:60], covariates=scaled).model
    assert again == fitted.model
    assert btdagg.calibrate(counts[:200], gold, covariates=known).model == fitted.model
    whole = Items(counts=counts[:200], labels=gold).with_covariates(known)
    assert btdagg.calibrate(whole).model == calibrate_panel(whole).model == fitted.model
    with refused("labels", row=60, got=np.nan):
        calibrate_panel(counts[:200], gold)
    plain = calibrate_panel(counts[:60], labels[:60])
    left_out = calibrate_panel(counts[:60], labels[:60], covariates={"c": np.ones(60)})
    assert left_out.model == plain.model
    assert left_out.warnings == ("covariate c is the same in every item and is left out",)
    some = np.where(np.arange(60) < 50, 1.0, 0.0)
    weighted = calibrate_panel(counts[:60], labels[:60], weights=some, covariates=scaled).model
    cut = {name: (values[:50], scale) for name, (values, scale) in scaled.items()}
    assert weighted == calibrate_panel(counts[:50], labels[:50], covariates=cut).model


def test_a_model_is_a_value_and_a_file(tmp_path):
    MODEL.save(tmp_path / "panel.json")
    assert PanelModel.load(tmp_path / "panel.json") == MODEL
    assert replace(MODEL, covariates=()) != MODEL
    saved = json.loads((tmp_path / "panel.json").read_text())
    assert [own["name"] for own in saved["covariates"]] == ["standing", "price"]


def test_sql_decides_as_the_model_does(items):
    counts, known = (items[0][:500], {name: values[:500] for name, values in items[1].items()})
    facts = [[None if np.isnan(v) else float(v) for v in values] for values in known.values()]
    rows = [
        [*item.ravel().tolist(), *own]
        for item, own in zip(counts, zip(*facts, strict=True), strict=True)
    ]
    connection = sqlite3.connect(":memory:")
    names = [f"{side} {name}" for name in MODEL.judges for side in ("minus", "tie", "plus")]
    connection.execute(
        f"CREATE TABLE c ({', '.join(f'`{n}` INT' for n in names)}, standing REAL, cost REAL)"
    )
    connection.executemany(f"INSERT INTO c VALUES ({', '.join('?' * 11)})", rows)
    text = MODEL.to_sql("sqlite", covariates={"price": "cost"})
    labels = MODEL.decide(counts, covariates=known).tolist()
    assert [y for (y,) in connection.execute(f"SELECT {text} FROM c ORDER BY rowid")] == labels
    written = MODEL.to_sql("sqlite", covariates={"price": "cost"}, probabilities=True)
    found = connection.execute(f"SELECT {written} FROM c ORDER BY rowid").fetchall()
    p = MODEL.predict_proba(counts, covariates=known)
    for row, label, own in zip(found, labels, p.tolist(), strict=True):
        assert row == pytest.approx((label, *own), rel=1e-9)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Votes of two judges on pairs of four systems, and labels of some."""
    monkeypatch.chdir(tmp_path)
    rng, n, names = np.random.default_rng(7), 200, np.array(["a", "b", "c", "d"])
    pair = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    u = np.array([1.5, 0.6, -0.5, -1.5])[pair] @ [1, -1]
    labels = np.sign(np.round(u + rng.logistic(size=n))).astype(int)
    chars = rng.lognormal(6, 0.5, (n, 2)).astype(int)
    frames = []
    for judge, worth in (("one", 0.5), ("two", 0.2)):
        votes = np.sign(np.round(worth * u[:, None] + rng.logistic(size=(n, 2)))).astype(int)
        facts = {"item": np.arange(n), "system_a": names[pair[:, 0]], "system_b": names[pair[:, 1]]}
        facts |= {"chars_a": chars[:, 0], "chars_b": chars[:, 1]}
        own = {name: np.repeat(values, 2) for name, values in facts.items()}
        frames.append(pl.DataFrame(own | {"judge": np.repeat(judge, 2 * n), "vote": votes.ravel()}))
    pl.concat(frames).write_csv("votes.csv")
    pl.DataFrame({"item": np.arange(80), "label": labels[:80]}).write_csv("labels.csv")
    return btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")


def test_tables_arrays_and_commands_agree(tables, cli):
    votes, labels = tables
    fitted = calibrate_panel(votes, labels, covariates="auto")
    model = fitted.model
    items = votes.items(labels, panel="judge").with_covariates("auto")
    assert [*items.covariates] == ["standing", "length"] == [own.name for own in model.covariates]
    own = votes.frame.unique("item", maintain_order=True)
    sides = (own["system_a"], own["system_b"])
    pooled = btdagg.standing(items.counts.sum(axis=1), *sides)
    np.testing.assert_array_equal(btdagg.standing(items.counts, *sides), pooled)
    np.testing.assert_array_equal(items.covariates["standing"], pooled)
    known = items.covariates
    by_array = calibrate_panel(items.counts, items.label, judges=("one", "two"), covariates=known)
    assert by_array.model == model
    assert model.covariates[0].standings.keys() == {*"abcd"}
    model.save("panel.json")
    # Those of a model are of the systems, those of items leave out the item's own votes.
    of_model = items.with_covariates(["standing", "length"], model=model).covariates
    assert np.all(of_model["standing"] != known["standing"])
    decided = btdagg.decisions(votes, model)
    wanted = model.decide(items.counts, covariates=of_model)
    np.testing.assert_array_equal(decided["label"], wanted)
    assert cli("decide", "panel.json", "votes.csv", "-o", "decided.csv")[0] == 0
    np.testing.assert_array_equal(pl.read_csv("decided.csv")["label"], wanted)
    files = ("votes.csv", "labels.csv", "--json")
    status, out, err = cli("estimate", *files, "--set", "panel=judge", "--covariates", "auto")
    assert status == 0, err
    net = btdagg.estimate(items).estimates["net win rate"]
    of_command = json.loads(out)["estimates"]["net win rate"]
    assert (of_command["value"], of_command["low"]) == (net.value, net.low)
    without = btdagg.estimate(votes.items(labels, panel="judge")).estimates["net win rate"]
    assert net.high - net.low < without.high - without.low
    certificate = btdagg.certify(
        items.counts, items.label, agreement=0.5, covariates={"length": known["length"]}
    )
    trusted = certificate.trusted(items.counts, covariates={"length": known["length"]})
    assert trusted.mean() == pytest.approx(certificate.coverage)


@pytest.mark.usefixtures("quick_commands")
def test_evaluations_and_comparisons_of_a_panel_use_covariates(tables):
    votes, labels = tables
    panel = votes.items(panel="judge")
    found = btdagg.compare(panel, panel, labels, covariates=(None, "auto"))
    assert found.mae[1].mean < found.mae[0].mean
    methods = [btdagg.methods.Calibrated(judges=("one", "two"))]
    protocol = btdagg.Protocol(btdagg.evaluation.CrossFit(n_folds=4, n_repeats=1, n_refits=2), None)
    told = {"aggregators": methods, "protocol": protocol}
    (alone,), (known,) = (
        btdagg.evaluate(votes, labels, covariates=own, **told).cells for own in (None, "auto")
    )
    assert known.methods[0].mae.mean() < alone.methods[0].mae.mean()
