"""Commands with covariates say what Python says."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.cli import run
from btdagg.estimates import choose, not_worse
from btdagg.evaluation import CrossFit, GroupTest
from refusals import refused

pytestmark = [
    pytest.mark.usefixtures("quick_commands"),
    pytest.mark.filterwarnings("ignore:this judge is not shown"),
]
QUICK = btdagg.Protocol(splitter=CrossFit(3, 1, 3, 0), test=GroupTest())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("covariates")
    rng = np.random.default_rng(7)
    n, names = 200, np.array(["a", "b", "c", "d"])
    first, second = np.array([rng.choice(4, 2, replace=False) for _ in range(n)]).T
    u = 1.5 * (np.array([1.0, 0.4, -0.3, -1.0])[[first, second]] * [[1], [-1]]).sum(axis=0)
    labels = np.sign(np.round(u + rng.logistic(size=n))).astype(int)
    votes = np.sign(np.round(0.4 * u[:, None] + rng.logistic(size=(n, 2)))).astype(int)
    item = np.array([f"item {i:03}" for i in range(n)])
    facts = {"item": item, "system_a": names[first], "system_b": names[second]}
    frame = pl.DataFrame(facts | {"mine": rng.normal(size=n)}).join(
        pl.DataFrame({"item": item.repeat(2), "vote": votes.ravel()}), on="item"
    )
    frame.write_csv(folder / "votes.csv")
    pl.DataFrame({"item": item[:80], "label": labels[:80]}).write_csv(folder / "labels.csv")
    return folder, [str(folder / "votes.csv"), str(folder / "labels.csv")]


def test_a_calibration_and_its_decisions_are_those_of_python(files, capsys):
    folder, sources = files
    model, decided = folder / "model.json", folder / "decided.csv"
    assert run(["calibrate", *sources, "--covariates", "standing,mine", "-o", str(model)]) == 0
    out = capsys.readouterr().out
    assert "Covariates: standing of 4 systems, weight 0." in out
    assert "Labels that depend on standing are no independent evidence" in out
    votes, labels = btdagg.read_votes(sources[0]), btdagg.read_labels(sources[1])
    wanted = btdagg.calibrate(votes, labels, covariates=("standing", "mine")).model
    saved = btdagg.DavidsonModel.load(model)
    assert saved == wanted
    assert saved.covariates[0].standings == wanted.covariates[0].standings
    assert run(["decide", str(model), sources[0], "-o", str(decided)]) == 0
    items = votes.items().with_covariates(("standing", "mine"), model=saved)
    found = pl.read_csv(decided)
    assert found["item"].to_list() == items.ids.tolist()
    by_python = saved.decide(items.pooled, covariates=items.covariates)
    np.testing.assert_array_equal(found["label"], by_python)
    np.testing.assert_array_equal(btdagg.decisions(votes, saved)["label"], by_python)
    assert run(["sql", str(model)]) == 0
    assert '"standing"' in capsys.readouterr().out


def test_a_fit_has_the_labels_of_chosen_items_whatever_is_known_of_them(files, capsys, tmp_path):
    """Those with probability 0: an estimate leaves them out, and models are fitted to all."""
    _, (votes, labels) = files
    chosen = pl.when(pl.int_range(pl.len()) < 20).then(0.0).otherwise(0.3).alias("probability")
    people = pl.read_csv(labels).with_columns(chosen)
    people.write_csv(tmp_path / "people.csv")
    sources = votes, str(tmp_path / "people.csv")
    for known in ([], ["--covariates", "standing"], ["--covariates", "mine"]):
        told = ["calibrate", *sources, *known, "--json", "-o", str(tmp_path / "model.json")]
        assert run(told) == 0
        assert json.loads(capsys.readouterr().out)["n_labels"] == 80
        tables = btdagg.read_votes(votes), btdagg.read_labels(people)
        fitted = btdagg.calibrate(*tables, covariates=known[1:] or None)
        assert fitted.n_labels == 80
        assert fitted.model == btdagg.DavidsonModel.load(tmp_path / "model.json")
    assert len(tables[0].items(tables[1]).labelled()) == 60


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_tasks_and_groups_are_apart_where_something_is_known(files, capsys, tmp_path):
    """Items may be named alike in two tasks, whose standings are their own; groups may be rare."""
    _, sources = files
    votes, labels = map(pl.read_csv, sources)
    both = [pl.concat([f.with_columns(task=pl.lit(t)) for t in "xy"]) for f in (votes, labels)]
    tables = btdagg.read_votes(both[0]), btdagg.read_labels(both[1])
    assert btdagg.calibrate(*tables, covariates=("standing",)).n_labels == 160
    scores = btdagg.evaluate(*tables, covariates=("standing",), protocol=QUICK)
    assert len(scores.cells) == 2
    with pytest.raises(btdagg.InputError, match="is in two tasks"):
        btdagg.compare(*tables[:1] * 2, tables[1], n_votes=(1, 2), covariates="mine")
    rng = np.random.default_rng(0)
    grades = pl.DataFrame({"item": np.arange(120).repeat(3), "score": rng.integers(1, 6, 360)})
    grades = grades.with_columns(system=pl.col("item") % 3, prompt=pl.col("item") // 3)
    people = pl.DataFrame({"item": range(60), "label": rng.integers(1, 6, 60)})
    people = people.with_columns(group=pl.format("p{}", pl.col("item") // 3))
    scale = btdagg.Scale("1-5")
    tables = btdagg.read_votes(grades, scale=scale), btdagg.read_labels(people, scale=scale)
    for name in ("auto", "group-standing"):
        assert btdagg.calibrate(*tables, covariates=name).n_labels == 60
    scores = btdagg.evaluate(*tables, covariates="auto", protocol=QUICK)
    assert scores.cells[0].n_items == 60


def test_comparison_evaluation_and_estimate_take_covariates(files, capsys):
    _, sources = files
    assert run(["compare", *sources, "--covariates", "auto", "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    votes, labels = btdagg.read_votes(sources[0]), btdagg.read_labels(sources[1])
    names = "votes alone", "with covariates"
    wanted = btdagg.compare(votes, votes, labels, covariates=(None, "auto"), names=names)
    assert compared["difference"] == wanted.difference.mean
    assert wanted.difference.mean > 0
    ways = ["--first", "n=1", "--first", "covariates=standing,mine", "--second", "n=2"]
    assert run(["compare", *sources, *ways, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {"n_votes": (1, 2), "covariates": (("standing", "mine"), None)}
    one = btdagg.compare(votes, votes, labels, **told)
    assert found["difference"] == one.difference.mean != wanted.difference.mean
    assert run(["compare", *sources, *ways, "--covariates", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["difference"] != found["difference"]
    for command, options in (("evaluate", ["--methods", "weak"]), ("estimate", [])):
        texts = []
        for known in ("none", "auto"):
            assert run([command, *sources, *options, "--set", f"covariates={known}", "--json"]) == 0
            texts.append(capsys.readouterr().out)
        assert run([command, *sources, *options, "--json"]) == 0
        assert capsys.readouterr().out == texts[0] != texts[1]
    assert run(["estimate", *sources, "--covariates", "lenght"]) == 2
    assert "--covariates is 'lenght', expected standing, or a column" in capsys.readouterr().err


def test_a_gate_takes_standings_of_all_items_and_not_of_two_systems_alone(files, capsys):
    _, sources = files
    sides = {"candidate": "a", "baseline": "b"}
    words = ["--candidate", "a", "--baseline", "b", "--margin", "0.5", "--json"]
    run(["gate", *sources, *words, "--set", "covariates=standing,mine"])
    (gate,) = json.loads(capsys.readouterr().out)
    votes, labels = btdagg.read_votes(sources[0]), btdagg.read_labels(sources[1])
    known = ("standing", "mine")
    every = votes.items(labels, systems=("system_a", "system_b"))
    wanted = not_worse(every.with_covariates(known), margin=0.5, **sides)
    assert (gate["lower"], gate["estimate"]) == (wanted.lower, wanted.estimate)
    assert not_worse(votes, labels, margin=0.5, covariates=known, **sides).lower == wanted.lower
    own = every.of_pair("a", "b").with_covariates(known)
    assert not_worse(own, margin=0.5, **sides).remarks != wanted.remarks
    graded = {"scale": btdagg.Scale("1-3")}
    rows = pl.DataFrame({"item": ["x", "y"], "score": [1, 3]})
    gold = btdagg.read_labels(rows.rename({"score": "label"}), **graded)
    runs = (btdagg.read_votes(rows, **graded), gold)
    with refused("covariates", got="auto"):
        not_worse(*runs, than=runs, covariates="auto", **sides)


def test_standings_of_new_votes_are_asked_for(files, capsys, tmp_path):
    _, sources = files
    model, part, decided = tmp_path / "model.json", tmp_path / "part.csv", tmp_path / "decided.csv"
    assert run(["calibrate", *sources, "--covariates", "standing", "-o", str(model)]) == 0
    pl.read_csv(sources[0]).head(120).write_csv(part)
    votes, saved = btdagg.read_votes(part), btdagg.DavidsonModel.load(model)
    fresh, usual = (
        votes.items().with_covariates("standing", model=own).covariates for own in (None, saved)
    )
    assert not np.array_equal(fresh["standing"], usual["standing"])
    capsys.readouterr()
    anew = ["--set", "standings=votes"]
    assert run(["decide", str(model), str(part), "-o", str(decided), *anew]) == 0
    assert "standings are computed from these votes" in capsys.readouterr().err
    p = saved.predict_proba(votes.items().pooled, covariates=fresh)
    np.testing.assert_allclose(pl.read_csv(decided)["p_plus"], p[:, 2])
    assert run(["decide", str(model), str(part), *anew, "--labels", sources[1]]) == 2


def test_a_column_of_a_file_of_items_is_a_covariate(files, capsys, tmp_path, monkeypatch):
    _, sources = files
    votes = pl.read_csv(sources[0])
    votes.select("item", "mine").unique("item").write_csv(tmp_path / "facts.csv")
    votes.drop("mine").write_csv(tmp_path / "votes.csv")
    project = '[votes]\nfile = "votes.csv"\n[labels]\nfile = "{}"\n[items]\nfile = "facts.csv"\n'
    (tmp_path / "btdagg.toml").write_text(project.format(sources[1]))
    monkeypatch.chdir(tmp_path)
    named = ["--project", "btdagg.toml"]  # its labels are in another folder
    assert run(["calibrate", "--covariates", "mine", "-o", "model.json", *named]) == 0
    wanted = tmp_path / "wanted.json"
    monkeypatch.chdir(tmp_path.parent)
    assert run(["calibrate", *sources, "--covariates", "mine", "-o", str(wanted)]) == 0
    both = (btdagg.DavidsonModel.load(path) for path in (tmp_path / "model.json", wanted))
    assert next(both).covariates == next(both).covariates


def test_chosen_items_are_stratified_by_the_labels_that_a_model_expects(files, capsys):
    folder, sources = files
    model, file = folder / "of_strata.json", folder / "to_label.csv"
    names = "standing,mine"
    assert run(["calibrate", *sources, "--covariates", names, "-o", str(model)]) == 0
    options = [sources[0], "--model", str(model), "-o", str(file)]
    assert run(["choose", *options, "--items", "40"]) == 0
    drawn = pl.read_csv(file)
    items = btdagg.read_votes(sources[0]).items()
    saved = btdagg.DavidsonModel.load(model)
    found = choose(items, 40, ids=items.ids, design="stratified", model=saved)
    assert drawn["item"].to_list() == items.ids[found.rows].tolist()
    assert drawn["stratum"].to_list() == found.strata[found.rows].tolist()
    assert drawn["stratum"].str.starts_with("expected ").all()
    np.testing.assert_array_equal(drawn["probability"], found.probabilities[found.rows])
    more = ["choose", sources[0], "--items", "60", "--after", str(file)]
    assert run([*more, "--model", str(model), "-o", str(folder / "more.csv")]) == 0
    assert pl.read_csv(folder / "more.csv")["item"][:40].equals(drawn["item"])
    capsys.readouterr()
    assert run(more) == 2
    assert "the same votes and model" in capsys.readouterr().err


def test_sweeps_of_a_report_are_of_models_with_covariates(files, capsys, tmp_path):
    _, sources = files
    tables = []
    for known in ("none", "auto"):
        words = ["--methods", "weak", "--report", str(tmp_path / known)]
        assert run(["evaluate", *sources, *words, "--set", f"covariates={known}"]) == 0
        tables.append(pl.read_csv(tmp_path / known / "tables" / "sweep-calibration.csv"))
    assert tables[0]["n_labels"].equals(tables[1]["n_labels"])
    assert not tables[0]["mae"].equals(tables[1]["mae"])
