"""What requests and answers hold: JSON checked and described by pydantic, Arrow by its columns."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, RootModel, Tag, TypeAdapter
from pydantic_core import core_schema

from btdagg._core import InputError
from btdagg._util.validation import as_counts, as_numbers, same_length
from btdagg.serve.arrow import read_stream
from btdagg.votes import Votes, read_votes

COUNTS = ("minus", "tie", "plus")
_OF_VOTES = ("item", "vote", "sample", "order", "judge")

_Integer = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
_Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
_Three = Field(min_length=3, max_length=3)  # in label order
_Text = Annotated[str, Field(strict=True)]


class _Says:
    """One message for a value of several kinds, in place of one for each kind."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="value", custom_error_message=self.message
        )


_Items = Annotated[list[_Text] | list[_Integer], _Says("Expected all texts or all integers")]
_Vote = Annotated[
    # No literal: true would be taken for 1.
    Annotated[int, Field(strict=True, ge=-1, le=1)] | Literal["B", "tie", "A"] | None,
    _Says("Expected -1, 0, 1, B, tie, A or null"),
]


class CountsByItem(BaseModel):
    """Votes of each item in label order."""

    model_config = ConfigDict(extra="forbid", title="Counts")

    counts: list[Annotated[list[_Count], _Three]]
    item: _Items | None = None


class CountColumns(BaseModel):
    """Votes of each item, a column for each label."""

    model_config = ConfigDict(extra="forbid")

    minus: list[_Count]
    tie: list[_Count]
    plus: list[_Count]
    item: _Items | None = None


class VoteColumns(BaseModel):
    """One vote a row: -1, 0, 1, or B, tie, A; null is a missing vote and no tie."""

    model_config = ConfigDict(extra="forbid", title="Votes")

    item: _Items
    vote: list[_Vote] = Field(min_length=1)
    sample: list[_Integer] | None = None
    order: list[Literal["AB", "BA"]] | None = None
    judge: list[_Text] | None = None


def _form(body: Any) -> str | None:
    """The field by which the forms of a body are told apart."""
    known = body if isinstance(body, dict) else ()
    return next((name for name in ("counts", "minus", "vote") if name in known), None)


class Body(
    RootModel[
        Annotated[
            Annotated[CountsByItem, Tag("counts")]
            | Annotated[CountColumns, Tag("minus")]
            | Annotated[VoteColumns, Tag("vote")],
            Discriminator(
                _form,
                custom_error_type="no_votes",
                custom_error_message="Expected counts, or minus, tie and plus, or item and vote",
            ),
        ]
    ]
):
    """Counts or votes of items."""


class DecidedItems(BaseModel):
    """Decisions, item by item."""

    model: str = Field(description="Digest of the model that decided.")
    items: list[str] | list[int] | None = Field(None, description="Their ids, if there were any.")
    counts: list[Annotated[list[int], _Three]] | None = Field(None, description="Where votes came.")
    n_missing: int | None = Field(None, description="Votes that are missing.")
    labels: list[Literal[-1, 0, 1]] | None = Field(
        None, description="-1 (B is better), 0 (tie), 1 (A is better)."
    )
    probabilities: list[Annotated[list[float], _Three]] | None = Field(
        None, description="Of -1, 0, 1."
    )
    warnings: list[str] | None = Field(
        None, description="Where the items are not what the model was fitted to."
    )


class Items(NamedTuple):
    """Counts of items (n, 3), their ids, and what else is known where votes came."""

    counts: Any
    ids: list[Any] | None = None
    votes: Votes | None = None


_json = TypeAdapter(Body), TypeAdapter(VoteColumns)


def of_json(body: bytes, votes_only: bool) -> Items:
    """Read a JSON body.

    Raises
    ------
    pydantic.ValidationError
        If it is none of the forms.
    InputError
        If columns differ in length or votes disagree.
    """
    found = _json[votes_only].validate_json(body or b"null")
    form = found.root if isinstance(found, Body) else found
    if isinstance(form, CountsByItem):
        counts = np.array(form.counts, dtype=np.int64).reshape(-1, 3)
        return _of_counts(counts, form.item)
    columns = {name: values for name, values in form if values is not None}
    if isinstance(form, VoteColumns):
        return _of_votes(columns)
    return _of_columns(columns, form.item)


def of_arrow(body: bytes, votes_only: bool) -> Items:
    """Read an Arrow stream with the columns `minus`, `tie`, `plus`, or `item`, `vote`.

    Raises
    ------
    InputError
        If it is no such stream, or a value is bad; the message names the row.
    """
    frame = read_stream(body, _OF_VOTES if votes_only else (*COUNTS, *_OF_VOTES))
    ids = None
    if "item" in frame.columns:
        ids = frame["item"]
        if not (ids.dtype.is_integer() or str(ids.dtype) == "String"):
            raise InputError(f"item is of type {ids.dtype}; expected texts or integers")
        if ids.null_count():
            raise InputError(f"item[{ids.is_null().arg_max()}] is null")
        if str(ids.dtype) == "UInt64" and len(ids) and ids.to_numpy().max() >= 2**63:
            raise InputError("item has an id of 2^63 or more")  # ids are signed
    columns = {name: frame[name] for name in frame.columns}
    if votes_only or "vote" in columns:
        return _of_votes(columns)
    for name in COUNTS:
        if name not in columns:
            raise InputError(f"no column {name!r}; expected minus, tie and plus, or item and vote")
        if columns[name].null_count():
            raise InputError(f"{name}[{columns[name].is_null().arg_max()}] is null")
    numbers = {name: as_numbers(columns[name].to_numpy(), name) for name in COUNTS}
    return _of_columns(numbers, None if ids is None else ids.to_list())


def _of_columns(columns: dict[str, Any], ids: list[Any] | None) -> Items:
    for name in COUNTS[1:]:
        same_length(name, len(columns[name]), "minus", len(columns["minus"]))
    counts = [np.asarray(columns[name]) for name in COUNTS]
    if any(part.dtype == np.uint64 for part in counts):  # beside signed columns it becomes floats
        too_large = [name for name in COUNTS if np.max(columns[name], initial=0) >= 2**63]
        if too_large:
            raise InputError(f"{too_large[0]} has a count of 2^63 or more")
    if all(part.dtype.kind in "iu" for part in counts) or not len(counts[0]):
        counts = [part.astype(np.int64) for part in counts]
    return _of_counts(np.column_stack(counts), ids)


def _of_counts(counts: Any, ids: list[Any] | None) -> Items:
    if ids is not None:
        same_length("item", len(ids), "counts", len(counts))
    return Items(as_counts(counts), ids)


def _of_votes(columns: dict[str, Any]) -> Items:
    for name in ("item", "vote"):
        if name not in columns:
            raise InputError(f"no column {name!r}; expected item and vote")
    for name, values in columns.items():
        if name not in _OF_VOTES:
            raise InputError(f"column {name!r} beside votes; expected {', '.join(_OF_VOTES)}")
        same_length(name, len(values), "item", len(columns["item"]))
    try:
        votes = read_votes(columns)
        ids, counts = votes.counts()
    except InputError as error:
        raise InputError(str(error).replace("data frame", "body", 1)) from None
    return Items(counts, ids.tolist(), votes)
