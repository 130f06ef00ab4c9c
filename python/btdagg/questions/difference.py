"""Whether two methods, or two versions of a system, differ: losses or scores of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from btdagg import remarks
from btdagg._util.errors import expect
from btdagg._util.validation import (
    as_groups,
    as_losses,
    as_names,
    as_number,
    require_rows,
    same_index,
    same_length,
)
from btdagg._util.wording import counted, fixed
from btdagg._util.wording import pvalue as written_pvalue
from btdagg.inference.estimate import Estimate, jackknifed
from btdagg.inference.intervals import number_to_tell, of_every_look
from btdagg.inference.sign_flips import SignFlips
from btdagg.inference.significance import (
    Correction,
    benjamini_hochberg,
    holm,
    pairwise_pvalues,
    rank_clusters,
)
from btdagg.model.intervals import as_level
from btdagg.remarks import Remark
from btdagg.result import Entry, Interval, IntervalFigure, Result, ResultTable, Row
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

Question: TypeAlias = Literal["two-sided", "less", "greater", "not worse", "equivalent"]

_SEQUENCE = "btdagg.ConfidenceSequence"
_TEST = ("method", "n_resamples", "seed")
_FEW = 10  # units that differ, below which it is said


@dataclass(frozen=True)
class MeanDifference(Result):
    """A difference of two means over items, its interval, and the test that agrees with it.

    Attributes
    ----------
    names : tuple of two str
    means : tuple of two float
    difference : Interval
        Mean of the first less that of the second. With ``"less"``, ``"greater"`` and ``"not
        worse"`` one end is infinite, with ``"equivalent"`` both ends are one-sided bounds.
    pvalue : float
        Of the null that is tested; below ``1 - level`` where the interval leaves it out.
    alternative : str
    margin : float
        Of ``"not worse"`` and ``"equivalent"``; else 0.
    better : "lower" or "higher"
        Which values are better.
    level : float
    effect_size : float
        Cohen's d: the difference in standard deviations of items, the mean square of both; NaN
        where neither varies.
    n_first_better, n_equal, n_second_better : int
        Items by which has the better value; of unpaired values by pairs of items, as shares times
        the smaller number of items.
    n_items : tuple of two int
    n_groups : int
    is_paired : bool
    method : str
        ``"exact"`` or ``"monte carlo"`` permutation test, or ``"Welch"`` of unpaired values.
    remarks : tuple of Remark
    """

    names: tuple[str, str]
    means: tuple[float, float]
    difference: Interval
    pvalue: float
    alternative: Question
    margin: float
    better: Literal["lower", "higher"]
    level: float
    effect_size: float
    n_first_better: int
    n_equal: int
    n_second_better: int
    n_items: tuple[int, int]
    n_groups: int
    is_paired: bool
    method: str
    remarks: tuple[Remark, ...] = ()

    @property
    def is_significant(self) -> bool:
        """Whether the null is ruled out."""
        return self.pvalue <= 1 - self.level

    def sentence(self) -> str:
        """Return whether the difference is real, and how large it may be."""
        mean, low, high = self.difference
        first, second = self.names
        of = f"mean {self.means[0]:.4g} ({first}) against {self.means[1]:.4g} ({second})"
        ends = f"{fixed(low, signed=True)} to {fixed(high, signed=True)}"
        if np.isinf(low) and np.isinf(high):
            ends = "without ends, of so few"
        elif np.isinf(low):
            ends = f"at most {fixed(high, signed=True)}"
        elif np.isinf(high):
            ends = f"at least {fixed(low, signed=True)}"
        n = counted(min(self.n_items), "item")
        groups = f" in {counted(self.n_groups, 'group')}" if self._is_grouped else ""
        level = 2 * self.level - 1 if self.alternative == "equivalent" else self.level
        said = f"{self._verdict()}: {of}, difference {fixed(mean, signed=True)}"
        said += f" ({100 * level:.4g}% interval {ends}), p {_p(self.pvalue)}, {n}{groups}"
        return said + self._further()

    @property
    def _is_grouped(self) -> bool:
        return self.n_groups < (self.n_items[0] if self.is_paired else sum(self.n_items))

    def _verdict(self) -> str:
        (first, second), is_real = self.names, self.is_significant
        is_first = (self.difference.mean < 0) == (self.better == "lower")
        if self.alternative == "two-sided":
            better = first if is_first else second
            verdict = f"{better} is better ({self.better} values are)"
            return verdict if is_real else "no difference is shown"
        if self.alternative == "equivalent":
            what = f"{first} and {second} differ by less than {self.margin:g}"
        elif self.alternative == "not worse":
            what = f"{first} is not worse than {second} by more than {self.margin:g}"
        else:
            what = f"{first} is {'lower' if self.alternative == 'less' else 'higher'} than {second}"
        return what if is_real else f"it is not shown that {what}"

    def _further(self) -> str:
        n = self.items_wanted
        if self.is_significant or n is None:
            return ""
        return (
            f"; about {n:,} items would show it, if the difference stays. "
            f"{of_every_look(self.level, _SEQUENCE)}"
        )

    @property
    def items_wanted(self) -> int | None:
        """About how many items would rule out the null, if the difference stays."""
        mean, low, high = self.difference
        null = 0.0
        if self.alternative in ("not worse", "equivalent"):
            null = self.margin if self.better == "lower" else -self.margin
            null = np.copysign(self.margin, mean) if self.alternative == "equivalent" else null
        halves = [abs(end - mean) for end in (low, high) if np.isfinite(end)]
        wrong_side = {"less": mean >= 0, "greater": mean <= 0}.get(self.alternative, False)
        if self.alternative == "not worse":
            wrong_side = mean >= null if self.better == "lower" else mean <= null
        elif self.alternative == "equivalent":
            wrong_side = abs(mean) >= self.margin
        if wrong_side or not halves:
            return None
        n = min(self.n_items)
        wanted = number_to_tell(n, max(halves), abs(mean - null))
        return wanted if wanted is not None and wanted > n else None

    def values(self) -> dict[str, Any]:
        """Return the numbers; infinite ends as None."""
        mean, low, high = self.difference
        ends = [end if np.isfinite(end) else None for end in (low, high)]
        values = super().values() | {"difference": mean, "low": ends[0], "high": ends[1]}
        return values | {"significant": self.is_significant, "items_wanted": self.items_wanted}

    def table(self) -> ResultTable:
        """Return the difference as a row."""
        return differences_table([self], [self.pvalue], "none")

    def figure(self) -> IntervalFigure:
        """Return the data of a figure of the difference."""
        return _figure([self])


@dataclass(frozen=True)
class Differences(Result):
    """Differences of several pairs, with p-values that allow for their number.

    Attributes
    ----------
    each : tuple of MeanDifference
        Their own intervals and p-values are for one pair alone.
    pvalues : tuple of float
        Of each, corrected for all of them.
    correction : str
    level : float
    ranks : dict of str to int
        Of methods on the same items: rank clusters of `btdagg.rank_clusters`; empty of experiments.
    remarks : tuple of Remark
    """

    each: tuple[MeanDifference, ...]
    pvalues: tuple[float, ...]
    correction: Correction
    level: float
    ranks: dict[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def significant(self) -> tuple[MeanDifference, ...]:
        """Those that are real, all taken together."""
        both = zip(self.each, self.pvalues, strict=True)
        return tuple(one for one, p in both if p <= 1 - self.level)

    def sentence(self) -> str:
        """Return how many are real, and which method is best."""
        n, m = len(self.significant), len(self.each)
        rate = {
            "benjamini-hochberg": f"of those, at most {100 * (1 - self.level):.3g}% are false, on "
            "average",
            "none": "each alone, without allowing for their number",
        }.get(self.correction, f"with {100 * self.level:.4g}% probability none of them is false")
        said = f"{n} of {counted(m, 'difference')} {'is' if n == 1 else 'are'} real ({rate})"
        best = [name for name, rank in self.ranks.items() if rank == 1]
        if len(best) == 1 and len(self.ranks) > 1:
            return f"best: {best[0]}; {said}"
        if best:
            return f"{listing(best)} cannot be told from the best; {said}"
        return said

    def values(self) -> dict[str, Any]:
        """Return each difference with its corrected p-value."""
        both = zip(self.each, self.pvalues, strict=True)
        rows = [one.as_dict() | {"corrected_pvalue": p} for one, p in both]
        values = {"differences": rows, "correction": self.correction, "level": self.level}
        return values | {"ranks": self.ranks}

    def table(self) -> ResultTable:
        """Return a row for each difference."""
        return differences_table(self.each, self.pvalues, self.correction)

    def figure(self) -> IntervalFigure:
        """Return the data of a figure of all differences."""
        return _figure(self.each)


def difference(
    first: ArrayLike,
    second: ArrayLike,
    *,
    groups: Any = None,
    paired: bool = True,
    alternative: Question = "two-sided",
    margin: float = 0.0,
    better: Literal["lower", "higher"] = "lower",
    ends: tuple[float, float] | None = None,
    level: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
    **test: Any,
) -> MeanDifference:
    """Tell whether the means of two methods, or two versions of a system, differ.

    Parameters
    ----------
    first, second : (n,) arrays of finite numbers
        Losses such as ``abs(predicted - label)``, or scores, of the same items in the same order;
        without `paired` of any items.
    groups : (n,) array, optional
        Group of each item, such as its prompt: groups are independent, items of a group need not
        be. Without `paired` two arrays; a group may have items of both.
    paired : bool
        Whether the values are of the same items.
    alternative : {"two-sided", "less", "greater", "not worse", "equivalent"}
        What is to be shown: the means differ; the first is lower, or higher; it is not worse by
        more than the margin (non-inferiority); they differ by less than the margin (two one-sided
        tests).
    margin : float
        Of the last two, in the unit of the values; above 0.
    better : {"lower", "higher"}
        Which values are better: of losses lower, the default.
    ends : tuple of two float, optional
        The least and the greatest value of an item, by which an interval is found where all
        differences are alike.
    level : float
        Confidence level; the test is at ``1 - level``.
    names : tuple of two str
    **test
        `method`, `n_resamples` and `seed`, as in `btdagg.paired_permutation_test`.

    Notes
    -----
    Paired: the permutation test of Fisher, and the interval of all means that it does not reject
    (`btdagg.inference.sign_flips.SignFlips`). Where few items differ, those unseen could be others;
    an end that rules out no null is therefore at least that of Wilson's interval on the range of
    the differences. Unpaired: Welch's t by groups.

    References
    ----------
    Fisher (1935); Hartigan (1969); Welch (1947); Piaggio et al. (2012) for non-inferiority;
    Schuirmann (1987) for equivalence; Cohen (1988).

    Examples
    --------
    >>> first, second = [0, 0, 1, 0, 0, 1, 0, 0, 0, 1], [1, 2, 1, 1, 0, 2, 1, 1, 0, 1]
    >>> found = difference(first, second, names=("new", "old"))
    >>> found.pvalue, found.is_significant
    (0.03125, True)
    """
    if paired:
        same_index(first=first, second=second, groups=groups)
    a, b = (as_losses(x, name, "(n,)") for x, name in ((first, "first"), (second, "second")))
    for values, name in ((a, "first"), (b, "second")):
        expect(len(values) > 1, name, f"{counted(len(values), 'value')}", "at least two")
        require_rows(np.isfinite(values), values, name, "a finite number")
    questions = get_args(Question)
    expect(alternative in [*questions], "alternative", alternative, f"one of {listing(questions)}")
    expect(better in ("lower", "higher"), "better", better, "'lower' or 'higher'")
    good = isinstance(names, tuple | list) and len({*map(str, names)}) == len(names) == 2
    expect(good, "names", names, "two names that differ")
    margin, level = as_number(margin, "margin"), as_level(level)
    has_margin = alternative in ("not worse", "equivalent")
    expect(not has_margin or level > 0.5, "level", level, f"above 0.5 for {alternative!r}")
    for name in test:
        expect(name in _TEST, name, test[name], f"one of {listing(_TEST)} besides")
    if ends is not None:
        _require_within(ends, a, b)
    expected = f"above 0 for {alternative!r}" if has_margin else f"0 for {alternative!r}"
    expect(margin > 0 if has_margin else margin == 0, "margin", margin, expected)
    two: Any = a, b
    if paired:
        same_length("second", len(b), "first", len(a))
        number = np.arange(len(a)) if groups is None else as_groups(groups, "first", len(a))
        numbers = number, number
        of: _Paired | _Unpaired = _Paired(a, b, number, ends, test)
    else:
        given = [*test, *([] if ends is None else ["ends"])]
        expect(not given, "paired", False, f"True with {listing(given)}")
        constant = np.ptp(a) == 0 == np.ptp(b)
        expected = "values that vary: of constant ones nothing tells how far off their means are"
        expect(not constant, "first", "constant, as is second", expected)
        numbers = _numbers(two, groups)
        of = _Unpaired(a, b, *numbers)
    n_groups = len(np.unique(np.concatenate(numbers)))
    expect(n_groups > 1, "groups", "1 group", "at least two")
    nulls = _nulls(alternative, margin, better)
    p, interval = _tested(of, alternative, nulls, level)
    wins = _wins(a, b, paired)
    wins = wins if better == "lower" else wins[::-1]
    spread = float(np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2))
    effect = interval.mean / spread if spread > 0 else np.nan
    return MeanDifference(
        (str(names[0]), str(names[1])),
        (float(a.mean()), float(b.mean())),
        interval,
        p,
        alternative,
        margin,
        better,
        level,
        effect,
        *wins,
        (len(a), len(b)),
        n_groups,
        paired,
        of.method,
        tuple(of.remarks),
    )


def differences(
    values: Mapping[str, Any] | ArrayLike,
    *,
    groups: Any = None,
    names: Sequence[str] | None = None,
    against: str | None = None,
    correction: Correction | None = None,
    level: float = 0.95,
    **options: Any,
) -> Differences:
    """Tell which of many differences are real: of methods on the same items, or of experiments.

    Parameters
    ----------
    values : mapping of str to (n,) array, data frame of such columns, or (methods, n) array
        Losses or scores of methods on the same items: every two are compared. Or a mapping of the
        name of an experiment to its two arrays, ``{"prompt 7": (first, second)}``: each has items
        of its own, and its two are compared.
    groups : (n,) array, or mapping of str to array; optional
        Groups of the items, of experiments by name.
    names : sequence of str, optional
        Names of the rows of an array.
    against : str, optional
        Compare all methods with this one alone.
    correction : {"max-t", "holm", "benjamini-hochberg", "none"}, optional
        How p-values allow for the number of differences. ``"max-t"``, for all pairs of methods and
        their default, knows that methods share their items; ``"holm"``, the default of others,
        allows for any dependence; ``"benjamini-hochberg"`` bounds the share of false ones.
    level, **options
        As in `difference`.

    References
    ----------
    Westfall and Young (1993); Holm (1979); Benjamini and Hochberg (1995).

    Examples
    --------
    >>> found = differences({"x": [0, 1] * 9, "y": [1, 1] * 9, "z": [1, 2] * 9})
    >>> found.ranks
    {'x': 1, 'y': 2, 'z': 3}
    """
    level = as_level(level)
    how: Any = {"level": level, **options}
    if hasattr(values, "columns") and hasattr(values, "__getitem__"):
        values = {str(name): values[name] for name in values.columns}
    named = values if isinstance(values, Mapping) else None
    if named is not None and named and all(_is_two(two) for two in named.values()):
        expect(against is None, "against", against, "None of experiments")
        if isinstance(groups, Mapping):
            other = sorted(map(str, {*named} ^ {*groups}))
            expected = "groups of each experiment, by its name"
            expect(not other, "groups", listing(other), expected)
        each = []
        for name, (first, second) in named.items():
            own = groups[name] if isinstance(groups, Mapping) else groups
            each.append(difference(first, second, groups=own, names=_sides(name), **how))
        correction = "holm" if correction is None else correction
        expect(correction != "max-t", "correction", correction, "holm of experiments")
        return Differences(tuple(each), _corrected(each, correction), correction, level)
    expect(how.get("paired", True), "paired", False, "True of methods on the same items")
    if named is None:
        rows = as_losses(values, "values", "(methods, items)")  # type: ignore[arg-type]
        texts = [*map(str, range(len(rows)))] if names is None else [*map(str, names)]
        same_length("names", len(texts), "values", len(rows))
    else:
        expect(names is None, "names", names, "None of a mapping, which has names")
        texts = [*map(str, named)]
        same_index(groups=groups, **{f"values[{name!r}]": row for name, row in named.items()})
        columns = [as_losses(row, f"values[{name!r}]", "(n,)") for name, row in named.items()]
        for name, column in zip(texts, columns, strict=True):
            same_length(f"values[{name!r}]", len(column), f"values[{texts[0]!r}]", len(columns[0]))
        rows = np.stack(columns) if columns else np.empty((0, 0))
    expect(len(rows) > 1, "values", f"{len(rows)} methods", "at least two")
    expect(len({*texts}) == len(texts), "names", texts, "names that differ")
    pairs = [*combinations(range(len(rows)), 2)]
    if against is not None:
        expect(against in texts, "against", against, f"one of {listing(texts)}")
        base = texts.index(against)
        pairs = [(place, base) for place in range(len(rows)) if place != base]
    is_two_sided = how.get("alternative", "two-sided") == "two-sided"
    usual: Correction = "max-t" if against is None and is_two_sided else "holm"
    correction = usual if correction is None else correction
    each = [
        difference(rows[i], rows[j], groups=groups, names=(texts[i], texts[j]), **how)
        for i, j in pairs
    ]
    if correction == "max-t":
        good = against is None and is_two_sided
        expect(good, "correction", correction, "'holm' but for all pairs, two-sided")
        drawn: Any = {name: how[name] for name in ("seed", "n_resamples") if name in how}
        matrix = pairwise_pvalues(rows, correction="max-t", groups=groups, **drawn)
        pvalues = tuple(
            max(float(matrix[i, j]), one.pvalue) for (i, j), one in zip(pairs, each, strict=True)
        )
    else:
        pvalues = _corrected(each, correction)
    ranks = {}
    if against is None and is_two_sided:
        matrix = np.ones((len(rows), len(rows)))
        for (i, j), p in zip(pairs, pvalues, strict=True):
            matrix[i, j] = matrix[j, i] = p
        sign = 1.0 if how.get("better", "lower") == "lower" else -1.0
        clusters = rank_clusters(sign * rows.mean(axis=1), matrix, 1 - level).tolist()
        ranks = dict(zip(texts, clusters, strict=True))
    return Differences(tuple(each), pvalues, correction, level, ranks)


def differences_table(
    each: Sequence[MeanDifference], pvalues: Sequence[float], correction: Correction
) -> ResultTable:
    """Tabulate differences, a row each."""

    def rows() -> Iterator[Row]:
        for one, p in zip(each, pvalues, strict=True):
            mean, low, high = one.difference
            ends = [fixed(end, signed=True) if np.isfinite(end) else "" for end in (low, high)]
            cells: dict[str, str | Entry] = {
                "difference": Entry(fixed(mean, signed=True), p <= 1 - one.level),
                "low": ends[0],
                "high": ends[1],
                "d": fixed(one.effect_size, 2, signed=True),
                "p": written_pvalue(one.pvalue),
            }
            if correction != "none":
                cells["corrected p"] = written_pvalue(p)
            cells["better, equal, worse"] = (
                f"{one.n_first_better:,}, {one.n_equal:,}, {one.n_second_better:,}"
            )
            yield Row(one.names, cells, [one.values() | {"corrected_pvalue": p}])

    note = (
        "Mean of the first less that of the second, with its interval; d: in standard deviations "
        "of items; the last column is how many items each is better on."
    )
    if correction != "none":
        note += f" Corrected p allows for {counted(len(each), 'difference')} ({correction})."
    return ResultTable.of_rows("differences", "Differences", note, ("first", "second"), rows())


def _p(value: float) -> str:
    text = written_pvalue(value)
    return text if text.startswith("<") else f"= {text}"


def _figure(each: Sequence[MeanDifference]) -> IntervalFigure:
    def drawn(one: MeanDifference) -> Interval:
        mean, low, high = one.difference
        ends = (mean if np.isinf(low) else low), (mean if np.isinf(high) else high)
        return Interval(mean, *ends)

    series = "difference"
    points = {" less ".join(one.names): {series: drawn(one)} for one in each}
    lower = each[0].better == "lower"
    sides = ("first better", "second better") if lower else ("second better", "first better")
    note = f"{100 * each[0].level:.4g}% intervals, of each alone. The line is no difference."
    return IntervalFigure("differences", "Differences", note, points, (series,), series, sides, 1)


def _require_within(ends: Any, a: Floats, b: Floats) -> None:
    expect(np.shape(ends) == (2,), "ends", ends, "two numbers")
    least, greatest = (as_number(end, "ends") for end in ends)
    expect(least < greatest, "ends", ends, "two numbers, the least first")
    expected = f"a number from {least:g} to {greatest:g}, the ends"
    for values, name in ((a, "first"), (b, "second")):
        require_rows((values >= least) & (values <= greatest), values, name, expected)


def _is_two(value: Any) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(np.ndim(part) == 1 for part in value)


def _sides(name: str) -> tuple[str, str]:
    return f"{name}: first", f"{name}: second"


def _corrected(each: Sequence[MeanDifference], correction: Correction) -> tuple[float, ...]:
    known = get_args(Correction)
    expect(correction in known, "correction", correction, f"one of {listing(known)}")
    pvalues = np.array([one.pvalue for one in each])
    by = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}.get(correction)
    return tuple((pvalues if by is None else by(pvalues)).tolist())


def _numbers(two: Any, groups: Any) -> tuple[Any, Any]:
    """Numbers of the groups of both, the same for the same name."""
    if groups is None:
        return np.arange(len(two[0])), len(two[0]) + np.arange(len(two[1]))
    good = isinstance(groups, tuple | list) and len(groups) == 2
    expect(good, "groups", groups, "two arrays, since values are not paired")
    names = [as_names(of, "groups") for of in groups]
    for place, (values, name) in enumerate(zip(two, names, strict=True)):
        same_length(f"groups[{place}]", len(name), ("first", "second")[place], len(values))
    joined = [*names[0].tolist(), *names[1].tolist()]
    number = as_groups(joined, "both", len(joined))
    return number[: len(names[0])], number[len(names[0]) :]


def _nulls(alternative: Question, margin: float, better: str) -> tuple[float | None, float | None]:
    """Means that the low and the high end have to leave out; None where there is no such end."""
    if alternative == "two-sided":
        return 0.0, 0.0
    if alternative == "equivalent":
        return -margin, margin
    is_less = alternative == "less" or (alternative == "not worse" and better == "lower")
    return (None, margin) if is_less else (-margin, None)


def _tested(
    test: _Paired | _Unpaired,
    alternative: Question,
    nulls: tuple[float | None, float | None],
    level: float,
) -> tuple[float, Interval]:
    error, is_two_sided = 1 - level, alternative == "two-sided"
    # The low end is of tests against higher means, the high end of those against lower ones.
    ways: Any = ("two-sided", "two-sided") if is_two_sided else ("greater", "less")
    ps, ends = [], []
    for is_low, null, way in zip((True, False), nulls, ways, strict=True):
        if null is None:
            ends.append(-np.inf if is_low else np.inf)
            continue
        p = test.pvalue(null, way)
        end = test.end(error, way, is_low=is_low)
        inner, outer = (max, min) if is_low else (min, max)
        # What few units show of others unseen: an end that rules out no difference keeps to the
        # permutation test, others do not.
        wide = test.widest(error / 2 if is_two_sided else error, is_low=is_low, null=null)
        if null != 0:
            p = max(p, test.widest_pvalue(null, is_low=is_low))
            end = outer(end, wide)
        if p <= error and (test.mean > null) == is_low:
            end = inner(end, np.nextafter(null, test.mean))  # to the last bit
        else:
            end = outer(end, wide, null) if p > error else outer(end, wide)
        ps.append(p)
        ends.append(end)
    return max(ps), Interval(test.mean, *map(float, ends))


class _Paired:
    """Differences of the same items: permutation tests, and what they may leave unseen."""

    def __init__(
        self,
        a: Floats,
        b: Floats,
        groups: NDArray[np.int64],
        ends: tuple[float, float] | None,
        test: Mapping[str, Any],
    ) -> None:
        self._flips = SignFlips(a, b, groups, **test)
        sums, sizes = self._flips.sums, self._flips.sizes
        self.mean = self._flips.mean
        of_units = sums / sizes
        least, greatest = float(of_units.min()), float(of_units.max())
        self._is_alike, self._has_ends = least == greatest, ends is not None
        span = float(max(a.max(), b.max()) - min(a.min(), b.min()))
        span = span if ends is None else float(ends[1] - ends[0])
        far = span if self._is_alike or ends is not None else max(-least, greatest)
        self._n_differ = int((of_units != 0).sum())
        # Of no difference only where ends are known; of a margin as far to either side as seen.
        mean = _mean_of(sums, sizes)
        self._seen = mean.within((-span, span) if self._is_alike else (least, greatest))
        self._either = mean.within((-far, far))

    @property
    def method(self) -> str:
        return "exact" if self._flips.at_zero[1] == "exact" else "monte carlo"

    @property
    def remarks(self) -> list[Remark]:
        n = len(self._flips.sums)
        if self._is_alike and not self._has_ends:
            return [remarks.alike_differences(self.mean)]
        has_few = not self._is_alike and self._n_differ < min(_FEW, n)
        return [remarks.few_differ(self._n_differ, n)] if has_few else []

    def pvalue(self, null: float, way: Any) -> float:
        return self._flips.pvalue(null, way)

    def end(self, error: float, way: Any, *, is_low: bool) -> float:
        return self._flips.end(error, way, is_low=is_low)

    def _estimates(self, null: float) -> list[Estimate]:
        if null != 0:
            return [self._seen, self._either]
        return [self._seen] if self._has_ends or not self._is_alike else []

    def widest(self, error: float, *, is_low: bool, null: float) -> float:
        """End of Wilson's interval on the range of the differences, each end at an error."""
        ends = [of.interval(1 - 2 * error)[1 if is_low else 2] for of in self._estimates(null)]
        if not ends:
            return np.inf if is_low else -np.inf
        return min(ends) if is_low else max(ends)

    def widest_pvalue(self, null: float, *, is_low: bool) -> float:
        """One-sided p-value that agrees with these ends."""
        return max(_one_sided(of, null, is_low=is_low) for of in self._estimates(null))


def _mean_of(sums: Any, sizes: Floats) -> Estimate:
    """Mean of items from the sums and sizes of their groups."""
    columns, ends = np.column_stack([sums, sizes]), (-np.inf, np.inf)
    return jackknifed(lambda of: of[:, 0] / of[:, 1], columns, sizes, ends)


def _one_sided(estimate: Estimate, null: float, *, is_low: bool) -> float:
    value, (least, greatest) = estimate.value, estimate.ends
    if not least < null < greatest:  # no difference can be that
        return 1.0 if least == greatest else float((null > value) == is_low)
    p = estimate.pvalue(null)
    return p / 2 if (value > null) == is_low else 1 - p / 2


class _Unpaired:
    """Two samples: Welch's t, by groups."""

    method = "Welch"
    remarks: Sequence[Remark] = ()

    def __init__(
        self, a: Floats, b: Floats, a_groups: NDArray[np.int64], b_groups: NDArray[np.int64]
    ) -> None:
        means = []
        n_groups = int(max(a_groups.max(), b_groups.max())) + 1
        for values, groups in ((a, a_groups), (b, b_groups)):
            sizes = np.bincount(groups, minlength=n_groups).astype(np.float64)
            means.append(_mean_of(np.bincount(groups, values, n_groups), sizes))
        self._estimate: Estimate = means[0] - means[1]
        self.mean = float(self._estimate.value)

    def pvalue(self, null: float, way: Any) -> float:
        if way == "two-sided":
            return self._estimate.pvalue(null)
        return _one_sided(self._estimate, null, is_low=way == "greater")

    def end(self, error: float, way: Any, *, is_low: bool) -> float:
        level = 1 - error if way == "two-sided" else 1 - 2 * error
        _, low, high = self._estimate.interval(level)
        return low if is_low else high

    def widest(self, error: float, *, is_low: bool, null: float) -> float:
        return np.inf if is_low else -np.inf

    def widest_pvalue(self, null: float, *, is_low: bool) -> float:
        return 0.0


def _wins(a: Floats, b: Floats, paired: bool) -> tuple[int, int, int]:
    """Numbers of items on which the first is lower, neither, and the second is lower."""
    if paired:
        lower, higher = int((a < b).sum()), int((a > b).sum())
        return lower, len(a) - lower - higher, higher
    ordered, n = np.sort(b), min(len(a), len(b))
    at_most = np.searchsorted(ordered, a, "right").mean() / len(b)
    below = np.searchsorted(ordered, a, "left").mean() / len(b)
    lower, higher = round(n * (1 - at_most)), round(n * below)
    return lower, n - lower - higher, higher
