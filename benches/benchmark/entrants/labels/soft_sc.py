"""Soft self-consistency: the label whose votes are the surest on the mean (Wang 2024)."""

import numpy as np

NAME, LEAST, WANTS = "Soft-SC, mean", 0, "strong"


def decide(seen, new):
    sums = new.strong.copy()
    sums[:, 1] = new.counts[:, 1] * 0.5  # half of a whole win, the mean strength of a vote
    means = sums / np.maximum(new.counts, 1)
    away = np.abs(np.arange(3) - 1)  # of two as sure the one nearer to the middle, as elsewhere
    return new.label_scale.floats[np.where(new.counts > 0, means - 1e-6 * away, -1).argmax(axis=1)]
