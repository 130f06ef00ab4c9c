"""Calibration as a scikit-learn classifier of votes of any scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.validation import (
    COUNT_COLUMNS,
    column_names,
    refuse_booleans,
    require_rows,
    unmasked,
    with_columns,
)
from btdagg.model.fit import WEAK
from btdagg.model.fit import calibrate as _calibrate
from btdagg.votes.scale import PAIRS, Scale, column_text, scale_from

with needs("sklearn", "VoteClassifier"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.calibration import Bounds


class VoteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Model of labels given vote counts; `fit` is `btdagg.calibrate`.

    Parameters
    ----------
    scale, label_scale : Scale, optional
        Scale of the votes, the columns of X, by default pairs; and of labels, the same
        unless given.
    prior : "weak", Prior, sequence of GradeModel, or None
        Prior; None is the paper's fit, for grades a flat prior.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature, of pairs.
    bounds : Bounds, optional
        Bounds of the parameters. Giving them selects the paper's fit if `prior` is ``"weak"``.
    classes : sequence, optional
        The classes of `y` in the order of the points of the label scale; of pairs B, tie and A.
        ``cross_val_predict`` numbers classes for probabilities: give it
        ``VoteClassifier(classes=(0, 1, 2))``, and labels of which all three occur.

    Attributes
    ----------
    classes_ : array
        The classes, all of them even if a training set has fewer.
    calibration_ : Calibration
        The fit: warnings, DRPS and, with a prior, what its parts hold. ``model_`` is its model, to
        save or to write as SQL.

    Notes
    -----
    X is an array whose first columns are vote counts in label order, or a data frame with the
    columns minus, tie and plus; of grades one for each point. Pipelines must not scale or impute
    counts. More columns are covariates (`btdagg.calibrate`), NaN where missing, of pairs of the
    other sign when A and B are swapped; in an array they are called x3, x4 and so on.

    Grades must be whole numbers: scikit-learn takes others for values of a regression. `predict`
    gives the label of least expected absolute error, the median, which need not be the most
    probable.

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> classifier = VoteClassifier().fit(counts, [1, 0, -1, 0, 1, 0])
    >>> classifier.predict([[1, 0, 11], [5, 2, 5]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        scale: Scale | None = None,  # scikit-learn refuses objects as defaults
        label_scale: Scale | None = None,
        *,
        prior: Any = "weak",
        alpha: float = 1.0,
        kappa: float = 1.0,
        bounds: Bounds | None = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.scale = scale
        self.label_scale = label_scale
        self.prior = prior
        self.alpha = alpha
        self.kappa = kappa
        self.bounds = bounds
        self.classes = classes

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit to counts and (n,) labels of `classes`, weighted as by `btdagg.calibrate`."""
        scale = scale_from(self.scale or PAIRS, "scale")
        points = scale_from(self.label_scale or scale, "label_scale").values
        classes = points if self.classes is None else np.asarray(self.classes)
        if classes.shape != points.shape or len(set(classes.tolist())) < len(points):
            expected = f"{len(points)} of them, for {', '.join(map(str, points))}"
            raise InputError(argument="classes", got=self.classes, expected=expected)
        counts, known, labels = self._checked(X, y, reset=True)
        expected = f"one of the classes {', '.join(map(str, classes))}"
        if classes.dtype.kind in "iuf":
            refuse_booleans(y, "y", expected)
        matches = labels[:, np.newaxis] == classes
        require_rows(matches.any(axis=1), labels, "y", expected)
        self.calibration_ = _calibrate(
            counts,
            points[matches.argmax(axis=1)],
            scale=scale,
            label_scale=self.label_scale,
            weights=sample_weight,
            covariates=known or None,
            prior=WEAK if isinstance(self.prior, str) and self.prior == "weak" else self.prior,
            alpha=self.alpha,
            kappa=self.kappa,
            bounds=self.bounds,
        )
        self.classes_ = classes
        return self

    @property
    def model_(self) -> Any:
        """The fitted model."""
        check_is_fitted(self)
        return self.calibration_.model

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Label of least expected absolute error for each item, (n,)."""
        model, (counts, known) = self.model_, self._checked(X, reset=False)
        places = model.label_scale.places(model.decide(counts, covariates=self._needed(known)))
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes for each item, (n, classes)."""
        model, (counts, known) = self.model_, self._checked(X, reset=False)
        shares: NDArray[np.float64] = model.predict_proba(counts, covariates=self._needed(known))
        return shares

    def _needed(self, known: dict[str, Any]) -> dict[str, Any] | None:
        """Return the covariates of the model, which lacks those that were constant in the fit."""
        return {
            covariate.name: known[covariate.name] for covariate in self.model_.covariates
        } or None

    def _checked(self, X: ArrayLike, *labels: ArrayLike, reset: bool) -> Any:  # noqa: N803
        scale = self.scale or PAIRS
        n_counts = len(scale.points)
        ordered = self._in_order(unmasked(X, "X"), scale, reset)
        wanted: Any = {"reset": reset, "dtype": "numeric", "ensure_min_features": n_counts}
        if labels and labels[0] is not None:  # of which what follows says more
            check_classification_targets(unmasked(labels[0], "y"))
        checked = validate_data(self, ordered, *labels, ensure_all_finite="allow-nan", **wanted)
        array, *rest = checked if labels else (checked,)
        names = getattr(self, "feature_names_in_", [f"x{n}" for n in range(array.shape[1])])
        known = dict(zip(names[n_counts:], array.T[n_counts:], strict=True))
        return scale.counts(array[:, :n_counts]), known, *rest

    def _in_order(self, X: Any, scale: Scale, reset: bool) -> Any:  # noqa: N803
        columns = column_names(X)
        if columns is None or (scale.mirrored and columns == [*range(len(columns))]):
            return X
        sides = {*COUNT_COLUMNS, *COUNT_COLUMNS.values()} if scale.mirrored else {*scale.columns}
        texts = {column: str(column).strip().lower() for column in columns}
        if not scale.mirrored:
            texts = {column: column_text(column) for column in columns}
        counts = [column for column in columns if texts[column] in sides]
        count_columns = with_columns(X, counts) if len(counts) == len(scale.points) else X
        more = [column for column in columns if column not in counts]
        fitted = [] if reset else [*getattr(self, "feature_names_in_", [])]
        more.sort(key=lambda name: fitted.index(name) if name in fitted else len(fitted))
        return with_columns(X, [*(column_names(scale.in_order(count_columns, "X")) or ()), *more])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
