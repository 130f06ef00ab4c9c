"""What a few labels and a prior say of the parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg import _core
from btdagg._util.distinct import distinct_rows
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer, as_whole_counts
from btdagg.model.bounds import Bounds, box_of
from btdagg.model.intervals import ParameterInterval, Stability, as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.few_labels import FewLabels
    from btdagg.model.prior import Prior


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
    _found: _core.Posterior = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # What the core holds is not written: it is computed again, in milliseconds.
        values = (self.model, self.n_labels, self.neighbours, self.nothing, self.warnings)
        return _computed_again, (*values, self._few, self._prior)

    def predict_proba(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Return the posterior mean of the probabilities of each label, (n, 3).

        `model` predicts nearly the same, and is what decides.

        Raises
        ------
        InputError
            If a count is not a non-negative integer.
        """
        rows, place = _distinct(counts)
        return self._found.probabilities(rows, 1)[place]

    def stable(self, counts: ArrayLike, *, level: float = 0.95, n_threads: int = 1) -> Stability:
        """Say of each item how likely another draw of labels would decide it as the model does.

        Parameters
        ----------
        counts : (n, 3) array of non-negative integers
            Items to decide; any, not only those of the calibration.
        level : float
            Agreement from which a decision is called stable.
        n_threads : int
            Threads over the items.

        Returns
        -------
        Stability
            Decisions, the chance of each label, of the model's own (`agreement`; one less it is the
            chance that another draw would decide otherwise), and whether that is at least `level`.

        Raises
        ------
        InputError
            If a count is not a non-negative integer, or an argument is out of range.

        Notes
        -----
        The chances are those of the posterior at the rate of the loss at which it is as wide as
        the estimate's sampling distribution, as the model expects it: three over the trace of
        H^-1 J, with H the curvature of the DRPS and J the variance of its gradient.

        References
        ----------
        Lyddon, Holmes and Walker (2019) for the rate.
        """
        level, n_threads = as_level(level), as_integer(n_threads, "n_threads", 1)
        rows, place = _distinct(counts)
        shares = self._found.decisions(rows, n_threads)[place]
        labels = self.model.decide(counts)
        agreement = shares[np.arange(len(labels)), labels.astype(np.intp) + 1]
        return Stability(labels, shares, agreement, agreement >= level)

    def intervals(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return intervals of beta, nu and gamma, by name, as far as the labels alone tell them.

        A value is in the interval if the best fit with the parameter held there is not
        significantly worse than the best fit. Ends are those of the paper's box where it is not.
        Without labels they are all of the box.

        Raises
        ------
        InputError
            If the level is not between 0 and 1.

        Notes
        -----
        Twice the rise of the DRPS is scaled by the curvature of the profile over its variance, both
        expected under the fit, and compared with the square of Student's t of n - 3 degrees of
        freedom (at least 1). Coverage and widths are in benches/README.md.

        References
        ----------
        Godambe (1960); Pace, Salvan and Sartori (2011) for the scaling of a profile.
        """
        level = as_level(level)
        lower, upper = box_of(Bounds())
        ends = np.column_stack([lower, upper])
        if self.n_labels > 0:
            from scipy.special import stdtrit

            critical = float(stdtrit(max(self.n_labels - 3, 1), (1 + level) / 2))
            near = [self.model.beta, self.model.eta0, self.model.gamma]
            ends = np.asarray(_core.profile(self._few.items, near, self.n_labels, critical))
        found = {}
        model = self.model
        values = zip(("beta", "nu", "gamma"), (model.beta, model.nu, model.gamma), strict=True)
        for place, (name, estimate) in enumerate(values):
            low, high = (float(end) for end in ends[place])
            at = [
                word
                for word, end, bound in (
                    ("lower", low, lower[place]),
                    ("upper", high, upper[place]),
                )
                if end == bound
            ]
            note = f"to the {' and the '.join(at)} bound" if at else ""
            if name == "nu":
                low, high = math.exp(low), math.exp(high)
            found[name] = ParameterInterval(estimate, low, high, note)
        return found

    def __str__(self) -> str:
        lines = [f"{name} {interval}" for name, interval in self.intervals().items()]
        if self.neighbours > 0:
            lines.append(f"{self.neighbours:.0%} of the posterior is the neighbours'")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def _computed_again(
    model: DavidsonModel,
    n_labels: float,
    neighbours: float,
    nothing: float,
    warnings: tuple[str, ...],
    few: FewLabels,
    prior: Prior | Literal["weak"],
) -> Posterior:
    found = few.posterior(prior)
    return Posterior(model, n_labels, neighbours, nothing, warnings, few, prior, found)


def _distinct(counts: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the distinct rows of counts and where each item's are: items repeat, rows less so."""
    checked = as_whole_counts(counts).astype(np.uint64)
    first, place = distinct_rows(*checked.T)
    return np.ascontiguousarray(checked[first]), place
