"""Files read, and written, whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.extensions import imported
from btdagg._util.lazy import pl

if TYPE_CHECKING:
    from pathlib import Path

Value = TypeVar("Value")
Build = Callable[[dict[str, Any]], Value]
MADE_ANEW = "this file is from an older btdagg: make it again from votes and labels"
_DAMAGE = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)

_PIPE_SECONDS = 5  # that a named pipe may take until somebody writes to it
_PIECE = 1 << 24
_UNPACKED, _RATIO = 100_000_000, 100  # bytes, and times those of the compressed file

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")  # that tables are written in


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Bytes of a file, or of a pipe such as ``<(command)``; a device may have no end."""
    no_path = reworded((TypeError, ValueError), f"path is {path!r}: {{error}}")  # or a NUL in it
    with reworded(OSError, f"{path}: {{error}}"), no_path, open(path, "rb", opener=_open) as file:
        return read_bounded(file, str(path))


def read_bounded(file: IO[bytes], name: str) -> bytes:
    """Bytes of an open file, which must fit into half of the memory."""
    most, size = _memory() // 2, 0
    with suppress(OSError):  # it is no file of the system
        size = os.fstat(file.fileno()).st_size
    too_large = f"{name}: larger than half of the memory here, {most / 1e9:.3g} GB"
    forbid(size > most, too_large)
    if size:
        return file.read()
    pieces = []
    while piece := file.read(_PIECE):
        size += len(piece)
        forbid(size > most, too_large)
        pieces.append(piece)
    return b"".join(pieces)


def require_unpacked(unpacked: int, packed: int, name: str) -> None:
    """Refuse a compressed file that unpacks to far more than files of votes do."""
    most = min(max(_UNPACKED, _RATIO * packed), _memory() // 2)
    message = f"{name}: {packed:,} bytes unpack to more than {most:,}; unpack the file by hand"
    forbid(unpacked > most, message)


def require_zip(file: str | os.PathLike[str] | IO[bytes], packed: int, name: str) -> None:
    """Refuse a zip file that unpacks to far more than it holds; others are left to its reader."""
    from zipfile import BadZipFile, ZipFile

    with suppress(BadZipFile), ZipFile(file) as parts:
        require_unpacked(sum(part.file_size for part in parts.infolist()), packed, name)


def _open(path: str, flags: int) -> int:
    # Opening a pipe waits for a writer, which may never come.
    number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(number).st_mode
        if stat.S_ISFIFO(mode):
            # That of another process, as of <(command), has no name.
            is_named = os.path.exists(os.path.realpath(path))
            _wait_for_writer(number, _PIPE_SECONDS if is_named else 0)
            os.set_blocking(number, True)
        elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path}: a device, expected a file")
    except BaseException:
        os.close(number)
        raise
    return number


def _wait_for_writer(pipe: int, seconds: float) -> None:
    import select

    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    waiting.poll(1000 * seconds)


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return 16 * 1024**3


def _not_finite(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """Yield the place of each number that is not finite, such as ``curve[2].low``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for row, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{row}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, value


class FileFormat(NamedTuple):
    """A kind of file that btdagg writes, whose header has a format and a version."""

    # `name` is the format, `what` what messages call it; only `version` is read, and `remedy` says
    # what to do where a file is older or damaged.

    name: str
    what: str
    version: int = 1
    remedy: str = MADE_ANEW

    def dumps(self, fields: Mapping[str, Any], indent: int | None = None) -> str:
        """Return JSON of the header and the fields; floats keep every bit."""
        return json.dumps(self.with_header(fields), indent=indent)

    def loads(self, text: str | bytes, source: str, build: Build[Value]) -> Value:
        """Return what `build` makes of the fields that `dumps` wrote."""
        try:
            parsed = json.loads(text)
            bad = next(_not_finite(parsed), None)
        except (TypeError, ValueError, RecursionError) as error:
            is_table = source.lower().removesuffix(".gz").endswith(TABLE_SUFFIXES)
            hint = f"; expected a {self.what}, not a table such as votes" if is_table else ""
            raise InputError(f"{source}: not JSON: {error}{hint}") from None
        if bad is not None:
            raise InputError("{}: {} is {}, expected a finite number".format(source, *bad))
        return self.value(parsed, source, build)

    def value(self, parsed: Any, source: str, build: Build[Value]) -> Value:
        """Build from an object with a header; wrong or missing keys count as damage."""
        try:
            return build(self.fields(parsed))
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        except _DAMAGE as error:
            raise self.damaged(source, error) from None

    def with_header(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {"format": self.name, "version": self.version, **fields}

    def fields(self, parsed: Any) -> dict[str, Any]:
        got = parsed.get("format") if isinstance(parsed, dict) else None
        other = f', not "{got}"' if isinstance(got, str) else ""
        forbid(
            got != self.name,
            f'not a btdagg {self.what}, expected an object with "format": "{self.name}"{other}',
        )
        version = parsed.get("version")
        if isinstance(version, bool) or version != self.version:
            hint = ""
            if isinstance(version, int) and not isinstance(version, bool):
                is_newer = version > self.version
                hint = "; a newer btdagg may read it" if is_newer else f"; {self.remedy}"
            raise InputError(
                f"{self.what} version {version!r}, this btdagg reads version {self.version}{hint}"
            )
        return {name: value for name, value in parsed.items() if name not in ("format", "version")}

    def damaged(self, source: str, error: Exception) -> InputError:
        got = f"not a btdagg {self.what}, or a damaged one: {error}"
        return InputError(f"{source}: {got}; {self.remedy}")


class SavedAsJson:
    """An object saved as the JSON of its `as_dict`, and loaded by its `from_dict`."""

    FILE: ClassVar[FileFormat]
    INDENT: ClassVar[int | None] = 2  # None for a single line

    if TYPE_CHECKING:

        def as_dict(self) -> dict[str, Any]:
            """Return all that is saved."""

        @classmethod
        def from_dict(cls, fields: dict[str, Any]) -> Self:
            """Return what `as_dict` was of."""

    def to_json(self) -> str:
        """Return the whole as versioned JSON; floats keep every bit."""
        return self.FILE.dumps(self.as_dict(), indent=self.INDENT)

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "") -> Self:
        """Return what `to_json` wrote."""
        return cls.FILE.loads(text, source or cls.FILE.what, cls.from_dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, replacing a file (or the target of a link) atomically."""
        replace_file(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; other, damaged and later files are an `InputError`."""
        return cls.from_json(read_whole(path), source=str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        instance: Any = self  # a dataclass, whose cached properties are computed again
        return type(self), tuple(
            getattr(instance, field.name) for field in fields(instance) if field.init
        )


def load_any(
    path: str | os.PathLike[str],
    *kinds: type[SavedAsJson],
    other_formats: Mapping[str, str] = MappingProxyType({}),
) -> Any:
    """Load one of some kinds of file; classes such as ``"btdagg.module:X"`` by import."""
    content = read_whole(path)
    by_format: dict[str, Any] = {kind.FILE.name: kind for kind in kinds} | dict(other_formats)
    kind: Any = kinds[0]
    with suppress(ValueError, RecursionError):  # what is not JSON, the first kind says
        parsed = json.loads(content)
        if isinstance(parsed, dict):
            kind = by_format.get(str(parsed.get("format")), kind)
    kind = imported(kind) if isinstance(kind, str) else kind
    return kind.from_json(content, source=str(path))


def digest_of(saved: SavedAsJson) -> str:
    """Return what tells a model or rule from all others, 16 hexadecimal digits."""
    return hashlib.sha256(saved.to_json().encode()).hexdigest()[:16]


def write_table(frame: pl.DataFrame, target: Path | IO[bytes], suffix: str) -> None:
    """Write a table in the format of one of `TABLE_SUFFIXES`; a file is replaced atomically."""
    if isinstance(target, os.PathLike):
        with replacing(target) as file:
            write_table(frame, file, suffix)
        return
    suffix = suffix.lower()
    output: Any = _Output(target)
    try:
        if suffix == ".parquet":
            frame.write_parquet(output)
        elif suffix in (".jsonl", ".ndjson"):
            frame.write_ndjson(output)
        else:
            frame.write_csv(output, separator="\t" if suffix == ".tsv" else ",")
    except Exception:
        if output.error is not None:
            raise output.error from None
        raise


class _Output:
    """A file for polars, which does not always pass on why a file could not be written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.flush = file.flush
        self.error: OSError | None = None

    def write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.error = error
            raise


def replace_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; a file is replaced atomically, or the target of a link."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[IO[bytes]]:
    """Open a draft that takes a file's place, with its permissions, at the end of ``with``."""
    # After an error or a power failure the file is old or new, never partial. A device or pipe is
    # written to. Of a symbolic link the target is replaced, or the link itself unless `follow`.
    target = os.path.realpath(path) if follow else os.path.abspath(path)
    draft = None
    try:
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.islink(target)):
            with open(target, "wb") as file:
                yield file
            return
        folder = os.path.dirname(target)
        draft, number = _new_draft(folder)
        try:
            with open(number, "wb") as file:
                if os.path.isfile(target) and not os.path.islink(target):
                    with _where_supported():
                        os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
                yield file
                file.flush()
                to_disk(number)
            os.replace(draft, target)
            _sync_folder(folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft)
            raise
    except OSError as error:
        # The name of a draft says nothing to the caller.
        if error.errno is not None and error.filename in (None, draft):
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise


# What mounts such as vfat, CIFS and FUSE say of permissions, and of writing to the disk now.
_UNSUPPORTED = (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def _where_supported() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def to_disk(number: int) -> None:
    """Have an open file on the disk, where its file system can."""
    with _where_supported():
        os.fsync(number)


def _sync_folder(folder: str) -> None:
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def try_folder(folder: str | os.PathLike[str]) -> None:
    draft, number = _new_draft(os.fspath(folder))
    os.unlink(draft)
    os.close(number)


def _new_draft(folder: str) -> tuple[str, int]:
    draft = f"{folder}/.btdagg-{os.urandom(8).hex()}"
    try:
        return draft, os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror) from None
