"""What the page asks for: items one after the other, and what a rater says of them."""

from __future__ import annotations

import unicodedata
from statistics import median
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg.labelling.assignment import texts_digest
from btdagg.labelling.markup import differences, markdown, plain
from btdagg.labelling.outcome import Outcome, agreement
from btdagg.labelling.store import Answer, LabelStore
from btdagg.report.wording import LABEL_NAMES, shown

if TYPE_CHECKING:
    from btdagg.labelling.assignment import Assignment

_LONGEST_NAME = 80
_MOST_SECONDS = 86_400.0
_MOST_DISPUTED = 20


class Session:
    """Raters at work on an assignment. Its methods may be called from several threads.

    Nothing that they return has an item's id, a file's name or a column besides the texts: these
    may tell whose responses they are.

    Raises
    ------
    InputError
        If an item was labelled with other texts, or a rater or a key is unknown.
    """

    def __init__(self, store: LabelStore, assignment: Assignment, outcome: Outcome) -> None:
        self._store, self._assignment, self._outcome = store, assignment, outcome
        for answer in store.answers():
            if not assignment.is_pair(answer.item):
                continue
            if answer.texts != texts_digest(assignment.pair(answer.item)):
                raise InputError(
                    f"{store.name}: item {answer.item!r} was labelled with other texts; give it "
                    "another id, or use another store"
                )

    def view(self, rater: str, key: str | None = None) -> dict[str, Any]:
        """Return an item as a rater sees it: the next without an answer, unless one is named."""
        rater, assignment = rater_name(rater), self._assignment
        answers = {
            item: (label, seconds)
            for item, label, seconds in self._store.brief(rater)
            if item in assignment
        }
        seconds = [seconds for _, seconds in answers.values()]
        progress = {
            "rater": rater,
            "n_items": len(assignment),
            "n_answered": len(answers),
            "n_skipped": sum(label is None for label, _ in answers.values()),
            "seconds_per_item": median(seconds) if seconds else None,
        }
        items, key_of = assignment.items, assignment.key
        unanswered = (item for item in items if item not in answers)
        item = next(unanswered, None) if key is None else self._item(key)
        if item is None:
            last = key_of(items[-1]) if items else None
            return {"done": True, "previous": last, **progress, **self._summary(rater)}
        place = assignment.place(item)
        is_followed = place + 1 < len(items) and item in answers
        return {
            "done": False,
            **progress,
            **self._pair(item, rater),
            "place": place + 1,
            "previous": key_of(items[place - 1]) if place else None,
            "next": key_of(items[place + 1]) if is_followed else None,
        }

    def keep(self, rater: str, key: str, choice: str, seconds: float, note: str) -> dict[str, Any]:
        """Store what a rater chose, and return the next item; the choice is durable then.

        A choice is "first", "tie", "second" or "skip"; of the seconds a day counts at most.
        """
        rater, item = rater_name(rater), self._item(key)
        sides = self._assignment.sides(item, rater)
        label = {"first": 1, "tie": 0, "second": -1, "skip": None}[choice]
        if label is not None and sides == "BA":
            label = -label
        self._store.keep(
            Answer(
                item=item,
                rater=rater,
                label=label,
                seconds=min(float(seconds), _MOST_SECONDS),
                note=_storable(note.strip()),
                sides=sides,
                texts=texts_digest(self._assignment.pair(item)),
            )
        )
        return self.view(rater)

    def differences(self, rater: str, key: str) -> dict[str, str]:
        """Return both responses as they are shown to a rater, with marks where they differ."""
        item = self._item(key)
        first, second = self._texts(item, rater_name(rater))
        marked = differences(first, second)
        return dict(zip(("first", "second"), marked, strict=True))

    def _item(self, key: str) -> str:
        item = self._assignment.item(key)
        if item is None:
            raise InputError("this pair is not among those to be labelled (any more): reload")
        return item

    def _texts(self, item: str, rater: str) -> tuple[str, str]:
        pair = self._assignment.pair(item)
        is_first = self._assignment.sides(item, rater) == "AB"
        return (pair.a, pair.b) if is_first else (pair.b, pair.a)

    def _pair(self, item: str, rater: str) -> dict[str, Any]:
        pair = self._assignment.pair(item)
        first, second = self._texts(item, rater)
        texts = {"prompt": pair.prompt, "reference": pair.reference}
        texts |= {"first": first, "second": second}
        shown: dict[str, Any] = {"key": self._assignment.key(item)}
        for name, text in texts.items():
            made = markdown(text) if text else ""
            source = plain(text) if text else ""
            shown[name] = {"markdown": made, "plain": None if source == made else source}
        answers = self._store.answers(rater, item)
        if not answers:
            return {**shown, "answer": None, "seconds": 0.0, "note": ""}
        answer, choice = answers[0], "skip"
        if answer.label is not None:
            choice = ("second", "tie", "first")[
                1 + (answer.label if answer.sides == "AB" else -answer.label)
            ]
        return {**shown, "answer": choice, "seconds": answer.seconds, "note": answer.note}

    def _summary(self, rater: str) -> dict[str, Any]:
        """What a rater who has answered everything may see."""
        answers = self._store.answers()
        planned = [answer for answer in answers if answer.item in self._assignment]
        disputed = agreement(planned).disputed
        shown = [
            {
                "key": self._assignment.key(item),
                "place": self._assignment.place(item) + 1,
                "labels": {
                    name: self._in_words(label, item, rater) for name, label in labels.items()
                },
            }
            for item, labels in disputed[:_MOST_DISPUTED]
        ]
        return {
            "lines": self._outcome.lines(planned),
            "disputed": shown,
            "n_disputed": len(disputed),
        }

    def _in_words(self, label: int, item: str, rater: str) -> str:
        """A label as the response that it names on the rater's page."""
        name = LABEL_NAMES[label + 1]
        if name == "tie":
            return "tie"
        return f"response {self._assignment.sides(item, rater).index(name) + 1}"


def rater_name(name: str) -> str:
    """Return a rater's name as it is kept: NFC, without blanks around it."""
    if not name.strip():
        raise InputError("rater is empty, expected a name")
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    if len(name) > _LONGEST_NAME or shown(name) != name:
        raise InputError(f"rater is no name of at most {_LONGEST_NAME} printable characters")
    return name


def _storable(note: str) -> str:
    """Text that every database takes: half a character and NUL are shown as what they are."""
    return note.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
