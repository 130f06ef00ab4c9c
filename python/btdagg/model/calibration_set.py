"""What a fit is made of: labelled counts, and the box of its parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import unwrap
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.validation import (
    as_counts,
    as_labels,
    as_number,
    as_weights,
    same_index,
    same_length,
)
from btdagg.votes.join import labelled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

PARAMETERS = ("beta", "nu", "gamma")


class CalibrationWarning(UserWarning):
    """A calibration that did not converge, hit a bound, or that the labels cannot identify."""


class _Warning(Protocol):
    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be warned of, as text."""


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
    """Return a public calibration without its warnings, for callers in btdagg.

    `warnings.catch_warnings` would not do: it changes what every thread of the process warns of.
    """
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
                raise InputError(argument=f"bounds of {name}", came=pair, expected=expected)
            object.__setattr__(self, name, (lower, upper))

    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lower and upper bounds of beta, eta0 (the log of nu) and gamma, each (3,)."""
        pairs = [self.beta, tuple(math.log(nu) for nu in self.nu), self.gamma]
        lower, upper = np.array(pairs, dtype=np.float64).T
        return lower, upper


def calibration_set(
    counts: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    *,
    alpha: float,
    kappa: float,
) -> _core.CalibrationSet:
    """Check labelled counts, as `btdagg.calibrate` takes them, and gather their distinct rows."""
    counts, labels, _ = labelled(counts, labels, weights=weights)
    rows = as_counts(counts)
    if labels is None and weights is None:
        raise InputError(argument="labels", came=None, expected="labels or soft weights")
    gold = None if labels is None else as_labels(labels)
    if gold is not None:
        same_length("labels", len(gold), "counts", len(rows))
    weight = None if weights is None else as_weights(weights, soft=gold is None)
    if weight is not None:
        same_length("weights", len(weight), "counts", len(rows))
    same_index(counts=counts, labels=labels, weights=weights)
    if gold is None:
        assert weight is not None
        return _core.CalibrationSet.soft(rows, weight, alpha, kappa)
    return _core.CalibrationSet(rows, gold, weight, alpha, kappa)
