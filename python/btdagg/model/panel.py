"""A panel: one label from the votes of several judges of the same items."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from btdagg import _core
from btdagg._util.files import FileFormat
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_list,
    as_number,
    as_panel_counts,
    counts_alone,
    names_of_judges,
    same_length,
)
from btdagg.model.covariates import Covariate, weights_in_words
from btdagg.model.davidson import DavidsonModel, as_votes
from btdagg.model.model import Model
from btdagg.model.tables import fitted_to, parameters_table
from btdagg.result import ResultTable
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

PANEL_FILE = FileFormat("btdagg.panel", "panel")


@dataclass(frozen=True)
class PanelModel(Model, Readable):
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
        Judges that are ignored, since they had no vote on a labelled item.
    provenance : Provenance, optional
        Origin of the fitted data.
    covariates : sequence of Covariate
        Covariates of items, with their weights, as in `DavidsonModel`.
    usual_votes : tuple of float, optional
        Votes that each judge usually has on an item, as in `DavidsonModel`.

    Notes
    -----
    As `DavidsonModel`, with ``u = sum(beta * s)`` (plus covariates times their weights) and
    ``eta = eta0 + sum(gamma * t)`` over the features s and t of each judge's votes. A judge without
    votes on an item gets the mean features of those present, and so pulls neither to a side nor to
    a tie. Without any votes an item is a tie, both sides being as likely.

    Counts are (n, judges, 3) arrays in label order, items of a panel, or votes with a column
    `judge`, as `btdagg.read_votes` returns them, in the order of `Votes.items` with a panel.

    Examples
    --------
    >>> model = PanelModel(("a", "b"), beta=(1.0, 0.4), eta0=1.0, gamma=(0.5, 0.2))
    >>> model.decide([[[0, 1, 7], [1, 3, 4]], [[4, 0, 4], [0, 0, 0]]]).tolist()
    [1, 0]
    """

    FILE: ClassVar[FileFormat] = PANEL_FILE
    OPTIONAL = ("usual_votes",)
    COLUMNS = ("columns",)
    SAVED = (
        *("judges", "beta", "eta0", "gamma", "alpha", "kappa", "unheard"),
        *("scale", "label_scale"),
    )

    judges: tuple[str, ...] = field()
    beta: tuple[float, ...]
    eta0: float
    gamma: tuple[float, ...]
    alpha: float = 1.0
    kappa: float = 1.0
    unheard: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, compare=False, repr=False)
    scale: Scale = field(default=PAIRS, repr=False)
    label_scale: Scale = field(default=None, repr=False)  # type: ignore[assignment]
    covariates: tuple[Covariate, ...] = field(default=(), repr=False)
    usual_votes: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "judges", names_of_judges(self.judges))
        for name in ("beta", "gamma"):
            values = getattr(self, name)
            same_length(name, len(values), "judges", len(self.judges))
            object.__setattr__(self, name, tuple(as_number(value, name) for value in values))
        for name in ("eta0", "alpha", "kappa"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        if self.usual_votes is not None:
            numbers = as_list(self.usual_votes, "usual_votes", "a number for each judge")
            same_length("usual_votes", len(numbers), "judges", len(self.judges))
            usual = tuple(as_votes(number, "usual_votes") for number in numbers)
            object.__setattr__(self, "usual_votes", usual)
        object.__setattr__(self, "unheard", tuple(self.unheard))
        _ = self._kernel  # which checks the numbers

    def sentence(self) -> str:
        """Return the numbers, of all and of each judge."""
        rows = zip(self.judges, self.beta, self.gamma, strict=True)
        of_judges = (f"{name}: beta {beta:.4g}, gamma {gamma:.4g}" for name, beta, gamma in rows)
        first = f"nu {np.exp(self.eta0):.4g} of {len(self.judges)} judges"
        return f"{first}{weights_in_words(self.covariates)} ({'; '.join(of_judges)})"

    def parameters(self, note: str = "", _: Any = None) -> ResultTable:
        """Return the numbers of each judge as a table."""
        models = {
            judge: DavidsonModel(beta, self.eta0, gamma, self.alpha, self.kappa)
            for judge, beta, gamma in zip(self.judges, self.beta, self.gamma, strict=True)
        }
        if self.unheard:
            listed = ", ".join(self.unheard)
            note += f" Ignored, since they have no vote on the labelled items: {listed}."
        return parameters_table(models, label="judge", note=fitted_to(self, note))

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Whether each judge's votes count, (judges,)."""
        return np.array([name not in self.unheard for name in self.judges])

    def _read(self, counts: ArrayLike) -> NDArray[Any]:
        rows = as_panel_counts(counts_alone(counts), self.judges).reshape(-1, 3)
        if self.provenance is not None:
            warn_of(self.provenance.differences(rows, fewer=False))
        return rows

    @cached_property
    def _kernel(self) -> _core.Panel:
        usual = self.usual_votes or [None] * len(self.judges)
        judges = zip(self.beta, self.gamma, self.heard.tolist(), usual, strict=True)
        return _core.Panel(list(judges), self.eta0, self.alpha, self.kappa)
