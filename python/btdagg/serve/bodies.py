"""Bodies of requests and answers of a model: JSON checked by pydantic, and Arrow streams."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, create_model
from pydantic_core import to_json

from btdagg._util.errors import InputError, forbid, reworded
from btdagg._util.files import digest_of
from btdagg._util.validation import require_rows, same_length
from btdagg.questions.decisions import covariates_in, decided_columns, unknown_in
from btdagg.votes import read_table
from btdagg.votes.items import Items
from btdagg.votes.standings import columns_needed
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"

_TEXTS = ("system", "response")
_END = b"\xff\xff\xff\xff\0\0\0\0"  # the mark at the end of a stream

_Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Count = Annotated[float, Field(ge=0, lt=2**63)]


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(None, description="Ids, if the request had any.")
    counts: list[list[int]] | None = Field(None, description="If the request had votes.")
    n_missing: int | None = Field(None, description="Number of missing votes.")
    labels: list[Literal[-1, 0, 1]] | list[float] = Field(
        description="-1 (B is better), 0 (tie), 1 (A is better); or grades."
    )
    probabilities: list[list[float]] | None = Field(None, description="Of -1, 0, 1, or of grades.")
    warnings: list[str] | None = Field(
        None, description="Differences between these items and those that the model was fitted to."
    )


class RequestItems(NamedTuple):
    """Counts of items, their ids and covariates, and the votes if they came one by one."""

    counts: Any
    ids: list[Any] | pl.Series | None
    votes: Votes | None
    covariates: Mapping[str, Any] | None


class ServedModel:
    """A model, and the columns that it decides: counts of each item, or a vote in each row.

    Attributes
    ----------
    body : type
        What a JSON body has to be; an Arrow stream has the same columns, but for `counts`.
    """

    def __init__(self, model: DavidsonModel | GradeModel) -> None:
        self.model, self.digest = model, digest_of(model)
        self.decider = replace(model, provenance=None)  # of which it would warn
        strength = "none" if model.provenance is None else model.provenance.strength
        facts = columns_needed(model)
        self._counts_only = "covariates" if facts else ""
        if strength not in ("", "none"):
            self._counts_only = "vote strength"
        sides, self._vote = tuple(model.scale.columns), model.scale.mode.column
        row: Any = Annotated[list[_Count], Field(min_length=len(sides), max_length=len(sides))]
        vote: Any = (list[str | float | None], "Null is a missing score.")
        if model.scale.mirrored:
            meaning = "-1, 0, 1, or B, tie, A; null is a missing vote, not a tie."
            vote = (list[str | _Integer | None], meaning)
        number, text = (list[FiniteFloat], "Of a covariate."), (list[str], "Of a covariate.")
        self._facts = {
            name: text if name.removesuffix("_a").removesuffix("_b") in _TEXTS else number
            for name in facts
        }
        columns: dict[str, tuple[Any, str | None]] = {
            "counts": (list[row], f"Counts of each item: {', '.join(sides)}."),
            **dict.fromkeys(sides, (list[_Count], None)),
            "item": (list[str] | list[_Integer], "All texts, or all integers."),
            self._vote: vote,
            "sample": (list[_Integer], None),
            "order": (list[str], "AB or BA."),
            "judge": (list[str], None),
            **self._facts,
        }
        # Columns that a body needs, and those that it may have beside them.
        self._forms: dict[tuple[str, ...], tuple[str, ...]] = {
            ("counts",): ("item", *facts),
            sides: ("item", *facts),
        }
        if not self._counts_only:  # a row of a single vote has neither
            self._forms["item", self._vote] = ("sample", "order", "judge")
        fields: Any = {
            name: (kind | None, Field(None, description=description))
            for name, (kind, description) in columns.items()
        }
        strict = ConfigDict(extra="forbid", strict=True)
        self.body: type[BaseModel] = create_model("Body", __config__=strict, **fields)

    def read(self, body: bytes, media: str) -> RequestItems:
        """Read a body of a media type, `JSON` or `ARROW`."""
        columns: dict[str, Any]
        if media == ARROW:
            frame = read_stream(body, self.body.model_fields.keys() - {"counts"})
            columns = {column.name: column for column in frame}
            ids = columns.get("item", pl.Series([""]))
            is_id = ids.dtype == pl.String or ids.dtype.is_integer()
            message = "item: expected all texts or all whole numbers, none missing"
            forbid(not is_id or ids.null_count(), message)
        else:
            fields = self.body.model_validate_json(body or b"null")
            columns = {name: values for name, values in fields if values is not None}
        form, scale = self._form_of(columns), self.model.scale
        if form[-1] == self._vote:
            votes = read_votes(read_table(columns, [], name="body"), scale=scale)
            ids, counts = votes.counts()
            return RequestItems(counts, ids.tolist(), votes, None)
        if form == ("counts",):
            counts = np.array(columns["counts"], dtype=np.float64).reshape(-1, len(scale.columns))
        else:
            counts = np.column_stack([np.asarray(columns[name]) for name in form])
        counts = Items(counts=counts, scale=scale).by_judge
        covariates = covariates_in(self._facts_of(columns), self.model, counts, "body")
        return RequestItems(counts, columns.get("item"), None, covariates)

    def _form_of(self, columns: Mapping[str, Any]) -> tuple[str, ...]:
        message = f"{self._vote}: the model has {self._counts_only}, expected counts of each item"
        forbid(self._counts_only and self._vote in columns, message)
        forms = [form for form in self._forms if {*form} - {"item"} & columns.keys()]
        names = ", ".join(columns) or "no columns"
        expected = ", or ".join(" and ".join(form) for form in self._forms)
        forbid(len(forms) != 1, f"body: got {names}, expected either {expected}")
        (form,) = forms
        for name in form:
            forbid(name not in columns, f"{name}: missing, expected {' and '.join(form)}")
        allowed = (*form, *self._forms[form])
        for name, column in columns.items():
            message = f"{name}: not allowed with {form[-1]}, expected only {', '.join(allowed)}"
            forbid(name not in allowed, message)
            same_length(name, len(column), form[-1], len(columns[form[-1]]))
        return form

    def _facts_of(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for name in self._facts.keys() & columns.keys():
            kind: Any = str if self._facts[name][0] == list[str] else np.float64
            with reworded(ValueError, f"{name}: expected numbers"):
                facts[name] = np.array(columns[name], dtype=kind)
            if kind is not str:
                require_rows(np.isfinite(facts[name]), facts[name], name, "a number")
        return facts

    def answer(self, items: RequestItems, media: str, *, probabilities: bool) -> bytes:
        """Decide items, in a body of a media type."""
        counts, ids, votes, covariates = items
        scale, provenance = self.model.scale, self.model.provenance
        warnings = unknown_in(covariates)
        if provenance is not None and len(counts):
            warnings += provenance.differences(counts, votes, fewer=False, scale=scale)
        decided = decided_columns(
            self.decider, counts, probabilities=probabilities, covariates=covariates
        )
        if media == ARROW:
            columns: dict[str, Any] = {} if ids is None else {"item": pl.Series(ids).to_arrow()}
            if votes is not None:
                columns |= dict(zip(scale.columns, counts.T, strict=True))
            return write_stream(columns | decided, self.digest, warnings)
        labels, _ = decided.pop("label"), decided.pop("mean", None)
        values = {
            "model": self.digest,
            "items": None if ids is None else list(ids),
            "counts": None if votes is None else counts.tolist(),
            "n_missing": None if votes is None else votes.n_missing,
            "labels": labels.tolist(),
            "probabilities": np.column_stack([*decided.values()]).tolist() if decided else None,
            "warnings": warnings or None,
        }
        return to_json({name: value for name, value in values.items() if value is not None})


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
                message.type == "record batch" and _is_compressed(message.metadata.to_pybytes()),
                "body: the batches are compressed; write the Arrow stream without compression",
            )
        forbid(body[end:] != _END, "body: no end-of-stream mark; was it cut off?")
        table = reader.read_all()
        table.validate(full=True)  # offsets that point elsewhere would crash the process
        # Without its metadata: polars panics if it is not UTF-8.
        return pl.DataFrame(pa.Table.from_arrays(table.columns, names=table.column_names))
    except (pa.ArrowException, struct.error, OSError, UnicodeError, pl.exceptions.PolarsError) as e:
        raise InputError(f"body: not an Arrow IPC stream: {e}") from None


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch names a codec, with which a few bytes may unfold into gigabytes."""
    # pyarrow reads the header without saying, so it is looked up as FlatBuffers lays it out.

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
