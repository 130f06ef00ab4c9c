"""A mean's interval and test that hold at every look: bets on one group after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.numbers import as_integer
from btdagg._util.readable import Readable, readable
from btdagg._util.validation import as_groups, as_losses, as_names, as_number, require_rows
from btdagg._util.wording import counted
from btdagg.model.intervals import as_level
from btdagg.result import Curve, CurveFigure, Panel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]

# Shares of the wealth that are bet, and how the wealth is divided among them at first: as half a
# normal distribution, whose middle suits effects of a few tenths of the range.
_SHARES = 0.98 * 2.0 ** (-np.arange(20) / 2)
_SPREAD = 0.5
_WEIGHTS = np.log(_SHARES) - (_SHARES / _SPREAD) ** 2 / 2
_WEIGHTS = _WEIGHTS - np.log(np.exp(_WEIGHTS).sum())
_LAG = 0.02  # of log wealth before an end is moved again
_CLOSE = 1e-9  # of the range
_STEPS = 100  # to where an end is moved
_LEAST = 1e-9  # of the range, that a bet can lose
_FEWEST = 5  # groups that a forecast stands on
_MOST = 10**9  # groups that a forecast goes to


class Bet(NamedTuple):
    """What a group adds to the bets on a mean.

    ``adds - mean * size`` has mean 0 at the true mean, before the group is seen, and is within
    ``-(below + mean * slope)`` and ``above - mean * slope``, which are known by then.
    """

    adds: float
    size: float
    below: float
    above: float
    slope: float


class Bets:
    """Wealth of bets that a mean is above, or below, each number that it could be.

    A bet of a share of the wealth multiplies it by one plus this share of what the group adds, in
    units of the most that can be lost. Wealth ever reaches ``1 / error`` at the true mean with
    probability at most `error` (Ville, 1939). Bets against higher means win less where
    ``below * size + adds * slope`` is at least 0, and likewise above.
    """

    def __init__(self, ends: tuple[float, float], errors: tuple[float, float], null: float) -> None:
        self.ends, self.null = ends, null
        self.low, self.high = ends
        with np.errstate(divide="ignore"):
            self._enough = -np.log(errors)  # log wealth below and above
        self._least = _LEAST * (ends[1] - ends[0])
        self._place: dict[Bet, int] = {}  # of each distinct bet, in the order of their first
        self._numbers: list[int] = []
        self._adds = self._size = 0.0
        # Log wealth of each share at the low end, the high end, and the null from either side.
        self._wealth = np.zeros((4, len(_SHARES)))
        self._most = np.zeros(2)  # log wealth there ever was at the null

    def add(self, bet: Bet) -> None:
        """Add a group."""
        place = self._place.setdefault(bet, len(self._place))
        if place == len(self._numbers):
            self._numbers.append(0)
        self._numbers[place] += 1
        self._adds, self._size = self._adds + bet.adds, self._size + bet.size
        one = np.array([bet])
        ends = enumerate((self.low, self.high))
        gains = [_gains(one, at, side, self._least) for side, at in ends]
        gains += [_gains(one, self.null, side, self._least) for side in (0, 1)]
        self._wealth += np.concatenate(gains)
        wealth = _together(self._wealth)
        is_new = (wealth[2:] >= self._enough) & (self._most < self._enough)
        self._most = np.maximum(self._most, wealth[2:])
        for side in (0, 1):
            if is_new[side] or wealth[side] > self._enough[side] + _LAG:
                self._move(side)

    def within(self, low: float, high: float) -> None:
        """Leave out what the mean can no longer be."""
        for side, end in enumerate((low, high)):
            if (end > self.low) if side == 0 else (end < self.high):
                self._set(side, end)

    @property
    def mean(self) -> float:
        """Mean of what was added, within the ends; NaN before there is any."""
        if not self._numbers:
            return np.nan
        return float(min(max(self._adds / self._size, self.low), self.high))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return sum(self._numbers)

    def pvalue(self, side: int) -> float:
        """P-value of the null against a mean above it (0), or below it (1)."""
        return float(np.exp(-self._most[side]))

    def wanted(self) -> int | None:
        """About how many groups, these included, tell the mean from the null, if all goes on so."""
        if self.n_groups < _FEWEST:
            return None
        sides = [self._wanted(side) for side in (0, 1)]
        return min((n for n in sides if n is not None), default=None)

    def _wanted(self, side: int) -> int | None:
        few, many = self.n_groups, _MOST
        growth = self._at(self.null, side) / few
        if growth.max() <= 0 or not np.isfinite(self._enough[side]):
            return None

        def is_enough(n_groups: int) -> bool:
            return bool(_together(n_groups * growth) >= self._enough[side])

        if not is_enough(many):
            return None
        while few < many:
            middle = (few + many) // 2
            few, many = (few, middle) if is_enough(middle) else (middle + 1, many)
        return few

    def _move(self, side: int) -> None:
        """Move an end to where wealth is what it has to be."""
        near, far = (self.low, self.high)[:: 1 - 2 * side]
        close, enough = _CLOSE * (self.ends[1] - self.ends[0]), self._enough[side]
        rise, fall = self._log(near, side), self._log(far, side)
        if fall >= enough:
            near = far
        # At `near` there is enough, at `far` there is not; between them logs are nearly straight.
        for step in range(_STEPS):
            if abs(far - near) <= close or enough <= rise < enough + _LAG / 20:
                break
            point = (near + far) / 2
            if step % 3 and np.isfinite(rise):
                point = near + (far - near) * (rise - enough) / (rise - fall)
                point += close / 4 * np.sign(near - far)
            value = self._log(point, side)
            if value >= enough:
                near, rise = point, value
            else:
                far, fall = point, value
        self._set(side, near)

    def _set(self, side: int, end: float) -> None:
        self.low, self.high = (end, self.high) if side == 0 else (self.low, end)
        self._wealth[side] = self._at(end, side)

    def _log(self, mean: float, side: int) -> float:
        return float(_together(self._at(mean, side)))

    def _at(self, mean: float, side: int) -> Floats:
        if not self._numbers:
            return np.zeros(len(_SHARES))
        gains = _gains(np.array([*self._place]), mean, side, self._least)
        summed: Floats = np.array(self._numbers) @ gains
        return summed


def _gains(groups: Floats, mean: float, side: int, least: float) -> Floats:
    """What groups, (G, 5), add to the log wealth of each share at a mean, (G, shares)."""
    adds, size, below, above, slope = groups.T
    away, most = adds - mean * size, below + mean * slope
    if side:
        away, most = -away, above - mean * slope
    # Rounding may leave a bet at its end; beyond what the mean can be still, it is lost.
    lost = np.maximum(away / np.maximum(most, least), -1.0)
    gains: Floats = np.log1p(np.outer(lost, _SHARES))
    return gains


def _together(wealth: Floats) -> Any:
    """Log wealth of all shares together, (...), of (..., shares)."""
    logs = _WEIGHTS + wealth
    most = logs.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(np.exp(logs - most).sum(axis=-1))


@readable
class Path(NamedTuple):
    """A confidence sequence after each group.

    Attributes
    ----------
    n_items : (G,) array of int
    mean, low, high : (G,) arrays of float
    """

    n_items: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats


class ConfidenceSequence(SavedAsJson, Readable):
    """Interval and test of a mean of bounded values, which hold however often one looks.

    Values come group by group, such as differences of the losses of two systems. With probability
    `level` the mean is inside at all times together, so that you may stop when the answer is clear,
    or go on when it is not.

    Parameters
    ----------
    ends : tuple of two float
        The least and the greatest value that there can be: -2 and 2 for a difference of absolute
        errors of labels.
    level : float
        Confidence level, over all looks.
    null : float
        The mean that is tested.
    alternative : {"two-sided", "less", "greater"}
        Whether the mean is another, lower, or higher; one-sided intervals have one end.
    largest_group : int
        Most items that a group can have, fixed before the first; a larger one is refused.

    Notes
    -----
    The mean is over items; groups are independent, and their items need not be. A mixture of bets
    is made for and against each mean, of at most the range of the largest group; a mean is left out
    when the wealth of the bets against it reaches ``1 / error``. Nothing is assumed of the shape of
    values, nor of how many there will be. Groups have to come in an order that their values do not
    change.

    References
    ----------
    Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (2023); Ville
    (1939).

    Examples
    --------
    >>> found = ConfidenceSequence((-1, 1)).add([1, 0, 1, 1, -1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1])
    >>> found.pvalue < 0.05, found.n_items
    (True, 16)
    """

    FILE: ClassVar[FileFormat] = FileFormat("confidence sequence", "confidence sequence")
    INDENT: ClassVar[int | None] = None

    def __init__(
        self,
        ends: tuple[float, float],
        *,
        level: float = 0.95,
        null: float = 0.0,
        alternative: Alternative = "two-sided",
        largest_group: int = 1,
    ) -> None:
        expect(np.shape(ends) == (2,), "ends", ends, "two numbers")
        least, greatest = (as_number(end, "ends") for end in ends)
        good = least < greatest and np.isfinite(greatest - least)
        expect(good, "ends", ends, "two numbers, the least first")
        null = as_number(null, "null")
        good = least <= null <= greatest
        expect(good, "null", null, f"a number from {least:g} to {greatest:g}, the ends")
        sides = {"two-sided": (0.5, 0.5), "greater": (1.0, 0.0), "less": (0.0, 1.0)}
        expected = "'two-sided', 'less' or 'greater'"
        expect(alternative in [*sides], "alternative", alternative, expected)
        self.ends, self.level, self.null = (least, greatest), as_level(level), null
        self.alternative: Alternative = alternative
        self.largest_group = as_integer(largest_group, "largest_group", 1)
        self._shares = sides[alternative]
        errors = tuple((1 - self.level) * share for share in self._shares)
        self._bets = Bets(self.ends, (errors[0], errors[1]), null)
        self._names: dict[str, None] = {}
        self._sums: list[float] = []
        self._sizes: list[int] = []
        self._path: list[tuple[float, float, float]] = []

    def add(self, values: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Add values, (n,), and return the sequence; nothing is added if one is refused.

        Parameters
        ----------
        values : (n,) array of numbers within the ends
        groups : (n,) array, optional
            Group of each, such as its prompt; all items of a group are added together. By default
            each value is a group of its own.
        """
        array = as_losses(np.atleast_1d(np.asarray(values, dtype=object)), "values", "(n,)")
        if not len(array):
            return self
        least, greatest = self.ends
        expected = f"a number from {least:g} to {greatest:g}, the ends"
        require_rows((array >= least) & (array <= greatest), array, "values", expected)
        names: list[str] = []
        if groups is None:
            number = np.arange(len(array))
        else:
            number = as_groups(groups, "values", len(array))
            _, first = np.unique(number, return_index=True)
            texts = [str(name) for name in np.asarray(as_names(groups, "groups"))[first].tolist()]
            seen = next((name for name in texts if name in self._names), None)
            expected = "groups that were not added before: all items of a group are added together"
            expect(seen is None, "groups", seen, expected)
            order = np.argsort(first)  # groups as they come
            names = [texts[place] for place in order]
            number = np.argsort(order)[number]
        sizes = np.bincount(number)
        most = int(sizes.max())
        if most > self.largest_group:
            name = names[int(sizes.argmax())] if names else 0
            text = f"group {name!r} has {counted(most, 'item')}, expected at most "
            text += f"{self.largest_group}, the largest_group that bets were made for"
            raise InputError(text, argument="groups")
        self._names |= dict.fromkeys(names)
        for total, size in zip(np.bincount(number, array).tolist(), sizes.tolist(), strict=True):
            self._take(total, size)
        return self

    def _take(self, total: float, size: int) -> None:
        self._sums.append(total)
        self._sizes.append(size)
        least, greatest = (self.largest_group * end for end in self.ends)
        self._bets.add(Bet(total, size, -least, greatest, self.largest_group))
        self._path.append((self._bets.mean, self._bets.low, self._bets.high))

    @property
    def n_items(self) -> int:
        """Number of values."""
        return sum(self._sizes)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self._sizes)

    @property
    def mean(self) -> float:
        """Mean of the values, within the interval; NaN without values."""
        return self._bets.mean

    @property
    def low(self) -> float:
        """Low end of the interval: it never falls."""
        return self._bets.low

    @property
    def high(self) -> float:
        """High end of the interval: it never rises."""
        return self._bets.high

    @property
    def pvalue(self) -> float:
        """P-value of the null, which holds at every look; it never rises."""
        shares = zip((0, 1), self._shares, strict=True)
        ps = [self._bets.pvalue(side) / share for side, share in shares if share]
        return float(min(1.0, *ps))

    @property
    def is_decided(self) -> bool:
        """Whether the null is ruled out."""
        return self.pvalue <= (1 - self.level) * (1 + 1e-12)

    @property
    def items_wanted(self) -> int | None:
        """About how many items in all rule out the null, if they go on as they did.

        The present number where it is; None where they do not speak against it.
        """
        if self.is_decided:
            return self.n_items
        n_groups = self._bets.wanted()
        return None if n_groups is None else round(n_groups * self.n_items / self.n_groups)

    @property
    def path(self) -> Path:
        """Means and intervals after each group."""
        mean, low, high = np.reshape(np.array(self._path, dtype=np.float64), (-1, 3)).T
        return Path(np.cumsum(self._sizes, dtype=np.int64), mean, low, high)

    def figure(self) -> CurveFigure:
        """Return the data of a figure of all intervals so far, by number of items."""
        path = self.path
        of = f"{100 * self.level:.4g}% confidence sequence"
        curve = Curve(*(values.tolist() for values in path))
        panel = Panel({of: curve}, "items", "mean", y_line=self.null)
        note = "The mean so far, and an interval that holds at all numbers of items together."
        return CurveFigure("confidence-sequence", "A mean at every look", note, (panel,))

    def as_dict(self) -> dict[str, Any]:
        """Return all that is saved: the settings, and what each group added."""
        return {
            "ends": list(self.ends),
            "level": self.level,
            "null": self.null,
            "alternative": self.alternative,
            "largest_group": self.largest_group,
            "sums": self._sums,
            "sizes": self._sizes,
            "names": list(self._names),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return what `as_dict` was of."""
        fields = dict(fields)
        sums, sizes, names = (fields.pop(name) for name in ("sums", "sizes", "names"))
        made = cls(tuple(fields.pop("ends")), **fields)
        for total, size in zip(sums, sizes, strict=True):
            size = as_integer(size, "sizes", 1, made.largest_group)
            least, greatest = (size * end for end in made.ends)
            expected = f"a number from {least:g} to {greatest:g}"
            expect(least <= as_number(total, "sums") <= greatest, "sums", total, expected)
            made._take(total, size)
        made._names = dict.fromkeys(map(str, names))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.as_dict(),)

    def __str__(self) -> str:
        is_in = "not ruled out" if not self.is_decided else "ruled out"
        said = f"mean {self.mean:z.3f}, {100 * self.level:.4g}% interval at every look "
        said += f"{self.low:z.3f} to {self.high:z.3f} ({counted(self.n_items, 'item')}"
        groups = f" in {counted(self.n_groups, 'group')}" if self.n_groups < self.n_items else ""
        said += f"{groups}); {self.null:g} is {is_in}, p = {self.pvalue:.2g}"
        wanted = None if self.is_decided else self.items_wanted
        return said if wanted is None else f"{said}; about {wanted:,} items in all would"
