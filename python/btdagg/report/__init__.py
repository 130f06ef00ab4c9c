"""Reports: tables and figures of every protocol, and a page that holds them.

A `ReportFolder` takes results, and the figures that `sweep_figures` and the like make.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
