"""The example of the crate, which is in its README, has the numbers of Python to the last bit."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel
from btdagg.online import StoppingRule

ROOT = Path(__file__).parents[1]
N_VOTES = 8

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def program():
    """Run the example, built as `cargo test` builds it."""
    if shutil.which("cargo") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("cargo is not installed")
        pytest.skip("cargo is not installed")
    command = ["cargo", "run", "--quiet", "--offline", "--locked", "-p", "btdagg"]

    def run(*arguments):
        return subprocess.run(
            [*command, "--example", "votes_to_labels", "--", *map(str, arguments)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def write(file, items, values):
    rows = (f"{item},{value}\n" for item, value in zip(items, values, strict=True))
    file.write_text("item,value\n" + "".join(rows), encoding="utf-8")
    return file


def simulated(seed):
    """Items, labels of the first of them, and votes in any order; not all items have all votes."""
    random = np.random.default_rng(seed)
    leads = random.normal(0, 1.5, 120)
    items = np.array([f"item {number} é" for number in range(len(leads))])
    asked = np.where(np.arange(len(items)) < 50, N_VOTES, random.integers(1, N_VOTES + 1, 120))
    rows = random.permutation(np.repeat(np.arange(len(items)), asked))
    seen = leads[rows] + random.normal(0, 2.5, len(rows))
    votes = np.where(np.abs(seen) < 0.6, 0, np.sign(seen)).astype(int)
    labels = np.where(np.abs(leads) < 0.7, 0, np.sign(leads)).astype(int)
    return items, labels[:50], items[rows], votes


@pytest.mark.filterwarnings("ignore:beta is at its bound")
@pytest.mark.parametrize("seed", range(3))
def test_it_has_the_numbers_of_python_to_the_last_bit(program, tmp_path, seed):
    items, labels, voted, votes = simulated(seed)
    model_file = tmp_path / "model.json"
    done = program(
        write(tmp_path / "votes.csv", voted, votes),
        write(tmp_path / "labels.csv", items[: len(labels)], labels),
        model_file,
    )
    assert (done.returncode, done.stderr) == (0, "")

    ids, counts = btdagg.tally(voted, votes)
    places = [ids.tolist().index(item) for item in items[: len(labels)]]
    calibration = btdagg.calibrate(counts[places], labels)
    model = calibration.model
    assert model_file.read_text(encoding="utf-8") == model.to_json()
    assert DavidsonModel.load(model_file).provenance == model.provenance

    rows = [line.rsplit(",", 5) for line in done.stdout.splitlines()]
    found_ids, *columns = zip(*rows, strict=True)
    decided, minus, tie, plus, to_ask = (np.array(column, dtype=float) for column in columns)
    assert list(found_ids) == ids.tolist()
    assert np.array_equal(decided, model.decide(counts))
    assert len(set(decided)) == 3
    p = np.column_stack([minus, tie, plus])
    assert p.tobytes() == model.predict_proba(counts).tobytes()
    rule = StoppingRule.lossless(model, N_VOTES)
    assert np.array_equal(to_ask, rule.votes_to_ask(counts))
    assert 0 < np.mean(to_ask == 0) < 1


def test_what_is_wrong_with_its_files_is_named(program, tmp_path):
    votes = write(tmp_path / "votes.csv", ["x", "y"], [1, 0])
    labels = write(tmp_path / "labels.csv", ["x", "z"], [1, 0])
    model = tmp_path / "model.json"
    assert 'Error: "z: no votes"' in program(votes, labels, model).stderr
    votes.write_text("item,vote\nx;1\n")
    assert "want an item and -1, 0 or 1" in program(votes, labels, model).stderr
    missing = program(tmp_path / "no.csv", labels, model)
    assert missing.returncode == 1
    assert "no.csv: No such file" in missing.stderr
    assert not model.exists()
