"""The scale of one column of votes or labels: its points, their names, and whether it has sides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.errors import InputError, expect, of_kind
from btdagg._util.validation import (
    COUNT_COLUMNS,
    CountsItself,
    as_columns,
    as_labels,
    as_list,
    as_number,
    as_numbers,
    column_names,
    finite_counts,
    in_label_order,
    label_array,
    numbers_or_missing,
    refuse_tables,
    require_rows,
    with_columns,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Decisions are kept as bytes.
_HALF = 1e-9  # by which sums of shares may miss a half
_MOST_POINTS = 256


class Mode(NamedTuple):
    """How responses are judged: two against each other, or one at a time.

    Attributes
    ----------
    judged, column, measurement : str
        Kind of items, the column of their votes in files, and the level of measurement.
    orders : tuple of str
        Orders in which responses can be shown.
    responses, sides : tuple of str
        Columns of the texts, and ends of the names of columns that say more of each response.
    key : tuple of str
        Columns that tell items apart.
    criteria : tuple of str
        Columns whose values are of the same items, and have labels and means of their own.
    """

    judged: str
    column: str
    measurement: str
    orders: tuple[Any, ...]
    responses: tuple[str, ...]
    sides: tuple[str, ...]
    key: tuple[str, ...]
    criteria: tuple[str, ...]


PAIRWISE = Mode(
    "pair", "vote", "ordinal", ("AB", "BA"), ("a", "b"), ("_a", "_b"), ("task", "item"), ()
)
POINTWISE = Mode(
    "response", "score", "interval", ("AB",), ("response",), ("",), ("item",), ("task",)
)


class Measure(NamedTuple):
    """The mean by which systems are known: its name, its unit, and what each point is worth."""

    name: str
    unit: str
    worth: tuple[float, ...]


@dataclass(frozen=True)
class Scale:
    """The ordered values that votes, or labels, of one column can have.

    Parameters
    ----------
    points : iterable of numbers, or str
        Two to 256 values, strictly increasing. Also ``"1-5"``, ``"0,0.5,1"`` or
        ``"pass/fail"``.
    names : iterable of str, optional
        Names of the points, by default as written. Names do not affect equality.
    mirrored : bool
        Whether the scale is of pairs, so that swapping A and B reverses every result; it then has
        three equally spaced points.

    Examples
    --------
    >>> Scale(range(1, 6)).middle
    3.0
    >>> PAIRS.names
    ('B', 'tie', 'A')
    """

    points: tuple[float, ...]
    names: tuple[str, ...] = field(default=(), compare=False)
    mirrored: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        given: Any = self.points
        points = points_of(given) if isinstance(given, str) else _as_points(given, "points")
        names = tuple(self.names) or tuple(map(str, points))
        expected = f"at most {_MOST_POINTS} of them"
        expect(len(points) <= _MOST_POINTS, "points", len(points), expected)
        texts = {name.strip().lower() for name in names if isinstance(name, str)}
        expected = f"a name for each of {listed(points)}"
        expect(len(names) == len(points) and len(texts) == len(points), "names", names, expected)
        if self.mirrored and (len(points) != 3 or sum(points[::2]) != 2 * points[1]):
            expected = (
                "three equally spaced points for a mirrored scale, the only ones that Davidson's "
                "model of ties allows"
            )
            raise InputError(argument="points", got=points, expected=expected)
        self.__dict__.update(points=points, names=names, mirrored=bool(self.mirrored))

    @property
    def middle(self) -> float:
        """The middle of the scale, which need not be a point."""
        return (self.points[0] + self.points[-1]) / 2

    @property
    def middle_point(self) -> float:
        """The point nearest to the middle, the lower of two."""
        return min(self.points, key=lambda point: (abs(point - self.middle), point))

    @property
    def values(self) -> NDArray[Any]:
        """The points as an array, of integers where all are whole."""
        return np.array(self.points)

    @property
    def floats(self) -> NDArray[np.float64]:
        """The points as an array of floats."""
        return np.array(self.points, dtype=np.float64)

    @property
    def labels(self) -> NDArray[Any]:
        """The points as labels are stored: int64, or int8 where all are from -1 to 1, or floats."""
        values = self.values
        small = values.dtype.kind == "i" and -1 <= values[0] <= values[-1] <= 1
        return values.astype(np.int8) if small else values

    @property
    def columns(self) -> dict[str, float]:
        """The points by the names of the columns that count them: minus, tie, plus if mirrored."""
        names = COUNT_COLUMNS if self.mirrored else map(str, self.points)
        return dict(zip(names, self.points, strict=True))

    def places(
        self, values: Any, name: str = "labels", *, partial: bool = False
    ) -> NDArray[np.int64]:
        """Return the place of each value among the points, (n,); with `partial` -1 if missing."""
        expected = listed(self.points) + (", or NaN for a missing label" if partial else "")
        array = values if isinstance(values, list | tuple) else np.asarray(values)
        if isinstance(array, list | tuple) or array.dtype.kind in "OUS":
            for row, value in enumerate(array):
                if isinstance(value, str | bytes):
                    raise InputError(argument=name, row=row, got=value, expected=expected)
        read = numbers_or_missing if partial else label_array
        numbers = read(values, name, expected)
        places = np.clip(np.searchsorted(self.points, numbers), 0, len(self.points) - 1)
        is_missing = np.isnan(numbers) & partial
        require_rows((self.values[places] == numbers) | is_missing, numbers, name, expected)
        return np.where(is_missing, -1, places)

    def sides(
        self, labels: ArrayLike, name: str = "labels", expected: str = "-1, 0 or 1"
    ) -> NDArray[np.int8]:
        """Return labels, or votes, of a scale with two sides as -1, 0 and 1, (n,)."""
        self.require_sides("a Davidson model")
        if self == PAIRS:  # without a search for each of millions of votes
            return as_labels(labels, name, expected)
        return (self.places(labels, name) - 1).astype(np.int8)

    def require_sides(self, user: str) -> None:
        """Refuse a scale without two sides for who needs them."""
        expect(self.mirrored, "scale", str(self), f"a mirrored scale, with two sides, for {user}")

    def shares(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return labels as (N, K) shares of each point, rows of NaN where there is none.

        Labels, (N,), become rows of one 1 and zeros; (N, K) shares of raters are checked.
        """
        values: Any = labels
        k = len(self.points)
        if isinstance(values, list | tuple) and len(values) and np.ndim(values[0]) == 1:
            values = as_numbers(values, "labels")
        if isinstance(values, list | tuple) or np.shape(values)[1:] != (k,):
            place = self.places(labels, partial=True)
            outcomes = np.full((len(place), k), np.nan)
            rows = np.flatnonzero(place >= 0)
            outcomes[rows] = 0.0
            outcomes[rows, place[rows]] = 1.0
            return outcomes
        shares = as_numbers(values, "labels").astype(np.float64)
        with np.errstate(invalid="ignore"):
            good = (shares >= 0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1) < 1e-6)
        good |= np.isnan(shares).all(axis=1)
        of = f"{', '.join(self.names[:-1])} and {self.names[-1]}"
        expected = f"shares of {of} that add up to 1, or NaN where there is no label"
        require_rows(good, shares, "labels", expected)
        return shares

    def label_of(self, shares: NDArray[np.float64]) -> NDArray[Any]:
        """Return one label for the (n, K) shares of an item's raters, NaN where there is none.

        Of pairs the label of most raters, a tie if several have the most; of grades the median, of
        two the one nearer to the middle of the scale. Labels of all items are of the type of
        `labels`, others are floats.
        """
        place = np.zeros(len(shares), dtype=np.intp)
        if self.mirrored:
            minus, tie, plus = shares.T
            place = 1 + (plus > np.maximum(tie, minus)) - (minus > np.maximum(tie, plus))
        else:
            below = np.cumsum(shares, axis=1)[:, :-1]
            low, high = (below < 0.5 - _HALF).sum(axis=1), (below <= 0.5 + _HALF).sum(axis=1)
            place = np.clip(self.points.index(self.middle_point), low, high)
        has_label = ~np.isnan(shares[:, 0])
        if has_label.all():
            return np.asarray(self.labels[place])
        return np.where(has_label, self.floats[place], np.nan)

    def counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return counts as (n, J) int64, or float64 if not whole, from an array or data frame."""
        return finite_counts(self.read_counts(counts))

    def read_counts(self, counts: ArrayLike) -> NDArray[Any]:
        """Return counts as `counts` does, in place and without a look at their values."""
        if isinstance(counts, CountsItself):
            self.require_same(getattr(counts, "scale", PAIRS), "counts")
            counts = counts.counts()[1]
        texts = ", ".join(self.columns)
        meaning = f"{texts} of each item" if self.mirrored else f"votes of {texts} of each item"
        return as_columns(self.in_order(counts), len(self.points), meaning)

    def require_same(self, scale: Scale, name: str) -> None:
        """Refuse votes, or labels, of another scale."""
        expect(scale == self, name, f"those of {scale}", f"those of {self}")

    def in_order(self, counts: Any, name: str = "counts") -> Any:
        """Return a data frame with a column for each point in their order, and arrays unchanged."""
        if self.mirrored:
            return in_label_order(counts, name)
        refuse_tables(counts, name, "btdagg.read_votes(frame)")
        columns = column_names(counts)
        if columns is None:
            return counts
        texts = list(self.columns)
        places = {column_text(column): column for column in columns}
        if sorted(places) != sorted(texts) or len(columns) != len(texts):
            raise InputError(
                f"{name} has columns {', '.join(map(str, columns[:12])) or 'none'}, expected "
                f"exactly the votes {', '.join(texts)}, in any order",
                argument=name,
            )
        return with_columns(counts, [places[text] for text in texts])

    def decidable(self, counts: NDArray[Any]) -> NDArray[np.bool_]:
        """Which items can be decided, (n,): all pairs (no votes are a tie), grades with a vote."""
        if self.mirrored:
            return np.ones(len(counts), dtype=np.bool_)
        # Column by column, which takes a quarter of the time of any(axis=1).
        return np.asarray(reduce(np.logical_or, counts.T), dtype=np.bool_)

    def require_votes(self, counts: NDArray[Any]) -> None:
        """Check that each item has the votes that a label needs."""
        require_rows(self.decidable(counts), counts, "counts", "at least one vote of each item")

    def leaning(self, values: Any) -> NDArray[np.float64]:
        """Return values as shares of the way from the middle to the ends, -1 to 1."""
        return np.asarray((values - self.middle) / (self.points[-1] - self.middle))

    def turned(self, values: Any) -> NDArray[np.float64]:
        """Return values on the other side of the middle."""
        return np.asarray(self.points[0] + self.points[-1] - values)

    def rescaled(self, values: Any, other: Scale) -> NDArray[np.float64]:
        """Return values as those of another scale: its ends for the ends, linearly in between."""
        (first, *_, last), (low, *_, high) = self.points, other.points
        return np.asarray(low + (values - first) / (last - first) * (high - low))

    @property
    def mode(self) -> Mode:
        """How responses are judged."""
        return PAIRWISE if self.mirrored else POINTWISE

    @property
    def measure(self) -> Measure:
        """The mean by which systems are known, in which ties are half a win."""
        if self.mirrored:
            return Measure("win rate", "win", (0.0, 0.5, 1.0))
        if len(self.points) == 2:
            return Measure("pass rate", "pass", (0.0, 1.0))
        return Measure("mean grade", "point", self.points)

    @property
    def systems(self) -> tuple[str, ...]:
        """Columns that name whose response a vote is of: of A and of B, or of the one response."""
        return tuple(f"system{side}" for side in self.mode.sides)

    @property
    def choices(self) -> str:
        """The values that messages expect, and with two sides their names, of A first."""
        if not self.mirrored:
            return listed(self.points)
        return f"{', '.join(map(str, self.points))} or {', '.join(reversed(self.names))}"

    @property
    def in_words(self) -> str:
        """Name of votes and labels on it in messages."""
        return "pairs" if self.mirrored else f"grades {listed(self.points)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the points, their names and whether there are sides."""
        return {"points": list(self.points), "names": list(self.names), "mirrored": self.mirrored}

    def __repr__(self) -> str:
        names = "" if self.names == tuple(map(str, self.points)) else f", {self.names}"
        return f"Scale({written(self.points)!r}{names}{', mirrored=True' * self.mirrored})"

    def __str__(self) -> str:
        points = written(self.points)
        are_named = tuple(map(str, self.points)) != self.names
        sides = ", mirrored" if self.mirrored else ""
        return f"{points} ({', '.join(self.names)}{sides})" if are_named else points + sides


def _as_points(points: Any, name: str) -> tuple[float, ...]:
    expected = "two or more numbers, each above the one before"
    values = as_list(points, name, expected, least=2)
    numbers = [as_number(value, name, row=row) for row, value in enumerate(values)]
    expect(all(low < high for low, high in pairwise(numbers)), name, values, expected)
    return tuple(map(_whole, numbers))


def points_of(text: str, name: str = "points") -> tuple[float, ...]:
    """Read the points of a scale: "1-5", "0,0.5,1", or "pass/fail" for 0 and 1."""
    plain = text.strip().lower()
    if plain in ("pass/fail", "fail/pass"):
        return (0, 1)
    ends = re.fullmatch(r"(-?\d{1,9})\s*(?:-|\.\.|to)\s*(-?\d{1,9})", plain)
    try:
        if ends is not None:
            low, high = map(int, ends.groups())
            if high - low >= _MOST_POINTS:
                raise ValueError
            return _as_points(range(low, high + 1), name)
        return _as_points([float(part) for part in plain.split(",")], name)
    except ValueError:
        expected = f"1-5, 0,0.5,1 or pass/fail, {_MOST_POINTS} points at most"
        raise InputError(argument=name, got=text, expected=expected) from None


def written(points: tuple[float, ...]) -> str:
    """Write the points of a scale as `points_of` reads them."""
    if len(points) > 2 and points == tuple(range(int(points[0]), int(points[-1]) + 1)):
        return f"{points[0]}{'-' if points[0] >= 0 else '..'}{points[-1]}"
    return ",".join(map(str, points))


def listed(points: tuple[float, ...]) -> str:
    """Write the points of a scale: "1, 2 or 3", or "a whole number from 1 to 10"."""
    if len(points) > 5 and points == tuple(range(int(points[0]), int(points[-1]) + 1)):
        return f"a whole number from {points[0]} to {points[-1]}"
    texts = [str(point) for point in points]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def column_text(name: Any) -> str:
    """Write a column's name as its point is written: "4.0" and 4 are "4"."""
    try:
        return str(_whole(float(name)))
    except (TypeError, ValueError):
        return str(name)


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def require_alike(scale: Scale, label_scale: Scale) -> None:
    """Refuse votes and labels of which only one has two sides."""
    if scale.mode == label_scale.mode:
        return
    which, other = ("labels", "votes") if scale.mirrored else ("votes", "labels")
    graded = label_scale if scale.mirrored else scale
    raise InputError(
        f"{which} are grades, but {other} compare pairs. If {other} are grades too, give their "
        f"scale: {{advice}}. If both compare pairs, give words for the values of {which}",
        advice={"scale" if scale.mirrored else "label_scale": Scale(graded.points)},
    )


def scales_of(
    counts: Any, labels: Any, scale: Scale | None, label_scale: Scale | None
) -> tuple[Scale, Scale]:
    """Return the scales of votes and labels: tables', or as given (pairs; as the votes)."""
    of_counts, of_labels = (getattr(table, "scale", None) for table in (counts, labels))
    usual = scale or of_counts or PAIRS
    for name, of_table, said in (
        ("scale", of_counts, scale),
        ("label_scale", of_labels, label_scale),
    ):
        expect(isinstance(said, Scale | None), name, said, "a btdagg.Scale")
        if said is not None and of_table is not None and of_table != said:
            raise InputError(argument=name, got=str(said), expected=f"{of_table}, as it was read")
    both = usual, label_scale or of_labels or usual
    require_alike(*both)
    return both


def scale_from(value: Any, name: str) -> Scale:
    """Return a scale, or what `Scale.as_dict` made of one."""
    if isinstance(value, Mapping) and value.keys() <= {"points", "names", "mirrored"}:
        value = Scale(**value)
    return of_kind(value, Scale, name, "a btdagg.Scale")


PAIRS = Scale((-1, 0, 1), ("B", "tie", "A"), mirrored=True)
"""The scale of votes and labels of pairs: B is better, a tie, A is better."""

PASS_FAIL = Scale((0, 1), ("fail", "pass"))
"""The scale of checks that fail or pass."""
