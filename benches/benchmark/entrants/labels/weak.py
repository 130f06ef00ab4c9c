"""btdagg as it comes: the weak prior."""

import btdagg

NAME, LEAST = "btdagg", 10


def decide(seen, new):
    how = {"scale": seen.scale, "label_scale": seen.label_scale}
    return btdagg.calibrate(seen.counts, seen.labels, **how).model.predict_proba(new.counts)
