"""Many systems against a baseline or each other, from a few labels and the votes of a judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.display import Drawn
from btdagg._util.errors import expect
from btdagg._util.readable import Readable
from btdagg._util.validation import as_groups, as_names, require_rows, same_index
from btdagg._util.wording import MISSING, counted, fixed
from btdagg.inference.estimate import MeanEstimate, numbers_of
from btdagg.inference.population import PredictedItems, items_of
from btdagg.inference.significance import holm, rank_clusters, statistically_tied
from btdagg.inference.strengths import Comparisons, FittedStrengths, corrected_strengths, listed
from btdagg.model.intervals import ParameterInterval, as_level
from btdagg.questions.estimate import estimate, means_figure
from btdagg.remarks import Remark
from btdagg.result import Entry, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.by_id import as_tables
from btdagg.votes.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from btdagg.inference.cross_fit import Predictor
    from btdagg.inference.sample import Population
    from btdagg.votes.items import Items
    from btdagg.votes.scale import Scale


BEST = "Which system is best"
"""Heading of the section in a report."""

_MOST_NAMED = 5  # systems in a remark
_MOST_PAIRS = 8  # that a note names
_MOST_COMPARED = 200  # pairs of systems head to head


@dataclass(frozen=True)
class SystemEstimate(Readable):
    """One system among others.

    Attributes
    ----------
    n_items, n_labels : int
        Items with a response of the system, and those of them with a label.
    mean : MeanEstimate or None
        Mean grade of these items; for pairs the share that the system wins, ties as half: against
        the baseline, if there is one, which has None. With labels of fewer than two groups NaN, and
        its interval 0 to 1.
    strength : ParameterInterval or None
        For pairs, in log odds: without ties, odds of a win are exp of the difference of strengths.
    rank : int
        Rank cluster by strength or mean grade, 1 the best; see `btdagg.rank_clusters`. Systems of
        two ranks need not differ significantly: see `SystemEstimates.not_told_apart`.
    is_tied : bool
        Whether it cannot be told from the best.
    """

    n_items: int
    n_labels: int
    mean: MeanEstimate | None
    strength: ParameterInterval | None
    rank: int
    is_tied: bool


@dataclass(frozen=True)
class HeadToHead(Readable):
    """Two systems on the items that compare them, or, of grades, on all of their items.

    Attributes
    ----------
    first, second : object
        Names of the systems.
    n_items, n_labels : int
    value, low, high : float
        Win rate of the first, ties as half, with its interval; of grades the difference of means.
    """

    first: Any
    second: Any
    n_items: int
    n_labels: int
    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Return names and numbers; NaN as None."""
        names = {"first": str(self.first), "second": str(self.second)}
        return names | numbers_of(self, "n_items", "n_labels", "value", "low", "high")


@dataclass(frozen=True, eq=False)
class SystemEstimates(Drawn, Result):
    """Systems from the best to the worst.

    Attributes
    ----------
    systems : dict of name to SystemEstimate
    quantity : str
        Name of the mean: ``"win rate"`` or ``"mean grade"``.
    pvalues : (S, S) array
        Two-sided, of no difference in strength or mean grade, corrected for the number of pairs
        (Holm), in the order of `systems`.
    n_items, n_labels, n_groups : int
        All items; those with a label; their groups.
    level : float
        Confidence level of each interval by itself; ranks are tested at 1 minus this. All intervals
        together hold less often.
    remarks : tuple of Remark
    population : "new" or "finite"
        Whether intervals are for new items, or of these.
    tie_parameter : ParameterInterval or None
        For pairs, Davidson's nu: systems of one strength tie with probability ``nu / (2 + nu)``.
    covariance : (S, S) array, or None
        Covariance of the strengths, in the order of `systems`.
    weight : float or None
        Weight of the judge's probabilities in the strengths, from 0 (labels alone) to 1.
    baseline : object
        Name of the system with strength 0; None where strengths sum to 0.
    ends : tuple of two floats
        The least and the greatest value that a mean can have.
    head_to_head : tuple of HeadToHead
        Every two systems that items compare, in the order of `systems`; none of more than 200.
    """

    systems: dict[Any, SystemEstimate]
    quantity: str
    pvalues: NDArray[np.float64]
    n_items: int
    n_labels: int
    n_groups: int
    level: float
    remarks: tuple[Remark, ...]
    population: Population = "new"
    tie_parameter: ParameterInterval | None = None
    covariance: NDArray[np.float64] | None = field(default=None, repr=False)
    weight: float | None = None
    baseline: Any = None
    ends: tuple[float, float] = field(default=(0.0, 1.0), repr=False)
    head_to_head: tuple[HeadToHead, ...] = ()

    def sentence(self) -> str:
        """Return which system is best, or which may be."""
        best = "best" if self.tie_parameter is None else "strongest"
        first = [str(name) for name, system in self.systems.items() if system.is_tied]
        if len(first) == 1:
            return f"{first[0]} is the {best} of {len(self.systems)} systems"
        return (
            f"{', '.join(first[:-1])} and {first[-1]} may be the {best} of {len(self.systems)} "
            "systems: they do not differ significantly"
        )

    @property
    def not_told_apart(self) -> tuple[tuple[str, str], ...]:
        """Pairs of systems that do not differ significantly, whatever their ranks."""
        names = list(map(str, self.systems))
        pairs = combinations(range(len(names)), 2)
        is_alike = self.pvalues >= 1 - self.level
        return tuple((names[a], names[b]) for a, b in pairs if is_alike[a, b])

    def record(self, name: Any) -> dict[str, Any]:
        """Return the numbers of a system by name; NaN as None."""
        system = self.systems[name]
        names = ("rank", "is_tied", "n_items", "n_labels")
        fields = {"system": str(name), **{name: getattr(system, name) for name in names}}
        if (strength := system.strength) is not None:
            ends = numbers_of(strength, "low", "high").items()
            fields |= {"strength": strength.estimate, **{f"strength_{end}": of for end, of in ends}}
        mean = {} if system.mean is None else system.mean.as_dict()
        quantity = self.quantity.replace(" ", "_")
        return fields | {f"{quantity}_{field}": value for field, value in mean.items()}

    def values(self) -> dict[str, Any]:
        """Return all that is estimated; what is of strengths where there are some."""
        values = super().values()
        values |= {"systems": [*map(self.record, self.systems)]}
        values["not_told_apart"] = self.not_told_apart
        if (nu := self.tie_parameter) is not None:
            ends = numbers_of(nu, "estimate", "low", "high")
            return values | {"tie_parameter": {"value": ends.pop("estimate"), **ends}}
        for name in ("tie_parameter", "weight", "baseline"):
            del values[name]
        return values

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        return BEST

    def table(self) -> ResultTable:
        """Return the systems from the best to the worst."""
        rows = []
        for name, system in self.systems.items():
            mean = system.mean
            cells: dict[str, str | Entry] = {
                "rank": str(system.rank),
                "items": f"{system.n_items:,}",
                "labels": f"{system.n_labels:,}",
                self.quantity: MISSING if mean is None or np.isnan(mean.value) else str(mean),
            }
            if system.strength is not None:
                cells["strength"] = _in_words(system.strength)
            rows.append(Row((str(name),), cells, [self.record(name)]))
        of = "of these items" if self.population == "finite" else "for new items of the same kind"
        title, what = f"Systems by {self.quantity}", ""
        if self.tie_parameter is not None:
            against = "" if self.baseline is None else f" against {self.baseline}"
            title = "Systems by strength"
            what = (
                f" Win rate{against}: over the items of the system, ties count as half. Strength: "
                "log odds of a win against a loss by the Davidson model, which accounts for the "
                f"opponents, as win rates do not; tie parameter {self.tie_parameter}."
            )
        note = (
            f"{counted(self.n_items, 'item')}, {self.n_labels:,} of them with a label.{what} "
            f"{self._told_apart()} {100 * self.level:.3g}% intervals {of}, each by itself."
        )
        return ResultTable.of_rows("systems", title, note, ("system",), rows)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the systems, and of several every two of them head to head."""
        if len(self.systems) < 3:
            return (self.table(),)
        return self.table(), self._head_to_head_table()

    def _head_to_head_table(self) -> ResultTable:
        is_rate = self.tie_parameter is not None
        column = "win rate" if is_rate else "difference"
        rows = [
            Row(
                (str(of.first), str(of.second)),
                {
                    "items": f"{of.n_items:,}",
                    "labels": f"{of.n_labels:,}",
                    column: MISSING if np.isnan(of.value) else fixed(of.value, signed=not is_rate),
                    "interval": f"{fixed(of.low)} to {fixed(of.high)}",
                },
                [of.as_dict()],
            )
            for of in self.head_to_head
        ]
        what = "Win rate of the first system against the second, ties counted as half, over the"
        what += " items that compare them"
        if not is_rate:
            what = f"{self.quantity.capitalize()} of the first system less that of the second"
        note = f"{what}; {100 * self.level:.3g}% intervals, each by itself."
        title, labels = "Systems head to head", ("system", "against")
        return ResultTable.of_rows("head-to-head", title, note, labels, rows)

    def _told_apart(self) -> str:
        # Say which pairs of systems the labels tell apart, or which not: whichever is shorter.
        pairs = [*combinations(map(str, self.systems), 2)]
        tied = [" and ".join(pair) for pair in self.not_told_apart]
        apart = [" and ".join(pair) for pair in pairs if pair not in self.not_told_apart]
        if not tied or not apart:
            return "All differ significantly." if not tied else "None differ significantly."
        if len(apart) < len(tied):
            return f"Only these pairs differ significantly: {_some(apart)}."
        return f"No significant difference: {_some(tied)}."

    def figure(self) -> IntervalFigure:
        """Return the means of systems from the best, with the judge and without."""
        means = {str(name): system.mean for name, system in self.systems.items()}
        rows = {name: mean for name, mean in means.items() if mean and not np.isnan(mean.value)}
        against = "" if self.baseline is None else f" against {self.baseline}"
        title = f"{self.quantity.capitalize()}s{against}"
        unit = 100 if self.quantity == "win rate" else 1
        ends = None if unit == 100 else self.ends
        quantity, level = self.quantity, self.level
        return means_figure("systems", title, rows, quantity, level, unit=unit, ends=ends)


def estimate_systems(
    counts: Any,
    labels: Any = None,
    system_a: ArrayLike | None = None,
    system_b: ArrayLike | None = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    baseline: Any = None,
    population: Population = "new",
    units: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    model: Predictor | None = None,
    prior: Any = "weak",
    level: float = 0.95,
) -> SystemEstimates:
    """Rank systems by a few labels and a judge's votes of all: of compared or graded responses.

    Parameters
    ----------
    counts, labels, scale, label_scale, groups, probabilities
        As `btdagg.estimate` takes them.
    population, units, strata, model, prior
        As `btdagg.estimate` takes them.
    system_a, system_b : (N,) arrays
        Names of the systems whose responses are A and B of each item; of grades `system_a` alone.
    baseline : object, optional
        For pairs, the name of a system: win rates are against it, and its strength is 0.
    level : float
        Confidence level of the intervals.

    Raises
    ------
        As `btdagg.estimate` does; if an item compares a system with itself, the baseline is no
        system, systems are not connected, or one won or lost everything; of grades, if there is one
        system alone, or one has labels of fewer than two groups.

    Notes
    -----
    A win rate is the prediction-powered mean of `btdagg.estimate` over a system's items, turned so
    that the system is A. With other opponents rates cannot be compared, strengths can: those of the
    Davidson model, in which the first wins, ties or loses in proportion to ``exp(d)``, ``nu`` and
    ``exp(-d)``, d half the difference of strengths, fitted by maximum likelihood to corrected
    counts (`btdagg.inference.strengths.corrected_strengths`). Without ties nu is 0 (Bradley and
    Terry). The covariance is the sandwich by groups; quantiles are Student's t, one degree of
    freedom less than labelled groups. Folds are those of ``estimate(seed=0)``.

    Mean grades and their differences are those of ``estimate(by=system)``, p-values by Holm's
    method.

    References
    ----------
    Davidson, On extending the Bradley-Terry model to accommodate ties (1970); Angelopoulos, Duchi
    and Zrnic, PPI++ (2023); Holm (1979).

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [5, 2, 1], [1, 1, 6], [1, 2, 5]] * 12
    >>> labels = [1, 0, -1, -1, 1, 1, None, None, None, None, None, None] * 6
    >>> a, b = ["x", "x", "y"] * 24, ["y", "z", "z"] * 24
    >>> list(estimate_systems(counts, labels, a, b).systems)
    ['x', 'y', 'z']
    >>> counts, grades = [[0, 1, 4], [3, 2, 0], [1, 3, 1]] * 9, [3, 1, 2] * 4 + [None] * 15
    >>> found = estimate_systems(counts, grades, ["x", "y", "y"] * 9, scale=Scale((1, 2, 3)))
    >>> [(name, system.rank) for name, system in found.systems.items()]
    [('x', 1), ('y', 2)]
    """
    level = as_level(level)
    counts, labels = as_tables(counts, labels, scale, label_scale)
    if isinstance(labels, Labels):
        expected = "an array, since system_a is one: columns of tables name systems"
        expect(system_a is None and system_b is None, "labels", labels, expected)
    how: Any = {"groups": groups, "probabilities": probabilities, "units": units, "strata": strata}
    if system_a is not None:
        same_index(counts=counts, labels=labels, system_a=system_a, system_b=system_b)
    items = items_of(counts, labels, scale=scale, label_scale=label_scale, **how)
    how = {"model": model, "prior": prior, "population": population}
    if not items.scale.mirrored:
        for name, got in (("system_b", system_b), ("baseline", baseline)):
            expect(got is None, name, got, "None, since votes are grades of single responses")
        by: Any = items.facts.get("by") if system_a is None else as_names(system_a, "system_a")
        if by is None and items.systems is not None:
            by = items.systems[:, 0]
        expect(by is not None, "system_a", by, "the system of each response")
        as_groups(by, "counts", len(items), "system_a")
        return _of_grades(items.with_facts({"by": np.asarray(by)}), level, how)
    if items.systems is not None:
        system_a, system_b = items.systems.T
    for name, got in (("system_a", system_a), ("system_b", system_b)):
        expect(got is not None, name, got, f"the systems of side {name[-1].upper()}")
    names, a, b = _systems_of(system_a, system_b, len(items))  # type: ignore[arg-type]
    expected = f"one of the systems {listed(names)}"
    expect(baseline is None or baseline in names, "baseline", baseline, expected)
    reference = None if baseline is None else names.index(baseline)
    comparisons = Comparisons.of(a, b, names)
    predicted = PredictedItems.of(items, comparisons.pair, sign=comparisons.sign, **how)
    ties = [*predicted.domain().values()][1]
    sample = predicted.sample()
    fitted = corrected_strengths(predicted, sample, comparisons).relative_to(reference)
    is_labelled = np.zeros(len(a), dtype=np.bool_)
    is_labelled[predicted.labelled] = True
    parts: list[dict[str, Any]] = []
    for system in range(len(names)):
        mine = (a == system) | (b == system)
        rate = None
        if system != reference:
            against = mine if reference is None else mine & ((a == reference) | (b == reference))
            of_system = predicted.turned(np.flatnonzero(against), b == system).domain()
            rate = MeanEstimate.of(of_system["win rate"], level)
        n_labels = int((mine & is_labelled).sum())
        parts.append(
            {
                "n_items": int(mine.sum()),
                "n_labels": n_labels,
                "mean": rate,
                "strength": fitted.interval(system, level),
            }
        )
    systems, pvalues, order = _ranked(names, fitted.values, fitted.pvalues(), parts, level)
    head_to_head = []
    if len(comparisons.first) <= _MOST_COMPARED:
        places = {name: place for place, name in enumerate(systems)}
        for pair, ends in enumerate(zip(comparisons.first, comparisons.second, strict=True)):
            first, second = sorted((names[end] for end in ends), key=places.__getitem__)
            rows = np.flatnonzero(comparisons.pair == pair)
            is_turned = b == names.index(first)
            wins = predicted.turned(rows, is_turned).domain()["win rate"]
            numbers = wins.n_items, wins.n_labels, *wins.interval(level)
            head_to_head.append(HeadToHead(first, second, *numbers))
        head_to_head.sort(key=lambda of: (places[of.first], places[of.second]))
    about = [
        *items.origin.remarks,
        *predicted.remarks,
        *_remarks(systems, fitted, uses_judge=len(predicted.stand_ins()) > 0),
    ]
    if (other := predicted.other) is not None:
        of = other.sample()
        strengths = corrected_strengths(other, of, comparisons).relative_to(reference)
        intervals = {name: strengths.interval(k, level) for k, name in enumerate(names)}
        of_systems = _listed(intervals)
        about.append(remarks.other_population("strengths", other.of_population, of_systems))
    return SystemEstimates(
        systems,
        "win rate",
        pvalues,
        ties.n_items,
        ties.n_labels,
        sample.n_groups,
        level,
        tuple(about),
        population,
        fitted.tie_parameter(ties.interval(level), comparisons),
        fitted.covariance[np.ix_(order, order)],
        fitted.weight,
        baseline,
        head_to_head=tuple(head_to_head),
    )


def _of_grades(items: Items, level: float, how: dict[str, Any]) -> SystemEstimates:
    names = sorted({*items.facts["by"].tolist()})
    expect(len(names) >= 2, "system_a", names, "two systems or more")
    found = estimate(items, level=level, **how)
    quantity = found.main
    means = [domain[quantity] for domain in found.domains(*names).values()]
    pvalues = np.ones((len(means), len(means)))
    for first, second in combinations(range(len(means)), 2):
        p = (means[first] - means[second]).pvalue()
        pvalues[first, second] = pvalues[second, first] = p
    parts: list[dict[str, Any]] = [
        {
            "n_items": mean.n_items,
            "n_labels": mean.n_labels,
            "mean": MeanEstimate.of(mean, level),
            "strength": None,
        }
        for mean in means
    ]
    scores = np.array([mean.value for mean in means])
    systems, pvalues, _ = _ranked(names, scores, pvalues, parts, level)
    about = found.remarks_on_differences
    if (other := found.other_population) is not None:
        of_systems = _listed({name: other.by[name][quantity] for name in names})
        about += (remarks.other_population(f"{quantity}s", other.of_population, of_systems),)
    numbers = found.n_items, found.n_labels, found.n_groups
    of_all = (*numbers, level, about, found.population)
    by_name = dict(zip(names, means, strict=True))
    head_to_head = []
    if len(names) * (len(names) - 1) <= 2 * _MOST_COMPARED:
        for first, second in combinations(systems, 2):
            less = by_name[first] - by_name[second]
            of_pair = less.n_items, less.n_labels, *less.interval(level)
            head_to_head.append(HeadToHead(first, second, *of_pair))
    more: Any = {"ends": found.ends, "head_to_head": tuple(head_to_head)}
    return SystemEstimates(systems, quantity, pvalues, *of_all, **more)


def _ranked(
    names: list[Any],
    scores: NDArray[np.float64],
    pvalues: NDArray[np.float64],
    parts: list[dict[str, Any]],
    level: float,
) -> tuple[dict[Any, SystemEstimate], NDArray[np.float64], NDArray[np.int64]]:
    pvalues = holm(pvalues)
    ranks = rank_clusters(-scores, pvalues, 1 - level).tolist()
    tied = statistically_tied(-scores, pvalues, 1 - level).tolist()
    order = np.argsort(-scores, kind="stable")
    systems = {
        names[place]: SystemEstimate(**parts[place], rank=ranks[place], is_tied=tied[place])
        for place in order.tolist()
    }
    return systems, pvalues[np.ix_(order, order)], order


def _some(pairs: list[str]) -> str:
    left = len(pairs) - _MOST_PAIRS
    return "; ".join(pairs[:_MOST_PAIRS]) + f"; and {left} more pairs" * (left > 0)


def _in_words(interval: ParameterInterval) -> str:
    estimate, low, high = (
        fixed(value, signed=True) for value in (interval.estimate, interval.low, interval.high)
    )
    if np.isnan(interval.low) or interval.low == interval.high:
        return estimate
    return f"{estimate} ({low} to {high})"


def _listed(values: Mapping[Any, object]) -> str:
    named = [f"{name} {value}" for name, value in values.items()]
    return f"{', '.join(named[:_MOST_NAMED])}{', ...' if len(named) > _MOST_NAMED else ''}"


def _systems_of(
    system_a: ArrayLike, system_b: ArrayLike, n_items: int
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    both: list[Any] = []
    for argument, values in (("system_a", system_a), ("system_b", system_b)):
        as_groups(values, "counts", n_items, argument)  # there is one for every item
        both += as_names(values, argument).tolist()
    objects = np.array(both, dtype=object)
    numbers = as_groups(objects, "both", len(both), "system_a and system_b")
    a, b = numbers.reshape(2, -1)
    require_rows(a != b, objects, "system_b", "a system other than system_a")
    return sorted(set(both)), a, b


def _remarks(
    systems: dict[Any, SystemEstimate], fitted: FittedStrengths, *, uses_judge: bool
) -> list[Remark]:
    about = []
    bare = [name for name, system in systems.items() if system.n_labels < 2]
    if bare:
        about.append(remarks.unlabelled_systems(listed(bare)))
    rates = {name: system.mean for name, system in systems.items()}
    unknown = [name for name, rate in rates.items() if rate and np.isnan(rate.standard_error)]
    if unknown:
        about.append(remarks.no_interval(listed(unknown)))
    if not fitted.has_ties:
        about.append(remarks.no_ties())
    if not uses_judge:
        about.append(remarks.votes_add_nothing())
    return about
