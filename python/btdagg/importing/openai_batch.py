"""Outputs of batches as OpenAI writes them, and everybody who has the same interface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg.importing.content import Content, values_of
from btdagg.importing.options import ImportOptions
from btdagg.importing.texts import Said, heard
from btdagg.tables.table import shown

# Ids that name item, order and sample in this order, as most do.
_USUAL = re.compile(r"(?P<item>.+?)[-_:|/. ](?P<order>AB|BA)(?:[-_:|/. ](?P<sample>\d+))?")
_FIELD = re.compile(r"\{(\w+)\}")
_FIELDS = {"order": "AB|BA", "sample": r"\d+", "item": ".+"}
_ENDS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def is_openai_batch(content: Content) -> bool:
    """Whether requests have ids and responses."""
    return {"custom_id", "response"} <= content.columns


def read_openai_batch(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    """Read a vote of each answer: chat completions, or responses."""
    pattern = _pattern(options.custom_id) if options.custom_id else _usual(content)
    names = list(pattern.groupindex)
    rows: list[tuple[Any, ...]] = []
    texts: list[Said] = []
    for number, each in content.objects():
        (custom_id,) = values_of(content, number, each, "custom_id")
        found = pattern.fullmatch(str(custom_id))
        if found is None:
            raise InputError(
                f"{content.name}, row {number}: custom_id is {shown(custom_id)}, want "
                + (
                    options.custom_id
                    or "item, order and sample, as in q1-AB-0; --custom-id "
                    "'{item}-{order}-{sample}' says how ids are made"
                )
            )
        body = _body(each)
        order = found["order"] if "order" in names else "AB"
        for choice, said in enumerate(_answers(body, order)):
            texts.append(said)
            rows.append((*found.groups(), choice, body.get("model")))
    found_in = heard(texts, options.answer)
    schema = dict.fromkeys(names, pl.String) | {"choice": pl.Int64, "judge": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        vote=pl.Series(found_in.votes, dtype=pl.Int8),
        status=pl.Series(found_in.statuses, dtype=pl.String),
        confidence=pl.Series(found_in.confidences, dtype=pl.Float64),
    )
    hint = found_in.hint
    if "sample" in names:
        n_choices = pl.col("choice").max() + 1
        sample = pl.col("sample").cast(pl.Int64) * n_choices + pl.col("choice")
        frame = frame.with_columns(sample=sample)
    if "order" not in names:
        hint = hint or "custom_id does not tell the order: A is taken to be shown first"
    # A request that failed does not say which model would have answered.
    judges = frame["judge"].drop_nulls().unique()
    if len(judges) == 1:
        frame = frame.with_columns(judge=pl.lit(judges[0]))
    return frame.drop("choice"), hint


def _usual(content: Content) -> re.Pattern[str]:
    if _USUAL.fullmatch(str(content.first.get("custom_id"))):
        return _USUAL
    return re.compile("(?P<item>.+)", re.DOTALL)


def _pattern(made: str) -> re.Pattern[str]:
    """Return the expression of ids that are made so."""
    names = _FIELD.findall(made)
    if "item" not in names or len(set(names)) < len(names):
        raise InputError(f"--custom-id is {made!r}, want {{item}} in it, and no name twice")
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
        for choice in body["choices"]:
            message = choice.get("message") or {}
            yield Said(
                message.get("content"), order, choice.get("finish_reason"), message.get("refusal")
            )
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
