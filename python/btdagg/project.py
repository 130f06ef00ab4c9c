"""How data are read: the project file `btdagg.toml`, typed keys, and the columns of a frame."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from btdagg._util.addresses import shown_address
from btdagg._util.errors import InputError, expect, forbid, quoted, reworded, shown, within
from btdagg._util.extensions import provided
from btdagg._util.files import read_whole
from btdagg._util.lazy import pl
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import is_number
from btdagg.remarks import code_of
from btdagg.votes.grades import scales_in
from btdagg.votes.join import with_task
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.provenance import warn_of
from btdagg.votes.scale import PAIRS, Scale, points_of
from btdagg.votes.schema import ITEM_NAMES
from btdagg.votes.source import (
    STANDARD_INPUT,
    literal,
    parts_of_column,
    paths_of,
    read_table,
    with_item,
)
from btdagg.votes.table import Table, filtered, listing
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from btdagg.votes.items import Items
    from btdagg.votes.source import Source

FILE = "btdagg.toml"
TABLES = ("votes", "labels", "pairs", "items")
OPEN = "..."
"""The value of a key that only the user can give."""


class Key(NamedTuple):
    """Kinds of value, or choices, of a key above the tables and in one; None where it is no key."""

    above: str | tuple[str, ...] | None
    inside: str | None = None


COLUMNS = (
    *("item", "vote", "score", "label", "grade", "grades", "judge", "rater", "n_raters"),
    *("task", "criterion", "group", "system", "system_a", "system_b", "order", "sample"),
    *("template", "temperature", "confidence", "strength", "margin", "p_minus", "p_tie", "p_plus"),
    *("minus", "tie", "plus", "probability", "unit", "stratum", "number", "setting", "status"),
    *("prompt", "reference", "response", "rubric", "a", "b", "score_a", "score_b", "answer"),
)
# Counts of a grade, its probability, and decisions of a judge's other methods, of some votes.
_OTHER_COLUMN = re.compile(r"(p_)?-?\d+(\.\d+)?|(greedy|few_shot|gsa|usc)(_\d+)?")
_MAPPINGS = ("words", "orders", "constants", "criteria", "judges")
KEYS = {
    **dict.fromkeys(COLUMNS, Key("column", "column")),
    "judge": Key("column or table", "column"),  # the table has settings of `btdagg judge`
    "strength": Key(("margin", "strength", "probabilities", "confidence", "none"), "column"),
    **dict.fromkeys(("a", "b"), Key("text", "column")),  # the name of A, the column of its texts
    "file": Key(None, "names"),
    **dict.fromkeys(("format", "scorer"), Key("text", "text")),
    "scale": Key("scale", "scale"),
    **dict.fromkeys(_MAPPINGS, Key("mapping", "mapping")),
    "raters": Key(("mean", "majority", "drop")),
    "population": Key(("new", "finite")),
    "standings": Key(("model", "votes")),
    "covariates": Key("names"),
    "full_margin": Key("number"),
    **dict.fromkeys(("panel", "title"), Key("text")),
    **dict.fromkeys(TABLES, Key("table")),
}
"""All keys but the further columns of `is_column`."""

# Types of value of each kind, each with the types of what a list or table holds, if it matters;
# and what is expected.
KINDS: dict[str, tuple[dict[type, tuple[type, ...] | None], str]] = {
    "text": ({str: None}, "a text"),
    "number": ({int: None, float: None}, "a number"),
    "names": ({str: None, list: (str,)}, "a name, or a list of names"),
    "column": ({str: None, list: (str,)}, "a name, or a list of names"),
    "column or table": ({str: None, list: (str,), dict: None}, "a name, or a table: [{name}]"),
    "scale": ({str: None, dict: (str,)}, 'a text, such as "1-5", or one for each criterion'),
    "mapping": ({dict: (str, int, float)}, 'a table, such as {name} = {draw = "tie"}'),
    "table": ({dict: None}, "a table: [{name}]"),
}

_FACTOR = re.compile("x[0-9]{1,3}")
_FOREIGN = {"format", "scorer", *_MAPPINGS[2:]}  # a table with one of these is imported

# Typed keys. In double quotes all is text: "" is a quote, and one that ends nothing is as well.
_DOUBLED = r'"(?:""|"(?!\s*(?:[=,]|\Z))|[^"])*+"(?=\s*(?:[=,]|\Z))'
# Where nobody doubled them, quotes end before the first = or comma.
_QUOTED = rf'(?:{_DOUBLED}|"(?s:.*?)"(?=\s*(?:[=,]|\Z)))'
_MAPPED = rf"(?:\w+\.)?(?:{'|'.join(_MAPPINGS)}|scale)\."
# A comma before KEY= divides keys; any other is a part of the text.
_COMMA = re.compile(
    rf'(?:\.|=\s*){_QUOTED}|(,)(?=[\w.-]+=|\s*{_MAPPED}(?:{_QUOTED}|[^\s="][^=]*)=)',
    re.IGNORECASE,
)
# Words may have an = of their own, but not their meanings; other values may.
_WORD = re.compile(
    rf"((?:\w+\.)?(?:words|orders)\.)({_QUOTED}|.+?)\s*=\s*({_QUOTED}|[^=]+)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER = re.compile(rf"((?:\w+\.)*)({_QUOTED}|[^=]*[^=.\s])\s*=\s*({_QUOTED}|.+)", re.DOTALL)
_PART = r"\"[^\"]*\"|'[^']*'|[\w-]+"
_LINE = re.compile(rf"\s*(\[?)\s*((?:{_PART})(?:\s*\.\s*(?:{_PART}))*)\s*[\]=]")


class Columns(dict[str, "str | Sequence[str]"]):
    """Names of a table's columns, and their contents.

    Parameters
    ----------
    words : mapping of str to A, tie, B, a grade or "missing"; optional
        Meaning of votes or labels in words.
    orders : mapping of str to AB or BA, optional
        Meaning of the words in the column `order`.
    scale : Scale, optional
        Scale of votes that are grades.
    **names : str, or list of str
        Columns by the names of `btdagg.read_votes` and `btdagg.read_labels`; a list makes one key.

    Examples
    --------
    >>> columns = Columns(item=["conversation", "bot"], vote="winner", words={"draw": "tie"})
    >>> rows = {"conversation": ["c"], "bot": ["x"], "winner": ["draw"]}
    >>> import btdagg
    >>> btdagg.read_votes(rows, columns=columns).frame["vote"].to_list()
    [0]
    """

    __module__ = "btdagg"

    def __init__(
        self,
        *,
        words: Mapping[str, object] | None = None,
        orders: Mapping[str, str] | None = None,
        scale: Scale | None = None,
        **names: str | Sequence[str],
    ) -> None:
        super().__init__(names)
        for name in names:
            if not is_column(name):
                raise InputError(argument=name, got=names[name], expected=_nearest(name, COLUMNS))
        self.words, self.orders, self.scale = words, orders, scale


@readable
@dataclass(frozen=True)
class Project:
    """How the data of a project are read.

    Attributes
    ----------
    keys : mapping
        Keys of the file: `votes`, `labels`, `pairs` and `items` are tables of columns, with `file`,
        `scale`, `words` and `orders`; keys outside of them hold for every table that has the
        column.
    path : Path or None
        The file.
    """

    keys: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    text: str = field(default="", repr=False)
    typed: frozenset[tuple[str, ...]] = field(default=frozenset(), repr=False)
    is_named: bool = field(default=True, repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> Project:
        """Load a project file; an `InputError` names the line of a wrong key.

        The file ``btdagg.toml`` that is loaded without its name may come from anywhere: it reads
        files of its folder and below, and no addresses.
        """
        place = Path(FILE if path is None else path)
        if path is None:
            _require_below(Path(), FILE, "")
        forbid(
            not place.exists(), f"{place}: no such file; btdagg check FILES --save writes {FILE}"
        )
        with reworded(ValueError, f"{place}: {{error}}"):  # no TOML, or no UTF-8
            text = read_whole(place).decode()
            keys = tomllib.loads(text)
        return cls(keys, place, text, is_named=path is not None)._checked()

    def with_keys(self, texts: Sequence[str]) -> Project:
        """Return the project with keys that are typed, such as ``votes.item=case``."""
        keys, typed = deepcopy(dict(self.keys)), set(self.typed)
        for path, value in (key for text in texts for key in _typed_keys(text)):
            *outer, last = path
            table = keys
            for part in outer:
                inner = table.get(part)
                table[part] = table = inner if isinstance(inner, dict) else {}
            is_float = not outer and _kind_of(last) == "number" and is_number(value)
            table[last] = float(value) if is_float else value
            typed.add(tuple(path))
        return Project(keys, self.path, self.text, frozenset(typed), self.is_named)._checked()

    # Keys

    def setting(self, name: str, default: Any = None) -> Any:
        """Return the value of a key above the tables."""
        return self._answer((name,), self.keys.get(name, default))

    def said(self, kind: str, name: str, default: Any = None) -> Any:
        """Return the value of a key of a table, else that of all tables."""
        *tables, name = path = self._path(kind, name)
        keys = self.keys[kind] if tables else self.keys
        return self._answer(path, keys.get(name, default))

    def where(self, *path: str) -> str:
        """Return what a message calls a key: the option that was typed, or its line of the file."""
        name = ".".join(path)
        if any(path[: len(typed_path)] == typed_path for typed_path in self.typed):
            return f"--set {name}"
        return f"{self.path}, line {self._line(path)}: {name}" if self.path else name

    def name_of(self, column: str) -> str:
        """Return our name of a column, in lower case, that is called otherwise in the files."""
        tables = (self._names(), *map(self._names, TABLES))
        pairs = (pair for table in tables for pair in table.items())
        return next((name for name, named in pairs if named == column), column)

    def column(self, kind: str, name: str, default: str | None = None) -> list[str] | None:
        """Return the parts of a column of a table, as the file has them; else the default."""
        value = self.said(kind, name, default)
        return value.split("+") if isinstance(value, str) else value

    # Files

    def place(self, kind: str, given: Any = None) -> Any:
        """Return the file of a table: the one given, or the project's.

        A project that nobody named has to have it below its folder.
        """
        if given is not None:
            return given
        place = self.file(kind)
        if place is None:
            raise InputError(
                f"{kind.upper()} is missing: name a file, or put it into {self.path or FILE} "
                "(btdagg check FILES --save writes one)"
            )
        if self.path is not None and not self.is_named and (kind, "file") not in self.typed:
            for part in [place] if isinstance(place, str) else place:
                _require_below(self.path.parent, part, f"{self.where(kind, 'file')}: ")
        return place

    def file(self, kind: str) -> Any:
        """Return the file, or files, of a table as the project says them, or None."""
        path = (kind, "file")
        place = self._answer(path, self.keys.get(kind, {}).get("file"))
        if place is None or path in self.typed or self.path is None:
            return place
        places = [place] if isinstance(place, str) else place
        moved = [p if "://" in p else os.path.normpath(self.path.parent / p) for p in places]
        return moved[0] if isinstance(place, str) else moved

    @property
    def files(self) -> list[str]:
        """All files, the project's own among them."""
        places = [] if self.path is None else [str(self.path)]
        for place in filter(None, map(self.file, TABLES)):
            places += [place] if isinstance(place, str) else place
        return places

    # Tables

    def read(self, *sources: tuple[str, Source | None]) -> list[Table]:
        """Read tables of some kinds, with their columns; those of None are left out.

        An `InputError` says where a table that cannot be read, or a missing column, is named.
        """
        present = [(kind, place) for kind, place in sources if place is not None]
        described = [n for n, (kind, _) in enumerate(present) if kind in ("votes", "labels")]
        with_items = bool(described) and self.file("items") is not None
        present += [("items", self.place("items"))] if with_items else []
        forbid(
            sum(str(place) == STANDARD_INPUT for _, place in present) > 1,
            "standard input is given for two tables, expected for at most one",
        )
        foreign = self._foreign_kinds(present)
        tables = [self._table(kind, place, kind in foreign) for kind, place in present]
        for name, column in self._names().items():
            if (name,) in self.typed:
                self._require((name,), column, tables)
        for number, (kind, _) in enumerate(present):
            columns = self._columns(tables[number], None if kind in foreign else kind)
            tables[number] = read_table(tables[number], [], columns=columns)
        if with_items:
            with within(f"{self.where('items', 'file')}: "):
                _join(tables.pop(), tables, described)
        return tables

    def imported(self, files: Sequence[Any], format: str | None, table: str, **how: Any) -> Any:
        """Read files of other tools by the project's top-level keys and those of a table."""
        formats = provided("files of other tools")
        how["columns"] = {
            name: column if isinstance(column, str) else tuple(column)  # a list is wide
            for name, column in (self._names() | self._names(table)).items()
        }
        how |= {name: self._mapping(name, table) for name in ("words", "constants")}
        how["name"] = self.said(table, "scorer")
        wide = {"criterion": self._mapping("criteria", table)}
        wide["judge"] = self._mapping("judges", table)
        wide = {name: columns for name, columns in wide.items() if columns}
        text, order = self.said(table, "scale"), self._mapping("orders", table)
        scale: Any = None
        if isinstance(text, str):
            scale = self._scale(self._path(table, "scale"), text)
            scale = scale.points[-1] if _FACTOR.fullmatch(text) else scale
        if not wide and (text is None or scale == PAIRS):
            return formats.read(files, format, order=order, **how)
        expect(not order, "order", order, "none, since single responses have no order")
        how["columns"] |= wide
        return formats.read_grades(files, format, scale=scale, **how)

    def tables(
        self,
        raw: Sequence[Table],
        where: Mapping[str, object],
        model: Any = None,
        *,
        signs: bool = False,
    ) -> tuple[Votes, Labels]:
        """Read rows of votes and labels that pass a filter; as those of a model if there is one."""
        votes, labels = filtered(where, *map(with_item, raw))
        scale, label_scale = self.scales(votes, labels, model)
        gold = read_labels(labels, scale=label_scale, **self.how_labelled)
        return with_task(self.votes_of(votes, scale, model, signs=signs), gold), gold

    def votes_of(
        self,
        table: Table,
        scale: Scale,
        model: Any = None,
        *,
        signs: bool = False,
        is_decided: bool = False,
    ) -> Votes:
        """Read votes as the project says, or a model's were; warn where their strength differs.

        `btdagg.decisions` warns of it by itself: then they are read for that.
        """
        how, origin = self.how(signs=signs), None if model is None else model.provenance
        if not scale.mirrored or origin is None:
            return read_votes(table, scale=scale, **how)
        is_chosen = any(how.get(name) is not None for name in ("strength", "full_margin"))
        how |= {} if is_chosen else origin.how_to_read(table)
        votes = read_votes(table, scale=scale, **how)
        if not is_decided:
            stated = votes.provenance
            warn_of(origin.other_strength(stated.strength, stated.full_margins))
        if not (is_chosen or votes.are_counts):
            warn_of(origin.unused_strength(table))
        return votes

    def rows(self, criterion: str | None = None) -> tuple[Votes, Labels]:
        """Votes and labels; of one criterion where there are several."""
        where = {} if criterion is None else {"criterion": [criterion]}
        return self.tables(self.read(*((kind, self.place(kind)) for kind in TABLES[:2])), where)

    @property
    def votes(self) -> Votes:
        """The votes."""
        return self.rows()[0]

    @property
    def labels(self) -> Labels:
        """The labels."""
        return self.rows()[1]

    def items(self, criterion: str | None = None) -> Items:
        """Items with votes, labels and named systems; one criterion where there are several."""
        votes, labels = self.rows(criterion)
        return votes.items(labels)

    # Arguments of the readers

    def how(self, *, signs: bool = False) -> dict[str, Any]:
        """Return how votes are read, as arguments of `btdagg.read_votes`."""
        settings = ("a", "b") if signs else ("a", "b", "strength", "full_margin")
        return {
            "words": self._mapping("words", "votes") or None,
            "order": self._mapping("orders", "votes") or None,
            **({"strength": "none"} if signs else {}),
            **{name: self.setting(name) for name in settings},
        }

    @property
    def how_labelled(self) -> dict[str, Any]:
        """How labels are read, as arguments of `btdagg.read_labels`."""
        return {
            "raters": self.setting("raters", "mean"),
            "words": self._mapping("words", "labels") or None,
        }

    def scale(self, kind: str, table: Table | None = None) -> Scale | None:
        """Return the scale that the project gives a table, for its criterion; None if none."""
        path, value = self._path(kind, "scale"), self.said(kind, "scale")
        if value is None:
            return None
        if isinstance(value, str):
            return self._scale(path, value)
        criteria = [*value]
        if table is not None:
            columns = [name for name in ("criterion", "task") if name in table.columns]
            criteria = [name for c in columns[:1] for name in table.values(c).drop_nulls()]
        for name in criteria:
            forbid(
                name not in value,
                f"{self.where(*path)} has no scale for {name!r}; add --set "
                f"'{'.'.join(path)}.{quoted(name)}=...'",
            )
        scales = {name: self._scale((*path, name), value[name]) for name in criteria}
        if len({*scales.values()}) != 1:
            listed = ", ".join(f"{name} {scale}" for name, scale in scales.items())
            raise InputError(
                f"criteria have different scales ({listed or 'no column says which'}); choose one: "
                "{advice}",
                advice={"where": {"criterion": next(iter(scales or value))}},
            )
        return next(iter(scales.values()))

    def scales(
        self, votes: Table, labels: Table | None = None, model: Any = None
    ) -> tuple[Scale, Scale]:
        """Return the scales of votes and labels: a model's, as they are said, or as is certain."""
        said = self.scale("votes", votes), None if labels is None else self.scale("labels", labels)
        if model is None:
            words = self._mapping("words", "votes", "labels") or None
            return scales_in(votes, labels, *said, words)
        of_model = model.scale, model.label_scale
        for kind, scale, fitted in zip(("votes", "labels"), said, of_model, strict=True):
            where = self.where(*self._path(kind, "scale"))
            forbid(scale not in (None, fitted), f"{where} is {scale}, but the model has {fitted}")
        return of_model

    def criteria_on(self, scale: Scale, label_scale: Scale) -> list[str] | None:
        """Return the criteria that have these scales; None where scales are of whole tables."""
        of_kinds = [
            {name for name, text in said.items() if self._scale((kind, "scale", name), text) == of}
            for kind, of in (("votes", scale), ("labels", label_scale))
            if isinstance(said := self.said(kind, "scale"), Mapping)
        ]
        return sorted(set.intersection(*of_kinds)) if of_kinds else None

    # Reading of one table

    def _table(self, kind: str, place: Any, is_foreign: bool) -> Table:
        """Read a table; errors of a file that the project names begin with its line."""
        try:
            if is_foreign:
                return self._foreign(kind, place)
            table = read_table(place, [])
        except InputError as error:
            if not is_foreign:
                self._refuse_format(kind, place)
            is_own = place == self.file(kind) and (kind, "file") not in self.typed
            is_own = is_own and not str(error).startswith(str(self.path))
            raise (error.within(f"{self.where(kind, 'file')}: ") if is_own else error) from None
        if {*table.columns, *self._names(), *self._names(kind)}.isdisjoint({"item", *ITEM_NAMES}):
            self._refuse_format(kind, place)
        return table

    def _foreign_kinds(self, sources: Sequence[tuple[str, Any]]) -> set[str]:
        """Return which tables are another tool's; a format of all is that of those that have it."""
        kinds = {kind for kind, _ in sources if not _FOREIGN.isdisjoint(self.keys.get(kind, {}))}
        if (name := self.keys.get("format")) is None:
            return kinds
        recognized = provided("files of other tools").recognized
        return kinds | ({kind for kind, place in sources if recognized(place, name)} or {"votes"})

    def _refuse_format(self, kind: str, place: Any) -> None:
        recognized = provided("files of other tools").recognized
        if kind in ("votes", "labels") and (name := recognized(place)):
            key = f"--set {kind}.format={name}"
            raise InputError(f"{place}: a file in the format {name}; {key} reads it") from None

    def _foreign(self, kind: str, place: Any) -> Table:
        imported = self.imported([place], self.said(kind, "format", "table"), kind)
        frame = imported.frame
        if any(code_of(remark) == "guessed-numbers" for remark in imported.remarks):
            frame = frame.drop("status", strict=False)  # or nobody asks what the numbers mean
        return Table(frame, str(place))

    def _require(self, path: tuple[str, ...], column: Any, tables: Sequence[Table]) -> None:
        """Refuse a column that none of some tables has."""
        absent = [_absent(column, table) for table in tables]
        if all(absent):
            found = (
                f"{table.source} has no column {name!r}; found {listing(table.columns)}"
                for name, table in zip(absent, tables, strict=True)
            )
            raise InputError(f"{self.where(*path)}: {'; '.join(found)}")

    def _columns(self, table: Table, kind: str | None) -> dict[str, Any]:
        """Return the columns of a table by our names; those above the tables where it has them."""
        shared, own = self._names(), {} if kind is None else self._names(kind)
        for name, column in own.items():
            self._require((str(kind), name), column, [table])
        # The labels' column may be called as the votes' is, which stays in the table of votes.
        kept = {c: c for c in shared.values() if c in ("vote", "label") and c not in shared}
        present = {n: c for n, c in (kept | shared).items() if not _absent(c, table)}
        return {name: literal(column, table) for name, column in (present | own).items()}

    # Keys of the file

    def _checked(self) -> Project:
        for name, value in self.keys.items():
            self._check((name,), value)
        for table in TABLES:
            for name, value in self.keys.get(table, {}).items():
                self._check((table, name), value)
        return self

    def _check(self, path: tuple[str, ...], value: object) -> None:
        name, is_inside = path[-1], len(path) > 1
        kind, other = _kind_of(name, is_inside), _kind_of(name, not is_inside)
        if kind is None:
            nearest = _nearest(name, [key for key in KEYS if _kind_of(key, is_inside)])
            place = "above the tables" if is_inside else "in a table"
            advice = f", expected {nearest}" if other is None else f" here; it stands {place}"
            raise InputError(f"{self.where(*path)}: no such key{advice}")
        if isinstance(kind, tuple):
            is_good, expected = value in (*kind, OPEN), f"one of {', '.join(kind)}"
        else:
            types, expected = KINDS[kind]
            parts: Any = value.values() if isinstance(value, dict) else value
            part_types = types.get(type(value))
            is_good = type(value) in types and value not in ("", [])
            is_good &= part_types is None or all(type(part) in part_types for part in parts)
        if not is_good:
            expected = expected.replace("{name}", name)
            raise InputError(f"{self.where(*path)} is {shown(value)}, expected {expected}")

    def _path(self, kind: str, name: str) -> tuple[str, ...]:
        return (kind, name) if name in self.keys.get(kind, {}) else (name,)

    def _answer(self, path: tuple[str, ...], value: Any) -> Any:
        forbid(value == OPEN, f"{self.where(*path)}: fill in the ..., a value that only you know")
        return value

    def _line(self, path: tuple[str, ...]) -> int:
        section: tuple[str, ...] = ()
        best, line = 0, 1
        for number, match in enumerate(map(_LINE.match, self.text.splitlines()), start=1):
            if match is None:
                continue
            key_path = tuple(part.strip("\"'") for part in re.findall(_PART, match[2]))
            if match[1]:
                section = key_path
            else:
                key_path = (*section, *key_path)
            if len(key_path) > best and path[: len(key_path)] == key_path:
                best, line = len(key_path), number
        return line

    def _names(self, *table: str) -> dict[str, Any]:
        """Return columns by our names, above the tables or in one; of a key of several a list."""
        names: dict[str, Any] = {}
        for name, column in (self.keys.get(table[0], {}) if table else self.keys).items():
            kind = _kind_of(name, bool(table))
            if kind in ("column", "column or table") and not isinstance(column, Mapping):
                parts = parts_of(self._answer((*table, name), column))
                names[name] = parts if len(parts) > 1 else parts[0]
        return names

    def _mapping(self, name: str, *kinds: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in ((name,), *((kind, name) for kind in kinds)):
            table = self.keys if len(path) == 1 else self.keys.get(path[0], {})
            for word, meaning in table.get(name, {}).items():
                found[word] = self._answer((*path, word), meaning)
        return found

    def _scale(self, path: tuple[str, ...], text: str) -> Scale:
        if self._answer(path, text).strip().lower() == "pairs":
            return PAIRS
        if _FACTOR.fullmatch(text):  # fractions are multiplied as they are imported
            return Scale(tuple(range(int(text[1:]) + 1)))
        points, is_mirrored, _ = text.partition("mirrored")
        try:
            return Scale(points_of(points, "scale"), mirrored=bool(is_mirrored))
        except InputError as error:
            rest = str(error).removeprefix("scale")
            raise InputError(f"{self.where(*path)}{rest}" if rest != str(error) else rest) from None


def _join(items: Table, tables: list[Table], described: Sequence[int]) -> None:
    """Add columns of items to those of some tables that have no column of the name, in place."""
    items, matches = read_table(items, ["item"]), []
    for number in described:
        table = read_table(tables[number], ["item"])
        item = pl.col("item").cast(table.schema["item"], strict=False)
        names = [name for name in items.columns if name not in table.columns]
        data = items.data.lazy().select(item, *names).drop_nulls("item")
        for repeated in items.collect(data.filter(pl.col("item").is_duplicated()).head(1))["item"]:
            raise InputError(f"{items.source} has item {repeated!r} twice")
        matches.append(table.collect(table.rows.join(data, on="item", how="semi").head(1)))
        joined = table.rows.join(data, on="item", how="left", maintain_order="left")
        tables[number] = table.with_data(table.collect(joined) if table.in_memory else joined)
    if not any(rows.height for rows in matches):
        both = items, tables[described[0]]
        first, other = (f"{t.source} has {t.values('item')[0]!r}" for t in both)
        raise InputError(f"no item is in both: {first}, {other}")


def _unquoted(text: str) -> str:
    if re.fullmatch(_DOUBLED, text):
        return text[1:-1].replace('""', '"')
    return text[1:-1] if re.fullmatch(_QUOTED, text) else text.strip()


def _typed_keys(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield path and value of each ``KEY=VALUE``; in double quotes commas and = are text."""
    commas = [match.start(1) for match in _COMMA.finditer(text) if match[1]]
    for comma, next_comma in pairwise([-1, *commas, len(text)]):
        typed = text[comma + 1 : next_comma].strip()
        match = _WORD.fullmatch(typed) or _OTHER.fullmatch(typed)
        if match is None:
            raise InputError(argument="keys", got=text, expected="KEY=VALUE")
        outer, name, value = match.groups()
        path = (outer + _unquoted(name)).split(".", 1)
        path[0] = path[0].lower()
        if path[0] in TABLES and len(path) > 1:
            path[1:] = path[1].split(".", 1)
            path[1] = path[1].lower()
        yield path, _unquoted(value)


def needs_a_name(places: Iterable[str]) -> bool:
    """Whether a project file here has to be named before commands read these files."""
    return any(_fault_of(Path(), place) for place in places)


def _require_below(folder: Path, place: str, where: str) -> None:
    """Refuse an address, and a path that leads out of a folder, also by a link."""
    forbid(
        fault := _fault_of(folder, place),
        f"{where}{shown_address(place)} {fault}, and nobody named {FILE}; --project {FILE} "
        "allows it",
    )


def _fault_of(folder: Path, place: str) -> str:
    if "://" in place:
        return "is an address"
    top, paths = os.path.realpath(folder), map(os.path.realpath, paths_of(place))
    is_below = not place.startswith("~") and all(Path(p).is_relative_to(top) for p in paths)
    return "" if is_below else "leads out of its folder"


def parts_of(column: str | Sequence[str]) -> list[str]:
    """Return the names of the columns that make one, in lower case; a text may join them by +."""
    return parts_of_column(column.split("+") if isinstance(column, str) else column)


def _absent(column: str | Sequence[str], table: Table) -> str | None:
    parts = parts_of(column)
    absent = [part for part in parts if part not in table.columns]
    return absent[0] if absent and "+".join(parts) not in table.columns else None


def is_column(name: str) -> bool:
    """Whether a column of a table may be called so by our names."""
    return name in COLUMNS or _OTHER_COLUMN.fullmatch(name) is not None


def _kind_of(name: str, is_inside: bool = False) -> str | tuple[str, ...] | None:
    key = KEYS.get(name, KEYS["item"] if is_column(name) else Key(None))
    return key.inside if is_inside else key.above


def _nearest(name: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(name.lower(), known, n=1)
    return nearest[0] if nearest else f"one of {listing(known)}"
