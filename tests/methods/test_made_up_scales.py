"""Scales that the package does not name: mirrored ones with values of their own, uneven points."""

import numpy as np
import pytest

import btdagg
from btdagg import Scale
from btdagg.datasets import simulate
from btdagg.integrations.arrow import BatchDecider
from btdagg.integrations.sklearn import VoteClassifier
from btdagg.methods import by_name
from btdagg.online import OnlineTally, StoppingRule, fit_votes, plan
from refusals import refused

SHIFTED = Scale((1, 2, 3), ("low", "same", "high"), mirrored=True)
UNEVEN = Scale((0, 1, 4), ("none", "some", "much"))
SAMPLE = simulate("rb2-math", 80, 8, seed=6)
COUNTS, LABELS = SAMPLE.counts, SAMPLE.labels
TRIPLES = np.array([(m, 8 - m - p, p) for m in range(9) for p in range(9 - m)])


def of(scale, labels):
    """Labels -1, 0 and 1 as points of a scale."""
    return np.array(scale.points)[np.asarray(labels, dtype=int) + 1]


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("name", ["weak", "davidson", "majority", "median", "mean", "threshold",
                                  "isotonic", "constant"])  # fmt: skip
def test_methods_decide_another_mirrored_scale_as_pairs(name):
    scale = SHIFTED
    (usual,), (other,) = by_name([name]), by_name([name], scale)
    wanted = usual.fit(COUNTS[:40], LABELS[:40]).decide(TRIPLES)
    decided = other.fit(COUNTS[:40], of(scale, LABELS[:40])).decide(TRIPLES)
    assert decided.tolist() == of(scale, wanted).tolist()


@pytest.mark.parametrize("name", ["weak", "davidson", "majority", "median", "mean", "isotonic",
                                  "constant"])  # fmt: skip
def test_methods_decide_uneven_points(name):
    (method,) = by_name([name], UNEVEN)
    decided = method.fit(COUNTS, of(UNEVEN, LABELS)).decide(TRIPLES)
    assert set(decided.tolist()) <= set(UNEVEN.points)


@pytest.mark.parametrize("name", ["soft-sc-mean", "soft-sc-min", "soft-sc-product", "ci-sc",
                                  "threshold", "greedy", "few-shot", "gsa", "usc"])  # fmt: skip
def test_methods_of_two_sides_say_why_they_take_no_uneven_points(name):
    sides = "a mirrored scale, with two sides, for"
    with refused("scale", got="0,1,4 (none, some, much)", expected=sides):
        by_name([name], UNEVEN)


@pytest.mark.parametrize("scale", [SHIFTED, UNEVEN])
def test_models_rules_and_classifiers_have_labels_in_points(scale, tmp_path):
    labels = of(scale, LABELS)
    model = btdagg.calibrate(COUNTS, labels, scale=scale).model
    decided = model.decide(TRIPLES)
    if scale.mirrored:
        usual = btdagg.calibrate(COUNTS, LABELS).model
        assert decided.tolist() == of(scale, usual.decide(TRIPLES)).tolist()
        assert model.decide_one(0, 0, 8) == scale.points[-1]
    model.save(tmp_path / "model.json")
    assert type(model).load(tmp_path / "model.json") == model
    again = VoteClassifier(scale).fit(COUNTS, labels)
    assert again.predict(TRIPLES).tolist() == decided.tolist()
    rule = StoppingRule.lossless(model, 8)
    assert rule.decide(TRIPLES).tolist() == decided.tolist()
    assert StoppingRule.from_json(rule.to_json()) == rule
    assert rule.decide_one(*TRIPLES[0]) == decided[0]
    points = np.array(scale.points)
    votes = np.stack([np.repeat(points, row) for row in TRIPLES])
    assert rule.follow(votes).labels.tolist() == decided.tolist()
    pa = pytest.importorskip("pyarrow")
    columns = dict(zip(model.scale.columns, TRIPLES.T, strict=True))
    assert BatchDecider(rule)(pa.table(columns))["label"].to_pylist() == decided.tolist()


@pytest.mark.parametrize("scale", [SHIFTED, UNEVEN])
def test_plans_forecast_as_for_pairs(scale):
    model = btdagg.calibrate(COUNTS, of(scale, LABELS), scale=scale).model
    rule = StoppingRule.lossless(model, 8)
    found = plan(COUNTS, of(scale, LABELS), n_items=100, n_votes=[4, 8], n_labels=[20], rule=rule)
    if scale.mirrored:
        own = StoppingRule.lossless(btdagg.calibrate(COUNTS, LABELS).model, 8)
        usual = plan(COUNTS, LABELS, n_items=100, n_votes=[4, 8], n_labels=[20], rule=own)
        step = scale.points[1] - scale.points[0]
        for one, other in zip(found.budgets, usual.budgets, strict=True):
            assert one.mae == pytest.approx(step * other.mae)
            assert one.votes == pytest.approx(other.votes)


def test_rules_with_a_distribution_and_tallies_take_the_points():
    scale = SHIFTED
    model = btdagg.calibrate(COUNTS, of(scale, LABELS), scale=scale).model
    usual = btdagg.calibrate(COUNTS, LABELS).model
    votes = fit_votes(COUNTS, LABELS)
    assert fit_votes(COUNTS, of(scale, LABELS), scale=scale) == votes
    step = scale.points[1] - scale.points[0]
    assert model.risks(TRIPLES) == pytest.approx(step * usual.risks(TRIPLES))
    for name in ("price", "budget", "epsilon"):
        kind = "risk_bounded" if name == "epsilon" else "cost_optimal"
        value = {"price": 0.01, "budget": 5, "epsilon": 0.05}[name]
        other = getattr(StoppingRule, kind)(usual, 8, votes, **{name: value})
        value *= step if name == "price" else 1
        one = getattr(StoppingRule, kind)(model, 8, votes, **{name: value})
        assert one.expected_mae == pytest.approx(step * other.expected_mae)
        assert one.decide(TRIPLES).tolist() == of(scale, other.decide(TRIPLES)).tolist()
        assert one.stops(TRIPLES).tolist() == other.stops(TRIPLES).tolist()
    rule = StoppingRule.lossless(model, 8)
    tally = OnlineTally(rule=rule)
    low, _, high = scale.points
    tally.add(["a"] * 8 + ["b"] * 8, [high] * 8 + [low] * 8, [*range(8)] * 2)
    settled = tally.settle()
    assert settled.labels.tolist() == tally.decide()[1].tolist() == [high, low]
    assert OnlineTally.from_bytes(tally.to_bytes(), rule=rule).decide()[1].tolist() == [high, low]
