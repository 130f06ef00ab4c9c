"""Logs of Inspect, by the reader of `btdagg.integrations.inspect`."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from btdagg._core import InputError
from btdagg.votes.formats.content import Content
from btdagg.votes.formats.frames import FILE
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.table import listing

_KEYS = {"version", "status", "eval"}


def is_inspect(content: Content) -> bool:
    """Whether a file is a log, in either of Inspect's formats."""
    return content.path.lower().endswith(".eval") or set(content.document or ()) >= _KEYS


def read_inspect(
    contents: Sequence[Content], options: ImportOptions
) -> tuple[list[pl.DataFrame], list[str]]:
    """Read logs together: what a retried one repeats of another counts once.

    Columns are keys of the samples' metadata; with the column `label` the rows are labels.
    """
    from btdagg.integrations.inspect import read_inspect_labels, read_inspect_votes

    paths = [content.path for content in contents]
    name = pl.lit(listing(paths)).alias(FILE)
    columns, words = dict(options.columns), options.words or None
    label = columns.pop("label", None)
    try:
        if label is not None:
            labels = read_inspect_labels(paths, label, words=words, columns=columns)
            frame = labels.frame.vstack(labels.unlabelled).rename({"label": "vote"})
            return [frame.with_columns(name)], []
        votes = read_inspect_votes(paths, scorer=options.name, words=words, columns=columns)
    except InputError as error:
        said = str(error)
        if "words={...}" in said:
            said += ", on the command line --words WORD=A (or =tie, =B, =missing)"
        elif "scorer=" in said:
            said += " (--name)"
        raise InputError(said) from None
    return [votes.frame.with_columns(name)], []
