"""All items, what models that did not see a label predict of it, and means of domains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import fdtrc, stdtr

from btdagg._core import InputError
from btdagg._util.folds import deal
from btdagg._util.readable import readable
from btdagg.estimates.kinds import PAIRS, Kind, Predictor
from btdagg.estimates.mean import (
    Ends,
    FiniteSample,
    IntervalParts,
    LabelledSample,
    Mean,
    MeanEstimate,
    Proxies,
    Quantities,
    corrected_mean,
    effective_number,
    is_share,
    labelled_mean,
    limits_of,
    unknown_mean,
)
from btdagg.evaluation.new_items import MUCH
from btdagg.evaluation.significance import t_quantile
from btdagg.votes.scale import Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


Population = Literal["new", "finite"]
"""What an estimate is of: new items of the kind, or these items and no others."""

_ROUNDING = 1e-6
_N_FOLDS = 10
_N_FOLDS_OF_PANELS = 5  # they are slower to fit
_ENOUGH = 50  # labels from which the normal distribution holds
_FEWEST = 10  # groups whose mean can stand for all
_FEW = 5  # labelled groups below which intervals are said to be untried
_UNLIKE = 0.01  # p-value below which labelled items are said to be unlike the others
_FEWER = 0.05  # share of votes by which one kind of items may have more than the other


def as_any_counts(counts: ArrayLike, kind: Kind = PAIRS) -> NDArray[Any]:
    """Return counts of a judge, (n, votes), or of a panel, (n, judges, 3)."""
    array = kind.counts(counts)
    if not len(array):
        raise InputError("counts is empty, expected at least one item", argument="counts")
    return array


def said_of(population: Population, n_items: int) -> str:
    """Say what means are of."""
    return "new items like these" if population == "new" else f"these {n_items:,} items"


class Draw(NamedTuple):
    """What means are of, and how the labelled items were drawn.

    Attributes
    ----------
    population : "new" or "finite"
    units : (N,) array of int, or None
        What was drawn as a whole, as a number from 0; None where items were.
    strata : (n,) array of int, or None
        Stratum of each labelled item, of which so many units were drawn; None where units were
        drawn independently of each other, or are a simple sample.
    is_known : bool
        Whether it is known what was drawn as a whole.
    """

    population: Population = "new"
    units: NDArray[np.int64] | None = None
    strata: NDArray[np.int64] | None = None
    is_known: bool = True

    def among(self, rows: NDArray[np.int64], labelled: NDArray[np.bool_]) -> Draw:
        """Return the draw of some items, by their rows, and by which labelled ones are of them."""
        return self._replace(
            units=None if self.units is None else self.units[rows],
            strata=None if self.strata is None else self.strata[labelled],
        )


Predictions: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.int64]]"
"""Probabilities of k distinct rows of counts by each model, (folds, k, labels), and the number of
the model that did not see each labelled item, (n,)."""


def fixed(model: Predictor, rows: NDArray[Any], n_labels: int, kind: Kind = PAIRS) -> Predictions:
    """Predict by a model that was there before the labels."""
    own = tuple(getattr(model, name, None) for name in ("scale", "label_scale"))
    if isinstance(own[0], Scale) and own != (kind.scale, kind.label_scale):
        came, expected = (
            f"votes {votes} and labels {labels}"
            for votes, labels in (own, (kind.scale, kind.label_scale))
        )
        raise InputError(f"model is of {came}, expected one of {expected}", argument="model")
    table = np.asarray(model.predict_proba(rows), dtype=np.float64)
    names = kind.labels
    good = table.shape == (len(rows), len(names)) and bool((table >= 0).all())
    if not good or np.abs(table.sum(axis=1) - 1).max() > _ROUNDING:
        raise InputError(
            f"predict_proba of model returned no probabilities of {', '.join(names[:-1])} and "
            f"{names[-1]}, expected (n, {len(names)}) of numbers that add up to 1",
            argument="model",
        )
    return table[None], np.zeros(n_labels, dtype=np.int64)


def cross_fitted(
    counts: NDArray[Any],
    outcomes: NDArray[np.float64],
    groups: NDArray[np.int64],
    rows: NDArray[Any],
    prior: Any,
    seed: int,
    sign: NDArray[np.int8] | None = None,
    kind: Kind = PAIRS,
) -> Predictions:
    """Calibrate on all labels but those of one fold, for each fold of whole groups.

    `counts` and `outcomes`, (n, labels), are the votes of the labelled items and the shares of
    their raters for each label, `groups` their groups as numbers from 0, and `rows` the counts to
    predict. Where folds are dealt, the sides of items whose `sign` is -1 are swapped.
    """
    is_panel = rows.ndim == 3
    n_folds = min(_N_FOLDS_OF_PANELS if is_panel else _N_FOLDS, int(groups.max()) + 1)
    content = [counts, outcomes]
    if sign is not None:
        content = [_turned(values, sign) for values in content]
    fold = deal(groups, content, n_folds, seed)
    tables = np.empty((n_folds, len(rows), outcomes.shape[1]))
    for number in range(n_folds):
        seen = fold != number
        model = calibrated(counts[seen], outcomes[seen], groups[seen], prior, kind)
        tables[number] = model.predict_proba(rows)
    return tables, fold


def calibrated(
    counts: NDArray[Any],
    outcomes: NDArray[np.float64],
    groups: NDArray[np.int64],
    prior: Any,
    kind: Kind,
) -> Predictor:
    """Calibrate on the labels of items, as `cross_fitted` does on those of all folds but one."""
    # Each label that raters gave is one of its own, which weighs what their share is.
    row, place = np.nonzero(outcomes)
    return kind.calibrated(counts[row], place, outcomes[row, place], groups[row], prior)


def _turned(values: NDArray[Any], sign: NDArray[np.int8]) -> NDArray[Any]:
    """Swap the sides of the items whose sign is -1, where the last axis has the labels."""
    return np.where(sign.reshape(-1, *[1] * (values.ndim - 1)) < 0, values[..., ::-1], values)


@readable
@dataclass(frozen=True, eq=False)
class Domain:
    """Means of one domain, with what they are made of.

    Attributes
    ----------
    quantities : mapping of str to tuple
    means, alone : dict of str to Mean
        Of each quantity, with the judge and from labels alone.
    proxies : dict of str to Proxies
        Of each quantity; empty where no items stand for all.
    sample : LabelledSample
    n_items : int
    is_published : bool
        Whether the estimator is PPI++ as published.
    raters_worth : dict of str to float
        Of each share, how many labels of one rater a label is worth: more than 1 where raters
        disagree, since their mean varies less from item to item.
    """

    quantities: Quantities
    means: dict[str, Mean]
    alone: dict[str, Mean]
    proxies: dict[str, Proxies]
    sample: LabelledSample
    n_items: int
    is_published: bool
    raters_worth: dict[str, float]

    @property
    def n_labels(self) -> int:
        """Number of labelled items."""
        return len(self.sample.weights)

    @property
    def degrees_of_freedom(self) -> float:
        """Of Student's t; infinite for the normal distribution."""
        return np.inf if self.is_published else self.sample.degrees_of_freedom

    def ends(self, quantity: str) -> Ends:
        """Return the least and the greatest value that a quantity can have."""
        values = self.quantities[quantity]
        return Ends(min(values), max(values))

    @property
    def has_interval(self) -> bool:
        """Whether labels of two groups, or of all items, tell how far off a mean is."""
        return self.sample.n_groups > 1 or self.sample.is_whole

    def limits(self, quantity: str, mean: Mean, level: float) -> tuple[float, float]:
        """Return the interval of one of the means."""
        if not self.has_interval:
            return self.ends(quantity)
        quantile = t_quantile(level, self.degrees_of_freedom)
        low, high = self.bounds(quantity, mean, level).at(quantile)
        return float(low), float(high)

    def bounds(self, quantity: str, mean: Mean, level: float) -> IntervalParts:
        """Return what the interval of one of the means is made of.

        Whether it is the normal one, which can go past the ends, is seen at a level.
        """
        ends, error = self.ends(quantity), np.nan
        if self.is_published and mean.variance > 0:
            half = t_quantile(level, np.inf) * float(np.sqrt(mean.variance))
            if mean.value - half >= ends.least and mean.value + half <= ends.greatest:
                error = float(np.sqrt(mean.variance))
        value = min(max(mean.value, ends.least), ends.greatest)
        if self.sample.is_whole:
            return IntervalParts(value, np.inf, 0.0, ends)
        return IntervalParts(value, self._effective(quantity, mean), error, ends)

    def _effective(self, quantity: str, mean: Mean) -> float:
        """Return the effective number of labels that a mean rests on."""
        alone, ends, sample = self.alone[quantity], self.ends(quantity), self.sample
        if sample.is_whole:
            return np.inf
        if mean.variance == 0:
            return sample.n_alike
        n = effective_number(mean.value, mean.variance, ends)
        if quantity in self.raters_worth and alone.variance > 0:
            # Groups that are alike by design are no reason to trust a share more than that.
            of_labels = effective_number(alone.value, alone.variance, ends)
            n *= min(sample.n_effective * self.raters_worth[quantity] / of_labels, 1.0)
        return n

    def estimates(self, level: float) -> dict[str, MeanEstimate]:
        """Return the estimate of every quantity."""
        estimates = {}
        for quantity, mean in self.means.items():
            alone = self.alone[quantity]
            both = mean.variance > 0 and alone.variance > 0
            worth = self._worth(alone.variance / mean.variance) if both else np.nan
            labels_only = self._estimate(quantity, alone, level, self.n_labels)
            estimates[quantity] = self._estimate(quantity, mean, level, worth, labels_only)
        return estimates

    def _worth(self, ratio: float) -> float:
        """Return how many labels alone have a variance that is so many times less."""
        n = self.n_labels * ratio
        if not isinstance(self.sample, FiniteSample):
            return n
        # Of these items it falls as 1 / n - 1 / N, down to nothing.
        n /= self.n_items - self.n_labels
        return self.n_items * n / (1 + n)

    def _estimate(
        self,
        quantity: str,
        mean: Mean,
        level: float,
        worth: float,
        labels_only: MeanEstimate | None = None,
    ) -> MeanEstimate:
        ends = self.ends(quantity)
        value = min(max(mean.value, ends.least), ends.greatest)
        low, high = self.limits(quantity, mean, level)
        error = float(np.sqrt(mean.variance)) if self.has_interval else np.nan
        return MeanEstimate(value, low, high, error, worth, mean.weight, labels_only)

    def limits_at(
        self, quantity: str, quantile: float, numbers: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return low and high ends of the interval with other numbers of labels, (k,) each."""
        mean, n, ends = self.means[quantity], self.n_labels, self.ends(quantity)
        left = np.maximum(self.n_items - numbers, 1e-9)
        grown = numbers / n
        if isinstance(self.sample, FiniteSample):
            if self.sample.is_whole:  # with fewer it is not known
                effective = np.where(numbers < n, 1e-9, np.inf)
            else:
                effective = self._effective(quantity, mean) * grown * (self.n_items - n) / left
            return limits_of(mean.value, effective, quantile, ends)
        effective = self._effective(quantity, self.alone[quantity]) * grown
        if mean.variance > 0:
            of_rest = mean.variance - mean.of_labels
            variances = mean.of_labels * n / numbers + of_rest * (self.n_items - n) / left
            with_judge = self._effective(quantity, mean) * mean.variance / variances
            effective = np.maximum(effective, with_judge)
        return limits_of(mean.value, effective, quantile, ends)


def _raters_worth(shares: NDArray[np.float64], sample: LabelledSample) -> float:
    """Return the variance of single raters' labels over that of the means of items."""
    mean = float(sample.weights @ shares)
    within = float(sample.weights @ (shares * (1 - shares)))
    between = mean * (1 - mean) - within
    return mean * (1 - mean) / between if within > 0 and between > 0 else 1.0


@readable
@dataclass(frozen=True, eq=False)
class PredictedItems:
    """All items, those with a label among them, and what models predict.

    Attributes
    ----------
    kind : Kind
        What labels are, and what is estimated.
    rows : (k, votes) or (k, judges, 3) array
        Distinct counts of items.
    place : (N,) array of int
        The row of each item.
    labelled : (n,) array of int
        Numbers of the labelled items, in ascending order.
    outcomes : (n, labels) array
        Shares of each item's raters for each label, in label order: of one rater 0 and 1.
    groups : (N,) array of int or None
        Group of each item as a number from 0; None where each is one by itself.
    weights : (n,) array or None
        One over the probability of each labelled item to be labelled; None in a simple sample.
    draw : Draw
        What means are of, and how items were drawn.
    tables, fold : arrays
        Probabilities of the rows by models that did not see a label; see `Predictions`.
    is_fixed : bool
        Whether the model was there before the labels.
    """

    kind: Kind
    rows: NDArray[Any]
    place: NDArray[np.int64]
    labelled: NDArray[np.int64]
    outcomes: NDArray[np.float64]
    groups: NDArray[np.int64] | None
    weights: NDArray[np.float64] | None
    draw: Draw
    tables: NDArray[np.float64]
    fold: NDArray[np.int64]
    is_fixed: bool

    def domain(self, inside: NDArray[np.bool_] | None = None) -> Domain:
        """Estimate the means over a domain, an (N,) mask; over all items by default."""
        rows = np.arange(len(self.labelled))
        if inside is not None:
            rows = np.flatnonzero(inside[self.labelled])
        n_items = len(self.place) if inside is None else int(inside.sum())
        sample = self.sample(rows, n_items)
        enough = sample.n_groups > 1 or sample.is_whole
        predictions = None
        if enough:
            predictions = self._stand_ins(rows, sample, inside, self.tables, self.fold[rows])
        means, alone, proxies, raters_worth = {}, {}, {}, {}
        for quantity, values in self.kind.quantities.items():
            y = self.outcomes[rows] @ np.array(values)
            alone[quantity] = labelled_mean(y, sample) if enough else unknown_mean(y)
            means[quantity] = alone[quantity]
            if is_share(values):
                raters_worth[quantity] = _raters_worth(y, sample)
            if predictions is not None:
                proxies[quantity] = predictions.of(values)
                means[quantity] = corrected_mean(y, proxies[quantity], sample)
        return Domain(
            self.kind.quantities,
            means,
            alone,
            proxies,
            sample,
            n_items,
            self.is_published,
            raters_worth,
        )

    def sample(
        self, rows: NDArray[np.int64] | None = None, n_items: int | None = None
    ) -> LabelledSample:
        """Return the labelled items, or some rows of them, of a domain with so many items."""
        rows = np.arange(len(self.labelled)) if rows is None else rows
        n_items = len(self.place) if n_items is None else n_items
        own, units = self.labelled[rows], self.units
        names, groups = np.unique(own if units is None else units[own], return_inverse=True)
        groups = groups.reshape(-1)
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        if self.draw.population == "finite":
            inverse = weights if self.weights is not None else np.full(len(rows), 2.0)
            strata = None if self.draw.strata is None else self.draw.strata[rows]
            return FiniteSample.of(inverse, groups, names, n_items, strata)
        return LabelledSample(weights / max(weights.sum(), 1e-300), groups, names)

    @property
    def units(self) -> NDArray[np.int64] | None:
        """Units between which the mean varies, (N,) numbers from 0; None where they are items."""
        return self.groups if self.draw.population == "new" else self.draw.units

    def of(self, population: Population) -> PredictedItems:
        """Return the same for means of new items, or of these."""
        return replace(self, draw=self.draw._replace(population=population))

    @property
    def is_published(self) -> bool:
        """Whether the estimator is PPI++ as published, which needs enough labels."""
        plain = self.groups is None and self.weights is None and self.draw.population == "new"
        return self.is_fixed and plain and len(self.labelled) >= _ENOUGH

    def stand_ins(self, inside: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of the items that stand for all of a domain, (N,).

        In a simple sample they are those without a label, who are independent of it; in another all
        items, since those without a label are no image of all. None where they are of too few
        groups to tell how their mean varies. Of a finite population they are those without a label.
        """
        stands = np.ones(len(self.place), dtype=np.bool_) if inside is None else inside.copy()
        is_finite = self.draw.population == "finite"
        if self.weights is None or is_finite:
            stands[self.labelled] = False
        others = np.flatnonzero(stands)
        if self.is_published or is_finite:
            return others
        n_groups = len(others) if self.groups is None else len(np.unique(self.groups[others]))
        return others if n_groups >= _FEWEST else others[:0]

    def remarks(self, sample: LabelledSample) -> list[str]:
        """Say where labelled items are not such as intervals assume."""
        if self.draw.population == "finite":
            return self.of("new").remarks(self.of("new").sample())
        every = np.arange(len(self.labelled))
        tables = self._features()[None]
        features = self._stand_ins(every, sample, None, tables, np.zeros_like(every))
        remarks = [] if features is None else _unlike_votes(features, sample, self.kind)
        if self.groups is not None and self.weights is None:
            size = np.bincount(self.groups)[self.groups]
            remarks += _unlike_sizes(size[self.labelled], size, sample)
        if sample.n_groups < _FEW:
            remarks.append(
                f"labels of fewer than {_FEW} groups: intervals were not tried out with so few"
            )
        return remarks

    def remarks_on_draw(self, whole: Domain) -> list[str]:
        """Say how the items of a finite population are taken to be drawn."""
        is_finite = isinstance(whole.sample, FiniteSample) and not whole.sample.is_whole
        if not is_finite or self.weights is None:
            return []
        design = "independently of each other, each with its probability"
        if self.draw.strata is not None:
            design = "so many of each stratum"
        return [f"units are taken to be drawn {design}"]

    def remarks_on_means(self, whole: Domain, level: float) -> list[str]:
        """Say what the interval of the other population is."""
        remarks = []
        if self.has_two_populations(whole):
            other = self.other.domain()
            name = "win rate" if "win rate" in other.means else self.kind.main
            mean = other.estimates(level)[name]
            where = said_of(self.other.draw.population, whole.n_items)
            remarks.append(f"{name} of {where}: {mean}")
        return remarks

    @property
    def other(self) -> PredictedItems:
        """The same for means of the other population."""
        return self.of("finite" if self.draw.population == "new" else "new")

    def has_two_populations(self, whole: Domain) -> bool:
        """Whether so many items have a label that the interval of the other population differs."""
        return self.draw.is_known and whole.n_labels > whole.n_items * MUCH

    def _features(self) -> NDArray[np.float64]:
        """Return two means of the votes of counts, and their number, as (k, 3)."""
        values = np.array(list(self.kind.features.values())).T
        counts = self.rows.reshape(len(self.rows), -1, len(values)).sum(axis=1)
        n = counts.sum(axis=1)
        return np.column_stack([counts @ values / np.maximum(n, 1)[:, None], n])

    def _stand_ins(
        self,
        rows: NDArray[np.int64],
        sample: LabelledSample,
        inside: NDArray[np.bool_] | None,
        tables: NDArray[np.float64],
        fold: NDArray[np.int64],
    ) -> Proxies | None:
        """Return what tables, (folds, k, columns), say of items; None where none stand for all."""
        place, k = self.place, len(self.rows)
        others = self.stand_ins(inside)
        if not len(others):
            return None
        number = np.bincount(place[others], minlength=k)
        own = place[self.labelled[rows]]
        means = np.einsum("fkc,k->fc", tables, number / len(others))
        if self.draw.population == "finite":
            # The mean of the others is known; what is not is how labels differ from predictions.
            away = tables[fold, own] - means[fold]
            nothing = np.zeros((2, sample.n_groups, tables.shape[2]))
            names = np.empty(0, dtype=np.int64)
            return Proxies(away, np.zeros_like(away), nothing[0], nothing[1, :0], names)
        shares = np.bincount(fold, weights=sample.weights, minlength=len(tables))
        table = np.einsum("f,fkc->kc", shares, tables)
        away = (table - number @ table / len(others)) / len(others)
        if self.groups is None:
            shared = np.zeros((len(rows), tables.shape[2]))
            if self.weights is not None:
                shared = away[own]
                number = number - np.bincount(own, minlength=k)
            # Those with the same votes add the same.
            rest, names = np.sqrt(number)[:, None] * away, np.empty(0, dtype=np.int64)
            m = 0 if self.is_published else number.sum()
        else:
            group = self.groups[others]
            n_groups = int(self.groups.max()) + 1
            columns = [np.bincount(group, column[place[others]], n_groups) for column in away.T]
            sums = np.stack(columns, axis=1).astype(np.float64)
            shared = sums[sample.names]
            sums[sample.names] = 0.0
            names = np.flatnonzero(sums.any(axis=1))
            rest, m = sums[names], len(names)
        # Deviations from their own mean are a little too small.
        rest = rest * np.sqrt(m / (m - 1)) if m > 1 else rest
        spread = None
        if self.is_published:
            together = number + np.bincount(own, minlength=k)
            spread = np.cov(tables[0].T, fweights=together) * (1 / len(rows) + 1 / len(others))
        return Proxies(tables[fold, own], means[fold], shared, rest, names, spread)


def _unlike_sizes(
    sizes: NDArray[np.int64], of_all: NDArray[np.int64], sample: LabelledSample
) -> list[str]:
    """Say whether labelled items are of smaller or larger groups than items drawn by chance."""
    mean_of_all = float(of_all.mean())
    mean = float(sample.weights @ sizes)
    errors = sample.jackknifed(sample.deviations(sizes.astype(np.float64)))
    error = float(np.sqrt(errors @ errors))
    away = abs(mean - mean_of_all)
    if away < 1e-9 * mean_of_all:
        return []
    # Where all labelled items are of groups of one size: how likely it is to draw no other.
    p = float(np.mean(of_all == sizes[0])) ** sample.n_groups
    if error > 0:
        p = 2 * float(stdtr(sample.degrees_of_freedom, -away / error))
    if p >= _UNLIKE:
        return []
    return [
        f"labelled items are of groups of {mean:.3g} items on the mean, all items of "
        f"{mean_of_all:.3g}, as where one item of each group is labelled; such labels need the "
        "probability by which each item was chosen"
    ]


def _unlike_votes(features: Proxies, sample: LabelledSample, kind: Kind) -> list[str]:
    """Say whether the mean features of labelled items are not those of the others."""
    mean = sample.weights @ features.labelled
    of_others = sample.weights @ features.means
    pvalue = _hotelling(features, sample, mean - of_others)
    *_, n = mean
    *_, n_of_others = of_others
    remarks = []
    if pvalue < _UNLIKE:
        compared = [
            f"{name} {own:{sign}.2f} against {other:{sign}.2f}"
            for (name, values), own, other in zip(
                kind.features.items(), mean, of_others, strict=False
            )
            for sign in ["+" if min(values) < 0 else ""]
        ]
        remarks.append(
            f"labelled items are not like the others (p = {pvalue:.1g}): {', '.join(compared)}; "
            "intervals hold for items that were chosen by chance, or with the probabilities by "
            "which they were chosen"
        )
    if abs(n - n_of_others) > _FEWER * max(n, n_of_others):
        remarks.append(
            f"labelled items have {n:.3g} votes on the mean and the others {n_of_others:.3g}, "
            "so the judge's probabilities err in different ways; use as many votes of each"
        )
    return remarks


def _hotelling(features: Proxies, sample: LabelledSample, away: NDArray[np.float64]) -> float:
    """P-value of a difference of mean margins and shares of ties; 1 where it cannot be tested.

    Hotelling (1931), with variances between groups.
    """
    columns = zip(features.labelled.T[:2], features.shared.T[:2], strict=True)
    between = np.stack(
        [sample.jackknifed(sample.deviations(own) - shared) for own, shared in columns], axis=1
    )
    rest = features.rest[:, :2]
    covariance = between.T @ between + rest.T @ rest
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    degrees = sample.n_groups - rank
    if rank == 0 or degrees < 1:
        return 1.0
    away = away[:2]
    distance = float(away @ np.linalg.pinv(covariance, hermitian=True) @ away)
    return float(fdtrc(rank, degrees, distance * degrees / (rank * (sample.n_groups - 1))))
