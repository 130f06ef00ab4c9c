"""Results that have grades: of DeepEval, OpenAI's evals, Braintrust, LangSmith, RewardBench 2."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import INPUT

FEEDBACK = frozenset({"run_id", "key", "score"})  # columns of LangSmith's
_CASES = ("testCases", "conversationalTestCases")
_COLUMNS = ("item", "criterion", "judge", "system", "group", "task", "score", "status", INPUT)


def _text_of(asked: Any) -> str | None:
    return asked if asked is None else json.dumps(asked, sort_keys=True, default=str)


def _run(content: Content) -> Mapping[str, Any]:
    document = content.document or {}
    return document.get("testRunData") or document


def _cases(content: Content, options: ImportOptions) -> Iterator[tuple[Any, ...]]:
    for case in (case for kind in _CASES for case in _run(content).get(kind) or ()):
        for metric in case.get("metricsData") or ():
            score, status = metric.get("success" if options.passes else "score"), None
            if metric.get("error"):  # which DeepEval calls no success
                score, status = None, "failed"
            judge, asked = metric.get("evaluationModel"), case.get("input") or case.get("scenario")
            about = case["name"], metric["name"], judge, None, None, None
            yield *about, score, status, _text_of(asked)


def _has_ratings(content: Content) -> bool:
    document = content.document or {}
    is_table = all(isinstance(document.get(name), list) for name in ("id", "scores"))
    if is_table or not {"id", "scores"} <= content.columns:
        return is_table
    return isinstance(next(content.objects())["scores"], list)


def _ratings(content: Content, options: ImportOptions) -> Iterator[tuple[Any, ...]]:
    """Yield the ratings of each response; as labels, whether it is one of the correct ones."""
    document = content.document or {}
    columns = {name: values for name, values in document.items() if isinstance(values, list)}
    table = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    n_rows: Counter[tuple[str, Any, Any]] = Counter()
    for row in content.objects() if content.document is None else table:
        asked = _text_of(row.get("prompt"))
        n_rows[str(row["id"]), row.get("subset"), asked] += 1
        about = document.get("model"), None, str(row["id"]), row.get("subset")
        for place, entry in enumerate(row["scores"]):
            scores = entry if isinstance(entry, list) else [entry]
            for score in [place < row["num_correct"]] if options.are_labels else scores:
                failed = score == -1 and -1 not in (options.points or (-1,))
                end = (None, "failed") if failed else (score, None)
                yield f"{row['id']}-{place}", None, *about, *end, asked
    if several := [identity for (identity, *_), n in n_rows.items() if n > 1]:
        content.remarks.append(
            f"{content.name}: the id {several[0]!r} is in several rows of a subset, which are read "
            "as samples of one item; give prompts ids of their own"
        )


def _evals(content: Content, options: ImportOptions) -> Iterator[tuple[Any, ...]]:
    for row in content.objects():
        system = (row.get("sample") or {}).get("model")
        # Of two models, the responses to an input are two items.
        asked = _text_of([row.get("datasource_item"), system])
        for result in row["results"]:
            score, status = result["passed" if options.passes else "score"], None
            if row.get("status") == "error" or _has_error(row) or _has_error(result):
                score, status = None, "failed"
            about = row["datasource_item_id"], result["name"], None, system
            yield *about, None, None, score, status, asked


def _has_error(result: Mapping[str, Any]) -> bool:
    """Whether OpenAI says that a response, or a grader, failed."""
    flags = result.get("errors") or {}
    failed = isinstance(flags, dict) and any(value is True for value in flags.values())
    errors = [of.get("error") for of in (result, result.get("sample")) if isinstance(of, dict)]
    return failed or any(any(e.values()) if isinstance(e, dict) else e for e in errors)


def _scores_by_name(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    scores = row.get("scores")
    if isinstance(scores, str) and scores.startswith("{"):
        scores = json.loads(scores)
    return scores if isinstance(scores, dict) else None


def _has_spans(content: Content) -> bool:
    has_columns = {"id", "scores", "span_id"} <= content.columns
    return has_columns and any(_scores_by_name(row) is not None for row in content.objects())


def _spans(content: Content, _: ImportOptions) -> Iterator[tuple[Any, ...]]:
    of_roots, of_parts = set[str](), dict[str, None]()
    for row in content.objects():
        scores = _scores_by_name(row) or {}
        if row.get("root_span_id") not in (None, row["span_id"]):
            of_parts |= dict.fromkeys(scores)
            continue
        of_roots |= {*scores}
        for name, score in scores.items():
            yield row["id"], name, None, None, None, None, score, None, _text_of(row.get("input"))
    content.left_out += [name for name in of_parts if name not in of_roots]


def _feedback(content: Content, _: ImportOptions) -> Iterator[tuple[Any, ...]]:
    for row in content.objects():
        score = row.get("value") if row["score"] is None else row["score"]
        yield row["run_id"], row["key"], None, None, None, None, score, None, None


def _format(
    name: str,
    recognizes: Callable[[Content], bool],
    rows_of: Callable[[Content, ImportOptions], Iterator[tuple[Any, ...]]],
) -> Format:
    def read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
        texts = [
            [None if cell is None else str(cell) for cell in row]
            for row in rows_of(content, options)
        ]
        return pl.DataFrame(texts, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row"), None

    return Format(name, recognizes, read, ("grades",))


FORMATS = (
    _format("deepeval", lambda c: any(kind in _run(c) for kind in _CASES), _cases),
    _format("openai-evals", lambda c: {"datasource_item_id", "results"} <= c.columns, _evals),
    _format("braintrust", _has_spans, _spans),
    _format("langsmith", lambda c: c.columns >= FEEDBACK, _feedback),
    _format("rewardbench", _has_ratings, _ratings),
)
