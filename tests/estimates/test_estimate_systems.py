"""Many systems: against plain fits and other packages."""

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats

import btdagg
from btdagg import InputError, estimate_systems
from btdagg._util.wording import fixed
from btdagg.estimates.strengths import Comparisons, PairStatistics
from btdagg.model.intervals import ParameterInterval
from btdagg.report.tables import systems_table

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


def part_of(given, rows):
    return {name: values[rows] for name, values in given.items()}


def labelled_of(given):
    return part_of(given, ~np.isnan(given["labels"]))


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


def statistics_of(seed=0, ties=1.0):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(4, 1)
    n = rng.uniform(1, 3, 6)
    away = rng.uniform(-0.4, 0.4, 6) * n
    return PairStatistics(
        Comparisons.of(first, second, "abcd"),
        n,
        np.stack([away, ties * rng.uniform(0.1, 0.5, 6) * n], 1),
    )


def test_gradient_and_hessian_are_those_of_the_loss():
    statistics = statistics_of()
    at = np.random.default_rng(0).normal(size=5)

    def differences(function):
        steps = 1e-5 * np.eye(5)
        return np.stack([(function(at + step) - function(at - step)) / 2e-5 for step in steps])

    assert statistics.gradient(at) == pytest.approx(differences(statistics.loss), abs=1e-8)
    assert statistics.hessian(at) == pytest.approx(differences(statistics.gradient), abs=1e-8)


@pytest.mark.parametrize("ties", [1.0, 0.0])
def test_a_fit_is_a_minimum_and_its_hessian_has_an_inverse(ties):
    statistics = statistics_of(ties=ties)
    found = statistics.fit()
    free = 5 if ties else 4
    assert np.isneginf(found[-1]) == (ties == 0)
    assert found[:-1].sum() == pytest.approx(0, abs=1e-14)
    assert np.abs(statistics.gradient(found)[:free]).max() < 1e-12
    hessian, inverse = statistics.hessian(found), statistics.inverse_hessian(found)
    assert hessian @ inverse @ hessian == pytest.approx(hessian, abs=1e-12)
    assert inverse[:-1].sum(axis=0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("beyond", "ties", "sign"), [(0.0, 0.3, 1), (0.3, 0.3, -1)])
def test_a_system_that_won_or_lost_everything_is_named(beyond, ties, sign):
    """Corrected margins can be more than all comparisons."""
    first, second = np.triu_indices(4, 1)
    margins = np.where(first == 0, sign * (1 + beyond), 0.1)
    sums = np.stack([margins, np.where(first == 0, 0, ties)], axis=1)
    statistics = PairStatistics(Comparisons.of(first, second, "abcd"), np.ones(6), sums)
    lacks = "loss" if sign > 0 else "win"
    with pytest.raises(InputError, match=f"system 'a' is without a {lacks} or tie against the"):
        statistics.fit()


def by_hand(given, chances):
    """Corrected strengths, their covariance and the weight, item by item in dense arrays."""
    known = ~np.isnan(given["labels"])
    design = design_of(given["system_a"], given["system_b"])
    soft = np.eye(3)[given["labels"][known].astype(int) + 1]
    f, others = chances[known], chances[~known]
    names = np.unique(given["groups"][known])
    inside = (names[:, None] == given["groups"][known]).astype(float)
    n, m = known.sum(), (~known).sum()

    def scores(rows, labels, parameters):
        away = chances_of(design[rows], parameters) - labels
        return np.column_stack([(away[:, 2] - away[:, 0])[:, None] * design[rows], away[:, 1]])

    def hessian(weights, parameters):
        total = 0
        for rows, share in ((known, (1 - weights) / n), (~known, np.full(m, weights.mean() / m))):
            p = chances_of(design[rows], parameters)
            for x, chance, w in zip(design[rows], p, share, strict=True):
                jacobian = np.stack([np.append(-x, 0), np.append(0 * x, 1), np.append(x, 0)])
                spread = np.diag(chance) - np.outer(chance, chance)
                total = total + w * jacobian.T @ spread @ jacobian
        return np.linalg.pinv(total)

    def errors(parameters):
        def sums(values):
            return inside @ (values - values.mean(axis=0)) / len(values)

        u = scores(~known, others, parameters)
        u = (u - u.mean(axis=0)) / m
        of_group = {g: u[given["groups"][~known] == g].sum(axis=0) for g in set(given["groups"])}
        shared = np.stack([of_group[g] for g in names])
        rest = np.stack([u for g, u in of_group.items() if g not in names])
        of_proxies = sums(scores(known, f, parameters)) - shared
        return sums(scores(known, soft, parameters)), of_proxies, rest

    def tuned(parameters, weights):
        to = hessian(weights, parameters)[:, :-1]
        y, f, rest = (part @ to for part in errors(parameters))

        def weight(kept):
            yf, ff = (y * f).sum(axis=1)[kept], (f * f).sum(axis=1)[kept]
            below = ff.sum() + (rest**2).sum()
            slope = yf.sum() / below
            variance = ((yf - slope * ff) ** 2).sum() / below**2
            return np.clip(slope * (1 - variance / slope**2), 0, 1) if slope > 0 else 0.0

        whole = np.arange(len(names))
        return weight(whole), np.array([weight(whole != g) for g in whole]) @ inside

    def fit(weights):
        both = [design[known], design[known], design[~known]]
        share = [np.full(n, 1 / n), -weights / n, np.full(m, weights.mean() / m)]
        labels = np.concatenate([soft, f, others])
        return plain_fit(np.concatenate(both), labels, np.concatenate(share))

    # What it starts from is a fit to the judge, drawn a little to one third each.
    start = 0.9 * np.concatenate([f, others]) + 0.1 / 3
    both = np.concatenate([design[known], design[~known]])
    share = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    parameters = plain_fit(both, start, share)
    weight, weights = tuned(parameters, np.full(n, 0.5))
    parameters = fit(weights)
    weight, weights = tuned(parameters, weights)
    parameters = fit(weights)
    of_labels, of_proxies, rest = errors(parameters)
    each = np.array([weights[row.argmax()] for row in inside])
    e = (of_labels - each[:, None] * of_proxies) / (1 - inside.mean(axis=1))[:, None]
    g = len(names)
    variance = (g - 1) / g * e.T @ e + weight**2 * rest.T @ rest
    inverse = hessian(weights, parameters)
    return parameters, inverse @ variance @ inverse, weight


def test_corrected_strengths_are_those_found_item_by_item():
    given, _ = drawn(60, n_items=300, seed=5)
    model = btdagg.DavidsonModel(beta=3.0, eta0=0.1, gamma=0.3)
    found = estimate_systems(**given, model=model)
    parameters, covariance, weight = by_hand(given, model.predict_proba(given["counts"]))
    order = np.argsort(np.argsort(-parameters[:-1]))
    assert 0 < weight < 1
    assert found.weight == pytest.approx(weight, abs=1e-4)
    assert strengths_of(found) == pytest.approx(parameters[:-1], abs=1e-4)
    assert np.log(found.tie_parameter.estimate) == pytest.approx(parameters[-1], abs=1e-4)
    expected = covariance[:-1, :-1]
    assert found.covariance[np.ix_(order, order)] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_which_response_is_a_is_all_the_same():
    given, _ = drawn(seed=2)
    turned = np.random.default_rng(3).random(2000) < 0.5
    other = {
        **given,
        "counts": np.where(turned[:, None], given["counts"][:, ::-1], given["counts"]),
        "labels": np.where(turned, -given["labels"], given["labels"]),
        "system_a": np.where(turned, given["system_b"], given["system_a"]),
        "system_b": np.where(turned, given["system_a"], given["system_b"]),
    }
    one, two = estimate_systems(**given), estimate_systems(**other)
    assert list(one.systems) == list(two.systems)
    assert strengths_of(one) == pytest.approx(strengths_of(two), rel=1e-6)
    assert one.covariance == pytest.approx(two.covariance, rel=1e-5)
    for name in one.systems:
        rates = [found.systems[name].mean for found in (one, two)]
        assert rates[0].value == pytest.approx(rates[1].value, rel=1e-6)
        assert rates[0].high == pytest.approx(rates[1].high, rel=1e-6)


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
    assert against.systems["x"].strength == ParameterInterval(0, 0, 0, "baseline")
    moved = strengths_of(found) - found.systems["x"].strength.estimate
    assert strengths_of(against) == pytest.approx(moved)
    assert against.pvalues == pytest.approx(found.pvalues, rel=1e-6)
    names = list(found.systems)
    v, x = names.index("v"), names.index("x")
    c = found.covariance
    error = (c[v, v] + c[x, x] - 2 * c[v, x]) ** 0.5
    one = against.systems["v"].strength
    known = given["groups"][~np.isnan(given["labels"])]
    shares = np.unique(known, return_counts=True)[1] / len(known)
    half = stats.t.ppf(0.975, 1 / (shares**2).sum() - 1) * error
    assert (one.low, one.high) == pytest.approx((one.estimate - half, one.estimate + half))
    table = systems_table(against)
    shown = {row[0].text: row[table.header.index("strength")].text for row in table.rows}
    low, value, high = (fixed(end, signed=True) for end in (one.low, one.estimate, one.high))
    assert (shown["x"], shown["v"]) == ("0.000", f"{value} ({low} to {high})")
    assert "+" in shown["v"]


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
    assert (
        tied
        == btdagg.evaluation.significance.statistically_tied(
            -np.array(strengths), found.pvalues
        ).tolist()
    )
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
    assert re.match(r"1 v: strength \S+ \[.*\], win rate 0\.\d+ \(", lines[0])
    assert lines[5].startswith("tie parameter 0.")


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
        ({"labels": btdagg.read_labels({"item": ["q"], "label": [1]})}, "labels"),
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
