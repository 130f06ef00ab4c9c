"""Bodies of requests and answers: JSON checked by pydantic, and Arrow streams."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.validation import same_length
from btdagg.votes import Provenance, read_table
from btdagg.votes.items import Items
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.standings import columns_needed
from btdagg.votes.strength import PROBABILITIES
from btdagg.votes.votes import Votes, read_votes

ARROW = "application/vnd.apache.arrow.stream"

_OF_VOTES = ("sample", "order", "judge")
_TEXTS = ("system", "response")
_STRENGTHS = ("margin", "strength", *PROBABILITIES)

_END = b"\xff\xff\xff\xff\0\0\0\0"  # the mark at the end of a stream

_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[float, Field(ge=0, lt=2**63)]


class Known(NamedTuple):
    """Covariates of items in bodies, for a model that has them, by name."""

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any) -> Known:
        """Return the covariates of a model, and the columns that make them."""
        names = columns_needed(model)
        texts = [n for n in names if n.removesuffix("_a").removesuffix("_b") in _TEXTS]
        return cls(tuple(n for n in names if n not in texts), tuple(texts))


NOTHING = Known()


@cache
def body_of(scale: Scale, known: Known = NOTHING) -> type[BaseModel]:
    """Return the body of votes on a scale: counts, votes of each item, or a vote in each row."""
    names = tuple(scale.columns)
    row: Any = Annotated[list[_Count], Field(min_length=len(names), max_length=len(names))]

    def optional(kind: Any, description: str | None = None) -> Any:
        return kind | None, Field(None, description=description)

    fields: Any = {
        "counts": optional(list[row], f"Counts of each item: {', '.join(names)}."),
        "item": optional(list[str | _Integer], "All texts, or all integers."),
        "sample": optional(list[_Integer]),
        "order": optional(list[str], "AB or BA."),
        "judge": optional(list[str]),
        **dict.fromkeys(names, optional(list[_Count])),
    }
    if scale.mirrored:
        missing = "-1, 0, 1, or B, tie, A; null is a missing vote, not a tie."
        fields["vote"] = optional(list[str | _Integer | None], missing)
        strong = "Strength of the votes, in the columns that the model was fitted to."
        fields |= dict.fromkeys(_STRENGTHS, optional(list[float | None], strong))
    else:
        fields["scores"] = optional(list[list[float | None]], "Scores of each item.")
        fields["score"] = optional(list[str | float | None], "Null is a missing score.")
    covariates = (
        "Covariates of each item, or the columns they are made of; no value may be missing."
    )
    fields |= dict.fromkeys(known.numbers, optional(list[FiniteFloat], covariates))
    fields |= dict.fromkeys(known.texts, optional(list[str], covariates))
    config = ConfigDict(extra="forbid", strict=True)
    name = "Body" if scale.mirrored else "BodyOfGrades"
    return create_model(name, __config__=config, **fields)


def _forms(scale: Scale, known: Known) -> dict[str, tuple[str, ...]]:
    names, facts = tuple(scale.columns), ("item", *known.numbers, *known.texts)
    forms = {"counts": ("counts", *facts), names[0]: (*names, *facts)}
    if not scale.mirrored:
        forms["scores"] = ("scores", *facts)
    if known.numbers:  # which a row of a single vote does not have
        return forms
    vote = scale.mode.column
    return forms | {vote: ("item", vote, *_OF_VOTES, *(_STRENGTHS if scale.mirrored else ()))}


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(
        None, description="Ids of the items, if the request had any."
    )
    counts: list[list[int | float]] | None = Field(None, description="If the request had votes.")
    n_missing: int | None = Field(None, description="Number of missing votes.")
    labels: list[Literal[-1, 0, 1]] | list[float] = Field(
        description="-1 (B is better), 0 (tie), 1 (A is better); or grades."
    )
    probabilities: list[list[float]] | None = Field(
        None, description="Probabilities of -1, 0, 1, or of the grades."
    )
    warnings: list[str] | None = Field(
        None, description="Differences between these items and those that the model was fitted to."
    )


class RequestItems(NamedTuple):
    """Counts of items, their ids, and the votes if they came one by one."""

    counts: Any
    ids: list[Any] | None = None
    votes: Votes | None = None
    facts: Mapping[str, Any] = MappingProxyType({})  # covariates and systems, by name


def read_json(
    body: bytes,
    origin: Provenance | None = None,
    scale: Scale = PAIRS,
    known: Known = NOTHING,
) -> RequestItems:
    """Read a JSON body; votes are as strong as those that a model was fitted to."""
    read = body_of(scale, known).model_validate_json(body or b"null")
    return _items(read.model_dump(exclude_none=True), origin, scale, known)


def read_arrow(
    body: bytes,
    origin: Provenance | None = None,
    scale: Scale = PAIRS,
    known: Known = NOTHING,
) -> RequestItems:
    """Read an Arrow stream with the columns of `body_of`; see `read_json`."""
    columns = {column.name: column for column in read_stream(body, scale, known)}
    return _items(columns, origin, scale, known)


def _items(
    columns: dict[str, Any], origin: Provenance | None, scale: Scale, known: Known
) -> RequestItems:
    forms = _forms(scale, known)
    sides = tuple(scale.columns)
    got = columns.keys() & forms.keys()
    if len(got) != 1:
        texts = {"counts": "counts", sides[0]: f"{', '.join(sides[:-1])} and {sides[-1]}"}
        texts |= {"vote": "item and vote", "score": "item and score", "scores": "scores"}
        raise InputError(f"body: expected {', or '.join(texts[form] for form in forms)}")
    (form,) = got
    for name in columns:
        if name not in forms[form]:
            raise InputError(
                f"{name}: not allowed with {form}, expected only {', '.join(forms[form])}"
            )
    forbid(
        not _are_ids(columns.get("item", [])),
        "item: expected all texts or all whole numbers, none missing",
    )
    counts: np.ndarray[Any, Any]
    if form in ("vote", "score"):
        try:
            table = read_table(columns, [])
            how = (origin or Provenance()).how_to_read(table)
            votes = read_votes(table, scale=scale, **how)
            full_margins = () if votes.strength is None else votes.strength.full_margins
            fitted = () if origin is None else origin.full_margins
            if not {full.margin for full in full_margins} <= {full.margin for full in fitted}:
                expected = "strength: the model has no full margin for these votes"
                raise InputError(argument="margin", got="a column", expected=expected)
            ids, counts = votes.counts()
        except InputError as error:
            raise InputError(str(error).replace("data frame", "body", 1)) from None
        return RequestItems(counts, ids.tolist(), votes)
    if form == "counts":
        counts = np.array(columns["counts"], dtype=np.float64).reshape(-1, len(sides))
    elif form == "scores":
        counts = np.zeros((len(columns["scores"]), len(sides)))
        for row, scores in enumerate(columns["scores"]):
            places = scale.places(scores, f"scores[{row}]", partial=True)
            np.add.at(counts[row], places[places >= 0], 1)
    else:
        for name in sides:
            forbid(name not in columns, f"{name}: expected a column of counts")
            same_length(name, len(columns[name]), sides[0], len(columns[sides[0]]))
        counts = np.column_stack([np.asarray(columns[name]) for name in sides])
    if not len(counts):
        counts = counts.astype(np.int64)  # an empty list has no type
    names = list(columns["item"]) if "item" in columns else None
    if names is not None:
        same_length("item", len(names), "counts", len(counts))
    return RequestItems(
        Items(counts=counts, scale=scale).counts, names, None, _facts(columns, known, len(counts))
    )


def _facts(columns: Mapping[str, Any], known: Known, n_items: int) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name in (*known.numbers, *known.texts):
        if name not in columns:
            continue
        same_length(name, len(columns[name]), "counts", n_items)
        with reworded(ValueError, f"{name}: expected numbers"):
            values = np.array(columns[name], dtype=str if name in known.texts else np.float64)
        if name in known.numbers and (bad := np.flatnonzero(~np.isfinite(values))).size:
            raise InputError(f"{name}[{bad[0]}]: expected a number")
        facts[name] = values
    return facts


def _are_ids(column: list[Any] | pl.Series) -> bool:
    if isinstance(column, pl.Series):
        is_text = column.dtype == pl.String
        return (is_text or column.dtype.is_integer()) and not column.null_count()
    return len(set(map(type, column))) <= 1


def read_stream(body: bytes, scale: Scale = PAIRS, known: Known = NOTHING) -> pl.DataFrame:
    """Read an Arrow stream of numbers and texts whose end has arrived."""
    # Compressed batches and dictionaries, which could unfold into a large table, and streams
    # without the mark at the end, which may have been cut, are refused.
    try:
        source = pa.BufferReader(body)
        messages = pa.ipc.MessageReader.open_stream(source)
        first = messages.read_next_message()
        # Reading one from another message would crash the process.
        forbid(first.type != "schema", f"body: begins with a {first.type}, expected a schema")
        got = pa.ipc.read_schema(first)
        # Metadata is left out: polars panics if it is not UTF-8.
        schema = pa.schema([pa.field(column.name, column.type) for column in got])
        for column in schema:
            kind = column.type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            forbid(
                column.name not in body_of(scale, known).model_fields or column.name == "counts",
                f"{column.name}: unknown column",
            )
            forbid(
                not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)),
                f"{column.name}: of type {kind}, expected numbers or text",
            )
        batches, end = [], source.tell()
        for message in messages:
            forbid(
                message.type != "record batch",
                f"body: a {message.type}, expected only record batches",
            )
            forbid(
                _is_compressed(message.metadata.to_pybytes()),
                "body: the batches are compressed; write the Arrow stream without compression",
            )
            batch = pa.ipc.read_record_batch(message, got)
            batch.validate(full=True)  # offsets that point elsewhere would crash the process
            batches.append(pa.record_batch(batch.columns, schema=schema))
            end = source.tell()
        forbid(body[end:] != _END, "body: no end-of-stream mark; was it cut off?")
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
