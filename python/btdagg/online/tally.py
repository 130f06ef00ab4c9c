"""Running tallies: votes in any order, with repeats, from many sources."""

from __future__ import annotations

import io
import json
import os
from importlib.util import find_spec
from itertools import repeat
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect, given, of_kind, reworded
from btdagg._util.files import FileFormat, read_whole, replace_file, require_zip
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_id_array,
    as_integer,
    as_names,
    as_numbers,
    columns_of,
    require_rows,
    same_index,
    same_length,
)
from btdagg.model.davidson import DavidsonModel
from btdagg.online.rule import StoppingRule
from btdagg.votes.provenance import warn_of
from btdagg.votes.scale import PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

_FILE = FileFormat("btdagg.tally", "tally", 2)
_FILE_1 = FileFormat("btdagg.tally", "tally")  # whose states are converted
_MAX_SAMPLE = 4095
_SIGNS = "-1, 0 or 1, since this tally counts whole votes; for votes with strength use btdagg.tally"

# Integers, or texts as UTF-8 bytes, where the first begins, and where each ends.
_Ids: TypeAlias = "NDArray[np.int64] | tuple[NDArray[np.uint8], int, NDArray[np.int64]]"
_Late: TypeAlias = Literal["refuse", "drop", "list"]


@readable
class Settled(NamedTuple):
    """Items that have become settled: ids in ascending order, the rule's labels, and counts."""

    ids: NDArray[Any]
    labels: NDArray[np.int8]
    counts: NDArray[np.int64]


@readable
class Conflict(NamedTuple):
    """A sample that came with different votes, and therefore counts for none of them."""

    item: int | str
    judge: str
    order: str
    sample: int
    votes: tuple[int, ...]


@readable
class LateVote(NamedTuple):
    """A vote that came for an item after that was reported as settled."""

    item: int | str
    judge: str
    order: str
    sample: int | None
    vote: float


class OnlineTally:
    """Counts of items from votes in any order, each sample counted once.

    The tally stores the vote of each sample: adding a vote again changes nothing, and merging is a
    union, so neither order nor repetition matters. Two different votes of a sample are a conflict:
    it counts for neither, and `conflicts` lists it; where votes are corrected, the last counts.
    Votes have no strength (`btdagg.tally` counts those). Ids are listed in ascending order. Methods
    are thread-safe. Memory grows with items and votes: about 80 bytes an item, and 60 for each
    further judge, order or 64 samples of an item.

    Parameters
    ----------
    model : DavidsonModel, optional
        Decides the counts. By default the model of the rule.
    rule : StoppingRule, optional
        Says which items are settled. An item with more than the rule's `n` votes is settled, and
        the model decides it from all of them. Covariates are given to `decide` and `settle`.
    deduplicate : bool, optional
        If True, each sample counts once, by its number; if False, every row is one more
        vote, and merging adds. By default True if the first votes have sample numbers.
    late : {"refuse", "drop", "list"}
        A new vote for an item that `settle` has reported raises, adding nothing, or is left out and
        counted in `n_late`, and with "list" kept for `late_votes`.
    differing : {"neither", "last"}
        What counts of a sample that comes with different votes: neither, or the last, which makes a
        vote a correction of those before. The order of votes, and of merging, then matters.
    max_items : int, optional
        Items that may be held. Votes that would make more are refused, a batch as a whole:
        `evict` those that are settled, or `forget` some.

    Examples
    --------
    >>> tally = OnlineTally()
    >>> tally.add(["x", "y", "x"], votes=[1, 0, 1], samples=[0, 0, 1])
    >>> tally.add_one("x", vote=1, sample=1)  # again
    >>> ids, counts = tally.counts()
    >>> ids.tolist(), counts.tolist()
    (['x', 'y'], [[0, 0, 2], [0, 1, 0]])
    """

    def __init__(
        self,
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
        *,
        deduplicate: bool | None = None,
        late: _Late = "refuse",
        differing: Literal["neither", "last"] = "neither",
        max_items: int | None = None,
    ) -> None:
        if rule is not None:
            of_kind(rule, StoppingRule, "rule", "a StoppingRule, or None")
        expected = "a DavidsonModel, since an online tally counts votes on pairs; a rule is rule="
        expect(not isinstance(model, StoppingRule), "model", model, expected)
        if rule is not None and model not in (None, rule.model):
            raise InputError(argument="model", got=model, expected=f"the rule's, {rule.model!r}")
        expect(late in ("refuse", "drop", "list"), "late", late, "'refuse', 'drop' or 'list'")
        expect(differing in ("neither", "last"), "differing", differing, "'neither' or 'last'")
        self.rule = rule
        self.model = model if rule is None else cast("DavidsonModel", rule.model)
        expected = "a DavidsonModel, since an online tally counts votes on pairs, not grades"
        expect(isinstance(self.model, DavidsonModel | None), "model", self.model, expected)
        if self.model is not None and self.model.provenance is not None:
            differences = self.model.provenance.other_strength("none")
            warn_of(f"{text}: a tally counts whole votes" for text in differences)
        # One object wherever the model is from, so that a look tells that votes are -1, 0 and 1.
        is_of_pairs = self.model is None or self.model.scale == PAIRS
        self._scale = PAIRS if is_of_pairs else cast("DavidsonModel", self.model).scale
        self.deduplicate = None if deduplicate is None else bool(deduplicate)
        self.late: _Late = late
        self.differing: Literal["neither", "last"] = differing
        self.max_items = None if max_items is None else as_integer(max_items, "max_items", 1)
        self.n_late = 0
        self._late_votes: list[LateVote] = []
        self._kernel: _core.RunningTally | None = None  # by the kind of the first ids
        self._channels: dict[tuple[str, str], int] = {}  # judge and order
        self._lock = RLock()

    def __len__(self) -> int:
        with self._lock:
            return 0 if self._kernel is None else len(self._kernel)

    def __repr__(self) -> str:
        by = self.rule or self.model
        return f"<OnlineTally of {len(self)} items{'' if by is None else f', by {by}'}>"

    def add(
        self,
        items: Any,
        votes: ArrayLike,
        samples: ArrayLike | None = None,
        *,
        judges: ArrayLike | str = "",
        orders: ArrayLike | str = "",
        n_threads: int = 1,
    ) -> None:
        """Add votes: all of them, or none if there is an error.

        Parameters
        ----------
        items : (m,) array of integers or strings
            A list, a NumPy array, a series or an Arrow array.
        votes : (m,) array of -1, 0, 1
            From A's point of view. Leave out missing votes; they are not ties.
        samples : (m,) array of integers from 0 to 4095
            A sample is item, judge, order and this number. None if votes have none.
        judges, orders : str or (m,) array of str
            One for all votes, or one for each. Counts are sums over judges and orders.
        n_threads : int
            Does not change a bit of the result.
        """
        ids, cast = _as_ids(items), self._scale.sides(votes, "votes", _SIGNS)
        n_rows = len(ids[2]) if isinstance(ids, tuple) else len(ids)
        same_length("votes", len(cast), "items", n_rows)
        same_index(items=items, votes=votes, samples=samples, judges=judges, orders=orders)
        numbers = _sample_numbers(samples, n_rows)
        n_threads = as_integer(n_threads, "n_threads", 1)
        with self._lock:
            expected = "the number of each vote's sample: this tally knows votes by their samples"
            if self.deduplicate is False:
                expected = "None: this tally, or its first votes, count every vote"
            expect(self.deduplicate != (samples is None), "samples", samples, expected)
            if not n_rows:
                return  # which says nothing of the kind of ids
            kernel = self._kernel_for(samples is not None, isinstance(ids, tuple))
            channels = self._channels if kernel is self._kernel else {}
            codes = _number_channels(judges, orders, n_rows, channels, kernel.channel)
            late = kernel.add(ids, cast, numbers, codes, self.late == "refuse", n_threads)
            self._kernel, self._channels = kernel, channels
            self.deduplicate = samples is not None
            self.n_late += len(late)
            if late and self.late == "list":
                names = kernel.channels
                for row in late:
                    judge, order = names[0 if codes is None else codes[row]]
                    sample = None if numbers is None else int(numbers[row])
                    vote = self._scale.values[cast[row] + 1].item()
                    self._late_votes.append(LateVote(_id_of(ids, row), judge, order, sample, vote))

    def add_one(
        self,
        item: int | str,
        vote: float,
        sample: int | None = None,
        judge: str = "",
        order: str = "",
    ) -> None:
        """Add one vote; see `add`."""
        with self._lock:
            kernel, channel = self._kernel, self._channels.get((judge, order))
            number = 0 if sample is None else sample
            # A vote that is late, bad, or of a new judge goes the long way, which says so.
            is_plain = (
                kernel is not None
                and channel is not None
                and self.deduplicate is (sample is not None)
                and self._scale is PAIRS
                and type(vote) is type(number) is int
                and type(item) is (str if kernel.has_texts else int)
            )
            try:
                is_done = is_plain and not cast("Any", kernel).add_one(item, vote, number, channel)
            except (InputError, TypeError, OverflowError):
                is_done = False
            if is_done:
                return
            samples = None if sample is None else [sample]
            self.add([item], [vote], samples, judges=judge, orders=order)

    def withdraw(self, item: int | str, sample: int, judge: str = "", order: str = "") -> bool:
        """Make a sample count for nothing, whether its vote has come or comes later.

        With ``differing="last"`` a later vote of the sample counts again. An item that `settle` has
        reported stays so: it returns whether it was, and its label may be another now.
        """
        ids, numbers = _as_ids([item]), _sample_numbers([sample], 1)
        with self._lock:
            expected = "a tally that knows votes by their samples"
            expect(self.deduplicate is not False, "samples", sample, expected)
            kernel = self._kernel_for(True, isinstance(ids, tuple))
            channels = self._channels if kernel is self._kernel else {}
            _number_channels(judge, order, 1, channels, kernel.channel)
            number = int(cast("Any", numbers)[0])
            was_reported = kernel.withdraw(_id_of(ids, 0), number, channels[judge, order])
            self._kernel, self._channels, self.deduplicate = kernel, channels, True
            return was_reported

    def forget(self, items: Any) -> int:
        """Remove items, as if there had been no votes for them; return how many there were.

        A further vote for one of them is of a new item.
        """
        ids = _as_ids(items)
        with self._lock:
            if self._kernel is None or not len(ids[2] if isinstance(ids, tuple) else ids):
                return 0
            n_items = self._kernel.forget(ids)
            self._renew()
            return n_items

    def evict(self, settled: Settled | None = None) -> int:
        """Remove the items that `settle` has reported, or those of one report; return how many.

        A vote that comes for one of them after that is no late vote, but of a new item: evict what
        was settled so long ago that no more votes come, nor are read again after a crash.
        """
        if settled is not None:
            of_kind(settled, Settled, "settled", "what settle() returned, or None")
            return self.forget(settled.ids)
        with self._lock:
            if self._kernel is None:
                return 0
            n_items = self._kernel.evict()
            self._renew()
            return n_items

    def late_votes(self) -> list[LateVote]:
        """Return the late votes since the last call, of a tally with ``late="list"``."""
        with self._lock:
            votes, self._late_votes = self._late_votes, []
        return votes

    def merge(self, other: OnlineTally) -> NDArray[Any]:
        """Add the votes of another tally; items that either has reported stay reported.

        It returns the ids of those of them that have other counts now than they were reported with:
        their labels may be others. No vote of a merge is late. With ``differing="last"`` the
        other's votes are the later ones.
        """
        of_kind(other, OnlineTally, "other", "an OnlineTally")
        changed: Any = np.empty(0, dtype=np.int64)
        if other is self:
            return np.asarray(changed)
        for name in ("model", "rule", "deduplicate", "late", "differing"):
            mine, theirs = getattr(self, name), getattr(other, name)
            is_open = name == "deduplicate" and None in (mine, theirs)
            expect(mine == theirs or is_open, f"{name} of other", theirs, f"{mine!r} as here")
        with other._lock:
            copied = None if other._kernel is None else other._kernel.copy()
            deduplicate, n_late, late = other.deduplicate, other.n_late, [*other._late_votes]
        with self._lock:
            if copied is not None:
                kernel = self._kernel_for(bool(deduplicate), copied.has_texts)
                changed = kernel.merge(copied)
                self._take(kernel)
            if self.deduplicate is None:
                self.deduplicate = deduplicate
            self.n_late += n_late
            self._late_votes += late
        return _as_array(changed)

    def counts(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Ids in ascending order, (n,), and their counts, (n, 3) in label order."""
        with self._lock:
            if self._kernel is None:
                return np.empty(0, dtype=np.int64), np.empty((0, 3), dtype=np.int64)
            ids, counts = self._kernel.counts()
        return _as_array(ids), counts

    def counts_one(self, item: int | str) -> tuple[int, int, int]:
        """Counts of one item in label order; zeros for an unknown item."""
        ids = _as_ids([item])
        with self._lock:
            kernel = self._kernel_for(True, isinstance(ids, tuple))
            minus, tie, plus = kernel.counts_of(ids)[0].tolist()
        return minus, tie, plus

    def decide(self, *, covariates: Any = None) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Ids in ascending order and their labels, from the rule if there is one, or the model.

        `covariates` are as in `DavidsonModel.decide`, in the order of the ids of `counts`.
        """
        model = given(self.model, "model", "a DavidsonModel to decide by")
        ids, counts = self.counts()
        return ids, self._labels(model, counts, covariates)

    def _labels(self, model: DavidsonModel, counts: Any, covariates: Any) -> NDArray[np.int8]:
        labels = model.decide(counts, covariates=covariates)
        if self.rule is not None:
            within, known = _within(self.rule, counts, covariates)
            labels[within] = self.rule.decide(counts[within], covariates=known)
        return labels

    def settle(self, *, covariates: Any = None) -> Settled:
        """Report the items settled since the last call; `covariates` are as in `decide`."""
        rule = given(self.rule, "rule", "a StoppingRule to settle by")
        with self._lock:
            if self._kernel is None:
                ids: Any = np.empty(0, dtype=np.int64)
                return Settled(ids, np.empty(0, np.int8), np.empty((0, 3), np.int64))
            if rule.model.covariates or covariates is not None:
                ids, counts = self.counts()
                labels = self._labels(cast("DavidsonModel", self.model), counts, covariates)
                within, known = _within(rule, counts, covariates)
                settled = ~within
                settled[within] = rule.stops(counts[within], covariates=known)
                is_new = self._kernel.report(settled)
                return Settled(ids[is_new], labels[is_new], counts[is_new])
            kernel = cast("_core.StoppingRule", rule._kernel)  # of whole votes
            ids, labels, counts = self._kernel.settle(kernel)
        return Settled(_as_array(ids), rule.model._labels(labels), counts)

    def conflicts(self) -> list[Conflict]:
        """List the samples that came with different votes, by item in ascending order."""
        with self._lock:
            if self._kernel is None or not self.deduplicate:
                return []
            names, found = self._kernel.channels, self._kernel.conflicts()
        values = self._scale.values.tolist()
        return [
            Conflict(
                item,
                *names[channel],
                sample,
                tuple(v for v, came in zip(values, votes, strict=True) if came),
            )
            for item, channel, sample, votes in found
        ]

    def to_bytes(self) -> bytes:
        """Return the state as bytes, which are the same for the same votes in any order.

        The crate reads it as well (`RunningTally::from_bytes`).
        """
        with self._lock:
            header: dict[str, Any] = {
                "rule": None if self.rule is None else self.rule.to_json(),
                "model": None if self.model is None else self.model.to_json(),
                "deduplicate": self.deduplicate,
                "differing": self.differing,
                "max_items": self.max_items,
                "late": self.late,
                "n_late": self.n_late,
                "late_votes": [[*vote] for vote in self._late_votes],
                "is_empty": self._kernel is None,
            }
            kernel = self._kernel_for(bool(self.deduplicate), False)
            return kernel.to_bytes(json.dumps(_FILE.with_header(header)))

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
        *,
        other: Literal["refuse", "move"] = "refuse",
        source: str = "state",
    ) -> OnlineTally:
        """Return the tally that `to_bytes` wrote, to decide by the given model or rule.

        The state of another model or rule, such as that before a calibration, is refused. With
        `other` ``"move"`` its votes go to the given one, and `settle` reports every item anew.
        Errors begin with `source`.
        """
        expect(other in ("refuse", "move"), "other", other, "'refuse' or 'move'")
        is_bytes = isinstance(data, bytes | bytearray | memoryview)
        expect(is_bytes, "data", data, "bytes, as to_bytes returns them")
        saved = cls._restored(data, source)
        settings: dict[str, Any] = {"differing": saved.differing, "max_items": saved.max_items}
        tally = cls(model, rule, deduplicate=saved.deduplicate, late=saved.late, **settings)
        if (tally.model, tally.rule) == (saved.model, saved.rule):
            return saved
        if other == "refuse":
            name, got, was = "rule", cast("Any", rule), cast("Any", saved.rule)
            if was is None and rule is None:
                name, got, was = "model", model, saved.model
            advice = f'pass {name}=, that or another with other="move"'
            if rule is not None or model is not None:
                advice = 'other="move" moves them to the given one'
            raise InputError(
                f"{source}: {name} is {got!r}, expected {was!r}, by which the saved votes were "
                f"decided; {advice}",
                argument=name,
            )
        tally.n_late, tally._late_votes = saved.n_late, saved._late_votes
        if saved._kernel is not None:
            saved._kernel.reopen()
            tally._take(saved._kernel)
        return tally

    @classmethod
    def _restored(cls, data: bytes, source: str = "state") -> OnlineTally:
        """Return the tally that `to_bytes` wrote, with its own model and rule."""
        if data[:2] == b"PK":
            return cls._of_version_1(data, source)
        try:
            kernel, text = _core.RunningTally.from_bytes(data)
            header = json.loads(text)
        except (InputError, ValueError) as error:
            raise InputError(f"{source}: not a btdagg tally, or a damaged one: {error}") from None

        def restored(fields: dict[str, Any]) -> OnlineTally:
            tally = cls._of_header(fields)
            if not fields["is_empty"]:
                tally._take(kernel)
            return tally

        return _FILE.value(header, source, restored)

    @classmethod
    def _of_version_1(cls, data: bytes, source: str) -> OnlineTally:
        try:
            require_zip(io.BytesIO(data), len(data), source)
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays["header"].tobytes())
        except MemoryError:
            raise
        except Exception as error:  # whatever zipfile, zlib, NumPy and json say of damaged bytes
            raise _FILE.damaged(source, error) from None

        def restored(fields: dict[str, Any]) -> OnlineTally:
            tally = cls._of_header(fields)
            if fields["lanes"] is not None:
                texts = (arrays["text"], 0, arrays["ends"]) if "text" in arrays else None
                kernel = tally._new(bool(tally.deduplicate), texts is not None)
                named = fields["lanes"]
                lanes = [(kernel.channel(judge, order), block) for judge, order, block in named]
                ids = arrays["ids"] if texts is None else texts
                kernel.absorb(ids, arrays["reported"], arrays["planes"].ravel(), lanes)
                tally._take(kernel)
            return tally

        return _FILE_1.value(header, source, restored)

    @classmethod
    def _of_header(cls, fields: dict[str, Any]) -> OnlineTally:
        by_rule, by_model = fields["rule"], fields["model"]
        tally = cls(
            None if by_model is None else DavidsonModel.from_json(by_model),
            None if by_rule is None else StoppingRule.from_json(by_rule),
            deduplicate=fields["deduplicate"],
            late=fields["late"],
            differing=fields.get("differing", "neither"),
            max_items=fields.get("max_items"),
        )
        tally.n_late = int(fields["n_late"])
        tally._late_votes = [LateVote(*vote) for vote in fields.get("late_votes", ())]
        return tally

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return OnlineTally._restored, (self.to_bytes(),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state; a file that is there is replaced whole or not at all."""
        replace_file(path, self.to_bytes())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
        *,
        other: Literal["refuse", "move"] = "refuse",
    ) -> OnlineTally:
        """Read a state that `save` wrote, as `from_bytes` does."""
        return cls.from_bytes(read_whole(path), model, rule, other=other, source=str(path))

    def _take(self, kernel: _core.RunningTally) -> None:
        """Hold the votes of a kernel."""
        self._kernel = kernel
        self._channels = {name: number for number, name in enumerate(kernel.channels)}

    def _kernel_for(self, deduplicate: bool, has_texts: bool) -> _core.RunningTally:
        """Return the kernel, or one that may become it."""
        return self._new(deduplicate, has_texts) if self._kernel is None else self._kernel

    def _renew(self) -> None:
        """Let go of a kernel without items, with all the judges that it has heard of."""
        if self._kernel is not None and not len(self._kernel):
            self._kernel, self._channels = None, {}

    def _new(self, deduplicate: bool, has_texts: bool) -> _core.RunningTally:
        corrects = self.differing == "last"
        return _core.RunningTally(deduplicate, corrects, has_texts, self.max_items)


def _id_of(ids: _Ids, row: int) -> int | str:
    if not isinstance(ids, tuple):
        return int(ids[row])
    data, start, ends = ids
    first = int(ends[row - 1]) if row else start
    return data[first : int(ends[row])].tobytes().decode()


def _within(
    rule: StoppingRule, counts: Any, covariates: Any
) -> tuple[NDArray[np.bool_], dict[str, Any] | None]:
    within = counts.sum(axis=1) <= rule.n
    names = [covariate.name for covariate in rule.model.covariates]
    if not names:
        return within, None
    columns = columns_of(covariates, len(counts), names)
    return within, {name: values[within] for name, values in columns.items()}


def _sample_numbers(samples: ArrayLike | None, n_rows: int) -> NDArray[np.uint32] | None:
    if samples is None:
        return None
    array = as_numbers(samples, "samples")
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        got = f"{array.dtype} of shape {array.shape}"
        raise InputError(f"samples is {got}, expected integers", argument="samples")
    same_length("samples", len(array), "items", n_rows)
    good = (array >= 0) & (array <= _MAX_SAMPLE)
    require_rows(good, array, "samples", f"an integer from 0 to {_MAX_SAMPLE}")
    return np.ascontiguousarray(array, dtype=np.uint32)


def _as_array(ids: NDArray[np.int64] | list[str]) -> NDArray[Any]:
    return np.array(ids, dtype=object) if isinstance(ids, list) else ids


def _number_channels(
    judges: ArrayLike | str,
    orders: ArrayLike | str,
    n_rows: int,
    channels: dict[tuple[str, str], int],
    number_of: Callable[[str, str], int],
) -> NDArray[np.uint32] | None:
    """Return the number of each row's judge and order, or None where it is 0 throughout."""
    if isinstance(judges, str) and isinstance(orders, str):
        (number,) = _numbered([(judges, orders)], channels, number_of)
        return np.full(n_rows, number, dtype=np.uint32) if number else None
    columns: list[Iterable[str]] = []
    for name, values in (("judges", judges), ("orders", orders)):
        if isinstance(values, str):
            columns.append(repeat(values, n_rows))
            continue
        expect(np.ndim(values), name, values, "a text, or one for each vote")
        names = as_names(values, name).tolist()
        same_length(name, len(names), "items", n_rows)
        expect(all(isinstance(value, str) for value in names), name, values, "strings")
        columns.append(names)
    pairs: Iterable[tuple[str, str]] = zip(*columns, strict=True)
    numbers = _numbered([*pairs], channels, number_of)
    return np.array(numbers, dtype=np.uint32) if any(numbers) else None


def _numbered(
    pairs: list[tuple[str, str]],
    channels: dict[tuple[str, str], int],
    number_of: Callable[[str, str], int],
) -> list[int]:
    """Return the numbers of judges and orders, of which the new ones are asked for."""
    for pair in set(pairs) - channels.keys():
        with reworded(UnicodeEncodeError, "judges and orders: {error}"):
            channels[pair] = number_of(*pair)
    return [channels[pair] for pair in pairs]


def _as_ids(items: Any) -> _Ids:
    library = type(items).__module__.partition(".")[0]
    if library == "polars":
        if items.dtype.is_integer():
            items, library = items.to_numpy(), ""
        elif find_spec("pyarrow") is None:
            items, library = items.to_list(), ""
        else:
            items, library = items.rechunk().to_arrow(), "pyarrow"
    if library == "pyarrow":
        return _of_arrow(items)
    array = as_id_array(items.to_numpy() if library == "pandas" else items)
    if array.dtype.kind in "OTU":
        data, ends = _core.pack_texts(array.tolist())
        return data, 0, ends
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(argument="items", got=array.max(), expected="integers below 2**63")
    return np.ascontiguousarray(array, dtype=np.int64)


def _of_arrow(items: Any) -> _Ids:
    import pyarrow as pa

    if isinstance(items, pa.ChunkedArray):
        items = items.combine_chunks()
    if items.null_count:
        row = int(np.flatnonzero(items.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(argument="items", row=row, got=None, expected="an integer or a string")
    if pa.types.is_integer(items.type):
        return _as_ids(items.to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(items.type):
        items = items.dictionary_decode()
    if pa.types.is_string(items.type) or pa.types.is_string_view(items.type):
        items = items.cast(pa.large_string())
    expect(pa.types.is_large_string(items.type), "items", items.type, "integers or strings")
    if not len(items):
        return np.empty(0, dtype=np.uint8), 0, np.empty(0, dtype=np.int64)
    _, offsets, data = items.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[items.offset : items.offset + len(items) + 1]
    texts = np.frombuffer(data if data is not None else b"", dtype=np.uint8)
    return texts, int(bounds[0]), bounds[1:]
