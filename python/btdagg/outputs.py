"""Which files a command may replace: none that it reads, and none that somebody else made.

A file named by an option, such as ``-o model.json``, is replaced if it is of the kind that the
option writes. A folder that a command fills has a manifest with the digests of its files, and only
these are replaced. ``--force`` replaces other files too, except files that the command reads.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from btdagg._core import InputError
from btdagg.files import FileFormat, remove_drafts, replacing, try_folder

MANIFEST = "btdagg-manifest.json"

_FILE = FileFormat("btdagg.manifest", "manifest")
_HEAD = 1 << 20  # bytes of a file in which its kind can be seen

Kind = Callable[[Path], bool]
"""Returns whether a file is of the kind that a command writes."""


class OutputFile:
    """A file named by an option. Making it checks, before the work, that the file may be replaced.

    Parameters
    ----------
    option : str
        Name of the option.
    path : path
    kind : callable
        See `json_kind` and `table_kind`. A file of this kind may be replaced, and so may an empty
        file.
    reads : sequence of paths
        Files that the command reads.
    force : bool
        Whether to replace a file of any kind that is not read.

    Raises
    ------
    InputError
        If the file is read, is a folder, cannot be written, or exists and may not be replaced.
    """

    def __init__(
        self,
        option: str,
        path: Path,
        kind: Kind,
        *,
        reads: Sequence[str | os.PathLike[str]] = (),
        force: bool = False,
    ) -> None:
        self.path = path
        self._option, self._kind, self._reads, self._force = option, kind, reads, force
        self._refuse()
        if not _is_there(path) or path.is_file():
            folder = Path(os.path.realpath(path)).parent
            _require_writable(folder, path)
            remove_drafts(folder)

    def save(self, save: Callable[[Path], object]) -> None:
        """Check again that the file may be replaced, and write it."""
        self._refuse()
        save(self.path)

    def _refuse(self) -> None:
        named = f"{self._option} is {self.path}"
        if _is_read(self.path, self._reads):
            raise InputError(f"{named}, a file that is read")
        if self.path.is_dir():
            raise InputError(f"{named}, a folder, want a file")
        if not self.path.is_file() or self._force:  # not there, or a device or a pipe
            return
        if self.path.stat().st_size and not self._kind(self.path):
            raise InputError(
                f"{named}, a file that this command did not write; want another name, or --force "
                "to replace it"
            )


class OutputFolder:
    """A folder that a command fills. A manifest of digests records which files the command wrote.

    A killed run leaves every file complete, and the next run replaces them.

    Parameters
    ----------
    path : path
        Created with the first file if it does not exist.
    reads : sequence of paths
        Files that the command reads.
    force : bool
        Whether to replace files that others wrote, unless they are read. If a file is a symbolic
        link, the link is replaced and not its target.

    Attributes
    ----------
    path : Path
    earlier : frozenset of str
        Files that commands wrote here before.

    Raises
    ------
    InputError
        If the path is a file, or a folder that cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        reads: Sequence[str | os.PathLike[str]] = (),
        force: bool = False,
    ) -> None:
        self.path = path
        self._reads, self._force = reads, force
        if os.path.exists(path) and not os.path.isdir(path):
            raise InputError(f"{path} is a file, want a folder")
        _require_writable(path, path, made=True)
        self._digests = self._manifest()
        self.earlier = frozenset(self._digests)

    def claim(self, names: Iterable[str]) -> Self:
        """Check, before the work, that files may be replaced; remove drafts of killed runs.

        Parameters
        ----------
        names : iterable of str
            Files that may be written, with slashes between folders.

        Raises
        ------
        InputError
            If a file is read, is a folder, or exists and is not as a command wrote it.
        """
        names = (MANIFEST, *names)
        for name in names:
            self._refuse(name)
        for folder in {(self.path / name).parent for name in names}:
            remove_drafts(folder)
        return self

    def is_free(self, name: str) -> bool:
        """Whether a file may be written."""
        try:
            self._refuse(name)
        except InputError:
            return False
        return True

    @contextmanager
    def replacing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a draft that takes the place of a file at the end of the ``with`` statement.

        Raises
        ------
        InputError
            If a file exists by now that may not be replaced.
        OSError
            If the file cannot be written.
        """
        self._refuse(name)
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(
            target, follow=False, before=lambda draft: self._expect(name, draft)
        ) as file:
            yield file

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, text as UTF-8; see `replacing`."""
        with self.replacing(name) as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove those files that are as a command wrote them."""
        for name in names:
            if _digest(self.path / name) in self._digests.get(name, ()):
                (self.path / name).unlink()
            self._digests.pop(name, None)
        self._save_manifest()

    def _refuse(self, name: str) -> None:
        target = self.path / name
        if _is_read(target, self._reads):
            raise InputError(f"{target} is a file that is read, and would be overwritten")
        if target.is_dir():
            raise InputError(f"{target} is a folder, want a file or nothing of this name")
        if not os.path.lexists(target) or self._force or name == MANIFEST:
            return
        if _digest(target) not in self._digests.get(name, ()):
            done = "was changed since it was" if name in self._digests else "was not"
            raise InputError(
                f"{target} {done} written by btdagg; want another folder, or --force to replace it"
            )

    def _expect(self, name: str, draft: str) -> None:
        """Record the new digest beside the old one: a killed run then recognizes either file."""
        there, new = _digest(self.path / name), _digest(Path(draft))
        known = self._digests.get(name, [])
        self._digests[name] = [*(one for one in known if one == there), str(new)]
        self._save_manifest()

    def _manifest(self) -> dict[str, list[str]]:
        """Return digests by file name; a file that was about to be replaced has two."""
        path = self.path / MANIFEST
        if not os.path.lexists(path):
            return {}
        try:
            return _FILE.loads(path.read_bytes(), str(path), _digests_in)
        except InputError:
            if self._force:
                return {}
            raise InputError(
                f"{path} is not a manifest of btdagg; want another folder, or --force"
            ) from None

    def _save_manifest(self) -> None:
        written = _FILE.dumps({"files": dict(sorted(self._digests.items()))}, indent=1) + "\n"
        with replacing(self.path / MANIFEST, follow=False) as file:
            file.write(written.encode())


def _digests_in(manifest: dict[str, Any]) -> dict[str, list[str]]:
    return {name: list(map(str, known)) for name, known in manifest["files"].items()}


# Kinds of files


def json_kind(format: str) -> Kind:
    """Files that begin as JSON of btdagg does: with the name of its format."""
    begins = re.compile(rb'\s*\{\s*"format"\s*:\s*"' + re.escape(format.encode()) + b'"')

    def is_of_kind(path: Path) -> bool:
        with open(path, "rb") as file:
            return begins.match(file.read(_HEAD)) is not None

    return is_of_kind


def table_kind(is_ours: Callable[[list[str]], bool]) -> Kind:
    """Tables that have the columns of a command's output."""

    def is_of_kind(path: Path) -> bool:
        columns = _columns(path)
        return columns is not None and is_ours(columns)

    return is_of_kind


def _columns(path: Path) -> list[str] | None:
    """Return the columns of a table, or None if a file is not a table."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import polars as pl

        try:
            return list(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
    with open(path, "rb") as file:
        first = file.readline(_HEAD)
    try:
        line = first.decode("utf-8-sig")
        if suffix in (".jsonl", ".ndjson"):
            return list(dict(json.loads(line)))
        return next(csv.reader([line], delimiter="\t" if suffix == ".tsv" else ","), None)
    except (ValueError, TypeError, RecursionError, csv.Error):
        return None


# Files


def _is_read(path: Path, reads: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether a file, under any name or link, is one of those that are read."""
    for read in reads:
        if os.path.realpath(path) == os.path.realpath(read):
            return True
        with suppress(OSError):
            if os.path.samefile(path, read):
                return True
    return False


def _digest(path: Path) -> str | None:
    """Return the digest of a file, or None if there is no file."""
    if not path.is_file():
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_writable(folder: Path, named: Path, made: bool = False) -> None:
    """Raise an `InputError` if the folder of an output, existing or to be made, is not writable."""
    try:
        above = (folder, *folder.absolute().parents) if made else (folder,)
        try_folder(next(filter(_is_there, above), folder))
    except OSError as error:
        raise InputError(f"{named}: cannot be written: {error.strerror}") from None


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
