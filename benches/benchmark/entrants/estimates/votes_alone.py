"""The mean of the judge's votes, as if they were labels."""

import numpy as np
from entrants.estimates.ppi import votes_of
from scipy import stats

NAME = "votes alone"


def interval(items, values):
    own = votes_of(items, values)
    half = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))
    return own.mean() - half, own.mean() + half
