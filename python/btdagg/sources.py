"""From a file, a data frame or a mapping to a table, or one line saying what is wrong.

polars and narwhals are the extra ``btdagg[tables]``: they are imported where they are used, so that
``import btdagg`` needs neither.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from btdagg._core import InputError
from btdagg.extras import needs
from btdagg.tables import Table, is_unicode, listing, require, shown

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
    from narwhals.typing import IntoDataFrame

    Source: TypeAlias = (
        str | os.PathLike[str] | Mapping[str, Iterable[object]] | IntoDataFrame | Table
    )
    # Columns, and the numbers of their rows where blank ones were left out.
    Columns: TypeAlias = tuple[list[pl.Series], pl.Series | None]

# Columns whose texts say what a row belongs to. No column holds a lone surrogate: in these it is
# refused, and in others, which may be what a model wrote, it is written as an escape.
_NAMING = frozenset(
    {"item", "item_id", "id", "judge", "rater", "task", "group", "template", "temperature"}
)
# What else the column of items may be called.
ITEM_NAMES = ("id", "item_id")
STANDARD_INPUT = "-"


def read_table(
    source: Source,
    required: Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Table:
    """Read a source whose columns must include `required`.

    Parameters
    ----------
    source : path, data frame, mapping of column name to values, or Table
        A path ends in .csv, .tsv, .jsonl or .ndjson, each of them also with .gz after it, or in
        .parquet. Blank lines of a .csv or .tsv file are skipped, and counted as rows by messages.
        ``-`` is standard input, whose format shows in its first bytes: Parquet, gzip, JSON lines
        where it begins with ``{``, TSV where its first line has a tab, else CSV. A data frame is
        any eager one that narwhals understands: pandas, polars, PyArrow and others.
    required : sequence of str
        Names of columns, lower-case. For `item` a column `id` or `item_id` is taken where there is
        no `item`.
    columns : mapping of str to str, optional
        By the name that is wanted the name of the column that holds it, such as
        ``{"item": "qid"}``. Such a column takes the place of one that has the name already.
    name : str, optional
        What errors call the source; without it the path, ``standard input`` or ``data frame``.

    Returns
    -------
    Table
        Every column of the source. Those of a .csv or .tsv file are text.

    Raises
    ------
    InputError
        If the source cannot be read, has no rows, or lacks a column; if both `id` and `item_id`
        could be the item.
    MissingExtraError
        If polars or narwhals is not installed.
    """
    table = source if isinstance(source, Table) else _read(source, name)
    table = _renamed(table, columns)
    if "item" in required:
        table = with_item(table)
    require(table, required)
    if not table.frame.height:
        raise InputError(f"{table.source}: no rows")
    return table


def with_item(table: Table) -> Table:
    """Return a table whose column of items is called `item`, if it has one of its other names.

    Raises
    ------
    InputError
        If two columns have one of them, and none is called `item`.
    """
    found = [column for column in ITEM_NAMES if column in table.columns]
    if "item" in table.columns or not found:
        return table
    if len(found) > 1:
        raise InputError(
            f"{table.source}: columns {' and '.join(map(repr, found))} may both be the item; say "
            f"which, as in columns={{'item': {found[0]!r}}} or --column item={found[0]}"
        )
    return replace(table, frame=table.frame.rename({found[0]: "item"}))


def _renamed(table: Table, columns: Mapping[str, str] | None) -> Table:
    if columns is None:
        return table
    if not isinstance(columns, Mapping):
        raise InputError(f"columns is {columns!r}, want a mapping of names to columns")
    names: dict[str, str] = {}
    for name, column in columns.items():
        wanted, found = str(name).strip().lower(), str(column).strip().lower()
        if found in names or wanted in names.values():
            raise InputError(f"columns is {dict(columns)!r}, want each name and each column once")
        names[found] = wanted
    require(table, names)
    replaced = [name for name in names.values() if name in table.columns and name not in names]
    return replace(table, frame=table.frame.drop(replaced).rename(names))


def _read(source: Any, name: str | None) -> Table:
    with needs("tables", "reading tables"):
        import narwhals  # noqa: F401
        import polars as pl

    row_numbers = None
    if isinstance(source, (str, os.PathLike)):
        place = os.fspath(source)
        name = name or ("standard input" if place == STANDARD_INPUT else place)
        columns, row_numbers = _read_file(place, name)
    else:
        name = name or "data frame"
        columns = _read_mapping(source) if isinstance(source, Mapping) else _read_frame(source)
    plain = _assemble(columns, name).with_columns(
        pl.col(pl.Float32, pl.Float64).fill_nan(None),
        pl.col(pl.Categorical, pl.Enum).cast(pl.String),
    )
    return Table(plain, name, row_numbers=row_numbers)


def _assemble(columns: Sequence[pl.Series], name: str) -> pl.DataFrame:
    import polars as pl

    columns = [column.alias(column.name.strip().lower()) for column in columns]
    twice = [title for title, n in Counter(column.name for column in columns).items() if n > 1]
    if twice:
        raise InputError(f"{name}: two columns are called {twice[0]!r}")
    lengths = [f"{column.name} {len(column)}" for column in columns]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"{name}: columns differ in length: {listing(lengths)}")
    return pl.DataFrame(columns)


# Files


def is_table(place: str) -> bool:
    """Whether a place has the name of a table that can be read, or is standard input."""
    return place == STANDARD_INPUT or _kind(place) in _READERS


def _kind(place: str) -> str:
    """Suffix of a path that says how its content is read, the .gz of a text file left out."""
    plain, suffix = os.path.splitext(place.lower())
    inner = os.path.splitext(plain)[1]
    return inner if suffix == ".gz" and inner != ".parquet" else suffix


def _read_file(place: str, name: str) -> Columns:
    if place == STANDARD_INPUT:
        content = sys.stdin.buffer.read() if sys.stdin else b""
    elif _kind(place) not in _READERS:
        raise InputError(f"{name}: cannot read this kind of file, want {listing(_READERS)}")
    else:
        try:
            content = Path(place).read_bytes()
        except FileNotFoundError:
            raise InputError(f"{name}: no such file") from None
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    packed = content.startswith(_GZIP) if place == STANDARD_INPUT else place.lower().endswith(".gz")
    if packed and content:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{name}: not a gzip file, or a damaged one") from None
    if not content.strip():
        raise InputError(f"{name}: empty file")
    kind = _kind_of_content(content) if place == STANDARD_INPUT else _kind(place)
    return _READERS[kind](content, name)


def _kind_of_content(content: bytes) -> str:
    """Suffix of files that begin like this."""
    if content.startswith(b"PAR1"):
        return ".parquet"
    text = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in text.partition(b"\n")[0] else ".csv"


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: not UTF-8 text") from None


def _read_csv(content: bytes, name: str, separator: str = ",") -> Columns:
    import polars as pl

    lines = _decoded(content, name).lstrip(" \r\n")
    try:
        # The header is read as a row: polars would rename the second of two equal column names.
        frame = pl.read_csv(
            lines.encode(), separator=separator, has_header=False, infer_schema=False
        )
    except pl.exceptions.PolarsError:
        _blank_rows(lines, separator, name)
        raise InputError(f"{name}: a quote inside a value, or one that is not closed") from None
    header = [cell or "" for cell in frame.row(0)]
    frame, row_numbers = frame[1:], None
    # polars fills up a short row, and half a row must not pass for a missing vote. Counting the
    # separators would show it, if some were not inside quotes; then every row is looked at.
    if '"' in lines or lines.count(separator) != (frame.width - 1) * (frame.height + 1):
        blank = _blank_rows(lines, separator, name)
        if blank:
            row_numbers = pl.int_range(1, frame.height + 1, eager=True)
            kept = ~row_numbers.is_in(blank)
            frame, row_numbers = frame.filter(kept), row_numbers.filter(kept)
    columns = [column.alias(title) for column, title in zip(frame, header, strict=True)]
    return columns, row_numbers


def _read_tsv(content: bytes, name: str) -> Columns:
    return _read_csv(content, name, separator="\t")


def _blank_rows(lines: str, separator: str, name: str) -> list[int]:
    """Numbers of the rows that are blank; a row of too few or too many values is refused."""
    # Lines end where they do for polars, or the numbers would be those of other rows.
    rows = csv.reader(io.StringIO(lines, newline="\n"), delimiter=separator)
    blank, number = [], 0
    try:
        width = len(next(rows))
        for number, row in enumerate(rows, start=1):
            if len(row) != width:
                if len(row) > 1 or "".join(row).strip(" "):
                    raise InputError(
                        f"{name}, row {number}: number of values: got {len(row)}, want {width}"
                    )
                blank.append(number)
    except csv.Error as error:
        # The other error is a value longer than this reader takes; polars has no quarrel with it.
        if "new-line" in str(error):
            raise InputError(
                f"{name}, row {number + 1}: a carriage return inside a value that is not quoted"
            ) from None
    return blank


def _read_jsonl(content: bytes, name: str) -> Columns:
    # Not splitlines(): inside a string, JSON may hold other line ends, such as U+2028.
    lines = _decoded(content, name).split("\n")
    rows = [_json_object(line, f"{name}, row {row}") for row, line in enumerate(lines, start=1)]
    keys = dict.fromkeys(key for row in rows for key in row)
    return [_series(key, [row.get(key) for row in rows], name) for key in keys], None


def _json_object(line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{place}: got {shown(line.strip())}, want a JSON object")
    return value


def _read_parquet(content: bytes, name: str) -> Columns:
    import polars as pl

    try:
        return pl.read_parquet(content).get_columns(), None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise InputError(f"{name}: not a Parquet file, or a damaged one") from None


_READERS: dict[str, Callable[[bytes, str], Columns]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
}
_GZIP = b"\x1f\x8b"


# Data frames, mappings and Python values


def _read_frame(source: Any) -> list[pl.Series]:
    import narwhals as nw

    try:
        frame = nw.from_native(source, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise InputError("data frame: two columns have the same name") from None
    except TypeError:
        raise InputError(
            f"source: got {type(source).__name__}, want a path, a mapping of column name to values "
            "or a data frame in memory (pandas, polars, PyArrow)"
        ) from None
    return [_from_series(column) for column in frame.iter_columns()]


def _read_mapping(source: Mapping[str, Iterable[object]]) -> list[pl.Series]:
    import narwhals as nw

    columns = []
    for name, values in source.items():
        column = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(column, nw.Series):
            columns.append(_from_series(column).alias(str(name)))
        elif isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
            got = shown(column)
            raise InputError(f"data frame, column {name}: got {got}, want a list of values")
        else:
            columns.append(_series(str(name), column, "data frame"))
    return columns


def _from_series(column: nw.Series[Any]) -> pl.Series:
    if not column.implementation.is_pandas_like():
        return column.to_polars()
    # By way of Python values: polars takes a pandas column through PyArrow, which need not be
    # there and refuses a column that mixes text and numbers.
    values = column.to_list()
    if column.null_count():
        nulls = column.is_null().to_list()
        values = [None if null else value for value, null in zip(values, nulls, strict=True)]
    return _series(str(column.name), values, "data frame")


def _series(name: str, values: Iterable[object], source: str) -> pl.Series:
    """Make a polars column of Python or NumPy values; where kinds are mixed, all are text."""
    import numpy as np
    import polars as pl

    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    kinds = set(map(type, values))
    if any(issubclass(kind, np.generic) for kind in kinds):
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        kinds = set(map(type, values))
    kinds.discard(type(None))
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        number = pl.Float64 if float in kinds else pl.Int64 if int in kinds else None
        try:
            return pl.Series(name, values, dtype=number)
        except (TypeError, OverflowError, UnicodeEncodeError):
            pass  # a whole number beyond int64, or half of a surrogate pair
    if name.strip().lower() in _NAMING and str in kinds:
        _refuse_half_pairs(name, values, source)
    return pl.Series(name, [_as_text(value) for value in values], dtype=pl.String)


def _refuse_half_pairs(name: str, values: Sequence[object], source: str) -> None:
    for row, value in enumerate(values, start=1):
        if isinstance(value, str) and not is_unicode(value):
            raise InputError(
                f"{source}, row {row}, column {name}: got {shown(value)}, want text without a lone "
                "surrogate"
            )


def _as_text(value: object) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    nested = isinstance(value, (dict, list, bool))
    written = json.dumps(value, default=str) if nested else str(value)
    return written.encode(errors="backslashreplace").decode()  # different ones stay different
