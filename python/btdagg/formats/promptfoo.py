"""Results of promptfoo: the output that was selected as the best, and scores of outputs."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._util.errors import forbid
from btdagg.formats.content import Content, Format, ImportOptions
from btdagg.formats.rows import INPUT, votes_of_scores
from btdagg.votes.table import Table

_BEST, _KIND = "select-best", "\0kind"
_OF_MODELS = ("llm-rubric", "g-eval", "factuality", "answer-relevance", _BEST, "max-score")
# Reasons by which promptfoo says that a grader failed, where it does not mark that.
_FAILURE = re.compile(
    r"could not (extract|parse|perform|get|connect)\b|no (output|embedding|response)\.?$|"
    r"embedding not found|unknown error|invalid (category value|select-best verdict|json\b)|"
    r"(failed|unable) to (parse|extract|call|connect|fetch)\b|error (parsing|calling)\b|"
    r"(\w+ ){0,3}(api|call|http|network|server|provider|grader) error:|\w*error:|"
    r"remote grading failed|llm-proposed .{0,30} not in json|llm does not propose|"
    r"[\w -]{1,40} (produced a? ?malformed|output did not match)|"
    r"(request|call|connection|grader) (timed out|failed)|timed out\b|timeout\b|rate limit|"
    r"too many requests|fetch failed|(http |status |code )*[45]\d\d(:|$| (?-i:[A-Z]))",
    re.IGNORECASE,
)


def _recognizes(content: Content) -> bool:
    return bool(_results(content.document or {}))


def _read(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    # Assertions are tasks, or criteria of grades; `options.name` picks one by metric or type.
    document = content.document or {}
    results = _results(document)
    systems = _systems(results)
    grader = _grader((document.get("config") or {}).get("defaultTest"))
    rows: list[dict[str, Any]] = []
    tests = zip(results, _tests(results), strict=True)
    for number, (result, (group, sample, asked)) in enumerate(tests):
        content.row = number + 1
        for assertion in _assertions(result):
            name, is_read = _metric(assertion), _is_of_model(assertion) or options.name
            if not is_read and name not in ("None", *content.left_out):
                content.left_out.append(name)
        for task, assertion, component in _graded(result):
            kind = _kind(assertion)
            if options.name not in (None, task, _metric(assertion), kind):
                continue
            failed = component is None or _has_failed(component)
            graded = {"score": None} | ({} if failed else component or {})
            if options.passes:
                passed = graded.get("pass")
                graded["score"] = None if passed is None else float(passed)
            if kind == _BEST:
                graded["score"] = float(bool(graded.get("pass")))
            rows.append(
                {
                    "group": group,
                    INPUT: asked,
                    "turn": task,
                    "sample": sample,
                    "task": task,
                    "system": systems[result.get("promptIdx", 0)],
                    "judge": _grader(assertion) or _grader(result.get("testCase")) or grader,
                    "status": "failed" if failed or kind == _BEST else None,
                    "score": content.number_in(graded, "score"),
                    _KIND: kind,
                }
            )
    votes = pl.DataFrame()
    if options.grades and rows:
        grades = pl.DataFrame(rows, infer_schema_length=None).rename({"task": "criterion"})
        grades = grades.filter(~pl.col(_KIND).is_in([_BEST, "max-score"]))
        return grades.drop("turn", _KIND), None
    if rows:
        kinds = {"score": pl.Float64}
        scores = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=kinds)
        # The output that was selected scores 1; without it nobody said which is better.
        n_best = pl.col("score").sum().over("group", "sample", "task")
        score = pl.when((pl.col(_KIND) != _BEST) | (n_best == 1)).then("score")
        votes = votes_of_scores(Table(scores.with_columns(score), content.name))
    named = f" of {options.name!r}" if options.name is not None else ""
    forbid(
        not votes.height,
        f"{content.name}: no test has two outputs with results{named} of select-best, or with "
        "scores of a model such as llm-rubric; to read scores as grades, use read_grades",
        "grades",
    )
    place = {name: place for place, name in systems.items()}
    first, second = (
        pl.col(side).replace_strict(place, return_dtype=pl.Int64)
        for side in ("system_a", "system_b")
    )
    shown = pl.when(first < second).then(pl.lit("AB")).otherwise(pl.lit("BA"))
    is_best = pl.col(_KIND) == _BEST
    # Two outputs that were not selected are no tie; outputs are shown in the order of columns.
    votes = votes.filter(~is_best | pl.col("vote").ne_missing(0)).with_columns(
        order=pl.when(is_best).then(shown), margin=pl.when(~is_best).then("margin")
    )
    return votes.drop(_KIND), None


def _results(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    results = document.get("results")
    if isinstance(results, dict):
        results = results.get("results")
    if not isinstance(results, list) or not results or not isinstance(results[0], dict):
        return []
    return results if {"gradingResult", "success"} & set(results[0]) else []


def _systems(results: list[dict[str, Any]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for result in results:
        provider = result.get("provider") or {}
        if isinstance(provider, dict):
            provider = provider.get("label") or provider.get("id")
        names.setdefault(result.get("promptIdx", 0), str(provider))
    shared = Counter(names.values())
    return {
        place: name if shared[name] == 1 else f"{name} prompt {place}"
        for place, name in names.items()
    }


def _tests(results: list[dict[str, Any]]) -> Iterator[tuple[str, int, str]]:
    groups: dict[str, str] = {}
    repeats: dict[str, dict[object, int]] = defaultdict(dict)
    for place, result in enumerate(results):
        test = [result.get("vars"), (result.get("testCase") or {}).get("description")]
        key = json.dumps(test, sort_keys=True, default=str)
        group = groups.setdefault(key, f"test-{result.get('testIdx', place)}")
        # Repeats of a test have numbers of their own.
        yield group, repeats[key].setdefault(result.get("testIdx"), len(repeats[key])), key


def _graded(
    result: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any] | None]]:
    """Yield task, assertion and result of what models were to grade; None where that failed."""
    pending: dict[tuple[str, int], Mapping[str, Any]] = {}  # a test may have several of a metric
    for assertion in (result.get("testCase") or {}).get("assert") or []:
        if _is_of_model(assertion):
            metric = _metric(assertion)
            pending[metric, sum(other == metric for other, _ in pending)] = assertion
    graded: dict[tuple[str, int], dict[str, Any]] = {}
    for component in (result.get("gradingResult") or {}).get("componentResults") or []:
        assertion = (component or {}).get("assertion") or {}
        if _is_of_model(assertion):
            metric, value = _metric(assertion), assertion.get("value")
            left = [key for key in pending if key[0] == metric and key not in graded]
            # Where another one failed, what is asked tells which this is.
            same = [key for key in left if pending[key].get("value") == value]
            extra = metric, sum(other == metric for other, _ in graded)
            graded[(*same, *left, extra)[0]] = component
    for key in dict.fromkeys((*pending, *graded)):
        metric, place = key
        grading = graded.get(key)
        task = metric if place == 0 else f"{metric} {place + 1}"
        yield task, grading["assertion"] if grading else pending[key], grading


def _assertions(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (result.get("testCase") or {}).get("assert") or []
    for component in (result.get("gradingResult") or {}).get("componentResults") or []:
        yield (component or {}).get("assertion") or {}


def _has_failed(component: Mapping[str, Any]) -> bool:
    """Whether the grader failed, which has score 0 as an answer that is bad."""
    if (component.get("metadata") or {}).get("graderError") or component.get("error"):
        return True
    is_bad = not component.get("pass") and not component.get("score")
    return is_bad and _FAILURE.match(str(component.get("reason") or "").strip()) is not None


def _is_of_model(assertion: Mapping[str, Any]) -> bool:
    kind = _kind(assertion)
    return kind in _OF_MODELS or kind.startswith(("model-graded", "context-"))


def _kind(assertion: Mapping[str, Any]) -> str:
    return str(assertion.get("type", "")).removeprefix("not-")


def _metric(assertion: Mapping[str, Any]) -> str:
    return str(assertion.get("metric") or assertion.get("type"))


def _grader(config: Any) -> str | None:
    if not isinstance(config, dict):
        return None
    own_provider = config.get("provider") if "type" in config else None
    provider = own_provider or (config.get("options") or {}).get("provider")
    if isinstance(provider, dict):
        provider = provider.get("id")
    return None if provider is None else str(provider)


FORMAT = Format("promptfoo", _recognizes, _read, ("name", "grades"))
