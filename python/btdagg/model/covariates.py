"""Covariates: what else is known of items, and the weights that labels give it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect
from btdagg._util.readable import readable
from btdagg._util.validation import as_number, columns_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.model.intervals import ParameterInterval
    from btdagg.remarks import Remark
    from btdagg.votes.scale import Scale

    Floats = NDArray[np.float64]

_FARTHEST = 1e300  # that an offset goes, so that margins stay finite


@readable
@dataclass(frozen=True)
class Covariate:
    """A number that is known of items, and its weight in a model.

    Attributes
    ----------
    name : str
    weight : float
        Weight: effect of one `scale` on the margin, for grades on the log odds of neighbouring
        grades.
    scale, centre : float
        For pairs its root mean square, around 0; for grades standard deviation, around its mean.
    standings : mapping of str to float, or None
        Standings of the systems that the model was fitted with.
    """

    name: str
    weight: float
    scale: float
    centre: float = 0.0
    standings: Mapping[str, float] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("weight", "scale", "centre"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        as_number(self.scale, "scale", above=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, without standings if there are none."""
        numbers = {name: getattr(self, name) for name in ("name", "weight", "scale", "centre")}
        return numbers if self.standings is None else {**numbers, "standings": {**self.standings}}

    def weighing(self, weight: float) -> Covariate:
        """Return this covariate with another weight."""
        return replace(self, weight=weight)

    def within(self, other: Covariate) -> Covariate:
        """Return this covariate, fitted to values standardized by `other`, for the plain values."""
        centre = other.centre + other.scale * self.centre
        return replace(self, scale=other.scale * self.scale, centre=centre)

    def of(self, values: Floats) -> Floats:
        """Return standardized values: less the centre, over the scale; 0 for a missing one."""
        scaled = values - self.centre
        scaled /= self.scale
        np.nan_to_num(scaled, copy=False, nan=0.0)
        return scaled


def offsets_of(model: Any, covariates: Any, n_items: int) -> Floats | None:
    """Return the offset of each item, (n,), or None of a model without covariates."""
    model_covariates: tuple[Covariate, ...] = model.covariates
    if not model_covariates and covariates is None:
        return None
    names = [covariate.name for covariate in model_covariates]
    if not model_covariates:
        expected = "none, since the model was fitted without covariates"
        raise InputError(
            argument="covariates", got=[*columns_of(covariates, n_items)], expected=expected
        )
    expected = f"{', '.join(names)} of each item, as in the model"
    expect(covariates is not None, "covariates", None, expected)
    columns = columns_of(covariates, n_items, names)
    offsets = np.zeros(n_items)
    with np.errstate(over="ignore"):
        for covariate in model_covariates:
            scaled = covariate.of(columns[covariate.name])
            scaled *= covariate.weight
            offsets += scaled
    return np.clip(offsets, -_FARTHEST, _FARTHEST, out=offsets)


def columns_for(model: Any, items: Any) -> dict[str, Floats] | None:
    """Return the covariates of items that a model needs, or None if it needs none."""
    if not getattr(model, "covariates", ()):
        return None
    known = getattr(items, "covariates", {})
    return {
        covariate.name: known[covariate.name]
        for covariate in model.covariates
        if covariate.name in known
    } or None


def used_in_words(model: Any, intervals: Mapping[str, ParameterInterval]) -> str:
    """Say in a sentence what a model knows of items, and what each weighs; nothing if nothing."""
    texts = []
    for covariate in model.covariates:
        of = f" of {len(covariate.standings)} systems" if covariate.standings else ""
        ends, between = intervals.get(covariate.name), ""
        if ends is not None:
            between = (
                f", by the labels alone {ends.estimate:.2f} ({ends.low:.2f} to {ends.high:.2f})"
            )
        texts.append(f"{covariate.name}{of}, weight {covariate.weight:.2f}{between}")
    if not texts:
        return ""
    is_standing = any("standing" in covariate.name for covariate in model.covariates)
    warning = (
        " Labels that depend on standing are no independent evidence of which system is better."
        * is_standing
    )
    return f"Covariates: {'; '.join(texts)}.{warning}"


def weights_in_words(covariates: Sequence[Covariate]) -> str:
    """Write the weights of covariates after the numbers of a model; nothing without any."""
    return "".join(f", {covariate.name} {covariate.weight:.4g}" for covariate in covariates)


class KnownOfItems(NamedTuple):
    """Covariates of labelled items: with their scales, as (n, d) columns in these, and remarks."""

    covariates: tuple[Covariate, ...]
    columns: Floats
    remarks: tuple[Remark, ...]

    @property
    def named(self) -> dict[str, Floats]:
        """The columns, in their scales, by name."""
        names = (covariate.name for covariate in self.covariates)
        return dict(zip(names, self.columns.T, strict=True))

    def offsets(self, weights: Floats) -> Floats:
        """Return the offsets of the items, summed as of a model."""
        terms = zip(self.columns.T, weights.tolist(), strict=True)
        return sum((column * weight for column, weight in terms), np.zeros(len(self.columns)))


def without_scales(covariates: Any) -> tuple[Any, dict[str, float]]:
    """Return covariates by name without the scales that some come with, and these."""
    if not isinstance(covariates, Mapping):
        return covariates, {}
    columns, scales = dict(covariates), {}
    for name, column in covariates.items():
        if isinstance(column, tuple) and len(column) == 2 and np.ndim(column[0]):
            columns[name], scales[name] = column
    return columns, scales


def known_of(
    columns: Mapping[str, Floats],
    rows: NDArray[Any],
    scale: Scale,
    *,
    standings: Mapping[str, Mapping[str, float]] | None = None,
    scales: Mapping[str, float] | None = None,
) -> KnownOfItems:
    """Return what is known of some rows, those with labels, on scales of all of them."""
    centred = not scale.mirrored  # swapping A and B turns those of pairs round
    covariates, about = [], []
    for name, values in columns.items():
        known = np.sort(values[~np.isnan(values)])  # so that the order of rows changes no bit
        size = float(np.abs(known).max(initial=0)) or 1.0
        centre = float((known / size).mean()) * size if centred and len(known) else 0.0
        squares = np.sort(((known - centre) / size) ** 2)
        spread = size * math.sqrt(float(squares.sum()) / max(len(known), 1))
        if not len(known) or known[-1] - known[0] <= 1e-9 * size:
            about.append(remarks.constant_covariate(name, has_values=len(known) > 0))
            continue
        if len(known) < len(values):
            n_missing = len(values) - len(known)
            about.append(remarks.missing_covariate(name, n_missing, centred))
        of_systems = (standings or {}).get(name)
        covariates.append(
            Covariate(name, 0.0, (scales or {}).get(name, spread), centre, of_systems)
        )
    scaled = [covariate.of(columns[covariate.name][rows]) for covariate in covariates]
    stacked = np.stack(scaled, axis=1) if scaled else np.empty((len(rows), 0))
    return KnownOfItems(tuple(covariates), stacked, tuple(about))
