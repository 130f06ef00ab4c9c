from .bias import (
    PositionalBias as PositionalBias,
)
from .bias import (
    positional_bias as positional_bias,
)
from .cells import (
    Cell as Cell,
)
from .cells import (
    Comparison as Comparison,
)
from .cells import (
    MethodScores as MethodScores,
)
from .comparison import (
    compare as compare,
)
from .comparison import (
    evaluate as evaluate,
)
from .comparison import (
    label_distributions as label_distributions,
)
from .curves import (
    Curve as Curve,
)
from .curves import (
    Sweep as Sweep,
)
from .intervals import (
    Interval as Interval,
)
from .intervals import (
    bootstrap_interval as bootstrap_interval,
)
from .intervals import (
    difference_interval as difference_interval,
)
from .intervals import (
    mean_interval as mean_interval,
)
from .intervals import (
    proportion_interval as proportion_interval,
)
from .intervals import (
    share_interval as share_interval,
)
from .items import (
    LabelledItems as LabelledItems,
)
from .metrics import (
    confusion_matrix as confusion_matrix,
)
from .metrics import (
    discrete_ranked_probability_score as discrete_ranked_probability_score,
)
from .metrics import (
    mean_absolute_error as mean_absolute_error,
)
from .metrics import (
    pairwise_accuracy as pairwise_accuracy,
)
from .new_items import (
    NewItems as NewItems,
)
from .panel import (
    PanelScores as PanelScores,
)
from .panel import (
    evaluate_panel as evaluate_panel,
)
from .parts import (
    labelled_tasks as labelled_tasks,
)
from .protocol import (
    CROSS_FITTED as CROSS_FITTED,
)
from .protocol import (
    Protocol as Protocol,
)
from .ranking import (
    PAPER_TEST as PAPER_TEST,
)
from .ranking import (
    GroupTest as GroupTest,
)
from .ranking import (
    Ranking as Ranking,
)
from .ranking import (
    SplitTest as SplitTest,
)
from .scores import (
    Scores as Scores,
)
from .significance import (
    PermutationTestResult as PermutationTestResult,
)
from .significance import (
    combine_pvalues as combine_pvalues,
)
from .significance import (
    holm as holm,
)
from .significance import (
    paired_permutation_test as paired_permutation_test,
)
from .significance import (
    pairwise_pvalues as pairwise_pvalues,
)
from .significance import (
    rank_clusters as rank_clusters,
)
from .significance import (
    split_pvalues as split_pvalues,
)
from .significance import (
    statistically_tied as statistically_tied,
)
from .splitters import (
    CrossFit as CrossFit,
)
from .splitters import (
    RandomSplits as RandomSplits,
)
from .splitters import (
    Split as Split,
)
from .splitters import (
    Splitter as Splitter,
)
from .splitters import (
    random_splits as random_splits,
)
from .sweeps import (
    calibration_curves as calibration_curves,
)
from .sweeps import (
    sweep_calibration as sweep_calibration,
)
from .sweeps import (
    sweep_votes as sweep_votes,
)
