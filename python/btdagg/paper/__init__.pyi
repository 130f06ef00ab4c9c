from .conditions import (
    OrderComparison as OrderComparison,
)
from .conditions import (
    OrderComparisons as OrderComparisons,
)
from .conditions import (
    ablate as ablate,
)
from .conditions import (
    compare_orders as compare_orders,
)
from .parameters import (
    CorrectionRegime as CorrectionRegime,
)
from .parameters import (
    FittedParameters as FittedParameters,
)
from .parameters import (
    Spread as Spread,
)
from .parameters import (
    fitted_parameters as fitted_parameters,
)
from .parameters import (
    regime_of as regime_of,
)
from .raters import (
    JudgeScores as JudgeScores,
)
from .raters import (
    LeaveOneOut as LeaveOneOut,
)
from .raters import (
    RaterScores as RaterScores,
)
from .raters import (
    leave_one_rater_out as leave_one_rater_out,
)
from .ratings import (
    Ratings as Ratings,
)
from .ratings import (
    read_ratings as read_ratings,
)
from .rewardbench2 import (
    LabelledPairs as LabelledPairs,
)
from .rewardbench2 import (
    load_rewardbench2 as load_rewardbench2,
)
from .ties import (
    TieRates as TieRates,
)
from .ties import (
    tie_rates as tie_rates,
)
from .transfer import (
    Transfer as Transfer,
)
from .transfer import (
    transfer_matrix as transfer_matrix,
)
from .wmt23 import (
    load_wmt23 as load_wmt23,
)
