"""How people, votes and the judge changed between two periods."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect
from btdagg._util.extras import as_frame
from btdagg._util.validation import as_groups, as_number, finite_counts
from btdagg._util.wording import pvalue
from btdagg.inference.cross_fit import N_FOLDS
from btdagg.inference.estimate import Estimate, MeanEstimate
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.population import PredictedItems
from btdagg.inference.quantities import main_of, quantities_of, require_same_points, vote_shares
from btdagg.inference.sample import LabelledSample, Population
from btdagg.model.intervals import as_level
from btdagg.questions.estimate import Difference
from btdagg.remarks import Remark
from btdagg.result import Entry, Interval, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.items import SIMPLE, Items

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

    from btdagg._util.lazy import pl

_FEWEST = 10  # groups of anchors, for an interval


@dataclass(frozen=True)
class Change(Result):
    """The change from one period to the next: of people, of votes, and of the judge.

    Votes and people also move apart where the judge is the same: if it is more or less decisive
    than people and responses become better, or if the mix of items changes. Only items judged in
    both periods show whether the judge changed.

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
    apart : Difference or None
        By how much votes and people moved apart: the change of votes less people's.
    judge : Difference or None
        Change of the mean vote on the items judged in both periods, whose responses are the same;
        None for fewer than ten groups of them.
    n_anchors : int
        Items judged in both periods.
    bounds : tuple of two float, or None
        Ends of people's change if votes and people moved apart by at most `most_of_judge`.
    most_of_judge : float or None
    level : float
    n_items, n_labels : tuple of int
        Means of both periods.
    means : dict of str to tuple of MeanEstimate and float
        By period what people say of all items, and the mean vote; without labels nothing.
    ends : tuple of two float
        The least and the greatest value of the quantity.
    remarks : tuple of Remark
    """

    quantity: str
    names: tuple[str, str]
    votes: float
    level: float
    n_items: tuple[int, int]
    n_labels: tuple[int, int]
    people: Difference | None = None
    apart: Difference | None = None
    judge: Difference | None = None
    n_anchors: int = 0
    bounds: tuple[float, float] | None = None
    most_of_judge: float | None = None
    remarks: tuple[Remark, ...] = ()
    means: dict[str, tuple[MeanEstimate, float]] = field(default_factory=dict)
    ends: tuple[float, float] = (-1.0, 1.0)

    @property
    def who(self) -> str:
        """Significant change: the systems, the judge, both, nothing or cannot tell.

        The systems: people's mean changed, by other responses or another mix of items. The judge:
        its votes on the items judged in both periods changed.
        """
        changed = _is_significant(self.people), _is_significant(self.judge)
        if any(changed):
            return {(True, True): "both", (True, False): "the systems"}.get(changed, "the judge")
        is_open = self.people is None or _is_significant(self.apart)
        return "cannot tell" if is_open else "nothing"

    def sentence(self) -> str:
        """Return how people's mean changed, how far votes moved from it, and the judge."""
        level, of_votes = f"{100 * self.level:.4g}% interval ", f"by votes alone {self.votes:+z.3f}"
        old, new = self.names
        if self.people is None:
            texts = [
                f"cannot tell how {self.quantity} changed from {old} to {new}: no response from "
                f"{new} has a label ({of_votes})"
            ]
            if self.bounds is not None:
                low, high = self.bounds
                texts.append(
                    f"if votes and people moved apart by at most {self.most_of_judge:g}, it "
                    f"changed by {low:+z.3f} to {high:+z.3f}"
                )
        else:
            seen = (
                "people see a change" if _is_significant(self.people) else "no significant change"
            )
            texts = [
                f"{seen}: from {old} to {new} the {self.quantity} changed by "
                f"{_shown(self.people, level)} as people judge, {of_votes}"
            ]
        is_apart, is_judge = _is_significant(self.apart), _is_significant(self.judge)
        if self.apart is not None:
            moved = "moved apart" if is_apart else "did not move significantly apart"
            texts.append(f"votes and people {moved}: {_shown(self.apart)}")
        if self.judge is not None:
            verdict = "the judge changed" if is_judge else "no significant change of the judge"
            texts.append(
                f"{verdict}: on {self.n_anchors:,} items judged in both periods votes changed by "
                f"{_shown(self.judge)}"
            )
        if is_apart and not is_judge:
            texts.append(
                "a judge that changed can do that, a judge that is more or less decisive than "
                "people where responses changed, or another mix of items"
            )
            if self.judge is None:
                texts.append("items judged in both periods would tell whether it is the judge")
        return "; ".join(texts)

    def values(self) -> dict[str, Any]:
        """Return all numbers, and whose change is significant."""
        means = {k: people.as_dict() | {"votes": v} for k, (people, v) in self.means.items()}
        return super().values() | {"means": means, "who": self.who}

    def table(self) -> ResultTable:
        """Return the change of people, of votes, and of the judge."""
        parts = {
            "people": self.people,
            "votes": None,
            "votes less people": self.apart,
            f"the judge, on {self.n_anchors:,} items judged in both": self.judge,
        }
        rows = []
        for name, change in parts.items():
            if name == "votes":
                votes = {"change": Entry(f"{self.votes:+z.3f}"), "p": Entry("")}
                rows.append(Row((name,), votes, [{"value": self.votes}]))
            elif change is not None:
                entry = Entry(_shown(change), _is_significant(change))
                cells = {"change": entry, "p": Entry(pvalue(change.pvalue))}
                rows.append(Row((name,), cells, [change.as_dict()]))
        note = (
            f"Change of {self.quantity} from {self.names[0]} to {self.names[1]}, with "
            f"{100 * self.level:.3g}% intervals; bold: the interval excludes 0. Votes less people: "
            "by how much they moved apart, which a judge that is the same can do too, if it is "
            "more or less decisive than people or the mix of items changed."
        )
        return ResultTable.of_rows("change", "What changed", note, ("of",), rows)

    def figure(self) -> IntervalFigure | None:
        """Return what people and the judge say of each period; None without labels."""
        if not self.means:
            return None
        points = {
            name: {
                "people": Interval(people.value, people.low, people.high),
                "votes": Interval(vote, vote, vote),
            }
            for name, (people, vote) in self.means.items()
        }
        is_net = self.ends[0] < 0
        return IntervalFigure(
            "change",
            "Before and after the change",
            f"People, with {100 * self.level:.3g}% intervals, and votes alone, by period.",
            points,
            ("people", "votes"),
            self.quantity,
            ("B is better", "A is better") if is_net else None,
            1,
            None if is_net else self.ends,
        )

    def to_frame(self) -> pl.DataFrame:
        """Return a row each for people, for votes less people, and for the judge."""
        parts = {"people": self.people, "apart": self.apart, "judge": self.judge}
        rows = [{"of": name, **part.as_dict()} for name, part in parts.items() if part is not None]
        return as_frame(rows)


def change(
    before: Items,
    after: Items,
    *,
    names: tuple[str, str] = ("before", "after"),
    most_of_judge: float | None = None,
    population: Population = "new",
    level: float = 0.95,
) -> Change:
    """Say how people's mean, votes and the judge changed between two periods.

    Labels of both periods give people's change, and how far votes moved from it. Items judged in
    both periods, chosen by chance, show whether the judge changed.

    Parameters
    ----------
    before, after : Items
        All items of each period with the votes of its judge, and labels of some, drawn by chance;
        `Votes.items(labels)` makes them. Items in both are judged twice. If they are at most half
        of the second period, they count in the means of the first period alone.
    names : two str
        Names of the periods.
    most_of_judge : float, optional
        By how much votes and people may have moved apart, in units of the quantity; gives bounds
        without labels of the second period. It is not 0 where the judge is the same.
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
    judge that did not see the item's group; how far votes moved from it is that of two such means
    of vote less label. Both allow for shared groups and labels. Each mean has a weight of its own,
    so that the two add up to the change of votes only roughly. The judge's interval is of the mean
    difference of an item's two mean votes, by group.
    """
    level = as_level(level)
    expect(not isinstance(names, str) and len(set(names)) == 2, "names", names, "two names")
    old_name, new_name = map(str, names)
    for name, items in (("before", before), ("after", after)):
        expected = "items, btdagg.read_votes(frame).items(labels)"
        expect(isinstance(items, Items), name, type(items).__name__, expected)
        require_same_points(items, "to tell the judge's part")
        expect(not items.judges, name, "a panel", "votes of one judge")
        expect(finite_counts(items.pooled).any(), name, "items without a vote", "some with votes")
    expect(before.is_labelled.any(), "before", "items without labels", "some with a label")
    if not after.is_labelled.any():
        after = replace(after, labels=None, label_scale=before.label_scale)
    before, after = (items[items.pooled.sum(axis=1) > 0] for items in (before, after))
    numbers = [np.arange(len(items)) for items in (before, after)]
    if not before.origin.source and all(map(np.array_equal, numbers, (before.ids, after.ids))):
        after = replace(after, ids=after.ids + len(before))  # numbers of rows name nothing
    judge, is_again, remarks = _judged_again(before, after, level)
    n_anchors = int(is_again.sum())
    if 0 < 2 * n_anchors <= len(after):
        after = after[~is_again]
    n_items = len(before), len(after)
    n_labels = int(before.is_labelled.sum()), int(after.is_labelled.sum())
    expect(n_labels[0], "before", "items without labels", "some with a label")
    if not n_labels[1]:  # how the others were drawn does not matter
        before, after = (replace(items, sampling=SIMPLE) for items in (before, after))
    elif (before.sampling.probabilities is None) != (after.sampling.probabilities is None):
        got = "those of one period alone"
        expected = "a column probability in the labels of both periods, or of neither"
        raise InputError(argument="probabilities", got=got, expected=expected)
    joined = after.than(before, new_name, old_name)
    joined = joined.with_remarks((*joined.origin.remarks, *remarks))
    is_after = np.arange(len(joined)) < len(after)
    main, votes, of_items = main_of(joined.label_scale), vote_shares(joined), _values(joined)
    of_votes = [float(of_items[period].mean()) for period in (~is_after, is_after)]
    names = old_name, new_name
    moved = of_votes[1] - of_votes[0]
    result = Change(main, names, moved, level, n_items, n_labels, judge=judge, n_anchors=n_anchors)
    if not n_labels[1]:
        result = replace(result, remarks=joined.origin.remarks)
        if most_of_judge is None:
            return result
        most_of_judge = as_number(most_of_judge, "most_of_judge", least=0)
        groups = as_groups(joined.group, "after", len(joined))
        after_mean, before_mean = (
            _mean_vote(of_items[period], groups[period]) for period in (is_after, ~is_after)
        )
        _, low, high = (after_mean - before_mean).interval(level)
        bounds = low - most_of_judge, high + most_of_judge
        return replace(result, bounds=bounds, most_of_judge=most_of_judge)
    expect(
        most_of_judge is None, "most_of_judge", most_of_judge, "None if both periods have labels"
    )
    predicted = _predicted(joined, (after, before), is_after, population)
    less = replace(
        predicted,
        outcomes=votes[predicted.labelled] - predicted.outcomes,
        tables=votes[None] - predicted.tables,
    )
    people, gaps = (
        [predictions.domain(period)[main] for period in (~is_after, is_after)]
        for predictions in (predicted, less)
    )
    ends = people[0].ends
    span = ends[1] - ends[0]
    gaps = [mean.within((-span, span)) for mean in gaps]
    estimates = (MeanEstimate.of(mean, level) for mean in people)
    return replace(
        result,
        people=Difference.of(people[1] - people[0], level),
        apart=Difference.of(gaps[1] - gaps[0], level),
        means=dict(zip(names, zip(estimates, of_votes, strict=True), strict=True)),
        ends=ends,
        remarks=(*joined.origin.remarks, *predicted.remarks),
    )


def _predicted(
    joined: Items, periods: tuple[Items, Items], is_after: Any, population: Population
) -> PredictedItems:
    labelled = np.flatnonzero(joined.is_labelled)
    tables = np.empty((N_FOLDS, *joined.labels.shape))
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


def _judged_again(
    before: Items, after: Items, level: float
) -> tuple[Difference | None, NDArray[np.bool_], list[Remark]]:
    """Change of the votes on the items in both periods; which of the second these are; remarks."""
    rows = {str(name): row for row, name in enumerate(before.ids)}
    first = np.array([rows.get(str(name), -1) for name in after.ids], dtype=np.int64)
    is_again = first >= 0
    n = int(is_again.sum())
    if not n:
        return None, is_again, []
    about = [remarks.shared_items(n, count_in_both=2 * n > len(after))]
    groups = np.arange(n)
    if before.group is not None:
        groups = as_groups(before.group, "before", len(before))[first[is_again]]
    sample = LabelledSample.of(np.ones(n), groups, n, "new", None)
    if sample.n_groups < _FEWEST:
        about.append(remarks.few_shared_groups(sample.n_groups, _FEWEST))
        return None, is_again, about
    of_items = _values(before)
    points = quantities_of(before.label_scale)[main_of(before.label_scale)]
    span = float(max(points) - min(points))
    moved = _values(after)[is_again] - of_items[first[is_again]]
    mean = labelled_mean(moved, sample, (-span, span))
    return Difference.of(mean, level), is_again, about


def _values(items: Items) -> Floats:
    points = quantities_of(items.label_scale)[main_of(items.label_scale)]
    return np.asarray(vote_shares(items) @ np.array(points))


def _is_significant(part: Difference | None) -> bool:
    return part is not None and (part.low > 0 or part.high < 0)


def _shown(part: Difference, interval: str = "") -> str:
    return f"{part.value:+z.3f} ({interval}{part.low:+z.3f} to {part.high:+z.3f})"


def _mean_vote(values: Floats, groups: NDArray[np.int64]) -> Estimate:
    sample = LabelledSample.of(np.ones(len(values)), groups, len(values), "new", None)
    return labelled_mean(values, sample, (-np.inf, np.inf))
