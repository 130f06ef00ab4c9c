"""Proxies: what the votes of every item say of its label, by models that did not see that label."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from btdagg._core import InputError
from btdagg._util.distinct import distinct_rows
from btdagg._util.folds import deal
from btdagg._util.readable import readable
from btdagg._util.validation import as_whole_counts
from btdagg.model.calibration_set import CalibrationWarning
from btdagg.model.panel import as_panel_counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.prior import Prior

_ROUNDING = 1e-6
_N_FOLDS = 10
_N_FOLDS_OF_PANELS = 5  # they are slower to fit


class Predictor(Protocol):
    """What has probabilities of labels for counts: a model, a panel, or a user's own."""

    def predict_proba(self, counts: Any) -> NDArray[np.float64]:
        """Return probabilities of B, tie and A, (n, 3)."""


def as_any_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """Return counts of a judge, (n, 3), or of a panel, (n, judges, 3)."""
    array = as_panel_counts(counts) if np.ndim(counts) == 3 else as_whole_counts(counts)
    if not len(array):
        raise InputError("counts is empty, expected at least one item", argument="counts")
    return array.astype(np.int64)


@readable
@dataclass(frozen=True, eq=False)
class DistinctCounts:
    """Counts of items, each distinct row once.

    Attributes
    ----------
    rows : (k, 3) or (k, judges, 3) array of int64
    place : (n,) array of int
        The row of each item.
    """

    rows: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def of(cls, array: NDArray[np.int64]) -> DistinctCounts:
        """Gather the counts of items: (n, 3), or (n, judges, 3) of a panel."""
        first, place = distinct_rows(*array.reshape(len(array), -1).T)
        return cls(array[first], place)


@readable
@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of every distinct row of counts by every model.

    Attributes
    ----------
    tables : (folds, k, 3) array
        Of the models; one, if it is fixed.
    fold : (n,) array of int
        Which of the models did not see a labelled item.
    """

    tables: NDArray[np.float64]
    fold: NDArray[np.int64]


def fixed(model: Predictor, rows: NDArray[np.int64], n_labels: int) -> Predictions:
    """Predict by a model that was there before the labels."""
    table = np.asarray(model.predict_proba(rows), dtype=np.float64)
    good = table.shape == (len(rows), 3) and bool((table >= 0).all())
    if not good or np.abs(table.sum(axis=1) - 1).max() > _ROUNDING:
        raise InputError(
            "predict_proba of model returned no probabilities of B, tie and A, expected (n, 3) of "
            "numbers that add up to 1",
            argument="model",
        )
    return Predictions(table[None], np.zeros(n_labels, dtype=np.int64))


def cross_fitted(
    items: DistinctCounts,
    labelled: NDArray[np.int64],
    outcomes: NDArray[np.float64],
    groups: NDArray[np.int64],
    prior: Prior | Literal["weak"],
    seed: int,
    sign: NDArray[np.int8] | None = None,
) -> Predictions:
    """Calibrate on all labels but those of one fold, for each fold of whole groups.

    `labelled` are the numbers, (n,), of the labelled items, `outcomes`, (n, 3), the shares of their
    raters for B, tie and A, and `groups` their groups as numbers from 0. Where folds are dealt, the
    sides of items whose `sign` is -1 are swapped.
    """
    from btdagg.model.calibration import calibrate
    from btdagg.model.panel import calibrate_panel

    is_panel = items.rows.ndim == 3
    n_folds = min(_N_FOLDS_OF_PANELS if is_panel else _N_FOLDS, int(groups.max()) + 1)
    content = [items.rows[items.place[labelled]], outcomes]
    if sign is not None:
        content = [_turned(values, sign) for values in content]
    fold = deal(groups, content, n_folds, seed)
    # Each label that raters gave is one of its own, which weighs what their share is.
    row, column = np.nonzero(outcomes)
    counts, weights = items.rows[items.place[labelled[row]]], outcomes[row, column]
    labels = column.astype(np.int8) - 1
    tables = np.empty((n_folds, len(items.rows), 3))
    with warnings.catch_warnings():
        # Whatever a fit is worth, the labels correct it.
        warnings.simplefilter("ignore", CalibrationWarning)
        for number in range(n_folds):
            seen = fold[row] != number
            own = counts[seen], labels[seen]
            model: Predictor
            if is_panel:
                of_panel = {"weights": weights[seen], "groups": groups[row][seen]}
                model = calibrate_panel(*own, **of_panel).model
            else:
                model = calibrate(*own, weights=weights[seen], prior=prior).model
            tables[number] = model.predict_proba(items.rows)
    return Predictions(tables, fold)


def _turned(values: NDArray[Any], sign: NDArray[np.int8]) -> NDArray[Any]:
    """Swap the sides of the items whose sign is -1, where the last axis has the labels."""
    return np.where(sign.reshape(-1, *[1] * (values.ndim - 1)) < 0, values[..., ::-1], values)
