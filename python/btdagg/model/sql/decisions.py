"""A model or a panel as one SQL expression over columns of counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from btdagg._util.errors import InputError, expect
from btdagg.model.sql.dialects import Dialect, Name, dialect_named

# Databases raise an error where a float underflows.
_LEAST_EXPONENT = -700

# A margin of a panel that is no larger than this share of its summands is 0, as in the core.
_PANEL_ROUNDING = 8 * math.ulp(1.0)

# The core allows 8 roundings of 1, of eta's summands and of ln(2 sinh|u|), which is near eta where
# that matters: so 16 of the summands cover it. The rest is for functions that are off by some ulp.
_ROUNDING = 16 * math.ulp(1.0)

_SIDES = {"minus": -1, "tie": 0, "plus": 1}

# Parameters beyond this overflow the arithmetic of some databases.
_LARGEST = 1e100

_LARGEST_COVARIATE = 1e300

# Beyond this |u|, exp(-2 |u|) is below the rounding of 1, and 2 sinh|u| is exp|u|.
_LARGE_MARGIN = 20

_LARGEST_COUNT = math.nextafter(2.0**63, 0)


class Terms(NamedTuple):
    """SQL terms of a decision: margin `u` and tie logit `eta`, and `eta` plus what is rounding."""

    # `plus_leads` is the condition that u is above 0. `doubt` is the size below which |u| is a tie,
    # if there is one. The exponentials of a bounded model's terms can neither over- nor underflow.

    u: str
    eta: str
    eta_and_rounding: str
    plus_leads: str
    doubt: str = ""
    is_bounded: bool = False


class Offset(NamedTuple):
    """SQL that covariates add after the margin, and after the condition that all are numbers."""

    added: str
    known: str

    @classmethod
    def of(cls, model: Any, words: Dialect, columns: Mapping[str, Name] | None) -> Offset:
        """Write the offset of a model, whose covariates have columns of their names, or these."""
        names = [covariate.name for covariate in model.covariates]
        if unknown := [name for name in columns or {} if name not in names]:
            expected = f"one of {', '.join(names)}" if names else "none, as the model has none"
            raise InputError(argument="covariates", got=unknown[0], expected=expected)
        added, known = "", ""
        for covariate in model.covariates:
            column = words.name((columns or {}).get(covariate.name, covariate.name))
            real, least = _as_real(column, words), words.number(_LARGEST_COVARIATE)
            scaled = (
                f"({real} - {words.number(covariate.centre)}) / {words.number(covariate.scale)}"
            )
            added += f" + COALESCE({scaled}, 0) * {words.number(covariate.weight)}"
            is_number = words.is_signed.format(column)
            known += f" AND ({column} IS NULL OR {is_number}ABS({real}) <= {least})"
        return cls(added, known)


def to_sql(model: Any, dialect: str, *, probabilities: bool = False, **columns: Any) -> str:
    """Return the decision of a model as SQL; see `Model.to_sql`."""
    words = dialect_named(dialect)
    if not model.scale.mirrored:
        return _grades(model, words, probabilities=probabilities, **columns)
    terms, counted = _terms(model, words, **columns)
    label = _label(terms, words, counted, model.label_scale.points)
    if not probabilities:
        return label
    u, eta, minus_u = terms.u, terms.eta, f"(0 - {terms.u})"
    return _select_list(model, words, counted, label, [minus_u, eta, u])


def _grades(
    model: Any,
    words: Dialect,
    *,
    probabilities: bool,
    mean: Name = "mean",
    covariates: Mapping[str, Name] | None = None,
) -> str:
    offset = Offset.of(model, words, covariates)
    label = _grade(model, words, mean, offset)
    if not probabilities:
        return label
    _require_finite(beta=model.beta, cuts=max(map(abs, model.intercepts)))
    column = _as_real(words.name(mean), words)
    evidence = f"({words.number(model.beta)} * {column}{offset.added})"
    logits = [
        f"({words.number(index)} * {evidence} - {words.number(below)})"
        for index, below in enumerate([0.0, *model.intercepts.cumsum()])
    ]
    on_scale = f"({label}) IS NOT NULL"
    return _select_list(model, words, on_scale, label, logits)


def _select_list(model: Any, words: Dialect, known: str, label: str, logits: Sequence[str]) -> str:
    """Write the columns `label` and `p_...` of a query, the latter from each label's logit."""
    columns = [f"{label} AS {words.name('label')}"]
    for name, logit in zip(model.label_names, logits, strict=True):
        others = [other for other in logits if other != logit]
        odds = " + ".join(_odds(f"{other} - {logit}", words) for other in others)
        columns.append(
            f"CASE WHEN {known} THEN 1 / (1 + ({odds})) END AS {words.name(f'p_{name}')}"
        )
    return ", ".join(columns)


def _odds(exponent: str, words: Dialect) -> str:
    """Write exp, of an exponent that neither overflows nor underflows."""
    least = words.number(_LEAST_EXPONENT)
    at_most = f"0 - {words.greatest}({least}, 0 - ({exponent}))"
    return f"EXP({words.greatest}({least}, {at_most}))"


def _terms(
    model: Any,
    words: Dialect,
    *,
    columns: Mapping[str, Sequence[str]] | None = None,
    covariates: Mapping[str, Name] | None = None,
    **sides: Name,
) -> tuple[Terms, str]:
    if not model.judges:
        names = [words.name(sides.get(side, side)) for side in _SIDES]
        offset = Offset.of(model, words, covariates)
        if len(set(names)) < 3 or columns is not None or not set(sides) <= set(_SIDES):
            raise InputError(f"minus, tie and plus are {', '.join(names)}, expected three columns")
        counted = _are_counts(names, words) + offset.known
        return _pair_terms(model, words, names, offset), counted
    if columns is None:
        columns = {judge: [f"{side} {judge}" for side in _SIDES] for judge in model.judges}
    quoted = {judge: [words.name(name) for name in names] for judge, names in columns.items()}
    names = [name for of_judge in quoted.values() for name in of_judge]
    if (
        set(columns) != set(model.judges)
        or len(set(names)) < len(names)
        or any(len(of_judge) != 3 for of_judge in quoted.values())
    ):
        expected = f"three of its own for each of {', '.join(model.judges)}"
        raise InputError(argument="columns", got=columns, expected=expected)
    conditions = []
    for judge in model.judges:
        absent = " AND ".join(f"{name} IS NULL" for name in quoted[judge])
        conditions.append(f"({absent} OR {_are_counts(quoted[judge], words)})")
    offset = Offset.of(model, words, covariates)
    return _panel_terms(model, words, quoted, offset), " AND ".join(conditions) + offset.known


def trusted_to_sql(model: Any, dialect: str, threshold: float, **columns: Any) -> str:
    """Write whether the probability of the label is at least a threshold: 1, 0 or NULL."""
    words = dialect_named(dialect)
    terms, counted = _terms(model, words, **columns)
    size, eta = f"ABS({terms.u})", terms.eta
    label = _label(terms, words, counted)
    # Less the largest exponent, so that none overflows.
    top, least = f"{words.greatest}({size}, {eta})", words.number(_LEAST_EXPONENT)

    def odds(exponent: str) -> str:
        return f"EXP({words.greatest}({exponent} - {top}, {least}))"

    label_odds = odds(f"(CASE WHEN {label} = 0 THEN {eta} ELSE {size} END)")
    every = " + ".join(map(odds, (f"(0 - {size})", eta, size)))
    return (
        f"CASE WHEN {counted} THEN CASE WHEN {label_odds} >= {words.number(threshold)} * ({every}) "
        "THEN 1 ELSE 0 END END"
    )


def trusted_grades_to_sql(
    model: Any, dialect: str, spans: Sequence[tuple[float, float]], mean: Name = "mean"
) -> str:
    """Write whether a mean vote is in one of some spans: 1, 0, or NULL off the scale of votes."""
    words = dialect_named(dialect)
    real = _as_real(words.name(mean), words)
    within = [
        f"{real} >= {words.number(low)} AND {real} < {words.number(high)}" for low, high in spans
    ]
    trusted = " OR ".join(within) or "1 = 0"
    label = _grade(model, words, mean, Offset("", ""))
    return f"CASE WHEN ({label}) IS NOT NULL THEN CASE WHEN {trusted} THEN 1 ELSE 0 END END"


def _grade(model: Any, words: Dialect, mean: Name, offset: Offset) -> str:
    """Write the grade of a mean vote; NULL off the scale of votes."""
    column, points = words.name(mean), model.scale.points
    is_number, real = words.is_number.format(column), _as_real(column, words)
    added, known = offset
    at = f"({real} + (0{added}) / {words.number(model.beta)})" if added else real
    lowest, *higher = model.label_scale.points
    cases = [
        f"WHEN {at} >= {words.number(least)} THEN {grade!r}"
        for grade, least in zip(higher, model.least_means, strict=True)
    ]
    rounding = 8 * math.ulp(1.0) * max(map(abs, points))
    return (
        f"CASE WHEN {is_number}{real} BETWEEN {words.number(points[0] - rounding)} "
        f"AND {words.number(points[-1] + rounding)}{known} "
        f"THEN CASE {' '.join(reversed(cases))} ELSE {lowest!r} END END"
    )


def _pair_terms(model: Any, words: Dialect, columns: Sequence[str], offset: Offset) -> Terms:
    """Write the terms of counts that are in three columns."""
    _require_finite(beta=model.beta, eta0=model.eta0, gamma=model.gamma)
    m, t, p = (_as_real(column, words) for column in columns)
    kappa, usual = model.kappa, model.usual_votes
    of_margin, of_tie = _shares(usual, f"{m} + {t} + {p}", model, words)
    margin = words.margin.format(m=m, p=p, a=words.number(model.alpha))
    log_share = f"LN(({t} + {words.number(kappa)}) / ({m} + {t} + {p} + {words.number(kappa)}))"

    def eta(eta0: float, gamma: float) -> str:
        return f"{words.number(eta0)} + {words.number(gamma)} * {log_share}{of_tie}"

    # The logarithm is at most 0, so that its coefficient has the sign of what it adds to eta.
    rounding = _ROUNDING * (1 + abs(model.eta0) + abs(model.gamma))
    largest_s = math.log1p((usual or _LARGEST_COUNT) / model.alpha) / 2
    largest_t = math.log1p((usual or 3 * _LARGEST_COUNT) / kappa)
    largest = max(
        abs(model.beta) * largest_s, abs(model.eta0) + abs(model.gamma) * largest_t + rounding
    )
    u = f"{words.number(model.beta)} * {margin}{of_margin}"
    ahead, behind = (p, m) if model.beta > 0 else (m, p)
    return Terms(
        f"({u}{offset.added})",
        f"({eta(model.eta0, model.gamma)})",
        eta(model.eta0 + rounding, model.gamma - _ROUNDING * abs(model.gamma)),
        f"{u}{offset.added} > 0" if offset.added else f"{ahead} > {behind}",
        is_bounded=not offset.added and largest < -_LEAST_EXPONENT,
    )


def _shares(usual: float | None, total: str, model: Any, words: Dialect) -> tuple[str, str]:
    """Write what features are multiplied by beside a usual number of votes; nothing without one."""
    if usual is None:
        return "", ""
    # Without votes the features are 0, whatever they are multiplied by, unless that is infinite.
    one, least = words.number(1.0), words.number(1e-9 * max(model.alpha, model.kappa))
    some = f"{words.greatest}({total}, {least})"
    number = f"(CASE WHEN ABS({some} - ROUND({some})) <= {words.number(1e-9)} * {some} "
    number += f"THEN ROUND({some}) ELSE {some} END)"
    number = f"{words.greatest}({number}, {least})"
    factors = []
    for smoothing in (model.alpha, model.kappa):
        most, constant = words.number(math.log1p(usual / smoothing)), words.number(smoothing)
        factors.append(f" * ({most} / LN({number} / {constant} + {one}))")
    return factors[0], factors[1]


def _panel_terms(
    model: Any, words: Dialect, columns: Mapping[str, Sequence[str]], offset: Offset
) -> Terms:
    """Write the terms of counts that are in three columns for each judge."""
    heard = [judge for judge, on in zip(model.judges, model.heard, strict=True) if on]
    votes = [[f"COALESCE({_as_real(name, words)}, 0)" for name in columns[j]] for j in heard]
    alpha, kappa = words.number(model.alpha), words.number(model.kappa)
    # A judge without votes has features 0, and what it would add comes from the mean of the rest.
    usual = model.usual_votes or [None] * len(model.judges)
    usual = [number for number, on in zip(usual, model.heard, strict=True) if on]
    factors = [
        _shares(number, f"{m} + {o} + {p}", model, words)
        for number, (m, o, p) in zip(usual, votes, strict=True)
    ]
    s = [
        f"(LN(({p} + {alpha}) / ({m} + {alpha})) / 2{of_margin})"
        for (m, _, p), (of_margin, _) in zip(votes, factors, strict=True)
    ]
    t = [
        f"(LN(({o} + {kappa}) / ({m} + {o} + {p} + {kappa})){of_tie})"
        for (m, o, p), (_, of_tie) in zip(votes, factors, strict=True)
    ]
    away = [f"(CASE WHEN {m} + {o} + {p} = 0 THEN 1 ELSE 0 END)" for m, o, p in votes]
    n_present = f"{words.greatest}({len(votes)} - ({' + '.join(away)}), 1)"
    beta = [b for b, on in zip(model.beta, model.heard, strict=True) if on]
    gamma = [g for g, on in zip(model.gamma, model.heard, strict=True) if on]
    _require_finite(beta=max(beta), eta0=model.eta0, gamma=max(map(abs, gamma)))

    def total(features: Sequence[str], slopes: Sequence[float]) -> str:
        def weighted(of: Sequence[str]) -> str:
            pairs = zip(slopes, of, strict=True)
            return " + ".join(f"{words.number(slope)} * {term}" for slope, term in pairs)

        mean = f"({' + '.join(features)}) / {n_present}"
        return f"({weighted(features)} + ({weighted(away)}) * {mean})"

    sizes = total([f"ABS({term})" for term in s], beta)
    slopes = total([f"ABS({term})" for term in t], list(map(abs, gamma)))
    if offset.added:
        sizes += f" + ABS(0{offset.added})"
    u = f"({total(s, beta)}{offset.added})" if offset.added else total(s, beta)
    eta = f"{words.number(model.eta0)} + {total(t, gamma)}"
    size = f"({sizes} + {words.number(abs(model.eta0))} + {slopes})"
    return Terms(
        u,
        f"({eta})",
        f"{eta} + {words.number(_ROUNDING)} * (1 + {size})",
        f"{u} > 0",
        f"{words.number(_PANEL_ROUNDING)} * {size}",
    )


def _label(terms: Terms, words: Dialect, counted: str, labels: Sequence[float] = (-1, 0, 1)) -> str:
    """Compare 2 sinh|u| with exp(eta), or |u| with eta where they are large, as the core does."""
    size, eta = f"ABS({terms.u})", terms.eta_and_rounding
    sinh = f"2 * {words.sinh.format(size)}"
    if terms.is_bounded:
        decided = f"{sinh} > EXP({eta})"
    else:
        lead = f"{sinh} - {_odds(eta, words)}"
        decided = f"CASE WHEN {size} > {_LARGE_MARGIN} THEN {size} - ({eta}) ELSE {lead} END > 0"
    if terms.doubt:
        decided = f"{size} > {terms.doubt} AND {decided}"
    minus, tie, plus = labels
    return (
        f"CASE WHEN {counted} THEN CASE WHEN {decided} "
        f"THEN CASE WHEN {terms.plus_leads} THEN {plus} ELSE {minus} END ELSE {tie} END END"
    )


def _as_real(column: str, words: Dialect) -> str:
    """Write a count as a float: a column may be of a type that compares as text or overflows."""
    return f"CAST({column} AS {words.real})"


def _are_counts(columns: Sequence[str], words: Dialect) -> str:
    """Write the condition that columns hold numbers of at least 0 and below 2**63, and no NaN."""
    return " AND ".join(
        f"{words.is_number.format(column)}{_as_real(column, words)} "
        f"BETWEEN 0 AND {words.number(_LARGEST_COUNT)}"
        for column in columns
    )


def _require_finite(**parameters: float) -> None:
    """Check that parameters do not overflow the arithmetic of databases."""
    for name, value in parameters.items():
        expect(abs(value) <= _LARGEST, name, value, f"at most {_LARGEST:g} in size for SQL")
