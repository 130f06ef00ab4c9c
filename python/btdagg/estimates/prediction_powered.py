"""Shares and win rates over all items, from a few labels and the votes of a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.folds import numbered
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_losses,
    as_names,
    as_number,
    distinct_rows,
    require_rows,
    same_index,
    same_length,
)
from btdagg.estimates.items import AllItems, all_items, with_remarks
from btdagg.estimates.kinds import PAIRS, Kind, Predictor, kind_of
from btdagg.estimates.mean import IntervalParts, MeanEstimate
from btdagg.estimates.population import (
    Domain,
    Draw,
    Population,
    PredictedItems,
    as_any_counts,
    cross_fitted,
    fixed,
)
from btdagg.evaluation.significance import t_pvalues, t_quantile
from btdagg.model.intervals import as_level
from btdagg.votes.join import require_labels, scales_of
from btdagg.votes.labels import UNKNOWN_UNIT, Labels
from btdagg.votes.sides import UNNAMED, Sides
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale


_FARTHEST = 60.0  # powers of 2 of a quantile, beyond which no interval ends
_N_HALVINGS = 64


@readable
@dataclass(frozen=True)
class Difference:
    """A difference of two means, the first less the second, with its interval.

    `low` and `high` hold together for all pairs. `pvalue` is of no difference: 1 less the greatest
    level at which the interval does not hold 0.
    """

    value: float
    low: float
    high: float
    standard_error: float
    pvalue: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f}), p {self.pvalue:.2g}"


@readable
@dataclass(frozen=True, eq=False)
class Estimates(Drawn):
    """Estimates over all items, and for each value of a column.

    Attributes
    ----------
    estimates : dict of str to MeanEstimate
        Of ``"A"``, ``"tie"``, ``"B"`` (shares of labels), ``"net win rate"`` (A minus B) and
        ``"win rate"`` (ties as half). Of grades ``"mean grade"``, and ``"share >= 4"`` for each but
        the lowest; of two grades ``"pass rate"``, the share of the upper one.
    by : dict of value to dict of str to MeanEstimate
        The same of the items with each value of `by`.
    n_items, n_labels, n_groups : int
        All items; those with a label; their groups.
    level : float
        Of the intervals.
    remarks : tuple of str
        What a reader has to know before using the numbers.
    main : str
        The quantity that forecasts are of where none is named: the net win rate, or mean grade.
    sides : Sides
        What A and B are called.
    population : "new" or "finite"
        Whether intervals are for new items, or of these.
    """

    estimates: dict[str, MeanEstimate]
    by: dict[Any, dict[str, MeanEstimate]]
    n_items: int
    n_labels: int
    n_groups: int
    level: float
    remarks: tuple[str, ...]
    main: str
    _whole: Domain = field(repr=False)
    _parts: dict[Any, Domain] = field(repr=False)
    _items: PredictedItems = field(repr=False)
    _inside: Mapping[Any, NDArray[np.bool_]] = field(repr=False)
    _of_means: tuple[str, ...] = field(repr=False)
    sides: Sides = UNNAMED
    population: Population = "new"

    @cached_property
    def differences(self) -> dict[tuple[Any, Any], dict[str, Difference]]:
        """Differences of every two values of `by`: the first less the second.

        The intervals hold together for all pairs of values, and p-values are corrected for their
        number (Bonferroni, both): p is below 1 less the level where the interval is on one side of
        0. Groups with items of both values pair them. Values without two labelled groups have none.
        """
        return _differences(self._parts, self.level)

    def difference(self, first: Any, second: Any) -> dict[str, Difference]:
        """Return the differences of two values of `by` that were chosen before a look at the data.

        They are those of `differences` without a correction for other pairs.
        """
        pair = first, second
        parts = dict(zip(pair, self.domains(*pair), strict=True))
        return _differences(parts, self.level)[pair]

    @property
    def other_population(self) -> Estimates | None:
        """The same of these items where this is for new ones, and the other way round.

        `None` where at most a tenth of the items has a label, so that the two hardly differ, or
        where it is not known whether items or groups were drawn.
        """
        if not self._items.has_two_populations(self._whole):
            return None
        return _estimates_of(self._items.other, self._inside, self.level)

    @property
    def remarks_on_differences(self) -> tuple[str, ...]:
        """Remarks without those that are about the means of all items alone."""
        return tuple(text for text in self.remarks if text not in self._of_means)

    def labels_for(
        self, width: float, quantity: str | None = None, between: tuple[Any, Any] | None = None
    ) -> int | None:
        """How many labels, the present ones included, would make an interval so wide.

        `None` if labelling every item would not be enough. `width` is from the low to the high end.
        With `between`, two values of `by`, it is the interval of their `difference`, and labels are
        those of both, in the proportion of now.

        Notes
        -----
        The part of the variance that comes from labels falls as one over their number, and the part
        that comes from the items without labels grows as they become fewer. Judges and weights are
        taken to stay as they are.
        """
        width, quantity = as_number(width, "width"), self._known_quantity(quantity)
        ends = self._whole.ends(quantity)
        most = (ends.greatest - ends.least) * (1 if between is None else 2)
        if not 0 < width < most:
            expected = f"a number above 0 and below {most:g}"
            raise InputError(argument="width", came=width, expected=expected)
        return self._fewest(quantity, between, lambda low, high: high - low <= width)

    def labels_to_tell(
        self, bound: float, quantity: str | None = None, between: tuple[Any, Any] | None = None
    ) -> int | None:
        """How many labels would tell on which side of a bound a quantity, or a difference, is.

        They leave the bound outside of the interval, if the estimate stays as it is. `None` if
        labelling every item would not be enough.
        """
        bound, quantity = as_number(bound, "bound"), self._known_quantity(quantity)
        return self._fewest(quantity, between, lambda low, high: (low > bound) | (high < bound))

    def _fewest(
        self, quantity: str, between: tuple[Any, Any] | None, enough: Callable[..., Any]
    ) -> int | None:
        domains = self.domains(*between or ())
        numbers = np.arange(2, sum(domain.n_items for domain in domains) + 1)
        ends = _limits_at(domains, quantity, self.level, numbers)
        does = enough(*ends)
        return int(numbers[does.argmax()]) if does.any() else None

    def domains(self, *values: Any) -> list[Domain]:
        """Return what the means of two values of `by` are made of, or of all items."""
        names = ", ".join(map(str, self._parts))
        if values and (len(set(values)) != 2 or not self._parts.keys() >= set(values)):
            expected = f"two of {names}" if names else "values of by, of which there are none"
            raise InputError(argument="between", came=values, expected=expected)
        for value in values:
            part = self._parts[value]
            if not part.has_interval:
                n = part.sample.n_groups
                what = "label" if self.n_groups == self.n_labels else "group with labels"
                raise InputError(
                    f"{value} has {n} {what}{'' if n == 1 else 's'}, expected at least 2",
                    argument="labels",
                )
        return [self._parts[value] for value in values] or [self._whole]

    def _known_quantity(self, name: str | None) -> str:
        name = self.main if name is None else name
        if name not in self.estimates:
            raise InputError(
                argument="quantity", came=name, expected=f"one of {', '.join(self.estimates)}"
            )
        return name

    def __str__(self) -> str:
        lines = [f"{name} {estimate}" for name, estimate in self.estimates.items()]
        return "\n".join([*lines, *(f"remark: {text}" for text in self.remarks)])


def estimate(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    by: ArrayLike | None = None,
    population: Population = "new",
    units: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    model: Predictor | None = None,
    prior: Any = "weak",
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    """Estimate shares of labels and win rates, or grades, of all items, most without a label.

    The mean of a judge's labels has no valid interval: it is off by the judge's bias, which no
    number of votes shows. Here the labels measure that bias. The interval is for new items of the
    kind, or of these items, and holds whatever the judge is worth; a good judge makes it narrow.

    Parameters
    ----------
    counts : (N, 3) array of non-negative numbers
        Votes of all items in label order: minus, tie, plus; or of several judges,
        (N, judges, 3), who are used as a panel. Or votes, as `btdagg.read_votes` returns them.
    labels : (N,) array of -1, 0, 1, or NaN or None where there is none
        Labels of items that were chosen by chance. Where items have several raters, (N, 3) shares
        of them for B, tie and A, NaN where there is no label. With votes, labels as
        `btdagg.read_labels` returns them; then an item with several raters counts as their mean.
    scale, label_scale : Scale, optional
        Of the votes, by default that of pairs, and of the labels if theirs is another: `counts` are
        (N, J) numbers of votes for each point, and `labels` are (N,) points, or (N, K) shares of
        raters for each.
    groups : (N,) array, optional
        What items share, such as their prompt. Variances are between groups.
    probabilities : (N,) array of numbers above 0 and at most 1, optional
        Of each item, the probability that it was chosen to be labelled; without them each item was
        as likely as any other. Those of items without a label are not used and may be NaN. Where
        one item of each of n among G groups was labelled, it is n / G over the size of its group.
    by : (N,) array, optional
        A column, such as the task: also estimate for the items of each of its values. Of votes the
        name of a column.
    population : "new" or "finite"
        What intervals are of: new items of the kind, or these items and no others. Of these items
        the labels are known, so that a label of every item leaves nothing to estimate: the value is
        their mean, and the interval has no width.
    units : (N,) array, optional
        What was drawn as a whole, where items have `groups` and the population is finite: the
        groups, or a number for each item. `btdagg.estimates.choose` returns it, and tables of
        labels say it in a column `unit`.
    strata : (N,) array, optional
        With `probabilities`, for a finite population: of which stratum units are, where so many of
        each were drawn, as `btdagg.estimates.choose` does. Otherwise units are taken to be drawn
        independently of each other. Those of items without a label are not used.
    model : DavidsonModel, PanelModel, GradeModel or other with `predict_proba`, optional
        A model that was calibrated on other labels; of a panel, the column `judge` of votes says
        whose they are. By default models are calibrated on these,
        and each item's probabilities are those of one that did not see its group.
    prior : optional
        Of the calibration, as `btdagg.calibrate` takes it. Of no meaning with `model` or a panel.
    level : float
        Of the intervals.
    seed : int
        Of the folds.

    Returns
    -------
    Estimates

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, or fewer than two items or groups have a label.

    Notes
    -----
    Prediction-powered inference; the weight of the judge's probabilities is tuned, see
    `btdagg.estimates.mean.corrected_mean`. Intervals are Wilson's on the effective number of
    labels, with a quantile of Student's t and one degree of freedom less than there are labelled
    groups (fewer, where groups differ in size). Of a finite population the error is that of the
    items without a label, for which labelled ones stand by their inverse probabilities less one
    (`btdagg.estimates.mean.FiniteSample`). Where probabilities differ, the variance is at least
    that of residuals which do not depend on them. With a fixed `model`, at least 50 labels, no
    `groups` and no `probabilities`, estimates and intervals are those of PPI++ as published, normal
    and symmetric, unless such an interval goes past the ends of what the mean can be. Each share
    has a weight of its own, so that A, tie and B add up to 1 only roughly, and the mean grade is
    only roughly the sum of shares.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès (2024) for cross-fitting; Korn and
    Graubard (1998) for shares of samples of groups; Särndal, Swensson and Wretman (1992) for finite
    populations; Kish (1965) for the effective number of labels.

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [1, 1, 6], [2, 1, 5], [6, 2, 0], [0, 1, 7]] * 9
    >>> labels = [1, 0, -1, 1, None, None, None] * 9
    >>> net = estimate(counts, labels).estimates["net win rate"]
    >>> 0 < net.low < net.high < 1
    True
    >>> counts, labels = [[0, 1, 4], [3, 2, 0], [1, 3, 1]] * 9, [3, 1, 2, 3] + [None] * 23
    >>> print(estimate(counts, labels, scale=Scale((1, 2, 3))).main)
    mean grade
    """
    level = as_level(level)
    if isinstance(labels, Labels):
        told_apart: Any = {"groups": groups, "probabilities": probabilities, "model": model}
        told_apart |= {"units": units, "strata": strata, "scales": (scale, label_scale)}
        table = items_of_tables(counts, labels, by=by, **told_apart)
        options: Any = {"model": model, "prior": prior, "level": level, "seed": seed}
        return estimate_items(table, population=population, **options)
    columns = {"groups": groups, "probabilities": probabilities, "units": units, "strata": strata}
    same_index(counts=counts, labels=labels, by=by, **columns)
    names: list[Any] = []
    told: list[NDArray[np.int64]] = []
    if by is not None:
        names, numbers = _values_of(by, len(labels))  # type: ignore[arg-type]
        told = [numbers]
    kind = kind_of(*scales_of(counts, labels, scale, label_scale))
    drawn: Any = {"population": population, "units": units, "strata": strata}
    items = population_of(
        counts, labels, groups, probabilities, model, prior, seed, *told, kind=kind, **drawn
    )
    inside = {name: told[0] == place for place, name in enumerate(names)}
    return _estimates_of(items, inside, level)


def _estimates_of(
    items: PredictedItems, inside: Mapping[Any, NDArray[np.bool_]], level: float
) -> Estimates:
    """Estimate over all items, and over those inside of each domain."""
    whole = items.domain()
    parts = {name: items.domain(own) for name, own in inside.items()}
    of_means = items.remarks_on_means(whole, level)
    of_means += _of_sums(whole, [*parts.values()], items.kind.main)
    return Estimates(
        whole.estimates(level),
        {name: part.estimates(level) for name, part in parts.items()},
        whole.n_items,
        whole.n_labels,
        whole.sample.n_groups,
        level,
        (*_remarks(whole, items), *of_means),
        items.kind.main,
        whole,
        parts,
        items,
        inside,
        tuple(of_means),
        population=items.draw.population,
    )


def estimate_items(items: AllItems, **options: Any) -> Estimates:
    """Estimate over items of tables; options are those of `estimate` that are no column."""
    if options.get("population") == "finite" and items.units is None and items.groups is not None:
        raise InputError(UNKNOWN_UNIT, argument="labels")
    columns = items.columns | items.drawn
    estimates = estimate(items.counts, items.outcomes, by=items.by, **columns, **options)
    return with_remarks(replace(estimates, sides=items.sides), items.remarks)


def items_of_tables(
    votes: Any,
    labels: Labels,
    *,
    by: Any,
    systems: tuple[str, str] | None = None,
    model: Any = None,
    scales: tuple[Scale | None, Scale | None] = (None, None),
    **told: Any,
) -> AllItems:
    """Return the items of tables of votes and labels, which have columns for all that but `by`."""
    require_labels(labels)
    if not isinstance(votes, Votes):
        raise InputError(
            "labels are a table and counts an array: pass what read_votes returned, or an array of "
            "labels with NaN where there is none",
            argument="counts",
        )
    scales_of(votes, labels, *scales)
    for argument, values in told.items():
        if values is not None:
            raise InputError(
                f"{argument} is given with tables, which have their own", argument=argument
            )
    if not isinstance(by, str | None):
        raise InputError(argument="by", came=by, expected="the name of a column of the votes")
    return all_items(votes, labels, by=by, systems=systems, model=model)


def population_of(
    counts: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None,
    probabilities: ArrayLike | None,
    model: Predictor | None,
    prior: Any,
    seed: int,
    *told: NDArray[Any],
    sign: NDArray[np.int8] | None = None,
    kind: Kind = PAIRS,
    population: Population = "new",
    units: ArrayLike | None = None,
    strata: ArrayLike | None = None,
) -> PredictedItems:
    """Check what `estimate` takes, and return all items with the predictions of models.

    `told`, (N,) arrays, is what else tells items apart, such as their systems, and `sign` has -1
    for items to be turned so that all have the same side as A.
    """
    if population not in get_args(Population):
        expected = " or ".join(map(repr, get_args(Population)))
        raise InputError(argument="population", came=population, expected=expected)
    seed = as_integer(seed, "seed", 0)
    array, outcomes = as_any_counts(counts, kind), kind.outcomes(labels)
    same_length("labels", len(outcomes), "counts", len(array))
    group = None if groups is None else as_groups(groups, "counts", len(outcomes))
    labelled = np.flatnonzero(~np.isnan(outcomes[:, 0]))
    own_group = None if group is None else group[labelled]
    n_groups = len(np.unique(labelled if own_group is None else own_group))
    if n_groups < 2:
        what = "label" if group is None else "group with labels"
        raise InputError(
            f"labels has {n_groups} {what}{'' if n_groups == 1 else 's'}, expected at least 2",
            argument="labels",
        )
    weights = None
    if probabilities is not None:
        inverse = _inverse(probabilities, outcomes)
        told, weights = (*told, inverse), inverse[labelled]
    first, place = distinct_rows(*array.reshape(len(array), -1).T)
    rows, outcomes = array[first], outcomes[labelled]
    if model is None:
        numbers = numbered(own_group, [values[labelled] for values in told], len(labelled))
        own_sign = None if sign is None else sign[labelled]
        own = array[labelled], outcomes, numbers
        tables, fold = cross_fitted(*own, rows, prior, seed, own_sign, kind)
    else:
        tables, fold = fixed(model, rows, len(labelled), kind)
    draw = _draw(population, units, strata, labelled, len(array), grouped=group is not None)
    if draw.strata is not None and weights is None:
        raise InputError("strata are given without probabilities", argument="probabilities")
    items = kind, rows, place, labelled, outcomes, group, weights, draw
    return PredictedItems(*items, tables, fold, model is not None)


def _draw(
    population: Population,
    units: ArrayLike | None,
    strata: ArrayLike | None,
    labelled: NDArray[np.int64],
    n_items: int,
    *,
    grouped: bool,
) -> Draw:
    """Return how the labelled items, by their numbers, were drawn."""
    numbers = None if units is None else as_groups(units, "counts", n_items, "units")
    is_known = numbers is not None or not grouped
    if population == "finite" and not is_known:
        expected = "what was drawn as a whole, items or groups, where items have groups"
        raise InputError(argument="units", came=units, expected=expected)
    codes = None
    if strata is not None:
        same_length("strata", len(strata), "counts", n_items)  # type: ignore[arg-type]
        own = np.asarray(strata, dtype=object)[labelled]
        if not any(name is None for name in own.tolist()):
            codes = as_groups(own, "labels", len(own), "strata")
    return Draw(population, numbers, codes, is_known)


def _remarks(whole: Domain, items: PredictedItems) -> tuple[str, ...]:
    """Return what a reader has to know before using the numbers."""
    remarks = items.remarks(whole.sample) + items.remarks_on_draw(whole)
    still = [name for name, mean in whole.means.items() if mean.variance == 0]
    if still and whole.n_labels < whole.n_items:
        remarks.append(
            f"all labelled groups have the same mean of {', '.join(still)}: how groups vary is not "
            "seen, and the interval is as if each group were one label"
        )
    if not whole.proxies:
        n = whole.n_items - whole.n_labels
        remarks.append(
            f"{n or 'no'} items are without a label, too few for the judge to add anything"
        )
    return tuple(remarks)


def _of_sums(whole: Domain, parts: list[Domain], quantity: str) -> list[str]:
    """Say where the mean of all items is not that of the parts that these fall into."""
    sizes = [part.n_items for part in parts]
    if sum(sizes) != whole.n_items or not all(part.has_interval for part in parts):
        return []
    mean = whole.means[quantity].value
    of_parts = float(np.average([part.means[quantity].value for part in parts], weights=sizes))
    if f"{mean:.3f}" == f"{of_parts:.3f}":
        return []
    return [
        f"{quantity} is {mean:.3f} over all items and {of_parts:.3f} as the mean of their parts: "
        "each is estimated by itself, from its own labels and with its own weight of the votes"
    ]


def _inverse(probabilities: ArrayLike, outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one over the probability of each item to be labelled."""
    array = as_losses(probabilities, "probabilities", "(n,)")
    same_length("probabilities", len(array), "counts", len(outcomes))
    good = ((array > 0) & (array <= 1)) | (np.isnan(array) & np.isnan(outcomes[:, 0]))
    require_rows(good, array, "probabilities", "a number above 0 and at most 1")
    return np.asarray(1 / array)


def _values_of(by: ArrayLike, n_items: int) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the values of a column, in order, and the number of each item's."""
    values = as_names(by, "by")
    numbers = as_groups(values, "counts", n_items, "by")
    names = np.empty(int(numbers.max()) + 1, dtype=values.dtype)
    names[numbers] = values
    return names.tolist(), numbers


def _differences(
    parts: Mapping[Any, Domain], level: float
) -> dict[tuple[Any, Any], dict[str, Difference]]:
    """Compare every two domains that each have labels of two groups.

    Intervals are put together from those of the two means, which stay inside and need not be
    symmetric (MOVER: Zou and Donner, 2008), and allow for their correlation. Degrees of freedom are
    Satterthwaite's. The p-value is one less the level at which an interval ends at 0.
    """
    parts = {value: part for value, part in parts.items() if part.has_interval}
    if len(parts) < 2:
        return {}
    values, domains = list(parts), list(parts.values())
    first, second = np.triu_indices(len(parts), 1)
    pairs = [(values[i], values[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    differences: dict[tuple[Any, Any], dict[str, Difference]] = {pair: {} for pair in pairs}
    for quantity in domains[0].quantities:
        variance = np.array([part.means[quantity].variance for part in domains])
        covariance, r = (of[first, second] for of in _correlations(domains, quantity))
        error = np.sqrt(np.maximum(variance[first] + variance[second] - 2 * covariance, 0.0))
        freedom = _degrees_of_freedom(domains, quantity, first, second)
        level_of_pair = 1 - (1 - level) / len(first)
        quantile = np.array([t_quantile(level_of_pair, degrees) for degrees in freedom.tolist()])
        bounds = [part.bounds(quantity, part.means[quantity], level_of_pair) for part in domains]
        of_first, of_second = (IntervalParts.stacked(bounds, place) for place in (first, second))
        both = _BoundsOfTwo(of_first, of_second, r)
        low, high = both.at(quantile)
        p = np.minimum(len(first) * t_pvalues(both.ending_at_0(quantile), 1.0, freedom), 1.0)
        away = of_first.value - of_second.value
        rows = np.stack([away, low, high, error, p], axis=1).tolist()
        for pair, row in zip(pairs, rows, strict=True):
            differences[pair][quantity] = Difference(*row)
    return differences


class _BoundsOfTwo(NamedTuple):
    """What the intervals of differences are made of: bounds of two means each, and correlations."""

    first: IntervalParts
    second: IntervalParts
    r: Any

    def at(self, quantile: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Low and high ends at a quantile."""
        first = self.first.value, *self.first.at(quantile)
        second = self.second.value, *self.second.at(quantile)
        return _difference_limits(first, second, self.r)

    def ending_at_0(self, quantile: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles at which intervals end at 0.

        They are above a quantile whose interval does not hold 0, and below one whose interval does.
        """

        def is_beyond(quantile: NDArray[np.float64]) -> NDArray[np.bool_]:
            low, high = self.at(quantile)
            return np.asarray((low > 0) | (high < 0))

        side = is_beyond(quantile)
        near, far = np.zeros(len(side)), np.where(side, _FARTHEST, -_FARTHEST)
        for _ in range(_N_HALVINGS):
            middle = (near + far) / 2
            same = is_beyond(quantile * 2**middle) == side
            near, far = np.where(same, middle, near), np.where(same, far, middle)
        return np.asarray(quantile * 2**near)


def _degrees_of_freedom(
    domains: list[Domain], quantity: str, first: Any, second: Any
) -> NDArray[np.float64]:
    """Satterthwaite's degrees of freedom of differences of the means of domains."""
    variance = np.array([domain.means[quantity].variance for domain in domains])
    degrees = np.array([domain.degrees_of_freedom for domain in domains])
    own = np.array([domain.sample.degrees_of_freedom for domain in domains])
    with np.errstate(divide="ignore", invalid="ignore"):
        both = variance[first] + variance[second]
        spread = variance[first] ** 2 / degrees[first] + variance[second] ** 2 / degrees[second]
        freedom = np.where(spread > 0, both**2 / spread, np.inf)
    # Without any spread the groups of the smaller domain are all there is.
    return np.where(both > 0, freedom, np.minimum(own[first], own[second]))


def _difference_limits(
    first: Any, second: Any, r: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of differences of two correlated means, from their values, low and high ends."""
    (a, low_a, high_a), (b, low_b, high_b) = first, second

    def half(own: Any, other: Any) -> NDArray[np.float64]:
        square = own**2 + other**2 - 2 * r * own * other
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    return a - b - half(a - low_a, high_b - b), a - b + half(high_a - a, b - low_b)


def _limits_at(
    domains: list[Domain], quantity: str, level: float, numbers: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the interval of a mean, or of the difference of two, with so many labels in all."""
    quantile = t_quantile(level, domains[0].degrees_of_freedom)
    if len(domains) == 2:
        quantile = t_quantile(level, float(_degrees_of_freedom(domains, quantity, 0, 1)))
    ends = []
    for domain in domains:
        share = domain.n_labels / sum(other.n_labels for other in domains)
        own = np.clip(share * numbers, 1, domain.n_items)
        value = np.clip(domain.means[quantity].value, *domain.ends(quantity))
        ends.append((value, *domain.limits_at(quantity, quantile, own)))
    if len(ends) == 1:
        return ends[0][1:]
    return _difference_limits(ends[0], ends[1], _correlations(domains, quantity)[1][0, 1])


def _correlations(
    domains: list[Domain], quantity: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Covariances and correlations of the means of domains."""
    covariance = _covariances(domains, quantity)
    variance = np.array([domain.means[quantity].variance for domain in domains])
    product = np.sqrt(np.outer(variance, variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.where(product > 0, covariance / product, 0.0)
    return covariance, np.clip(r, -1.0, 1.0)


def _covariances(parts: list[Domain], quantity: str) -> NDArray[np.float64]:
    """Covariances of the means of domains, (domains, domains), by the groups that they share."""
    from scipy.sparse import csr_array

    names, errors, rows = [], [], []
    for row, part in enumerate(parts):
        mean = part.means[quantity]
        own = [(part.sample.names, mean.errors)]
        if quantity in part.proxies and len(part.proxies[quantity].names):
            proxies = part.proxies[quantity]
            own.append((proxies.names, mean.weight * proxies.rest))
        names += [groups for groups, _ in own]
        errors += [of_groups for _, of_groups in own]
        rows += [np.full(len(groups), row) for groups, _ in own]
    column = np.concatenate(names)
    size = (len(parts), int(column.max()) + 1)
    matrix = csr_array((np.concatenate(errors), (np.concatenate(rows), column)), shape=size)
    covariances: NDArray[np.float64] = (matrix @ matrix.T).toarray()
    return covariances
