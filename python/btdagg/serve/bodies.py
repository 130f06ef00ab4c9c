"""Bodies of requests and answers: JSON checked by pydantic, and Arrow streams."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from btdagg._core import InputError
from btdagg._util.validation import as_counts, same_length
from btdagg.votes import Provenance, Votes, read_table, read_votes
from btdagg.votes.strength import PROBABILITIES

ARROW = "application/vnd.apache.arrow.stream"
COUNTS = ("minus", "tie", "plus")

# Fields of each form of a body, by the field that tells the form.
_FORMS = {
    "counts": ("counts", "item"),
    "minus": (*COUNTS, "item"),
    "vote": ("item", "vote", "sample", "order", "judge", "margin", "strength", *PROBABILITIES),
}

_END = b"\xff\xff\xff\xff\0\0\0\0"  # the mark at the end of a stream

_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[float, Field(ge=0, lt=2**63)]
_Three = Field(min_length=3, max_length=3)  # in label order


class Body(BaseModel):
    """Votes of items: `counts`, or columns `minus`, `tie`, `plus`, or a vote in each row."""

    model_config = ConfigDict(extra="forbid", strict=True)

    counts: list[Annotated[list[_Count], _Three]] | None = Field(
        None, description="Counts of each item in label order: minus, tie, plus."
    )
    minus: list[_Count] | None = None
    tie: list[_Count] | None = None
    plus: list[_Count] | None = None
    item: list[str | _Integer] | None = Field(None, description="All texts, or all integers.")
    vote: list[str | _Integer | None] | None = Field(
        None, description="-1, 0, 1, or B, tie, A; null is a missing vote, and no tie."
    )
    sample: list[_Integer] | None = None
    order: list[str] | None = Field(None, description="AB or BA.")
    judge: list[str] | None = None
    margin: list[float | None] | None = Field(
        None, description="How strong votes are, on the scale of the model's full margin."
    )
    strength: list[float | None] | None = Field(None, description="The same, from 0 to 1.")
    p_minus: list[float | None] | None = Field(
        None, description="The same, by probabilities of -1, 0 and 1."
    )
    p_tie: list[float | None] | None = None
    p_plus: list[float | None] | None = None


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(None, description="Their ids, if there were any.")
    counts: list[Annotated[list[int | float], _Three]] | None = Field(
        None, description="Where votes came."
    )
    n_missing: int | None = Field(None, description="Votes that are missing.")
    labels: list[Literal[-1, 0, 1]] = Field(
        description="-1 (B is better), 0 (tie), 1 (A is better)."
    )
    probabilities: list[Annotated[list[float], _Three]] | None = Field(
        None, description="Of -1, 0, 1."
    )
    warnings: list[str] | None = Field(
        None, description="Where the items are not what the model was fitted to."
    )


class Items(NamedTuple):
    """Counts of items (n, 3), their ids, and the votes if they came one by one."""

    counts: Any
    ids: list[Any] | None = None
    votes: Votes | None = None


def read_json(body: bytes, origin: Provenance | None = None) -> Items:
    """Read a JSON body; votes are as strong as those that a model was fitted to."""
    columns = Body.model_validate_json(body or b"null").model_dump(exclude_none=True)
    return _items(columns, origin)


def read_arrow(body: bytes, origin: Provenance | None = None) -> Items:
    """Read an Arrow stream with the columns of `Body`; see `read_json`."""
    return _items({column.name: column for column in read_stream(body)}, origin)


def _items(columns: dict[str, Any], origin: Provenance | None) -> Items:
    forms = columns.keys() & _FORMS.keys()
    if len(forms) != 1:
        raise InputError("body: expected counts, or minus, tie and plus, or item and vote")
    (form,) = forms
    for name in columns:
        if name not in _FORMS[form]:
            raise InputError(f"{name}: beside {form}, expected only {', '.join(_FORMS[form])}")
    if not _are_ids(columns.get("item", [])):
        raise InputError("item: expected only texts or only whole numbers, and none missing")
    counts: np.ndarray[Any, Any]
    if "vote" in columns:
        try:
            table = read_table(columns, [])
            votes = read_votes(table, **(origin or Provenance()).how_to_read(table))
            full_margins = () if votes.strength is None else votes.strength.full_margins
            fitted = () if origin is None else origin.full_margins
            if not {own.margin for own in full_margins} <= {own.margin for own in fitted}:
                expected = "strength: the model has no full margin of these votes"
                raise InputError(argument="margin", came="a column", expected=expected)
            ids, counts = votes.counts()
        except InputError as error:
            raise InputError(str(error).replace("data frame", "body", 1)) from None
        return Items(counts, ids.tolist(), votes)
    if "counts" in columns:
        counts = np.array(columns["counts"], dtype=np.float64).reshape(-1, 3)
    else:
        for name in COUNTS:
            if name not in columns:
                raise InputError(f"{name}: expected a column of counts")
            same_length(name, len(columns[name]), "minus", len(columns["minus"]))
        counts = np.column_stack([np.asarray(columns[name]) for name in COUNTS])
    if not len(counts):
        counts = counts.astype(np.int64)  # an empty list has no type
    names = list(columns["item"]) if "item" in columns else None
    if names is not None:
        same_length("item", len(names), "counts", len(counts))
    return Items(as_counts(counts), names)


def _are_ids(column: list[Any] | pl.Series) -> bool:
    if isinstance(column, pl.Series):
        is_text = column.dtype == pl.String
        return (is_text or column.dtype.is_integer()) and not column.null_count()
    return len(set(map(type, column))) <= 1


def read_stream(body: bytes) -> pl.DataFrame:
    """Read an Arrow stream of numbers and texts whose end has arrived.

    Neither compressed batches nor dictionaries are taken: a small body could unfold into a large
    table.

    The format lets a writer leave out the mark at the end, but then a stream that was cut between
    two batches looks whole. Writers in use set it.
    """
    try:
        source = pa.BufferReader(body)
        messages = pa.ipc.MessageReader.open_stream(source)
        first = messages.read_next_message()
        if first.type != "schema":  # reading one from another message would crash the process
            raise InputError(f"body: begins with a {first.type}, expected a schema")
        came = pa.ipc.read_schema(first)
        # Metadata is left out: polars panics if it is not UTF-8.
        schema = pa.schema([pa.field(column.name, column.type) for column in came])
        for column in schema:
            kind = column.type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if column.name not in Body.model_fields or column.name == "counts":
                raise InputError(f"{column.name}: unknown column")
            if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise InputError(f"{column.name}: of type {kind}, expected numbers or text")
        batches, end = [], source.tell()
        for message in messages:
            if message.type != "record batch":
                raise InputError(f"body: a {message.type}, expected only record batches")
            if _is_compressed(message.metadata.to_pybytes()):
                raise InputError("body: a compressed batch, expected it uncompressed")
            batch = pa.ipc.read_record_batch(message, came)
            batch.validate(full=True)  # offsets that point elsewhere would crash the process
            batches.append(pa.record_batch(batch.columns, schema=schema))
            end = source.tell()
        if body[end:] != _END:
            raise InputError("body: no end-of-stream mark at its end; was it cut off?")
        return pl.DataFrame(pa.Table.from_batches(batches, schema))
    except StopIteration:
        raise InputError("body: not an Arrow IPC stream: it has no schema") from None
    except (
        pa.ArrowException,
        struct.error,
        OSError,
        UnicodeError,
        pl.exceptions.PolarsError,
    ) as error:
        raise InputError(f"body: not an Arrow IPC stream: {error}") from None


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch's FlatBuffers header has a compression: pyarrow does not say."""

    def field_of(table: int, number: int) -> int:
        """Place of a field of a table, 0 where it is not set."""
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        (size,) = struct.unpack_from("<H", metadata, vtable)
        if 4 + 2 * number >= size:
            return 0
        (offset,) = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)
        return table + offset if offset else 0

    header = field_of(struct.unpack_from("<I", metadata)[0], 2)  # after version and header type
    batch = header + struct.unpack_from("<I", metadata, header)[0]
    return field_of(batch, 3) != 0  # after length, nodes and buffers


def write_stream(columns: Mapping[str, Any], digest: str, warnings: Sequence[str] = ()) -> bytes:
    """Write columns as a stream whose schema has the model's digest, and warnings as JSON."""
    more = {"warnings": json.dumps(warnings)} if warnings else {}
    table = pa.table(dict(columns)).replace_schema_metadata({"model": digest, **more})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()
