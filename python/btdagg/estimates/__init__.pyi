from .mean import QUANTITIES as QUANTITIES
from .non_inferiority import NonInferiority as NonInferiority
from .non_inferiority import not_worse as not_worse
from .prediction_powered import Estimates as Estimates
from .prediction_powered import estimate as estimate
from .sample_design import choose as choose
from .systems import SystemEstimates as SystemEstimates
from .systems import estimate_systems as estimate_systems
