"""Bodies of requests and answers: JSON checked by pydantic, and Arrow streams."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.validation import same_length
from btdagg.questions.decisions import covariates_in
from btdagg.votes import read_table
from btdagg.votes.items import Items
from btdagg.votes.standings import columns_needed
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel

ARROW = "application/vnd.apache.arrow.stream"

_OF_VOTES = ("sample", "order", "judge")
_TEXTS = ("system", "response")

_END = b"\xff\xff\xff\xff\0\0\0\0"  # the mark at the end of a stream

_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[float, Field(ge=0, lt=2**63)]


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(
        None, description="Ids of the items, if the request had any."
    )
    counts: list[list[int]] | None = Field(None, description="If the request had votes.")
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
    """Counts of items, their ids and covariates, and the votes if they came one by one."""

    counts: Any
    ids: list[Any] | pa.Array | None
    votes: Votes | None
    covariates: Mapping[str, Any] | None


class Requests:
    """Reads the bodies that a model decides: counts of each item, or a vote in each row."""

    def __init__(self, model: DavidsonModel | GradeModel) -> None:
        self.model, self.scale = model, model.scale
        self._sides = tuple(model.scale.columns)
        facts = columns_needed(model)
        self._texts = [n for n in facts if n.removesuffix("_a").removesuffix("_b") in _TEXTS]
        self._numbers = [name for name in facts if name not in self._texts]
        self._forms = {"counts": ("counts", "item", *facts)}
        self._forms[self._sides[0]] = (*self._sides, "item", *facts)
        self._vote = model.scale.mode.column
        # A row of a single vote has neither.
        strength = "" if model.provenance is None else model.provenance.strength
        self._counts_only = "covariates" if facts else ""
        if strength not in ("", "none"):
            self._counts_only = "vote strength"
        if not self._counts_only:
            self._forms[self._vote] = ("item", self._vote, *_OF_VOTES)
        self.body = self._body()

    def _body(self) -> type[BaseModel]:
        sides = self._sides
        row: Any = Annotated[list[_Count], Field(min_length=len(sides), max_length=len(sides))]
        vote: Any = (str | float | None, "Null is a missing score.")
        if self.scale.mirrored:
            vote = (
                str | _Integer | None,
                "-1, 0, 1, or B, tie, A; null is a missing vote, not a tie.",
            )
        kinds: dict[str, Any] = {
            "counts": (row, f"Counts of each item: {', '.join(sides)}."),
            "item": (str | _Integer, "All texts, or all integers."),
            "sample": (_Integer, None),
            "order": (str, "AB or BA."),
            "judge": (str, None),
            **dict.fromkeys(sides, (_Count, None)),
            self._vote: vote,
            **dict.fromkeys(self._numbers, (FiniteFloat, "A covariate, or what it is made of.")),
            **dict.fromkeys(self._texts, (str, "What a covariate is made of.")),
        }
        fields: Any = {}
        for name, described in kinds.items():
            kind: Any = described[0]
            fields[name] = list[kind] | None, Field(None, description=described[1])
        return create_model("Body", __config__=ConfigDict(extra="forbid", strict=True), **fields)

    def read_json(self, body: bytes) -> RequestItems:
        """Read a JSON body."""
        read = self.body.model_validate_json(body or b"null")
        return self._items(read.model_dump(exclude_none=True))

    def read_arrow(self, body: bytes) -> RequestItems:
        """Read an Arrow stream, which has columns as JSON has lists, but for `counts`."""
        frame = read_stream(body, self.body.model_fields.keys() - {"counts"})
        return self._items({column.name: column for column in frame})

    def _items(self, columns: dict[str, Any]) -> RequestItems:
        sides, forms = self._sides, self._forms
        forbid(
            self._counts_only != "" and self._vote in columns,
            f"{self._vote}: the model has {self._counts_only}, expected counts of each item",
        )
        got = columns.keys() & forms.keys()
        if len(got) != 1:
            texts = {"counts": "counts", self._vote: f"item and {self._vote}"}
            texts[sides[0]] = f"{', '.join(sides[:-1])} and {sides[-1]}"
            raise InputError(f"body: expected {', or '.join(texts[form] for form in forms)}")
        (form,) = got
        for name in columns:
            if name not in forms[form]:
                raise InputError(
                    f"{name}: not allowed with {form}, expected only {', '.join(forms[form])}"
                )
        ids = columns.get("item")
        forbid(
            ids is not None and not _are_ids(ids),
            "item: expected all texts or all whole numbers, none missing",
        )
        if form == self._vote:
            return self._of_votes(columns)
        counts: np.ndarray[Any, Any]
        if form == "counts":
            counts = np.array(columns["counts"], dtype=np.float64).reshape(-1, len(sides))
        else:
            for name in sides:
                forbid(name not in columns, f"{name}: expected a column of counts")
                same_length(name, len(columns[name]), sides[0], len(columns[sides[0]]))
            counts = np.column_stack([np.asarray(columns[name]) for name in sides])
        if not len(counts):
            counts = counts.astype(np.int64)  # an empty list has no type
        if ids is not None:
            same_length("item", len(ids), "counts", len(counts))
        counts = Items(counts=counts, scale=self.scale).by_judge
        covariates = covariates_in(self._facts(columns, len(counts)), self.model, counts, "body")
        ids = ids.to_arrow() if isinstance(ids, pl.Series) else ids
        return RequestItems(counts, ids, None, covariates)

    def _of_votes(self, columns: dict[str, Any]) -> RequestItems:
        try:
            votes = read_votes(read_table(columns, []), scale=self.scale)
            ids, counts = votes.counts()
        except InputError as error:
            raise InputError(str(error).replace("data frame", "body", 1)) from None
        return RequestItems(counts, ids.tolist(), votes, None)

    def _facts(self, columns: Mapping[str, Any], n_items: int) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for name in (*self._numbers, *self._texts):
            if name not in columns:
                continue
            same_length(name, len(columns[name]), "counts", n_items)
            with reworded(ValueError, f"{name}: expected numbers"):
                kind: Any = str if name in self._texts else np.float64
                values = np.array(columns[name], dtype=kind)
            if name in self._numbers and (bad := np.flatnonzero(~np.isfinite(values))).size:
                raise InputError(f"{name}[{bad[0]}]: expected a number")
            facts[name] = values
        return facts


def _are_ids(column: list[Any] | pl.Series) -> bool:
    if isinstance(column, pl.Series):
        is_text = column.dtype == pl.String
        return (is_text or column.dtype.is_integer()) and not column.null_count()
    return len(set(map(type, column))) <= 1


def read_stream(body: bytes, names: Set[str]) -> pl.DataFrame:
    """Read an Arrow stream of numbers and texts, in columns of these names, without compression."""
    try:
        reader = pa.ipc.open_stream(body)
        for column in reader.schema:
            kind = column.type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            forbid(column.name not in names, f"{column.name}: unknown column")
            forbid(
                not (is_text or pa.types.is_integer(kind) or pa.types.is_floating(kind)),
                f"{column.name}: of type {kind}, expected numbers or text",
            )
        source, end = pa.BufferReader(body), 0
        for message in pa.ipc.MessageReader.open_stream(source):
            end = source.tell()
            forbid(
                message.type == "record batch" and _is_compressed(message),
                "body: the batches are compressed; write the Arrow stream without compression",
            )
        forbid(body[end:] != _END, "body: no end-of-stream mark; was it cut off?")
        table = reader.read_all()
        table.validate(full=True)  # offsets that point elsewhere would crash the process
        # Without its metadata: polars panics if it is not UTF-8.
        return pl.DataFrame(pa.Table.from_arrays(table.columns, names=table.column_names))
    except (
        pa.ArrowException,
        struct.error,
        OSError,
        UnicodeError,
        pl.exceptions.PolarsError,
    ) as error:
        raise InputError(f"body: not an Arrow IPC stream: {error}") from None


def _is_compressed(message: pa.Message) -> bool:
    """Whether a record batch names a codec, with which a few bytes may unfold into gigabytes."""
    # pyarrow reads the header without saying, so it is looked up as FlatBuffers lays it out.
    metadata = message.metadata.to_pybytes()

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
