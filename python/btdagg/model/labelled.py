"""The labelled items that a model is fitted to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from btdagg._util.errors import expect
from btdagg.model.covariates import KnownOfItems, known_of, without_scales
from btdagg.votes.by_id import as_items, as_tables
from btdagg.votes.items import Items
from btdagg.votes.labels import Labels
from btdagg.votes.scale import Scale


class FittedItems(NamedTuple):
    """Items that have a label, their weights, and their covariates on scales of all items.

    With soft labels, or with none, they are all items; `weights` are then (n, 3), or None.
    """

    items: Items
    weights: Any
    known: KnownOfItems | None

    @property
    def labels(self) -> Any:
        """One label of each item, (n,); None if labels are soft or there are none."""
        return self.items.label if self.items.is_labelled.any() else None


def fitted_items(
    counts: Any,
    labels: Any,
    *,
    covariates: Any = None,
    weights: Any = None,
    groups: Any = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
) -> FittedItems:
    """Bring arguments of `btdagg.calibrate` into items."""
    covariates, scales = without_scales(covariates)
    counts, labels = as_tables(counts, labels, scale, label_scale)
    is_soft = labels is None and not isinstance(counts, Items)
    items = as_items(
        counts,
        labels,
        groups,
        scale=scale,
        label_scale=label_scale,
        partial=covariates is not None and not isinstance(labels, Labels),
        weights=None if is_soft else weights,
        covariates=covariates,
    )
    has_labels = bool(items.is_labelled.any())
    rows = np.flatnonzero(items.is_labelled) if has_labels else np.arange(len(items))
    known = None
    if items.covariates:
        expected = "labels, which weigh covariates"
        expect(has_labels or weights is not None, "labels", None, expected)
        standings = items.origin.standings
        known = known_of(items.covariates, rows, items.scale, standings=standings, scales=scales)
    if has_labels:
        items = items.labelled()
    return FittedItems(items, weights if is_soft else items.facts.get("weights"), known)
