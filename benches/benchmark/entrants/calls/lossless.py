"""btdagg's lossless rule: the labels of all votes."""

import btdagg
from btdagg.online import StoppingRule

NAME = "btdagg, lossless"


def rule_of(model, n, seen):
    return StoppingRule.lossless(model, n)


def followed(seen, orders, rule_of=rule_of):
    how = {"scale": seen.scale, "label_scale": seen.label_scale}
    model = btdagg.calibrate(seen.counts, seen.labels, **how).model
    votes = seen.scale.floats[orders]
    found = rule_of(model, orders.shape[1], seen).follow(votes)
    counts = (votes[:, :, None] == seen.scale.floats).sum(axis=1)
    places = seen.label_scale.places
    return found.n_votes, places(found.labels), places(model.decide(counts))
