"""A folder with a page, tables and figures, written once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from btdagg import __version__
from btdagg._util.errors import InputError, forbid
from btdagg._util.outputs import OutputFolder, require_folder, require_no_link
from btdagg._util.wording import stem as file_stem
from btdagg.report.decision_map import decision_map, decision_map_script
from btdagg.report.figure import ReportFigure
from btdagg.report.figures import drawn
from btdagg.report.markup import asset, script_hash, template
from btdagg.report.table import ReportTable
from btdagg.result import Exhibit, ResultTable

if TYPE_CHECKING:
    from types import TracebackType

    from btdagg.model.davidson import DavidsonModel
    from btdagg.result import Result

_MARKER = "report.json"
_PAGE = "index.html"
_FORMATS = {"md": "Markdown", "csv": "CSV", "tex": "LaTeX", "svg": "SVG", "png": "PNG"}
_FOLDERS = ("tables", "figures")
_OWN_FILE = re.compile(
    rf"index\.html|report\.json|(?:{'|'.join(_FOLDERS)})/\w[\w.-]*\.(?:{'|'.join(_FORMATS)})"
)
_ROWS_OPEN = 80  # of a table from which it is folded up


@dataclass(frozen=True)
class _Rendered:
    source: ReportTable | ReportFigure
    stem: str
    body: str
    files: list[str]
    folded: bool
    choice: str


@dataclass
class _Section:
    name: str
    title: str
    text: str = ""
    folded: bool = False
    remarks: list[str] = field(default_factory=list)
    # Of several together a selector shows one.
    exhibits: list[list[_Rendered]] = field(default_factory=list)


class ReportFolder:
    """A report in a folder: ``index.html``, ``tables/``, ``figures/`` and ``report.json``.

    Additions are written at the end of a ``with`` statement, after errors and Ctrl-C too: the page
    is marked as complete, or as interrupted with the reason. Files are replaced atomically, the
    page last; a process killed before leaves an earlier report as it was.

    Parameters
    ----------
    path : str or path
        Folder, created if needed; other files of an earlier report are removed in the end.
    title : str
        Heading of the page.
    settings : mapping of str to JSON values, optional
        How the results were made (arguments, seed, files), for the page and ``report.json``.
    reads : sequence of paths
        Files that the results are made from; none of them is replaced.

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
        *,
        settings: Mapping[str, Any] | None = None,
        reads: Sequence[str | os.PathLike[str]] = (),
    ) -> None:
        self.path = Path(path)
        self._files = claim(self.path, reads=reads)
        self._title, self._settings = title, dict(settings or {})
        self._sections: list[_Section] = []
        self._skipped: list[tuple[str, str]] = []
        self._models: dict[str, DavidsonModel] = {}
        self._n_votes = 20
        self._collected: dict[str, str | bytes] = {}

    def section(self, name: str, title: str, text: str = "", *, folded: bool = False) -> None:
        """Begin a section, to which everything that follows is added; one without is left out.

        Parameters
        ----------
        name : str
            Name in ``report.json``.
        title, text : str
            Plain text.
        folded : bool
            Whether the page shows the title alone until it is opened.
        """
        self._sections.append(_Section(name, title, text, folded))

    def add(self, *exhibits: Exhibit, folded: bool = False) -> None:
        """Add tables and figures, as files and in the current section, perhaps `folded`."""
        for exhibit in exhibits:
            self._section.exhibits.append([self._collect(exhibit, folded)])

    def add_result(self, result: Result, *, folded: bool = False) -> None:
        """Add the remarks, the figure and the tables of a result to the current section."""
        self.remark(*result.remarks)
        figure = result.figure()
        self.add(*([] if figure is None else [figure]), *result.tables(), folded=folded)

    def choose(self, exhibits: Mapping[str, Exhibit]) -> None:
        """Add tables or figures of which the page shows one at a time, by a selector of names."""
        if exhibits:
            family = [self._collect(exhibit, False, name) for name, exhibit in exhibits.items()]
            self._section.exhibits.append(family)

    def _collect(self, data: Exhibit, folded: bool, choice: str = "") -> _Rendered:
        exhibit = exhibit_of(data)
        body, contents = exhibit.rendered()
        stem = base = file_stem(exhibit.name)
        number = 1
        while f"{exhibit.kind}s/{stem}.{next(iter(contents))}" in self._collected:
            number += 1
            stem = f"{base}-{number}"
        files = {f"{exhibit.kind}s/{stem}.{end}": text for end, text in contents.items()}
        self._collected |= files
        folded = folded or body.count("<tr") > _ROWS_OPEN
        return _Rendered(exhibit, stem, body, list(files), folded, choice)

    def remark(self, *texts: str) -> None:
        """Add remarks to the current section."""
        self._section.remarks.extend(texts)

    def skipped(self, what: str, reason: str) -> None:
        """Record something that is not in the report, and why."""
        self._skipped.append((what, reason))

    @contextmanager
    def skipping(self, what: str = "") -> Iterator[None]:
        """Record what fails with an `InputError` as skipped, under the current section's title."""
        title = self._section.title
        try:
            yield
        except InputError as error:
            self.skipped(f"{title}: {what}" if what else title, str(error))

    @property
    def _section(self) -> _Section:
        forbid(not self._sections, "no section was started; call section() before add()")
        return self._sections[-1]

    def show_models(self, models: Mapping[str, DavidsonModel], n_votes: int = 20) -> None:
        """Offer models by name in the decision map, which starts with the first, at `n_votes`."""
        self._models, self._n_votes = dict(models), n_votes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._write("complete")
            earlier = filter(_OWN_FILE.fullmatch, self._files.earlier)
            self._files.remove(set(earlier) - {_MARKER, _PAGE, *self._collected})
            return
        by_hand = isinstance(error, KeyboardInterrupt)
        reason = "stopped by the user" if by_hand else str(error) or type(error).__name__
        with suppress(OSError):  # a full disk, say, which is the error that is on its way
            self._write("interrupted", reason)

    def _write(self, status: str, reason: str = "") -> None:
        sections = [section for section in self._sections if section.exhibits or section.remarks]
        shared = {
            "status": status,
            "reason": reason,
            "title": self._title,
            "settings": self._settings,
        }
        described = {
            "format": "btdagg.report",
            "version": 1,
            "btdagg": __version__,
            **shared,
            "sections": [
                {
                    "name": section.name,
                    "title": section.title,
                    "remarks": section.remarks,
                    "exhibits": [
                        {"title": exhibit.source.title, "files": exhibit.files}
                        for exhibit in chain(*section.exhibits)
                    ],
                }
                for section in sections
            ],
            "skipped": [{"what": what, "reason": why} for what, why in self._skipped],
            "models": {n: json.loads(m.to_json()) for n, m in self._models.items()},
            "files": list(self._collected),
        }
        has_map = bool(self._models)
        # Of scripts the browser runs this one alone, and it fetches nothing.
        script = f'"use strict";\n{asset("choices.js")}{decision_map_script() if has_map else ""}'
        page = template("page.html.jinja").render(
            **shared,
            sections=sections,
            skipped=self._skipped,
            version=__version__,
            policy=f"default-src 'none'; script-src {script_hash(script)}; "
            "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
            css=asset("colours.css") + asset("page.css"),
            formats=_FORMATS,
            decision_map=decision_map(self._models, self._n_votes) if has_map else "",
            script=script,
        )
        description = json.dumps(described, indent=2, default=str) + "\n"
        for file, content in {**self._collected, _MARKER: description, _PAGE: page}.items():
            # Half a character, as broken names have, is no reason to lose the rest.
            data = content.encode(errors="replace") if isinstance(content, str) else content
            self._files.write(file, data)


def exhibit_of(data: Exhibit) -> ReportTable | ReportFigure:
    """Return a table or a figure of a result as one of a report."""
    if hasattr(data, "rendered"):
        exhibit: Any = data
        return exhibit  # type: ignore[no-any-return]
    return ReportTable.of(data) if isinstance(data, ResultTable) else drawn(data)


def claim(path: Path, *, reads: Sequence[str | os.PathLike[str]] = ()) -> OutputFolder:
    """Check that a report may be written to a folder, without changing anything."""
    files = OutputFolder(path, reads=reads)
    earlier = [name for name in files.earlier if _OWN_FILE.fullmatch(name)]
    is_foreign = not earlier and path.is_dir()
    forbid(
        is_foreign and not all(entry.name.startswith(".btdagg-") for entry in path.iterdir()),
        f"{path} is not empty and has no earlier report; expected a new or an empty folder",
    )
    for name in _FOLDERS:
        require_no_link(path / name)
        require_folder(path / name)
    # Names of tables and figures are not known yet: those that are taken may be among them.
    taken = (
        file.relative_to(path).as_posix() for name in _FOLDERS for file in path.glob(f"{name}/*")
    )
    return files.claim((_MARKER, _PAGE, *earlier, *filter(_OWN_FILE.fullmatch, taken)))
