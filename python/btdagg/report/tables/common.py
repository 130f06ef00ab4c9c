"""What several builders of tables share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from btdagg.report.wording import NEW_ITEMS_NOTE, SPLITS_NOTE

if TYPE_CHECKING:
    from btdagg.evaluation import Comparison, Scores
    from btdagg.evaluation.summary import Line

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that votes are grouped by, by their names."""
    return dict(zip(by, key, strict=True))


def splits_of(several: Sequence[int]) -> str:
    """Say over how many splits means are."""
    low, high = min(several), max(several)
    return f"{low} random splits" if low == high else f"{low} to {high} random splits"


def evaluated_on(several: Sequence[Comparison]) -> str:
    """Say on what items scores are: of a cross-validation, or over how many splits."""
    if all(found.methods[0].of_new_items is not None for found in several):
        return "the folds of a cross-validation by group"
    return splits_of([found.n_splits for found in several])


def interval_note(several: Sequence[Comparison]) -> str:
    """Say what stands behind the ± of a score."""
    cross_fitted = all(found.methods[0].of_new_items is not None for found in several)
    return NEW_ITEMS_NOTE if cross_fitted else SPLITS_NOTE


def best_lines(lines: Sequence[Line], score: Literal["mae", "accuracy"] = "mae") -> list[Line]:
    """Lines of the best mean; several where it is equal."""
    means = [getattr(line, score).mean for line in lines]
    best = min(means) if score == "mae" else max(means)
    return [line for line, mean in zip(lines, means, strict=True) if mean == best]


def scored_on(scores: Scores) -> str:
    """Say on what items the cells of an evaluation are scored."""
    return evaluated_on([cell.comparison for cell in scores.cells])


def interval_note_of(scores: Scores) -> str:
    """Say what stands behind the ± of an evaluation's scores."""
    return interval_note([cell.comparison for cell in scores.cells])
