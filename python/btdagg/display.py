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
