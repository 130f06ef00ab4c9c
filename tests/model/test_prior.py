"""Few labels: priors, posteriors, and what they say of themselves."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest

import btdagg
from btdagg import _core, reference
from btdagg.datasets import REGIMES, simulate
from refusals import refused

REGIME = REGIMES["rb2-factuality"]


def drawn(n, seed=0, n_votes=8, regime=REGIME):
    found = simulate(regime, n, n_votes, seed=seed)
    return found.counts.astype(np.int64), found.labels


def every_triple(n):
    return np.array([(m, t, n - m - t) for m in range(n + 1) for t in range(n + 1 - m)])


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return btdagg.calibrate(*args, **options)


def minimised(least):
    """Find a minimum above the least values, by a method that knows nothing of designs."""
    from scipy.optimize import minimize

    bounds = [(None if one == -np.inf else one, None) for one in least]
    simplex = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-14}

    def minimised(loss, start):
        at = np.maximum(start, least)
        for method, how in (("Nelder-Mead", simplex), ("L-BFGS-B", {}), ("Nelder-Mead", simplex)):
            at = minimize(loss, at, method=method, bounds=bounds, options=how).x
        return at

    return minimised


@pytest.mark.parametrize("n_labels", [1, 6, 40])
@pytest.mark.parametrize("has_neighbours", [False, True])
def test_the_model_of_few_labels_is_that_of_the_reference(n_labels, has_neighbours):
    counts, labels = drawn(n_labels, seed=n_labels, n_votes=6)
    prior = btdagg.fit_prior([drawn(200, seed=5), drawn(80, seed=6)])
    weak = _core.Prior.of_pairs([6.0])
    if has_neighbours:
        fits = [of.fit(1.0, 1.0, 6.0) for of in prior.neighbours.values()]
        weak = weak.with_neighbours(*(np.stack(both) for both in zip(*fits, strict=True)), 0.1)
    design = reference.pairs_design(*reference.features(counts))
    parts = [*zip(*weak.parts, strict=True)]
    theta, shares = reference.posterior(
        design, np.eye(3)[labels + 1], parts, minimised(weak.least), weak.least
    )
    found = quiet(counts, labels, prior=prior if has_neighbours else "weak")
    model = found.model
    assert (model.beta, model.eta0, model.gamma) == pytest.approx(tuple(theta), abs=1e-4)
    assert found.shares["nothing"] == pytest.approx(shares[-1], abs=1e-6)
    assert found.shares["neighbours"] == pytest.approx(shares[:-3].sum(), abs=1e-6)


def mean_likelihoods(design, gold, parts, least, n_draws=400_000):
    """The mean likelihood of labels under each part, by draws that are not below the least."""
    rng, means = np.random.default_rng(0), []
    for _, mean, covariance in parts:
        draws = rng.multivariate_normal(mean, covariance, n_draws)
        draws = draws[(draws >= least).all(axis=1)]
        logits = np.einsum("nkp,dp->dnk", design, draws)
        log_p = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
        means.append(np.exp(np.einsum("nk,dnk->d", gold, log_p)).mean())
    return np.array(means)


@pytest.mark.parametrize("n_agreeing", [0, 4, 12])
def test_labels_against_the_votes_say_that_these_say_nothing(n_agreeing):
    counts = np.array([(0, 2, 4), (4, 2, 0), (1, 3, 2), (3, 2, 1)]).repeat(5, axis=0)
    labels = np.sign(counts[:, 0] - counts[:, 2])
    labels[:n_agreeing] *= -1
    found = quiet(counts, labels)
    weak = _core.Prior.of_pairs([6.0])
    design = reference.pairs_design(*reference.features(counts))
    parts = [*zip(*weak.parts, strict=True)]
    exact = mean_likelihoods(design, np.eye(3)[labels + 1], parts, weak.least, 100_000)
    exact *= [share for share, *_ in parts]
    assert found.shares["nothing"] == pytest.approx(exact[-1] / exact.sum(), abs=0.05)
    assert (found.shares["nothing"] > 0.05) == (n_agreeing <= 4)


def test_grades_and_covariates_are_those_of_the_reference():
    scale = btdagg.Scale((1, 2, 3))
    rng = np.random.default_rng(4)
    counts = rng.multinomial(5, [0.3, 0.4, 0.3], size=30)
    means = counts @ [1, 2, 3] / 5
    x = rng.normal(size=30)
    labels = np.clip(np.rint(means + 0.4 * x + rng.normal(0, 0.5, 30)), 1, 3).astype(int)
    found = quiet(counts, labels, scale=scale, covariates={"x": x})
    (known,) = found.model.covariates
    columns = np.column_stack([means - 2, (x - x.mean()) / x.std()])
    design = np.zeros((30, 3, 4))
    design[:, :, :2] = np.array([-1, 0, 1])[None, :, None] * columns[:, None]
    design[:, 1:, 2], design[:, 2, 3] = -1, -1
    centre, spread = columns[:, 0].mean(), columns[:, 0].std()
    weak = _core.Prior.of_grades(3, centre, spread).with_covariates(1, 1)
    gold = np.eye(3)[labels - 1]
    parts, bounds = [*zip(*weak.parts, strict=True)], weak.least
    theta, shares = reference.posterior(design, gold, parts, minimised(bounds), bounds)
    cuts = 2 + theta[2:] / theta[0]
    assert found.model.beta == pytest.approx(theta[0], abs=1e-4)
    assert found.model.cuts == pytest.approx(tuple(cuts), abs=1e-4)
    assert known.weight == pytest.approx(theta[1], abs=1e-4)
    assert found.shares["nothing"] == pytest.approx(shares[3::4].sum(), abs=1e-6)


def test_neighbours_of_other_numbers_of_votes_say_what_they_say_of_unanimous_items():
    counts, labels = drawn(300, seed=2)
    (theta,) = btdagg.fit_prior([(counts, labels)]).parameters(2)
    (own,) = btdagg.fit_prior([(counts, labels)]).parameters(8)
    larger = np.log(9) / np.log(3)
    assert theta == pytest.approx(own * [larger, 1, larger], rel=1e-12)


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
            assert few.drps - fit.drps < 1.5 / n
        assert apart[2] < min(0.01, apart[0])
        assert (fit.model.decide(rows) == few.model.decide(rows)).mean() > 0.95


@pytest.mark.parametrize("labels", [[0], [1, 1, 1], [-1, 0]])
def test_labels_may_be_few_or_of_one_class(labels):
    counts = every_triple(4)[: len(labels)]
    found = quiet(counts, labels, prior="weak")
    assert found.n_labels == found.n_effective == len(labels)
    assert found.converged
    assert found.model.provenance.n_labels == len(labels)


def test_without_labels_counts_say_what_occurs():
    counts, _ = drawn(100)
    weak = quiet(counts, None, prior="weak")
    assert (weak.n_labels, np.isnan(weak.drps)) == (0, True)
    assert "DRPS" not in str(weak)
    prior = btdagg.fit_prior([drawn(400, seed=5)])
    found = quiet(counts, None, prior=prior)
    assert (found.shares["neighbours"], found.warnings) == (pytest.approx(0.9), ())
    fit = quiet(*drawn(400, seed=5)).model
    assert (found.model.decide(counts) == fit.decide(counts)).mean() > 0.9
    assert found.intervals() == {}  # labels alone tell nothing


def test_swapping_a_and_b_mirrors_everything():
    counts, labels = drawn(30)
    prior = btdagg.fit_prior([drawn(100, seed=5)])
    mirrored = btdagg.fit_prior([(drawn(100, seed=5)[0][:, ::-1], -drawn(100, seed=5)[1])])
    one = quiet(counts, labels, prior=prior)
    other = quiet(counts[::-1, ::-1], -labels[::-1], prior=mirrored)
    assert one.model == other.model
    assert one.shares == other.shares
    for name, ends in one.intervals().items():
        assert ends[:3] == pytest.approx(other.intervals()[name][:3], rel=1e-9)


def test_weights_are_worth_an_effective_number_of_labels():
    counts, labels = drawn(40)
    plain = quiet(counts, labels, prior="weak")
    for weights in (np.full(40, 7.0), np.full(40, 1e-9)):
        found = quiet(counts, labels, weights=weights, prior="weak")
        assert found.n_effective == pytest.approx(40)
        assert found.model.beta == pytest.approx(plain.model.beta, rel=1e-6)
    weights = np.arange(1.0, 41)
    found = quiet(counts, labels, weights=weights, prior="weak")
    assert found.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    soft = np.zeros((40, 3))
    soft[np.arange(40), labels + 1] = weights
    again = quiet(counts, None, weights=soft, prior="weak")
    assert again.model.beta == pytest.approx(found.model.beta, rel=1e-9)


def test_the_share_of_the_neighbours_says_whether_they_fit():
    counts, labels = drawn(60, seed=1)
    near = btdagg.fit_prior({"near": drawn(400, seed=2)})
    far = btdagg.fit_prior({"far": drawn(400, seed=2, regime=REGIMES["wmt-zh-en"])})
    assert not quiet(counts, labels, prior=near).warnings
    assert quiet(counts, labels, prior=near).shares["neighbours"] > 0.9
    with pytest.warns(btdagg.model.CalibrationWarning, match="^the neighbours do not fit these"):
        found = btdagg.calibrate(counts, labels, prior=far)
    assert found.shares["neighbours"] < 0.5
    assert "warning: the neighbours do not fit" in str(found)


def test_intervals_of_more_labels_are_narrower_and_of_higher_levels_wider():
    counts, labels = drawn(400, seed=8)
    widths = []
    for n in (50, 400):
        found = quiet(counts[:n], labels[:n])
        ends, wide = found.intervals(), found.intervals(level=0.99)
        widths.append(ends["beta"].high - ends["beta"].low)
        assert wide["beta"].high > ends["beta"].high
        assert ends["nu"].estimate == found.model.nu
    assert widths[1] < 0.6 * widths[0]


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
    for calibration in every_calibration():
        again = pickle.loads(pickle.dumps(calibration))
        assert again.model == calibration.model
        assert again.model.provenance == calibration.model.provenance
        assert again.shares == calibration.shares
        assert again.intervals() == calibration.intervals()


def test_parts_and_weights_of_another_shape_are_refused():
    prior = _core.Prior.of_pairs([8.0])
    with refused("means", expected="[2, 3]"):
        _core.Prior(np.ones(2), np.zeros((1, 3)), np.zeros((2, 3, 3)), [0.0] * 3)
    with refused("covariances", expected="[2, 3, 3]"):
        prior.with_neighbours(np.zeros((2, 3)), np.zeros((1, 3, 3)), 0.1)
    with refused("weights", expected="[2, 3]"):
        prior.posteriors(np.zeros((2, 3, 3)), np.zeros((1, 3, 2)), 1)


def test_a_model_says_for_which_numbers_of_votes_it_had_labels():
    counts, labels = drawn(40)
    few = np.array([[1, 0, 1], [0, 2, 0], [1, 1, 3]])
    origin = quiet(np.vstack([counts, few]), [*labels, 0, 0, 1]).model.provenance
    assert origin.votes_of_labels == (2, 5, 8)
    assert str(origin) == "2 to 8 votes an item, 43 labels"
    assert origin.differences(few) == origin.differences(counts) == origin.other_number(5) == ()
    assert len(origin.differences([[1, 0, 0]])) == len(origin.other_number(3)) == 1
    assert quiet(counts, labels).model.provenance.votes_of_labels == ()
    again = btdagg.votes.Provenance.from_dict(json.loads(json.dumps(origin.as_dict())))
    assert again == origin
