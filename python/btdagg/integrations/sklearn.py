"""Calibration as a scikit-learn classifier of votes of any scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.validation import refuse_booleans, unmasked
from btdagg.model.calibration import WEAK
from btdagg.model.calibration import calibrate as _calibrate
from btdagg.votes.scale import PAIRS, Scale, scale_from

with needs("sklearn", "VoteClassifier"):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.calibration_set import Bounds


class VoteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Model of labels given vote counts; `fit` is `btdagg.calibrate`.

    Parameters
    ----------
    scale, label_scale : Scale, optional
        Of the votes, which are the columns of X, by default that of pairs; and of labels, the same
        unless given.
    prior : "weak", Prior, sequence of GradeModel, or None
        What is known before the labels; None is the paper's fit, and of grades a flat prior.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature, of pairs.
    bounds : Bounds, optional
        Box constraints of the paper's fit, which is what is fitted where they are given and `prior`
        is ``"weak"``: a classifier cannot tell whether that was named.
    classes : sequence, optional
        How `y` has the points of the scale of labels, in their order; of pairs the labels B, tie
        and A. ``cross_val_predict`` numbers the classes for probabilities, whatever they are: give
        it ``VoteClassifier(classes=(0, 1, 2))``, and labels of which all three occur.

    Attributes
    ----------
    classes_ : array
        The classes, all of them even if a training set has fewer.
    calibration_ : Calibration
        The fit: warnings and, of pairs, DRPS and, with a prior, the posterior. ``model_`` is its
        model, to save or to write as SQL.

    Notes
    -----
    X is an (n, 3) array of vote counts in label order, or a data frame with the columns minus, tie
    and plus and no other, in any order; of grades (n, J), with a column for each point of the scale
    of votes. Counts are numbers of votes, so pipelines must not scale or fill them in before.
    Classes that are grades are whole numbers: scikit-learn takes others for values of a regression.

    `predict` gives the label of least expected absolute error, the median of the predicted
    distribution, which need not be its most probable label.

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> classifier = VoteClassifier().fit(counts, [1, 0, -1, 0, 1, 0])
    >>> classifier.predict([[1, 0, 11], [5, 2, 5]]).tolist()
    [1, 0]
    >>> counts = [[5, 1, 0], [0, 4, 2], [0, 1, 5], [3, 3, 0], [0, 0, 6]]
    >>> classifier = VoteClassifier(Scale((1, 2, 3)))
    >>> classifier.fit(counts, [1, 2, 3, 1, 3]).predict([[0, 5, 1], [6, 0, 0]]).tolist()
    [2, 1]
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
        """Fit to counts, a column for each point, and (n,) labels of `classes`; return itself.

        `sample_weight` are the `weights` of `btdagg.calibrate`, which raises and warns.
        """
        scale = scale_from(self.scale or PAIRS, "scale")
        points = scale_from(self.label_scale or scale, "label_scale").values
        classes = points if self.classes is None else np.asarray(self.classes)
        if classes.shape != points.shape or len(set(classes.tolist())) < len(points):
            expected = f"{len(points)} of them, for {', '.join(map(str, points))}"
            raise InputError(f"classes is {self.classes!r}, expected {expected}")
        counts, labels = self._checked(X, y, reset=True)
        expected = f"one of the classes {', '.join(map(str, classes))}"
        if classes.dtype.kind in "iuf":
            refuse_booleans(y, "y", expected)
        matches = labels[:, np.newaxis] == classes
        if not matches.any(axis=1).all():
            row = int(np.argmin(matches.any(axis=1)))
            raise InputError(f"y[{row}] is {labels[row]}, expected {expected}")
        self.calibration_ = _calibrate(
            counts,
            points[matches.argmax(axis=1)],
            scale=scale,
            label_scale=self.label_scale,
            weights=sample_weight,
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
        model = self.model_
        places = model.label_scale.places(model.decide(self._checked(X, reset=False)))
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of the classes for each item, (n, classes)."""
        shares: NDArray[np.float64] = self.model_.predict_proba(self._checked(X, reset=False))
        return shares

    def _checked(self, X: ArrayLike, *labels: ArrayLike, reset: bool) -> Any:  # noqa: N803
        """Return counts, or counts and labels, as scikit-learn and then the package check them."""
        scale = self.scale or PAIRS
        names = tuple(scale.columns)
        ordered = scale.in_order(unmasked(X, "X"), "X")
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
