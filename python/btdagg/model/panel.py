"""The model of a panel: the votes of several judges of the same items, as one label."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.display import Displayed
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import readable
from btdagg._util.validation import (
    CountsItself,
    as_number,
    as_whole_counts,
    names_of_judges,
    unmasked,
)
from btdagg.model.davidson import DavidsonModel
from btdagg.votes.provenance import Provenance, warn_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.sql.queries import VotesTable

PANEL_FILE = FileFormat("btdagg.model.panel", "panel")

# Sums of a few products are off by a few roundings; risks that differ by no more are equal.
_ROUNDING = 8 * math.ulp(1.0)


@readable
@dataclass(frozen=True)
class PanelModel(SavedAsJson, Displayed):
    """Davidson model of the votes of several judges.

    A frozen value, as `DavidsonModel` is. `btdagg.calibrate_panel` fits it.

    Parameters
    ----------
    judges : tuple of str
        Their names, in the order of the columns of counts.
    beta, gamma : tuple of float
        Margin sensitivity, at least 0, and tie-count sensitivity of each judge.
    eta0 : float
        Tie baseline of all.
    alpha, kappa : float
        Smoothing constants of the features, above 0.
    unheard : tuple of str
        Judges of whom nothing is known, since no labelled item had their votes. Those are ignored.
    provenance : Provenance, optional
        What the model was fitted to.

    Raises
    ------
    InputError
        If lengths disagree, a name comes twice, or a number is out of range.

    Notes
    -----
    With the features s and t of each judge's votes, ``u = sum(beta * s)`` and
    ``eta = eta0 + sum(gamma * t)`` take the place of those of `DavidsonModel`. A judge without
    votes on an item is absent, and gets the mean features of the judges who are present. So it
    pulls neither to a side nor to a tie. Without any votes an item is a tie, or as likely to be of
    one side as of the other.

    Counts are (n, judges, 3) arrays in label order, or votes with a column `judge`, as
    `btdagg.read_votes` returns them: their items are then in the order of
    `btdagg.votes.panel_counts`.

    Examples
    --------
    >>> model = PanelModel(("a", "b"), beta=(1.0, 0.4), eta0=1.0, gamma=(0.5, 0.2))
    >>> model.decide([[[0, 1, 7], [1, 3, 4]], [[4, 0, 4], [0, 0, 0]]]).tolist()
    [1, 0]
    """

    judges: tuple[str, ...]
    beta: tuple[float, ...]
    eta0: float
    gamma: tuple[float, ...]
    alpha: float = 1.0
    kappa: float = 1.0
    unheard: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "judges", names_of_judges(self.judges))
        for name in ("beta", "gamma"):
            given = getattr(self, name)
            if not isinstance(given, Sequence | np.ndarray) or len(given) != len(self.judges):
                raise InputError(f"{name} is {given!r}, expected {len(self.judges)} numbers")
            object.__setattr__(self, name, tuple(as_number(value, name) for value in given))
        if min(self.beta) < 0:
            raise InputError(f"beta is {min(self.beta):g}, expected numbers of at least 0")
        for name in ("eta0", "alpha", "kappa"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        object.__setattr__(self, "unheard", tuple(self.unheard))
        for name in self.unheard:
            if name not in self.judges:
                raise InputError(f"unheard has {name!r}, expected one of {', '.join(self.judges)}")
        if not isinstance(self.provenance, Provenance | None):
            object.__setattr__(self, "provenance", Provenance.from_dict(self.provenance))
        DavidsonModel(0.0, 0.0, 0.0, self.alpha, self.kappa)  # which checks the smoothing constants

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Whether each judge's votes count, (judges,)."""
        return np.array([name not in self.unheard for name in self.judges])

    def decide(self, counts: ArrayLike) -> NDArray[np.int8]:
        """Label of least expected absolute error for each item, (n,): -1, 0 or +1.

        Raises
        ------
        InputError
            If the shape is not (n, judges, 3), a count is not a non-negative integer, or votes are
            of a judge who is not of the panel.
        """
        return self._kernel.decide(self._checked(counts), 1)

    def predict_proba(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of -1, 0 and +1 for each item, (n, 3); raises what `decide` does."""
        return self._kernel.predict_proba(self._checked(counts), 1)

    def risks(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Expected absolute error of answering -1, 0 and +1, (n, 3); raises what `decide` does."""
        minus, tie, plus = self.predict_proba(counts).T
        return np.column_stack([tie + 2 * plus, minus + plus, 2 * minus + tie])

    def _checked(self, counts: ArrayLike) -> NDArray[np.uint64]:
        """Return the counts of each item's judges as consecutive rows, (n * judges, 3)."""
        if isinstance(counts, CountsItself):
            from btdagg.votes.panel import panel_counts

            counts = panel_counts(counts, judges=self.judges).counts
        rows = as_panel_counts(counts, self.judges).reshape(-1, 3)
        if self.provenance is not None:
            warn_of(self.provenance.differences(rows, fewer=False))
        return rows

    @cached_property
    def _kernel(self) -> _core.Panel:
        judges = zip(self.beta, self.gamma, self.heard.tolist(), strict=True)
        return _core.Panel(list(judges), self.eta0, self.alpha, self.kappa)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def to_sql(
        self, dialect: str, *, columns: Mapping[str, tuple[str, str, str]] | None = None
    ) -> str:
        """Return the decision as one SQL expression over three columns of counts per judge.

        Its value is -1, 0 or 1. A judge whose three counts are NULL is absent. If one of the three
        is NULL, or a count is negative, the value is NULL.

        Parameters
        ----------
        dialect : str
            SQL dialect, as of `DavidsonModel.to_sql`.
        columns : mapping of str to (str, str, str), optional
            Columns minus, tie and plus of each judge; ``"minus <judge>"`` and so on unless given.

        Raises
        ------
        InputError
            If the dialect is none of these, or a judge has no three different columns.
        """
        from btdagg.model.sql.decisions import panel_to_sql

        return panel_to_sql(self, dialect, columns, _ROUNDING)

    def to_sql_query(self, dialect: str, votes: VotesTable, *, probabilities: bool = False) -> str:
        """Return one SQL query that decides every item of a table of votes.

        It is as `DavidsonModel.to_sql_query` has it, with the votes of all judges in `minus`, `tie`
        and `plus`. If a vote is of a judge who is not of the panel, its item gets NULL for its
        counts and label.

        Parameters
        ----------
        dialect : str
            As of `to_sql`.
        votes : VotesTable
            The table and its columns, among them `judge`.
        probabilities : bool
            Add the columns `p_minus`, `p_tie` and `p_plus`.

        Raises
        ------
        InputError
            If the dialect is none, a name is none, or there is no column `judge`.
        """
        from btdagg.model.sql.queries import panel_query

        return panel_query(self, dialect, votes, _ROUNDING, probabilities=probabilities)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and the provenance, if there is one, as plain values."""
        known = {} if self.provenance is None else {"provenance": self.provenance.as_dict()}
        return {
            "judges": list(self.judges),
            "beta": list(self.beta),
            "eta0": self.eta0,
            "gamma": list(self.gamma),
            "alpha": self.alpha,
            "kappa": self.kappa,
            "unheard": list(self.unheard),
            **known,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the model from the fields of `as_dict`.

        Raises
        ------
        InputError
            If a field is missing, unknown or of another type.
        """
        wanted = {"judges", "beta", "eta0", "gamma", "alpha", "kappa", "unheard"}
        if fields.keys() - {"provenance"} != wanted:
            raise InputError(f"fields {sorted(fields)}, expected {sorted(wanted)}")
        return cls(**fields)

    def to_json(self) -> str:
        """Return the model as versioned JSON; floats keep every bit."""
        return PANEL_FILE.dumps(self.as_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "panel") -> Self:
        """Return the model that `to_json` wrote.

        Raises
        ------
        InputError
            If the text is not such JSON or of a later version; the message begins with `source`.
        """
        return PANEL_FILE.loads(text, source, cls.from_dict)


def as_panel_counts(counts: ArrayLike, judges: Sequence[str] | None = None) -> NDArray[np.uint64]:
    """Return counts as an (n, judges, 3) array.

    Raises
    ------
    InputError
        If the shape is another one, or a value is not a non-negative integer; the message names the
        judge and the row.
    """
    values = unmasked(counts, "counts")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("counts is ragged, expected an array of shape (n, judges, 3)") from None
    wanted = "judges" if judges is None else str(len(judges))
    if array.ndim != 3 or array.shape[2] != 3 or array.shape[1] == 0:
        raise InputError(f"counts has shape {array.shape}, expected (n, {wanted}, 3)")
    if judges is not None and array.shape[1] != len(judges):
        raise InputError(f"counts has shape {array.shape}, expected (n, {wanted}, 3)")
    found = []
    for place in range(array.shape[1]):
        name = str(place + 1) if judges is None else judges[place]
        try:
            found.append(as_whole_counts(array[:, place]).astype(np.uint64))
        except InputError as error:
            raise InputError(f"judge {name!r}: {error}") from None
    return np.stack(found, axis=1)


def panel_features(
    counts: NDArray[np.uint64], alpha: float, kappa: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return margin and tie features of each judge, (n, judges); of an absent one, the mean's."""
    n, n_judges, _ = counts.shape
    features = DavidsonModel(0.0, 0.0, 0.0, alpha, kappa).features(counts.reshape(-1, 3))
    absent = counts.sum(axis=2) == 0
    n_present = np.maximum(n_judges - absent.sum(axis=1, keepdims=True), 1)

    def with_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
        of_judges = values.reshape(n, n_judges)  # 0 where a judge is absent
        found: NDArray[np.float64] = of_judges + absent * (
            of_judges.sum(axis=1, keepdims=True) / n_present
        )
        return found

    return with_means(features.s), with_means(features.t)


def probabilities(u: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of -1, 0 and +1, (n, 3), that are as ``exp(-u)``, ``exp(eta)``, ``exp(u)``."""
    logits = np.column_stack([-u, eta, u])
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    # Both sides first, so that mirrored items have mirrored sums.
    found: NDArray[np.float64] = odds / ((odds[:, :1] + odds[:, 2:]) + odds[:, 1:2])
    return found
