"""Few-shot prompts: labelled pairs with their verdicts, before the pair that is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from json import dumps
from typing import TYPE_CHECKING, Literal

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.votes import Labels, read_labels

if TYPE_CHECKING:
    from btdagg.judge.pairs import Pair, Pairs
    from btdagg.judge.prompts import Messages, PromptTemplate
    from btdagg.votes.source import Source

_CHOICES: dict[tuple[int, str], Literal["first", "second", "tie"]] = {
    (1, "AB"): "first",
    (-1, "AB"): "second",
    (1, "BA"): "second",
    (-1, "BA"): "first",
    (0, "AB"): "tie",
    (0, "BA"): "tie",
}


@readable
@dataclass(frozen=True)
class FewShot:
    """A template with examples.

    Every second example is shown with its responses in the other order than the pair that is asked
    about, so that neither place is the better one by the examples. Asking with B first turns all of
    them round. A pair is never among its own examples.

    Attributes
    ----------
    template : PromptTemplate
        Its confidence, if it asks for one, is not asked for: the examples have none.
    examples : sequence of (Pair, label)
        Labels -1, 0 or 1 from A's point of view.

    Raises
    ------
    InputError
        If there are no examples, a label is another, or it is a tie where the template has none.
    """

    template: PromptTemplate
    examples: Sequence[tuple[Pair, int]]

    def __post_init__(self) -> None:
        if not self.examples:
            raise InputError("examples is empty, expected at least one labelled pair")
        object.__setattr__(self, "template", self.template.asking(confidence=False))
        for pair, label in self.examples:
            if label not in (-1, 0, 1):
                raise InputError(f"label of item {pair.item!r} is {label!r}, expected -1, 0 or 1")
            if label == 0 and self.template.answer.tie is None:
                raise InputError(
                    f"label of item {pair.item!r} is a tie, which template {self.template.name} "
                    "does not allow here"
                )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is sent but the pair."""
        items = [pair.item for pair, _ in self.examples]
        sent = dumps([self.template.digest, items, self._turns["AB"]])
        return sha256(sent.encode()).hexdigest()

    def render(self, pair: Pair, order: str = "AB") -> Messages:
        """Messages that ask about a pair, the examples first.

        Raises
        ------
        InputError
            As :meth:`btdagg.judge.prompts.PromptTemplate.render` does.
        """
        *system, question = self.template.render(pair, order)
        messages = list(system)
        for (example, _), turns in zip(self.examples, self._turns[order], strict=True):
            if example.item != pair.item:
                messages += turns
        return [*messages, question]

    @cached_property
    def _turns(self) -> dict[str, list[Messages]]:
        """Question and answer of every example, by the order of the pair that is asked about."""
        return {"AB": self._turns_beside("AB", "BA"), "BA": self._turns_beside("BA", "AB")}

    def _turns_beside(self, order: str, other: str) -> list[Messages]:
        turns = []
        for number, (pair, label) in enumerate(self.examples):
            shown = other if number % 2 else order
            said = self.template.answer.written(_CHOICES[label, shown])
            question = self.template.render(pair, shown)[-1]
            turns.append([question, {"role": "assistant", "content": said}])
        return turns


def labelled_pairs(
    pairs: Pairs, labels: Labels | Source, *, n_examples: int | None = None
) -> list[tuple[Pair, int]]:
    """Pairs that have a label, in their order, with their labels.

    Parameters
    ----------
    pairs : Pairs
    labels : Labels, or whatever `read_labels` reads
        Items are compared as text.
    n_examples : int, optional
        Only the first so many.

    Raises
    ------
    InputError
        If labels cannot be read, an item has several (of different tasks), or no pair has one.
    """
    labels = labels if isinstance(labels, Labels) else read_labels(labels)
    known: dict[str, int] = {}
    for item, label in zip(map(str, labels.ids.tolist()), labels.labels.tolist(), strict=True):
        if item in known:
            raise InputError(f"{labels.source}: item {item!r} has labels in several tasks")
        known[item] = label
    found = [(pair, known[pair.item]) for pair in pairs if pair.item in known]
    if not found:
        begins = f"item {next(iter(known))!r}" if known else "no item"
        raise InputError(
            f"{labels.source}: no pair of {pairs.source} has a label: pairs begin with item "
            f"{pairs[0].item!r}, labels with {begins}"
        )
    return found[:n_examples]
