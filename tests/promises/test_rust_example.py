"""The examples of the crate have the numbers of Python to the last bit."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel, PanelModel
from btdagg.online import OnlineTally, StoppingRule, VoteDistribution
from btdagg.votes import Provenance

ROOT = Path(__file__).parents[2]
N_VOTES = 8

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def program(cargo):
    """Run the example, built as `cargo test` builds it."""
    command = ["cargo", "run", "--quiet", "--offline", "--locked", "-p", "btdagg"]

    def run(*arguments, example="votes_to_labels"):
        return subprocess.run(
            [*command, "--example", example, "--", *map(str, arguments)],
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
    calibration = btdagg.calibrate(counts[places], labels, prior=None)  # the only fit of the crate
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


def test_panels_saved_by_python_have_its_numbers_to_the_last_bit(program, tmp_path):
    random = np.random.default_rng(5)
    judges = ("gpt", "claude é", "llama", "deaf")
    counts = random.integers(0, 4, (300, 4, 3)) * (random.random((300, 4, 1)) < 0.7)
    model = PanelModel(
        judges, beta=(1.3, 0.41, 0.07, 2.0), eta0=0.3, gamma=(0.9, -0.2, 0.33, 1.0),
        alpha=0.7, kappa=1.9, unheard=("deaf",), provenance=Provenance(n_votes=9, task="é"),
    )  # fmt: skip
    model.save(tmp_path / "panel.json")
    rows = [
        f"{item:03},{judges[judge]},{column - 1}\n" * counts[item, judge, column]
        for item, judge, column in np.ndindex(counts.shape)
    ]
    votes = tmp_path / "votes.csv"
    votes.write_text("item,judge,vote\n" + "".join(rows), encoding="utf-8")
    done = program("panel", tmp_path / "panel.json", votes, example="saved_by_python")
    assert (done.returncode, done.stderr) == (0, "")
    found = np.array([line.split(",") for line in done.stdout.splitlines()], dtype=float)
    known = counts[found[:, 0].astype(int)]
    assert len(known) > 280
    assert np.array_equal(found[:, 1], model.decide(known))
    assert set(found[:, 1]) == {-1, 0, 1}
    assert found[:, 2:].tobytes() == model.predict_proba(known).tobytes()


@pytest.mark.parametrize("kind", ["lossless", "risk-bounded", "cost-optimal"])
def test_rules_saved_by_python_stop_where_python_stops(program, tmp_path, kind):
    model = DavidsonModel(1.1, 0.4, 0.6, 0.9, 1.3)
    chances = VoteDistribution([(0.3, (0.4, 0.3, 2.1)), (0.7, (1.0, 1.0, 1.0))])
    rule = {
        "lossless": StoppingRule.lossless(model, N_VOTES),
        "risk-bounded": StoppingRule.risk_bounded(model, N_VOTES, chances, epsilon=0.1, step=2),
        "cost-optimal": StoppingRule.cost_optimal(model, N_VOTES, chances, price=0.01),
    }[kind]
    rule.save(tmp_path / "rule.json")
    votes = np.random.default_rng(3).choice([-1, 0, 1], (200, N_VOTES), p=[0.2, 0.2, 0.6])
    rows = [f"{item:03},a,{votes[item, place]}\n" for item, place in np.ndindex(votes.shape)]
    file = tmp_path / "votes.csv"
    file.write_text("item,judge,vote\n" + "".join(rows), encoding="utf-8")
    done = program("rule", tmp_path / "rule.json", file, example="saved_by_python")
    assert (done.returncode, done.stderr) == (0, "")
    _, n_votes, labels = np.array([line.split(",") for line in done.stdout.splitlines()], int).T
    stopped = rule.follow(votes)
    assert np.array_equal(n_votes, stopped.n_votes)
    assert np.array_equal(labels, stopped.labels)
    assert len(set(n_votes)) > 1


def test_a_tally_goes_on_in_rust_and_again_in_python(program, tmp_path):
    items, _, voted, votes = simulated(5)
    tally = OnlineTally(DavidsonModel(1.2, 2.0, 0.8))
    tally.add(items, np.ones(len(items), int), np.zeros(len(items), int), judges="a", orders="AB")
    tally.withdraw("item 0 é", 0, "a", "AB")
    tally.save(tmp_path / "tally.state")
    rows = "".join(f"{item},b,{vote}\n" for item, vote in zip(voted, votes, strict=True))
    (tmp_path / "votes.csv").write_text(f"item,judge,vote\n{rows}", encoding="utf-8")
    arguments = "tally", tmp_path / "tally.state", tmp_path / "votes.csv"
    done = program(*arguments, example="saved_by_python")
    assert done.stderr == ""
    samples = np.zeros(len(votes), int)
    for item in items:
        (rows,) = np.nonzero(voted == item)
        samples[rows] = 100 + np.arange(len(rows))
    tally.add(voted, votes, samples, judges="b")
    back = OnlineTally.load(tmp_path / "tally.state", DavidsonModel(1.2, 2.0, 0.8))
    assert back.to_bytes() == tally.to_bytes()
    ids, counts = tally.counts()
    printed = [f"{item},{','.join(map(str, row))}" for item, row in zip(ids, counts, strict=True)]
    assert done.stdout.splitlines() == printed


def test_grades_and_covariates_saved_by_python_decide_in_rust(program, tmp_path):
    pairs = (btdagg.Covariate("length", 0.9, 1.3), btdagg.Covariate("standing", -2.0, 0.4))
    grades = (btdagg.Covariate("length", 0.9, 1.3, 0.5),)
    five = btdagg.Scale(range(1, 6))
    models = [
        DavidsonModel(1.2, 0.5, 0.8, covariates=pairs, usual_votes=6),
        DavidsonModel(1.2, 0.5, 0.8),
        btdagg.GradeModel(2, (1.5, 2.5, 3.5, 4.5), five),
        btdagg.GradeModel(2, (3.2,), five, btdagg.PASS_FAIL, covariates=grades),
    ]
    random = np.random.default_rng(4)
    for model in models:
        k, d = len(model.scale.points), len(model.covariates)
        counts = random.multinomial(6, np.ones(k) / k, 200)
        values = random.normal(size=(200, d))
        values[::9] = np.nan
        model.save(tmp_path / "model.json")
        rows = np.hstack([counts, values]).tolist()
        text = "\n".join(",".join(map(repr, row)) for row in rows)
        (tmp_path / "rows.csv").write_text(text)
        done = program(
            "counts", tmp_path / "model.json", tmp_path / "rows.csv", example="saved_by_python"
        )
        assert done.stderr == ""
        known = {c.name: values[:, place] for place, c in enumerate(model.covariates)} or None
        found = [line.partition(",")[::2] for line in done.stdout.splitlines()]
        assert [float(label) for label, _ in found] == model.decide(
            counts, covariates=known
        ).tolist()
        p = [[float(value) for value in p.strip("[]").split(",")] for _, p in found]
        assert p == model.predict_proba(counts, covariates=known).tolist()
