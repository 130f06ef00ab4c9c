"""The method in plain NumPy, line by line with the paper.

This is the readable specification and the oracle of the tests; the simulation draws its labels with
it. What users call computes the same, faster, in the Rust core. Arrays are taken as they are, and
the columns of a data frame by their names; `btdagg.DavidsonModel` checks them.

Every array with one column per label has them in label order: -1, 0, +1.

References
----------
Distribution-Calibrated Inference Time Compute for Thinking LLM-as-a-Judge: Sections 4 and 5.
Davidson (1970), On extending the Bradley-Terry model to accommodate ties.
Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from btdagg.validation import in_label_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def features(counts: ArrayLike, alpha: float = 1.0, kappa: float = 1.0) -> tuple[Floats, Floats]:
    """Margin feature s and tie feature t of (n, 3) counts, each (n,).

    s = 1/2 log((c+ + alpha) / (c- + alpha)) and t = log((c0 + kappa) / (n + kappa)).
    """
    minus, tie, plus = np.asarray(in_label_order(counts, "counts"), dtype=np.float64).T
    s = 0.5 * np.log((plus + alpha) / (minus + alpha))
    t = np.log((tie + kappa) / (minus + tie + plus + kappa))
    return s, t


def probabilities(s: Floats, t: Floats, beta: float, eta0: float, gamma: float) -> Floats:
    """Davidson probabilities, (n, 3): exp(-u), exp(eta), exp(u) over their sum.

    u = beta s and eta = eta0 + gamma t. The largest exponent is subtracted from all three, which
    leaves the probabilities as they are and keeps the exponentials finite.
    """
    u = beta * s
    eta = eta0 + gamma * t
    logits = np.stack([-u, eta, u], axis=1)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def risks(p: Floats) -> Floats:
    """Expected absolute error of the labels -1, 0, +1 under (n, 3) probabilities."""
    minus, tie, plus = p.T
    return np.stack([tie + 2 * plus, plus + minus, 2 * minus + tie], axis=1)


def decide(p: Floats) -> NDArray[np.int8]:
    """Bayes action under absolute error, (n,): the label of least risk.

    Risks that agree to twelve digits are equal, and equal risks give a tie.
    """
    minus, tie, plus = risks(p).T
    away_from_tie = np.minimum(minus, plus) < tie * (1 - 1e-12)
    return np.where(away_from_tie, np.where(plus < minus, 1, -1), 0).astype(np.int8)


def drps(p: Floats, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Weighted mean of the discrete ranked probability score of (n, 3) probabilities.

    The score of an item is (F(-1) - H(-1))^2 + (F(0) - H(0))^2 with F the predicted and H the
    observed cumulative distribution.
    """
    y = np.asarray(labels)
    cumulative = np.cumsum(p, axis=1)[:, :2]
    observed = np.stack([y <= -1, y <= 0], axis=1)
    score = ((cumulative - observed) ** 2).sum(axis=1)
    return float(_mean(score, weights))


def drps_gradient(
    s: Floats,
    t: Floats,
    labels: ArrayLike,
    beta: float,
    eta0: float,
    gamma: float,
    weights: ArrayLike | None = None,
) -> Floats:
    """Derivatives of `drps` with respect to beta, eta0 and gamma, (3,).

    By the chain rule through the cumulative probabilities, with dp_k/dx = p_k (z_k - E z) for a
    logit that moves by z_k when x moves by 1.
    """
    y = np.asarray(labels)
    p = probabilities(s, t, beta, eta0, gamma)
    error = np.cumsum(p, axis=1)[:, :2] - np.stack([y <= -1, y <= 0], axis=1)
    by_u = p * (np.array([-1.0, 0.0, 1.0]) - (p[:, 2:] - p[:, :1]))
    by_eta = p * (np.array([0.0, 1.0, 0.0]) - p[:, 1:2])
    score_by_u = (2 * error * np.cumsum(by_u, axis=1)[:, :2]).sum(axis=1)
    score_by_eta = (2 * error * np.cumsum(by_eta, axis=1)[:, :2]).sum(axis=1)
    terms = np.stack([score_by_u * s, score_by_eta, score_by_eta * t], axis=1)
    return _mean(terms, weights)


def _mean(terms: Floats, weights: ArrayLike | None) -> Floats:
    """Mean over items, weighted where weights are given."""
    w = np.ones(len(terms)) if weights is None else np.asarray(weights, dtype=np.float64)
    return np.asarray(np.average(terms, axis=0, weights=w))
