"""Majority vote, until the votes that may still come cannot change it."""

from dataclasses import replace

import numpy as np
from entrants.labels import majority

NAME = "majority, lossless"


def votes_and_labels(seen, orders):
    """Votes so far (n, votes, J) and the place of the label that most are for (n, votes)."""
    running = np.eye(len(seen.scale.points))[orders].cumsum(axis=1)
    labels = majority.decide(seen, replace(seen, counts=running.reshape(-1, running.shape[2])))
    return running, seen.label_scale.places(labels).reshape(orders.shape)


def followed(seen, orders):
    """How many votes each item takes (n,), its label's place then, and that of all votes."""
    running, labels = votes_and_labels(seen, orders)
    n, most = orders.shape[1], np.sort(running, axis=2)
    lead, left = most[:, :, -1] - most[:, :, -2], n - 1 - np.arange(n)
    # As many votes for a side as for the middle are the middle's.
    middle = seen.scale.mirrored & (2 * labels == running.shape[2] - 1)
    stands = (lead > left) | (middle & (lead >= left) & (lead > 0))
    stands[:, -1] = True
    return stands.argmax(axis=1) + 1, labels[:, -1], labels[:, -1]
