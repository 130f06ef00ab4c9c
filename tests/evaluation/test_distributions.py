"""Confusion matrices and label distributions over splits; simulated and real votes."""

from collections import Counter

import numpy as np
import pytest

from btdagg.methods import Calibrated, MajorityVote, RoundedMedian
from btdagg.votes import as_items
from draws import distributions, random_splits

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")


def some_items(labels=(-1, 0, 1), n_items=120):
    rng = np.random.default_rng(6)
    gold = rng.choice(labels, n_items)
    p = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])[gold + 1]
    return as_items([rng.multinomial(5, row) for row in p], gold, np.arange(n_items) // 3)


def test_matrices_and_shares_equal_a_plain_count():
    items = some_items()
    methods = [Calibrated(), MajorityVote(), RoundedMedian()]
    found = distributions(items, methods, share=0.2, n_splits=4, seed=2)
    splits = list(random_splits(120, share=0.2, n_splits=4, seed=2, groups=items.group))
    for method, confusion in zip(methods, found.methods, strict=True):
        assert confusion.name == method.name
        given, gold = [], []
        for number, (chosen, left) in enumerate(splits):
            fitted = method.fit(items.pooled[chosen], items.label[chosen])
            pairs = Counter(
                (int(items.label[i]), int(fitted.decide(items.pooled[[i]])[0])) for i in left
            )
            for (label, predicted), count in pairs.items():
                assert confusion.matrices[number, label + 1, predicted + 1] == count
            assert confusion.matrices[number].sum() == len(left)
            gold.append([sum(c for (g, _), c in pairs.items() if g == x) for x in (-1, 0, 1)])
            given.append([sum(c for (_, p), c in pairs.items() if p == x) for x in (-1, 0, 1)])
        sizes = np.array([[len(left)] for _, left in splits])
        np.testing.assert_allclose(confusion.gold, (gold / sizes).mean(axis=0))
        np.testing.assert_allclose(confusion.predicted, (given / sizes).mean(axis=0))
        np.testing.assert_allclose(confusion.counts.sum(), sizes.mean())
        np.testing.assert_allclose(confusion.percentages.sum(axis=1), 100)
        np.testing.assert_allclose(
            confusion.percentages[2, 1], 100 * confusion.counts[2, 1] / confusion.counts[2].sum()
        )
    np.testing.assert_array_equal(found.gold, found.methods[1].gold)


def test_a_label_that_no_item_has_has_no_percentages():
    confusion = distributions(some_items(labels=(-1, 1)), n_splits=3).methods[0]
    assert np.isnan(confusion.percentages[1]).all()
    assert np.isfinite(confusion.percentages[[0, 2]]).all()
    assert confusion.gold[1] == 0
