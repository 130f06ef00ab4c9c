"""Posterior of the parameters, from a few labels and a prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from btdagg import _core, remarks
from btdagg._util.errors import expect, forbid, of_kind
from btdagg._util.readable import Readable
from btdagg._util.validation import as_counts, as_integer, as_labels, as_weights, same_index
from btdagg._util.wording import in_lines
from btdagg.model.calibration_set import (
    ENOUGH,
    PARAMETERS,
    Bounds,
    calibration_set,
    label_weights,
)
from btdagg.model.covariates import PairsBase, offsets_of
from btdagg.model.davidson import DavidsonModel
from btdagg.model.intervals import (
    ParameterInterval,
    Stability,
    as_level,
    distinct_items,
    stability_of,
)
from btdagg.model.prior import Prior
from btdagg.model.sandwich import standard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.covariates import Covariate
    from btdagg.remarks import Remark
    from btdagg.votes.provenance import Provenance

# Neighbours that hold less than this share of the posterior are said not to fit.
_FIT = 0.5
# Distinct counts up to which `refitted` finds what fits to those with a weight find: of more than
# 2,048 that are not whole it looks at a grid.
MANY = 2000


def _learned(
    prior: object, max_votes: int, alpha: float, kappa: float
) -> tuple[_core.Prior | None, float]:
    if isinstance(prior, str) and prior == "weak":
        return None, 0.0
    prior = of_kind(prior, Prior, "prior", 'a Prior, "weak" or None')
    for name, ours in {"alpha": alpha, "kappa": kappa}.items():
        its = getattr(prior, name)
        expected = f"{its:g} as in the prior, or a prior of fit_prior(..., {name}={ours:g})"
        expect(ours == its, name, ours, expected)
    return prior.learned(min(prior.n_votes, max_votes)), prior.weak_share


def _doubts(
    posterior: _core.Posterior, items: _core.CalibrationSet, worth: float, prior: object
) -> Iterator[Remark]:
    share = posterior.shares[0]
    if not isinstance(prior, Prior):
        return
    if 0 < worth < ENOUGH and share < _FIT:
        yield remarks.unfit_neighbours(items.n_items, share)
    if items.max_votes > prior.n_votes:
        yield remarks.more_votes_than_prior(items.max_votes, prior.n_votes)


def _drps_derivatives(
    model: DavidsonModel, rows: NDArray[Any], offsets: Any, labels: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the negative gradient of each item's DRPS, (n, 3), and its curvature, (n, 3, 3)."""
    s, t = model.features(rows)
    margin, tie = model.beta * s + offsets, model.eta0 + model.gamma * t
    logits = np.stack([-margin, tie, margin], axis=1)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    slopes = PairsBase(s, t).slopes(slice(None))
    slopes = p[..., None] * (slopes - np.einsum("nk,nkp->np", p, slopes)[:, None])
    below, slopes = p.cumsum(axis=1)[:, :2], slopes.cumsum(axis=1)[:, :2]
    size = labels.sum(axis=1)
    away = labels.cumsum(axis=1)[:, :2] - size[:, None] * below
    curvature = np.einsum("nkp,nkq->npq", slopes, slopes) * size[:, None, None]
    return 2 * np.einsum("nk,nkp->np", away, slopes), 2 * curvature


def refitted(
    counts: NDArray[np.float64],
    labels: NDArray[np.int8],
    weights: NDArray[np.float64],
    prior: Prior | Literal["weak"] | None,
    alpha: float,
    kappa: float,
    bounds: Bounds,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Fit beta, eta0 and gamma to each row of weights, with a prior how often items are drawn."""
    if prior is None:
        lower, upper = (ends.tolist() for ends in bounds.box())
        refits = _core.Refits(counts, labels, alpha, kappa, lower, upper)
        return refits.fit(weights, n_threads)[0]
    items = calibration_set(counts, labels, None, alpha=alpha, kappa=kappa)
    learned = _learned(prior, items.max_votes, alpha, kappa)
    return _core.PosteriorRefits(counts, labels, alpha, kappa, *learned).fit(weights, n_threads)


def decisions_under(
    thetas: NDArray[np.float64],
    alpha: float,
    kappa: float,
    counts: NDArray[Any],
    n_threads: int,
    columns: NDArray[np.float64] | None = None,
) -> NDArray[np.int8]:
    """Decision of each row of counts under each row of parameters, (k, n)."""
    # These are beta, eta0, gamma and weights of `columns`, (n, d), if there are any.
    decided = []
    for beta, eta0, gamma, *weights in thetas.tolist():
        offsets = None if columns is None or not weights else columns @ np.array(weights)
        model = _core.Model(beta, eta0, gamma, alpha, kappa)
        decided.append(model.decide(counts, n_threads, offsets))
    return np.array(decided, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Posterior(Readable):
    """Posterior of a calibrated model's parameters, from labels and a prior.

    Attributes
    ----------
    model : DavidsonModel
        The model whose probabilities are closest to the posterior's.
    n_labels : float
        Labels; of weighted items their effective number, ``weights.sum()**2 / (weights**2).sum()``.
    neighbours, nothing : float
        Shares of the neighbours (without labels 1; 0 from 1,000 labels on) and of "the votes say
        nothing", a constant chance of a tie.
    warnings : tuple of str
        Where the prior does not fit.
    """

    model: DavidsonModel
    n_labels: float
    neighbours: float
    nothing: float
    warnings: tuple[Remark, ...]
    labelled_items: _core.CalibrationSet = field(repr=False)
    _kernel: _core.Posterior = field(repr=False)
    _given: tuple[Any, ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        counts: Any,
        labels: Any,
        weights: Any,
        prior: Prior | Literal["weak"],
        alpha: float,
        kappa: float,
        provenance: Provenance,
        offsets: NDArray[np.float64] | None = None,
        covariates: tuple[Covariate, ...] = (),
        groups: NDArray[np.int64] | None = None,
    ) -> Self:
        """Return what a few labels say, or none: then `counts` tell how often each occurs."""
        same_index(counts=counts, labels=labels, weights=weights)
        rows = np.array(as_counts(counts))
        forbid(not len(rows), "counts is empty, expected at least one item", "counts")
        is_bare = labels is None and weights is None
        gold = None if labels is None else np.array(as_labels(labels))
        weight = None if weights is None else np.array(as_weights(weights, soft=labels is None))
        given = rows, gold, weight, prior, alpha, kappa, provenance, offsets, covariates, groups
        used_weight = np.ones((len(rows), 3)) if is_bare else weight
        how: dict[str, Any] = {"alpha": alpha, "kappa": kappa, "offsets": offsets}
        items = calibration_set(rows, gold, used_weight, **how)
        n_labels = 0 if is_bare else items.n_items
        worth = float(n_labels)
        if weight is not None:
            share = (weight if gold is not None else weight.sum(axis=1)) / weight.max()
            worth = float(share.sum() ** 2 / (share**2).sum())
        kernel = _core.Posterior(items, worth, *_learned(prior, items.max_votes, alpha, kappa))
        provenance = provenance.of_fit(items.max_votes, n_labels)
        numbers = *kernel.parameters, alpha, kappa, provenance
        model = DavidsonModel(*numbers, covariates=covariates)
        neighbours, _, nothing = kernel.shares
        doubts = tuple(_doubts(kernel, items, worth, prior))
        return cls(model, worth, neighbours, nothing, doubts, items, kernel, given)

    def __reduce__(self) -> tuple[Any, ...]:
        # What the core holds is not written: it is computed again, in milliseconds.
        return Posterior.of, self._given

    def predict_proba(self, counts: ArrayLike, *, covariates: Any = None) -> NDArray[np.float64]:
        """Posterior mean probabilities, (n, 3), at the model's weights of `covariates`."""
        rows, offsets, place = self._distinct(counts, covariates)
        mean: NDArray[np.float64] = self._kernel.probabilities(rows, 1, offsets)[place]
        return mean

    def stable(
        self,
        counts: ArrayLike,
        *,
        covariates: Any = None,
        level: float = 0.95,
        n_threads: int = 1,
    ) -> Stability:
        """Say of each item how likely another draw of labels would decide it as the model does."""
        # `counts` are of any items; a decision is stable from the agreement `level` on. Chances are
        # the posterior's at the rate of the loss that makes it as wide as the sampling
        # distribution: three over the trace of H^-1 J, the curvature of the DRPS and variance of
        # its gradient (Lyddon et al., 2019).
        threads = as_integer(n_threads, "n_threads", 1)
        rows, offsets, place = self._distinct(counts, covariates)
        shares = self._kernel.decisions(rows, threads, offsets)[place]
        return stability_of(self.model.decide(counts, covariates=covariates), level, shares)

    def _distinct(self, counts: ArrayLike, covariates: Any) -> Any:
        return distinct_items(counts, offsets_of(self.model, covariates, len(as_counts(counts))))

    def intervals(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return intervals of beta, nu and gamma, by name, as far as the labels alone tell them."""
        # A value is inside if the best fit with it is not significantly worse; ends are the paper's
        # box at most. Twice the rise of the DRPS, scaled by the curvature of the profile over its
        # variance, is compared with the square of Student's t, n - 3 degrees of freedom (Godambe,
        # 1960; Pace et al., 2011), and grows with the error that groups of items add to it.
        level, model = as_level(level), self.model
        box = np.column_stack(Bounds().box())
        ends = box
        if self.n_labels > 0:
            from scipy.special import stdtrit

            near = [model.beta, model.eta0, model.gamma]
            given = self.labelled_items, near, self.n_labels
            n_units, growth = self._growth_by_groups()
            critical = stdtrit(max(n_units - 3, 1), (1 + level) / 2) * growth
            profiles = {value: _core.profile(*given, value) for value in set(critical.tolist())}
            ends = np.array([profiles[value][i] for i, value in enumerate(critical.tolist())])
        intervals = {}
        for name, (low, high), at in zip(PARAMETERS, ends.tolist(), ends == box, strict=True):
            bounds = np.array(["lower", "upper"])[at].tolist()
            note = f"to the {' and the '.join(bounds)} bound" if bounds else ""
            if name == "nu":
                low, high = math.exp(low), math.exp(high)
            intervals[name] = ParameterInterval(getattr(model, name), low, high, note)
        return intervals

    def _growth_by_groups(self) -> tuple[float, NDArray[np.float64]]:
        """Return the number of independent units, and the factors of errors by groups, (3,)."""
        rows, gold, weight, *_, offsets, _, groups = self._given
        if groups is None:
            return self.n_labels, np.ones(3)
        labels = label_weights(gold, weight)
        given = labels.sum(axis=1) > 0
        codes = np.unique(groups[given], return_inverse=True)[1]
        offsets = 0.0 if offsets is None else offsets
        parts = _drps_derivatives(self.model, rows, offsets, labels)
        scores, curvature = (part[given] for part in parts)
        errors = standard_errors(scores, curvature, codes)
        growth = errors / np.maximum(standard_errors(scores, curvature), 1e-300)
        n_groups = min(codes.max() + 1.0, self.n_labels)
        return n_groups, np.maximum(growth, 1.0)

    def __str__(self) -> str:
        lines = [f"{name} {interval}" for name, interval in self.intervals().items()]
        if self.neighbours > 0:
            lines.append(f"neighbours have {self.neighbours:.0%} of the posterior")
        return in_lines([*lines, *(f"warning: {text}" for text in self.warnings)])
