"""Results that a notebook shows as tables, and some of them as a picture."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from btdagg._util.extras import MissingExtraError

if TYPE_CHECKING:
    from btdagg.report.figure import ReportFigure


class Displayed:
    """A result that `btdagg.report.renderers` has tables for."""

    def _repr_html_(self) -> str | None:
        """Return HTML, or None without the extra `report`: a notebook then shows the repr."""
        try:
            html: str | None = _renderers().as_html(self)
        except MissingExtraError:
            return None
        return html


class Drawn(Displayed):
    """A displayed result that has one figure."""

    def plot(self) -> ReportFigure:
        """Draw the figure of the result; its `svg` and `png` are for files."""
        return picture(self)


def picture(result: object, *options: Any) -> ReportFigure:
    """Return the figure of a result."""
    figure: ReportFigure = _renderers().figure_of(result, *options)
    return figure


def _renderers() -> Any:
    # By name, since it imports every class of results: they do not depend on what shows them.
    return import_module("btdagg.report.renderers")
