"""Reports: tables and figures of every protocol, and a page that holds them.

A report is a `ReportFolder` to which tables and figures are added. `score_tables`, `vote_figures`
and the like make them of what `btdagg.evaluation` finds.
"""

from typing import TYPE_CHECKING

from btdagg.lazy import loader

if TYPE_CHECKING:
    from btdagg.report.figure import ReportFigure
    from btdagg.report.figures import *  # noqa: F403
    from btdagg.report.folder import ReportFolder
    from btdagg.report.table import Entry, PivotCell, ReportTable
    from btdagg.report.tables import *  # noqa: F403

_FIGURES = (
    "behaviour_figure",
    "calibration_figures",
    "condition_figure",
    "confusion_figure",
    "distribution_figure",
    "estimates_figure",
    "forecast_figure",
    "gold_figure",
    "plan_figure",
    "positional_bias_figure",
    "systems_figure",
    "vote_figures",
)
_TABLES = (
    "Ranks",
    "answers_table",
    "calibration_sweep_table",
    "calibrations_table",
    "comparison_table",
    "confusion_table",
    "differences_table",
    "distribution_table",
    "estimates_table",
    "forecast_table",
    "gold_table",
    "methods_table",
    "model_table",
    "panel_table",
    "plan_table",
    "positional_bias_table",
    "systems_table",
    "pvalue_table",
    "rule_table",
    "score_tables",
    "vote_sweep_table",
)

__all__ = ["Entry", "PivotCell", "ReportFigure", "ReportFolder", "ReportTable"]
__all__ += _FIGURES
__all__ += _TABLES

# Numbers, SVG and jinja2 are loaded for those who report; the words of `table` are for everybody.
__getattr__ = loader(
    __name__,
    {
        "figure": ("ReportFigure",),
        "figures": _FIGURES,
        "folder": ("ReportFolder",),
        "table": ("Entry", "PivotCell", "ReportTable"),
        "tables": _TABLES,
    },
)


def __dir__() -> list[str]:
    return __all__
