from .figure import ReportFigure as ReportFigure
from .figures import sweep_figures as sweep_figures
from .folder import ReportFolder as ReportFolder
from .tables import scores_table as scores_table
from .tables import sweep_table as sweep_table
