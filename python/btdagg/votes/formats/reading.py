"""Files and frames of other tools as votes, ratings or labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.votes.formats.content import Content, files_in
from btdagg.votes.formats.formats import Format, format_of
from btdagg.votes.formats.frames import as_labels, as_one, as_ratings, as_votes
from btdagg.votes.formats.mapped import KINDS as OF_COLUMNS
from btdagg.votes.formats.mapped import VERDICTS
from btdagg.votes.formats.options import ImportOptions
from btdagg.votes.source import read_table
from btdagg.votes.table import Table
from btdagg.votes.votes import Votes, read_votes
from btdagg.votes.words import as_words

if TYPE_CHECKING:
    from btdagg.votes.source import Source

Place = str | os.PathLike[str]
KINDS = ("votes", "ratings", "labels")
_SEVERAL = 20  # votes, all of which are hardly ties
_FEW = 0.1  # of the votes, where no more can be read


@readable
@dataclass(frozen=True, eq=False)
class Imported:
    """What was read of files.

    Attributes
    ----------
    frame : polars.DataFrame
        Votes (`item`, `vote`), ratings (`item`, `rater`, `vote`) or labels (`item`, `label`), and
        the columns of docs/data.md that the files tell. `status` is ``ok``, or says why a vote is
        missing, and `format` which format a row comes from.
    kind : "votes", "ratings" or "labels"
    formats : tuple of str
        Formats of the files.
    unread : mapping of str to int
        How many votes are missing, by why, the most frequent first.
    remarks : tuple of str
        What would let more be read.
    """

    frame: pl.DataFrame
    kind: str
    formats: tuple[str, ...]
    unread: Mapping[str, int]
    remarks: tuple[str, ...] = ()

    @cached_property
    def votes(self) -> Votes:
        """The rows as votes; as ratings and labels they are votes of people."""
        names = {"vote": "label"} if self.kind == "labels" else None
        return read_votes(self.frame, columns=names)

    @property
    def n_votes(self) -> int:
        """Number of votes, or labels, that are not missing."""
        column = "label" if self.kind == "labels" else "vote"
        return self.frame.height - self.frame[column].null_count()


def read(
    files: Place | Iterable[Place] | Source,
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, object] | None = None,
    flip_where: tuple[str, Sequence[str]] | None = None,
    constants: Mapping[str, str] | None = None,
    kind: Literal["votes", "ratings", "labels"] | None = None,
    name: str | None = None,
    custom_id: str | None = None,
    answer_pattern: str | None = None,
) -> Imported:
    """Read votes that other tools have collected.

    Parameters
    ----------
    files : path, iterable of paths, or data frame
        A folder stands for the files in it. Data in memory are what `btdagg.votes.read_table`
        takes: a frame, a mapping of column name to values, or a list of rows as mappings.
    format : str, optional
        One of `btdagg.votes.formats.FORMATS`; recognized by the content unless given.
    columns : mapping of str to str, optional
        Columns of a table by the names of docs/data.md, such as ``{"item": "id", "vote":
        "winner"}``. `answer` are texts with a verdict, `score` (with `group` and `system`) scores
        of responses, `score_a` and `score_b` scores of both.
    words : mapping of str to -1, 0, 1, A, tie, B or None; optional
        What words mean that are no votes, such as ``{"draw": "tie"}``; None is a missing vote. Of
        texts, the words of verdicts, one for each vote.
    flip_where : tuple of str and sequence of str, optional
        Column, and its values in rows that call A what was shown second: ``("order", ["BA"])``.
    constants : mapping of str to str, optional
        Columns that have one value in all rows, such as ``{"judge": "gpt-5.4"}``.
    kind : "votes", "ratings" or "labels", optional
        What to return: ratings where the votes are people's, votes otherwise. Labels are what most
        votes of an item say.
    name : str, optional
        Which annotations, scores or assertions, where a file has several.
    custom_id : str, optional
        How the ids of requests in a batch are made, such as ``"{item}-{order}-{sample}"``.
    answer_pattern : str, optional
        Where the verdict is in texts: a regular expression with one group, such as
        ``^Pick: (A|B)$``, whose last match counts. ``^`` and ``$`` match at lines.

    Returns
    -------
    Imported

    Raises
    ------
    InputError
        If a file cannot be read, its format is not recognized, or a word or column is not known.

    Examples
    --------
    >>> found = read("judged.csv", columns={"item": "id", "vote": "winner"})  # doctest: +SKIP
    >>> found.votes.counts(), found.unread  # doctest: +SKIP
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    fixed = _parsed(constants or {})
    options = ImportOptions(
        columns or {}, as_words(words), flip_where, fixed, name, kind, custom_id, answer_pattern
    )
    contents = _contents(files)
    of_format: dict[Format, list[Content]] = {}
    for content in contents:
        of_format.setdefault(format_of(content, format, options), []).append(content)
    same = {column: pl.lit(value) for column, value in fixed.items() if column != "baseline"}
    parts: list[pl.DataFrame] = []
    remarks: list[str] = []
    for one, some in of_format.items():
        found, said = one.read(some, options)
        parts += [part.with_columns(**same, format=pl.lit(one.name)) for part in found]
        remarks += said
    rows = as_one(parts)
    frame, what, n_repeats = _of_kind(
        rows, kind or ("labels" if "label" in options.columns else None)
    )
    if n_repeats:
        remarks.append(f"left out, since they repeat a sample: {n_repeats} rows")
    counted = rows if what == "labels" else frame
    missing = Counter(counted.filter(pl.col("vote").is_null())["status"].to_list())
    unread = dict(missing.most_common())
    n_read = counted.height - missing.total()
    if n_read >= _SEVERAL and not counted.filter(pl.col("vote") != 0).height:
        remarks.append(f"all {n_read:,} votes are ties: look at what the words are said to mean")
    if 0 < n_read < _FEW * counted.height:
        remarks.append(f"only {n_read:,} of {counted.height:,} votes could be read")
    names = tuple(one.name for one in of_format)
    return Imported(frame, what, names, unread, tuple(dict.fromkeys(remarks)))


def _contents(files: Place | Iterable[Place] | Source) -> list[Content]:
    """Return the files that are named, or the one table of data that is in memory."""
    places: Any = [files] if isinstance(files, str | os.PathLike) else files
    if isinstance(places, set | Iterator):
        places = list(places)
    are_paths = isinstance(places, list | tuple) and all(
        isinstance(place, str | os.PathLike) for place in places
    )
    if not are_paths:
        return [Content("", read_table(places, []))]
    paths = [path for place in places for path in files_in(place)]
    if not paths:
        raise InputError("files is empty, expected one or more")
    known: dict[str, str] = {}
    for path in paths:
        real = os.path.realpath(path)
        if real in known:
            raise InputError(f"{path} and {known[real]} are one file, expected it once")
        known[real] = path
    return [Content(path) for path in paths]


def _parsed(constants: Mapping[str, object]) -> dict[str, Any]:
    """Parse the values of --set as those of columns are parsed."""
    values: dict[str, Any] = {}
    for name, given in constants.items():
        if name in ("item", "status", "format", *VERDICTS):
            raise InputError(f"--set {name}={given}: not the same in all rows, expected --map")
        values[name] = given
        if name in OF_COLUMNS:
            table = Table(pl.DataFrame({name: [given]}), "--set")
            parser = OF_COLUMNS[name](table, name)
            for bad, wanted in parser.checks:
                if table.frame.select(bad).item():
                    raise InputError(f"--set {name}={given}: want {wanted}")
            values[name] = table.frame.select(parser.value).item()
    return values


def _of_kind(frame: pl.DataFrame, kind: str | None) -> tuple[pl.DataFrame, str, int]:
    """Return the rows as they are wanted, as what, and how many are left out as repeats."""
    people = "rater" in frame
    if people and "judge" in frame and kind != "votes":
        raise InputError("some votes are of judges, some of people; import their files apart")
    kind = kind or ("ratings" if people else "votes")
    if kind == "labels":
        return as_labels(frame), kind, 0
    if kind == "ratings":
        if not people and "judge" not in frame:
            raise InputError("ratings want a column for rater: --map rater=..., or --set rater=...")
        return as_ratings(frame), kind, 0
    if people:
        rater = [pl.col("rater")] if "judge" not in frame else [pl.coalesce("judge", "rater")]
        frame = frame.with_columns(rater[0].alias("judge")).drop("rater")
    votes, n_repeats = as_votes(frame)
    return votes, kind, n_repeats
