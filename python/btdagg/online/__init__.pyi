from .drift import (
    DriftMonitor as DriftMonitor,
)
from .drift import (
    DriftReport as DriftReport,
)
from .drift import (
    Facet as Facet,
)
from .forecast import (
    Forecast as Forecast,
)
from .forecast import (
    ForecastRow as ForecastRow,
)
from .forecast import (
    forecast as forecast,
)
from .planner import (
    Plan as Plan,
)
from .planner import (
    PlannedBudget as PlannedBudget,
)
from .planner import (
    excess_by_labels as excess_by_labels,
)
from .planner import (
    plan as plan,
)
from .planner import (
    plan_model as plan_model,
)
from .planner import (
    plan_rule as plan_rule,
)
from .predictive import (
    VoteDistribution as VoteDistribution,
)
from .predictive import (
    fit_votes as fit_votes,
)
from .rule import (
    StoppedVotes as StoppedVotes,
)
from .rule import (
    StoppingRule as StoppingRule,
)
from .tally import (
    Conflict as Conflict,
)
from .tally import (
    OnlineTally as OnlineTally,
)
from .tally import (
    Settled as Settled,
)
