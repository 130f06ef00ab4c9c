"""A folder with a page, tables and figures, written once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from btdagg import __version__
from btdagg._core import InputError
from btdagg._util.files import is_draft, remove_drafts
from btdagg._util.outputs import OutputFolder
from btdagg.report.contents import Contents, Exhibit, Section, Status
from btdagg.report.markup import file_stem
from btdagg.report.page import page
from btdagg.report.style import PRINT
from btdagg.report.svg import inline_svg

if TYPE_CHECKING:
    from types import TracebackType

    from btdagg.model.davidson import DavidsonModel
    from btdagg.report.figure import ReportFigure
    from btdagg.report.table import ReportTable

_MARKER = "report.json"
_FORMAT = "btdagg.report"
_PAGE = "index.html"
_FOLDERS = ("tables", "figures")
_ENDS = {"table": ("md", "csv", "tex"), "figure": ("svg", "png")}
_WIDTH = re.compile(r'<svg [^>]*\bwidth="([\d.]+)pt"')
_OWN_FILE = re.compile(r"(?:tables|figures)/\w[\w.-]*")


class ReportFolder:
    """A report in a folder: ``index.html``, ``tables/``, ``figures/`` and ``report.json``.

    What is added is collected, and written at the end of a ``with`` statement, of Ctrl-C and of
    errors too: the page is marked as complete, or as interrupted with the reason. Every file is
    replaced atomically, and the page after the files that it names. A process that is killed before
    leaves an earlier report as it was.

    Parameters
    ----------
    path : str or path
        Folder, created if needed. An earlier report is replaced file by file; its other files are
        removed once the new report is complete.
    title, subtitle : str
        Heading of the page.
    settings : mapping of str to JSON values, optional
        How the results were made (arguments, seed, files), for the end of the page and
        ``report.json``.
    reads : sequence of paths
        Files that the results are made from; none of them is replaced.
    force : bool
        Whether to accept a folder with other content, and to replace files of other origin.

    Raises
    ------
    InputError
        If the path is a file, a folder that cannot be written, or one that holds something other
        than an earlier report, or files of it that were changed since.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> with ReportFolder("out", "Judges on our data") as report:  # doctest: +SKIP
    ...     report.section("scores", "Which method is best")
    ...     report.add(mae, accuracy)
    ...     report.skipped("Transfer between tasks", "the votes have one task")
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        title: str,
        subtitle: str = "",
        *,
        settings: Mapping[str, Any] | None = None,
        reads: Sequence[str | os.PathLike[str]] = (),
        force: bool = False,
    ) -> None:
        self.path = Path(path)
        self._files = claim(self.path, reads=reads, force=force)
        self._contents = Contents(title, subtitle, dict(settings or {}))
        self._collected: dict[str, str | bytes] = {}

    def __repr__(self) -> str:
        return f"ReportFolder({str(self.path)!r}, {self._contents.title!r})"

    def section(self, name: str, title: str, text: str = "", *, folded: bool = False) -> None:
        """Begin a section, to which everything that follows is added.

        Parameters
        ----------
        name : str
            Name in ``report.json``.
        title, text : str
            Plain text; an empty line ends a paragraph.
        folded : bool
            Whether the page shows the title alone until it is opened.
        """
        self._contents.sections.append(Section(name, title, text, folded))

    def add(self, *exhibits: ReportTable | ReportFigure) -> None:
        """Add tables and figures, as files and in the current section of the page.

        Raises
        ------
        InputError
            If no section was begun.
        """
        if not self._contents.sections:
            raise InputError("no section was begun, expected section() before add()")
        for exhibit in exhibits:
            written = self._figure(exhibit) if exhibit.kind == "figure" else self._table(exhibit)
            self._contents.sections[-1].exhibits.append(written)

    def remark(self, text: str) -> None:
        """Add a remark to the current section, or to the top of the page if there is none."""
        sections = self._contents.sections
        (sections[-1].remarks if sections else self._contents.remarks).append(text)

    def skipped(self, what: str, reason: str) -> None:
        """Record something that is not in the report, and why."""
        self._contents.skipped.append((what, reason))

    def show_models(self, models: Mapping[str, DavidsonModel], n_votes: int = 20) -> None:
        """Offer fitted models in the decision map, which starts with the first of them.

        Parameters
        ----------
        models : mapping of str to DavidsonModel
            By the name under which they can be selected.
        n_votes : int
            Votes per item that the map starts with.
        """
        self._contents.models = dict(models)
        self._contents.n_votes = n_votes

    def complete(self) -> None:
        """Write the report, marked as complete, and remove other files of an earlier report."""
        self._contents.status = Status.COMPLETE
        self._write()
        earlier = filter(_OWN_FILE.fullmatch, self._files.earlier)
        self._files.remove(set(earlier).difference(self._contents.files))

    def interrupted(self, reason: str) -> None:
        """Write what there is of the report, marked as interrupted, with the reason."""
        self._contents.status = Status.INTERRUPTED
        self._contents.reason = reason
        self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.complete()
            return
        by_hand = isinstance(error, KeyboardInterrupt)
        with suppress(OSError):  # a full disk, say, which is the error that is on its way
            self.interrupted("stopped by hand" if by_hand else str(error) or type(error).__name__)

    def _table(self, table: ReportTable) -> Exhibit:
        stem = self._stem("table", table.name)
        contents = (table.markdown(), table.csv(), table.latex())
        files = dict(zip(_files_of("table", stem), contents, strict=True))
        body = table.html()
        return self._exhibit("table", stem, table, body, files)

    def _figure(self, figure: ReportFigure) -> Exhibit:
        stem = self._stem("figure", figure.name)
        svg = figure.svg()
        contents: list[str | bytes] = [svg, figure.png()]
        files = dict(zip(_files_of("figure", stem), contents, strict=True))
        n_before = sum(len(section.exhibits) for section in self._contents.sections)
        body = inline_svg(svg, f"f{n_before}-", figure.title)
        # As wide as the page's column if it is as wide as a printed page.
        share = float(match[1]) / 72 / PRINT.width if (match := _WIDTH.search(svg)) else 1.0
        body = f'<div class="wide" style="width: {60 * share:.1f}rem">{body}</div>'
        narrow = getattr(figure, "narrow_svg", figure.svg)()
        if narrow != svg:
            body += f'<div class="narrow">{inline_svg(narrow, f"n{n_before}-", figure.title)}</div>'
        return self._exhibit("figure", stem, figure, body, files)

    def _exhibit(
        self,
        kind: str,
        stem: str,
        source: ReportTable | ReportFigure,
        body: str,
        files: Mapping[str, str | bytes],
    ) -> Exhibit:
        self._collected |= files
        # Any object with a title and files will do.
        shown = {name: getattr(source, name, "") for name in ("family", "choice")}
        folded = getattr(source, "folded", False)
        return Exhibit(
            kind, stem, source.title, source.note, body, tuple(files), **shown, folded=folded
        )

    def _stem(self, kind: str, name: str) -> str:
        """A stem that no other exhibit of its kind has, nor a file that may not be replaced.

        Case does not tell stems apart, since there are file systems that ignore it.
        """
        taken = {
            exhibit.stem.casefold()
            for section in self._contents.sections
            for exhibit in section.exhibits
            if exhibit.kind == kind
        }
        stem = known = file_stem(name)
        number = 1
        while stem.casefold() in taken or not all(map(self._files.is_free, _files_of(kind, stem))):
            number += 1
            stem = f"{known}-{number}"
        return stem

    def _write(self) -> None:
        """Replace tables and figures, then the marker, then the page, which name them."""
        contents = self._contents
        for file, content in self._collected.items():
            self._replace(file, content)
        described = {
            "format": _FORMAT,
            "version": 1,
            "btdagg": __version__,
            "status": contents.status,
            "reason": contents.reason,
            "title": contents.title,
            "subtitle": contents.subtitle,
            "settings": contents.settings,
            "remarks": contents.remarks,
            "sections": [
                {
                    "name": section.name,
                    "title": section.title,
                    "remarks": section.remarks,
                    "exhibits": [
                        {"title": exhibit.title, "files": exhibit.files}
                        for exhibit in section.exhibits
                    ],
                }
                for section in contents.sections
            ],
            "skipped": [{"what": what, "reason": reason} for what, reason in contents.skipped],
            "models": {name: json.loads(m.to_json()) for name, m in contents.models.items()},
            "files": contents.files,
        }
        self._replace(_MARKER, json.dumps(described, indent=2, default=str) + "\n")
        self._replace(_PAGE, page(contents))

    def _replace(self, file: str, content: str | bytes) -> None:
        """Replace a file; half a character, as broken names have, is no reason to lose the rest."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        self._files.write(file, data)


def _files_of(kind: str, stem: str) -> list[str]:
    return [f"{kind}s/{stem}.{end}" for end in _ENDS[kind]]


def claim(
    path: Path, *, reads: Sequence[str | os.PathLike[str]] = (), force: bool = False
) -> OutputFolder:
    """Check that a report may be written to a folder, without changing anything.

    Raises
    ------
    InputError
        See `ReportFolder`.
    """
    files = OutputFolder(path, reads=reads, force=force)
    ours = any(name in (_MARKER, _PAGE) or _OWN_FILE.fullmatch(name) for name in files.earlier)
    others = not (force or ours) and path.is_dir()
    if others and not all(is_draft(entry.name) for entry in path.iterdir()):
        raise InputError(
            f"{path} is not empty and holds no earlier report, expected a new or an empty folder"
        )
    for name in _FOLDERS:
        remove_drafts(path / name)
    return files.claim((_MARKER, _PAGE, *filter(_OWN_FILE.fullmatch, files.earlier)))
