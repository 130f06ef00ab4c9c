"""btdagg.certify with the length, a covariate that is no standing."""

import btdagg

NAME, WANTS = "btdagg, covariates", "known"


def trusted(items, agreement):
    if "length" not in items.known:
        return None
    how = {"scale": items.scale, "label_scale": items.label_scale, "agreement": agreement}
    known = {"length": items.known["length"]}
    found = btdagg.certify(items.counts, items.labels, covariates=known, **how)
    used = known if found.model.covariates else None
    return found.model.decide(items.counts, covariates=used), found.trusted(
        items.counts, covariates=used
    )
