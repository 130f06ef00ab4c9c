"""Few labels: priors, posteriors, and what they say of themselves."""

from __future__ import annotations

import itertools
import json
import pickle
import warnings

import numpy as np
import pytest

import btdagg
from btdagg import reference
from btdagg.datasets import REGIMES, simulate

REGIME = REGIMES["rb2-factuality"]


def drawn(n, seed=0, n_votes=8, regime=REGIME):
    found = simulate(regime, n, n_votes, seed=seed)
    return found.counts.astype(np.int64), found.labels


def every_triple(n):
    return np.array([(m, t, n - m - t) for m in range(n + 1) for t in range(n + 1 - m)])


def gathered(counts, labels):
    rows, place = np.unique(counts, axis=0, return_inverse=True)
    table = np.zeros((len(rows), 3))
    np.add.at(table, (place.ravel(), labels + 1), 1)
    return rows, table


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return btdagg.calibrate(*args, **options)


def test_a_posterior_of_few_labels_is_the_sum_over_the_grid():
    prior = btdagg.fit_prior([drawn(200, seed=5)])
    for n, known in ((1, None), (4, prior)):
        counts, labels = drawn(n, seed=n)
        rows, table = gathered(counts, labels)
        shares, means = reference.few_labels(
            rows,
            table,
            table.sum(axis=1),
            reference.weak_grid(),
            neighbours=None if known is None else known.parameters(),
        )
        posterior = quiet(counts, labels, prior=known or "weak").posterior
        assert posterior.neighbours == pytest.approx(shares[0], abs=1e-5)
        assert posterior.nothing == pytest.approx(shares[2], abs=1e-5)
        assert np.abs(posterior.predict_proba(rows) - means).max() < 5e-5


def test_a_posterior_of_more_labels_is_a_fine_integral():
    """Dense midpoints over all that a first pass over the box finds of the posterior."""
    counts, labels = drawn(40, seed=40)
    rows, table = gathered(counts, labels)
    prior = btdagg.fit_prior([drawn(300, seed=9, regime=REGIMES["rb2-safety"])])
    posterior = quiet(counts, labels, prior=prior).posterior
    fit = quiet(counts, labels).model
    middle = np.array([np.log(fit.beta), fit.eta0, fit.gamma])
    ends = quiet(counts, labels, prior="weak").posterior.intervals(level=0.999)
    low = np.array([np.log(ends["beta"].low), np.log(ends["nu"].low), ends["gamma"].low])
    high = np.array([np.log(ends["beta"].high), np.log(ends["nu"].high), ends["gamma"].high])
    reach = np.array([1.5, 6, 4])
    low, high = np.maximum(low, middle - reach), np.minimum(high, middle + reach)
    n_points = 18
    axes = [np.linspace(a, b, 2 * n_points + 1)[1::2] for a, b in zip(low, high, strict=True)]
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    points = np.column_stack([np.exp(mesh[:, 0]), mesh[:, 1:]])
    cell = np.prod([np.log(100) / 11, np.log(1e7) / 19, 20 / 30])
    shares, means = reference.few_labels(
        rows,
        table,
        table.sum(axis=1),
        points,
        volume=float(np.prod((high - low) / n_points) / cell),
        neighbours=prior.parameters(),
    )
    assert np.abs(posterior.predict_proba(rows) - means).max() < 0.01
    assert posterior.neighbours == pytest.approx(shares[0], abs=0.03)


def test_empirical_bayes_is_the_mean_of_the_neighbours_posteriors():
    neighbours = [drawn(60, seed=seed) for seed in (1, 2)]
    found = btdagg.fit_prior(neighbours).parameters()
    assert found.shape == (1024, 3)
    rows = every_triple(8)
    s, t = reference.features(rows)
    of_prior = np.mean([reference.probabilities(s, t, *x) for x in found], axis=0)
    means = []
    for counts, labels in neighbours:
        own = quiet(counts, labels, prior="weak").posterior
        constant = own.nothing
        assert constant < 1e-3  # of it a neighbour leaves no parameters
        means.append(own.predict_proba(rows))
    assert np.abs(of_prior - np.mean(means, axis=0)).max() < 0.01


def test_a_neighbour_counts_for_400_labels_at_the_most():
    counts, labels = drawn(400, seed=3)
    once = btdagg.fit_prior([(counts, labels)]).parameters()
    tenfold = btdagg.fit_prior([(np.tile(counts, (10, 1)), np.tile(labels, 10))]).parameters()
    assert np.abs(once - tenfold).max() < 1e-6


def test_with_labels_it_becomes_the_papers_fit():
    prior = btdagg.fit_prior([drawn(300, seed=9, regime=REGIMES["wmt-en-de"])])
    rows = every_triple(8)
    for known in ("weak", prior):
        apart = []
        for n in (100, 1000, 10_000):
            counts, labels = drawn(n, seed=n)
            fit, few = (quiet(counts, labels, prior=prior) for prior in (None, known))
            gap = np.abs(fit.model.predict_proba(rows) - few.model.predict_proba(rows)).max()
            apart.append(gap)
            assert few.drps - fit.drps < 0.3 / n
        assert apart[2] < min(0.005, apart[0])
        assert (fit.model.decide(rows) == few.model.decide(rows)).mean() > 0.95


@pytest.mark.parametrize("labels", [[0], [1, 1, 1], [-1, 0]])
def test_labels_may_be_few_or_of_one_class(labels):
    counts = every_triple(4)[: len(labels)]
    found = quiet(counts, labels, prior="weak")
    assert found.n_labels == found.posterior.n_labels == len(labels)
    assert found.converged
    assert found.model.provenance.n_labels == len(labels)


def test_without_labels_counts_say_what_occurs():
    counts, _ = drawn(100)
    weak = quiet(counts, None, prior="weak")
    assert (weak.n_labels, np.isnan(weak.drps)) == (0, True)
    assert "DRPS" not in str(weak)
    prior = btdagg.fit_prior([drawn(400, seed=5)])
    found = quiet(counts, None, prior=prior)
    assert (found.posterior.neighbours, found.warnings) == (1, ())
    fit = quiet(*drawn(400, seed=5)).model
    assert (found.model.decide(counts) == fit.decide(counts)).mean() > 0.9
    assert found.posterior.intervals()["gamma"][1:] == (-10, 10, "to the lower and the upper bound")


def test_swapping_a_and_b_mirrors_everything():
    counts, labels = drawn(30)
    prior = btdagg.fit_prior([drawn(100, seed=5)])
    mirrored = btdagg.fit_prior([(drawn(100, seed=5)[0][:, ::-1], -drawn(100, seed=5)[1])])
    one = quiet(counts, labels, prior=prior)
    other = quiet(counts[::-1, ::-1], -labels[::-1], prior=mirrored)
    assert one.model == other.model
    rows = every_triple(8)
    shares = one.posterior.stable(rows).shares
    assert np.abs(shares - other.posterior.stable(rows[:, ::-1]).shares[:, ::-1]).max() < 1e-12


def test_weights_are_worth_an_effective_number_of_labels():
    counts, labels = drawn(40)
    plain = quiet(counts, labels, prior="weak")
    for weights in (np.full(40, 7.0), np.full(40, 1e-9)):
        found = quiet(counts, labels, weights=weights, prior="weak")
        assert found.posterior.n_labels == pytest.approx(40)
        assert found.model.beta == pytest.approx(plain.model.beta, rel=1e-6)
    weights = np.arange(1.0, 41)
    found = quiet(counts, labels, weights=weights, prior="weak")
    assert found.posterior.n_labels == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    soft = np.zeros((40, 3))
    soft[np.arange(40), labels + 1] = weights
    again = quiet(counts, None, weights=soft, prior="weak")
    assert again.model.beta == pytest.approx(found.model.beta, rel=1e-9)


def test_the_share_of_the_neighbours_says_whether_they_fit():
    counts, labels = drawn(60, seed=1)
    near = btdagg.fit_prior({"near": drawn(400, seed=2)})
    far = btdagg.fit_prior({"far": drawn(400, seed=2, regime=REGIMES["wmt-zh-en"])})
    assert not quiet(counts, labels, prior=near).posterior.warnings
    assert quiet(counts, labels, prior=near).posterior.neighbours > 0.9
    with pytest.warns(btdagg.model.CalibrationWarning, match="^the neighbours do not fit these"):
        found = btdagg.calibrate(counts, labels, prior=far)
    assert found.posterior.neighbours < 0.5
    assert "warning: the neighbours do not fit" in str(found)
    # From a thousand labels on they are left out, which is no fault of theirs.
    many = quiet(*drawn(1000), prior=far)
    assert (many.posterior.neighbours, many.posterior.warnings) == (0, ())


def test_neighbours_with_more_votes_are_thinned_and_with_fewer_said_to_differ():
    counts, labels = drawn(20, n_votes=4)
    wide = btdagg.fit_prior([drawn(300, seed=2, n_votes=8)])
    narrow = btdagg.fit_prior([drawn(300, seed=2, n_votes=2)])
    assert (wide.n_votes, narrow.n_votes) == (8, 2)
    assert not quiet(counts, labels, prior=wide).posterior.warnings
    (said,) = quiet(counts, labels, prior=narrow).posterior.warnings
    assert said == "items have up to 4 votes, but the prior was learned from 2 votes an item"
    # By enumeration: every way of keeping four of eight votes.
    items, gold = drawn(6, seed=2, n_votes=8)
    ways = [
        np.bincount(kept, minlength=3)
        for row in items
        for kept in itertools.combinations(np.repeat([0, 1, 2], row), 4)
    ]
    of_ways = btdagg.fit_prior([(np.array(ways), gold.repeat(70))]).parameters()
    of_items = btdagg.fit_prior([(items.repeat(70, axis=0), gold.repeat(70))]).parameters(4)
    assert np.abs(np.sort(of_items, axis=0) - np.sort(of_ways, axis=0)).max() < 1e-6


def test_intervals_and_stable_decisions_say_how_sure_they_are():
    rows = every_triple(8)
    counts, labels = drawn(400, seed=8)
    widths, shares = [], []
    for n in (50, 400):
        found = quiet(counts[:n], labels[:n], prior="weak").posterior
        ends = found.intervals()
        assert ends["beta"].low < ends["beta"].estimate < ends["beta"].high
        widths.append(ends["beta"].high - ends["beta"].low)
        stable = found.stable(rows)
        assert (stable.labels == found.model.decide(rows)).all()
        assert np.allclose(stable.shares.sum(axis=1), 1)
        assert (stable.stable == (stable.agreement >= 0.95)).all()
        assert found.stable(rows, level=0.5).stable.mean() >= stable.stable.mean()
        shares.append(stable.stable.mean())
        wide = found.intervals(level=0.99)["gamma"]
        assert wide.high - wide.low > ends["gamma"].high - ends["gamma"].low
    assert widths[1] < 0.6 * widths[0]
    assert shares[1] > shares[0]


def test_a_prior_is_saved_and_loaded(tmp_path):
    prior = btdagg.fit_prior(
        {"a": drawn(50, seed=1), "b": drawn(70, seed=2, n_votes=12)}, alpha=0.5, weak_share=0.2
    )
    prior.save(tmp_path / "prior.json")
    again = btdagg.Prior.load(tmp_path / "prior.json")
    assert (again.names, again.alpha, again.kappa, again.weak_share) == (("a", "b"), 0.5, 1.0, 0.2)
    assert (again.n_labels, again.n_votes) == (120, 8)
    assert (again.parameters(4) == prior.parameters(4)).all()
    assert str(again) == "prior of 2 neighbours with 120 labels at 8 votes an item: a, b"
    assert (again.without("b").parameters() == prior.without(["b"]).parameters()).all()
    written = json.loads((tmp_path / "prior.json").read_text())
    assert [(one["name"], one["n_votes"], one["n_labels"]) for one in written["neighbours"]] == [
        ("a", 8, 50),
        ("b", 12, 70),
    ]
    for rows in ([], [[0, 1, 7, 0, 0, 0]], [[0, 1, 7, 2, -1, 0]]):
        written["neighbours"][0]["rows"] = rows
        with pytest.raises(btdagg.InputError, match=r"^f: rows is .*, expected at least one label"):
            btdagg.Prior.from_json(json.dumps(written), source="f")


def test_held_out_items_and_groups_are_left_out_of_the_neighbours():
    counts, labels = drawn(90)
    groups = np.arange(90) // 3
    kept = ~np.isin(groups, [0, 5, 7])
    prior = btdagg.fit_prior({"a": (counts, labels, groups)}, leave_out={0, 5, 7})
    alone = btdagg.fit_prior({"a": (counts[kept], labels[kept])})
    assert prior.n_labels == 81
    assert (prior.parameters() == alone.parameters()).all()
    votes, gold = tables(counts, labels)
    by_id = btdagg.fit_prior({"a": (votes, gold)}, leave_out=["i3", "i4"])
    assert by_id.n_labels == 88


def tables(counts, labels):
    import polars as pl

    ids = [f"i{i}" for i in range(len(counts))]
    minus, tie, plus = counts.T
    votes = pl.DataFrame({"item": ids, "minus": minus, "tie": tie, "plus": plus})
    return btdagg.read_votes(votes), btdagg.read_labels(
        pl.DataFrame({"item": ids, "label": labels})
    )


COUNTS = [[0, 2, 10], [1, 10, 1], [11, 1, 0]]


PAIR = COUNTS, [1, 0, -1]
NONE = np.zeros((0, 3))
fit_prior, calibrate = btdagg.fit_prior, btdagg.calibrate


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_prior({}), "neighbours is empty, expected at least one"),
        (lambda: fit_prior({"a": (NONE, [])}), "neighbour 'a': labels is [], expected at least"),
        (lambda: fit_prior({"a": 3}), "neighbour 'a': expected a pair (counts, labels), or with"),
        (lambda: fit_prior([PAIR, (COUNTS, [1, 2, -1])]), "neighbour '2': labels[1] is 2, expect"),
        (lambda: fit_prior([PAIR], alpha=0), "alpha is 0, expected a number above 0"),
        (lambda: fit_prior([PAIR], leave_out=["x"]), "neighbour '1': leave_out is {'x'}, expected"),
        (lambda: fit_prior([(*PAIR, ["x"] * 3)], leave_out=["x"]), "neighbour '1': leave_out lea"),
        (lambda: fit_prior([PAIR], leave_out="q1"), "leave_out is 'q1', expected a list of ids or"),
        (lambda: fit_prior([PAIR]).without("b"), "names is 'b', expected of 1"),
        (lambda: calibrate(*PAIR, prior=fit_prior([PAIR]), kappa=2), "kappa is 2.0, expected 1 as"),
        (lambda: calibrate(*PAIR, prior="strong"), "prior is 'strong', expected a Prior, \"weak\""),
        (lambda: calibrate(*PAIR, prior="weak", bounds=btdagg.Bounds(beta=(0.1, 2))), "bounds is"),
        (lambda: calibrate(*PAIR, bounds=(1, 2)), "bounds is (1, 2), expected a btdagg.Bounds or"),
        (
            lambda: calibrate(NONE, None, prior="weak"),
            "counts is empty, expected at least one item",
        ),
        (lambda: calibrate(COUNTS, None, prior=None), "labels is nothing, expected labels or soft"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(btdagg.InputError) as error:
        call()
    assert str(error.value).startswith(message)


def every_calibration():
    counts, labels = drawn(30, seed=1)
    prior = btdagg.fit_prior({"a": drawn(200, seed=2), "b": drawn(100, seed=3)})
    weights = np.linspace(0.1, 1, len(labels))
    soft = np.eye(3)[labels + 1] * 0.8 + 0.1
    yield quiet(counts, labels)
    for given in (prior, "weak"):
        yield quiet(counts, labels, prior=given)
        yield quiet(counts, labels, weights=weights, prior=given)
        yield quiet(counts, None, weights=soft, prior=given)
        yield quiet(counts, None, prior=given)


def test_calibrations_are_pickled():
    new, _ = drawn(50, seed=4)
    for calibration in every_calibration():
        again = pickle.loads(pickle.dumps(calibration))
        assert again.model == calibration.model
        assert again.model.provenance == calibration.model.provenance
        if calibration.posterior is None:
            assert again.posterior is None
            continue
        assert str(again.posterior) == str(calibration.posterior)
        np.testing.assert_array_equal(
            again.posterior.stable(new).shares, calibration.posterior.stable(new).shares
        )
        assert again.posterior.intervals() == calibration.posterior.intervals()
