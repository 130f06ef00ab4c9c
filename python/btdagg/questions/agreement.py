"""How often a judge agrees with itself, and with people; and people with each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.errors import expect
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable, readable
from btdagg._util.validation import same_length
from btdagg._util.wording import fixed, percent
from btdagg.evaluation.parts import grouping, names_of
from btdagg.inference.coefficients import (
    coincidences,
    interval_alpha,
    intraclass_columns,
    intraclass_correlation,
    kappa,
    moments,
    ordinal_alpha,
    other_sides,
    pairs_between,
    pairs_within,
    quadratic_kappa,
    squared_differences,
)
from btdagg.inference.statistics import Statistic, Statistics
from btdagg.methods.majority import MajorityVote
from btdagg.model.intervals import as_level
from btdagg.result import Entry, Interval, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.by_id import as_tables
from btdagg.votes.items import Items
from btdagg.votes.join import require_labels, with_task
from btdagg.votes.labels import labels_of_shares
from btdagg.votes.scale import PAIRS
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.remarks import Remark
    from btdagg.votes.labels import Labels
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

_RELIABLE, _ROUNDING = 0.8, 1e-9
_KEY, _SETTINGS = ("task", "item"), ("template", "temperature")
_PEOPLE = "people_agree"
_SAID = {
    "repeats_agree": "two votes of a judge in one order agree",
    "orders_flip": "the other order turns the winner round",
    "agreement": "its majority vote agrees with people",
    "vote_agreement": "one vote agrees with one person",
}
_SHARES = {
    "repeats_agree": "two votes in one order agree",
    "repeats_flip": "two votes in one order are for different sides",
    "orders_agree": "votes in the two orders agree",
    "orders_flip": "votes in the two orders are for different sides",
    "vote_agreement": "one vote agrees with one person",
    "agreement": "majority vote agrees with people",
    "agreement_without_ties": "it agrees where neither is a tie",
    "true_positive_rate": "people's passes that it passes",
    "true_negative_rate": "people's failures that it fails",
    "people_agree": "two people agree",
}
_NUMBERS = {
    "intraclass_correlation": "intraclass correlation of votes",
    "reliability": "reliability of the mean vote",
    "effective_votes": "independent votes that an item's votes are worth",
    "votes_for_reliability": f"votes of an item for a reliability of {_RELIABLE}",
    "kappa": "Cohen's kappa of majority vote and people",
    "alpha": "Krippendorff's alpha of people",
}


@dataclass(frozen=True, eq=False)
class JudgeAgreement(Readable):
    """Agreement of one judge with itself, and with people.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by, such as the judge.
    n_items : int
        Items with a vote.
    n_votes : float
        Mean number of votes of an item that has several.
    measures : mapping of str to Statistic
        Measures by name, as far as votes and labels tell them; see `agreement`.
    """

    key: tuple[str, ...]
    n_items: int
    n_votes: float
    measures: Mapping[str, Statistic]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        measures = {name: of.as_dict() for name, of in self.measures.items()}
        votes = None if math.isnan(self.n_votes) else self.n_votes
        return {"key": list(self.key), "n_items": self.n_items, "n_votes": votes} | measures


@readable
class RaterDistance(NamedTuple):
    """How far a rater's labels are from those of others on the same items, on the mean."""

    rater: str
    distance: Statistic


@dataclass(frozen=True, eq=False)
class PeopleAgreement(Readable):
    """Agreement of the people who labelled items with each other.

    Attributes
    ----------
    key : tuple of str
        The criterion, or task, where labels have several.
    measures : mapping of str to Statistic
        ``"people_agree"`` and ``"alpha"``.
    raters : tuple of RaterDistance
        Raters by name, the furthest from the others first.
    """

    key: tuple[str, ...]
    measures: Mapping[str, Statistic]
    raters: tuple[RaterDistance, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        measures = {name: of.as_dict() for name, of in self.measures.items()}
        raters = [{"rater": name, **of.as_dict()} for name, of in self.raters]
        return {"key": list(self.key), **measures, "raters": raters}


@dataclass(frozen=True, eq=False)
class Agreements(Result):
    """Agreement of judges with themselves, with people, and of people with each other.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    judges : tuple of JudgeAgreement
    people : tuple of PeopleAgreement
        Of labels that name their raters, where several labelled an item.
    level : float
        Confidence level of each interval by itself.
    remarks : tuple of Remark
    disagreements : polars.DataFrame
        Items on which the majority vote of a judge is not people's label, the worst first: the
        farthest apart, and then those whose votes are farthest from it on the mean.
    """

    by: tuple[str, ...]
    judges: tuple[JudgeAgreement, ...]
    people: tuple[PeopleAgreement, ...]
    level: float
    remarks: tuple[Remark, ...] = ()
    disagreements: Any = field(default=None, repr=False)

    def sentence(self) -> str:
        """Return how often judges agree with themselves and with people, and people with people."""
        parts = [text for name in _SAID if (text := self._said(name))]
        for people in self.people:
            where = f"{' '.join(people.key)}: " if people.key else ""
            parts.append(f"{where}two people agree in {self._share(people.measures[_PEOPLE])}")
        if not parts:
            return "No item has two votes: nothing tells how often a judge repeats its vote"
        return "; ".join(parts)

    def _said(self, name: str) -> str:
        """Say a share of the one judge, or the least and the greatest of several."""
        shares = {who: of[name] for who, of in self._by_judge.items() if name in of}
        words = self._words(_SAID[name])
        if len(shares) < 2:
            return "".join(f"{words} in {self._share(share)}" for share in shares.values())
        order = sorted(shares, key=lambda judge: shares[judge].value)
        ends = (f"{percent(shares[of].value)} ({of})" for of in (order[0], order[-1]))
        return f"{words} in {' to '.join(ends)}"

    def _words(self, words: str) -> str:
        """Leave out orders where votes say none."""
        has_orders = any("orders_agree" in of for of in self._by_judge.values())
        return words if has_orders else words.replace(" in one order", "")

    def _share(self, measure: Statistic) -> str:
        if math.isnan(measure.low):
            return percent(measure.value)
        ends = f"{percent(measure.low)} to {percent(measure.high)}"
        return f"{percent(measure.value)} ({100 * self.level:.3g}% interval {ends})"

    @property
    def _by_judge(self) -> dict[str, Mapping[str, Statistic]]:
        names = names_of([judge.key for judge in self.judges])
        return {n or "all": of.measures for n, of in zip(names, self.judges, strict=True)}

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        return "How often judges agree with themselves and with people"

    def table(self) -> ResultTable:
        """Return a row for each measure of each judge, and of people."""
        parts = [(judge.key or ("all",), judge.measures) for judge in self.judges]
        n_columns = max(len(self.by), 1)
        for people in self.people:
            label = (" ".join((*people.key, "people")), *("" for _ in self.by))
            parts.append((label[:n_columns], people.measures))
        rows = [self._row(key, name, of) for key, of_key in parts for name, of in of_key.items()]
        note = (
            f"Means over items, with {100 * self.level:.3g}% intervals for new items, or groups. "
            "Repeats are votes of an item in the same order, if votes say theirs. Independent "
            "votes: so many would tell as much of the mean of all items."
        )
        columns = (*(self.by or ("votes",)), "measure")
        return ResultTable.of_rows("agreement", "Agreement", note, columns, rows)

    def _row(self, key: tuple[str, ...], name: str, of: Statistic) -> Row:
        write = percent if name in _SHARES else fixed
        if name == "votes_for_reliability":
            write = "{:.0f}".format
        cells: dict[str, str | Entry] = {
            "value": Entry(write(of.value), True),
            "interval": _ends_of(of, write),
            "items": f"{of.n_items:,}",
        }
        record = dict(zip(self.by or ("votes",), key, strict=True))
        words = self._words(_SHARES.get(name) or _NUMBERS[name])
        return Row((*key, words), cells, [{**record, "measure": name, **of.as_dict()}])

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the measures, and raters by how far they are from the others."""
        if not any(people.raters for people in self.people):
            return (self.table(),)
        criteria = ("task",) * len(self.people[0].key)
        rows = [
            Row(
                (*people.key, name),
                {
                    "distance": fixed(of.value),
                    "interval": _ends_of(of, fixed),
                    "items": f"{of.n_items:,}",
                },
                [{**dict(zip(criteria, people.key, strict=True)), "rater": name, **of.as_dict()}],
            )
            for people in self.people
            for name, of in people.raters
        ]
        note = "Mean distance of a rater's labels from those of others on the same items."
        title, labels = "Raters, the furthest from the others first", (*criteria, "rater")
        return self.table(), ResultTable.of_rows("raters", title, note, labels, rows)

    def figure(self) -> IntervalFigure | None:
        """Return the shares of judges, and of people, by measure."""
        parts = self._by_judge
        parts |= {" ".join((*of.key, "people")): of.measures for of in self.people}
        points = {
            self._words(words): {
                who: Interval(*of[name][:3]) if name in of else None for who, of in parts.items()
            }
            for name, words in _SHARES.items()
            if any(name in of for of in parts.values())
        }
        note = f"Shares with {100 * self.level:.3g}% intervals, by judge and of people."
        title, ends = "Agreement by measure", (0.0, 1.0)
        if not points:
            return None
        return IntervalFigure(
            "agreement", title, note, points, [*parts], "percent", None, 100, ends
        )


def _ends_of(of: Statistic, write: Callable[[float], str]) -> str:
    return "" if math.isnan(of.low) else f"{write(of.low)} to {write(of.high)}"


def agreement(
    votes: Any,
    labels: Any = None,
    *,
    scale: Scale | None = None,
    by: Sequence[str] | None = None,
    level: float = 0.95,
) -> Agreements:
    """Say how often a judge agrees with itself, with people, and people with each other.

    Parameters
    ----------
    votes : Votes, data frame, Items or (n, 3) array
        Votes; single ones with `order` tell both orders apart. Counts are repeats in one order.
    labels : Labels, data frame or (n,) array, optional
        On the scale of the votes, or what people say is left out. Groups of items are those of
        labels, with a label or without, or else of votes. With a column `rater`, raters are
        compared with each other.
    scale : Scale, optional
        For arrays and frames of grades.
    by : sequence of str, optional
        Columns that votes are grouped by; by default `judge`, the criterion of grades, and template
        and temperature if there are several.
    level : float
        Confidence level of the intervals.

    Notes
    -----
    Of two votes of an item, on the mean over items: ``repeats_agree`` and ``orders_agree``, the
    share of equal ones in one order and across both; of A and B ``repeats_flip`` and
    ``orders_flip``, of those for different sides. ``intraclass_correlation`` is that of one vote
    (one-way random effects, ICC(1)), ``reliability`` that of the mean of an item's votes (Spearman
    and Brown), and ``effective_votes`` the number of independent votes that would tell as much of
    the mean of all items, ``n / (1 + (n - 1) max(icc, 0))``; orders count as chance. Counts that
    are no whole numbers, such as strengths, have none of these.

    Of labels: ``agreement`` of the majority vote (several raters count by their shares), without
    ties, ``kappa`` (Cohen's; of grades quadratic-weighted), of verdicts ``true_positive_rate`` and
    ``true_negative_rate``; ``vote_agreement`` of one vote with one person, which compares with
    ``people_agree``, that of two people. Intervals are by the jackknife over groups.

    References
    ----------
    Shrout and Fleiss (1979); Cohen (1960, 1968); Krippendorff (2011); Kish (1965).

    Examples
    --------
    >>> votes = {"item": [1, 1, 2, 2, 3, 3], "vote": [1, 1, -1, 0, -1, -1]}
    >>> found = agreement(votes, {"item": [1, 2, 3], "label": ["A", "B", "B"]})
    >>> [round(found.judges[0].measures[name].value, 3) for name in ("repeats_agree", "agreement")]
    [0.667, 0.667]
    """
    level = as_level(level)
    votes, labels = _tables(votes, labels, scale)
    settings = [name for name in _SETTINGS if name in votes.columns and len(votes.values(name)) > 1]
    criteria = [name for name in votes.scale.mode.criteria if name in votes.columns]
    columns = grouping(votes, by, (*criteria, "judge", *settings))
    known = _KnownItems(votes, labels)
    parts = {key: _ItemVotes.of(part, known) for key, part in votes.partition(columns)}
    judges = [_of_judge(key, part, votes.scale, level) for key, part in parts.items()]
    tables = [
        part.disagreements(dict(zip(columns, key, strict=True))) for key, part in parts.items()
    ]
    worst = pl.concat(tables, how="diagonal_relaxed")
    worst = worst.sort("distance", "mean_distance", descending=True)
    voted = pl.concat([part.keys for part in parts.values()])
    people = () if labels is None else tuple(_of_people(labels, voted, known, level))
    return Agreements(columns, tuple(judges), people, level, known.about, worst)


def _tables(votes: Any, labels: Any, scale: Scale | None) -> tuple[Votes, Labels | None]:
    """Return votes and labels as tables, of arrays and items by their row or id."""
    votes, labels = as_tables(votes, labels, scale)
    if isinstance(votes, Votes):
        if labels is not None:
            require_labels(labels)
            votes = with_task(votes, labels)
        return votes, labels
    items = votes if isinstance(votes, Items) else Items(counts=votes, scale=scale or PAIRS)
    shares, label_scale = items.labels, items.label_scale
    if labels is not None:
        shares, label_scale = items.scale.shares(labels), items.scale
        same_length("labels", len(shares), "votes", len(items))
    expect(len(items) > 0, "votes", list[int](), "at least one item")
    n, n_judges = items.counts.shape[:2]
    rows: dict[str, Any] = {"item": np.tile(items.names.astype(str), n_judges)}
    rows |= {"judge": np.repeat(items.judges, n)} if n_judges > 1 else {}
    if items.group is not None:
        rows["group"] = np.tile(items.group, n_judges)
    counts = np.swapaxes(items.counts, 0, 1).reshape(n * n_judges, -1)
    rows |= dict(zip(items.scale.columns, counts.T, strict=True))
    known = np.flatnonzero(~np.isnan(shares[:, 0]))
    if not len(known):
        return read_votes(rows, scale=items.scale), None
    people = labels_of_shares(items.names[known].astype(str), shares[known], label_scale)
    return read_votes(rows, scale=items.scale), people


class _KnownItems:
    """Groups and labels of items, by task and item as text."""

    def __init__(self, votes: Votes, labels: Labels | None) -> None:
        self.about: tuple[Remark, ...] = ()
        self._mode = votes.scale.mode
        self._labels: Items | None = None
        self._groups: list[pl.DataFrame] = []
        tables: list[pl.DataFrame] = []
        if labels is not None:  # rows without a label say groups too
            tables.append(labels.frame.vstack(labels.unlabelled))
            if labels.scale.points == votes.scale.points:
                self._labels = items = votes.items(labels)  # without those chosen for a look
                self.about = items.origin.remarks
                columns = {"item": items.ids.astype(str)}
                columns |= {"task": items.facts["task"]} if "task" in items.facts else {}
                self._rows = pl.DataFrame(columns).with_columns(pl.col(pl.String).str.strip_chars())
            else:
                self.about = (remarks.people_on_another_scale(str(votes.scale), str(labels.scale)),)
        if "group" in votes.columns:
            key = [name for name in _KEY if name in votes.columns]
            tables.append(votes.collect(votes.data.lazy().select(*key, "group").unique(key)))
        for table in tables:
            if "group" in table.columns:
                group = pl.col("group").cast(pl.String)
                frame = table.select(*_key_of(table), group=group).drop_nulls("group")
                self._groups.append(frame.unique(frame.columns[:-1], keep="first"))

    def groups(self, items: pl.DataFrame) -> NDArray[np.int64]:
        """Number the groups of items; those of which none is known are their own."""
        key = [name for name in _KEY if name in items.columns]
        told = [name for name in key if name in self._mode.key]  # criteria are of one item
        own = [pl.col(name).fill_null("") for name in told]  # a task may be unknown
        names = items.select(pl.concat_str(pl.lit("item"), *own, separator="\0")).to_series()
        for table in reversed(self._groups):
            shared = [name for name in table.columns[:-1] if name in items.columns]
            one = table.unique(shared, keep="first").select(*shared, "group")
            joined = items.select(key).join(one, on=shared, how="left", maintain_order="left")
            group = joined.select(pl.format("group\0{}", "group")).to_series()
            names = group.fill_null(names)
        return np.unique(names.to_list(), return_inverse=True)[1].reshape(-1)

    def labels(self, items: pl.DataFrame, scale: Scale) -> tuple[Floats, Floats]:
        """Return shares of the raters of items, (n, J), and how many items each stands for, (n,).

        Shares are NaN without a label on the scale.
        """
        shares, weights = np.full((len(items), len(scale.points)), np.nan), np.ones(len(items))
        if self._labels is None:
            return shares, weights
        shared = [name for name in self._rows.columns if name in items.columns]
        rows = self._rows.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
        joined = items.join(rows, on=shared, how="left", maintain_order="left")
        place = joined["row"].fill_null(-1).to_numpy()
        known = place >= 0
        shares[known] = self._labels.labels[place[known]]
        if (probabilities := self._labels.sampling.probabilities) is not None:
            weights[known] = 1 / probabilities[place[known]]
        return shares, np.where(np.isnan(shares[:, 0]), 1.0, weights)


def _key_of(table: Any) -> list[pl.Expr]:
    names = (name for name in _KEY if name in table.columns)
    return [pl.col(name).cast(pl.String).str.strip_chars() for name in names]


class _ItemVotes(NamedTuple):
    """Votes of n items: counts by order and point, groups, and shares of labels."""

    keys: pl.DataFrame  # task and item
    scale: Scale
    counts: Floats  # (n, orders, points): one order where none is said, else AB and BA
    groups: NDArray[np.int64]
    shares: Floats  # of the raters of an item for each point, NaN without a label on this scale
    weights: Floats  # how many items each label stands for

    @classmethod
    def of(cls, votes: Votes, known: _KnownItems) -> _ItemVotes:
        key = [name for name in _KEY if name in votes.columns]
        rows, points = votes.data.lazy().with_columns(_key_of(votes)), votes.columns_of_counts
        orders = [pl.lit(value=True)]
        if votes.are_counts:
            sums = [pl.col(name).sum() for name in points]
        else:
            if "order" in votes.columns:
                orders = [pl.col("order") == order for order in ("AB", "BA")]
            at_points = [(pl.col("vote") == point) for point in points.values()]
            sums = [(is_point & order).sum() for order in orders for is_point in at_points]
        named = [column.alias(f"n{place}") for place, column in enumerate(sums)]
        items = votes.collect(rows.group_by(key, maintain_order=True).agg(*named))
        counts = items.select(column.meta.output_name() for column in named).to_numpy()
        counts = counts.reshape(len(items), len(orders), -1).astype(np.float64)
        keys = items.select(key)
        of_known = known.groups(keys), *known.labels(keys, votes.scale)
        return cls(keys, votes.scale, counts, *of_known)

    @property
    def pooled(self) -> Floats:
        """Counts of both orders together, (n, points)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Which items have votes and a label, (n,)."""
        return np.asarray(~np.isnan(self.shares[:, 0]) & (self.pooled.sum(axis=1) > 0))

    @property
    def decided(self) -> NDArray[np.intp]:
        """Places of the majority votes of the labelled items among the points."""
        method = MajorityVote() if self.scale == PAIRS else MajorityVote(scale=self.scale)
        decisions = np.asarray(method.decide(self.pooled[self.is_labelled]))
        return np.searchsorted(self.scale.values, decisions)

    def disagreements(self, key: Mapping[str, str]) -> pl.DataFrame:
        """Tabulate the labelled items on which the majority vote is not people's label."""
        rows, points = np.flatnonzero(self.is_labelled), self.scale.values
        label, decided = self.scale.label_of(self.shares[rows]), points[self.decided]
        votes, of_people = self.pooled[rows], self.shares[rows]
        mean = votes @ self.scale.floats / votes.sum(axis=1)
        columns = {"label": label, "majority": decided, "distance": np.abs(decided - label)}
        columns |= {"mean_distance": np.abs(mean - of_people @ self.scale.floats)}
        whole = votes.astype(np.int64) if (votes == votes.round()).all() else votes
        columns |= dict(zip(self.scale.columns, whole.T, strict=True))
        named = [pl.lit(value).alias(name) for name, value in key.items()]
        table = self.keys[rows].with_columns(
            **{name: pl.Series(of) for name, of in columns.items()}
        )
        table = table.select(*named, pl.exclude(*key)) if named else table
        return table.filter(pl.col("distance") > 0)


def _of_judge(
    key: tuple[str, ...], items: _ItemVotes, scale: Scale, level: float
) -> JudgeAgreement:
    statistics, counts, pooled = Statistics(items.groups, level), items.counts, items.pooled
    n = pooled.sum(axis=1)
    is_other, by_order = other_sides(scale), np.swapaxes(counts, 0, 1)
    if (counts != np.round(counts)).any():  # strengths are no votes of which two could agree
        _add_people(statistics, items)
        return JudgeAgreement(key, int((n > 0).sum()), np.nan, statistics.named)
    within: Any = sum(pairs_within(of_order, is_other) for of_order in by_order)
    _add_pairs(statistics, "repeats", within, has_sides=scale.mirrored)
    if len(by_order) == 2:
        across = pairs_between(by_order[0], by_order[1], is_other)
        _add_pairs(statistics, "orders", across, has_sides=scale.mirrored)
    several = n > 1
    n_votes = float(n[several].mean()) if several.any() else np.nan
    columns = intraclass_columns(pooled, scale.floats)
    ends = -1.0, 1.0
    statistics.add("intraclass_correlation", columns, several, intraclass_correlation, ends)
    icc = statistics.named.get("intraclass_correlation")
    if icc is not None:
        shares = np.clip(icc[:3], 0.0, 1.0)
        worth = n_votes / (1 + (n_votes - 1) * shares)
        of_mean, worth = (shares * worth).tolist(), worth[[0, 2, 1]].tolist()
        for name, (value, low, high) in (("reliability", of_mean), ("effective_votes", worth)):
            statistics.named[name] = Statistic(value, low, high, icc.n_items)
    if icc is not None and icc.value > _ROUNDING:
        wanted = _RELIABLE / (1 - _RELIABLE) * (1 / icc.value - 1)
        number = max(math.ceil(wanted - _ROUNDING), 1)
        statistics.named["votes_for_reliability"] = Statistic(number, np.nan, np.nan, icc.n_items)
    _add_people(statistics, items)
    return JudgeAgreement(key, int((n > 0).sum()), n_votes, statistics.named)


def _add_pairs(statistics: Statistics, name: str, pairs: Any, *, has_sides: bool) -> None:
    equal, flipped, every = pairs.T
    has_pairs = every > 0
    shares = np.stack([equal, flipped]) / np.where(has_pairs, every, 1.0)
    statistics.add_mean(f"{name}_agree", shares[0], has_pairs)
    if has_sides:
        statistics.add_mean(f"{name}_flip", shares[1], has_pairs)


def _add_people(statistics: Statistics, items: _ItemVotes) -> None:
    labelled, scale, k = items.is_labelled, items.scale, len(items.scale.points)
    shares = np.where(labelled[:, None], items.shares, 0.0)
    of_vote = items.pooled / np.maximum(items.pooled.sum(axis=1), 1e-300)[:, None]
    decided = np.zeros_like(shares)
    decided[np.flatnonzero(labelled), items.decided] = 1.0
    whole = items.weights  # rarer labels stand for more items
    part = whole * (of_vote * shares).sum(axis=1)
    statistics.add_ratio("vote_agreement", part, whole, labelled)
    equal = whole[:, None] * decided * shares
    statistics.add_ratio("agreement", equal.sum(axis=1), whole, labelled)
    if scale.mirrored:
        sides = np.array([place for place in range(k) if place != k // 2])
        of_sides = whole * decided[:, sides].sum(axis=1) * shares[:, sides].sum(axis=1)
        counted = labelled & (of_sides > 0)
        part = equal[:, sides].sum(axis=1)
        statistics.add_ratio("agreement_without_ties", part, of_sides, counted)
    ends = -1.0, 1.0
    if scale.mirrored or k == 2:
        table = whole[:, None, None] * decided[:, :, None] * shares[:, None]
        statistics.add("kappa", table.reshape(len(table), -1), labelled, kappa, ends)
    else:
        columns = whole[:, None] * moments(decided, shares)
        statistics.add("kappa", columns, labelled, quadratic_kappa, ends)
    if k == 2:
        for name, place in (("true_positive_rate", 1), ("true_negative_rate", 0)):
            of_people = whole * shares[:, place]
            statistics.add_ratio(name, equal[:, place], of_people, labelled & (of_people > 0))


def _of_people(
    labels: Labels, voted: pl.DataFrame, known: _KnownItems, level: float
) -> Iterator[PeopleAgreement]:
    """Compare named raters on the items that several of them labelled, by criterion."""
    if labels.ratings is None:
        return
    criteria = [name for name in labels.scale.mode.criteria if name in labels.ratings.columns]
    ratings = labels.ratings.with_columns(_key_of(labels.ratings))
    shared = [name for name in _KEY if name in ratings.columns and name in voted.columns]
    ratings = ratings.join(voted.select(shared).unique(), on=shared, how="semi")
    parts = ratings.partition_by(criteria, as_dict=True, maintain_order=True) if criteria else {}
    for key, part in (parts or {(): ratings}).items():
        people = _of_ratings(part, labels.scale, known, level)
        if _PEOPLE in people.measures:
            yield replace(people, key=tuple(map(str, key)) if len(parts) > 1 else ())


def _of_ratings(
    ratings: pl.DataFrame, scale: Scale, known: _KnownItems, level: float
) -> PeopleAgreement:
    key = [name for name in _KEY if name in ratings.columns]
    numbers = [
        (pl.col("label") == point).sum().cast(pl.Float64).alias(f"n{place}")
        for place, point in enumerate(scale.points)
    ]
    items = ratings.group_by(key, maintain_order=True).agg(numbers)
    counts, groups = items.select(pl.exclude(key)).to_numpy(), known.groups(items.select(key))
    statistics = Statistics(groups, level)
    pairs = pairs_within(counts, other_sides(scale))
    several = counts.sum(axis=1) > 1
    statistics.add_mean(_PEOPLE, pairs[:, 0] / np.where(several, pairs[:, 2], 1.0), several)
    if scale.mirrored:
        statistics.add("alpha", coincidences(counts), several, ordinal_alpha, (-1.0, 1.0))
    else:
        columns = squared_differences(counts, scale.floats)
        statistics.add("alpha", columns, several, interval_alpha, (-1.0, 1.0))
    others = ratings.select(*key, other="rater", of_other=pl.col("label").cast(pl.Float64))
    both = ratings.join(others, on=key, nulls_equal=True).filter(pl.col("rater") != pl.col("other"))
    distance = (pl.col("label").cast(pl.Float64) - pl.col("of_other")).abs().mean()
    of_items = both.group_by("rater", *key, maintain_order=True).agg(distance=distance)
    span = float(np.ptp(scale.floats))
    distances = Statistics(known.groups(of_items.select(key)), level)
    for name in of_items["rater"].unique().to_list():
        is_own = (of_items["rater"] == name).to_numpy()
        distances.add_mean(str(name), of_items["distance"].to_numpy() / span, is_own)
    raters = [
        RaterDistance(name, Statistic(span * value, span * low, span * high, n))
        for name, (value, low, high, n) in distances.named.items()
    ]
    raters.sort(key=lambda rater: (-rater.distance.value, rater.rater))
    return PeopleAgreement((), statistics.named, tuple(raters))
