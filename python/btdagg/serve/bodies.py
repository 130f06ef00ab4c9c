"""Bodies of requests and answers: JSON checked by pydantic, and Arrow streams."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from btdagg._core import InputError
from btdagg._util.validation import as_counts, same_length
from btdagg.votes import Votes, read_votes

ARROW = "application/vnd.apache.arrow.stream"
COUNTS = ("minus", "tie", "plus")

# The mark at the end of a stream, and the one of writers before Arrow 0.15.
_ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")

_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
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
    item: list[str | _Integer] | None = None
    vote: list[str | _Integer | None] | None = Field(
        None, description="-1, 0, 1, or B, tie, A; null is a missing vote, and no tie."
    )
    sample: list[_Integer] | None = None
    order: list[str] | None = Field(None, description="AB or BA.")
    judge: list[str] | None = None


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(None, description="Their ids, if there were any.")
    counts: list[Annotated[list[int], _Three]] | None = Field(None, description="Where votes came.")
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


def read_json(body: bytes) -> Items:
    """Read a JSON body."""
    return _items(Body.model_validate_json(body or b"null").model_dump(exclude_none=True))


def read_arrow(body: bytes) -> Items:
    """Read an Arrow stream with the columns of `Body`."""
    return _items({column.name: column for column in read_stream(body)})


def _items(columns: dict[str, Any]) -> Items:
    if len(columns.keys() & {"counts", "minus", "vote"}) != 1:
        raise InputError("body: expected counts, or minus, tie and plus, or item and vote")
    if "vote" in columns:
        try:
            votes = read_votes(columns)
            ids, counts = votes.counts()
        except InputError as error:
            raise InputError(str(error).replace("data frame", "body", 1)) from None
        return Items(counts, ids.tolist(), votes)
    if "counts" in columns:
        counts = np.array(columns["counts"], dtype=np.int64).reshape(-1, 3)
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


def read_stream(body: bytes) -> pl.DataFrame:
    """Read an Arrow stream of numbers and texts whose end has arrived.

    The format lets a writer leave out the mark at the end, but then a stream that was cut between
    two batches looks whole. Writers in use set it.
    """
    try:
        source = pa.BufferReader(body)
        reader = pa.ipc.open_stream(source)
        # Metadata is left out: polars panics if it is not UTF-8.
        schema = pa.schema([pa.field(column.name, column.type) for column in reader.schema])
        for column in schema:
            kind = column.type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if column.name not in Body.model_fields or column.name == "counts":
                raise InputError(f"{column.name}: unknown column")
            if not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise InputError(f"{column.name}: of type {kind}, expected numbers or text")
        batches, end = [], source.tell()
        for batch in reader:
            batch.validate(full=True)  # offsets that point elsewhere would crash the process
            batches.append(pa.record_batch(batch.columns, schema=schema))
            end = source.tell()
        if body[end:] not in _ENDS:
            raise InputError("body: no end-of-stream mark at its end; was it cut off?")
        return pl.DataFrame(pa.Table.from_batches(batches, schema))
    except (pa.ArrowException, OSError, UnicodeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"body: not an Arrow IPC stream: {error}") from None


def write_stream(columns: Mapping[str, Any], digest: str, warnings: Sequence[str] = ()) -> bytes:
    """Write columns as a stream whose schema has the model's digest, and warnings as JSON."""
    more = {"warnings": json.dumps(warnings)} if warnings else {}
    table = pa.table(dict(columns)).replace_schema_metadata({"model": digest, **more})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    return out.getvalue()
