"""A few labels, or none, as the posterior takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_counts, as_labels, as_weights
from btdagg.model.calibration_set import calibration_set
from btdagg.model.prior import Prior

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# From so many labels on neighbours have nothing to add, and the core leaves them out.
_ENOUGH = 1000
# Neighbours that hold less than this share of the posterior are said not to fit.
_FIT = 0.5


@readable
@dataclass(frozen=True)
class FewLabels:
    """Items with what their labels are worth.

    Attributes
    ----------
    items : _core.CalibrationSet
        Their counts and labels; of unlabelled ones how often each of the counts occurs.
    n_labels : int
        Labelled items with a weight above 0.
    worth : float
        The effective number of labels.
    alpha, kappa : float
        Smoothing constants.
    """

    items: _core.CalibrationSet
    n_labels: int
    worth: float
    alpha: float
    kappa: float
    _made_of: tuple[NDArray[Any] | None, ...] = field(repr=False)

    @classmethod
    def of(
        cls, counts: Any, labels: Any, weights: ArrayLike | None, *, alpha: float, kappa: float
    ) -> Self:
        """Gather labelled counts, or unlabelled ones; see `btdagg.calibrate`.

        Raises
        ------
        InputError
            As `calibration_set` does, or if there are no items.
        """
        if labels is None and weights is None:
            n = len(as_counts(counts))
            if n == 0:
                raise InputError("counts is empty, expected at least one item")
            items = calibration_set(counts, None, np.ones((n, 3)), alpha=alpha, kappa=kappa)
            return cls(items, 0, 0.0, alpha, kappa, (np.array(as_counts(counts)), None, None))
        items = calibration_set(counts, labels, weights, alpha=alpha, kappa=kappa)
        worth = float(items.n_items)
        known = None if labels is None else np.array(as_labels(labels))
        by_item = None if weights is None else np.array(as_weights(weights, soft=labels is None))
        made_of = np.array(as_counts(counts)), known, by_item
        if by_item is not None:
            by_item = by_item / by_item.max()
            by_item = by_item.sum(axis=1) if labels is None else by_item
            worth = float(by_item.sum() ** 2 / (by_item**2).sum())
        return cls(items, items.n_items, worth, alpha, kappa, made_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (*self._made_of, self.alpha, self.kappa)

    def posterior(self, prior: object) -> _core.Posterior:
        """Return the posterior under a prior.

        Raises
        ------
        InputError
            If it is no prior, or one for other smoothing constants.
        """
        if isinstance(prior, str) and prior == "weak":
            return _core.Posterior(self.items, self.worth, None, 0.0)
        if not isinstance(prior, Prior):
            raise InputError(f'prior is {prior!r}, expected a btdagg.Prior, "weak" or None')
        for name in ("alpha", "kappa"):
            ours, its = getattr(self, name), getattr(prior, name)
            if ours != its:
                raise InputError(
                    f"prior was learned with {name} {its:g} and {name} is {ours:g}: learn it again "
                    f"by fit_prior(..., {name}={ours:g})"
                )
        learned = prior.learned(min(prior.n_votes, self.items.max_votes))
        return _core.Posterior(self.items, self.worth, learned, prior.weak_share)

    def doubts(self, found: _core.Posterior, prior: object) -> tuple[str, ...]:
        """Say where the neighbours of a prior do not fit."""
        if not isinstance(prior, Prior):
            return ()
        doubts = []
        held = found.shares[0]
        if 0 < self.worth < _ENOUGH and held < _FIT:
            doubts.append(
                f"the neighbours do not fit: they explain {held:.0%} of what {self.n_labels} "
                "labels say, and the rest is by the weak prior; are they of a like task and judge?"
            )
        if self.items.max_votes > prior.n_votes:
            doubts.append(
                f"items have up to {self.items.max_votes} votes, and the prior was learned from "
                f"{prior.n_votes} an item"
            )
        return tuple(doubts)


def _of(counts: Any, labels: Any, weights: Any, alpha: float, kappa: float) -> FewLabels:
    return FewLabels.of(counts, labels, weights, alpha=alpha, kappa=kappa)


def refitted(
    counts: NDArray[np.uint64],
    labels: NDArray[np.int8],
    times: NDArray[np.float64],
    prior: Prior | Literal["weak"],
    alpha: float,
    kappa: float,
) -> NDArray[np.float64]:
    """Beta, eta0 and gamma with a prior for each row of how often items are drawn, (k, 3)."""
    smoothing = {"alpha": alpha, "kappa": kappa}
    found = []
    for row in times.astype(np.int64):
        few = FewLabels.of(
            np.repeat(counts, row, axis=0), np.repeat(labels, row), None, **smoothing
        )
        found.append(few.posterior(prior).parameters)
    return np.array(found)
