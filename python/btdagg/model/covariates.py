"""Covariates: what else is known of items, and the weights that labels give it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect
from btdagg._util.readable import readable
from btdagg._util.validation import as_number, columns_of, effective_weights
from btdagg.model.intervals import ParameterInterval
from btdagg.model.newton import minimum
from btdagg.model.sandwich import standard_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.remarks import Remark
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

# Mean and standard deviation of log beta, eta0 and gamma: the plain part of the weak prior.
_PLAIN = np.array([0.26, 1.5, 0.8]), np.array([0.6, 2.0, 0.8])
# Of grades, of log beta, and of how far all cuts move, move apart, and move alone, in log odds.
_PLAIN_BETA, _MOVED, _APART, _ALONE = (math.log(2), 0.6), 1.4, 0.6, 1.1
# Of the weights' prior: the widths that are looked at, and the scale of their half-Cauchy prior.
_WIDTHS, _SCALE = 0.02 * 2.0 ** np.arange(8), 0.01
_FARTHEST = 1e300  # that an offset goes, so that margins stay finite
_NEAR = 64.0  # scales of a covariate, beyond which a weight has no end
_BLOCK = 1 << 16  # items whose derivatives are held at a time


@readable
@dataclass(frozen=True)
class Covariate:
    """A number that is known of items, and its weight in a model.

    Attributes
    ----------
    name : str
    weight : float
        Weight: effect of one `scale` on the margin, for grades on the log odds of neighbouring
        grades.
    scale, centre : float
        For pairs its root mean square, around 0; for grades standard deviation, around its mean.
    standings : mapping of str to float, or None
        Standings of the systems that the model was fitted with.
    """

    name: str
    weight: float
    scale: float
    centre: float = 0.0
    standings: Mapping[str, float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("weight", "scale", "centre"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        as_number(self.scale, "scale", above=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, without standings if there are none."""
        numbers = {name: getattr(self, name) for name in ("name", "weight", "scale", "centre")}
        return numbers if self.standings is None else {**numbers, "standings": {**self.standings}}

    def within(self, other: Covariate) -> Covariate:
        """Return this covariate, fitted to values standardized by `other`, for the plain values."""
        centre = other.centre + other.scale * self.centre
        return replace(self, scale=other.scale * self.scale, centre=centre)

    def of(self, values: Floats) -> Floats:
        """Return standardized values: less the centre, over the scale; 0 for a missing one."""
        scaled = values - self.centre
        scaled /= self.scale
        np.nan_to_num(scaled, copy=False, nan=0.0)
        return scaled


def offsets_of(model: Any, covariates: Any, n_items: int) -> Floats | None:
    """Return the offset of each item, (n,), or None of a model without covariates."""
    model_covariates: tuple[Covariate, ...] = model.covariates
    if not model_covariates and covariates is None:
        return None
    names = [covariate.name for covariate in model_covariates]
    if not model_covariates:
        expected = "none, since the model was fitted without covariates"
        raise InputError(
            argument="covariates", got=[*columns_of(covariates, n_items)], expected=expected
        )
    expected = f"{', '.join(names)} of each item, as in the model"
    expect(covariates is not None, "covariates", None, expected)
    columns = columns_of(covariates, n_items, names)
    offsets = np.zeros(n_items)
    with np.errstate(over="ignore"):
        for covariate in model_covariates:
            scaled = covariate.of(columns[covariate.name])
            scaled *= covariate.weight
            offsets += scaled
    return np.clip(offsets, -_FARTHEST, _FARTHEST, out=offsets)


def columns_for(model: Any, items: Any) -> dict[str, Floats] | None:
    """Return the covariates of items that a model needs, or None if it needs none."""
    if not getattr(model, "covariates", ()):
        return None
    known = getattr(items, "covariates", {})
    return {
        covariate.name: known[covariate.name]
        for covariate in model.covariates
        if covariate.name in known
    } or None


def used_in_words(model: Any, intervals: Mapping[str, ParameterInterval]) -> str:
    """Say in a sentence what a model knows of items, and what each weighs; nothing if nothing."""
    texts = []
    for covariate in model.covariates:
        of = f" of {len(covariate.standings)} systems" if covariate.standings else ""
        ends, between = intervals.get(covariate.name), ""
        if ends is not None:
            between = (
                f", by the labels alone {ends.estimate:.2f} ({ends.low:.2f} to {ends.high:.2f})"
            )
        texts.append(f"{covariate.name}{of}, weight {covariate.weight:.2f}{between}")
    if not texts:
        return ""
    is_standing = any("standing" in covariate.name for covariate in model.covariates)
    warning = (
        " Labels that depend on standing are no independent evidence of which system is better."
        * is_standing
    )
    return f"Covariates: {'; '.join(texts)}.{warning}"


def weights_in_words(covariates: Sequence[Covariate]) -> str:
    """Write the weights of covariates after the numbers of a model; nothing without any."""
    return "".join(f", {covariate.name} {covariate.weight:.4g}" for covariate in covariates)


class KnownOfItems(NamedTuple):
    """Covariates of labelled items: with their scales, as (n, d) columns in these, and remarks."""

    covariates: tuple[Covariate, ...]
    columns: Floats
    remarks: tuple[Remark, ...]

    @property
    def named(self) -> dict[str, Floats]:
        """The columns, in their scales, by name."""
        names = (covariate.name for covariate in self.covariates)
        return dict(zip(names, self.columns.T, strict=True))

    def weighted(self, weights: Floats) -> tuple[Covariate, ...]:
        """Return the covariates with their weights."""
        both = zip(self.covariates, weights.tolist(), strict=True)
        return tuple(replace(covariate, weight=weight) for covariate, weight in both)

    def offsets(self, weights: Floats) -> Floats:
        """Return the offsets of the items, summed as of a model."""
        terms = zip(self.columns.T, weights.tolist(), strict=True)
        return sum((column * weight for column, weight in terms), np.zeros(len(self.columns)))


def without_scales(covariates: Any) -> tuple[Any, dict[str, float]]:
    """Return covariates by name without the scales that some come with, and these."""
    if not isinstance(covariates, Mapping):
        return covariates, {}
    columns, scales = dict(covariates), {}
    for name, column in covariates.items():
        if isinstance(column, tuple) and len(column) == 2 and np.ndim(column[0]):
            columns[name], scales[name] = column
    return columns, scales


def known_of(
    columns: Mapping[str, Floats],
    rows: NDArray[Any],
    scale: Scale,
    *,
    standings: Mapping[str, Mapping[str, float]] | None = None,
    scales: Mapping[str, float] | None = None,
) -> KnownOfItems:
    """Return what is known of some rows, those with labels, on scales of all of them."""
    centred = not scale.mirrored  # swapping A and B turns those of pairs round
    covariates, about = [], []
    for name, values in columns.items():
        known = np.sort(values[~np.isnan(values)])  # so that the order of rows changes no bit
        size = float(np.abs(known).max(initial=0)) or 1.0
        centre = float((known / size).mean()) * size if centred and len(known) else 0.0
        squares = np.sort(((known - centre) / size) ** 2)
        spread = size * math.sqrt(float(squares.sum()) / max(len(known), 1))
        if not len(known) or known[-1] - known[0] <= 1e-9 * size:
            about.append(remarks.constant_covariate(name, has_values=len(known) > 0))
            continue
        if len(known) < len(values):
            n_missing = len(values) - len(known)
            about.append(remarks.missing_covariate(name, n_missing, centred))
        of_systems = (standings or {}).get(name)
        covariates.append(
            Covariate(name, 0.0, (scales or {}).get(name, spread), centre, of_systems)
        )
    scaled = [covariate.of(columns[covariate.name][rows]) for covariate in covariates]
    stacked = np.stack(scaled, axis=1) if scaled else np.empty((len(rows), 0))
    return KnownOfItems(tuple(covariates), stacked, tuple(about))


class PairsBase(NamedTuple):
    """Logits of -1, 0 and 1 from beta, eta0 and gamma."""

    s: Floats
    t: Floats

    def slopes(self, rows: slice) -> Floats:
        """Return them for some items, (m, 3, 3)."""
        s, t = self.s[rows], self.t[rows]
        base = np.zeros((len(s), 3, 3))
        base[:, 0, 0], base[:, 2, 0], base[:, 1, 1], base[:, 1, 2] = -s, s, 1.0, t
        return base


class GradesBase(NamedTuple):
    """Logits of grades from beta and the intercepts, less beta times some cuts."""

    means: Floats
    cuts: Floats

    def slopes(self, rows: slice) -> Floats:
        """Return them for some items, (m, K, K)."""
        k = len(self.cuts) + 1
        base = np.zeros((len(self.means[rows]), k, k))
        base[:, 1:, 0] = np.cumsum(self.means[rows, None] - self.cuts, axis=1)
        base[:, :, 1:] = -np.tri(k, k - 1, -1)
        return base


class Design(NamedTuple):
    """Labelled items of a model whose logits are linear in its numbers and in the covariates.

    `base` makes what each number, beta first, adds to the logit of each label of some items,
    (m, K, q); an offset adds `steps`. `labels` are weights of labels, (n, K); `groups`, (n,),
    numbers of groups, None where each item is its own.
    """

    base: PairsBase | GradesBase
    steps: Floats
    covariates: Floats
    labels: Floats
    groups: NDArray[np.int64] | None = None

    @classmethod
    def of_pairs(cls, s: Floats, t: Floats, labels: Floats, x: Floats, groups: Any) -> Design:
        """Items of pairs, each turned so that A leads, and in an order of their own.

        So swapping A and B, or reordering items, changes no bit of a fit. Items weigh as in a
        posterior.
        """
        sizes = labels.sum(axis=1)
        kept = sizes > 0
        scaled = effective_weights(sizes, len(sizes))[kept] / sizes[kept]
        s, t, labels, x = s[kept], t[kept], labels[kept] * scaled[:, None], x[kept]
        lead = s
        for column in x.T:  # of equal sides, that which the first covariate is for
            lead = np.where(lead == 0, column, lead)
        sign = np.where(lead < 0, -1.0, 1.0)[:, None]
        labels = np.where(sign < 0, labels[:, ::-1], labels)
        is_even = (lead == 0)[:, None]
        labels = np.where(is_even, labels[:, [1, 1, 0]] * [0, 1, 1] + labels * [0, 0, 1], labels)
        s, x = np.abs(s), sign * x
        order = np.lexsort([s, t, *x.T, *labels.T])
        steps = np.array([-1.0, 0.0, 1.0])
        codes = None if groups is None else np.unique(groups[kept][order], return_inverse=True)[1]
        return cls(PairsBase(s[order], t[order]), steps, x[order], labels[order], codes)

    @classmethod
    def of_grades(
        cls, means: Floats, labels: Floats, x: Floats, cuts: Floats, groups: Any
    ) -> Design:
        """Items of grades, in an order of their own."""
        order = np.lexsort([means, *x.T, *labels.T])
        steps = np.arange(labels.shape[1], dtype=np.float64)
        codes = None if groups is None else np.unique(groups[order], return_inverse=True)[1]
        return cls(GradesBase(means[order], cuts), steps, x[order], labels[order], codes)

    def expand(self, theta: Floats, *, log_beta: bool = False) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, its gradient and the expected information.

        `theta` has the numbers, the first of which may be the logarithm of beta, and the weights.
        """
        beta = math.exp(min(theta[0], 300.0)) if log_beta else theta[0]
        numbers = np.array([beta, *theta[1:]])
        value, gradient = 0.0, np.zeros(len(theta))
        information = np.zeros((len(theta), len(theta)))
        for start in range(0, len(self.labels), _BLOCK):
            rows = slice(start, start + _BLOCK)
            labels, slopes = self.labels[rows], self._slopes(rows)
            logits = slopes @ numbers
            if log_beta:
                slopes[:, :, 0] *= beta
            logits -= logits.max(axis=1, keepdims=True)
            p = np.exp(logits)
            total, size = p.sum(axis=1), labels.sum(axis=1)
            value += float((labels * logits).sum() - size @ np.log(total))
            p *= (size / total)[:, None]
            means = (p[:, None] @ slopes)[:, 0]
            flat = slopes.reshape(-1, len(theta))
            gradient += flat.T @ (labels - p).ravel()
            information += (flat * p.reshape(-1, 1)).T @ flat
            information -= means.T @ (means / size[:, None])
        return value, gradient, information

    @property
    def prior(self) -> tuple[Floats, Floats]:
        """Mean and precision of the numbers, with the logarithm of beta, before the labels."""
        if isinstance(self.base, PairsBase):
            return _PLAIN[0], np.diag(_PLAIN[1] ** -2)
        cuts = self.base.cuts
        covariance = _MOVED**2 + _APART**2 * np.outer(cuts, cuts) + _ALONE**2 * np.eye(len(cuts))
        precision = np.zeros((len(cuts) + 1,) * 2)
        precision[0, 0] = _PLAIN_BETA[1] ** -2
        precision[1:, 1:] = np.linalg.inv(covariance)
        return np.array([_PLAIN_BETA[0], *np.zeros(len(cuts))]), precision

    def fit(self) -> WeightFit:
        """Return the posterior mean of the numbers and the weights, by Laplace's method.

        Weights have a normal prior of one width for all, averaged over: few labels cannot tell
        widths apart, and a width that they choose follows noise.
        """
        mean, precision = self.prior
        q, d = len(mean), self.covariates.shape[1]
        centre, penalty = np.append(mean, np.zeros(d)), np.zeros((q + d,) * 2)
        penalty[:q, :q] = precision
        modes, evidence = [centre], []
        for width in _WIDTHS.tolist():
            penalty[q:, q:] = np.eye(d) / width**2
            loss = partial(self._loss, centre=centre, penalty=penalty)
            mode, (value, _, curvature) = minimum(loss, modes[-1], 1e-12)
            modes.append(mode)
            spread = -np.linalg.slogdet(curvature)[1] / 2 - d * math.log(width)
            evidence.append(spread - value - math.log(1 / width + width / _SCALE**2))
        shares = np.exp(np.array(evidence) - max(evidence))
        shares /= shares.sum()
        theta = shares @ np.array(modes[1:])
        return WeightFit(theta[:q], theta[q:], np.array(modes[1:]), shares)

    def _loss(self, theta: Floats, centre: Floats, penalty: Floats) -> tuple[float, Floats, Floats]:
        value, slope, information = self.expand(theta, log_beta=True)
        pull = penalty @ (theta - centre)
        return float((theta - centre) @ pull) / 2 - value, pull - slope, information + penalty

    def intervals(self, level: float) -> list[ParameterInterval]:
        """Return the best weights of the labels alone, with intervals by groups of items.

        Standard errors are those of the groups (sandwich), or the model's where these are greater:
        labels that are separated have no others.
        """
        from scipy.special import stdtrit

        q, p = len(self.prior[0]), len(self.prior[0]) + self.covariates.shape[1]

        def loss(numbers: Floats) -> tuple[float, Floats, Floats]:
            value, slope, information = self.expand(numbers)
            return -value, -slope, information

        best, (_, _, whole) = minimum(loss, np.zeros(p), 1e-10)
        ridge = (1e-12 * np.trace(whole) + 1e-300) * np.eye(p)  # labels can be separated
        by_model = np.sqrt(np.diag(np.linalg.inv(whole + ridge)))
        error = np.maximum(standard_errors(*self._by_item(best), self.groups), by_model)[q:]
        n_groups = len(self.labels) if self.groups is None else len(np.unique(self.groups))
        half = float(stdtrit(max(n_groups - p, 1), (1 + level) / 2)) * error
        ends = np.stack([best[q:] - half, best[q:] + half])
        ends = np.where(np.abs(ends) > _NEAR, np.copysign(np.inf, ends), ends)
        return [
            ParameterInterval(*row)
            for row in zip(*np.vstack([best[q:], ends]).tolist(), strict=True)
        ]

    def _by_item(self, numbers: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of each item's log-likelihood, and its expected information."""
        slopes = self._slopes(slice(None))
        logits = slopes @ numbers
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        size = self.labels.sum(axis=1, keepdims=True)
        p *= size / p.sum(axis=1, keepdims=True)
        means = np.einsum("nk,nkp->np", p, slopes)
        information = np.einsum("nk,nkp,nkq->npq", p, slopes, slopes)
        information -= means[:, :, None] * means[:, None] / size[..., None]
        return np.einsum("nk,nkp->np", self.labels, slopes) - means, information

    def _slopes(self, rows: slice) -> Floats:
        """Return the change of each logit of some items with each number and weight, (m, K, p)."""
        x = self.covariates[rows]
        return np.concatenate([self.base.slopes(rows), x[:, None] * self.steps[:, None]], axis=2)


class WeightFit(NamedTuple):
    """Mean numbers of a model and weights of covariates; the mode and the share of each width."""

    numbers: Floats
    weights: Floats
    modes: Floats
    shares: Floats
