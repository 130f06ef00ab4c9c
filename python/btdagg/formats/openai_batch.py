"""Outputs of batches as OpenAI writes them, and everybody who has the same interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._util.errors import InputError, forbid
from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import CHOICE, JudgeText, votes_of_answers
from btdagg.judge.client import parts_of

# Ids that name item, order and sample in this order, as most do.
_USUAL = re.compile(r"(?P<item>.+?)[-_:|/. ](?P<order>AB|BA)(?:[-_:|/. ](?P<sample>[0-9]{1,15}))?")
_ITEMS = re.compile("(?P<item>.+)", re.DOTALL)
_OURS = re.compile(r"btdagg-[0-9a-f]{40}")
_USUAL_IDS = "item and order in all ids, or in none; for another form of ids set custom_id"
_FIELD = re.compile(r"\{(\w+)\}")
_FIELDS = {"order": "AB|BA", "sample": "[0-9]{1,15}", "item": ".+"}
_MODEL = "\0model"


def _recognizes(content: Content) -> bool:
    return {"custom_id", "response"} <= content.columns


def read_replies(
    content: Content,
    options: ImportOptions,
    reply_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda reply: reply,
) -> tuple[pl.DataFrame, str | None]:
    """Read the answers to requests; `reply_of` makes another provider's reply one of OpenAI."""
    pattern = _pattern(options.custom_id) if options.custom_id else None
    rows: list[tuple[Any, ...]] = []
    answers: list[JudgeText] = []
    for reply in map(reply_of, content.objects()):
        custom_id = str(reply["custom_id"])
        forbid(
            _OURS.fullmatch(custom_id),
            f"{content.name}, row {content.row}: a request of btdagg batch write; use btdagg "
            "batch collect to read its answers into the store",
        )
        if pattern is None:  # by the first
            pattern = _USUAL if not options.grades and _USUAL.fullmatch(custom_id) else _ITEMS
        is_other = not (options.custom_id or options.grades) and pattern is _ITEMS
        is_other = is_other and _USUAL.fullmatch(custom_id) is not None
        match = None if is_other else pattern.fullmatch(custom_id)
        content.expect(match, "custom_id", custom_id, options.custom_id or _USUAL_IDS)
        named = match.groupdict() if match else {}
        body = _body(reply)
        order = named.get("order") or options.constants.get("order", "AB")
        for choice, answer in enumerate(_answers(body, order)):
            answers.append(answer)
            rows.append((*named.values(), choice, str(body.get("model") or "") or None))
    names = pattern.groupindex if pattern is not None else {}
    schema = dict.fromkeys(names, pl.String) | {CHOICE: pl.Int64, _MODEL: pl.String}
    votes, remark = votes_of_answers(answers, options.answer)
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(votes)
    if "sample" in names:
        frame = frame.with_columns(pl.col("sample").cast(pl.Int64))
    else:
        frame = frame.drop(CHOICE)
    if options.grades:
        frame = frame.rename({"vote": "score"})
    elif "order" not in (*names, *options.constants):
        remark = remark or "custom_id does not contain the order: A is assumed to be shown first"
    if "judge" not in names:
        frame = frame.with_columns(judge=_MODEL)
    return frame.drop(_MODEL), remark


def _pattern(template: str) -> re.Pattern[str]:
    texts = [re.escape(part) for part in _FIELD.split(template)[::2]]
    names = _FIELD.findall(template)
    groups = [f"(?P<{name}>{_FIELDS.get(name, '.+?')})" for name in names]
    try:
        ids = "".join(a + b for a, b in zip(texts, [*groups, ""], strict=True))
        pattern = re.compile(ids, re.DOTALL)
    except re.error:
        pattern = None
    if pattern is None or "item" not in names:
        expected = "a group {item} in it, and no group twice"
        raise InputError(argument="custom_id", got=template, expected=expected)
    return pattern


def _body(reply: Mapping[str, Any]) -> dict[str, Any]:
    response = reply.get("response") or {}
    body = response.get("body")
    good = not reply.get("error") and response.get("status_code", 200) == 200
    return body if good and isinstance(body, dict) else {}


def _answers(body: Mapping[str, Any], order: str) -> Iterator[JudgeText]:
    if "choices" in body:
        for choice in body["choices"] or [{}]:
            message = choice.get("message") or {}
            text, _ = parts_of(message.get("content"))
            end, has_failed = choice.get("finish_reason"), bool(choice.get("error"))
            yield JudgeText(text, order, end, message.get("refusal"), has_failed)
    elif "output" in body:  # of the responses endpoint
        messages = [part for part in body["output"] if part.get("type") == "message"]
        parts = [part for message in messages for part in message.get("content") or ()]
        text = "".join(part.get("text") or "" for part in parts)
        refusal = next((part["refusal"] for part in parts if part.get("refusal")), None)
        end = (body.get("incomplete_details") or {}).get("reason") or body.get("status")
        yield JudgeText(text, order, end, refusal, bool(body.get("error")))
    else:
        yield JudgeText(None, order, failed=True)


FORMAT = Format(
    "openai-batch", _recognizes, read_replies, ("words", "custom_id", "answer_pattern", "grades")
)
