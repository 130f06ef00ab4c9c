"""Logistic regression on the shares of the votes (scikit-learn, its usual penalty)."""

import numpy as np
from sklearn.linear_model import LogisticRegression

NAME, LEAST = "logistic regression", 10


def decide(seen, new):
    shares = [own.counts / own.counts.sum(axis=1, keepdims=True) for own in (seen, new)]
    table = np.zeros((len(new.counts), len(new.label_scale.points)))
    given = np.unique(seen.labels)
    place = np.searchsorted(new.label_scale.floats, given)
    if len(given) == 1:
        table[:, place] = 1.0
        return table
    fitted = LogisticRegression(max_iter=1000).fit(shares[0], seen.labels.astype(str))
    named = [str(label) for label in given]
    table[:, place] = fitted.predict_proba(shares[1])[:, [*map([*fitted.classes_].index, named)]]
    return table
