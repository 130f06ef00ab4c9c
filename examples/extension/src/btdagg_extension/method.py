"""The method: `btdagg evaluate votes.csv labels.csv --methods weak,trimmed-mean`."""

import numpy as np

TRIMMED = 0.2  # of an item's votes, at each end


def trimmed_mean(counts, labels, new_counts, scale, label_scale):
    """Mean vote of the middle 60% of an item's votes; nothing is learned from the labels."""
    n = new_counts.sum(axis=1, keepdims=True)
    up_to = np.cumsum(new_counts, axis=1)  # votes at or below each point
    up_to = np.clip(up_to, TRIMMED * n, (1 - TRIMMED) * n)
    kept = np.diff(up_to, axis=1, prepend=TRIMMED * n)
    means = kept @ scale.floats / kept.sum(axis=1)
    return scale.rescaled(means, label_scale)
