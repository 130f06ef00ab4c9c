"""btdagg's risk-bounded rule: labels change with a probability of at most 5%."""

from entrants.calls import lossless

from btdagg.online import StoppingRule, fit_votes

NAME = "btdagg, epsilon 0.05"


def rule_of(model, n, seen):
    return StoppingRule.risk_bounded(model, n, fit_votes(seen.counts, seen.labels), epsilon=0.05)


def followed(seen, orders):
    return lossless.followed(seen, orders, rule_of) if seen.scale.mirrored else None
