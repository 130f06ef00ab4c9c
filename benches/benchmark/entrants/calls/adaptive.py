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
    decided = running[np.arange(len(orders)), stopped].argmax(axis=1)
    return stopped + 1, decided, running[:, -1].argmax(axis=1)
