"""The fitted model: five numbers that turn counts into probabilities and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from btdagg import _core
from btdagg._util.display import Displayed, picture
from btdagg._util.errors import InputError, expect
from btdagg._util.files import MADE_ANEW, FileFormat, SavedAsJson
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_counts,
    as_integer,
    as_labels,
    as_number,
    as_weights,
    counts_alone,
    same_index,
    same_length,
)
from btdagg.model.covariates import Covariate, offsets_of, weights_in_words
from btdagg.model.tables import fitted_to, parameters_table
from btdagg.result import ResultTable
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.scale import PAIRS, Scale, require_alike, scale_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from btdagg._util.display import Picture
    from btdagg.model.intervals import ParameterInterval

MODEL_FILE = FileFormat("btdagg.davidson", "model")


@readable
class Features(NamedTuple):
    """Margin feature s and tie feature t, each (n,)."""

    s: NDArray[np.float64]
    t: NDArray[np.float64]


class FittedModel(SavedAsJson, Displayed):
    """A model saved with its numbers and with what it was fitted to."""

    SAVED: ClassVar[tuple[str, ...]]
    OPTIONAL: ClassVar[tuple[str, ...]] = ()  # saved unless None
    scale: Scale
    label_scale: Scale
    provenance: Provenance | None
    judges: tuple[str, ...] = ()  # of a panel
    covariates: tuple[Covariate, ...] = ()
    # The points and their distance where they are not those that the core decides by.
    _points: ClassVar[NDArray[Any] | None] = None
    _unit: ClassVar[float] = 1.0

    @property
    def foresees(self) -> bool:
        """Whether the chances of votes to come can be told: not where they depend on covariates."""
        return not self.covariates

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the columns of probabilities, after ``p_``."""
        return tuple(self.label_scale.columns)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the fitted numbers."""
        return (self.parameters(),)

    if TYPE_CHECKING:

        def parameters(self, note: str = "", intervals: Any = None) -> ResultTable:
            """Return the fitted numbers as a table."""

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and the provenance, if there is one, as plain values."""
        origin = {} if self.provenance is None else {"provenance": self.provenance.as_dict()}
        values = {name: getattr(self, name) for name in self.SAVED}
        plain = {k: v.as_dict() if isinstance(v, Scale) else v for k, v in values.items()}
        written = {k: v for k, v in plain.items() if v != PAIRS.as_dict()}  # what is usual goes
        optional = {name: getattr(self, name) for name in self.OPTIONAL}
        written |= {name: value for name, value in optional.items() if value is not None}
        if self.covariates:
            written["covariates"] = [covariate.as_dict() for covariate in self.covariates]
        return {**written, **origin}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the model from the fields of `as_dict`."""
        scales = {"scale": PAIRS, "label_scale": PAIRS} | fields
        if scales.keys() - {"provenance", "covariates", *cls.OPTIONAL} != set(cls.SAVED):
            expected = f"{sorted(cls.SAVED)}; {MADE_ANEW}"
            raise InputError(argument="fields", got=sorted(fields), expected=expected)
        return cls(**scales)

    def __post_init__(self) -> None:
        scale = scale_from(self.scale, "scale")
        label_scale = scale_from(self.label_scale or scale, "label_scale")
        require_alike(scale, label_scale)
        self.__dict__.update(scale=scale, label_scale=label_scale)
        made = (
            Covariate(**covariate) if isinstance(covariate, dict) else covariate
            for covariate in self.covariates
        )
        self.__dict__.update(covariates=tuple(made))
        if label_scale.mirrored and label_scale != PAIRS:
            unit = label_scale.points[1] - label_scale.points[0]
            self.__dict__.update(_points=label_scale.labels, _unit=unit)
        if not isinstance(self.provenance, Provenance | None):
            object.__setattr__(self, "provenance", Provenance.from_dict(self.provenance))

    def require_votes_alone(self, user: str) -> None:
        """Refuse a model that needs covariates for who has votes alone."""
        names = ", ".join(covariate.name for covariate in self.covariates)
        expected = f"a model without covariates for {user}; this one needs {names} of each item"
        expect(not self.covariates, "model", f"one with {names}", expected)

    def _labels(self, decided: Any) -> Any:
        return decided if self._points is None else self._points[decided + 1]

    def _errors(self, errors: Any) -> Any:
        return errors if self._points is None else errors * self._unit


@dataclass(frozen=True)
class DavidsonModel(FittedModel):
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
    has more votes than the model was fitted for; ``model.provenance.differences(counts, votes)``
    checks all items and the source of the votes.

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

    def decide(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[np.int8]:
        """Label of least expected absolute error for each item, (n,): -1, 0 or +1.

        `covariates` are the model's, (n,) columns by name, a data frame, or an (n, d) array in its
        order. NaN is a missing value, which counts as 0.
        """
        of_items = self._of_items(counts, covariates, n_threads)
        labels: NDArray[Any] = self._labels(self._kernel.decide(*of_items))
        return labels

    def _of_items(
        self, counts: ArrayLike, covariates: Any, n_threads: int
    ) -> tuple[NDArray[Any], int, NDArray[np.float64] | None]:
        array = self._checked(counts)
        n_threads = as_integer(n_threads, "n_threads", 1)
        return array, n_threads, offsets_of(self, covariates, len(array))

    def _checked(self, counts: ArrayLike) -> NDArray[Any]:
        origin = self.provenance
        array = as_counts(counts_alone(counts))
        n_votes = None if origin is None else origin.n_votes
        if origin is not None and n_votes is not None and _core.exceeds(array, n_votes):
            warn_of(origin.differences(array))
        return array

    def decide_one(
        self, minus: int, tie: int, plus: int, *, covariates: Mapping[str, float] | None = None
    ) -> float:
        """Label of one item from its three counts, and its covariates if the model has any."""
        if self.covariates or covariates is not None:
            columns = None if covariates is None else {k: [v] for k, v in covariates.items()}
            decided: float = self.decide([[minus, tie, plus]], covariates=columns)[0].item()
            return decided
        label = self._kernel.decide_one(minus, tie, plus)
        return label if self._points is None else self._points[label + 1].item()

    def predict_proba(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[np.float64]:
        """Probabilities of -1, 0 and +1 for each item, (n, 3); covariates are as in `decide`."""
        return self._kernel.predict_proba(*self._of_items(counts, covariates, n_threads))

    def risks(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[np.float64]:
        """Expected absolute error of answering -1, 0 and +1 for each item, (n, 3)."""
        of_items = self._of_items(counts, covariates, n_threads)
        risks: NDArray[np.float64] = self._errors(self._kernel.risks(*of_items))
        return risks

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
        if labels is not None:
            labels = self.label_scale.sides(labels)
        how: dict[str, Any] = {"alpha": self.alpha, "kappa": self.kappa}
        items = labelled_counts(counts, labels, weights, usual_votes=self.usual_votes, **how)
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

    def to_sql(
        self,
        dialect: str,
        *,
        minus: str | Sequence[str] = "minus",
        tie: str | Sequence[str] = "tie",
        plus: str | Sequence[str] = "plus",
        covariates: Mapping[str, str | Sequence[str]] | None = None,
        probabilities: bool = False,
    ) -> str:
        """Return the decision as one SQL expression over three columns of counts.

        Its value is -1, 0 or 1, or NULL if a count is NULL or negative.

        Parameters
        ----------
        dialect : str
            SQL dialect: duckdb, postgresql, sqlite, spark or clickhouse.
        minus, tie, plus : str or sequence of str
            Columns of the counts, of any integer type, quoted; several parts are a qualified name
            such as ``("v", "minus")``.
        covariates : mapping of str to str or sequence of str, optional
            Columns of covariates that are not called as in the model; NULL is a missing value. A
            standing is a column too, such as a difference of two joined by system.
        probabilities : bool
            Return instead the columns of a query, named `label`, `p_minus`, `p_tie` and `p_plus`.

        Notes
        -----
        It compares as `decide` does, with the same allowance for rounding, in 64-bit floats. The
        two can differ only if two risks differ by no more than about the rounding error of a float.

        Examples
        --------
        >>> model = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
        >>> query = f"SELECT item, {model.to_sql('duckdb')} AS label FROM counts"
        """
        from btdagg.model.sql.decisions import to_sql

        return to_sql(
            self,
            dialect,
            minus=minus,
            tie=tie,
            plus=plus,
            covariates=covariates,
            probabilities=probabilities,
        )


def as_votes(n_votes: float, name: str) -> float:
    """Return a number of votes above 0, whole ones as an int."""
    number = as_number(n_votes, name, above=0)
    return int(number) if number.is_integer() else number


def labelled_counts(
    counts: ArrayLike,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
    *,
    alpha: float,
    kappa: float,
    usual_votes: float | None = None,
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
    how = alpha, kappa, usual_votes
    if offsets is not None:
        of_labels = np.asarray(weight, dtype=np.float64)
        if gold is not None:
            of_labels = (gold[:, None] == np.array([-1, 0, 1])).astype(np.float64)
            of_labels *= 1.0 if weight is None else np.asarray(weight)[:, None]
        return _core.CalibrationSet.with_offsets(rows, of_labels, offsets, *how)
    if gold is None:
        assert weight is not None
        return _core.CalibrationSet.soft(rows, weight, *how)
    return _core.CalibrationSet(rows, gold, weight, *how)
