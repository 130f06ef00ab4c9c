"""Files as formats read them, and a user's options."""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from btdagg._util.errors import InputError, expect, forbid
from btdagg.judge.answers import AnswerFormat
from btdagg.votes.source import (
    STANDARD_INPUT,
    content_of,
    decoded,
    json_object,
    lines_of,
    read_table,
    require_regular,
    suffix_of,
    table_in,
)
from btdagg.votes.table import Table, listing
from btdagg.votes.verdicts import as_words

_LINES = (".jsonl", ".ndjson")
_HEAD = 10  # objects whose keys are looked at; the first may be a header
_LISTS = ("data", "rows")  # keys under which servers return their lists
# How they say that there are more rows than these: flags, the next page, the number of all rows.
_FLAGS = ("hasmore", "hasnext", "hasnextpage", "truncated", "istruncated", "partial")
_CURSORS = ("cursor", "endcursor", "nextlink", "odata.nextlink")
_TOTALS = ("total", "totalcount", "totalitems", "totalrows", "totalresults", "numrowstotal")
_ABOUT_PAGES = ("meta", "links", "paging", "pagination", "pageinfo", "page")
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".eval", ".csv", ".tsv")


@dataclass(frozen=True)
class ImportOptions:
    """A user's options for files; see `btdagg.formats.read`."""

    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, object] = field(default_factory=dict)
    order: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    custom_id: str | None = None
    answer_pattern: str | None = None
    grades: bool = False  # whether scores are grades, and not compared
    points: tuple[float, ...] | None = None
    times: int = 1
    wide: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    are_labels: bool = False

    @property
    def passes(self) -> bool:
        """Whether grades are pass or fail."""
        return self.points == (0, 1)

    @property
    def answer(self) -> AnswerFormat:
        """The format in which verdicts stand in texts."""
        if self.grades:
            return AnswerFormat(grades=self.points, pattern=self.answer_pattern)
        meanings = as_words(self.words)
        words = {word: vote for word, vote in meanings.items() if vote is not None}
        by_vote = {vote: word.upper() for word, vote in words.items()}
        expect(
            len(by_vote) >= len(words), "words", dict(self.words), "one word for a verdict in texts"
        )
        return AnswerFormat(
            first=by_vote.get(1, "A"),
            second=by_vote.get(-1, "B"),
            tie=by_vote.get(0, "TIE"),
            pattern=self.answer_pattern,
        )


class Format(NamedTuple):
    """A format: `recognizes` tells whether a file has it, `read` returns its rows."""

    # `read` also returns None or a remark on what would let more be read; grades are in `score` as
    # they came, not in `vote`. `uses` are the optional arguments of `btdagg.formats.read` it
    # takes.

    name: str
    recognizes: Callable[[Content], bool]
    read: Callable[[Any, ImportOptions], tuple[pl.DataFrame, str | None]]
    uses: tuple[str, ...] = ()
    together: bool = False  # whether it reads a list of files, which repeat each other


class Content:
    """A file, read as far as its kind asks for.

    Attributes
    ----------
    path, name : str
        Where it is, empty for a frame, and what errors call it.
    document : dict or None
        The one JSON object that the file is.
    row : int or None
        The object that is being read, from 1, for errors; of JSON lines its line.
    more : str or None
        How the file says that it is one page of several; empty where it says that it is the last.
    remarks : list of str
        Sentences on rows that could not be told apart or read.
    left_out : list of str
        Names of criteria and questions that the format does not read.
    """

    def __init__(self, path: str, table: Table | None = None) -> None:
        self.path, self.name = path, "standard input" if path == STANDARD_INPUT else path
        self.document: dict[str, Any] | None = None
        self.row: int | None = None
        self.more: str | None = None
        self.remarks: list[str] = []
        self.left_out: list[str] = []
        self.rows: dict[str, Any] = {}  # that formats of packages made of it, once
        self._list: list[dict[str, Any]] | None = None
        self._lines: bytes | None = None
        if table is not None:
            self.name, self._table = table.source, table
            return
        require_regular(path, self.name)
        if path == STANDARD_INPUT or suffix_of(path) in (".json", *_LINES):
            content = content_of(path, self.name).removeprefix(codecs.BOM_UTF8)
            forbid(not content.strip(), f"{self.name}: empty file")
            if suffix_of(path) or content.lstrip().startswith(b"{"):
                self._read_json(content)
            else:
                self._table = table_in(content, self.name)

    def _read_json(self, content: bytes) -> None:
        if suffix_of(self.path) in _LINES:
            self._lines = content
            return
        try:
            value = json.loads(decoded(content, self.name))
        except (ValueError, RecursionError):
            self._lines = content  # many a .json file has an object in each line
            return
        if isinstance(value, dict):
            lists = (value[key] for key in _LISTS if isinstance(value.get(key), list))
            rows = next((rows for rows in lists if rows), None)
            self.more = None if rows is None else _more(value, len(rows))
            value = value if rows is None else rows
        if isinstance(value, dict):
            self.document = value
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            self._list = value
        else:
            raise InputError(f"{self.name}: expected a JSON object, or a list of them")

    @property
    def is_json(self) -> bool:
        """Whether the file is JSON: one object, a list of them, or one a line."""
        return self.document is not None or self._lines is not None or self._list is not None

    @cached_property
    def columns(self) -> frozenset[str]:
        """Columns of a table or keys of the first ten objects, in lower case."""
        if self.document is not None or suffix_of(self.path) == ".eval":
            return frozenset()
        of_rows = [*islice(self.objects(), _HEAD)] if self.is_json else [self._table.columns]
        self.row = None
        return frozenset(name.strip().lower() for names in of_rows for name in names)

    @property
    def where(self) -> str:
        """Beginning of errors: the name, and the object that is being read."""
        return self.name if self.row is None else f"{self.name}, row {self.row}"

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the object of each row."""
        if self._lines is None:
            for number, row in enumerate(self._list or self._table.frame.iter_rows(named=True), 1):
                self.row = number
                yield row
        else:
            for number, line in enumerate(lines_of(self._lines), 1):
                if line.strip():
                    self.row = number
                    yield json_object(line, self.name, number)
        self.row = None

    def table(self) -> Table:
        """Return the rows as a table."""
        if self.document is not None:
            raise InputError(f"{self.name}: one JSON object, expected a table, or JSON lines")
        if self.is_json and suffix_of(self.path) not in _LINES:
            return read_table(list(self.objects()), [], name=self.name)
        return self._table

    @cached_property
    def _table(self) -> Table:
        return read_table(self.path, [])

    def expect(self, good: object, key: str, value: object, expected: str) -> None:
        """Raise an `InputError` about a value in the row that is being read unless it is good."""
        if not good:
            place: Any = {"source": self.name, "row": self.row, "column": key}
            raise InputError(**place, got=value, expected=expected)

    def name_in(self, row: Mapping[str, Any], key: str) -> str:
        """Return the name or id that a row has under a key."""
        value = row[key]
        name = "" if value is None or isinstance(value, list | dict) else str(value).strip()
        self.expect(name, key, value, "a name or id")
        return name

    def number_in(self, row: Mapping[str, Any], key: str) -> float | None:
        """Return the number that a row has under a key, None where that is null."""
        value = row[key]
        if value is None:
            return None
        is_number = not isinstance(value, bool | str) and math.isfinite(value)
        self.expect(is_number, key, value, "a number")
        return float(value)


def _more(page: Mapping[str, Any], n_rows: int) -> str | None:
    more: str | None = None
    for key, value in page.items():
        name = re.sub(r"[-_@$ ]", "", key.lower())
        text: str | None = f"{key} is {json.dumps(value)[:60]}"
        if name in _ABOUT_PAGES and isinstance(value, dict):
            text = _more(value, n_rows)
        elif name in _TOTALS and isinstance(value, int):
            text = f"{text}, and it has {n_rows:,} rows" if value > n_rows else ""
        elif name in (*_FLAGS, *_CURSORS) or name.startswith("next"):
            text = text if value and value != "false" else ""
        else:
            continue
        more = more if text is None else more or text
    return more


def files_in(place: str | os.PathLike[str]) -> list[str]:
    """Files that a path stands for: itself, or those of a folder that are no Parquet files."""
    path = os.fspath(place)
    if not os.path.isdir(path):
        return [path]
    files = sorted(
        str(file)
        for file in Path(path).rglob("*")
        if suffix_of(file.name) in _SUFFIXES and file.is_file()
    )
    forbid(
        not files and not any(Path(path).rglob("*.parquet")),
        f"{path}: no file to import in this folder, expected files that end in "
        f"{listing([*_SUFFIXES, '.parquet'])}",
    )
    logs = [file for file in files if suffix_of(file) == ".eval"]  # other files beside are no logs
    return logs or files or [path]
