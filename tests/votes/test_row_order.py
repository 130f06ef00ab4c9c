"""Rows in another order change no result: not those of votes, of labels, nor of arrays."""

import numpy as np
import pytest

import btdagg
from btdagg import Protocol, estimate, estimate_systems
from btdagg._util.folds import deal
from btdagg.datasets import simulate
from btdagg.estimates import not_worse
from btdagg.evaluation import CrossFit, GroupTest
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


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_are_dealt_by_what_items_hold(grouped):
    groups = np.unique(GROUPS, return_inverse=True)[1] if grouped else np.arange(N)
    folds = deal(groups, [COUNTS, LABELS], 5, 1)
    for order in ORDERS:
        own = groups[order] if grouped else groups
        again = deal(own, [COUNTS[order].astype(np.uint8), LABELS[order]], 5, 1)
        rows, others = (
            sorted(map(tuple, np.column_stack([COUNTS[o], LABELS[o], found]).tolist()))
            for o, found in ((np.arange(N), folds), (order, again))
        )
        assert rows == others
        assert not grouped or (again == folds[order]).all()
    sizes = np.bincount(folds if not grouped else [folds[groups == g][0] for g in range(23)])
    assert sizes.max() - sizes.min() <= 1
    assert (deal(groups, [COUNTS, LABELS], 5, 1, 1) != folds).any()
    assert (deal(groups, [COUNTS, LABELS], 5, 2) != folds).any()


def test_items_that_hold_the_same_are_never_all_in_one_fold():
    folds = deal(np.arange(N), [np.tile([[3, 0, 0]], (N, 1)), np.repeat([1, 0, -1], 20)], 10, 0)
    table = np.bincount(10 * np.repeat([0, 1, 2], 20) + folds, minlength=30)
    assert table.tolist() == [2] * 30


def test_swapping_the_sides_of_all_items_changes_no_fold():
    for groups in (np.unique(GROUPS, return_inverse=True)[1], np.arange(N)):
        folds = deal(groups, [COUNTS, LABELS], 5, 1)
        assert (deal(groups, [COUNTS[:, ::-1], -LABELS], 5, 1) == folds).all()


def numbers_of(found):
    """Every number of a comparison that does not belong to a single item."""
    new = found.new_items
    pairs = [(0, other) for other in range(1, len(found.methods))]
    return [
        *(value for one in found.methods for value in (*one.interval(), *one.interval("accuracy"))),
        *(value for one, other in pairs for value in new.difference(one, other)),
        *np.ravel(new.pvalues()),
    ]


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

    first = compared(np.arange(N))
    for order in ORDERS[:1]:
        again = compared(order)
        assert numbers_of(again) == pytest.approx(numbers_of(first), rel=0, abs=1e-12)
        assert (again.rankings["mae"].ranks == first.rankings["mae"].ranks).all()
        if groups is not None:  # without groups, items that hold the same may change places
            of_items = again.new_items.losses["mae"].of_items
            assert (of_items == first.new_items.losses["mae"].of_items[:, order]).all()


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
        assert again.cross_validated == first.cross_validated
