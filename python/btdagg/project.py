"""How data are read: the project file `btdagg.toml`, typed keys, and the columns of a frame."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btdagg._util.addresses import shown_address
from btdagg._util.errors import InputError, expect, forbid, reworded, shown
from btdagg._util.extensions import provided
from btdagg._util.files import read_whole
from btdagg._util.readable import readable
from btdagg._util.spreadsheets import is_number
from btdagg.remarks import code_of

if TYPE_CHECKING:
    from btdagg.votes.items import Items
    from btdagg.votes.labels import Labels
    from btdagg.votes.scale import Scale
    from btdagg.votes.source import Source
    from btdagg.votes.table import Table
    from btdagg.votes.votes import Votes

FILE = "btdagg.toml"
TABLES = ("votes", "labels", "pairs", "items")
OPEN = "..."
"""The value of a key that only the user can give."""

CHOICES = {
    "raters": ("mean", "majority", "drop"),
    "strength": ("margin", "strength", "probabilities", "confidence", "none"),
    "population": ("new", "finite"),
    "standings": ("model", "votes"),
}
SETTINGS = (*CHOICES, "covariates", "full_margin", "panel", "a", "b", "title")
COLUMNS = (
    *("item", "vote", "score", "label", "grade", "grades", "judge", "rater", "n_raters"),
    *("task", "criterion", "group", "system", "system_a", "system_b", "order", "sample"),
    *("template", "temperature", "confidence", "strength", "margin", "p_minus", "p_tie", "p_plus"),
    *("minus", "tie", "plus", "probability", "unit", "stratum", "number", "setting", "status"),
    *("prompt", "reference", "response", "rubric", "a", "b", "score_a", "score_b", "answer"),
)
# Counts of a grade, its probability, and decisions of a judge's other methods, of some votes.
_OTHER_COLUMN = re.compile(r"(p_)?-?\d+(\.\d+)?|(greedy|few_shot|gsa|usc)(_\d+)?")
_FACTOR = re.compile("x[0-9]{1,3}")
_MAPPINGS = ("words", "orders", "constants", "criteria", "judges")
# A comma before a further key divides keys; one within a value does not.
_KEYS = re.compile(rf",(?=[\w.\0-]+=|\s*(?:\w+\.)?(?:{'|'.join(_MAPPINGS)})\.)")
_QUOTED = re.compile(r'(?<=[.=])"(.*?)"(?=[=,]|$)')
_TABLE_KEYS = ("file", "format", "scorer", "scale", *_MAPPINGS)
_FOREIGN = {"format", "scorer", *_MAPPINGS[2:]}  # keys by which a table is imported


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
            project = cls(tomllib.loads(text), place, text, is_named=path is not None)
        return project._checked()

    def with_keys(self, texts: Sequence[str]) -> Project:
        """Return the project with keys that are typed, such as ``votes.item=case``."""
        keys, typed = deepcopy(dict(self.keys)), set(self.typed)
        for path, value in (key for text in texts for key in _typed_keys(text)):
            *outer, last = path
            table = keys
            for part in outer:
                inner = table.get(part)
                table[part] = table = inner if isinstance(inner, dict) else {}
            table[last] = float(value) if path == ["full_margin"] and is_number(value) else value
            typed.add(tuple(path))
        return Project(keys, self.path, self.text, frozenset(typed), self.is_named)._checked()

    def setting(self, name: str, default: Any = None) -> Any:
        """Return one of `SETTINGS`."""
        return self._answer((name,), self.keys.get(name, default))

    def place(self, kind: str, given: Any = None) -> Any:
        """Return the file of a table: the one given, or the project's."""
        if given is not None:
            return given
        place = self.file(kind)
        if place is None:
            raise InputError(
                f"{kind.upper()} is missing: name a file, or put it into {self.path or FILE} "
                "(btdagg check FILES --save writes one)"
            )
        return self._required_below(kind, place)

    def _required_below(self, kind: str, place: Any) -> Any:
        """Return files of a table; of a project that nobody named those below its folder."""
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

    def read(self, *sources: tuple[str, Source | None]) -> list[Table]:
        """Read tables of some kinds, with their columns; those of None are left out.

        An `InputError` says where a table that cannot be read, or a missing column, is named.
        """
        from btdagg.votes.source import ITEM_NAMES, STANDARD_INPUT, literal, read_table
        from btdagg.votes.table import listing

        forbid(
            sum(str(place) == STANDARD_INPUT for _, place in sources) > 1,
            "standard input is given for two tables, expected for at most one",
        )
        present = [(kind, place) for kind, place in sources if place is not None]
        foreign, tables = self._foreign_kinds(present), []
        for kind, place in present:
            try:
                read_own = kind not in foreign
                table = read_table(place, []) if read_own else self._foreign(kind, place)
            except InputError as error:
                if read_own:
                    self._refuse_format(kind, place)
                is_own = place == self.file(kind) and (kind, "file") not in self.typed
                is_own = is_own and not str(error).startswith(str(self.path))
                raise (error.within(f"{self.where(kind, 'file')}: ") if is_own else error) from None
            tables.append(table)
            present_columns = {*table.columns, *self._names(), *self._names(kind)}
            if read_own and present_columns.isdisjoint({"item", *ITEM_NAMES}):
                self._refuse_format(kind, place)
        shared, read = self._names(), []
        of_items: Table | None = None
        for name in (name for name in shared if (name,) in self.typed):
            if all(_absent(shared[name], table) for table in tables):
                found = "; ".join(
                    f"{table.source} has {listing(table.columns)}" for table in tables
                )
                absent = _absent(shared[name], *tables)
                column = "+".join(parts_of(shared[name]))
                raise InputError(f"--set {name}={column}: no column {absent!r}; {found}")
        # The labels' column may be called as the votes' is, which stays in the table of votes.
        used = [column for column in shared.values() if column in ("vote", "label")]
        kept = {column: column for column in used if column not in shared}
        for (kind, _), table in zip(present, tables, strict=True):
            own_names = {} if kind in foreign else self._names(kind)
            for name, column in own_names.items():
                if absent := _absent(column, table):
                    raise InputError(
                        f"{self.where(kind, name)}: {table.source} has no column {absent!r}; found "
                        + listing(table.columns)
                    )
            names = {
                n: c for n, c in {**kept, **shared}.items() if not _absent(c, table)
            } | own_names
            names = {name: literal(column, table) for name, column in names.items()}
            table = read_table(table, [], columns=names)
            file = self.file("items") if kind in ("votes", "labels") else None
            if file is not None:
                self._required_below("items", file)
                of_items = self.read(("items", file))[0] if of_items is None else of_items
                table = self._with_items(table, of_items)
            read.append(table)
        return read

    def said(self, kind: str, name: str, default: Any = None) -> Any:
        """Return the value of a key of a table, else that of all tables."""
        return self.keys.get(kind, {}).get(name, self.keys.get(name, default))

    def imported(self, files: Sequence[Any], format: str | None, table: str, **how: Any) -> Any:
        """Read files of other tools by the project's top-level keys and those of a table."""
        from btdagg.votes.scale import Scale, points_of

        formats = provided("files of other tools")
        how |= {
            "columns": {
                name: column if isinstance(column, str) else tuple(column)  # a list is wide
                for name, column in (self._names() | self._names(table)).items()
            },
            "words": self._mapping("words", table),
            "constants": self._mapping("constants", table),
            "name": self.said(table, "scorer"),
        }
        wide = {"criterion": self._mapping("criteria", table)}
        wide["judge"] = self._mapping("judges", table)
        wide = {name: named for name, named in wide.items() if named}
        path = (table, "scale") if "scale" in self.keys.get(table, {}) else ("scale",)
        text = self._answer(path, self.said(table, "scale"))
        orders = self._mapping("orders", table)
        if text is None and not wide:
            return formats.read(files, format, order=orders, **how)
        expect(not orders, "order", orders, "none, since single responses have no order")
        scale: Any = None
        if isinstance(text, str):
            is_factor = _FACTOR.fullmatch(text)
            scale = int(text[1:]) if is_factor else Scale(points_of(text, "scale"))
        how["columns"] |= wide
        return formats.read_grades(files, format, scale=scale, **how)

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
        from btdagg.votes.table import Table

        name = self.said(kind, "format", "table")
        imported = self.imported([place], name, kind)
        frame = imported.frame
        if any(code_of(remark) == "guessed-numbers" for remark in imported.remarks):
            frame = frame.drop("status", strict=False)  # or nobody asks what the numbers mean
        return Table(frame, str(place))

    def names_column(self, name: str) -> bool:
        """Whether the project says which column of the votes is called so."""
        return name in self._names("votes") or name in self._names()

    def column(self, kind: str, name: str, default: str | None = None) -> list[str] | None:
        """Return the parts of a column of a table, as the file has them; else the default."""
        path = (kind, name) if name in self.keys.get(kind, {}) else (name,)
        value = self.said(kind, name, default)
        value = self._answer(path, value) if is_column(name) else default
        return value.split("+") if isinstance(value, str) else value

    def scale(self, kind: str, table: Table | None = None) -> Scale | None:
        """Return the scale that the project gives a table, for its criterion; None if none."""
        path = (kind, "scale") if "scale" in self.keys.get(kind, {}) else ("scale",)
        value = self.said(kind, "scale")
        value = self._answer(path, value)
        if value is None:
            return None
        if isinstance(value, str):
            return self._scale(path, value)
        columns = () if table is None else ("criterion", "task")
        column = next((name for name in columns if table and name in table.columns), None)
        criteria = [*value]
        if table is not None:
            criteria = table.values(column).drop_nulls().to_list() if column else []
        for name in criteria:
            if name not in value:
                raise InputError(
                    f"{self.where(*path)} has no scale for {name!r}; add --set "
                    f"{'.'.join(path)}.{name!r}=..."
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
        from btdagg.votes.grades import scales_in

        said = self.scale("votes", votes), None if labels is None else self.scale("labels", labels)
        if model is None:
            words = self._mapping("words", "votes", "labels") or None
            return scales_in(votes, labels, *said, words)
        of_model = model.scale, model.label_scale
        for kind, scale, fitted in zip(("votes", "labels"), said, of_model, strict=True):
            where = self.where(kind, "scale")
            forbid(scale not in (None, fitted), f"{where} is {scale}, but the model has {fitted}")
        return of_model

    def criteria_on(self, scale: Scale, label_scale: Scale) -> list[str] | None:
        """Return the criteria that have these scales; None where scales are of whole tables."""
        of_kinds = [
            {
                name
                for name, text in said.items()
                if self._scale((kind, "scale", name), text) == kind_scale
            }
            for kind, kind_scale in (("votes", scale), ("labels", label_scale))
            if isinstance(said := self.keys.get(kind, {}).get("scale"), Mapping)
        ]
        return sorted(set.intersection(*of_kinds)) if of_kinds else None

    def name_of(self, column: str) -> str:
        """Return our name of a column, in lower case, that is called otherwise in the files."""
        named = [self._names(), *map(self._names, TABLES)]
        pairs = (pair for names in named for pair in names.items())
        return next(
            (name for name, file_column in pairs if str(file_column).lower() == column), column
        )

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

    def where(self, *path: str) -> str:
        """Return what a message calls a key: the option that was typed, or its line of the file."""
        name = ".".join(path)
        if any(path[: len(typed_path)] == typed_path for typed_path in self.typed):
            return f"--set {name}"
        return f"{self.path}, line {self._line(path)}: {name}" if self.path else name

    def how(self, *, signs: bool = False) -> dict[str, Any]:
        """Return how votes are read, as arguments of `btdagg.read_votes`."""
        names = ("a", "b") if signs else ("a", "b", "strength", "full_margin")
        said = {name: self.setting(name) for name in names}
        words, orders = self._mapping("words", "votes"), self._mapping("orders", "votes")
        said |= {"words": words or None, "order": orders or None}
        return said | ({"strength": "none"} if signs else {})

    def tables(
        self,
        raw: Sequence[Table],
        where: Mapping[str, object],
        model: Any = None,
        *,
        signs: bool = False,
    ) -> tuple[Votes, Labels]:
        """Read rows of votes and labels that pass a filter; as those of a model if there is one."""
        from btdagg.votes.join import with_task
        from btdagg.votes.labels import read_labels
        from btdagg.votes.source import with_item
        from btdagg.votes.table import filtered

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
        from btdagg.votes.provenance import warn_of
        from btdagg.votes.votes import read_votes

        how, origin = self.how(signs=signs), None if model is None else model.provenance
        is_chosen = any(how.get(name) is not None for name in ("strength", "full_margin"))
        if not scale.mirrored or origin is None:
            return read_votes(table, scale=scale, **how)
        if not is_chosen:
            how |= origin.how_to_read(table)
        votes = read_votes(table, scale=scale, **how)
        stated = votes.provenance
        if not is_decided:
            warn_of(origin.other_strength(stated.strength, stated.full_margins))
        if not (is_chosen or votes.are_counts):
            warn_of(origin.unused_strength(table))
        return votes

    def rows(self, criterion: str | None = None) -> tuple[Votes, Labels]:
        """Votes and labels; of one criterion where there are several."""
        where = {} if criterion is None else {"criterion": [criterion]}
        return self.tables(self.read(*((kind, self.place(kind)) for kind in TABLES[:2])), where)

    @property
    def how_labelled(self) -> dict[str, Any]:
        """How labels are read, as arguments of `btdagg.read_labels`."""
        return {
            "raters": self.setting("raters", "mean"),
            "words": self._mapping("words", "labels") or None,
        }

    def _names(self, kind: str | None = None) -> dict[str, Any]:
        keys = self.keys if kind is None else self.keys.get(kind, {})
        outer = () if kind is None else (kind,)
        no_columns = (*SETTINGS, *TABLES, *_TABLE_KEYS) if kind is None else _TABLE_KEYS
        names = {}
        for name, column in keys.items():
            if name not in no_columns and not isinstance(column, dict):
                parts = parts_of(self._answer((*outer, name), column))
                names[name] = parts if len(parts) > 1 else parts[0]
        return names

    def _mapping(self, name: str, *kinds: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in ((name,), *((kind, name) for kind in kinds)):
            table: Any = self.keys
            for part in path:
                table = table.get(part, {})
            found |= {word: self._answer((*path, word), meaning) for word, meaning in table.items()}
        return found

    def _scale(self, path: tuple[str, ...], text: str) -> Scale:
        from btdagg.votes.scale import PAIRS, Scale, points_of

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

    def _with_items(self, table: Table, of_items: Table) -> Table:
        import polars as pl

        from btdagg.votes.source import with_item

        table, items = map(with_item, (table, of_items))
        data = items.data.lazy().with_columns(
            pl.col("item").cast(table.schema["item"], strict=False)
        )
        more = [name for name in items.columns if name not in table.columns]
        if data.select(pl.col("item").is_duplicated().any()).collect().item():
            raise InputError(f"{self.where('items', 'file')}: {items.source} has an item twice")
        joined = table.rows.join(
            data.select("item", *more), on="item", how="left", maintain_order="left"
        )
        return table.with_data(joined.collect() if table.in_memory else joined)

    def _answer(self, path: tuple[str, ...], value: Any) -> Any:
        forbid(value == OPEN, f"{self.where(*path)}: fill in the ..., a value that only you know")
        return value

    def _line(self, path: tuple[str, ...]) -> int:
        section: tuple[str, ...] = ()
        best, line = 0, 1
        for number, text in enumerate(self.text.splitlines(), start=1):
            text = text.strip()
            if header := re.match(r"\[([^\[\]]+)\]", text):
                section = tuple(part.strip(" \"'") for part in header[1].split("."))
                key_path = section
            elif key := re.match(r"(\"[^\"]*\"|'[^']*'|[\w.-]+)\s*=", text):
                key_path = (*section, key[1].strip("\"'"))
            else:
                continue
            if len(key_path) > best and path[: len(key_path)] == key_path:
                best, line = len(key_path), number
        return line

    def _checked(self) -> Project:
        for path, value, expected in _faults(self.keys):
            where = self.where(*path)
            forbid(expected.startswith("no such key"), f"{where}: {expected}")
            raise InputError(f"{where} is {shown(value)}, expected {expected}")
        return self


def _typed_keys(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield path and value of each ``KEY=VALUE``; in double quotes commas and = are text."""
    quotes: list[str] = []

    def hidden(match: re.Match[str]) -> str:
        quotes.append(match[1])
        return f"\0{len(quotes) - 1}\0"  # nobody types a null

    def restored(part: str) -> str:
        return re.sub(r"\x00(\d+)\x00", lambda sign: quotes[int(sign[1])], part.strip())

    for key in _KEYS.split(_QUOTED.sub(hidden, text)):
        has_words = re.match(r"\w*\.?(words|orders)\.", key)  # which may hold a =
        name, _, value = key.rpartition("=") if has_words else key.partition("=")
        path = name.strip().split(".", 1)
        path[0] = path[0].lower()
        if path[0] in TABLES and len(path) > 1:
            path[1:] = path[1].split(".", 1)
            path[1] = path[1].lower()
        expect(all(path) and value.strip(), "keys", text, "KEY=VALUE")
        yield [restored(part) for part in path], restored(value)


def needs_a_name(places: Iterable[str]) -> bool:
    """Whether a project file here has to be named before commands read these files."""
    try:
        for place in places:
            _require_below(Path(), place, "")
    except InputError:
        return True
    return False


def _require_below(folder: Path, place: str, where: str) -> None:
    """Refuse an address, and a path that leads out of a folder, also by a link."""
    from btdagg.votes.source import paths_of

    top = os.path.realpath(folder)
    if "://" in place:
        fault = "is an address"
    elif place.startswith("~") or not all(_is_below(top, path) for path in paths_of(place)):
        fault = "leads out of its folder"
    else:
        return
    raise InputError(
        f"{where}{shown_address(place)} {fault}, and nobody named {FILE}; --project {FILE} "
        "allows it"
    )


def _is_below(top: str, path: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(top)


def parts_of(column: str | Sequence[str]) -> list[str]:
    """Return the names of the columns that make one, in lower case; a text may join them by +."""
    from btdagg.votes.source import parts_of_column

    return parts_of_column(column.split("+") if isinstance(column, str) else column)


def _absent(column: str | Sequence[str], *tables: Table) -> str | None:
    every = {name for table in tables for name in table.columns}
    parts = parts_of(column)
    absent = [part for part in parts if part not in every]
    return absent[0] if absent and "+".join(parts) not in every else None


def _faults(
    keys: Mapping[str, Any], table: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object, str]]:
    for name, value in keys.items():
        path, is_text = (*table, name), isinstance(value, str)
        is_list = isinstance(value, list) and all(isinstance(part, str) for part in value)
        is_mapping = isinstance(value, dict)
        if not table and (name in TABLES or (name == "judge" and is_mapping)):
            if not is_mapping:
                yield path, value, f"a table: [{name}]"
            elif name != "judge":
                yield from _faults(value, path)
        elif not table and name in CHOICES:
            if value not in (*CHOICES[name], OPEN):
                yield path, value, f"one of {', '.join(CHOICES[name])}"
        elif not table and name == "full_margin":
            if not isinstance(value, int | float) or isinstance(value, bool):
                yield path, value, "a number"
        elif name in _MAPPINGS:
            if not is_mapping or not all(isinstance(v, str | int | float) for v in value.values()):
                yield path, value, f'a table, such as {name} = {{draw = "tie"}}'
        elif name == "scale":
            if not is_text and not (is_mapping and all(isinstance(v, str) for v in value.values())):
                yield path, value, 'a text, such as "1-5", or one for each criterion'
        elif (
            name in ("format", "scorer")
            or (table and name == "file")
            or is_column(name)
            or (not table and name in SETTINGS)
        ):
            if not is_text and not (is_list and value):
                yield path, value, "a name, or a list of names"
        else:
            known = (*COLUMNS, *_TABLE_KEYS, *(() if table else (*SETTINGS, *TABLES, "judge")))
            yield path, value, f"no such key, expected {_nearest(name, known)}"


def is_column(name: str) -> bool:
    """Whether a column of a table may be called so by our names."""
    return name in COLUMNS or _OTHER_COLUMN.fullmatch(name) is not None


def _nearest(name: str, known: Sequence[str]) -> str:
    (nearest,) = get_close_matches(name, known, n=1) or [f"one of {', '.join(known)}"]
    return nearest
