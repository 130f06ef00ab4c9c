"""Dawid and Skene's model of raters (crowd-kit), each judge's votes being so many ratings."""

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene

NAME, LEAST, WANTS = "Dawid–Skene", 0, "by_judge"


def ratings(new):
    item, judge, label = np.nonzero(new.by_judge)
    times = new.by_judge[item, judge, label]
    columns = {"task": item, "worker": judge, "label": label}
    return pd.DataFrame({name: np.repeat(own, times) for name, own in columns.items()})


def decide(seen, new):
    found = DawidSkene(n_iter=50).fit_predict_proba(ratings(new))
    return found.reindex(index=range(len(new.counts)), columns=range(3)).fillna(1e-9).to_numpy()
