"""The crate as a WebAssembly module decides under Node as Python does."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from btdagg import Covariate, DavidsonModel

FOLDER = Path(__file__).parents[2] / "examples/rust_wasm"
TARGET = "wasm32-unknown-unknown"
SCRIPT = """
import { readFileSync } from "node:fs";
const [folder, module, asked] = process.argv.slice(2);
const { load } = await import(folder + "/model.mjs");
const wasm = await WebAssembly.compile(readFileSync(module));
const answers = [];
for (const { json, counts } of JSON.parse(readFileSync(asked, "utf8"))) {
  try {
    const model = await load(wasm, json);
    const [labels, p] = [model.decide(counts), model.probabilities(counts)];
    answers.push({ labels: [...labels], p: [...p] });
  } catch (error) {
    answers.push(`${error.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(answers));
"""

pytestmark = pytest.mark.integration


def has_target():
    command = ["rustc", "--print", "target-libdir", "--target", TARGET]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and Path(done.stdout.strip()).is_dir()


@pytest.fixture(scope="module")
def module(cargo):
    """The module, as the example says that it is built."""
    assert shutil.which("node"), "Node runs the module"
    if not has_target():
        pytest.skip(f"Rust has no {TARGET}: rustup target add {TARGET}")
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", TARGET]
    subprocess.run(command, cwd=FOLDER, check=True)
    return FOLDER / "target" / TARGET / "release/btdagg_wasm.wasm"


@pytest.fixture
def answers(module, tmp_path):
    """Ask an instance for each model about rows of counts."""

    def ask(asked):
        rows = [{"json": text, "counts": np.ravel(counts).tolist()} for text, counts in asked]
        (tmp_path / "asked.json").write_text(json.dumps(rows))
        (tmp_path / "run.mjs").write_text(SCRIPT)
        command = ["node", "run.mjs", FOLDER.as_uri(), module, "asked.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_models_of_python_decide_as_in_python(answers):
    random = np.random.default_rng(0)
    models = [
        DavidsonModel(2, 0, 1),  # has counts of equal risks
        DavidsonModel(1.2, 2.0, 0.8, 0.5, 2.0, usual_votes=8),
        DavidsonModel(5.0, -9.0, -10.0, usual_votes=2.5),
        DavidsonModel(0.0, 700.0, 10.0),
        *(DavidsonModel(*row) for row in random.normal(size=(20, 3)) * [1.5, 2, 2]),
    ]
    every = np.array([row for row in np.ndindex(13, 13, 13) if sum(row) <= 12], dtype=float)
    far = [[1, 14, 2], [10**9, 3, 10**9 + 1], [0, 0, 2**53], [31, 40, 17]]
    parts = random.dirichlet([1, 1, 1], 500) * random.integers(1, 20, (500, 1))
    many = random.integers(0, 30, (100_000, 3))
    rows = np.vstack([every, far, parts])
    asked = [(model, rows) for model in models] + [(models[1], many), (models[0], rows[:0])]
    results = answers([(model.to_json(), counts) for model, counts in asked])
    for result, (model, counts) in zip(results, asked, strict=True):
        assert result["labels"] == model.decide(counts).tolist()
        # Its exponentials are those of Rust, and not of the system.
        p = np.reshape(result["p"], (-1, 3))
        np.testing.assert_allclose(p, model.predict_proba(counts), rtol=1e-13, atol=1e-300)


def test_what_is_wrong_is_named(answers):
    model = DavidsonModel(1.2, 0.5, 0.8)
    with_length = DavidsonModel(1.2, 0.5, 0.8, covariates=(Covariate("length", 0.9, 1.3),))
    *messages, covariates = answers(
        [
            ("model.json", []),
            (model.to_json().replace("1.2", "null"), []),
            (model.to_json(), [[1, 2, 3], [1, -2, 3]]),
            (model.to_json(), [1, 2]),
            (with_length.to_json(), []),
        ]
    )
    assert messages == [
        "RangeError: file is not JSON: expected value at line 1 column 1, expected an object",
        "RangeError: beta is null, expected a number",
        "RangeError: counts[1, 1] (tie) is -2, expected a finite number of at least 0",
        "RangeError: counts has 2 numbers, expected 3 an item",
    ]
    assert covariates.startswith('RangeError: covariates is [{"centre":0.0,"name":"length"')
