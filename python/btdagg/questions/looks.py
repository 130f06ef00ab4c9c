"""A release gate that may be looked at after every label: what it counted, in a file."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, get_args

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, expect, forbid, one_of
from btdagg._util.files import FileFormat, SavedAsJson, read_whole, replace_file
from btdagg._util.numbers import as_integer
from btdagg._util.validation import as_groups
from btdagg._util.wording import counted, stem
from btdagg.inference.anytime import Bet, Bets
from btdagg.inference.cross_fit import calibrated, fixed, predicted_by
from btdagg.inference.quantities import NET, main_of, quantities_of
from btdagg.inference.sample import Population
from btdagg.model.covariates import columns_for, known_of
from btdagg.votes.labels import UNKNOWN_UNIT
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.remarks import Remark
    from btdagg.votes.items import Items

    Floats = NDArray[np.float64]

_FIRST_FIT, _NEXT_FIT = 5, 1.25  # labels of the first fit, and how they grow until another
_WORTH = 5.0  # units that a weight of one half is worth
_ROUNDING = 1e-9
_OPTIONS = ("population", "model", "prior", "seed", "level")
_SETTINGS = ("candidate", "baseline", "quantity", "margin", "level", "population", "seed")


@dataclass(frozen=True)
class Counted:
    """A unit that was counted: its items, their values, and its bet (`btdagg.inference.anytime`).

    `predicted` is by how much the judge's predictions of it were above those of a unit drawn at
    random.
    """

    unit: str
    items: tuple[str, ...]
    values: tuple[float, ...]
    predicted: float
    bet: Bet


class Units(NamedTuple):
    """What can be drawn: items, or groups of them, in an order that labels have no part in."""

    names: list[str]
    rows: list[NDArray[np.int64]]  # numbers of the items of each, in such an order too
    n_without: int  # items that are in none


@dataclass(frozen=True, eq=False)
class GateLooks(SavedAsJson):
    """A gate between two looks: its settings, and the units it has counted, in order."""

    FILE: ClassVar[FileFormat] = FileFormat(
        "sequential gate",
        "state of a sequential gate",
        remedy="take a copy of it: what was counted cannot be made again",
    )
    INDENT: ClassVar[int | None] = None

    settings: dict[str, Any]
    largest: int
    pool: str
    n_looks: int
    counted: tuple[Counted, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return all that is saved."""
        fields = {name: getattr(self, name) for name in ("settings", "largest", "pool", "n_looks")}
        return fields | {"counted": [asdict(unit) for unit in self.counted]}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return what `as_dict` was of."""
        units = [
            Counted(
                unit["unit"],
                tuple(map(str, unit["items"])),
                tuple(map(float, unit["values"])),
                float(unit["predicted"]),
                Bet(*map(float, unit["bet"])),
            )
            for unit in fields.pop("counted")
        ]
        settings = {name: fields["settings"][name] for name in _SETTINGS}
        return cls(**fields | {"settings": settings, "counted": tuple(units)})


class Look(NamedTuple):
    """What a look found: fields of `btdagg.questions.gate.NonInferiority` that are not settings."""

    quantity: str
    estimate: float
    lower: float
    upper: float
    n_items: int
    n_labels: int
    labels_wanted: int | None
    items_wanted: int | None
    remarks: tuple[Remark, ...]
    n_looks: int


def look(
    items: Items,
    path: str | os.PathLike[str],
    pair: tuple[Any, Any],
    margin: float,
    level: float,
    quantity: str | None,
    options: Mapping[str, Any],
) -> Look:
    """Count the labels that are new, write the file, and return the bounds that hold at all looks.

    Parameters
    ----------
    items : Items
        Those of the two systems.
    path : path
        The file; it is made if there is none. It keeps what was counted, by item, and is refused
        for another gate, or with labels that changed.
    pair : tuple
        Candidate and baseline.
    margin, level, quantity
        As in `btdagg.estimates.not_worse`.
    options : mapping
        `population`, `model`, `prior` and `seed`.

    Notes
    -----
    Units (items, or groups of them) are counted one after the other, new ones in an order that
    depends on their names alone. Bounds are those of `btdagg.inference.anytime.Bets`: of new items
    from labels alone; of these items, drawn without replacement, with the votes: the model is
    fitted to the labels that were counted before, and predictions of units, less their mean over
    all that are left, have mean 0 whatever they are worth.

    References
    ----------
    Waudby-Smith and Ramdas, Confidence sequences for sampling without replacement (2020), and
    Estimating means of bounded random variables by betting (2023); Csillag, Struchiner and Tegoni,
    Prediction-powered e-values (2025).
    """
    for name in options:
        text = f"{name} is no option, expected one of {listing(_OPTIONS)} for a sequential gate"
        forbid(name not in _OPTIONS, text, name)
    is_path = isinstance(path, str | os.PathLike) and bool(os.fspath(path))
    expect(is_path, "sequential", path, "the path of a file")
    population = options.get("population", "new")
    expected = " or ".join(map(repr, get_args(Population)))
    expect(population in get_args(Population), "population", population, expected)
    seed = as_integer(options.get("seed", 0), "seed", 0)
    _require_simple_draw(items)
    values = _Values.of(items, pair, quantity)
    most = values.reach
    expect(0 <= margin < most, "margin", margin, f"a number from 0 to below {most:g}")
    settings: dict[str, Any] = {
        "candidate": str(pair[0]),
        "baseline": str(pair[1]),
        "quantity": values.quantity,
    }
    settings |= {"margin": margin, "level": level, "population": population, "seed": seed}
    units = _units(items, values, pair, population, seed)
    content = read_whole(path) if os.path.lexists(path) else None
    if content is None:
        largest = max(values.size(len(rows)) for rows in units.rows)
        pool = _digest(values, units) if population == "finite" else ""
        before = GateLooks(settings, largest, pool, 0, ())
    else:
        before = GateLooks.from_json(content, source=str(path))
        _require_same(before, settings, values, units, str(path))
    gate = _Gate(items, units, values, before, options)
    about = [*items.origin.remarks, *gate.count()]
    forbid(
        not gate.counted,
        "no item can be counted, expected one with a label, or a group whose items all have one",
        "labels",
    )
    if population == "new":
        about.append(remarks.votes_not_used())
    after = replace(before, n_looks=before.n_looks + 1, counted=tuple(gate.counted))
    now = read_whole(path) if os.path.lexists(path) else None
    forbid(now != content, f"{path}: another run has just written it; run again", "sequential")
    replace_file(path, after.to_json() + "\n")
    return gate.result(about, after.n_looks)


def require_two_of(pair: tuple[Any, Any], names: Sequence[Any]) -> None:
    """Check that candidate and baseline are two of the names."""
    for argument, name in zip(("candidate", "baseline"), pair, strict=True):
        expected = f"one of {listing(map(str, names))}" if names else "a value of by"
        expect(name in names, argument, name, expected)
    expect(pair[0] != pair[1], "baseline", pair[1], "a name other than the candidate's")


@dataclass(frozen=True, eq=False)
class _Values:
    """Values of items towards the candidate, NaN without a label, and what they are of."""

    quantity: str
    names: list[str]  # of the items, each another
    counts: NDArray[Any]  # votes towards the candidate
    of_items: Floats
    of_labels: Floats  # the value of each label
    sign: float  # -1 where the candidate is B
    by: NDArray[np.bool_] | None  # of grades, whether a response is the candidate's
    reach: float  # the greatest value that a unit's mean can have

    @classmethod
    def of(cls, items: Items, pair: tuple[Any, Any], quantity: str | None) -> _Values:
        of_label = quantities_of(items.label_scale)
        is_pairs, systems = items.scale.mirrored, np.asarray(items.facts.get("by", ()))
        there = [*items.origin.sides] if is_pairs else sorted({*systems.tolist()})
        require_two_of(pair, there)
        quantity = main_of(items.label_scale) if quantity is None else quantity
        one_of(quantity, [NET] if is_pairs else [*of_label], "quantity")
        of_labels = np.array(of_label[quantity])
        names = [str(name) for name in items.names]
        if not is_pairs:
            names = [f"{name} of {of}" for name, of in zip(names, systems, strict=True)]
        sign = -1.0 if is_pairs and pair[0] != there[0] else 1.0
        counts = items.counts if sign > 0 else items.counts[..., ::-1]
        reach = 1.0 if is_pairs else float(np.ptp(of_labels))
        by = None if is_pairs else systems == pair[0]
        of_items = sign * (items.labels @ of_labels)
        return cls(quantity, names, counts, of_items, sign * of_labels, sign, by, reach)

    def size(self, n_items: int) -> int:
        """What a unit of so many items counts: a difference of two systems counts as one."""
        return n_items if self.by is None else 1

    def total(self, of_items: Floats, rows: NDArray[np.int64]) -> float:
        """Sum over the items of a unit, or the difference of the means of its two systems."""
        own = of_items[rows]
        if self.by is None:
            return float(own.sum())
        return float(own[self.by[rows]].mean() - own[~self.by[rows]].mean())


def _require_simple_draw(items: Items) -> None:
    known = items.sampling.probabilities
    known = np.empty(0) if known is None else known[items.is_labelled]
    expected = "the same for all labelled items: a sequential gate takes a simple random sample"
    good = not len(known) or bool(np.ptp(known) <= _ROUNDING)
    expect(good, "probabilities", "different probabilities", expected)
    strata = items.sampling.strata
    text = "labels were drawn by stratum, expected a simple random sample for a sequential gate"
    forbid(strata is not None and len({*strata[items.is_labelled].tolist()}) > 1, text, "labels")


def _units(
    items: Items, values: _Values, pair: tuple[Any, Any], population: str, seed: int
) -> Units:
    of_item = items.names if items.group is None else items.group
    number = as_groups(of_item, "counts", len(items))
    if len(np.unique(number)) < len(number):
        # Of items that were drawn one by one, few groups would be whole, and those the small ones.
        is_by_item = population == "finite" and values.by is None
        drawn = _drawn(items, number, are_seen_whole=not is_by_item)
        n_both = len(np.unique(np.stack([number, drawn]), axis=1).T)
        are_groups = n_both == int(number.max()) + 1 == int(drawn.max()) + 1
        text = "items were drawn, expected whole groups, all of whose items get a label, for a "
        text += "sequential gate of new items or of grades; population='finite' takes drawn items"
        argument = "labels" if items.origin.source else "units"
        forbid(not are_groups and not is_by_item, text, argument)
        of_item, number = (of_item, number) if are_groups else (items.sampling.units, drawn)
    order = np.argsort(number, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    n_without = 0
    if values.by is not None:
        is_of_pair = np.isin(np.asarray(items.facts["by"]), pair)
        rows = [of[is_of_pair[of]] for of in rows]
        rows = [of for of in rows if len({*values.by[of].tolist()}) == 2]
        text = f"no group has responses of both {pair[0]} and {pair[1]}, expected groups, such as "
        forbid(not rows, f"{text}prompts, that pair them", "groups")
        n_without = int(is_of_pair.sum()) - sum(map(len, rows))

    def by_chance(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    named = {str(of_item[of[0]]): of for of in rows}
    names = sorted(named, key=by_chance)
    in_order = [sorted(named[name], key=lambda row: by_chance(values.names[row])) for name in names]
    return Units(names, [np.array(of, dtype=np.int64) for of in in_order], n_without)


def _drawn(items: Items, group: NDArray[np.int64], *, are_seen_whole: bool) -> NDArray[np.int64]:
    """Number of the unit of each item: the group, if nobody says it and at most one is in part."""
    if items.sampling.units is not None:
        return as_groups(items.sampling.units, "counts", len(items), "units")
    share = np.bincount(group, items.is_labelled) / np.bincount(group)
    n_in_part = int(((share > 0) & (share < 1)).sum())
    argument = "labels" if items.origin.source else "units"
    is_seen = are_seen_whole and items.has_all_groups and n_in_part <= 1
    forbid(not is_seen, UNKNOWN_UNIT, argument)
    return group


def _digest(values: _Values, units: Units) -> str:
    """Tell the items of a finite population, their votes and units, from any others."""
    whole = hashlib.sha256()
    for name, rows in zip(units.names, units.rows, strict=True):
        of_items = [(values.names[row], values.counts[row].astype(float).tolist()) for row in rows]
        whole.update(repr((name, of_items)).encode())
    return whole.hexdigest()[:32]


def _require_same(
    before: GateLooks, settings: Mapping[str, Any], values: _Values, units: Units, source: str
) -> None:
    for name, value in settings.items():
        kept = before.settings[name]
        text = f"{source}: is of a gate with {name} {kept!r}, not {value!r}; use another file"
        forbid(kept != value, text, "sequential")
    now = dict(zip(values.names, values.of_items.tolist(), strict=True))
    known = [pair for unit in before.counted for pair in zip(unit.items, unit.values, strict=True)]
    missing = [name for name, _ in known if name not in now]
    if missing:
        text = f"{len(missing)} of {counted(len(known), 'item')} that were counted are not here, "
        text += f"such as {missing[0].strip()!r}: it is of other votes and labels; use another file"
        raise InputError(f"{source}: {text}", argument="sequential")
    for name, value in known:
        if not abs(now[name] - value) <= _ROUNDING:
            is_now = "has no label" if np.isnan(now[name]) else f"is {now[name]:g}"
            text = f"item {name.strip()!r} was counted as {value:g} and now {is_now}; what was "
            text += "counted may not change: with other labels begin another file"
            raise InputError(f"{source}: {text}", argument="sequential")
    if before.pool and before.pool != _digest(values, units):
        text = "votes or units are not those of the first look, and bounds are of these items: "
        raise InputError(f"{source}: {text}begin another file", argument="sequential")


class _Gate:
    """One look: the units that were counted, those that are new, and the bets on them."""

    def __init__(
        self,
        items: Items,
        units: Units,
        values: _Values,
        before: GateLooks,
        options: Mapping[str, Any],
    ) -> None:
        self.items, self.units, self.values, self.before = items, units, values, before
        self.options, self.counted = options, list(before.counted)
        self._is_finite = before.settings["population"] == "finite"
        self._row_of = {name: row for row, name in enumerate(values.names)}
        self._totals = [self._total_of(unit) for unit in self.counted]
        were_counted = {unit.unit for unit in self.counted}
        self._is_left = np.array([name not in were_counted for name in units.names])
        self._sizes = [values.size(len(rows)) for rows in units.rows]
        self._model: tuple[int, Floats] | None = None  # labels that it saw, and its predictions

    def count(self) -> list[Remark]:
        """Count the new units; remarks on labels that were not counted."""
        is_labelled = self.items.is_labelled
        before = {unit.unit: len(unit.items) for unit in self.counted}
        n_waiting = n_late = n_cut = 0
        for place, (name, rows) in enumerate(zip(self.units.names, self.units.rows, strict=True)):
            labelled = rows[is_labelled[rows]]
            if name in before:
                n_late += len(labelled) - before[name]
                continue
            if len(labelled) < len(rows):
                n_waiting += len(labelled)
                continue
            if self.values.size(len(labelled)) > self.before.largest:
                labelled, n_cut = labelled[: self.before.largest], n_cut + 1
            self._count(name, place, labelled)
        about = [remarks.waiting_labels(n_waiting)] if n_waiting else []
        about += [remarks.late_labels(n_late)] if n_late else []
        about += [remarks.cut_groups(n_cut, self.before.largest)] if n_cut else []
        return about + ([remarks.unpaired_items(n)] if (n := self.units.n_without) else [])

    def _count(self, name: str, place: int, rows: NDArray[np.int64]) -> None:
        total = self.values.total(self.values.of_items, rows)
        size = float(self.values.size(len(rows)))
        reach, largest, predicted = self.values.reach, self.before.largest, 0.0
        bet = Bet(total, size, largest * reach, largest * reach, largest)
        if self._is_finite:
            # Of those left, values less the mean come to what is known of those counted.
            n_left = int(self._is_left.sum())
            n, summed = self._n_counted / n_left, sum(self._totals) / n_left
            shift = low = high = 0.0
            if (predictions := self._predictions()) is not None:
                left = predictions[self._is_left]
                predicted = float(predictions[place] - left.mean())
                weight = self._weight(float(left.var()))
                shift, low, high = weight * np.array(
                    [predicted, left.max() - left.mean(), left.mean() - left.min()]
                )
            below, above = (
                max((m * reach + beyond) * (largest + n) / (m + n) for m in {*self._sizes})
                for beyond in (low - summed, high + summed)
            )
            bet = Bet(total + summed - shift, size + n, below, above, largest + n)
        names = tuple(self.values.names[row] for row in rows)
        of_items = tuple(self.values.of_items[rows].tolist())
        self.counted.append(Counted(name, names, of_items, predicted, bet))
        self._totals.append(total)
        self._is_left[place] = False

    def _total_of(self, unit: Counted) -> float:
        rows = np.array([self._row_of[item] for item in unit.items], dtype=np.int64)
        return self.values.total(self.values.of_items, rows)

    @property
    def _n_counted(self) -> int:
        return sum(self.values.size(len(unit.items)) for unit in self.counted)

    def _weight(self, spread: float) -> float:
        """Weight of predictions, from 0 to 1: the slope of values by them so far, from a half."""
        x = np.array([unit.predicted for unit in self.counted])
        y = np.array(self._totals)
        known = x != 0
        y = np.where(known, y - (y[known].mean() if known.any() else 0.0), 0.0)
        worth = _WORTH * spread
        slope = (x @ y + worth / 2) / (x @ x + worth) if worth > 0 else 0.0
        return float(np.clip(slope, 0.0, 1.0))

    def _predictions(self) -> Floats | None:
        """Predicted value of each unit by a model that saw only what was counted before."""
        items, model = self.items, self.options.get("model")
        scales, n_fit = (items.scale, items.label_scale), 0
        if model is None:
            n, n_fit = sum(len(unit.items) for unit in self.counted), _FIRST_FIT
            if n < n_fit:
                return None
            while math.ceil(n_fit * _NEXT_FIT) <= n:
                n_fit = math.ceil(n_fit * _NEXT_FIT)
        if self._model is not None and self._model[0] == n_fit:
            return self._model[1]
        if model is not None:
            table = fixed(model, items.by_judge, 0, scales, columns_for(model, items))[0][0]
        else:
            seen = [(self._row_of[i], k) for k, of in enumerate(self.counted) for i in of.items]
            rows, groups = np.array(seen[:n_fit]).T
            known = known_of(items.covariates, rows, items.scale)
            columns = {of.name: items.covariates[of.name] for of in known.covariates}
            prior, of_labels = self.options.get("prior", "weak"), items.labels[rows]
            made = calibrated(
                items.by_judge[rows], of_labels, groups, prior, scales, known.named or None
            )
            table = predicted_by(made, items.by_judge, columns or None)
        of_items = table @ self.values.of_labels
        of_units = np.array([self.values.total(of_items, rows) for rows in self.units.rows])
        self._model = n_fit, of_units
        return of_units

    def result(self, about: Sequence[Remark], n_looks: int) -> Look:
        """Return the bounds, and about how many labels would tell."""
        margin, level = self.before.settings["margin"], self.before.settings["level"]
        reach, error = self.values.reach, 1 - level
        bets = Bets((-reach, reach), (error, error), -margin)
        all_items = sum(map(len, self.units.rows))
        n_all = sum(self._sizes)
        n, summed = 0, 0.0
        for unit, total in zip(self.counted, self._totals, strict=True):
            bets.add(unit.bet)
            n, summed = n + self.values.size(len(unit.items)), summed + total
            if self._is_finite:
                rest = (n_all - n) * reach
                bets.within((summed - rest) / n_all, (summed + rest) / n_all)
        n_labels = sum(len(unit.items) for unit in self.counted)
        wanted = items_wanted = None
        if bets.low <= -margin <= bets.high and (n_units := bets.wanted()) is not None:
            labels = max(math.ceil(n_units * n_labels / len(self.counted)), n_labels + 1)
            labels = min(labels, all_items) if self._is_finite else labels
            wanted, items_wanted = (labels, None) if labels <= all_items else (None, labels)
            wanted = None if n_labels == all_items else wanted
        return Look(
            self.values.quantity,
            bets.mean,
            bets.low,
            bets.high,
            all_items,
            n_labels,
            wanted,
            items_wanted,
            tuple(about),
            n_looks,
        )


def path_of_part(path: Path, part: str) -> Path:
    """Return the file of one of several gates."""
    return path.with_name(f"{path.stem}-{stem(part)}{path.suffix}")
