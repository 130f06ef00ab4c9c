"""Majority vote, until the votes that may still come cannot change it."""

import numpy as np

NAME = "majority, lossless"


def followed(seen, orders):
    """Whether the label of each item stands, after each vote: (n, votes) and labels (n,)."""
    shares = np.eye(int(orders.max()) + 1)[orders]
    running, n = shares.cumsum(axis=1), orders.shape[1]
    away = np.abs(np.arange(shares.shape[2]) - (shares.shape[2] - 1) / 2)
    score = running - 1e-6 * away
    ahead = np.sort(score, axis=2)
    left = n - 1 - np.arange(n)
    stands = ahead[:, :, -1] - ahead[:, :, -2] > left
    stopped = stands.argmax(axis=1)
    every = score[:, -1].argmax(axis=1)
    return stopped + 1, every, every
