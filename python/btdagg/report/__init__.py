"""Reports: tables and figures of every protocol, and a page that holds them.

`scores_table`, `sweep_figures` and the like make what is added to a `ReportFolder`.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
