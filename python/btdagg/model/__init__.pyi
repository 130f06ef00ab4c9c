from .absolute_error import (
    MaeCalibration as MaeCalibration,
)
from .absolute_error import (
    calibrate_by_mae as calibrate_by_mae,
)
from .bounds import (
    Bounds as Bounds,
)
from .calibration import (
    Calibration as Calibration,
)
from .calibration import (
    calibrate as calibrate,
)
from .davidson import (
    DavidsonModel as DavidsonModel,
)
from .davidson import (
    Features as Features,
)
from .intervals import (
    ParameterInterval as ParameterInterval,
)
from .intervals import (
    Stability as Stability,
)
from .panel import (
    PanelModel as PanelModel,
)
from .panel_calibration import (
    PanelCalibration as PanelCalibration,
)
from .panel_calibration import (
    calibrate_panel as calibrate_panel,
)
from .posterior import (
    Posterior as Posterior,
)
from .prior import (
    Prior as Prior,
)
from .prior import (
    fit_prior as fit_prior,
)
from .refit_file import (
    Refits as Refits,
)
from .refit_file import (
    load_refits as load_refits,
)
from .refitting import (
    Bootstrap as Bootstrap,
)
from .refitting import (
    bootstrap as bootstrap,
)
from .sql.queries import (
    LabelsTable as LabelsTable,
)
from .sql.queries import (
    VotesTable as VotesTable,
)
from .sql.queries import (
    histogram_query as histogram_query,
)
from .warnings import (
    CalibrationWarning as CalibrationWarning,
)
