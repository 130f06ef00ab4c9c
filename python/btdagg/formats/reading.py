"""Files and frames of other tools as votes, ratings or labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from btdagg._util.errors import InputError, expect, forbid, one_of
from btdagg._util.extensions import Registry, named_in_errors
from btdagg._util.readable import Readable
from btdagg._util.validation import as_integer
from btdagg.formats import (
    alpaca_eval,
    inspect_logs,
    lmsys,
    nested,
    openai_batch,
    promptfoo,
    provider_batches,
    results,
    table,
)
from btdagg.formats.content import Content, Format, ImportOptions, files_in
from btdagg.formats.rows import (
    as_labels,
    as_ratings,
    as_votes,
    finished,
    graded,
    told_apart,
)
from btdagg.remarks import code_of
from btdagg.votes.scale import Scale
from btdagg.votes.schema import parse
from btdagg.votes.source import STANDARD_INPUT, read_table
from btdagg.votes.table import Table, listing
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from btdagg.votes.source import Source

_WIDE = "criterion", "judge"  # of which several columns each have grades
_MANY = 20  # votes, all of which are hardly ties
_FEW = 0.1  # of the votes, where no more can be read


def _added(rows_of: Callable[[Content], Any], name: str, where: str) -> Format:
    rows_of = named_in_errors(rows_of, where, lambda content: f"{content.where}: ")

    def recognizes(content: Content) -> bool:
        if name not in content.rows:
            content.rows[name] = rows_of(content)
        return content.rows[name] is not None

    def read_rows(content: Content, options: ImportOptions) -> tuple[pl.DataFrame, str | None]:
        rows = read_table(content.rows[name], [], name=f"{content.name} in the format {name}")
        return table.FORMAT.read(Content("", rows), options)

    return Format(name, recognizes, read_rows, table.FORMAT.uses)


_BUILT_IN = (
    inspect_logs.FORMAT,
    openai_batch.FORMAT,
    *provider_batches.FORMATS,
    alpaca_eval.FORMAT,
    *lmsys.FORMATS,
    promptfoo.FORMAT,
    *results.FORMATS,
    *nested.FORMATS,
    table.FORMAT,
)
FORMATS = Registry(
    "btdagg.formats", {format.name: format for format in _BUILT_IN}, "content", _added
)
"""Formats by name, and those that installed packages add under the entry points ``btdagg.formats``.

They are tried in this order, the more a format needs, the earlier; but any table is tried last.
"""


@dataclass(frozen=True, eq=False)
class Imported(Readable):
    """Contents read from files.

    Attributes
    ----------
    frame : polars.DataFrame
        Votes (`item`, `vote`), ratings (`item`, `rater`, `vote`) or labels (`item`, `label`) with
        the columns of docs/data.md; grades are in `score`. `status` is ``ok``, or why a vote is
        missing.
    kind : "votes", "grades", "ratings" or "labels"
    formats : tuple of str
    unread : mapping of str to int
        How many votes are missing, by reason, the most frequent first.
    remarks : tuple of str
        Advice on how to read more.
    left_out : tuple of str
        Names of criteria, questions and assertions of the files that are no votes.
    points : tuple of numbers or None
        The scale of grades, if it was said.
    """

    frame: pl.DataFrame
    kind: str
    formats: tuple[str, ...]
    unread: Mapping[str, int]
    remarks: tuple[str, ...] = ()
    points: tuple[float, ...] | None = None
    left_out: tuple[str, ...] = ()

    @cached_property
    def votes(self) -> Votes:
        """The rows as votes; as ratings and labels they are votes of people."""
        names = {"vote": "label"} if self.kind == "labels" else None
        scale = None if self.points is None else Scale(self.points)
        return read_votes(self.frame, columns=names, scale=scale)

    @property
    def n_votes(self) -> int:
        """Number of votes, or labels, that are not missing."""
        names = (name for name in ("label", "score", "vote") if name in self.frame)
        return self.frame[next(names)].count()


def read(
    files: Source,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, object] | None = None,
    order: Mapping[str, str] | None = None,
    constants: Mapping[str, str] | None = None,
    kind: Literal["votes", "ratings", "labels"] | None = None,
    name: str | None = None,
    custom_id: str | None = None,
    answer_pattern: str | None = None,
) -> Imported:
    """Read votes that other tools have collected.

    Parameters
    ----------
    files : path, list of paths, or data frame
        A folder stands for its files. Data in memory are as in `btdagg.votes.read_table`.
    format : str, optional
        One of `btdagg.formats.FORMATS`; recognized by the content unless given.
    columns : mapping of str to str, optional
        Columns of a table by the names of docs/data.md, such as ``{"item": "id", "vote":
        "winner"}``. `answer` are texts with a verdict; `score` (with `group` and `system`) scores
        of responses, which are compared, or grades of items without `system`; `score_a` and
        `score_b` scores of both, `margin` the lead of A; with `label` labels are returned.
    words : mapping of str to -1, 0, 1, A, tie, B, missing, first or second; optional
        Meaning of words, such as ``{"draw": "tie"}``; see `btdagg.read_votes`. Of texts, the words
        of verdicts, one for each vote.
    order : mapping of str to AB or BA, optional
        Meaning of the words in the column `order`: AB where A was shown first.
    constants : mapping of str to str, optional
        Columns that have one value in all rows, such as ``{"judge": "gpt-5.4"}``.
    kind : "votes", "ratings" or "labels", optional
        Kind of table; by default labels if `columns` has `label`, ratings if votes are people's.
    name : str, optional
        Which scorer or assertions, where a file has several.
    custom_id : str, optional
        How the ids of requests in a batch are made, such as ``"{item}-{order}-{sample}"``.
    answer_pattern : str, optional
        Where the verdict is in texts: a regular expression with one group, such as
        ``^Pick: (A|B)$``, whose last match counts. ``^`` and ``$`` match at lines.

    Examples
    --------
    >>> imported = read("judged.csv", columns={"item": "id", "vote": "winner"})  # doctest: +SKIP
    >>> imported.votes.counts(), imported.unread  # doctest: +SKIP
    """
    options = ImportOptions(
        *(columns or {}, words or {}, order or {}, _parsed(constants or {})),
        *(name, custom_id, answer_pattern),
        are_labels=kind == "labels" or (kind is None and "label" in (columns or {})),
    )
    return _imported(files, format, options, kind)


def read_grades(
    files: Source,
    format: str | None = None,
    *,
    scale: Scale | int | None = None,
    columns: Mapping[str, Any] | None = None,
    words: Mapping[str, object] | None = None,
    constants: Mapping[str, str] | None = None,
    kind: Literal["votes", "ratings", "labels"] | None = None,
    name: str | None = None,
    answer_pattern: str | None = None,
) -> Imported:
    """Read scores of single responses as grades, as `read` reads votes on pairs.

    Missing values and texts that are no numbers stay missing, and are counted.

    Parameters
    ----------
    scale : Scale or int, optional
        Points, other than which a number is an error. With pass and fail, a format's own passes are
        read. With a number k, scores from 0 to 1 become whole grades from 0 to k.
    columns : mapping, optional
        As in `read`. ``{"criterion": {"tone": "human tone"}}`` names a column with the grades by
        each criterion, and ``{"judge": ["gpt", "claude"]}`` those of each judge.
    words : mapping of str to number or "missing", optional
        Meaning of words, such as ``{"good": 3}``.
    files, format, constants, name, answer_pattern, kind
        As in `read`; labels are returned where `columns` has `label`, or `kind` says so.

    Examples
    --------
    >>> imported = read_grades({"id": ["x", "y"], "tone": [4, "n/a"]}, columns={"score": "tone"})
    >>> imported.frame["score"].to_list(), imported.unread
    ([4, None], {'unparsed': 1})
    """
    mapping = columns or {}
    are_labels = kind == "labels" or (kind is None and "label" in mapping)
    points, times = None, 1
    if isinstance(scale, Scale):
        points = scale.points
    elif scale is not None:
        times = as_integer(scale, "scale", 2)
        points = tuple(range(times + 1))
    wide = {
        name: dict(of) if isinstance(of, Mapping) else dict(zip(of, of, strict=True))
        for name, of in mapping.items()
        if isinstance(of, Mapping) or (name in _WIDE and isinstance(of, list))
    }
    options = ImportOptions(
        columns={name: column for name, column in mapping.items() if name not in wide},
        words=words or {},
        constants=_parsed(constants or {}),
        name=name,
        answer_pattern=answer_pattern,
        grades=True,
        points=points,
        times=times,
        wide=wide,
        are_labels=are_labels,
    )
    return _imported(files, format, options, kind)


def _imported(
    files: Source, format: str | None, options: ImportOptions, kind: str | None
) -> Imported:
    expect(kind in (None, "votes", "ratings", "labels"), "kind", kind, "votes, ratings or labels")
    by_format: dict[str, list[Content]] = {}
    contents_read = _contents(files)
    for content in contents_read:
        by_format.setdefault(_format_of(content, format, options).name, []).append(content)
    tables = by_format.get("table", [])
    if kind is None and len(by_format) == 1 and tables:
        is_said = options.are_labels or all(table.are_labels(part, options) for part in tables)
        options = replace(options, are_labels=is_said)
    constants = options.constants.items()
    same = {column: pl.lit(value) for column, value in constants if column != "baseline"}
    parts: list[pl.DataFrame] = []
    places: list[tuple[str, int]] = []
    remarks: list[str] = []
    for title, contents in by_format.items():
        for place, part, remark in _read(FORMATS[title], contents, options):
            parts.append(part.with_columns(format=pl.lit(title)))
            places.append((place, part.height))
            remarks += [remark] if remark else []
    parts, remark = told_apart(parts)
    remarks += [remark] if remark else []
    n_graded = sum("score" in part for part in parts)
    parts = [
        (graded(Table(part, place), options) if "score" in part else part).with_columns(**same)
        for part, (place, _) in zip(parts, places, strict=True)
    ]
    for content in contents_read:
        remarks += content.remarks
        if content.more and all(other.more != "" for other in contents_read):
            remarks.append(f"{content.name} is one page of several: {content.more}")
    files_read = tuple(places) if len(places) > 1 else ()
    forbid(
        0 < n_graded < len(parts),
        "some files have grades, others votes on pairs; import them separately",
    )
    rows = Table(finished(parts, n_graded > 0), places[0][0], files=files_read)
    people = "rater" in rows.columns
    forbid(
        people and "judge" in rows.columns and kind != "votes",
        "some votes are by judges, others by people; import their files separately",
    )
    if options.are_labels and (kind == "labels" or not people):
        (frame, n_repeats), kind_read = (as_labels(rows), 0), "labels"
    elif kind == "ratings" or (people and kind is None):
        forbid(
            not people and "judge" not in rows.columns,
            "ratings need a rater: name its column in columns, or the rater in constants",
        )
        (frame, n_repeats), kind_read = as_ratings(rows), "ratings"
    else:
        (frame, n_repeats), kind_read = as_votes(rows), "votes"
    if n_repeats:
        whose = "rater's vote" if kind_read == "ratings" else "sample"
        remarks.append(f"{n_repeats} rows repeat a {whose} and are left out")
    counted = rows.frame if kind_read == "labels" else frame
    missing = Counter(counted.filter(pl.col("vote").is_null())["status"].to_list())
    n_read = counted.height - missing.total()
    if counted.filter(pl.col("vote") < 0).height:  # of another file
        remarks = [remark for remark in remarks if code_of(remark) != "guessed-numbers"]
    if n_read >= _MANY and not n_graded and not counted.filter(pl.col("vote") != 0).height:
        remarks.append(f"all {n_read:,} votes are ties: check the meanings given for the words")
    if 0 < n_read < _FEW * counted.height:
        remarks.append(f"only {n_read:,} of {counted.height:,} votes could be read")
    unread = dict(missing.most_common())
    if n_graded and kind_read != "labels":
        frame = frame.rename({"vote": "score"})
        kind_read = "grades" if kind_read == "votes" else kind_read
    formats, said = tuple(by_format), tuple(dict.fromkeys(remarks))
    left_out = tuple(dict.fromkeys(name for content in contents_read for name in content.left_out))
    return Imported(frame, kind_read, formats, unread, said, options.points, left_out)


def recognized(files: Any, name: str | None = None) -> str | None:
    """Return the format of files, the named one if they have it; standard input is not tried."""
    if str(files) == STANDARD_INPUT:
        return name
    try:
        return _format_of(_contents(files)[0], name, ImportOptions()).name
    except InputError:
        return None


def _contents(files: Any) -> list[Content]:
    if isinstance(files, Content):
        return [files]
    places = [files] if isinstance(files, str | os.PathLike) else files
    is_list = isinstance(places, list | tuple) and bool(places)
    if not is_list or not isinstance(places[0], str | os.PathLike):
        return [Content("", read_table(places, []))]
    by_file: dict[str, str] = {}
    for path in (path for place in places for path in files_in(place)):
        by_file.setdefault(os.path.realpath(path), path)
    return [Content(path) for path in by_file.values()]


def _parsed(constants: Mapping[str, str]) -> dict[str, Any]:
    for name in {"item", "status", "format", *table.VERDICTS}.intersection(constants):
        expected = "columns that are the same in all rows"
        raise InputError(argument="constants", got=name, expected=expected)
    row = Table(pl.DataFrame({name: [value] for name, value in constants.items()}), "constants")
    try:
        return parse(row, table.KINDS).frame.row(0, named=True) if constants else {}
    except InputError as error:
        got = {error.column: error.got}
        raise InputError(argument="constants", got=got, expected=error.expected) from None


def _format_of(content: Content, name: str | None, options: ImportOptions) -> Format:
    used = {use for format in _BUILT_IN for use in format.uses if getattr(options, use)}
    # They say what the columns of a table mean.
    columns = {"columns", "order", "wide"} & used
    if name is None:
        tried = (format for format in FORMATS.values() if format is not table.FORMAT)
        fitting = (
            format for format in tried if columns <= {*format.uses} and format.recognizes(content)
        )
        is_table = columns or table.FORMAT.recognizes(content)
        found = next(fitting, table.FORMAT if is_table else None)
    else:
        found = FORMATS[one_of(name, FORMATS, "format")]
        found = found if name == "table" or found.recognizes(content) else None
    if found is None:
        keys = content.columns if content.document is None else content.document
        advice = table.WHICH if name is None else None
        raise InputError(
            f"{content.name}: not in the format {name or ' or '.join(FORMATS)}; it has "
            f"{listing(sorted(keys))}{'; {advice} says which is which' if advice else ''}",
            advice=advice,
        )
    for use in sorted(used.difference(found.uses)):
        names = " or ".join(other.name for other in _BUILT_IN if use in other.uses)
        raise InputError(
            f"{content.name}: the format {found.name} does not use {{advice}}; only {names} can",
            advice={use: None},
        )
    return found


def _read(
    format: Format, contents: list[Content], options: ImportOptions
) -> Iterator[tuple[str, pl.DataFrame, str | None]]:
    if format.together:
        yield (listing(content.name for content in contents), *format.read(contents, options))
        return
    for content in contents:
        try:
            frame, remark = format.read(content, options)
        except (AttributeError, KeyError, TypeError) as error:
            if content.path and not content.is_json:
                raise
            raise InputError(
                f"{content.where}: not in the format {format.name}, or damaged: {error}"
            ) from None
        forbid(
            not frame.height,
            f"{content.name}: no votes; scores need two systems for a prompt, and are grades with "
            "{advice}",
            advice={"scale": "1-10"},
        )
        yield content.name, frame, remark
