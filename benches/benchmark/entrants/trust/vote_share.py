"""Majority labels above a threshold on their share, by fixed-sequence tests on the labelled items.

Thresholds are tried from the highest share of votes down, from the first with LEAST labels on, and
the last whose agreement is shown at 90% confidence (exact binomial test) before one fails is taken:
Learn then Test (Angelopoulos et al. 2021). Each certificate then holds with 90% probability, as
btdagg's does.
"""

import numpy as np
from entrants.labels import majority
from scipy import stats

NAME, LEAST = "fixed sequence, vote share", 30


def chosen(decided, score, labels, agreement):
    seen = np.flatnonzero(~np.isnan(labels))
    order = seen[np.argsort(-score[seen], kind="stable")]
    right, n = (decided[order] == labels[order]).cumsum(), np.arange(1, len(order) + 1)
    tried = np.append(np.diff(score[order]) != 0, True) & (n >= LEAST)
    shown = stats.binom.sf(right - 1, n, agreement) <= 0.1
    failed = (tried & ~shown).cumsum() > 0
    good = np.flatnonzero(tried & ~failed)
    return score >= (score[order[good[-1]]] if len(good) else np.inf)


def trusted(items, agreement):
    decided = majority.decide(items, items)
    if decided is None:
        return None
    share = items.counts.max(axis=1) / items.counts.sum(axis=1)
    return decided, chosen(decided, share, items.labels, agreement)
