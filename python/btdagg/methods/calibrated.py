"""Calibrated models as aggregators: for votes on any scale, and for a panel."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg._util.errors import forbid
from btdagg._util.readable import Readable
from btdagg.methods.base import Needs, OnScale, fitted
from btdagg.model.calibration import Bounds, quiet, warn_of
from btdagg.model.covariates import columns_for
from btdagg.model.fit import WEAK, calibrate, calibrate_panel, prior_beside, refitted
from btdagg.votes.by_id import as_items

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Calibrated(OnScale, Readable):
    """The model that `btdagg.calibrate` fits; the label of least expected absolute error.

    With a prior (the weak one unless named) it is called ``calibrated``; of pairs without, or with
    `bounds`, it is the paper's fit, ``Davidson``. With ``"neighbours"`` evaluations choose the
    prior: other tasks, judges or criteria, without what they evaluate on. With `judges` it is a
    ``panel`` (`btdagg.calibrate_panel`) and needs counts by judge.
    """

    name: str = ""
    prior: Any = WEAK
    alpha: float = 1.0
    kappa: float = 1.0
    bounds: Bounds | None = None
    judges: tuple[str, ...] = ()
    calibration: Any = field(default=None, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "prior", prior_beside(self.prior, self.bounds))
        name = "calibrated, neighbours" if self.needs.neighbours else "calibrated"
        if self.prior is None:
            name = "Davidson" if self.scale.mirrored else "calibrated, no prior"
        if self.judges:
            name = "panel"
            self.scale.require_sides(f"{name}, a Davidson model")
        object.__setattr__(self, "name", self.name or name)

    @property
    def needs(self) -> Needs:
        """Neighbours, unless it has a prior; time and judges of a panel."""
        return Needs(
            neighbours=isinstance(self.prior, str) and self.prior == "neighbours",
            judges=bool(self.judges),
            time=bool(self.judges),
        )

    def among(self, prior: Any) -> Self:
        """Return the same aggregator with a prior of neighbours."""
        return replace(self, prior=prior)

    def fit(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Set `calibration` by counts and (n,) labels, warn as it does, and return itself."""
        self.fit_quietly(counts, labels)
        warn_of(self.calibration.warnings)
        return self

    def fit_quietly(self, counts: ArrayLike, labels: ArrayLike) -> Self:
        """Set `calibration` as `fit` does, which keeps what it would warn of."""
        forbid(
            self.needs.neighbours, "neighbours needs votes of other tasks or judges; pass a prior"
        )
        fit: Any = calibrate
        names = ["scale", "label_scale", "alpha", "kappa"]
        if self.judges:
            fit = calibrate_panel
        else:
            names += ["bounds", "prior"]
        how = {name: getattr(self, name) for name in names}
        given: Any = counts
        if self.judges:
            given = as_items(counts).with_judges(self.judges, by_name=True)
        calibration = quiet(fit)(given, labels, **how)
        object.__setattr__(self, "calibration", calibration)
        return self

    def decide(self, counts: ArrayLike) -> NDArray[Any]:
        """Label of each item, (n,); equal risks give a tie."""
        model = fitted(self.calibration, self.name).model
        known = columns_for(model, counts)
        more = {} if known is None else {"covariates": known}
        array: Any = counts
        if not isinstance(counts, np.ndarray):
            items = as_items(counts, scale=self.scale)
            array = items.require_judges(self.judges) if self.judges else items.pooled
        labels: NDArray[Any] = model.decide(array, **more)
        return labels

    def for_any_votes(self) -> Self:
        """Return a copy whose model does not say which votes it was fitted for."""
        other = copy(self)
        if self.calibration is not None:
            model = replace(self.calibration.model, provenance=None)
            object.__setattr__(other, "calibration", replace(self.calibration, model=model))
        return other

    def refitted(
        self, counts: ArrayLike, labels: NDArray[Any], weights: NDArray[np.float64]
    ) -> Callable[[ArrayLike], NDArray[Any]] | None:
        """Fit the model with each row of weights; see `Refittable`."""
        if self.needs.time or getattr(counts, "covariates", None):
            return None
        items, scales = self._checked(counts), (self.scale, self.label_scale)
        labelled = np.eye(len(self.label_scale.points))[self.label_scale.places(labels)]
        outcomes = weights[:, :, None] * labelled
        how: dict[str, Any] = {"alpha": self.alpha, "kappa": self.kappa, "bounds": self.bounds}
        models = refitted(items, outcomes, scales, self.prior, **how)
        return lambda rows: np.stack([model.decide(self._checked(rows)) for model in models])
