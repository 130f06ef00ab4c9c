"""The JavaScript module decides as Python does, under Node."""

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import btdagg
from btdagg import PASS_FAIL, Covariate, DavidsonModel, GradeModel, Scale

MODULE = Path(btdagg.__file__).parent / "js" / "btdagg.mjs"
SCRIPT = """
import { readFileSync } from "node:fs";
const { load } = await import(process.argv[2]);
const asked = JSON.parse(readFileSync(process.argv[3], "utf8"));
const answers = asked.map(({ model, items }) => {
  let made;
  try {
    made = load(model);
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
  const { points, covariates } = made;
  const of = (method, item) => {
    try {
      return made[method](...item);
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  };
  const found = { points, covariates };
  for (const method of ["decide", "probabilities", "risks"]) {
    found[method] = items.map((item) => of(method, item));
  }
  return found;
});
console.log(JSON.stringify(answers));
"""

pytestmark = pytest.mark.integration


@pytest.fixture
def answers(tmp_path):
    """Ask models of files about items, each its counts and perhaps covariates."""
    assert shutil.which("node"), "Node runs the module"

    def ask(asked):
        (tmp_path / "run.mjs").write_text(SCRIPT)
        rows = [{"model": text, "items": items} for text, items in asked]
        (tmp_path / "asked.json").write_text(json.dumps(rows))
        command = ["node", "run.mjs", MODULE.as_uri(), "asked.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def every_triple(n):
    return [row for row in itertools.product(range(n + 1), repeat=3) if sum(row) <= n]


def alike(found, model, counts, known=None):
    assert found["decide"] == model.decide(counts, covariates=known).tolist()
    p = model.predict_proba(counts, covariates=known)
    np.testing.assert_allclose(found["probabilities"], p, rtol=1e-11, atol=1e-300)
    risks = model.risks(counts, covariates=known)
    np.testing.assert_allclose(found["risks"], risks, rtol=1e-9, atol=1e-12)
    assert found["points"] == list(model.label_scale.points)


def test_pairs_are_decided_as_in_python(answers):
    random = np.random.default_rng(0)
    halves = Scale((0, 0.5, 1), mirrored=True)
    models = [
        DavidsonModel(2, 0, 1),  # has counts of equal risks
        DavidsonModel(1.2, 2.0, 0.8, 0.5, 2.0, usual_votes=8),
        DavidsonModel(1.2, 2.0, 0.8, scale=halves, label_scale=halves),
        DavidsonModel(5.0, -9.0, -10.0, usual_votes=2.5),
        DavidsonModel(0.0, 700.0, 10.0),
        *(DavidsonModel(*row) for row in random.normal(size=(20, 3)) * [1.5, 2, 2]),
    ]
    far = [[1, 14, 2], [2, 14, 1], [10**9, 3, 10**9 + 1], [0, 0, 2**53], [31, 40, 17]]
    counts = np.array([*every_triple(12), *far])
    parts = random.dirichlet([1, 1, 1], 50) * random.integers(1, 20, (50, 1))
    rows = np.vstack([counts, parts])
    found = answers([(model.to_json(), [[row] for row in rows.tolist()]) for model in models])
    for one, model in zip(found, models, strict=True):
        alike(one, model, rows)


def test_grades_are_decided_as_in_python(answers):
    five, ten = Scale(range(1, 6)), Scale(range(1, 11))
    models = [
        GradeModel(2, (1.5, 2.5, 3.5, 4.5), five),
        GradeModel(0.3, (4.5, 1.5, 2.0, 3.5), five),  # some grades are never decided
        GradeModel(40, (1.6, 2.5, 3.4, 4.5), five),
        GradeModel(2, (5.5,), ten, PASS_FAIL),
        GradeModel(1.1, (2.0, 5.0), ten, Scale((0, 0.5, 4))),
    ]
    random = np.random.default_rng(1)
    asked, all_counts = [], []
    for model in models:
        k = len(model.scale.points)
        counts = random.multinomial(random.integers(1, 9, 300), np.ones(k) / k)
        edges = np.vstack([np.eye(k, dtype=int), np.eye(k, dtype=int) + np.eye(k, dtype=int)[::-1]])
        all_counts.append(np.vstack([counts, edges]))
        asked.append((model.to_json(), [[row] for row in all_counts[-1].tolist()]))
    for one, model, counts in zip(answers(asked), models, all_counts, strict=True):
        alike(one, model, counts)


def test_covariates_count_as_in_python(answers):
    known = (Covariate("length", 0.9, 1.3), Covariate("standing", -2.0, 0.4))
    centred = (Covariate("length", 0.9, 1.3, 0.5), Covariate("standing", -2.0, 0.4, 0.1))
    pairs = DavidsonModel(1.2, 0.5, 0.8, covariates=known)
    grades = GradeModel(2, (1.5, 2.5), Scale(range(1, 4)), covariates=centred)
    random = np.random.default_rng(2)
    counts = random.multinomial(6, [0.3, 0.3, 0.4], size=400)
    values = random.normal(size=(400, 2))
    values[::7] = 0
    values[::5, 1] = np.nan
    named = [{"length": x, "standing": None if np.isnan(y) else y} for x, y in values.tolist()]
    items = [[row, of] for row, of in zip(counts.tolist(), named, strict=True)]
    columns = dict(zip(("length", "standing"), values.T, strict=True))
    for one, model in zip(
        answers([(pairs.to_json(), items), (grades.to_json(), items)]), (pairs, grades), strict=True
    ):
        alike(one, model, counts, columns)
        assert one["covariates"] == ["length", "standing"]


def test_what_is_wrong_is_named(answers):
    pairs = DavidsonModel(1.2, 0.5, 0.8, covariates=(Covariate("length", 0.9, 1.3),))
    grades = GradeModel(2, (1.5, 2.5), Scale(range(1, 4)))
    panel = btdagg.PanelModel(("a",), (1.0,), 1.0, (0.5,))
    found = answers(
        [
            (panel.to_json(), []),
            (pairs.to_json().replace('"version": 1', '"version": 2'), []),
            (pairs.to_json().replace("1.2", "null"), []),
            (pairs.to_json().replace('"alpha": 1.0', '"alpha": -5'), []),
            ("model.json", []),
            ({"format": "btdagg.grades", "version": 1, "beta": 1, "scale": {"points": [1, 2]}}, []),
            (
                pairs.to_json(),
                [[[1, 2, 3]], [[1, 2, 3], {"size": 1}], [[1, -2, 3], {"length": 1}], [[1, 2], {}]],
            ),
            (
                grades.to_json(),
                [[[0, 0, 0]], [[1, 0, "2"]], [[1, 0, 2], {"length": 1}], [[1, 0, 2], 0.7]],
            ),
        ]
    )
    assert found[0].startswith('RangeError: format is "btdagg.panel", expected btdagg.davidson or')
    assert found[1] == "RangeError: version is 2, expected 1"
    assert found[2] == "RangeError: beta is null, expected a finite number"
    assert found[3] == "RangeError: alpha is -5, expected a finite number above 0"
    assert found[4].startswith(
        "RangeError: the model is no JSON, expected what Python's save wrote"
    )
    assert found[5] == "RangeError: cuts is undefined, expected 2 numbers"
    assert found[6]["decide"] == [
        "RangeError: covariates is {}, expected length of the item",
        'RangeError: covariates is "size", expected length',
        "RangeError: counts is [1,-2,3], expected 3 numbers of at least 0",
        "RangeError: counts is [1,2], expected 3 numbers of at least 0",
    ]
    assert found[7]["decide"] == [
        "RangeError: counts is [0,0,0], expected at least one vote",
        'RangeError: counts is [1,0,"2"], expected 3 numbers of at least 0',
        'RangeError: covariates is "length", expected none, since the model has none',
        "RangeError: covariates is 0.7, expected an object of numbers by name",
    ]
