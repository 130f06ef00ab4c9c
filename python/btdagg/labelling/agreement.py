"""How far raters agree, and on which items they do not."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import krippendorff
import numpy as np

if TYPE_CHECKING:
    from btdagg.labelling.store import Answer


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on the items that two or more of them labelled; skips do not count.

    Attributes
    ----------
    alpha : float
        Krippendorff's alpha for ordinal labels: 1 if raters agree, 0 if they do as by chance. NaN
        if no item has two labels, or all labels are the same.
    n_items : int
        Items with two labels or more.
    disputed : list of (str, dict of str to int)
        Items on which raters disagree, with their labels; those with an A and a B first.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """

    alpha: float
    n_items: int
    disputed: list[tuple[str, dict[str, int]]]


def agreement(answers: Iterable[Answer]) -> Agreement:
    """Measure how far raters agree; there is at most one answer of a rater to an item."""
    labels_of: dict[str, dict[str, int]] = defaultdict(dict)
    for answer in answers:
        if answer.label is not None:
            labels_of[answer.item][answer.rater] = answer.label
    shared = {item: labels for item, labels in labels_of.items() if len(labels) > 1}
    spread = {item: max(of.values()) - min(of.values()) for item, of in shared.items()}
    disputed = sorted((item for item in shared if spread[item]), key=lambda item: -spread[item])
    return Agreement(_alpha(shared), len(shared), [(item, shared[item]) for item in disputed])


def _alpha(shared: dict[str, dict[str, int]]) -> float:
    if len({label for labels in shared.values() for label in labels.values()}) < 2:
        return math.nan  # alpha is 0 / 0
    raters = sorted({rater for labels in shared.values() for rater in labels})
    table = np.array(
        [[labels.get(rater, math.nan) for labels in shared.values()] for rater in raters]
    )
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal"))
