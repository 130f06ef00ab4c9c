"""Whether votes are still distributed as they were when the model was calibrated."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import Readable, readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_numbers,
    in_label_order,
    require_rows,
    same_length,
)
from btdagg.model.intervals import as_level
from btdagg.online.anchors import Anchors, Shift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_MOST_VOTES = 128

# Levels of an item's or a group's value. Any number of them keeps the level of the test, and these
# tell apart all shares of up to 120 votes.
_LEVELS = 241

FACETS = ("tie rate", "decisiveness", "side bias")
N_TESTS = 3  # with anchors: of the stream's votes, of the judge, and of the systems
_WIDTHS = {"tie rate": 1.0, "decisiveness": 1.0, "side bias": 2.0}


@readable
class Facet(NamedTuple):
    """One quantity that may change.

    Attributes
    ----------
    name : str
        ``tie rate``: share of ties among an item's votes. ``decisiveness``: how one-sided its other
        votes are, from 0 (an even split) to 1 (unanimous). ``side bias``: how much votes lean to
        the response shown first (without orders, to A), from -1 to 1.
    reference, stream : float
        Means over the items; NaN if no item has a value.
    log_evidence, pvalue : float
        Logarithm of the capital of a bet against no change; and one over the largest capital so
        far, valid however often you look.
    moved_at : int or None
        Number of items of the stream when the change was found.
    """

    name: str
    reference: float
    stream: float
    log_evidence: float
    pvalue: float
    moved_at: int | None


@dataclass(frozen=True)
class DriftReport(Readable):
    """The result of a monitor so far.

    Attributes
    ----------
    n_reference, n_items : int
        Items of the reference and of the stream.
    level : float
        Bound on the probability of ever raising a false alarm.
    facets : tuple of Facet
    n_anchors : int
        Items that were judged again.
    judge_pvalue : float
        By the anchors, that the judge did not change; valid however often one looks.
    shifts : tuple of Shift
        With anchors, how the judge and the systems moved.
    """

    n_reference: int
    n_items: int
    level: float
    facets: tuple[Facet, ...]
    n_anchors: int = 0
    judge_pvalue: float = 1.0
    shifts: tuple[Shift, ...] = ()

    @property
    def moved(self) -> tuple[str, ...]:
        """Names of the facets that have changed."""
        return tuple(facet.name for facet in self.facets if facet.moved_at is not None)

    @property
    def stale(self) -> bool:
        """Whether something has changed, so that the model should be calibrated again."""
        return bool(self.moved) or self.who != "nothing"

    @property
    def who(self) -> str:
        """Who moved: ``nothing``, ``the judge``, ``the systems``, ``both`` or ``cannot tell``.

        The judge, or the systems, are wrongly named with probability at most a third of `level`
        each; the systems if the judge moved alike on the stream and the anchors.
        """
        judge = self.judge_pvalue <= self.level / N_TESTS
        systems = any(low > 0 or high < 0 for low, high in (shift.systems for shift in self.shifts))
        answers = {(True, True): "both", (True, False): "the judge", (False, True): "the systems"}
        return answers.get((judge, systems), "cannot tell" if self.moved else "nothing")

    def __str__(self) -> str:
        n = f"{self.n_items} items against {self.n_reference}"
        if self.n_anchors:
            n += f", {self.n_anchors} anchors; who moved: {self.who}"
        if not self.stale:
            return f"no drift found in {n}"
        moves = (
            f"{facet.name} from {facet.reference:.3f} to {facet.stream:.3f} "
            f"(item {facet.moved_at}, p = {facet.pvalue:.2g})"
            for facet in self.facets
            if facet.moved_at is not None
        )
        return f"calibration is stale: {', '.join(moves) or f'{self.who} moved'}; {n}"


class DriftMonitor(SavedAsJson):
    """Compares the votes of a stream of items with those that the model was calibrated on.

    The probability of ever raising a false alarm is at most `level`, however long the stream is,
    however often you look and however few the reference items are, if items (with `groups`, groups)
    of reference and stream are exchangeable. Each of three quantities is tested at a third of the
    level, so the report can name what has changed. From the first anchors on (`judge_again`) the
    votes, the judge and the systems are tested at a third of it each.

    A monitor sees votes only. It cannot see an accuracy that falls while counts are distributed as
    before, or changes of covariates: label some new items now and then.

    Parameters
    ----------
    reference : (n, 3) or (n, 2, 3) array of non-negative numbers
        Votes per item in label order; with three dimensions first the votes in order AB, then BA.
        All items have the same number of votes (in each order), 1 to 128, whole or with a strength.
        A data frame is read by column name.
    groups : (n,) array, optional
        Group of each reference item, such as its prompt; the stream then has groups too. One item
        of each group, drawn by chance, is compared, so groups may differ in size. Without groups,
        several items of one prompt in a row raise false alarms.
    level : float
        Above 0 and below 1.
    seed : int
        Seed of the random numbers that draw an item of each group and break ties between equal
        values; at least 0.

    Notes
    -----
    With a stopping rule, give the monitor only the first votes of each item, as many for all.

    Conformal test martingales with bets that jump: Vovk, Gammerman and Shafer (2022), chapter 8;
    Vovk et al. (2021), Retrain or not retrain. Ville (1939) for the level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(rng.multinomial(8, [0.4, 0.1, 0.5], size=300))
    >>> monitor.observe(rng.multinomial(8, [0.4, 0.1, 0.5], size=500)).stale
    False
    >>> monitor.observe(rng.multinomial(8, [0.3, 0.3, 0.4], size=200)).moved
    ('tie rate',)
    """

    FILE: ClassVar[FileFormat] = FileFormat("btdagg.drift", "drift monitor")
    INDENT = None

    def __init__(
        self,
        reference: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        level: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.level = as_level(level)
        first = _as_votes(reference, "reference", None)
        forbid(not len(first), "reference is empty, expected at least one item", "reference")
        self.n_votes = tuple(
            as_integer(n, "votes of reference[0]", 1, _MOST_VOTES)
            for n in np.rint(first[0].sum(axis=-1)).astype(np.int64).tolist()
        )
        self._same_votes(first, "reference")
        self._n_reference, self._n_items = len(first), 0
        self._open = None if groups is None else _Open()
        self._seed = seed = as_integer(seed, "seed", 0, 2**62)
        self._tests, self._moved_at = [], [None] * len(FACETS)
        self._sums = np.zeros((2, len(FACETS)))
        self._totals = np.zeros((2, len(FACETS)), dtype=np.int64)
        scores = self._summed(first, 0)
        if groups is not None:
            group = as_groups(groups, "reference", len(first))
            scores = scores[:, _drawn(group, self._keys(0, 0, len(first)))]
        self._anchors = Anchors(
            [_from_0_to_1(*facet) for facet in enumerate(scores)], FACETS, level / N_TESTS
        )
        for number, values in enumerate(scores):
            pool = np.bincount(_levels(values, number), minlength=_LEVELS)
            self._tests.append(_core.ConformalTest(pool.tolist(), 3 * seed + number))

    def __repr__(self) -> str:
        return (
            f"<DriftMonitor of {self._n_items} items against {self._n_reference}, "
            f"{self._shown()} votes each, level {self.level:g}>"
        )

    def observe(self, counts: ArrayLike, *, groups: ArrayLike | None = None) -> DriftReport:
        """Add items of the stream, in their order, and report.

        Parameters
        ----------
        counts : (m, 3) or (m, 2, 3) array, or one item of it
            As the reference.
        groups : (m,) array of names, if the reference has groups
            Items of a group come in a row, in one call or several. One item of a group, drawn by
            chance, is tested when an item of another group comes.
        """
        votes = _as_votes(counts, "counts", len(self.n_votes))
        self._same_votes(votes, "counts")
        expected = "groups for both the reference and the stream, or for neither"
        expect((groups is None) == (self._open is None), "groups", groups, expected)
        names = None
        if groups is not None:
            as_groups(groups, "counts", len(votes))  # checks them
            names = [str(name) for name in np.asarray(groups)]
        scores = self._summed(votes, 1)
        ends = self._n_items + np.arange(1, len(votes) + 1)
        if names is not None:
            scores, ends = self._closed(scores, names)
        has_anchors = self._anchors is not None and self._anchors.n_anchors > 0
        bound = math.log(len(FACETS) * (N_TESTS if has_anchors else 1) / self.level)
        for number, values in enumerate(scores):
            if self._anchors is not None:
                self._anchors.observe(number, _from_0_to_1(number, values))
            peaks = self._tests[number].observe(_levels(values, number))
            if self._moved_at[number] is None and (peaks >= bound).any():
                # Items without a value, such as a decisiveness where all votes are ties, count.
                tested = np.flatnonzero(~np.isnan(values))
                self._moved_at[number] = int(ends[tested[int(np.argmax(peaks >= bound))]])
        self._n_items += len(votes)
        return self.report()

    def judge_again(self, old: ArrayLike, new: ArrayLike) -> DriftReport:
        """Add anchors: items that the judge has judged before and again, and report who moved.

        Only the judge can have moved, since responses are the same. From time to time judge items
        again, chosen by chance, of different prompts, each once, at a steady pace of the stream:
        without it "the systems" is not said. Begin early, since the tests share the level from the
        first anchors on. No label is needed.

        Parameters
        ----------
        old, new : (m, 3) or (m, 2, 3) arrays, or one item
            Votes of the same items, as many as in the reference.
        """
        if self._open is not None or self._anchors is None:
            got = "a monitor of groups"
            expected = "a monitor without groups, of one item of each group"
            if self._anchors is None:
                got, expected = "a monitor saved by an older btdagg", "a new monitor"
            raise InputError(argument="monitor", got=got, expected=expected)
        tables = []
        for name, counts in (("old", old), ("new", new)):
            tables.append(_as_votes(counts, name, len(self.n_votes)))
            self._same_votes(tables[-1], name)
        same_length("new", len(tables[1]), "old", len(tables[0]))
        old_votes, new_votes = tables
        self._anchors.judge_again(old_votes, new_votes, facet_differences(old_votes, new_votes))
        return self.report()

    def _closed(
        self, scores: NDArray[np.float64], names: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        assert self._open is not None
        if not len(names):
            return scores, np.empty(0, dtype=np.int64)
        starts = np.flatnonzero([True, *(a != b for a, b in itertools.pairwise(names))])
        sizes = np.diff([*starts, len(names)])
        keys = self._keys(1, self._n_items, len(names))
        rows = _drawn(np.repeat(np.arange(len(sizes)), sizes), keys)
        scores, keys = scores[:, rows], keys[rows]
        ends = self._n_items + starts[1:]
        if self._open.name is not None:
            before = np.array([self._open.scores], dtype=np.float64).T
            if self._open.name != names[0]:
                scores, keys = np.hstack([before, scores]), np.append(self._open.key, keys)
                ends = np.append(self._n_items, ends)
            elif self._open.key < keys[0]:
                scores[:, :1], keys[0] = before, self._open.key
        last = [None if math.isnan(score) else score for score in scores[:, -1].tolist()]
        self._open = _Open(names[-1], last, float(keys[-1]))
        return scores[:, :-1], ends

    def _keys(self, stream: int, first: int, n: int) -> NDArray[np.float64]:
        """Random numbers of n items, whatever the batches; a group's item of the least is drawn."""
        random = np.random.Philox(key=np.array([self._seed, stream], dtype=np.uint64))
        random.advance(first)
        return random.random_raw(4 * n)[::4] / 2.0**64

    def report(self) -> DriftReport:
        """Return what was found so far."""
        means = _means(self._sums, self._totals)
        facets = []
        for number, name in enumerate(FACETS):
            log_evidence, peak = self._tests[number].log_capital()
            facets.append(
                Facet(
                    name,
                    float(means[0, number]),
                    float(means[1, number]),
                    log_evidence,
                    max(math.exp(-peak), sys.float_info.min),  # a p-value is never zero
                    self._moved_at[number],
                )
            )
        report = DriftReport(self._n_reference, self._n_items, self.level, tuple(facets))
        if self._anchors is None or not (n_anchors := self._anchors.n_anchors):
            return report
        shifts, pvalue = self._anchors.shifts(_WIDTHS), self._anchors.judge_pvalue
        return replace(report, n_anchors=n_anchors, judge_pvalue=pvalue, shifts=shifts)

    def _summed(self, votes: NDArray[Any], row: int) -> NDArray[np.float64]:
        """Scores of items by facet, (3, n), NaN where an item has none; `row` gets their sums."""
        scores = np.stack(_scores(votes))
        self._sums[row] += np.nansum(scores, axis=1)
        self._totals[row] += (~np.isnan(scores)).sum(axis=1)
        return scores

    def _same_votes(self, votes: NDArray[Any], name: str) -> None:
        totals = votes.sum(axis=-1)
        wrong = (np.abs(totals - self.n_votes) > 1e-6).any(axis=1)
        if wrong.any():
            row = int(wrong.argmax())
            got = " and ".join(f"{total:g}" for total in totals[row])
            expected = f"{self._shown()} as in the first of the reference"
            raise InputError(
                f"{name}[{row}] has {got} votes, expected {expected}: count the same number of "
                "votes for every item",
                argument=name,
                row=row,
            )

    def _shown(self) -> str:
        return " and ".join(map(str, self.n_votes))

    def as_dict(self) -> dict[str, Any]:
        """Return all that the monitor holds as plain values."""
        return {
            "level": self.level,
            "n_votes": self.n_votes,
            "n_reference": self._n_reference,
            "n_items": self._n_items,
            "sums": self._sums.tolist(),
            "totals": self._totals.tolist(),
            "moved_at": self._moved_at,
            "tests": [test.state() for test in self._tests],
            **({} if self._anchors is None else {"anchors": self._anchors.state()}),
            **({} if self._open is None else {"open": self._open._asdict(), "seed": self._seed}),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the monitor from the fields of `as_dict`."""
        monitor = cls.__new__(cls)
        monitor.level = as_level(fields["level"])
        monitor.n_votes = tuple(as_integer(n, "n_votes", 1, _MOST_VOTES) for n in fields["n_votes"])
        monitor._n_reference, monitor._n_items = fields["n_reference"], fields["n_items"]
        monitor._sums = np.array(fields["sums"], dtype=np.float64)
        monitor._totals = np.array(fields["totals"], dtype=np.int64)
        monitor._moved_at = list(fields["moved_at"])
        if "open" in fields and "seed" not in fields:
            got = "a monitor of groups saved by an older btdagg, which compares means of groups"
            raise InputError(argument="monitor", got=got, expected="a new monitor")
        monitor._open = _Open(**fields["open"]) if "open" in fields else None
        monitor._seed = as_integer(fields.get("seed", 0), "seed", 0, 2**62)
        monitor._anchors = None
        if "anchors" in fields:  # which an older one does not have
            monitor._anchors = Anchors.from_state(
                fields["anchors"], FACETS, monitor.level / N_TESTS
            )
        monitor._tests = [_core.ConformalTest.from_state(tuple(test)) for test in fields["tests"]]
        sizes = [len(pool) for pool, *_ in fields["tests"]]
        shapes = monitor._sums.shape, monitor._totals.shape
        n_moved, expected = len(monitor._moved_at), [_LEVELS] * len(FACETS)
        if shapes != 2 * ((2, len(FACETS)),) or n_moved != len(FACETS) or sizes != expected:
            raise ValueError("its parts differ in length")
        return monitor

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return DriftMonitor.from_json, (self.to_json(),)

    _tests: list[_core.ConformalTest]
    _anchors: Anchors | None
    _moved_at: list[int | None]
    _is_exact: bool
    _open: _Open | None


class _Open(NamedTuple):
    """The group that items may still be added to: scores and random number of the item drawn."""

    name: str | None = None
    scores: Sequence[float | None] = (None, None, None)
    key: float = 1.0


def _drawn(groups: NDArray[np.int64], keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rows of the items with the least key of each group, in the order of groups."""
    order = np.lexsort((keys, groups))
    return order[np.unique(groups[order], return_index=True)[1]]


def _means(sums: NDArray[np.float64], numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / np.where(numbers, numbers, np.nan))


def _as_votes(counts: ArrayLike, name: str, n_orders: int | None) -> NDArray[Any]:
    array = as_numbers(in_label_order(counts, name), name)
    if array.ndim == n_orders:
        array = array[None]  # one item
    votes = array[:, None] if array.ndim == 2 else array
    shapes = {1: "(n, 3)", 2: "(n, 2, 3)"}
    if n_orders is not None:
        shapes = {n_orders: shapes[n_orders]}
    if votes.ndim != 3 or votes.shape[1] not in shapes or votes.shape[2] != 3:
        expected = " or ".join(shapes.values())
        raise InputError(f"{name} has shape {array.shape}, expected {expected}", argument=name)
    with np.errstate(invalid="ignore"):
        good = ((votes >= 0) & (votes <= 2**31)).all(axis=(1, 2))
    require_rows(good, array, name, "numbers from 0 to 2**31")
    return votes.astype(np.float64)


def _scores(votes: NDArray[Any]) -> Sequence[NDArray[np.float64]]:
    minus, tie, plus = votes.sum(axis=1).T
    decisive = minus + plus
    ties = tie / (tie + decisive)
    with np.errstate(invalid="ignore"):
        one_sided = np.abs(plus - minus) / np.where(decisive, decisive, np.nan)
    by_order = votes[:, :, 2] - votes[:, :, 0]
    n_votes = votes.sum(axis=2)
    if votes.shape[1] == 1:
        lean = by_order[:, 0] / n_votes[:, 0]
    else:
        # A is shown first in AB and last in BA. Over a common denominator, so that equal leans are
        # equal floats.
        across = by_order[:, 0] * n_votes[:, 1] - by_order[:, 1] * n_votes[:, 0]
        lean = across / (2 * n_votes[:, 0] * n_votes[:, 1])
    return ties, one_sided, lean


def facet_differences(old: NDArray[Any], new: NDArray[Any]) -> NDArray[np.float64]:
    """Facets of votes of items judged again less those before, (3, n), from -1 to 1."""
    before, now = (np.stack(_scores(votes)) for votes in (old, new))
    return np.asarray((now - before) / np.array([[_WIDTHS[name]] for name in FACETS]))


def _from_0_to_1(facet: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values + 1) / 2 if FACETS[facet] == "side bias" else values


def _levels(values: NDArray[np.float64], facet: int) -> NDArray[np.int64]:
    values = values[~np.isnan(values)]
    values = _from_0_to_1(facet, values)
    # Rounded twice, so that the order in which floats were added up decides nothing.
    return np.rint(np.round(values * (_LEVELS - 1), 6)).astype(np.int64)
