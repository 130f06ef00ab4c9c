"""Which aggregators differ over splits."""

import numpy as np
import pytest

from btdagg import Protocol, paired_permutation_test, rank_clusters
from btdagg.datasets import simulate
from btdagg.evaluation import PAPER_TEST, RandomSplits, SplitTest, combine_pvalues, holm
from btdagg.evaluation.engine import quiet_fit
from btdagg.evaluation.significance import statistically_tied
from btdagg.methods import Calibrated, MajorityVote, RoundedMedian
from draws import comparison_of, random_splits

METHODS = (Calibrated(), MajorityVote(), RoundedMedian())
N_SPLITS = 5


@pytest.fixture(scope="module")
def sample():
    return simulate("rb2-factuality", 120, 8, seed=3)


def losses_by_hand(sample, groups=None):
    """Absolute errors on the evaluation set of each split, and its items."""
    splits = random_splits(len(sample.labels), n_splits=N_SPLITS, groups=groups)
    for calibration, evaluation in splits:
        decided = [
            quiet_fit(method, sample.counts[calibration], sample.labels[calibration]).decide(
                sample.counts[evaluation]
            )
            for method in METHODS
        ]
        yield np.abs(np.stack(decided) - sample.labels[evaluation]), evaluation


@pytest.mark.parametrize("grouped", [False, True])
def test_pvalues_are_those_of_the_permutation_test_on_each_split(sample, grouped):
    groups = np.arange(120) // 4 if grouped else None
    found = comparison_of(
        sample.counts,
        sample.labels,
        METHODS,
        groups=groups,
        protocol=Protocol(RandomSplits(n_splits=N_SPLITS)),
    )
    assert found.pvalues["mae"].shape == found.pvalues["accuracy"].shape == (N_SPLITS, 3, 3)
    for split, (losses, items) in enumerate(losses_by_hand(sample, groups)):
        shared = None if groups is None else groups[items]
        for one in range(3):
            for other in range(one):
                for pvalues, errors in (
                    (found.pvalues["mae"], losses),
                    (found.pvalues["accuracy"], losses > 0),
                ):
                    alone = paired_permutation_test(errors[one], errors[other], groups=shared)
                    assert alone.method == "exact"
                    assert pvalues[split, one, other] == alone.pvalue
                    assert pvalues[split, other, one] == alone.pvalue


@pytest.mark.parametrize("rule", ["twice-median", "mean"])
@pytest.mark.parametrize("correction", ["none", "holm"])
def test_ranks_are_clusters_of_the_combined_pvalues(sample, rule, correction):
    test = SplitTest(rule=rule, correction=correction, tau=0.1)
    found = comparison_of(
        sample.counts,
        sample.labels,
        METHODS,
        protocol=Protocol(RandomSplits(n_splits=N_SPLITS), test),
    )
    mae = [method.mae.mean() for method in found.methods]
    accuracy = [-method.accuracy.mean() for method in found.methods]
    for ranking, pvalues, scores in (
        (found.rankings["mae"], found.pvalues["mae"], mae),
        (found.rankings["accuracy"], found.pvalues["accuracy"], accuracy),
    ):
        combined = combine_pvalues(pvalues, rule=rule)
        if correction == "holm":
            combined = holm(combined)
        assert (ranking.pvalues == combined).all()
        assert (ranking.ranks == rank_clusters(scores, combined, 0.1)).all()
        assert (ranking.tied == statistically_tied(scores, combined, 0.1)).all()


def test_the_papers_reading_draws_a_hundred_sign_patterns(sample):
    found = comparison_of(
        sample.counts,
        sample.labels,
        METHODS,
        protocol=Protocol(RandomSplits(n_splits=N_SPLITS), PAPER_TEST),
    )
    hits = found.pvalues["mae"][:, 0, 1] * 101
    assert hits == pytest.approx(np.round(hits), abs=1e-9)
    assert (found.rankings["mae"].pvalues[0, 1] == found.pvalues["mae"][:, 0, 1].mean()).all()
