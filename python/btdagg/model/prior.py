"""A prior learned from neighbours: whatever is labelled already."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from btdagg._util.errors import InputError, expect, forbid, within
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_checked_counts,
    as_number,
    distinct_rows,
    same_length,
)
from btdagg.votes.by_id import as_items
from btdagg.votes.items import Items
from btdagg.votes.scale import PAIRS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg import _core

WEAK_SHARE = 0.1
"""Share of the weak prior beside neighbours: what protects from neighbours that do not fit."""

_CAP = 400  # labels that a neighbour counts for at the most


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
    _fits: dict[tuple[float, float], tuple[Any, Any, float]] = field(
        default_factory=dict, init=False, repr=False
    )

    def fit(
        self, alpha: float, kappa: float, usual_votes: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return beta, eta0 and gamma that its labels tell, and their covariance.

        They are for items of so many votes; with the weak prior, and at most 400 labels count.
        """
        key = alpha, kappa
        if key not in self._fits:
            from btdagg.model.design import PairsDesign, usual_number

            usual = usual_number(self.counts, self.labels.sum(axis=1))
            design = PairsDesign.of(self.counts, alpha, kappa, PAIRS, PAIRS, usual_votes=usual)
            weights: Any = self.labels * min(1.0, _CAP / self.n_labels)
            rows = design.rows(self.counts, np.empty((len(weights), 0)), weights[None])
            theta, _, covariance, _ = design.believed(rows).posteriors(*rows, 1)
            self._fits[key] = theta[0], covariance[0], design.usual_votes[0]
        theta, covariance, own = self._fits[key]
        more = [math.log1p(own / c) / math.log1p(usual_votes / c) for c in (alpha, kappa)]
        scale = np.array([more[0], 1.0, more[1]])
        return theta * scale, covariance * scale * scale[:, None]

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

    def parameters(self, n_votes: float | None = None) -> NDArray[np.float64]:
        """Beta, eta0 and gamma of each neighbour, (k, 3), for items of `n_votes` votes.

        By default of as many as all have.
        """
        usual = self.n_votes if n_votes is None else as_number(n_votes, "n_votes", above=0)
        fits = (of.fit(self.alpha, self.kappa, usual) for of in self.neighbours.values())
        return np.stack([theta for theta, _ in fits])

    def beside(
        self, weak: _core.Prior, usual_votes: float, alpha: float, kappa: float
    ) -> _core.Prior:
        """Return a weak prior with these neighbours, for items of so many votes."""
        for name, ours in {"alpha": alpha, "kappa": kappa}.items():
            its = getattr(self, name)
            expected = f"{its:g} as in the prior, or a prior of fit_prior(..., {name}={ours:g})"
            expect(ours == its, name, ours, expected)
        # One that is named twice is one.
        by_content = {
            (of.counts.tobytes(), of.labels.tobytes()): of for of in self.neighbours.values()
        }
        fits = [of.fit(alpha, kappa, usual_votes) for of in by_content.values()]
        parameters, covariances = (np.stack(both) for both in zip(*fits, strict=True))
        return weak.with_neighbours(parameters, covariances, self.weak_share)

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
        For each neighbour (counts, labels), as `calibrate` takes them, or labelled items; a third
        element is the id or group of each item, (n,), which tables have. An iterable is named by
        numbers from 1.
    leave_out : collection
        Items, or groups, to leave out of every neighbour, such as those of an evaluation; compared
        as text.
    alpha, kappa : float
        Smoothing constants of the features.
    weak_share : float
        Share that the weak prior keeps beside the neighbours, in case they do not fit.

    Notes
    -----
    Empirical Bayes: the prior of the parameters is a mixture of the neighbours' posteriors under
    the weak prior, a little wider, in each of which 400 labels count at the most, and of a part
    that spans them. Neighbours may have other numbers of votes an item: features are compared as
    shares of those of unanimous items.

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
    names: list[Any] = []
    if isinstance(pair, Items):
        items = pair.labelled()
    else:
        if not isinstance(pair, list | tuple) or len(pair) not in (2, 3) or pair[1] is None:
            raise InputError("expected a pair (counts, labels), or with the items' groups a triple")
        items, names = as_items(*pair[:2]), [*pair[2:]]
    gold, votes = items.label_scale.sides(items.label), as_checked_counts(items.pooled)
    if items.has_ids:
        names += [items.ids, *([] if items.group is None else [items.group])]
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
