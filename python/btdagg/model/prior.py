"""A prior learned from neighbours: whatever is labelled already."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect, forbid, within
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    CountsItself,
    as_checked_counts,
    as_number,
    distinct_rows,
    same_length,
)
from btdagg.model.calibration_set import calibration_set
from btdagg.votes.by_id import counts_and_sides

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEAK_SHARE = 0.1
"""Share of the weak prior beside neighbours: what protects from neighbours that do not fit."""

# Parameters that a prior holds, and each neighbour at the least.
_PARTICLES, _LEAST = 1024, 32


@dataclass(frozen=True, eq=False)
class Neighbour(Readable):
    """Labelled items of one neighbour, gathered: all that a prior keeps of them.

    Attributes
    ----------
    counts : (k, 3) array of int64, or of float64 where counts are not whole
        Distinct votes per item in label order: minus, tie, plus.
    labels : (k, 3) array of int64
        How many items with these votes have each label.
    """

    counts: NDArray[Any]
    labels: NDArray[np.int64]
    _particles: dict[tuple[float, float, int, int], NDArray[np.float64]] = field(
        default_factory=dict, init=False, repr=False
    )

    def parameters(self, alpha: float, kappa: float, n_votes: int, n: int) -> NDArray[np.float64]:
        """Return equally likely parameters, (n, 3), of its items thinned to a number of votes."""
        key = alpha, kappa, n_votes, n
        if key not in self._particles:
            items = calibration_set(self.counts, None, self.labels, alpha=alpha, kappa=kappa)
            made = _core.Prior.of_neighbour(items, float(self.n_labels), n_votes, n)
            self._particles[key] = made.parameters
        return self._particles[key]

    @property
    def n_labels(self) -> int:
        """Number of labelled items."""
        return int(self.labels.sum())

    @property
    def n_votes(self) -> int:
        """Most votes of an item."""
        return min(math.ceil(float(self.counts.sum(axis=1).max()) - 1e-6), 2**63 - 1)


@dataclass(frozen=True, eq=False)
class Prior(SavedAsJson, Readable):
    """A prior of the parameters, learned from neighbours by `fit_prior`.

    Attributes
    ----------
    neighbours : dict of str to Neighbour
        Their labelled items by name.
    alpha, kappa : float
        Smoothing constants that its parameters are for.
    weak_share : float
        Share of the weak prior beside the neighbours.
    """

    FILE: ClassVar[FileFormat] = FileFormat("btdagg.prior", "prior")
    INDENT = None

    neighbours: Mapping[str, Neighbour]
    alpha: float = 1.0
    kappa: float = 1.0
    weak_share: float = WEAK_SHARE
    _learned: dict[int, _core.Prior] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        forbid(not self.neighbours, "neighbours is empty, expected at least one", "neighbours")
        for name, most in (("alpha", np.inf), ("kappa", np.inf), ("weak_share", 1.0)):
            value = as_number(getattr(self, name), name, above=0, most=most)
            object.__setattr__(self, name, value)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the neighbours."""
        return tuple(self.neighbours)

    @property
    def n_labels(self) -> int:
        """Labelled items of all neighbours."""
        return sum(neighbour.n_labels for neighbour in self.neighbours.values())

    @property
    def n_votes(self) -> int:
        """Votes per item that all neighbours have: the least of their largest numbers."""
        return min(neighbour.n_votes for neighbour in self.neighbours.values())

    def without(self, names: str | Collection[str]) -> Prior:
        """Return the prior of the other neighbours."""
        left_out = {names} if isinstance(names, str) else set(names)
        for name in sorted(left_out - set(self.neighbours)):
            raise InputError(argument="names", got=name, expected=f"of {', '.join(self.names)}")
        rest = {
            name: neighbour for name, neighbour in self.neighbours.items() if name not in left_out
        }
        return Prior(rest, self.alpha, self.kappa, self.weak_share)

    def parameters(self, n_votes: int | None = None) -> NDArray[np.float64]:
        """Equally likely beta, eta0, gamma, (m, 3), at `n_votes`, by default what all have."""
        return self.learned(self.n_votes if n_votes is None else n_votes).parameters

    def learned(self, n_votes: int) -> _core.Prior:
        """Return what the core makes of the neighbours at a number of votes."""
        if n_votes not in self._learned:
            n = max(_PARTICLES // len(self.neighbours), _LEAST)
            of_neighbours = [
                neighbour.parameters(self.alpha, self.kappa, n_votes, n)
                for neighbour in self.neighbours.values()
            ]
            self._learned[n_votes] = _core.Prior(np.concatenate(of_neighbours))
        return self._learned[n_votes]

    def as_dict(self) -> dict[str, Any]:
        """Return the votes and labels of the neighbours, counted, as plain values."""
        return {
            "alpha": self.alpha,
            "kappa": self.kappa,
            "weak_share": self.weak_share,
            "n_votes": self.n_votes,
            "n_labels": self.n_labels,
            "neighbours": [
                {
                    "name": name,
                    "n_votes": neighbour.n_votes,
                    "n_labels": neighbour.n_labels,
                    "rows": [
                        [*counts, *labels]
                        for counts, labels in zip(
                            neighbour.counts.tolist(), neighbour.labels.tolist(), strict=True
                        )
                    ],
                }
                for name, neighbour in self.neighbours.items()
            ],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the prior from the fields of `as_dict`."""
        neighbours = {}
        for neighbour in fields["neighbours"]:
            rows = np.array(neighbour["rows"], dtype=np.float64).reshape(-1, 6)
            counts, labels = as_checked_counts(rows[:, :3]), rows[:, 3:].astype(np.int64)
            expected = "at least one label and none below 0"
            expect(not (labels < 0).any() and labels.any(), "rows", neighbour["rows"], expected)
            neighbours[str(neighbour["name"])] = Neighbour(counts, labels)
        return cls(neighbours, fields["alpha"], fields["kappa"], fields["weak_share"])

    def __str__(self) -> str:
        noun = "neighbour" if len(self.neighbours) == 1 else "neighbours"
        return (
            f"prior of {len(self.neighbours)} {noun} with {self.n_labels} labels at "
            f"{self.n_votes} votes an item: {', '.join(self.names)}"
        )


def fit_prior(
    neighbours: Any,
    *,
    leave_out: Collection[Any] = (),
    alpha: float = 1.0,
    kappa: float = 1.0,
    weak_share: float = WEAK_SHARE,
) -> Prior:
    """Learn a prior from labelled items of other tasks or judges.

    Parameters
    ----------
    neighbours : mapping of str to pairs, or iterable of pairs
        For each neighbour (counts, labels), as `calibrate` takes them; a third element is the id or
        group of each item, (n,), which tables have. An iterable is named by numbers from 1.
    leave_out : collection
        Items, or groups, to leave out of every neighbour, such as those of an evaluation; compared
        as text.
    alpha, kappa : float
        Smoothing constants of the features.
    weak_share : float
        Share that the weak prior keeps beside the neighbours, in case they do not fit.

    Notes
    -----
    Nonparametric empirical Bayes: the prior of the parameters is the mean of the neighbours'
    posteriors under the weak prior, in each of which 400 labels count at the most.

    References
    ----------
    Robbins (1956); Efron (2014), Two modeling strategies for empirical Bayes estimation.

    Examples
    --------
    >>> other = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> prior = fit_prior({"math": (other, [1, 0, -1, 0, 1, 0])})
    >>> prior.n_labels, prior.n_votes
    (6, 12)
    """
    by_name = neighbours
    if not isinstance(neighbours, Mapping):
        by_name = {str(number): pair for number, pair in enumerate(neighbours, 1)}
    is_list = isinstance(leave_out, Iterable) and not isinstance(leave_out, str)
    expect(is_list, "leave_out", leave_out, "a list of ids or groups")
    held_out = {str(name) for name in leave_out}
    gathered = {}
    for name, pair in by_name.items():
        with within(f"neighbour {name!r}: "):
            gathered[name] = _gathered(pair, held_out)
    return Prior(gathered, alpha, kappa, weak_share)


def _gathered(pair: Any, held_out: set[str]) -> Neighbour:
    if not isinstance(pair, list | tuple) or len(pair) not in (2, 3) or pair[1] is None:
        raise InputError("expected a pair (counts, labels), or with the items' groups a triple")
    counts, labels, *names = pair
    if hasattr(labels, "unlabelled") and isinstance(counts, CountsItself):
        items = counts.labelled(labels)
        counts, labels = items.by_judge, items.label_scale.sides(items.label)
        names += [items.ids, *([] if items.group is None else [items.group])]
    votes, gold = counts_and_sides(counts, labels)
    if held_out:
        expect(names, "leave_out", held_out, "None, since the items have no ids or groups")
        kept = np.ones(len(votes), dtype=np.bool_)
        for of_items in names:
            same_length("groups", len(of_items), "counts", len(votes))
            kept &= [str(name) not in held_out for name in np.asarray(of_items).tolist()]
        votes, gold = votes[kept], gold[kept]
        forbid(not len(gold), "leave_out leaves it no items")
    first, place = distinct_rows(*votes.T)
    table = np.bincount(3 * place + gold + 1, minlength=3 * len(first))
    return Neighbour(votes[first], table.reshape(-1, 3))
