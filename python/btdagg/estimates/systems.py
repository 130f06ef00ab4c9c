"""Many systems against a baseline or each other, from a few labels and the votes of a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.readable import readable
from btdagg._util.validation import as_groups, as_names, same_index
from btdagg.estimates.population import PredictedItems
from btdagg.estimates.strengths import Comparisons, Standings, corrected_strengths, listed
from btdagg.evaluation.significance import holm, rank_clusters, statistically_tied
from btdagg.model.intervals import ParameterInterval, as_level
from btdagg.votes.labels import Labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.estimates.mean import MeanEstimate, Population
    from btdagg.estimates.population import Predictor
    from btdagg.model.prior import Prior


_MOST_NAMED = 5  # systems in a remark


@readable
@dataclass(frozen=True)
class SystemEstimate:
    """One system among others.

    Attributes
    ----------
    n_items, n_labels : int
        Items with a response of the system, and those of them with a label.
    win_rate : MeanEstimate or None
        Share of these items that the system wins, ties as half; where there is a baseline, of those
        against it. Of the baseline None. It is unknown (NaN, from 0 to 1) with labels of fewer than
        two groups.
    strength : ParameterInterval
        On the scale of log odds: of two systems that do not tie, the first wins with odds of exp of
        its strength less that of the second.
    rank : int
        Rank cluster by strength, 1 the best; see `btdagg.rank_clusters`.
    is_tied : bool
        Whether it cannot be told from the strongest.
    """

    n_items: int
    n_labels: int
    win_rate: MeanEstimate | None
    strength: ParameterInterval
    rank: int
    is_tied: bool


@readable
@dataclass(frozen=True, eq=False)
class SystemEstimates(Drawn):
    """Systems from the strongest to the weakest.

    Attributes
    ----------
    systems : dict of name to SystemEstimate
    tie_parameter : ParameterInterval
        Davidson's nu. Two systems of one strength tie with probability ``nu / (2 + nu)``. The
        interval is that of the share of ties, brought to this scale.
    pvalues : (S, S) array
        Of two systems having one strength, two-sided, by the test that intervals of strengths are,
        and corrected for the number of pairs (Holm), in the order of `systems`.
    covariance : (S, S) array
        Of the strengths, in the order of `systems`.
    weight : float
        Weight of the judge's probabilities in the strengths, from 0 (labels alone) to 1.
    baseline : object
        Name of the system with strength 0; None where strengths sum to 0.
    n_items, n_labels, n_groups : int
        All items; those with a label; their groups.
    level : float
        Of each interval by itself. Of ranks, 1 less it is the level of significance.
    remarks : tuple of str
        What a reader has to know before using the numbers.
    population : "new" or "finite"
        Whether intervals are for new items, or of these.
    """

    systems: dict[Any, SystemEstimate]
    tie_parameter: ParameterInterval
    pvalues: NDArray[np.float64]
    covariance: NDArray[np.float64]
    weight: float
    baseline: Any
    n_items: int
    n_labels: int
    n_groups: int
    level: float
    remarks: tuple[str, ...]
    population: Population = "new"

    def __str__(self) -> str:
        lines = [
            f"{system.rank} {name}: strength {system.strength}"
            + ("" if system.win_rate is None else f", win rate {system.win_rate}")
            for name, system in self.systems.items()
        ]
        lines.append(f"tie parameter {self.tie_parameter}")
        return "\n".join([*lines, *(f"remark: {text}" for text in self.remarks)])


def estimate_systems(
    counts: ArrayLike,
    labels: ArrayLike,
    system_a: ArrayLike,
    system_b: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    baseline: Any = None,
    population: Population = "new",
    units: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    model: Predictor | None = None,
    prior: Prior | Literal["weak"] = "weak",
    level: float = 0.95,
) -> SystemEstimates:
    """Rank systems whose responses were compared, from a few labels and a judge's votes of all.

    Parameters
    ----------
    counts, labels, groups, probabilities, population, units, strata, model, prior
        Arrays as `btdagg.estimate` takes them.
    system_a, system_b : (N,) arrays
        Names of the systems whose responses are A and B of each item.
    baseline : object, optional
        Name of a system: win rates are against it, and its strength is 0.
    level : float
        Of the intervals.

    Raises
    ------
    InputError
        As `btdagg.estimate` does, and if an item compares a system with itself, the baseline is no
        system, systems are not connected by comparisons, or a system has no finite strength because
        it won or lost everything.

    Notes
    -----
    A win rate is the prediction-powered mean of `btdagg.estimate` over the items of a system, each
    turned so that the system is A. Of systems with other opponents they cannot be compared, and
    strengths can: those of the Davidson model, in which the first of two systems wins, ties or
    loses in proportion to ``exp(d)``, ``nu`` and ``exp(-d)``, d being half the difference of their
    strengths. They are fitted by maximum likelihood to numbers of wins and ties that the labels
    correct; see `btdagg.estimates.strengths.corrected_strengths`. Without any ties nu is 0, and
    this is the model of Bradley and Terry. The covariance is the sandwich by groups, which holds
    where the model is wrong; quantiles are Student's t with one degree of freedom less than there
    are labelled groups. Calibrations are cross-fitted by the folds of ``estimate(seed=0)``.

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
    """
    level = as_level(level)
    if isinstance(labels, Labels):
        raise InputError(
            "labels are a table, expected an array with a label or NaN for every row of counts",
            argument="labels",
        )
    columns = {"system_a": system_a, "system_b": system_b, "groups": groups}
    columns |= {"units": units, "strata": strata}
    same_index(counts=counts, labels=labels, probabilities=probabilities, **columns)
    names, a, b = _systems_of(system_a, system_b, len(labels))  # type: ignore[arg-type]
    if baseline is not None and baseline not in names:
        expected = f"one of the systems {listed(names)}"
        raise InputError(argument="baseline", came=baseline, expected=expected)
    reference = None if baseline is None else names.index(baseline)
    comparisons = Comparisons.of(a, b, names)
    how: Any = {"groups": groups, "probabilities": probabilities, "model": model, "prior": prior}
    how |= {"population": population, "units": units, "strata": strata}
    items = PredictedItems.of(counts, labels, comparisons.pair, sign=comparisons.sign, **how)
    ties = items.domain()["tie"]
    fitted = corrected_strengths(items, ties.sample, comparisons).relative_to(reference)
    strengths, degrees_of_freedom = fitted.strengths, ties.sample.degrees_of_freedom
    intervals = fitted.intervals(level, degrees_of_freedom)
    pvalues = holm(fitted.pvalues(degrees_of_freedom))
    ranks = rank_clusters(-strengths, pvalues, 1 - level)
    tied = statistically_tied(-strengths, pvalues, 1 - level)
    is_labelled = np.zeros(len(a), dtype=np.bool_)
    is_labelled[items.labelled] = True
    systems = {}
    order = np.argsort(-strengths, kind="stable")
    for system in order.tolist():
        mine = (a == system) | (b == system)
        rate = None
        if system != reference:
            against = mine if reference is None else mine & ((a == reference) | (b == reference))
            of_system = items.turned(np.flatnonzero(against), b == system).domain()
            rate = of_system["win rate"].estimate(level)
        systems[names[system]] = SystemEstimate(
            int(mine.sum()),
            int((mine & is_labelled).sum()),
            rate,
            intervals[system],
            int(ranks[system]),
            bool(tied[system]),
        )
    return SystemEstimates(
        systems,
        fitted.tie_parameter(ties.estimate(level), comparisons),
        pvalues[np.ix_(order, order)],
        fitted.covariance[np.ix_(order, order)],
        fitted.weight,
        baseline,
        ties.n_items,
        ties.n_labels,
        ties.sample.n_groups,
        level,
        (
            *items.remarks,
            *_remarks(systems, fitted, uses_judge=ties.mean is not ties.alone),
            *_of_other_population(items, comparisons, reference, level),
        ),
        population,
    )


def _of_other_population(
    items: PredictedItems, comparisons: Comparisons, reference: int | None, level: float
) -> list[str]:
    """Say what the strengths and their intervals are for the other population."""
    if (other := items.other) is None:
        return []
    sample = other.sample()
    fitted = corrected_strengths(other, sample, comparisons).relative_to(reference)
    intervals = fitted.intervals(level, sample.degrees_of_freedom)
    named = [f"{name} {own}" for name, own in zip(comparisons.names, intervals, strict=True)]
    more = ", ..." if len(named) > _MOST_NAMED else ""
    return [f"strengths of {other.of_population}: {', '.join(named[:_MOST_NAMED])}{more}"]


def _systems_of(
    system_a: ArrayLike, system_b: ArrayLike, n_items: int
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return names of all systems in order, and the numbers of the two of each item."""
    both: list[Any] = []
    for argument, values in (("system_a", system_a), ("system_b", system_b)):
        as_groups(values, "counts", n_items, argument)  # there is one for every item
        both += as_names(values, argument).tolist()
    objects = np.array(both, dtype=object)
    numbers = as_groups(objects, "both", len(both), "system_a and system_b")
    a, b = numbers.reshape(2, -1)
    if (a == b).any():
        row = int(np.argmax(a == b))
        expected = "another system than system_a"
        raise InputError(argument="system_b", row=row, came=both[row], expected=expected)
    return sorted(set(both)), a, b


def _remarks(
    systems: dict[Any, SystemEstimate], fitted: Standings, *, uses_judge: bool
) -> list[str]:
    """Return what a reader has to know before using the numbers."""
    remarks = []
    bare = [name for name, system in systems.items() if system.n_labels < 2]
    if bare:
        remarks.append(
            f"fewer than 2 labels of {listed(bare)}: the strength rests on the judge, whose bias "
            "is seen on other systems alone"
        )
    rates = {name: system.win_rate for name, system in systems.items()}
    unknown = [name for name, rate in rates.items() if rate and np.isnan(rate.standard_error)]
    if unknown:
        remarks.append(
            f"no interval of the win rate of {listed(unknown)}: it needs labels of two groups"
        )
    if not fitted.has_ties:
        remarks.append("there are no ties: strengths are of the Bradley-Terry model")
    if not uses_judge:
        remarks.append("too few items are without a label: the judge adds nothing")
    return remarks
