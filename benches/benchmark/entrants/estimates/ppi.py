"""PPI++ (ppi-python, tuned) on the mean vote, on the range of the labels."""

import numpy as np
from ppi_py import ppi_mean_ci

NAME = "ppi_py"


def votes_of(items, values):
    points = items.scale.floats
    means = (items.counts @ points / items.counts.sum(axis=1) - points[0]) / np.ptp(points)
    low, high = items.label_scale.floats[[0, -1]]
    return low + means * (high - low)


def interval(items, values):
    seen, means = ~np.isnan(values), votes_of(items, values)
    low, high = ppi_mean_ci(values[seen], means[seen], means[~seen], alpha=0.05)
    return float(np.squeeze(low)), float(np.squeeze(high))
