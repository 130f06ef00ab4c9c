"""The fitted model: five numbers that turn counts into probabilities and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._util.display import picture
from btdagg._util.errors import expect
from btdagg._util.files import FileFormat
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_counts,
    as_integer,
    as_number,
    as_weights,
    counts_alone,
    same_index,
    same_length,
)
from btdagg.model.covariates import Covariate, weights_in_words
from btdagg.model.model import Model
from btdagg.model.tables import fitted_to, parameters_table
from btdagg.result import ResultTable
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from btdagg._util.display import Picture
    from btdagg.model.intervals import ParameterInterval

MODEL_FILE = FileFormat("btdagg.davidson", "model")


@readable
class Features(NamedTuple):
    """Margin feature s and tie feature t, each (n,)."""

    s: NDArray[np.float64]
    t: NDArray[np.float64]


@dataclass(frozen=True)
class DavidsonModel(Model):
    """Bradley-Terry-Davidson model of labels given vote counts.

    A frozen value: equal by its numbers, hashable, picklable, saved as versioned JSON.
    All arrays with one column per label have them in label order -1, 0, +1.

    Parameters
    ----------
    beta, eta0, gamma : float
        Margin sensitivity, tie baseline (the log of nu) and tie-count sensitivity.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature, above 0.
    scale, label_scale : Scale, optional
        Scales of the votes and of the labels, mirrored with three points; by default pairs.
    provenance : Provenance, optional
        Origin of the fitted data, to warn about other uses; affects neither decisions nor
        equality.
    covariates : sequence of Covariate
        Covariates of items: each adds its weight times its value to u. `decide`,
        `predict_proba` and `risks` then need a column of each.
    usual_votes : float, optional
        Votes that items usually have. Features of items with more or fewer are then taken as shares
        of those of a unanimous item: multiplied by ``log(usual / alpha + 1) / log(n / alpha + 1)``,
        of t with kappa, so that one model serves any number of votes. None takes them as they are.

    Notes
    -----
    With ``s = 1/2 log((plus + alpha) / (minus + alpha))``,
    ``t = log((tie + kappa) / (n + kappa))``, ``u = beta * s`` and ``eta = eta0 + gamma * t`` the
    probabilities of -1, 0 and +1 are proportional to ``exp(-u)``, ``exp(eta)`` and ``exp(u)``. The
    decision is their median, the label of least expected absolute error: the leading side where
    ``2 sinh|u| > exp(eta)``, else a tie, also of risks that differ only by rounding. Swapping A and
    B mirrors every result exactly.

    Methods over arrays take `counts`, (n, 3) non-negative numbers, or a data frame with columns
    minus (or b), tie (or same) and plus (or a), and `n_threads`, which does not change a bit of the
    result. They release the GIL and raise `InputError` naming the row of the first bad count.
    `decide`, `predict_proba` and `risks` warn (`ProvenanceWarning`) if each of the first 32 items
    has more votes than the model was fitted for, or has warned of before;
    ``model.provenance.differences(counts, votes)`` checks all items and the source of the votes.

    References
    ----------
    The paper's equations for s, t, the Davidson probabilities, the risks and the Bayes action;
    Davidson (1970).

    Examples
    --------
    >>> model = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
    >>> model.decide([[0, 1, 11], [5, 2, 5], [12, 0, 0]]).tolist()
    [1, 0, -1]
    """

    FILE: ClassVar[FileFormat] = MODEL_FILE
    NUMBERS: ClassVar[tuple[str, ...]] = ("beta", "eta0", "gamma", "alpha", "kappa")
    SAVED = (*NUMBERS, "scale", "label_scale")
    COLUMNS = ("minus", "tie", "plus")
    OPTIONAL = ("usual_votes",)

    beta: float
    eta0: float
    gamma: float
    alpha: float = 1.0
    kappa: float = 1.0
    provenance: Provenance | None = field(default=None, compare=False, repr=False)
    scale: Scale = field(default=PAIRS, repr=False)
    label_scale: Scale = field(default=None, repr=False)  # type: ignore[assignment]
    covariates: tuple[Covariate, ...] = field(default=(), repr=False)
    usual_votes: float | None = None

    def __post_init__(self) -> None:
        for name in self.NUMBERS:
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        if self.usual_votes is not None:
            object.__setattr__(self, "usual_votes", as_votes(self.usual_votes, "usual_votes"))
        super().__post_init__()
        _ = self._kernel  # which checks the smoothing constants

    @cached_property
    def _kernel(self) -> _core.Model:
        numbers = self.beta, self.eta0, self.gamma, self.alpha, self.kappa
        return _core.Model(*numbers, self.usual_votes)

    @property
    def numbers(self) -> dict[str, float]:
        """The five numbers by name."""
        return {name: getattr(self, name) for name in self.NUMBERS}

    def sentence(self) -> str:
        """Return the fitted numbers."""
        numbers = f"beta {self.beta:.4g}, nu {self.nu:.4g}, gamma {self.gamma:.4g}"
        return numbers + weights_in_words(self.covariates)

    def parameters(
        self, note: str = "", intervals: Mapping[str, ParameterInterval] | None = None
    ) -> ResultTable:
        """Return the fitted numbers, with intervals if given, as a table."""
        ends = None if intervals is None else {"calibrated": intervals}
        return parameters_table({"calibrated": self}, ends, note=fitted_to(self, note))

    def at(self, n_votes: float) -> DavidsonModel:
        """Return the model that decides items of so many votes as this one does.

        It has no usual number of votes: it takes the features of any items as they are.
        """
        beta, _, gamma = self._kernel.at(as_votes(n_votes, "n_votes"))
        return replace(self, beta=beta, gamma=gamma, usual_votes=None)

    @property
    def nu(self) -> float:
        """Tie baseline of the paper, ``exp(eta0)``; infinite if that overflows."""
        try:
            return math.exp(self.eta0)
        except OverflowError:
            return math.inf

    def plot(self, n_votes: int | None = None) -> Picture:
        """Draw the decision of each way to vote; by default the model's `n_votes`, at most 50."""
        return picture(self, n_votes)

    def _read(self, counts: ArrayLike) -> NDArray[Any]:
        array = as_counts(counts_alone(counts))
        origin = self.provenance
        if origin is not None and origin.n_votes is not None:
            # What was said once costs no more: a scorer of such items is asked again and again.
            said = self.__dict__.get("_most_votes", origin.n_votes)
            if _core.exceeds(array, said):
                warn_of(origin.differences(array))
                most = float(array.sum(axis=1).max())
                if said < most < 2**63:
                    self.__dict__["_most_votes"] = math.ceil(most)
        return array

    def decide_one(  # type: ignore[override]  # by name as well
        self, minus: int, tie: int, plus: int, *, covariates: Mapping[str, float] | None = None
    ) -> float:
        """Label of one item from its three counts, and its covariates if the model has any."""
        if self.covariates or covariates is not None:
            return super().decide_one(minus, tie, plus, covariates=covariates)
        label = self._kernel.decide_one(minus, tie, plus)
        return label if self._points is None else self._points[label + 1].item()

    def predict_proba_one(  # type: ignore[override]  # by name as well
        self, minus: int, tie: int, plus: int, *, covariates: Mapping[str, float] | None = None
    ) -> tuple[float, ...]:
        """Probabilities of -1, 0 and +1 of one item from its three counts."""
        if self.covariates or covariates is not None:
            return super().predict_proba_one(minus, tie, plus, covariates=covariates)
        return self._kernel.predict_proba_one(minus, tie, plus)

    def features(self, counts: ArrayLike, *, n_threads: int = 1) -> Features:
        """Margin feature s and tie feature t of each item, each (n,), in natural-log units."""
        both = self._kernel.features(
            as_counts(counts_alone(counts)), as_integer(n_threads, "n_threads", 1)
        )
        return Features(both[:, 0], both[:, 1])

    def drps(
        self,
        counts: ArrayLike,
        labels: ArrayLike | None,
        weights: ArrayLike | None = None,
        *,
        n_threads: int = 1,
    ) -> float:
        """Weighted mean of the discrete ranked probability score; lower is better, 0 to 2.

        Arguments are as in `btdagg.calibrate`. The paper's equation for DRPS; Gneiting and Raftery
        (2007).
        """
        return self._loss(counts, labels, weights, n_threads)[0]

    def drps_gradient(
        self,
        counts: ArrayLike,
        labels: ArrayLike | None,
        weights: ArrayLike | None = None,
        *,
        n_threads: int = 1,
    ) -> NDArray[np.float64]:
        """Derivatives of `drps` with respect to beta, eta0 and gamma, (3,)."""
        return self._loss(counts, labels, weights, n_threads)[1]

    def _loss(
        self,
        counts: ArrayLike,
        labels: ArrayLike | None,
        weights: ArrayLike | None,
        n_threads: int,
    ) -> tuple[float, NDArray[np.float64]]:
        self.require_votes_alone("drps")
        gold = None if labels is None else self.label_scale.sides(labels)
        rows = as_counts(counts_alone(counts))
        expect(labels is not None or weights is not None, "labels", None, "labels or soft weights")
        if gold is not None:
            same_length("labels", len(gold), "counts", len(rows))
        weight = None if weights is None else as_weights(weights, soft=gold is None)
        if weight is not None:
            same_length("weights", len(weight), "counts", len(rows))
        same_index(counts=counts, labels=labels, weights=weights)
        how = self.alpha, self.kappa, self.usual_votes
        if gold is None:
            assert weight is not None
            items = _core.CalibrationSet.soft(rows, weight, *how)
        else:
            items = _core.CalibrationSet(rows, gold, weight, *how)
        theta = np.array([self.beta, self.eta0, self.gamma])
        return items.loss(theta, as_integer(n_threads, "n_threads", 1))

    def always_ties(self, n_votes: int) -> bool:
        """Whether the model calls every item with at most `n_votes` votes a tie.

        Such a model is no better than the constant 0, and a model cannot be constant in another
        way, since an item without votes is a tie.
        """
        n_votes = as_integer(n_votes, "n_votes", 0, 2**64 - 1)
        is_constant = not any(covariate.weight for covariate in self.covariates)
        return is_constant and self._kernel.always_ties(n_votes)


def as_votes(n_votes: float, name: str) -> float:
    """Return a number of votes above 0, whole ones as an int."""
    number = as_number(n_votes, name, above=0)
    return int(number) if number.is_integer() else number
