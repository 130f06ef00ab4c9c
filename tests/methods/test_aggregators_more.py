"""The paper's other aggregators: slow definitions, symmetry, tie rules, items."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import (
    InputError,
    Protocol,
    calibrate,
    evaluate,
    fit_prior,
    majority_vote,
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
from btdagg.votes import Confidences, as_items
from draws import comparison_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

SCORES = ("mean", "min", "product")
NEEDING = ("soft-sc-mean", "soft-sc-min", "soft-sc-product", "ci-sc", "greedy", "few-shot", "gsa",
           "usc")  # fmt: skip
NAMES = ("neighbours", "weak", "davidson", "majority", *NEEDING[:4], "median", "mean", "threshold",
         "isotonic", "constant", *NEEDING[4:])  # fmt: skip
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
        assert items.pooled.tolist() == counts.tolist() == np.asarray(items).tolist()
    one = votes.items(n_votes=1, decisions=["gsa"])
    assert one.facts["confidences"].total.tolist() == [[1, 0, 0], [0, 0.25, 0]]
    assert Decided("gsa").decide(one).tolist() == [-1, 0]
    with pytest.raises(InputError, match="no column 'gsa'; found item, sample, vote"):
        votes.items(decisions=["gsa"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decisions": {"gsa": [2]}}, r"decisions of gsa\[0\] is 2.0, expected -1, 0 or 1, or NaN"),
        (
            {"confidences": Confidences(*[np.ones((2, 3))] * 3)},
            "confidences has 2 rows, expected 1 as in counts",
        ),
    ],
)
def test_columns_that_does_not_fit_together_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        as_items(np.array([[1, 2, 3]]), **given)


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
    evidence = as_items(np.ones((3, 3)), decisions={"gsa": [1, np.nan, np.nan]})
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


# The protocol


def test_names_of_methods():
    names = [aggregator.name for aggregator in by_name([*NAMES])]
    assert len(set(names)) == len(NAMES)
    assert by_name([" Majority", "davidson"]) == (MajorityVote(), Calibrated(prior=None))
    with pytest.raises(InputError, match="no method 'mode', expected one of neighbours, weak") as e:
        by_name(["majority", "mode"])
    assert ", ".join(NAMES) in str(e.value)
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


@pytest.mark.parametrize("name", NAMES)
def test_what_an_aggregator_lacks_it_asks_for(name):
    (method,) = by_name([name])
    counts, labels = [[3, 0, 0], [0, 3, 0], [0, 0, 3], [1, 1, 1]], [-1, 0, 1, 0]
    if name == "neighbours":
        with pytest.raises(InputError, match="votes of other tasks"):
            method.fit(counts, labels)
        method = method.among(fit_prior([(counts, labels)])).fit(counts, labels)
        assert len(method.decide(counts)) == 4
    elif name in NEEDING:
        with pytest.raises(InputError):
            method.decide(counts)
        rest = Confidences(*np.ones((3, 4, 3)))
        decided = dict.fromkeys(("greedy", "few_shot", "gsa", "usc"), labels)
        assert len(method.decide(as_items(counts, confidences=rest, decisions=decided))) == 4
    else:
        assert len(method.fit(counts, labels).decide(counts)) == 4
