"""A figure as SVG and PNG."""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from btdagg._core import InputError
from btdagg._util.extras import MissingExtraError, needs
from btdagg._util.readable import readable
from btdagg.report.markup import escaped
from btdagg.report.style import NARROW, SETTINGS, page_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# A document type asks readers to fetch its definition; a style sheet would hold for a whole page.
_PROLOGUE = re.compile(r"\A.*?(?=<svg )", re.DOTALL)
_STYLE_SHEET = re.compile(r"\s*<defs>\s*<style type=\"text/css\">\*\{([^}]*)\}</style>\s*</defs>")


@readable
@dataclass(frozen=True, eq=False)
class ReportFigure:
    """A figure of a report. It is drawn anew for each file, so it is the same every time.

    Attributes
    ----------
    name : str
        Stem of its files: letters, digits, dots, hyphens and underscores.
    title : str
    note : str
        The caption.
    draw : callable
        Returns a matplotlib figure.
    family, choice : str
        Figures of one family in a section are shown one at a time, by a selector of choices.

    Raises
    ------
    InputError
        If the name is no file stem.
    """

    kind: ClassVar[Literal["figure"]] = "figure"

    name: str
    title: str
    note: str
    draw: Callable[[], Figure] = field(repr=False)
    family: str = ""
    choice: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"name is {self.name!r}, expected letters, digits, dots and hyphens")

    def svg(self) -> str:
        """Return SVG with text as text, without a date or a reference to anything outside."""
        # Without any of these the file has no block of metadata.
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        text = self._saved(format="svg", metadata=metadata).decode()
        sheet = _STYLE_SHEET.search(text)
        text = _PROLOGUE.sub("", text)
        if sheet is not None:
            text = _STYLE_SHEET.sub("", text, count=1)
            text = text.replace("<svg ", f'<svg style="{sheet[1]}" ', 1)
        return text

    def narrow_svg(self) -> str:
        """Return the same for a telephone, with fewer panels side by side."""
        with page_of(NARROW):
            return self.svg()

    def png(self) -> bytes:
        """Return a PNG of 200 dots per inch."""
        return self._saved(format="png", dpi=200, metadata={"Software": None})

    def _repr_html_(self) -> str | None:
        """Return the figure for a notebook; None without matplotlib.

        As an image it runs no script and asks for nothing, and its names are its own.
        """
        try:
            data = base64.b64encode(self.svg().encode()).decode()
        except MissingExtraError:
            return None
        title, note = escaped(self.title), escaped(self.note)
        return (
            f'<figure style="margin: 0"><img alt="{title}" style="max-width: 100%" '
            f'src="data:image/svg+xml;base64,{data}">'
            f"<figcaption><strong>{title}</strong> {note}</figcaption></figure>"
        )

    def _saved(self, **options: Any) -> bytes:
        file = io.BytesIO()
        with _own_settings():
            self.draw().savefig(file, **options)
        return file.getvalue()


@contextmanager
def _own_settings() -> Iterator[None]:
    """Draw alike whatever the user's settings are, and leave them as they were."""
    with needs("report", "drawing figures"):
        import matplotlib
    settings: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    del settings["backend"]
    settings.update(SETTINGS)
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The font that comes with matplotlib lacks some scripts. A reader's own has them in an
        # SVG; a PNG shows a box.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield
