"""Self-consistency weighted by confidence, the strength of each vote (CI-SC; Taubenfeld 2025)."""

NAME, LEAST, WANTS = "CI-SC", 0, "strong"


def decide(seen, new):
    sums = new.strong.copy()
    sums[:, 1] = new.counts[:, 1]  # votes for a tie count whole
    return new.label_scale.floats[sums.argmax(axis=1)]
