"""What a few labels and a prior say of the parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_counts, as_integer, as_labels, as_weights, same_index
from btdagg.model.calibration_set import PARAMETERS, Bounds, calibration_set
from btdagg.model.intervals import (
    ParameterInterval,
    Stability,
    as_level,
    distinct_counts,
    stability_of,
)
from btdagg.model.prior import Prior

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.davidson import DavidsonModel

# From so many labels on neighbours have nothing to add, and the core leaves them out.
_ENOUGH = 1000
# Neighbours that hold less than this share of the posterior are said not to fit.
_FIT = 0.5


@dataclass(frozen=True, eq=False)
class FewLabels:
    """Items with their labels, or without any; see `btdagg.calibrate`."""

    counts: NDArray[Any]
    labels: NDArray[np.int8] | None
    weights: NDArray[np.float64] | None
    alpha: float
    kappa: float

    @classmethod
    def of(
        cls, counts: Any, labels: Any, weights: ArrayLike | None, *, alpha: float, kappa: float
    ) -> Self:
        """Check and copy items."""
        same_index(counts=counts, labels=labels, weights=weights)
        gold = None if labels is None else np.array(as_labels(labels))
        weight = None if weights is None else np.array(as_weights(weights, soft=labels is None))
        few = cls(np.array(as_counts(counts)), gold, weight, alpha, kappa)
        if not len(few.counts):
            raise InputError("counts is empty, expected at least one item", argument="counts")
        _ = few.items  # which checks that they belong together
        return few

    @cached_property
    def items(self) -> _core.CalibrationSet:
        """The counts and labels; of unlabelled items how often each of the counts occurs."""
        weights = self.weights
        if self.labels is None and weights is None:
            weights = np.ones((len(self.counts), 3))
        smoothing = {"alpha": self.alpha, "kappa": self.kappa}
        return calibration_set(self.counts, self.labels, weights, **smoothing)

    @property
    def n_labels(self) -> int:
        """Labelled items with a weight above 0."""
        return 0 if self.labels is None and self.weights is None else self.items.n_items

    @property
    def worth(self) -> float:
        """The effective number of labels."""
        if self.weights is None:
            return float(self.n_labels)
        weight = self.weights / self.weights.max()
        weight = weight.sum(axis=1) if self.labels is None else weight
        return float(weight.sum() ** 2 / (weight**2).sum())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.counts, self.labels, self.weights, self.alpha, self.kappa)

    def posterior(self, prior: object) -> _core.Posterior:
        """Return the posterior under a prior for the same smoothing constants."""
        if isinstance(prior, str) and prior == "weak":
            return _core.Posterior(self.items, self.worth, None, 0.0)
        if not isinstance(prior, Prior):
            raise InputError(argument="prior", came=prior, expected='a Prior, "weak" or None')
        for name in ("alpha", "kappa"):
            ours, its = getattr(self, name), getattr(prior, name)
            if ours != its:
                expected = f"{its:g} as of the prior, or fit_prior(..., {name}={ours:g})"
                raise InputError(argument=name, came=ours, expected=expected)
        learned = prior.learned(min(prior.n_votes, self.items.max_votes))
        return _core.Posterior(self.items, self.worth, learned, prior.weak_share)

    def doubts(self, share: float, prior: object) -> tuple[str, ...]:
        """Say where the neighbours of a prior, who hold a share of the posterior, do not fit."""
        if not isinstance(prior, Prior):
            return ()
        doubts = []
        if 0 < self.worth < _ENOUGH and share < _FIT:
            doubts.append(
                f"the neighbours do not fit: they explain {share:.0%} of what {self.n_labels} "
                "labels say, and the rest is by the weak prior; are they of a like task and judge?"
            )
        if self.items.max_votes > prior.n_votes:
            doubts.append(
                f"items have up to {self.items.max_votes} votes, and the prior was learned from "
                f"{prior.n_votes} an item"
            )
        return tuple(doubts)


def refitted(
    counts: NDArray[np.float64],
    labels: NDArray[np.int8],
    weights: NDArray[np.float64],
    prior: Prior | Literal["weak"] | None,
    alpha: float,
    kappa: float,
    bounds: Bounds,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Fit beta, eta0 and gamma to each row of weights, with a prior how often items are drawn."""
    if prior is None:
        lower, upper = (ends.tolist() for ends in bounds.box())
        refits = _core.Refits(counts, labels, alpha, kappa, lower, upper)
        return refits.fit(weights, n_threads)[0]
    thetas = []
    for row in weights.astype(np.int64):
        drawn = np.repeat(counts, row, axis=0), np.repeat(labels, row)
        few = FewLabels.of(*drawn, None, alpha=alpha, kappa=kappa)
        thetas.append(few.posterior(prior).parameters)
    return np.array(thetas)


def decisions_under(
    thetas: NDArray[np.float64], alpha: float, kappa: float, counts: NDArray[Any], n_threads: int
) -> NDArray[np.int8]:
    """Decision of each row of counts under each row of parameters, (k, n)."""
    models = [_core.Model(b, eta0, gamma, alpha, kappa) for b, eta0, gamma in thetas.tolist()]
    return np.array([model.decide(counts, n_threads) for model in models], dtype=np.int8)


@readable
@dataclass(frozen=True, eq=False)
class Posterior:
    """What labels and a prior say of the parameters of a calibrated model.

    Attributes
    ----------
    model : DavidsonModel
        The model whose probabilities are closest to the posterior's.
    n_labels : float
        Labels that it was calibrated on; of weighted items their effective number,
        ``weights.sum()**2 / (weights**2).sum()``.
    neighbours : float
        Share of the posterior that the neighbours hold, weighed by the likelihood of the labels. Of
        no label it is 1; without neighbours, and from 1,000 labels on, 0.
    nothing : float
        Share that is held by "the votes say nothing", a constant chance of a tie.
    warnings : tuple of str
        Where the prior does not fit.
    """

    model: DavidsonModel
    n_labels: float
    neighbours: float
    nothing: float
    warnings: tuple[str, ...]
    _few: FewLabels = field(repr=False)
    _prior: Prior | Literal["weak"] = field(repr=False)
    _kernel: _core.Posterior = field(repr=False)

    @classmethod
    def of(
        cls,
        model: DavidsonModel,
        few: FewLabels,
        prior: Prior | Literal["weak"],
        kernel: _core.Posterior | None = None,
    ) -> Self:
        """Say it of the model that is closest to the posterior of a few labels."""
        kernel = few.posterior(prior) if kernel is None else kernel
        neighbours, _, nothing = kernel.shares
        doubts = few.doubts(neighbours, prior)
        return cls(model, few.worth, neighbours, nothing, doubts, few, prior, kernel)

    def __reduce__(self) -> tuple[Any, ...]:
        # What the core holds is not written: it is computed again, in milliseconds.
        return Posterior.of, (self.model, self._few, self._prior)

    def predict_proba(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the posterior mean of the probabilities of each label, (n, 3).

        `model` predicts nearly the same, and is what decides.
        """
        rows, place = distinct_counts(counts)
        return self._kernel.probabilities(rows, 1)[place]

    def stable(self, counts: ArrayLike, *, level: float = 0.95, n_threads: int = 1) -> Stability:
        """Say of each item how likely another draw of labels would decide it as the model does.

        `counts` are of any items, not only those of the calibration; `level` is the agreement from
        which a decision is called stable. The agreement is the chance of the model's own label.

        Notes
        -----
        The chances are those of the posterior at the rate of the loss at which it is as wide as
        the estimate's sampling distribution, as the model expects it: three over the trace of
        H^-1 J, with H the curvature of the DRPS and J the variance of its gradient.

        References
        ----------
        Lyddon, Holmes and Walker (2019) for the rate.
        """
        threads = as_integer(n_threads, "n_threads", 1)
        return stability_of(
            self.model, counts, level, lambda rows: self._kernel.decisions(rows, threads)
        )

    def intervals(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return intervals of beta, nu and gamma, by name, as far as the labels alone tell them.

        A value is in the interval if the best fit with the parameter held there is not
        significantly worse than the best fit. Ends are those of the paper's box where it is not.
        Without labels they are all of the box.

        Notes
        -----
        Twice the rise of the DRPS is scaled by the curvature of the profile over its variance, both
        expected under the fit, and compared with the square of Student's t of n - 3 degrees of
        freedom (at least 1). Coverage and widths are in benches/README.md.

        References
        ----------
        Godambe (1960); Pace, Salvan and Sartori (2011) for the scaling of a profile.
        """
        level, model = as_level(level), self.model
        box = np.column_stack(Bounds().box())
        ends = box
        if self.n_labels > 0:
            from scipy.special import stdtrit

            critical = float(stdtrit(max(self.n_labels - 3, 1), (1 + level) / 2))
            near = [model.beta, model.eta0, model.gamma]
            ends = np.asarray(_core.profile(self._few.items, near, self.n_labels, critical))
        intervals = {}
        for name, (low, high), at in zip(PARAMETERS, ends.tolist(), ends == box, strict=True):
            bounds = np.array(["lower", "upper"])[at].tolist()
            note = f"to the {' and the '.join(bounds)} bound" if bounds else ""
            if name == "nu":
                low, high = math.exp(low), math.exp(high)
            intervals[name] = ParameterInterval(getattr(model, name), low, high, note)
        return intervals

    def __str__(self) -> str:
        lines = [f"{name} {interval}" for name, interval in self.intervals().items()]
        if self.neighbours > 0:
            lines.append(f"{self.neighbours:.0%} of the posterior is the neighbours'")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])
