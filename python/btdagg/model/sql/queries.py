"""The whole job as one SQL query: votes to counts, labels and probabilities."""
# A query cannot refuse a row: a vote that is no point becomes `UNREADABLE` (of grades a number
# above the scale), as do two votes of one sample, and gives its item NULL for counts and label.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import nan
from typing import TYPE_CHECKING, Any, Literal

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.spreadsheets import is_number
from btdagg.model.sql.decisions import (
    LEAST_EXPONENT,
    NO_OFFSET,
    SIDES,
    Offset,
    Terms,
    as_real,
    grade_of,
    label_of,
    lead_of,
    model_terms,
    panel_terms,
    require_finite,
)
from btdagg.model.sql.dialects import Dialect, Name, dialect_named
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.schema import VOTE_WORDS, word_of, words_on
from btdagg.votes.words import SHOWN, as_words

if TYPE_CHECKING:
    from btdagg.votes.provenance import Provenance

UNREADABLE = 2
_OFFSET, _OF_ROW = "known_offset", "row_offset"  # of an item, and of each of its votes
_TAKEN = {"task", "judge", "vote", "label", "mean", *SIDES, "number"}  # names in a query
_LARGEST_MARGIN = 1e100  # as files have them


@dataclass(frozen=True)
class VotesTable:
    """A table of votes in a database, one row per vote, and the names of its columns.

    Parameters
    ----------
    name : str or sequence of str
        The table; several parts are a qualified name such as ``("main", "btdagg_votes")``.
    item : str or sequence of str
        Column of the items. Several are one key, and the result has these in place of `item`.
    vote : str
        Column of the votes from A's point of view; of grades `score` unless one is named.
    sample : str or sequence of str
        Columns that tell the votes of an item apart, ``("judge", "order", "sample")`` in exports of
        `btdagg votes`. Equal votes of a sample count once; different ones give the item NULL.
        Without them every row is a vote.
    task, judge : str, optional
        Columns to group by as well, or of a panel the column of the judges' names.
    where : mapping of column name to a value, or to several in a list
        Use only the rows that have one of these values, compared as text.
    numbers : bool
        Whether all votes are numbers; reading them as text takes longer.
    margin : str, optional
        For a model fitted with strength, the column of strengths, if it is not called `margin`,
        `strength` or `confidence` as at the fit. Every vote but ties needs one.
    template : str
        Column of the templates, which have full margins of their own where a judge has several; the
        judge is the column `judge`.
    strength : "none", optional
        Count signs, whatever the model was fitted to.
    covariates : mapping of str to str
        Column of each covariate whose column has another name; one value (or NULL) per item.
    words, orders : mapping, optional
        Meaning of the votes and orders in words, as in `btdagg.read_votes`.
    order : str
        Column of the orders, which only votes for ``first`` and ``second`` need.
    """

    name: Name
    item: Name = "item"
    vote: str | None = None
    sample: str | Sequence[str] = ()
    task: str | None = None
    judge: str | None = None
    where: Mapping[str, object] = field(default_factory=dict)
    numbers: bool = False
    margin: str | None = None
    template: str = "template"
    strength: Literal["none"] | None = None
    covariates: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, object] | None = None
    orders: Mapping[str, str] | None = None
    order: str = "order"

    @property
    def items(self) -> dict[str, str]:
        """The columns that tell items apart, by the names they have in the result."""
        parts = [self.item] if isinstance(self.item, str) else self.item
        if len(parts) == 1:
            return {"item": parts[0]}
        if taken := [part for part in parts if part.lower() in _TAKEN]:
            expected = f"a view in which {taken[0]} is called otherwise"
            raise InputError(argument="item", got=[*parts], expected=expected)
        return {part: part for part in parts}

    @property
    def keys(self) -> dict[str, str]:
        """The columns to group by besides the item, by the names they have in the result."""
        columns = {"task": self.task, "judge": self.judge}
        return {name: column for name, column in columns.items() if column is not None}


@dataclass(frozen=True)
class LabelsTable:
    """A table of gold labels in a database, one row per item, and the names of its columns.

    Parameters
    ----------
    name : str or sequence of str
        The table; several parts are a qualified name.
    item : str or sequence of str
        Column of the items, or several in the order of those of the votes.
    label : str
        Column of their labels, which are written as votes are.
    task : str, optional
        Column of the tasks, if items are told apart by their task; the table of votes then has one.
    numbers : bool
        Whether all labels are numbers.
    words : mapping, optional
        Meaning of the labels in words, as in `btdagg.read_labels`.
    """

    name: Name
    item: Name = "item"
    label: str = "label"
    task: str | None = None
    numbers: bool = False
    words: Mapping[str, object] | None = None


def query_of(
    model: Any, dialect: str, votes: VotesTable | Name, *, probabilities: bool = False
) -> str:
    """Return the query of a model, a panel or a model of grades; see `FittedModel.to_sql_query`."""
    words = dialect_named(dialect)
    table = votes if isinstance(votes, VotesTable) else VotesTable(votes)
    if not model.scale.mirrored:
        table = replace(table, vote=table.vote or model.scale.mode.column)
        return _graded(model, dialect, words, table, probabilities)
    judges = model.judges
    expect(not judges or table.judge is not None, "judge", None, "the column of the judges' names")
    columns = {
        judge: [words.name(f"{side}_{number}") for side in SIDES]
        for number, judge in enumerate(judges)
    }
    of_all = [words.name(side) for side in SIDES]
    added = Offset(f" + {words.name(_OFFSET)}", "") if model.covariates else NO_OFFSET
    terms = (
        panel_terms(model, words, columns, added)
        if judges
        else model_terms(model, words, of_all, added)
    )
    offset = _offset(model, words, table)
    steps = _Steps.counting(table, words, judges, model.provenance, model.scale, offset=offset)
    keys = [key for key in table.keys if not (judges and key == "judge")]
    keys += table.items
    return _decided(steps, terms, keys, probabilities, model.label_scale.points)


def _graded(
    model: Any, dialect: str, words: Dialect, table: VotesTable, probabilities: bool
) -> str:
    dot = "_" if dialect == "bigquery" else "."  # whose names of columns have no dots
    points = {name.replace(".", dot): point for name, point in model.scale.columns.items()}
    offset = _offset(model, words, table)
    steps = _Steps.counting(table, words, scale=model.scale, points=points, offset=offset)
    kept = [*table.keys, *table.items, *points]
    counts = [as_real(words.name(point), words) for point in points]
    votes_in_sum = zip(counts, points.values(), strict=True)
    total = " + ".join(f"{count} * {words.number(point)}" for count, point in votes_in_sum)
    offsets = [_OFFSET] * bool(offset)
    steps.add("means", *kept, *offsets, mean=f"({total}) / NULLIF({' + '.join(counts)}, 0)")
    kept.append("mean")
    added = f" + {words.name(_OFFSET)}" if offset else ""
    label = grade_of(model, words, offset=Offset(added, ""))
    if not probabilities:
        return steps.query(*kept, label=label)
    require_finite(beta=model.beta, cuts=max(map(abs, model.intercepts)))
    mean = words.name("mean")
    below = [0.0, *model.intercepts.cumsum()]
    logits = {
        f"logit_{place}": f"{words.number(place * model.beta)} * {mean}"
        + (f" + {place} * {words.name(_OFFSET)}" if offset else "")
        + f" - {words.number(cut)}"
        for place, cut in enumerate(below)
    }
    names = [words.name(name) for name in logits]
    steps.add("decided", *kept, label=label, **logits)
    steps.add("tops", *kept, "label", *logits, top=f"{words.greatest}({', '.join(names)})")
    grades = (str(grade).replace(".", dot) for grade in model.label_scale.points)
    exponents = dict(zip(grades, names, strict=True))
    return _probable(steps, kept, exponents, words.name("top"), exponents)


def histogram_query(dialect: str, votes: VotesTable | Name, labels: LabelsTable | Name) -> str:
    """Return one SQL query that counts the items of each triple of counts and label.

    Its columns are `minus`, `tie`, `plus`, `label` (NULL without one) and `number`, after any
    `task` and `judge` to group by, for `btdagg.votes.read_histogram` and `btdagg calibrate`.

    Parameters
    ----------
    dialect : str
        As in `DavidsonModel.to_sql`.
    votes : VotesTable, str or sequence of str
        The table of votes; see `DavidsonModel.to_sql_query`.
    labels : LabelsTable, str or sequence of str
        The table of labels, or its name if the columns are `item` and `label`.

    Notes
    -----
    Invalid votes give counts of NULL, and invalid or several labels of an item the label 2, which
    readers of the result refuse.
    """
    words = dialect_named(dialect)
    table = votes if isinstance(votes, VotesTable) else VotesTable(votes)
    if table.margin is not None or table.template != VotesTable.template:
        raise InputError(
            "a histogram counts whole votes, expected no column of margins or templates"
        )
    gold = labels if isinstance(labels, LabelsTable) else LabelsTable(labels)
    forbid(
        gold.task is not None and table.task is None,
        "labels have a task and votes have none, expected the task of both or neither",
    )
    of_items = [gold.item] if isinstance(gold.item, str) else gold.item
    expected = f"as many columns as votes have: {', '.join(table.items.values())}"
    expect(len(of_items) == len(table.items), "item", gold.item, expected)
    shared = dict(zip(table.items, of_items, strict=True))
    shared |= {} if gold.task is None else {"task": gold.task}
    steps = _Steps.counting(table, words)
    label = words.name("label")
    rows = {key: f"l.{words.name(column)}" for key, column in shared.items()}
    rows["label"] = _reading(
        f"l.{words.name(gold.label)}", words, PAIRS, gold.words, numbers=gold.numbers
    )
    steps.add("labels", source=f"{words.name(gold.name)} AS l", **rows)
    once = f"CASE WHEN COUNT(*) = 1 THEN MAX({label}) ELSE {UNREADABLE} END"
    steps.add("gold", *shared, group_by=shared, label=once)
    kept = [*table.keys, *SIDES]
    matched = " AND ".join(f"c.{words.name(key)} = g.{words.name(key)}" for key in shared)
    source = f"btdagg_counts AS c LEFT JOIN btdagg_gold AS g ON {matched}"
    joined = {key: f"c.{words.name(key)}" for key in kept} | {"label": f"g.{label}"}
    steps.add("joined", source=source, **joined)
    return steps.query(*kept, "label", group_by=(*kept, "label"), number="COUNT(*)")


def _offset(model: Any, words: Dialect, table: VotesTable) -> str:
    """Write the offset of a row of votes, NULL where a covariate is no number; empty if none."""
    if unknown := table.covariates.keys() - {covariate.name for covariate in model.covariates}:
        raise InputError(argument="covariates", got=min(unknown), expected="one of the model's")
    names = {
        covariate.name: ("v", table.covariates.get(covariate.name, covariate.name))
        for covariate in model.covariates
    }
    added, known = Offset.of(model, words, names)
    return f"CASE WHEN 1 = 1{known} THEN 0{added} END" if names else ""


def _one_of(column: str, words: Dialect) -> str:
    name = words.name(column)
    return f"CASE WHEN COUNT({name}) = COUNT(*) AND MIN({name}) = MAX({name}) THEN MAX({name}) END"


class _Steps:
    def __init__(self, words: Dialect) -> None:
        self.words = words
        self._written: list[str] = []
        self._last = ""

    @classmethod
    def counting(
        cls,
        table: VotesTable,
        words: Dialect,
        judges: Sequence[str] = (),
        origin: Provenance | None = None,
        scale: Scale = PAIRS,
        points: Mapping[str, float] | None = None,
        offset: str = "",
    ) -> _Steps:
        """Write the subqueries from votes to counts of points, one row per item and key."""
        # With `judges` one row has the counts of all, and a vote of anybody else is unreadable.
        # Items with several offsets, or none that is a number, have no counts. `points` are those
        # of a scale of grades by their names in the result.
        steps = cls(words)
        points = SIDES if points is None else points
        samples = [table.sample] if isinstance(table.sample, str) else list(table.sample)
        columns = {**table.keys, **table.items}
        columns |= {f"sample_{number}": column for number, column in enumerate(samples)}
        # A column of the table may have the name of another one in the query.
        rows = {name: f"v.{words.name(column)}" for name, column in columns.items()}
        order = _order(table, words)
        if table.orders:
            rows |= {name: order for name in rows if rows[name] == f"v.{words.name(table.order)}"}
        cell = f"v.{words.name(table.vote or 'vote')}"
        strengths = {} if origin is None else _strengths(table, words, origin)
        # Without samples, numbers that are no votes are found by counting.
        plain = table.numbers and not (samples or strengths or table.words) and scale == PAIRS
        unreadable = _unreadable(points.values(), words)
        reading = _reading(cell, words, scale, table.words, order, numbers=table.numbers)
        rows["vote"] = cell if plain else reading
        rows |= strengths
        offsets = [_OF_ROW] if offset else []
        rows |= dict.fromkeys(offsets, offset)
        if judges:
            # As names are read from files: without blanks around them.
            rows["judge"] = f"TRIM(CAST({rows['judge']} AS {words.text}))"
            is_known = f"COALESCE({rows['judge']} IN ({words.texts(judges)}), FALSE)"
            rows["vote"] = f"CASE WHEN {is_known} THEN {rows['vote']} ELSE {unreadable} END"
        conditions = [
            f"CAST(v.{words.name(column)} AS {words.text}) IN ({words.texts(_texts(wanted))})"
            for column, wanted in table.where.items()
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        steps.add("votes", source=f"{words.name(table.name)} AS v{where}", **rows)
        vote, judge = words.name("vote"), words.name("judge")
        keys = [*table.keys, *table.items]
        if strengths:
            steps.add("strengths", *columns, *offsets, vote=_signed_strength(words))
        if samples:
            once = (
                f"CASE WHEN MIN({vote}) = MAX({vote}) THEN MAX({vote}) "
                f"WHEN MAX({vote}) IS NOT NULL THEN {unreadable} END"
            )
            one_offset = dict.fromkeys(offsets, _one_of(_OF_ROW, words))
            steps.add("samples", *keys, group_by=columns, vote=once, **one_offset)
        votes = {
            name: (f"{vote} = {_literal(point, words)}", "1") for name, point in points.items()
        }
        readable = " + ".join(_how_many(condition) for condition, _ in votes.values())
        if strengths:
            votes = {
                "minus": (f"{vote} < 0", f"0 - {vote}"),
                "tie": (f"{vote} IS NOT NULL", f"1 - ABS({vote})"),
                "plus": (f"{vote} > 0", vote),
            }
            readable = _how_many(f"ABS({vote}) <= 1")
        whose = {"": ""} | {
            f"_{number}": f" AND {judge} = {words.texts([name])}"
            for number, name in enumerate(judges)
        }
        known = f" AND {_one_of(_OF_ROW, words)} IS NOT NULL" if offset else ""
        sums = {
            side + suffix: f"CASE WHEN COUNT({vote}) = {readable}{known} "
            f"THEN {_how_many(condition + of_judge, amount)} END"
            for suffix, of_judge in whose.items()
            for side, (condition, amount) in votes.items()
        }
        kept = [key for key in keys if not (judges and key == "judge")]
        sums |= {_OFFSET: _one_of(_OF_ROW, words)} if offset else {}
        steps.add("counts", *kept, group_by=kept, **sums)
        return steps

    def add(self, name: str, *kept: str, **new: Any) -> None:
        self._written.append(f"btdagg_{name} AS (\n  {self._select(*kept, **new)}\n)")
        self._last = f"btdagg_{name}"

    def query(self, *kept: str, **new: Any) -> str:
        return "WITH " + ",\n".join(self._written) + "\n" + self._select(*kept, **new)

    def _select(
        self, *kept: str, source: str = "", group_by: Iterable[str] = (), **new: str
    ) -> str:
        columns = [self.words.name(name) for name in kept]
        columns += [f"{written} AS {self.words.name(name)}" for name, written in new.items()]
        grouped = ", ".join(self.words.name(name) for name in group_by)
        text = f"SELECT {', '.join(columns)} FROM {source or self._last}"
        return f"{text} GROUP BY {grouped}" if grouped else text


def _decided(
    steps: _Steps,
    terms: Terms,
    keys: Iterable[str],
    probabilities: bool,
    labels: Sequence[float],
) -> str:
    """Query of labels and probabilities from counts, in steps that each database computes once."""
    words = steps.words
    kept, names = [*keys, *SIDES], ("u", "eta", "doubt")
    u, eta, doubt, lead = (words.name(name) for name in (*names, "lead"))
    steps.add("terms", *kept, u=terms.u, eta=terms.eta, doubt=terms.doubt)
    steps.add("leads", *kept, *names, lead=lead_of(u, words))
    counted = f"{words.name('minus')} IS NOT NULL"
    label = label_of(terms._replace(u=u, eta=eta, doubt=doubt), words, counted, lead, labels)
    if not probabilities:
        return steps.query(*kept, label=label)
    steps.add("decided", *kept, "u", "eta", label=label)
    exponents = dict(zip(SIDES, (f"(0 - {u})", eta, u), strict=True))
    # Both sides first, so that mirrored items have mirrored sums.
    summed = ("minus", "plus", "tie")
    return _probable(steps, kept, exponents, f"{words.greatest}(ABS({u}), {eta})", summed)


def _probable(
    steps: _Steps,
    kept: Sequence[str],
    exponents: Mapping[str, str],
    top: str,
    summed: Iterable[str],
) -> str:
    words = steps.words
    # Less the largest exponent, so that none overflows.
    least = words.number(LEAST_EXPONENT)
    odds = {
        f"odds_{name}": f"EXP({words.greatest}({exponent} - {top}, {least}))"
        for name, exponent in exponents.items()
    }
    steps.add("odds", *kept, "label", **odds)
    total = " + ".join(words.name(f"odds_{name}") for name in summed)
    missing = f"CASE WHEN {words.name('label')} IS NULL THEN NULL"
    shares = {
        f"p_{name}": f"{missing} ELSE {words.name(f'odds_{name}')} / ({total}) END"
        for name in exponents
    }
    return steps.query(*kept, "label", **shares)


def _reading(
    column: str,
    words: Dialect,
    scale: Scale,
    meanings: Mapping[str, object] | None,
    order: str = "",
    *,
    numbers: bool,
) -> str:
    """Write a vote or a label as a point, NULL if it is missing, or what is unreadable."""
    missing = f"CASE WHEN {column} IS NULL THEN NULL"
    values = SIDES.values() if scale.mirrored else scale.points
    unreadable = _unreadable(values, words)
    literals = {
        point: _literal(value, words) for point, value in zip(scale.points, values, strict=True)
    }
    if numbers and not meanings:
        same = " ".join(
            f"WHEN {column} = {_literal(point, words)} THEN {literals[point]}" for point in literals
        )
        return f"{missing} {same} ELSE {unreadable} END"
    spelled = {spelling: point for point in scale.points for spelling in _spellings(point)}
    results = {word: literals[point] for word, point in spelled.items()}
    for word, meaning in _meanings(scale, meanings).items():
        if meaning in SHOWN:
            expect(order, "words", f"{word}={meaning}", "A, tie, B or missing of labels")
            first, second = SHOWN[str(meaning)], -SHOWN[str(meaning)]
            result = (
                f"CASE {order} WHEN 'AB' THEN {first} WHEN 'BA' THEN {second} ELSE {unreadable} END"
            )
        else:
            result = "NULL" if meaning is None else literals.get(meaning, unreadable)
        results |= dict.fromkeys(_cases(word), result)
    read = " ".join(f"WHEN {words.texts([word])} THEN {result}" for word, result in results.items())
    text = _lower(column, words)
    blank = "" if "" in results else "WHEN '' THEN NULL "
    return f"{missing} ELSE CASE {text} {read} {blank}ELSE {unreadable} END END"


def _meanings(scale: Scale, words: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the point that each word means, ``first``, ``second``, or None for a missing vote."""
    if scale == PAIRS:
        lower = {word: str(meaning).strip().lower() for word, meaning in (words or {}).items()}
        sides = {word: meaning for word, meaning in lower.items() if meaning in SHOWN}
        plain = as_words({word: m for word, m in (words or {}).items() if word not in sides})
        return {
            word_of(word): meaning for word, meaning in {**VOTE_WORDS, **plain, **sides}.items()
        }
    texts = words_on(scale, words)
    return {
        word: float(text) if is_number(text) else nan if text else None
        for word, text in texts.items()
    }


def _order(table: VotesTable, words: Dialect) -> str:
    """Write the order of a vote as AB or BA, NULL where it is neither."""
    names = {
        word_of(word): str(order).strip().upper() for word, order in (table.orders or {}).items()
    }
    for word, order in names.items():
        expect(order in ("AB", "BA"), "orders", f"{word}={order}", "AB or BA")
    read = " ".join(
        f"WHEN {words.texts([text])} THEN '{order}'"
        for word, order in ({"ab": "AB", "ba": "BA"} | names).items()
        for text in _cases(word)
    )
    return f"CASE {_lower(f'v.{words.name(table.order)}', words)} {read} END"


def _lower(column: str, words: Dialect) -> str:
    return f"LOWER(TRIM(CAST({column} AS {words.text})))"


def _cases(word: str) -> list[str]:
    """Return how a database may write a word in lower case: SQLite changes ASCII alone."""
    if re.fullmatch("-?[0-9]+", word):
        return _spellings(int(word))
    cased = [] if word.isascii() else [word.upper(), word.title(), word.capitalize()]
    ascii_lower = ("".join(c.lower() if c.isascii() else c for c in text) for text in cased)
    return [*dict.fromkeys([word, *ascii_lower])]


def _spellings(point: float) -> list[str]:
    """Return how databases write a number as text: 10, 10.0, 10.00, or 1.0e1 of Trino's floats."""
    text = str(point)
    mantissa, exponent = f"{Decimal(text).normalize():e}".split("e")
    mantissa += "" if "." in mantissa else ".0"
    decimals = [text, f"{text}0"] if "." in text else [text, f"{text}.0", f"{text}.00"]
    spelled = [*decimals, f"{mantissa}e{int(exponent)}"]
    if point == 0:
        spelled += [f"-{spelling}" for spelling in spelled]
    return [*spelled, f"+{text}"] if point > 0 else spelled


def _unreadable(points: Iterable[float], words: Dialect) -> str:
    """Write a number above all points: `UNREADABLE` above the votes of pairs."""
    return _literal(max(points) + max(1, abs(max(points))), words)


def _literal(point: float, words: Dialect) -> str:
    return str(point) if isinstance(point, int) else words.number(point)


def _strengths(table: VotesTable, words: Dialect, origin: Provenance) -> dict[str, str]:
    """Write the margin of a vote, NULL where it is none, and its full margin; {} to count signs."""
    if table.strength == "none" or origin.strength in ("", "none"):
        return {}
    forbid(
        origin.strength == "probabilities",
        "the model was fitted to probabilities of votes, which no query sums; {advice} none "
        "counts whole votes",
        advice={"strength": None},
    )
    cell = f"v.{words.name(table.margin or origin.strength)}"
    real, largest = f"CAST({cell} AS {words.real})", _LARGEST_MARGIN
    full, margins = f"CAST(NULL AS {words.real})", origin.full_margins
    columns, fitted = (table.judge or "judge", table.template), (origin.judge, origin.template)
    if origin.strength != "margin":
        largest, full = 1, words.number(1)
    elif len(margins) == 1 and not any(
        {*values} - {name} for name, values in zip(margins[0], fitted, strict=False)
    ):
        full = words.number(margins[0].margin)
    elif margins:
        cases = []
        for *names, margin in margins:
            # Votes may be of no judge beside those of others.
            conditions = [
                f"COALESCE(TRIM(CAST(v.{words.name(column)} AS {words.text})), '') = "
                f"{words.texts([name])}"
                for column, name, values in zip(columns, names, fitted, strict=True)
                if name or values
            ]
            cases.append(f"WHEN {' AND '.join(conditions) or '1 = 1'} THEN {words.number(margin)}")
        full = f"CASE {' '.join(cases)} END"
    limits = f"BETWEEN {words.number(-largest)} AND {words.number(largest)}"
    is_margin = f"{words.is_number.format(cell)}{real} {limits}"
    return {"margin": f"CASE WHEN {is_margin} THEN {real} END", "full_margin": full}


def _signed_strength(words: Dialect) -> str:
    """Write a vote times its strength, rounded as the package rounds it."""
    vote, margin, full = (words.name(name) for name in ("vote", "margin", "full_margin"))
    parts, half = words.number(1024), words.number(0.5)
    rounded = f"FLOOR(ABS({margin}) / {full} * {parts} + {half}) / {parts}"
    # Votes of a judge who had no margins are whole.
    return (
        f"CASE WHEN {vote} NOT IN (-1, 1) OR {margin} IS NULL AND {full} IS NULL THEN {vote} "
        f"WHEN {vote} = 1 AND {margin} < 0 THEN {UNREADABLE} "
        f"WHEN ABS({margin}) >= {full} THEN {vote} "
        f"WHEN ABS({margin}) < {full} THEN {vote} * ({rounded}) "
        f"WHEN {vote} IS NOT NULL THEN {UNREADABLE} END"
    )


def _how_many(condition: str, amount: str = "1") -> str:
    rows = f"CASE WHEN {condition} THEN {amount} END"
    return f"COUNT({rows})" if amount == "1" else f"COALESCE(SUM({rows}), 0)"


def _texts(wanted: Any) -> list[str]:
    several = isinstance(wanted, list | tuple | set | frozenset)
    return [str(value) for value in (wanted if several else [wanted])]
