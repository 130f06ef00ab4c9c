"""What is in files, what is wrong with it, what it can support, and what to do next."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from btdagg._util.errors import InputError, shown
from btdagg._util.readable import readable
from btdagg._util.wording import counted
from btdagg.estimates.prediction_powered import Estimates, estimate
from btdagg.project import TABLES
from btdagg.votes import Table, read_table
from btdagg.votes.formats import read, read_grades
from btdagg.votes.formats.content import Content
from btdagg.votes.formats.nested import flat_table
from btdagg.votes.formats.results import FEEDBACK
from btdagg.votes.grades import LABEL_COLUMNS, VOTE_COLUMNS, scale_in
from btdagg.votes.labels import RATERS, Labels, read_labels
from btdagg.votes.scale import PASS_FAIL, Scale, written
from btdagg.votes.schema import PASS_WORDS
from btdagg.votes.sides import UNNAMED
from btdagg.votes.source import ITEM_NAMES, suffix_of
from btdagg.votes.table import listing
from btdagg.votes.votes import Votes, read_votes

_FEWEST = 10  # labels that a model is calibrated on
_MARGIN = 0.03  # of a release gate
# One-sided level 5%, and with it power 80%, as Phi has them.
_ONE_SIDED = 1.6449
_REACH = _ONE_SIDED + 0.8416
_LEVEL = 0.9  # of two sides

# What columns of strangers are called, by our names; each in the order of preference.
_CALLED = {
    "item": "question_id qid conversation_id example_id sample_id pair_id traceid trace_id "
    f"{' '.join(ITEM_NAMES)} context.span_id span_id call_id uid prompt_id conversation dialogue "
    "dialog case case_id instruction",
    "vote": "winner verdict preference preferred choice judgment judgement comparison "
    "pairwise_choice",
    "score": "rating grade points judge_score value",
    "label": "gold gold_label human human_label human_preference expert human_score "
    "human_mean human_average mean_of_raters avg average mean",
    "judge": "judge_model grader evaluator judge_name",
    "rater": "annotator rater_id annotator_id labeler labeller assessor participant_id worker_id "
    "reviewer colleague person",
    "order": "position shown_first first_shown presentation",
    "sample": "run repeat trial attempt iteration seed",
    "group": "prompt_id cluster source_id",
    "criterion": "aspect dimension rubric_item annotation_name metric",
    "system_a": "generator_1",
    "system_b": "generator_2",
}
# Columns that may be a part of the key of items: whose response it is.
_SYSTEMS = ("system", "bot", "chatbot", "assistant", "system_name", "variant", "model")
# Columns of which each has the scores by a criterion.
_SCORES = re.compile(
    r"^(?:feedback|(?:output\.)?scores|metrics)[./](?P<name>[^,=]+)|^(?P<of>[^,=]+)[./_ ]score$"
    r"|^(?:faithfulness|factuality|helpfulness|\w*(?:relevancy|relevance|correctness))$"
)
# What words surely mean; a word that is not here is left to the user.
_SURELY = {
    **dict.fromkeys(("a", "model_a", "model_1", "response_a", "answer_a", "left"), "A"),
    **dict.fromkeys(("b", "model_b", "model_2", "response_b", "answer_b", "right"), "B"),
    **dict.fromkeys(("tie", "tied", "draw", "same", "equal"), "tie"),
    **dict.fromkeys(("error", "n/a", "na", "none", "null", "skipped", "unparsed"), "missing"),
    **{"candidate": "A", "baseline": "B"},
}
_PLACES = {"1": "A", "1.0": "A", "2": "B", "2.0": "B", "1.5": "tie"}  # where there is a 2
# Words that need no meaning, numbers where there is a -1.
_OWN, _NUMBERS = {"a", "b", "tie", "same"}, {"-1", "0", "1"}
_VERDICTS = ("vote", "score", "label")
_OF_PEOPLE = re.compile("label|human|gold|annotat|rating", re.IGNORECASE)  # in a file's name
_MOST_WORDS = 8  # different ones, in a column of verdicts


_SCHEMA = "https://btdagg.github.io/btdagg/schemas/project.schema.json"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


@readable
@dataclass
class FileCheck:
    """What one file holds.

    `kind` is votes, labels, pairs, responses or unknown, `format` btdagg for our own tables,
    `options` what the commands have to be told to read it, and `command` what imports it, with a
    "..." for what only you know. `keys` are those of its table in a project file, where "?" has a
    question in `questions`.
    """

    source: str
    kind: str = "unknown"
    format: str = "btdagg"
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    command: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table of a project file that is its own."""
        if self.kind == "unknown":
            return "labels" if self.command.endswith("labels.csv") else "votes"
        return {"responses": "pairs"}.get(self.kind, self.kind)

    def line(self, path: str, name: str, value: object) -> list[str]:
        """Return the line of a key, below its question if it has one."""
        question = self.questions.get(path)
        if value in ("...", "?") or question is not None:
            question = question or self.questions.get(path.partition(".")[0], "what is it?")
            return [f"# {question}", f'{_bare(name)} = "?"']
        return [f"{_bare(name)} = {_toml(value)}"]

    def __str__(self) -> str:
        facts = [text for name, value in self.facts.items() if (text := _sentence(name, value))]
        what = f"{self.kind}{'' if self.format == 'btdagg' else f' in the format {self.format}'}"
        what = "a table" if what == "unknown in the format table" else what
        lines = [f"{self.source}: {'; '.join([what, *facts])}."]
        return "\n".join([*lines, *(f"  wrong: {problem}" for problem in self.problems)])


@readable
@dataclass(frozen=True)
class Check:
    """What files hold, what they can and cannot support, and the command to type next.

    `command` is empty where something has to be mended or filled in before.
    """

    files: tuple[FileCheck, ...]
    supports: tuple[str, ...]
    command: str
    next_with_project: str = ""
    questions: Mapping[str, str] = field(default_factory=dict)
    """Commands of the usual questions, beside a project file, by what they answer."""

    @property
    def project(self) -> str:
        """The text of a project file, in which "?" stands below each question."""
        lines = [f"#:schema {_SCHEMA}"]
        kinds = [own.table for own in self.files]
        for kind, own in sorted(
            zip(kinds, self.files, strict=True), key=lambda pair: TABLES.index(pair[0])
        ):
            if f"[{kind}]" in lines or (own.kind == "unknown" and not own.command):
                lines.append(f"# {own.source} is not read: one file of {kind} is")
                continue
            lines += ["", f"[{kind}]", f"file = {_toml(own.source)}"]
            # Tables within a table come after its keys.
            for name, value in sorted(own.keys.items(), key=lambda key: isinstance(key[1], dict)):
                if isinstance(value, dict):
                    lines += [f"[{kind}.{name}]"] * bool(value)
                    for word, meaning in value.items():
                        lines += own.line(f"{name}.{word}", word, meaning)
                else:
                    lines += own.line(name, name, value)
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        lines = [*map(str, self.files), *self.supports]
        if self.command:
            return "\n".join([*lines, f"Next: {self.command}"])
        to_fill = (own.command for own in self.files if own.kind == "unknown" and own.command)
        what = "(words: A, B, tie or missing; orders: AB or BA)"
        return "\n".join([*lines, *(f"Next, with each ... filled in {what}: {t}" for t in to_fill)])


def check(files: Sequence[str | os.PathLike[str]]) -> Check:
    """Say what is in files of votes, labels or pairs, of btdagg, of other tools or of one's own.

    Votes beside labels are also looked at together. If no file can be read, it says why.
    """
    checks = [FileCheck(os.fspath(place)) for place in files]
    opened = [(own, _opened(own)) for own in checks]
    if all(own.kind == "unknown" and not own.command for own in checks):
        raise InputError("; ".join(problem for own in checks for problem in own.problems))
    tables = {own.kind: table for own, table in reversed(opened) if table is not None}
    judged, gold = tables.get("votes"), tables.get("labels")
    scales: dict[str, tuple[Scale | None, Scale | None]] = {}
    wrong = None
    remarks: list[str] = []
    try:
        for name in _criteria(judged, gold):
            own_votes, own_labels = (None if t is None else _of(t, name) for t in (judged, gold))
            told: list[str] = []
            scales[name] = _both_scales(own_votes, own_labels, told)
            remarks += [f"{name}: {text}" if name else text for text in told]
        same = [{*of_kind} - {None} for of_kind in zip(*scales.values(), strict=True)]
        if all(len(of_kind) < 2 for of_kind in same):
            scales = {"": (next(iter(same[0]), None), next(iter(same[1]), None))}
    except InputError as error:
        wrong, scales = error, {"": (None, None)}
    parts: dict[str, Any] = {}
    for own, table in opened:
        if table is None or own.kind not in ("votes", "labels"):
            continue
        try:
            if wrong is not None and wrong.source in (None, table.source):
                raise wrong
            rows = _rows_of(own, table, scales)
            other = gold if own.kind == "votes" else judged
            _say_scales(own, table, other, scales)
            parts.setdefault(own.kind, rows)
        except InputError as error:
            own.problems, own.command = [str(error)], ""
    is_whole = {*tables} & {"votes", "labels"} == {*parts}
    supports, verb, where = [], "", ""
    for name in scales if is_whole else ():
        both = [parts.get(kind, {}).get(name) for kind in ("votes", "labels")]
        texts, own_verb = _supports(*both)
        with_labels = name and both[1] is not None
        supports += [f"{name}: {text}" if with_labels else text for text in texts]
        if own_verb and not verb:
            verb = own_verb
            where = f" --filter {shlex.quote(f'criterion={name}')}" if name else ""
    supports = [*dict.fromkeys(supports), *(remarks if is_whole else [])]
    short = f"btdagg {verb}{where}" if verb else ""
    if verb == "choose":
        short = f"btdagg choose --items 50 -o {_unused('to_label.csv')}"
    elif not verb and tables.keys() == {"pairs"}:
        short = "btdagg judge --model simulated -n 8 --store votes.db"
    questions = {}
    if verb in ("estimate", "evaluate"):
        judged_parts = parts["votes"]
        criterion = next(name for name in judged_parts if not where or name in where)
        questions = _questions(judged_parts[criterion], where)
        others = [f"--filter {shlex.quote(f'criterion={name}')}" for name in scales]
        if where and (others := [text for text in others if text not in where]):
            questions["the same of another criterion"] = f"... {' or '.join(others)}"
    return Check(tuple(checks), tuple(supports), _next(checks, verb, where), short, questions)


def _questions(votes: Votes, where: str) -> dict[str, str]:
    """Return the commands that answer the usual questions, by question."""
    names = [name for name in ("system", "system_a", "system_b") if name in votes.columns]
    found = pl.concat([votes.frame[name].cast(pl.String) for name in names]) if names else None
    systems: list[str] = []
    if found is not None:  # those with most votes first
        numbers = (
            found.drop_nulls().value_counts().sort("count", names[0], descending=[True, False])
        )
        systems = numbers[names[0]].to_list()
    what = "win rate" if votes.scale.mirrored else "mean grade"
    ranking = {f"{what} of each system, and which differ": "estimate --systems auto"}
    sides = systems if len(systems) > 1 else [votes.sides.a, votes.sides.b]
    candidate, baseline = map(shlex.quote, sides[:2])
    gate = (
        f"gate --candidate {candidate} --baseline {baseline} --margin 0.1 --junit gate.xml "
        "--summary gate.md"
    )
    is_gated = votes.scale.mirrored or len(systems) > 1
    most = int(max(_facts_of_votes(votes)["votes an item"]))
    fewer = f"compare --first n={max(most // 2, 1)} --second n={most}"
    commands = {
        f"{what}, and how many more labels make its interval so wide": "estimate --width 0.1",
        **(ranking if len(systems) > 1 + votes.scale.mirrored else {}),
        **({"a gate for CI: is a candidate worse than the baseline": gate} if is_gated else {}),
        **({"are fewer votes of an item enough": fewer} if most > 1 else {}),
        "which labels need no review": "certify --agreement 0.8 -o certificate.json",
        "a label for every item": "calibrate -o model.json",
        "the same in a database, by this query": "sql model.json --votes TABLE",
        "a report": "evaluate --report report",
    }
    return {question: f"btdagg {command}{where}" for question, command in commands.items()}


def _criteria(*tables: Table | None) -> list[str]:
    """Return the criteria of tables that have a column of them; else one without a name."""
    named = [table for table in tables if table is not None and "criterion" in table.columns]
    values = {value for table in named for value in table.values("criterion").drop_nulls()}
    return sorted(values) if len(values) > 1 else [""]


def _of(table: Table, criterion: str) -> Table | None:
    """Return the rows of a criterion, None if there are none."""
    if not criterion or "criterion" not in table.columns:
        return table
    with suppress(InputError):
        return table.filter({"criterion": [criterion]})
    return None


def _both_scales(
    judged: Table | None, gold: Table | None, remarks: list[str]
) -> tuple[Scale | None, Scale | None]:
    """Return the scales of votes and labels; None where another file has its own."""
    scale = None if judged is None else _likely(judged, remarks)
    if scale is not None and scale.mirrored:
        scale = None
    return scale, None if gold is None else _scale_of_labels(gold, scale, remarks)


def _rows_of(
    own: FileCheck, table: Table, scales: dict[str, tuple[Scale | None, Scale | None]]
) -> dict[str, Any]:
    """Read a file, criterion by criterion where they have scales of their own; say what it has."""
    is_votes = own.kind == "votes"
    rows: dict[str, Any] = {}
    for name, pair in scales.items():
        if (part := _of(table, name)) is not None:
            own_scale = pair[not is_votes]
            rows[name] = (read_votes if is_votes else read_labels)(part, scale=own_scale)
    all_facts = {
        name: _facts_of_votes(read) if is_votes else _facts_of_labels(read, table)
        for name, read in rows.items()
    }
    facts = next(iter(all_facts.values()), {})
    if len(scales) > 1:
        means = sum(facts.get("means of raters", 0) for facts in all_facts.values())
        of_kind = {name: facts[own.kind] for name, facts in all_facts.items()}
        each = {n for facts in all_facts.values() for n in facts.get("votes an item", ())}
        facts = {"items": table.values("item").len(), own.kind: sum(of_kind.values())}
        of_cell = sorted({min(each), max(each)}) if each else []
        facts |= {"votes an item and criterion": of_cell} if of_cell else {}
        if n_missing := sum(facts.get("missing", 0) for facts in all_facts.values()):
            facts["missing"] = n_missing
        facts |= {"of each criterion": of_kind, **({"means of raters": means} if means else {})}
    own.facts = facts | own.facts
    if not own.facts[own.kind]:
        raise InputError(f"{own.source}: no row has a {own.kind[:-1]}")
    if is_votes:
        own.facts |= _absent(table)
    return rows


def _absent(table: Table) -> dict[str, int]:
    """Return how many combinations of item, criterion, judge and sample have no row, and one."""
    key = [n for n in ("item", "criterion", "judge", "sample") if n in table.columns]
    if not {"judge", "sample"} & {*key} or "sample" not in key:
        return {}
    rows = table.frame.select(key).unique()
    if not (n_absent := math.prod(rows[name].n_unique() for name in key) - rows.height):
        return {}
    n_cells = math.prod(rows[name].n_unique() for name in key[1:])
    fewer = rows.group_by("item").len().filter(pl.col("len") < n_cells).sort("item")
    cells = fewer.select("item").head(1)
    for name in key[1:]:
        cells = cells.join(rows.select(name).unique().sort(name), how="cross")
    absent = cells.join(rows, on=key, how="anti", maintain_order="left")
    cell = ", ".join(f"{name} {value}" for name, value in absent.row(0, named=True).items())
    *names, last = key
    return {f"cells of {', '.join(names)} and {last} are absent, such as {cell}": n_absent}


def _say_scales(
    own: FileCheck,
    table: Table,
    other: Table | None,
    scales: dict[str, tuple[Scale | None, Scale | None]],
) -> None:
    """Keep the scales of a file as options and keys, or the questions that they are."""
    is_labels = own.kind == "labels"
    texts = {}
    for name, pair in scales.items():
        scale = pair[is_labels]
        if scale is None or scale.mirrored or pair[0] is None:
            continue
        texts[name] = written(scale.points)
        if "scale" in own.keys:  # which makes the grades
            continue
        path = "scale" + f".{name}" * bool(name)
        if question := _question(own, _of(table, name), other and _of(other, name), scale):
            own.questions[path] = question
    if not texts:
        return
    prefix = f"{own.kind}.scale"
    said = ",".join(f"{prefix}{f'.{n}' if n else ''}={text}" for n, text in texts.items())
    own.options.append(f"--set {shlex.quote(said)}")
    own.keys.setdefault("scale", texts.get("", texts))


def _question(own: FileCheck, table: Table | None, other: Table | None, scale: Scale) -> str | None:
    """Ask for a scale that is not certain; it is where votes and labels have the same ends."""
    low, high = scale.points[0], scale.points[-1]
    if table is None or scale == PASS_FAIL or "grades" in table.columns:
        return None
    seen = _numbers_in(table)
    if len(scale.points) > 3 == len(seen) and max(seen) - min(seen) > 2:
        listed = ",".join(f"{number:g}" for number in sorted(seen))
        what = f'{own.kind} are {listed}; which is their scale: "{listed}"'
        return f'{what} or "{written(scale.points)}"?'
    is_seen = [_ends(part) == (low, high) for part in (table, other) if part is not None]
    if is_seen[0] and (high in (5, 10, 100) or is_seen == [True, True]):
        return None
    least, most = _ends(table)
    wider = next((top for top in (5, 10, 100) if top > high), None)
    other_answer = f"{low:g}-{wider}" if wider else f"{least:g}-{most:g}"
    what = f"{own.kind} are from {least:g} to {most:g}"
    return f'{what}; which is their scale: "{written(scale.points)}" or "{other_answer}"?'


def _ends(table: Table) -> tuple[float, float]:
    """Return the least and the greatest number of a table of votes or labels."""
    numbers = _numbers_in(table)
    return min(numbers, default=math.nan), max(numbers, default=math.nan)


def _numbers_in(table: Table) -> list[float]:
    """Return the different numbers of a table of votes or labels; none where there are words."""
    column = next((n for n in ("score", "label", "grade", "vote") if n in table.columns), None)
    texts: Iterable[str] = (
        [] if column is None else table.values(column).drop_nulls().str.strip_chars()
    )
    try:
        return [float(text) for text in texts if text]
    except ValueError:
        return []


def _kind_of(table: Table) -> str:
    columns = {*table.columns}
    if not columns & {"item", *ITEM_NAMES} or columns >= FEEDBACK:  # of which ids are no items
        return "unknown"
    if {"a", "b"} <= columns or {"response_a", "response_b"} <= columns:
        return "pairs"
    if columns & {"label", "grade"} and not columns & {"vote", "score", "minus"}:
        return "labels"
    if columns & {"vote", "score", "margin", "minus"} or {"p_minus", "p_tie"} <= columns:
        return "labels" if "rater" in columns and "judge" not in columns else "votes"
    return "unknown"


def _likely(
    table: Table, remarks: list[str], columns: tuple[str, ...] = VOTE_COLUMNS, **how: Any
) -> Scale:
    """Return the scale of a table, or a usual one that has its grades where nothing says it."""
    try:
        return scale_in(table, columns, **how)
    except InputError as error:
        scale = error.advice.get(str(error.argument))
        if not isinstance(scale, Scale):
            raise
        kind = "votes" if columns == VOTE_COLUMNS else "labels"
        least, most = _ends(table)
        remarks.append(
            f"{table.source} does not say its scale, and has {least:g} to {most:g}: {scale} is "
            f"taken for it; if it is another, say it by --set {kind}.scale=..."
        )
        return scale


def _scale_of_labels(labels: Table, scale: Scale | None, remarks: list[str]) -> Scale | None:
    """Return the scale of labels beside grades, or by themselves; None if they cannot be read."""
    if scale is not None and _are_means(labels, scale):
        return scale
    if scale is not None:
        return _likely(labels, remarks, LABEL_COLUMNS, are_grades=True)
    with suppress(InputError):
        return read_labels(labels).scale
    with suppress(InputError):
        return _likely(labels, remarks, LABEL_COLUMNS, are_grades=True)
    return None


def _are_means(labels: Table, scale: Scale) -> bool:
    """Whether labels are means of a few raters on a scale."""
    numbers = _numbers_in(labels)
    between = [number for number in numbers if number not in scale.points]
    inside = all(scale.points[0] <= number <= scale.points[-1] for number in numbers)
    few = (min(abs(n * k - round(n * k)) for k in range(2, 8)) < 0.01 for n in between)
    return bool(between) and inside and all(few)


def _opened(own: FileCheck) -> Table | None:
    """Read a file as one of ours, of another tool, or of a stranger."""
    with suppress(InputError):
        table = read_table(own.source, [])
        own.kind = _kind_of(table)
        names: dict[str, Any] = {n: n if n in table.columns else None for n in _CALLED}
        if own.kind in ("votes", "labels") and _has_two_parts(table, names):
            columns = {"item": ["item", *names["item"][1:]]}
            own.keys = columns
            own.options = [f"--set {own.kind}.item={'+'.join(columns['item'])}"]
            return read_table(table, [], columns=columns)
        if own.kind != "unknown":
            own.facts = _facts_of_rows(table) if own.kind == "pairs" else {}
            return table
    try:
        return _imported(own)
    except InputError as error:
        own.problems, is_damaged = [str(error)], error.argument != "columns"
    try:
        if os.path.isdir(own.source):
            return None
        content = Content(own.source)
        if (flat := flat_table(content)) is not None:
            return _guessed(own, flat)
        return None if is_damaged else _guessed(own, content.table())
    except InputError as error:
        own.problems, own.kind, own.command = [str(error)], "unknown", ""
        return None


def _facts_of_rows(table: Table) -> dict[str, Any]:
    return {"rows": table.height, "columns": [shown(name)[1:-1] for name in table.columns]}


def _imported(own: FileCheck, options: str = "", **how: Any) -> Table:
    """Read a file as btdagg import does, and keep the command."""
    reader = read if isinstance(how.get("columns", {}).get("criterion", ""), str) else read_grades
    imported = reader([own.source], **how)
    score = imported.frame.get_column("score", default=None)
    if score is not None and score.dtype.is_float() and score.is_between(0, 1).all():
        imported, options = read_grades([own.source], scale=10, **how), f"{options} --set scale=x10"
    if not imported.n_votes:
        raise InputError(f"{own.source}: no vote could be read: {', '.join(imported.unread)}")
    own.kind = "votes" if imported.kind in ("votes", "grades") else "labels"
    own.format, own.problems = imported.formats[0], list(imported.remarks)
    own.facts = {"missing": dict(imported.unread)}
    name = _unused("votes.parquet" if own.kind == "votes" else "labels.csv")
    own.command = f"btdagg import {shlex.quote(own.source)}{options} -o {name}"
    own.keys = {"format": own.format, **({"scale": "x10"} if "scale=x10" in options else {})}
    for name, columns in how.get("columns", {}).items():
        own.keys["criteria" if name == "criterion" and isinstance(columns, dict) else name] = (
            columns
        )
    own.keys |= {name: value for name, value in how.items() if name == "words" and value}
    return Table(imported.frame, own.source)


def _unused(name: str) -> str:
    return f"new_{name}" if os.path.exists(name) else name


def _guessed(own: FileCheck, table: Table) -> Table | None:
    """Say which columns may be which, by their names, and what their words surely mean."""
    columns = table.columns
    names = {
        ours: next((name for name in (ours, *called.split()) if name in columns), None)
        for ours, called in _CALLED.items()
    }
    if names["group"] == names["item"]:
        names["group"] = None
    if names["score"] == "value" and "name" in columns:
        names["criterion"] = "name"
    if names["system_a"] == "generator_1":  # AlpacaEval's annotators are models
        names |= {"judge": names["rater"], "rater": None}
    if not names["label"] and (names["rater"] or _OF_PEOPLE.search(os.path.basename(own.source))):
        is_judged = names["judge"] is not None
        names |= {} if is_judged else {"label": names["vote"], "vote": None}
    verdict = next((name for name in _VERDICTS if names[name]), None)
    wide = {} if verdict in ("vote", "label") or names["criterion"] else _scores_in(table)
    if len(wide) == 1:
        verdict, names["score"], wide = "score", *wide.values(), {}
    own.format, own.facts, own.problems = "table", _facts_of_rows(table), []
    if names["item"] is None or not (verdict or wide):
        if len(columns) == 1 or columns[0].startswith("<"):  # another separator, or a page
            raise InputError(f"{own.source}: no commas between values in {shown(columns[0])}")
        if names["item"] and "response" in columns:
            own.kind, own.format = "responses", "btdagg"
            return None
        missing = [] if names["item"] else ["an item"]
        missing += [] if verdict or wide else ["a vote, label or score"]
        own.problems = [f"no column is called as {' nor '.join(missing)} is"]
        names |= dict.fromkeys((n for n in ("item", verdict or "vote") if not names[n]), "...")
    is_key = not own.problems and _has_two_parts(table, names)
    if is_key is None:
        item, names["item"] = names["item"], "..."
        own.problems = ["a model may be whose response it is, or the judge"]
        own.questions["item"] = (
            f'is model whose response it is, item = ["{item}", "model"], or the judge, '
            f'item = "{item}" and judge = "model"?'
        )
    wide_columns = {"criterion": wide} if wide else {}
    other = {*_VERDICTS} - ({verdict or "vote"} if not wide else set())
    mapping = {n: c for n, c in names.items() if c not in (None, n) and n not in other}
    is_named = verdict in ("vote", "label")
    meanings = _meanings(own, table, names[str(verdict)] or "") if is_named else {}
    orders = _orders(own, table, names["order"])
    said = (("", mapping), ("criteria.", wide), ("words.", meanings), ("orders.", orders))
    options = _options(said)
    if own.problems:
        own.kind = "unknown"
        own.keys = mapping | {"words": meanings, "orders": orders, "criteria": wide}
        asked = f"{'; '.join(own.problems)}: A, B, tie or missing"
        own.questions = {"words": asked, "orders": f"{own.problems[-1]}: AB or BA", **own.questions}
        found = f"which column of {listing(columns)} is it?"
        unknown = {name: found for name, column in mapping.items() if column == "..."}
        own.questions = unknown | own.questions
        name = _unused("labels.csv" if verdict == "label" else "votes.parquet")
        own.command = f"btdagg import {shlex.quote(own.source)}{options} -o {name}"
        return None
    is_plain = (is_named and not meanings) or is_key
    if is_plain and suffix_of(own.source) != ".json":
        table = read_table(table, [], columns=mapping)
        own.kind, own.facts, own.keys = _kind_of(table), {}, mapping
        own.options = [text] if (text := _options([(f"{own.kind}.", mapping)]).strip()) else []
        return table
    return _imported(own, options, words=meanings, columns=mapping | wide_columns)


def _options(said: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return --set with keys, each after its prefix."""
    keys = ",".join(
        f"{prefix}{name}={'+'.join(value) if isinstance(value, list) else value}"
        for prefix, pairs in said
        for name, value in pairs.items()
    )
    return f" --set {shlex.quote(keys)}" if keys else ""


def _has_two_parts(table: Table, names: dict[str, Any]) -> bool | None:
    """Whether a row is told only by its item and by whose response it is; then names have both.

    None if that is a model, which may be the judge.

    The item is then the group, since what was asked is the same.
    """
    units = ("item", "criterion", "judge", "rater", "sample", "order", "system_a", "system_b")
    key = [name for unit in units if (name := names.get(unit))]
    if names["item"] is None or "response" in table.columns:
        return False
    rows = table.frame.select(key)
    if (names["sample"] is None and names["vote"]) or rows.height == rows.n_unique():
        return False
    own = [c for c in _SYSTEMS if c in table.columns and c not in key]
    own = [c for c in own if rows.height == table.frame.select(*key, c).n_unique()]
    if not own:
        return False
    if own[0] == "model" and not names["judge"] and not names["label"]:
        return None
    names["system"] = own[0]
    if "model" in table.columns and "model" not in own and not names["judge"]:
        every = [
            table.frame.select(*of).n_unique() for of in ([own[0]], ["model"], [own[0], "model"])
        ]
        names["judge"] = (
            "model" if every[0] * every[1] == every[2] else None
        )  # of all systems alike
    names["group"] = names["group"] or (names["item"] if names["item"] != "item" else None)
    names["item"] = [names["item"], own[0]]
    return True


def _scores_in(table: Table) -> dict[str, str]:
    """Return the columns that have scores, or pass and fail, by the names of their criteria."""
    criteria = {}
    for name in table.columns:
        if match := _SCORES.match(name):
            text = table.values(name).drop_nulls().str.to_lowercase()
            is_score = text.str.contains(r"^-?\d+(\.\d+)?$") | text.is_in([*PASS_WORDS])
            if len(text) and is_score.all():
                criteria[(match["name"] or match["of"] or name).rpartition(".")[2]] = name
    return criteria


def _meanings(own: FileCheck, table: Table, column: str) -> dict[str, str]:
    """Return what words of a column mean, "..." where that is not sure."""
    words = table.values(column).drop_nulls().str.to_lowercase().unique(maintain_order=True)
    own.facts["words"] = {shown(word)[1:-1]: "" for word in words[:_MOST_WORDS]}
    is_grade = words.str.contains(r"^\d+(\.\d+)?$").all() and not {*words} <= _NUMBERS
    if {*words} <= {*PASS_WORDS} or (is_grade and column in ("label", *_CALLED["label"].split())):
        return {}
    if len(words) > _MOST_WORDS and not own.problems:
        own.problems = [f"{column} has {len(words)} different values, which are no verdicts"]
        return {}
    sure = _SURELY | (_PLACES if {*words} & {"2", "2.0"} else {})
    # 0 and 1 without -1 may be the places of the responses.
    ours = _OWN | _NUMBERS if "-1" in words else _OWN
    unknown = [word for word in words if word not in ours and word not in sure]
    if unknown and not own.problems:
        own.problems = [f"the words {listing(unknown)} in {column} are not known"]
    return {word: sure.get(word, "...") for word in words if word not in ours}


def _orders(own: FileCheck, table: Table, column: str | None) -> dict[str, str]:
    """Return "..." for each word of an order that is not AB or BA."""
    words = [] if column is None else table.values(column).drop_nulls().unique().to_list()
    unknown = sorted(word for word in words if word.strip().upper() not in ("AB", "BA"))
    if not unknown or len(unknown) > _MOST_WORDS:
        return {}
    own.problems += [f"the words {listing(unknown)} in {column} are not AB or BA"]
    return dict.fromkeys(unknown, "...")


def _facts_of_votes(votes: Votes) -> dict[str, Any]:
    own = votes.signs()
    counts = np.concatenate([part.counts()[1] for _, part in _by_task(own)])
    sums, of_item = counts.sum(axis=0), counts.sum(axis=1)
    n_votes = float(sums.sum())
    facts: dict[str, Any] = {
        "items": len(votes.values("item")),
        "votes": round(n_votes),
        "votes an item": sorted({int(of_item.min()), int(of_item.max())}),
        "missing": votes.n_missing,
    }
    for column in ("judge", "task", "template", "order"):
        if column in votes.columns:
            rows = votes.collect(votes.data.lazy().select(column))[column].drop_nulls()
            numbers = rows.value_counts(sort=True)
            facts[column] = {str(name): int(number) for name, number in numbers.iter_rows()}
    if not votes.scale.mirrored and n_votes:
        facts["mean grade"] = float(sums @ votes.scale.floats) / n_votes
    elif n_votes:
        facts["ties"] = float(sums[1]) / n_votes
    return facts


def _by_task(votes: Votes) -> list[tuple[tuple[str, ...], Votes]]:
    return list(votes.partition(["task"] if "task" in votes.columns else []))


def _facts_of_labels(labels: Labels, table: Table) -> dict[str, Any]:
    values, numbers = (part.tolist() for part in np.unique(labels.labels, return_counts=True))
    names = dict(zip(labels.scale.points, labels.scale.names, strict=True))
    each = {str(names.get(value, value)): n for value, n in zip(values, numbers, strict=True)}
    facts: dict[str, Any] = {"labels": len(labels.labels)}
    of_each = "of each, by most raters" if labels.n_disputed else "of each"
    facts |= {"items without a label": labels.n_missing, of_each: each}
    if "rater" not in table.columns and labels.n_disputed:
        facts["means of raters"] = labels.n_disputed
    if labels.groups is not None:
        facts["groups"] = len({*labels.groups.tolist()})
    if "rater" in table.columns:
        number = labels.frame[RATERS].to_list() if RATERS in labels.columns else [1]
        facts["raters"] = len(table.values("rater").drop_nulls())
        facts["labels an item"] = sorted({min(number, default=0), max(number, default=0)})
        facts["items on which raters disagree"] = labels.n_disputed
    return facts


def _supports(votes: Votes | None, labels: Labels | None) -> tuple[list[str], str]:
    """Say what the labels can support, and which command does it."""
    if labels is None:
        text = "Without labels nothing says how far these votes are right; a few dozen would do."
        return ([], "") if votes is None else ([text], "choose")
    own, groups = labels.labels.astype(float), labels.groups
    texts = []
    if votes is not None:
        parts: list[Any] = []
        reason: InputError | None = None
        for key, part in _by_task(votes):
            try:
                parts.append(part.labelled(labels))
            except InputError as error:
                reason = error
                texts += [f"Nothing of {name} has a label." for name in key]
        if not parts:
            return [f"Votes and labels do not meet: {reason}."], ""
        own = np.concatenate([joined.labels.astype(float) for joined in parts])
        ids = np.concatenate([joined.ids for joined in parts])
        if groups is not None:
            groups = np.concatenate([joined.groups for joined in parts])
        elif len({*ids.tolist()}) < len(ids):  # the criteria of an item
            groups = ids
        n_items, n_all = len({*ids.tolist()}), len(votes.values("item"))
        texts.insert(0, f"{counted(n_items, 'item')} of {n_all:,} have votes and a label.")
    n_labels = len(own)
    if n_labels < _FEWEST or len(np.unique(own)) < 2:
        alike = n_labels >= _FEWEST
        why = "all labels are the same" if alike else f"{_FEWEST} are the fewest"
        texts.append(f"{counted(n_labels, 'label')}: too little to calibrate on; {why}.")
        return texts, "" if votes is None else "choose"
    what, values = "mean grade", own
    if labels.scale.mirrored:
        what, values = "win rate", (own + 1) / 2
    elif len(labels.scale.points) == 2:
        what, values = "pass rate", (own == labels.scale.points[1]).astype(float)
    spread = float(values.std(ddof=1)) / math.sqrt(n_labels)
    if groups is not None:  # which may hide how labels differ, where each has as many of a kind
        _, units = np.unique(groups, return_inverse=True)
        of_groups = np.bincount(units, values - values.mean())
        spread = max(spread, math.sqrt(float((of_groups**2).sum())) / n_labels)
    half = 1.96 * spread
    texts.append(
        f"{counted(n_labels, 'label')} alone tell the {what} to ± {half:.2f}, with the votes of "
        "the other items more closely. They are enough to calibrate on."
    )
    for column in {"system", "task"} & {*labels.columns}:
        numbers = labels.frame[column].value_counts().iter_rows()
        if few := sorted(str(name) for name, number in numbers if number < _FEWEST):
            texts.append(f"Fewer than {_FEWEST} labels are of {listing(few)}.")
    if labels.scale.mirrored:
        estimates = None if votes is None else _estimated(votes, labels)
        texts.append(_of_a_gate(estimates, spread, n_labels))
    if votes is None:
        return [
            *texts,
            "The next thing is a judge's votes of these items: name their file too.",
        ], ""
    return texts, "estimate" if n_labels < 2 * _FEWEST else "evaluate"


def _estimated(votes: Votes, labels: Labels) -> Estimates | None:
    """Estimate the net win rate as a gate does; None where A and B are many systems."""
    if votes.sides == UNNAMED and {"system_a", "system_b"} <= {*votes.columns}:
        return None
    with suppress(InputError):
        return estimate(votes, labels, level=_LEVEL)
    return None


def _of_a_gate(estimates: Estimates | None, spread: float, n_labels: int) -> str:
    """Say what passes a gate: by an estimate, or by how much the labels alone vary."""
    gate = f"a gate with a margin of {_MARGIN} passes where the net win rate comes out above"
    if estimates is None:  # twice the spread of the win rate is that of A less B
        needed = math.ceil((2 * spread * _REACH / _MARGIN) ** 2 * n_labels)
        least = 2 * _ONE_SIDED * spread - _MARGIN
        takes = f"it takes about {needed:,} labels"
        return f"By them alone {gate} {least:+.2f}; if A and B are equally good {takes}."
    net = estimates.estimates[estimates.main]
    wanted = estimates.labels_for(2 * _MARGIN * _ONE_SIDED / _REACH)
    takes = "even labels of all items would be too few"
    takes = takes if wanted is None else f"it takes about {wanted:,} labels"
    first, second = estimates.sides
    passing = [name for name, low in ((first, net.low), (second, -net.high)) if low > -_MARGIN]
    return (
        f"With the votes {gate} {net.value - net.low - _MARGIN:+.2f}. That of {first} is "
        f"{net.value:+.2f}: {' and '.join(passing) or f'neither {first} nor {second}'} would pass. "
        f"If they are equally good {takes}."
    )


def _next(checks: Sequence[FileCheck], verb: str, where: str = "") -> str:
    """Return the command that follows, if nothing is to be mended before."""
    if any(own.kind == "unknown" or (own.problems and not own.command) for own in checks):
        return ""
    foreign = next((own for own in checks if own.command), None)
    if foreign is not None:
        return foreign.command
    places = {own.kind: own for own in reversed(checks)}
    paths = {kind: shlex.quote(own.source) for kind, own in places.items()}
    if verb:
        own = places["votes"]
        options = own.options if verb == "choose" else [*own.options, *places["labels"].options]
        told = "".join(f" {option}" for option in dict.fromkeys(options))
        if verb == "choose":
            n_items = min(50, own.facts["items"])
            output = _unused("to_label.csv")
            return f"btdagg choose {paths['votes']} --items {n_items} -o {output}{told}"
        return f"btdagg {verb} {paths['votes']} {paths['labels']}{told}{where}"
    if "pairs" in paths:
        return f"btdagg judge {paths['pairs']} --model simulated -n 8 --store votes.db"
    return ""


def _sentence(name: str, value: Any) -> str:
    """Write a fact."""
    if name in ("items", "labels", "groups", "raters", "rows", "votes"):
        return counted(value, name.removesuffix("s"))
    if " an item" in name:
        return f"{' to '.join(map(str, value))} {name.replace('s ', ' ' if value == [1] else 's ')}"
    if name == "missing":
        total = sum(value.values()) if isinstance(value, dict) else value
        return f"{total:,} missing" if total else ""
    if isinstance(value, float):
        return f"{name} {value:.0%}" if name == "ties" else f"{name} {value:.2f}"
    if isinstance(value, dict):
        parts = [f"{text} {number:,}" if number != "" else text for text, number in value.items()]
        return f"{name}: {', '.join(parts[:5])}{' ...' if len(parts) > 5 else ''}"
    if isinstance(value, list):
        return f"{name} {listing(value)}"
    return f"{value:,} {name}" if value or "raters" in name else ""
