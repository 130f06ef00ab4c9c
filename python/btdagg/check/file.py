"""What a file is, the keys of a project file that read it, and what only its user knows."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from btdagg._util.errors import InputError, forbid, quoted, shown
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import is_number
from btdagg._util.wording import counted, in_lines
from btdagg.formats.content import Content
from btdagg.formats.nested import flat_table
from btdagg.formats.reading import recognized
from btdagg.formats.results import FEEDBACK
from btdagg.project import OPEN, TABLES, Project, is_column, parts_of
from btdagg.votes import Table, read_table
from btdagg.votes.grades import scale_of_columns
from btdagg.votes.scale import PASS_FAIL
from btdagg.votes.schema import ITEM_NAMES, LABEL_COLUMNS, VOTE_COLUMNS
from btdagg.votes.source import STANDARD_INPUT, suffix_of, with_item
from btdagg.votes.table import NUMBER, as_text, listing, plain_text
from btdagg.votes.verdicts import NAMES_OF_SYSTEMS, are_guessed
from btdagg.votes.words import PAIR_WORDS, PASS_WORDS, USUAL_WORDS, word_of

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
    "order": "position shown_first first_shown shown shown_order presentation swapped flipped "
    "reversed",
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
_OWN, _NUMBERS = {*PAIR_WORDS}, {"-1", "0", "1"}
_VERDICTS = ("vote", "score", "label")
_OF_PEOPLE = re.compile(
    "label|human|gold|annotat|rating|people|expert", re.IGNORECASE
)  # in a file's name
_SETTINGS = ("a", "b", "strength")  # called like columns, above the tables
_UNITS = ("item", "criterion", "judge", "rater", "sample", "order", "system_a", "system_b")
IMPORTED = ("format", "criteria", "judges")  # keys of files that no command reads as they are
_SHARED = ("words", "orders", "scale", "constants", "scorer", *IMPORTED)
_COLUMNS = {
    "item": "--set item=COLUMN",
    "vote": "--set votes.vote=COLUMN, --set votes.score=COLUMN or --set labels.label=COLUMN",
    "label": "--set labels.label=COLUMN",
}
_MEANINGS = "A, B, tie or missing"
ANSWERS = {"words": _MEANINGS, "orders": "AB or BA"}
"""What is filled in, by the key."""
TYPED = {
    "columns": "--set ",
    "words": "--set words.",
    "order": "--set orders.",
    "scale": "--set votes.scale=",
    "label_scale": "--set labels.scale=",
    "where": "--filter ",
}
"""Options of the commands that follow, by the argument that an error advises."""
_LONGEST = 40  # characters of a word
_MANY = 1000  # columns
_MOST_WORDS = 8  # different ones, in a column of verdicts
_MOST_ROWS = 1.5  # rows of an item, in a table of items with faults


def as_toml(value: object) -> str:
    """Write a text, a list or a number as TOML has it."""
    return json.dumps(value, ensure_ascii=False)


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)


def table_lines(name: str, keys: Mapping[str, Any]) -> list[str]:
    """Write a table of a project file; tables within it come after its keys."""
    lines = [f"[{name}]"]
    lines += [f"{_bare(n)} = {as_toml(v)}" for n, v in keys.items() if not isinstance(v, dict)]
    for inner, value in keys.items():
        lines += (
            table_lines(f"{name}.{_bare(inner)}", value) if type(value) is dict and value else []
        )
    return lines


def _stays(place: str, folder: str) -> bool:
    return not folder or os.path.isabs(place) or "://" in place or place == STANDARD_INPUT


def as_options(keys: Mapping[str, Any], prefix: str = "") -> str:
    """Write keys of a table as ``--set``; of a key that is open, or of several columns, too."""

    def typed(pairs: Mapping[str, Any], outer: str) -> Iterable[str]:
        for name, value in pairs.items():
            if isinstance(value, dict):
                yield from typed(value, f"{outer}{name}.")
                continue
            text = "+".join(value) if isinstance(value, list) else str(value)
            yield f"{outer}{quoted(name)}={text}"

    said = ",".join(typed(keys, prefix))
    return f"--set {shlex.quote(said)}" if said else ""


def unused(name: str) -> str:
    """Return a name that no file has."""
    return f"new_{name}" if os.path.exists(name) else name


@readable
@dataclass
class FileCheck:
    """The content of a file: `kind` (votes, labels, items, pairs, responses, unknown), `format`.

    `keys` are those of its table in a project file, `missing` the questions that stay open, by
    key; `command` imports the file, or checks it with an answer to each question.
    """

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
    place: Any = field(default=None, repr=False)

    @property
    def table(self) -> str:
        """The table of a project file that reads it."""
        return {"responses": "pairs", "unknown": "votes"}.get(self.kind, self.kind)

    @property
    def asks_for_0_and_1(self) -> bool:
        """Whether only the meaning of 0 and 1 as labels is open."""
        words = self.open_keys.get("words", {})
        is_only = {*self.open_keys} == {"words"} and {*map(word_of, words)} <= {"0", "1"}
        return self.kind == "labels" and is_only

    @property
    def open_keys(self) -> dict[str, Any]:
        """Keys without which the file cannot be read, whose value only the user knows."""
        inner = {n: {w: OPEN for w in own if own[w] == OPEN} for n, own in self._tables()}
        columns = {name: value for name, value in self.keys.items() if value == OPEN}
        return columns | {name: words for name, words in inner.items() if words}

    def lines(self, folder: str = "") -> list[str]:
        """The table of a project file in a folder; `OPEN` stands for what only the user knows."""
        places = self.place if isinstance(self.place, list) else [self.source]
        moved = [p if _stays(p, folder) else os.path.relpath(p, folder) for p in places]
        keys: dict[str, Any] = {"file": moved if isinstance(self.place, list) else moved[0]}
        for name, value in self.keys.items():
            keys[name] = OPEN if name in self.missing else value
            if isinstance(value, dict):
                keys[name] = {
                    key: OPEN if f"{name}.{key}" in self.missing else own
                    for key, own in value.items()
                }
        return ["", *table_lines(self.table, keys)]

    def ask(self, path: str, problem: str, question: str) -> None:
        """Note what is wrong, and the key whose value mends it."""
        self.problems += [] if problem in self.problems else [problem]
        outer, _, name = path.partition(".")
        if name:
            self.keys.setdefault(outer, {})[name] = OPEN
        else:
            self.keys[path] = OPEN
        self.missing[path] = question

    def asks_for_labels(self) -> None:
        """Ask for the column of labels in place of votes, which another file has."""
        self.kind, self.keys["label"] = "labels", self.keys.pop("vote")
        self.missing["label"] = self.missing.pop("vote")

    def note(self, findings: Iterable[tuple[str, bool]], part: str = "") -> None:
        """Add sentences on a part, such as a criterion: problems where true, else remarks."""
        for text, is_wrong in findings:
            (self.problems if is_wrong else self.remarks).append(
                f"{part}: {text}" if part else text
            )

    def _tables(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, value) for name, value in self.keys.items() if isinstance(value, dict)]

    def __str__(self) -> str:
        facts = [text for name, value in self.facts.items() if (text := _sentence(name, value))]
        what = f"{self.kind}{'' if self.format == 'btdagg' else f' in the format {self.format}'}"
        what = what.replace("unknown in the format table", "a table").replace("unknown in", "in")
        lines = [f"{self.source}: {'; '.join([what, *facts])}."]
        lines += (f"  wrong: {problem}" for problem in self.problems)
        return in_lines([*lines, *(f"  {remark}" for remark in self.remarks)])


def _kind_of(columns: set[str], table: Table) -> str:
    if not columns & {"item", *ITEM_NAMES} or columns >= FEEDBACK:  # of which ids are no items
        return "unknown"
    if {"a", "b"} <= columns or {"response_a", "response_b"} <= columns:
        return "pairs"
    if columns & {"label", "grade"} and not columns & {"vote", "score", "minus"}:
        return "labels"
    if columns & {"vote", "score", "margin", "minus"} or {"p_minus", "p_tie"} <= columns:
        return "labels" if "rater" in columns and "judge" not in columns else "votes"
    return "unknown" if scale_of_columns(table) is None else "votes"


def opened(place: Any, project: Project, kind: str | None = None) -> tuple[FileCheck, Table | None]:
    """Read a file as one of ours, of another tool, or of a stranger; say what keeps it closed."""
    file = FileCheck(place if isinstance(place, str) else listing(place), place=place)
    try:
        return file, _opened(file, place, project, kind)
    except InputError as error:
        file.problems.append(error.in_options(TYPED.get))
        return file, None


def _opened(file: FileCheck, place: Any, project: Project, kind: str | None) -> Table | None:
    is_folder = not isinstance(place, str) or os.path.isdir(place)
    content: Any = place if is_folder else Content(place)
    table: Table | None = None
    with suppress(InputError):
        table = content.table() if place == STANDARD_INPUT else read_table(place, [])
    if table is not None:
        kind = kind or _said_kind(project, {*table.columns})
    keys = _said(project, kind or "votes", table)
    if table is not None and {*keys}.isdisjoint(IMPORTED):
        own = _kind_of({*table.columns}, table)
        if kind == "items" or "pairs" in (kind, own):
            file.kind = kind or own
            file.keys = _said(project, file.kind, table)
            file.facts = _facts_of_rows(table) if file.kind == "pairs" else {}
            return table_of(file, table, project)
        file.kind = (kind or own) if own != "unknown" else own
        if own != "unknown" or any(map(is_column, keys)):
            return _named(file, content, table, project, kind)
    try:
        return _imported(file, content, keys)
    except InputError as error:
        refusal = error
        if error.advice.get("scale") == PASS_FAIL and recognized(content) == "inspect":
            return _imported(file, content, keys | {"scale": "pass/fail"})
    flat = flat_table(content) if isinstance(content, Content) else None
    if flat is not None or (refusal.argument == "columns" and isinstance(content, Content)):
        return _named(file, content, flat or content.table(), project, kind)
    words: Any = refusal.advice.get("words")
    if not words:
        raise refusal
    file.format = recognized(content) or "table"
    file.keys = {"format": file.format, **keys}
    for word in words:
        file.ask(f"words.{word}", refusal.in_options(TYPED.get), _MEANINGS)
    return None


def _said_kind(project: Project, columns: set[str]) -> str | None:
    """Return whose table's columns, a verdict among them, a file has."""
    for kind in TABLES[:2]:
        names = {n: c for n, c in project.keys.get(kind, {}).items() if is_column(n) and c != OPEN}
        if {*names} & {*_VERDICTS} and all({*parts_of(c)} <= columns for c in names.values()):
            return kind
    return None


def _said(project: Project, kind: str | None, table: Table | None) -> dict[str, Any]:
    """Return the keys that a project has for a file, of all tables and of its own."""
    columns = None if table is None else {*table.columns}
    shared = {
        name: value
        for name, value in project.keys.items()
        if is_of_tables(name, value)
        if name in _SHARED or columns is None or {*parts_of(value)} <= columns
    }
    own = project.keys.get(kind, {}) if kind else {}
    keys: dict[str, Any] = {}
    for name, value in (*shared.items(), *own.items()):
        if isinstance(value, dict):
            words = {word: meaning for word, meaning in value.items() if meaning != OPEN}
            keys[name] = keys.get(name, {}) | words
        elif value != OPEN and name != "file":
            keys[name] = value
    return keys


def is_of_tables(name: str, value: object) -> bool:
    """Whether a key above the tables of a project says how tables are read."""
    is_name = is_column(name) and name not in _SETTINGS and not isinstance(value, dict)
    return is_name or name in _SHARED


def table_of(file: FileCheck, table: Table, project: Project) -> Table:
    """Return a table with its columns by our names, as commands read it."""
    keys = {file.table: file.keys}
    return Project(keys, project.path, project.text, project.typed).read((file.table, table))[0]


def read_items(file: FileCheck, table: Table, item: Any = None) -> list[str] | None:
    """Make a file the data of items, whose key may be that of the votes; return their ids."""
    is_guess = file.kind != "items"
    if is_guess:
        kept = {n: c for n, c in file.keys.items() if n in ("item", "group") and c != OPEN}
        keys = kept | ({"item": item} if {*parts_of(item or OPEN)} <= {*table.columns} else {})
        keyed = read_table(table, [], columns=keys)
        if keyed.height > _MOST_ROWS * len(keyed.values("item")):
            return None
        table, file.kind, file.keys, file.problems, file.missing = keyed, "items", keys, [], {}
        file.remarks.append(
            "read as data of items, since no column is named like a vote, label or score; if one "
            "is: --set votes.vote=COLUMN or --set labels.label=COLUMN"
        )
    table = with_item(table)
    ids = table.collect(table.rows.select(NUMBER, as_text(table, "item").str.strip_chars()))
    file.format = "btdagg"
    file.facts = {"items": ids["item"].n_unique(), "columns": [*table.columns]}
    twice = ids.filter(ids["item"].is_duplicated())
    if twice.height:
        same = twice.filter(pl.col("item") == twice["item"][0])[NUMBER]
        file.problems.append(
            f"item {twice['item'][0]!r} is there twice, in rows {same[0]} and {same[1]}; keep one "
            "row of each item"
        )
    return ids["item"].unique(maintain_order=True).drop_nulls().to_list()


def _facts_of_rows(table: Table) -> dict[str, Any]:
    return {"rows": table.height, "columns": [shown(name)[1:-1] for name in table.columns]}


def _imported(file: FileCheck, content: Any, keys: dict[str, Any]) -> Table:
    imported = Project({"votes": keys}).imported(content, keys.get("format"), "votes")
    score = imported.frame.get_column("score", default=None)
    are_shares = score is not None and score.dtype.is_float() and score.is_between(0, 1).all()
    if "scale" not in keys and are_shares:
        keys = keys | {"scale": "x10"}
        imported = Project({"votes": keys}).imported(content, keys.get("format"), "votes")
    reasons = ", ".join(imported.unread)
    forbid(not imported.n_votes, f"{file.source}: no vote could be read; reasons: {reasons}")
    file.kind = "votes" if imported.kind in ("votes", "grades") else "labels"
    file.format, file.keys = imported.formats[0], {"format": imported.formats[0], **keys}
    file.remarks = [*imported.remarks, *file.remarks]
    file.facts = {"missing": dict(imported.unread)}
    file.facts |= {"left out:": [*imported.left_out]} if imported.left_out else {}
    name = unused("votes.parquet" if file.kind == "votes" else "labels.csv")
    options = as_options({n: value for n, value in keys.items() if n != "format"})
    parts = ("btdagg import", shlex.quote(file.source), options, f"-o {name}")
    file.command = " ".join(filter(None, parts))
    return Table(imported.frame, file.source)


def _named(
    file: FileCheck, content: Any, table: Table, project: Project, kind: str | None = None
) -> Table | None:
    """Read a table by the names of its columns and its words; ask for those that are unknown."""
    is_ours = file.kind != "unknown"
    names = _names_in(table, is_ours=is_ours)
    kind = file.kind if is_ours else kind or _kind_by(names, file)
    is_unknown = not is_ours and not any(names[name] for name in _VERDICTS)
    said = _said(project, kind, table)
    if is_unknown and not _has(table, said):
        said = _said(project, None, table)  # the table of its kind is another file
    chosen = [name for name in (*_VERDICTS, "margin") if name in said]
    names |= dict.fromkeys(_VERDICTS) if chosen else {}
    said_columns = {name: column for name, column in said.items() if is_column(name)}
    if not _has(table, said_columns):
        file.kind, file.keys = str(kind), said_columns
        return table_of(file, table, project)  # which says where an absent column is named
    names |= said_columns
    if kind == "labels" and not is_ours and not chosen:
        names["label"] = names["label"] or names["vote"] or names["score"]
    first = ("label",) if kind == "labels" else ("vote", "score")
    verdict = next((name for name in (*chosen, *first, *_VERDICTS) if names.get(name)), None)
    wide = said.get("criteria", {})
    if not (wide or is_ours or verdict in ("vote", "label", "margin") or names["criterion"]):
        wide = _scores_in(table)
        if len(wide) == 1:
            verdict, names["score"], wide = "score", *wide.values(), {}
    if not is_ours:
        file.format, file.facts = "table", _facts_of_rows(table)
        one_column = len(table.columns) == 1 or table.columns[0].startswith("<")  # or a page
        text = f"{file.source}: no commas between values in {shown(table.columns[0])}"
        forbid(one_column and not (names["item"] and verdict), text)
        if names["item"] and "response" in table.columns and not (verdict or wide):
            file.kind, file.format = "responses", "btdagg"
            return None
        absent = [] if names["item"] else ["an item"]
        absent += [] if verdict or wide else ["a vote, label or score"]
        for name in absent:
            key = "item" if name == "an item" else "label" if kind == "labels" else "vote"
            problem = f"no column is named like {' or '.join(absent)}"
            file.ask(
                key,
                f"{problem}; name it: {_COLUMNS[key]}",
                f"which column of {listing(table.columns)} is it?",
            )
    if "item" not in said and names["item"]:
        _ask_for_key(file, table, names)
    if (verdict == "score" or wide) and not chosen:
        if (words := _words_beside(table, names, wide)) and words[0] in _CALLED["vote"].split():
            verdict, names["vote"], wide = "vote", words[0], {}
        elif words:
            scores = listing(wide.values() or [names["score"]])
            problem = (
                f"{scores} has one number where {listing(words)} has several words, or a number "
                f"for each; which column has the verdicts? If it is {words[0]}: "
                f"--set vote={words[0]}"
            )
            file.ask("vote", problem, f"which column of {listing(table.columns)} has the verdicts?")
    unread = {*_VERDICTS} - {verdict}
    file.keys |= {
        name: column
        for name, column in names.items()
        if name not in file.missing and column not in (None, name) and name not in unread
        if not (is_ours and name == "item" and column in ITEM_NAMES)
    }
    file.keys |= {name: value for name, value in said.items() if name in _SHARED}
    if verdict in ("vote", "label") and not wide and names[verdict]:
        _ask_for_words(file, table, names, verdict, is_ours=is_ours)
    if names["order"] and not (is_ours and names["order"] == "order"):
        _ask_for_orders(file, table, names["order"])
    if file.open_keys:
        file.facts = file.facts or _facts_of_rows(table)
        file.kind = str(kind) if verdict or wide else "unknown"
        return table
    file.kind = str(kind)
    file.remarks = _not_used(
        table, file.keys | wide, verdict or _verdict_in(table.columns, file.kind)
    )
    # Beside a score Phoenix says in the label that there is none, which an import reads.
    are_plain = is_ours or not (wide or (verdict == "score" and "label" in table.columns))
    are_plain &= is_ours or verdict != "score" or _are_grades(table, names["score"])
    if are_plain and (is_ours or suffix_of(file.source) != ".json"):
        file.facts = {}
        return table_of(file, table, project)
    return _imported(file, content, file.keys | ({"criteria": wide} if wide else {}))


def _names_in(table: Table, *, is_ours: bool) -> dict[str, Any]:
    """Return the column of each of our names, of a table of ours those names and the order."""
    called = {ours: [ours, *names.split()] for ours, names in _CALLED.items()}
    called["order"] += filter(_TURNED.search, table.columns)
    if is_ours:
        called = {ours: names if ours == "order" else [ours] for ours, names in called.items()}
        called["item"] += ITEM_NAMES
    columns = {re.sub(r"[\s-]+", "_", name): name for name in reversed(table.columns)}
    columns |= {name: name for name in table.columns}
    names: dict[str, Any] = {
        ours: next((columns[name] for name in every if name in columns), None)
        for ours, every in called.items()
    }
    if names["order"] and _TURNED.search(names["order"]):
        names["order"] = names["order"] if 0 < len(_texts(table, names["order"])) <= 2 else None
    if names["group"] == names["item"]:
        names["group"] = None
    if not (names["system_a"] and names["system_b"]):
        names |= {"system_a": None, "system_b": None}
    if names["score"] == "value" and "name" in table.columns:
        names["criterion"] = "name"
    if names["system_a"] == "generator_1":  # AlpacaEval's annotators are models
        names |= {"judge": names["rater"], "rater": None}
    return names


def _has(table: Table, keys: Mapping[str, Any]) -> bool:
    columns = (column for name, column in keys.items() if is_column(name))
    return all({*parts_of(column)} <= {*table.columns} for column in columns)


def _kind_by(names: Mapping[str, Any], file: FileCheck) -> str:
    are_people = names["rater"] or _OF_PEOPLE.search(os.path.basename(file.source))
    if names["vote"] is None and names["score"] is None:
        return "labels" if names["label"] else "votes"
    is_labelled = are_people and not names["label"] and not names["judge"] and names["vote"]
    return "labels" if is_labelled or (names["rater"] and not names["judge"]) else "votes"


def _are_grades(table: Table, column: str) -> bool:
    """Whether all scores can be read as they are: numbers, not all of them shares."""
    texts = _texts(table, column) - {""}
    are_numbers = all(map(is_number, texts))
    are_shares = are_numbers and all(0 <= float(text) <= 1 for text in texts) and len(texts) > 2
    return {*texts} <= {*PASS_WORDS} or (are_numbers and not are_shares)


def _ask_for_key(file: FileCheck, table: Table, names: dict[str, Any]) -> None:
    """Make the item of two columns where one has several rows of a system each."""
    key = [column for unit in _UNITS if (column := names[unit])]
    rows = table.frame.select(key)
    is_whole = names["sample"] is None and names["vote"]
    if is_whole or "response" in table.columns or rows.height == rows.n_unique():
        return
    systems = [c for c in _SYSTEMS if c in table.columns and c not in key]
    systems = [c for c in systems if rows.height == table.frame.select(*key, c).n_unique()]
    if not systems:
        return
    item, system = names["item"], systems[0]
    if system == "model" and not names["judge"] and not names["label"]:
        question = (
            f"the model may be the author of the response (--set votes.item={item}+model), or the "
            f"judge (--set votes.item={item},votes.judge=model)"
        )
        file.ask("item", question, question)
        return
    if "model" in table.columns and "model" not in systems and not names["judge"]:
        n_systems, n_models = (table.frame[name].n_unique() for name in (system, "model"))
        is_of_all = n_systems * n_models == table.frame.select(system, "model").n_unique()
        names["judge"] = "model" if is_of_all else None
    names["group"] = names["group"] or (item if item != "item" else None)
    names |= {"system": system, "item": [item, system]}


def _scores_in(table: Table) -> dict[str, str]:
    criteria = {}
    for name in table.columns:
        if match := _SCORES.match(name):
            text = table.values(name).drop_nulls().str.to_lowercase()
            is_score = text.str.contains(r"^-?\d+(\.\d+)?$") | text.is_in([*PASS_WORDS])
            if len(text) and is_score.all():
                criteria[(match["name"] or match["of"] or name).rpartition(".")[2]] = name
    return criteria


def _ask_for_words(
    file: FileCheck, table: Table, names: Mapping[str, Any], verdict: str, *, is_ours: bool
) -> None:
    """Give usual words their meaning, and ask for that of others."""
    column, kind = str(names[verdict]), "labels" if verdict == "label" else "votes"
    meanings = {word_of(word): meaning for word, meaning in file.keys.get("words", {}).items()}
    both = [names[name] for name in ("system_a", "system_b") if names[name]]
    systems = {word for name in both for word in _texts(table, name)}
    texts = (text.strip().lower() for text in table.values(column).drop_nulls())
    words = [text for text in dict.fromkeys(texts) if text and text not in systems]
    plain = {*map(word_of, words)}
    if "scale" in file.keys or (is_ours and not are_guessed(table, column, meanings)):
        return
    if not is_ours:
        file.facts["words"] = {shown(word)[1:-1]: "" for word in words[:_MOST_WORDS]}
        are_numbers = all(re.fullmatch(r"\d+(\.\d+)?", word) for word in words)
        is_grade = are_numbers and not plain <= _NUMBERS and plain != {"1", "2"}  # places, perhaps
        if {*words} <= {*PASS_WORDS} or (is_grade and verdict == "label"):
            return
        if len(words) > _MOST_WORDS + len(meanings):
            text = f"{column} has {len(words)} different values, too many for verdicts"
            file.ask(verdict, text, f"which column of {listing(table.columns)} has verdicts?")
            return
    numbers = {word for word in plain if is_number(word)}
    # 0 and 1 without -1 may be the places of the responses; on a scale from -2 to 2 who knows.
    ours = _OWN | (_NUMBERS if "-1" in plain and numbers <= _NUMBERS else set())
    sure = USUAL_WORDS | (_PLACES if names["system_a"] == "generator_1" else {}) | meanings
    new = [word for word in words if word_of(word) not in {*ours, *meanings}]
    unknown = [word for word in new if word_of(word) not in sure]
    hint = ""
    if plain <= {"0", "1"}:
        hint = (
            f"; if 0 is fail and 1 is pass, in votes and labels alike, --set {kind}.scale=pass/fail"
        )
    elif any(word.startswith("-") for word in numbers):
        hint = f"; if positive numbers say how far A is ahead: --set {kind}.margin={column}"
    elif not both and not numbers and {*map(sure.get, plain)} <= {None, "tie", "missing"}:
        hint = NAMES_OF_SYSTEMS
    problem = f"unknown words {listing(unknown)} in {column}{hint}"
    for word in new:
        if word in unknown:
            file.ask(f"words.{word}", problem, f"{problem}: {_MEANINGS}")
        else:
            file.keys.setdefault("words", {})[word] = sure[word_of(word)]


def _ask_for_orders(file: FileCheck, table: Table, column: str) -> None:
    said = {word_of(word) for word in file.keys.get("orders", {})} | {"ab", "ba"}
    words = table.values(column).drop_nulls().str.strip_chars().unique().sort().to_list()
    unknown = [word for word in words if word_of(word) not in said]
    problem = (
        f"the words {listing(unknown)} in {column} are not AB or BA; if A is who was shown first, "
        "also set words.a=first,words.b=second"
    )
    for word in unknown if len(unknown) <= _MOST_WORDS else ():
        file.ask(f"orders.{word}", problem, f"{problem}: AB or BA")


def _words_beside(table: Table, names: Mapping[str, Any], wide: Mapping[str, str]) -> list[str]:
    """Return columns of words that may be the verdicts, where a score only stands for words.

    Such a score is constant while the words differ, or a code for the words of pairs.
    """
    named = (column for name, column in names.items() if column and name not in ("vote", "label"))
    used = {part for column in named for part in parts_of(column)} | {*wide.values(), *_SYSTEMS}
    worded = [name for name in table.columns if name not in used and _are_words(table, name)]
    by = [names["criterion"]] if names["criterion"] and not wide else []
    beside = []
    for _, part in table.partition(by):
        for score in wide.values() or [names["score"]]:
            stem = re.sub("[./_ ]?(score|value)$", "", score) if wide else ""
            for name in (name for name in worded if name.startswith(stem)):
                columns = {"score": score, "word": name}
                texts = {n: plain_text(part, c).fill_null("") for n, c in columns.items()}
                pairs = part.frame.select(**texts).unique()
                pairs = pairs.filter(pl.col("word") != "")
                n_words, n_scores = pairs["word"].n_unique(), pairs["score"].n_unique()
                is_code = pairs.height == n_words == n_scores
                is_code &= {*pairs["word"]} <= {*USUAL_WORDS, *_OWN}
                if n_words > 1 and (n_scores == 1 or is_code):
                    beside.append(name)
    return [*dict.fromkeys(beside)]


def _texts(table: Table, column: str) -> set[str]:
    return {*table.texts(column)["text"].drop_nulls()}


def _are_words(table: Table, column: str) -> bool:
    texts = _texts(table, column) - {""}
    are_few = 1 < len(texts) <= _MOST_WORDS and max(map(len, texts)) <= _LONGEST
    return are_few and not all(map(is_number, texts))


def _verdict_in(columns: Iterable[str], kind: str) -> str:
    names = LABEL_COLUMNS if kind == "labels" else VOTE_COLUMNS
    return next((name for name in names if name in columns), "vote")


def _not_used(table: Table, named: Mapping[str, Any], verdict: str) -> list[str]:
    """Name the columns that are left out, those with numbers first."""
    columns = (column for column in named.values() if type(column) is not dict)
    used = {part for column in columns for part in parts_of(column)}
    used |= {"format", "turn", *(() if "item" in {*table.columns, *named} else ITEM_NAMES)}
    others = {*_VERDICTS, "grade"} - {verdict}
    left = [
        name
        for name in table.columns
        if name not in used and (name in others or not is_column(name))
    ]
    numbers = {name for name in left[:_MANY] if all(map(is_number, _texts(table, name) - {""}))}
    left.sort(key=lambda name: name not in numbers)
    return [f"not used: {listing(left)}"] * bool(left)


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
