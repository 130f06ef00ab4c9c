"""The result of a fit, with its warnings and the bounds of its parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from btdagg._util.display import Displayed, picture
from btdagg._util.errors import InputError
from btdagg._util.readable import Readable
from btdagg._util.validation import as_number
from btdagg._util.wording import in_lines
from btdagg.model.intervals import ParameterInterval
from btdagg.remarks import Remark
from btdagg.result import ResultTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg._util.display import Picture


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


def box_around(
    parameters: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the paper's box, each (3,), without those that some of (m, 3) are beyond.

    With a prior, parameters are not bounded by the box.
    """
    lower, upper = Bounds().box()
    below, above = (parameters < lower).any(axis=0), (parameters > upper).any(axis=0)
    return np.where(below, -np.inf, lower), np.where(above, np.inf, upper)


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
        Whether every fit is an optimum: no step that its bounds allow would lower the loss.
    warnings : tuple of str
        Warnings, as text.
    drps, log_loss : float
        Weighted mean DRPS on the calibration set, in labels of neighbouring points one apart, and
        log loss, in natural-log units; NaN without labels.
    at_bounds : tuple of str
        Parameters (beta, nu, gamma) whose value is one of their bounds.
    n_starts : int
        Starts from a grid over the whole box that were followed downhill; 0 with a prior.
    shares : dict of str to float
        With a prior, how much is held by ``"neighbours"`` (without labels their share of the
        prior), by ``"votes"``, the weak prior, and by ``"nothing"``: the votes say nothing.
    n_effective : float
        Labels; of weighted items their effective number, ``weights.sum()**2 / (weights**2).sum()``.
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
    shares: dict[str, float] = field(default_factory=dict)
    n_effective: float = 0.0
    _alone: Any = field(default=None, repr=False, compare=False)

    def intervals(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return intervals of beta, nu and gamma, as far as the labels alone tell them.

        Of a panel, and of grades, there are none. They are by Student's t and the sandwich of the
        groups of items (Liang and Zeger, 1986), within the paper's box; the prior has no part in
        them, but that they reach to the number of the model.
        """
        return {} if self._alone is None else self._alone.of_pairs(self.model, level)

    def weights(self, *, level: float = 0.95) -> dict[str, ParameterInterval]:
        """Return the weights of the covariates by the labels alone, with their intervals.

        The model's own weights are drawn towards 0 by a prior; the note names them. Intervals are
        as those of `intervals`.
        """
        return {} if self._alone is None else self._alone.of_covariates(self.model, level)

    def plot(self, n_votes: int | None = None) -> Picture:
        """Draw how the model decides; of pairs every way to vote, and majority vote beside.

        `n_votes` is by default the most votes of an item, up to 50.
        """
        return picture(self, n_votes)

    def __str__(self) -> str:
        return in_lines([self.sentence(), *(f"warning: {text}" for text in self.warnings)])

    def sentence(self) -> str:
        """Return the fitted numbers, and the loss on how many labels."""
        loss = "" if math.isnan(self.drps) else f"DRPS {self.drps:.4f} on "
        return f"{self.model.sentence()}; {loss}{self.n_labels} labelled items"

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the parameters of the model; for pairs with intervals."""
        loss = "" if math.isnan(self.drps) else f" DRPS {self.drps:.4f}."
        note = f"Calibrated on {self.n_labels:,} labels.{loss}"
        return (self.model.parameters(note, self.intervals() or None),)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The warnings."""
        return self.warnings
