"""Majority labels above a threshold on their share, chosen on the labelled items.

Conformal risk control (Angelopoulos 2024): errors among the chosen, and one more, are at most
1 - agreement of them and one more. It bounds the mean over draws, not each certificate.
"""

import numpy as np
from entrants.labels import majority

NAME = "conformal, vote share"


def chosen(decided, score, labels, agreement):
    seen = np.flatnonzero(~np.isnan(labels))
    order = seen[np.argsort(-score[seen], kind="stable")]
    wrong, n = (decided[order] != labels[order]).cumsum(), np.arange(1, len(order) + 1)
    last = np.append(np.diff(score[order]) != 0, True)  # items of one score come together
    good = np.flatnonzero(((wrong + 1) / (n + 1) <= 1 - agreement) & last)
    return score >= (score[order[good[-1]]] if len(good) else np.inf)


def trusted(items, agreement):
    decided = majority.decide(items, items)
    if decided is None:
        return None
    share = items.counts.max(axis=1) / items.counts.sum(axis=1)
    return decided, chosen(decided, share, items.labels, agreement)
