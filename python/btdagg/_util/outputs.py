"""Which files a command may replace: none that it reads, in folders only its own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.files import FileFormat, read_whole, replacing, try_folder

MANIFEST = "btdagg-manifest.json"

_FILE = FileFormat("btdagg.manifest", "manifest")


def require_file(
    argument: str, path: Path, *, reads: Sequence[str | os.PathLike[str]] = ()
) -> None:
    """Check, before the work, that the file of an argument can be written."""
    forbid(
        _is_read(path, reads), f"{argument} is {path}, an input file; choose another name", argument
    )
    forbid(path.is_dir(), f"{argument} is {path}, a folder; expected a file", argument)
    if not path.exists() or path.is_file():  # neither a device nor a pipe
        _require_writable(path, Path(os.path.realpath(path)).parent)


def require_no_link(path: str | os.PathLike[str]) -> None:
    """Refuse a link where nobody named it: a folder from elsewhere would choose what is written."""
    if os.path.islink(path):
        target = os.readlink(path)
        raise InputError(f"{path} is a link to {target}; name that path, or delete the link")


def require_folder(path: Path) -> None:
    """Check that files can be made in a folder, or the folder itself."""
    forbid(
        os.path.lexists(path) and not os.path.isdir(path), f"{path} is a file; expected a folder"
    )
    _require_writable(path, path, *path.absolute().parents)


def _require_writable(output: Path, *folders: Path) -> None:
    with reworded(OSError, f"{output}: cannot be written: {{error}}"):
        try_folder(next((folder for folder in folders if folder.exists()), folders[0]))


class OutputFolder:
    """A folder that a command fills; its manifest lists the files that commands wrote there."""

    # A killed run leaves every file complete. A symbolic link is replaced, not its target, and one
    # in place of a folder within is refused. `reads` are files that the command reads; `earlier`
    # those that commands wrote before.

    def __init__(self, path: Path, *, reads: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.path = path
        self._reads = reads
        self._written: set[str] = set()  # which another command may have left out of the manifest
        require_folder(path)
        self.earlier = frozenset(self._manifest())

    def claim(self, names: Iterable[str]) -> Self:
        """Check, before the work, that files may be replaced."""
        for name in (MANIFEST, *names):
            self._refuse(name)
        return self

    @contextmanager
    def replacing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a draft that takes the place of a file at the end of the ``with`` statement."""
        self._refuse(name)
        target = self.path / name
        self.path.mkdir(parents=True, exist_ok=True)
        self._written.add(name)
        written = self._manifest()
        if not self._written <= written:  # a killed run then knows the file as its own
            self._write_manifest(written | self._written)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target, follow=False) as file:
            yield file

    def write(self, name: str, content: str | bytes) -> None:
        with self.replacing(name) as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def remove(self, names: Iterable[str]) -> None:
        written = self._manifest()
        removed = written.intersection(names)
        self._written -= removed
        for name in removed:
            self._refuse_links(name)
            with suppress(FileNotFoundError, NotADirectoryError):
                (self.path / name).unlink()
        self._write_manifest(written - removed)

    def _refuse_links(self, name: str) -> None:
        for folder in [*Path(name).parents][:-1]:
            require_no_link(self.path / folder)

    def _refuse(self, name: str) -> None:
        target = self.path / name
        self._refuse_links(name)
        forbid(
            _is_read(target, self._reads),
            f"{target} is an input file and would be overwritten; choose another folder",
        )
        forbid(target.is_dir(), f"{target} is a folder; expected a file, or nothing at this path")
        forbid(
            os.path.lexists(target) and name not in {MANIFEST, *self._manifest()},
            f"{target} was not written by btdagg; choose another folder",
        )

    def _manifest(self) -> set[str]:
        path = self.path / MANIFEST
        if not os.path.lexists(path):
            return set()
        with reworded(InputError, f"{path} is not a manifest of btdagg; choose another folder"):
            return _FILE.loads(read_whole(path), str(path), _names_in)

    def _write_manifest(self, names: Set[str]) -> None:
        content = _FILE.dumps({"files": sorted(names)}, indent=1) + "\n"
        with replacing(self.path / MANIFEST, follow=False) as file:
            file.write(content.encode())


def _names_in(manifest: dict[str, Any]) -> set[str]:
    names = manifest["files"]
    if not all(isinstance(name, str) for name in names):
        raise TypeError("files is not a list of names")
    return set(names)


def _is_read(path: Path, reads: Sequence[str | os.PathLike[str]]) -> bool:
    # Files are compared under any name or link.
    for read in reads:
        if os.path.realpath(path) == os.path.realpath(read):
            return True
        with suppress(OSError):
            if os.path.samefile(path, read):
                return True
    return False
