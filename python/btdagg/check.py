"""Contents of files, their faults, the questions they can answer, and the next command."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from btdagg._util.errors import InputError, forbid
from btdagg._util.readable import readable
from btdagg._util.wording import counted, in_line
from btdagg.file_check import TYPED, FileCheck, table_of, unused
from btdagg.model.calibration import FEWEST, quiet
from btdagg.model.fit import about_judge, calibrate
from btdagg.project import TABLES
from btdagg.questions.estimate import Estimates, estimate
from btdagg.remarks import Remark
from btdagg.votes import Table
from btdagg.votes.grades import are_means, scale_in, scale_of_columns
from btdagg.votes.items import Items
from btdagg.votes.join import on_sides
from btdagg.votes.labels import RATERS, Labels, read_labels
from btdagg.votes.orders import about_orders
from btdagg.votes.scale import PASS_FAIL, Scale, written
from btdagg.votes.schema import LABEL_COLUMNS, VOTE_COLUMNS
from btdagg.votes.sides import UNNAMED
from btdagg.votes.table import listing
from btdagg.votes.votes import Votes, read_votes

_MARGIN = 0.03  # of a release gate
# One-sided level 5%, and with it power 80%, as Phi has them.
_ONE_SIDED = 1.6449
_REACH = _ONE_SIDED + 0.8416
_LEVEL = 0.9  # of two sides


_SCHEMA = "https://btdagg.github.io/btdagg/schemas/project.schema.json"


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

    @property
    def project(self) -> str:
        """The text of a project file, with "..." for each key of `missing`."""
        lines = [f"#:schema {_SCHEMA}"]
        kinds = [file.table for file in self.files]
        for kind, file in sorted(
            zip(kinds, self.files, strict=True), key=lambda pair: TABLES.index(pair[0])
        ):
            if f"[{kind}]" in lines or (file.kind == "unknown" and not file.command):
                lines.append(f"# {file.source} is not used: only one file of {kind} can be")
                continue
            lines += file.lines
        return "\n".join(lines) + "\n"

    @property
    def missing(self) -> dict[str, str]:
        """What to fill in, by the key of the project file that only the user knows."""
        return {f"{f.table}.{key}": text for f in self.files for key, text in f.open_keys.items()}

    def __str__(self) -> str:
        lines = [*map(str, self.files), *map(in_line, self.supports)]
        if self.command:
            return "\n".join([*lines, in_line(f"Next: {self.command}")])
        to_fill = (file.command for file in self.files if file.kind == "unknown" and file.command)
        what = "(words: A, B, tie or missing; orders: AB or BA)"
        to_fill = (f"Next, fill in each ... {what}: {text}" for text in to_fill)
        return "\n".join([*lines, *map(in_line, to_fill)])


def check(files: Sequence[str | os.PathLike[str]]) -> Check:
    """Say what is in files, and in votes and labels together; if none can be read, why."""
    checks = [FileCheck(os.fspath(place)) for place in files]
    opened = [(file, table_of(file)) for file in checks]
    votes_read = [table for file, table in opened if file.kind == "votes" and table is not None]
    if any("score" in table.columns for table in votes_read):
        for row, (file, table) in enumerate(opened):
            if table is None:  # labels of 0 and 1, perhaps, which left open what they mean
                checks[row] = FileCheck(file.source)
                opened[row] = checks[row], table_of(checks[row], with_grades=True)
    if all(file.kind == "unknown" and not file.command for file in checks):
        raise InputError("; ".join(problem for file in checks for problem in file.problems))
    tables = {file.kind: table for file, table in reversed(opened) if table is not None}
    judged, gold = tables.get("votes"), tables.get("labels")
    scales: dict[str, tuple[Scale | None, Scale | None]] = {}
    wrong = None
    remarks: list[str] = []
    try:
        for name in _criteria(judged, gold):
            own_votes, own_labels = (None if t is None else _of(t, name) for t in (judged, gold))
            assumptions: list[str] = []
            scales[name] = _both_scales(own_votes, own_labels, assumptions)
            remarks += [f"{name}: {text}" if name else text for text in assumptions]
        same = [{*of_kind} - {None} for of_kind in zip(*scales.values(), strict=True)]
        if all(len(of_kind) < 2 for of_kind in same):
            scales = {"": (next(iter(same[0]), None), next(iter(same[1]), None))}
    except InputError as error:
        wrong, scales = error, {"": (None, None)}
    parts: dict[str, Any] = {}
    for file, table in opened:
        if table is None or file.kind not in ("votes", "labels"):
            continue
        try:
            if wrong is not None and wrong.source in (None, table.source):
                raise wrong
            rows = _rows_of(file, table, scales)
            other = gold if file.kind == "votes" else judged
            _say_scales(file, table, other, scales)
            parts.setdefault(file.kind, rows)
        except InputError as error:
            options = TYPED | {"scale": f"--set {file.kind}.scale="}
            file.problems, file.command = [error.in_options(options.get)], ""
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
        short = f"btdagg choose --items 50 -o {unused('to_label.csv')}"
    elif not verb and tables.keys() == {"pairs"}:
        short = "btdagg judge --model simulated -n 8 --store votes.db"
    questions = {}
    if verb in ("estimate", "evaluate"):
        judged_parts = parts["votes"]
        criterion = next(name for name in judged_parts if not where or name in where)
        questions = _questions(judged_parts[criterion], where)
        filters = [f"--filter {shlex.quote(f'criterion={name}')}" for name in scales]
        if where and (filters := [text for text in filters if text not in where]):
            questions["the same of another criterion"] = f"... {' or '.join(filters)}"
    return Check(tuple(checks), tuple(supports), _next(checks, verb, where), short, questions)


def _questions(votes: Votes, where: str) -> dict[str, str]:
    names = [name for name in ("system", "system_a", "system_b") if name in votes.columns]
    found = pl.concat([votes.frame[name].cast(pl.String) for name in names]) if names else None
    systems: list[str] = []
    if found is not None:  # those with most votes first
        numbers = (
            found.drop_nulls().value_counts().sort("count", names[0], descending=[True, False])
        )
        systems = numbers[names[0]].to_list()
    what = votes.scale.measure.name
    ranking = {f"{what} of each system, and which differ": "estimate --systems auto"}
    sides = systems if len(systems) > 1 else [votes.sides.a, votes.sides.b]
    candidate, baseline = map(shlex.quote, sides[:2])
    gate = (
        f"gate --candidate {candidate} --baseline {baseline} --margin 0.1 --junit gate.xml "
        "--summary gate.md"
    )
    is_gated = max(len(systems), len(votes.scale.systems)) > 1
    most = int(max(_facts_of_votes(votes)["votes an item"]))
    is_single = not votes.are_counts
    fewer = f"compare --first n={max(most // 2, 1)} --second n={most}"
    commands = {
        f"{what}, and how many more labels give an interval of this width": "estimate --width 0.1",
        **(ranking if len(systems) > len(votes.scale.systems) else {}),
        **(
            {"a release gate for CI: is a candidate worse than the baseline": gate}
            if is_gated
            else {}
        ),
        **({"would fewer votes an item be enough": fewer} if is_single and most > 1 else {}),
        "which labels need no review": "certify --agreement 0.8 -o certificate.json",
        "a label for every item": "calibrate -o model.json",
        **({"a report": "evaluate --report report"} if is_single else {}),
    }
    return {question: f"btdagg {command}{where}" for question, command in commands.items()}


def _criteria(*tables: Table | None) -> list[str]:
    named = [table for table in tables if table is not None and "criterion" in table.columns]
    values = {value for table in named for value in table.values("criterion").drop_nulls()}
    return sorted(values) if len(values) > 1 else [""]


def _of(table: Table, criterion: str) -> Table | None:
    if not criterion or "criterion" not in table.columns:
        return table
    with suppress(InputError):
        return table.filter({"criterion": [criterion]})
    return None


def _both_scales(
    judged: Table | None, gold: Table | None, remarks: list[str]
) -> tuple[Scale | None, Scale | None]:
    scale = None if judged is None else _likely(judged, remarks)
    if scale is not None and scale.mirrored:
        scale = None
    return scale, None if gold is None else _scale_of_labels(gold, scale, remarks)


def _rows_of(
    file: FileCheck, table: Table, scales: dict[str, tuple[Scale | None, Scale | None]]
) -> dict[str, Any]:
    is_votes = file.kind == "votes"
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
        of_kind = {name: facts[file.kind] for name, facts in all_facts.items()}
        numbers = {n for facts in all_facts.values() for n in facts.get("votes an item", ())}
        facts = {"items": table.values("item").len(), file.kind: sum(of_kind.values())}
        of_cell = sorted({min(numbers), max(numbers)}) if numbers else []
        facts |= {"votes an item and criterion": of_cell} if of_cell else {}
        if n_missing := sum(facts.get("missing", 0) for facts in all_facts.values()):
            facts["missing"] = n_missing
        facts |= {"of each criterion": of_kind, **({"means of raters": means} if means else {})}
    file.facts = facts | file.facts
    forbid(not file.facts[file.kind], f"{file.source}: every {file.kind[:-1]} is missing")
    if is_votes:
        file.facts |= _absent(table)
    return rows


def _absent(table: Table) -> dict[str, int]:
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
    return {f"combinations of {', '.join(names)} and {last} have no row, such as {cell}": n_absent}


def _say_scales(
    file: FileCheck,
    table: Table,
    other: Table | None,
    scales: dict[str, tuple[Scale | None, Scale | None]],
) -> None:
    is_labels = file.kind == "labels"
    texts = {}
    for name, pair in scales.items():
        scale = pair[is_labels]
        if scale is None or pair[0] is None:  # of pairs, or of another file
            continue
        texts[name] = written(scale.points)
        if "scale" in file.keys:  # which makes the grades
            continue
        path = "scale" + f".{name}" * bool(name)
        if question := _question(file, _of(table, name), other and _of(other, name), scale):
            file.missing[path] = question
    if not texts:
        return
    prefix = f"{file.kind}.scale"
    said = ",".join(f"{prefix}{f'.{n}' if n else ''}={text}" for n, text in texts.items())
    file.options.append(f"--set {shlex.quote(said)}")
    file.keys.setdefault("scale", texts.get("", texts))


def _question(
    file: FileCheck, table: Table | None, other: Table | None, scale: Scale
) -> str | None:
    """Ask for a scale that is not certain; it is where votes and labels have the same ends."""
    low, high = scale.points[0], scale.points[-1]
    if table is None or scale == PASS_FAIL or "grades" in table.columns:
        return None
    seen = _numbers_in(table)
    if not seen:  # counts, whose columns are the points
        return None
    if len(scale.points) > 3 == len(seen) and max(seen) - min(seen) > 2:
        listed = ",".join(f"{number:g}" for number in sorted(seen))
        what = f'{file.kind} are {listed}; what is their scale: "{listed}"'
        return f'{what} or "{written(scale.points)}"?'
    is_seen = [_ends(part) == (low, high) for part in (table, other) if part is not None]
    if is_seen[0] and (high in (5, 10, 100) or is_seen == [True, True]):
        return None
    least, most = _ends(table)
    wider = next((top for top in (5, 10, 100) if top > high), None)
    other_answer = f"{low:g}-{wider}" if wider else f"{least:g}-{most:g}"
    what = f"{file.kind} are from {least:g} to {most:g}"
    return f'{what}; what is their scale: "{written(scale.points)}" or "{other_answer}"?'


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
        has = f"{least:g} to {most:g}"
        if scale == scale_of_columns(table):
            has = f"columns {scale.points[0]} to {scale.points[-1]}"
        remarks.append(
            f"{table.source} does not say its scale and has {has}, so {scale} is assumed; for "
            f"another scale use --set {kind}.scale=..."
        )
        return scale


def _scale_of_labels(labels: Table, scale: Scale | None, remarks: list[str]) -> Scale | None:
    """Return the scale of labels beside grades, or by themselves; None if they cannot be read."""
    if scale:
        how: Any = {"columns": LABEL_COLUMNS, "are_grades": True}
        return scale if are_means(_numbers_in(labels), scale) else _likely(labels, remarks, **how)
    try:
        return read_labels(labels).scale
    except InputError as error:
        if error.row is not None:  # a slip, which is shown where the labels are read
            return None
    with suppress(InputError):
        return _likely(labels, remarks, LABEL_COLUMNS, are_grades=True)
    return None


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


def _supports(votes: Votes | None, labels: Labels | None) -> tuple[list[str], str]:
    if labels is None:
        text = (
            "Without labels nothing shows how reliable these votes are; a few dozen labels would "
            "do."
        )
        if votes is None:
            return [], ""
        return [*_sentences(about_orders(votes)), text], "choose"
    points, groups = labels.labels.astype(float), labels.groups
    texts = []
    if votes is not None:
        parts: list[Any] = []
        tasks: list[str] = []
        reason: InputError | None = None
        for key, part in _by_task(votes):
            try:
                parts.append(part.labelled(labels))
                tasks += key or ("",)
            except InputError as error:
                reason = error
                texts += [f"No item of {name} has a label." for name in key]
        if not parts:
            why = reason and reason.in_options(TYPED.get)
            return [f"Votes and labels do not match: {why}."], ""
        texts += _sentences([*on_sides(parts), *about_orders(votes, labels)])
        points = np.concatenate([joined.label.astype(float) for joined in parts])
        ids = np.concatenate([joined.ids for joined in parts])
        if any(joined.group is not None for joined in parts):
            of_parts = [joined.ids if joined.group is None else joined.group for joined in parts]
            groups = np.concatenate([names.astype(str) for names in of_parts])
        elif len({*ids.tolist()}) < len(ids):  # the criteria of an item
            groups = ids
        n_items, n_all = len({*ids.tolist()}), len(votes.values("item"))
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
    half = 1.96 * spread
    texts.append(
        f"{counted(n_labels, 'label')} alone give the {what} to within ± {half:.2f}; votes on the "
        "other items may narrow that. They are enough to calibrate on."
    )
    if votes is not None:
        texts += _sentences(_about_judge(tasks, parts))
    for column in {"system", "task"} & {*labels.columns}:
        numbers = labels.frame[column].value_counts().iter_rows()
        if few := sorted(str(name) for name, number in numbers if number < FEWEST):
            texts.append(f"There are fewer than {FEWEST} labels for {listing(few)}.")
    if labels.scale.mirrored:
        estimates = None if votes is None else _estimated(votes, labels)
        texts.append(_of_a_gate(estimates, spread, n_labels))
    if votes is None:
        return [
            *texts,
            "Next, get a judge's votes on these items, and name their file too.",
        ], ""
    is_evaluated = n_labels >= 2 * FEWEST and not votes.are_counts
    return texts, "evaluate" if is_evaluated else "estimate"


def _sentences(remarks: Iterable[str]) -> list[str]:
    return [f"{remark[0].upper()}{remark[1:]}." for remark in remarks]


def _about_judge(tasks: Sequence[str], parts: Sequence[Items]) -> list[Remark]:
    """Say of each task whether its votes may say nothing."""
    texts = []
    for task, items in zip(tasks, parts, strict=True):
        with suppress(InputError):
            doubt = about_judge(quiet(calibrate)(items))
            where = task if len(parts) > 1 else ""
            texts += [] if doubt is None else [doubt.within(where)]
    return texts


def _estimated(votes: Votes, labels: Labels) -> Estimates | None:
    if votes.sides == UNNAMED and {"system_a", "system_b"} <= {*votes.columns}:
        return None
    with suppress(InputError):
        return estimate(votes, labels, level=_LEVEL)
    return None


def _of_a_gate(estimates: Estimates | None, spread: float, n_labels: int) -> str:
    """Say what passes a gate: by an estimate, or by how much the labels alone vary."""
    gate = f"a gate with a margin of {_MARGIN} passes a side whose estimated net win rate is above"
    if estimates is None:  # twice the spread of the win rate is that of A less B
        needed = math.ceil((2 * spread * _REACH / _MARGIN) ** 2 * n_labels)
        least = 2 * _ONE_SIDED * spread - _MARGIN
        takes = f"it takes about {needed:,} labels to pass"
        return f"With the labels alone {gate} {least:+z.2f}; if A and B are equally good, {takes}."
    net = estimates.estimates[estimates.main]
    wanted = estimates.labels_for(2 * _MARGIN * _ONE_SIDED / _REACH)
    takes = "even labels on all items would be too few"
    takes = takes if wanted is None else f"it takes about {wanted:,} labels to pass"
    first, second = estimates.sides
    passing = [name for name, low in ((first, net.low), (second, -net.high)) if low > -_MARGIN]
    return (
        f"With votes and labels {gate} {net.value - net.low - _MARGIN:+z.2f}. That of {first} is "
        f"{net.value:+z.2f}: {' and '.join(passing) or f'neither {first} nor {second}'} would "
        f"pass. If they are equally good, {takes}."
    )


def _next(checks: Sequence[FileCheck], verb: str, where: str = "") -> str:
    if any(file.kind == "unknown" or (file.problems and not file.command) for file in checks):
        return ""
    foreign = next((file for file in checks if file.command), None)
    if foreign is not None:
        return foreign.command
    places = {file.kind: file for file in reversed(checks)}
    paths = {kind: shlex.quote(file.source) for kind, file in places.items()}
    if verb:
        votes = places["votes"]
        options = votes.options if verb == "choose" else [*votes.options, *places["labels"].options]
        option_text = "".join(f" {option}" for option in dict.fromkeys(options))
        if verb == "choose":
            n_items = min(50, votes.facts["items"])
            output = unused("to_label.csv")
            return f"btdagg choose {paths['votes']} --items {n_items} -o {output}{option_text}"
        return f"btdagg {verb} {paths['votes']} {paths['labels']}{option_text}{where}"
    if "pairs" in paths:
        return f"btdagg judge {paths['pairs']} --model simulated -n 8 --store votes.db"
    return ""
