"""Data of a fit, labelled counts and the bounds of its parameters, and its result."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from btdagg import _core
from btdagg._util.display import Displayed, picture
from btdagg._util.errors import InputError, expect
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_counts,
    as_labels,
    as_number,
    as_weights,
    counts_alone,
    same_index,
    same_length,
)
from btdagg._util.wording import in_lines
from btdagg.model.intervals import ParameterInterval, as_level
from btdagg.remarks import Remark
from btdagg.result import ResultTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg._util.display import Picture


# From so many labels on priors have nothing to add.
ENOUGH = 1000
# Labels below which a fit says next to nothing.
FEWEST = 10

PARAMETERS = ("beta", "nu", "gamma")


class CalibrationWarning(UserWarning):
    """A calibration that did not converge, hit a bound, or that the labels cannot identify."""


class _Warning(Protocol):
    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings, as text."""


_Arguments = ParamSpec("_Arguments")
_AnyFit = TypeVar("_AnyFit", bound=_Warning)


def warning(fit: Callable[_Arguments, _AnyFit]) -> Callable[_Arguments, _AnyFit]:
    """Make a calibration public: it also gives the `warnings` of its result to its caller."""

    @wraps(fit)
    def public(*args: _Arguments.args, **options: _Arguments.kwargs) -> _AnyFit:
        fitted = fit(*args, **options)
        warn_of(fitted.warnings)
        return fitted

    return public


def quiet(public: Callable[_Arguments, _AnyFit]) -> Callable[_Arguments, _AnyFit]:
    """Return a public calibration without its warnings, for callers in btdagg."""
    # `warnings.catch_warnings` would change what every thread of the process warns of.
    fit: Callable[_Arguments, _AnyFit] = unwrap(public)
    return fit


def warn_of(texts: tuple[str, ...]) -> None:
    """Give each `CalibrationWarning` to the caller of the public function that calls this."""
    for text in texts:
        warnings.warn(text, CalibrationWarning, stacklevel=3)


@dataclass(frozen=True)
class Bounds:
    """Box constraints of a fit, each a (lower, upper) pair; the paper's unless given."""

    beta: tuple[float, float] = (1e-3, 5.0)
    nu: tuple[float, float] = (1e-4, 1e3)
    gamma: tuple[float, float] = (-10.0, 10.0)

    def __post_init__(self) -> None:
        for name in PARAMETERS:
            pair = getattr(self, name)
            lower, upper = (as_number(value, f"bounds of {name}") for value in pair)
            if not lower <= upper or (name == "nu" and lower <= 0):
                above = " above 0" if name == "nu" else ""
                expected = f"two finite numbers{above} in ascending order"
                raise InputError(argument=f"bounds of {name}", got=pair, expected=expected)
            object.__setattr__(self, name, (lower, upper))

    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of beta, eta0 (the log of nu) and gamma, each (3,)."""
        pairs = [self.beta, tuple(math.log(nu) for nu in self.nu), self.gamma]
        lower, upper = np.array(pairs, dtype=np.float64).T
        return lower, upper


@dataclass(frozen=True)
class Calibration(Displayed, Readable):
    """A fitted model and how the fit went.

    Attributes
    ----------
    model : DavidsonModel, GradeModel or PanelModel
        The model of least loss; with a prior, the one closest to the posterior.
    n_labels : int
        Labelled items with a weight above 0.
    max_votes : int
        Most votes of an item, or of a judge of a panel on an item.
    converged : bool
        Whether every fit is an optimum: no gradient component that can be followed within the
        bounds is larger than 1e-8 (of a panel 1e-7, of grades 1e-6).
    warnings : tuple of str
        Warnings, as text.
    drps, log_loss : float
        Weighted mean DRPS on the calibration set, or of grades the log loss in natural-log units;
        the other, and both without labels, are NaN.
    at_bounds : tuple of str
        Parameters (beta, nu, gamma) whose value is one of their bounds.
    n_starts : int
        Starts from a grid over the whole box that were followed downhill; 0 with a prior.
    posterior : Posterior or None
        For pairs with a prior: how sure parameters and decisions are, and whether the prior fits.
    shares : dict of str to float
        Shares of the parts of the model: of grades with a prior ``"right"``, ``"shifted"``,
        ``"linked"``, ``"nothing"`` and ``"neighbours"``; of a panel the fits that are shrunk
        towards ``"equal weights"`` or each judge alone.
    cross_validated : dict of str to float
        For a panel, the mean DRPS on left-out folds, with ``"equal weights"`` and each judge alone.
    """

    model: Any
    n_labels: int
    max_votes: int
    converged: bool
    warnings: tuple[Remark, ...]
    drps: float = math.nan
    log_loss: float = math.nan
    at_bounds: tuple[str, ...] = ()
    n_starts: int = 0
    posterior: Any = None
    shares: dict[str, float] = field(default_factory=dict)
    cross_validated: dict[str, float] = field(default_factory=dict)
    _design: Any = field(default=None, repr=False, compare=False)

    @property
    def losses(self) -> dict[str, float]:
        """The loss on the calibration set, by its name."""
        both = {"DRPS": self.drps, "log loss": self.log_loss}
        return {name: value for name, value in both.items() if not math.isnan(value)}

    def weights(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return the weights of the covariates by the labels alone, with their intervals.

        The model's own weights are drawn towards 0 by a prior; the note names them. Intervals are
        by Student's t and the sandwich of the groups of items (Liang and Zeger, 1986).
        """
        covariates = self.model.covariates
        ends = [] if self._design is None else self._design.intervals(as_level(level))
        return {
            covariate.name: interval._replace(note=f"in the model {covariate.weight:.4g}")
            for covariate, interval in zip(covariates, ends, strict=True)
        }

    def plot(self, n_votes: int | None = None) -> Picture:
        """Draw how the model decides; of pairs every way to vote, and majority vote beside.

        `n_votes` is by default the most votes of an item, up to 50.
        """
        return picture(self, n_votes)

    def __str__(self) -> str:
        return in_lines([self.sentence(), *(f"warning: {text}" for text in self.warnings)])

    def sentence(self) -> str:
        """Return the fitted numbers, and the loss on how many labels."""
        losses = "".join(f"{name} {value:.4f} on " for name, value in self.losses.items())
        return f"{self.model.sentence()}; {losses}{self.n_labels} labelled items"

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the parameters of the model; for pairs with a prior with intervals."""
        losses = (f" {name[0].upper()}{name[1:]} {of:.4f}." for name, of in self.losses.items())
        note = "".join([f"Calibrated on {self.n_labels:,} labels.", *losses])
        intervals = None if self.posterior is None else self.posterior.intervals()
        return (self.model.parameters(note, intervals),)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The warnings."""
        return self.warnings


def label_weights(labels: NDArray[np.int8] | None, weights: ArrayLike | None) -> Any:
    """Return the weight of each label of each item, (n, 3)."""
    if labels is None:
        return np.asarray(weights, dtype=np.float64)
    is_given = (labels[:, None] == np.array([-1, 0, 1])).astype(np.float64)
    return is_given if weights is None else is_given * np.asarray(weights)[:, None]


def calibration_set(
    counts: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    *,
    alpha: float,
    kappa: float,
    offsets: NDArray[np.float64] | None = None,
) -> _core.CalibrationSet:
    """Check labelled counts, as `btdagg.calibrate` takes them, and gather their distinct rows."""
    rows = as_counts(counts_alone(counts))
    expect(labels is not None or weights is not None, "labels", None, "labels or soft weights")
    gold = None if labels is None else as_labels(labels)
    if gold is not None:
        same_length("labels", len(gold), "counts", len(rows))
    weight = None if weights is None else as_weights(weights, soft=gold is None)
    if weight is not None:
        same_length("weights", len(weight), "counts", len(rows))
    same_index(counts=counts, labels=labels, weights=weights)
    if offsets is not None:
        of_labels = label_weights(gold, weight)
        return _core.CalibrationSet.with_offsets(rows, of_labels, offsets, alpha, kappa)
    if gold is None:
        assert weight is not None
        return _core.CalibrationSet.soft(rows, weight, alpha, kappa)
    return _core.CalibrationSet(rows, gold, weight, alpha, kappa)
