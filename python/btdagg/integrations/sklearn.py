"""Calibration as scikit-learn classifiers, of pairs and of grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.validation import refuse_booleans, unmasked
from btdagg.model.calibration import WEAK, Calibration
from btdagg.model.calibration import calibrate as _calibrate
from btdagg.model.grade_fit import GradeCalibration
from btdagg.votes.scale import PAIRS, Scale

with needs("sklearn", "DavidsonClassifier"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.calibration_set import Bounds
    from btdagg.model.grades import GradeModel
    from btdagg.model.prior import Prior

_LABELS = (-1, 0, 1)
_SIDES = ("minus", "tie", "plus")


class _OfCounts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose X are counts of votes, and whose model is that of its `calibration_`."""

    @property
    def model_(self) -> Any:
        """The fitted model."""
        check_is_fitted(self)
        return self.calibration_.model

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Label of least expected absolute error for each item, (n,)."""
        labels: NDArray[Any] = self.model_.decide(self._checked(X, reset=False))
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes for each item, (n, classes)."""
        shares: NDArray[np.float64] = self.model_.predict_proba(self._checked(X, reset=False))
        return shares

    def _checked(self, X: ArrayLike, *labels: ArrayLike, reset: bool) -> Any:  # noqa: N803
        """Return counts, or counts and labels, as scikit-learn and then the package check them."""
        scale: Scale = getattr(self, "scale", PAIRS)
        names = tuple(scale.columns)
        plain = unmasked(X, "X")
        ordered = scale.in_order(plain, "X")
        wanted: Any = {"reset": reset, "dtype": "numeric", "ensure_min_features": len(names)}
        if labels and labels[0] is not None:  # of which what follows says more
            check_classification_targets(unmasked(labels[0], "y"))
        checked = validate_data(self, ordered, *labels, **wanted)
        array, *rest = checked if labels else (checked,)
        if array.shape[1] != len(names):
            expected = f"(n, {len(names)}): {', '.join(names)}"
            raise InputError(f"X has shape {array.shape}, expected {expected}")
        counts = scale.counts(array)
        return (counts, *rest) if labels else counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class DavidsonClassifier(_OfCounts):
    """Davidson model of labels given vote counts; `fit` is `btdagg.calibrate`.

    Parameters
    ----------
    prior : "weak", Prior or None
        What is known before the labels; None is the paper's fit.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature.
    bounds : Bounds, optional
        Box constraints of the paper's fit, which is what is fitted where they are given and `prior`
        is ``"weak"``: a classifier cannot tell whether that was named.
    classes : sequence of three
        How `y` has the labels B, tie and A, in this order. ``cross_val_predict`` numbers the
        classes for probabilities, whatever they are: give it ``DavidsonClassifier(classes=(0, 1,
        2))``, and labels of which all three occur.

    Attributes
    ----------
    classes_ : (3,) array
        The classes, all of them even if a training set has fewer.
    calibration_ : Calibration
        The fit: warnings, DRPS and, with a prior, the posterior. ``model_`` is its model, to save
        or to write as SQL.

    Notes
    -----
    X is an (n, 3) array of vote counts in label order, or a data frame with the columns minus, tie
    and plus and no other, in any order. Counts are numbers of votes, so pipelines must not
    scale or fill them in before.

    `predict` gives the label of least expected absolute error, the median of the predicted
    distribution, which need not be its most probable label.

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> classifier = DavidsonClassifier().fit(counts, [1, 0, -1, 0, 1, 0])
    >>> classifier.predict([[1, 0, 11], [5, 2, 5]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        *,
        prior: Prior | Literal["weak"] | None = "weak",
        alpha: float = 1.0,
        kappa: float = 1.0,
        bounds: Bounds | None = None,
        classes: Sequence[Any] = _LABELS,
    ) -> None:
        self.prior = prior
        self.alpha = alpha
        self.kappa = kappa
        self.bounds = bounds
        self.classes = classes

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit to (n, 3) counts and (n,) labels of `classes`, and return itself.

        `sample_weight` are the `weights` of `btdagg.calibrate`, which raises and warns.
        """
        classes = np.asarray(self.classes)
        if classes.shape != (3,) or len(set(self.classes)) < len(_LABELS):
            raise InputError(f"classes is {self.classes!r}, expected three of them: B, tie, A")
        counts, labels = self._checked(X, y, reset=True)
        if classes.dtype.kind in "iuf":
            refuse_booleans(y, "y", f"one of the classes {', '.join(map(str, classes))}")
        matches = labels[:, np.newaxis] == classes
        if not matches.any(axis=1).all():
            row = int(np.argmin(matches.any(axis=1)))
            raise InputError(
                f"y[{row}] is {labels[row]}, expected one of the classes "
                f"{', '.join(map(str, classes))}"
            )
        self.calibration_: Calibration = _calibrate(
            counts,
            matches.argmax(axis=1) - 1,
            weights=sample_weight,
            prior=WEAK if self.prior == "weak" else self.prior,
            alpha=self.alpha,
            kappa=self.kappa,
            bounds=self.bounds,
        )
        self.classes_ = classes
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Label of least expected absolute error for each item, (n,)."""
        labels = super().predict(X)
        classes: NDArray[Any] = self.classes_[labels + 1]
        return classes


class GradeClassifier(_OfCounts):
    """Model of people's grades given a judge's; `fit` is `btdagg.calibrate`.

    Parameters
    ----------
    scale, label_scale : Scale
        Of the votes, which are the columns of X, and of labels, which are the classes.
    prior : "weak", GradeModel or sequence of GradeModel, or None
        What is known before the labels; None is a flat prior.

    Notes
    -----
    X is an (n, J) array of vote counts, or a data frame with the points of the scale of votes as
    columns. Attributes and scores are as of `DavidsonClassifier`; `classes_` are all grades. For
    probabilities ``cross_val_predict`` numbers the classes: give it places of grades, from 0, and a
    scale with these grades. Grades are whole numbers: scikit-learn takes others for values of a
    regression.

    Examples
    --------
    >>> counts = [[5, 1, 0], [0, 4, 2], [0, 1, 5], [3, 3, 0], [0, 0, 6]]
    >>> classifier = GradeClassifier(Scale((1, 2, 3)))
    >>> classifier.fit(counts, [1, 2, 3, 1, 3]).predict([[0, 5, 1], [6, 0, 0]]).tolist()
    [2, 1]
    """

    def __init__(
        self,
        scale: Scale | None = None,
        *,
        label_scale: Scale | None = None,
        prior: GradeModel | Sequence[GradeModel] | Literal["weak"] | None = "weak",
    ) -> None:
        self.scale = scale
        self.label_scale = label_scale
        self.prior = prior

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Fit to (n, J) counts and (n,) grades, with `sample_weight` as `weights`."""
        if not isinstance(self.scale, Scale):
            raise InputError(argument="scale", came=self.scale, expected="a btdagg.Scale")
        counts, labels = self._checked(X, y, reset=True)
        self.calibration_: GradeCalibration = _calibrate(
            counts,
            labels,
            scale=self.scale,
            label_scale=self.label_scale,
            prior=self.prior,
            weights=sample_weight,
        )
        self.classes_ = (self.label_scale or self.scale).values
        return self
