"""Which aggregators differ over splits."""

import numpy as np
import pytest

from btdagg import Protocol, paired_permutation_test, pairwise_pvalues, rank_clusters
from btdagg.datasets import simulate
from btdagg.evaluation import PAPER_TEST, RandomSplits, SplitTest, combine_pvalues, holm
from btdagg.methods import Calibrated, MajorityVote, RoundedMedian
from draws import comparison_of, random_splits

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
METHODS = (Calibrated(), MajorityVote(), RoundedMedian())
SPLITS = RandomSplits(n_splits=5)


@pytest.fixture(scope="module")
def sample():
    return simulate("rb2-factuality", 120, 8, seed=3)


def compared(sample, test, groups=None):
    protocol = Protocol(SPLITS, test)
    return comparison_of(sample.counts, sample.labels, METHODS, groups=groups, protocol=protocol)


@pytest.mark.parametrize("grouped", [False, True])
def test_pvalues_are_those_of_the_permutation_test_on_each_split(sample, grouped):
    groups = np.arange(120) // 4 if grouped else None
    found = compared(sample, SplitTest(), groups)
    for split, (known, left) in enumerate(random_splits(120, n_splits=5, groups=groups)):
        fits = [method.fit(sample.counts[known], sample.labels[known]) for method in METHODS]
        decided = np.stack([fitted.decide(sample.counts[left]) for fitted in fits])
        losses = np.abs(decided - sample.labels[left])
        shared = None if groups is None else groups[left]
        for score, errors in (("mae", losses), ("accuracy", losses > 0)):
            wanted = pairwise_pvalues(errors, groups=shared)
            assert (found.pvalues[score][split] == wanted).all()
            alone = paired_permutation_test(errors[0], errors[1], groups=shared)
            assert wanted[0, 1] == alone.pvalue


@pytest.mark.parametrize(("rule", "correction"), [("twice-median", "holm"), ("mean", "none")])
def test_ranks_are_clusters_of_the_combined_pvalues(sample, rule, correction):
    found = compared(sample, SplitTest(rule=rule, correction=correction, tau=0.1))
    scores = {
        "mae": [method.mae.mean() for method in found.methods],
        "accuracy": [-method.accuracy.mean() for method in found.methods],
    }
    for name, of_methods in scores.items():
        combined = combine_pvalues(found.pvalues[name], rule=rule)
        if correction == "holm":
            combined = holm(combined)
        ranking = found.rankings[name]
        assert (ranking.pvalues == combined).all()
        assert (ranking.ranks == rank_clusters(of_methods, combined, 0.1)).all()
        # Tied are those that do not differ from the best, whatever their cluster.
        best = np.argmin(of_methods)
        assert ranking.tied.tolist() == [
            place == best or combined[best, place] >= 0.1 for place in range(3)
        ]


def test_the_papers_reading_draws_a_hundred_sign_patterns(sample):
    found = compared(sample, PAPER_TEST)
    hits = found.pvalues["mae"][:, 0, 1] * 101
    assert hits == pytest.approx(np.round(hits), abs=1e-9)
    assert (found.rankings["mae"].pvalues[0, 1] == found.pvalues["mae"][:, 0, 1].mean()).all()


@pytest.mark.soak
def test_combined_pvalues_of_overlapping_splits_do_not_call_too_often():
    rng = np.random.default_rng(0)
    splits = [rng.permutation(60)[:40] for _ in range(10)]
    losses = rng.integers(0, 2, size=(1500, 2, 60))
    combined = np.array([
        combine_pvalues(np.array([pairwise_pvalues(both[:, split]) for split in splits]))[0, 1]
        for both in losses
    ])  # fmt: skip
    for level in (0.05, 0.1, 0.2):
        assert (combined <= level).mean() < level + 5 * (level * (1 - level) / 1500) ** 0.5
