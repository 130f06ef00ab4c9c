"""Tell a change of the systems from one of the judge, between two periods and judges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.extras import as_frame
from btdagg._util.readable import Readable
from btdagg._util.validation import as_groups, as_number, finite_counts
from btdagg.estimates.mean import Population, differences_of
from btdagg.estimates.population import (
    N_FOLDS,
    PredictedItems,
    main_of,
    quantities_of,
    require_same_points,
    vote_shares,
)
from btdagg.estimates.prediction_powered import Difference
from btdagg.evaluation.significance import t_quantile
from btdagg.model.intervals import as_level
from btdagg.votes.items import Items

if TYPE_CHECKING:
    from btdagg._util.lazy import pl
    from btdagg.estimates.mean import DomainMean, Floats, MeanEstimate


@dataclass(frozen=True)
class Change(Readable):
    """The change from one period to the next, on people's scale, and the judges' part in votes.

    Attributes
    ----------
    quantity : str
        ``"net win rate"``, ``"pass rate"`` or ``"mean grade"``.
    names : tuple of str
        Names of the periods.
    votes : float
        Change of the mean vote of all items: what one sees without labels.
    people : Difference or None
        Change of what people say; None without labels of the second period.
    judge : Difference or None
        The judges' share of the change in votes: their votes' change less people's.
    bounds : tuple of two float, or None
        Ends of people's change if the judges' part is at most `most_of_judge`, either way.
    most_of_judge : float or None
    level : float
    n_items, n_labels : tuple of int
        Means of both periods.
    means : dict of str to tuple of MeanEstimate and float
        By period what people say of all items, and the mean vote; without labels nothing.
    ends : tuple of two float
        The least and the greatest value of the quantity.
    remarks : tuple of str
    """

    quantity: str
    names: tuple[str, str]
    votes: float
    level: float
    n_items: tuple[int, int]
    n_labels: tuple[int, int]
    people: Difference | None = None
    judge: Difference | None = None
    bounds: tuple[float, float] | None = None
    most_of_judge: float | None = None
    remarks: tuple[str, ...] = ()
    means: dict[str, tuple[MeanEstimate, float]] = field(default_factory=dict)
    ends: tuple[float, float] = (-1.0, 1.0)

    @property
    def who(self) -> str:
        """Significant change: the systems, the judge, both, nothing or cannot tell."""
        if self.people is None or self.judge is None:
            return "cannot tell"
        changed = [part.low > 0 or part.high < 0 for part in (self.people, self.judge)]
        return {(True, True): "both", (True, False): "the systems", (False, True): "the judge"}.get(
            (changed[0], changed[1]), "nothing"
        )

    @property
    def answer(self) -> str:
        """How much the systems changed, and how much of the change of votes is the judge's."""
        of_votes = f"by votes alone {self.votes:+z.3f}"
        if self.people is None or self.judge is None:
            text = (
                f"cannot tell how {self.quantity} changed from {self.names[0]} to {self.names[1]}"
            )
            text += f": no response from {self.names[1]} has a label ({of_votes})"
            if self.bounds is not None:
                low, high = self.bounds
                text += (
                    f"; if the judge's part is at most {self.most_of_judge:g}, it changed by "
                    f"{low:+z.3f} to {high:+z.3f}"
                )
            return text
        level = f"{100 * self.level:.4g}% interval "
        people, judge = (
            f"{part.value:+z.3f} ({of}{part.low:+z.3f} to {part.high:+z.3f})"
            for part, of in ((self.people, level), (self.judge, ""))
        )
        verdict = {
            "both": "the systems changed, and so did the judge",
            "the systems": "the systems changed; no significant change of the judge",
            "the judge": "the judge changed; no significant change of the systems",
            "nothing": "no significant change of the systems or of the judge",
        }[self.who]
        return (
            f"{verdict}: from {self.names[0]} to {self.names[1]} the {self.quantity} changed by "
            f"{people} as people judge, {of_votes}; the judge's change adds {judge} to the votes"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and the sentence as plain values."""
        parts = {"people": self.people, "judge": self.judge}
        of_parts = {name: None if part is None else part.as_dict() for name, part in parts.items()}
        means = {k: people.as_dict() | {"votes": v} for k, (people, v) in self.means.items()}
        values = vars(self) | of_parts | {"means": means, "who": self.who, "sentence": self.answer}
        return {k: [*v] if isinstance(v, tuple) else v for k, v in values.items()}

    def to_frame(self) -> pl.DataFrame:
        """Return a row for people and one for the judge."""
        parts = {"people": self.people, "judge": self.judge}
        rows = [{"of": name, **part.as_dict()} for name, part in parts.items() if part is not None]
        return as_frame(rows)

    def __str__(self) -> str:
        return "\n".join([self.answer, *(f"remark: {text}" for text in self.remarks)])


def change(
    before: Items,
    after: Items,
    *,
    names: tuple[str, str] = ("before", "after"),
    most_of_judge: float | None = None,
    population: Population = "new",
    level: float = 0.95,
) -> Change:
    """Say what changed between two periods, each with a judge of its own: systems, or the judge.

    Labels of both periods tell the two apart. Without labels of the second, votes alone cannot: a
    judge may like the new responses more, or less, than people do.

    Parameters
    ----------
    before, after : Items
        All items of each period with the votes of its judge, and labels of some, drawn by chance;
        `Votes.items(labels)` makes them. An item may be in both, judged by each.
    names : two str
        Names of the periods.
    most_of_judge : float, optional
        The largest part of the judges in the change of votes, in units of the quantity; gives
        bounds without labels of the second period.
    population : "new" or "finite"
        As in `btdagg.estimate`.
    level : float
        Confidence level of each interval by itself.

    Raises
    ------
    InputError
        If scales differ, votes and labels are on two scales, or labels of a period are of fewer
        than ten groups.

    Notes
    -----
    People's change is the difference of two prediction-powered means, by models of each period's
    judge that did not see the item's group; the judges' part that of two such means of vote less
    label. Both allow for shared groups and labels. Each mean has a weight of its own, so that the
    two parts add up to the change of votes only roughly.
    """
    level = as_level(level)
    expect(not isinstance(names, str) and len(set(names)) == 2, "names", names, "two names")
    old_name, new_name = map(str, names)
    for name, items in (("before", before), ("after", after)):
        expect(isinstance(items, Items), name, type(items).__name__, "Items, as Votes.items makes")
        if items.shares is None and name == "before":
            raise InputError(
                argument=name, got="items without labels", expected="some with a label"
            )
        require_same_points(items, "to tell the judge's part")
        expect(not items.judges, name, "a panel", "votes of one judge")
        expect(finite_counts(items.pooled).any(), name, "items without a vote", "some with votes")
    if after.shares is None:
        after = replace(after, labels=np.full(len(after), np.nan), label_scale=before.label_scale)
    before, after = (items[items.pooled.sum(axis=1) > 0] for items in (before, after))
    n_items = len(before), len(after)
    n_labels = int(before.is_labelled.sum()), int(after.is_labelled.sum())
    expect(n_labels[0], "before", "items without labels", "some with a label")
    if not n_labels[1]:  # how the others were drawn does not matter
        plain: Any = dict.fromkeys(("probabilities", "strata", "units"))
        before, after = (replace(items, **plain) for items in (before, after))
    elif (before.probabilities is None) != (after.probabilities is None):
        got = "those of one period alone"
        expected = "a column probability in the labels of both periods, or of neither"
        raise InputError(argument="probabilities", got=got, expected=expected)
    numbers = [np.arange(len(items)) for items in (before, after)]
    if before.keys is None and all(map(np.array_equal, numbers, (before.ids, after.ids))):
        after = replace(after, ids=after.ids + len(before))  # numbers of rows name nothing
    both_have = len({*map(str, before.ids)} & {*map(str, after.ids)})
    joined = after.than(before, new_name, old_name)
    if both_have:
        text = f"{both_have:,} items are in both periods; their labels count in both"
        joined = replace(joined, remarks=(*joined.remarks, text))
    is_after = np.arange(len(joined)) < len(after)
    main, votes = main_of(joined.label_scale), vote_shares(joined)
    of_items = votes @ np.array(quantities_of(joined.label_scale)[main])
    of_votes = [float(of_items[period].mean()) for period in (~is_after, is_after)]
    names = old_name, new_name
    result = Change(main, names, of_votes[1] - of_votes[0], level, n_items, n_labels)
    if not n_labels[1]:
        result = replace(result, remarks=joined.remarks)
        if most_of_judge is None:
            return result
        most_of_judge = as_number(most_of_judge, "most_of_judge", least=0)
        groups = as_groups(joined.groups, "after", len(joined))
        half = _half_width(of_items, is_after, groups, level) + most_of_judge
        return replace(
            result, bounds=(result.votes - half, result.votes + half), most_of_judge=most_of_judge
        )
    expect(
        most_of_judge is None, "most_of_judge", most_of_judge, "None if both periods have labels"
    )
    predicted = _predicted(joined, (after, before), is_after, population)
    less = replace(
        predicted,
        outcomes=votes[predicted.labelled] - predicted.outcomes,
        tables=votes[None] - predicted.tables,
    )
    people, judge = (
        [predictions.domain(period)[main] for period in (~is_after, is_after)]
        for predictions in (predicted, less)
    )
    ends = people[0].ends
    span = ends[1] - ends[0]
    judge = [replace(mean, ends=(-span, span), raters_worth=None) for mean in judge]
    estimates = (mean.estimate(level) for mean in people)
    return replace(
        result,
        people=_difference(people, level),
        judge=_difference(judge, level),
        means=dict(zip(names, zip(estimates, of_votes, strict=True), strict=True)),
        ends=ends,
        remarks=(*joined.remarks, *predicted.remarks),
    )


def _predicted(
    joined: Items, periods: tuple[Items, Items], is_after: Any, population: Population
) -> PredictedItems:
    labelled = np.flatnonzero(joined.is_labelled)
    tables = np.empty((N_FOLDS, *joined.shares.shape))
    fold = np.empty(len(labelled), dtype=np.int64)
    for name, items, rows in zip(("after", "before"), periods, (is_after, ~is_after), strict=True):
        period = PredictedItems.of(items, population=population)
        if len(period.tables) < N_FOLDS:
            n_groups = period.sample().n_groups
            expected = f"expected at least {N_FOLDS} to fit a model of its judge"
            raise InputError(f"{name} has labels of {n_groups} groups, {expected}", argument=name)
        tables[:, rows] = period.tables[:, period.place]
        fold[rows[labelled]] = period.fold
    return PredictedItems.of(joined, population=population, predictions=(tables, fold))


def _difference(periods: list[DomainMean], level: float) -> Difference:
    parts = differences_of(np.array([1]), np.array([0]), periods, level)
    return Difference(*(float(part[0]) for part in parts))


def _half_width(values: Floats, is_after: Any, groups: Any, level: float) -> float:
    means = [values[period].mean() for period in (is_after, ~is_after)]
    away = np.where(is_after, values - means[0], means[1] - values)
    of_groups = np.bincount(groups, away / np.where(is_after, is_after.sum(), (~is_after).sum()))
    n = len(of_groups)
    return t_quantile(level, n - 1) * float(np.sqrt((of_groups**2).sum() * n / (n - 1)))
