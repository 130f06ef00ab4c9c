"""Shares and win rates over all items, from a few labels and the votes of a judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.folds import numbered
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_names,
    as_number,
    as_numbers,
    as_outcomes,
    same_index,
    same_length,
)
from btdagg.estimates.population import Domain, Population
from btdagg.estimates.proxy import DistinctCounts, Predictor, as_any_counts, cross_fitted, fixed
from btdagg.estimates.quantities import QUANTITIES, MeanEstimate, ends_of
from btdagg.model.intervals import as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.estimates.differences import Difference
    from btdagg.estimates.items import AllItems
    from btdagg.model.prior import Prior


def population_of(
    counts: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None,
    probabilities: ArrayLike | None,
    model: Predictor | None,
    prior: Prior | Literal["weak"],
    seed: int,
    *told: NDArray[Any],
    sign: NDArray[np.int8] | None = None,
) -> Population:
    """Check what `estimate` takes, and return all items with the predictions of models.

    `told`, (N,) arrays, is what else tells items apart, such as their systems, and `sign` has -1
    for items to be turned so that all have the same side as A.
    """
    seed = as_integer(seed, "seed", 0)
    array, outcomes = as_any_counts(counts), as_outcomes(labels)
    same_length("labels", len(outcomes), "counts", len(array))
    group = None if groups is None else as_groups(groups, "counts", len(outcomes))
    labelled = np.flatnonzero(~np.isnan(outcomes[:, 0]))
    n_groups = len(np.unique(labelled if group is None else group[labelled]))
    if n_groups < 2:
        what = "label" if group is None else "group with labels"
        raise InputError(
            f"labels has {n_groups} {what}{'' if n_groups == 1 else 's'}, expected at least 2"
        )
    weights = None
    if probabilities is not None:
        inverse = _inverse(probabilities, outcomes)
        told, weights = (*told, inverse), inverse[labelled]
    items, known = DistinctCounts.of(array), outcomes[labelled]
    if model is None:
        own = None if group is None else group[labelled]
        numbers = numbered(own, [values[labelled] for values in told], len(labelled))
        own_sign = None if sign is None else sign[labelled]
        predictions = cross_fitted(items, labelled, known, numbers, prior, seed, own_sign)
    else:
        predictions = fixed(model, items.rows, len(labelled))
    return Population(items, labelled, known, group, weights, predictions, model is not None)


@readable
@dataclass(frozen=True, eq=False)
class Estimates(Drawn):
    """Estimates over all items, and for each value of a column.

    Attributes
    ----------
    estimates : dict of str to MeanEstimate
        Of ``"A"``, ``"tie"``, ``"B"`` (shares of labels), ``"net win rate"`` (A minus B) and
        ``"win rate"`` (ties as half).
    by : dict of value to dict of str to MeanEstimate
        The same of the items with each value of `by`.
    n_items, n_labels, n_groups : int
        All items; those with a label; their groups.
    level : float
        Of the intervals.
    remarks : tuple of str
        What a reader has to know before using the numbers.
    """

    estimates: dict[str, MeanEstimate]
    by: dict[Any, dict[str, MeanEstimate]]
    n_items: int
    n_labels: int
    n_groups: int
    level: float
    remarks: tuple[str, ...]
    _whole: Domain = field(repr=False)
    _parts: dict[Any, Domain] = field(repr=False)

    @cached_property
    def differences(self) -> dict[tuple[Any, Any], dict[str, Difference]]:
        """Differences of every two values of `by`: the first less the second.

        The intervals hold together for all pairs of values (Bonferroni), and p-values are corrected
        for their number (Holm). Groups with items of both values pair them. Values without two
        labelled groups have none.
        """
        from btdagg.estimates.differences import differences_of

        return differences_of(self._parts, self.level)

    def labels_for(self, width: float, quantity: str = "net win rate") -> int | None:
        """How many labels, the present ones included, would make an interval so wide.

        `None` if labelling every item would not be enough.

        Parameters
        ----------
        width : float
            From the low to the high end.
        quantity : str
            Key of `estimates`.

        Notes
        -----
        The part of the variance that comes from labels falls as one over their number, and the part
        that comes from the items without labels grows as they become fewer. Judges and weights are
        taken to stay as they are.
        """
        return self._whole.labels_for(as_width(width, quantity), quantity, self.level)

    def labels_to_tell(self, bound: float, quantity: str = "net win rate") -> int | None:
        """How many labels would tell on which side of a bound a quantity is.

        They leave the bound outside of the interval, if the estimate stays as it is. `None` if
        labelling every item would not be enough.

        Parameters
        ----------
        bound : float
        quantity : str
            Key of `estimates`.
        """
        number = as_number(bound, "bound")
        return self._whole.labels_to_tell(number, _as_quantity(quantity), self.level)

    def __str__(self) -> str:
        lines = [f"{name} {estimate}" for name, estimate in self.estimates.items()]
        return "\n".join([*lines, *(f"remark: {text}" for text in self.remarks)])


def as_width(width: float, quantity: str) -> float:
    """Check the width of an interval: above 0 and below what the quantity can be."""
    number, ends = as_number(width, "width"), ends_of(_as_quantity(quantity))
    most = ends.greatest - ends.least
    if not 0 < number < most:
        raise InputError(f"width is {number:g}, expected a number above 0 and below {most:g}")
    return number


def estimate(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    by: ArrayLike | None = None,
    model: Predictor | None = None,
    prior: Prior | Literal["weak"] = "weak",
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    """Estimate shares of labels and win rates over all items, most of which have no label.

    The mean of a judge's labels has no valid interval: it is off by the judge's bias, which no
    number of votes shows. Here the labels measure that bias. The interval is for new items of the
    kind, and holds whatever the judge is worth; a good judge makes it narrow.

    Parameters
    ----------
    counts : (N, 3) array of non-negative integers
        Votes of all items in label order: minus, tie, plus; or of several judges,
        (N, judges, 3), who are used as a panel. Or votes, as `btdagg.read_votes` returns them.
    labels : (N,) array of -1, 0, 1, or NaN or None where there is none
        Labels of items that were chosen by chance. Where items have several raters, (N, 3) shares
        of them for B, tie and A, NaN where there is no label. With votes, labels as
        `btdagg.read_labels` returns them; then an item with several raters counts as their mean.
    groups : (N,) array, optional
        What items share, such as their prompt. Variances are between groups.
    probabilities : (N,) array of numbers above 0 and at most 1, optional
        Of each item, the probability that it was chosen to be labelled; without them each item was
        as likely as any other. Those of items without a label are not used and may be NaN. Where
        one item of each of n among G groups was labelled, it is n / G over the size of its group.
    by : (N,) array, optional
        A column, such as the task: also estimate for the items of each of its values. Of votes the
        name of a column.
    model : DavidsonModel, PanelModel or other with `predict_proba`, optional
        A model that was calibrated on other labels. By default models are calibrated on these,
        and each item's probabilities are those of one that did not see its group.
    prior : Prior or "weak"
        Of the calibration; of no meaning with `model` or a panel.
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
    groups (fewer, where groups differ in size). With a fixed `model`, at least 50 labels, no
    `groups` and no `probabilities`, estimates and intervals are those of PPI++ as published, normal
    and symmetric, unless such an interval goes past the ends of what the mean can be. Each share
    has a weight of its own, so that A, tie and B add up to 1 only roughly.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++ (2023); Zrnic and Candès (2024) for cross-fitting; Korn and
    Graubard (1998) for shares of samples of groups.

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [1, 1, 6], [2, 1, 5], [6, 2, 0], [0, 1, 7]] * 9
    >>> labels = [1, 0, -1, 1, None, None, None] * 9
    >>> found = estimate(counts, labels)
    >>> 0 < found.estimates["net win rate"].low < found.estimates["net win rate"].high < 1
    True
    """
    level = as_level(level)
    if hasattr(labels, "unlabelled"):
        items = _of_tables(counts, labels, groups, probabilities, by)
        return estimate_items(items, model=model, prior=prior, level=level, seed=seed)
    same_index(counts=counts, labels=labels, groups=groups, probabilities=probabilities, by=by)
    told: list[NDArray[np.int64]] = []
    if by is not None:
        names, numbers = _values_of(by, len(labels))  # type: ignore[arg-type]
        told.append(numbers)
    population = population_of(counts, labels, groups, probabilities, model, prior, seed, *told)
    whole = population.domain()
    parts: dict[Any, Domain] = {}
    if by is not None:
        parts = {name: population.domain(numbers == number) for number, name in enumerate(names)}
    return Estimates(
        whole.estimates(level),
        {name: part.estimates(level) for name, part in parts.items()},
        whole.n_items,
        whole.n_labels,
        whole.sample.n_groups,
        level,
        _remarks(whole, population),
        whole,
        parts,
    )


def estimate_items(items: AllItems, **options: Any) -> Estimates:
    """Estimate over items of tables; options are those of `estimate` that are no column."""
    from btdagg.estimates.items import with_remarks

    columns: dict[str, Any] = {
        "groups": items.groups,
        "probabilities": items.probabilities,
        "by": items.by,
    }
    return with_remarks(estimate(items.counts, items.outcomes, **columns, **options), items.remarks)


def _of_tables(votes: Any, labels: Any, groups: Any, probabilities: Any, by: Any) -> AllItems:
    """Return the items of tables of votes and labels."""
    from btdagg.estimates.items import all_items
    from btdagg.votes.votes import Votes

    if not isinstance(votes, Votes):
        raise InputError(
            "labels are a table and counts an array: pass what read_votes returned, or an array of "
            "labels with NaN where there is none"
        )
    if groups is not None or probabilities is not None:
        name = "groups" if groups is not None else "probabilities"
        raise InputError(f"{name} is given with tables, which have a column for it")
    if not isinstance(by, str | None):
        raise InputError(f"by is {by!r}, expected the name of a column of the votes")
    return all_items(votes, labels, by=by)


def _remarks(whole: Domain, population: Population) -> tuple[str, ...]:
    """Return what a reader has to know before using the numbers."""
    found = population.remarks(whole)
    still = [name for name, mean in whole.means.items() if mean.variance == 0]
    if still:
        found.append(
            f"all labelled groups have the same mean of {', '.join(still)}: how groups vary is not "
            "seen, and the interval is as if each group were one label"
        )
    if not whole.proxies:
        n = whole.n_items - whole.n_labels
        found.append(
            f"{n or 'no'} items are without a label, too few for the judge to add anything"
        )
    return tuple(found)


def _as_quantity(name: str) -> str:
    if name not in QUANTITIES:
        raise InputError(f"quantity is {name!r}, expected one of {', '.join(QUANTITIES)}")
    return name


def _inverse(probabilities: ArrayLike, outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one over the probability of each item to be labelled."""
    array = as_numbers(probabilities, "probabilities").astype(np.float64)
    if array.ndim != 1:
        raise InputError(f"probabilities has shape {array.shape}, expected ({len(outcomes)},)")
    same_length("probabilities", len(array), "counts", len(outcomes))
    unlabelled = np.isnan(outcomes[:, 0])
    good = ((array > 0) & (array <= 1)) | (np.isnan(array) & unlabelled)
    if not good.all():
        row = int(np.argmin(good))
        has = "could never have a label" if unlabelled[row] else "has a label"
        raise InputError(
            f"probabilities[{row}] is {array[row]:g} and the item {has}, expected a number above "
            "0 and at most 1"
        )
    return np.asarray(1 / array)


def _values_of(by: ArrayLike, n_items: int) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the values of a column, in order, and the number of each item's."""
    values = as_names(by, "by")
    numbers = as_groups(values, "counts", n_items, "by")
    names = np.empty(int(numbers.max()) + 1, dtype=values.dtype)
    names[numbers] = values
    return names.tolist(), numbers
