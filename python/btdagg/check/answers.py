"""Contents of files, their faults, the questions they can answer, and the next command."""

from __future__ import annotations

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from btdagg._util.errors import InputError, forbid
from btdagg._util.readable import readable
from btdagg._util.wording import counted, in_line
from btdagg.check.file import (
    ANSWERS,
    IMPORTED,
    TYPED,
    FileCheck,
    as_options,
    is_of_tables,
    opened,
    read_items,
    table_lines,
    unused,
)
from btdagg.check.rows import about_items, about_labels, about_rows, about_votes, ids_in
from btdagg.model.calibration import FEWEST, quiet
from btdagg.model.fit import about_judge, calibrate
from btdagg.project import FILE, OPEN, TABLES, Project, parts_of
from btdagg.questions.estimate import estimate
from btdagg.votes import Table
from btdagg.votes.grades import are_means, scale_in, scale_of_columns
from btdagg.votes.items import Items
from btdagg.votes.join import on_sides
from btdagg.votes.labels import RATERS, Labels, read_labels
from btdagg.votes.scale import PASS_FAIL, Scale, written
from btdagg.votes.schema import LABEL_COLUMNS, VOTE_COLUMNS
from btdagg.votes.sides import UNNAMED
from btdagg.votes.source import with_item
from btdagg.votes.table import listing
from btdagg.votes.votes import Votes, read_votes

_MARGIN = 0.03  # of a release gate
_LEVEL = 0.9  # of two sides
_SCHEMA = "https://btdagg.github.io/btdagg/schemas/project.schema.json"
_JUDGED = ("votes", "labels")


@readable
@dataclass(frozen=True)
class Check:
    """Contents of files, the questions they can answer, and the command to type next."""

    # `command` is empty where something has to be mended or filled in before.

    files: tuple[FileCheck, ...]
    supports: tuple[str, ...]
    command: str
    next_with_project: str = ""
    questions: Mapping[str, str] = field(default_factory=dict)
    """Commands of the usual questions, beside a project file, by what they answer."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the project above its tables."""

    @property
    def project(self) -> str:
        """The text of a project file here, with "..." for each key of `missing`."""
        return self.project_in("")

    def project_in(self, folder: str) -> str:
        """Return the text of a project file in a folder."""
        plain = {n: value for n, value in self.settings.items() if not isinstance(value, dict)}
        lines = [f"#:schema {_SCHEMA}", *table_lines("", plain)[1:]]
        for file in sorted(self.files, key=lambda file: TABLES.index(file.table)):
            if f"[{file.table}]" in lines or (file.kind == "unknown" and not file.command):
                what = f"only one file of {file.table} can be"
                lines.append(f"# {file.source} is not used: {what}")
            else:
                lines += file.lines(folder)
        for name, value in self.settings.items():
            lines += ["", *table_lines(name, value)] if isinstance(value, dict) else []
        return "\n".join(lines) + "\n"

    @property
    def missing(self) -> dict[str, str]:
        """What to fill in, by the key of the project file that only the user knows."""
        return {f"{f.table}.{key}": text for f in self.files for key, text in f.missing.items()}

    @property
    def is_wrong(self) -> bool:
        """Whether something is wrong in a file."""
        return any(file.problems for file in self.files)

    def __str__(self) -> str:
        lines = [*map(str, self.files), *map(in_line, self.supports)]
        if self.command:
            return "\n".join([*lines, in_line(f"Next: {self.command}")])
        is_open = {name for file in self.files for name in file.open_keys}
        what = [f"{name}: {text}" for name, text in ANSWERS.items() if name in is_open]
        others = "others: a column" if what else "the name of a column"
        what += [others] * bool(is_open - {*ANSWERS})
        asked = dict.fromkeys(file.command for file in self.files if file.open_keys)
        lines += (in_line(f"Next, fill in each ... ({'; '.join(what)}): {text}") for text in asked)
        return "\n".join(lines)


@dataclass
class _Survey:
    """Tables of a project and what is read of them, by kind; votes and labels by criterion too."""

    project: Project
    files: dict[str, FileCheck]
    tables: dict[str, Table]
    scales: dict[str, dict[str, Scale | None]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    assumptions: list[str] = field(default_factory=list)

    def part(self, kind: str, criterion: str) -> Table | None:
        """Return the rows of a criterion; all where there are none, None if it has no row."""
        table = self.tables.get(kind)
        if table is None or not criterion or "criterion" not in table.columns:
            return table
        with suppress(InputError):
            return table.filter({"criterion": [criterion]})
        return None

    def keys(self, kind: str) -> dict[str, Any]:
        """Return the keys by which rows are read, which an imported table has no more."""
        keys = self.files[kind].keys if kind in self.files else {}
        return {name: value for name, value in keys.items() if not {*IMPORTED} & {*keys}}

    def said_scale(self, kind: str, table: Table) -> Scale | None:
        """Return the scale that the project says."""
        keys = {kind: self.files[kind].keys}
        project = self.project
        return Project(keys, project.path, project.text, project.typed).scale(kind, table)


def check(files: Sequence[str | os.PathLike[str]] = (), project: Project | None = None) -> Check:
    """Say what is in files, and in votes and labels together; if none can be read, why.

    A project says how they are read, and without files which.
    """
    project = Project() if project is None else project
    found = [opened(place, project, kind) for place, kind in _places(files, project)]
    if any(t is not None and f.kind == "votes" and "score" in t.columns for f, t in found):
        graded = project.with_keys(["labels.scale=0,1"])  # of labels of 0 and 1 beside grades
        found = [
            opened(file.place, graded, "labels") if file.asks_for_0_and_1 else (file, table)
            for file, table in found
        ]
    checks = [file for file, _ in found]
    _require_columns(checks, project)
    if all(file.kind == "unknown" and not file.open_keys for file in checks):
        raise InputError("; ".join(problem for file in checks for problem in file.problems))
    read = [(f, t) for f, t in reversed(found) if t is not None and not f.open_keys]
    survey = _Survey(project, {f.kind: f for f, _ in read}, {f.kind: t for f, t in read})
    used = [*survey.files.values()]
    _read_items(survey, found)
    for file in checks:
        if "votes" in survey.tables and file.kind == "unknown" and "vote" in file.missing:
            file.asks_for_labels()
    others = (_Survey(project, {f.kind: f}, {f.kind: t}) for f, t in read if f not in used)
    for part in (survey, *others):
        _read_rows(part)
        _look_at_rows(part)
    is_whole = {*survey.tables} & {*_JUDGED} == {*survey.rows}
    is_whole &= not any(file.problems for file in checks)
    supports, verb, criterion = _answers(survey) if is_whole else ([], "", "")
    supports = [*dict.fromkeys([*supports, *(survey.assumptions if is_whole else [])])]
    return _with_commands(checks, files, survey, supports, verb, criterion)


def _places(files: Sequence[Any], project: Project) -> list[tuple[Any, str | None]]:
    """Return files and whose table they are: those given, or else the project's."""
    said = {kind: project.file(kind) for kind in TABLES}
    if not files:
        kinds = [kind for kind in TABLES if said[kind] is not None]
        forbid(not kinds, f"FILE is missing: name files, or put them into {project.path or FILE}")
        return [(project.place(kind), kind) for kind in kinds]
    by_path = {
        os.path.abspath(path): kind
        for kind, place in said.items()
        for path in ([place] if isinstance(place, str) else place or ())
    }
    places = map(os.fspath, files)
    return [(place, by_path.get(os.path.abspath(place))) for place in places]


def _require_columns(checks: Sequence[FileCheck], project: Project) -> None:
    """Refuse a typed column of all tables that no file has."""
    for (name,) in (path for path in project.typed if len(path) == 1):
        column = project.keys[name]
        has_column = any(name in file.keys for file in checks)
        if is_of_tables(name, column) and not has_column and not all(f.problems for f in checks):
            text = "+".join(parts_of(column))
            sources = listing(file.source for file in checks)
            raise InputError(f"--set {name}={text}: no column {text!r} in {sources}")


def _read_items(survey: _Survey, found: Sequence[tuple[FileCheck, Table | None]]) -> None:
    """Read the data of items, and join them to votes and labels."""
    judged = next((kind for kind in _JUDGED if kind in survey.tables), None)
    has_others = any(file.kind in _JUDGED for file, _ in found)
    for file, table in found:
        is_candidate = file.kind == "unknown" and {*file.open_keys} <= {"vote", "label"}
        if table is None or not (file.kind == "items" or (is_candidate and has_others)):
            continue
        item = survey.files[judged].keys.get("item") if judged else None
        ids = read_items(file, table, item)
        if ids is None or survey.files.setdefault("items", file) is not file:
            continue
        if judged is not None:
            with suppress(InputError):
                others = ids_in(with_item(survey.tables[judged]).frame["item"])
                file.note(about_items(ids, others, judged))
        items = {"items": {**file.keys, "file": file.place}}
        joined = Project(items, typed=frozenset({("items", "file")}))
        for kind in _JUDGED if not file.problems else ():
            if kind in survey.tables:
                (survey.tables[kind],) = joined.read((kind, survey.tables[kind]))


def _read_rows(survey: _Survey) -> None:
    """Read votes and labels, of each criterion where their scales differ."""
    tables = [survey.tables[kind] for kind in _JUDGED if kind in survey.tables]
    refusal = None
    try:
        survey.scales = {name: _scales_of(survey, name) for name in _criteria(tables)}
    except InputError as error:
        refusal, survey.scales = error, {"": {}}
    same = [{own.get(kind) for own in survey.scales.values()} - {None} for kind in _JUDGED]
    if all(len(of_kind) < 2 for of_kind in same):
        of_all = (next(iter(of_kind), None) for of_kind in same)
        survey.scales = {"": dict(zip(_JUDGED, of_all, strict=True))}
    for kind in _JUDGED:
        if (table := survey.tables.get(kind)) is None:
            continue
        try:
            if refusal is not None and refusal.source in (None, table.source):
                raise refusal
            survey.rows[kind] = _rows_of(survey, kind)
            _say_scales(survey, kind)
        except InputError as error:
            options = TYPED | {"scale": f"--set {kind}.scale="}
            survey.files[kind].problems.append(error.in_options(options.get))
            survey.rows.pop(kind, None)


def _look_at_rows(survey: _Survey) -> None:
    """Say what is wrong with rows that are read."""
    ids: dict[str, list[str]] = {}
    for kind, parts in survey.rows.items():
        ids[kind] = ids_in(pl.concat([part.values("item") for part in parts.values()]))
        survey.files[kind].note(about_rows(survey.tables[kind], ids[kind], kind))
    for name, votes in survey.rows.get("votes", {}).items():
        words = survey.keys("votes").get("words", {})
        labels = survey.rows.get("labels", {}).get(name)
        table = survey.part("votes", name) or survey.tables["votes"]
        survey.files["votes"].note(about_votes(table, votes, labels, words), name)
    if {*ids} == {*_JUDGED}:
        cells = [
            (_cells(labels, voted), _cells(voted, labels))
            for name, labels in survey.rows["labels"].items()
            if (voted := survey.rows["votes"].get(name)) is not None
        ]
        survey.files["labels"].note(about_labels(ids["labels"], ids["votes"], cells))


def _cells(rows: Table, other: Table) -> list[str]:
    """Return the items of a table, of each criterion where both tables have criteria."""
    key = [name for name in ("task", "item") if {name} <= {*rows.columns} & {*other.columns}]
    names = pl.concat_str(pl.col(key).cast(pl.String).str.strip_chars(), separator=" ")
    return ids_in(rows.collect(rows.data.lazy().select(names.alias("item")).unique())["item"])


def _criteria(tables: Sequence[Table]) -> list[str]:
    named = [table for table in tables if "criterion" in table.columns]
    values = {value for table in named for value in table.values("criterion").drop_nulls()}
    return sorted(values) if len(values) > 1 else [""]


def _scales_of(survey: _Survey, name: str) -> dict[str, Scale | None]:
    """Return the scales of votes and labels of a criterion, None where reading tells them."""
    scales: dict[str, Scale | None] = {}
    for kind in _JUDGED:
        if (table := survey.part(kind, name)) is not None:
            said = survey.said_scale(kind, table)
            scales[kind] = said or _likely(survey, kind, name, table, scales.get("votes"))
    return scales


def _likely(
    survey: _Survey, kind: str, name: str, table: Table, judged: Scale | None
) -> Scale | None:
    """Return the scale of a table, or a usual one that has its grades where nothing says it."""
    words = survey.keys(kind).get("words")
    is_alone = kind == "labels" and judged is None  # beside pairs, or without votes
    if kind == "labels" and judged and are_means(_numbers_in(table), judged):
        return judged
    try:
        if is_alone:
            return read_labels(table, words=words).scale
        columns = VOTE_COLUMNS if kind == "votes" else LABEL_COLUMNS
        scale = scale_in(table, columns, words=words, are_grades=kind == "labels")
        return None if scale.mirrored else scale
    except InputError as error:
        likely = error.advice.get(str(error.argument))
        if not isinstance(likely, Scale):
            if is_alone:  # a slip, which is shown where the labels are read
                return None
            raise
    has = "{:g} to {:g}".format(*_ends(table))
    if likely == scale_of_columns(table):
        has = f"columns {likely.points[0]} to {likely.points[-1]}"
    about, key = (f"{name}: ", f"{kind}.scale.{name}") if name else ("", f"{kind}.scale")
    survey.assumptions.append(
        f"{about}{table.source} does not say its scale and has {has}, so {likely} is assumed; for "
        f"another scale use --set {key}=..."
    )
    return likely


def _rows_of(survey: _Survey, kind: str) -> dict[str, Any]:
    """Read votes or labels of each criterion, and note their facts."""
    file, table, keys = survey.files[kind], survey.tables[kind], survey.keys(kind)
    rows: dict[str, Any] = {}
    words, project = keys.get("words") or None, survey.project
    for name, scales in survey.scales.items():
        if (part := survey.part(kind, name)) is None:
            continue
        if kind == "labels":
            raters = project.setting("raters", "mean")
            rows[name] = read_labels(part, scale=scales.get(kind), words=words, raters=raters)
        else:
            sides = {side: project.setting(side) for side in ("a", "b")}
            order, scale = keys.get("orders") or None, scales.get(kind)
            rows[name] = read_votes(part, scale=scale, words=words, order=order, **sides)
    every = {
        name: _facts_of_votes(read) if kind == "votes" else _facts_of_labels(read, table)
        for name, read in rows.items()
    }
    facts = next(iter(every.values()), {})
    if len(survey.scales) > 1:
        of_each = {name: own[kind] for name, own in every.items()}
        numbers = sorted({n for own in every.values() for n in own.get("votes an item", ())})
        missing, means = (
            sum(own.get(name, 0) for own in every.values())
            for name in ("missing", "means of raters")
        )
        facts = {
            "items": table.values("item").len(),
            kind: sum(of_each.values()),
            "votes an item and criterion": [*dict.fromkeys(numbers[:1] + numbers[-1:])],
            "missing": missing,
            "of each criterion": of_each,
            "means of raters": means,
        }
        facts = {name: value for name, value in facts.items() if value}
    file.facts = facts | file.facts
    forbid(not file.facts.get(kind), f"{file.source}: every {kind[:-1]} is missing")
    return rows


def _say_scales(survey: _Survey, kind: str) -> None:
    """Note the scales of grades, and ask for those that are not certain."""
    file, other = survey.files[kind], _JUDGED[kind == "votes"]
    texts = {}
    for name, scales in survey.scales.items():
        scale = scales.get(kind)
        if scale is None or scale.mirrored or scales.get("votes") is None:
            continue
        texts[name] = written(scale.points)
        tables = survey.part(kind, name), survey.part(other, name)
        if "scale" not in file.keys and (question := _question(kind, tables, scale)):
            file.missing["scale" + f".{name}" * bool(name)] = question
    if texts:
        file.keys.setdefault("scale", texts.get("", texts))


def _question(kind: str, tables: tuple[Table | None, Table | None], scale: Scale) -> str | None:
    """Ask for a scale that is not certain; it is where votes and labels have the same ends."""
    low, high = scale.points[0], scale.points[-1]
    least, most = _ends(tables[0]) if tables[0] is not None else (math.nan, math.nan)
    if scale == PASS_FAIL or math.isnan(least) or "grades" in getattr(tables[0], "columns", ()):
        return None  # counts, for one, whose columns are the points
    are_seen = [_ends(part) == (low, high) for part in tables if part is not None]
    if are_seen[0] and (high in (5, 10, 100) or are_seen == [True, True]):
        return None
    wider = next((f"{low:g}-{top}" for top in (5, 10, 100) if top > high), f"{least:g}-{most:g}")
    return (
        f"{kind} are from {least:g} to {most:g}; what is their scale: "
        f'"{written(scale.points)}" or "{wider}"?'
    )


def _ends(table: Table) -> tuple[float, float]:
    numbers = _numbers_in(table)
    return min(numbers, default=math.nan), max(numbers, default=math.nan)


def _numbers_in(table: Table) -> list[float]:
    column = next((n for n in ("score", "label", "grade", "vote") if n in table.columns), None)
    texts: Iterable[str] = (
        [] if column is None else table.values(column).drop_nulls().str.strip_chars()
    )
    try:
        return [float(text) for text in texts if text]
    except ValueError:
        return []


def _facts_of_votes(votes: Votes) -> dict[str, Any]:
    signs = votes.signs()
    counts = np.concatenate([part.counts()[1] for _, part in _by_task(signs)])
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
            of_counts = pl.sum_horizontal([*votes.columns_of_counts]).sum()
            number = of_counts if votes.are_counts else pl.len()
            rows = votes.data.lazy().drop_nulls(column).group_by(column, maintain_order=True)
            numbers = votes.collect(rows.agg(number)).sort(
                pl.nth(1), descending=True, maintain_order=True
            )
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
    by_label = {str(names.get(value, value)): n for value, n in zip(values, numbers, strict=True)}
    facts: dict[str, Any] = {"labels": len(labels.labels)}
    of_each = "of each, by a majority of raters" if labels.n_disputed else "of each"
    facts |= {"items without a label": labels.n_missing, of_each: by_label}
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


def _answers(survey: _Survey) -> tuple[list[str], str, str]:
    """Return what votes and labels support, the command to go on with, and its criterion."""
    supports: list[str] = []
    verb = criterion = ""
    for name in survey.scales:
        votes, labels = (survey.rows.get(kind, {}).get(name) for kind in _JUDGED)
        texts, own_verb = _supports(votes, labels)
        supports += [f"{name}: {text}" if name and labels is not None else text for text in texts]
        if own_verb and not verb:
            verb, criterion = own_verb, name
    return supports, verb, criterion


def _supports(votes: Votes | None, labels: Labels | None) -> tuple[list[str], str]:
    """Return what votes and labels support, and the command to go on with."""
    if labels is None:
        text = (
            "Without labels nothing shows how reliable these votes are; a few dozen labels would "
            "do."
        )
        return ([], "") if votes is None else ([text], "choose")
    texts = []
    points, groups = labels.labels.astype(float), labels.groups
    parts: dict[str, Items] = {}
    if votes is not None:
        for key, rows in _by_task(votes):
            task = "".join(key)
            try:
                parts[task] = rows.labelled(labels)
            except InputError:
                texts += [f"No item of {task} has a label."] if task else []
        if not parts:
            return texts, ""
        joined = [*parts.values()]
        texts += _sentences(on_sides(joined))
        points = np.concatenate([items.label.astype(float) for items in joined])
        ids = np.concatenate([items.ids for items in joined]).astype(str)
        n_items, n_all = len({*ids.tolist()}), len(votes.values("item"))
        if any(items.group is not None for items in joined):
            of_items = [items.ids if items.group is None else items.group for items in joined]
            groups = np.concatenate(of_items).astype(str)
        elif n_items < len(ids):  # the criteria of an item
            groups = ids
        texts.insert(0, f"{counted(n_items, 'item')} of {n_all:,} have votes and a label.")
    n_labels = len(points)
    if n_labels < FEWEST or len(np.unique(points)) < 2:
        are_enough = n_labels >= FEWEST
        why = "all labels are the same" if are_enough else f"{FEWEST} are the fewest"
        texts.append(f"{counted(n_labels, 'label')}: too few to calibrate on; {why}.")
        return texts, "" if votes is None else "choose"
    what, _, worth = labels.scale.measure
    values = np.array(worth)[labels.scale.places(points)]
    spread = float(values.std(ddof=1)) / math.sqrt(n_labels)
    if groups is not None:  # which may hide how labels differ, where each has as many of a kind
        _, units = np.unique(groups, return_inverse=True)
        of_groups = np.bincount(units, values - values.mean())
        spread = max(spread, math.sqrt(float((of_groups**2).sum())) / n_labels)
    texts.append(
        f"{counted(n_labels, 'label')} alone give the {what} to within ± {1.96 * spread:.2f}; "
        "votes on the other items may narrow that. They are enough to calibrate on."
    )
    for task, items in parts.items():
        with suppress(InputError):
            if doubt := about_judge(quiet(calibrate)(items)):
                texts += _sentences([doubt.within(task if len(parts) > 1 else "")])
    for column in {"system", "task"} & {*labels.columns}:
        numbers = labels.frame[column].value_counts().iter_rows()
        if few := sorted(str(name) for name, number in numbers if number < FEWEST):
            texts.append(f"There are fewer than {FEWEST} labels for {listing(few)}.")
    if votes is None:
        return [*texts, "Next, get a judge's votes on these items, and name their file too."], ""
    if labels.scale.mirrored:
        texts += _about_gate(votes, labels)
    is_evaluated = n_labels >= 2 * FEWEST and not votes.are_counts
    return texts, "evaluate" if is_evaluated else "estimate"


def _sentences(remarks: Iterable[str]) -> list[str]:
    return [f"{remark[0].upper()}{remark[1:]}." for remark in remarks]


def _about_gate(votes: Votes, labels: Labels) -> list[str]:
    """Say which side passes a gate by the estimate of votes and labels."""
    if votes.sides == UNNAMED and {"system_a", "system_b"} <= {*votes.columns}:
        return []
    try:
        estimates = estimate(votes, labels, level=_LEVEL)
    except InputError:
        return []
    net, (first, second) = estimates.estimates[estimates.main], estimates.sides
    lows = {first: net.low, second: -net.high}
    passing = [name for name, low in lows.items() if low > -_MARGIN]
    return [
        f"With votes and labels a gate with a margin of {_MARGIN} passes a side whose estimated "
        f"net win rate is above {net.value - net.low - _MARGIN:+z.2f}. That of {first} is "
        f"{net.value:+z.2f}: {' and '.join(passing) or f'neither {first} nor {second}'} would pass."
    ]


def _questions(votes: Votes, where: str) -> dict[str, str]:
    """Return the command of each usual question that votes can answer."""
    n_votes: Counter[str] = Counter()
    for name in {"system", "system_a", "system_b"} & {*votes.columns}:
        n_votes.update(dict(votes.frame[name].cast(pl.String).value_counts().iter_rows()))
    del n_votes[None]  # rows without a system
    systems = sorted(n_votes, key=lambda system: (-n_votes[system], system))
    sides = systems if len(systems) > 1 else [votes.sides.a, votes.sides.b]
    candidate, baseline = map(shlex.quote, sides[:2])
    most, is_single = max(_facts_of_votes(votes)["votes an item"]), not votes.are_counts
    measure, n_sides = votes.scale.measure.name, len(votes.scale.systems)
    questions = [
        (
            True,
            f"{measure}, and how many more labels give an interval of this width",
            "estimate --width 0.1",
        ),
        (
            len(systems) > n_sides,
            f"{measure} of each system, and which differ",
            "estimate --systems auto",
        ),
        (
            max(len(systems), n_sides) > 1,
            "a release gate for CI: is a candidate worse than the baseline",
            f"gate --candidate {candidate} --baseline {baseline} --margin 0.1 --junit gate.xml "
            "--summary gate.md",
        ),
        (
            is_single and most > 1,
            "would fewer votes an item be enough",
            f"compare --first n={max(most // 2, 1)} --second n={most}",
        ),
        (
            True,
            "which labels need no review",
            "certify --agreement 0.8 -o certificate.json",
        ),
        (True, "a label for every item", "calibrate -o model.json"),
        (is_single, "a report", "evaluate --report report"),
    ]
    return {
        text: _line("btdagg", command, where) for is_open, text, command in questions if is_open
    }


def _with_commands(
    checks: Sequence[FileCheck],
    files: Sequence[Any],
    survey: _Survey,
    supports: Sequence[str],
    verb: str,
    criterion: str,
) -> Check:
    """Say what to type next: what is open, an import, or the command of a question."""
    project, filters = survey.project, {name: _filter(name) for name in survey.scales}
    is_named = project.path is not None and project.is_named
    named = f"--project {shlex.quote(str(project.path))}" if is_named else ""
    settings = {n: v for n, v in project.keys.items() if n not in TABLES and not is_of_tables(n, v)}
    sources = [shlex.quote(file.source) for file in checks if files]
    open_keys = [as_options({file.table: file.open_keys}) for file in checks]
    for file in checks:
        place = {"file": file.source} if file.kind == "items" else {}
        file.options = [*filter(None, [as_options({file.table: place | file.keys})])]
        if file.open_keys:
            typed = as_options(_typed(project, project.keys))
            file.command = _line("btdagg check", *sources, typed, *open_keys, named)
    if not verb and "pairs" in survey.tables and {*survey.tables}.isdisjoint(_JUDGED):
        verb = "judge"
    arguments, kinds = filters.get(criterion, ""), ["votes", "labels", "items"]
    if verb == "choose":
        n_items = min(50, survey.files["votes"].facts["items"])
        arguments, kinds = f"--items {n_items} -o {unused('to_label.csv')}", ["votes", "items"]
    elif verb == "judge":
        arguments, kinds = "--model simulated -n 8 --store votes.db", ["pairs"]
    used = [survey.files[kind] for kind in kinds if kind in survey.files]
    if not files and not project.typed:  # the command reads the project as it is
        used = []
    places = [shlex.quote(file.source) for file in used if file.kind != "items"]
    options = [option for file in used for option in file.options]
    if used:
        options.append(as_options(_typed(project, settings)))
    command = _line("btdagg", verb, *places, arguments, *options, named) if verb else ""
    questions = {}
    if verb in ("estimate", "evaluate"):
        questions = _questions(survey.rows["votes"][criterion], filters[criterion])
        others = [text for name, text in filters.items() if name != criterion]
        if criterion and others:
            questions["the same of another criterion"] = f"... {' or '.join(others)}"
    is_open = any(file.kind == "unknown" or file.problems for file in checks)
    imports = [file.command for file in checks if file.command]
    command = "" if is_open else (*imports, command)[0]
    short = _line("btdagg", verb, arguments) if verb else ""
    return Check(tuple(checks), tuple(supports), command, short, questions, settings)


def _filter(criterion: str) -> str:
    return f"--filter {shlex.quote(f'criterion={criterion}')}" if criterion else ""


def _line(*parts: str) -> str:
    return " ".join(part for part in dict.fromkeys(parts) if part)


def _typed(project: Project, keys: Mapping[str, Any], *outer: str) -> dict[str, Any]:
    """Return those of the keys that were typed."""
    typed: dict[str, Any] = {}
    for name, value in keys.items():
        if (*outer, name) in project.typed:
            typed |= {name: value} if value != OPEN else {}
        elif isinstance(value, dict):
            typed[name] = _typed(project, value, *outer, name)
    return typed
