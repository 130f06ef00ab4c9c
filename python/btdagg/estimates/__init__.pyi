from .certificate import Certificate as Certificate
from .looks import Looks as Looks
from .looks import worth_a_look as worth_a_look
from .non_inferiority import NonInferiority as NonInferiority
from .non_inferiority import not_worse as not_worse
from .prediction_powered import Estimates as Estimates
from .sample_design import choose as choose
from .systems import SystemEstimates as SystemEstimates
