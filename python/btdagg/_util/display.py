"""Results that a notebook shows as tables, and some of them as a picture."""

from __future__ import annotations

TYPE_CHECKING = False  # `import btdagg` imports this, and nothing else but lazy_loader
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Picture(Protocol):
        name: str
        title: str
        note: str

        def svg(self) -> str:
            """Return SVG."""

        def png(self) -> bytes:
            """Return a PNG."""


class Displayed:
    """A result that has `tables`, and perhaps `remarks`."""

    def _repr_html_(self) -> str | None:
        """Return HTML, or None without the extra `report`: a notebook then shows the repr."""
        from btdagg._util.extensions import provided
        from btdagg._util.extras import MissingExtraError

        try:
            html: str | None = provided("tables and figures").as_html(self)
        except MissingExtraError:
            return None
        return html


class Drawn(Displayed):
    """A displayed result that has one figure."""

    def plot(self) -> Picture:
        """Draw the figure of the result; its `svg` and `png` are for files."""
        return picture(self)


def picture(result: object, *options: Any) -> Picture:
    from btdagg._util.extensions import provided

    figure: Picture = provided("tables and figures").figure_of(result, *options)
    return figure
