"""Files as they come: a table, many JSON objects, or one; and frames."""

from __future__ import annotations

import codecs
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.votes.source import (
    STANDARD_INPUT,
    content_of,
    decoded,
    json_object,
    lines_of,
    read_table,
    suffix_of,
)
from btdagg.votes.table import Table, listing

_LINES = (".jsonl", ".ndjson")
_LISTS = ("data", "scores", "annotations", "rows")  # keys under which servers return their lists
FOLDER_SUFFIXES = (".jsonl", ".ndjson", ".json", ".eval", ".csv", ".tsv")


class Content:
    """A file, read as far as its kind asks for.

    Attributes
    ----------
    path, name : str
        Where it is, empty for a frame, and what errors call it.
    document : dict or None
        The one JSON object that the file is.
    columns : frozenset of str
        Columns of a table or keys of the first object, in lower case.
    row : int or None
        The object that is being read, for errors.
    """

    def __init__(self, path: str, table: Table | None = None) -> None:
        self.path = path
        self.name = "standard input" if path == STANDARD_INPUT else path
        self.document: dict[str, Any] | None = None
        self.row: int | None = None
        self._several: list[dict[str, Any]] | None = None
        self._lines: bytes | None = None
        if table is not None:
            self.name, self._table = table.source, table
            return
        suffix = suffix_of(path)
        if suffix == ".json" or suffix in _LINES:
            content = content_of(path, self.name).removeprefix(codecs.BOM_UTF8)
            if suffix == ".json":
                self._read_json(content)
            else:
                self._lines = content
        elif path == STANDARD_INPUT:
            raise InputError("standard input cannot be imported, expected a file")
        if self._lines is not None and not self._lines.strip():
            raise InputError(f"{self.name}: empty file")

    @cached_property
    def columns(self) -> frozenset[str]:
        """Columns of a table or keys of the first object, in lower case."""
        if self.document is not None or suffix_of(self.path) == ".eval":
            return frozenset()
        if self.is_json:
            _, first = next(self.objects(), (0, {}))
            return frozenset(key.strip().lower() for key in first)
        return frozenset(self.table().columns)

    @property
    def is_json(self) -> bool:
        """Whether the file is JSON: one object, a list of them, or one a line."""
        return self.document is not None or self._lines is not None or self._several is not None

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each row, from 1, and its object."""
        if self._several is not None:
            yield from self.numbered(self._several)
        elif self._lines is not None:
            for number, line in enumerate(lines_of(self._lines), start=1):
                if line.strip():
                    self.row = number
                    yield number, json_object(line, self.name, number)
            self.row = None
        elif not self.path:
            yield from self.numbered(self._table.frame.iter_rows(named=True))

    def numbered(self, rows: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number of each row, from 1, and its object, of a list of objects."""
        for number, each in enumerate(rows, start=1):
            if not isinstance(each, dict):
                raise InputError(f"{self.name}, row {number}: no JSON object")
            self.row = number
            yield number, each
        self.row = None

    def table(self, columns: Iterable[str] | None = None) -> Table:
        """Return the rows as a table: all columns, or no others than these, as far as they exist.

        Of JSON objects with long texts the columns that are wanted are much less than all.
        """
        if not self.is_json:
            table = self._table
            wanted = [name for name in columns or table.columns if name in table.columns]
            return (
                table if columns is None else table.renumbered(table.rows.select("\0row", *wanted))
            )
        if self.document is not None:
            raise InputError(f"{self.name}: one JSON object, expected a table, or JSON lines")
        if columns is None and self._lines is not None and suffix_of(self.path) in _LINES:
            return self._table
        only = None if columns is None else set(columns)
        found: dict[str, list[Any]] = {}
        n_rows = 0
        for _, each in self.objects():
            for key, value in each.items():
                name = key.strip().lower()
                if only is None or name in only:
                    values = found.setdefault(name, [])
                    if len(values) > n_rows:
                        raise InputError(f"{self.name}: two columns are called {name!r}")
                    values += [None] * (n_rows - len(values))
                    values.append(value)
            n_rows += 1
        for values in found.values():
            values += [None] * (n_rows - len(values))
        return read_table(found, [], name=self.name)

    @cached_property
    def _table(self) -> Table:
        return read_table(self.path, [])

    def _read_json(self, content: bytes) -> None:
        text = decoded(content, self.name)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            self._lines = content  # many a .json file has an object in each line
            return
        if isinstance(value, dict):
            value = next((value[key] for key in _LISTS if _is_list(value.get(key))), value)
        if isinstance(value, dict):
            self.document = value
        elif _is_list(value):
            self._several = value
        else:
            raise InputError(f"{self.name}: want a JSON object, or a list of them")


def values_of(content: Content, row: int, found: Mapping[str, Any], *keys: str) -> list[Any]:
    """Return what an object has under these keys.

    Raises
    ------
    InputError
        If a key is not there; the message names the row and the keys that are.
    """
    for key in keys:
        if key not in found:
            raise InputError(
                f"{content.name}, row {row}: no {key!r}; found {listing(sorted(found))}"
            )
    return [found[key] for key in keys]


def name_of(content: Content, row: int, found: Mapping[str, Any], key: str) -> str:
    """Return the name or id that an object has under a key.

    Raises
    ------
    InputError
        If it has none, or an empty one.
    """
    (value,) = values_of(content, row, found, key)
    if value is None or isinstance(value, list | dict) or not str(value).strip():
        raise InputError(
            f"{content.name}, row {row}: {key} is {shown(value)}, expected a name or id"
        )
    return str(value).strip()


def number_of(content: Content, row: int, found: Mapping[str, Any], key: str) -> float | None:
    """Return the number that an object has under a key, None where that is null.

    Raises
    ------
    InputError
        If it is something else, or not finite.
    """
    (value,) = values_of(content, row, found, key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or (is_number and math.isfinite(value)):
        return None if value is None else float(value)
    raise InputError(f"{content.name}, row {row}: {key} is {shown(value)}, expected a number")


def files_in(place: str | os.PathLike[str]) -> list[str]:
    """Files that a path stands for: itself, or those of a folder that are no Parquet files."""
    path = os.fspath(place)
    if not os.path.isdir(path):
        return [path]
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if suffix_of(name) in FOLDER_SUFFIXES
    )
    if not found and not any(Path(path).rglob("*.parquet")):
        raise InputError(
            f"{path}: nothing to import in this folder, expected files that end in "
            f"{listing([*FOLDER_SUFFIXES, '.parquet'])}"
        )
    logs = [file for file in found if suffix_of(file) == ".eval"]  # other files beside are no logs
    return logs or found or [path]


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
