"""Forecasts before the first label, from tasks that are labelled already."""

import json
import warnings

import numpy as np
import pytest

import btdagg
from btdagg import InputError, online
from btdagg.datasets import simulate
from commands import one_line

TASKS = ("rb2-math", "rb2-focus", "rb2-factuality", "rb2-safety")


def prior_of(names=TASKS, n=300, n_votes=8, **options):
    tasks = {name: simulate(name, n, n_votes, seed=1) for name in names}
    return btdagg.fit_prior({k: (v.counts, v.labels) for k, v in tasks.items()}, **options)


def test_a_forecast_is_the_mean_of_what_came_on_each_neighbour():
    prior = prior_of(TASKS[:2], n=60)
    (row,) = online.forecast(prior, n_items=100, n_votes=[8], n_labels=[0], n_draws=1).rows
    errors, used = [], []
    for name, one in prior.neighbours.items():
        # Without labels every item is decided, and in no order; all votes are drawn.
        counts = np.repeat(one.counts, one.labels.sum(axis=1), axis=0)
        labels = np.concatenate([np.repeat((-1, 0, 1), row) for row in one.labels])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = btdagg.calibrate(counts, None, prior=prior.without(name)).model
        errors.append(np.abs(model.decide(counts) - labels).mean())
        rule = online.StoppingRule.lossless(model, 8)
        orders = [np.random.default_rng(k).permuted(votes_of(counts), axis=1) for k in range(40)]
        used.append(np.mean([rule.follow(votes).n_votes.mean() for votes in orders]))
    assert row.mae == pytest.approx(np.mean(errors), rel=1e-12)
    assert row.votes == pytest.approx(np.mean(used), abs=0.2)
    assert row.calls == pytest.approx(100 * row.votes)
    assert (row.low, row.high) == pytest.approx((min(errors), max(errors)), rel=1e-12)


def votes_of(counts):
    return np.stack([np.repeat((-1, 0, 1), row) for row in counts])


def test_tasks_that_are_too_small_are_left_out():
    (row,) = online.forecast(prior_of(TASKS[:1]), n_items=9, n_votes=[4], n_labels=[10]).rows
    assert 0 < row.low == row.mae == row.high < 1
    prior = prior_of(TASKS[:2], n=30)
    with pytest.raises(InputError, match="no neighbour has more than 30 items with 8 votes"):
        online.forecast(prior, n_items=9, n_votes=[8], n_labels=[30])
    for options, text in [
        ({"n_votes": [9]}, "n_votes is 9, expected an integer of at most 8"),
        ({"n_labels": []}, "n_labels is [], expected at least one number"),
        ({"price": -1}, "price is -1, expected a number of at least 0"),
    ]:
        with pytest.raises(InputError) as raised:
            online.forecast(prior, n_items=9, **options)
        assert text in str(raised.value)


def test_a_plan_forecasts_labels_with_its_prior():
    sample = simulate("rb2-focus", 300, 8, seed=3)
    prior = prior_of(["rb2-focus", "rb2-math"], n=300)
    pair = sample.counts, sample.labels
    excess = {
        name: online.plan(*pair, n_items=9, n_votes=[8], n_labels=[10], prior=one).labels[0][1]
        for name, one in (("none", None), ("weak", "weak"), ("neighbours", prior))
    }
    assert excess["neighbours"] < excess["weak"] < excess["none"]


def test_the_command_line(cli, tmp_path):
    prior_of(TASKS[:2], n=12).save(tmp_path / "prior.json")
    given = ["plan", "--prior", tmp_path / "prior.json", "-n", 3]
    status, out, _ = cli(*given, "--json")
    assert status == 0
    found = json.loads(out)
    assert found["neighbours"] == list(TASKS[:2])
    assert {row["n"] for row in found["forecast"]} == {1, 2, 3}
    assert one_line(*cli("plan", "--prior", "weak", "-n", 8)).startswith("--prior is weak,")
    text = one_line(*cli("plan", "--prior", tmp_path / "prior.json", "-n", 9))
    assert text.startswith("-n is 9, expected at most 8")
    assert "VOTES and LABELS" in one_line(*cli(*given, "-o", "r.json"))
    btdagg.DavidsonModel(1.2, 0.3, 0.8).save(tmp_path / "model.json")
    text = one_line(*cli("plan", tmp_path / "model.json", "-n", 8))
    assert text.startswith("VOTES is missing: name a file, or put it into btdagg.toml")


def test_votes_that_come_in_pairs_are_stopped_in_pairs():
    prior = prior_of(TASKS[:3], n=100)
    alone, paired = (
        online.forecast(prior, n_items=100, n_votes=[8], n_labels=[10], step=step).rows[0]
        for step in (1, 2)
    )
    assert paired.votes > alone.votes
    assert paired.mae == alone.mae  # a lossless rule changes no label
