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

from typing import TYPE_CHECKING

import numpy as np

from btdagg._util.validation import in_label_order

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


def weak_grid() -> Floats:
    """Beta, eta0 and gamma of the points over which the weak prior sums to 1, (7440, 3)."""
    axes = np.geomspace(0.05, 5, 12), np.linspace(np.log(1e-4), np.log(1e3), 20)
    mesh = np.meshgrid(*axes, np.linspace(-10, 10, 31), indexing="ij")
    return np.stack([axis.ravel() for axis in mesh], axis=1)


def weak_density(theta: Floats) -> Floats:
    """Prior density of (n, 3) parameters where nothing is known of a judge, (n,).

    0.8 of normal densities of log beta, eta0 and gamma at plain values and 0.2 of wide ones, each
    summing to 1 over `weak_grid`.
    """
    plain = np.array([[0.26, 1.5, 0.8], [0.6, 2.0, 0.8]])
    wide = np.array([[0.0, 0.0, 1.0], [1.0, 3.0, 2.0]])

    def normal(theta: Floats, mean_and_sd: Floats) -> Floats:
        x = np.column_stack([np.log(theta[:, 0]), theta[:, 1:]])
        z = (x - mean_and_sd[0]) / mean_and_sd[1]
        return np.asarray(np.exp(-0.5 * (z**2).sum(axis=1)))

    grid = weak_grid()
    parts = [
        share * normal(theta, kind) / normal(grid, kind).sum()
        for share, kind in ((0.8, plain), (0.2, wide))
    ]
    return np.asarray(sum(parts))


def few_labels(
    counts: ArrayLike,
    labels: Floats,
    occurrences: Floats,
    points: Floats,
    *,
    volume: float = 1.0,
    neighbours: Floats | None = None,
    weak_share: float = 0.1,
) -> tuple[Floats, Floats]:
    """Posterior of a few labels, by a sum over points.

    `counts`, (k, 3), are distinct votes, `labels`, (k, 3), how many items with them have each
    label, and `occurrences`, (k,), how many there are. `points`, (g, 3), are beta, eta0 and gamma
    of the weak prior, whose cells have a `volume` in cells of `weak_grid`; `neighbours`, (m, 3),
    equally likely parameters beside which it keeps `weak_share`. Returns the shares of neighbours,
    weak prior and "the votes say nothing", (3,), and mean probabilities, (k, 3).
    """
    rate, pseudo_labels, nothing = 3.0, 6.0, 0.02
    s, t = features(counts)
    minus, tie, plus = np.asarray(counts, dtype=np.float64).T
    total = minus + tie + plus
    mean_vote = (plus - minus) / np.where(total > 0, total, 1)

    def at(theta: Floats) -> Floats:
        return np.stack([probabilities(s, t, *x) for x in theta])  # (g, k, 3)

    def losses(p: Floats, weights: Floats) -> Floats:
        cumulative = np.cumsum(p, axis=2)[:, :, None, :2]  # (g, k, 1, 2) against (3, 2)
        observed = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
        return np.asarray((((cumulative - observed) ** 2).sum(axis=3) * weights).sum(axis=(1, 2)))

    def likelihood(p: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(labels > 0, labels * np.log(p), 0.0)
        return np.asarray(np.exp(terms.sum(axis=(1, 2))))

    def part(p: Floats, prior: Floats) -> tuple[float, Floats]:
        weights = prior * np.exp(-rate * losses(p, labels))
        return float(prior @ likelihood(p)), np.tensordot(weights / weights.sum(), p, 1)

    here, grid = at(points), at(weak_grid())
    weak = np.zeros(len(points))
    for number in range(16):
        side = np.where(np.abs(mean_vote) > (number + 0.5) / 16, np.sign(mean_vote), 0)
        called = side[:, None] == np.array([-1, 0, 1])
        pseudo = pseudo_labels * called * (occurrences / occurrences.sum())[:, None]
        total = (weak_density(weak_grid()) * np.exp(-rate * losses(grid, pseudo))).sum()
        weak += weak_density(points) * np.exp(-rate * losses(here, pseudo)) / total / 16
    evidence, means = part(here, weak)
    n_tie, n_side = labels[:, 1].sum(), labels[:, [0, 2]].sum()
    chance = (n_tie + 1) / (n_tie + n_side + 2)
    chances = np.linspace(0, 1, 100_001)
    of_nothing = np.mean(chances**n_tie * ((1 - chances) / 2) ** n_side)
    constant = np.tile([(1 - chance) / 2, chance, (1 - chance) / 2], (len(s), 1))
    parts = [(evidence * volume * (1 - nothing), means), (of_nothing * nothing, constant)]
    if neighbours is None:
        parts.insert(0, (0.0, means))
    else:
        evidence, means = part(at(neighbours), np.full(len(neighbours), 1 / len(neighbours)))
        parts = [(weak_share * value, means) for value, means in parts]
        parts.insert(0, ((1 - weak_share) * evidence, means))
    values = np.array([value for value, _ in parts])
    shares = values / values.sum()
    if neighbours is not None and not labels.any():
        shares = np.array([1.0, 0.0, 0.0])
    return shares, np.tensordot(shares, np.stack([means for _, means in parts]), 1)


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


def grade_loss(
    means: Floats,
    weights: Floats,
    beta: float,
    intercepts: Floats,
    offsets: Floats | float = 0.0,
) -> tuple[float, Floats]:
    """Weighted negative log likelihood of (n, K) soft labels, and its gradient, (K,).

    The derivative by an intercept is what the labels above it have more than the model expects.
    """
    p = grade_probabilities(means, beta, intercepts, offsets)
    loss = -float((weights * np.log(p)).sum())
    excess = weights - weights.sum(axis=1, keepdims=True) * p
    above = excess[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]  # of the grades above each intercept
    return loss, np.concatenate([[-(means[:, None] * above).sum()], above.sum(axis=0)])
