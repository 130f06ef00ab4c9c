"""Reports: tables and figures of every protocol, and a page that holds them.

A report is a `ReportFolder` to which tables and figures are added. `score_tables`, `vote_figures`
and the like make them of what `btdagg.evaluation` finds.
"""

from typing import TYPE_CHECKING

from btdagg.lazy import loader
from btdagg.report import figures, tables
from btdagg.report.figure import ReportFigure
from btdagg.report.figures import *  # noqa: F403
from btdagg.report.table import Entry, PivotCell, ReportTable
from btdagg.report.tables import *  # noqa: F403

if TYPE_CHECKING:
    from btdagg.report.folder import ReportFolder

__all__ = ["Entry", "PivotCell", "ReportFigure", "ReportFolder", "ReportTable"]
__all__ += figures.__all__
__all__ += tables.__all__

__getattr__ = loader(__name__, {"folder": ("ReportFolder",)})  # which needs jinja2
