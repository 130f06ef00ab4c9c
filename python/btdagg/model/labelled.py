"""The labelled items that a model is fitted to, of items, tables or arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from btdagg._util.errors import expect
from btdagg._util.validation import CountsItself, columns_of, has_judges, same_index, same_length
from btdagg.model.covariates import KnownOfItems, known_of, without_scales
from btdagg.votes.by_id import as_tables
from btdagg.votes.items import Items, tables_only
from btdagg.votes.labels import Labels
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import Scale, scales_of


class LabelledRows(NamedTuple):
    """Counts, labels and what else is known of the items that have a label, in their order."""

    # Labels are None where `weights` are soft labels, or items are unlabelled.

    counts: Any
    labels: Any
    weights: Any
    groups: Any
    known: KnownOfItems | None
    scale: Scale
    label_scale: Scale
    provenance: Provenance
    judges: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        counts: Any,
        labels: Any,
        *,
        covariates: Any = None,
        weights: Any = None,
        groups: Any = None,
        scale: Scale | None = None,
        label_scale: Scale | None = None,
        provenance: Provenance | None = None,
    ) -> LabelledRows:
        """Bring arguments of `btdagg.calibrate` into rows."""
        counts, labels = as_tables(counts, labels, scale, label_scale)
        table: Any = (
            counts
            if isinstance(counts, CountsItself)
            else getattr(getattr(counts, "facts", None), "votes", None)
        )
        if provenance is None:
            provenance = Provenance() if table is None else table.provenance
        scale, label_scale = scales_of(counts, labels, scale, label_scale)
        covariates, scales = without_scales(covariates)
        if isinstance(labels, Labels):
            votes, gold, labels = tables_only(counts, weights), labels, None
            counts = votes.labelled(gold) if covariates is None else votes.with_labels(gold)
        items = counts if isinstance(counts, Items) else None
        if items is not None:
            items = items if covariates is None else items.with_covariates(covariates)
            covariates = items.covariates or None
            if labels is not None:
                items = replace(items, labels=labels, label_scale=label_scale)
            has_labels = labels is not None or items.is_labelled.any()
            labels, label_scale = items.label if has_labels else None, items.label_scale
            groups = items.group if groups is None else groups
        else:
            beside: Any = {"weights": weights, "groups": groups, "covariates": covariates}
            same_index(counts=counts, labels=labels, **beside)
        if covariates is None and (items is None or labels is None):
            array = counts if items is None else items.by_judge
            return cls(array, labels, weights, groups, None, scale, label_scale, provenance)
        expected = "labels, which weigh covariates"
        expect(labels is not None or weights is not None, "labels", None, expected)
        n = len(counts if labels is None else labels)
        place = np.zeros(n) if labels is None else label_scale.places(labels, partial=True)
        rows, known = np.flatnonzero(place >= 0), None
        if covariates is not None:
            standings = {} if items is None else items.origin.standings
            columns = columns_of(covariates, n)
            known = known_of(columns, rows, scale, standings=standings, scales=scales)
        if items is not None and labels is not None:
            some = items.labelled()
            array, labels = some.by_judge, some.label
        else:
            array = counts if has_judges(counts) else scale.read_counts(counts)
            same_length("labels", n, "counts", len(array))
            array = array[rows]
            labels = None if labels is None else label_scale.labels[place[rows]]
        weights, groups = (
            of if of is None or len(of) != n else np.asarray(of)[rows] for of in (weights, groups)
        )
        judges = () if items is None else items.judges
        fields = known, scale, label_scale, provenance, judges
        return cls(array, labels, weights, groups, *fields)
