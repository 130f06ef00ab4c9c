"""btdagg.certify of votes alone, at a confidence of 90%."""

import btdagg

NAME = "btdagg"


def trusted(items, agreement, **more):
    how = {"scale": items.scale, "label_scale": items.label_scale}
    found = btdagg.certify(items.counts, items.labels, agreement=agreement, **how, **more)
    return found.model.decide(items.counts), found.trusted(items.counts)
