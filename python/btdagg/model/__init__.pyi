from .absolute_error import calibrate_by_mae as calibrate_by_mae
from .calibration_set import CalibrationWarning as CalibrationWarning
from .sql.queries import LabelsTable as LabelsTable
from .sql.queries import VotesTable as VotesTable
from .sql.queries import histogram_query as histogram_query
