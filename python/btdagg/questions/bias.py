"""A judge's bias: what its votes follow more, or less, than people's labels do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.display import Drawn
from btdagg._util.errors import expect, forbid
from btdagg._util.readable import Readable
from btdagg._util.validation import as_groups, finite_counts
from btdagg._util.wording import pvalue
from btdagg.inference.estimate import Estimate, numbers_of
from btdagg.inference.intervals import t_quantile
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.population import PredictedItems, items_of
from btdagg.inference.quantities import require_same_points, vote_shares
from btdagg.inference.regression import Regression
from btdagg.inference.sample import LabelledSample
from btdagg.model.intervals import as_level
from btdagg.remarks import Remark
from btdagg.result import (
    Curve,
    CurveFigure,
    Entry,
    Interval,
    IntervalFigure,
    Panel,
    Result,
    ResultTable,
    Row,
)
from btdagg.votes.items import Items
from btdagg.votes.standings import known_by_itself

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

TWICE = "twice as long"
_DOUBLING = math.log(2)
FAVOURED = "What the judge favours"
"""Heading of the section in a report."""

_WHO = ("people", "judge")
_N_POINTS = 33  # of a line that is drawn
_ROUNDING = 1e-9
_FEW = 4.0  # degrees of freedom of a slope


class Slope(NamedTuple):
    """A number in win rates or points; its ends are NaN if items do not differ in it."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, estimate: Estimate, level: float) -> Slope:
        """Return an estimate with its interval."""
        value, low, high = estimate.interval(level)
        return cls(value, low, high) if estimate.variance > 0 else cls(value, np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Bias(Readable):
    """Effect of a covariate or system on a judge's votes and on people's labels.

    Attributes
    ----------
    of : str
        The covariate or system.
    step : str
        Unit of the slopes, such as a response ``"twice as long"``; empty for a system.
    step_size : float
        By how much the covariate is higher there; NaN of a system.
    people, judge, difference : Slope
        Of a covariate the slopes of labels and of mean votes, and the judge's less people's. Of a
        system the win rate, or mean grade, by either.
    pvalue : float
        P-value of no difference; as the intervals, corrected for several covariates or systems.
    n_labels : int
    finding : {"favours", "disfavours", "more strongly", "less strongly", "not told"}
        ``"more strongly"``, ``"less strongly"``: the judge follows what people follow, but more or
        less, as one does that is merely more or less decisive. ``"favours"``: it gives more, and
        people do not significantly follow it; if they lean as the judge does, it gives more than
        their interval allows to one that is as decisive as this judge.
    lines : dict of str to (k, 4) array
        Of ``"people"`` and ``"judge"``: the covariate, the expected label, and its interval's ends.
    """

    of: str
    step: str
    step_size: float
    people: Slope
    judge: Slope
    difference: Slope
    pvalue: float
    n_labels: int
    finding: str
    lines: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers by name; NaN as None."""
        fields = {"of": self.of, "step": self.step, **numbers_of(self, "step_size")}
        for name in ("people", "judge", "difference"):
            numbers = numbers_of(getattr(self, name), "value", "low", "high")
            fields |= {f"{name}_{end}": number for end, number in numbers.items()}
        more = {"n_labels": self.n_labels, "finding": self.finding}
        return fields | numbers_of(self, "pvalue") | more


@dataclass(frozen=True, eq=False)
class JudgeBias(Drawn, Result):
    """Covariates and systems that a judge follows more, or less, than people do.

    Attributes
    ----------
    covariates, systems : tuple of Bias
    n_items, n_labels, n_groups : int
        All items; those with a label and a vote; their groups.
    unit : {"win", "pass", "point"}
        Unit of the numbers: wins, passes where the scale is 0 and 1, or points of the scale.
    level : float
        Simultaneous confidence level, of all covariates and of all systems.
    remarks : tuple of Remark
    """

    covariates: tuple[Bias, ...]
    systems: tuple[Bias, ...]
    n_items: int
    n_labels: int
    n_groups: int
    unit: str
    level: float
    remarks: tuple[Remark, ...]

    def sentence(self) -> str:
        """Return the judge's biases."""
        texts = [self._of_covariate(bias) for bias in self.covariates]
        beginnings = {
            "favours": f"more {self.units} than people give",
            "disfavours": f"fewer {self.units} than people give",
            "more strongly": f"{self.units} further from the middle than people give, as any more "
            "decisive judge would",
            "less strongly": f"{self.units} nearer to the middle, as any less decisive judge would "
            "be",
        }
        for finding, beginning in beginnings.items():
            systems = [bias for bias in self.systems if bias.finding == finding]
            listed = "; ".join(f"{bias.of} {self._size(bias)}" for bias in systems)
            texts += [f"{beginning}: {listed}"] if systems else []
        if n_alike := sum(bias.finding == "not told" for bias in self.systems):
            which = "" if n_alike == len(self.systems) else "other "
            s = "s" * (n_alike > 1)
            texts.append(
                f"on {n_alike} {which}system{s} the judge does not differ significantly from people"
            )
        return ". ".join(text[0].upper() + text[1:] for text in texts)

    @property
    def units(self) -> str:
        """Unit of the numbers in texts."""
        return {"win": "wins of 100", "pass": "passes of 100", "point": "points"}[self.unit]

    def _of_covariate(self, bias: Bias) -> str:
        given = (self.said(slope, signed=True) for slope in (bias.people, bias.judge))
        difference, size = self.said(bias.difference, signed=True), self._size(bias)
        found = {
            "favours": f"the judge favours {bias.of} by {size}",
            "disfavours": f"the judge disfavours {bias.of} by {size}",
            "more strongly": f"{bias.of} sways the judge more than people, by {size}",
            "less strongly": f"{bias.of} sways the judge less than people, by {size}",
            "not told": f"the difference, {difference}, is not significant",
        }
        people, judge = given
        return (
            f"a response {bias.step} gains {people} {self.units} with people and {judge} with the "
            f"judge: {found[bias.finding]}"
        )

    def _size(self, bias: Bias) -> str:
        slope = bias.difference
        return self.said(slope if slope.value > 0 else Slope(-slope.value, -slope.high, -slope.low))

    def said(self, slope: Slope, *, signed: bool = False) -> str:
        """Write a number with its interval, in hundredths of a win or pass, or in points."""
        times, digits = (1, 2) if self.unit == "point" else (100, 1)
        value, low, high = (f"{times * end:{'+' * signed}.{digits}f}" for end in slope)
        return f"{value} (no interval)" if math.isnan(slope.low) else f"{value} ({low} to {high})"

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        return FAVOURED

    def table(self) -> ResultTable:
        """Return what people and the judge give for covariates and systems."""
        rows = []
        for bias in (*self.covariates, *self.systems):
            step = f"a response {bias.step}" if bias.step else bias.of
            numbers = {name: getattr(bias, name) for name in ("people", "judge", "difference")}
            cells: dict[str, str | Entry] = {
                name: self.said(slope, signed=bool(bias.step) or name == "difference")
                for name, slope in numbers.items()
            }
            cells["difference"] = Entry(str(cells["difference"]), bias.finding != "not told")
            cells |= {"p": pvalue(bias.pvalue), "finding": bias.finding}
            rows.append(Row((step,), cells, [bias.as_dict()]))
        together = " together" if max(len(self.covariates), len(self.systems)) > 1 else ""
        note = (
            f"In {self.units}: for a covariate the slope, for a system the score of its responses, "
            f"on {self.n_labels:,} labelled items. {100 * self.level:.3g}% intervals{together}; "
            "bold: the interval of the difference excludes 0. More or less strongly: the same "
            "direction as people, as with any judge that is merely more or less decisive."
        )
        return ResultTable.of_rows("bias", "The judge compared with people", note, ("of",), rows)

    def figure(self) -> IntervalFigure | CurveFigure:
        """Return lines of people and the judge over each covariate; without any, the systems."""
        level, unit = f"{100 * self.level:.3g}%", 1 if self.unit == "point" else 100
        label = {"win": "wins in percent", "pass": "passes in percent", "point": "points"}[
            self.unit
        ]
        if not self.covariates:
            points = {
                bias.of: {who: Interval(*getattr(bias, who)) for who in _WHO}
                for bias in self.systems
            }
            title = "Scores of systems by people and by the judge"
            note = f"Scores of each system by people and by the judge, with {level} intervals."
            return IntervalFigure("bias", title, note, points, _WHO, label, None, unit)
        note = f"Least-squares lines with {level} bands, at fixed values of the other covariates."
        panels = tuple(_panel(bias, unit, label) for bias in self.covariates)
        limits = None if unit == 1 else (0.0, 100.0)  # bands of a line go on, shares do not
        return CurveFigure("bias", "Slopes of people and of the judge", note, panels, limits)


def _panel(bias: Bias, unit: int, label: str) -> Panel:
    curves = {}
    for who in _WHO:
        x, middle, low, high = bias.lines[who].T
        curves[who] = Curve(x, unit * middle, unit * low, unit * high)
    x_label, in_logs = bias.of, bias.step == TWICE
    if in_logs:
        x_label = "times as long" if x[0] < 0 else "characters"
    return Panel(curves, x_label, label, x_line=0.0 if x[0] < 0 < x[-1] else None, in_logs=in_logs)


def bias(
    counts: Any,
    labels: Any = None,
    *,
    covariates: Any = "auto",
    system_a: ArrayLike | None = None,
    system_b: ArrayLike | None = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    level: float = 0.95,
) -> JudgeBias:
    """Say what a judge favours: what its votes follow more, or less, than people's labels do.

    Parameters
    ----------
    counts, labels, scale, label_scale, groups, probabilities
        As `btdagg.estimate` takes them: items, tables, or arrays. Votes and labels are on one
        scale. Items without a label serve systems alone.
    covariates : "auto", str, sequence of str, mapping, data frame or (n, d) array
        ``"auto"`` is the length, where items have it; other names are columns of numbers (of pairs
        a difference, A less B). Standings are made of the judge's own votes, and are refused.
    system_a, system_b : (n,) arrays, optional
        Systems that wrote A and B; for grades `system_a` alone. Items and tables have their own.
    level : float
        Confidence level of the intervals.

    Raises
    ------
    InputError
        As `btdagg.estimate` does, and if votes and labels have two scales, nothing is known of
        items, a covariate is constant or collinear with others, or too few groups have labels.

    Notes
    -----
    Labels, mean votes and their differences are regressed on all covariates together (of pairs
    through the origin, slopes halved from net wins to wins), weighted with one over the probability
    of a label. Errors are by the jackknife over groups (Bell and McCaffrey, 2002), with the degrees
    of freedom of as many equal groups as vary. There is no prior. Noisy votes widen the interval of
    a slope and do not move it.

    A system's difference is the prediction-powered mean, as in `btdagg.estimate`, of the label less
    the mean vote. All are corrected for their number by Bonferroni's method.

    Examples
    --------
    >>> counts = [[0, 0, 4], [1, 0, 3], [3, 0, 1], [0, 1, 3], [4, 0, 0], [1, 2, 1]] * 8
    >>> labels = [0, 1, -1, 0, -1, 1, 1, 0] * 6
    >>> longer = {"length": [0.7, 0.2, -0.4, 0.9, -0.8, 0.1] * 8}
    >>> bias(counts, labels, covariates=longer).covariates[0].finding
    'favours'
    """
    level = as_level(level)
    how: dict[str, Any] = {"groups": groups, "probabilities": probabilities}
    how |= {"scale": scale, "label_scale": label_scale}
    items, is_table = _items(counts, labels, system_a, system_b, how), not isinstance(counts, Items)
    require_same_points(items, "so that slopes can be compared")
    known: Mapping[str, Floats] = {}
    if covariates is not None:
        known = known_by_itself(items, covariates, is_table=is_table).covariates
    with_systems = _systems(items)
    expected = "a length, a column of numbers or the systems of each response"
    expect(known or with_systems is not None, "covariates", "nothing", expected)
    has_votes = finite_counts(items.pooled).sum(axis=1) > 0
    items = items.known_by({})[has_votes]
    known = {name: values[has_votes] for name, values in known.items()}
    remarks = list(items.origin.remarks)
    sample = _Labelled.of(items)
    found = _of_covariates(sample, known, level, remarks) if known else ()
    by = () if with_systems is None else _of_systems(items, with_systems[has_votes], level, remarks)
    n_groups = len(np.unique(sample.groups))
    numbers = len(has_votes), len(sample.rows), n_groups
    return JudgeBias(
        found, by, *numbers, items.scale.measure.unit, level, tuple(dict.fromkeys(remarks))
    )


def _items(counts: Any, labels: Any, system_a: Any, system_b: Any, how: dict[str, Any]) -> Items:
    by = None if system_b is not None else system_a
    systems = None if system_b is None else np.column_stack([system_a, system_b])
    items = items_of(counts, labels, by=by, **how)
    if systems is None:
        return items
    return items.with_facts(dict(zip(items.scale.systems, systems.T, strict=False)))


def _systems(items: Items) -> NDArray[Any] | None:
    if items.scale.mirrored or "by" not in items.facts:
        return items.systems
    return np.asarray(items.facts["by"])[:, None]


class _Labelled(NamedTuple):
    """Labels and mean votes of the labelled items, in wins or points, (n,) each."""

    rows: NDArray[np.int64]
    labels: Floats
    votes: Floats
    groups: NDArray[np.int64]
    weights: Floats
    mirrored: bool

    @classmethod
    def of(cls, items: Items) -> _Labelled:
        rows = np.flatnonzero(items.is_labelled)
        labels, votes = items.labels[rows], vote_shares(items)[rows]
        points, groups = items.scale.measure.worth, rows
        if items.group is not None:
            groups = as_groups(items.group, "counts", len(items))[rows]
        weights = np.ones(len(rows))
        if items.sampling.probabilities is not None:
            weights = 1 / items.sampling.probabilities[rows]
        mirrored = items.scale.mirrored
        return cls(rows, labels @ points, votes @ points, groups, weights, mirrored)


def _of_covariates(
    sample: _Labelled, known: Mapping[str, Floats], level: float, about: list[Remark]
) -> tuple[Bias, ...]:
    columns = np.column_stack([values[sample.rows] for values in known.values()])
    kept = ~np.isnan(columns).any(axis=1)
    if not kept.all():
        about.append(remarks.unknown_covariate(int((~kept).sum()), [*known]))
    columns, d = columns[kept], len(known)
    n, weights = len(columns), np.sqrt(sample.weights[kept] / sample.weights[kept].mean())
    centre, constant = np.zeros(d), np.ones((n, int(not sample.mirrored)))
    if constant.size:
        centre = np.average(columns, axis=0, weights=weights**2)
    spread = np.sqrt(np.mean((columns - centre) ** 2, axis=0)) if n else np.zeros(d)
    design = np.hstack([(columns - centre) / np.where(spread > 0, spread, 1), constant])
    _, groups = np.unique(sample.groups[kept], return_inverse=True)
    n_groups = int(groups.max(initial=-1)) + 1
    s, of = "s" * (n_groups != 1), "covariate" if d == 1 else f"{d} covariates"
    forbid(
        n_groups < design.shape[1] + 2,
        f"labels of {n_groups} group{s}, expected at least {design.shape[1] + 2} for {of}",
        "labels",
    )
    even = 0.5 * sample.mirrored
    outcomes = np.column_stack(
        [sample.labels - even, sample.votes - even, sample.votes - sample.labels]
    )[kept]
    fit = Regression.of(design * weights[:, None], outcomes * weights[:, None], groups)
    for place, name in enumerate(known):
        expected = (
            "a column that varies among labelled items and is not a linear combination of the "
            "others"
        )
        expect(place != fit.collinear, "covariates", name, expected)
        expected = "a column that varies among labelled items of at least two groups"
        expect(fit.collinear is not None or fit.freedom[place] > 0, "covariates", name, expected)
    level = 1 - (1 - level) / d
    decisiveness = _decisiveness(sample.votes[kept], sample.labels[kept])
    found = []
    for place, (name, values) in enumerate(zip(known, columns.T, strict=True)):
        if fit.freedom[place] < _FEW:
            about.append(remarks.rare_covariate(name))
        size, step = _step(name, values, float(spread[place]))
        times = size / spread[place]
        estimates = [fit.slope(place, outcome, times) for outcome in range(3)]
        people, judge, difference = (Slope.of(estimate, level) for estimate in estimates)
        quantile = t_quantile(level, fit.freedom[place])
        low, high = np.quantile(values, [0.05, 0.95])
        if sample.mirrored:
            low, high = -max(-low, high), max(-low, high)
        at = np.linspace(low, high, _N_POINTS)
        x = np.zeros((_N_POINTS, design.shape[1]))
        x[:, place] = (at - centre[place]) / spread[place]
        x[:, d:] = 1
        lines = {}
        for which, outcome in enumerate(("people", "judge")):
            line = x @ fit.slopes[:, which] + even
            half = quantile * fit.errors_at(x, which)
            lines[outcome] = np.column_stack([at, line, line - half, line + half])
        pvalue = min(estimates[2].pvalue() * d, 1.0)
        finding = _finding(people, judge, difference, decisiveness)
        fields = name, step, size, people, judge, difference, pvalue, n
        found.append(Bias(*fields, finding, lines))
    return tuple(found)


def _step(name: str, values: Floats, spread: float) -> tuple[float, str]:
    if name == "length":
        return _DOUBLING, TWICE
    if np.isin(values, (-1, 0, 1)).all():
        return 1.0, f"with {name}"
    return spread, f"with {name} higher by {spread:.3g}"


def _decisiveness(votes: Floats, labels: Floats) -> float:
    """How many times as far from their mean the judge's mean votes are as labels, at least 1."""
    return max(float(votes.std() / max(labels.std(), _ROUNDING)), 1.0)


def _finding(
    people: Slope, judge: Slope, difference: Slope, decisiveness: float = 1.0, middle: float = 0.0
) -> str:
    if not (difference.low > 0 or difference.high < 0):
        return "not told"
    side = math.copysign(1.0, people.value - middle)
    is_real = not people.low <= middle <= people.high  # that people follow it
    at_most = side * ((judge.high if side > 0 else judge.low) - middle)
    is_same_side = side * (judge.value - middle) >= 0 or (is_real and at_most >= 0)
    if difference.value * side < 0 and is_same_side:
        return "less strongly"
    # From what a judge would give that follows it as people do, and is as decisive as this one.
    low, high = (middle + decisiveness * (end - middle) for end in (people.low, people.high))
    is_apart = judge.low > high or judge.high < low
    if difference.value * side > 0 and (is_real or not is_apart):
        return "more strongly"
    return "favours" if difference.value > 0 else "disfavours"


def _of_systems(
    items: Items, systems: NDArray[Any], level: float, about: list[Remark]
) -> tuple[Bias, ...]:
    names, codes = np.unique(systems.astype(str), return_inverse=True)
    codes = codes.reshape(systems.shape)
    mirrored, shares = items.scale.mirrored, vote_shares(items)
    predicted = PredictedItems.of(items, *codes.T)
    about += predicted.remarks
    of_rows = shares[np.unique(predicted.place, return_index=True)[1]]
    less = replace(
        predicted,
        outcomes=predicted.outcomes - shares[predicted.labelled],
        tables=predicted.tables - of_rows,
    )
    level = 1 - (1 - level) / len(names)
    quantity, _, points = items.scale.measure
    middle = 0.5 if mirrored else float(predicted.domain()[quantity].value)
    decisiveness = _decisiveness(shares[predicted.labelled] @ points, predicted.outcomes @ points)
    found = []
    for number, name in enumerate(names.tolist()):
        mine = (codes == number).any(axis=1)
        rows, is_turned = np.flatnonzero(mine), codes[:, -1] == number
        if mirrored:
            of_people, of_both = (
                predictions.turned(rows, is_turned).domain()[quantity]
                for predictions in (predicted, less)
            )
        else:
            of_people, of_both = (
                predictions.domain(mine)[quantity] for predictions in (predicted, less)
            )
        if not of_both.has_spread:
            about.append(remarks.one_group_of_system(name))
            continue
        span = points[-1] - points[0]
        gap = of_both.within((-span, span))
        votes = np.where(is_turned[mine, None] & mirrored, shares[mine][:, ::-1], shares[mine])
        judge = _mean_vote(votes @ points, items, mine, level)
        value, low, high = gap.interval(level)
        difference = Slope(-value, -high, -low)
        numbers = Slope(*of_people.interval(level)), judge, difference
        finding = _finding(*numbers, decisiveness, middle)
        pvalue = min(gap.pvalue() * len(names), 1.0)
        found.append(Bias(name, "", np.nan, *numbers, pvalue, of_both.n_labels, finding))
    return tuple(found)


def _mean_vote(votes: Floats, items: Items, mine: NDArray[np.bool_], level: float) -> Slope:
    groups = np.arange(len(votes))
    if items.group is not None:
        _, groups = np.unique(items.group[mine], return_inverse=True)
    sample = LabelledSample.of(np.ones(len(votes)), groups, len(votes), "new", None)
    return Slope.of(labelled_mean(votes, sample, (-np.inf, np.inf)), level)
