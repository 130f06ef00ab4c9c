"""A model as one SQL expression over three columns of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.model.sql.dialects import Dialect, Name, dialect_named, number_in, quoted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Parameters beyond this overflow the arithmetic of some databases.
_LARGEST = 1e100

# Beyond this |u|, exp(-2 |u|) is below the rounding of 1, and 2 sinh|u| is exp|u|.
LARGE_MARGIN = 20

_MOST_VOTES = 200


class _Model(Protocol):
    """What is asked of a `DavidsonModel`, which imports this module."""

    @property
    def beta(self) -> float: ...
    @property
    def eta0(self) -> float: ...
    @property
    def gamma(self) -> float: ...
    @property
    def alpha(self) -> float: ...
    @property
    def kappa(self) -> float: ...
    def decide(self, counts: ArrayLike) -> NDArray[np.int8]: ...


def to_sql(
    model: _Model,
    dialect: str,
    *,
    minus: Name = "minus",
    tie: Name = "tie",
    plus: Name = "plus",
    max_votes: int | None = None,
) -> str:
    """Return the decision as one SQL expression; see `DavidsonModel.to_sql`."""
    words = dialect_named(dialect)
    columns = [
        quoted(column, name, words)
        for column, name in ((minus, "minus"), (tie, "tie"), (plus, "plus"))
    ]
    if len(set(columns)) < 3:
        raise InputError(f"minus, tie and plus are {', '.join(columns)}, expected three columns")
    if max_votes is None:
        return _closed_form(model, words, *columns)
    n = as_integer(max_votes, "max_votes", 1, _MOST_VOTES)
    return _looked_up(model, words, n, *columns)


def as_real(column: str, words: Dialect) -> str:
    """Write a count as a float: a column may be of a type that compares as text or overflows."""
    return f"CAST({column} AS {words.real})"


def are_counts(columns: Sequence[str], words: Dialect) -> str:
    """Write the condition that columns hold whole numbers of at least 0; no NaN is below 2**63."""
    conditions = []
    for column in columns:
        real = as_real(column, words)
        conditions.append(
            f"{words.is_number.format(column)}{real} >= 0 AND {real} < {number_in(2.0**63, words)} "
            f"AND {real} = {words.floor.format(real)}"
        )
    return " AND ".join(conditions)


def require_finite(parameters: Mapping[str, float]) -> None:
    """Refuse parameters beyond which the arithmetic of some databases overflows.

    Raises
    ------
    InputError
        If there is one; the message names it.
    """
    for name, value in parameters.items():
        if abs(value) > _LARGEST:
            raise InputError(f"{name} is {value}, expected at most {_LARGEST:g} in size for SQL")


def _closed_form(model: _Model, words: Dialect, minus: str, tie: str, plus: str) -> str:
    known = are_counts((minus, tie, plus), words)
    size, slope = size_and_slope(model, words, minus, tie, plus)
    return label_in(model, words, known, (minus, plus), lead_of(size, words), slope)


def size_and_slope(
    model: _Model, words: Dialect, minus: str, tie: str, plus: str
) -> tuple[str, str]:
    """Write |u| and the part of eta that depends on the counts.

    Raises
    ------
    InputError
        If a parameter is too large.
    """
    require_finite({name: getattr(model, name) for name in ("beta", "eta0", "gamma")})
    m, t, p = (as_real(column, words) for column in (minus, tie, plus))
    alpha, kappa = number_in(model.alpha, words), number_in(model.kappa, words)
    # ½ ln of a ratio near 1 through atanh, which keeps its relative accuracy.
    near = words.atanh.format(f"ABS({p} - {m}) / ({p} + {m} + 2 * {alpha})")
    margin = (
        f"CASE WHEN {p} > 2 * {m} + {alpha} OR {m} > 2 * {p} + {alpha} "
        f"THEN ABS(LN(({p} + {alpha}) / ({m} + {alpha}))) / 2 "
        f"ELSE {near} END"
    )
    # A margin below the smallest normal float has no logarithm worth the name.
    beta, least = number_in(abs(model.beta), words), number_in(3e-308, words)
    size = f"{words.greatest}({beta} * ({margin}), {least})"
    gamma = number_in(model.gamma, words)
    return size, f"{gamma} * LN(({t} + {kappa}) / ({m} + {t} + {p} + {kappa}))"


def lead_of(size: str, words: Dialect) -> str:
    """Write ln(2 sinh|u|)."""
    log_sinh = f"LN(2 * {words.sinh.format(size)})"
    return f"(CASE WHEN {size} > {LARGE_MARGIN} THEN {size} ELSE {log_sinh} END)"


def label_in(
    model: _Model, words: Dialect, known: str, sides: tuple[str, str], lead: str, slope: str
) -> str:
    """Compare ln(2 sinh|u|) with eta, as the core does, and with its allowance for rounding."""
    if model.beta == 0:
        return f"CASE WHEN {known} THEN 0 END"
    m, p = (as_real(column, words) for column in sides)
    eta0, size = number_in(model.eta0, words), number_in(abs(model.eta0), words)
    rounding = f"{number_in(8 * math.ulp(1.0), words)} * (1 + ABS({lead}) + {size} + ABS({slope}))"
    leader, other = (p, m) if model.beta > 0 else (m, p)
    return (
        f"CASE WHEN {known} THEN CASE WHEN {m} = {p} THEN 0 "
        f"WHEN {lead} - ({eta0} + {slope}) > {rounding} "
        f"THEN CASE WHEN {leader} > {other} THEN 1 ELSE -1 END ELSE 0 END END"
    )


def _looked_up(model: _Model, words: Dialect, n: int, minus: str, tie: str, plus: str) -> str:
    """Look up, for each pair of decisive votes, from how many ties on the decision changes.

    With the decisive votes given it is monotone in the ties, so that is all there is to know.
    """
    ties_win_late = model.gamma >= 0
    sign = 1 if model.beta >= 0 else -1
    width = len(str(n + 1))
    pairs = [(low, high) for low in range(n + 1) for high in range(n + 1)]
    digits = []
    for low, high in pairs:
        ties = np.arange(max(n - low - high, -1) + 1) if high > low else np.empty(0, dtype=int)
        rows = np.column_stack([np.full(len(ties), low), ties, np.full(len(ties), high)])
        wins = int((model.decide(rows) == sign).sum())
        # Where ties help the tie the side wins with fewer of them than this, else with as many.
        digits.append(f"{wins if ties_win_late else len(ties) - wins:0{width}d}")
    m, t, p = (as_real(column, words) for column in (minus, tie, plus))
    known = are_counts((minus, tie, plus), words)
    # Before they are cast: no count is then too large for it.
    small = f"{m} <= {n} AND {t} <= {n} AND {p} <= {n}"
    # SUBSTR does not take floats.
    m, t, p = (f"CAST({count} AS {words.integer})" for count in (m, t, p))
    lesser = f"CASE WHEN {m} < {p} THEN {m} ELSE {p} END"
    greater = f"CASE WHEN {m} < {p} THEN {p} ELSE {m} END"
    place = f"1 + {width} * (({lesser}) * {n + 1} + ({greater}))"
    found = f"CAST(SUBSTR('{''.join(digits)}', {place}, {width}) AS {words.integer})"
    wins_where = f"{t} < {found}" if ties_win_late else f"{t} >= {found}"
    leader, other = (p, m) if sign > 0 else (m, p)
    return (
        f"CASE WHEN {known} AND {small} THEN CASE WHEN {m} + {t} + {p} > {n} THEN NULL "
        f"WHEN {m} <> {p} AND {wins_where} "
        f"THEN CASE WHEN {leader} > {other} THEN 1 ELSE -1 END ELSE 0 END END"
    )
