"""Counts and labels that several tests draw or list."""

import numpy as np

from btdagg.evaluation import Protocol, RandomSplits, compare


def triples(n):
    for votes in range(n + 1):
        for minus in range(votes + 1):
            yield from ((minus, tie, votes - minus - tie) for tie in range(votes - minus + 1))


def drawn(n_items, n_labels, lead, seed=0):
    """Counts, and labels with NaN, of which so much more are for A than for B."""
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n_items, p=[0.4 - lead / 2, 0.2, 0.4 + lead / 2])
    seen = gold[:, None] + rng.normal(0, 2, (n_items, 8))
    votes = np.where(np.abs(seen) < 0.5, 0, np.sign(seen))
    counts = np.stack([(votes == value).sum(axis=1) for value in (-1, 0, 1)], axis=1)
    return counts, np.where(np.arange(n_items) < n_labels, gold, np.nan)


def random_splits(n_items, *, groups=None, **settings):
    return RandomSplits(**settings).draw(n_items, groups)


def distributions(items, aggregators=None, **settings):
    """Confusion matrices on random splits, untested."""
    protocol = Protocol(RandomSplits(**settings), None)
    return compare(
        items.evidence, items.labels, aggregators, groups=items.groups, protocol=protocol
    )
