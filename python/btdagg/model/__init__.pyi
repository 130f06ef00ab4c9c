from .absolute_error import calibrate_by_mae as calibrate_by_mae
from .calibration_set import CalibrationWarning as CalibrationWarning
