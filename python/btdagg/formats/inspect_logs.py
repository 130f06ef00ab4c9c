"""Logs of Inspect, by the reader of `btdagg.integrations.inspect`."""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl

from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.votes.scale import PAIRS, Scale


def _recognizes(content: Content) -> bool:
    is_log = {"version", "status", "eval"} <= set(content.document or ())
    return is_log or content.path.lower().endswith(".eval")


def _read(contents: list[Content], options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    # A retried log repeats another, whose samples count once.
    from btdagg.integrations.inspect_logs import (
        LogWarning,
        read_inspect_labels,
        read_inspect_votes,
    )

    paths = [content.path for content in contents]
    columns = dict(options.columns)
    label = columns.pop("label", None)
    scale = PAIRS if options.points is None else Scale(options.points)
    kind = scale.mode.column
    how: Any = {"words": options.words, "columns": columns, "scale": scale}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if label is None:
            frame = read_inspect_votes(paths, scorer=options.name, **how).frame
        else:
            labels = read_inspect_labels(paths, label, **how)
            frame = labels.frame.vstack(labels.unlabelled)
    remarks = [str(w.message) for w in caught if issubclass(w.category, LogWarning)]
    return frame.rename({"vote" if label is None else "label": kind}), "; ".join(remarks) or None


FORMAT = Format(
    "inspect", _recognizes, _read, ("columns", "words", "name", "grades"), together=True
)
