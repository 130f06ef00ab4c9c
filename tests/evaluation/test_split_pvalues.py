"""P-values of splits of the same items, and the tied of a table."""

import numpy as np
import pytest

from btdagg import pairwise_pvalues, rank_clusters
from btdagg.evaluation import combine_pvalues
from btdagg.evaluation.significance import split_pvalues, statistically_tied


def matrix_of(n, significant):
    pvalues = np.full((n, n), 0.5)
    for i, j in significant:
        pvalues[i, j] = pvalues[j, i] = 0.01
    return pvalues


def test_splits_are_pairwise_tests_of_their_own():
    rng = np.random.default_rng(0)
    losses = [rng.integers(0, 3, size=(3, n)) for n in (40, 50, 60)]
    groups = [np.arange(n) // 2 for n in (40, 50, 60)]
    found = split_pvalues(losses, groups=groups)
    assert found.shape == (3, 3, 3)
    for pvalues, split, group in zip(found, losses, groups, strict=True):
        assert (pvalues == pairwise_pvalues(split, groups=group)).all()
    same = np.broadcast_to(rng.random((2, 40)), (6, 2, 40))
    drawn = split_pvalues(same, n_resamples=5000, seed=3)
    assert drawn[0, 0, 1] == pairwise_pvalues(same[0], n_resamples=5000, seed=3)[0, 1]
    assert len(set(drawn[:, 0, 1])) > 1
    assert (split_pvalues(same[:3], n_resamples=5000, seed=3) == drawn[:3]).all()


@pytest.mark.soak
def test_combined_pvalues_of_overlapping_splits_do_not_call_too_often():
    rng = np.random.default_rng(0)
    splits = np.array([rng.permutation(60)[:40] for _ in range(10)])
    losses = rng.integers(0, 2, size=(1500, 2, 60))
    combined = np.array(
        [
            combine_pvalues(split_pvalues(list(both[:, splits].swapaxes(0, 1))))[0, 1]
            for both in losses
        ]
    )
    for level in (0.05, 0.1, 0.2):
        assert (combined <= level).mean() < level + 5 * (level * (1 - level) / 1500) ** 0.5


def test_the_tied_are_those_that_do_not_differ_from_the_best():
    # The last is beyond the first cluster, and yet not told from the best.
    scores, pvalues = [0.1, 0.2, 0.3, 0.4], matrix_of(4, [(0, 1), (1, 3)])
    assert rank_clusters(scores, pvalues).tolist() == [1, 2, 2, 3]
    assert statistically_tied(scores, pvalues).tolist() == [True, False, True, True]
    assert statistically_tied([0.1, 0.1, 0.3], matrix_of(3, [(1, 2), (0, 1)])).tolist() == [
        True,
        True,
        False,
    ]
