"""Files read, and written, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

from btdagg._core import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")  # that tables are written in
_DRAFT = re.compile(r"\.btdagg-[0-9a-f]{16}")  # names of files that are not whole yet


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

    A file that is there is replaced whole or not at all, if `target` is its path.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if isinstance(target, os.PathLike):
        with replacing(target) as file:
            write_table(frame, file, suffix)
        return
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
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    *,
    follow: bool = True,
    before: Callable[[str], object] = lambda draft: None,
) -> Iterator[IO[bytes]]:
    """Open a draft beside a file that takes its place at the end of the ``with`` statement.

    A device or a pipe is written to.

    Parameters
    ----------
    path : str or path
        File, which need not be there. After an error it is as it was.
    follow : bool
        Whether the target of a symbolic link is replaced, and not the link.
    before : callable
        Called with the path of the draft, once that is whole and before it takes its place.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = os.path.realpath(path) if follow else os.path.abspath(path)
    draft = None
    try:
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.islink(target)):
            with open(target, "wb") as file:
                yield file
            return
        draft, number = _new_draft(os.path.dirname(target))
        try:
            with open(number, "wb") as file:
                yield file
                file.flush()
                before(draft)
                if os.name == "nt":  # which replaces no open file, and has no locks to keep
                    file.close()
                os.replace(draft, target)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            raise
    except OSError as error:
        # The name of a draft says nothing to the caller.
        if error.errno is not None and error.filename in (None, draft):
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise


def is_draft(name: str) -> bool:
    """Whether a file of this name is one that was to take another's place."""
    return _DRAFT.fullmatch(name) is not None


def remove_drafts(folder: str | os.PathLike[str]) -> None:
    """Remove what runs that were killed left in a folder; drafts being written are locked."""
    with suppress(OSError):  # no folder, or none that may be read
        for name in filter(is_draft, os.listdir(folder)):
            draft = os.path.join(folder, name)
            with suppress(OSError, ImportError):  # someone writes it, or it is gone
                number = os.open(draft, os.O_RDWR)
                try:
                    _lock(number, wait=False)
                    os.unlink(draft)
                finally:
                    os.close(number)


def try_folder(folder: str | os.PathLike[str]) -> None:
    """Make a file in a folder and remove it.

    Raises
    ------
    OSError
        If that cannot be done.
    """
    draft, number = _new_draft(os.fspath(folder))
    os.unlink(draft)
    os.close(number)


def _new_draft(folder: str) -> tuple[str, int]:
    """Path and number of an open file that is locked while this process writes it."""
    while True:
        draft = f"{folder}/.btdagg-{os.urandom(8).hex()}"
        try:
            number = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror) from None
        with suppress(OSError, ImportError):  # what cannot be locked is not removed either
            _lock(number, wait=True)
        if os.fstat(number).st_nlink:  # or it was removed before it could be locked
            return draft, number
        os.close(number)


def _lock(number: int, *, wait: bool) -> None:
    import fcntl

    fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
