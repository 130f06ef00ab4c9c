"""Adaptive consistency (Aggarwal 2023): until the leader beats the next with 95% (Beta)."""

import numpy as np
from entrants.calls.majority import votes_and_labels
from scipy import stats

NAME = "adaptive consistency"


def followed(seen, orders):
    running, labels = votes_and_labels(seen, orders)
    first, second = np.sort(running, axis=2)[:, :, :-3:-1].transpose(2, 0, 1)
    stands = stats.beta.sf(0.5, first + 1, second + 1) > 0.95
    stands[:, -1] = True
    stopped = stands.argmax(axis=1)
    return stopped + 1, labels[np.arange(len(orders)), stopped], labels[:, -1]
