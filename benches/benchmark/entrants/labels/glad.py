"""GLAD, ability of judges and difficulty of items (crowd-kit), each judge's majority a rating."""

import numpy as np
import pandas as pd
from crowdkit.aggregation import GLAD

NAME, LEAST, WANTS = "GLAD", 0, "by_judge"


def decide(seen, new):
    n, judges, _ = new.by_judge.shape
    item, judge = np.indices((n, judges))
    most = new.by_judge == new.by_judge.max(axis=2, keepdims=True)
    label = np.where(most.sum(axis=2) == 1, most.argmax(axis=2), 1)  # a tie where none is alone
    columns = {"task": item.ravel(), "worker": judge.ravel(), "label": label.ravel()}
    found = GLAD(n_iter=30).fit_predict_proba(pd.DataFrame(columns))
    return found.reindex(index=range(n), columns=range(3)).fillna(1e-9).to_numpy()
