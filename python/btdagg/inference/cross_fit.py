"""Predictions of items by models that did not see their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from btdagg._util.errors import InputError, forbid
from btdagg._util.folds import deal
from btdagg.model.calibration import quiet
from btdagg.model.covariates import known_of
from btdagg.model.fit import calibrate, refitted
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.sides import turned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

Predictions: TypeAlias = "tuple[Floats, NDArray[np.int64]]"
"""Probabilities of k distinct rows of counts by each model, (folds, k, labels), and the number of
the model that did not see each labelled item, (n,)."""

Scales: TypeAlias = tuple[Scale, Scale]
"""Of the votes, and of the labels."""

N_FOLDS = 10
_ROUNDING = 1e-6  # of probabilities


class Predictor(Protocol):
    """Anything that has label probabilities for counts: a model, a panel, or a user's own."""

    def predict_proba(self, counts: Any) -> Floats:
        """Return probabilities of B, tie and A, (n, 3), or of the grades, (n, K)."""


def predicted_by(
    model: Predictor, counts: Any, covariates: Mapping[str, Floats] | None = None
) -> Floats:
    """Predict by a model, which may be a user's own and know no covariates."""
    how: Any = {} if covariates is None else {"covariates": covariates}
    return np.asarray(model.predict_proba(counts, **how), dtype=np.float64)


def fixed(
    model: Predictor,
    rows: NDArray[Any],
    n_labels: int,
    scales: Scales,
    covariates: Mapping[str, Floats] | None = None,
) -> Predictions:
    """Predict by a model that was there before the labels."""
    model_scales = tuple(getattr(model, name, None) for name in ("scale", "label_scale"))
    if isinstance(model_scales[0], Scale) and model_scales != scales:
        got, expected = (
            f"votes {votes} and labels {labels}" for votes, labels in (model_scales, scales)
        )
        raise InputError(f"model is of {got}, expected one of {expected}", argument="model")
    table, names = predicted_by(model, rows, covariates), scales[1].names
    good = table.shape == (len(rows), len(names)) and bool((table >= 0).all())
    forbid(
        not good or np.abs(table.sum(axis=1) - 1).max() > _ROUNDING,
        f"predict_proba of model did not return probabilities of {', '.join(names[:-1])} and "
        f"{names[-1]}, expected shape (n, {len(names)}) with rows that sum to 1",
        "model",
    )
    return table[None], np.zeros(n_labels, dtype=np.int64)


def cross_fitted(
    counts: NDArray[Any],
    outcomes: Floats,
    groups: NDArray[np.int64],
    rows: NDArray[Any],
    prior: Any,
    seed: int,
    sign: NDArray[np.int8] | None = None,
    scales: Scales = (PAIRS, PAIRS),
    covariates: Mapping[str, Floats] | None = None,
    labelled: NDArray[np.int64] | None = None,
) -> Predictions:
    """Calibrate on all labels but those of one fold, for each fold of whole groups."""
    # `counts` and `outcomes` (shares of raters, (n, labels)) are of the labelled items, `rows` the
    # counts to predict, `covariates` those of the rows. Folds are dealt with sides swapped where
    # `sign` is -1.
    n_folds = min(N_FOLDS, int(groups.max()) + 1)
    content = [counts, outcomes]
    if sign is not None:
        content = [turned(values, sign < 0) for values in content]
    fold = deal(groups, content, n_folds, seed)
    known, of_rows = None, None
    if covariates and labelled is not None:
        columns = {name: values[labelled] for name, values in covariates.items()}
        known = known_of(columns, np.arange(len(counts)), scales[0])
        of_rows = {c.name: covariates[c.name] for c in known.covariates} or None
    seen = outcomes * (fold != np.arange(n_folds)[:, None])[..., None]
    worth = seen.sum(axis=(1, 2)) / (seen**2).sum(axis=(1, 2))  # to effective numbers of labels
    models = refitted(counts, seen * worth[:, None, None], scales, prior, known=known)
    tables = np.stack([predicted_by(model, rows, of_rows) for model in models])
    return tables, fold


def calibrated(
    counts: NDArray[Any],
    outcomes: Floats,
    groups: NDArray[np.int64],
    prior: Any,
    scales: Scales,
    covariates: Mapping[str, Floats] | None = None,
) -> Predictor:
    """Calibrate on the labels of items; whatever a fit is worth, the labels correct it."""
    # Each label that raters gave is one of its own, which weighs what their share is.
    row, place = np.nonzero(outcomes)
    known = {name: values[row] for name, values in (covariates or {}).items()}
    fields: Any = {"scale": scales[0], "label_scale": scales[1], "covariates": known or None}
    fields |= {"weights": outcomes[row, place], "groups": groups[row]}
    fitted = quiet(calibrate)(counts[row], scales[1].labels[place], prior=prior, **fields)
    return fitted.model  # type: ignore[no-any-return]
