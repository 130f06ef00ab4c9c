"""Means of values of labels: from labels alone, and corrected by proxies of every item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from btdagg._util.readable import readable
from btdagg.inference.estimate import Estimate, LabelForecast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.inference.intervals import Ends
    from btdagg.inference.sample import LabelledSample

    Floats: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-13  # of errors


@readable
class Proxies(NamedTuple):
    """Proxies of labelled items, by models that did not see them, and of those for all.

    Each may have a last axis, of K labels, and `spread` two.

    Attributes
    ----------
    labelled : (n,) array
    means : (n,) array
        Averages of the same models' proxies over the items that stand for all.
    shared, rest : (G,) and (R,) arrays
        For the sample's groups and the groups without a label, sums of the deviations of their
        other items from the mean of all proxies, over the number of items.
    names : (R,) array of int
        Numbers of the groups without a label; empty where each item is its own, and items with the
        same votes are a row of `rest`.
    spread : float or None
        Variance of the difference of mean proxies with models fixed, items independent and labels
        a simple sample: PPI++ as published.
    """

    labelled: Floats
    means: Floats
    shared: Floats
    rest: Floats
    names: NDArray[np.int64]
    spread: Any = None

    def of(self, values: Floats) -> Proxies:
        """Return the proxies of the mean of a value for each label, (K,)."""
        spread = None if self.spread is None else float(values @ self.spread @ values)
        labelled, means, shared, rest = (part @ values for part in self[:4])
        return Proxies(labelled, means, shared, rest, self.names, spread)


@readable
class MeanParts(NamedTuple):
    """A mean of n labelled items, and what its error is made of.

    Attributes
    ----------
    sample : LabelledSample
    value : float
    errors : (G,) array
        Error added by each labelled group.
    residuals : (n,) array
        What labels are away from their proxies.
    weight : float
        Weight of the proxies, from 0 to 1.
    rest : (R,) array
        Error added by groups without a label, those of `names` first.
    names : array of int
    """

    sample: LabelledSample
    value: float
    errors: Floats
    residuals: Floats
    weight: float
    rest: Floats
    names: NDArray[np.int64]

    def estimate(self, ends: Ends, n_items: int) -> Estimate:
        """Return the mean of so many items, between two ends."""
        sample, n, is_finite = self.sample, len(self.residuals), self.sample.is_finite
        if not sample.has_spread:
            forecast = LabelForecast(n, sample.n_groups, n_items, np.nan, np.nan, is_finite)
            return Estimate(self.value, np.nan, ends=ends, forecast=forecast)
        span = ends[1] - ends[0] if np.isfinite(ends).all() else 0.0
        errors = np.where(np.abs(self.errors) < _ROUNDING * span, 0.0, self.errors)
        of_labels, of_rest = float(errors @ errors), float(self.rest @ self.rest)
        least = sample.least_variance(self.residuals)
        if 0 < of_labels < least:
            errors, of_labels = errors * np.sqrt(least / of_labels), least
        return Estimate(
            self.value,
            of_labels + of_rest,
            np.append(errors, self.rest[: len(self.names)]),
            np.append(sample.names, self.names),
            ends,
            sample.degrees_of_freedom,
            sample.n_alike,
            weight=self.weight,
            forecast=LabelForecast(n, sample.n_groups, n_items, of_labels, of_rest, is_finite),
        )

    def with_errors(self, errors: Floats) -> MeanParts:
        """Return the mean with (m,) errors more, of no labelled group."""
        return self._replace(rest=np.append(self.rest, errors))


def sum_of(terms: Sequence[tuple[float, MeanParts]], constant: float = 0.0) -> MeanParts:
    """Return a sum of means of one sample times factors, and a constant."""
    if len(terms) == 1 and terms[0][0] == 1 and constant == 0:
        return terms[0][1]
    factors, parts = zip(*terms, strict=True)
    sizes = np.abs(factors) / np.abs(factors).sum()
    value, errors, residuals, rest = (
        sum(factor * getattr(part, name) for factor, part in terms)
        for name in ("value", "errors", "residuals", "rest")
    )
    weight = float(sizes @ [part.weight for part in parts])
    return MeanParts(
        parts[0].sample, constant + value, errors, residuals, weight, rest, parts[0].names
    )


def labels_alone(values: Floats, sample: LabelledSample) -> MeanParts:
    """Return the mean of (n,) values of labelled items from these alone; errors need two groups."""
    errors, value = np.zeros(sample.n_groups), np.nan
    if sample.has_spread:
        errors = sample.jackknifed(sample.deviations(values))
        value = float(sample.weights @ values)
    elif len(values):
        value = float(values.mean())
    return MeanParts(sample, value, errors, values, 0.0, np.empty(0), sample.names[:0])


def labelled_mean(
    values: Floats, sample: LabelledSample, ends: Ends, n_items: int | None = None
) -> Estimate:
    """Estimate the mean of (n,) values of labelled items, from these alone."""
    return labels_alone(values, sample).estimate(ends, len(values) if n_items is None else n_items)


def corrected_by(proxies: Proxies, values: Floats, sample: LabelledSample) -> MeanParts:
    """Return the prediction-powered mean of all items, from (n,) values of labelled ones.

    Notes
    -----
    The mean is ``sum w (y - weight (f - F))``, F the mean of the proxy f over the items that stand
    for all: right whatever the proxy is worth. The weight is the regression of labels on proxies by
    group, for each group without that group, so that its fit adds no bias; it is shrunk by
    ``1 - 1 / t**2`` and 0 for t below 1, t being its statistic, so that noise costs next to
    nothing.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès, Cross-prediction-powered
    inference (2024); James and Stein (1961) for the shrinkage; Efron (1982) for the jackknife.
    """
    of_values, of_proxies = sample.deviations(values), sample.deviations(proxies.labelled)
    away = proxies.labelled - proxies.means
    if proxies.spread is not None:
        together = float(of_values @ of_proxies)
        weight = min(max(together / proxies.spread, 0.0), 1.0) if proxies.spread > 0 else 0.0
        weights = np.full(sample.n_groups, weight)
        errors = of_values - weight * of_proxies
    else:
        of_proxies = of_proxies - proxies.shared
        products, of_rest = of_values * of_proxies, float(proxies.rest @ proxies.rest)
        weight, weights = tuned_weights(products, of_proxies**2, of_rest)
        errors = sample.jackknifed(of_values - weights * of_proxies)
    residuals = values - weights[sample.groups] * away
    moved = sample.by_group(sample.stand_in * away)
    value = float(sample.weights @ values - weights @ moved)
    rest = weight * proxies.rest
    return MeanParts(sample, value, errors, residuals, weight, rest, proxies.names)


def tuned_weights(yf: Floats, ff: Floats, of_rest: float) -> tuple[float, Floats]:
    """Return the shrunk regression weight of all groups, and for each that of the others.

    `yf` and `ff`, (G,), are products of a group's deviations of labels and proxies, and squares of
    those of proxies; `of_rest` sums the squares of groups without a label.
    """
    products: Any = np.stack([yf, ff, yf**2, yf * ff, ff**2])
    whole = products.sum(axis=1, keepdims=True)
    # Of all groups first, then without each.
    yf, ff, yyff, yfff, ffff = np.concatenate([whole, whole - products], axis=1)
    ff = ff + of_rest
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = yf / ff
        variance = np.maximum(yyff - 2 * slope * yfff + slope**2 * ffff, 0.0) / ff**2
        shrunk = slope * (1 - variance / slope**2)
    weights = np.where((ff > 0) & (slope > 0), np.clip(shrunk, 0.0, 1.0), 0.0)
    return float(weights[0]), weights[1:]
