"""btdagg.estimate of votes alone."""

import btdagg

NAME = "btdagg"


def interval(items, values, **more):
    how = {"scale": items.scale, "label_scale": items.label_scale}
    found = btdagg.estimate(items.counts, values, **how, **more).estimates
    mean = found["net win rate" if items.scale.mirrored else "mean grade"]
    return mean.low, mean.high
