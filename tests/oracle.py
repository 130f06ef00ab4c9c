"""The method at fifty digits, for the tests of the compiled kernels."""

from dataclasses import dataclass

import mpmath
from mpmath import mpf

mpmath.mp.dps = 50


@dataclass
class Oracle:
    """One item at fifty digits; `margin` is ln(2 sinh|u|) - eta, which decides it."""

    s: mpf
    t: mpf
    p: list[mpf]
    risks: list[mpf]
    margin: mpf

    @property
    def action(self):
        least = min(self.risks)
        if self.risks[1] == least or self.risks[0] == self.risks[2]:
            return 0
        return -1 if self.risks[0] == least else 1


def oracle(counts, beta, eta0, gamma, alpha=1.0, kappa=1.0, offset=0.0):
    minus, tie, plus = (mpf(int(count)) for count in counts)
    alpha, kappa = mpf(alpha), mpf(kappa)
    s = mpmath.log((plus + alpha) / (minus + alpha)) / 2
    t = mpmath.log((tie + kappa) / (minus + tie + plus + kappa))
    u, eta = mpf(beta) * s + mpf(offset), mpf(eta0) + mpf(gamma) * t
    odds = [mpmath.exp(-u), mpmath.exp(eta), mpmath.exp(u)]
    total = sum(odds)
    p = [x / total for x in odds]
    risks = [p[1] + 2 * p[2], p[2] + p[0], 2 * p[0] + p[1]]
    lead = 2 * mpmath.sinh(abs(u))
    margin = mpmath.log(lead) - eta if lead else mpf("-inf")
    return Oracle(s, t, p, risks, margin)


def drps_terms(item, label):
    """Score of an item, and the terms of its derivatives by beta, eta0 and gamma."""
    minus, tie, plus = item.p
    first = minus - (label <= -1)
    second = minus + tie - (label <= 0)
    lean = plus - minus
    minus_u, not_plus_u = minus * (-1 - lean), -plus * (1 - lean)
    minus_eta, not_plus_eta = -minus * tie, plus * tie
    by_u = [2 * first * minus_u, 2 * second * not_plus_u]
    by_eta = [2 * first * minus_eta, 2 * second * not_plus_eta]
    return (
        [first**2, second**2],
        [x * item.s for x in by_u],
        by_eta,
        [x * item.t for x in by_eta],
    )
