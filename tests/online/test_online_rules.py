"""Stopping rules against brute force and simulation."""

import pickle
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import btdagg
from btdagg import DavidsonModel, InputError
from btdagg.datasets import simulate
from btdagg.model import CalibrationWarning
from btdagg.online import StoppingRule, VoteDistribution, fit_votes, plan

models = st.builds(
    DavidsonModel,
    beta=st.floats(0.05, 5),
    eta0=st.floats(-4, 7),
    gamma=st.floats(-3, 3),
    alpha=st.sampled_from([0.5, 1.0, 2.0]),
    kappa=st.sampled_from([0.5, 1.0]),
)
alphas = st.tuples(*[st.floats(0.05, 30)] * 3)
distributions = st.lists(st.tuples(st.floats(0.1, 3), alphas), min_size=1, max_size=3).map(
    VoteDistribution
)
MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
LOSSLESS = StoppingRule.lossless(MODEL, 8)
VOTES = VoteDistribution([(0.5, (0.3, 0.5, 4.0)), (0.5, (2.0, 3.0, 2.0))])


def states(n, exactly=False):
    totals = [n] if exactly else range(n + 1)
    return [
        (m, t, total - m - t)
        for total in totals
        for m in range(total + 1)
        for t in range(total + 1 - m)
    ]


def steps_of(n):
    return st.sampled_from([step for step in (1, 2, 3, 4, n) if n % step == 0])


def calibrated(counts, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return btdagg.calibrate(counts, labels).model


# Lossless


# Forecasts against a recursion in exact fractions, conditional rather than joint


def brute_force(model, n, step, votes, kind, value):
    """Expected votes, change and error from each state, by the textbook recursion."""
    components = [
        (Fraction(weight) / 2, [Fraction(a) for a in alpha[::side]])
        for weight, alpha in votes.components
        for side in (1, -1)
    ]

    def rising(a, k):
        out = Fraction(1)
        for i in range(k):
            out *= a + i
        return out

    @cache
    def posterior(state):
        chances = []
        for weight, alpha in components:
            chance = weight / rising(sum(alpha), sum(state))
            for a, k in zip(alpha, state, strict=True):
                chance *= rising(a, k)
            chances.append(chance)
        total = sum(chances)
        return [chance / total for chance in chances]

    @cache
    def following(state):
        total = sum(state)
        out = []
        for column in range(3):
            chance = sum(
                w * (alpha[column] + state[column]) / (sum(alpha) + total)
                for w, (_, alpha) in zip(posterior(state), components, strict=True)
            )
            after = tuple(k + (place == column) for place, k in enumerate(state))
            out.append((chance, after))
        return out

    def average(of, state):
        parts = [(chance, of(after)) for chance, after in following(state)]
        return [sum(c * p[i] for c, p in parts) for i in range(len(parts[0][1]))]

    @cache
    def finals(state):
        """Chances of the labels of all votes, and expected errors of the answers."""
        if sum(state) == n:
            labels = [Fraction(model.decide_one(*state) == label) for label in (-1, 0, 1)]
            return labels + [Fraction(float(r)) for r in model.risks([state])[0]]
        return average(finals, state)

    @cache
    def followed(state):
        """Votes left, change, error, whether it stops, label."""
        labels, errors = finals(state)[:3], finals(state)[3:]
        if kind == "cost-optimal" and sum(state) < n:
            column = min((1, 0, 2), key=lambda c: errors[c])
        else:
            column = max((1, 0, 2), key=lambda c: labels[c])
            if column != 1 and labels[0] == labels[2]:
                column = 1
        stop = [0, 1 - labels[column], errors[column]]
        if sum(state) == n:
            return [*stop, True, column - 1]
        left, change, error = average(lambda after: followed(after)[:3], state)
        stops = (
            sum(state) % step == 0
            and {
                "lossless": stop[1] == 0,
                "risk-bounded": stop[1] < (value or 0),
                "cost-optimal": stop[2]
                <= error + Fraction(value or 0) * (1 + left) + Fraction(1, 10**12),
            }[kind]
        )
        return [*(stop if stops else [1 + left, change, error]), stops, column - 1]

    return followed


@given(models, distributions, st.integers(1, 6), st.data())
@settings(max_examples=40, deadline=None)
def test_rules_and_forecasts_are_those_of_a_recursion_in_fractions(model, votes, n, data):
    step = data.draw(steps_of(n))
    kind = data.draw(st.sampled_from(["lossless", "risk-bounded", "cost-optimal"]))
    value = data.draw(st.floats(0.001, 0.4)) if kind != "lossless" else None
    names = {"risk-bounded": "epsilon", "cost-optimal": "price"}
    given_value = {} if kind == "lossless" else {names[kind]: value}
    rule = StoppingRule(kind, model, n, step, votes, **given_value)
    wanted = brute_force(model, n, step, votes, kind, value)
    counts = states(n)
    by_hand = [wanted(row) for row in counts]
    np.testing.assert_array_equal(rule.stops(counts), [row[3] for row in by_hand])
    stopped = [place for place, row in enumerate(by_hand) if row[3]]
    np.testing.assert_array_equal(
        rule.decide(counts)[stopped], [row[4] for row in by_hand if row[3]]
    )
    for column, forecast in enumerate((rule.votes_left, rule.change_risk, rule.error)):
        expected = [float(row[column]) for row in by_hand]
        np.testing.assert_allclose(forecast(counts), expected, rtol=1e-10, atol=1e-12)
    start = (rule.expected_votes, rule.change_rate, rule.expected_mae)
    np.testing.assert_allclose(start, [float(x) for x in wanted((0, 0, 0))[:3]], 1e-10, 1e-12)


@given(models, distributions, st.integers(1, 12), st.data())
@settings(max_examples=60, deadline=None)
def test_votes_to_ask_at_once_are_the_fewest_that_may_settle(model, votes, n, data):
    step = data.draw(steps_of(n))
    kind = data.draw(st.sampled_from(["lossless", "risk-bounded", "cost-optimal"]))
    rule = {
        "lossless": lambda: StoppingRule.lossless(model, n, step=step),
        "risk-bounded": lambda: StoppingRule.risk_bounded(model, n, votes, step=step),
        "cost-optimal": lambda: StoppingRule.cost_optimal(model, n, votes, price=0.01, step=step),
    }[kind]()

    @cache
    def fewest(minus, tie, plus):
        if rule.stops_one(minus, tie, plus):
            return 0
        after = ((minus + 1, tie, plus), (minus, tie + 1, plus), (minus, tie, plus + 1))
        return 1 + min(fewest(*counts) for counts in after)

    counts = np.array(states(n))
    asked = rule.votes_to_ask(counts)
    assert asked.tolist() == [fewest(*row) for row in counts.tolist()]
    assert asked.tolist() == [rule.votes_to_ask_one(*row) for row in counts.tolist()]
    assert asked.dtype == np.int64
    np.testing.assert_array_equal(asked == 0, rule.stops(counts))
    assert (asked + counts.sum(axis=1) <= n).all()
    assert ((asked + counts.sum(axis=1))[asked > 0] % step == 0).all()


@given(models, distributions, st.sampled_from([4, 8, 13]))
@settings(max_examples=40, deadline=None)
def test_swapping_a_and_b_mirrors_every_rule_to_the_last_bit(model, votes, n):
    counts = np.array(states(n))
    for rule in (
        StoppingRule.lossless(model, n, votes),
        StoppingRule.risk_bounded(model, n, votes, epsilon=0.1),
        StoppingRule.cost_optimal(model, n, votes, price=0.01),
    ):
        np.testing.assert_array_equal(rule.stops(counts), rule.stops(counts[:, ::-1]))
        np.testing.assert_array_equal(rule.decide(counts), -rule.decide(counts[:, ::-1]))
        for forecast in (rule.votes_left, rule.change_risk, rule.error):
            np.testing.assert_array_equal(forecast(counts), forecast(counts[:, ::-1]))


def test_a_budget_is_kept_and_spent():
    for budget in (0, 1.5, 3, 4.7, 12):
        rule = StoppingRule.cost_optimal(MODEL, 12, VOTES, budget=budget)
        assert rule.expected_votes <= budget
        if rule.price > 1e-9:
            cheaper = StoppingRule.cost_optimal(MODEL, 12, VOTES, price=rule.price * (1 - 1e-6))
            assert cheaper.expected_votes > budget
    errors = [
        StoppingRule.cost_optimal(MODEL, 12, VOTES, budget=b).expected_mae for b in (1, 2, 4, 8)
    ]
    assert errors == sorted(errors, reverse=True)


def log_chances(counts, alpha):
    counts = np.asarray(counts)
    return stats.dirichlet_multinomial.logpmf(counts, np.array(alpha), counts.sum(axis=1))


def chances_of(votes, counts):
    """Chances of counts given their total."""
    return sum(
        weight / 2 * np.exp(log_chances(counts, alpha[::side]))
        for weight, alpha in votes.components
        for side in (1, -1)
    )


def test_chances_of_votes_are_a_distribution_and_fitted_ones_optimal():
    draws = VOTES.draw(50_000, 2, seed=0)
    drawn = np.stack([(draws == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)
    pairs = states(2, exactly=True)
    shares = [(drawn == pair).all(axis=1).mean() for pair in pairs]
    np.testing.assert_allclose(shares, chances_of(VOTES, pairs), atol=0.01)
    judge = simulate("wmt-zh-en", 400, 8, seed=1)
    fitted = fit_votes(judge.counts, judge.labels)
    assert fitted == fit_votes(judge.counts[:, ::-1], -judge.labels)
    # Each component's likelihood, prior included, is a summit.
    (_, tied), (_, won) = fitted.components
    assert tied[0] == tied[2]

    def posterior(alpha, rows):
        free = alpha[:2] if alpha[0] == alpha[2] else alpha
        value = log_chances(rows, alpha).sum()
        return value - 0.05 * (np.log(free) ** 2).sum()

    wins = np.concatenate(
        [judge.counts[judge.labels == 1], judge.counts[judge.labels == -1][:, ::-1]]
    )
    ties = judge.counts[judge.labels == 0]
    for factor in (0.99, 1.01):
        for column in range(3):
            moved = list(won)
            moved[column] *= factor
            assert posterior(moved, wins) < posterior(won, wins)
        side, tie, _ = tied
        for moved in ((side * factor, tie, side * factor), (side, tie * factor, side)):
            assert posterior(moved, ties) < posterior(tied, ties)


# Planner


def test_a_plan_says_what_is_then_seen():
    judge = simulate("wmt-zh-en", 3000, 12, seed=5)
    planned = plan(
        judge.first(8),
        judge.labels,
        n_items=1000,
        n_votes=(2, 4, 8, 12),
        n_labels=(25, 50, 100),
        price=0.001,
    )
    of_all = [row for row in planned.budgets if row.rule == "all votes"]
    assert [row.votes for row in of_all] == [2, 4, 8, 12]
    errors = [row.mae for row in of_all]
    assert (np.diff(errors) < 0.002).all()
    for n, error in zip((4, 8, 12), errors[1:], strict=True):
        counts = judge.first(n)
        model = calibrated(counts, judge.labels)
        seen = btdagg.mean_absolute_error(judge.labels, model.decide(counts))
        assert abs(seen - error) < 0.03
    costs = dict(planned.labels)
    assert costs[25] > costs[100] >= 0
    for row in planned.budgets:
        assert row.calls == pytest.approx(1000 * row.votes + 50 * row.n)
        assert row.price == pytest.approx(row.calls / 1000)
    assert "risk-bounded" in str(planned)


def test_votes_of_a_pilot_are_thinned_to_fewer_and_its_error_carried_to_more():
    judge = simulate("rb2-math", 100, 8, seed=2)
    pilot = judge.counts.copy()
    pilot[:10] //= 2  # items keep what votes they have
    rows = plan(pilot, judge.labels, n_items=1, n_votes=[2, 8, 16], n_labels=[5]).budgets
    few, own, more = (row for row in rows if row.rule == "all votes")
    assert few.mae > own.mae > more.mae
    assert own.high - own.low == pytest.approx(more.high - more.low)


# Values


def test_rules_are_values():
    rule = StoppingRule.risk_bounded(MODEL, 8, VOTES, epsilon=0.1, step=2)
    for other in (
        StoppingRule.from_json(rule.to_json()),
        pickle.loads(pickle.dumps(rule)),
        eval(repr(rule)),
    ):
        assert other == rule
        assert hash(other) == hash(rule)
    assert rule != StoppingRule.risk_bounded(MODEL, 8, VOTES, epsilon=0.2, step=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StoppingRule.lossless(MODEL, 9, step=2), "n is 9, expected a multiple of the"),
        (lambda: StoppingRule.cost_optimal(MODEL, 8, VOTES), "price is nothing, expected a price"),
        (lambda: LOSSLESS.expected_votes, "votes is nothing, expected the distribution of the"),
        (lambda: LOSSLESS.stops([[1, 2, 3], [4, 4, 1]]), r"counts\[1\] has 9 votes, expected at"),
        (lambda: LOSSLESS.follow([[1] * 8, [2] * 8]), r"votes\[1, 0\] is 2.0, expected a number"),
        (lambda: plan([[1, 2, 3]], [1], n_items=1, n_labels=()), r"n_labels is \(\), expected at"),
    ],
)
def test_messages(make, message):
    with pytest.raises(InputError, match=message):
        make()
