"""From a file, a data frame or a mapping to a table, or one line saying what is wrong.

polars and narwhals are the extra ``btdagg[tables]``: they are imported where they are used, so that
``import btdagg`` needs neither.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from btdagg._core import InputError
from btdagg.extras import needs
from btdagg.tables import Table, is_unicode, listing, require, shown

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl
    from narwhals.typing import IntoDataFrame

    Source: TypeAlias = str | os.PathLike[str] | Mapping[str, Iterable[object]] | IntoDataFrame

# Columns whose texts say what a row belongs to. No column holds a lone surrogate: in these it is
# refused, and in others, which may be what a model wrote, it is written as an escape.
_NAMING = frozenset({"item", "judge", "rater", "task", "group", "template", "temperature"})


def read_table(source: Source, required: Sequence[str], *, name: str | None = None) -> Table:
    """Read a source whose columns must include `required`.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        A path ends in .csv, .tsv, .jsonl, .ndjson or .parquet. A data frame is any eager one that
        narwhals understands: pandas, polars, PyArrow and others.
    required : sequence of str
        Names of columns, lower-case.
    name : str, optional
        What errors call the source; without it the path, or ``data frame``.

    Returns
    -------
    Table
        Every column of the source. Those of a .csv or .tsv file are text.

    Raises
    ------
    InputError
        If the source cannot be read, has no rows, or lacks a column.
    MissingExtraError
        If polars or narwhals is not installed.
    """
    with needs("tables", "reading tables"):
        import narwhals  # noqa: F401
        import polars as pl

    if isinstance(source, (str, os.PathLike)):
        name = name or os.fspath(source)
        columns = _read_file(Path(source), name)
    else:
        name = name or "data frame"
        columns = _read_mapping(source) if isinstance(source, Mapping) else _read_frame(source)
    table = Table(_assemble(columns, name), name)
    require(table, required)
    if not table.frame.height:
        raise InputError(f"{name}: no rows")
    plain = table.frame.with_columns(
        pl.col(pl.Float32, pl.Float64).fill_nan(None),
        pl.col(pl.Categorical, pl.Enum).cast(pl.String),
    )
    return Table(plain, name)


def _assemble(columns: Sequence[pl.Series], name: str) -> pl.DataFrame:
    import polars as pl

    columns = [column.alias(column.name.strip().lower()) for column in columns]
    names = [column.name for column in columns]
    twice = [column for column in names if names.count(column) > 1]
    if twice:
        raise InputError(f"{name}: two columns are called {twice[0]!r}")
    lengths = [f"{column.name} {len(column)}" for column in columns]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"{name}: columns differ in length: {listing(lengths)}")
    return pl.DataFrame(columns)


# Files


def _read_file(path: Path, name: str) -> list[pl.Series]:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{name}: cannot read this kind of file, want {listing(_READERS)}")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    if not content.strip():
        raise InputError(f"{name}: empty file")
    return reader(content, name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: not UTF-8 text") from None


def _read_csv(content: bytes, name: str, separator: str = ",") -> list[pl.Series]:
    import polars as pl

    lines = _decoded(content, name).lstrip("\r\n")
    try:
        # The header is read as a row: polars would rename the second of two equal column names.
        frame = pl.read_csv(
            lines.encode(), separator=separator, has_header=False, infer_schema=False
        )
    except pl.exceptions.PolarsError:
        _refuse_uneven(lines, separator, name)
        raise InputError(f"{name}: a quote inside a value, or one that is not closed") from None
    # polars fills up a short row, and half a row must not pass for a missing vote. Counting the
    # separators would show it, if some were not inside quotes; then every row is looked at.
    if '"' in lines or lines.count(separator) != (frame.width - 1) * frame.height:
        _refuse_uneven(lines, separator, name)
    header = [cell or "" for cell in frame.row(0)]
    return [column[1:].alias(title) for column, title in zip(frame, header, strict=True)]


def _read_tsv(content: bytes, name: str) -> list[pl.Series]:
    return _read_csv(content, name, separator="\t")


def _refuse_uneven(lines: str, separator: str, name: str) -> None:
    rows = csv.reader(io.StringIO(lines, newline=""), delimiter=separator)
    try:
        width = len(next(rows))
        for number, row in enumerate(rows, start=1):
            if len(row) != width:
                raise InputError(
                    f"{name}, row {number}: number of values: got {len(row)}, want {width}"
                )
    except csv.Error:
        return  # a value longer than this reader takes, with which polars has no quarrel


def _read_jsonl(content: bytes, name: str) -> list[pl.Series]:
    # Not splitlines(): inside a string, JSON may hold other line ends, such as U+2028.
    lines = _decoded(content, name).split("\n")
    rows = [_json_object(line, f"{name}, row {row}") for row, line in enumerate(lines, start=1)]
    keys = dict.fromkeys(key for row in rows for key in row)
    return [_series(key, [row.get(key) for row in rows], name) for key in keys]


def _json_object(line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{place}: got {shown(line.strip())}, want a JSON object")
    return value


def _read_parquet(content: bytes, name: str) -> list[pl.Series]:
    import polars as pl

    try:
        return pl.read_parquet(content).get_columns()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise InputError(f"{name}: not a Parquet file, or a damaged one") from None


_READERS: dict[str, Callable[[bytes, str], list[pl.Series]]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
}
TABLE_SUFFIXES = tuple(_READERS)


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
