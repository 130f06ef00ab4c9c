"""Labelled items, on which a protocol runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_labels,
    as_whole_counts,
    same_index,
    same_length,
    unmasked,
)
from btdagg.evaluation.dealing import numbered
from btdagg.votes.evidence import Evidence
from btdagg.votes.join import labelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from btdagg.evaluation.splitters import Splitter


@readable
@dataclass(frozen=True, eq=False)
class LabelledItems:
    """Items with their evidence and gold labels.

    Parameters
    ----------
    evidence : (n, 3) array of non-negative integers, or Evidence
        Votes per item in label order: minus, tie, plus; `Evidence` if aggregators need more.
    labels : (n,) array of -1, 0, 1
        Gold labels.
    groups : (n,) array, optional
        Group of each item, such as its prompt; see `RandomSplits.draw`.

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range, or there are no items.
    """

    evidence: Evidence
    labels: NDArray[np.int8]
    groups: NDArray[Any] | None

    def __init__(
        self,
        evidence: ArrayLike | Evidence,
        labels: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> None:
        evidence, labels, groups = labelled(evidence, labels, groups)
        known, gold = Evidence.of(evidence), as_labels(labels)
        as_whole_counts(known.counts)
        same_length("labels", len(gold), "counts", len(known))
        same_index(counts=evidence, labels=labels, groups=groups)
        if not len(gold):
            raise InputError("labels is empty, expected at least one item")
        object.__setattr__(self, "evidence", known)
        object.__setattr__(self, "labels", gold)
        object.__setattr__(
            self, "groups", None if groups is None else np.asarray(unmasked(groups, "groups"))
        )

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def units(self) -> NDArray[np.int64]:
        """Group of each item as a number from 0, in the order of the groups' names or the ids."""
        ids = self.evidence.ids
        told = () if ids is None else (np.unique(ids, return_inverse=True)[1].reshape(-1),)
        return numbered(self.groups, told, len(self))

    @property
    def content(self) -> list[NDArray[Any]]:
        """What is known of each item, as `btdagg.evaluation.dealing.deal` takes it."""
        known = self.evidence
        found: list[NDArray[Any]] = [known.counts, self.labels]
        if known.confidences is not None:
            found += [getattr(known.confidences, name) for name in ("total", "least")]
        found += [known.decisions[name] for name in sorted(known.decisions)]
        return found + [known.by_judge[name] for name in sorted(known.by_judge)]

    def among(self, kept: NDArray[np.bool_]) -> LabelledItems:
        """Return the items that are kept.

        Raises
        ------
        InputError
            If there are none.
        """
        groups = None if self.groups is None else self.groups[kept]
        return LabelledItems(self.evidence[kept], self.labels[kept], groups)

    def with_decisions(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which items have all decisions of these names: (n,) array."""
        known = np.ones(len(self), dtype=np.bool_)
        for name in names:
            known &= ~np.isnan(self.evidence.decisions.get(name, np.zeros(len(self))))
        return known

    def require_two_labels(self) -> None:
        """Check that there are two different labels; otherwise no methods can be told apart.

        Raises
        ------
        InputError
            If all labels are the same.
        """
        if (self.labels == self.labels[0]).all():
            raise InputError(
                f"all {len(self)} labels are {self.labels[0]}, expected at least two different ones"
            )

    def require_splits(self, splitter: Splitter) -> None:
        """Check that the items can be split.

        Raises
        ------
        InputError
            If a set would have no items.
        """
        for _ in splitter.draw(len(self), self.groups, self.content):
            pass

    @property
    def rows(self) -> NDArray[Any] | Evidence:
        """What aggregators get: a plain array if there is nothing but counts."""
        return self.evidence.counts if self.evidence.is_plain else self.evidence
