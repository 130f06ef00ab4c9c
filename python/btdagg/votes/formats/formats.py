"""The formats that are known, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from btdagg._core import InputError
from btdagg.votes.formats import (
    arena_hard,
    fastchat,
    inspect_logs,
    lmsys,
    mapped,
    openai_batch,
    promptfoo,
    traces,
)
from btdagg.votes.formats.content import Content
from btdagg.votes.formats.frames import FILE
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.table import listing


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    name : str
    recognizes : callable
        Returns whether a file has it.
    read : callable
        Returns the rows of files, and remarks on what would let more be read.
    uses : tuple of str
        Which of `ImportOptions.given` it goes by.
    """

    name: str
    recognizes: Callable[[Content], bool]
    read: Callable[[Sequence[Content], ImportOptions], tuple[list[pl.DataFrame], list[str]]]
    uses: tuple[str, ...] = ()


def _one_by_one(
    name: str,
    recognizes: Callable[[Content], bool],
    read: Callable[[Content, ImportOptions], tuple[pl.DataFrame, str | None]],
    *uses: str,
) -> Format:
    """Return a format in which a file says nothing of another."""

    def several(
        contents: Sequence[Content], options: ImportOptions
    ) -> tuple[list[pl.DataFrame], list[str]]:
        frames, remarks = [], []
        for content in contents:
            try:
                frame, remark = read(content, options)
            except (AttributeError, KeyError, TypeError) as error:
                if content.path and not content.is_json:
                    raise
                row = "" if content.row is None else f", row {content.row}"
                raise InputError(
                    f"{content.name}{row}: not as the format {name} has it, or damaged: {error}"
                ) from None
            if not frame.height:
                raise InputError(f"{content.name}: no votes; scores want two systems for a prompt")
            frames.append(frame.with_columns(pl.lit(content.name).alias(FILE)))
            remarks += [remark] if remark else []
        return frames, remarks

    return Format(name, recognizes, several, uses)


_ANNOTATIONS = ("--map", "--words", "--name")
TABLE = _one_by_one(
    "table",
    mapped.is_table,
    mapped.read_mapped,
    *("--map", "--words", "--flip-where", "--answer-pattern"),
)
FORMATS = {
    one.name: one
    for one in (
        Format("inspect", inspect_logs.is_inspect, inspect_logs.read_inspect, _ANNOTATIONS),
        _one_by_one(
            "openai-batch",
            openai_batch.is_openai_batch,
            openai_batch.read_openai_batch,
            *("--words", "--custom-id", "--answer-pattern"),
        ),
        _one_by_one("arena-hard", arena_hard.is_arena_hard, arena_hard.read_arena_hard),
        _one_by_one("fastchat", fastchat.is_fastchat, fastchat.read_fastchat),
        _one_by_one("fastchat-scores", fastchat.is_fastchat_scores, fastchat.read_fastchat_scores),
        _one_by_one("lmsys", lmsys.is_lmsys, lmsys.read_lmsys, "--words"),
        _one_by_one("promptfoo", promptfoo.is_promptfoo, promptfoo.read_promptfoo, "--name"),
        _one_by_one("phoenix", traces.is_phoenix, traces.read_phoenix, *_ANNOTATIONS),
        _one_by_one("langfuse", traces.is_langfuse, traces.read_langfuse, *_ANNOTATIONS),
        TABLE,
    )
}
"""Formats by name, in the order in which they are tried: the more one asks for, the earlier."""


def format_of(content: Content, named: str | None, options: ImportOptions) -> Format:
    """Return the format that is named, or else the one that a file has.

    Raises
    ------
    InputError
        If there is no such format, none recognizes the file, or it goes by fewer options.
    """
    found = _format_of(content, named, options)
    for option in options.given:
        if option not in found.uses:
            others = " or ".join(one.name for one in FORMATS.values() if option in one.uses)
            raise InputError(
                f"{content.name}: {option} is not used by the format {found.name}, expected "
                "--format "
                f"{others}"
            )
    return found


def _format_of(content: Content, named: str | None, options: ImportOptions) -> Format:
    if named is not None:
        if named not in FORMATS:
            raise InputError(f"--format is {named!r}, expected one of {', '.join(FORMATS)}")
        if not FORMATS[named].recognizes(content) and named != TABLE.name:
            raise InputError(f"{content.name}: not in the format {named}{_found(content)}")
        return FORMATS[named]
    # These say what the columns of a table mean.
    columns = {"--map", "--flip-where"}.intersection(options.given)
    known = (one for one in FORMATS.values() if columns <= set(one.uses))
    found = next((one for one in known if one.recognizes(content)), None)
    if found is None and columns:
        return TABLE
    if found is None:
        raise InputError(
            f"{content.name}: no format that is known ({', '.join(FORMATS)}){_found(content)}; "
            "name the columns, as in --map item=id,vote=winner"
        )
    return found


def _found(content: Content) -> str:
    keys = content.columns if content.document is None else content.document
    return f"; found {listing(sorted(keys))}" if keys else ""
