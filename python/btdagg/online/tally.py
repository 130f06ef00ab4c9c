"""Running tallies: votes in any order, with repeats, from many sources."""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.files import read_whole, replace_file
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer, as_labels, as_numbers, same_index, same_length
from btdagg.model.davidson import DavidsonModel
from btdagg.online.channels import number_channels
from btdagg.online.item_ids import Texts, as_ids, check_id, ids_as_array, rows_of, shown_id
from btdagg.online.rule import StoppingRule
from btdagg.online.state import TallyState, pack, unpack

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_VOTES = (-1, 0, 1)
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
    sample are a conflict: the sample counts for neither, and `conflicts` lists it. (Keeping the
    first would make the result depend on the order; refusing the second would stop a stream for one
    bad row.)

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

    Raises
    ------
    InputError
        If an argument is of another type or value, or model and rule disagree.

    Notes
    -----
    Files and data frames follow the same rule, except that a conflict is an error there: see
    `btdagg.read_votes`.

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
        if rule is not None and not isinstance(rule, StoppingRule):
            raise InputError(f"rule is {rule!r}, expected a StoppingRule")
        if model is not None and not isinstance(model, DavidsonModel):
            raise InputError(f"model is {model!r}, expected a DavidsonModel")
        if rule is not None and model not in (None, rule.model):
            raise InputError(f"model is {model!r}, expected that of the rule, {rule.model!r}")
        if late not in ("refuse", "drop"):
            raise InputError(f"late is {late!r}, expected 'refuse' or 'drop'")
        if not isinstance(deduplicate, bool | np.bool_):
            raise InputError(f"deduplicate is {deduplicate!r}, expected True or False")
        self.rule = rule
        self.model = rule.model if rule is not None else model
        self.deduplicate = bool(deduplicate)
        self.late: Literal["refuse", "drop"] = late
        self.n_late = 0
        self._kernel: _core.RunningTally | None = None  # by the kind of the first ids
        self._channels: dict[tuple[str, str], int] = {}
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
        n_rows = len(ids.ends) if isinstance(ids, Texts) else len(ids)
        same_length("votes", len(cast), "items", n_rows)
        same_index(items=items, votes=votes, samples=samples, judges=judges, orders=orders)
        numbers = self._samples(samples, n_rows)
        threads = as_integer(n_threads, "n_threads", 1)
        with self._lock:
            known = dict(self._channels)
            channels = number_channels(judges, orders, n_rows, known)
            if not n_rows:
                return  # which says nothing of the kind of ids
            kernel = self._of_kind(has_texts=isinstance(ids, Texts))
            late = kernel.late(ids, cast, numbers, channels)
            if late is not None and late.any():
                if self.late == "refuse":
                    row = int(late.argmax())
                    raise InputError(
                        f"items[{row}] is {shown_id(ids, row)}, which is settled, expected votes "
                        "of "
                        "open items; late='drop' leaves them out"
                    )
                kept = np.flatnonzero(~late)
                ids, cast = rows_of(ids, kept), cast[kept]
                numbers = None if numbers is None else numbers[kept]
                channels = None if channels is None else channels[kept]
            kernel.add(ids, cast, numbers, channels, threads)
            self._kernel, self._channels = kernel, known
            self.n_late += 0 if late is None else int(late.sum())

    def add_one(
        self,
        item: int | str,
        vote: int,
        sample: int | None = None,
        judge: str = "",
        order: str = "",
    ) -> None:
        """Add one vote; see `add`.

        Raises
        ------
        InputError
            If a value is out of range, the id of another kind than before, or the vote late.
        """
        check_id(item)
        if isinstance(vote, bool) or not isinstance(vote, int | np.integer) or vote not in _VOTES:
            raise InputError(f"vote is {vote!r}, expected -1, 0 or 1")
        for name, value in (("judge", judge), ("order", order)):
            if not isinstance(value, str):
                raise InputError(f"{name} is {value!r}, expected a string")
        if self.deduplicate or sample is not None:
            self._wants_samples(sample is not None)
        number = 0 if sample is None else as_integer(sample, "sample", 0, _MAX_SAMPLE)
        with self._lock:
            kernel = self._of_kind(has_texts=isinstance(item, str))
            channel = self._channels.get((judge, order), len(self._channels))
            if not kernel.add_one(item, int(vote), number, channel):
                if self.late == "refuse":
                    raise InputError(
                        f"item is {item!r}, which is settled, expected votes of open items; "
                        "late='drop' leaves them out"
                    )
                self.n_late += 1
                return
            self._kernel = kernel
            self._channels[judge, order] = channel

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
            raise InputError(f"other is {type(other).__name__}, expected an OnlineTally")
        for name in ("model", "rule", "deduplicate", "late"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise InputError(f"{name} of other is {theirs!r}, expected {mine!r} as here")
        with other._lock:
            theirs = None if other._kernel is None else other._kernel.copy()
            channels, n_late = dict(other._channels), other.n_late
        with self._lock:
            known = dict(self._channels)
            numbers = [known.setdefault(channel, len(known)) for channel in channels]
            if theirs is not None:
                kernel = self._of_kind(has_texts=theirs.has_texts)
                kernel.merge(theirs, numbers)
                self._kernel = kernel
            self._channels = known
            self.n_late += n_late

    def counts(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Ids in ascending order, (n,), and their counts, (n, 3) in label order."""
        with self._lock:
            if self._kernel is None:
                return np.empty(0, dtype=np.int64), np.empty((0, 3), dtype=np.int64)
            ids, counts = self._kernel.counts()
        return ids_as_array(ids), counts

    def counts_one(self, item: int | str) -> tuple[int, int, int]:
        """Counts of one item in label order; zeros for an unknown item.

        Raises
        ------
        InputError
            If the id is no integer or string, or of another kind than the others.
        """
        check_id(item)
        with self._lock:
            kernel = self._of_kind(has_texts=isinstance(item, str))
            found = kernel.counts_one(item)
        minus, tie, plus = found or (0, 0, 0)
        return minus, tie, plus

    def decide(self) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Ids in ascending order and their labels, from the rule if there is one, or the model.

        Raises
        ------
        InputError
            If the tally has no model.
        """
        model = self._model()
        ids, counts = self.counts()
        labels = model.decide(counts)
        if self.rule is not None:
            within = counts.sum(axis=1) <= self.rule.n
            labels[within] = self.rule.decide(counts[within])
        return ids, labels

    def predict_proba(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Ids in ascending order and the model's probabilities given the votes so far, (n, 3).

        Raises
        ------
        InputError
            If the tally has no model.
        """
        model = self._model()
        ids, counts = self.counts()
        return ids, model.predict_proba(counts)

    def settle(self) -> Settled:
        """Report the items that have become settled since the last call.

        Raises
        ------
        InputError
            If the tally has no rule.
        """
        if self.rule is None:
            raise InputError("rule is None, expected a StoppingRule to settle items by")
        with self._lock:
            if self._kernel is None:
                ids: Any = np.empty(0, dtype=np.int64)
                return Settled(ids, np.empty(0, np.int8), np.empty((0, 3), np.int64))
            ids, labels, counts = self._kernel.settle(self.rule._kernel)
        return Settled(ids_as_array(ids), labels, counts)

    def conflicts(self) -> list[Conflict]:
        """List the samples that came with different votes, by item in ascending order."""
        with self._lock:
            found = [] if self._kernel is None else self._kernel.conflicts()
            if not found:
                return []
            ids, _ = self.counts()
            names = list(self._channels)
        listed = []
        for row, channel, sample, labels in found:
            votes = tuple(vote for vote, came in zip((-1, 0, 1), labels, strict=True) if came)
            listed.append(Conflict(ids[row], *names[channel], sample, votes))
        return sorted(listed, key=lambda conflict: conflict[:4])

    def to_bytes(self) -> bytes:
        """Return the state as bytes, which are the same for the same votes in any order."""
        with self._lock:
            kernel = self._kernel
            parts = None if kernel is None else kernel.export()
            return pack(
                TallyState(
                    None if self.rule is None else self.rule.to_json(),
                    None if self.model is None else self.model.to_json(),
                    self.deduplicate,
                    self.late,
                    self.n_late,
                    list(self._channels),
                    parts,
                )
            )

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

        Parameters
        ----------
        data : bytes
            What `to_bytes` gave.
        model, rule : optional
            If given, the state must have been made with this model and this rule.
        source : str
            What errors call the state.

        Raises
        ------
        InputError
            If the state is truncated or damaged, of a later version, or of another model or rule.
        """
        state = unpack(data, source)
        try:
            own_rule = None if state.rule is None else StoppingRule.from_json(state.rule)
            own_model = None if state.model is None else DavidsonModel.from_json(state.model)
            tally = cls(own_model, own_rule, deduplicate=state.deduplicate, late=state.late)
            for name, given in (("rule", rule), ("model", model)):
                own = getattr(tally, name)
                if given is not None and given != own:
                    raise InputError(f"state of another {name}, {own!r}, expected {given!r}")
            tally.n_late = as_integer(state.n_late, "n_late", 0)
            tally._channels = {channel: n for n, channel in enumerate(state.channels)}
            if state.parts is not None:
                ids, reported, planes, lanes = state.parts
                rows = (ids[0], 0, ids[1]) if isinstance(ids, tuple) else ids
                tally._kernel = _core.RunningTally.restore(
                    tally.deduplicate, rows, reported, planes.ravel(), lanes
                )
        except (InputError, OverflowError, TypeError) as error:
            raise InputError(f"{source}: {error}") from None
        return tally

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return OnlineTally.from_bytes, (self.to_bytes(),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state; a file that is there is replaced whole or not at all.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        replace_file(path, self.to_bytes())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        model: DavidsonModel | None = None,
        rule: StoppingRule | None = None,
    ) -> OnlineTally:
        """Read a state that `save` wrote; see `from_bytes`.

        Raises
        ------
        InputError
            If the file cannot be read, and where `from_bytes` does.
        """
        return cls.from_bytes(read_whole(path), model=model, rule=rule, source=str(path))

    def _model(self) -> DavidsonModel:
        if self.model is None:
            raise InputError("model is None, expected a DavidsonModel to decide by")
        return self.model

    def _wants_samples(self, given: bool) -> None:
        if self.deduplicate and not given:
            raise InputError(
                "samples is None, expected the number of each vote's sample; deduplicate=False "
                "counts every row"
            )
        if given and not self.deduplicate:
            raise InputError("samples is given, expected None where deduplicate is False")

    def _samples(self, samples: ArrayLike | None, n_rows: int) -> NDArray[np.uint32] | None:
        self._wants_samples(samples is not None)
        if samples is None:
            return None
        array = as_numbers(samples, "samples")
        if array.ndim != 1:
            raise InputError(f"samples has shape {array.shape}, expected one dimension")
        same_length("samples", len(array), "items", n_rows)
        if array.dtype.kind not in "iu" and array.size:
            raise InputError(f"samples has dtype {array.dtype}, expected integers")
        if array.size and (array.min() < 0 or array.max() > _MAX_SAMPLE):
            row = int(np.argmax((array < 0) | (array > _MAX_SAMPLE)))
            raise InputError(
                f"samples[{row}] is {array[row]}, expected an integer from 0 to {_MAX_SAMPLE}"
            )
        return np.ascontiguousarray(array, dtype=np.uint32)

    def _of_kind(self, *, has_texts: bool) -> _core.RunningTally:
        """Return the kernel for ids of this kind, a new one where there is none yet."""
        if self._kernel is None:
            return _core.RunningTally(self.deduplicate, has_texts)
        if self._kernel.has_texts != has_texts:
            kinds = ["integers", "strings"]
            came, wanted = kinds[has_texts], kinds[self._kernel.has_texts]
            raise InputError(f"items are {came}, expected {wanted} as before")
        return self._kernel
