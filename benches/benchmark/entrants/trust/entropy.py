"""Majority labels below a threshold on the entropy of the votes, chosen on the labelled items."""

import numpy as np
from entrants.labels import majority
from entrants.trust.vote_share import chosen

NAME = "fixed sequence, entropy"


def trusted(items, agreement):
    decided = majority.decide(items, items)
    if decided is None:
        return None
    shares = items.counts / items.counts.sum(axis=1, keepdims=True)
    terms = shares * np.log(np.where(shares > 0, shares, 1.0))
    return decided, chosen(decided, np.round(terms.sum(axis=1), 9), items.labels, agreement)
