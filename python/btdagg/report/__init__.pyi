from .figure import (
    ReportFigure as ReportFigure,
)
from .figures import (
    behaviour_figure as behaviour_figure,
)
from .figures import (
    calibration_figures as calibration_figures,
)
from .figures import (
    condition_figure as condition_figure,
)
from .figures import (
    confusion_figure as confusion_figure,
)
from .figures import (
    distribution_figure as distribution_figure,
)
from .figures import (
    estimates_figure as estimates_figure,
)
from .figures import (
    forecast_figure as forecast_figure,
)
from .figures import (
    gold_figure as gold_figure,
)
from .figures import (
    plan_figure as plan_figure,
)
from .figures import (
    positional_bias_figure as positional_bias_figure,
)
from .figures import (
    systems_figure as systems_figure,
)
from .figures import (
    vote_figures as vote_figures,
)
from .folder import (
    ReportFolder as ReportFolder,
)
from .table import (
    Entry as Entry,
)
from .table import (
    PivotCell as PivotCell,
)
from .table import (
    ReportTable as ReportTable,
)
from .tables import (
    Ranks as Ranks,
)
from .tables import (
    answers_table as answers_table,
)
from .tables import (
    calibration_sweep_table as calibration_sweep_table,
)
from .tables import (
    calibrations_table as calibrations_table,
)
from .tables import (
    comparison_table as comparison_table,
)
from .tables import (
    confusion_table as confusion_table,
)
from .tables import (
    differences_table as differences_table,
)
from .tables import (
    distribution_table as distribution_table,
)
from .tables import (
    estimates_table as estimates_table,
)
from .tables import (
    forecast_table as forecast_table,
)
from .tables import (
    gold_table as gold_table,
)
from .tables import (
    methods_table as methods_table,
)
from .tables import (
    model_table as model_table,
)
from .tables import (
    panel_table as panel_table,
)
from .tables import (
    plan_table as plan_table,
)
from .tables import (
    positional_bias_table as positional_bias_table,
)
from .tables import (
    pvalue_table as pvalue_table,
)
from .tables import (
    rule_table as rule_table,
)
from .tables import (
    score_tables as score_tables,
)
from .tables import (
    systems_table as systems_table,
)
from .tables import (
    vote_sweep_table as vote_sweep_table,
)
