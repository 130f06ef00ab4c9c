"""Many systems: against plain fits and other packages."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats

import btdagg
from btdagg import InputError, estimate_systems

MODEL = btdagg.DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8)
VOTES = {
    "good": np.array([[0.6, 0.25, 0.15], [0.25, 0.4, 0.35], [0.1, 0.2, 0.7]]),
    "noise": np.tile([0.3, 0.4, 0.3], (3, 1)),
}


def drawn(n_labels=150, n_items=2000, seed=0, judge="good", nu=0.8, n_systems=5):
    """Arguments of `estimate_systems`, and all labels: ten items of each prompt.

    Prompts suit some systems more than others, so that items of a prompt are alike, and no Davidson
    model is true of all.
    """
    rng = np.random.default_rng([9, seed])
    prompt = np.arange(n_items) // 10
    skill = np.linspace(1, -1, n_systems) + rng.normal(0, 0.7, (prompt[-1] + 1, n_systems))
    a = rng.integers(0, n_systems, n_items)
    b = (a + rng.integers(1, n_systems, n_items)) % n_systems
    half = (skill[prompt, a] - skill[prompt, b]) / 2
    odds = np.stack([np.exp(-half), np.full(n_items, nu), np.exp(half)], axis=1)
    below = odds.cumsum(axis=1) / odds.sum(axis=1, keepdims=True)
    gold = (rng.random(n_items)[:, None] > below).sum(axis=1) - 1
    labels = np.full(n_items, np.nan)
    chosen = rng.permutation(n_items)[:n_labels]
    labels[chosen] = gold[chosen]
    names = np.array(list("vwxyz"[:n_systems]))
    given = {
        "counts": rng.multinomial(8, VOTES[judge][gold + 1]),
        "labels": labels,
        "system_a": names[a],
        "system_b": names[b],
        "groups": prompt,
    }
    return given, gold


def labelled_of(given):
    rows = ~np.isnan(given["labels"])
    return {name: values[rows] for name, values in given.items()}


def strengths_of(found):
    """Strengths by name, in the order of names."""
    return np.array([found.systems[name].strength.estimate for name in sorted(found.systems)])


def design_of(system_a, system_b):
    """Half the difference of strengths of each item, (n, S)."""
    names = np.unique([system_a, system_b])
    a, b = np.searchsorted(names, system_a), np.searchsorted(names, system_b)
    return (np.eye(len(names))[a] - np.eye(len(names))[b]) / 2


def chances_of(design, parameters):
    half = design @ parameters[:-1]
    odds = np.stack([np.exp(-half), np.full(len(half), np.exp(parameters[-1])), np.exp(half)], 1)
    return odds / odds.sum(axis=1, keepdims=True)


def plain_fit(design, soft, weights):
    """Davidson fit to weighted soft labels by SciPy, without this package; sums to 0."""

    def loss(free):
        strengths = np.append(free[:-1], -free[:-1].sum())
        chances = chances_of(design, np.append(strengths, free[-1]))
        return -(weights[:, None] * soft * np.log(chances)).sum()

    free = optimize.minimize(loss, np.zeros(design.shape[1]), tol=1e-9).x
    return np.concatenate([free[:-1], [-free[:-1].sum(), free[-1]]])


def test_without_other_items_strengths_are_the_plain_davidson_fit():
    given, _ = drawn(300)
    given = labelled_of(given)
    found = estimate_systems(**given)
    soft = np.eye(3)[given["labels"].astype(int) + 1]
    design = design_of(given["system_a"], given["system_b"])
    expected = plain_fit(design, soft, np.full(300, 1 / 300))
    assert found.weight == 0
    assert strengths_of(found) == pytest.approx(expected[:-1], abs=1e-6)
    assert np.log(found.tie_parameter.estimate) == pytest.approx(expected[-1], abs=1e-6)
    assert any("the votes to add anything" in text for text in found.remarks)


@pytest.mark.integration
def test_without_ties_strengths_are_those_of_choix():
    import choix

    given, _ = drawn(300, nu=0.0)
    given = labelled_of(given)
    found = estimate_systems(**given)
    a, b = (np.searchsorted(list("vwxyz"), given[name]) for name in ("system_a", "system_b"))
    won = given["labels"] == 1
    pairs = np.stack([np.where(won, a, b), np.where(won, b, a)], axis=1)
    expected = choix.ilsr_pairwise(5, pairs.tolist(), alpha=0.0, max_iter=10_000, tol=1e-12)
    assert strengths_of(found) == pytest.approx(expected - expected.mean(), abs=1e-6)
    assert found.tie_parameter.estimate == 0
    assert any("no ties" in text for text in found.remarks)


def turned_to(given, system, rows):
    """Arguments of `estimate`: some items, turned so that the system is A of each."""
    is_b = (given["system_b"] == system)[rows]
    counts, labels = given["counts"][rows], given["labels"][rows]
    return {
        "counts": np.where(is_b[:, None], counts[:, ::-1], counts),
        "labels": np.where(is_b, -labels, labels),
        "groups": given["groups"][rows],
    }


def test_win_rates_are_estimates_of_items_turned_to_the_system():
    given, _ = drawn(400)
    found = estimate_systems(**given, model=MODEL)
    against = estimate_systems(**given, model=MODEL, baseline="x")
    for name in "vwxyz":
        mine = (given["system_a"] == name) | (given["system_b"] == name)
        expected = btdagg.estimate(**turned_to(given, name, mine), model=MODEL)
        one = found.systems[name]
        assert (one.n_items, one.n_labels) == (expected.n_items, expected.n_labels)
        rate = expected.estimates["win rate"]
        assert (one.mean.value, one.mean.low) == pytest.approx((rate.value, rate.low))
        if name == "x":
            assert against.systems[name].mean is None
            continue
        both = mine & ((given["system_a"] == "x") | (given["system_b"] == "x"))
        rate = btdagg.estimate(**turned_to(given, name, both), model=MODEL).estimates["win rate"]
        one = against.systems[name].mean
        assert (one.value, one.high) == pytest.approx((rate.value, rate.high))


def test_a_baseline_has_strength_0_and_changes_no_difference():
    given, _ = drawn()
    found = estimate_systems(**given, model=MODEL)
    against = estimate_systems(**given, model=MODEL, baseline="x")
    of_baseline = against.systems["x"].strength
    assert (of_baseline.low, of_baseline.estimate, of_baseline.high) == (0, 0, 0)
    moved = strengths_of(found) - found.systems["x"].strength.estimate
    assert strengths_of(against) == pytest.approx(moved)
    assert against.pvalues == pytest.approx(found.pvalues, rel=1e-6)
    names = list(found.systems)
    v, x = names.index("v"), names.index("x")
    c = found.covariance
    error = (c[v, v] + c[x, x] - 2 * c[v, x]) ** 0.5
    one = against.systems["v"].strength
    assert (one.high - one.low) / error == pytest.approx(2 * 1.98, rel=0.03)


def test_ranks_are_clusters_of_corrected_tests():
    given, _ = drawn(400, seed=4)
    found = estimate_systems(**given, model=MODEL)
    strengths = [one.strength.estimate for one in found.systems.values()]
    assert all(one >= other for one, other in pairwise(strengths))
    c = found.covariance
    t = (strengths[0] - strengths[1]) / (c[0, 0] + c[1, 1] - 2 * c[0, 1]) ** 0.5
    raw = 2 * stats.t.sf(t, found.n_groups - 1)
    assert raw <= found.pvalues[0, 1] <= 10 * raw
    ranks = btdagg.rank_clusters(-np.array(strengths), found.pvalues, 0.05)
    assert [one.rank for one in found.systems.values()] == ranks.tolist()
    assert ranks[0] == 1
    assert ranks[-1] > 1
    tied = [one.is_tied for one in found.systems.values()]
    assert tied == [True, *(found.pvalues[0, 1:] >= 0.05)]
    answer, *lines = str(found).splitlines()
    names = " and ".join(name for name, one in found.systems.items() if one.is_tied)
    assert answer == (
        f"{names} may be the strongest of 5 systems: they do not differ significantly"
    )
    frame = found.to_frame()
    assert frame["system"].to_list() == [*found.systems]
    assert frame["strength"].to_list() == strengths
    assert frame.to_dicts() == [
        {name: own.get(name) for name in frame.columns} for own in found.as_dict()["systems"]
    ]
    assert lines[0].split() == ["system", "rank", "items", "labels", "win", "rate", "strength"]
    assert lines[1].split()[:2] == ["v", "1"]


def test_probabilities_weigh_labels():
    given, gold = drawn(0, seed=6)
    rng = np.random.default_rng(6)
    chance = np.where(given["counts"][:, 2] > 3, 0.4, 0.1)
    chosen = rng.random(2000) < chance
    given["labels"] = np.where(chosen, gold, np.nan)
    noise = rng.multinomial(8, [0.3, 0.4, 0.3], 2000)
    found = estimate_systems(**{**given, "counts": noise}, probabilities=chance, model=MODEL)
    weights = (1 / chance)[chosen] / (1 / chance)[chosen].sum()
    design = design_of(given["system_a"][chosen], given["system_b"][chosen])
    expected = plain_fit(design, np.eye(3)[gold[chosen] + 1], weights)
    assert found.weight < 0.05
    assert strengths_of(found) == pytest.approx(expected[:-1], abs=0.03)
    # Labels were chosen for being won by A: without the probabilities there are more wins of A.
    weighed = estimate_systems(**given, probabilities=chance, model=MODEL)
    truth = plain_fit(
        design_of(given["system_a"], given["system_b"]), np.eye(3)[gold + 1], np.full(2000, 5e-4)
    )
    assert strengths_of(weighed) == pytest.approx(truth[:-1], abs=0.35)
    assert weighed.weight > 0.5


def small(**change):
    """Three systems, all labelled, each with a win and a loss against each other."""
    given = {
        "counts": [[1, 2, 5]] * 12,
        "labels": [1, -1, 0, 1] * 3,
        "system_a": list("xxxx" + "yyyy" + "zzzz"),
        "system_b": list("yyyy" + "zzzz" + "xxxx"),
        **change,
    }
    return given


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"system_a": ["x"] * 11}, "system_a"),
        ({"system_a": [*"xxxxyyyyzzz", None]}, "system_a"),
        ({"system_a": [1] * 12}, "system_a and system_b"),  # text and numbers
        ({"system_b": list("yyxyzzzzxxxx")}, "system_b"),  # a system against itself
        ({"baseline": "q"}, "baseline"),
        ({"labels": btdagg.read_labels({"item": ["q"], "label": [1]})}, "counts"),
    ],
)
def test_bad_input_is_named(change, argument):
    estimate_systems(**small())
    with pytest.raises(InputError) as error:
        estimate_systems(**small(**change))
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [1, -1, 0, 1] * 2 + [0] * 4, "system_a": list("xxxxyyyyvvvv"),
          "system_b": list("yyyyzzzzwwww")},
         "by the labels, systems 'v', 'w' are not compared with any other system"),
        ({"labels": [1, -1, 0, 1, 1, 1, 1, 1, -1, -1, -1, -1], "system_a": list("xxxxyyyyzzzz")},
         ("by the labels, system 'z' is without a win or tie against the other systems, "
             "so strengths")),
        ({"labels": [0] * 12}, "by the labels, all comparisons are ties"),
    ],
)  # fmt: skip
def test_strengths_that_have_no_estimate_are_an_error(change, message):
    with pytest.raises(InputError, match=message):
        estimate_systems(**small(**change))


def test_a_system_that_no_label_connects_wants_a_judge_that_is_of_use():
    given, _ = drawn(200, judge="good")
    mine = (given["system_a"] == "z") | (given["system_b"] == "z")
    given["labels"][mine] = np.nan
    found = estimate_systems(**given, model=MODEL)
    assert np.isfinite(found.systems["z"].strength.high)
    assert any("fewer than 2 labels for 'z'" in text for text in found.remarks)
    contrary = {**given, "counts": given["counts"][:, ::-1]}
    with pytest.raises(InputError, match="by the labels, system 'z' is not compared with any"):
        estimate_systems(**contrary, model=MODEL)


def test_a_system_that_never_meets_the_baseline_has_no_rate_of_these_items():
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 5, (60, 3)) + np.array([0, 0, 1])
    labels = np.where(np.arange(60) < 30, counts.argmax(axis=1) - 1.0, np.nan)
    a = np.tile(["x", "y"], 30)
    b = np.where(a == "x", "y", "z")
    found = estimate_systems(counts, labels, a, b, baseline="x", population="finite")
    rate = found.systems["z"].mean
    assert np.isnan(rate.value)
    assert (rate.low, rate.high) == (0, 1)
