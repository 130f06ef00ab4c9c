"""Outputs of batches as OpenAI writes them, and everybody who has the same interface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg._util.errors import shown
from btdagg.judge.client import parts_of
from btdagg.votes.formats.content import Content, values_of
from btdagg.votes.formats.frames import CHOICE
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.formats.texts import Said, heard

# Ids that name item, order and sample in this order, as most do.
_USUAL = re.compile(r"(?P<item>.+?)[-_:|/. ](?P<order>AB|BA)(?:[-_:|/. ](?P<sample>[0-9]+))?")
_ALL = re.compile("(?P<item>.+)", re.DOTALL)
_OURS = re.compile(r"btdagg-[0-9a-f]{40}")
_FIELD = re.compile(r"\{(\w+)\}")
_FIELDS = {"order": "AB|BA", "sample": "[0-9]+", "item": ".+"}
# Columns that come from elsewhere.
_TAKEN = ("vote", "status", "confidence", "format", "label", "n_votes")
_MODEL = "\0model"
_ENDS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_HOW = "--custom-id '{item}-{order}-{sample}' says how ids are made"


def is_openai_batch(content: Content) -> bool:
    """Whether requests have ids and responses."""
    return {"custom_id", "response"} <= content.columns


def read_openai_batch(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read a vote of each answer: chat completions, or responses."""
    pattern = _pattern(options.custom_id) if options.custom_id else None
    rows: list[tuple[Any, ...]] = []
    texts: list[Said] = []
    for number, each in content.objects():
        (custom_id,) = values_of(content, number, each, "custom_id")
        told = str(custom_id)
        if _OURS.fullmatch(told):
            raise InputError(
                f"{content.name}, row {number}: a request of btdagg batch write; btdagg batch "
                "collect reads its answers into the store"
            )
        if pattern is None:  # by the first
            pattern = _USUAL if _USUAL.fullmatch(told) else _ALL
        found = pattern.fullmatch(told)
        wanted = options.custom_id
        if found is None or (not wanted and pattern is _ALL and _USUAL.fullmatch(told)):
            wanted = wanted or f"all ids to name item and order, or none; {_HOW}"
            raise InputError(
                f"{content.name}, row {number}: custom_id is {shown(custom_id)}, expected {wanted}"
            )
        named = found.groupdict()
        if len(named.get("sample") or "") > 15:
            raise InputError(
                f"{content.name}, row {number}: custom_id is {shown(custom_id)}, expected a "
                "sample of "
                "at most 15 digits"
            )
        body = _body(each)
        order = named.get("order") or options.constants.get("order", "AB")
        for choice, said in enumerate(_answers(body, order)):
            texts.append(said)
            rows.append((*named.values(), choice, str(body.get("model") or "") or None))
    found_in = heard(texts, options.answer)
    names = pattern.groupindex if pattern is not None else {}
    schema = dict.fromkeys(names, pl.String) | {CHOICE: pl.Int64, _MODEL: pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        vote=pl.Series(found_in.votes, dtype=pl.Int8),
        status=pl.Series(found_in.statuses, dtype=pl.String),
        confidence=pl.Series(found_in.confidences, dtype=pl.Float64),
    )
    hint = found_in.hint
    if "sample" in names:
        frame = frame.with_columns(pl.col("sample").cast(pl.Int64))
    else:
        frame = frame.drop(CHOICE)
    if "order" not in (*names, *options.constants):
        hint = hint or "custom_id does not tell the order: A is taken to be shown first"
    if "judge" not in names:
        frame = frame.with_columns(judge=_MODEL)
    return frame.drop(_MODEL), hint


def _pattern(made: str) -> re.Pattern[str]:
    """Return the expression of ids that are made so."""
    names = _FIELD.findall(made)
    if "item" not in names or len(set(names)) < len(names):
        raise InputError(f"--custom-id is {made!r}, expected {{item}} in it, and no name twice")
    for name in names:
        if name in _TAKEN or not name.isidentifier():
            raise InputError(f"--custom-id is {made!r}, expected another name for {{{name}}}")
    parts = _FIELD.split(made)
    texts = [re.escape(part) for part in parts[::2]]
    groups = [f"(?P<{name}>{_FIELDS.get(name, '.+?')})" for name in parts[1::2]]
    return re.compile("".join(a + b for a, b in zip(texts, [*groups, ""], strict=True)), re.DOTALL)


def _body(each: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a response, empty where the request failed."""
    response = each.get("response") or {}
    body = response.get("body")
    good = not each.get("error") and response.get("status_code", 200) == 200
    return body if good and isinstance(body, dict) else {}


def _answers(body: Mapping[str, Any], order: str) -> Iterator[Said]:
    if "choices" in body:
        for choice in body["choices"] or [{}]:
            message = choice.get("message") or {}
            text, _ = parts_of(message.get("content"))
            yield Said(text, order, choice.get("finish_reason"), message.get("refusal"))
    elif "output" in body:  # of the responses endpoint
        parts = [
            part
            for one in body["output"]
            if one.get("type") == "message"
            for part in one.get("content") or ()
        ]
        text = "".join(part.get("text") or "" for part in parts)
        refusal = next((part["refusal"] for part in parts if part.get("refusal")), None)
        why = (body.get("incomplete_details") or {}).get("reason")
        yield Said(text, order, _ENDS.get(str(why)), refusal)
    else:
        yield Said(None, order, failed=True)
