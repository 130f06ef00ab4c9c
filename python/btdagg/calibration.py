"""Fitting the model on a few labelled items by minimum DRPS."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg.calibration_set import calibration_set
from btdagg.model import DavidsonModel
from btdagg.provenance import Provenance
from btdagg.validation import CountsItself, as_integer, as_number, labelled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg._core import CalibrationSet

_NAMES = ("beta", "nu", "gamma")


class CalibrationWarning(UserWarning):
    """A calibration that did not converge, hit a bound, or that the labels cannot identify."""


@dataclass(frozen=True)
class Bounds:
    """Box constraints of a fit, each a (lower, upper) pair; the paper's unless given.

    Raises
    ------
    InputError
        If a pair is not two finite numbers in ascending order, or nu's are not above 0.
    """

    beta: tuple[float, float] = (1e-3, 5.0)
    nu: tuple[float, float] = (1e-4, 1e3)
    gamma: tuple[float, float] = (-10.0, 10.0)

    def __post_init__(self) -> None:
        for name in _NAMES:
            pair: Any = getattr(self, name)
            try:
                lower, upper = (as_number(value, f"bounds of {name}") for value in pair)
            except (TypeError, ValueError):
                lower, upper = math.nan, math.nan
            if not lower <= upper or (name == "nu" and lower <= 0):
                above = " above 0" if name == "nu" else ""
                raise InputError(
                    f"bounds of {name} are {pair!r}, want two finite numbers{above} in "
                    "ascending order"
                )
            object.__setattr__(self, name, (lower, upper))


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
    at_bounds = tuple(name for name, hit in zip(_NAMES, fit.at_bounds, strict=True) if hit)
    notes = _unidentified(items, model, fit.neutral)
    if not fit.converged:
        notes.append("the fit did not converge")
    if at_bounds:
        values = (f"{name} is at its bound {getattr(model, name):.4g}" for name in at_bounds)
        notes.append(", ".join(values))
    if items.max_votes and model.always_ties(items.max_votes):
        notes.append(
            f"the fitted model calls every item with up to {items.max_votes} votes a tie, however "
            "they fall: the judge adds nothing that a constant would not"
        )
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


def _unidentified(
    items: CalibrationSet, model: DavidsonModel, neutral: tuple[bool, bool, bool]
) -> list[str]:
    """Say which parameters the labelled items cannot identify, and why."""
    notes = []
    seen = [
        label for label, weight in zip((-1, 0, 1), items.label_weights, strict=True) if weight > 0
    ]
    if len(seen) == 1:
        notes.append(f"every label is {seen[0]}: beta, nu and gamma cannot be identified")
    if items.n_items < len(_NAMES):
        plural = "label" if items.n_items == 1 else "labels"
        notes.append(
            f"{items.n_items} {plural}: three parameters cannot be identified by fewer than three"
        )
    if items.max_votes == 0:
        notes.append("no item has votes: beta and gamma cannot be identified and are left neutral")
        return notes
    if not items.has_margins:
        notes.append(
            f"no item leans to a side: beta cannot be identified and is left at {model.beta:g}"
        )
    if not items.has_tie_contrast:
        notes.append(
            "all items have the same share of ties: gamma cannot be told apart from nu "
            + (f"and is left at {model.gamma:g}" if neutral[2] else "and makes up for it")
        )
    return notes


def box_of(bounds: Bounds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds of beta, eta0, gamma, each (3,)."""
    pairs = [bounds.beta, tuple(math.log(nu) for nu in bounds.nu), bounds.gamma]
    lower, upper = np.array(pairs, dtype=np.float64).T
    return lower, upper
