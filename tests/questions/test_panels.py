"""A panel of judges in tables: what commands can, Python can, with the same numbers."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol, evaluate
from btdagg.datasets import simulate
from btdagg.estimates import not_worse
from btdagg.evaluation import CrossFit
from btdagg.methods import Calibrated, MajorityVote
from refusals import refused

N = 160


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of a judge and of a noisier one, who misses items, and labels of some."""
    monkeypatch.chdir(tmp_path)
    judge = simulate("rb2-math", N, 6, seed=2)
    counts = judge.counts, np.random.default_rng(0).permuted(judge.counts, axis=1)
    pl.DataFrame(
        [
            {"item": f"i{item}", "judge": name, "vote": vote}
            for name, of_judge in zip("ba", counts, strict=True)
            for item in range(N)
            if name == "b" or item % 7
            for vote in np.repeat([-1, 0, 1], of_judge[item]).tolist()
        ]
    ).write_csv("votes.csv")
    labels = pl.DataFrame({"item": [f"i{item}" for item in range(N)], "label": judge.labels})
    labels[:90].write_csv("labels.csv")
    labels[90:130].write_csv("others.csv")
    return tmp_path


@pytest.fixture
def tables(folder):
    return btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")


def test_estimates_gates_and_certificates_by_a_panel(tables, cli):
    votes, labels = tables
    panel = btdagg.calibrate_panel(votes, btdagg.read_labels("others.csv")).model
    net = btdagg.estimate(votes, labels, model=panel).estimates["net win rate"]
    sides = {"candidate": "new", "baseline": "old", "margin": 0.9}
    worse = not_worse(votes.with_names("new", "old"), labels, model=panel, **sides)
    assert worse.estimate == pytest.approx(net.value)
    certificate = btdagg.certify(votes, labels, model=panel, agreement=0.45)
    counts = votes.items(panel="judge", judges=panel.judges)
    assert certificate.n_votes == (0, 6)  # of judges a, who misses some, and b
    trusted = certificate.trusted(counts.counts, n_votes=certificate.n_votes)
    assert trusted.mean() == pytest.approx(certificate.coverage)
    assert trusted.any()
    assert certificate.likeness(counts.counts) > 0.01
    with refused("n_votes", got=(6, 6, 6)):
        certificate.trusted(counts.counts, n_votes=(6, 6, 6))
    certificate.save("certificate.json")
    status, out, err = cli("decide", "certificate.json", "votes.csv", "--json")
    assert status == 0, err
    decided = {row["item"]: row["trusted"] for row in map(json.loads, out.splitlines())}
    assert trusted.tolist() == [decided[item] for item in counts.ids]


def test_a_panel_is_evaluated_beside_the_pooled_votes_of_its_judges(tables):
    votes, labels = tables
    n_votes = [2]
    protocol = Protocol(CrossFit(n_folds=4, n_repeats=1, n_refits=4), None)
    methods = [
        Calibrated(judges=("a", "b")),
        Calibrated(judges=("b",), name="one"),
        Calibrated(),
        MajorityVote(),
    ]
    options = {"aggregators": methods, "protocol": protocol}
    found = evaluate(votes, labels, n_votes=n_votes, **options)
    assert found.by == ()
    (cell,) = found.cells
    items = votes.labelled(labels, n_votes[0], panel="judge")
    (of_rows,) = evaluate(items.by_row(), items.label, **options).cells
    options["aggregators"] = [
        Calibrated(judges=("1", "2")),
        Calibrated(judges=("2",), name="one"),
        *methods[2:],
    ]
    (of_array,) = evaluate(items.counts, items.label, **options).cells
    for other in (of_rows, of_array):
        for one, same in zip(cell.methods, other.methods, strict=True):
            assert one.mae.tolist() == same.mae.tolist()
    panel, one, pooled, _ = (method.mae.tolist() for method in cell.methods)
    assert panel != one != pooled
    with pytest.raises(btdagg.InputError, match="no counts of judge 'c'; found a, b"):
        evaluate(votes, labels, aggregators=[Calibrated(judges=("a", "c"))], protocol=protocol)


def test_a_prior_beside_a_panel_is_refused():
    counts = np.random.default_rng(0).multinomial(4, [0.3, 0.3, 0.4], size=(60, 2))
    labels = np.tile([-1.0, 0.0, 1.0, np.nan], 15)
    with refused("prior", got=None, expected="weak for a panel"):
        btdagg.estimate(counts, labels, prior=None)
