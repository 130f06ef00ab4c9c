"""Origin of a model's data, and how its use differs from that."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg import remarks
from btdagg._core import InputError
from btdagg._util.validation import as_integer
from btdagg.remarks import Remark
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.strength import (
    STRENGTH_COLUMNS,
    FullMargin,
    are_counts,
    as_full_margins,
    kind_in,
)
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from btdagg.votes.table import Table

COLUMNS = ("judge", "template", "temperature", "task")
_LISTED = 5


class ProvenanceWarning(UserWarning):
    """A model is used on votes that it was not fitted for."""


@dataclass(frozen=True)
class Provenance:
    """Origin of a model's data. Unknown values are empty and are not compared.

    Parameters
    ----------
    n_votes : int, optional
        Votes per item, the most of any.
    votes_of_labels : tuple of int
        The numbers of votes of the labelled items, where they have unequal ones.
    n_labels : int, optional
        Labelled items.
    judge, template, temperature, task : str, number, or several of them
        Where the votes come from, as in their columns; stored as tuples of str. Numbers are
        normalized: 0.5 and ``"0.50"`` are the same temperature.
    strength : str
        Kind of vote strength, as in `btdagg.read_votes`, or ``none``.
    full_margins : tuple of (judge, template, margin)
        The margins of a whole win, where it was their margin.
    ancestry : tuple of str
        For a model that was carried over: the judge that it is from, with its labels.

    Examples
    --------
    >>> provenance = Provenance(n_votes=2, judge="gpt-5.4", temperature=0.5)
    >>> provenance.differences([[0, 1, 7], [8, 0, 0]])
    ('items have up to 8 votes, but the model was fitted for 2 votes an item',)
    """

    n_votes: int | None = None
    n_labels: int | None = None
    judge: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    temperature: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    strength: str = ""
    full_margins: tuple[FullMargin, ...] = ()
    ancestry: tuple[str, ...] = ()
    votes_of_labels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n_votes", "n_labels"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_integer(value, name, 0, 2**64 - 1))
        numbers = (as_integer(n, "votes_of_labels", 0) for n in self.votes_of_labels)
        object.__setattr__(self, "votes_of_labels", tuple(numbers))
        for name in COLUMNS:
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        object.__setattr__(self, "full_margins", as_full_margins(self.full_margins))
        object.__setattr__(self, "ancestry", _texts("ancestry", list(self.ancestry)))

    @classmethod
    def of(cls, votes: Table) -> Self:
        """Return the provenance that the columns of a table state."""
        judge, template, temperature, task = (_values(votes, name) for name in COLUMNS)
        origin = cls(judge=judge, template=template, temperature=temperature, task=task)
        strength = getattr(votes, "strength", None)
        if strength is not None:
            margins = [
                margin
                for margin in strength.full_margins
                if margin.judge in ("", *judge) and margin.template in ("", *template)
            ]
            return replace(origin, strength=strength.kind, full_margins=tuple(margins))
        # Counts that are no whole numbers are of votes whose strength nobody tells.
        are_fractions = getattr(votes, "are_counts", True) and "minus" in votes.schema
        are_fractions = are_fractions and not votes.schema["minus"].is_integer()
        return origin if are_fractions else replace(origin, strength="none")

    def of_fit(self, n_votes: int, n_labels: int, votes_of_labels: tuple[int, ...] = ()) -> Self:
        """Return it with the numbers of a fit: the votes unless known, and the labels."""
        most = (n_votes or None) if self.n_votes is None else self.n_votes
        return replace(self, n_votes=most, n_labels=n_labels, votes_of_labels=votes_of_labels)

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Return the provenance from the fields of `as_dict`."""
        names = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or not set(values) <= set(names):
            raise InputError(argument="provenance", got=values, expected=f"any of {names}")
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are not empty by name, as plain values."""
        values = {name: value for name, value in vars(self).items() if value not in (None, (), "")}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def __str__(self) -> str:
        numbers = {"votes an item": self._numbers, "labels": self.n_labels}
        parts = [f"{number} {what}" for what, number in numbers.items() if number is not None]
        texts = {name: getattr(self, name) for name in COLUMNS}
        parts += [f"{name} {listing(values, _LISTED)}" for name, values in texts.items() if values]
        parts += [f"carried over from {' and then '.join(self.ancestry)}"] * bool(self.ancestry)
        return ", ".join(parts) or "not known"

    def differences(
        self,
        counts: Any,
        votes: Table | None = None,
        *,
        fewer: bool = True,
        scale: Scale = PAIRS,
    ) -> tuple[str, ...]:
        """Say where items differ from those that the model was fitted to, a text each.

        Parameters
        ----------
        counts : (n, 3) array, or (n, J) of grades
        votes : Table, optional
            Their votes, whose judge, template, temperature and task are compared.
        fewer : bool
            False if items may have fewer votes, such as those a rule stopped early.
        scale : Scale
            Scale of the votes.
        """
        differences = []
        array = scale.read_counts(counts)
        totals = array.sum(axis=1, dtype=np.float64)
        # Not a number where a count is none, which the model refuses by its row.
        most = np.rint(totals.max()) if len(totals) else self.n_votes
        if self.n_votes is not None and most is not None:
            if most > self.n_votes:
                differences.append(f"items have up to {most:.0f} votes, but {self._fitted_for()}")
            elif fewer and most < min((self.n_votes, *self.votes_of_labels)):
                more = f"no item has more than {most:.0f} vote{'s' * bool(most != 1)}"
                differences.append(f"{more}, but {self._fitted_for()}")
        if votes is not None:
            differences += self.other_values({name: _values(votes, name) for name in COLUMNS})
            origin = self.of(votes)
            differences += self.other_strength(origin.strength, origin.full_margins)
        return tuple(differences)

    def other_number(self, n_votes: int) -> tuple[str, ...]:
        """Return a text if a number of votes per item is not that of the model."""
        if self.n_votes in (None, n_votes) or n_votes in self.votes_of_labels:
            return ()
        return (f"{n_votes} votes an item are planned, but {self._fitted_for()}",)

    def other_values(self, columns: Mapping[str, object]) -> tuple[str, ...]:
        """Return a text for each column with values that the model was not fitted to."""
        texts = []
        for name in COLUMNS:
            fitted = getattr(self, name)
            unfitted = tuple(v for v in _texts(name, columns.get(name, ())) if v not in fitted)
            if fitted and unfitted:
                listed = listing(unfitted, _LISTED), listing(fitted, _LISTED)
                texts.append(remarks.other_values(name, unfitted, listed))
        return tuple(texts)

    def other_strength(
        self, kind: str, full_margins: tuple[FullMargin, ...] = ()
    ) -> tuple[Remark, ...]:
        """Return a remark if votes count by other columns or margins than the model's did."""
        if "" in (self.strength, kind):
            return ()
        if self.strength == kind:
            fitted = {margin[:2]: margin.margin for margin in self.full_margins}
            differing = [
                margin
                for margin in full_margins
                if fitted.get(margin[:2], margin.margin) != margin.margin
            ]
            return tuple(
                remarks.other_margin(margin.margin, fitted[margin[:2]]) for margin in differing
            )
        return (remarks.other_strength(kind, self.strength),)

    def unused_strength(self, votes: Table) -> tuple[str, ...]:
        """Return a text if votes have a strength, and the model was fitted to signs."""
        kind = kind_in(votes, None) if self.strength == "none" else None
        return () if kind is None else self.other_strength(kind)

    def how_to_read(self, votes: Table) -> dict[str, Any]:
        """Return arguments with which `read_votes` reads votes as those that were fitted to.

        Votes that lack the columns of their strength are read by their signs.
        """
        if not self.strength or are_counts(votes):
            return {}
        columns = STRENGTH_COLUMNS.get(self.strength, ())
        if not columns or not set(columns) <= set(votes.columns):
            return {"strength": "none"}
        return {"strength": self.strength, "full_margin": self.full_margins}

    def _fitted_for(self) -> str:
        return f"the model was fitted for {self._numbers} votes an item"

    @property
    def _numbers(self) -> str | int | None:
        few = self.votes_of_labels
        return self.n_votes if len(few) < 2 else f"{few[0]} to {few[-1]}"


def warn_of(differences: Iterable[str]) -> None:
    """Warn of each difference, at the line outside btdagg that caused it."""
    for text in differences:
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
            frame, level = frame.f_back, level + 1
        warnings.warn(text, ProvenanceWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


def _texts(name: str, value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    if name != "temperature":
        return tuple(dict.fromkeys(map(str, values)))
    texts: dict[str, None] = {}
    for temperature in values:
        try:
            texts[f"{float(temperature):g}"] = None
        except ValueError:  # such as "default"
            texts[temperature] = None
    return tuple(texts)


def _values(votes: Table, column: str) -> tuple[str, ...]:
    if column not in votes.columns:
        return ()
    return tuple(value for value in votes.values(column).sort() if value)
