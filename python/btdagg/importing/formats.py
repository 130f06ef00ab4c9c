"""The formats that are known, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from btdagg._core import InputError
from btdagg.importing import arena_hard, fastchat, lmsys, mapped, openai_batch, promptfoo
from btdagg.importing.content import Content
from btdagg.importing.options import ImportOptions
from btdagg.tables.table import listing


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    name : str
    recognizes : callable
        Returns whether a file has it.
    read : callable
        Returns the rows of a file, and a remark on what would let more be read.
    """

    name: str
    recognizes: Callable[[Content], bool]
    read: Callable[[Content, ImportOptions], tuple[pl.DataFrame, str | None]]


TABLE = Format("table", mapped.is_table, mapped.read_mapped)
# In the order in which they are tried: the more a format asks for, the earlier.
FORMATS = {
    one.name: one
    for one in (
        Format("openai-batch", openai_batch.is_openai_batch, openai_batch.read_openai_batch),
        Format("arena-hard", arena_hard.is_arena_hard, arena_hard.read_arena_hard),
        Format("fastchat", fastchat.is_fastchat, fastchat.read_fastchat),
        Format("fastchat-scores", fastchat.is_fastchat_scores, fastchat.read_fastchat_scores),
        Format("lmsys", lmsys.is_lmsys, lmsys.read_lmsys),
        Format("promptfoo", promptfoo.is_promptfoo, promptfoo.read_promptfoo),
        TABLE,
    )
}


def format_of(content: Content, named: str | None, options: ImportOptions) -> Format:
    """Return the format that is named, or else the one that a file has.

    Raises
    ------
    InputError
        If there is no such format, or none recognizes the file.
    """
    if named is not None:
        if named not in FORMATS:
            raise InputError(f"--format is {named!r}, want one of {', '.join(FORMATS)}")
        if not FORMATS[named].recognizes(content) and named != TABLE.name:
            raise InputError(f"{content.name}: not in the format {named}{_found(content)}")
        return FORMATS[named]
    if options.columns:
        return TABLE
    found = next((one for one in FORMATS.values() if one.recognizes(content)), None)
    if found is None:
        raise InputError(
            f"{content.name}: no format that is known ({', '.join(FORMATS)}){_found(content)}; "
            "name the columns, as in --map item=id,vote=winner"
        )
    return found


def _found(content: Content) -> str:
    keys = content.columns if content.document is None else content.document
    return f"; found {listing(sorted(keys))}" if keys else ""
