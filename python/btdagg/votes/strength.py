"""Vote strength: a vote of strength w counts as w wins and 1 − w ties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from btdagg._util.errors import InputError, expect, forbid, one_of
from btdagg._util.lazy import pl
from btdagg._util.validation import COUNT_COLUMNS, as_number, label_array, require_rows
from btdagg.votes import schema
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.schema import Kind, lead, parse
from btdagg.votes.table import AnyTable, Table, listing, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


# Strengths are multiples of 1 / _PARTS, so that their sums are exact in any order.
_PARTS = 1024.0
_STEP = 1 / _PARTS

StrengthKind = Literal["margin", "strength", "probabilities", "confidence", "none"]

PROBABILITIES = ("p_minus", "p_tie", "p_plus")
STRENGTH_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "margin": ("margin",),
    "strength": ("strength",),
    "probabilities": PROBABILITIES,
    "confidence": ("confidence",),
}
_KINDS: Mapping[str, Kind] = {
    "margin": schema.margins,
    "strength": schema.signed_fractions,
    "confidence": schema.fractions,
    **dict.fromkeys(PROBABILITIES, schema.fractions),
}
# Of votes whose full margin is their own.
_WHOSE = ("judge", "template")
_ROUNDED = 0.01  # how far from 1 probabilities that were rounded may add up


class FullMargin(NamedTuple):
    """The margin from which on a vote of a judge, asked by a template, is a whole win."""

    judge: str
    template: str
    margin: float


@dataclass(frozen=True)
class Strength:
    """Source of the votes' strength in a table: some of its columns and full margins."""

    kind: StrengthKind
    full_margins: tuple[FullMargin, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns that it is computed from, where they exist."""
        return [*STRENGTH_COLUMNS[self.kind], *_WHOSE]

    def sides(self, scale: Scale = PAIRS) -> tuple[pl.Expr, pl.Expr]:
        """Share of each vote for B, and for A; the rest is for a tie."""
        vote, (low, _, high) = pl.col("vote"), scale.points
        if self.kind == "probabilities":
            total = pl.sum_horizontal(PROBABILITIES)
            minus, plus = (
                # A half is rounded down: both rounded up would be more than a vote. Votes of a
                # judge without probabilities are whole.
                (pl.col(side) / total * _PARTS - 0.5).ceil().fill_null((vote == sign) * _PARTS)
                for side, sign in ((PROBABILITIES[0], low), (PROBABILITIES[2], high))
            )
            is_there = pl.when(vote.is_not_null())
            return is_there.then(minus * _STEP), is_there.then(plus * _STEP)
        size = pl.col(*STRENGTH_COLUMNS[self.kind]).abs()
        if self.kind == "margin":
            size = (size / self._full_margin()).clip(upper_bound=1.0)
        # Votes of a judge without margins are whole.
        strength = ((size * _PARTS + 0.5).floor() * _STEP).fill_null(1.0)
        return pl.when(vote == low).then(strength), pl.when(vote == high).then(strength)

    def _full_margin(self) -> pl.Expr:
        if len(self.full_margins) == 1:
            return pl.lit(self.full_margins[0].margin)
        value: pl.Expr = pl.lit(None, pl.Float64)
        for judge, template, margin in self.full_margins:
            pairs = zip(_WHOSE, (judge, template), strict=True)
            is_own = [pl.col(name) == text for name, text in pairs if text]
            value = pl.when(*is_own or [pl.lit(True)]).then(margin).otherwise(value)
        return value

    def __str__(self) -> str:
        margins = [
            f"{margin:.4g}{f' ({whose})' if (whose := ', '.join(filter(None, names))) else ''}"
            for *names, margin in self.full_margins
        ]
        full = f"; a full win is {listing(margins, 5)}" if margins else ""
        return f"votes count by their {self.kind}{full}"


def are_counts(table: Table) -> bool:
    """Whether a table has counts of votes and no votes."""
    names = [name for pair in COUNT_COLUMNS.items() for name in pair]
    return "vote" not in table.columns and not set(names).isdisjoint(table.columns)


def kind_in(table: Table, strength: str | None) -> StrengthKind | None:
    """Return which columns say how strong the votes of a table are, None if none do."""
    if strength is not None:
        one_of(strength, get_args(StrengthKind), "strength")
    if strength == "none":
        return None
    wanted = [strength] if strength else ["margin", "strength", "probabilities"]
    present = [kind for kind in wanted if set(STRENGTH_COLUMNS[kind]) <= set(table.columns)]
    if len(present) > 1:
        present = [
            kind for kind in present if _has_values(table, STRENGTH_COLUMNS[kind][0])
        ] or present[:1]
    if len(present) > 1:
        raise InputError(
            f"{table.source} has columns for {present[0]} and {present[1]}; choose one by "
            "{advice} (none counts whole votes)",
            advice={"strength": None},
        )
    if strength and not present:
        column = " and ".join(STRENGTH_COLUMNS[strength])
        raise InputError(
            f"{table.source}: {{advice}} is {strength}, but there is no column {column}; found "
            f"{listing(table.columns)}",
            advice={"strength": None},
        )
    return present[0] if present else None  # type: ignore[return-value]


def kinds_of(kind: StrengthKind | None) -> dict[str, Kind]:
    """Return how the columns of a kind of strength are parsed."""
    return {} if kind is None else {name: _KINDS[name] for name in STRENGTH_COLUMNS[kind]}


def with_votes(table: AnyTable, kind: StrengthKind, scale: Scale = PAIRS) -> AnyTable:
    """Return a table without a column of votes with what its signed strengths say."""
    table = parse(table, kinds_of(kind))
    if kind == "probabilities":
        minus, tie, plus = map(pl.col, PROBABILITIES)
        is_plus, is_minus = (
            lead(side, pl.max_horizontal(tie, other)) > 0
            for side, other in ((plus, minus), (minus, plus))
        )
        vote = is_plus.cast(pl.Int8) - is_minus.cast(pl.Int8)
    else:
        vote = pl.col(*STRENGTH_COLUMNS[kind]).sign().cast(pl.Int8)
    if scale != PAIRS:
        vote = vote.replace_strict(dict(zip(PAIRS.points, scale.points, strict=True)))
    return table.with_columns([vote.alias("vote")])


def strength_of(
    table: Table, kind: StrengthKind, full_margin: Any, scale: Scale = PAIRS
) -> Strength | None:
    """Check the strengths of parsed votes, and find full margins; None without any strength."""
    # By default a full margin is twice the mean margin of a judge and template, ties included.
    vote, (low, tie, high) = pl.col("vote"), scale.points
    forbid(
        full_margin not in (None, ()) and kind != "margin",
        f"{table.source}: {{advice}} needs a column margin, but these votes have a {kind}",
        advice={"full_margin": None},
    )
    column = STRENGTH_COLUMNS[kind][0]
    size, is_win = pl.col(column), vote != tie
    if kind == "probabilities":
        columns = [pl.col(name) for name in PROBABILITIES]
        n_there = pl.sum_horizontal(column.is_not_null() for column in columns)
        is_off = (n_there < 3) | ((pl.sum_horizontal(columns) - 1).abs() > _ROUNDED)
        is_win = vote.is_not_null()
        refuse(table, (n_there > 0) & is_off, column, "three probabilities that add up to 1")
    whose = [name for name in _WHOSE if name in table.columns]
    same = table.constants(whose)  # grouping by text takes longer than all else
    by = [name for name in whose if name not in same]
    quantities = [
        is_win.sum().alias("n"),
        (is_win & size.is_null()).sum().alias("n_absent"),
        pl.when(is_win).then(size.abs()).sum().alias("total"),
        pl.when(is_win).then(size).min().alias("least"),
        vote.count().alias("n_votes"),
    ]
    rows = table.data.lazy()
    parts = rows.group_by(by).agg(quantities) if by else rows.select(quantities)
    sums = table.collect(parts).with_columns(same.values()).sort(by)
    sums = sums.with_columns(pl.col(whose).fill_null(""), n=pl.col("n") - pl.col("n_absent"))
    if not sums["n"].sum():  # which ties alone have no need of
        return None if sums["n_absent"].sum() else Strength(kind)
    mixed = sums.filter((pl.col("n") > 0) & (pl.col("n_absent") > 0))
    if mixed.height:
        is_of_judge = [pl.col(name).fill_null("") == mixed[name][0] for name in whose]
        is_bad = is_win & size.is_null() & pl.all_horizontal(is_of_judge or [pl.lit(True)])
        few = f"{mixed['n_absent'][0]} of {mixed['n'][0] + mixed['n_absent'][0]} votes have none"
        of_whom = "every vote" if kind == "probabilities" else "every vote but ties"
        expected = f"a {column} of {of_whom} ({few}); {{advice}} none counts whole votes"
        refuse(table, is_bad, column, expected, {"strength": None})
    if (sums["least"] < 0).any():
        expected = f"a {column} with the same sign as its vote, or sizes of at least 0 in all rows"
        refuse(table, (vote == high) & (size < 0), column, expected)
        are_sizes = ((vote == low) & (size > 0)).any()
        refuse(table, (vote == low) & (size < 0) & are_sizes, column, expected)
    if kind != "margin":
        return Strength(kind)
    if isinstance(full_margin, Mapping):
        judges = sums["judge"].unique().sort().to_list() if "judge" in whose else []
        for name in full_margin:
            expected = listing(judges) if judges else "a number: there is no column judge"
            expect(name in judges, "full_margin", name, expected)
    own_margin, margins = given_margins(full_margin), []
    for row in sums.filter(pl.col("n") > 0).iter_rows(named=True):
        judge, template = (row.get(name, "") for name in _WHOSE)
        margin = own_margin(judge, template) or 2 * row["total"] / row["n_votes"]
        # Where all margins are 0 every vote is a tie, whatever a whole win would be.
        margins.append(FullMargin(judge, template, margin or 1.0))
    return Strength(kind, tuple(margins))


def _has_values(table: Table, column: str) -> bool:
    return bool(table.collect(table.data.lazy().select(pl.col(column).count())).item())


def given_margins(full_margin: Any) -> Callable[[str, str], float | None]:
    """Return a function from judge and template to the margin that was given for them."""
    if full_margin is None:
        return lambda judge, template: None
    if isinstance(full_margin, Mapping):
        by_judge = {
            str(j): as_full_margin(m, f"full_margin[{j!r}]") for j, m in full_margin.items()
        }
        return lambda judge, template: by_judge.get(judge)
    if not isinstance(full_margin, tuple):
        margin = as_full_margin(full_margin)
        return lambda judge, template: margin

    def of_model(judge: str, template: str) -> float | None:
        # Who has no name may be anyone, if there is but one.
        matching = [
            margin
            for margin in full_margin
            if margin.judge in ("", judge) or not judge
            if margin.template in ("", template) or not template
        ]
        exact = [margin for margin in matching if margin[:2] == (judge, template)]
        chosen = exact or matching or [margin for margin in full_margin if margin.judge == judge]
        return chosen[0].margin if len(chosen) == 1 else None

    return of_model


def as_full_margins(margins: Any) -> tuple[FullMargin, ...]:
    """Return full margins of a file, triples of judge, template and margin."""
    try:
        triples = [FullMargin(*triple) for triple in margins]
        return tuple(
            FullMargin(str(judge), str(template), as_full_margin(margin))
            for judge, template, margin in triples
        )
    except (TypeError, InputError):
        expected = "triples of judge, template and a margin above 0"
        raise InputError(argument="full_margins", got=margins, expected=expected) from None


def as_full_margin(full_margin: object, name: str = "full_margin") -> float:
    """Return the margin of a whole win as a float, a number above 0."""
    return as_number(full_margin, name, above=0)


def as_strengths(votes: ArrayLike, full_margin: float | None) -> NDArray[np.int8] | NDArray[Any]:
    """Return votes, or margins over the full margin (cut at 1), as strengths from -1 to 1."""
    expected = "numbers from -1 to 1, or margins with full_margin given"
    array = label_array(votes, "votes", expected if full_margin is None else "a finite margin")
    if full_margin is None:
        with np.errstate(invalid="ignore"):
            good = (array >= -1) & (array <= 1)
        require_rows(good, array, "votes", expected)
        if array.dtype.kind in "iu":
            return array.astype(np.int8)
        strengths = array.astype(np.float64)
    else:
        require_rows(np.isfinite(array), array, "votes", "a finite margin")
        margin = as_full_margin(full_margin)
        strengths = np.clip(array.astype(np.float64) / margin, -1, 1)
    on_steps: NDArray[Any] = np.copysign(rounded(np.abs(strengths)), strengths)
    is_whole = bool((on_steps % 1 == 0).all())
    return on_steps.astype(np.int8) if is_whole else on_steps


def rounded(strengths: Any) -> Any:
    """Round strengths, numbers or arrays of at least 0, as `Strength.sides` does columns."""
    return np.floor(strengths * _PARTS + 0.5) * _STEP


def rounded_probability(probability: Any) -> Any:
    """Round the probability of a side, a half down; see `Strength.sides`."""
    return np.ceil(probability * _PARTS - 0.5) * _STEP
