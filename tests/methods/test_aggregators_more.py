"""The paper's other aggregators: slow definitions, symmetry, tie rules, items."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import (
    Bounds,
    InputError,
    Protocol,
    calibrate,
    evaluate,
    fit_prior,
    majority_vote,
    mean_absolute_error,
    read_labels,
    read_votes,
)
from btdagg.datasets import simulate
from btdagg.evaluation import RandomSplits
from btdagg.methods import (
    Calibrated,
    Decided,
    Isotonic,
    MajorityVote,
    SoftSelfConsistency,
    by_name,
    voting_behaviour,
)
from btdagg.methods.base import needs_of
from btdagg.methods.registry import AGGREGATORS
from btdagg.model import calibrate_by_mae
from btdagg.votes import Confidences, Items
from draws import comparison_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

SCORES = ("mean", "min", "product")
WEIGHTED = [*(SoftSelfConsistency(score) for score in SCORES), SoftSelfConsistency("sum")]


def read(items, decisions=(), **more):
    """Votes of a mapping of item to (vote, confidence) pairs."""
    rows = [(item, *pair) for item, pairs in items.items() for pair in pairs]
    item, vote, confidence = zip(*rows, strict=True)
    columns = {"item": item, "vote": vote, "confidence": confidence, **more}
    return read_votes(columns).items(decisions=decisions)


def by_label(pairs):
    return {label: [c for vote, c in pairs if vote == label] for label in (-1, 0, 1)}


def winner(scores):
    """Label of the highest score, 0 where it is shared up to rounding; scores by label."""
    best = max(scores.values(), default=0)
    shared = [label for label, score in scores.items() if math.isclose(score, best, rel_tol=1e-9)]
    return shared[0] if len(shared) == 1 else 0


SLOW = {"mean": lambda c: math.fsum(c) / len(c), "min": min, "product": math.prod}


def slow(aggregator, pairs):
    if aggregator.score == "sum":
        return winner({label: math.fsum(c) for label, c in by_label(pairs).items()})
    score = SLOW[aggregator.score]
    return winner({label: score(c) for label, c in by_label(pairs).items() if c})


# Numbers with which sums, means and products of different votes are often equal, and others.
confidences = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0]) | st.floats(0.01, 1)
some_votes = st.lists(st.tuples(st.sampled_from([-1, 0, 1]), confidences), min_size=1, max_size=9)
some_items = st.lists(some_votes, min_size=1, max_size=5)


# Confidences


@pytest.mark.parametrize("aggregator", WEIGHTED, ids=lambda a: a.name)
@given(items=some_items)
@settings(deadline=None, max_examples=25)
def test_confidences_decide_by_definition_mirrored_and_in_any_order(aggregator, items):
    labels = aggregator.decide(read(dict(enumerate(items))))
    assert labels.dtype == np.int8
    assert labels.tolist() == [slow(aggregator, pairs) for pairs in items]
    turned = {key: [(-vote, c) for vote, c in pairs[::-1]] for key, pairs in enumerate(items)}
    assert aggregator.decide(read(turned)).tolist() == (-labels).tolist()


def test_a_label_without_votes_is_out_of_the_question():
    only = read({"plus": [(1, 0.0)], "missing": [(None, 0.9)], "minus": [(-1, 0.0), (-1, 0.0)]})
    for score in SCORES:
        assert SoftSelfConsistency(score).decide(only).tolist() == [1, 0, -1]
    assert SoftSelfConsistency("sum").decide(only).tolist() == [0, 0, 0]


def test_products_do_not_underflow():
    evidence = read({"x": [(1, 0.1)] * 400 + [(-1, 0.1)] * 401, "y": [(-1, 0.0), (1, 1e-300)] * 3})
    assert SoftSelfConsistency("product").decide(evidence).tolist() == [1, 1]


def test_missing_confidences_are_named():
    holes = read({"x": [(1, 0.5)], "y": [(0, 0.5), (1, 0.5), (1, None)]})
    with pytest.raises(InputError, match=r"item 'y' has a vote \(plus\) without confidence"):
        SoftSelfConsistency().decide(holes)
    assert majority_vote(holes).tolist() == [1, 1]


# Items


def test_the_first_votes_of_an_item_decide_it():
    votes = read_votes({
        "item": ["x", "y", "x", "x", "y"], "sample": [2, 0, 0, 1, 1],
        "vote": [1, 0, None, -1, 0], "confidence": [0.5, 0.25, 0.75, 1.0, None],
        "gsa_1": ["B", "tie", None, "B", None],
    })  # fmt: skip
    for n_votes in (None, 1, 2):
        items = votes.items(n_votes=n_votes)
        wanted_ids, counts = votes.counts(n_votes)
        assert items.ids.tolist() == wanted_ids.tolist() == ["x", "y"]
        assert items.counts.tolist() == counts.tolist() == np.asarray(items).tolist()
    one = votes.items(n_votes=1, decisions=["gsa"])
    assert one.confidences.total.tolist() == [[1, 0, 0], [0, 0.25, 0]]
    assert Decided("gsa").decide(one).tolist() == [-1, 0]
    with pytest.raises(InputError, match="no column 'gsa'; found item, sample, vote"):
        votes.items(decisions=["gsa"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decisions": {"gsa": [2]}}, r"decisions of gsa\[0\] is 2.0, expected -1, 0 or 1, or NaN"),
        (
            {"confidences": Confidences(*[np.ones((2, 3))] * 3)},
            "confidences.total has 2 rows, expected 1 as in counts",
        ),
    ],
)
def test_columns_that_does_not_fit_together_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        Items.of(np.array([[1, 2, 3]]), **given)


# Decisions of others


def test_decisions_are_read_and_given_back():
    table = {"item": ["x", "x", "y", "z"], "vote": [1, 1, 0, -1], "gsa": ["A", None, "tie", "b"]}
    items = read_votes(table).items(decisions=["gsa"])
    assert Decided("gsa").decide(items).tolist() == [1, 0, -1]
    assert Decided("gsa").name == "GSA"
    wide = read_votes({"item": [1, 2], "a": [1, 2], "same": [0, 0], "b": [3, 0], "usc": [0, 1]})
    assert Decided("usc").decide(wide.items(decisions=["usc"])).tolist() == [0, 1]
    table["gsa"][1] = "B"
    with pytest.raises(InputError) as error:
        read_votes(table).items(decisions=["gsa"])
    assert str(error.value) == (
        "data frame, column gsa: item 'x' has '-1' and '1', expected a column of "
        "items, with one value for all votes of an item"
    )


def test_decisions_that_are_missing_are_named():
    evidence = Items.of(np.ones((3, 3)), decisions={"gsa": [1, np.nan, np.nan]})
    with pytest.raises(InputError, match=r"^'gsa' has no decision for 1 of 2 items, such as 2"):
        Decided("gsa").decide(evidence[[0, 2]])
    assert Decided("gsa").decide(evidence[[0]]).tolist() == [1]


# Isotonic calibration


def slow_isotonic(means, labels, at):
    """Monotone least squares by its min-max formula on the data and its mirror image."""
    xs = np.concatenate([means, -means])
    ys = np.concatenate([labels, -labels]).astype(float)
    knots = sorted(set(xs.tolist()))
    fitted = [
        max(
            min(ys[(xs >= low) & (xs <= high)].mean() for high in knots if high >= knot)
            for low in knots
            if low <= knot
        )
        for knot in knots
    ]
    return np.interp(at, knots, fitted)


counted = st.lists(
    st.tuples(*[st.integers(0, 4)] * 3, st.integers(-1, 1)), min_size=1, max_size=14
).map(np.array)


@given(counted)
@settings(deadline=None, max_examples=60)
def test_isotonic_is_the_monotone_fit_of_the_data_and_its_mirror_image(rows):
    counts, labels = rows[:, :3], rows[:, 3]
    means = (counts[:, 2] - counts[:, 0]) / np.maximum(counts.sum(axis=1), 1)
    grid = np.array([(m, t, p) for m in range(5) for t in range(5) for p in range(5)])
    at = (grid[:, 2] - grid[:, 0]) / np.maximum(grid.sum(axis=1), 1)
    fitted = Isotonic().fit(counts, labels)
    expected = fitted.expected(grid)
    wanted = slow_isotonic(means, labels, at)
    assert expected == pytest.approx(wanted, abs=1e-9)
    decided = fitted.decide(grid)
    # A half goes to the tie.
    assert decided.tolist() == (np.sign(wanted) * (np.abs(wanted) > 0.5 + 1e-9)).tolist()
    mirrored = Isotonic().fit(counts[:, ::-1], -labels).decide(grid[:, ::-1])
    assert mirrored.tolist() == (-decided).tolist()
    order = np.random.default_rng(0).permutation(len(rows))
    assert Isotonic().fit(counts[order], labels[order]).decide(grid).tolist() == decided.tolist()


# Davidson by absolute error


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


def test_three_items_meet_at_one_beta_or_none():
    """What the search for corners rests on; see `btdagg.model.corners`."""
    rng = np.random.default_rng(0)
    beta = np.geomspace(1e-4, 300, 3000)
    for _ in range(300):
        s, weight = np.sort(np.exp(rng.uniform(-4, 1.5, 3))), rng.random()
        lead = [beta * x + np.log(-np.expm1(-2 * beta * x)) for x in s]
        changes = np.diff(np.sign(lead[1] - weight * lead[0] - (1 - weight) * lead[2])) != 0
        once = s[0] ** weight * s[2] ** (1 - weight) < s[1] < weight * s[0] + (1 - weight) * s[2]
        assert changes.sum() == once


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
        assert (direct.model == usual.model) == (direct.mae == before)
        fewer += direct.mae < before
    assert fewer > 0


@given(counted)
@settings(deadline=None, max_examples=10)
def test_the_direct_fit_is_mirrored_and_takes_items_in_any_order(rows):
    counts, labels = rows[:, :3], rows[:, 3]
    found = calibrate_by_mae(counts, labels)
    assert calibrate_by_mae(counts[:, ::-1], -labels).model == found.model
    assert calibrate_by_mae(counts[::-1], labels[::-1]).model == found.model


# The protocol


def test_names_of_methods():
    names = [aggregator.name for aggregator in by_name(list(AGGREGATORS))]
    assert len(set(names)) == len(AGGREGATORS)
    assert by_name([" Majority", "davidson"]) == (MajorityVote(), Calibrated(prior=None))
    with pytest.raises(InputError, match="no method 'mode', expected one of neighbours, weak"):
        by_name(["majority", "mode"])
    with pytest.raises(InputError, match="method 'gsa' is named twice"):
        by_name(["gsa", "gsa"])


def test_behaviour_is_the_decision_on_every_way_votes_can_fall():
    model = calibrate(*[(sample := simulate("rb2-math", 90, 8, seed=1)).counts, sample.labels])
    davidson = Calibrated(calibration=model)
    for aggregator in (MajorityVote(), davidson):
        behaviour = voting_behaviour(aggregator, 6)
        assert behaviour.shape == (7, 7)
        for a, b in itertools.product(range(7), repeat=2):
            if a + b > 6:
                assert behaviour[a, b] is np.ma.masked
            else:
                assert behaviour[a, b] == aggregator.decide([[b, 6 - a - b, a]])[0]
        assert (behaviour == -behaviour.T).all()
    assert voting_behaviour(MajorityVote(), 0).tolist() == [[0]]
    with pytest.raises(InputError, match=r"^CI-SC needs a confidence .*, but there are none"):
        voting_behaviour(SoftSelfConsistency("sum"), 3)


def judged(n_items=60, n_votes=6):
    """Simulated votes with confidences and a decision, and their labels."""
    sample = simulate("wmt-zh-en", n_items, n_votes, seed=5)
    columns = sample.vote_columns()
    columns["confidence"] = np.random.default_rng(0).random(len(columns["item"]))
    for name in ("gsa", "gsa_4"):
        columns[name] = np.repeat(sample.labels, n_votes)
    return columns, sample


def test_all_that_is_known_reaches_the_aggregators_of_an_evaluation():
    columns, sample = judged()
    votes, labels = read_votes(columns), read_labels(sample.label_columns())
    methods = by_name(["ci-sc", "soft-sc-min", "gsa", "majority", "isotonic"])
    settings = {"protocol": Protocol(RandomSplits(n_splits=3, size=20))}
    found = evaluate(votes, labels, aggregators=methods, **settings)
    items = votes.items(decisions=["gsa"])
    assert items.ids.tolist() == sample.items.tolist()
    direct = comparison_of(items, sample.labels, methods, **settings)
    for one, other in zip(found.cells[0].methods, direct.methods, strict=True):
        assert one.mae.tolist() == other.mae.tolist()
    assert not direct.methods[2].mae.any()
    plain = comparison_of(sample.counts, sample.labels, [methods[3]], **settings).methods[0]
    assert plain.mae.tolist() == direct.methods[3].mae.tolist()
    assert evaluate(votes, labels, n_votes=[4], aggregators=methods, **settings).cells
    with pytest.raises(InputError, match="no column 'gsa_3'"):
        evaluate(votes, labels, n_votes=[3], aggregators=methods, **settings)
    with pytest.raises(InputError, match=r"^there are no decisions of 'gsa'; found none$"):
        comparison_of(sample.counts, sample.labels, methods[2:], **settings)


@pytest.mark.parametrize("name", AGGREGATORS)
def test_what_an_aggregator_needs_is_what_it_asks_for(name):
    (method,) = by_name([name])
    counts, labels = [[3, 0, 0], [0, 3, 0], [0, 0, 3], [1, 1, 1]], [-1, 0, 1, 0]
    needs = needs_of(method)
    if needs.votes_alone:
        assert len(method.fit(counts, labels).decide(counts)) == 4
        return
    with pytest.raises(InputError):
        method.decide(counts)
    if needs.neighbours:
        prior = fit_prior([(counts, labels)])
        assert len(method.among(prior).fit(counts, labels).decide(counts)) == 4
        return
    rest = Confidences(*np.ones((3, 4, 3))) if needs.confidences else None
    decided = {needs.decisions: labels} if needs.decisions else {}
    assert len(method.decide(Items.of(counts, confidences=rest, decisions=decided))) == 4
