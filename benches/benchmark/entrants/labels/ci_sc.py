"""Self-consistency weighted by confidence, the strength of each vote (CI-SC; Taubenfeld 2025)."""

import numpy as np

NAME, LEAST, WANTS = "CI-SC", 0, "strong"


def decide(seen, new):
    sums = new.strong.copy()
    sums[:, 1] = new.counts[:, 1]  # votes for a tie count whole
    away = np.abs(np.arange(3) - 1)  # of two as sure the one nearer to the middle, as elsewhere
    return new.label_scale.floats[(sums - 1e-6 * away).argmax(axis=1)]
