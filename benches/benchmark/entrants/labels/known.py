"""btdagg with standing and length, on the scale of all items."""

import numpy as np

import btdagg

NAME, LEAST, WANTS = "btdagg, covariates", 10, "known"


def decide(seen, new):
    counts = np.concatenate([seen.counts, new.counts])
    labels = np.append(seen.labels, np.full(len(new.counts), np.nan))
    known = {k: np.append(seen.known[k], new.known[k]) for k in seen.known}
    how = {"scale": seen.scale, "label_scale": seen.label_scale}
    model = btdagg.calibrate(counts, labels, covariates=known, **how).model
    used = {own.name: new.known[own.name] for own in model.covariates} or None
    return model.predict_proba(new.counts, covariates=used)
