"""Logs of Inspect, by the reader of `btdagg.integrations.inspect`."""

from __future__ import annotations

import polars as pl

from btdagg.votes.formats.content import Content, Format, ImportOptions
from btdagg.votes.words import as_words


def _recognizes(content: Content) -> bool:
    is_log = {"version", "status", "eval"} <= set(content.document or ())
    return is_log or content.path.lower().endswith(".eval")


def _read(contents: list[Content], options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read logs together: what a retried one repeats of another counts once.

    Columns are keys of the samples' metadata; with the column `label` the rows are labels.
    """
    from btdagg.integrations.inspect import read_inspect_labels, read_inspect_votes

    paths = [content.path for content in contents]
    columns, words = dict(options.columns), as_words(options.words) or None
    label = columns.pop("label", None)
    if label is None:
        votes = read_inspect_votes(paths, scorer=options.name, words=words, columns=columns)
        return votes.frame, None
    labels = read_inspect_labels(paths, label, words=words, columns=columns)
    return labels.frame.vstack(labels.unlabelled).rename({"label": "vote"}), None


FORMAT = Format("inspect", _recognizes, _read, ("columns", "words", "name"), together=True)
