"""What labels alone tell of parameters: their values, and errors by groups of items."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import _core
from btdagg.model.calibration import PARAMETERS, box_around
from btdagg.model.intervals import ParameterInterval, as_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.model.design import Design

    Floats = NDArray[np.float64]

_WIDE = 100.0  # standard deviation of parameters of which nothing is believed
_STEPS = 3
_NEAR = 64.0  # scales of a covariate, beyond which a weight has no end


def probabilities(values: Floats, theta: Floats) -> Floats:
    """Return the probabilities of labels, (n, K), of rows of a design, (n, K, p)."""
    logits = values @ theta
    p: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p


def drps(values: Floats, weights: Floats, theta: Floats) -> float:
    """Return the DRPS of items, summed with the weights of their labels."""
    below = probabilities(values, theta).cumsum(axis=1)[:, :-1]
    size, shares = weights.sum(axis=1, keepdims=True), weights.cumsum(axis=1)[:, :-1]
    return float((size * below**2 - 2 * below * shares + shares).sum())


def drps_derivatives(values: Floats, weights: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Return minus the gradient of each item's DRPS, (n, p), and its curvature, (n, p, p).

    `values` are rows of a design, (n, K, p), and `weights` those of their labels, (n, K). The
    curvature is that where forecasts are right (Gauss-Newton).
    """
    p = probabilities(values, theta)
    slopes = p[..., None] * (values - np.einsum("nk,nkp->np", p, values)[:, None])
    below, slopes = p.cumsum(axis=1)[:, :-1], slopes.cumsum(axis=1)[:, :-1]
    size = weights.sum(axis=1)
    away = weights.cumsum(axis=1)[:, :-1] - size[:, None] * below
    curvature = np.einsum("nkp,nkq->npq", slopes, slopes) * size[:, None, None]
    return 2 * np.einsum("nk,nkp->np", away, slopes), 2 * curvature


def _ridge(whole: Floats) -> Floats:
    """What makes a sum of curvatures regular, (p, p)."""
    ridge: Floats = (1e-12 * np.trace(whole) + 1e-300) * np.eye(len(whole))
    return ridge


def standard_errors(
    scores: Floats, information: Floats, groups: NDArray[np.int64] | None = None
) -> Floats:
    """Return standard errors of p numbers by the jackknife over groups, a Newton step each.

    Parameters
    ----------
    scores : (n, p) array
        Minus the gradient of each item's loss.
    information : (n, p, p) array
        Curvature of each item's loss.
    groups : (n,) array of int, optional
        Group of each item, from 0; by default each item is its own.

    References
    ----------
    Liang and Zeger (1986); Bell and McCaffrey (2002) for the correction for few groups.
    """
    scores = scores - scores.mean(axis=0)
    whole = information.sum(axis=0)
    if groups is not None and (n_groups := int(groups.max()) + 1) < len(groups):
        sums = np.zeros((n_groups, scores.shape[1])), np.zeros((n_groups, *whole.shape))
        for total, values in zip(sums, (scores, information), strict=True):
            np.add.at(total, groups, values)
        scores, information = sums
    n_groups = len(scores)
    # A number that one group alone tells has no error: the ridge makes it huge.
    steps = np.linalg.solve(whole - information + _ridge(whole), scores[..., None])[..., 0]
    errors: Floats = np.sqrt((n_groups - 1) / n_groups * (steps**2).sum(axis=0))
    return errors


def expected_errors(values: Floats, weights: Floats, theta: Floats, whole: Floats) -> Floats:
    """Return the standard errors of p numbers that labels drawn from the model would have.

    `whole` is the curvature of all items, (p, p), which depends on no label.
    """
    p = probabilities(values, theta)
    size = weights.sum(axis=1, keepdims=True)
    scores = [drps_derivatives(values, size * label, theta)[0] for label in np.eye(p.shape[1])]
    steps = np.stack(scores, axis=1) @ np.linalg.inv(whole + _ridge(whole))
    errors: Floats = np.sqrt(np.einsum("nk,nkp->p", p, steps**2))
    return errors


@dataclass(frozen=True, eq=False)
class LabelsAlone:
    """Labelled items of a design: what they tell of its parameters without a prior."""

    design: Design
    counts: NDArray[Any]
    known: Floats
    weights: Floats  # of the labels of each item, (n, K)
    groups: NDArray[np.int64] | None
    n_effective: float
    theta: Floats

    def _told(self, theta: Floats) -> tuple[Floats, Floats, float]:
        """Parameters, their standard errors, and the degrees of freedom."""
        # Newton's steps without a prior. There are few, since few labels may have no least loss.
        values = self.design.values(self.counts, self.known)
        told, least = theta, math.inf
        for _ in range(_STEPS):
            loss = drps(values, self.weights, told)
            if not loss < least:
                break
            theta, least = told, loss
            scores, curvature = drps_derivatives(values, self.weights, theta)
            whole = curvature.sum(axis=0)
            told = theta + np.linalg.solve(whole + _ridge(whole), scores.sum(axis=0))
        n_units = self.n_effective
        if self.groups is not None:
            n_units = min(n_units, self.groups.max() + 1.0)
        # A few labels may be all as the model has them, and then seem to vary by nothing.
        errors = np.maximum(
            standard_errors(scores, curvature, self.groups),
            expected_errors(values, self.weights, theta, whole),
        )
        return told, errors, max(n_units - len(told), 1.0)

    @cached_property
    def _least(self) -> Floats:
        """The parameters of least DRPS."""
        rows = self.design.rows(self.counts, self.known, self.weights[None])
        means = self.theta[None]
        wide = _WIDE**2 * np.eye(len(self.theta))
        least = [-math.inf] * len(self.theta)
        prior = _core.Prior(np.ones(1), means, wide[None], least)
        return np.asarray(prior.posteriors(*rows, 1)[0][0])

    def _ends(self, level: float, theta: Floats) -> tuple[Floats, Floats, Floats]:
        from scipy.special import stdtrit

        theta, errors, freedom = self._told(theta)
        half = float(stdtrit(freedom, (1 + as_level(level)) / 2)) * errors
        return theta, theta - half, theta + half

    def of_pairs(self, model: Any, level: float) -> dict[str, ParameterInterval]:
        """Return intervals of beta, nu and gamma of one judge.

        They end at the paper's box where the model is in it.
        """
        names = {name: place for place, name in enumerate(self.design.names)}
        if not {"beta", "eta0", "gamma"} <= names.keys():
            return {}
        # From the model: where labels are few, those of least DRPS are at its bounds.
        _, low, high = self._ends(level, self.theta)
        own = self.theta[[names[of] for of in ("beta", "eta0", "gamma")]]
        lower, upper = box_around(own[None])
        intervals = {}
        for place, (name, of) in enumerate(zip(PARAMETERS, ("beta", "eta0", "gamma"), strict=True)):
            ends = np.clip([low[names[of]], high[names[of]]], lower[place], upper[place]).tolist()
            at = zip(ends, (lower[place], upper[place]), ("lower", "upper"), strict=True)
            bounds = [word for end, bound, word in at if end == bound]
            note = f"to the {' and the '.join(bounds)} bound" if bounds else ""
            if name == "nu":
                ends = [math.exp(end) for end in ends]
            estimate = getattr(model, name)
            low_end, high_end = min(ends[0], estimate), max(ends[1], estimate)
            intervals[name] = ParameterInterval(estimate, low_end, high_end, note)
        return intervals

    def of_covariates(self, model: Any, level: float) -> dict[str, ParameterInterval]:
        """Return intervals of the weights of covariates."""
        if not model.covariates:
            return {}
        first = self.design.n_slopes
        ends = np.stack(
            [of[first : first + len(model.covariates)] for of in self._ends(level, self._least)]
        )
        ends[1:] = np.where(np.abs(ends[1:]) > _NEAR, np.copysign(np.inf, ends[1:]), ends[1:])
        return {
            of.name: ParameterInterval(told, low, high, f"in the model {of.weight:.4g}")
            for of, (told, low, high) in zip(model.covariates, ends.T.tolist(), strict=True)
        }
