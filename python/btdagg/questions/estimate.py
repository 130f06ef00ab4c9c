"""Shares and win rates over all items, from a few labels and the votes of a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.display import Drawn
from btdagg._util.errors import InputError, one_of
from btdagg._util.extras import as_frame
from btdagg._util.lazy import pl
from btdagg._util.numbers import as_integer
from btdagg._util.readable import Readable
from btdagg._util.validation import as_groups, as_names, as_number
from btdagg._util.wording import MISSING, counted, fixed, percent, pvalue
from btdagg.inference.cross_fit import Predictor
from btdagg.inference.estimate import Estimate, MeanEstimate, Together, numbers_of
from btdagg.inference.intervals import of_every_look, t_quantile
from btdagg.inference.population import PredictedItems, items_of
from btdagg.inference.quantities import NET, too_few
from btdagg.inference.sample import Population
from btdagg.model.intervals import as_level
from btdagg.remarks import Remark
from btdagg.result import Entry, Interval, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.items import Items
from btdagg.votes.sides import UNNAMED, Sides

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale

Domain = dict[str, Estimate]
"""The mean of each quantity over some items."""


@dataclass(frozen=True)
class Difference(Readable):
    """A difference of two means, the first less the second, with its interval.

    `low` and `high` hold together for all pairs. `pvalue` is that of no difference.
    """

    value: float
    low: float
    high: float
    standard_error: float
    pvalue: float

    @classmethod
    def of(cls, estimate: Estimate, level: float, together: Together | None = None) -> Difference:
        """Return an estimated difference, alone or as one of several."""
        p = estimate.pvalue()
        if together is not None:
            level, p = together.level(level), together.pvalue(p)
        return cls(*estimate.interval(level), estimate.error, p)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval."""
        return self.low, self.high

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name; NaN as None."""
        return numbers_of(self, *vars(self))

    def __str__(self) -> str:
        return f"{self.value:+z.3f} ({self.low:+z.3f} to {self.high:+z.3f}), p {self.pvalue:.2g}"


@dataclass(frozen=True, eq=False)
class Estimates(Drawn, Result):
    """Estimates over all items, and for each value of a column.

    Attributes
    ----------
    estimates : dict of str to MeanEstimate
        Of ``"A"``, ``"tie"``, ``"B"`` (shares of labels), ``"net win rate"`` (A minus B) and
        ``"win rate"`` (ties as half). Of grades ``"mean grade"``, and ``"share >= 4"`` for each but
        the lowest; of two grades ``"pass rate"``, the share of the upper one.
    by : dict of value to dict of str to MeanEstimate
        The same for the items with each value of `by`.
    n_items, n_labels, n_groups : int
        All items; those with a label; their groups.
    level : float
        Confidence level of the intervals.
    remarks : tuple of Remark
    main : str
        The quantity that forecasts are of where none is named: the net win rate, or mean grade.
    population : "new" or "finite"
        Whether intervals are for new items, or of these.
    sides : Sides
        Names of A and B.
    column : str
        Name of the column of `by`.
    """

    estimates: dict[str, MeanEstimate]
    by: dict[Any, dict[str, MeanEstimate]]
    n_items: int
    n_labels: int
    n_groups: int
    level: float
    remarks: tuple[Remark, ...]
    main: str
    population: Population
    _whole: Domain = field(repr=False)
    _parts: Mapping[Any, Domain] = field(repr=False)
    _items: PredictedItems = field(repr=False)
    _inside: Mapping[Any, NDArray[np.bool_]] = field(repr=False)
    _of_means: tuple[Remark, ...] = field(repr=False)
    sides: Sides = UNNAMED
    column: str = "value"

    @cached_property
    def differences(self) -> dict[tuple[Any, Any], dict[str, Difference]]:
        """Differences of every two values of `by`: the first less the second.

        Intervals hold together for all pairs of values, and p-values allow for their number (see
        `btdagg.inference.estimate.Together`). Shared groups pair values. Values without two
        labelled groups have none.
        """
        parts = {value: part for value, part in self._parts.items() if _has_interval(part)}
        return _differences(parts, [*combinations(parts, 2)], self.level)

    def difference(self, first: Any, second: Any) -> dict[str, Difference]:
        """Return the differences of two values of `by` that were chosen before seeing the data.

        There is no correction for other pairs. Of pairs the two can be the sides, whose difference
        is the net win rate of the first.
        """
        parts = self.domains(first, second)
        return _differences(parts, [(first, second)], self.level)[first, second]

    @property
    def other_population(self) -> Estimates | None:
        """The same for these items where this is for new ones, and the other way round.

        `None` where at most a tenth of the items has a label, or where it is not known whether
        items or groups were drawn.
        """
        other = self._items.other
        if other is None:
            return None
        estimates = _estimates_of(other, self._inside, self.level)
        return replace(estimates, sides=self.sides, column=self.column)

    @property
    def of_population(self) -> str:
        """The population of the estimates, in words."""
        return self._items.of_population

    @property
    def remarks_on_differences(self) -> tuple[Remark, ...]:
        """Remarks without those that are about the means of all items alone."""
        return tuple(text for text in self.remarks if text not in self._of_means)

    def labels_for(
        self, width: float, quantity: str | None = None, between: tuple[Any, Any] | None = None
    ) -> int | None:
        """How many labels, the present ones included, would make an interval so wide.

        `None` if labelling every item would not be enough. `width` is from the low to the high end.
        With `between`, two values of `by`, it is the interval of their `difference`, and labels are
        those of both, in the present proportion. Judges and weights are taken to stay as they are.
        """
        estimate = self.compared(quantity, between)
        most = estimate.ends[1] - estimate.ends[0]
        width = as_number(width, "width", above=0, below=most)
        return self._fewest(estimate, lambda low, high: high - low <= width)

    def labels_to_tell(
        self, bound: float, quantity: str | None = None, between: tuple[Any, Any] | None = None
    ) -> int | None:
        """How many labels would tell on which side of a bound a quantity, or a difference, is.

        They leave the bound outside the interval, if the estimate stays. `None` if labelling every
        item would not be enough.
        """
        bound, estimate = as_number(bound, "bound"), self.compared(quantity, between)
        return self._fewest(estimate, lambda low, high: (low > bound) | (high < bound))

    def width_with(
        self,
        n_labels: int,
        quantity: str | None = None,
        between: tuple[Any, Any] | None = None,
    ) -> float:
        """How wide the interval would be with so many labels, at most those of all items."""
        estimate = self.compared(quantity, between)
        n_labels = as_integer(n_labels, "n_labels", 2, estimate.n_items)
        low, high = estimate.with_labels(np.array([n_labels])).limits(self._quantile_of(estimate))
        return float(high[0] - low[0])

    def _fewest(self, estimate: Estimate, enough: Callable[..., Any]) -> int | None:
        numbers = np.arange(2, estimate.n_items + 1)
        does = enough(*estimate.with_labels(numbers).limits(self._quantile_of(estimate)))
        return int(numbers[does.argmax()]) if does.any() else None

    def _quantile_of(self, estimate: Estimate) -> float:
        return t_quantile(self.level, estimate.freedom)

    def compared(self, quantity: str | None, between: tuple[Any, Any] | None) -> Estimate:
        """Return a mean over all items, or the difference of those of two values of `by`."""
        parts = {None: self._whole} if between is None else self.domains(*between)
        name = self.main if quantity is None else quantity
        for part in parts.values():
            one_of(name, part, "quantity")
        first, *others = (part[name] for part in parts.values())
        return first - others[0] if others else first

    @property
    def comparable(self) -> Mapping[Any, Domain]:
        """The values of `by`, or else the two sides of pairs, with what their means are made of."""
        if self._parts or self.main != NET:
            return self._parts
        a, b = self.sides
        return {a: {NET: self._whole[NET]}, b: {NET: Estimate.known(0.0)}}

    def domains(self, *values: Any) -> dict[Any, Domain]:
        """Return the means of two or more values of `by`, or of the two sides of pairs."""
        parts = self.comparable
        if not 1 < len(set(values)) == len(values) or not parts.keys() >= set(values):
            names = ", ".join(map(str, parts))
            expected = f"two of {names}" if names else "None without argument 'by'"
            raise InputError(argument="between", got=values, expected=expected)
        for value in values:
            if not _has_interval(parts[value]):
                n = parts[value][self.main].n_groups
                raise too_few(value, n, grouped=self.n_groups < self.n_labels)
        return {value: parts[value] for value in values}

    @property
    def headline(self) -> str:
        """Quantity of the answer: the win rate, pass rate or mean grade."""
        names = ("win rate", "pass rate", self.main)
        return next(name for name in names if name in self.estimates)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value that `main` can have."""
        return self._whole[self.main].ends

    def sentence(self) -> str:
        """Return how often A wins, or what the mean grade is, and how many labels would tell."""
        return f"{self._answer()}. {self._next_step()}"

    def _answer(self) -> str:
        name, is_finite = self.headline, self.population == "finite"
        of, n_items = self.estimates[name], counted(self.n_items, "item")
        items = f"of these {n_items}" if is_finite else "of new items like these"
        items += f", by {counted(self.n_labels, 'label')}"
        if of.weight > 0 and self.n_labels < self.n_items:
            items += " and the votes" if is_finite else f" and the votes of {n_items}"
        elif self.n_labels < self.n_items and len(self._items.rows) > 1:
            items += " alone, since the votes do not make it narrower"
        if name != "win rate":
            return f"{name} {items}: {of}"
        _, tie, *_ = self.estimates.values()  # shares of both sides, and of ties between them
        rate, ties = (
            f"{percent(of.value)} ({level}{percent(of.low)} to {percent(of.high)})"
            for level, of in ((f"{100 * self.level:.3g}% interval ", of), ("", tie))
        )
        return f"{self.sides.a} wins {rate}, ties counted as half, {items}; ties {ties}"

    def _next_step(self) -> str:
        name, (a, b) = self.headline, self.sides
        of = self.estimates[name]
        if name != "win rate":
            what = "halve this interval"
            width = of.high - of.low
            n_labels = self.labels_for(width / 2, name) if width > 0 else None
        elif not of.low <= 0.5 <= of.high:
            better, other = (a, b) if of.low > 0.5 else (b, a)
            return f"{better} is better than {other}: the interval excludes 50%"
        else:
            what = f"show whether {a} or {b} is better, if the share stays the same"
            n_labels = self.labels_to_tell(0.5, name)
        if n_labels is None and self.n_labels == self.n_items:
            return f"Every item has a label: only more items would {what}"
        if n_labels is None:
            return f"Labels of all {self.n_items:,} items would not {what}: get more items"
        more = max(n_labels - self.n_labels, 1)
        n_labels = max(n_labels, self.n_labels + 1)
        text = f"About {n_labels:,} labels, {more:,} more, would {what}"
        instead = "btdagg gate --sequential FILE --margin 0"
        return f"{text}. {of_every_look(self.level, instead)}" if name == "win rate" else text

    def values(self) -> dict[str, Any]:
        """Return all that is estimated, with the names of the sides, and the differences."""
        values = super().values()
        del values["sides"]
        if "win rate" in self.estimates:
            values |= self.sides._asdict()
        pairs = [(pair, *of) for pair, by in self.differences.items() for of in by.items()]
        values["differences"] = [
            {"first": str(a), "second": str(b), "quantity": name, **difference.as_dict()}
            for (a, b), name, difference in pairs
        ]
        return values

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        main = self.headline
        return f"How often {self.sides.a} wins" if main == "win rate" else f"What the {main} is"

    def table(self) -> ResultTable:
        """Return the estimates."""
        estimates, column = self.estimates, self.column
        if self.by:
            parts = {"all items": estimates, **{str(value): of for value, of in self.by.items()}}
            labels, rows = (column,), [self._row_of_part(*part) for part in parts.items()]
        else:
            named = self.sides.named
            labels = ("of",)
            rows = [_row_of(named(name), name, mean) for name, mean in estimates.items()]
        is_of_pairs = "win rate" in estimates
        title = "Shares of labels and win rates" if is_of_pairs else "Mean grade and shares"
        return ResultTable.of_rows("estimates", title, self._note(), labels, rows)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the estimates, and the differences of the main quantity between values of `by`."""
        column, table = self.column, self.table()
        if not self.differences:
            return (table,)
        note = (
            f"For every two values of {column}. The {100 * self.level:.3g}% intervals are "
            "simultaneous, and p allows for the number of pairs (max-T, by multipliers)."
        )
        of_pairs = [
            Row(
                (str(first), str(second)),
                {
                    "difference": Entry(fixed(main.value, signed=True), True),
                    "interval": " to ".join(fixed(end, signed=True) for end in main.ends),
                    "p": MISSING if np.isnan(main.pvalue) else pvalue(main.pvalue),
                },
                [{self._key: first, f"less_{self._key}": second, **main.as_dict()}],
            )
            for (first, second), by_quantity in self.differences.items()
            for main in [by_quantity[self.main]]
        ]
        title = f"Differences of {self.main}s by {column}"
        less = ResultTable.of_rows("differences", title, note, (column, "less"), of_pairs)
        return (table, less)

    @property
    def _key(self) -> str:
        # A column of that name would be overwritten by the number.
        numbers = {"quantity", *next(iter(self.estimates.values())).as_dict(), "pvalue"}
        return "by" if self.column in numbers else self.column

    def _row_of_part(self, value: str, estimates: Mapping[str, MeanEstimate]) -> Row:
        # The win rate is half of one more than the net win rate.
        shown = {name: of for name, of in estimates.items() if name != "win rate"}
        cells: dict[str, str | Entry] = {
            self.sides.named(name): f"{fixed(of.value)} ({_ends_of(of)})"
            for name, of in shown.items()
        }
        cells["worth in labels"] = _worth(estimates[self.main])
        records = [
            {self._key: value, "quantity": name, **of.as_dict()} for name, of in shown.items()
        ]
        return Row((value,), cells, records)

    def _note(self) -> str:
        grouped = self.n_groups != self.n_labels
        groups = f" in {counted(self.n_groups, 'group')}" if grouped else ""
        of_main = f" (of the {self.main})" if self.by else ""
        what, (a, b) = "", self.sides
        if "win rate" in self.estimates:
            what = f" Net win rate: {a} minus {b}; win rate: ties count as half."
        of = "of these items" if self.population == "finite" else "for new items of the same kind"
        return (
            f"{counted(self.n_items, 'item')}, {self.n_labels:,} of them with a label{groups}. "
            f"{100 * self.level:.3g}% intervals {of}, valid whatever the judge is worth.{what} "
            "Worth in labels: number of labels that would give as narrow an interval without "
            f"votes{of_main}."
        )

    def figure(self) -> IntervalFigure:
        """Return shares and win rates with and without the judge, or the main one by values."""
        named, a, b = self.sides.named, *self.sides
        title, label, sides, unit = "Shares of all items", "share", None, 100
        # The win rate says what the net win rate says, on the scale of the shares.
        rows = {named(name): of for name, of in self.estimates.items() if name != self.main}
        wins = "win rate" in rows
        if wins:
            title, label = f"Shares of items on which {a} or {b} is better", "share or win rate"
            rows[f"win rate of {a}"] = rows.pop("win rate")
        if self.by:
            label = self.main
            sides, unit = ((f"{b} wins more", f"{a} wins more"), 100) if wins else (None, 1)
            rows = {"all items": self.estimates[label]}
            rows |= {str(value): part[label] for value, part in self.by.items()}
            title = f"{label.capitalize()} by {self.column}"
        ends = None if unit == 100 else self.ends
        return means_figure("estimates", title, rows, label, self.level, sides, unit, ends)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each quantity over all items, `by` empty, and for each value of `by`."""
        parts = [("", self.estimates), *((str(value), part) for value, part in self.by.items())]
        rows = [
            {"by": value, "quantity": name, **mean.as_dict()}
            for value, part in parts
            for name, mean in part.items()
        ]
        return as_frame(rows)


def estimate(
    counts: Any,
    labels: Any = None,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    by: ArrayLike | None = None,
    population: Population = "new",
    units: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    covariates: Any = None,
    model: Predictor | None = None,
    prior: Any = "weak",
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    """Estimate shares of labels and win rates, or grades, of all items, most without a label.

    The mean of a judge's labels is off by the judge's bias, which no number of votes shows. Here
    labels measure that bias: the interval holds whatever the judge is worth, and a good judge makes
    it narrow.

    Parameters
    ----------
    counts : (N, 3) array of non-negative numbers
        Votes of all items in label order: minus, tie, plus; of a panel (N, judges, 3). Or votes, as
        `btdagg.read_votes` returns them, or `btdagg.votes.Items`, which hold labels and columns
        too.
    labels : (N,) array of -1, 0, 1, or NaN or None where there is none
        Labels of items chosen by chance; of several raters (N, 3) shares of them for B, tie and A.
        With votes, labels as `btdagg.read_labels` returns them; several raters count as their mean.
    scale, label_scale : Scale, optional
        Scale of the votes, by default pairs, and of the labels if it differs: `counts` are then
        (N, J) votes for each point, `labels` (N,) points or (N, K) shares of raters.
    groups : (N,) array, optional
        Group of each item, such as its prompt. Variances are between groups.
    probabilities : (N,) array of numbers above 0 and at most 1, optional
        Probability with which each item was chosen to be labelled; without them all were equally
        likely. May be NaN for items without a label. If n of G groups were drawn and one item of
        each labelled, it is n / G divided by the size of the group.
    by : (N,) array, optional
        A column, such as the task: also estimate for each of its values. Of votes its name.
    population : "new" or "finite"
        Population of the interval: new items of the same kind, or these items alone; if all of
        these have a label, nothing is left to estimate, and the interval has no width.
    units : (N,) array, optional
        Drawn units, needed with `groups` and a finite population: pass the groups
        again if groups were drawn, or a different number for each item if items were;
        `btdagg.estimates.choose` returns units, and labels may have a column `unit`.
    strata : (N,) array, optional
        With `probabilities`, for a finite population: the stratum of each item, if a fixed number
        of units was drawn from each. Without strata, units count as drawn independently.
    covariates : optional
        As in `btdagg.votes.Items.with_covariates`. They make intervals narrower where they help to
        tell labels, and are used for nothing else.
    model : DavidsonModel, PanelModel, GradeModel or other with `predict_proba`, optional
        Calibrated on other labels; of a panel, the column `judge` of votes says whose they are. By
        default models are calibrated on these, and predict items of groups that they did not see.
    prior : optional
        Prior of the calibration, as in `btdagg.calibrate`; unused with `model` or a panel.
    level, seed : float and int
        Confidence level of the intervals, and seed of the folds.

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, or fewer than two items or groups have a label.

    Notes
    -----
    Prediction-powered inference with a tuned weight of the judge's probabilities
    (`btdagg.inference.label_means.corrected_by`); of pairs A and B are made of the net win rate
    and of ties, so that shares add up to 1. Intervals (`btdagg.inference.estimate.Estimate`) are
    Wilson's on the effective number of labels, with Student's t and one degree of freedom less than
    labelled groups (fewer, if their sizes differ). Of a finite population the error is that of the
    items without a label, for which labelled ones stand (`btdagg.inference.sample.LabelledSample`).
    Where probabilities differ, the variance is at least that of residuals which do not depend on
    them. With a fixed `model`, at least 50 labels, no `groups` and no `probabilities`, the net win
    rate, the share of ties, a mean grade and shares of grades are those of PPI++ as published,
    normal and symmetric, unless the interval leaves the possible range.

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
    """
    level = as_level(level)
    how: Any = {"groups": groups, "probabilities": probabilities, "units": units, "strata": strata}
    how |= {"scale": scale, "label_scale": label_scale, "by": by, "model": model}
    items = items_of(counts, labels, **how)
    if covariates is not None:
        items = items.with_covariates(covariates, is_table=not isinstance(counts, Items))
    columns, inside = [], {}
    if "by" in items.facts:
        names, numbers = _values_of(items.facts["by"], len(items))
        columns, inside = [numbers], {name: numbers == place for place, name in enumerate(names)}
    how = {"model": model, "prior": prior, "seed": seed, "population": population}
    predicted = PredictedItems.of(items, *columns, by_size=True, **how)
    origin, estimates = items.origin, _estimates_of(predicted, inside, level)
    estimates = replace(estimates, sides=origin.sides, column=origin.by or "value")
    return estimates.with_remarks(origin.remarks)


def _estimates_of(
    items: PredictedItems, inside: Mapping[Any, NDArray[np.bool_]], level: float
) -> Estimates:
    whole = items.domain()
    parts = {name: items.domain(mask) for name, mask in inside.items()}
    estimates, *by = (
        {quantity: MeanEstimate.of(mean, level) for quantity, mean in domain.items()}
        for domain in (whole, *parts.values())
    )
    of_means = [*_of_other_population(items, level), *_of_sums(whole, [*parts.values()], items)]
    main = whole[items.main]
    return Estimates(
        estimates,
        dict(zip(parts, by, strict=True)),
        main.n_items,
        main.n_labels,
        main.n_groups,
        level,
        (*items.remarks, *_remarks(whole, main, items), *of_means),
        items.main,
        items.population,
        whole,
        parts,
        items,
        inside,
        tuple(of_means),
    )


_MOST_ROWS = 60  # of a figure of means


def means_figure(
    name: str,
    title: str,
    rows: Mapping[str, MeanEstimate],
    label: str,
    level: float,
    sides: tuple[str, str] | None = None,
    unit: int = 100,
    ends: tuple[float, float] | None = None,
) -> IntervalFigure:
    """Return a figure of means with the judge's votes, and from labels alone, by row."""
    note = f"{100 * level:.3g}% intervals for new items: with the judge's votes, and from labels"
    note += " alone."
    if any(row.startswith("win rate") for row in (label, *rows)):
        note += " Dashed: no difference."
    if len(rows) > _MOST_ROWS:
        note += f" Shown are the first {_MOST_ROWS} of {len(rows)}."
    series = ("with the judge", "labels alone")
    points = {
        row: {
            name: None if of is None else Interval(of.value, of.low, of.high)
            for name, of in zip(series, (estimate, estimate.labels_only), strict=True)
        }
        for row, estimate in islice(rows.items(), _MOST_ROWS)
    }
    label = f"{label} in percent" if unit == 100 else label
    return IntervalFigure(name, title, note, points, series, label, sides, unit, ends)


def _row_of(label: str, quantity: str, estimate: MeanEstimate) -> Row:
    alone = estimate.labels_only
    cells: dict[str, str | Entry] = {
        "estimate": Entry(fixed(estimate.value), True),
        "interval": _ends_of(estimate),
    }
    if alone is not None:
        cells |= {"labels alone": fixed(alone.value), "their interval": _ends_of(alone)}
    cells["worth in labels"] = _worth(estimate)
    return Row((label,), cells, [{"quantity": quantity, **estimate.as_dict()}])


def _ends_of(estimate: MeanEstimate) -> str:
    return f"{fixed(estimate.low)} to {fixed(estimate.high)}"


def _worth(estimate: MeanEstimate) -> str:
    labels = estimate.effective_labels
    return MISSING if np.isnan(labels) else f"{labels:,.0f}"


def _remarks(whole: Domain, main: Estimate, items: PredictedItems) -> list[Remark]:
    about = []
    n = main.n_items - main.n_labels
    still = [name for name, mean in whole.items() if mean.variance == 0]
    if still and n:
        about.append(remarks.no_variation(still))
    if not len(items.stand_ins()):
        about.append(remarks.few_unlabelled(n))
    return about


def _of_other_population(items: PredictedItems, level: float) -> list[Remark]:
    if (other := items.other) is None:
        return []
    means = other.domain()
    name = "win rate" if "win rate" in means else items.main
    of_other = MeanEstimate.of(means[name], level)
    return [remarks.other_population(name, other.of_population, str(of_other))]


def _of_sums(whole: Domain, parts: list[Domain], items: PredictedItems) -> list[Remark]:
    means = [part[items.main] for part in parts]
    sizes = [part.n_items for part in means]
    if sum(sizes) != len(items.place) or not all(map(_has_interval, parts)):
        return []
    mean = whole[items.main].value
    of_parts = float(np.average([part.value for part in means], weights=sizes))
    if f"{mean:.3f}" == f"{of_parts:.3f}":
        return []
    return [remarks.sum_of_parts(items.main, mean, of_parts)]


def _values_of(by: ArrayLike, n_items: int) -> tuple[list[Any], NDArray[np.int64]]:
    values = as_names(by, "by")
    numbers = as_groups(values, "counts", n_items, "by")
    names = np.empty(int(numbers.max()) + 1, dtype=values.dtype)
    names[numbers] = values
    return names.tolist(), numbers


def _has_interval(part: Domain) -> bool:
    return all(mean.has_spread for mean in part.values())


def _differences(
    parts: Mapping[Any, Domain], pairs: list[tuple[Any, Any]], level: float
) -> dict[tuple[Any, Any], dict[str, Difference]]:
    differences: dict[tuple[Any, Any], dict[str, Difference]] = {pair: {} for pair in pairs}
    for quantity in parts[pairs[0][0]] if pairs else ():
        less = {
            (first, second): parts[first][quantity] - parts[second][quantity]
            for first, second in pairs
        }
        together = Together([*less.values()])
        for pair, difference in less.items():
            differences[pair][quantity] = Difference.of(difference, level, together)
    return differences
