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
    as_partial_labels,
    same_length,
    unmasked,
)
from btdagg.votes.scale import PAIRS, Scale

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
    total, least, log_product : (n, 3) arrays of float64
        Their sum, the smallest, and the sum of their logarithms.
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
    counts : (n, 3) array of non-negative numbers
        Votes per item in label order: minus, tie, plus; of grades (n, J), for each of the scale.
    confidences : Confidences or None
        Confidences of the votes, if there are any.
    decisions : mapping of str to (n,) array of float64
        Decisions made elsewhere, such as by a generative aggregator: -1, 0, 1 or NaN per item.
    ids : (n,) array
        Names of the items in messages; by default their row numbers.
    by_judge : mapping of str to (n, 3) array of non-negative numbers
        Of a panel, the counts of each judge, which `counts` has summed up.
    signs : (n, 3) array of non-negative numbers
        Votes per item without their strength, which `counts` has; by default `counts`.
    scale : Scale
        Of the votes.
    no_confidences : str
        Why a column of confidences is not usable; the error of an aggregator that needs them.
    """

    counts: NDArray[Any]
    confidences: Confidences | None = None
    decisions: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    ids: NDArray[Any] = None  # type: ignore[assignment]  # row numbers
    by_judge: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    signs: Any = None
    scale: Scale = PAIRS
    no_confidences: str = ""

    def __post_init__(self) -> None:
        read = self.scale.read_counts if self.scale.mirrored else self.scale.counts
        counts = read(self.counts)
        decisions = {
            name: as_partial_labels(decided, f"decisions of {name}")
            for name, decided in self.decisions.items()
        }
        by_judge = {name: read(counts) for name, counts in self.by_judge.items()}
        ids = np.arange(len(counts)) if self.ids is None else np.asarray(unmasked(self.ids, "ids"))
        signs = counts if self.signs is None else read(self.signs)
        confidences = {} if self.confidences is None else vars(self.confidences)
        columns = {
            **{f"confidences.{name}": values for name, values in confidences.items()},
            **{f"decisions of {name}": decided for name, decided in decisions.items()},
            **{f"counts of judge {name!r}": own for name, own in by_judge.items()},
            "ids": ids,
            "signs": signs,
        }
        for name, column in columns.items():
            same_length(name, len(column), "counts", len(counts))
        checked = {"counts": counts, "decisions": decisions, "by_judge": by_judge}
        self.__dict__.update(checked, ids=ids, signs=signs)

    @classmethod
    def of(cls, counts: ArrayLike | Evidence, scale: Scale = PAIRS) -> Evidence:
        """Return evidence unchanged, or make it from a table of votes or an array of counts."""
        if isinstance(counts, CountsItself):
            return counts.evidence()[1]
        return counts if isinstance(counts, Evidence) else cls(counts, scale=scale)  # type: ignore[arg-type]

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but counts."""
        plain = self.confidences is None and not self.decisions and not self.no_confidences
        return plain and not self.by_judge and self.signs is self.counts

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
            self.ids[chosen],
            {name: counts[chosen] for name, counts in self.by_judge.items()},
            None if self.signs is self.counts else self.signs[chosen],
            self.scale,
            self.no_confidences,
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the counts."""
        return np.array(self.counts, dtype=dtype, copy=copy)

    def require_confidences(self, method: str) -> Confidences:
        """Return the confidences, which every vote must have for a method."""
        needs = f"{method} needs a confidence of every vote"
        if self.confidences is None:
            if self.no_confidences:
                raise InputError(f"{method}: {self.no_confidences}")
            raise InputError(
                f"{needs}, and there are none: name their column", argument="confidence"
            )
        absent = np.isnan(self.confidences.total)
        if absent.any():
            row, column = np.argwhere(absent)[0]
            item = self.ids[row : row + 1].tolist()[0]
            raise InputError(f"{needs}: item {item!r} has a vote ({_SIDES[column]}) without one")
        return self.confidences

    def require_judge(self, name: str) -> NDArray[Any]:
        """Return the counts of a judge of a panel, (n, 3)."""
        return _named(self.by_judge, "counts of judge", name)

    def require_decisions(self, name: str) -> NDArray[np.int8]:
        """Return the decisions of that name, which every item must have: (n,) array of -1, 0, 1."""
        decided = _named(self.decisions, "decisions of", name)
        absent = np.isnan(decided)
        if absent.any():
            (item, *_) = self.ids[absent].tolist()
            raise InputError(
                f"{name!r} has no decision of item {item!r}, as of {absent.sum()} of {len(self)} "
                "items"
            )
        return decided.astype(np.int8)


def _named(arrays: Mapping[str, NDArray[Any]], what: str, name: str) -> NDArray[Any]:
    if name not in arrays:
        raise InputError(f"there are no {what} {name!r}; found {', '.join(arrays) or 'none'}")
    return arrays[name]
