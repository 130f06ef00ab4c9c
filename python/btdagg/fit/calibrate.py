"""Fitting the model on a few labelled items by minimum DRPS."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.fit.bounds import PARAMETERS, Bounds, box_of
from btdagg.fit.calibration_set import calibration_set
from btdagg.fit.warnings import CalibrationWarning, warnings_of
from btdagg.model import DavidsonModel
from btdagg.provenance import Provenance
from btdagg.validation import CountsItself, as_integer, as_number, labelled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Calibration:
    """A fitted model and how the fit went.

    Attributes
    ----------
    model : DavidsonModel
        The model of least DRPS.
    drps : float
        Its weighted mean DRPS on the calibration set.
    converged : bool
        Whether it is an optimum: no component of the gradient that could be followed without
        leaving the bounds is larger than 1e-8.
    at_bounds : tuple of str
        Parameters (beta, nu, gamma) whose value is one of their bounds.
    n_labels : int
        Labelled items with a weight above 0.
    max_votes : int
        Most votes of an item.
    n_starts : int
        Starts from a grid over the whole box that were followed downhill.
    warnings : tuple of str
        What was warned of, as text.
    """

    model: DavidsonModel
    drps: float
    converged: bool
    at_bounds: tuple[str, ...]
    n_labels: int
    max_votes: int
    n_starts: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        model = self.model
        lines = [
            f"beta {model.beta:.4g}, nu {model.nu:.4g}, gamma {model.gamma:.4g} "
            f"from {self.n_labels} labels; DRPS {self.drps:.4f}",
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n".join(lines)


def calibrate(
    counts: ArrayLike,
    labels: ArrayLike | None,
    *,
    weights: ArrayLike | None = None,
    alpha: float = 1.0,
    kappa: float = 1.0,
    bounds: Bounds | None = None,
    provenance: Provenance | None = None,
    n_threads: int = 1,
) -> Calibration:
    """Fit the Davidson model to labelled vote counts by minimum DRPS.

    A grid over the whole box finds the basins of the loss, and Newton steps go to the bottom of the
    best few: small calibration sets do have local minima. What a fit costs does not grow with the
    data after one pass over it.

    What the labels cannot identify is left neutral: beta at 1 where no item leans to a side, gamma
    at 0 where all items have the same share of ties, unless its freedom gives a lower DRPS, as
    where it makes up for the bounds of nu.

    Parameters
    ----------
    counts : (n, 3) array of non-negative integers
        Votes per item in label order: minus, tie, plus; in a data frame in columns of these names
        and no other, in any order. Or votes, as `btdagg.read_votes` returns them.
    labels : (n,) array of -1, 0, 1, or None for soft labels
        Gold labels, in the order of the counts: an array, list or series. Pandas objects whose
        indexes differ are an error. With votes, labels as `btdagg.read_labels` returns them: the
        fit is to the items that have both.
    weights : (n,) or, for soft labels, (n, 3) array of non-negative numbers, optional
        Weight of each item, or of each label of each item (named in a data frame as the counts
        are). 1 unless given.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature.
    bounds : Bounds, optional
        Box constraints; the paper's unless given.
    provenance : Provenance, optional
        Where the votes are from, for the model to keep; of votes, as they were read, it is known.
        The number of labels and, unless given, the votes per item (the most of
        an item) are added.
    n_threads : int
        Threads over the distinct rows, of use where there are many thousands; they do not change a
        bit of the result.

    Returns
    -------
    Calibration
        The model, its DRPS, and how the fit went.

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range (the message names its row), or no weight is
        above 0.

    Warns
    -----
    CalibrationWarning
        If the fit did not converge, a parameter is at a bound, the labels cannot identify a
        parameter, or the fitted model calls everything a tie whatever the votes.

    Notes
    -----
    The paper minimises the DRPS by L-BFGS-B. Which optimiser finds the minimum is no part of the
    estimator, and L-BFGS-B finds nothing lower from where this one ends.

    References
    ----------
    The paper's equation for empirical DRPS and its appendix on fitted parameters; Davidson
    (1970); Gneiting and Raftery (2007).

    Examples
    --------
    >>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
    >>> calibration = calibrate(counts, [1, 0, -1, 0, 1, 0])
    >>> calibration.converged
    True
    """
    votes, (counts, labels, _) = counts, labelled(counts, labels, weights=weights)
    bounds = Bounds() if bounds is None else bounds
    if not isinstance(bounds, Bounds):
        raise InputError(f"bounds is {bounds!r}, want btdagg.Bounds(...)")
    items = calibration_set(
        counts,
        labels,
        weights,
        alpha=as_number(alpha, "alpha"),
        kappa=as_number(kappa, "kappa"),
    )
    lower, upper = box_of(bounds)
    fit = items.fit(lower.tolist(), upper.tolist(), as_integer(n_threads, "n_threads", 1))
    if not isinstance(provenance, Provenance | None):
        raise InputError(f"provenance is {provenance!r}, want btdagg.Provenance(...)")
    known = provenance
    if known is None:
        known = Provenance.of(votes) if isinstance(votes, CountsItself) else Provenance()
    n_votes = (items.max_votes or None) if known.n_votes is None else known.n_votes
    known = replace(known, n_votes=n_votes, n_labels=items.n_items)
    model = DavidsonModel(*fit.parameters, alpha, kappa, known)
    at_bounds = tuple(name for name, hit in zip(PARAMETERS, fit.at_bounds, strict=True) if hit)
    notes = warnings_of(fit, items, model, at_bounds)
    for text in notes:
        warnings.warn(text, CalibrationWarning, stacklevel=2)
    return Calibration(
        model=model,
        drps=fit.drps,
        converged=fit.converged,
        at_bounds=at_bounds,
        n_labels=items.n_items,
        max_votes=items.max_votes,
        n_starts=fit.n_starts,
        warnings=tuple(notes),
    )
