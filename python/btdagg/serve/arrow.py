"""Arrow IPC streams as columns and back, with nothing in them that could unfold or mislead."""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import polars as pl
    import pyarrow as pa

CONTENT_TYPE = "application/vnd.apache.arrow.stream"

# The mark at the end of a stream, and the one of writers before Arrow 0.15.
_ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")


def read_stream(body: bytes, names: Collection[str] | None = None) -> pl.DataFrame:
    """Read a stream of number and text columns, only those of some names if these are given.

    Neither compressed batches nor dictionaries are taken, nor columns that nobody wants, which may
    share their bytes: a small body may unfold into a large table. Each batch is validated in full
    before a value is used. A stream has to have its end-of-stream mark.

    Raises
    ------
    InputError
        If it is no such stream.
    """
    import polars as pl
    import pyarrow as pa

    try:
        source = pa.BufferReader(body)
        messages = pa.ipc.MessageReader.open_stream(source)
        first = messages.read_next_message()
        if first.type != "schema":  # reading one from another message kills the process
            raise InputError(
                f"body is not an Arrow IPC stream: it begins with a {first.type} message, "
                "expected a "
                f"schema"
            )
        came = pa.ipc.read_schema(first)
        # Without metadata, which nobody has checked.
        schema = pa.schema([pa.field(column.name, column.type) for column in came])
        _check(schema, names)
        batches = []
        while True:
            place = source.tell()
            try:
                message = messages.read_next_message()
            except StopIteration:
                _check_end(body[place:])
                break
            if message.type != "record batch":
                raise InputError(f"body has a {message.type} message, expected only record batches")
            if _is_compressed(message.metadata.to_pybytes()):
                raise InputError("body has a compressed batch, expected it uncompressed")
            batch = pa.ipc.read_record_batch(message, came)
            batch.validate(full=True)
            batches.append(pa.record_batch(batch.columns, schema=schema))
        found = pl.from_arrow(pa.Table.from_batches(batches, schema))
    except pl.exceptions.PanicException as error:
        raise InputError(f"body is not an Arrow IPC stream: {str(error).splitlines()[0]}") from None
    except (pa.ArrowException, struct.error, StopIteration, UnicodeError, OSError) as error:
        why = str(error) or "it has ended"  # a StopIteration says nothing
        raise InputError(f"body is not an Arrow IPC stream: {why}") from None
    return found if isinstance(found, pl.DataFrame) else found.to_frame()


def write_stream(columns: Mapping[str, Any], digest: str, warnings: Sequence[str] = ()) -> bytes:
    """Write columns as a stream whose schema has the model's digest, and warnings as JSON."""
    import pyarrow as pa

    said = {"warnings": json.dumps(warnings)} if warnings else {}
    table = pa.table(dict(columns)).replace_schema_metadata({"model": digest, **said})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()


def _check_end(rest: bytes) -> None:
    """Check that what follows the last batch is the mark of the end, and that nothing follows it.

    The format lets a writer leave the mark out, but then a stream that was cut between two batches
    looks like a whole one. Writers in use set it.
    """
    if rest not in _ENDS:
        if rest.startswith(_ENDS):
            raise InputError("body continues after the end of its stream, expected one stream")
        raise InputError("body has no end-of-stream mark: was it cut off?")


def _check(schema: pa.Schema, names: Collection[str] | None) -> None:
    import pyarrow as pa

    for column in schema:
        if names is not None and column.name not in names:
            raise InputError(f"unknown field {column.name!r}, expected {', '.join(names)}")
        kind = column.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InputError(f"column {column.name!r} is of type {kind}, expected numbers or text")
    twice = {name for name in schema.names if schema.names.count(name) > 1}
    if twice:
        raise InputError(f"column {min(twice)!r} is there twice")


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch's FlatBuffers header has a compression: pyarrow does not say."""

    def table_field(table: int, number: int) -> int:
        """Place of a field of a table, 0 where it is not set."""
        (back,) = struct.unpack_from("<i", metadata, table)
        vtable = table - back
        (size,) = struct.unpack_from("<H", metadata, vtable)
        if 4 + 2 * number >= size:
            return 0
        (offset,) = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)
        return table + offset if offset else 0

    (root,) = struct.unpack_from("<I", metadata, 0)
    header = table_field(root, 2)  # Message: version, header type, header
    if header == 0:
        return False
    (offset,) = struct.unpack_from("<I", metadata, header)
    return table_field(header + offset, 3) != 0  # RecordBatch: length, nodes, buffers, compression
