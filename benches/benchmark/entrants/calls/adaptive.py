"""Adaptive consistency (Aggarwal 2023): until the leader beats the next with 95% (Beta)."""

import numpy as np
from scipy import stats

NAME = "adaptive consistency"


def followed(seen, orders):
    shares = np.eye(len(seen.scale.points))[orders]
    running, n = shares.cumsum(axis=1), orders.shape[1]
    first, second = np.sort(running, axis=2)[:, :, :-3:-1].transpose(2, 0, 1)
    stands = stats.beta.sf(0.5, first + 1, second + 1) > 0.95
    stands[:, n - 1] = True
    stopped = stands.argmax(axis=1)
    away = np.abs(np.arange(shares.shape[2]) - (shares.shape[2] - 1) / 2)
    leads = (running - 1e-6 * away).argmax(axis=2)  # of two as many the one nearer to the middle
    return stopped + 1, leads[np.arange(len(orders)), stopped], leads[:, -1]
