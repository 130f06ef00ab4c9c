"""Prompts: templates, and labelled pairs that they show as examples."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from btdagg._util.errors import InputError, expect, forbid, reworded
from btdagg._util.files import read_whole
from btdagg._util.readable import readable
from btdagg.judge.answers import CHOICES, AnswerFormat
from btdagg.judge.pairs import SECRET, Pair, Pairs
from btdagg.judge.statements import Kind
from btdagg.votes.scale import PAIRWISE, POINTWISE
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from btdagg.votes.labels import Labels
    from btdagg.votes.source import Source

Messages = list[dict[str, str]]

# What every template may use; a template may also use the fields of its pairs.
_OF_THE_TEMPLATE = ("answer", "ties")
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[a-z_]\w*( \w+)*", re.IGNORECASE)
_VERSION = 1  # of what is hashed
_PARTS = ("system", "user", "ties", "forced")
_SHOWN = {PAIRWISE: ("first", "second"), POINTWISE: ("response",)}  # places of what is judged


@readable
@dataclass(frozen=True)
class PromptTemplate:
    """A prompt with places for a pair, or for one response that is graded.

    In `system` and `user`, ``{prompt}`` is what the responses respond to, ``{first}`` and
    ``{second}`` are the responses as shown (``{response}`` a single one), ``{reference}`` is a
    known good response, ``{answer}`` how to answer, ``{ties}`` when to call a tie (or that there is
    none), and any other name a column of the pairs. ``{{`` and ``}}`` are braces.

    Attributes
    ----------
    name : str
    user : str
        Text sent for every pair.
    system : str
        Instructions, sent first as a system message; none where empty.
    ties, forced : str
        Text of ``{ties}`` where a tie is allowed, and where it is not.
    defaults : mapping of str to str
        Values of placeholders that neither items nor settings give, such as a rubric.
    answer : AnswerFormat

    Raises
    ------
    InputError
        If a placeholder is malformed, one of the responses is not shown, or a placeholder does not
        follow the order in which responses are shown.
    """

    name: str
    user: str
    system: str = ""
    ties: str = ""
    forced: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    answer: AnswerFormat = field(default_factory=AnswerFormat)

    def __post_init__(self) -> None:
        for part in _PARTS:
            for name in _names(getattr(self, part), self.name):
                forbid(
                    name in ("a", "b") or name.endswith(("_a", "_b")),
                    f"template {self.name}: {{{name}}} does not follow the order in which "
                    "responses are shown; use {first} and {second}",
                )
                forbid(
                    name in (*SECRET, "item"),
                    f"template {self.name}: {{{name}}} would tell the judge the answer; remove it",
                )
        for name in self.shown:
            forbid(
                name not in self.placeholders,
                f"template {self.name}: no {{{name}}}, the response shown there",
            )

    @property
    def shown(self) -> tuple[str, ...]:
        """Placeholders of what is judged: the responses of a pair, or the one that is graded."""
        return _SHOWN[self.answer.votes.mode]

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """Names that a pair has to fill in."""
        names = _names("".join(self._texts), self.name)
        return frozenset(names).difference(_OF_THE_TEMPLATE)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is sent except the pair, and of how its answer is read."""
        answer = asdict(self.answer)
        for name in ("pattern", "scale", "grades"):  # votes from before these keep their digest
            if answer[name] == getattr(AnswerFormat, name):
                del answer[name]
        sent = {
            "version": _VERSION,
            "system": self._texts[0],
            "user": self._texts[1],
            "instructions": self.answer.instructions,
            "answer": answer,
            "response_format": self.answer.hashed_format,
            **({"defaults": dict(self.defaults)} if self.defaults else {}),
        }
        return sha256(dumps(sent, sort_keys=True).encode()).hexdigest()

    def asking(
        self,
        *,
        kind: Kind | None = None,
        allow_tie: bool | None = None,
        confidence: bool | None = None,
    ) -> Self:
        """Return the same template with another form of answer.

        `kind` is "tag", "line" or "json"; with `allow_tie` False the judge has to choose between
        the two, and `confidence` says whether to ask for one.
        """
        expected = f"none, since template {self.name} shows a single response"
        expect(allow_tie is None or len(self.shown) != 1, "allow_tie", allow_tie, expected)
        changed: dict[str, Any] = {"kind": kind, "confidence": confidence}
        changed = {name: value for name, value in changed.items() if value is not None}
        if allow_tie is not None and allow_tie != (self.answer.tie is not None):
            changed["tie"] = AnswerFormat.tie if allow_tie else None
        return replace(self, answer=replace(self.answer, **changed))

    def with_values(self, values: Mapping[str, str]) -> Self:
        """Return the same template with values filled in that are the same for all pairs."""
        free = sorted(self.placeholders.difference(self.shown))
        for name in values:
            forbid(
                name not in free,
                f"template {self.name}: no placeholder {{{name}}}; it has {listing(free)}",
            )
        quoted = {
            name: str(value).replace("{", "{{").replace("}", "}}") for name, value in values.items()
        }
        parts: dict[str, Any] = {part: _filled(getattr(self, part), quoted) for part in _PARTS}
        defaults = {name: self.defaults[name] for name in self.defaults if name not in quoted}
        return replace(self, **parts, defaults=defaults)

    def check(self, pairs: Pairs) -> None:
        """Refuse pairs that have no column for a placeholder, or one of them nothing in it."""
        what = "two responses, in columns a and b" if len(self.shown) > 1 else "one response"
        forbid(
            pairs.shown != self.shown,
            f"template {self.name} is for items with {what}, which {pairs.source} does not "
            f"have; the templates are {', '.join(TEMPLATES)}",
            "template",
        )
        names: list[str] = [name for name in ("prompt", "reference") if name in pairs.columns]
        names += [*self.shown, *pairs.fields]
        for name in sorted(self.placeholders.difference(self.shown)):
            if name in self.defaults and name not in names:
                continue
            forbid(
                name not in names,
                f"template {self.name}: {pairs.source} has no column for {{{name}}}; found "
                f"{listing(names)}",
            )
            absent = pairs.frame[name].is_null().arg_true()
            if len(absent):
                place = {"source": pairs.source, "row": absent[0] + 1, "column": name}
                raise InputError(
                    **place,
                    got=None,
                    expected=f"a value for template {self.name} to fill in",
                )

    def render(self, pair: Pair, order: str = "AB", *, answer: str | None = None) -> Messages:
        """Return the messages, with `role` and `content`, that ask about a pair.

        The texts of the pair are inserted as they are: braces in them are braces. `order`, "AB" or
        "BA", says which response is shown first. `answer` replaces the instructions how to answer;
        it is added at the end of a template that has no such place.
        """
        expect(order in ("AB", "BA"), "order", order, "AB or BA")
        first, second = (pair.a, pair.b) if order == "AB" else (pair.b, pair.a)
        values = {
            **self.defaults,
            **pair.fields,
            "prompt": pair.prompt,
            "reference": pair.reference,
            "first": first,
            "second": second,
            "response": pair.response,
            "answer": self.answer.instructions if answer is None else answer,
        }
        system, user = (_inserted(text, values) for text in self._texts)
        if answer is not None and "answer" not in _names("".join(self._texts), self.name):
            user = f"{user}\n\n{answer}"
        messages = [{"role": "system", "content": system}] if self._texts[0] else []
        return [*messages, {"role": "user", "content": user}]

    @cached_property
    def _texts(self) -> tuple[str, str]:
        ties = (self.forced if self.answer.tie is None else self.ties).strip()
        system, user = (_filled(part.strip(), {"ties": ties}) for part in (self.system, self.user))
        return system, user


def get_template(name: str | os.PathLike[str] | PromptTemplate) -> PromptTemplate:
    """Return a template by its name, or from a TOML file, whose name ends in .toml.

    A file sets attributes of :class:`PromptTemplate`: `user` is required, `name` is the file's stem
    by default. The table ``[answer]`` sets those of :class:`btdagg.judge.answers.AnswerFormat`;
    ``tie = false`` there forbids ties.
    """
    if isinstance(name, PromptTemplate):
        return name
    place = os.fspath(name)
    if place in TEMPLATES:
        return TEMPLATES[place]
    expected = f"one of {', '.join(TEMPLATES)} or a .toml file"
    expect(place.endswith(".toml"), "template", place, expected)
    content = read_whole(place)
    # No TOML, or not the keys of a template.
    with reworded((ValueError, TypeError), f"{place}: {{error}}"):
        return _from_toml(tomllib.loads(content.decode("utf-8-sig")), Path(place).stem)


def _from_toml(content: dict[str, Any], stem: str) -> PromptTemplate:
    answer = dict(content.get("answer", {}))
    if answer.get("tie") is False:
        answer["tie"] = None
    return PromptTemplate(**{"name": stem, **content, "answer": AnswerFormat(**answer)})


# Placeholders


def _names(text: str, template: str) -> Iterator[str]:
    for match in _PLACE.finditer(text):
        name = match[1]
        if match[0] in ("{{", "}}"):
            continue
        if name is None or not _NAME.fullmatch(name):
            line = text.count("\n", 0, match.start()) + 1
            raise InputError(
                f"template {template}, line {line}: {match[0][:40]!r} is not a placeholder; write "
                "{{ and }} for braces"
            )
        yield name.lower()


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(
        lambda match: values.get((match[1] or "").lower(), match[0]) if match[1] else match[0], text
    )


def _inserted(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(
        lambda match: match[0][0] if match[1] is None else values[match[1].lower()], text
    )


def _builtin(name: str) -> PromptTemplate:
    text = files("btdagg.judge").joinpath("templates", f"{name}.toml").read_text(encoding="utf-8")
    return _from_toml(tomllib.loads(text), name)


_BUILTIN = (
    *("translation", "translation-brief", "translation-rater", "translation-overall"),
    *("response", "response-steps", "response-scores", "pass-fail", "grade-5", "grade-10"),
)
TEMPLATES: Mapping[str, PromptTemplate] = {name: _builtin(name) for name in _BUILTIN}
"""The templates of the package by name."""


# Few-shot prompts


@readable
@dataclass(frozen=True)
class FewShot:
    """A template with labelled examples before the pair that is asked about."""

    # Every second example is shown in the other order than the pair, so that examples favour
    # neither place; a pair is never its own example. No confidence is asked for, since examples
    # have none.

    template: PromptTemplate
    examples: Sequence[tuple[Pair, int]]

    def __post_init__(self) -> None:
        message = "examples is empty, expected at least one labelled pair"
        forbid(not self.examples, message, "examples")
        object.__setattr__(self, "template", self.template.asking(confidence=False))
        for pair, label in self.examples:
            forbid(
                label == 0 and self.template.answer.tie is None,
                f"label of item {pair.item!r} is a tie, which template {self.template.name} "
                "does not allow here",
            )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that is sent but the pair."""
        items = [pair.item for pair, _ in self.examples]
        sent = dumps([self.template.digest, items, [*self._turns("AB")]])
        return sha256(sent.encode()).hexdigest()

    def render(self, pair: Pair, order: str = "AB") -> Messages:
        """Return the messages that ask about a pair, the examples first."""
        *system, question = self.template.render(pair, order)
        turns = self._turns(order)
        shown = [t for (e, _), t in zip(self.examples, turns, strict=True) if e.item != pair.item]
        return [*system, *(message for turn in shown for message in turn), question]

    def _turns(self, order: str) -> Iterator[Messages]:
        other = "BA" if order == "AB" else "AB"
        for number, (pair, label) in enumerate(self.examples):
            shown = other if number % 2 else order
            choice = CHOICES[label if shown == "AB" else -label]
            question = self.template.render(pair, shown)[-1]
            yield [question, {"role": "assistant", "content": self.template.answer.written(choice)}]


def labelled_pairs(
    pairs: Pairs, labels: Labels | Source, *, n_examples: int | None = None
) -> list[tuple[Pair, int]]:
    """Return the (first `n_examples`) pairs with a label, and their labels; items match as text."""
    from btdagg.votes.labels import Labels, read_labels

    labels = labels if isinstance(labels, Labels) else read_labels(labels)
    items = [str(item) for item in labels.ids.tolist()]
    label_of = dict(zip(items, labels.labels.tolist(), strict=True))
    forbid(
        len(label_of) < len(items),
        f"{labels.source}: an item has labels in several tasks, expected those of one task",
    )
    labelled = [(pair, label_of[pair.item]) for pair in pairs if pair.item in label_of]
    forbid(not labelled, f"{labels.source}: no pair of {pairs.source} has a label")
    return labelled[:n_examples]
