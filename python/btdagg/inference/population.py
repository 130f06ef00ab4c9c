"""All items, what models that did not see a label predict of it, and means of domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.folds import numbered
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_panel_counts,
    distinct_rows,
    has_judges,
    require_rows,
)
from btdagg.inference.cross_fit import Predictions, Predictor, Scales, cross_fitted, fixed
from btdagg.inference.disagreement import NO_DISAGREEMENT, Disagreement
from btdagg.inference.estimate import Estimate
from btdagg.inference.intervals import effective_number
from btdagg.inference.label_means import MeanParts, Proxies, corrected_by, labels_alone, sum_of
from btdagg.inference.likeness import remarks_on_sizes, remarks_on_votes
from btdagg.inference.quantities import (
    NET,
    Quantities,
    features_of,
    made_of,
    main_of,
    quantities_of,
    said_of,
    too_few,
)
from btdagg.inference.sample import LabelledSample, Population, sums_by
from btdagg.model.covariates import columns_for, known_of
from btdagg.remarks import Remark
from btdagg.votes.by_id import as_items
from btdagg.votes.items import Items
from btdagg.votes.labels import UNKNOWN_UNIT
from btdagg.votes.scale import Scale
from btdagg.votes.sides import turned

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

MUCH = 0.1  # share of items with a label from which the two populations are told apart

_ENOUGH = 50  # labels from which the normal distribution holds
_ENOUGH_ERRORS = 10  # of them that differ from the model's call
_FEWEST = 10  # groups whose mean can stand for all
_FEW = 5  # labelled groups below which intervals are said to be untried


def as_any_counts(counts: ArrayLike, scale: Scale, *, may_be_empty: bool = False) -> NDArray[Any]:
    """Return counts of a judge, (n, votes), or of a panel, (n, judges, 3)."""
    several = scale.mirrored and has_judges(counts)
    array = as_panel_counts(counts) if several else scale.counts(counts)
    forbid(
        not len(array) and not may_be_empty, "counts is empty, expected at least one item", "counts"
    )
    scale.require_votes(array)
    return array


def items_of(
    counts: Any,
    labels: Any,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    by: Any = None,
    systems: tuple[str, str] | None = None,
    model: Any = None,
    n_votes: int | None = None,
    **per_item: Any,
) -> Items:
    """Return items unchanged, or made of tables or arrays, some with a label."""
    judges = getattr(model, "judges", ())  # of a user's own there are none
    if isinstance(counts, Items) and (labels is None or counts.is_labelled.any()):
        said = {"labels": labels, "by": by, "scale": scale, "label_scale": label_scale}
        said |= {"n_votes": n_votes, **per_item}
        for argument, value in said.items():
            text = f"{argument} cannot be given with items, which already have it"
            forbid(value is not None, text, argument)
        forbid(not counts.is_labelled.any(), "no item has a label", "labels")
        return counts.with_judges(judges) if judges and counts.judges else counts
    return as_items(
        counts,
        labels,
        partial=True,
        drawn=True,
        scale=scale,
        label_scale=label_scale,
        by=by,
        systems=systems,
        judges=judges,
        n_votes=n_votes,
        **per_item,
    )


def _raters_worth(shares: Floats, sample: LabelledSample) -> float:
    mean = float(sample.weights @ shares)
    within = float(sample.weights @ (shares * (1 - shares)))
    between = mean * (1 - mean) - within
    return mean * (1 - mean) / between if within > 0 and between > 0 else 1.0


def _as_shares(means: dict[str, MeanParts], scale: Scale) -> dict[str, MeanParts]:
    """Move the share of ties and the net win rate to where no share of labels is below 0."""
    net, tie = means[NET], means[scale.names[1]]
    ties = min(max(tie.value, 0.0), 1.0)
    wins = min(max(net.value, ties - 1), 1 - ties)
    return {NET: net._replace(value=wins), scale.names[1]: tie._replace(value=ties)}


@dataclass(frozen=True, eq=False)
class PredictedItems(Readable):
    """All N items, those with a label among them, and what models predict."""

    # `rows` are distinct counts and `place`, (N,), the row of each item. `labelled`, (n,), are
    # numbers of the labelled items, ascending; `outcomes`, (n, labels), shares of their raters;
    # `weights`, (n,), one over the probability of each label, None in a simple sample. `groups` and
    # `drawn` (units drawn as a whole), (N,), are numbers from 0, None where each item is its own.
    # `strata`, (n,), are None where units were drawn independently, or are a simple sample.
    # `sizes`, (N,), are classes of items by the size of their group, if a simple sample was
    # stratified by them afterwards. Where some items have no group, no size is known.
    # `tables` and `fold` are probabilities of the rows by models that did not see a label; see
    # `Predictions`.

    scales: Scales
    rows: NDArray[Any]
    place: NDArray[np.int64]
    labelled: NDArray[np.int64]
    outcomes: Floats
    groups: NDArray[np.int64] | None
    weights: Floats | None
    population: Population
    drawn: NDArray[np.int64] | None
    strata: NDArray[np.int64] | None
    is_draw_known: bool
    tables: Floats
    fold: NDArray[np.int64]
    is_fixed: bool
    sizes: NDArray[np.int64] | None = None
    are_sizes_known: bool = True

    @classmethod
    def of(
        cls,
        items: Items,
        *keys: NDArray[Any],
        model: Predictor | None = None,
        prior: Any = "weak",
        seed: int = 0,
        sign: NDArray[np.int8] | None = None,
        population: Population = "new",
        predictions: Predictions | None = None,
        by_size: bool = False,
    ) -> PredictedItems:
        """Return items with the predictions of models; errors name arguments of `estimate`."""
        # With `by_size` a simple sample of groups whose sizes vary much is stratified by them.
        # `sign` is -1 for items to be turned so that A is the same side in all. `predictions`, if
        # made already, have a row for each item.
        expected = " or ".join(map(repr, get_args(Population)))
        expect(population in get_args(Population), "population", population, expected)
        seed, scales = as_integer(seed, "seed", 0), (items.scale, items.label_scale)
        array, outcomes, n = as_any_counts(items.by_judge, items.scale), items.labels, len(items)
        group = None if items.group is None else as_groups(items.group, "counts", n)
        labelled = np.flatnonzero(items.is_labelled)
        own_group = None if group is None else group[labelled]
        n_groups = len(np.unique(labelled if own_group is None else own_group))
        if n_groups < 2:
            raise too_few("labels", n_groups, grouped=group is not None)
        weights, sizes = None, None
        draw = items.sampling
        is_simple = draw.probabilities is None and draw.strata is None
        if by_size and is_simple and group is not None and items.has_all_groups:
            sizes = _uneven_sizes(group)
        if draw.probabilities is not None:
            inverse = _inverse(draw.probabilities, outcomes)
            keys, weights = (*keys, inverse), inverse[labelled]
        elif draw.strata is not None:
            raise InputError("strata need probabilities", argument="probabilities")
        drawn = None if draw.units is None else as_groups(draw.units, "counts", n, "units")
        if drawn is not None and len(set(drawn[labelled].tolist())) < 2:
            expected = "the drawn unit of each item, at least two with labels"
            raise InputError(argument="units", got=draw.units[labelled[0]], expected=expected)
        is_draw_known = drawn is not None or group is None
        forbid(
            population == "finite" and not is_draw_known,
            UNKNOWN_UNIT,
            "labels" if items.origin.source else "units",
        )
        codes = None
        if draw.strata is not None and not any(name is None for name in draw.strata[labelled]):
            codes = as_groups(draw.strata[labelled], "labels", len(labelled), "strata")
        if sizes is not None:
            codes, n_all = sizes[labelled], np.bincount(sizes)
            n_labelled = np.bincount(codes, minlength=len(n_all))
            weights = n_all[codes] / n_labelled[codes]
        known = tuple(items.covariates.values())
        first, place = distinct_rows(*array.reshape(n, -1).T)
        if known or predictions is not None:  # with which items of equal counts differ
            first = place = np.arange(n)
        rows, outcomes = array[first], outcomes[labelled]
        if predictions is not None:
            tables, fold = predictions
        elif model is None:
            numbers = numbered(own_group, [values[labelled] for values in keys], len(labelled))
            own_sign = None if sign is None else sign[labelled]
            of_labels = array[labelled], outcomes, numbers
            covariates = known_of(items.covariates, first, items.scale).named
            of_folds: Any = rows, prior, seed, own_sign, scales, covariates, labelled
            tables, fold = cross_fitted(*of_labels, *of_folds)
        else:
            tables, fold = fixed(model, rows, len(labelled), scales, columns_for(model, items))
        of_items = scales, rows, place, labelled, outcomes, group, weights
        drawn_as = population, drawn, codes, is_draw_known
        how = model is not None, sizes, items.has_all_groups
        return cls(*of_items, *drawn_as, tables, fold, *how)

    @cached_property
    def quantities(self) -> Quantities:
        """The estimated quantities."""
        return quantities_of(self.scales[1])

    @cached_property
    def _terms(self) -> Mapping[str, tuple[float, dict[str, float]]]:
        return made_of(self.scales[1])

    @property
    def main(self) -> str:
        """The quantity that is meant where none is named."""
        return main_of(self.scales[1])

    def domain(self, inside: NDArray[np.bool_] | None = None) -> dict[str, Estimate]:
        """Estimate the means over a domain, an (N,) mask; over all items by default."""
        rows = np.arange(len(self.labelled))
        if inside is not None:
            rows = np.flatnonzero(inside[self.labelled])
        n_items = len(self.place) if inside is None else int(inside.sum())
        sample, y = self.sample(rows, n_items), self.outcomes[rows]
        is_published = self.is_published(inside)
        proxies = None
        if sample.has_spread:
            proxies = self._stand_ins(rows, sample, inside, self.tables, self.fold[rows])
        corrected = {}
        total = float(len(y) > 0 and np.round(y[0].sum()))  # 0 of differences of shares
        if proxies is not None:
            for name in dict.fromkeys(n for _, terms in self._terms.values() for n in terms):
                values = np.array(self.quantities[name])
                mean = corrected_by(proxies.of(values), y @ values, sample)
                corrected[name] = self._varying_sizes(mean, y @ values, rows, inside)
            if total and self.scales[1].mirrored:
                corrected = _as_shares(corrected, self.scales[1])
        called, rest = self._calls(rows, inside)
        share_unseen = float(self._is_of_unseen_size(rows, inside).mean())
        estimates = {}
        for quantity, of_label in self.quantities.items():
            values, ends = np.array(of_label), (min(of_label), max(of_label))
            of_labels = self._varying_sizes(
                labels_alone(y @ values, sample), y @ values, rows, inside
            )
            estimate = alone = of_labels.estimate(ends, n_items)
            if proxies is not None:
                constant, terms = self._terms[quantity]
                parts = [(factor, corrected[name]) for name, factor in terms.items()]
                estimate = sum_of(parts, constant * total).estimate(ends, n_items)
                if alone.variance == 0:  # what no label shows, proxies do not tell either
                    estimate = replace(alone, value=estimate.value)
            if set(of_label) == {0.0, 1.0} and alone.variance > 0 and (y >= 0).all():
                # Groups that are alike by design are no reason to trust a share more than that.
                worth = sample.n_effective * _raters_worth(y @ values, sample)
                excess = effective_number(alone.value, alone.variance, ends) / worth
                alone, estimate = (of.inflated(max(excess, 1.0)) for of in (alone, estimate))
            away = np.array([alone.value - ends[0], ends[1] - alone.value])
            beyond = share_unseen * away
            unseen = _constant_calls(y @ values, len(rest), sample, alone, beyond)
            alone = replace(alone, unseen=unseen)
            if proxies is not None:
                can_vary = estimate.weight > 0 or (sample.is_finite and alone.variance == 0)
                is_simple = is_published or sample.is_whole or not can_vary
                of_calls = y @ values, values[called], values[rest], sample, ends, beyond
                unseen = None if is_simple else Disagreement.of(*of_calls)
            if is_published:
                estimate, alone = (
                    replace(of, freedom=np.inf, is_symmetric=True) for of in (estimate, alone)
                )
            estimates[quantity] = replace(estimate, alone=alone, unseen=unseen)
        return estimates

    def _calls(
        self, rows: NDArray[np.int64], inside: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the likeliest labels of labelled items, unseen by the model, and of the others."""
        is_rest = np.ones(len(self.place), dtype=np.bool_) if inside is None else inside.copy()
        is_rest[self.labelled] = False
        called = self.tables[self.fold[rows], self.place[self.labelled[rows]]].argmax(axis=-1)
        return called, self.tables.mean(axis=0).argmax(axis=-1)[self.place[is_rest]]

    def _is_of_unseen_size(
        self, rows: NDArray[np.int64], inside: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Tell of each item of a domain if no labelled group is of like size."""
        if self.sizes is None:
            return np.zeros(1, dtype=np.bool_)
        sizes = self.sizes if inside is None else self.sizes[inside]
        return ~np.isin(sizes, self.sizes[self.labelled[rows]])

    def _varying_sizes(
        self, mean: MeanParts, values: Floats, rows: NDArray[np.int64], inside: Any
    ) -> MeanParts:
        """Add to the errors of a mean of new items that their sizes of groups will differ."""
        if self.sizes is None or self.groups is None or self.population == "finite":
            return mean
        of_labels, n_classes = self.sizes[self.labelled[rows]], int(self.sizes.max()) + 1
        number = np.bincount(of_labels, minlength=n_classes)
        sums = np.bincount(of_labels, values, n_classes)
        away = np.where(number > 0, sums / np.maximum(number, 1) - mean.value, 0.0)
        every = np.arange(len(self.sizes)) if inside is None else np.flatnonzero(inside)
        errors = np.bincount(self.groups[every], away[self.sizes[every]]) / len(every)
        return mean.with_errors(errors)

    def sample(
        self, rows: NDArray[np.int64] | None = None, n_items: int | None = None
    ) -> LabelledSample:
        """Return the labelled items, or some rows of them, of a domain with so many items."""
        rows = np.arange(len(self.labelled)) if rows is None else rows
        n_items = len(self.place) if n_items is None else n_items
        labelled = self.labelled[rows]
        inverse = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        units = self.groups if self.population == "new" else self.drawn
        strata = None if self.strata is None else self.strata[rows]
        units = labelled if units is None else units[labelled]
        return LabelledSample.of(inverse, units, n_items, self.population, strata)

    def turned(self, rows: NDArray[np.int64], is_turned: NDArray[np.bool_]) -> PredictedItems:
        """Return a selection of items, with A and B swapped in some of them."""
        k = len(self.rows)
        used, place = np.unique(self.place[rows] + k * is_turned[rows], return_inverse=True)
        is_kept = np.isin(self.labelled, rows)
        labelled, tables = self.labelled[is_kept], self.tables[:, used % k]
        return replace(
            self,
            rows=turned(self.rows[used % k], used >= k),
            place=place.reshape(-1),
            labelled=np.searchsorted(rows, labelled),
            outcomes=turned(self.outcomes[is_kept], is_turned[labelled]),
            groups=None if self.groups is None else self.groups[rows],
            sizes=None if self.sizes is None else self.sizes[rows],
            weights=None if self.weights is None else self.weights[is_kept],
            drawn=None if self.drawn is None else self.drawn[rows],
            strata=None if self.strata is None else self.strata[is_kept],
            tables=np.where((used >= k)[:, None], tables[..., ::-1], tables),
            fold=self.fold[is_kept],
        )

    def is_published(self, inside: NDArray[np.bool_] | None = None) -> bool:
        """Whether the estimator of a domain is PPI++ as published: it needs labels and errors."""
        rows = np.arange(len(self.labelled))
        if inside is not None:
            rows = np.flatnonzero(inside[self.labelled])
        plain = self.groups is None and self.weights is None and self.population == "new"
        if not self.is_fixed or not plain or len(rows) < _ENOUGH:
            return False
        called, *_ = self._calls(rows, inside)
        agreed = self.outcomes[rows, called].sum()
        return bool(len(called) - agreed >= _ENOUGH_ERRORS)

    def stand_ins(self, inside: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of the items that stand for all of a domain, (N,)."""
        # In a simple sample or a finite population those without a label; else all, or None if of
        # too few groups to tell how their mean varies.
        stands = np.ones(len(self.place), dtype=np.bool_) if inside is None else inside.copy()
        is_finite = self.population == "finite"
        if self.weights is None or is_finite:
            stands[self.labelled] = False
        stand_ins = np.flatnonzero(stands)
        if self.is_published(inside) or is_finite:
            return stand_ins
        n_groups = len(stand_ins) if self.groups is None else len(np.unique(self.groups[stand_ins]))
        return stand_ins if n_groups >= _FEWEST else stand_ins[:0]

    @property
    def remarks(self) -> list[Remark]:
        """Say where labelled items are not such as intervals assume, and how they were drawn."""
        if self.population == "finite":
            about = replace(self, population="new").remarks
            is_weighted = self.weights is not None and self.sizes is None
            if is_weighted and len(self.labelled) < len(self.place):
                about.append(remarks.assumed_draw(has_strata=self.strata is not None))
            return about
        sample, every = self.sample(), np.arange(len(self.labelled))
        tables = self._features()[None]
        features = self._stand_ins(every, sample, None, tables, np.zeros_like(every))
        about = [] if features is None else remarks_on_votes(features, sample, self.scales[0])
        about += self.remarks_on_sizes
        if self.sizes is not None:
            about.append(remarks.other_sizes())
        share = float(self._is_of_unseen_size(every, None).mean())
        if share > 0:
            about.append(remarks.unseen_sizes(share))
        if sample.n_groups < _FEW:
            about.append(remarks.few_groups(_FEW))
        return about

    @property
    def remarks_on_sizes(self) -> list[Remark]:
        """Say if labelled items come from groups of other sizes than all items do."""
        is_weighted = self.weights is not None and self.sizes is None
        if self.groups is None or is_weighted or not self.are_sizes_known:
            return []
        size = np.bincount(self.groups)[self.groups]
        sample = replace(self, weights=None, strata=None, population="new").sample()
        return remarks_on_sizes(size[self.labelled], size, sample)

    @property
    def other(self) -> PredictedItems | None:
        """The same for the other population; None with few labels or an unknown draw."""
        if not self.is_draw_known or len(self.labelled) <= len(self.place) * MUCH:
            return None
        return replace(self, population="finite" if self.population == "new" else "new")

    @property
    def of_population(self) -> str:
        """Say what means are of."""
        return said_of(self.population, len(self.place))

    def _features(self) -> Floats:
        values = np.array(list(features_of(self.scales[0]).values())).T
        counts = self.rows.reshape(len(self.rows), -1, len(values)).sum(axis=1)
        n = counts.sum(axis=1)
        return np.column_stack([counts @ values / np.maximum(n, 1)[:, None], n])

    def _stand_ins(
        self,
        rows: NDArray[np.int64],
        sample: LabelledSample,
        inside: NDArray[np.bool_] | None,
        tables: Floats,
        fold: NDArray[np.int64],
    ) -> Proxies | None:
        place, k = self.place, len(self.rows)
        stand_ins = self.stand_ins(inside)
        if not len(stand_ins):
            return None
        number = np.bincount(place[stand_ins], minlength=k)
        labelled_place = place[self.labelled[rows]]
        means = np.einsum("fkc,k->fc", tables, number / len(stand_ins))[fold]
        if self.sizes is not None:  # of items like it in size
            classes = self.sizes[self.labelled[rows]]
            for size in np.unique(classes):
                some = place[stand_ins[self.sizes[stand_ins] == size]]
                if len(some):
                    of_class = np.bincount(some, minlength=k) / len(some)
                    in_class = classes == size
                    means[in_class] = np.einsum("fkc,k->fc", tables, of_class)[fold[in_class]]
        if self.population == "finite":
            # The mean of the others is known; what is not is how labels differ from predictions.
            away = tables[fold, labelled_place] - means
            nothing = np.zeros((2, sample.n_groups, tables.shape[2]))
            names = np.empty(0, dtype=np.int64)
            return Proxies(away, np.zeros_like(away), nothing[0], nothing[1, :0], names)
        shares = np.bincount(fold, weights=sample.weights, minlength=len(tables))
        table = np.einsum("f,fkc->kc", shares, tables)
        away = (table - number @ table / len(stand_ins)) / len(stand_ins)
        if self.groups is None:
            shared = np.zeros((len(rows), tables.shape[2]))
            if self.weights is not None:
                shared = away[labelled_place]
                number = number - np.bincount(labelled_place, minlength=k)
            # Those with the same votes add the same.
            rest, names = np.sqrt(number)[:, None] * away, np.empty(0, dtype=np.int64)
            m = 0 if self.is_published(inside) else number.sum()
        else:
            group = self.groups[stand_ins]
            n_groups = int(self.groups.max()) + 1
            sums = sums_by(group, away[place[stand_ins]], n_groups)
            shared = sums[sample.names]
            sums[sample.names] = 0.0
            names = np.flatnonzero(sums.any(axis=1))
            rest, m = sums[names], len(names)
        # Deviations from their own mean are a little too small.
        rest = rest * np.sqrt(m / (m - 1)) if m > 1 else rest
        spread = None
        if self.is_published(inside):
            together = number + np.bincount(labelled_place, minlength=k)
            spread = np.cov(tables[0].T, fweights=together) * (1 / len(rows) + 1 / len(stand_ins))
        return Proxies(tables[fold, labelled_place], means, shared, rest, names, spread)


def _constant_calls(
    values: Floats, n_others: int, sample: LabelledSample, alone: Estimate, beyond: Floats
) -> Disagreement | None:
    """Return what labels alone leave unseen: others, if all are alike, or of other sizes."""
    if 0 < sample.left < 1 and sample.has_spread and alone.variance == 0:
        same = np.full(n_others, values[0])
        return Disagreement.of(
            values, np.full_like(values, values[0]), same, sample, alone.ends, beyond
        )
    return NO_DISAGREEMENT._replace(beyond=beyond) if beyond.any() else None


def _uneven_sizes(groups: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return a class of each item by the size of its group, to a factor of 2; None if near even."""
    sizes = np.bincount(groups)
    if sizes.std() <= sizes.mean():
        return None
    classes = np.log2(sizes).astype(np.int64)
    return np.unique(classes[groups], return_inverse=True)[1].reshape(-1)


def _inverse(array: Floats, outcomes: Floats) -> Floats:
    good = ((array > 0) & (array <= 1)) | (np.isnan(array) & np.isnan(outcomes[:, 0]))
    require_rows(good, array, "probabilities", "a number above 0 and at most 1")
    return np.asarray(1 / array)
