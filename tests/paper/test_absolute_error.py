"""The paper's fit by absolute error: optimal by a grid, mirrored; as an aggregator and a method."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import (
    PASS_FAIL,
    Bounds,
    Protocol,
    Scale,
    calibrate,
    evaluate,
    mean_absolute_error,
    read_labels,
    read_votes,
)
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits
from btdagg.paper import DavidsonMae, calibrate_by_mae
from btdagg.votes import Provenance
from refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

counted = st.lists(
    st.tuples(*[st.integers(0, 4)] * 3, st.integers(-1, 1)), min_size=1, max_size=14
).map(np.array)


def least_errors(counts, labels, bounds, n_grid=60):
    """Fewest errors on a grid of beta and gamma, with every eta0 that makes a difference."""
    minus, tie, plus = counts.T.astype(float)
    s = np.log((np.maximum(plus, minus) + 1) / (np.minimum(plus, minus) + 1)) / 2
    t = np.log((tie + 1) / (counts.sum(axis=1) + 1))
    side = np.sign(plus - minus)
    low, high = np.log(bounds.nu)
    betas = np.concatenate([np.geomspace(*bounds.beta, n_grid), np.linspace(*bounds.beta, n_grid)])
    gammas = np.concatenate([np.linspace(*bounds.gamma, n_grid), np.linspace(-2, 3, n_grid)])
    gammas = gammas[(gammas >= bounds.gamma[0]) & (gammas <= bounds.gamma[1])]
    best = len(labels) * 2
    for beta in betas:
        with np.errstate(divide="ignore"):
            lead = np.log(2 * np.sinh(beta * s))
        height = lead - gammas[:, None] * t
        ends = np.full((len(gammas), 1), low), np.full((len(gammas), 1), high)
        eta0 = np.clip(np.concatenate([height, height - 1e-9, *ends], axis=1), low, high)
        decided = np.where(height[:, None, :] > eta0[:, :, None], side, 0)
        best = min(best, int(np.abs(decided - labels).sum(axis=-1).min()))
    return best


BOXES = [
    Bounds(),
    Bounds(beta=(0.2, 2.0), nu=(0.5, 8.0), gamma=(0.0, 2.0)),
    Bounds(beta=(1.0, 1.0), gamma=(0.0, 0.0)),
]


def small_sets(seed, n_sets):
    rng = np.random.default_rng(seed)
    for number in range(n_sets):
        n_items, n_votes = rng.integers(1, 14), rng.integers(1, 15)
        counts = np.array([
            rng.multinomial(n_votes if number % 2 else rng.integers(n_votes + 1), chances)
            for chances in rng.dirichlet([0.7] * 3, n_items)
        ])  # fmt: skip
        labels = rng.integers(-1, 2, n_items)
        follows = rng.random(n_items) < (0.7 if number % 3 == 0 else 0)
        yield counts, np.where(follows, np.sign(counts[:, 2] - counts[:, 0]), labels)


@pytest.mark.parametrize("bounds", BOXES, ids=str)
def test_no_parameters_make_fewer_errors(bounds):
    met = 0
    for counts, labels in small_sets(seed=BOXES.index(bounds), n_sets=16):
        found = calibrate_by_mae(counts, labels, bounds=bounds)
        model = found.model
        errors = round(found.mae * len(labels))
        assert errors == np.abs(model.decide(counts).astype(int) - labels).sum()
        assert found.mae == found.bound
        by_grid = least_errors(counts, labels, bounds)
        assert errors <= by_grid
        met += errors == by_grid
        assert bounds.beta[0] <= model.beta <= bounds.beta[1]
        assert bounds.nu[0] <= model.nu * (1 + 1e-12)
        assert model.nu * (1 - 1e-12) <= bounds.nu[1]
        assert bounds.gamma[0] <= model.gamma <= bounds.gamma[1]
    assert met >= 15  # a grid can miss a narrow region


@pytest.mark.parametrize("n_votes", [4, 12])
def test_never_more_errors_than_by_drps_on_the_calibration_set(n_votes):
    fewer = 0
    for seed in range(12):
        sample = simulate("wmt-en-de" if seed % 2 else "rb2-factuality", 50, n_votes, seed=seed)
        counts, labels = sample.counts, sample.labels
        usual, direct = calibrate(counts, labels, prior=None), calibrate_by_mae(counts, labels)
        before = mean_absolute_error(labels, usual.model.decide(counts))
        assert direct.mae == direct.bound
        assert direct.mae == pytest.approx(
            mean_absolute_error(labels, direct.model.decide(counts)), abs=1e-12
        )
        assert direct.mae <= before
        # Of equally good parameters those of least DRPS.
        assert direct.drps == pytest.approx(direct.model.drps(counts, labels), abs=1e-12)
        plain = replace(usual.model, usual_votes=None)
        assert (direct.model == plain) == (direct.mae == before)
        fewer += direct.mae < before
    assert fewer > 0


def test_equal_scores_are_told_by_parameters_and_not_by_rounding():
    for seed in (48, 69):  # of which the mirrored fit was another
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 5, (rng.integers(2, 6), 3))
        counts[:, 0] += counts.sum(axis=1) == 0
        labels = rng.integers(-1, 2, len(counts))
        found = calibrate_by_mae(counts, labels).model
        assert calibrate_by_mae(counts[:, ::-1], -labels).model == found


@given(counted)
@settings(deadline=None, max_examples=10)
def test_the_direct_fit_is_mirrored_and_takes_items_in_any_order(rows):
    counts, labels = rows[:, :3], rows[:, 3]
    found = calibrate_by_mae(counts, labels)
    assert calibrate_by_mae(counts[:, ::-1], -labels).model == found.model
    assert calibrate_by_mae(counts[::-1], labels[::-1]).model == found.model


def test_the_fit_says_what_it_knows_of_its_votes():
    sample = simulate("rb2-math", 120, 8, seed=4)
    fitted = calibrate_by_mae(sample.counts, sample.labels)
    assert fitted.model.provenance == Provenance(n_votes=8, n_labels=120)
    assert fitted.n_labels == 120


def test_tables_are_matched_by_id_before_they_are_fitted():
    votes = read_votes({"item": list("xxyyz"), "vote": [1, 1, 0, -1, 1]})
    labels = read_labels({"item": list("zyx"), "label": [0, -1, 1]})
    found = calibrate_by_mae(votes.labelled(labels))
    assert found.model == calibrate_by_mae([[0, 0, 2], [1, 1, 0], [0, 0, 1]], [1, -1, 0]).model
    with refused("counts"):
        calibrate_by_mae(votes, labels)
    with refused("labels"):
        calibrate_by_mae(votes.labelled(labels), [0, -1, 1])


# As an aggregator


def test_the_aggregator_decides_as_the_fit_to_each_calibration_set():
    sample = simulate("rb2-factuality", 80, 6, seed=2)
    protocol = Protocol(RandomSplits(size=30, n_splits=3, seed=1), None)
    scores = evaluate(
        sample.counts,
        sample.labels,
        aggregators=["davidson", DavidsonMae()],
        protocol=protocol,
    )
    method = scores.cells[0].methods[1]
    assert method.name == "Davidson MAE"
    for number, (chosen, left) in enumerate(protocol.splitter.draw(80)):
        model = calibrate_by_mae(sample.counts[chosen], sample.labels[chosen]).model
        errors = np.abs(model.decide(sample.counts[left]).astype(int) - sample.labels[left])
        assert method.mae[number] == pytest.approx(errors.mean())


@pytest.mark.parametrize("points", [(0, 1, 2), (-3, 0, 3)])
def test_the_aggregator_decides_another_mirrored_scale_as_pairs(points):
    scale = Scale(points, ("B", "tie", "A"), mirrored=True)
    sample = simulate("rb2-math", 40, 8, seed=4)
    usual = DavidsonMae().fit(sample.counts, sample.labels).decide(sample.counts)
    labels = np.array(points)[sample.labels.astype(int) + 1]
    other = DavidsonMae(scale=scale).fit(sample.counts, labels).decide(sample.counts)
    assert other.tolist() == np.array(points)[usual.astype(int) + 1].tolist()


def test_the_aggregator_is_for_votes_with_two_sides():
    with refused("scale"):
        DavidsonMae(scale=PASS_FAIL)
    with pytest.raises(ValueError, match="not fitted"):
        DavidsonMae().decide([[1, 0, 0]])


def test_the_papers_command_alone_knows_it_by_name(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = simulate("wmt-en-de", 60, 4, seed=3)
    read_votes(sample.vote_columns()).frame.write_csv("votes.csv")
    read_labels(sample.label_columns()).frame.write_csv("labels.csv")
    named = "votes.csv", "labels.csv", "--methods", "davidson,davidson-mae"
    status, out, _ = cli("paper", "evaluate", *named, "--size", "20", "--splits", "2")
    assert status == 0
    assert "Davidson MAE" in out
    status, _, err = cli("evaluate", *named)
    assert status != 0
    assert "davidson-mae" in err
