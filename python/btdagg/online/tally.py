"""Running tallies: votes in any order, with repeats, from many sources."""

from __future__ import annotations

import io
import json
import os
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.files import FileFormat, read_whole, replace_file
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_integer,
    as_labels,
    as_numbers,
    same_index,
    same_length,
    unmasked,
)
from btdagg.model.davidson import DavidsonModel
from btdagg.online.item_ids import Ids, as_ids
from btdagg.online.rule import StoppingRule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_FILE = FileFormat("btdagg.tally", "tally")
_MAX_SAMPLE = 4095


@readable
class Settled(NamedTuple):
    """Items that have become settled.

    Attributes
    ----------
    ids : (n,) array of int64, or of object holding str
        In ascending order.
    labels : (n,) array of int8
        What the rule decides: -1, 0 or +1.
    counts : (n, 3) array of int64
        Votes in label order.
    """

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


class OnlineTally:
    """Counts of items from votes in any order, each sample counted once.

    The tally stores the vote of each sample. Adding a vote again changes nothing, and merging takes
    the union of two tallies, so neither order nor repetition matters. Two different votes of one
    sample are a conflict: the sample counts for neither, and `conflicts` lists it.

    Ids are listed in ascending order. Methods can be called from several threads.

    Parameters
    ----------
    model : DavidsonModel, optional
        Decides the counts. By default the model of the rule.
    rule : StoppingRule, optional
        Says which items are settled. An item with more than `n` votes is settled, and the model
        decides it from all its votes.
    deduplicate : bool
        If False, samples are ignored: every row is one more vote, and merging adds.
    late : {"refuse", "drop"}
        What to do with a new vote for an item that `settle` has reported: raise and add nothing, or
        drop the vote and count it in `n_late`.

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
        deduplicate: bool = True,
        late: Literal["refuse", "drop"] = "refuse",
    ) -> None:
        if not isinstance(model, DavidsonModel | None):
            raise InputError(argument="model", came=model, expected="a DavidsonModel")
        if not isinstance(rule, StoppingRule | None):
            raise InputError(argument="rule", came=rule, expected="a StoppingRule")
        if rule is not None and model not in (None, rule.model):
            raise InputError(f"model is {model!r}, expected that of the rule, {rule.model!r}")
        if late not in ("refuse", "drop"):
            raise InputError(argument="late", came=late, expected="'refuse' or 'drop'")
        self.rule = rule
        self.model = rule.model if rule is not None else model
        self.deduplicate = bool(deduplicate)
        self.late: Literal["refuse", "drop"] = late
        self.n_late = 0
        self._kernel: _core.RunningTally | None = None  # by the kind of the first ids
        self._channels: dict[tuple[str, str], int] = {}  # judge and order
        self._lock = RLock()

    def __len__(self) -> int:
        with self._lock:
            return 0 if self._kernel is None else len(self._kernel)

    def __repr__(self) -> str:
        by = "" if self.model is None else f", by {self.model if self.rule is None else self.rule}"
        return f"<OnlineTally of {len(self)} items{by}>"

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
            Item of each vote: a list, a NumPy array, a series or an Arrow array.
        votes : (m,) array of -1, 0, 1
            Votes from A's point of view. Leave out missing votes; they are not ties.
        samples : (m,) array of integers from 0 to 4095
            Number of the sample. A sample is identified by item, judge, order and number.
        judges, orders : str or (m,) array of str
            One for all votes, or one for each. Counts are sums over judges and orders.
        n_threads : int
            Does not change a bit of the result.

        Raises
        ------
        InputError
            If lengths disagree, a value is out of range, ids are of another kind than before, or a
            vote is late; the message names the row.
        """
        ids, cast = as_ids(items), as_labels(votes, "votes")
        n_rows = len(ids[2]) if isinstance(ids, tuple) else len(ids)
        same_length("votes", len(cast), "items", n_rows)
        same_index(items=items, votes=votes, samples=samples, judges=judges, orders=orders)
        numbers = self._samples(samples, n_rows)
        n_threads = as_integer(n_threads, "n_threads", 1)
        with self._lock:
            known = dict(self._channels)
            channels = _number_channels(judges, orders, n_rows, known)
            if not n_rows:
                return  # which says nothing of the kind of ids
            kernel = self._of_kind(has_texts=isinstance(ids, tuple))
            drops = self.late == "drop"
            self.n_late += kernel.add(ids, cast, numbers, channels, drops, n_threads)
            self._kernel, self._channels = kernel, known

    def add_one(
        self,
        item: int | str,
        vote: int,
        sample: int | None = None,
        judge: str = "",
        order: str = "",
    ) -> None:
        """Add one vote; see `add`, which takes many much faster."""
        samples = None if sample is None else [sample]
        self.add([item], [vote], samples, judges=judge, orders=order)

    def merge(self, other: OnlineTally) -> None:
        """Add the votes of another tally, which stays unchanged.

        Items that either tally has reported as settled count as reported.

        Raises
        ------
        InputError
            If the other's model, rule, kind of ids, `deduplicate` or `late` is another; this tally
            is then as it was.
        """
        if not isinstance(other, OnlineTally):
            raise InputError(argument="other", came=other, expected="an OnlineTally")
        for name in ("model", "rule", "deduplicate", "late"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise InputError(f"{name} of other is {theirs!r}, expected {mine!r} as here")
        with other._lock:
            parts = None if other._kernel is None else other._kernel.export()
            names, n_late = list(other._channels), other.n_late
        with self._lock:
            if parts is not None:
                ids, reported, planes, lanes = parts
                kernel = self._of_kind(has_texts=isinstance(ids, list))
                known = self._channels
                lanes = [(known.setdefault(names[n], len(known)), block) for n, block in lanes]
                kernel.absorb(as_ids(ids), reported, planes, lanes)
                self._kernel = kernel
            self.n_late += n_late

    def counts(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Ids in ascending order, (n,), and their counts, (n, 3) in label order."""
        with self._lock:
            if self._kernel is None:
                return np.empty(0, dtype=np.int64), np.empty((0, 3), dtype=np.int64)
            ids, counts = self._kernel.counts()
        return _as_array(ids), counts

    def counts_one(self, item: int | str) -> tuple[int, int, int]:
        """Counts of one item in label order; zeros for an unknown item.

        Raises
        ------
        InputError
            If the id is no integer or string, or of another kind than the others.
        """
        ids = as_ids([item])
        with self._lock:
            minus, tie, plus = self._of_kind(has_texts=isinstance(ids, tuple)).counts_of(ids)[0]
        return int(minus), int(tie), int(plus)

    def decide(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Ids in ascending order and their labels, from the rule if there is one, or the model."""
        model = self._model()
        ids, counts = self.counts()
        labels = model.decide(counts)
        if self.rule is not None:
            within = counts.sum(axis=1) <= self.rule.n
            labels[within] = self.rule.decide(counts[within])
        return ids, labels

    def predict_proba(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Ids in ascending order and the model's probabilities given the votes so far, (n, 3)."""
        model = self._model()
        ids, counts = self.counts()
        return ids, model.predict_proba(counts)

    def settle(self) -> Settled:
        """Report the items that have become settled since the last call."""
        if self.rule is None:
            raise InputError("rule is None, expected a StoppingRule to settle items by")
        with self._lock:
            if self._kernel is None:
                ids: Any = np.empty(0, dtype=np.int64)
                return Settled(ids, np.empty(0, np.int8), np.empty((0, 3), np.int64))
            ids, labels, counts = self._kernel.settle(self.rule._kernel)
        return Settled(_as_array(ids), labels, counts)

    def conflicts(self) -> list[Conflict]:
        """List the samples that came with different votes, by item in ascending order."""
        with self._lock:
            if self._kernel is None or not self.deduplicate:
                return []
            ids, _, planes, lanes = self._kernel.export()
            names = list(self._channels)
        by_label = planes.reshape(-1, len(lanes), 3)
        minus, tie, plus = by_label[:, :, 0], by_label[:, :, 1], by_label[:, :, 2]
        differ = (minus & tie) | (minus & plus) | (tie & plus)
        conflicts = []
        for row, lane in np.argwhere(differ).tolist():
            channel, block = lanes[lane]
            bits = [int(plane) for plane in by_label[row, lane]]
            for bit in range(64):
                if int(differ[row, lane]) >> bit & 1:
                    votes = tuple(
                        v for v, plane in zip((-1, 0, 1), bits, strict=True) if plane >> bit & 1
                    )
                    item = ids[row] if isinstance(ids, list) else int(ids[row])
                    conflicts.append(Conflict(item, *names[channel], 64 * block + bit, votes))
        return sorted(conflicts, key=lambda conflict: conflict[:4])

    def to_bytes(self) -> bytes:
        """Return the state as bytes, which are the same for the same votes in any order."""
        with self._lock:
            names = list(self._channels)
            parts = None if self._kernel is None else self._kernel.export()
            header: dict[str, Any] = {
                "rule": None if self.rule is None else self.rule.to_json(),
                "model": None if self.model is None else self.model.to_json(),
                "deduplicate": self.deduplicate,
                "late": self.late,
                "n_late": self.n_late,
                "lanes": None,
            }
        arrays: dict[str, NDArray[Any]] = {}
        if parts is not None:
            ids, arrays["reported"], planes, lanes = parts
            # In order, so that equal tallies are alike.
            named = [(*names[channel], block) for channel, block in lanes]
            order = sorted(range(len(lanes)), key=named.__getitem__)
            header["lanes"] = [named[lane] for lane in order]
            arrays["planes"] = planes.reshape(-1, len(lanes), 3)[:, order]
            if isinstance(ids, list):
                arrays["text"], arrays["ends"] = _core.pack_texts(ids)
            else:
                arrays["ids"] = ids
        text = json.dumps(_FILE.with_header(header))
        arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub mistakes arrays for a flag
        return file.getvalue()

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
        source: str = "state",
    ) -> OnlineTally:
        """Return the tally that `to_bytes` wrote.

        If a model or a rule is given, the state must have been made with it. Errors begin with
        `source`.

        Raises
        ------
        InputError
            If the state is truncated or damaged, of a later version, or of another model or rule.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays["header"].tobytes())
        except MemoryError:
            raise
        except Exception as error:  # whatever zipfile, zlib, NumPy and json say of damaged bytes
            raise _FILE.damaged(source, error) from None

        def restored(fields: dict[str, Any]) -> OnlineTally:
            by_rule, by_model = fields["rule"], fields["model"]
            tally = cls(
                None if by_model is None else DavidsonModel.from_json(by_model),
                None if by_rule is None else StoppingRule.from_json(by_rule),
                deduplicate=fields["deduplicate"],
                late=fields["late"],
            )
            for name, expected in (("rule", rule), ("model", model)):
                own = getattr(tally, name)
                if expected is not None and expected != own:
                    raise InputError(f"state of another {name}, {own!r}, expected {expected!r}")
            tally.n_late = int(fields["n_late"])
            if fields["lanes"] is not None:
                tally._restore(fields["lanes"], arrays)
            return tally

        return _FILE.value(header, source, restored)

    def _restore(self, named: list[tuple[str, str, int]], arrays: dict[str, NDArray[Any]]) -> None:
        known = self._channels
        lanes = [(known.setdefault((j, order), len(known)), block) for j, order, block in named]
        has_texts = "text" in arrays
        ids: Ids = (arrays["text"], 0, arrays["ends"]) if has_texts else arrays["ids"]
        self._kernel = self._of_kind(has_texts=has_texts)
        planes = np.ascontiguousarray(arrays["planes"]).ravel()
        self._kernel.absorb(ids, arrays["reported"], planes, lanes)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return OnlineTally.from_bytes, (self.to_bytes(),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state; a file that is there is replaced whole or not at all."""
        replace_file(path, self.to_bytes())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
    ) -> OnlineTally:
        """Read a state that `save` wrote; see `from_bytes`."""
        return cls.from_bytes(read_whole(path), model=model, rule=rule, source=str(path))

    def _model(self) -> DavidsonModel:
        if self.model is None:
            raise InputError("model is None, expected a DavidsonModel to decide by")
        return self.model

    def _samples(self, samples: ArrayLike | None, n_rows: int) -> NDArray[np.uint32] | None:
        if self.deduplicate and samples is None:
            raise InputError(
                "samples is None, expected the number of each vote's sample; deduplicate=False "
                "counts every row"
            )
        if samples is None:
            return None
        if not self.deduplicate:
            raise InputError("samples is given, expected None where deduplicate is False")
        array = as_numbers(samples, "samples")
        if array.ndim != 1:
            raise InputError(f"samples has shape {array.shape}, expected one dimension")
        same_length("samples", len(array), "items", n_rows)
        if array.dtype.kind not in "iu" and array.size:
            raise InputError(f"samples has dtype {array.dtype}, expected integers")
        if array.size and (array.min() < 0 or array.max() > _MAX_SAMPLE):
            row = int(np.argmax((array < 0) | (array > _MAX_SAMPLE)))
            expected = f"an integer from 0 to {_MAX_SAMPLE}"
            raise InputError(argument="samples", row=row, came=int(array[row]), expected=expected)
        return np.ascontiguousarray(array, dtype=np.uint32)

    def _of_kind(self, *, has_texts: bool) -> _core.RunningTally:
        """Return the kernel for ids of this kind, a new one where there is none yet."""
        if self._kernel is None:
            return _core.RunningTally(self.deduplicate, has_texts)
        if self._kernel.has_texts != has_texts:
            kinds = ["integers", "strings"]
            came, expected = kinds[has_texts], kinds[self._kernel.has_texts]
            raise InputError(f"items are {came}, expected {expected} as before")
        return self._kernel


def _as_array(ids: NDArray[np.int64] | list[str]) -> NDArray[Any]:
    return np.array(ids, dtype=object) if isinstance(ids, list) else ids


def _number_channels(
    judges: ArrayLike | str, orders: ArrayLike | str, n_rows: int, known: dict[tuple[str, str], int]
) -> NDArray[np.uint32] | None:
    """Return the number of each row's judge and order, or None where it is 0 throughout.

    Pairs that are not `known` are added to it.
    """
    columns = []
    for name, values in (("judges", judges), ("orders", orders)):
        if isinstance(values, str):
            columns.append((np.zeros(n_rows, dtype=np.int64), [values]))
            continue
        array = np.asarray(unmasked(values, name))
        if array.ndim != 1:
            raise InputError(f"{name} has shape {array.shape}, expected one dimension")
        same_length(name, len(array), "items", n_rows)
        for row, value in enumerate(array.astype(object)):
            if not isinstance(value, str):
                raise InputError(argument=name, row=row, came=value, expected="a string")
        names, codes = np.unique(array.astype(str), return_inverse=True)
        columns.append((codes, names.tolist()))
    (judge, judge_names), (order, order_names) = columns
    pairs, inverse = np.unique(judge * len(order_names) + order, return_inverse=True)
    numbers = []
    for pair in pairs.tolist():
        of_judge, of_order = divmod(pair, len(order_names))
        channel = judge_names[of_judge], order_names[of_order]
        numbers.append(known.setdefault(channel, len(known)))
    if not any(numbers):
        return None
    return np.array(numbers, dtype=np.uint32)[inverse]
