"""Rows in another order change no result: not those of votes, of labels, nor of arrays."""

import numpy as np
import pytest

import btdagg
from btdagg import Protocol, estimate, estimate_systems
from btdagg.datasets import simulate
from btdagg.estimates import not_worse
from btdagg.evaluation import CrossFit, GroupTest, Interval
from btdagg.methods import Calibrated, Isotonic, MajorityVote, Threshold
from draws import comparison_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
N = 60
SAMPLE = simulate("rb2-math", N, 3, seed=4)
COUNTS, LABELS = SAMPLE.counts, SAMPLE.labels
GROUPS = np.array([f"g{number % 23}" for number in range(N)])
OTHER = simulate("rb2-focus", N, 3, seed=5).counts
ORDERS = [np.random.default_rng(seed).permutation(N) for seed in range(3)]
PARTLY = np.where(np.arange(N) % 2, np.nan, LABELS)


def test_items_that_hold_the_same_are_never_all_in_one_fold():
    content = [np.tile([[3, 0, 0]], (N, 1)), np.repeat([1, 0, -1], 20)]
    for _, left in CrossFit(n_folds=10, n_repeats=1).draw(N, np.arange(N), content):
        assert np.bincount(content[1][left] + 1, minlength=3).tolist() == [2, 2, 2]


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_evaluate(groups):
    methods = [
        Calibrated(),
        Calibrated("weak", prior="weak"),
        MajorityVote(),
        Threshold(),
        Isotonic(),
    ]
    protocol = Protocol(CrossFit(n_repeats=2, n_refits=5), GroupTest())

    def compared(order):
        own = None if groups is None else groups[order]
        return comparison_of(COUNTS[order], LABELS[order], methods, groups=own, protocol=protocol)

    first, again = compared(np.arange(N)), compared(ORDERS[0])
    for line, other in zip(first.lines, again.lines, strict=True):
        assert line.keys() == other.keys()
        for name, value in line.items():
            if isinstance(value, Interval):
                assert other[name] == pytest.approx(value, rel=0, abs=1e-12)
            else:
                assert other[name] == value


@pytest.mark.parametrize(("groups", "panel"), [(None, False), (GROUPS, False), (GROUPS, True)])
def test_estimate_and_the_gate(groups, panel):
    counts = np.stack([COUNTS, OTHER], axis=1) if panel else COUNTS
    by = np.where(np.arange(N) % 3, "x", "y")
    chances = np.linspace(0.3, 0.7, N)

    def numbers(order, **more):
        more = {name: values[order] for name, values in more.items()}
        own = None if groups is None else groups[order]
        found = estimate(counts[order], PARTLY[order], groups=own, **more)
        several = [found.estimates, *found.by.values()]
        means = [mean for part in several for mean in part.values()]
        sides = {"candidate": "B", "baseline": "A"}
        gate = not_worse(counts[order], PARTLY[order], **sides, margin=0.1, groups=own)
        told = [value for mean in means for value in (mean.value, mean.low, mean.high, mean.weight)]
        return [*told, gate.lower, gate.upper]

    for more in ({"by": by}, {"probabilities": chances})[panel:]:
        first = numbers(np.arange(N), **more)
        for order in ORDERS[:1]:
            assert numbers(order, **more) == pytest.approx(first, rel=0, abs=1e-12)


def test_estimates_of_systems():
    a = np.array(["x", "x", "y"] * 20)
    b = np.array(["y", "z", "z"] * 20)

    def numbers(order):
        found = estimate_systems(COUNTS[order], PARTLY[order], a[order], b[order])
        strengths = [one.strength for one in found.systems.values()]
        return [value for one in strengths for value in (one.estimate, one.low, one.high)]

    first = numbers(np.arange(N))
    for order in ORDERS:
        assert numbers(order) == pytest.approx(first, rel=0, abs=1e-9)  # a Newton's fit


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_a_panel_to_the_last_bit(groups):
    counts = np.stack([COUNTS, OTHER], axis=1)
    first = btdagg.calibrate_panel(counts, LABELS, groups=groups)
    for order in ORDERS:
        own = None if groups is None else groups[order]
        again = btdagg.calibrate_panel(counts[order], LABELS[order], groups=own)
        assert again.model == first.model
