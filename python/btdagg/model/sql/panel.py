"""A panel as one SQL expression over three columns of counts for each judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from btdagg._core import InputError
from btdagg.model.sql.dialects import Dialect, dialect_named, number_in, quoted
from btdagg.model.sql.expressions import are_counts, as_real, lead_of, require_finite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SIDES = ("minus", "tie", "plus")


class _SeveralJudges(Protocol):
    """What is asked of a `PanelModel`, which imports this module."""

    @property
    def judges(self) -> tuple[str, ...]: ...
    @property
    def heard(self) -> NDArray[np.bool_]: ...
    @property
    def beta(self) -> tuple[float, ...]: ...
    @property
    def eta0(self) -> float: ...
    @property
    def gamma(self) -> tuple[float, ...]: ...
    @property
    def alpha(self) -> float: ...
    @property
    def kappa(self) -> float: ...


def panel_to_sql(
    model: _SeveralJudges,
    dialect: str,
    columns: Mapping[str, Sequence[str]] | None,
    rounding: float,
) -> str:
    """Return the decision as one SQL expression; see `PanelModel.to_sql`.

    `rounding` is what a sum may be off by, as a share of the sizes of what is summed.
    """
    words = dialect_named(dialect)
    if columns is None:
        columns = {name: [f"{side} {name}" for side in _SIDES] for name in model.judges}
    if not isinstance(columns, Mapping) or set(columns) != set(model.judges):
        raise InputError(f"columns is {columns!r}, expected three for each of {list(model.judges)}")
    found = panel_terms(model, words, columns)
    named = [quoted(one, "columns", words) for several in columns.values() for one in several]
    if len(set(named)) < len(named):
        raise InputError("columns has a name twice, expected three columns for each judge")
    return panel_label(found, words, rounding)


class PanelTerms(NamedTuple):
    """What a panel decides by, as SQL: whether counts are counts, u, eta and the sum of sizes."""

    known: str
    u: str
    eta: str
    doubt: str


def panel_terms(
    model: _SeveralJudges, words: Dialect, columns: Mapping[str, Sequence[str]]
) -> PanelTerms:
    """Write the terms of counts that are in three columns for each judge.

    Raises
    ------
    InputError
        If a judge has not three columns, or a parameter is too large.
    """

    def number(value: float) -> str:
        return number_in(value, words)

    known, votes = [], []
    for name, heard in zip(model.judges, model.heard, strict=True):
        named = columns[name]
        if isinstance(named, str) or len(named) != len(_SIDES):
            raise InputError(f"columns of judge {name!r} are {named!r}, expected three names")
        own = [quoted(one, side, words) for one, side in zip(named, _SIDES, strict=True)]
        absent = " AND ".join(f"{column} IS NULL" for column in own)
        known.append(f"({absent} OR {are_counts(own, words)})")
        if heard:
            votes.append([f"COALESCE({as_real(column, words)}, 0)" for column in own])
    alpha, kappa = number(model.alpha), number(model.kappa)
    # A judge without votes has features 0, and what it would add comes from the mean of the rest.
    s = [f"(LN(({p} + {alpha}) / ({m} + {alpha})) / 2)" for m, _, p in votes]
    t = [f"LN(({o} + {kappa}) / ({m} + {o} + {p} + {kappa}))" for m, o, p in votes]
    away = [f"(CASE WHEN {m} + {o} + {p} = 0 THEN 1 ELSE 0 END)" for m, o, p in votes]
    n_present = f"{words.greatest}({len(votes)} - ({' + '.join(away)}), 1)"
    heard_beta = [b for b, on in zip(model.beta, model.heard, strict=True) if on]
    heard_gamma = [g for g, on in zip(model.gamma, model.heard, strict=True) if on]
    require_finite(
        {"beta": max(heard_beta), "eta0": model.eta0, "gamma": max(map(abs, heard_gamma))}
    )

    def total(of: Sequence[str], slopes: Sequence[float]) -> str:
        own = " + ".join(f"{number(x)} * {one}" for x, one in zip(slopes, of, strict=True))
        left = " + ".join(f"{number(x)} * {one}" for x, one in zip(slopes, away, strict=True))
        return f"({own} + ({left}) * ({' + '.join(of)}) / {n_present})"

    u, eta = total(s, heard_beta), f"({number(model.eta0)} + {total(t, heard_gamma)})"
    sizes = total([f"ABS({one})" for one in s], heard_beta)
    slopes = total([f"ABS({one})" for one in t], list(map(abs, heard_gamma)))
    doubt = f"({sizes} + {number(abs(model.eta0))} + {slopes})"
    return PanelTerms(" AND ".join(known), u, eta, doubt)


def panel_label(terms: PanelTerms, words: Dialect, rounding: float) -> str:
    """Write the decision."""
    known, u, eta, doubt = terms
    # A margin below the smallest normal float has no logarithm worth the name.
    size = f"{words.greatest}(ABS({u}), {number_in(3e-308, words)})"
    lead = lead_of(size, words)
    share = number_in(rounding, words)
    wins = (
        f"{lead} - {eta} > {share} * (1 + ABS({lead}) + {doubt}) AND ABS({u}) > {share} * {doubt}"
    )
    return (
        f"CASE WHEN {known} THEN CASE WHEN {wins} "
        f"THEN CASE WHEN {u} > 0 THEN 1 ELSE -1 END ELSE 0 END END"
    )
