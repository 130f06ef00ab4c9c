from .differences import (
    Difference as Difference,
)
from .non_inferiority import (
    NonInferiority as NonInferiority,
)
from .non_inferiority import (
    not_worse as not_worse,
)
from .prediction_powered import (
    Estimates as Estimates,
)
from .prediction_powered import (
    estimate as estimate,
)
from .quantities import (
    QUANTITIES as QUANTITIES,
)
from .quantities import (
    MeanEstimate as MeanEstimate,
)
from .sample_design import (
    ChosenItems as ChosenItems,
)
from .sample_design import (
    choose as choose,
)
from .systems import (
    SystemEstimate as SystemEstimate,
)
from .systems import (
    SystemEstimates as SystemEstimates,
)
from .systems import (
    estimate_systems as estimate_systems,
)
