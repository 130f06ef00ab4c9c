"""What a model was fitted to, and whether it is used for something else."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg.validation import as_counts, as_integer

if TYPE_CHECKING:
    from btdagg.tables import Table, Votes

COLUMNS = ("judge", "template", "temperature", "task")
_LISTED = 5


class ProvenanceWarning(UserWarning):
    """A model that is used for something else than it was fitted to."""


@dataclass(frozen=True)
class Provenance:
    """What a model was fitted to. Whatever is not known is empty, and is not compared.

    Parameters
    ----------
    n_votes : int, optional
        Votes per item.
    n_labels : int, optional
        Labelled items.
    judge, template, temperature, task : str, number, or several of them
        Where the votes are from, as their columns say it; kept as tuples of str. Numbers are
        written in one way: 0.5 and ``"0.50"`` are one temperature.

    Raises
    ------
    InputError
        If a number is no integer of at least 0, or a value is neither text nor number.

    Examples
    --------
    >>> provenance = Provenance(n_votes=2, judge="gpt-5.4", temperature=0.5)
    >>> provenance.differences([[0, 1, 7], [8, 0, 0]])
    ('items have up to 8 votes, and the model was fitted for 2 an item',)
    """

    n_votes: int | None = None
    n_labels: int | None = None
    judge: tuple[str, ...] = ()
    template: tuple[str, ...] = ()
    temperature: tuple[str, ...] = ()
    task: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n_votes", "n_labels"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_integer(value, name, 0, 2**64 - 1))
        for name in COLUMNS:
            object.__setattr__(self, name, _texts(name, getattr(self, name)))

    @classmethod
    def of(cls, votes: Table) -> Self:
        """Return what votes, counts or labels, as they were read, say of where they are from."""
        judge, template, temperature, task = (_values(votes, name) for name in COLUMNS)
        return cls(judge=judge, template=template, temperature=temperature, task=task)

    @classmethod
    def from_dict(cls, found: object) -> Self:
        """Return the provenance that `as_dict` gave.

        Raises
        ------
        InputError
            If it is no mapping, has another field, or a value is out of range.
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(found, Mapping):
            raise InputError(f"provenance is {found!r}, want an object")
        for name in found:
            if name not in names:
                raise InputError(f"unknown field {name!r} of provenance, want {', '.join(names)}")
        return cls(**found)

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, by name, as plain values."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in known.items()
            if value is not None and value != ()
        }

    def __str__(self) -> str:
        parts = []
        if self.n_votes is not None:
            parts.append(f"{self.n_votes} votes an item")
        if self.n_labels is not None:
            parts.append(f"{self.n_labels} labels")
        parts += [
            f"{name} {_listing(getattr(self, name))}" for name in COLUMNS if getattr(self, name)
        ]
        return ", ".join(parts) or "not known"

    def differences(
        self,
        counts: Any,
        votes: Votes | None = None,
        *,
        n_votes: int | None = None,
        fewer: bool = True,
    ) -> tuple[str, ...]:
        """Say where items differ from those that the model was fitted to.

        Parameters
        ----------
        counts : (n, 3) array of integers
            The items.
        votes : Votes, optional
            Where they are from: votes that are missing are no difference, judge, template,
            temperature and task are.
        n_votes : int, optional
            How many votes were taken of each item, if not all.
        fewer : bool
            False where items may have fewer votes, such as those that a rule stopped early.

        Returns
        -------
        tuple of str
            More votes of an item than the model was fitted for; fewer of every item; other values
            of a column than the model was fitted to.
        """
        found = []
        totals = as_counts(counts).sum(axis=1, dtype=np.float64)
        most = int(totals.max()) if len(totals) else self.n_votes
        if self.n_votes is not None and most is not None:
            if most > self.n_votes:
                found.append(f"items have up to {most} votes, and {self._fitted_for()}")
            elif fewer and most < self.n_votes and _most_rows(votes, n_votes) < self.n_votes:
                votes_of = f"{most} vote{'s' * (most != 1)}"
                found.append(f"no item has more than {votes_of}, and {self._fitted_for()}")
        if votes is not None:
            found += self.other_values({name: _values(votes, name) for name in COLUMNS})
        return tuple(found)

    def other_number(self, n_votes: int) -> tuple[str, ...]:
        """Say so where a number of votes per item is not the one that the model was fitted for."""
        if self.n_votes in (None, n_votes):
            return ()
        return (f"{n_votes} votes an item are planned, and {self._fitted_for()}",)

    def other_values(self, columns: Mapping[str, object]) -> tuple[str, ...]:
        """Say which values of columns are others than the model was fitted to."""
        found = []
        for name in COLUMNS:
            known = getattr(self, name)
            others = [v for v in _texts(name, columns.get(name, ())) if v not in known]
            if known and others:
                found.append(
                    f"{name} is {_listing(others)}, and the model was fitted for {_listing(known)}"
                )
        return tuple(found)

    def _fitted_for(self) -> str:
        return f"the model was fitted for {self.n_votes} an item"


def warn_of(differences: Iterable[str]) -> None:
    """Warn of each difference, at the line outside btdagg that led to it."""
    for text in differences:
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
            frame, level = frame.f_back, level + 1
        warnings.warn(text, ProvenanceWarning, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


def _texts(name: str, given: object) -> tuple[str, ...]:
    several = given if isinstance(given, list | tuple | set | frozenset) else (given,)
    return tuple(dict.fromkeys(_text(name, value) for value in several))


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | np.number):
        raise InputError(f"{name} of provenance is {value!r}, want text")
    if name == "temperature":
        try:
            return f"{float(value):g}"
        except ValueError:
            pass
    return str(value)


def _values(votes: Table, column: str) -> tuple[str, ...]:
    if column not in votes.columns:
        return ()
    return tuple(value for value in votes.values(column).sort() if value)


def _most_rows(votes: Votes | None, n_votes: int | None) -> int:
    """Most votes of an item, those that are missing among them, but no more than were taken."""
    if votes is None or "vote" not in votes.columns:
        return 0
    most: Any = votes.most_rows
    return min(most or 0, most or 0 if n_votes is None else n_votes)


def _listing(values: Iterable[str]) -> str:
    several = list(values)
    more = len(several) - _LISTED
    return ", ".join(several[:_LISTED]) + (f" and {more} more" if more > 0 else "")
