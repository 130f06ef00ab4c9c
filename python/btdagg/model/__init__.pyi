from .calibration import CalibrationWarning as CalibrationWarning
