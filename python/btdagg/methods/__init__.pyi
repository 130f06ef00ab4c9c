from .base import (
    Aggregator as Aggregator,
)
from .base import (
    Needs as Needs,
)
from .base import (
    decisions_of as decisions_of,
)
from .base import (
    is_written as is_written,
)
from .base import (
    needs_of as needs_of,
)
from .behaviour import (
    voting_behaviour as voting_behaviour,
)
from .davidson import (
    Davidson as Davidson,
)
from .davidson_mae import (
    DavidsonMAE as DavidsonMAE,
)
from .decided import (
    Decided as Decided,
)
from .isotonic import (
    Isotonic as Isotonic,
)
from .majority import (
    MajorityVote as MajorityVote,
)
from .majority import (
    majority_vote as majority_vote,
)
from .median import (
    RoundedMedian as RoundedMedian,
)
from .median import (
    rounded_median as rounded_median,
)
from .neighbours import (
    Neighbours as Neighbours,
)
from .panel import (
    OneJudge as OneJudge,
)
from .panel import (
    Panel as Panel,
)
from .registry import (
    AGGREGATORS as AGGREGATORS,
)
from .registry import (
    aggregators_or_usual as aggregators_or_usual,
)
from .registry import (
    by_name as by_name,
)
from .soft import (
    SoftSelfConsistency as SoftSelfConsistency,
)
from .soft import (
    soft_self_consistency as soft_self_consistency,
)
from .threshold import (
    Threshold as Threshold,
)
from .weighted import (
    ConfidenceWeightedVote as ConfidenceWeightedVote,
)
from .weighted import (
    confidence_weighted_vote as confidence_weighted_vote,
)
