"""A rater's session on the page: items one after the other, and their labels."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import InputError, forbid
from btdagg._util.wording import shown
from btdagg.labelling.markup import differences, markdown, plain
from btdagg.labelling.outcome import Outcome, agreement, in_dispute
from btdagg.labelling.store import Answer, LabelStore
from btdagg.votes.scale import listed

if TYPE_CHECKING:
    from btdagg.labelling.assignment import Assignment

_LONGEST_NAME = 80
_MOST_SECONDS = 86_400.0
_MOST_DISPUTED = 20


class Session:
    """Raters at work on an assignment. Its methods may be called from several threads.

    Results have no id, file name or column besides the texts, which may tell whose responses they
    are. With `disputed` a rater gets only items on which the others have no majority.

    Raises
    ------
    InputError
        If an item was labelled with other texts, or a rater or a key is unknown.
    """

    def __init__(
        self,
        store: LabelStore,
        assignment: Assignment,
        outcome: Outcome,
        *,
        disputed: bool = False,
    ) -> None:
        self._disputed = disputed
        self._store, self._assignment, self._outcome = store, assignment, outcome
        self.scale = scale = assignment.scale
        points = {} if scale.mirrored else {str(grade): grade for grade in scale.points}
        self._labels: dict[str, float] = points or {"first": 1, "tie": 0, "second": -1}
        for answer in store.answers():
            if answer.criterion not in assignment.criteria(answer.item):
                continue
            forbid(
                answer.texts != assignment.pair(answer.item, answer.criterion).digest,
                f"{store.name}: item {answer.item!r} was labelled with other texts; give it "
                "another id, or use another store",
            )
            if answer.label is not None and answer.label not in self._labels.values():
                raise InputError(
                    f"{store.name}: item {answer.item!r} has the label {answer.label:g}, expected "
                    f"one of {listed((*self._labels.values(),))}; use another store for another "
                    "scale"
                )

    def view(self, rater: str, key: str | None = None) -> dict[str, Any]:
        """Return an item as a rater sees it: the next without an answer, unless one is named."""
        rater, assignment = rater_name(rater), self._assignment
        answers: dict[str, list[tuple[float | None, float]]] = defaultdict(list)
        for name, criterion, label, seconds in self._store.brief(rater):
            if name in assignment and criterion in assignment.criteria(name):
                answers[name].append((label, seconds))
        answers = {
            item: rows
            for item, rows in answers.items()
            if len(rows) == len(assignment.criteria(item))
        }
        items, key_of = assignment.items, assignment.key
        item = None if key is None else self._item(key)
        if self._disputed:
            wanted = in_dispute(of for of in self._store.answers() if of.rater != rater) | {item}
            items = [name for name in items if name in wanted]
            answers = {name: answers[name] for name in items if name in answers}
        times = [sum(seconds for _, seconds in rows) for rows in answers.values()]
        progress = {
            "rater": rater,
            "choices": [*self._labels],
            "n_items": len(items),
            "n_answered": len(answers),
            "n_skipped": sum(all(label is None for label, _ in of) for of in answers.values()),
            "seconds_per_item": median(times) if times else None,
        }
        if item is None:
            item = next((name for name in items if name not in answers), None)
        if item is None:
            last = key_of(items[-1]) if items else None
            return {"done": True, "previous": last, **progress, **self._summary(rater)}
        place = items.index(item) if self._disputed else assignment.place(item)
        is_followed = place + 1 < len(items) and item in answers
        return {
            "done": False,
            **progress,
            **self._pair(item, rater),
            "place": place + 1,
            "previous": key_of(items[place - 1]) if place else None,
            "next": key_of(items[place + 1]) if is_followed else None,
        }

    def keep(
        self,
        rater: str,
        key: str,
        choices: Sequence[str | None],
        seconds: float,
        note: str,
        then: str | None = None,
    ) -> dict[str, Any]:
        """Store what a rater chose, and return the item `then`, or the next; it is durable then.

        A choice for each criterion is "first", "tie", "second", a grade, "skip", or None: still
        open. At most a day's seconds count.
        """
        rater, item = rater_name(rater), self._item(key)
        criteria = self._assignment.criteria(item)
        allowed = [*self._labels, "skip", None]
        if len(choices) != len(criteria) or not {*choices} <= {*allowed} or not any(choices):
            raise InputError(
                argument="choices", got=choices, expected=f"{len(criteria)} of {allowed}"
            )
        made = {name: choice for name, choice in zip(criteria, choices, strict=True) if choice}
        sides = self._assignment.sides(item, rater)
        answers = [
            Answer(
                item=item,
                rater=rater,
                label=self._turned(self._labels.get(choice), sides),
                seconds=min(float(seconds), _MOST_SECONDS) / len(made),
                note=_storable(note.strip()),
                sides=sides,
                texts=self._assignment.pair(item, name).digest,
                criterion=name,
            )
            for name, choice in made.items()
        ]
        self._store.keep(*answers)
        return self.view(rater, then)

    def differences(self, rater: str, key: str) -> dict[str, str]:
        """Return both responses as they are shown to a rater, with marks where they differ."""
        item = self._item(key)
        first, second = self._texts(item, rater_name(rater))
        marked = differences(first, second)
        return dict(zip(("first", "second"), marked, strict=True))

    def _item(self, key: str) -> str:
        item = self._assignment.item(key)
        if item is None:
            raise InputError("this pair is no longer to be labelled: reload the page")
        return item

    def _texts(self, item: str, rater: str) -> tuple[str, str]:
        pair = self._assignment.pair(item)
        first, *rest = (getattr(pair, name) for name in self.scale.mode.responses)
        texts = first, "".join(rest)
        return texts if self._assignment.sides(item, rater) == "AB" else texts[::-1]

    def _pair(self, item: str, rater: str) -> dict[str, Any]:
        pair, criteria = self._assignment.pair(item), self._assignment.criteria(item)
        first, second = self._texts(item, rater)
        texts = {"prompt": pair.prompt, "reference": pair.reference}
        texts |= {"first": first, "second": second}
        answers = {answer.criterion: answer for answer in self._store.answers(rater, item)}
        answers = {name: answers[name] for name in criteria if name in answers}
        return {
            "key": self._assignment.key(item),
            **{name: _as_html(text) for name, text in texts.items()},
            "criteria": [
                {
                    "name": name,
                    "rubric": _as_html(self._assignment.pair(item, name).fields.get("rubric", "")),
                    "answer": self._choice(answers[name]) if name in answers else None,
                }
                for name in criteria
            ],
            "seconds": sum(answer.seconds for answer in answers.values()),
            "note": next((answer.note for answer in answers.values()), ""),
        }

    def _turned(self, label: float | None, sides: str) -> float | None:
        return -label if label is not None and sides == "BA" else label

    def _choice(self, answer: Answer, sides: str = "") -> str:
        label = self._turned(answer.label, sides or answer.sides)
        return next((name for name, value in self._labels.items() if value == label), "skip")

    def _summary(self, rater: str) -> dict[str, Any]:
        assignment = self._assignment
        planned = [answer for answer in self._store.answers() if answer.item in assignment]
        disputed = agreement(planned).disputed
        return {
            "lines": self._outcome.lines(planned),
            "disputed": [
                {
                    "key": assignment.key(answers[0].item),
                    "place": assignment.place(answers[0].item) + 1,
                    "criterion": answers[0].criterion,
                    "labels": {
                        answer.rater: self._choice(answer, assignment.sides(answer.item, rater))
                        for answer in answers
                    },
                }
                for answers in disputed[:_MOST_DISPUTED]
            ],
            "n_disputed": len(disputed),
        }


def _as_html(text: str) -> dict[str, str | None]:
    made, source = (markdown(text), plain(text)) if text else ("", "")
    return {"markdown": made, "plain": None if source == made else source}


def rater_name(name: str) -> str:
    """Return a rater's name as it is kept: NFC, without blanks around it."""
    forbid(not name.strip(), "rater is empty, expected a name")
    name = unicodedata.normalize("NFC", " ".join(name.split()))
    forbid(
        len(name) > _LONGEST_NAME or shown(name) != name,
        f"rater is not a name of at most {_LONGEST_NAME} printable characters",
    )
    return name


def _storable(note: str) -> str:
    # Half a character and NUL, which databases refuse, are shown as escapes.
    return note.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
