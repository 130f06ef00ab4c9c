"""The paper's fit of Davidson's model, of grades cut points without a prior of neighbours."""

import btdagg

NAME, LEAST = "the paper's fit", 10


def decide(seen, new):
    if not new.scale.mirrored:
        return None
    how = {"scale": seen.scale, "label_scale": seen.label_scale}
    model = btdagg.calibrate(seen.counts, seen.labels, prior=None, **how).model
    return model.predict_proba(new.counts)
