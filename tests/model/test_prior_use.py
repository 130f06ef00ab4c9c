"""Priors in evaluations, pipelines and on the command line."""

import json
import re
import warnings

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Protocol, evaluate
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits
from btdagg.methods import Calibrated, MajorityVote, Threshold

TASKS = {"math": "rb2-math", "focus": "rb2-focus", "facts": "rb2-factuality"}


def tables(n=60, n_votes=8):
    """Counts and labels of three tasks of a judge."""
    counts, labels = [], []
    for number, (task, regime) in enumerate(TASKS.items()):
        found = simulate(regime, n, n_votes, seed=number)
        ids = [f"{task}{i}" for i in range(n)]
        minus, tie, plus = found.counts.T
        counts.append({"item": ids, "task": [task] * n, "minus": minus, "tie": tie, "plus": plus})
        labels.append({"item": ids, "label": found.labels})
    return (pl.concat([pl.DataFrame(part) for part in parts]) for parts in (counts, labels))


def fitted(*items, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return btdagg.calibrate(*items, **options).model


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts, labels = tables()
    counts.write_csv("counts.csv")
    labels.write_csv("labels.csv")
    return tmp_path


def test_a_threshold_has_the_least_absolute_error():
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.integers(0, 5, (30, 3))
        labels = rng.integers(-1, 2, 30)
        found = Threshold().fit(counts, labels)
        means = (counts[:, 2] - counts[:, 0]) / np.maximum(counts.sum(axis=1), 1)
        every = [np.where(np.abs(means) > c, np.sign(means), 0) for c in np.linspace(-0.01, 1, 500)]
        least = min(np.abs(labels - decided).sum() for decided in every)
        assert np.abs(labels - found.decide(counts)).sum() == least
        turned = Threshold().fit(counts[:, ::-1], -labels)
        assert turned.threshold == found.threshold
        assert (turned.decide(counts[:, ::-1]) == -found.decide(counts)).all()
    with pytest.raises(btdagg.InputError, match="threshold is not fitted"):
        Threshold().decide(counts)


def test_evaluations_hand_neighbours_to_who_wants_them():
    counts, labels = tables()
    votes, gold = btdagg.read_votes(counts), btdagg.read_labels(labels)
    methods = [*(Calibrated(prior=p) for p in (None, "weak", "neighbours")), MajorityVote()]
    protocol = Protocol(RandomSplits(size=6, n_splits=4))
    found = evaluate(votes, gold, aggregators=methods, protocol=protocol)
    assert len(found.cells) == 3
    mean = {
        method.name: np.mean([c.methods[i].mae.mean() for c in found.cells])
        for i, method in enumerate(methods)
    }
    assert len(set(mean.values())) == 4
    with pytest.raises(btdagg.InputError, match="neighbours needs votes of other tasks or judges"):
        evaluate(
            votes.filter({"task": ["math"]}),
            gold,
            aggregators=[Calibrated(prior="neighbours")],
            protocol=protocol,
        )


@pytest.mark.parametrize("of_grades", [False, True])
@pytest.mark.parametrize(("shares", "n_seen"), [("items", 10), ("groups", 12), ("nothing", 40)])
def test_neighbours_never_see_what_is_held_out(shares, n_seen, of_grades):
    """Two judges of the same items, of other items in the same groups of four, or of others."""
    sample = simulate("rb2-math", 40, 8, seed=0)
    scale = btdagg.Scale((1, 2, 3)) if of_grades else btdagg.PAIRS
    label = np.array(scale.points)[sample.labels.astype(int) + 1]
    numbers, votes, labels = np.arange(40), [], []
    for judge in "ab":
        ids = [f"{'' if shares == 'items' else judge}{i}" for i in numbers]
        groups = [f"{judge if shares == 'nothing' else ''}g{i // 4}" for i in numbers]
        known = {"item": ids, **({} if shares == "items" else {"group": groups})}
        columns = dict(zip(scale.columns, sample.counts.T, strict=True))
        votes.append(pl.DataFrame({**known, **columns, "judge": [judge] * 40}))
        labels.append(pl.DataFrame({**known, "label": label}))
    seen = []

    class Watched(Calibrated):
        def among(self, prior):
            seen.append(sum(m.provenance.n_labels for m in prior) if of_grades else prior.n_labels)
            return super().among(prior)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluate(
            btdagg.read_votes(pl.concat(votes), scale=scale),
            btdagg.read_labels(pl.concat(labels).unique(maintain_order=True), scale=scale),
            aggregators=[Watched(scale=scale, prior="neighbours")],
            protocol=Protocol(RandomSplits(size=10, n_splits=3), None),
        )
    # The model that is described is fitted to all; those that are scored are not.
    assert seen == 2 * [40, *[n_seen] * 3]


def test_calibrate_on_the_command_line_takes_the_other_tasks(files, cli):
    command = ["calibrate", "counts.csv", "labels.csv", "-f", "task=math", "-o"]
    status, out, _ = cli(*command, "own.json")
    assert status == 0
    assert "prior: 2 neighbours with 120 labels; --prior none is the paper's fit. Given" in out
    assert "--prior none is the paper's fit" in out
    counts, labels = (frame for frame in tables())
    every = btdagg.read_votes(counts).labelled(btdagg.read_labels(labels))
    task = counts["task"].to_numpy()
    prior = btdagg.fit_prior(
        {
            name: (every.counts[task == name], every.label[task == name])
            for name in ("focus", "facts")
        }
    )
    mine = every.counts[task == "math"], every.label[task == "math"]
    expected = fitted(*mine, prior=prior)
    assert btdagg.DavidsonModel.load("own.json") == expected
    for option, wanted, said in (
        ("none", fitted(*mine, prior=None), []),
        ("weak", fitted(*mine, prior="weak"), ["weak, the built-in one"]),
    ):
        status, out, _ = cli(*command, f"{option}.json", "--prior", option)
        assert (status, re.findall(r"^prior: (.*?);", out, re.M)) == (0, said)
        assert btdagg.DavidsonModel.load(f"{option}.json") == wanted
    prior.save("prior.json")
    status, out, _ = cli(*command, "file.json", "--prior", "prior.json", "--json")
    assert btdagg.DavidsonModel.load("file.json") == expected
    found = json.loads(out)
    assert found["shares"]["neighbours"] > 0.5
    assert set(found["intervals"]) == {"beta", "nu", "gamma"}
    assert found["prior"].startswith("prior: 2 neighbours with 120 labels")


def test_one_key_has_the_weak_prior_and_wrong_options_are_named(files, cli):
    counts = pl.read_csv("counts.csv").filter(task="math").drop("task")
    counts.write_csv("one.csv")
    status, out, _ = cli("calibrate", "one.csv", "labels.csv", "-o", "m.json")
    assert (status, "prior: weak, the built-in one; --prior none is the paper's fit" in out) == (
        0,
        True,
    )
    for options, message in (
        (["--prior", "neighbours"], "the files have no other task or judge with labels"),
        (
            ["--prior", "nope.json"],
            "--prior is 'nope.json', expected weak, neighbours, none or a file",
        ),
        (["--prior", "labels.csv"], "labels.csv: not JSON"),
    ):
        status, _, err = cli("calibrate", "one.csv", "labels.csv", "-o", "m.json", *options)
        assert (status, message in err) == (2, True), err


def test_evaluate_shows_priors_beside_the_papers_fit(files, cli):
    few = ["--splits", "2", "--size", "8", "--json"]
    written, weak = "calibrated", "calibrated, weak prior"
    shown = {
        "": ["Davidson", "majority vote"],
        "--prior none": ["Davidson", "majority vote"],
        "--prior neighbours": [written, weak, "Davidson", "threshold", "majority vote"],
        "--methods davidson,median": ["Davidson", "rounded median"],
        "-f task=math --prior weak": [written, "Davidson", "threshold", "majority vote"],
    }  # fmt: skip
    for options, names in shown.items():
        status, out, err = cli(
            "paper", "evaluate", "counts.csv", "labels.csv", *few, *options.split()
        )
        assert status == 0, err
        lines = [line["method"] for line in json.loads(out)["lines"] if line["task"] == "math"]
        assert lines == names
    few = ["paper", "evaluate", "counts.csv", "labels.csv", "--splits", "2", "--size", "8"]
    _, _, err = cli(*few, "--prior", "neighbours")
    assert (
        "prior: neighbours, which are the other tasks and judges; weak, the built-in one; --pr"
        in err
    )
    assert "prior: " not in cli(*few)[2]
