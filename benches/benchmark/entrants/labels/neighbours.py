"""btdagg with the judge's other tasks as neighbours; without labels these alone."""

import btdagg

NAME, LEAST, WANTS = "btdagg, neighbours", 0, "near"


def decide(seen, new):
    how = {"scale": seen.scale, "label_scale": seen.label_scale}
    if seen.scale.mirrored:
        known = len(seen.labels) > 0
        given = (seen.counts, seen.labels) if known else (new.counts, None)
        model = btdagg.calibrate(*given, prior=btdagg.fit_prior([*seen.near])).model
    elif not len(seen.labels):
        return None
    else:
        prior = [btdagg.calibrate(*own, **how).model for own in seen.near]
        model = btdagg.calibrate(seen.counts, seen.labels, prior=prior, **how).model
    return model.predict_proba(new.counts)
