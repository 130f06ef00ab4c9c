"""What the page asks for: items one after the other, and what a rater says of them."""

from __future__ import annotations

import math
import unicodedata
from statistics import median
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg.labelling.agreement import agreement
from btdagg.labelling.assignment import texts_digest
from btdagg.labelling.markup import differences, markdown, plain
from btdagg.labelling.store import Answer, LabelStore
from btdagg.report.wording import LABEL_NAMES, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from btdagg.labelling.assignment import Assignment
    from btdagg.labelling.outcome import Outcome

LONGEST_NOTE = 10_000
_LONGEST_NAME = 80
_MOST_SECONDS = 86_400.0
_MOST_DISPUTED = 20
_CHOICES = ("first", "tie", "second", "skip")


class Session:
    """Raters at work on an assignment. Its methods may be called from several threads.

    Nothing that they return has an item's id, a file's name or a column besides the texts: these
    may tell whose responses they are.

    Parameters
    ----------
    store : LabelStore
    assignment : Assignment
    outcome : Outcome

    Raises
    ------
    InputError
        If an item was labelled with other texts.
    """

    def __init__(self, store: LabelStore, assignment: Assignment, outcome: Outcome) -> None:
        self._store, self._assignment, self._outcome = store, assignment, outcome
        # Of each rater, as of the last time that the page was loaded: to read all anew for every
        # label would take longer than to keep it.
        self._progress: dict[str, _RaterProgress] = {}
        for each in store.answers():
            if not assignment.known(each.item):
                continue
            if each.texts != texts_digest(assignment.pair(each.item)):
                raise InputError(
                    f"{store.name}: item {each.item!r} was labelled with other texts; give it "
                    "another id, or use another store"
                )

    def view(self, rater: str, key: str | None = None) -> dict[str, Any]:
        """Return an item as a rater sees it: the next without an answer, unless one is named.

        Raises
        ------
        InputError
            If the name of the rater or the key is none.
        """
        rater, assignment = rater_name(rater), self._assignment
        done = self._progress[rater] = _RaterProgress(assignment, self._store.brief(rater))
        if key is not None:
            return self._shown(self._item(key), rater, done)
        return self._next(rater, done)

    def keep(self, rater: str, key: str, choice: str, seconds: float, note: str) -> dict[str, Any]:
        """Keep what a rater chose, and return the next item; what was chosen is durable then.

        Raises
        ------
        InputError
            If something of it is not what the page sends.
        """
        rater, item = rater_name(rater), self._item(key)
        if choice not in _CHOICES:
            raise InputError(
                f"choice is {shown(str(choice))[:40]!r}, expected {', '.join(_CHOICES)}"
            )
        if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise InputError("seconds is no number of at least 0")
        if not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise InputError(f"note is no text of at most {LONGEST_NOTE:,} characters")
        sides = self._assignment.sides(item, rater)
        label = {"first": 1, "tie": 0, "second": -1, "skip": None}[choice]
        if label is not None and sides == "BA":
            label = -label
        seconds = float(min(seconds, _MOST_SECONDS))
        self._store.keep(
            Answer(
                item=item,
                rater=rater,
                label=label,
                seconds=seconds,
                note=_storable(note.strip()),
                sides=sides,
                texts=texts_digest(self._assignment.pair(item)),
            )
        )
        done = self._progress.get(rater)
        if done is None:  # since the start of the server
            return self.view(rater)
        done.add(item, label, seconds)
        return self._next(rater, done)

    def differences(self, rater: str, key: str) -> dict[str, str]:
        """Return both responses as they are shown to a rater, with marks where they differ."""
        item = self._item(key)
        first, second = self._texts(item, rater_name(rater))
        marked = differences(first, second)
        return dict(zip(("first", "second"), marked, strict=True))

    def _item(self, key: str) -> str:
        found = self._assignment.item(key) if isinstance(key, str) else None
        if found is None:
            raise InputError("this pair is not among those to be labelled (any more): reload")
        return found

    def _texts(self, item: str, rater: str) -> tuple[str, str]:
        pair = self._assignment.pair(item)
        is_first = self._assignment.sides(item, rater) == "AB"
        return (pair.a, pair.b) if is_first else (pair.b, pair.a)

    def _pair(self, item: str, rater: str) -> dict[str, Any]:
        pair = self._assignment.pair(item)
        first, second = self._texts(item, rater)
        texts = {"prompt": pair.prompt, "reference": pair.reference}
        texts |= {"first": first, "second": second}
        found: dict[str, Any] = {"key": self._assignment.key(item)}
        for name, text in texts.items():
            made = markdown(text) if text else ""
            source = plain(text) if text else ""
            found[name] = {"markdown": made, "plain": None if source == made else source}
        said = self._store.answer(item, rater)
        found["answer"] = None if said is None else _choice(said, self._assignment, rater)
        found["seconds"] = 0.0 if said is None else said.seconds
        found["note"] = "" if said is None else said.note
        return found

    def _next(self, rater: str, done: _RaterProgress) -> dict[str, Any]:
        items = self._assignment.items
        item = done.first_open()
        if item is not None:
            return self._shown(item, rater, done)
        last = self._assignment.key(items[-1]) if items else None
        found = {"done": True, "rater": rater, "previous": last}
        return {**found, **done.figures(), **self._summary(rater)}

    def _shown(self, item: str, rater: str, done: _RaterProgress) -> dict[str, Any]:
        items, key = self._assignment.items, self._assignment.key
        place = self._assignment.place(item)
        is_followed = place + 1 < len(items) and done.has(item)
        return {
            "done": False,
            "rater": rater,
            **done.figures(),
            **self._pair(item, rater),
            "place": place + 1,
            "previous": key(items[place - 1]) if place else None,
            "next": key(items[place + 1]) if is_followed else None,
        }

    def _summary(self, rater: str) -> dict[str, Any]:
        """What a rater who has answered everything may see."""
        answers = self._store.answers()
        planned = [each for each in answers if each.item in self._assignment]
        found = agreement(planned)
        of_rater = [
            {
                "key": self._assignment.key(item),
                "place": self._assignment.place(item) + 1,
                "labels": {
                    name: self._in_words(label, item, rater) for name, label in labels.items()
                },
            }
            for item, labels in found.disputed[:_MOST_DISPUTED]
        ]
        return {
            "lines": self._outcome.lines(planned),
            "disputed": of_rater,
            "n_disputed": len(found.disputed),
        }

    def _in_words(self, label: int, item: str, rater: str) -> str:
        """A label as the response that it names on the rater's page."""
        name = LABEL_NAMES[label + 1]
        if name == "tie":
            return "tie"
        return f"response {self._assignment.sides(item, rater).index(name) + 1}"


class _RaterProgress:
    """How far a rater is."""

    def __init__(
        self, assignment: Assignment, said: Iterable[tuple[str, int | None, float]]
    ) -> None:
        self._items = assignment.items
        self._said = {item: (label, seconds) for item, label, seconds in said if item in assignment}
        self._n_skipped = sum(label is None for label, _ in self._said.values())
        self._first = 0

    def has(self, item: str) -> bool:
        return item in self._said

    def add(self, item: str, label: int | None, seconds: float) -> None:
        before = self._said.get(item, (0, 0.0))
        self._n_skipped += (label is None) - (before[0] is None)
        self._said[item] = label, seconds

    def first_open(self) -> str | None:
        """The first item without an answer; nothing takes an answer back."""
        while self._first < len(self._items) and self._items[self._first] in self._said:
            self._first += 1
        return self._items[self._first] if self._first < len(self._items) else None

    def figures(self) -> dict[str, Any]:
        seconds = [seconds for _, seconds in self._said.values()]
        return {
            "n_items": len(self._items),
            "n_answered": len(self._said),
            "n_skipped": self._n_skipped,
            "seconds_per_item": median(seconds) if seconds else None,
        }


def rater_name(name: object) -> str:
    """Return a rater's name as it is kept: NFC, without blanks around it.

    Raises
    ------
    InputError
        If it is empty, too long or has characters that nobody sees.
    """
    if not isinstance(name, str) or not name.strip():
        raise InputError("rater is empty, expected a name")
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    if len(name) > _LONGEST_NAME or shown(name) != name:
        raise InputError(f"rater is no name of at most {_LONGEST_NAME} printable characters")
    return name


def _choice(said: Answer, assignment: Assignment, rater: str) -> str:
    if said.label is None:
        return "skip"
    label = said.label if assignment.sides(said.item, rater) == "AB" else -said.label
    return {1: "first", 0: "tie", -1: "second"}[label]


def _storable(note: str) -> str:
    """Text that every database takes: half a character and NUL are shown as what they are."""
    return note.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
