"""Request bodies to counts, and answers to bodies."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg.serve import arrow
from btdagg.serve.items import Items
from btdagg.tables import read_votes
from btdagg.tables.table import is_unicode
from btdagg.validation import as_counts, as_numbers, same_length

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from numpy.typing import NDArray

    from btdagg.serve.models import ServedModel

JSON = "application/json"
COUNTS = ("minus", "tie", "plus")
_LARGEST = 2**63 - 1
VOTES = ("item", "vote", "sample", "order", "judge")


def read_items(body: bytes, content_type: str, *, votes_only: bool = False) -> Items:
    """Read a body: columns `minus`, `tie`, `plus`, or `item` and `vote`; in JSON also `counts`.

    Raises
    ------
    InputError
        If it is none of these; the message names the field, and the row of a bad value.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == arrow.CONTENT_TYPE:
        frame = arrow.read_stream(body, (*COUNTS, *VOTES))
        columns: Mapping[str, Any] = {name: frame[name] for name in frame.columns}
        if "item" in columns:
            _check_ids(frame["item"])
    elif kind in (JSON, ""):
        columns = _json_columns(body)
    else:
        raise InputError(f"content type is {kind!r}, want {JSON!r} or {arrow.CONTENT_TYPE!r}")
    if "vote" in columns:
        return _of_votes(columns)
    if votes_only:
        raise InputError(f"no field 'vote'; found {_listed(columns)}, want item and vote")
    if "counts" in columns:
        _refuse_others(columns, ("counts", "item"))
        # No rows in JSON are an empty list, of no shape.
        counts = columns["counts"]
        if counts == []:
            counts = np.empty((0, 3), dtype=np.int64)
        return _named(as_counts(counts), columns)
    if any(name in columns for name in COUNTS):
        _refuse_others(columns, ("item", *COUNTS))
        for name in COUNTS:
            if name not in columns:
                raise InputError(f"no field {name!r}; found {_listed(columns)}")
        parts = [_numbers(columns[name], name) for name in COUNTS]
        for name, part in zip(COUNTS[1:], parts[1:], strict=True):
            same_length(name, len(part), COUNTS[0], len(parts[0]))
        return _named(np.column_stack(parts), columns)
    raise InputError(
        f"no field counts, minus or vote; found {_listed(columns)}, want counts, or minus, tie and "
        "plus, or item and vote"
    )


def _json_columns(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, object_pairs_hook=_unique)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError("body is not a JSON object, want an object of columns")
    for name, values in found.items():
        if not isinstance(values, list):
            raise InputError(f"{name} is {_shown(values)}, want a list")
    # To look for the words is faster than to look at every value; UTF-16 and UTF-32 have NULs.
    if any(word in body for word in (b"true", b"false", b"\0")):
        for name in ("counts", *COUNTS):
            _refuse_booleans(found.get(name, []), name)
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields, none of which may be there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"field {_shown(twice)} is there twice")
    return found


def _refuse_booleans(values: list[Any], name: str) -> None:
    """Refuse true and false, which NumPy takes for 1 and 0, in a list or a list of lists."""
    nested = [value for value in values if isinstance(value, list)]
    if bool not in set(map(type, chain(values, chain.from_iterable(nested)))):
        return
    for row, value in enumerate(values):
        cells = value if isinstance(value, list) else [value]
        for column, cell in enumerate(cells):
            if isinstance(cell, bool):
                place = f"{row}, {column}" if isinstance(value, list) else row
                raise InputError(f"{name}[{place}] is {cell!r}, want a non-negative integer")


def _of_votes(columns: Mapping[str, Any]) -> Items:
    _refuse_others(columns, VOTES)
    if "item" not in columns:
        raise InputError(f"no field 'item'; found {_listed(columns)}, want item and vote")
    lengths = {name: len(values) for name, values in columns.items()}
    for name, length in lengths.items():
        same_length(name, length, "item", lengths["item"])
    for name, values in columns.items():
        if isinstance(values, list):
            _check_scalars(values, name)
    try:
        votes = read_votes(dict(columns))
        ids, counts = votes.counts()
    except InputError as error:
        raise InputError(str(error).replace("data frame", "body", 1)) from None
    except (TypeError, OverflowError) as error:  # an integer of more than 64 bits
        raise InputError(f"body: {error}") from None
    return Items(counts, ids.tolist(), votes.n_missing, votes)


def _check_ids(ids: pl.Series) -> None:
    """Check that a column is of texts or integers, as a list of JSON is."""
    if not (ids.dtype.is_integer() or str(ids.dtype) == "String"):
        raise InputError(f"item is of type {ids.dtype}, want texts or integers")
    if ids.null_count():
        raise InputError(f"item[{ids.is_null().arg_max()}] is null, want a text or an integer")
    if str(ids.dtype) == "UInt64" and len(ids):  # ids are signed, or beyond that text
        array = ids.to_numpy()
        row = int(array.argmax())
        if array[row] > _LARGEST:
            raise InputError(f"item[{row}] is {array[row]}, want at most {_LARGEST}")


def _check_scalars(values: list[Any], name: str) -> None:
    """Check that a list is of one kind of scalar, as columns are."""
    kinds = {type(value) for value in values}
    if str in kinds:
        _check_texts(values, name)
    if name == "item" and kinds == {int}:
        for row, value in enumerate(values):
            if not -(2**63) <= value < 2**63:
                raise InputError(f"item[{row}] is {_shown(value)}, want an integer of 64 bits")
    if name == "item" and (kinds <= {int} or kinds <= {str}):
        return
    wanted = (int, str) if name == "item" else (int, str, float, type(None))
    for row, value in enumerate(values):
        if type(value) not in wanted:
            want = "a text or an integer" if name == "item" else "a number, a text or null"
            raise InputError(f"{name}[{row}] is {_shown(value)}, want {want}")
    if name == "item":
        row = next(i for i, value in enumerate(values) if type(value) is not type(values[0]))
        raise InputError(f"item[{row}] is {_shown(values[row])}, want all texts or all integers")


def _check_texts(values: list[Any], name: str) -> None:
    """Check that no text has a lone surrogate, which JSON can write and nothing else can."""
    if is_unicode("\n".join(value for value in values if type(value) is str)):
        return
    for row, value in enumerate(values):
        if type(value) is str and not is_unicode(value):
            raise InputError(
                f"{name}[{row}] is {_shown(value)}, want text without a lone surrogate"
            )


def _numbers(values: Any, name: str) -> NDArray[Any]:
    if not isinstance(values, list) and values.null_count():
        row = values.is_null().arg_max()
        raise InputError(f"{name}[{row}] is null, want a non-negative integer")
    array = as_numbers(values if isinstance(values, list) else values.to_numpy(), name)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, want one dimension")
    if array.dtype == np.uint64:  # with signed columns it would become floats
        if array.size and array.max() > _LARGEST:
            row = int(array.argmax())
            raise InputError(f"{name}[{row}] is {array[row]}, want at most {_LARGEST}")
        array = array.astype(np.int64)
    return array.astype(np.int64) if array.size == 0 else array


def _named(counts: NDArray[Any], columns: Mapping[str, Any]) -> Items:
    ids = columns.get("item")
    if ids is None:
        return Items(counts)
    same_length("item", len(ids), "counts", len(counts))
    if isinstance(ids, list):
        _check_scalars(ids, "item")
    return Items(counts, ids if isinstance(ids, list) else ids.to_list())


def _refuse_others(columns: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in columns:
        if name not in known:
            raise InputError(f"unknown field {_shown(name)}, want {', '.join(known)}")


def _listed(columns: Mapping[str, Any]) -> str:
    return ", ".join(_shown(name) for name in list(columns)[:10]) or "none"


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def write_answer(
    items: Items,
    served: ServedModel,
    media: str,
    *,
    labels: bool = True,
    probabilities: bool = False,
) -> bytes:
    """Decide items and write the answer as JSON or as an Arrow stream.

    It says where the items are not what the model was fitted to.

    Raises
    ------
    InputError
        If a count is not a non-negative integer; the message names its row.
    """
    decided = served.model.decide(items.counts) if labels else None
    p = served.model.predict_proba(items.counts) if probabilities else None
    warnings = served.provenance_check.differences(items) if labels or probabilities else ()
    of_votes = items.n_missing is not None
    if media == arrow.CONTENT_TYPE:
        columns: dict[str, Any] = {} if items.ids is None else {"item": items.ids}
        if of_votes:
            columns |= dict(zip(COUNTS, items.counts.T, strict=True))
        if decided is not None:
            columns["label"] = decided
        if p is not None:
            columns |= dict(zip(("p_minus", "p_tie", "p_plus"), p.T, strict=True))
        return arrow.write_stream(columns, served.digest, warnings)
    answer: dict[str, Any] = {"model": served.digest}
    if items.ids is not None:
        answer["items"] = items.ids
    if of_votes:
        answer |= {"counts": items.counts.tolist(), "n_missing": items.n_missing}
    if decided is not None:
        answer["labels"] = decided.tolist()
    if p is not None:
        answer["probabilities"] = p.tolist()
    if warnings:
        answer["warnings"] = warnings
    return json.dumps(answer).encode()
