"""A figure as SVG and PNG."""

from __future__ import annotations

import base64
import io
import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar

from btdagg._util.extras import MissingExtraError, needs
from btdagg.report.markup import escaped
from btdagg.report.style import SETTINGS, WIDTH
from btdagg.result import Exhibit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTERS = 11  # of a title, in an inch
_ALONE = threading.Lock()  # settings of matplotlib, and filters of warnings, are all threads'


@dataclass(frozen=True, eq=False)
class ReportFigure(Exhibit):
    """A figure of a report. It is drawn anew for each file, so it is the same every time.

    Attributes
    ----------
    name : str
        Stem of its files.
    title : str
    note : str
        The caption.
    draw : callable
        Returns a matplotlib figure.
    """

    kind: ClassVar[str] = "figure"

    draw: Callable[[], Figure] = field(repr=False)

    def svg(self) -> str:
        """Return SVG with text as text and without a date; its title is not drawn."""
        metadata = {"Date": None, "Title": self.title}
        return self._saved(self.draw, format="svg", metadata=metadata).decode()

    def png(self) -> bytes:
        """Return a PNG of 200 dots per inch, with the title above."""
        return self._saved(self._titled, format="png", dpi=200, metadata={"Software": None})

    def rendered(self) -> tuple[str, dict[str, str | bytes]]:
        """Return HTML for a page, and the files by their endings."""
        svg = self.svg()
        return self._image(svg), {"svg": svg, "png": self.png()}

    def _repr_html_(self) -> str | None:
        try:
            image = self._image(self.svg())
        except MissingExtraError:
            return None
        title, note = escaped(self.title), escaped(self.note)
        return (
            f'<figure style="margin: 0">{image}'
            f"<figcaption><strong>{title}</strong> {note}</figcaption></figure>"
        )

    def _image(self, svg: str) -> str:
        # As an image it runs no script, asks for nothing, and its identifiers are its own.
        data = base64.b64encode(svg.encode()).decode()
        width = re.search(r'<svg [^>]*\bwidth="([\d.]+)pt"', svg)
        share = float(width[1]) / 72 / WIDTH if width else 1.0
        return (
            f'<img alt="{escaped(self.title)}" style="width: {60 * share:.1f}rem" '
            f'src="data:image/svg+xml;base64,{data}">'
        )

    def _titled(self) -> Figure:
        figure = self.draw()
        width, height = figure.get_size_inches()
        lines = wrap(self.title, int(_LETTERS * width))
        figure.set_figheight(height + 0.2 * len(lines))
        figure.suptitle("\n".join(lines), x=0.01, ha="left", weight="bold")
        return figure

    def _saved(self, draw: Callable[[], Figure], **options: Any) -> bytes:
        # Whatever the user's settings are, the figure is alike, and they stay.
        with needs("report", "drawing figures"):
            import matplotlib
        settings: dict[Any, Any] = {**matplotlib.rcParamsDefault, **SETTINGS}
        del settings["backend"]
        file = io.BytesIO()
        with _ALONE, matplotlib.rc_context(settings), warnings.catch_warnings():
            # The font that comes with matplotlib lacks some scripts. A reader's own has them in an
            # SVG; a PNG shows a box.
            warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
            draw().savefig(file, **options)
        return file.getvalue()
