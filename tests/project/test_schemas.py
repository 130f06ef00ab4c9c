"""The JSON Schemas of docs/schemas hold of what is written, and refuse what is damaged."""

import copy
import json
import os

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.datasets import simulate
from btdagg.online import StoppingRule, fit_votes
from btdagg.project import KEYS, OPEN
from commands import cross_fit_quickly
from pages import ROOT

SCHEMAS = {
    file.name.partition(".")[0]: json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "docs/schemas").glob("*.schema.json"))
}
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def errors():
    """Errors of a value by a schema."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("jsonschema")
    from jsonschema import Draft202012Validator as Validator
    from referencing import Registry, Resource

    registry = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values()
    )
    for schema in SCHEMAS.values():
        Validator.check_schema(schema)
    return lambda name, value: list(Validator(SCHEMAS[name], registry=registry).iter_errors(value))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What the package writes: the name of a schema, and a value."""
    folder = tmp_path_factory.mktemp("written")
    judge = simulate("wmt-zh-en", 200, 6, seed=0)
    counts, labels = judge.counts, judge.labels
    model = btdagg.calibrate(counts, labels).model
    votes = fit_votes(counts, labels)
    scale = btdagg.Scale(range(1, 6))
    graded = np.random.default_rng(0).multinomial(6, [0.1, 0.2, 0.3, 0.2, 0.2], size=100)
    grades = graded.argmax(axis=1) + 1
    of_grades = btdagg.calibrate(graded, grades, scale=scale).model
    half = np.where(np.arange(200)[:, None] < 100, counts, 0)
    carried = btdagg.recalibrate(counts, half, labels).model
    panel = btdagg.calibrate_panel(np.stack([counts, counts], axis=1), labels, judges=("x", "y"))
    rules = [
        StoppingRule.lossless(model, 6),
        StoppingRule.risk_bounded(model, 6, votes),
        StoppingRule.cost_optimal(model, 6, votes, price=0.01),
        StoppingRule.lossless(of_grades, 6),
        StoppingRule.lossless(model, 6, strengths=True),
    ]
    certificates = [
        btdagg.certify(counts, labels),
        btdagg.certify(graded, grades, scale=scale, agreement=0.5),
    ]
    known = {"x": np.arange(200.0)}
    several = np.stack([counts, counts], axis=1)
    with_covariates = [
        btdagg.calibrate_panel(several, labels, covariates=known).model,
        btdagg.calibrate(counts, labels, covariates=known).model,
        btdagg.calibrate(graded, grades, scale=scale, covariates={"x": np.arange(100.0)}).model,
    ]
    files = [("model", fitted) for fitted in (model, carried, of_grades, panel.model)]
    files += [("model", fitted) for fitted in with_covariates]
    files += [("rule", rule) for rule in rules]
    files += [("certificate", certificate) for certificate in certificates]
    values = [(name, json.loads(value.to_json())) for name, value in files]

    from btdagg.cli import run

    item = np.arange(200)
    pl.DataFrame(
        {"item": item.repeat(6), "vote": judge.votes.ravel(), "task": item.repeat(6) % 2}
    ).write_csv(folder / "votes.csv")
    pl.DataFrame({"item": item[:60], "label": labels[:60]}).write_csv(folder / "labels.csv")
    sources = [str(folder / "votes.csv"), str(folder / "labels.csv")]
    saved, report = folder / "model.json", folder / "report"
    assert run(["calibrate", *sources, "-o", str(saved)]) == 0
    with pytest.MonkeyPatch.context() as patch:
        cross_fit_quickly(patch)
        assert run(["evaluate", *sources, "--report", str(report)]) == 0
    for name, file in (("model", saved), ("report", report / "report.json")):
        values.append((name, json.loads(file.read_text(encoding="utf-8"))))
    values.append(("project", {"a": "new", "votes": {"file": "v.csv", "scale": {"tone": "1-3"}}}))
    return values, sources


VALUES = (
    *("", "a text", OPEN, "mean", "margin", "new", "votes", 5, 0.5, True, [], ["a", "b"], [5]),
    *({}, {"a": "b"}, {"a": 5}, {"a": True}, {"a": ["b"]}, {"item": "a"}, {"itm": "a"}),
)


@pytest.mark.parametrize("name", KEYS)
def test_the_schema_of_a_project_takes_the_values_that_it_takes(errors, name):
    for value in VALUES:
        for keys in ({name: value}, {"votes": {name: value}}):
            try:
                btdagg.Project(keys).with_keys([])
            except btdagg.InputError:
                assert errors("project", keys), keys
            else:
                assert errors("project", keys) == [], keys


def test_what_is_written_fits_its_schema(errors, written, capsys):
    from btdagg.cli import run

    values, sources = written
    for more in ([], ["--by", "task"]):
        assert run(["estimate", *sources, *more, "--json"]) == 0
        values.append(("estimate", json.loads(capsys.readouterr().out)))
    assert {name for name, _ in values} == SCHEMAS.keys()
    for name, value in values:
        assert errors(name, value) == [], name
        # Each damage is refused: a field that is missing, is of another kind, or is not known.
        for field in SCHEMAS[name].get("required", ("beta", "format")):
            assert errors(name, {key: value[key] for key in value if key != field}), field
            assert errors(name, {**value, field: {"no": 1}}) or field == "settings", field
        assert errors(name, {**value, "more": 1})


@pytest.mark.parametrize(
    ("name", "path", "damage"),
    [
        ("model", ["alpha"], 0),
        ("model", ["provenance", "n_votes"], -1),
        ("rule", ["model", "gamma"], None),
        ("rule", ["votes"], [[0.5]]),
        ("certificate", ["curve", 0], [0.5, 0.9]),
        ("certificate", ["model", "version"], 2),
        ("report", ["sections", 0, "title"], 3),
        ("project", ["votes", "scale"], 5),
    ],
)
def test_damage_within_is_refused(errors, written, name, path, damage):
    value = copy.deepcopy(next(value for kind, value in written[0] if kind == name))
    *outer, last = path
    inner = value
    for step in outer:
        inner = inner[step]
    inner[last] = damage
    assert errors(name, value)
