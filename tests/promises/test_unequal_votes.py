"""Items may have unequal numbers of votes: one model serves all, and none makes votes up."""

import json
import sqlite3
import warnings
from dataclasses import replace

import gates
import numpy as np
import polars as pl
import public_votes
import pytest

import btdagg
from btdagg import reference
from btdagg.online import plan
from refusals import refused

N_ITEMS, N_LABELS = 120, 80


def thinned(n_items=N_ITEMS, few=2, seed=0):
    """Votes, of which every other item has few and the others eight, and labels of some items."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n_items, p=[0.3, 0.35, 0.35])
    seen = gold[:, None] + rng.normal(0, 0.8, (n_items, 8))
    vote = np.where(np.abs(seen) < 0.5, 0, np.sign(seen)).astype(int)
    item, sample = (part.ravel() for part in np.indices((n_items, 8)))
    rows = pl.DataFrame({"item": item, "sample": sample, "vote": vote.ravel()})
    rows = rows.filter((pl.col("item") % 2 == 0) | (pl.col("sample") < few))
    return rows, pl.DataFrame({"item": np.arange(N_LABELS), "label": gold[:N_LABELS]})


@pytest.fixture
def files(folder):
    for name, table in zip(("votes.csv", "labels.csv"), thinned(), strict=True):
        table.write_csv(name)
    return folder


GATE = ("--candidate", "A", "--baseline", "B", "--margin", 0.9)
COMMANDS = {
    "evaluate": (),
    "calibrate": ("-o", "model.json"),
    "certify": (),
    "check": (),
    "estimate": (),
    "gate": GATE,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_any_numbers_of_votes(cli, files, command):
    status, printed, remarks = cli(command, "votes.csv", "labels.csv", *COMMANDS[command])
    assert status == 0
    assert "unequal" not in printed + remarks


def test_items_of_the_usual_number_are_decided_by_the_papers_model():
    """To the last bit: what is added for other numbers is nothing at the usual one."""
    rows, gold = thinned()
    items = btdagg.read_votes(rows).labelled(btdagg.read_labels(gold))
    for prior in ("weak", None):
        model = quiet(items, prior=prior).model
        plain = btdagg.DavidsonModel(model.beta, model.eta0, model.gamma)
        assert model.usual_votes in (2, 8)
        counts = np.array([c for c in np.ndindex(9, 9, 9) if sum(c) == model.usual_votes])
        for name in ("decide", "predict_proba", "risks"):
            found, wanted = (getattr(of, name)(counts) for of in (model, plain))
            np.testing.assert_array_equal(found, wanted)
        other = np.array([c for c in np.ndindex(6, 6, 6) if sum(c) == 5])
        at = model.at(5)
        np.testing.assert_array_equal(model.decide(other), at.decide(other))
        assert at == btdagg.DavidsonModel(at.beta, at.eta0, at.gamma)


def test_decisions_of_any_number_mirror_and_are_those_of_sql_and_of_the_reference():
    model = btdagg.DavidsonModel(1.1, 0.6, 0.7, alpha=0.5, kappa=2.0, usual_votes=8)
    counts = np.array([*np.ndindex(7, 7, 7)])
    p = model.predict_proba(counts)
    s, t = reference.usual_features(counts, 8, 0.5, 2.0)
    np.testing.assert_allclose(model.features(counts), (s, t), rtol=1e-12)
    np.testing.assert_allclose(p, reference.probabilities(s, t, 1.1, 0.6, 0.7), rtol=1e-11)
    np.testing.assert_array_equal(model.predict_proba(counts[:, ::-1]), p[:, ::-1])
    np.testing.assert_array_equal(model.decide(counts[:, ::-1]), -model.decide(counts))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE c (minus INT, tie INT, plus INT)")
    connection.executemany("INSERT INTO c VALUES (?, ?, ?)", counts.tolist())
    found = connection.execute(f"SELECT {model.to_sql('sqlite')} FROM c ORDER BY rowid").fetchall()
    assert [label for (label,) in found] == model.decide(counts).tolist()


def test_sql_decides_items_that_a_judge_of_a_panel_has_not_seen_as_python_does():
    numbers = {"alpha": 2.0, "kappa": 3.0, "usual_votes": (8, 5)}
    panel = btdagg.PanelModel(("a", "b"), (1.2, 0.8), 0.3, (0.5, 0.4), **numbers)
    counts = np.random.default_rng(3).integers(0, 4, (60, 2, 3))
    counts[::3, 0], counts[1::3, 1] = 0, 0
    counts = counts[counts.any(axis=(1, 2))]
    connection = sqlite3.connect(":memory:")
    names = [f"{judge}_{label}" for judge in "ab" for label in ("minus", "tie", "plus")]
    connection.execute(f"CREATE TABLE c ({', '.join(names)})")
    rows = counts.reshape(-1, 6).tolist()
    connection.executemany(f"INSERT INTO c VALUES ({', '.join('?' * 6)})", rows)
    columns = {"a": names[:3], "b": names[3:]}
    written = panel.to_sql("sqlite", columns=columns)
    found = connection.execute(f"SELECT {written} FROM c ORDER BY rowid").fetchall()
    assert [label for (label,) in found] == panel.decide(counts).tolist()


def test_refits_and_neighbours_have_the_usual_number_of_all_items():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(2, [0.35, 0.3, 0.35], 300)
    side = np.sign(counts[:, 2] - counts[:, 0])
    labels = np.where(rng.random(300) < 0.9, side, 0)
    counts[:60] = rng.multinomial(8, [0.35, 0.3, 0.35], 60)
    refits = btdagg.bootstrap(counts, labels, n_refits=100, seed=0)
    model = refits.calibration.model
    assert model.usual_votes == 2
    assert np.quantile(refits.parameters[:, 0], 0.05) < model.beta
    assert np.quantile(refits.parameters[:, 0], 0.95) > model.beta
    (theta,) = btdagg.fit_prior([(counts, labels)]).parameters(2)
    assert theta[0] == pytest.approx(model.beta, rel=0.02)


def test_a_service_says_the_usual_number():
    from fastapi.testclient import TestClient

    from btdagg.serve import create_app

    client = TestClient(create_app(btdagg.DavidsonModel(1.1, 0.6, 0.7, usual_votes=8)))
    assert client.get("/v1/model").json()["usual_votes"] == 8


def test_a_saved_model_keeps_its_usual_number(tmp_path):
    model = btdagg.DavidsonModel(1.1, 0.6, 0.7, usual_votes=8)
    model.save(tmp_path / "m.json")
    assert btdagg.DavidsonModel.load(tmp_path / "m.json") == model
    assert model != btdagg.DavidsonModel(1.1, 0.6, 0.7)
    for usual in (0, -1, np.nan, "8"):
        with refused("usual_votes", got=usual):
            btdagg.DavidsonModel(1.1, 0.6, 0.7, usual_votes=usual)


def quiet(*args, **options):
    with warnings.catch_warnings(action="ignore"):
        return btdagg.calibrate(*args, **options)


def error_of(model, cell):
    return np.abs(model.decide(cell.counts) - cell.labels).mean()


@pytest.mark.parametrize("way", ["thinned", "stopped", "3 to 8"])
def test_one_model_serves_real_votes_of_any_number(shared, way):
    """No worse than a fit for each number, and better than one that takes features as they are."""
    errors = {"one": [], "apart": [], "as they are": []}
    for place, cell in enumerate(public_votes.rb2_unequal(way)[::2]):
        pool, judged = gates.halves(cell, 0, place)
        known, rest = cell.rows(pool[:100]), cell.rows(judged)
        model = quiet(known.counts, known.labels).model
        errors["one"].append(error_of(model, rest))
        errors["as they are"].append(error_of(replace(model, usual_votes=None), rest))
        n_known, n_rest = known.counts.sum(axis=1), rest.counts.sum(axis=1)
        decided = np.zeros(len(rest.labels))
        for n in np.unique(n_rest):
            own = known.rows(n_known == n)
            if len(own.labels):
                alone = quiet(own.counts, own.labels).model
                decided[n_rest == n] = alone.decide(rest.counts[n_rest == n])
        errors["apart"].append(np.abs(decided - rest.labels).mean())
    one, apart, as_they_are = (np.mean(of) for of in errors.values())
    assert one < apart + 0.005
    assert one < as_they_are - 0.005


@pytest.mark.filterwarnings("ignore:items have up to 8 votes")
@pytest.mark.parametrize(("n_known", "n_decided"), [(2, 8), (8, 2), (8, 5)])
def test_numbers_that_no_label_has_are_decided_nearly_as_by_a_fit_for_them(
    shared, n_known, n_decided
):
    """For eight votes from labels of two; for two, and five, from labels of eight."""
    apart = []
    for place, ((_, _), (votes, _, part)) in enumerate(public_votes.rb2_votes().items()):
        labels, rng = part["label"].to_numpy(), np.random.default_rng(place)
        known, rest = np.split(rng.permutation(len(labels)), [100])
        known, rest = known[:100], rest
        by_number = {
            n: public_votes.counted(votes[:, :n], public_votes.PAIRS) for n in (n_known, n_decided)
        }
        for_them = quiet(by_number[n_decided][known], labels[known]).model
        of_others = quiet(by_number[n_known][known], labels[known]).model
        new = by_number[n_decided][rest]
        apart.append([np.abs(of.decide(new) - labels[rest]).mean() for of in (of_others, for_them)])
    of_others, for_them = np.mean(apart, axis=0)
    assert of_others < for_them + 0.02


def test_two_numbers_of_votes_are_compared_on_items_that_have_both(cli, files):
    ways = ("--first", "n=2", "--second", "n=8")
    done = json.loads(cli("compare", "votes.csv", "labels.csv", *ways, "--json")[1])
    assert (done["n_items"], done["n_fewer"]) == (N_LABELS // 2, N_LABELS // 2)
    # As where those items are all there are.
    votes, labels = thinned()
    votes.filter(pl.col("item") % 2 == 0).write_csv("both.csv")
    labels.filter(pl.col("item") % 2 == 0).write_csv("both_labels.csv")
    both = json.loads(cli("compare", "both.csv", "both_labels.csv", *ways, "--json")[1])
    assert [both[k] for k in ("difference", "pvalue")] == [
        done[k] for k in ("difference", "pvalue")
    ]
    said = cli("compare", "votes.csv", "labels.csv", *ways)[2]
    assert f"{N_LABELS // 2} labelled items lack votes of n=2 or n=8" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "-n", "9"),
        ("evaluate", "-n", "2,9"),
        ("calibrate", "-n", "9", "-o", "model.json"),
        ("certify", "-n", "9"),
        ("estimate", "-n", "9"),
        ("compare", "--first", "n=2", "--second", "n=9"),
        ("compare", "--first", "n=9", "--second", "n=2"),
    ],
)
def test_commands_refuse_a_number_of_votes_that_no_item_has(cli, files, arguments):
    command, *options = arguments
    status, _, errors = cli(command, "votes.csv", "labels.csv", *options)
    assert (status, "expected at most 8" in errors) == (2, True), errors


def test_decide_refuses_it_too(cli, files):
    cli("calibrate", "votes.csv", "labels.csv", "-o", "model.json")
    status, _, errors = cli("decide", "model.json", "votes.csv", "-n", 9, "-o", "decided.csv")
    assert (status, "expected at most 8" in errors) == (2, True)
    status, _, errors = cli("plan", "model.json", "votes.csv", "labels.csv", "-n", 9)
    assert status == 2


def test_python_refuses_a_number_of_votes_that_no_item_has():
    rows, gold = thinned()
    votes, labels = btdagg.read_votes(rows), btdagg.read_labels(gold)
    judged = btdagg.read_votes(rows.with_columns(judge=pl.lit("x")))
    for refuse in (
        lambda: votes.counts(9),
        lambda: votes.tally(9),
        lambda: votes.items(n_votes=9),
        lambda: votes.items(labels, n_votes=9),
        lambda: votes.labelled(labels, 9),
        lambda: votes.items(labels, n_votes=9, drawn=False),
        lambda: judged.items(panel="judge", n_votes=9),
        lambda: btdagg.evaluate(votes, labels, n_votes=[2, 9]),
        lambda: btdagg.compare(votes, votes, labels, n_votes=(2, 9)),
        lambda: btdagg.decisions(votes, _model(), n_votes=9),
    ):
        with refused("n_votes", got=9, expected="at most 8"):
            refuse()


def _model():
    return btdagg.DavidsonModel(1.0, 0.0, 0.0)


def test_labelled_items_with_fewer_votes_than_others_are_no_reason_to_use_fewer():
    rows, gold = thinned()
    odd = gold.filter(pl.col("item") % 2 == 1)
    votes, labels = btdagg.read_votes(rows), btdagg.read_labels(odd)
    with refused("n_votes", got=4, expected="at most 2"):
        btdagg.evaluate(votes, labels, n_votes=[4])


def test_a_task_of_fewer_votes_is_used_beside_one_that_has_them():
    rows, gold = thinned()
    rows = rows.with_columns(
        task=pl.when(pl.col("item") % 2 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    gold = gold.with_columns(
        task=pl.when(pl.col("item") % 2 == 0).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    items = btdagg.read_votes(rows).items(btdagg.read_labels(gold), n_votes=8)
    assert sorted({*items.pooled.sum(axis=1).tolist()}) == [2, 8]


def test_an_average_over_judges_of_different_items_says_so():
    rows, gold = thinned()
    rows = rows.filter(pl.col("sample") < 2)
    other = rows.filter(pl.col("item") >= 20).with_columns(judge=pl.lit("y"))
    first = rows.filter(pl.col("item") < 60).with_columns(judge=pl.lit("x"))
    labels = btdagg.read_labels(gold)
    scores = btdagg.evaluate(btdagg.read_votes(pl.concat([first, other])), labels)
    assert any("different labelled items (60, 60; 40 in common)" in r for r in scores.remarks)
    same = pl.concat([rows.with_columns(judge=pl.lit(name)) for name in "xy"])
    scores = btdagg.evaluate(btdagg.read_votes(same), labels)
    assert scores.averages
    assert not any("in common" in r for r in scores.remarks)


def test_a_plan_from_arrays_still_forecasts_more_votes_than_the_pilot_has():
    votes, labels = thinned()
    items = btdagg.read_votes(votes).labelled(btdagg.read_labels(labels))
    assert plan(items, n_items=100, n_votes=[4, 12]).budgets[-1].n == 12


def test_a_judge_of_fewer_votes_is_evaluated_at_those_it_has():
    rows, gold = thinned()
    every = rows.filter(pl.col("item") % 2 == 0)
    few = every.filter(pl.col("sample") < 4).with_columns(judge=pl.lit("few"))
    votes = btdagg.read_votes(pl.concat([every.with_columns(judge=pl.lit("all")), few]))
    scores = btdagg.evaluate(votes, btdagg.read_labels(gold), n_votes=[8, 4])
    assert [(cell.key, cell.n_votes) for cell in scores.cells] == [
        (("all",), 8),
        (("all",), 4),
        (("few",), 4),
    ]
    ((key, reason),) = scores.skipped
    assert (key, "expected at most 4" in reason) == (("few",), True)
    assert {line["n_votes"] for line in scores.averages} == {4}
