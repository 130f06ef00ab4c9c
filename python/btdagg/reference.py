"""The method in plain NumPy, line by line with the paper.

This is the readable specification and the oracle of the tests; the Rust core computes the same.
Nothing is checked. Arrays with one column per label have them in label order: -1, 0, +1.

References
----------
Distribution-Calibrated Inference Time Compute for Thinking LLM-as-a-Judge: Sections 4 and 5.
Davidson (1970), On extending the Bradley-Terry model to accommodate ties.
Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.validation import in_label_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def probabilities(
    s: Floats, t: Floats, beta: float, eta0: float, gamma: float, offsets: Floats | float = 0.0
) -> Floats:
    """Davidson probabilities, (n, 3): exp(-u), exp(eta), exp(u) over their sum.

    u = beta s + o, with o the offset of an item, and eta = eta0 + gamma t. Subtracting the largest
    exponent keeps the exponentials finite.
    """
    u = beta * s + offsets
    eta = eta0 + gamma * t
    logits = np.stack([-u, eta, u], axis=1)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def panel_probabilities(
    counts: ArrayLike,
    beta: ArrayLike,
    eta0: float,
    gamma: ArrayLike,
    offsets: Floats | float = 0.0,
    alpha: float = 1.0,
    kappa: float = 1.0,
) -> Floats:
    """Probabilities, (n, 3), from (n, judges, 3) counts, by the beta and gamma of each judge.

    u = sum beta s + o and eta = eta0 + sum gamma t. A judge without votes on an item has the mean
    features of those with votes.
    """
    c = np.asarray(counts, dtype=np.float64)
    absent = c.sum(axis=2) == 0
    n_present = np.maximum((~absent).sum(axis=1, keepdims=True), 1)
    by_judge = (values.reshape(absent.shape) for values in features(c.reshape(-1, 3), alpha, kappa))
    s, t = (values + absent * values.sum(axis=1, keepdims=True) / n_present for values in by_judge)
    u, slope = s @ np.asarray(beta), t @ np.asarray(gamma)
    return probabilities(u, slope, 1.0, eta0, 1.0, offsets)


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
    offsets: Floats | float = 0.0,
) -> Floats:
    """Derivatives of `drps` with respect to beta, eta0 and gamma, (3,).

    By the chain rule through the cumulative probabilities, with dp_k/dx = p_k (z_k - E z) for a
    logit that moves by z_k when x moves by 1.
    """
    y = np.asarray(labels)
    p = probabilities(s, t, beta, eta0, gamma, offsets)
    error = np.cumsum(p, axis=1)[:, :2] - np.stack([y <= -1, y <= 0], axis=1)
    by_u = p * (np.array([-1.0, 0.0, 1.0]) - (p[:, 2:] - p[:, :1]))
    by_eta = p * (np.array([0.0, 1.0, 0.0]) - p[:, 1:2])
    score_by_u = (2 * error * np.cumsum(by_u, axis=1)[:, :2]).sum(axis=1)
    score_by_eta = (2 * error * np.cumsum(by_eta, axis=1)[:, :2]).sum(axis=1)
    terms = np.stack([score_by_u * s, score_by_eta, score_by_eta * t], axis=1)
    return _mean(terms, weights)


def _mean(terms: Floats, weights: ArrayLike | None) -> Floats:
    w = np.ones(len(terms)) if weights is None else np.asarray(weights, dtype=np.float64)
    return np.asarray(np.average(terms, axis=0, weights=w))


def usual_features(
    counts: ArrayLike, usual_votes: float, alpha: float = 1.0, kappa: float = 1.0
) -> tuple[Floats, Floats]:
    """Features as shares of those of a unanimous item, times those of the usual number of votes."""
    s, t = features(counts, alpha, kappa)
    total = np.asarray(counts, dtype=np.float64).sum(axis=1)
    n = np.where(total > 0, total, 1)  # without votes both are 0
    own, usual = (np.log(x / np.array([[alpha], [kappa]]) + 1) for x in (n, usual_votes))
    return s * usual[0] / own[0], t * usual[1] / own[1]


def pairs_design(s: Floats, t: Floats) -> Floats:
    """What beta, eta0 and gamma add to the logits of -1, 0 and 1, (n, 3, 3)."""
    zero, one = np.zeros_like(s), np.ones_like(s)
    rows = [[-s, zero, zero], [zero, one, t], [s, zero, zero]]
    return np.moveaxis(np.array(rows), 2, 0)


def design_probabilities(design: Floats, theta: Floats) -> Floats:
    """Probabilities of the labels under a design, (n, K)."""
    logits = design @ theta
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def design_drps(design: Floats, labels: Floats, theta: Floats) -> float:
    """Sum of the DRPS of (n, K) weights of labels."""
    below = design_probabilities(design, theta).cumsum(axis=1)[:, :-1]
    given = labels.cumsum(axis=1)[:, :-1]
    size = labels.sum(axis=1, keepdims=True)
    return float((given * (1 - below) ** 2 + (size - given) * below**2).sum())


def _information(design: Floats, labels: Floats, theta: Floats) -> Floats:
    """Second derivatives of minus the log-likelihood."""
    p = design_probabilities(design, theta)
    away = design - np.einsum("nk,nkp->np", p, design)[:, None]
    weights = labels.sum(axis=1, keepdims=True) * p
    information: Floats = np.einsum("nk,nkp,nkq->pq", weights, away, away)
    return information


def _log_inside(mean: Floats, covariance: Floats, least: ArrayLike) -> float:
    """The logarithm of how much of a normal density is not below the least values, one by one."""
    z = (mean - np.broadcast_to(least, mean.shape)) / np.sqrt(np.diag(covariance))
    return sum(math.log(0.5 * math.erfc(-x / math.sqrt(2))) for x in z[np.isfinite(z)].tolist())


def posterior(
    design: Floats,
    labels: Floats,
    parts: Sequence[tuple[float, Floats, Floats]],
    minimise: Callable[[Callable[[Floats], float], Floats], Floats],
    least: ArrayLike = -math.inf,
) -> tuple[Floats, Floats]:
    """The one model of labels and a prior, (p,), and what each part of the prior holds.

    `parts` are a share, a mean and a covariance each; `minimise` finds the minimum of a function
    from a start, among parameters that are not below the `least`, where the densities end. Each
    part is fitted by twice the DRPS, and weighed by Laplace's approximation of its likelihood; the
    model is closest, in DRPS, to the mean of the parts' probabilities, which
    count for 50 labels beside a normal density of standard deviation 30 around the heaviest.
    """
    modes, evidence = [], []
    for share, mean, covariance in parts:
        precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)

        def loss(theta: Floats, mean: Floats = mean, precision: Floats = precision) -> float:
            pull = (theta - mean) @ precision @ (theta - mean) / 2
            return 2 * design_drps(design, labels, theta) + float(pull)

        theta = minimise(loss, mean)
        p = design_probabilities(design, theta)
        slope = np.einsum("nk,nkp->p", labels - labels.sum(axis=1, keepdims=True) * p, design)
        slope = slope - precision @ (theta - mean)
        curvature = _information(design, labels, theta) + precision
        value = np.log(share) + (labels * np.log(p)).sum()
        value -= (theta - mean) @ precision @ (theta - mean) / 2
        value += slope @ np.linalg.solve(curvature, slope) / 2
        value += (np.linalg.slogdet(precision)[1] - np.linalg.slogdet(curvature)[1]) / 2
        mode = theta + np.linalg.solve(curvature, slope)
        value += _log_inside(mode, np.asarray(np.linalg.inv(curvature), dtype=np.float64), least)
        value -= _log_inside(mean, covariance, least)
        modes.append(theta)
        evidence.append(value)
    shares = np.exp(np.array(evidence) - max(evidence))
    shares /= shares.sum()
    mean_p = sum(w * design_probabilities(design, x) for w, x in zip(shares, modes, strict=True))
    size = labels.sum(axis=1)
    heaviest = modes[int(shares.argmax())]

    def distance(theta: Floats) -> float:
        weights = mean_p * (50 * size / size.sum())[:, None]
        return (
            2 * design_drps(design, weights, theta) + float(((theta - heaviest) ** 2).sum()) / 1800
        )

    return minimise(distance, heaviest), shares


def grade_means(counts: ArrayLike, votes: ArrayLike) -> Floats:
    """Mean vote of each row of (n, J) counts, (n,)."""
    c = np.asarray(counts, dtype=np.float64)
    return np.asarray(c @ np.asarray(votes, dtype=np.float64) / c.sum(axis=1))


def grade_probabilities(
    means: Floats, beta: float, intercepts: Floats, offsets: Floats | float = 0.0
) -> Floats:
    """Adjacent-categories probabilities of K grades, (n, K).

    The log odds of a grade against the one below it are beta m + o less an intercept, with o the
    offset of an item.
    """
    slopes = beta * means + offsets
    logits = np.cumsum(slopes[:, None] - intercepts, axis=1)
    logits = np.concatenate([np.zeros((len(means), 1)), logits], axis=1)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def grade_decisions(p: Floats) -> NDArray[np.int64]:
    """Bayes action under absolute error, (n,): the index of the grade of least risk.

    Risks equal to twelve digits are equal; then the grade nearer the middle is decided, or the
    lower.
    """
    grades = np.arange(p.shape[1])
    risks = p @ np.abs(grades[:, None] - grades)
    equal = risks <= risks.min(axis=1, keepdims=True) * (1 + 1e-12)
    from_middle = np.abs(2 * grades - grades[-1])
    return np.asarray(np.where(equal, from_middle, np.inf).argmin(axis=1))
