"""Strengths of systems over all items, from a few labels and a proxy of every item; their tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.sparse import csr_array, hstack

from btdagg._util.readable import readable
from btdagg.estimates.davidson import PairStatistics, SystemPairs
from btdagg.estimates.mean import LabelledSample, tuned_weights
from btdagg.evaluation.significance import t_pvalues
from btdagg.model.intervals import ParameterInterval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.estimates.population import Population
    from btdagg.estimates.quantities import MeanEstimate

_N_TUNINGS = 2
_ROUNDING = 1e-24  # of a variance
_WIDEST = 600.0  # of a logarithm whose exponential is finite
_ALIKE = "labelled groups are all alike"


@readable
@dataclass(frozen=True, eq=False)
class Comparisons:
    """Which pair of systems each item compares.

    Attributes
    ----------
    pairs : SystemPairs
    pair : (N,) array of int
        Number of the pair.
    sign : (N,) array of -1 and 1
        -1 where the response A is of the second system of the pair.
    """

    pairs: SystemPairs
    pair: NDArray[np.int64]
    sign: NDArray[np.int8]

    @classmethod
    def of(cls, a: NDArray[np.int64], b: NDArray[np.int64], names: list[Any]) -> Comparisons:
        """Gather the comparisons of systems a and b, (N,) numbers from 0 that are not the same."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        codes, pair = np.unique(low * len(names) + high, return_inverse=True)
        pairs = SystemPairs(codes // len(names), codes % len(names), names)
        return cls(pairs, pair.reshape(-1), np.where(a < b, 1, -1).astype(np.int8))

    def scores(
        self,
        rows: NDArray[np.int64],
        away: NDArray[np.float64],
        groups: NDArray[np.int64],
        n_groups: int,
    ) -> Any:
        """Sum the scores of items by group, sparse (groups, S + 1).

        Parameters
        ----------
        rows : (k,) array of int
            Numbers of the items.
        away : (k, 2) array
            Expected less seen margin and ties, which may be weighted.
        groups : (k,) array of int
        n_groups : int
        """
        shape = n_groups, len(self.pairs.first)
        of_pairs = csr_array((away[:, 0], (groups, self.pair[rows])), shape=shape)
        ties = csr_array((away[:, 1], (groups, np.zeros_like(groups))), shape=(n_groups, 1))
        return hstack([of_pairs @ self.pairs.design, ties], format="csr")


@readable
@dataclass(frozen=True, eq=False)
class Standings:
    """Strengths and the logarithm of the tie parameter.

    Attributes
    ----------
    parameters : (S + 1,) array
        The last is minus infinity where there are no ties.
    covariance : (S + 1, S + 1) array
    weight : float
        Weight of the proxy, from 0 to 1.
    reference : int or None
        Number of the system with strength 0; None where strengths sum to 0.
    """

    parameters: NDArray[np.float64]
    covariance: NDArray[np.float64]
    weight: float
    reference: int | None = None

    @property
    def strengths(self) -> NDArray[np.float64]:
        """Strengths alone, (S,)."""
        return self.parameters[:-1]

    @property
    def has_ties(self) -> bool:
        """Whether two systems can tie."""
        return bool(np.isfinite(self.parameters[-1]))

    def relative_to(self, reference: int | None) -> Standings:
        """Return the same with the strength of one system at 0."""
        if reference is None:
            return self
        away = np.eye(len(self.parameters))
        away[:-1, reference] -= 1
        covariance = away @ self.covariance @ away.T
        # Without the rounding.
        covariance[reference] = covariance[:, reference] = 0.0
        parameters = self.parameters.copy()
        parameters[:-1] -= parameters[reference]
        return Standings(parameters, (covariance + covariance.T) / 2, self.weight, reference)

    def intervals(self, level: float, degrees_of_freedom: float) -> list[ParameterInterval]:
        """Return the interval of each strength, by Student's t."""
        errors = _errors_of(self.covariance.diagonal())
        halves = stats.t.ppf((1 + level) / 2, degrees_of_freedom) * errors
        found = []
        for place, value in enumerate(self.strengths.tolist()):
            if place == self.reference:
                found.append(ParameterInterval(0.0, 0.0, 0.0, "baseline"))
            else:
                found.append(_interval(value, float(halves[place])))
        return found

    def tie_parameter(
        self, ties: MeanEstimate, pairs: SystemPairs, items: NDArray[np.int64]
    ) -> ParameterInterval:
        """Return Davidson's nu, with the interval that one of the share of ties becomes.

        Where ties are rare nu is far from normal on any scale and its sandwich variance is a guess,
        while the interval of a share holds. At given strengths nu increases with the share of ties.
        Those that were found differ by more than the true ones do, by the variance of their
        differences, which is taken off.

        Parameters
        ----------
        ties : MeanEstimate
            Share of ties over all items.
        pairs : SystemPairs
        items : (P,) array
            Items of each pair.
        """
        value = float(np.exp(self.parameters[-1]))
        design = pairs.design
        half = design @ self.strengths
        noise = (design @ self.covariance[:-1, :-1] * design.toarray()).sum(axis=1)
        cosh = np.cosh(np.sqrt(np.maximum(half**2 - noise, 0.0)))

        def nu_of(share: float) -> float:
            def away(eta: float) -> float:
                tie = 1 / (1 + 2 * cosh * np.exp(-eta))
                return float(items @ tie / items.sum()) - share

            if share <= 0:
                return 0.0
            return np.inf if share >= 1 else float(np.exp(brentq(away, -_WIDEST, _WIDEST)))

        low, high = nu_of(ties.low), nu_of(ties.high)
        return ParameterInterval(
            value, min(low, value), max(high, value), "" if self.has_ties else "no ties"
        )

    def pvalues(self, degrees_of_freedom: float) -> NDArray[np.float64]:
        """Two-sided p-values of no difference, (S, S)."""
        covariance = self.covariance[:-1, :-1]
        variances = covariance.diagonal()
        errors = _errors_of(variances[:, None] + variances - 2 * covariance)
        away = self.strengths[:, None] - self.strengths
        return t_pvalues(away, errors, degrees_of_freedom)


def _errors_of(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard errors, 0 where a variance is nothing but rounding."""
    found: NDArray[np.float64] = np.sqrt(np.where(variances > _ROUNDING, variances, 0.0))
    return found


def _interval(value: float, half: float) -> ParameterInterval:
    if half == 0:
        return ParameterInterval(value, np.nan, np.nan, _ALIKE)
    return ParameterInterval(value, value - half, value + half)


def corrected_strengths(
    population: Population, sample: LabelledSample, comparisons: Comparisons
) -> Standings:
    """Return prediction-powered strengths of all systems, and their covariance by groups.

    Parameters
    ----------
    population : Population
    sample : LabelledSample
        All labelled items.
    comparisons : Comparisons

    Notes
    -----
    Strengths minimise ``w mean_U l(f) + sum_L (l(y) - w l(f))``, where l is the loss of the
    Davidson model, y the label, f the probabilities of a model that did not see it, L the labelled
    items and U those that stand for all. The loss is linear in labels, so that this is a fit to
    corrected counts of wins and ties of each pair. They are right whatever f is worth.

    The weight makes the sum of the variances of strengths least. It is tempered as
    `btdagg.estimates.mean.corrected_mean` tempers its own.

    References
    ----------
    Davidson (1970); Angelopoulos, Duchi and Zrnic, PPI++ (2023), for M-estimators; Zrnic and Candès
    (2024) for cross-fitting.
    """
    corrected = _Corrected(population, sample, comparisons)
    weights = np.zeros(sample.n_groups)
    if not len(corrected.others):
        parameters = corrected.statistics(weights).fit()
        return corrected.strengths(parameters, 0.0, weights)
    statistics = corrected.of_proxies()
    parameters = statistics.fit()
    for _ in range(_N_TUNINGS):
        weight, weights = corrected.tuned(parameters, statistics)
        statistics = corrected.statistics(weights)
        parameters = statistics.fit()
    return corrected.strengths(parameters, weight, weights)


class _Corrected:
    """Sufficient statistics and scores of labelled items, and of those that stand for all."""

    def __init__(
        self, population: Population, sample: LabelledSample, comparisons: Comparisons
    ) -> None:
        self.sample, self.comparisons = sample, comparisons
        self.labelled = population.labelled
        place, sign = population.items.place, comparisons.sign
        tables, self.fold = population.predictions.tables, population.predictions.fold
        # Margin and ties of each distinct row, by each model.
        tables = np.stack([tables[..., 2] - tables[..., 0], tables[..., 1]], axis=-1)
        self.others = population.stand_ins()
        self.groups = np.arange(len(place)) if population.groups is None else population.groups
        self.pair = comparisons.pair[self.labelled]
        turned = np.stack([sign[self.labelled], np.ones(len(self.labelled))], axis=1)
        minus, tie, plus = population.outcomes.T
        gold = np.stack([plus - minus, tie], axis=1)
        self.seen = gold * turned
        self.predicted = tables[self.fold, place[self.labelled]] * turned
        if not len(self.others):
            return
        self.shares = np.bincount(self.fold, weights=sample.weights, minlength=len(tables))
        table = np.einsum("f,fkc->kc", self.shares, tables)
        self.of_others = table[place[self.others]]
        self.of_others[:, 0] *= sign[self.others]
        # Mean margin and ties of each pair by each model, (folds, pairs, 2).
        where = comparisons.pair[self.others], place[self.others]
        shape = len(comparisons.pairs.first), tables.shape[1]
        each = np.full(len(self.others), 1 / len(self.others))
        turned_rows = csr_array((each * sign[self.others], where), shape=shape)
        rows = csr_array((each, where), shape=shape)
        self.means = np.stack(
            [(turned_rows @ tables[..., 0].T).T, (rows @ tables[..., 1].T).T], axis=-1
        )
        self.n_others = np.bincount(where[0], minlength=shape[0]) / len(self.others)

    def _by_pair(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        n_pairs = len(self.comparisons.pairs.first)
        return np.bincount(self.pair, values, n_pairs).astype(np.float64)

    def of_proxies(self) -> PairStatistics:
        """Statistics of the proxy alone, drawn a little to one third each: where to begin."""
        own = self.sample.weights
        n = self.n_others + self._by_pair(own)
        sums = np.einsum("f,fpc->pc", self.shares, self.means)
        sums += np.stack([self._by_pair(own * column) for column in self.predicted.T], axis=1)
        sums = 0.9 * sums + 0.1 * n[:, None] * np.array([0, 1 / 3])
        return PairStatistics(self.comparisons.pairs, n, sums, "items")

    def statistics(self, weights: NDArray[np.float64]) -> PairStatistics:
        """Corrected statistics where the proxy has some weight in each group of the sample."""
        own, each = self.sample.weights, weights[self.sample.groups]
        n = self._by_pair(own * (1 - each))
        away = self.seen - each[:, None] * self.predicted
        sums = np.stack([self._by_pair(own * column) for column in away.T], axis=1)
        source = "labels"
        if each.any():
            source = "labels and corrected votes"
            n = n + each @ own * self.n_others
            of_fold = np.bincount(self.fold, own * each, len(self.means))
            sums = sums + np.einsum("f,fpc->pc", of_fold, self.means)
        return PairStatistics(self.comparisons.pairs, n, sums, source)

    def _errors(
        self, parameters: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return what groups add to the errors of the scores of labels, proxies and other items.

        The first two are (G, S + 1); the third is a sum of products, (S + 1, S + 1).
        """
        expected = self.comparisons.pairs.expected(parameters)
        own = self.sample.weights

        def deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
            away = own[:, None] * (expected[self.pair] - values)
            each = self.comparisons.scores(
                self.labelled, away, self.sample.groups, self.sample.n_groups
            ).toarray()
            found: NDArray[np.float64] = each - np.outer(
                self.sample.sums(np.ones(len(own))), each.sum(axis=0)
            )
            return found

        of_labels, of_proxies = deviations(self.seen), deviations(self.predicted)
        n_parameters = len(parameters)
        if not len(self.others):
            return of_labels, of_proxies, np.zeros((n_parameters, n_parameters))
        n = len(self.others)
        away = (expected[self.comparisons.pair[self.others]] - self.of_others) / n
        group, n_groups = self.groups[self.others], int(self.groups.max()) + 1
        scores = self.comparisons.scores(self.others, away, group, n_groups)
        share = np.bincount(group, minlength=n_groups) / n
        mean = np.asarray(scores.sum(axis=0)).reshape(-1)
        of_proxies = of_proxies - (
            scores[self.sample.names].toarray() - np.outer(share[self.sample.names], mean)
        )
        rest = np.ones(n_groups, dtype=np.bool_)
        rest[self.sample.names] = False
        scores, share = scores[rest], share[rest]
        crossed = np.outer(scores.T @ share, mean)
        products = (scores.T @ scores).toarray() - crossed - crossed.T
        return of_labels, of_proxies, products + share @ share * np.outer(mean, mean)

    def tuned(
        self, parameters: NDArray[np.float64], statistics: PairStatistics
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the weight of the proxy, and for each group that of the others."""
        of_labels, of_proxies, of_rest = self._errors(parameters)
        to_strengths = statistics.inverse_hessian(parameters)[:, :-1]
        y, f = of_labels @ to_strengths, of_proxies @ to_strengths
        rest = float(np.trace(to_strengths.T @ of_rest @ to_strengths))
        return tuned_weights((y * f).sum(axis=1), (f * f).sum(axis=1), max(rest, 0.0))

    def strengths(
        self, parameters: NDArray[np.float64], weight: float, weights: NDArray[np.float64]
    ) -> Standings:
        """Return parameters with the sandwich covariance of their errors by group."""
        of_labels, of_proxies, of_rest = self._errors(parameters)
        errors = of_labels - weights[:, None] * of_proxies
        errors = np.stack([self.sample.jackknifed(column) for column in errors.T], axis=1)
        inverse = self.statistics(weights).inverse_hessian(parameters)
        covariance = inverse @ (errors.T @ errors + weight**2 * of_rest) @ inverse
        return Standings(parameters, (covariance + covariance.T) / 2, weight)
