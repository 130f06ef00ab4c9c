"""Self-consistency weighted by confidence, the strength of each vote (CI-SC; Taubenfeld 2025)."""

import numpy as np

import btdagg

NAME, LEAST, WANTS = "CI-SC", 0, "strong"


def decide(seen, new):
    sums = new.strong.copy()
    sums[:, 1] = new.counts[:, 1]  # votes for a tie count whole
    return btdagg.majority_vote(np.round(sums, 9)).astype(float)  # of as sure ones a tie
