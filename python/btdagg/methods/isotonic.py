"""Isotonic calibration of the mean vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.methods.means import labelled_means, mean_votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Block means that should be one half may miss it by a rounding error.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Expected label as a monotone function of the mean vote, rounded to the nearest label.

    The function is the isotonic regression of the labels on the mean votes of the calibration set
    and of its mirror image, straight between those means and flat beyond them; it is odd, so
    swapping A and B mirrors every label. An expected label of one half (within 1e-9) is rounded to
    a tie. An item without votes has mean 0 and is a tie. The name is frozen; `fit` sets
    `regression`.

    References
    ----------
    The related work that the paper calls AtC (Xie et al., 2026) calibrates continuous scores by
    isotonic regression; this is that for three-way votes. Zadrozny and Elkan (2002).
    """

    name: str = "isotonic"
    regression: Any = None

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to (n, 3) counts and (n,) labels and return itself.

        Raises
        ------
        InputError
            If shapes disagree, there are no items, or a value is out of range.
        MissingExtraError
            If scikit-learn is not installed.
        """
        with needs("isotonic", "isotonic calibration"):
            from sklearn.isotonic import IsotonicRegression
        means, gold = labelled_means(counts, labels)
        regression = IsotonicRegression(y_min=-1, y_max=1, out_of_bounds="clip")
        regression.fit(np.concatenate([means, -means]), np.concatenate([gold, -gold]))
        object.__setattr__(self, "regression", regression)
        return self

    def expected(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the expected label of each item, (n,), from -1 to 1.

        Raises
        ------
        InputError
            If it is not fitted, or a count is not a non-negative integer.
        """
        if self.regression is None:
            raise InputError("isotonic is not fitted: call fit with labelled counts first")
        means = mean_votes(counts)
        if not len(means):
            return means
        # Odd to the last bit, which the regression is up to rounding.
        return np.asarray(self.regression.predict(means) - self.regression.predict(-means)) / 2

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of each item, (n,): the one nearest to the expected label; a half gives a tie."""
        expected = self.expected(counts)
        return np.where(np.abs(expected) > 0.5 + _ROUNDING, np.sign(expected), 0).astype(np.int8)
