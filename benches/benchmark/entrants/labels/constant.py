"""The label with the least absolute error on the labelled items: no vote is looked at."""

import numpy as np

NAME, LEAST = "a constant", 10


def decide(seen, new):
    points = new.label_scale.floats
    errors = np.abs(seen.labels[:, None] - points).mean(axis=0)
    return np.full(len(new.counts), points[errors.argmin()])
