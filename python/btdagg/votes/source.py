"""Read files, vote stores, data frames and mappings into tables."""
# polars and narwhals (extra ``btdagg[tables]``) are imported where used: `import btdagg` needs
# neither.

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from btdagg._util.errors import InputError, forbid, reworded, shown
from btdagg._util.extensions import provided
from btdagg._util.extras import needs
from btdagg._util.files import read_bounded, require_unpacked
from btdagg._util.lazy import pl
from btdagg._util.spreadsheets import unguarded
from btdagg.votes.schema import ITEM_NAMES, checked, ids
from btdagg.votes.table import NUMBER, Table, listing, require

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    Columns: TypeAlias = Mapping[str, str | Sequence[str]]
    Source: TypeAlias = (
        str
        | os.PathLike[str]
        | Sequence[str | os.PathLike[str]]
        | Mapping[str, Iterable[object]]
        | Sequence[Mapping[str, object]]
        | IntoFrame
        | Table
    )

STANDARD_INPUT = "-"

_KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_GZIP = b"\x1f\x8b"
_LONGEST = 100_000_000  # bytes of a value in a compressed table
_PACKED = (_GZIP, b"x\x01", b"x\x9c", b"x\xda", b"\x28\xb5\x2f\xfd")
_MOST_COLUMNS = 10_000
_MOST_CELLS, _MOST_ROWS = 100_000_000, 50_000_000  # of files with less than a byte for each
_ROWS_PER_BYTE = 100  # of a Parquet file
_ENGINE_ROWS = 1000  # by which the engine learns the columns of JSON lines
_SQLITE = b"SQLite format 3\0"
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_FEW_WORDS = 20  # in a column of votes, judges and the like


def read_table(
    source: Source,
    required: Sequence[str],
    *,
    columns: Columns | None = None,
    name: str | None = None,
) -> Table:
    """Read a source whose columns must include `required`.

    Parameters
    ----------
    source : path, list of paths, data frame, mapping of column to values, list of rows, or Table
        Files are .csv, .tsv, .jsonl or .ndjson, also with .gz, or .parquet; Parquet files with the
        same columns make one table, as a list, a folder or a pattern such as ``votes/*.parquet``,
        and are read lazily. ``-`` is standard input. A vote store is an SQLite file or the URL of a
        database. Data frames are those of narwhals (pandas, polars, PyArrow, DuckDB, also lazy),
        data sets of Hugging Face, and Arrow streams. Messages count blank lines of text files as
        rows.
    required : sequence of str
        Names of columns, lower-case. Without `item`, a column `id` or `item_id` is used.
    columns : mapping of str to str, or to several; optional
        New names of columns, such as ``{"item": "qid"}`` to read `qid` as `item`; a column may
        have several names. ``{"item": ["conversation", "bot"]}`` makes one key of several columns,
        joined by `|`, which keep their names as well.
    name : str, optional
        Name of the source in errors; by default the path, ``standard input`` or ``data frame``.

    Returns
    -------
    Table
        Every column of the source. Columns of .csv and .tsv files are text.

    Raises
    ------
    InputError
        If the source cannot be read, has no rows, or lacks a column.
    """
    table = source if isinstance(source, Table) else _read(source, name)
    table = _renamed(table, columns)
    if "item" in required:
        table = with_item(table)
    require(table, required, "columns")
    forbid(not table.height, f"{table.source}: no rows")
    return table


def read_tables(columns: Columns, *sources: Source) -> list[Table]:
    """Read sources of which each has some columns of other names; each column is in one of them."""
    tables = [read_table(source, []) for source in sources]
    used: list[dict[str, str | Sequence[str]]] = [{} for _ in tables]
    for name, column in columns.items():
        parts = parts_of_column(column)
        if any("+".join(parts) in table.columns for table in tables):
            parts = [column := "+".join(parts)]
        having = [n for n, table in enumerate(tables) if {*parts} <= {*table.columns}]
        if not having:
            present = "; ".join(f"{table.source} has {listing(table.columns)}" for table in tables)
            every = {column for table in tables for column in table.columns}
            absent = next((part for part in parts if part not in every), "+".join(parts))
            raise InputError(
                f"columns {name}={'+'.join(parts)}: no column {absent!r}; {present}",
                argument="columns",
            )
        for n in having:
            used[n][name] = column
    pairs = zip(tables, used, strict=True)
    return [read_table(table, [], columns=mapping) for table, mapping in pairs]


def said(columns: Columns | None, **given: Any) -> tuple[Any, ...]:
    """Return arguments, those that are not given as `btdagg.Columns` says them."""
    return tuple(
        getattr(columns, n, None) if value is None else value for n, value in given.items()
    )


def parts_of_column(column: str | Sequence[str]) -> list[str]:
    """Return the names of the columns that make one, in lower case."""
    parts = [column] if isinstance(column, str) else column
    return [part.strip().lower() for part in parts]


def literal(column: str | Sequence[str], table: Table) -> str | Sequence[str]:
    """Return the parts of a key, or the column that is called as they are typed: ``a+b``."""
    typed = column if isinstance(column, str) else "+".join(column)
    return typed if typed in table.columns else column


def with_item(table: Table) -> Table:
    """Return a table with its column `id` or `item_id` renamed to `item`, if it has no `item`."""
    names = [column for column in ITEM_NAMES if column in table.columns]
    if "item" in table.columns or not names:
        return table
    if len(names) > 1:
        both = " and ".join(map(repr, names))
        raise InputError(
            f"{table.source}: columns {both} could both be the item; choose one, as in {{advice}}",
            advice={"columns": {"item": names[0]}},
        )
    return _renamed(table, {"item": names[0]})


def _renamed(table: Table, columns: Columns | None) -> Table:
    if columns is None:
        return table
    try:
        parts = {name.strip().lower(): parts_of_column(column) for name, column in columns.items()}
    except (AttributeError, TypeError):
        expected = "a mapping such as {'item': 'qid'}"
        raise InputError(argument="columns", got=columns, expected=expected) from None
    require(table, (part for key in parts.values() for part in key))
    keys = {name: key for name, key in parts.items() if len(key) > 1}
    names = {name: key[0] for name, key in parts.items() if len(key) == 1}
    first = {column: name for name, column in reversed(names.items())}
    copies = [pl.col(first[column]).alias(name) for name, column in names.items()]
    made = [_joined(table, key).alias(name) for name, key in keys.items()]
    # Columns of a key keep their names as well.
    copies += [pl.col(first[c]).alias(c) for key in keys.values() for c in key if c in first]
    replaced = [name for name in names if name in table.columns and name not in first]
    data = table.data.with_columns(made).drop(replaced).rename(first).with_columns(copies)
    titles = {name: "+".join(map(table.title, key)) for name, key in parts.items()}
    return replace(table, data=data, titles={**table.titles, **titles})


def _joined(table: Table, columns: Sequence[str]) -> pl.Expr:
    parts = [value.cast(pl.String) for value in checked(table, dict.fromkeys(columns, ids))]
    escaped = [part.str.replace_all(r"([\\|])", r"\${1}") for part in parts]
    return pl.concat_str(escaped, separator="|")


def _read(source: Any, name: str | None) -> Table:
    with needs("tables", "reading tables"):
        import polars  # noqa: F401

    if isinstance(source, (str, os.PathLike)):
        return _read_place(os.fspath(source), name)
    if isinstance(source, (list, tuple)):
        forbid(not source, f"{name or 'list'}: no rows")
        if all(isinstance(path, (str, os.PathLike)) for path in source):
            return _scan_parquet([os.fspath(path) for path in source], name or "files")
        if all(isinstance(row, Mapping) for row in source):
            source = _columns_of_rows(source, name or "data frame")
    with needs("tables", "reading tables"):  # files do without it, and start sooner
        import narwhals  # noqa: F401
    columns = source if isinstance(source, Mapping) else _columns_of_frame(source)
    series = [_series(str(title), values) for title, values in columns.items()]
    return _tidy(_frame(series, name := name or "data frame"), name)


def _frame(columns: Iterable[pl.Series], source: str) -> pl.DataFrame:
    columns = list(columns)
    names = _lower([column.name for column in columns], source)
    try:
        pairs = zip(names, columns, strict=True)
        return pl.DataFrame([column.alias(name) for name, column in pairs])
    except pl.exceptions.ShapeError:
        lengths = listing(f"{column.name} {len(column)}" for column in columns)
        raise InputError(f"{source}: columns differ in length: {lengths}") from None


def _lower(titles: Sequence[str], source: str) -> list[str]:
    names = [title.strip().lower() for title in titles]
    for name, n in Counter(names).items():
        if n > 1 and not name:
            places = listing(str(place) for place, title in enumerate(names, start=1) if not title)
            raise InputError(f"{source}: columns {places} have no name; name or delete them")
        forbid(n > 1, f"{source}: two columns are called {name!r}")
    return names


def _tidy(
    data: pl.DataFrame | pl.LazyFrame, name: str, files: tuple[tuple[str, int], ...] = ()
) -> Table:
    plain = data.with_columns(
        pl.col(pl.Float32, pl.Float64).fill_nan(None),
        pl.col(pl.Categorical, pl.Enum).cast(pl.String),
    )
    return Table(plain, name, files=files)


# Files

LABEL_COLUMNS = ("item", "rater", "label", "seconds", "note")
"""What a file of labels from the label page begins with."""


def table_if_any(path: Path) -> pl.DataFrame | None:
    """Return the table of a file; None where there is none that can be read."""
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        return read_table(path, []).frame
    except InputError:
        return None


def is_store(place: str) -> bool:
    """Whether a place is a vote store: the URL of a database, or an SQLite file."""
    # A missing file without a table's suffix counts, so that errors are about a missing store.
    if "://" in place:
        return True
    if place == STANDARD_INPUT or not os.path.exists(place):
        return place != STANDARD_INPUT and suffix_of(place) not in _KINDS
    return _begins_like_sqlite(place)


def _begins_like_sqlite(place: str) -> bool:
    if not os.path.isfile(place):  # reading would take a pipe's first bytes
        return False
    try:
        with open(place, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:  # the error is raised when it is read
        return False


def paths_of(place: str) -> list[str]:
    """Paths that may be read where a place is: itself, matches of a pattern, all in a folder."""
    if os.path.isdir(place):
        return [place, *(str(path) for path in Path(place).rglob("*"))]
    # An SQLite database has files beside it.
    beside = [f"{place}{end}" for end in ("", "-wal", "-shm", "-journal")]
    return [*beside, *glob.glob(place, recursive=True)]


def suffix_of(place: str) -> str:
    """Suffix of a path that says how its content is read, the .gz of a text file left out."""
    plain, suffix = os.path.splitext(place.lower())
    inner = os.path.splitext(plain)[1]
    return inner if suffix == ".gz" and inner != ".parquet" else suffix


def _read_place(place: str, name: str | None) -> Table:
    name = name or ("standard input" if place == STANDARD_INPUT else place)
    if "://" in place or _begins_like_sqlite(place):
        return _tidy(*provided("a vote store")(place))
    kind = suffix_of(place)
    require_regular(place, name)
    if os.path.isdir(place) or (kind == ".parquet" and not os.path.exists(place)):
        pattern = os.path.join(glob.escape(place), "**", "*.parquet")
        files = sorted(glob.glob(pattern if os.path.isdir(place) else place, recursive=True))
        if files:
            return _scan_parquet(files, name)
        forbid(os.path.isdir(place), f"{name}: cannot be read: a folder without .parquet files")
    if place != STANDARD_INPUT and kind not in _KINDS:
        raise InputError(f"{name}: cannot read this kind of file, expected {listing(_KINDS)}")
    if kind == ".parquet" and os.path.isfile(place) and os.path.getsize(place):
        return _scan_parquet([place], name)
    return table_in(content_of(place, name), name, "" if place == STANDARD_INPUT else kind)


def require_regular(place: str, name: str) -> None:
    """Refuse devices, which may not end, and pipes, which are read once; others may be absent."""
    is_other = os.path.exists(place) and not (os.path.isfile(place) or os.path.isdir(place))
    message = f"{name}: a device or a pipe, expected a file; {STANDARD_INPUT} reads standard input"
    forbid(place != STANDARD_INPUT and is_other, message)


def table_in(content: bytes, name: str, kind: str = "") -> Table:
    """Read the content of a file of a kind, or of one that begins like this."""
    forbid(not content or content.isspace(), f"{name}: empty file")
    kind = kind or _kind_of_content(content)
    if kind == ".parquet":
        return _scan_parquet([io.BytesIO(content)], name)
    if kind in (".csv", ".tsv"):
        return _read_csv(content, name, "," if kind == ".csv" else "\t")
    return _tidy(_frame(_read_jsonl(content, name), name), name)


def content_of(place: str, name: str) -> bytes:
    """Bytes of a file, unpacked, or of standard input; `name` is what errors call it."""
    if place == STANDARD_INPUT:
        content = read_bounded(sys.stdin.buffer, name) if sys.stdin else b""
    else:
        require_regular(place, name)
        absent = reworded(FileNotFoundError, f"{name}: no such file")
        with (
            reworded(OSError, f"{name}: cannot be read: {{error}}"),
            absent,
            open(place, "rb") as f,
        ):
            content = read_bounded(f, name)
    if content.startswith(_GZIP):
        has_rows = place == STANDARD_INPUT or suffix_of(place) in _KINDS
        with reworded((OSError, EOFError, zlib.error), f"{name}: the gzip file is damaged"):
            return _unpacked(content, name, has_rows=has_rows)
    return content


def _unpacked(content: bytes, name: str, *, has_rows: bool) -> bytes:
    # A few MB may unpack to a value for which there is no memory; polars then aborts the process.
    unpacked, n_lines, n_quotes = io.BytesIO(), 0, 0
    with gzip.open(io.BytesIO(content)) as file:
        while piece := file.read(_LONGEST):
            quotes = piece.count(b'"')
            is_one_value = b"\n" not in piece or (n_quotes % 2 and not quotes)
            require_unpacked(unpacked.tell() + len(piece), len(content), name)
            if has_rows and len(piece) == _LONGEST and is_one_value:
                raise InputError(f"{name}, line {n_lines + 1}: a value is larger than 100 MB")
            n_lines += piece.count(b"\n")
            n_quotes += quotes
            unpacked.write(piece)
    return unpacked.getvalue()


def _kind_of_content(content: bytes) -> str:
    if content.startswith(b"PAR1"):
        return ".parquet"
    text = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in text.partition(b"\n")[0] else ".csv"


def decoded(content: bytes, name: str) -> str:
    """Text of a file in UTF-8; an error names the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: not UTF-8 text") from None


def _read_csv(content: bytes, name: str, separator: str) -> Table:
    lines = content.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n").lstrip(b" \r\n")
    forbid(
        b"\r" in lines and b"\n" not in lines,
        f"{name}: lines end in carriage returns alone; save it as CSV UTF-8, with line feeds",
    )
    _require_text(lines, name)
    header = re.sub(rb'"[^"]*"', b"", lines.partition(b"\n")[0])
    other = next((sign for sign in _SEPARATORS if sign.encode() in header), None)
    forbid(
        other and separator.encode() not in header,
        f"{name}: values are separated by {_SEPARATORS.get(str(other))}, expected "
        f"{_SEPARATORS[separator]}; save it as CSV with commas, and with points in decimal numbers",
    )
    try:  # the columns are counted before the engine makes room for them
        texts = (line.decode(errors="replace") for line in io.BytesIO(lines))
        n_columns = len(next(csv.reader(texts, delimiter=separator)))
    except csv.Error:
        n_columns = lines.partition(b"\n")[0].count(separator.encode()) + 1
    _require_size(name, n_columns, lines.count(b"\n") + 1, len(lines))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    try:
        frame = _cells(lines, separator)
        if b'"' in lines and frame.height <= lines.count(b"\n"):
            quoting = _quoting_of(frame, lines, separator, name)
    except pl.exceptions.PolarsError:
        decoded(content, name)
        if not _quotes_are_text(lines, separator):
            _blank_rows(lines.decode(), separator, name)
            text = f"{name}: a quote inside a value, or a quote that is not closed"
            raise InputError(text) from None
        quoting = csv.QUOTE_NONE
    if quoting == csv.QUOTE_NONE:
        frame = _cells(lines, separator, quote=None)
    names = _lower([cell or "" for cell in frame.row(0)], name)
    frame = frame[1:].rename(dict(zip(frame.columns, names, strict=True)))
    if tuple(names[:5]) == LABEL_COLUMNS:
        typed = pl.col("rater", "note").map_elements(unguarded, pl.String)
        frame = frame.with_columns(typed)
    # polars fills up a short row with nulls, and half a row must not pass for a missing vote.
    # Counting the separators would show it, if some were not inside quotes; then every row is
    # looked at.
    n_separators = (frame.width - 1) * (frame.height + 1)
    is_doubtful = frame[:, -1].null_count() or (
        b"\r" in lines and lines.count(b"\r") != lines.count(b"\r\n")
    )
    if is_doubtful and (b'"' in lines or lines.count(separator.encode()) != n_separators):
        blank = _blank_rows(lines.decode(), separator, name, quoting)
        frame = frame.with_row_index(NUMBER, offset=1).filter(~pl.col(NUMBER).is_in(blank))
    return _tidy(frame, name)


def _cells(lines: bytes, separator: str, quote: str | None = '"') -> pl.DataFrame:
    # The header is read as a row: polars would rename the second of two equal column names.
    how: Any = {"has_header": False, "infer_schema": False}
    return pl.read_csv(lines, separator=separator, quote_char=quote, **how)


def _could_be_rows(lines: Iterable[str], separator: str, width: int) -> bool:
    """Whether each line that is not blank has as many values as there are columns."""
    n_separators = width - 1
    return width > 1 and all(
        n_separators == line.count(separator) for line in lines if line.strip()
    )


def _quotes_are_text(lines: bytes, separator: str) -> bool:
    """Whether quotes do not quote: each line is a row, and in a .csv file no value begins so."""
    text = lines.decode()
    rows = text.split("\n")
    if not _could_be_rows(rows, separator, rows[0].count(separator) + 1):
        return False
    return separator == "\t" or not re.search(rf'(^|{separator}) *"', text, re.MULTILINE)


def _quoting_of(frame: pl.DataFrame, lines: bytes, separator: str, name: str) -> Literal[0, 3]:
    """Say whether quotes quote, where two stray ones would make one value of the rows between them.

    A value with line breaks is such a one if each of its lines could be a row, and either all lines
    of the file could, or a column of few words has one of these in each.
    """
    has_break = pl.any_horizontal(pl.all().str.contains("\n", literal=True).fill_null(False))
    wide = frame.with_row_index().filter(frame.select(has_break).to_series())
    records = ((n, separator.join(cell or "" for cell in cells)) for n, *cells in wide.iter_rows())
    values = ((n, [line for line in text.split("\n") if line.strip()]) for n, text in records)
    doubtful = [(n, rows) for n, rows in values if _could_be_rows(rows, separator, frame.width)]
    all_lines = decoded(lines, name).split("\n") if doubtful else []
    are_rows = bool(doubtful) and _could_be_rows(all_lines, separator, frame.width)
    if are_rows and separator == "\t":  # which many a tool writes without quoting
        return csv.QUOTE_NONE
    plain = frame[1:].filter(~has_break)
    few = [{*column} if column.n_unique() <= _FEW_WORDS else set() for column in plain]
    for number, rows in doubtful:
        columns = zip(*(row.split(separator) for row in rows), strict=True)
        if are_rows or any({*cells} <= words for cells, words in zip(columns, few, strict=True)):
            raise InputError(
                f"{name}, row {number}: between two quotes are {len(rows)} lines that could each "
                f"be a row, such as {shown(rows[-1])}; if they are rows, quote the values that "
                "have a quote, and double it; if they are one value, save the table as .jsonl",
                source=name,
                row=number,
            )
    return csv.QUOTE_MINIMAL


def _require_size(name: str, n_columns: int, n_rows: int, n_values: int) -> None:
    """Refuse tables that take far more room than their values."""
    message = f"{name}: {n_columns:,} columns, expected at most {_MOST_COLUMNS:,}"
    forbid(n_columns > _MOST_COLUMNS, message)
    message = f"{name}: most rows have no value in most of the {n_columns:,} columns"
    forbid(n_columns * n_rows > max(_MOST_CELLS, 10 * n_values), message)


def _require_text(lines: bytes, name: str) -> None:
    # The engine would unpack it, however large.
    message = f"{name}: compressed content, expected text, or text in .gz"
    forbid(lines.startswith(_PACKED), message)


def _blank_rows(
    lines: str, separator: str, name: str, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> list[int]:
    """Numbers of the rows that are blank; a row of too few or too many values is refused."""
    # Lines end where they do for polars, or the numbers would be those of other rows.
    text = io.StringIO(lines, newline="\n")
    rows = csv.reader(text, delimiter=separator, quoting=quoting, strict=True)
    blank, number = [], 0
    try:
        width = len(next(rows))
        for number, row in enumerate(rows, start=1):
            if len(row) != width:
                if len(row) > 1 or "".join(row).strip(" "):
                    raise InputError(
                        f"{name}, row {number}: number of values: got {len(row)}, expected {width}"
                    )
                blank.append(number)
    except csv.Error as error:
        # The other error is a value too long for this reader; polars accepts it.
        if "new-line" in str(error):
            raise InputError(
                f"{name}, row {number + 1}: a carriage return inside an unquoted value"
            ) from None
        if "limit" not in str(error):
            raise InputError(
                f"{name}, row {number + 1}: a quote inside a value, or a quote that is not closed",
                source=name,
                row=number + 1,
            ) from None
    return blank


def _read_jsonl(content: bytes, name: str) -> Iterable[pl.Series]:
    """Read JSON lines: by the engine where it gives what Python's reader would."""
    lines = content.removeprefix(codecs.BOM_UTF8)
    _require_text(lines, name)
    frame = _jsonl_by_engine(lines)
    if frame is not None:
        return frame
    numbers = [number for number, line in enumerate(lines_of(lines), start=1) if line.strip()]
    rows = [json_object(line, name, n) for n, line in enumerate(lines_of(lines), 1) if line.strip()]
    columns = [_series(key, values) for key, values in _columns_of_rows(rows, name).items()]
    has_blanks = len(numbers) < numbers[-1]
    return [*columns, pl.Series(NUMBER, numbers, dtype=pl.UInt32)] if has_blanks else columns


def lines_of(content: bytes) -> list[bytes]:
    """Lines of JSON; not splitlines(), since texts may hold other line ends, such as U+2028."""
    return content.rstrip(b"\r\n").split(b"\n")


def _jsonl_by_engine(lines: bytes) -> pl.DataFrame | None:
    # The engine skips blank lines and repeated keys, and turns numbers among texts into texts: none
    # of this occurred if its result is written as the lines are. Nested values, of which deep ones
    # overflow its stack, and thousands of columns are not for it.
    if not _is_flat(lines):
        return None
    try:
        frame = pl.read_ndjson(lines, infer_schema_length=_ENGINE_ROWS)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    plain = {*frame.dtypes} <= {pl.String, pl.Int64, pl.Float64, pl.Boolean}
    return frame if plain and _packed(frame.write_ndjson().encode()) == _packed(lines) else None


def _is_flat(lines: bytes) -> bool:
    names: set[str] = set()
    for line in filter(bytes.strip, islice(io.BytesIO(lines), _ENGINE_ROWS)):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(row, dict) or any(isinstance(v, dict | list) for v in row.values()):
            return False
        names.update(row)
    return len(names) <= _MOST_COLUMNS


def _packed(lines: bytes) -> bytes:
    return lines.replace(b" ", b"").rstrip()


def json_object(line: bytes, source: str, number: int) -> dict[str, Any]:
    """Object in a line of JSON; an error names the source and the row."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError(f"{source}, line {number}: not UTF-8 text") from None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(source=source, row=number, got=text.strip(), expected="a JSON object")
    return value


def _scan_parquet(files: Sequence[Any], name: str) -> Table:
    for file in files:
        if isinstance(file, str):
            require_regular(file, name)
    rows = pl.scan_parquet(list(files), glob=False, hive_partitioning=False)
    alone = [pl.scan_parquet(file, glob=False).select(pl.len()) for file in files]
    try:
        titles = rows.collect_schema().names()
        heights = [n_rows.collect().item() for n_rows in alone]
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file: {str(error).rpartition(' ')[2]}") from None
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise InputError(f"{name}: not a Parquet file, or a damaged one") from None
    message = f"{name}: {len(titles):,} columns, expected at most {_MOST_COLUMNS:,}"
    forbid(len(titles) > _MOST_COLUMNS, message)
    for file, height in zip(files, heights, strict=True):
        if isinstance(file, str) and not os.path.isfile(file):
            continue  # at an address
        size = os.path.getsize(file) if isinstance(file, str) else file.getbuffer().nbytes
        message = f"{name}: {height:,} rows in {size:,} bytes are no rows of votes"
        forbid(height > max(_MOST_ROWS, _ROWS_PER_BYTE * size), message)
    rows = rows.rename(dict(zip(titles, _lower(titles, name), strict=True)))
    parts = zip(files, heights, strict=True) if len(files) > 1 else ()
    return _tidy(rows, name, tuple(parts))


# Data frames, mappings and Python values


def _columns_of_frame(source: Any) -> dict[str, Any]:
    import narwhals as nw

    try:
        frame = nw.from_native(source)
    except nw.exceptions.DuplicateError:
        raise InputError("data frame: two columns have the same name") from None
    except TypeError:
        either = nw.from_native(source, allow_series=True, pass_through=True)
        is_series = isinstance(either, nw.Series)
        # Data sets of Hugging Face have the methods.
        for method in ("to_polars", "to_arrow"):
            if callable(read := getattr(source, method, None)) and not is_series:
                return _columns_of_frame(read())
        if hasattr(source, "__arrow_c_stream__") and not is_series:
            return _columns_of_frame(pl.DataFrame(source))
        raise InputError(
            f"source: got {type(source).__name__}, expected a path, a mapping of column name to "
            "values, a list of rows as mappings, or a data frame (pandas, polars, PyArrow, DuckDB, "
            "Hugging Face)"
        ) from None
    eager = frame.collect("polars") if isinstance(frame, nw.LazyFrame) else frame
    return {column.name: column for column in eager.iter_columns()}


def _columns_of_rows(rows: Sequence[Mapping[str, object]], source: str) -> dict[str, list[object]]:
    names = dict.fromkeys(str(name) for row in rows for name in row)
    _require_size(source, len(names), len(rows), sum(map(len, rows)))
    return {name: [row.get(name) for row in rows] for name in names}


def _series(name: str, values: Any) -> pl.Series:
    import narwhals as nw
    import numpy as np

    column = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(column, nw.Series) and not column.implementation.is_pandas_like():
        return column.to_polars().alias(name)
    if isinstance(column, nw.Series):
        # By way of Python values: polars takes a pandas column through PyArrow, which need not be
        # there and refuses a column that mixes text and numbers.
        nulls = column.is_null().to_list()
        pairs = zip(column.to_list(), nulls, strict=True)
        values = [None if is_null else value for value, is_null in pairs]
    elif isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        expected = "a list of values"
        raise InputError(source="data frame", column=name, got=values, expected=expected)
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
    return pl.Series(name, [_as_text(value) for value in values], dtype=pl.String)


def _as_text(value: object) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    nested = isinstance(value, (dict, list, bool))
    written = json.dumps(value, default=str) if nested else str(value)
    return written.encode(errors="backslashreplace").decode()  # different ones stay different
