"""What aggregators decide items by: counts, and confidences or decisions if there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import (
    CountsItself,
    as_counts,
    as_partial_labels,
    same_length,
    unmasked,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SIDES = ("minus", "tie", "plus")


@readable
@dataclass(frozen=True, eq=False)
class Confidences:
    """Confidences of the votes, summed up by item and label; columns in label order -1, 0, +1.

    A label without votes has total 0, least infinity and log product 0. If the confidence of a vote
    is missing, all three are NaN.

    Attributes
    ----------
    total : (n, 3) array of float64
        Their sum.
    least : (n, 3) array of float64
        The smallest.
    log_product : (n, 3) array of float64
        Sum of their logarithms; minus infinity if one of them is 0.
    """

    total: NDArray[np.float64]
    least: NDArray[np.float64]
    log_product: NDArray[np.float64]

    def __getitem__(self, rows: ArrayLike) -> Self:
        """Return those of some items, by an array of indices or a mask."""
        chosen = np.asarray(rows)
        return type(self)(self.total[chosen], self.least[chosen], self.log_product[chosen])


@readable
@dataclass(frozen=True, eq=False)
class Evidence:
    """What aggregators decide items by.

    It can be used as an array of its counts: `numpy.asarray`, `calibrate` and every aggregator that
    needs only counts accept it.

    Attributes
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order: minus, tie, plus.
    confidences : Confidences or None
        Confidences of the votes, if there are any.
    decisions : mapping of str to (n,) array of float64
        Decisions made elsewhere, such as by a generative aggregator: -1, 0, 1 or NaN per item.
    ids : (n,) array or None
        Names of the items in messages; by default their row numbers.
    no_confidences : str
        Why a column of confidences is not usable; the error of an aggregator that needs them.
    by_judge : mapping of str to (n, 3) array of non-negative integers
        Of a panel, the counts of each judge, which `counts` has summed up.
    """

    counts: NDArray[Any]
    confidences: Confidences | None = None
    decisions: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    ids: NDArray[Any] | None = None
    no_confidences: str = ""
    by_judge: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", as_counts(self.counts))
        if self.confidences is not None:
            for name, values in vars(self.confidences).items():
                if np.shape(values) != (len(self), 3):
                    raise InputError(
                        f"confidences.{name} has shape {np.shape(values)}, expected "
                        f"({len(self)}, 3) as counts",
                        argument="confidences",
                    )
        decisions = {
            name: as_partial_labels(decided, f"decisions of {name}")
            for name, decided in self.decisions.items()
        }
        for name, decided in decisions.items():
            same_length(f"decisions of {name}", len(decided), "counts", len(self))
        object.__setattr__(self, "decisions", decisions)
        by_judge = {name: as_counts(counts) for name, counts in self.by_judge.items()}
        for name, counts in by_judge.items():
            same_length(f"counts of judge {name!r}", len(counts), "counts", len(self))
        object.__setattr__(self, "by_judge", by_judge)
        ids = np.arange(len(self)) if self.ids is None else np.asarray(unmasked(self.ids, "ids"))
        same_length("ids", len(ids), "counts", len(self))
        object.__setattr__(self, "ids", ids)

    @classmethod
    def of(cls, counts: ArrayLike | Evidence) -> Evidence:
        """Return evidence unchanged, or make it from a table of votes or an array of counts."""
        if isinstance(counts, CountsItself):
            return counts.evidence()[1]
        return counts if isinstance(counts, Evidence) else cls(as_counts(counts))

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but counts."""
        plain = self.confidences is None and not self.decisions and not self.no_confidences
        return plain and not self.by_judge

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: ArrayLike) -> Evidence:
        """Return the evidence of some items, by an array of indices or a mask."""
        chosen = np.asarray(rows)
        chosen = chosen if chosen.size else chosen.astype(np.intp)
        return Evidence(
            self.counts[chosen],
            None if self.confidences is None else self.confidences[chosen],
            {name: decided[chosen] for name, decided in self.decisions.items()},
            self._ids[chosen],
            self.no_confidences,
            {name: counts[chosen] for name, counts in self.by_judge.items()},
        )

    @property
    def _ids(self) -> NDArray[Any]:
        assert self.ids is not None  # it is set from the start
        return self.ids

    def _name(self, row: int) -> str:
        """Item of a row, for an error message."""
        return repr(self._ids[row : row + 1].tolist()[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the counts."""
        return np.array(self.counts, dtype=dtype, copy=copy)

    def require_confidences(self, wanted_by: str) -> Confidences:
        """Return the confidences, which every vote must have."""
        if self.confidences is None:
            if self.no_confidences:
                raise InputError(f"{wanted_by}: {self.no_confidences}")
            raise InputError(
                f"{wanted_by} needs a confidence of every vote, and there are none: name their "
                "column",
                argument="confidence",
            )
        absent = np.isnan(self.confidences.total)
        if absent.any():
            row, column = np.argwhere(absent)[0]
            raise InputError(
                f"{wanted_by} needs a confidence of every vote: item {self._name(row)} has a vote "
                f"({_SIDES[column]}) without one"
            )
        return self.confidences

    def require_judge(self, name: str) -> NDArray[Any]:
        """Return the counts of a judge of a panel, (n, 3)."""
        if name not in self.by_judge:
            found = ", ".join(self.by_judge) or "none"
            raise InputError(f"there are no counts of judge {name!r}; found {found}")
        return self.by_judge[name]

    def require_decisions(self, name: str) -> NDArray[np.int8]:
        """Return the decisions of that name, which every item must have: (n,) array of -1, 0, 1."""
        if name not in self.decisions:
            found = ", ".join(self.decisions) or "none"
            raise InputError(f"there are no decisions of {name!r}; found {found}")
        decided = self.decisions[name]
        absent = np.isnan(decided)
        if absent.any():
            raise InputError(
                f"{name!r} has no decision of item {self._name(int(np.argmax(absent)))}, as of "
                f"{absent.sum()} of {len(self)} items"
            )
        return decided.astype(np.int8)
