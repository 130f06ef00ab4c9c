"""Which of two ways of deciding the same items is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.validation import as_groups
from btdagg._util.wording import fixed
from btdagg._util.wording import pvalue as written_pvalue
from btdagg.evaluation.engine import cross_scores
from btdagg.evaluation.new_items import NewItems
from btdagg.evaluation.protocol import CROSS_FITTED, CrossFit, GroupTest, Protocol
from btdagg.evaluation.wording import spread
from btdagg.inference.intervals import number_to_tell, of_every_look
from btdagg.inference.population import MUCH
from btdagg.methods import Aggregator, Calibrated
from btdagg.methods.base import Needs, needs_of
from btdagg.methods.registry import as_aggregator
from btdagg.model.intervals import as_level
from btdagg.remarks import Remark
from btdagg.result import Entry, Interval, Result, ResultTable, Row, plain
from btdagg.votes.by_id import as_items, as_tables
from btdagg.votes.items import Draw, Items
from btdagg.votes.join import join
from btdagg.votes.labels import UNKNOWN_UNIT, Labels
from btdagg.votes.scale import Scale, scales_of
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


# A line about strength is from so many labels on, and of at most so many.
_FEWEST, _ENOUGH = 20, 1000
_ROUNDING = 1e-6  # of votes with a strength
_QUICK = Protocol(CrossFit(n_repeats=2, n_refits=25), GroupTest())

Way: TypeAlias = "Votes | ArrayLike | Items"
Method: TypeAlias = "Aggregator | str"


@dataclass(frozen=True)
class Comparison(Result):
    """Errors of two ways of deciding the same items, and their difference; `str` is a sentence.

    Attributes
    ----------
    names : tuple of str
    mae : tuple of Interval
        Mean absolute errors, with intervals for new items.
    difference : Interval
        MAE of the first less that of the second: below 0 where the first is better.
    pvalue : float
        Two-sided, from the same test as the interval of the difference.
    level : float
    n_items, n_groups : int
        Labelled items that both ways decide, and their groups.
    n_calibration : float
        Mean number of labels that the models were calibrated on.
    n_only_first, n_only_second : int
        Labelled items left out since the other way has no votes on them.
    n_unlabelled : int
        Items left out without a label.
    n_fewer : int
        Labelled items left out since they have fewer votes than one of the ways counts.
    population : "new" or "finite"
        Whether intervals are for new items, or of these, with a label or without.
    other_difference : Interval or None
        The difference of the other population, where more than a tenth of the items has a label.
    remarks : tuple of Remark
    """

    names: tuple[str, str]
    mae: tuple[Interval, Interval]
    difference: Interval
    pvalue: float
    level: float
    n_items: int
    n_groups: int
    n_calibration: float
    n_only_first: int = 0
    n_only_second: int = 0
    n_unlabelled: int = 0
    n_fewer: int = 0
    population: Literal["new", "finite"] = "new"
    other_difference: Interval | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def better(self) -> str | None:
        """The way that is better beyond chance, by its name; None if neither is."""
        return None if self.pvalue >= 1 - self.level else self.names[self.difference.mean > 0]

    @property
    def items_wanted(self) -> int | None:
        """About how many labelled items would show which is better, if the difference stays.

        None where it is shown, or would take a hundred times as many as there are.
        """
        mean, low, high = self.difference
        away = low if mean > 0 else high
        return None if self.better else number_to_tell(self.n_items, abs(mean - away), abs(mean))

    def values(self) -> dict[str, Any]:
        """Return the numbers, with those of each way by its name."""
        values = super().values() | {"better": self.better, "items_wanted": self.items_wanted}
        del values["names"], values["mae"], values["difference"], values["other_difference"]
        for way, name, mae in zip(("first", "second"), self.names, self.mae, strict=True):
            values |= {way: name, **spread(f"mae_{way}", mae)}
        return values | spread("difference", self.difference)

    def table(self) -> ResultTable:
        """Return both errors and their difference as a row."""
        return comparisons_table([self])

    def to_frame(self) -> pl.DataFrame:
        """Return the comparison as one row."""
        return self.as_row()

    def sentence(self) -> str:
        """Return which way is better, and by how much."""
        least = int(self.difference.mean > 0)
        ends = self.difference[1:] if least else [-end for end in self.difference[:0:-1]]
        name, other = self.names[least], self.names[1 - least]
        mae, other_mae = (f"{self.mae[place].mean:.3f}" for place in (least, 1 - least))
        verdict, may_be = f"better: {name}, MAE {mae} against {other_mae}", ""
        if self.better is None:
            may_be = f"; {other} may be worse by up to {ends[1]:.3f}" if ends[1] > 0 else ""
            verdict = f"no significant difference: MAE {mae} ({name}), {other_mae} ({other})"
        return (
            f"{verdict}, difference {abs(self.difference.mean):z.3f}, "
            f"{100 * self.level:.4g}% interval {ends[0]:z.3f} to {ends[1]:z.3f}"
            f"{' of these items' if self.population == 'finite' else ''}{may_be}"
        )


def comparisons_table(comparisons: Sequence[Comparison]) -> ResultTable:
    """Tabulate comparisons on the same items, a row each."""
    rows = [
        Row(
            of.names,
            {
                "MAE": fixed(of.mae[0].mean),
                "other MAE": fixed(of.mae[1].mean),
                "difference": Entry(fixed(of.difference.mean, signed=True), of.better is not None),
                "interval": " to ".join(fixed(end, signed=True) for end in of.difference[1:]),
                "p": written_pvalue(of.pvalue),
            },
            [plain(of.values())],
        )
        for of in comparisons
    ]
    note = "Mean absolute errors (MAE) on the same items, and their difference."
    if comparisons:
        of = "these items" if comparisons[0].population == "finite" else "new items"
        note += f" {100 * comparisons[0].level:.4g}% intervals for {of}; bold: significant."
    return ResultTable.of_rows("comparison", "Errors compared", note, ("way", "other way"), rows)


def compare(
    first: Way,
    second: Way,
    labels: Labels | ArrayLike,
    *,
    scale: Scale | tuple[Scale, Scale] | None = None,
    label_scale: Scale | None = None,
    methods: Method | tuple[Method | None, Method | None] | None = None,
    n_votes: int | tuple[int | None, int | None] | None = None,
    covariates: Any = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    population: Literal["new", "finite"] = "new",
    names: tuple[str, str] = ("first", "second"),
    protocol: Protocol = CROSS_FITTED,
) -> Comparison:
    """Compare two ways of deciding the same items: two judges, signs and strength, two methods.

    Every item is decided by models calibrated without its group, by the same folds for both ways.

    Parameters
    ----------
    first, second : Votes, Items, (n, 3) or (n, judges, 3) array
        Votes of each way: tables, joined with labels by item, or arrays with a row for each label.
        May be the same votes if methods or numbers of votes differ.
    labels : Labels, or (n,) array of -1, 0, 1
    scale : Scale or two of them, optional
        For arrays: (n, J) numbers of votes for each point. By default that of pairs.
    label_scale : Scale, optional
        Scale of labels in an array, if it differs from that of the votes.
    methods : Aggregator or its name, or two of them; optional
        By default `Calibrated` with the weak prior, or of the judges of a panel.
    n_votes : int or two of them, optional
        Use only the first so many votes of each item, of tables; see `Votes.counts`. Items with
        fewer are left out for both ways.
    covariates : optional
        For both ways, or a tuple of two, of which one may be None; as in
        `btdagg.votes.Items.with_covariates`.
    groups : (n,) array, optional
        For arrays, the group of each item, such as its prompt; tables have a column `group`.
    level : float
        Confidence level of the intervals; these and the test are as in `NewItems`.
    population : "new" or "finite"
        Population of the intervals: new items, or these (in tables also unlabelled ones).
    names : two str
        Names of the ways in the result.
    protocol : Protocol
        Cross-fitting; see `CrossFit`.

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [6, 1, 1]] * 9
    >>> others = [[0, 5, 3], [2, 6, 0], [0, 7, 1], [1, 6, 1]] * 9
    >>> print(compare(counts, others, [1, 0, -1, -1] * 9, names=("judge a", "judge b")))
    better: judge a, MAE 0.000 against 0.500, difference 0.500, 95% interval 0.198 to 0.802
    """
    level = as_level(level)
    if not isinstance(protocol.splitter, CrossFit):
        raise InputError("protocol has random splits, expected CrossFit", argument="protocol")
    expect(not isinstance(names, str) and len(names) == 2, "names", names, "two names")
    of_methods, of_numbers = _two(methods, "methods"), _two(n_votes, "n_votes")
    known = _two(covariates, "covariates")
    first_settings, second_settings = zip(of_methods, of_numbers, _two(scale, "scale"), strict=True)
    if first is second and first_settings == second_settings and known[0] is known[1]:
        raise InputError("first and second are the same votes, decided in the same way")
    ways, used, unlabelled, fewer = zip(
        *(
            _labelled(way, labels, groups, label_scale, way_covariates, *settings)
            for way, settings, way_covariates in zip(
                (first, second), (first_settings, second_settings), known, strict=True
            )
        ),
        strict=True,
    )
    expected = "the scale of the labels, since the votes have two"
    expect(ways[0].label_scale == ways[1].label_scale, "label_scale", label_scale, expected)
    without_votes = set.union(*fewer)
    ways = tuple(
        way[[item not in without_votes for item in way.ids.tolist()]] if without_votes else way
        for way in ways
    )
    of_ways = _in_both(*ways)
    both, content = of_ways[:2], of_ways[2]
    rows = [
        cross_scores([items], [method], protocol.untested, content=content)[0][0]
        for items, method in zip(both, used, strict=True)
    ]
    of_first, of_second = (cast(NewItems, scores.new_items) for scores in rows)
    n_unlabelled = len(set.union(*unlabelled))
    units, left = both[0].sampling.units, n_unlabelled / (n_unlabelled + len(both[0]))
    of: dict[str, NewItems] = {"new": of_first.joined(of_second, with_written=True)}
    if units is not None:
        together = of_first.joined(of_second, with_written=left > 0)
        of["finite"] = replace(together, groups=as_groups(units, "items", len(units)), left=left)
    if population not in of:
        expect(population == "finite", "population", population, "'new' or 'finite'")
        raise InputError(UNKNOWN_UNIT, argument="labels")
    new_items = of.pop(population)
    differences = [
        errors.difference(0, 1, level=level) for errors in of.values() if left < 1 - MUCH
    ]
    found = Comparison(
        (str(names[0]), str(names[1])),
        (new_items.interval(0, level=level), new_items.interval(1, level=level)),
        new_items.difference(0, 1, level=level),
        float(new_items.pvalues()[0, 1]),
        level,
        len(both[0]),
        new_items.n_groups,
        rows[0].n_calibration,
        len(ways[0]) - len(both[0]),
        len(ways[1]) - len(both[0]),
        n_unlabelled,
        len(without_votes),
        population,
        differences[0] if differences else None,
    )
    if (n_items := found.items_wanted) is None:
        return found
    every = of_every_look(level, "btdagg.ConfidenceSequence of the differences of new items")
    return found.with_remarks([remarks.items_to_tell(n_items, every)])


def about_strengths(parts: Mapping[str, Items]) -> list[Remark]:
    """Say whether the strength of votes is better than their signs, a line for each part."""
    named_parts = parts.items() if len(parts) > 1 else (("", items) for items in parts.values())
    return [line for name, items in named_parts for line in about_strength(items, name)]


def about_strength(items: Items, name: str = "", *, warn: bool = False) -> list[Remark]:
    """Say in a line whether the strength of votes is better than their signs."""
    # Nothing without strength or below 20 labels; with `warn` only if worse (one-sided, at 5%).
    one_kind = len(set(items.label.tolist())) < 2 or items.group_numbers.max() == 0
    if "signs" not in items.facts or len(items) < _FEWEST or one_kind:
        return []
    if len(items) > _ENOUGH:
        rows = np.random.default_rng(0).permutation(len(items))[:_ENOUGH]
        return about_strength(items[rows], name, warn=warn)
    items = items.by_row()
    result = compare(
        items.without_strength(),
        items,
        items.label,
        label_scale=items.label_scale,
        groups=items.group,
        names=("whole votes", "strength"),
        protocol=_QUICK if warn else CROSS_FITTED,
    )
    where = f"{name}: " if name else ""
    if result.difference.mean < 0 and result.pvalue / 2 < 0.05:
        signs, strength = (f"{interval.mean:.3f}" for interval in result.mae)
        return [
            remarks.strength_compared(
                f"warning: {where}vote strength is worse than whole votes: MAE {strength} against "
                f"{signs}, one-sided p = {result.pvalue / 2:.2g}; leave strength out"
            )
        ]
    return [] if warn else [remarks.strength_compared(f"{where}{result.sentence()}")]


def _labelled(
    way: Way,
    labels: Labels | ArrayLike,
    groups: ArrayLike | None,
    label_scale: Scale | None,
    covariates: Any,
    method: Method | None,
    n_votes: int | None,
    scale: Scale | None,
) -> tuple[Items, Aggregator, set[Any], set[Any]]:
    way, labels = as_tables(way, labels, scale, label_scale)
    is_joined = isinstance(way, Items) and labels is None
    is_table = isinstance(way, Votes) or is_joined
    forbid(
        is_table != (isinstance(labels, Labels) or is_joined) or (is_table and groups is not None),
        f"votes are of type {type(way).__name__} and labels of type {type(labels).__name__}, "
        "expected tables of both, or arrays and their groups",
    )
    if n_votes is not None and not isinstance(way, Votes):
        raise InputError("n_votes needs tables of votes", argument="n_votes")
    scale, label_scale = scales_of(way, labels, scale, label_scale)
    if method is not None:
        method = as_aggregator(method, "methods", scale, label_scale)
    needs, without = Needs() if method is None else needs_of(method), set()
    if is_table:
        decisions = [] if needs.decisions is None else [needs.decisions]
        joined: Any = way
        if isinstance(way, Votes):
            counted = way.items(n_votes=n_votes, decisions=decisions)
            joined = join(counted, cast("Labels", labels))
        is_counted = isinstance(way, Votes)  # here, in an order that nobody knows
        if covariates is not None:
            joined = joined.with_covariates(covariates, is_table=is_counted)
        items = joined.labelled()
        without = {*joined.ids.tolist()} - {*items.ids.tolist()}
    else:
        items = as_items(way, labels, groups, scale=scale, label_scale=label_scale)
        items = items if covariates is None else items.with_covariates(covariates)
        ids = np.arange(len(items))  # whatever they are called
        units = ids if items.group is None else items.group
        items = replace(items, ids=ids, sampling=Draw(units=units))
    if needs.some_decisions:
        items = items[items.with_decisions([needs.decisions or ""])]
    fewer: set[Any] = set()
    if n_votes is not None:
        items.require_votes(n_votes)
        fewer = {*items.ids[items.votes.sum(axis=1) < n_votes - _ROUNDING].tolist()}
    usual = Calibrated(scale=scale, label_scale=label_scale, judges=items.judges)
    return items, usual if method is None else method, without, fewer


def _in_both(first: Items, second: Items) -> tuple[Items, Items, list[NDArray[Any]]]:
    """Return the items that both ways have, and the contents by which their folds are dealt."""
    row_of = {item: row for row, item in enumerate(second.ids.tolist())}
    ids = first.ids.tolist()
    rows = [(row, row_of[item]) for row, item in enumerate(ids) if item in row_of]
    if len(rows) < 2:
        raise InputError(
            f"{len(rows)} labelled items have votes of both first and second, expected at least 2; "
            f"first begins with item {ids[0]!r}, second with item {next(iter(row_of))!r}"
        )
    of_first, of_second = (
        way[r] for way, r in zip((first, second), np.transpose(rows), strict=True)
    )
    of_first.require_two_labels()
    # Side by side, so that which is first changes no fold; what both have counts once, so that
    # folds of the same votes are those of `evaluate`.
    counts: dict[bytes, Any] = {
        table.tobytes(): table
        for way in (of_first, of_second)
        for table in map(np.float64, _tables(way))
    }
    columns = {
        b"".join(c.tobytes() for c in way.content[2:]): way.content[2:]
        for way in (of_first, of_second)
    }
    width = max(table.shape[1] for table in counts.values())  # grades may have two scales
    tables = [np.pad(t, ((0, 0), (0, width - t.shape[1]))) for t in counts.values()]
    content = [np.stack(tables, axis=1), of_first.label]
    content += [column for key in sorted(columns) for column in columns[key]]
    group, units = _groups_of_both(of_first, of_second)
    drawn = Draw(units=units)
    of_first = replace(of_first, group=group, sampling=drawn)
    of_second = replace(of_second, ids=of_first.ids, group=group, sampling=drawn)
    return of_first, of_second, content


def _groups_of_both(first: Items, second: Items) -> tuple[Any, Any]:
    # Groups of the same items, which either way may name, and what was drawn as a whole.
    if first.group is None or second.group is None:
        known = second if first.group is None else first
        return known.group, known.sampling.units
    groups = first.group.copy()
    for row, (group, other) in enumerate(zip(first.group, second.group, strict=True)):
        if group != other and not str(other).startswith(" "):  # as the group of one item does
            item = first.ids.tolist()[row]
            text = f"item {item!r} is of group {group!r} in first and {other!r} in second"
            forbid(not str(group).startswith(" "), text)
            groups[row] = other
    is_by_group = first.sampling.units is not None and (first.sampling.units == first.group).all()
    return groups, groups if is_by_group else first.sampling.units


def _tables(way: Items) -> list[NDArray[Any]]:
    return [*np.swapaxes(way.counts, 0, 1)]


def _two(value: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(value, tuple | list):
        return value, value
    expect(len(value) == 2, name, value, "one for both, or two")
    return value[0], value[1]
