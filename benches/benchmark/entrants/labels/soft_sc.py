"""Soft self-consistency: the label whose votes are the surest on the mean (Wang 2024)."""

import numpy as np

import btdagg

NAME, LEAST, WANTS = "Soft-SC, mean", 0, "strong"


def decide(seen, new):
    sums = new.strong.copy()
    sums[:, 1] = new.counts[:, 1] * 0.5  # half of a whole win, the mean strength of a vote
    means = sums / np.maximum(new.counts, 1)
    return btdagg.majority_vote(np.round(means, 9)).astype(float)  # of as sure ones a tie
