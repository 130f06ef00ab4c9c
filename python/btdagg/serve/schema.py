"""What the OpenAPI page says of bodies and answers."""

from __future__ import annotations

from typing import Any

from btdagg.serve import arrow, bodies

_ITEM: dict[str, Any] = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_LABEL: dict[str, Any] = {"type": "integer", "enum": [-1, 0, 1]}
_VOTE: dict[str, Any] = {"enum": [-1, 0, 1, "A", "tie", "B", None]}


def _lists(**columns: dict[str, Any]) -> dict[str, Any]:
    return {name: {"type": "array", "items": kind} for name, kind in columns.items()}


def _row(kind: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": kind, "minItems": 3, "maxItems": 3}


_COUNTS = {"required": ["counts"], "properties": _lists(counts=_row(_COUNT), item=_ITEM)}
_COLUMNS = {
    "required": list(bodies.COUNTS),
    "properties": _lists(minus=_COUNT, tie=_COUNT, plus=_COUNT, item=_ITEM),
}
_VOTES = {
    "required": ["item", "vote"],
    "properties": _lists(
        item=_ITEM,
        vote=_VOTE,
        sample={"type": "integer"},
        order={"enum": ["AB", "BA"]},
        judge={"type": "string"},
    ),
}
_ANSWER = {
    "type": "object",
    "required": ["model"],
    "properties": {
        "model": {"type": "string", "description": "Digest of the model that decided."},
        "n_missing": {"type": "integer", "description": "Votes that are missing."},
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Where the items are not what the model was fitted to, if they are not.",
        },
        **_lists(
            labels=_LABEL, items=_ITEM, counts=_row(_COUNT), probabilities=_row({"type": "number"})
        ),
    },
}
_ERROR = {"type": "object", "properties": {"detail": {"type": "string"}}}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_STATUSES = {
    "401": "No valid bearer token.",
    "408": "The body took too long.",
    "413": "The body is too large.",
    "422": "Bad input: the message names the field and the row.",
    "429": "Too many requests; Retry-After says when to come back.",
}


def operation(*, votes_only: bool) -> dict[str, Any]:
    """Return the OpenAPI description of a route that takes items."""
    forms = [_VOTES] if votes_only else [_COUNTS, _COLUMNS, _VOTES]
    body = {"oneOf": [{"type": "object", "additionalProperties": False, **form} for form in forms]}
    errors = {
        status: {"description": text, "content": {bodies.JSON: {"schema": _ERROR}}}
        for status, text in _STATUSES.items()
    }
    return {
        "requestBody": {
            "required": True,
            "content": {bodies.JSON: {"schema": body}, arrow.CONTENT_TYPE: _BINARY},
        },
        "responses": {
            "200": {
                "description": "Labels -1 (B is better), 0 (tie), 1 (A is better), item by item.",
                "content": {bodies.JSON: {"schema": _ANSWER}, arrow.CONTENT_TYPE: _BINARY},
            },
            **errors,
        },
    }
