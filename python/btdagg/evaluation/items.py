"""Labelled items, on which a protocol runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.folds import numbered
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_labels,
    as_names,
    as_whole_counts,
    same_index,
    same_length,
)
from btdagg.votes.evidence import Evidence
from btdagg.votes.join import labelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    from btdagg.evaluation.splitters import Splitter


@readable
@dataclass(frozen=True, eq=False, init=False)
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
        own, gold = Evidence.of(evidence), as_labels(labels)
        as_whole_counts(own.counts)
        same_length("labels", len(gold), "counts", len(own))
        same_index(counts=evidence, labels=labels, groups=groups)
        if not len(gold):
            raise InputError("labels is empty, expected at least one item")
        group = None if groups is None else as_names(groups, "groups")
        self.__dict__.update(evidence=own, labels=gold, groups=group)

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
        """What is known of each item, as `btdagg._util.folds.deal` takes it."""
        own = self.evidence
        content: list[NDArray[Any]] = [own.counts, self.labels]
        if own.confidences is not None:
            content += [own.confidences.total, own.confidences.least]
        content += [own.decisions[name] for name in sorted(own.decisions)]
        return content + [own.by_judge[name] for name in sorted(own.by_judge)]

    def among(self, kept: NDArray[np.bool_]) -> LabelledItems:
        """Return the items that are kept, at least one."""
        groups = None if self.groups is None else self.groups[kept]
        return LabelledItems(self.evidence[kept], self.labels[kept], groups)

    def with_decisions(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which items have all decisions of these names: (n,) array."""
        kept = np.ones(len(self), dtype=np.bool_)
        for name in names:
            kept &= ~np.isnan(self.evidence.decisions.get(name, np.zeros(len(self))))
        return kept

    def require_two_labels(self) -> None:
        """Refuse labels that are all the same: they tell no methods apart."""
        if (self.labels == self.labels[0]).all():
            raise InputError(
                f"all {len(self)} labels are {self.labels[0]}, expected at least two different ones"
            )

    def require_splits(self, splitter: Splitter) -> None:
        """Refuse items that cannot be split."""
        for _ in splitter.draw(len(self), self.groups, self.content):
            pass

    @property
    def rows(self) -> NDArray[Any] | Evidence:
        """What aggregators get: a plain array if there is nothing but counts."""
        return self.evidence.counts if self.evidence.is_plain else self.evidence
