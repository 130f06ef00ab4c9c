"""btdagg.estimate with covariates."""

from entrants.estimates import ours

NAME, WANTS = "btdagg, covariates", "known"


def interval(items, values):
    return ours.interval(items, values, covariates=items.known)
