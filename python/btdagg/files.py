"""Files read, and written, whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from btdagg._core import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")  # that tables are written in
DRAFT = ".btdagg-"  # how the names of files begin that are not whole yet


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Read a file.

    Raises
    ------
    InputError
        If it cannot be read; the message names it.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:  # no path, or a NUL in it
        raise InputError(f"path is {path!r}: {error}") from None


def write_table(frame: pl.DataFrame, target: Path | IO[bytes], suffix: str) -> None:
    """Write a table in the format of one of `TABLE_SUFFIXES`.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    suffix = suffix.lower()
    if suffix == ".parquet":
        frame.write_parquet(target)
    elif suffix in (".jsonl", ".ndjson"):
        frame.write_ndjson(target)
    else:
        frame.write_csv(target, separator="\t" if suffix == ".tsv" else ",")


def replace_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; a file that is there is replaced whole or not at all.

    Through a symbolic link its target is written; so is a device or a pipe.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = os.path.realpath(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                file.write(data)
            return
        draft = f"{os.path.dirname(target)}/{DRAFT}{os.urandom(8).hex()}"
        try:
            with open(draft, "xb") as file:
                file.write(data)
            os.replace(draft, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            raise
    except OSError as error:  # of the draft, whose name says nothing to the caller
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
