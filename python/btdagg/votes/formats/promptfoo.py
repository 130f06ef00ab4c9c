"""Results of promptfoo: the output that was selected as the best, and scores of outputs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from btdagg._core import InputError
from btdagg.votes.formats.content import Content, number_of
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.formats.scores import votes_of_scores
from btdagg.votes.table import NUMBER, Table

_BEST = "select-best"


def is_promptfoo(content: Content) -> bool:
    """Whether the file is an evaluation of promptfoo."""
    return content.document is not None and bool(_results(content.document))


def read_promptfoo(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, None]:
    """Read every two outputs of a test: by what was selected, or by their scores.

    Assertions are tasks. `options.name` picks one: its metric, or its type.
    """
    assert content.document is not None
    results = _results(content.document)
    systems = _systems(results)
    grader = _grader(((content.document.get("config") or {}).get("defaultTest")) or {})
    tests = _tests(results)
    best: dict[tuple[str, int, str], list[dict[str, Any]]] = defaultdict(list)
    scored: list[dict[str, Any]] = []
    for (number, result), (group, sample) in zip(content.numbered(results), tests, strict=True):
        system = systems[result.get("promptIdx", 0)]
        for task, kind, found, assertion in _graded(result):
            if options.name is not None and options.name not in (task, _task(assertion), kind):
                continue
            found["score"] = number_of(content, number, found, "score")
            row = {
                NUMBER: number,
                "group": group,
                "turn": task,
                "sample": sample,
                "task": task,
                "system": system,
                "judge": _grader(assertion) or _grader(result.get("testCase") or {}) or grader,
                "place": result.get("promptIdx", 0),
                **found,
            }
            if kind == _BEST:
                best[group, sample, task].append(row)
            else:
                scored.append(row)
    parts = []
    if best:
        parts.append(pl.DataFrame(list(_selected(best)), infer_schema_length=None))
    if scored:
        scores = pl.DataFrame(
            scored, infer_schema_length=None, schema_overrides={"score": pl.Float64}
        )
        scores = scores.drop("place", "selected", strict=False)
        parts.append(votes_of_scores(Table(scores, content.name)))
    frame = pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()
    if not frame.height:
        named = f" of {options.name!r}" if options.name is not None else ""
        raise InputError(
            f"{content.name}: no two outputs of a test have results{named} of select-best, or "
            "scores of a model, such as llm-rubric"
        )
    return frame, None


def _results(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of outputs, one for each prompt and test."""
    found = document.get("results")
    if isinstance(found, dict):
        found = found.get("results")
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        return []
    return found if {"gradingResult", "success"} & set(found[0]) else []


def _systems(results: list[dict[str, Any]]) -> dict[int, str]:
    """Return a name of each column of outputs: its provider, and the prompt if that has several."""
    names: dict[int, str] = {}
    for result in results:
        provider = result.get("provider") or {}
        named = (
            provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
        )
        names.setdefault(result.get("promptIdx", 0), str(named))
    shared = Counter(names.values())
    return {
        place: name if shared[name] == 1 else f"{name} prompt {place}"
        for place, name in names.items()
    }


def _tests(results: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return of each result which test it is of, and which repeat of it."""
    groups: dict[str, str] = {}
    repeats: dict[str, dict[object, int]] = defaultdict(dict)
    seen: Counter[tuple[str, object]] = Counter()
    found = []
    for place, result in enumerate(results):
        told = [result.get("vars"), (result.get("testCase") or {}).get("description")]
        key = json.dumps(told, sort_keys=True, default=str)
        group = groups.setdefault(key, f"test-{result.get('testIdx', place)}")
        column = result.get("promptIdx", 0)
        # Repeats of a test have numbers of their own; older files have none.
        number = result.get("testIdx", seen[key, column])
        seen[key, column] += 1
        found.append((group, repeats[key].setdefault(number, len(repeats[key]))))
    return found


def _graded(
    result: Mapping[str, Any],
) -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, Any]]]:
    """Yield task, type, score or selection, and the assertion, of what models have graded."""
    components = (result.get("gradingResult") or {}).get("componentResults") or []
    # Numbers and assertions of a task that have no result yet.
    left: dict[str, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for assertion in (result.get("testCase") or {}).get("assert") or []:
        if _is_of_model(_kind(assertion)):
            several = left[_task(assertion)]
            several.append((len(several) + 1, assertion))
    seen: Counter[str] = Counter()
    for each in components:
        assertion = (each or {}).get("assertion") or {}
        if not _is_of_model(_kind(assertion)):
            continue
        task = _task(assertion)
        seen[task] += 1
        same = [one for one in left[task] if one[1].get("value") == assertion.get("value")]
        number = seen[task]
        if left[task]:
            its = (same or left[task])[0]
            left[task].remove(its)
            number = its[0]
        found = {"score": each.get("score"), "selected": bool(each.get("pass")), "status": None}
        yield _numbered(task, number), _kind(assertion), found, assertion
    for task, several in left.items():
        for number, assertion in several:
            found = {"score": None, "selected": None, "status": "failed"}
            yield _numbered(task, number), _kind(assertion), found, assertion


def _kind(assertion: Mapping[str, Any]) -> str:
    return str(assertion.get("type", "")).removeprefix("not-")


def _numbered(task: str, number: int) -> str:
    """Name the task of an assertion, of which a test may have several."""
    return task if number == 1 else f"{task} {number}"


def _is_of_model(kind: str) -> bool:
    """Whether an assertion is scored by a model."""
    known = ("llm-rubric", "g-eval", "factuality", "answer-relevance", "select-best", "max-score")
    return kind in known or kind.startswith(("model-graded", "context-"))


def _task(assertion: Mapping[str, Any]) -> str:
    return str(assertion.get("metric") or assertion.get("type"))


def _grader(found: Mapping[str, Any]) -> str | None:
    """Return the model that grades, where it is named."""
    options = found.get("options") if isinstance(found, dict) else None
    named = (found.get("provider") if isinstance(found, dict) and "type" in found else None) or (
        (options or {}).get("provider")
    )
    if isinstance(named, dict):
        named = named.get("id")
    return None if named is None else str(named)


def _selected(best: Mapping[Any, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield what a selection says: the best output wins against every other of its test."""
    for rows in best.values():
        rows = sorted(rows, key=lambda row: row["place"])
        winners = [row for row in rows if row["selected"]]
        for number, first in enumerate(rows):
            for second in rows[number + 1 :]:
                vote = None
                if len(winners) == 1:
                    if winners[0] not in (first, second):
                        continue  # nobody said which of two others is better
                    vote = 1 if winners[0] is first else -1
                kept = ("group", "turn", "sample", "task", "judge")
                yield {
                    **{name: first[name] for name in kept},
                    "system_a": first["system"],
                    "system_b": second["system"],
                    "order": "AB",  # outputs are shown in the order of their columns
                    "vote": vote,
                    "status": "failed",
                }
