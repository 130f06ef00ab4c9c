"""Reports: tables and figures of every protocol, and a page that holds them.

A report is a `ReportFolder` to which tables and figures are added. `scores_table`, `sweep_figures`
and the like make them of what `btdagg.evaluation` finds.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
