"""How often a judge agrees with itself, and with people; and people with each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable, readable
from btdagg._util.wording import fixed, percent
from btdagg.evaluation.parts import grouping
from btdagg.inference.coefficients import (
    coincidences,
    intraclass_columns,
    intraclass_correlation,
    kappa_of,
    krippendorff,
    other_sides,
    pairs_between,
    pairs_within,
)
from btdagg.inference.estimate import Estimate, jackknifed, numbers_of
from btdagg.inference.sample import sums_by
from btdagg.methods.majority import MajorityVote
from btdagg.model.intervals import as_level
from btdagg.result import Entry, Interval, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.by_id import as_tables, votes_by_id
from btdagg.votes.items import Items
from btdagg.votes.labels import RATERS, read_labels
from btdagg.votes.scale import PAIRS
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.remarks import Remark
    from btdagg.votes.labels import Labels
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

_RELIABLE, _ROUNDING = 0.8, 1e-9
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


@readable
class AgreementMeasure(NamedTuple):
    """A measure of agreement with its interval, and the items that it is of.

    Its ends are NaN if items, or groups, do not tell how far off it is.
    """

    value: float
    low: float
    high: float
    n_items: int

    @classmethod
    def of(cls, estimate: Estimate, level: float, n_items: int) -> AgreementMeasure:
        """Return an estimate with its interval."""
        value, low, high = estimate.interval(level)
        ends = (low, high) if estimate.has_spread else (np.nan, np.nan)
        return cls(value, *ends, n_items)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name; NaN as None."""
        return numbers_of(self, *self._fields)


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
    measures : mapping of str to AgreementMeasure
        Measures by name, as far as votes and labels tell them; see `agreement`.
    """

    key: tuple[str, ...]
    n_items: int
    n_votes: float
    measures: Mapping[str, AgreementMeasure]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name."""
        measures = {name: of.as_dict() for name, of in self.measures.items()}
        votes = None if math.isnan(self.n_votes) else self.n_votes
        return {"key": list(self.key), "n_items": self.n_items, "n_votes": votes} | measures


@readable
class RaterDistance(NamedTuple):
    """How far a rater's labels are from those of others on the same items, on the mean."""

    rater: str
    distance: AgreementMeasure


@dataclass(frozen=True, eq=False)
class Agreements(Result):
    """Agreement of judges with themselves, with people, and of people with each other.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    judges : tuple of JudgeAgreement
    people : mapping of str to AgreementMeasure
        ``"people_agree"`` and ``"alpha"``, where several people labelled items.
    raters : tuple of RaterDistance
        Raters by name, the furthest from the others first.
    level : float
        Confidence level of each interval by itself.
    remarks : tuple of Remark
    disagreements : polars.DataFrame
        Items on which the majority vote of a judge is not people's label, the worst first: the
        farthest apart, and then those whose votes are farthest from it on the mean.
    """

    by: tuple[str, ...]
    judges: tuple[JudgeAgreement, ...]
    people: Mapping[str, AgreementMeasure]
    raters: tuple[RaterDistance, ...]
    level: float
    remarks: tuple[Remark, ...] = ()
    disagreements: Any = field(default=None, repr=False)

    def sentence(self) -> str:
        """Return how often judges agree with themselves and with people, and people with people."""
        parts = [text for name in _SAID if (text := self._said(name))]
        if (people := self.people.get("people_agree")) is not None:
            parts.append(f"two people agree in {self._share(people)}")
        if not parts:
            return "Items have one vote each: nothing tells how often a judge repeats its vote"
        return "; ".join(parts)

    def _said(self, name: str) -> str:
        """Say a share of the one judge, or the least and the greatest of several."""
        shares = {" ".join(of.key): of.measures[name] for of in self.judges if name in of.measures}
        if len(shares) < 2:
            return "".join(f"{_SAID[name]} in {self._share(share)}" for share in shares.values())
        order = sorted(shares, key=lambda judge: shares[judge].value)
        ends = (f"{percent(shares[of].value)} ({of})" for of in (order[0], order[-1]))
        return f"{_SAID[name]} in {' to '.join(ends)}"

    def _share(self, measure: AgreementMeasure) -> str:
        if math.isnan(measure.low):
            return percent(measure.value)
        ends = f"{percent(measure.low)} to {percent(measure.high)}"
        return f"{percent(measure.value)} ({100 * self.level:.3g}% interval {ends})"

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        return "How often judges agree with themselves and with people"

    def values(self) -> dict[str, Any]:
        """Return the measures of judges and of people, and raters by distance."""
        return super().values() | {"raters": [{"rater": n, **d.as_dict()} for n, d in self.raters]}

    def table(self) -> ResultTable:
        """Return a row for each measure of each judge, and of people."""
        parts = [(judge.key or ("all",), judge.measures) for judge in self.judges]
        blank = ("",) * (len(self.by[1:]))
        rows = [
            self._row(key, name, of)
            for key, measures in (*parts, (("people", *blank), self.people))
            for name, of in measures.items()
        ]
        note = (
            f"Means over items, with {100 * self.level:.3g}% intervals for new items, or groups. "
            "Repeats are votes of an item in the same order, if votes say theirs. Independent "
            "votes: so many would tell as much of the mean of all items."
        )
        columns = (*(self.by or ("votes",)), "measure")
        return ResultTable.of_rows("agreement", "Agreement", note, columns, rows)

    def _row(self, key: tuple[str, ...], name: str, of: AgreementMeasure) -> Row:
        write = percent if name in _SHARES else fixed
        if name == "votes_for_reliability":
            write = "{:.0f}".format
        ends = "" if math.isnan(of.low) else f"{write(of.low)} to {write(of.high)}"
        cells: dict[str, str | Entry] = {
            "value": Entry(write(of.value), True),
            "interval": ends,
            "items": f"{of.n_items:,}",
        }
        record = dict(zip(self.by or ("votes",), key, strict=True))
        words = _SHARES.get(name) or _NUMBERS[name]
        return Row((*key, words), cells, [{**record, "measure": name, **of.as_dict()}])

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the measures, and raters by how far they are from the others."""
        if not self.raters:
            return (self.table(),)
        rows = [
            Row(
                (name,),
                {
                    "distance": fixed(of.value),
                    "interval": f"{fixed(of.low)} to {fixed(of.high)}",
                    "items": f"{of.n_items:,}",
                },
                [{"rater": name, **of.as_dict()}],
            )
            for name, of in self.raters
        ]
        note = "Mean distance of a rater's labels from those of others on the same items."
        title = "Raters, the furthest from the others first"
        return self.table(), ResultTable.of_rows("raters", title, note, ("rater",), rows)

    def figure(self) -> IntervalFigure | None:
        """Return the shares of judges, and of people, by measure."""
        parts = {" ".join(judge.key) or "all": judge.measures for judge in self.judges}
        parts |= {"people": self.people} if self.people else {}
        points = {
            words: {
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
        On the scale of the votes, or what people say is left out; groups of items are in them.
        With a column `rater`, raters are compared with each other.
    scale : Scale, optional
        For arrays and frames of grades.
    by : sequence of str, optional
        Columns that votes are grouped by; by default `judge`, and the criterion of grades.
    level : float
        Confidence level of the intervals.

    Notes
    -----
    Of two votes of an item, on the mean over items: ``repeats_agree`` and ``orders_agree``, the
    share of equal ones in one order and across both; ``repeats_flip`` and ``orders_flip``, of those
    for different sides. ``intraclass_correlation`` is that of one vote (one-way random effects,
    ICC(1)), ``reliability`` that of the mean of an item's votes (Spearman and Brown), and
    ``effective_votes`` the number of independent votes that would tell as much of the mean of all
    items, ``n / (1 + (n - 1) icc)``.

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
    criteria = [name for name in votes.scale.mode.criteria if name in votes.columns]
    columns = grouping(votes, by, (*criteria, "judge"))
    about = []
    if labels is not None and labels.scale.points != votes.scale.points:
        about.append(remarks.people_on_another_scale(str(votes.scale), str(labels.scale)))
    parts = {key: _ItemVotes.of(part, labels) for key, part in votes.partition(columns)}
    judges = [_of_judge(key, part, votes.scale, level) for key, part in parts.items()]
    apart = [
        part.disagreements(dict(zip(columns, key, strict=True))) for key, part in parts.items()
    ]
    worst = pl.concat(apart, how="diagonal").sort("distance", "mean_distance", descending=True)
    people, raters = ({}, ()) if labels is None else _of_people(labels, level)
    return Agreements(columns, tuple(judges), people, raters, level, tuple(about), worst)


def _tables(votes: Any, labels: Any, scale: Scale | None) -> tuple[Votes, Labels | None]:
    votes, labels = as_tables(votes_by_id(votes, scale), labels, scale)
    if isinstance(votes, Items) and votes.facts.votes is not None:
        return votes.facts.votes, labels
    if isinstance(votes, Votes):
        return votes, labels
    items = votes if isinstance(votes, Items) else Items(counts=votes, scale=scale or PAIRS)
    n, n_judges = items.counts.shape[:2]
    rows = {"item": np.tile(np.arange(n), n_judges)}
    if n_judges > 1:
        rows["judge"] = np.repeat(items.judges, n)
    counts = np.swapaxes(items.counts, 0, 1).reshape(n * n_judges, -1)
    rows |= dict(zip(items.scale.columns, counts.T, strict=True))
    of_items = None if labels is None else items.scale.shares(labels)
    if labels is None and items.is_labelled.any():
        of_items = items.labels
    if of_items is not None:
        label_scale = items.label_scale if labels is None else items.scale
        known = ~np.isnan(of_items[:, 0])
        one = {"item": np.flatnonzero(known), "label": label_scale.label_of(of_items[known])}
        labels = read_labels(one, scale=label_scale)
    return read_votes(rows, scale=items.scale), labels


class _ItemVotes(NamedTuple):
    """Votes of n items: counts by order and point, groups, and the rows of their labels."""

    keys: pl.DataFrame  # task and item
    scale: Scale
    counts: Floats  # (n, orders, points): one order where none is said, else AB and BA
    groups: NDArray[np.int64]
    shares: Floats  # of the raters of an item for each point, NaN without a label on this scale

    @classmethod
    def of(cls, votes: Votes, labels: Labels | None) -> _ItemVotes:
        key = [name for name in ("task", "item") if name in votes.columns]
        text = [pl.col(name).cast(pl.String).str.strip_chars() for name in key]
        rows, points = votes.data.lazy().with_columns(text), votes.columns_of_counts
        orders = [pl.lit(value=True)]
        if votes.are_counts:
            sums = [pl.col(name).sum() for name in points]
        else:
            if "order" in votes.columns:
                orders = [pl.col("order") == order for order in ("AB", "BA")]
            at = [(pl.col("vote") == point) for point in points.values()]
            sums = [(one & order).sum() for order in orders for one in at]
        group = [pl.col("group").first()] if "group" in votes.columns else []
        named = [one.alias(f"n{place}") for place, one in enumerate(sums)]
        items = votes.collect(rows.group_by(key, maintain_order=True).agg(*named, *group))
        counts = items.select(one.meta.output_name() for one in named).to_numpy()
        counts = counts.reshape(len(items), len(orders), -1).astype(np.float64)
        names, shares = items.get_column("item"), np.full((len(items), counts.shape[2]), np.nan)
        if labels is not None:
            shared = [name for name in key if name in labels.columns]
            of_labels = [pl.col(name).cast(pl.String).str.strip_chars() for name in shared]
            own = [name for name in ("group",) if name in labels.columns]
            told = labels.frame.select(*of_labels, *(pl.col(n).alias("of_labels") for n in own))
            told = told.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
            items = items.join(told, on=shared, how="left", maintain_order="left")
            place = items["row"].fill_null(-1).to_numpy()
            if labels.scale.points == votes.scale.points:
                shares = np.where(place[:, None] >= 0, labels.shares[place], np.nan)
        groups = [items[name] for name in ("of_labels", "group") if name in items.columns]
        for group_of in reversed(groups):
            names = group_of.cast(pl.String).fill_null(names)
        numbers = np.unique(names.to_list(), return_inverse=True)[1].reshape(-1)
        return cls(items.select(key), votes.scale, counts, numbers, shares)

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


class _Measures:
    """Measures of items by name, each a function of sums over groups."""

    def __init__(self, groups: NDArray[np.int64], level: float) -> None:
        self.measures: dict[str, AgreementMeasure] = {}
        self._groups, self._level = groups, level

    def add(
        self,
        name: str,
        columns: Floats,
        counted: NDArray[np.bool_],
        function: Callable[[Floats], Floats] = lambda sums: sums[:, 0] / sums[:, 1],
        ends: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        """Add a function of the sums of (n, m) columns over the counted items, if there are any."""
        if not counted.any():
            return
        n = int(self._groups.max()) + 1
        kept = np.where(counted[:, None], columns, 0.0)
        sizes = sums_by(self._groups, counted.astype(np.float64), n)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = jackknifed(function, sums_by(self._groups, kept, n), sizes, ends)
        if not math.isnan(estimate.value):
            self.measures[name] = AgreementMeasure.of(estimate, self._level, int(counted.sum()))

    def add_mean(self, name: str, values: Floats, counted: NDArray[np.bool_]) -> None:
        """Add the mean of values of the counted items."""
        self.add(name, np.column_stack([np.nan_to_num(values), counted]), counted)


def _of_judge(
    key: tuple[str, ...], items: _ItemVotes, scale: Scale, level: float
) -> JudgeAgreement:
    made, counts, pooled = _Measures(items.groups, level), items.counts, items.pooled
    n = pooled.sum(axis=1)
    is_other, by_order = other_sides(scale), np.swapaxes(counts, 0, 1)
    _add_pairs(made, "repeats", sum(pairs_within(of_order, is_other) for of_order in by_order))
    if len(by_order) == 2:
        _add_pairs(made, "orders", pairs_between(by_order[0], by_order[1], is_other))
    several = n > 1
    n_votes = float(n[several].mean()) if several.any() else np.nan
    columns = intraclass_columns(pooled, scale.floats)
    ends = -1.0, 1.0
    made.add("intraclass_correlation", columns, several, intraclass_correlation, ends)
    icc = made.measures.get("intraclass_correlation")
    if icc is not None:
        shares = np.clip(icc[:3], 0.0, 1.0)
        worth = n_votes / (1 + (n_votes - 1) * shares)
        of_mean, worth = (shares * worth).tolist(), worth[[0, 2, 1]].tolist()
        for name, (value, low, high) in (("reliability", of_mean), ("effective_votes", worth)):
            made.measures[name] = AgreementMeasure(value, low, high, icc.n_items)
    if icc is not None and icc.value > 0:
        wanted = _RELIABLE / (1 - _RELIABLE) * (1 / icc.value - 1)
        number = max(math.ceil(wanted - _ROUNDING), 1)
        made.measures["votes_for_reliability"] = AgreementMeasure(
            number, np.nan, np.nan, icc.n_items
        )
    _add_people(made, items)
    return JudgeAgreement(key, int((n > 0).sum()), n_votes, made.measures)


def _add_pairs(made: _Measures, name: str, pairs: Any) -> None:
    equal, flipped, every = pairs.T
    has_pairs = every > 0
    shares = np.stack([equal, flipped]) / np.where(has_pairs, every, 1.0)
    made.add_mean(f"{name}_agree", shares[0], has_pairs)
    made.add_mean(f"{name}_flip", shares[1], has_pairs)


def _add_people(made: _Measures, items: _ItemVotes) -> None:
    labelled, scale, k = items.is_labelled, items.scale, len(items.scale.points)
    shares = np.where(labelled[:, None], items.shares, 0.0)
    of_vote = items.pooled / np.maximum(items.pooled.sum(axis=1), 1)[:, None]
    made.add_mean("vote_agreement", (of_vote * shares).sum(axis=1), labelled)
    decided = np.zeros_like(shares)
    decided[np.flatnonzero(labelled), items.decided] = 1.0
    table = decided[:, :, None] * shares[:, None]
    made.add_mean("agreement", np.einsum("nkk->n", table), labelled)
    if scale.mirrored:
        sides = np.array([place for place in range(k) if place != k // 2])
        of_sides = table[:, sides][:, :, sides]
        columns = np.column_stack([np.einsum("nkk->n", of_sides), of_sides.sum(axis=(1, 2))])
        made.add("agreement_without_ties", columns, labelled & (columns[:, 1] > 0))
    weights = np.subtract.outer(np.arange(k), np.arange(k)) ** 2.0
    if scale.mirrored or k == 2:
        weights = 1.0 - np.eye(k)
    made.add("kappa", table.reshape(len(table), -1), labelled, kappa_of(weights), (-1.0, 1.0))
    if k == 2:
        for name, place in (("true_positive_rate", 1), ("true_negative_rate", 0)):
            columns = np.column_stack([table[:, place, place], table[:, :, place].sum(axis=1)])
            made.add(name, columns, labelled & (columns[:, 1] > 0))


def _of_people(
    labels: Labels, level: float
) -> tuple[dict[str, AgreementMeasure], tuple[RaterDistance, ...]]:
    frame, scale = labels.frame, labels.scale
    number = frame[RATERS].to_numpy() if RATERS in frame.columns else np.ones(len(frame))
    ratings = np.rint(labels.shares * number[:, None])
    n, groups = ratings.sum(axis=1), np.arange(len(frame))
    if labels.groups is not None:
        groups = np.unique(labels.groups.astype(str), return_inverse=True)[1].reshape(-1)
    made = _Measures(groups, level)
    pairs = pairs_within(ratings, other_sides(scale))
    several = n > 1
    made.add_mean("people_agree", pairs[:, 0] / np.where(several, pairs[:, 2], 1.0), several)
    alpha = krippendorff(scale.floats, is_ordinal=scale.mirrored)
    made.add("alpha", coincidences(ratings), several, alpha, (-1.0, 1.0))
    return made.measures, tuple(_distances(labels, groups, level))


def _distances(labels: Labels, groups: NDArray[np.int64], level: float) -> list[RaterDistance]:
    """Return how far each named rater is from the others on the same items, the furthest first."""
    if labels.ratings is None:
        return []
    key = [name for name in ("item", "task") if name in labels.ratings.columns]
    place = labels.frame.select(key).with_columns(group=pl.Series(groups))
    rows = labels.ratings.join(place, on=key, how="inner", nulls_equal=True)
    label, n = pl.col("label").cast(pl.Float64), pl.len().over(key)
    rows = rows.with_columns(label=label, n=n).filter(pl.col("n") > 1)
    others = rows.select(*key, pl.col("rater").alias("other"), pl.col("label").alias("of_other"))
    both = rows.join(others, on=key, nulls_equal=True).filter(pl.col("rater") != pl.col("other"))
    away = (pl.col("label") - pl.col("of_other")).abs().mean().alias("away")
    of_items = both.group_by("rater", *key, "group", maintain_order=True).agg(away)
    span, found = float(np.ptp(labels.scale.floats)), []
    for (name,), part in of_items.partition_by("rater", as_dict=True, maintain_order=True).items():
        codes = np.unique(part["group"].to_numpy(), return_inverse=True)[1].reshape(-1)
        made, values = _Measures(codes, level), part["away"].to_numpy() / span
        made.add_mean("distance", values, np.ones(len(values), dtype=np.bool_))
        value, low, high, n_items = made.measures["distance"]
        distance = AgreementMeasure(span * value, span * low, span * high, n_items)
        found.append(RaterDistance(str(name), distance))
    return sorted(found, key=lambda rater: -rater.distance.value)
