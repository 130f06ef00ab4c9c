from .figure import ReportFigure as ReportFigure
from .figures import sweep_figures as sweep_figures
from .folder import ReportFolder as ReportFolder
from .table import ReportTable as ReportTable
from .table import Row as Row
from .tables import score_tables as score_tables
from .tables import sweep_table as sweep_table
