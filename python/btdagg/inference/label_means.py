"""Mean shares of labels over a domain: of labels alone, and corrected by proxies of every item."""

from __future__ import annotations

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

    Each has a last axis of K labels.

    Attributes
    ----------
    labelled : (n, K) array
    means : (n, K) array
        Averages of the same models' proxies over the items that stand for all.
    shared, rest : (G, K) and (R, K) arrays
        For the sample's groups and the groups without a label, sums of the deviations of their
        other items from the mean of all proxies, over the number of items.
    names : (R,) array of int
        Numbers of the groups without a label; empty where each item is its own, and items with the
        same votes are a row of `rest`.
    spread : (K, K) array or None
        Covariance of the difference of mean proxies with models fixed, items independent and
        labels a simple sample: PPI++ as published.
    """

    labelled: Floats
    means: Floats
    shared: Floats
    rest: Floats
    names: NDArray[np.int64]
    spread: Floats | None = None


@readable
class LabelMeans(NamedTuple):
    """Mean share of each of K labels, and what its error is made of.

    Attributes
    ----------
    sample : LabelledSample
    value : (K,) array
    errors : (G, K) array
        Error added by each labelled group.
    residuals : (n, K) array
        What labels are away from their proxies.
    weight : float
        Weight of the proxies, from 0 to 1.
    rest : (R, K) array
        Error added by groups without a label, those of `names` first.
    names : array of int
    """

    sample: LabelledSample
    value: Floats
    errors: Floats
    residuals: Floats
    weight: float
    rest: Floats
    names: NDArray[np.int64]

    def of(self, values: Floats, ends: Ends, n_items: int) -> Estimate:
        """Return the mean of a value for each label, (K,), over so many items."""
        sample, value = self.sample, float(self.value @ values)
        n, is_finite = len(self.residuals), sample.is_finite
        if not sample.has_spread:
            forecast = LabelForecast(n, sample.n_groups, n_items, np.nan, np.nan, is_finite)
            return Estimate(value, np.nan, ends=ends, forecast=forecast)
        errors, rest = self.errors @ values, self.rest @ values
        span = ends[1] - ends[0] if np.isfinite(ends).all() else 0.0
        errors = np.where(np.abs(errors) < _ROUNDING * span, 0.0, errors)
        of_labels, of_rest = float(errors @ errors), float(rest @ rest)
        least = sample.least_variance(self.residuals @ values)
        if 0 < of_labels < least:
            errors, of_labels = errors * np.sqrt(least / of_labels), least
        return Estimate(
            value,
            of_labels + of_rest,
            np.append(errors, rest[: len(self.names)]),
            np.append(sample.names, self.names),
            ends,
            sample.degrees_of_freedom,
            sample.n_alike,
            weight=self.weight,
            forecast=LabelForecast(n, sample.n_groups, n_items, of_labels, of_rest, is_finite),
        )

    def with_errors(self, errors: Floats) -> LabelMeans:
        """Return the means with (m, K) errors more, of no labelled group."""
        return self._replace(rest=np.concatenate([self.rest, errors]))


def means_of_labels(shares: Floats, sample: LabelledSample) -> LabelMeans:
    """Return means of (n, K) shares of labels, from labels alone; errors need two groups."""
    errors, value = np.zeros((sample.n_groups, shares.shape[1])), np.full(shares.shape[1], np.nan)
    if sample.has_spread:
        errors, value = sample.jackknifed(sample.deviations(shares)), sample.weights @ shares
    elif len(shares):
        value = shares.mean(axis=0)
    nothing = np.zeros((0, shares.shape[1]))
    return LabelMeans(sample, value, errors, shares, 0.0, nothing, sample.names[:0])


def labelled_mean(
    values: Floats, sample: LabelledSample, ends: Ends, n_items: int | None = None
) -> Estimate:
    """Return the mean of (n,) values of labelled items, from these alone."""
    n_items = len(values) if n_items is None else n_items
    return means_of_labels(values[:, None], sample).of(np.ones(1), ends, n_items)


def corrected_means(
    shares: Floats, proxies: Proxies, sample: LabelledSample, tuned: Floats
) -> LabelMeans:
    """Return the prediction-powered means of all items, from (n, K) shares of labelled ones.

    Notes
    -----
    The mean is ``sum w (y - weight (f - F))``, F the mean of the proxy f over the items that stand
    for all: right whatever the proxy is worth. All labels have one weight, so that shares add up to
    1. It is that of the mean of the `tuned` values, (K,): the regression of labels on proxies by
    group, for each group without that group, so that its fit adds no bias; it is shrunk by
    ``1 - 1 / t**2`` and 0 for t below 1, t being its statistic, so that noise costs next to
    nothing.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès, Cross-prediction-powered
    inference (2024); James and Stein (1961) for the shrinkage; Efron (1982) for the jackknife.
    """
    of_labels, of_proxies = sample.deviations(shares), sample.deviations(proxies.labelled)
    away = proxies.labelled - proxies.means
    if proxies.spread is not None:
        together = float((of_labels @ tuned) @ (of_proxies @ tuned))
        spread = float(tuned @ proxies.spread @ tuned)
        weight = min(max(together / spread, 0.0), 1.0) if spread > 0 else 0.0
        weights = np.full(sample.n_groups, weight)
        errors = of_labels - weight * of_proxies
    else:
        of_proxies = of_proxies - proxies.shared
        tuned_proxies, of_rest = of_proxies @ tuned, proxies.rest @ tuned
        products = (of_labels @ tuned) * tuned_proxies
        weight, weights = tuned_weights(products, tuned_proxies**2, float(of_rest @ of_rest))
        errors = sample.jackknifed(of_labels - weights[:, None] * of_proxies)
    residuals = shares - weights[sample.groups, None] * away
    moved = sample.by_group(sample.stand_in[:, None] * away)
    value = sample.weights @ shares - weights @ moved
    return LabelMeans(
        sample, value, errors, residuals, weight, weight * proxies.rest, proxies.names
    )


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
