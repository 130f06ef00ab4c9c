"""Kind of a file, how it is read, and its part of a project file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from btdagg._util.errors import InputError, forbid, shown
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import is_number
from btdagg._util.wording import counted, in_lines
from btdagg.formats import read, read_grades
from btdagg.formats.content import Content
from btdagg.formats.nested import flat_table
from btdagg.formats.reading import recognized
from btdagg.formats.results import FEEDBACK
from btdagg.project import OPEN, is_column
from btdagg.votes import Table, read_table
from btdagg.votes.grades import scale_of_columns
from btdagg.votes.scale import PASS_FAIL
from btdagg.votes.schema import ITEM_NAMES, LABEL_COLUMNS, VOTE_COLUMNS
from btdagg.votes.source import STANDARD_INPUT, suffix_of
from btdagg.votes.table import listing
from btdagg.votes.verdicts import NAMES_OF_SYSTEMS, are_guessed
from btdagg.votes.words import PASS_WORDS, USUAL_WORDS, word_of

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
    "order": "position shown_first first_shown presentation swapped flipped reversed",
    "sample": "run repeat trial attempt iteration seed",
    "group": "prompt_id cluster source_id",
    "criterion": "aspect dimension rubric_item annotation_name metric",
    "system_a": "generator_1 model_a model_1",
    "system_b": "generator_2 model_b model_2",
}
# Columns that may be a part of the key of items: whose response it is.
_SYSTEMS = ("system", "bot", "chatbot", "assistant", "system_name", "variant", "model")
# Columns of which each has the scores by a criterion.
_SCORES = re.compile(
    r"^(?:feedback|(?:output\.)?scores|metrics)[./](?P<name>[^,=]+)"
    r"|^(?P<of>[^,=]+)(?:[./_ ]score|[./]value)$"
    r"|^(?:faithfulness|factuality|helpfulness|noise_sensitivity"
    r"|\w*(?:relevancy|relevance|correctness|precision|recall|similarity))$"
)
_TURNED = re.compile("swap|flip|revers|switch|invert")  # in the name of a column of orders
_PLACES = {"1": "A", "1.5": "tie", "2": "B"}  # of AlpacaEval, whose columns are known
# Words that need no meaning, numbers where there is a -1.
_OWN, _NUMBERS = {"a", "b", "tie", "same"}, {"-1", "0", "1"}
_VERDICTS = ("vote", "score", "label")
_OF_PEOPLE = re.compile("label|human|gold|annotat|rating", re.IGNORECASE)  # in a file's name
_MEANINGS = "A, B, tie or missing"
TYPED = {
    "columns": "--set ",
    "words": "--set words.",
    "order": "--set orders.",
    "scale": "--set votes.scale=",
    "label_scale": "--set labels.scale=",
    "where": "--filter ",
}
"""Options of the commands that follow, by the argument that an error advises."""
_IMPORTED = ("", "format", "turn")  # of which btdagg import writes the last two
_LONGEST = 40  # characters of a word
_MANY = 1000  # columns
_MOST_WORDS = 8  # different ones, in a column of verdicts


def as_toml(value: object) -> str:
    """Write a text, a list or a number as TOML has it."""
    return json.dumps(value, ensure_ascii=False)


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)


@readable
@dataclass
class FileCheck:
    """The content of a file: `kind` (votes, labels, pairs, responses or unknown) and `format`."""

    # `command` imports it, with "..." for what only the user knows; `keys` are those of its table
    # in a project file. `missing` has what to fill in, by the key, or the table, that is open.

    source: str
    kind: str = "unknown"
    format: str = "btdagg"
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    command: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The table of a project file that is its checked."""
        if self.kind == "unknown":
            return "labels" if self.command.endswith("labels.csv") else "votes"
        return {"responses": "pairs"}.get(self.kind, self.kind)

    @property
    def open_keys(self) -> dict[str, str]:
        """What to fill in, by the key of the project file that only the user knows."""
        paths = {}
        for name, value in self.keys.items():
            is_table = isinstance(value, dict)
            pairs = (
                {f"{name}.{key}": own for key, own in value.items()} if is_table else {name: value}
            )
            for path, own in pairs.items():
                if own == OPEN or path in self.missing:
                    paths[path] = self.missing.get(path) or self.missing.get(name, "its column")
        return paths

    @property
    def lines(self) -> list[str]:
        """The table of a project file; `OPEN` stands for what only the user knows."""
        lines = ["", f"[{self.table}]", f"file = {as_toml(self.source)}"]
        # Tables within a table come after its keys.
        for name, value in sorted(self.keys.items(), key=lambda key: isinstance(key[1], dict)):
            if isinstance(value, dict):
                lines += [f"[{self.table}.{name}]"] * bool(value)
                lines += (self._line(f"{name}.{key}", key, own) for key, own in value.items())
            else:
                lines.append(self._line(name, name, value))
        return lines

    def _line(self, path: str, name: str, value: object) -> str:
        return f"{_bare(name)} = {as_toml(OPEN if path in self.open_keys else value)}"

    def __str__(self) -> str:
        facts = [text for name, value in self.facts.items() if (text := _sentence(name, value))]
        what = f"{self.kind}{'' if self.format == 'btdagg' else f' in the format {self.format}'}"
        what = what.replace("unknown in the format table", "a table").replace("unknown in", "in")
        lines = [f"{self.source}: {'; '.join([what, *facts])}."]
        lines += (f"  wrong: {problem}" for problem in self.problems)
        return in_lines([*lines, *(f"  {remark}" for remark in self.remarks)])


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
    return "unknown" if scale_of_columns(table) is None else "votes"


def table_of(checked: FileCheck, *, with_grades: bool = False) -> Table | None:
    """Read a file as one of ours, of another tool, or of a stranger.

    Labels of 0 and 1 are of grades where other files have grades, and else an open question.
    """
    files: Any = checked.source
    with suppress(InputError):
        files = files if os.path.isdir(files) else Content(files)
        is_piped = checked.source == STANDARD_INPUT
        table = files.table() if is_piped else read_table(checked.source, [])
        checked.kind = _kind_of(table)
        is_graded = with_grades and checked.kind == "labels"
        if checked.kind in ("votes", "labels") and not is_graded and _is_open(table):
            return _guessed(checked, files, table)
        names: dict[str, Any] = {n: n if n in table.columns else None for n in _CALLED}
        if checked.kind in ("votes", "labels") and _has_two_parts(table, names):
            columns = {"item": ["item", *names["item"][1:]]}
            checked.keys = columns
            checked.options = [f"--set {checked.kind}.item={'+'.join(columns['item'])}"]
            checked.remarks = _not_used(table, columns, _verdict_in(table, checked.kind))
            return read_table(table, [], columns=columns)
        if checked.kind != "unknown":
            checked.facts = _facts_of_rows(table) if checked.kind == "pairs" else {}
            verdict = _verdict_in(table, checked.kind)
            checked.remarks = [] if checked.kind == "pairs" else _not_used(table, {}, verdict)
            return table
    try:
        return _imported(checked, files)
    except InputError as error:
        checked.problems, is_damaged = [error.in_options(TYPED.get)], error.argument != "columns"
        words: Any = error.advice.get("words")
        if error.advice.get("scale") == PASS_FAIL and recognized(files) == "inspect":
            table = _imported(checked, files, " --set scale=pass/fail", scale=PASS_FAIL)
            checked.keys["scale"] = "pass/fail"
            return table
    try:
        if not isinstance(files, Content):
            return None
        if (flat := flat_table(files)) is not None:
            return _guessed(checked, files, flat)
        if words:
            checked.format = recognized(files) or "table"
            checked.keys, checked.missing = (
                {"format": checked.format, "words": words},
                {"words": _MEANINGS},
            )
            options = f"{_options([('words.', words)])} -o {unused('votes.parquet')}"
            checked.command = f"btdagg import {shlex.quote(checked.source)}{options}"
        return None if is_damaged else _guessed(checked, files, files.table())
    except InputError as error:
        checked.problems, checked.kind, checked.command = (
            [error.in_options(TYPED.get)],
            "unknown",
            "",
        )
        return None


def _facts_of_rows(table: Table) -> dict[str, Any]:
    return {"rows": table.height, "columns": [shown(name)[1:-1] for name in table.columns]}


def _imported(check: FileCheck, files: Any, options: str = "", **how: Any) -> Table:
    is_wide = not isinstance(how.get("columns", {}).get("criterion", ""), str)
    reader = read_grades if is_wide or "scale" in how else read
    imported = reader(files, **how)
    score = imported.frame.get_column("score", default=None)
    if (
        "scale" not in how
        and score is not None
        and score.dtype.is_float()
        and score.is_between(0, 1).all()
    ):
        imported, options = read_grades(files, scale=10, **how), f"{options} --set scale=x10"
    forbid(
        not imported.n_votes,
        f"{check.source}: no vote could be read; reasons: {', '.join(imported.unread)}",
    )
    check.kind = "votes" if imported.kind in ("votes", "grades") else "labels"
    check.format, check.problems = imported.formats[0], []
    check.remarks = [*imported.remarks, *check.remarks]
    check.facts = {"missing": dict(imported.unread)}
    check.facts |= {"left out:": [*imported.left_out]} if imported.left_out else {}
    name = unused("votes.parquet" if check.kind == "votes" else "labels.csv")
    check.command = f"btdagg import {shlex.quote(check.source)}{options} -o {name}"
    check.keys = {"format": check.format, **({"scale": "x10"} if "scale=x10" in options else {})}
    for name, columns in how.get("columns", {}).items():
        check.keys["criteria" if name == "criterion" and isinstance(columns, dict) else name] = (
            columns
        )
    check.keys |= {name: value for name, value in how.items() if name == "words" and value}
    return Table(imported.frame, check.source)


def unused(name: str) -> str:
    """Return a name that no file has."""
    return f"new_{name}" if os.path.exists(name) else name


def _guessed(check: FileCheck, files: Content, table: Table) -> Table | None:
    columns = table.columns
    names = {
        ours: next((name for name in (ours, *called.split()) if name in columns), None)
        for ours, called in _CALLED.items()
    }
    if names["group"] == names["item"]:
        names["group"] = None
    if not (names["system_a"] and names["system_b"]):
        names |= {"system_a": None, "system_b": None}
    names["order"] = names["order"] or _turned(table)
    if check.kind == "labels":  # as our columns say
        names |= {"vote": None, "score": None}
    if names["score"] == "value" and "name" in columns:
        names["criterion"] = "name"
    if names["system_a"] == "generator_1":  # AlpacaEval's annotators are models
        names |= {"judge": names["rater"], "rater": None}
    if not names["label"] and (names["rater"] or _OF_PEOPLE.search(os.path.basename(check.source))):
        is_judged = names["judge"] is not None
        names |= {} if is_judged else {"label": names["vote"], "vote": None}
    verdict = next((name for name in _VERDICTS if names[name]), None)
    wide = {} if verdict in ("vote", "label") or names["criterion"] else _scores_in(table)
    if len(wide) == 1:
        verdict, names["score"], wide = "score", *wide.values(), {}
    check.format, check.facts, check.problems = "table", _facts_of_rows(table), []
    words = _words_beside(table, names, wide) if verdict == "score" or wide else []
    if words:
        scores = listing(wide.values() if wide else [str(names["score"])])
        check.problems = [
            f"{scores} has one number where {listing(words)} has several words, or a number for "
            f"each; which column has the verdicts? If it is {words[0]}: --set vote={words[0]}"
        ]
        verdict, wide = "score", {}
        names[verdict] = "..."
    if names["item"] is None or not (verdict or wide):
        if len(columns) == 1 or columns[0].startswith("<"):  # another separator, or a page
            raise InputError(f"{check.source}: no commas between values in {shown(columns[0])}")
        if names["item"] and "response" in columns:
            check.kind, check.format = "responses", "btdagg"
            return None
        missing = [] if names["item"] else ["an item"]
        missing += [] if verdict or wide else ["a vote, label or score"]
        check.problems = [f"no column is named like {' or '.join(missing)}"]
        names |= dict.fromkeys((n for n in ("item", verdict or "vote") if not names[n]), "...")
    is_key = not check.problems and _has_two_parts(table, names)
    if is_key is None:
        item, names["item"] = names["item"], "..."
        check.problems = ["the model may be the author of the response, or the judge"]
        check.missing["item"] = (
            f'is model the author of the response (item = ["{item}", "model"]) or the judge '
            f'(item = "{item}" and judge = "model")?'
        )
    wide_columns = {"criterion": wide} if wide else {}
    other = {*_VERDICTS} - ({verdict or "vote"} if not wide else set())
    mapping = {n: c for n, c in names.items() if c not in (None, n) and n not in other}
    is_named = verdict in ("vote", "label")
    meanings = _meanings(check, table, names, str(verdict)) if is_named else {}
    orders = _orders(check, table, names["order"])
    said = (("", mapping), ("criteria.", wide), ("words.", meanings), ("orders.", orders))
    options = _options(said)
    if check.problems:
        check.kind = "unknown"
        check.keys = mapping | {"words": meanings, "orders": orders, "criteria": wide}
        asked = f"{'; '.join(check.problems)}: {_MEANINGS}"
        found = f"which column of {listing(columns)} is it?"
        unknown = {name: found for name, column in mapping.items() if column == OPEN}
        orders_asked = f"{check.problems[-1]}: AB or BA"
        check.missing = unknown | {"words": asked, "orders": orders_asked} | check.missing
        name = unused("labels.csv" if verdict == "label" else "votes.parquet")
        check.command = f"btdagg import {shlex.quote(check.source)}{options} -o {name}"
        return None
    check.remarks = _not_used(table, mapping | wide, str(verdict))
    is_plain = (is_named and not meanings) or is_key
    if is_plain and suffix_of(check.source) != ".json":
        table = read_table(table, [], columns=mapping)
        check.kind, check.facts, check.keys = _kind_of(table), {}, mapping
        check.options = [text] if (text := _options([(f"{check.kind}.", mapping)]).strip()) else []
        return table
    return _imported(check, files, options, words=meanings, columns=mapping | wide_columns)


def _options(said: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    keys = ",".join(
        f"{prefix}{_key(name)}={'+'.join(value) if isinstance(value, list) else value}"
        for prefix, pairs in said
        for name, value in pairs.items()
    )
    return f" --set {shlex.quote(keys)}" if keys else ""


def _key(name: str) -> str:
    return name if re.fullmatch(r"[^,=\"]+", name) else f'"{name}"'


def _has_two_parts(table: Table, names: dict[str, Any]) -> bool | None:
    # None if the column names a model, which may be the judge. The item is then the group.
    units = ("item", "criterion", "judge", "rater", "sample", "order", "system_a", "system_b")
    key = [name for unit in units if (name := names.get(unit))]
    if names["item"] is None or "response" in table.columns:
        return False
    rows = table.frame.select(key)
    if (names["sample"] is None and names["vote"]) or rows.height == rows.n_unique():
        return False
    systems = [c for c in _SYSTEMS if c in table.columns and c not in key]
    systems = [c for c in systems if rows.height == table.frame.select(*key, c).n_unique()]
    if not systems:
        return False
    if systems[0] == "model" and not names["judge"] and not names["label"]:
        return None
    names["system"] = systems[0]
    if "model" in table.columns and "model" not in systems and not names["judge"]:
        every = [
            table.frame.select(*of).n_unique()
            for of in ([systems[0]], ["model"], [systems[0], "model"])
        ]
        names["judge"] = (
            "model" if every[0] * every[1] == every[2] else None
        )  # of all systems alike
    names["group"] = names["group"] or (names["item"] if names["item"] != "item" else None)
    names["item"] = [names["item"], systems[0]]
    return True


def _scores_in(table: Table) -> dict[str, str]:
    criteria = {}
    for name in table.columns:
        if match := _SCORES.match(name):
            text = table.values(name).drop_nulls().str.to_lowercase()
            is_score = text.str.contains(r"^-?\d+(\.\d+)?$") | text.is_in([*PASS_WORDS])
            if len(text) and is_score.all():
                criteria[(match["name"] or match["of"] or name).rpartition(".")[2]] = name
    return criteria


def _meanings(
    check: FileCheck, table: Table, names: Mapping[str, Any], verdict: str
) -> dict[str, str]:
    column = str(names[verdict])
    words = table.values(column).drop_nulls().str.strip_chars().str.to_lowercase()
    both = [names[name] for name in ("system_a", "system_b") if names[name]]
    systems = {word for name in both for word in _texts(table, name)}
    words = words.unique(maintain_order=True)
    words = words.filter(~words.is_in([*systems]))
    check.facts["words"] = {shown(word)[1:-1]: "" for word in words[:_MOST_WORDS]}
    plain = {*map(word_of, words)}
    is_grade = words.str.contains(r"^\d+(\.\d+)?$").all() and not plain <= _NUMBERS
    is_grade &= plain != {"1", "2"}  # which may be places
    if {*words} <= {*PASS_WORDS} or (is_grade and column in ("label", *_CALLED["label"].split())):
        return {}
    if len(words) > _MOST_WORDS and not check.problems:
        check.problems = [f"{column} has {len(words)} different values, too many for verdicts"]
        return {}
    numbers = {word for word in plain if is_number(word)}
    # 0 and 1 without -1 may be the places of the responses; on a scale from -2 to 2 who knows.
    ours = _OWN | (_NUMBERS if "-1" in plain and numbers <= _NUMBERS else set())
    open_words = [word for word in words if word_of(word) not in ours]
    sure = USUAL_WORDS | (_PLACES if names["system_a"] == "generator_1" else {})
    unknown = [word for word in open_words if word_of(word) not in sure]
    if unknown and not check.problems:
        kind = "labels" if verdict == "label" else "votes"
        hint = ""
        if plain <= {"0", "1"}:
            hint = f"; if they are fail and pass, state it: --set {kind}.scale=pass/fail"
        elif any(word.startswith("-") for word in numbers):
            hint = "; if positive numbers say how far A is ahead, name the column margin"
        elif not both and not numbers and {*map(sure.get, plain)} <= {None, "tie", "missing"}:
            hint = NAMES_OF_SYSTEMS
        check.problems = [f"unknown words {listing(unknown)} in {column}{hint}"]
    return {word: sure.get(word_of(word), "...") for word in open_words}


def _texts(table: Table, column: str) -> set[str]:
    return {text.strip().lower() for text in table.values(column).drop_nulls()}


def _turned(table: Table) -> str | None:
    """Return a column that may say which responses were shown in the other order."""
    names = (name for name in table.columns if _TURNED.search(name))
    return next((name for name in names if 0 < len(_texts(table, name)) <= 2), None)


def _words_beside(table: Table, names: Mapping[str, Any], wide: Mapping[str, str]) -> list[str]:
    """Return columns of several words where a score has one number, or a number for each word."""
    used = {column for name, column in names.items() if name not in ("vote", "label")}
    used |= {*wide.values(), *_SYSTEMS}
    worded = [
        name for name in table.columns if name not in used and _are_words(_texts(table, name))
    ]
    parts = table.partition([names["criterion"]]) if names["criterion"] and not wide else []
    beside: list[str] = []
    for _, part in parts or [((), table)]:
        for score in wide.values() or [names["score"]]:
            stem = re.sub("[./_ ]?(score|value)$", "", score) if wide else ""
            of_score = [name for name in worded if name.startswith(stem)]
            is_constant = len(_texts(part, score) - {""}) < 2
            beside += [
                name
                for name in of_score
                if len(_texts(part, name) - {""}) > 1
                and (is_constant or _is_code(part, score, name))
            ]
    return [*dict.fromkeys(beside)]


def _are_words(texts: set[str]) -> bool:
    texts = texts - {""}
    are_few = 1 < len(texts) <= _MOST_WORDS and max(map(len, texts)) <= _LONGEST
    return are_few and not all(map(is_number, texts))


def _is_code(table: Table, score: str, words: str) -> bool:
    """Whether each number stands for one word of pairs, and each word for one number."""
    if not {*_texts(table, words)} - {""} <= {*USUAL_WORDS, *_OWN}:
        return False
    pairs = table.frame.select(score, words).drop_nulls().unique()
    return pairs.height == pairs[score].n_unique() == pairs[words].n_unique()


def _is_open(table: Table) -> bool:
    """Whether a table with our columns leaves open what they mean."""
    columns = {*table.columns}
    verdict = next((name for name in ("vote", "label") if name in columns), None)
    if verdict is not None and are_guessed(table, verdict):
        return True
    of_orders = columns.intersection(_CALLED["order"].split())
    if "order" not in columns and (of_orders or _turned(table)):
        return True
    names = {name: name if name in columns else None for name in _CALLED}
    return verdict is None and "score" in columns and bool(_words_beside(table, names, {}))


def _verdict_in(table: Table, kind: str) -> str:
    names = LABEL_COLUMNS if kind == "labels" else VOTE_COLUMNS
    return next((name for name in names if name in table.columns), "vote")


def _not_used(table: Table, named: Mapping[str, Any], verdict: str) -> list[str]:
    """Name the columns that are left out, those with numbers first."""
    used = {part for column in named.values() for part in ([column], column)[type(column) is list]}
    used |= {*ITEM_NAMES} if {"item"}.isdisjoint({*table.columns, *named}) else set()
    others = {*_VERDICTS, "grade"} - {verdict}
    unused = [
        name
        for name in table.columns
        if name not in {*used, *_IMPORTED} and (name in others or not is_column(name))
    ]
    are_numbers = {
        name for name in unused[:_MANY] if all(map(is_number, _texts(table, name) - {""}))
    }
    unused.sort(key=lambda name: name not in are_numbers)
    return [f"not used: {listing(unused)}"] * bool(unused)


def _orders(check: FileCheck, table: Table, column: str | None) -> dict[str, str]:
    words = [] if column is None else table.values(column).drop_nulls().unique().to_list()
    unknown = sorted(word for word in words if word.strip().upper() not in ("AB", "BA"))
    if not unknown or len(unknown) > _MOST_WORDS:
        return {}
    check.problems += [
        f"the words {listing(unknown)} in {column} are not AB or BA; if A is who was shown first, "
        "also set words.a=first,words.b=second"
    ]
    return dict.fromkeys(unknown, "...")


def _sentence(name: str, value: Any) -> str:
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
