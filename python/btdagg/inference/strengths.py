"""Davidson strengths of systems over all items, from a few labels and a proxy of every item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize
from scipy.sparse import csr_array, diags_array, hstack
from scipy.sparse.csgraph import connected_components

from btdagg._util.errors import InputError, forbid
from btdagg._util.readable import Readable
from btdagg.inference.estimate import Estimate
from btdagg.inference.label_means import tuned_weights
from btdagg.inference.sample import LabelledSample
from btdagg.model.intervals import ParameterInterval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.inference.population import PredictedItems
    from btdagg.result import Interval

_N_TUNINGS = 2
_N_POLISHES = 6
_LONGEST_STEP, _FAR = 1e-6, 10.0  # of a fit that has come to a minimum, and of one that never will
_ROUNDING = 1e-24  # of a variance
_WIDEST = 600.0  # of a logarithm whose exponential is finite


@dataclass(frozen=True, eq=False)
class Comparisons(Readable):
    """Which systems are compared, and by which items."""

    # `first` and `second`, (P,), are places in `names` of the systems of each pair compared, the
    # lower first; `pair`, (N,), is the pair of each item, and `sign` -1 where A is of the second
    # system.

    names: Sequence[Any]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    pair: NDArray[np.int64]
    sign: NDArray[np.int8]

    @classmethod
    def of(cls, a: NDArray[np.int64], b: NDArray[np.int64], names: Sequence[Any]) -> Comparisons:
        """Gather the comparisons of systems a and b, (N,) numbers from 0 that are not the same."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        codes, pair = np.unique(low * len(names) + high, return_inverse=True)
        sign = np.where(a < b, 1, -1).astype(np.int8)
        return cls(names, codes // len(names), codes % len(names), pair.reshape(-1), sign)

    @cached_property
    def design(self) -> Any:
        """Half the difference of strengths of each pair, as a sparse (P, S) matrix."""
        n, rows = len(self.first), np.arange(len(self.first))
        values = np.repeat([0.5, -0.5], n)
        places = np.concatenate([rows, rows]), np.concatenate([self.first, self.second])
        return csr_array((values, places), shape=(n, len(self.names)))

    def expected(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected margin (wins of the first less wins of the second) and ties, (P, 2)."""
        # Parameters, (S + 1,), are strengths and log nu: minus infinity where ties cannot be.
        half = self.design @ parameters[:-1]
        total = _log_total(half, parameters[-1])
        first, second = np.exp(half - total), np.exp(-half - total)
        return np.stack([first - second, np.exp(parameters[-1] - total)], axis=1)

    def scores(
        self,
        rows: NDArray[np.int64],
        away: NDArray[np.float64],
        groups: NDArray[np.int64],
        n_groups: int,
    ) -> Any:
        """Sum the scores of items by group, sparse (groups, S + 1)."""
        # `away`, (k, 2), is the expected less the seen margin and ties of `rows`; it may be
        # weighted.
        shape = n_groups, len(self.first)
        margins = csr_array((away[:, 0], (groups, self.pair[rows])), shape=shape)
        ties = csr_array((away[:, 1], (groups, np.zeros_like(groups))), shape=(n_groups, 1))
        return hstack([margins @ self.design, ties], format="csr")


@dataclass(frozen=True, eq=False)
class PairStatistics(Readable):
    """Sufficient statistics of the Davidson model."""

    # `n`, (P,), are comparisons of each pair, or their share; `sums`, (P, 2), margins (win of the
    # first +1, of the second -1) and ties; `source` names them in errors.

    pairs: Comparisons
    n: NDArray[np.float64]
    sums: NDArray[np.float64]
    source: str = "labels"

    def loss(self, parameters: NDArray[np.float64]) -> float:
        """Negative log-likelihood; see `Comparisons.expected` for the parameters."""
        half, eta = self.pairs.design @ parameters[:-1], parameters[-1]
        of_ties = 0.0 if np.isneginf(eta) else eta * self.sums[:, 1].sum()
        return float(self.n @ _log_total(half, eta) - self.sums[:, 0] @ half - of_ties)

    def gradient(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the loss, (S + 1,)."""
        away = self.n[:, None] * self.pairs.expected(parameters) - self.sums
        return np.append(away[:, 0] @ self.pairs.design, away[:, 1].sum())

    def hessian(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Hessian of the loss, (S + 1, S + 1)."""
        design = self.pairs.design
        margin, tie = self.pairs.expected(parameters).T
        n_systems = len(parameters) - 1
        hessian = np.empty((n_systems + 1, n_systems + 1))
        of_margins = diags_array(self.n * (1 - tie - margin**2))
        hessian[:-1, :-1] = (design.T @ of_margins @ design).toarray()
        hessian[-1, :-1] = hessian[:-1, -1] = -(self.n * margin * tie) @ design
        hessian[-1, -1] = self.n @ (tie * (1 - tie))
        return hessian

    def inverse_hessian(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inverse of the Hessian where strengths sum to 0, and ties may be impossible."""
        n_systems = len(parameters) - 1
        free = n_systems + int(np.isfinite(parameters[-1]))
        anchored = _anchored(self.hessian(parameters)[:free, :free], n_systems)
        inverse = np.zeros((n_systems + 1, n_systems + 1))
        inverse[:free, :free] = np.linalg.inv(anchored)
        inverse[:n_systems, :n_systems] -= 1.0
        return inverse

    def fit(self) -> NDArray[np.float64]:
        """Return the parameters of maximum likelihood, with strengths that sum to 0."""
        # Without ties: Bradley and Terry. Systems that are not connected, won or lost everything,
        # or only tied are an `InputError`.
        self._check_connected()
        n_systems = len(self.pairs.names)
        ties, total = float(self.sums[:, 1].sum()), float(self.n.sum())
        rounding = 1e-12 * total
        forbid(
            ties > total - rounding,
            f"by the {self.source}, all comparisons are ties, expected some wins and losses",
        )
        free = n_systems + int(ties > rounding)

        def whole(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return x if free > n_systems else np.append(x, -np.inf)

        def hessian(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return _anchored(self.hessian(whole(x))[:free, :free] / total, n_systems)

        def gradient(x: NDArray[np.float64]) -> NDArray[np.float64]:
            gradient = self.gradient(whole(x))[:free] / total
            gradient[:n_systems] += x[:n_systems].mean() / n_systems
            return gradient

        def loss(x: NDArray[np.float64]) -> float:
            return self.loss(whole(x)) / total + float(x[:n_systems].mean()) ** 2 / 2

        # A minimum takes a dozen steps; a fit without one would go on for seconds.
        options = {"method": "trust-exact", "options": {"gtol": 1e-7, "maxiter": 100}}
        start = optimize.minimize(loss, np.zeros(free), jac=gradient, hess=hessian, **options).x
        x, step = start, np.inf
        for _ in range(_N_POLISHES):
            try:
                moved = np.linalg.solve(hessian(x), gradient(x))
            except np.linalg.LinAlgError:
                break
            x, step = x - moved, float(np.abs(moved).max())
            if not step < _FAR:
                break
        # Towards a minimum steps become shorter; towards infinity they do not.
        if not step < _LONGEST_STEP:
            raise InputError(self._separation(start[:n_systems]))
        x[:n_systems] -= x[:n_systems].mean()
        return whole(x)

    def _check_connected(self) -> None:
        compared = self.n > 0
        n = len(self.pairs.names)
        places = self.pairs.first[compared], self.pairs.second[compared]
        number, part = connected_components(
            csr_array((np.ones(int(compared.sum())), places), shape=(n, n)), directed=False
        )
        if number > 1:
            smallest = int(np.argmin(np.bincount(part)))
            raise InputError(
                f"by the {self.source}, {self._named(part == smallest)} not compared with any "
                "other system, so strengths have no common scale"
            )

    def _separation(self, strengths: NDArray[np.float64]) -> str:
        order = np.argsort(strengths)
        gap = int(np.argmax(np.diff(strengths[order]))) + 1
        is_top = 2 * gap >= len(order)
        extreme = np.zeros(len(order), dtype=np.bool_)
        extreme[order[gap:] if is_top else order[:gap]] = True
        return (
            f"by the {self.source}, {self._named(extreme)} without a "
            f"{'loss' if is_top else 'win'} or tie against the other systems, so strengths have "
            "no finite estimate: label more of these items"
        )

    def _named(self, which: NDArray[np.bool_]) -> str:
        names = [self.pairs.names[place] for place in np.flatnonzero(which).tolist()]
        return f"system {listed(names)} is" if len(names) == 1 else f"systems {listed(names)} are"


def listed(names: Sequence[Any]) -> str:
    """List the first few names of systems."""
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def _log_total(half: NDArray[np.float64], eta: float) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.logaddexp(np.logaddexp(half, -half), eta)
    return total


def _anchored(hessian: NDArray[np.float64], n_systems: int) -> NDArray[np.float64]:
    anchored = hessian.copy()
    anchored[:n_systems, :n_systems] += 1 / n_systems**2
    return anchored


@dataclass(frozen=True, eq=False)
class FittedStrengths(Readable):
    """Strengths and the logarithm of the tie parameter (minus infinity without ties), (S + 1,).

    Attributes
    ----------
    parameters : (S + 1,) array
    influence : (R, S + 1) array
        Error that each labelled group adds to each; further rows have the errors of the others.
    groups : (G,) array of int
        Numbers of the labelled groups, in the order of the first rows.
    freedom : float
        Degrees of freedom of Student's t.
    weight : float
        Weight of the judge's probabilities, from 0 to 1.
    reference : int or None
        The system with strength 0; None where strengths sum to 0.
    """

    parameters: NDArray[np.float64]
    influence: NDArray[np.float64]
    groups: NDArray[np.int64]
    freedom: float
    weight: float
    reference: int | None = None

    @property
    def values(self) -> NDArray[np.float64]:
        """Strengths alone, (S,)."""
        return self.parameters[:-1]

    @property
    def has_ties(self) -> bool:
        """Whether two systems can tie."""
        return bool(np.isfinite(self.parameters[-1]))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the strengths, (S, S)."""
        influence = self.influence[:, :-1]
        covariance: NDArray[np.float64] = influence.T @ influence
        return covariance

    def relative_to(self, reference: int | None) -> FittedStrengths:
        """Return the same with the strength of one system at 0."""
        if reference is None:
            return self
        parameters, influence = self.parameters.copy(), self.influence.copy()
        parameters[:-1] -= parameters[reference]
        influence[:, :-1] -= influence[:, [reference]]
        moved = replace(self, parameters=parameters, influence=influence)
        return replace(moved, reference=reference)

    def strength(self, system: int, less: int | None = None) -> Estimate:
        """Estimate the strength of a system, or its difference from another one."""
        value, influence = self.values[system], self.influence[:, system]
        if less is not None:
            value, influence = value - self.values[less], influence - self.influence[:, less]
        square = float(influence @ influence)
        variance = square if square > _ROUNDING else 0.0
        of_groups = influence[: len(self.groups)]
        return Estimate(float(value), variance, of_groups, self.groups, freedom=self.freedom)

    def interval(self, system: int, level: float) -> ParameterInterval:
        """Return the strength of a system with its interval."""
        if system == self.reference:
            return ParameterInterval(0.0, 0.0, 0.0, "baseline")
        estimate = self.strength(system)
        if estimate.variance == 0 and np.isfinite(self.freedom):
            alike = "labelled groups are all alike"
            return ParameterInterval(estimate.value, np.nan, np.nan, alike)
        return ParameterInterval(*estimate.interval(level))

    def tie_parameter(self, ties: Interval, comparisons: Comparisons) -> ParameterInterval:
        """Return Davidson's nu, with the interval that one of the share of ties becomes."""
        # Where ties are rare nu is far from normal, while the interval of a share holds; nu
        # increases with it. Estimated strengths differ more than true ones, by the variance
        # subtracted here.
        value = float(np.exp(self.parameters[-1]))
        design, items = comparisons.design, np.bincount(comparisons.pair)
        half = design @ self.values
        noise = ((design @ self.influence[:, :-1].T) ** 2).sum(axis=1)
        cosh = np.cosh(np.sqrt(np.maximum(half**2 - noise, 0.0)))

        def nu_of(share: float) -> float:
            def away(eta: float) -> float:
                tie = 1 / (1 + 2 * cosh * np.exp(-eta))
                return float(items @ tie / items.sum()) - share

            if share <= 0:
                return 0.0
            return np.inf if share >= 1 else float(np.exp(optimize.brentq(away, -_WIDEST, _WIDEST)))

        low, high = nu_of(ties.low), nu_of(ties.high)
        return ParameterInterval(
            value, min(low, value), max(high, value), "" if self.has_ties else "no ties"
        )

    def pvalues(self) -> NDArray[np.float64]:
        """Two-sided p-values of no difference, (S, S)."""
        n = len(self.values)
        pvalues = np.ones((n, n))
        for first, second in combinations(range(n), 2):
            p = self.strength(first, second).pvalue()
            pvalues[first, second] = pvalues[second, first] = p
        return pvalues


def corrected_strengths(
    population: PredictedItems, sample: LabelledSample, comparisons: Comparisons
) -> FittedStrengths:
    """Return prediction-powered strengths of all systems, and their covariance by groups.

    Notes
    -----
    Strengths minimise ``w mean_U l(f) + sum_L (l(y) - w l(f))``: l the loss of the Davidson model,
    y the label, f the probabilities of a model that did not see it, L the labelled items, U those
    that stand for all. The loss is linear in labels, so this is a fit to corrected counts of wins
    and ties, right whatever f is worth. The weight minimises the summed variance of strengths,
    tempered as in `btdagg.inference.label_means.corrected_by`.

    References
    ----------
    Davidson (1970); Angelopoulos, Duchi and Zrnic, PPI++ (2023), for M-estimators; Zrnic and Candès
    (2024) for cross-fitting.
    """
    corrected = _Corrected(population, sample, comparisons)
    weights = np.zeros(sample.n_groups)
    if not len(corrected.stand_ins):
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
        self, population: PredictedItems, sample: LabelledSample, comparisons: Comparisons
    ) -> None:
        self.sample, self.comparisons = sample, comparisons
        self.labelled = population.labelled
        place, sign = population.place, comparisons.sign
        tables, self.fold = population.tables, population.fold
        # Margin and ties of each distinct row, by each model.
        tables = np.stack([tables[..., 2] - tables[..., 0], tables[..., 1]], axis=-1)
        self.stand_ins = population.stand_ins()
        self.groups = np.arange(len(place)) if population.groups is None else population.groups
        self.pair = comparisons.pair[self.labelled]
        turned = np.stack([sign[self.labelled], np.ones(len(self.labelled))], axis=1)
        minus, tie, plus = population.outcomes.T
        gold = np.stack([plus - minus, tie], axis=1)
        self.seen = gold * turned
        self.predicted = tables[self.fold, place[self.labelled]] * turned
        if not len(self.stand_ins):
            return
        self.shares = np.bincount(self.fold, weights=sample.weights, minlength=len(tables))
        table = np.einsum("f,fkc->kc", self.shares, tables)
        self.of_stand_ins = table[place[self.stand_ins]]
        self.of_stand_ins[:, 0] *= sign[self.stand_ins]
        # Mean margin and ties of each pair by each model, (folds, pairs, 2).
        where = comparisons.pair[self.stand_ins], place[self.stand_ins]
        shape = len(comparisons.first), tables.shape[1]
        share = np.full(len(self.stand_ins), 1 / len(self.stand_ins))
        turned_rows = csr_array((share * sign[self.stand_ins], where), shape=shape)
        rows = csr_array((share, where), shape=shape)
        self.means = np.stack(
            [(turned_rows @ tables[..., 0].T).T, (rows @ tables[..., 1].T).T], axis=-1
        )
        self.n_stand_ins = np.bincount(where[0], minlength=shape[0]) / len(self.stand_ins)

    def _by_pair(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        n_pairs = len(self.comparisons.first)
        return np.bincount(self.pair, values, n_pairs).astype(np.float64)

    def of_proxies(self) -> PairStatistics:
        """Statistics of the proxy alone, drawn a little to one third each: where to begin."""
        sample_weights = self.sample.weights
        n = self.n_stand_ins + self._by_pair(sample_weights)
        sums = np.einsum("f,fpc->pc", self.shares, self.means)
        sums += np.stack(
            [self._by_pair(sample_weights * column) for column in self.predicted.T], axis=1
        )
        sums = 0.9 * sums + 0.1 * n[:, None] * np.array([0, 1 / 3])
        return PairStatistics(self.comparisons, n, sums, "items")

    def statistics(self, weights: NDArray[np.float64]) -> PairStatistics:
        sample_weights = self.sample.weights
        of_item = weights[self.sample.groups] * self.sample.stand_in / sample_weights
        n = self._by_pair(sample_weights * (1 - of_item))
        away = self.seen - of_item[:, None] * self.predicted
        sums = np.stack([self._by_pair(sample_weights * column) for column in away.T], axis=1)
        source = "labels"
        if of_item.any():
            source = "labels and corrected votes"
            n = n + of_item @ sample_weights * self.n_stand_ins
            of_fold = np.bincount(self.fold, sample_weights * of_item, len(self.means))
            sums = sums + np.einsum("f,fpc->pc", of_fold, self.means)
        return PairStatistics(self.comparisons, n, sums, source)

    def _errors(
        self, parameters: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Errors of scores by group, (G, S + 1), of labels and proxies; products of stand-ins'."""
        expected, sample = self.comparisons.expected(parameters), self.sample
        loads, shares = sample.loads, sample.by_group(sample.loads)
        stand_in = sample.stand_in / max(sample.stand_in.sum(), 1e-300)

        def deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
            away = expected[self.pair] - values
            scores = self.comparisons.scores(
                self.labelled, loads[:, None] * away, sample.groups, sample.n_groups
            ).toarray()
            every = np.zeros_like(sample.groups)
            mean = self.comparisons.scores(self.labelled, stand_in[:, None] * away, every, 1)
            return np.asarray(scores - np.outer(shares, mean.toarray()[0]))

        of_labels, of_proxies = deviations(self.seen), deviations(self.predicted)
        n_parameters = len(parameters)
        if sample.is_finite or not len(self.stand_ins):  # all predictions are known
            return of_labels, of_proxies, np.zeros((n_parameters, n_parameters))
        n = len(self.stand_ins)
        away = (expected[self.comparisons.pair[self.stand_ins]] - self.of_stand_ins) / n
        group, n_groups = self.groups[self.stand_ins], int(self.groups.max()) + 1
        scores = self.comparisons.scores(self.stand_ins, away, group, n_groups)
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
        of_labels, of_proxies, of_rest = self._errors(parameters)
        to_strengths = statistics.inverse_hessian(parameters)[:, :-1]
        y, f = of_labels @ to_strengths, of_proxies @ to_strengths
        rest = float(np.trace(to_strengths.T @ of_rest @ to_strengths))
        return tuned_weights((y * f).sum(axis=1), (f * f).sum(axis=1), max(rest, 0.0))

    def strengths(
        self, parameters: NDArray[np.float64], weight: float, weights: NDArray[np.float64]
    ) -> FittedStrengths:
        of_labels, of_proxies, of_rest = self._errors(parameters)
        sample = self.sample
        inverse = self.statistics(weights).inverse_hessian(parameters)
        errors = sample.jackknifed(of_labels - weights[:, None] * of_proxies) @ inverse
        # As many rows as parameters vary as all groups without a label do.
        values, vectors = np.linalg.eigh(of_rest)
        rest = weight * np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T @ inverse
        influence = np.concatenate([errors, rest])
        freedom = sample.degrees_of_freedom
        return FittedStrengths(parameters, influence, sample.names, freedom, weight)
