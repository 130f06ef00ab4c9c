"""Results that a notebook shows as tables, and some of them as a picture."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from btdagg.extras import MissingExtraError

if TYPE_CHECKING:
    from btdagg.report.figure import ReportFigure


class Displayed:
    """A result that `btdagg.integrations.notebook` has tables for."""

    def _repr_html_(self) -> str | None:
        """Return HTML, or None without the extra `report`: a notebook then shows the repr."""
        try:
            html: str | None = _notebook().as_html(self)
        except MissingExtraError:
            return None
        return html


class Drawn(Displayed):
    """A displayed result that has one figure."""

    def plot(self) -> ReportFigure:
        """Draw the figure of the result; its `svg` and `png` are for files.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return picture(self)


def picture(found: object, *options: Any) -> ReportFigure:
    """Return the figure of a result.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    figure: ReportFigure = _notebook().figure_of(found, *options)
    return figure


def _notebook() -> Any:
    # By name, since it imports what tables are made of: results do not depend on what shows them.
    return import_module("btdagg.integrations.notebook")
