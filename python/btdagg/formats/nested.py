"""People's labels in nested JSON: tasks of Label Studio, records of Argilla."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from btdagg._util.errors import forbid
from btdagg.formats import table
from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import INPUT
from btdagg.votes.table import Table, listing
from btdagg.votes.words import PASS_WORDS, USUAL_WORDS

_KINDS = ("pairwise", "choices", "rating", "number")  # of results of Label Studio
_ABOUT = ("item", "group", "task", "system_a", "system_b", "order")
_MOST_WORDS = 8  # of a question that is no free text

# The id of a task, its data, what was asked, who answered, the question and the answer.
_Answer = tuple[Any, Mapping[str, Any], Any, Any, str, Any]


def _tasks(content: Content) -> Iterator[_Answer]:
    for task in content.objects():
        for annotation in task["annotations"]:
            rater = annotation["completed_by"]
            rater = rater.get("email") or rater["id"] if isinstance(rater, dict) else rater
            for result in [] if annotation.get("was_cancelled") else annotation["result"]:
                kind, question = result.get("type"), result.get("from_name")
                if kind in _KINDS:
                    answer = result["value"]["selected" if kind == "pairwise" else kind]
                    if kind == "pairwise" and answer in ("left", "right"):
                        answer = USUAL_WORDS[answer]
                    yield task["id"], task["data"], task["data"], rater, question, answer
                elif question not in (None, *content.left_out):  # relations are of no question
                    content.left_out.append(question)


def _records(content: Content) -> Iterator[_Answer]:
    for record in content.objects():
        fields = record.get("fields") or {}
        data = {**fields, **(record.get("metadata") or {})}
        for question, responses in record["responses"].items():
            for response in responses:
                answer = question, response["value"]
                yield record["id"], data, fields, response["user_id"], *answer


def _has_tasks(content: Content) -> bool:
    return {"id", "data", "annotations"} <= content.columns


def _has_records(content: Content) -> bool:
    is_record = {"id", "fields", "responses"} <= content.columns
    return is_record and isinstance(next(content.objects())["responses"], dict)


def flat_table(
    content: Content, columns: Mapping[str, str] | None = None, *, with_inputs: bool = False
) -> Table | None:
    """Return a row for each answer, with a label or a score; None where there are no tasks."""
    answers_of = next((of for has, of in _READERS.values() if has(content)), None)
    if answers_of is None:
        return None
    named = columns or {}
    question = next((named[name] for name in table.VERDICTS if name in named), None)
    by_question: dict[str, list[tuple[dict[str, Any], str]]] = {}
    for identity, data, asked, rater, name, answer in answers_of(content):
        about = {
            column: data.get(named.get(column, column))
            for column in dict.fromkeys((*_ABOUT, *named))
        }
        row = about | {"rater": rater}
        if about["item"] is None:
            row |= {"item": identity}
            row |= {INPUT: json.dumps(asked, sort_keys=True, default=str)} if with_inputs else {}
        words = answer if isinstance(answer, list) else [] if answer is None else [answer]
        by_question.setdefault(name, []).append((row, ", ".join(map(str, words))))
    kept, kinds = {}, set()
    for name, answers in by_question.items():
        verdicts = {word.lower() for _, word in answers if word}
        is_grade = all(v.replace(".", "", 1).isdigit() or v in PASS_WORDS for v in verdicts)
        if name == question or (question is None and (is_grade or len(verdicts) <= _MOST_WORDS)):
            kept[name] = answers
            kinds.add("score" if is_grade else "label")
        elif question is None:
            content.left_out.append(name)
    forbid(
        not by_question,
        f"{content.name}: no person has answered; answers are pairwise, choices, rating or number, "
        "and predictions of models are not read",
    )
    forbid(
        len(kinds) != 1,
        f"{content.name}: questions {listing(by_question)}; choose one by {{advice}}",
        advice={"columns": {"label": "..."}},
    )
    rows = [
        {n: None if v is None else str(v) for n, v in row.items() if n not in table.VERDICTS}
        | {"criterion": name if len(kept) > 1 else None, **dict.fromkeys(kinds, word)}
        for name, answers in kept.items()
        for row, word in answers
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    return Table(frame.drop(empty), content.name)


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
    flat = flat_table(content, options.columns, with_inputs=True)
    kept = {name: name for name in options.columns if name not in table.VERDICTS}
    rows, remark = table.FORMAT.read(Content("", flat), replace(options, columns=kept))
    inputs = [] if flat is None or INPUT not in flat.columns else [flat.frame[INPUT]]
    return rows.with_columns(inputs), remark


_READERS = {"label-studio": (_has_tasks, _tasks), "argilla": (_has_records, _records)}
_USES = ("columns", "words", "order", "grades")
FORMATS = tuple(Format(name, has, _read, _USES) for name, (has, _) in _READERS.items())
