"""Calibrated labels from the noisy three-way votes of LLM judges.

>>> import btdagg
>>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
>>> calibration = btdagg.calibrate(counts, labels=[1, 0, -1, 0, 1, 0])
>>> calibration.model.decide_one(minus=0, tie=1, plus=11)
1
"""

from __future__ import annotations

from btdagg._core import InputError, __version__
from btdagg.lazy import loader

TYPE_CHECKING = False  # to type checkers it is true; importing typing takes ten times as long
if TYPE_CHECKING:
    from btdagg import (  # noqa: F401
        datasets,
        estimates,
        evaluation,
        importing,
        integrations,
        judge,
        online,
        paper,
        report,
        uncertainty,
    )
    from btdagg.aggregators import (
        confidence_weighted_vote,
        majority_vote,
        rounded_median,
        soft_self_consistency,
    )
    from btdagg.estimates import Estimates, SystemEstimates, estimate, estimate_systems
    from btdagg.evaluation import Protocol, RandomSplits, compare, evaluate
    from btdagg.evidence import Confidences, Evidence
    from btdagg.fit.absolute_error import MaeCalibration, calibrate_by_mae
    from btdagg.fit.bounds import Bounds
    from btdagg.fit.calibrate import Calibration, calibrate
    from btdagg.fit.panel import PanelCalibration, calibrate_panel
    from btdagg.fit.posterior import Posterior
    from btdagg.fit.prior import Prior, fit_prior
    from btdagg.fit.warnings import CalibrationWarning
    from btdagg.metrics import (
        confusion_matrix,
        discrete_ranked_probability_score,
        mean_absolute_error,
        pairwise_accuracy,
    )
    from btdagg.model import DavidsonModel, Features
    from btdagg.panel import PanelModel
    from btdagg.provenance import Provenance, ProvenanceWarning
    from btdagg.significance import (
        PermutationTestResult,
        combine_pvalues,
        holm,
        paired_permutation_test,
        pairwise_pvalues,
        rank_clusters,
        split_pvalues,
        statistically_tied,
    )
    from btdagg.tables import (
        Histogram,
        LabelledCounts,
        Labels,
        Votes,
        align,
        read_counts,
        read_histogram,
        read_labels,
        read_votes,
        tally,
    )
    from btdagg.uncertainty import Bootstrap, Stability, bootstrap

__all__ = [
    "Bootstrap",
    "Bounds",
    "Calibration",
    "CalibrationWarning",
    "Confidences",
    "DavidsonModel",
    "Estimates",
    "Evidence",
    "Features",
    "Histogram",
    "InputError",
    "LabelledCounts",
    "Labels",
    "MaeCalibration",
    "PanelCalibration",
    "PanelModel",
    "PermutationTestResult",
    "Posterior",
    "Prior",
    "Protocol",
    "Provenance",
    "ProvenanceWarning",
    "RandomSplits",
    "Stability",
    "SystemEstimates",
    "Votes",
    "__version__",
    "align",
    "bootstrap",
    "calibrate",
    "calibrate_by_mae",
    "calibrate_panel",
    "combine_pvalues",
    "compare",
    "confidence_weighted_vote",
    "confusion_matrix",
    "discrete_ranked_probability_score",
    "estimate",
    "estimate_systems",
    "evaluate",
    "fit_prior",
    "holm",
    "majority_vote",
    "mean_absolute_error",
    "paired_permutation_test",
    "pairwise_accuracy",
    "pairwise_pvalues",
    "rank_clusters",
    "read_counts",
    "read_histogram",
    "read_labels",
    "read_votes",
    "rounded_median",
    "soft_self_consistency",
    "split_pvalues",
    "statistically_tied",
    "tally",
]

# Loaded when first asked for: one who only decides does not wait for the rest, and the command
# line takes care of Ctrl-C before anything that takes time is loaded.
_NAMES_BY_MODULE = {
    "aggregators": (
        "confidence_weighted_vote",
        "majority_vote",
        "rounded_median",
        "soft_self_consistency",
    ),
    "estimates": ("Estimates", "SystemEstimates", "estimate", "estimate_systems"),
    "evaluation": ("Protocol", "RandomSplits", "compare", "evaluate"),
    "evidence": ("Confidences", "Evidence"),
    "fit.absolute_error": ("MaeCalibration", "calibrate_by_mae"),
    "fit.bounds": ("Bounds",),
    "fit.calibrate": ("Calibration", "calibrate"),
    "fit.panel": ("PanelCalibration", "calibrate_panel"),
    "fit.posterior": ("Posterior",),
    "fit.prior": ("Prior", "fit_prior"),
    "fit.warnings": ("CalibrationWarning",),
    "metrics": (
        "confusion_matrix",
        "discrete_ranked_probability_score",
        "mean_absolute_error",
        "pairwise_accuracy",
    ),
    "model": ("DavidsonModel", "Features"),
    "panel": ("PanelModel",),
    "provenance": ("Provenance", "ProvenanceWarning"),
    "significance": (
        "PermutationTestResult",
        "combine_pvalues",
        "holm",
        "paired_permutation_test",
        "pairwise_pvalues",
        "rank_clusters",
        "split_pvalues",
        "statistically_tied",
    ),
    "tables": (
        "Histogram",
        "LabelledCounts",
        "Labels",
        "Votes",
        "align",
        "read_counts",
        "read_histogram",
        "read_labels",
        "read_votes",
        "tally",
    ),
    "uncertainty": ("Bootstrap", "Stability", "bootstrap"),
}
_PACKAGES = (
    "datasets", "estimates", "evaluation", "importing", "integrations", "judge", "online", "paper",
    "report", "uncertainty",
)  # fmt: skip
__getattr__ = loader(__name__, _NAMES_BY_MODULE, _PACKAGES)


def __dir__() -> list[str]:
    return __all__
