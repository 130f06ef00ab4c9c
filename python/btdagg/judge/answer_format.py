"""The form in which a judge is asked to answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from btdagg._core import InputError

Kind = Literal["tag", "line", "json"]
_KINDS = ("tag", "line", "json")


@dataclass(frozen=True)
class AnswerFormat:
    """Words of a verdict and the form around them.

    Attributes
    ----------
    kind : "tag", "line" or "json"
        ``[[A]]``, ``Verdict: A``, or a JSON object with the key ``verdict``. What is asked for:
        whatever form an answer has, :func:`btdagg.judge.answers.parse_verdict` reads it.
    first, second : str
        Names of the response shown first and of the one shown second.
    tie : str or None
        The word for a tie; None where the judge has to choose.
    confidence : bool
        Whether the judge is to say how confident it is, 0 to 100.
    pattern : str or None
        A regular expression with one group, the word of the verdict, as in ``Choice: (A|B)``. ``^``
        and ``$`` match at lines. Its last match is the verdict, and no other form is read.

    Raises
    ------
    InputError
        If `kind` is another, the words are blank or not distinct, or the pattern is no regular
        expression with one group.
    """

    kind: Kind = "tag"
    first: str = "A"
    second: str = "B"
    tie: str | None = "TIE"
    confidence: bool = False
    pattern: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"kind is {self.kind!r}, expected one of {', '.join(_KINDS)}")
        words = self.words
        for word in words:
            if not isinstance(word, str) or not word.strip() or set(word) & set('[]{}"\n'):
                raise InputError(
                    f"answer word is {word!r}, expected a word without brackets or quotes"
                )
        if len({word.casefold() for word in words}) < len(words):
            raise InputError(f"answer words are {', '.join(words)}, expected them distinct")
        if self.pattern is not None:
            try:
                n_groups = re.compile(self.pattern, re.MULTILINE).groups
            except (re.error, TypeError) as error:
                raise InputError(
                    f"answer pattern is {self.pattern!r}, not a regular expression: {error}"
                ) from None
            if n_groups != 1:
                raise InputError(
                    f"answer pattern is {self.pattern!r}, expected one group, which is the verdict"
                )

    @property
    def words(self) -> tuple[str, ...]:
        """The words that are allowed: of the first, the second, and a tie if there is one."""
        return (
            (self.first, self.second) if self.tie is None else (self.first, self.second, self.tie)
        )

    @property
    def instructions(self) -> str:
        """Tell the judge how to answer; stands where a template has ``{answer}``."""
        return _with_confidence(_INSTRUCTIONS[self.kind](self.words), self)

    @property
    def response_format(self) -> dict[str, Any] | None:
        """JSON schema for endpoints with structured output; None unless `kind` is ``json``."""
        if self.kind != "json":
            return None
        properties: dict[str, Any] = {
            "reasoning": {"type": "string"},
            "verdict": {"type": "string", "enum": list(self.words)},
        }
        if self.confidence:
            properties["confidence"] = {"type": "integer"}
        return json_schema("verdict", properties)

    def written(self, choice: str) -> str:
        """Write a verdict, and nothing else, in the form that is asked for.

        Parameters
        ----------
        choice : "first", "second" or "tie"

        Raises
        ------
        InputError
            If it is a tie where none is allowed.
        """
        word = {"first": self.first, "second": self.second, "tie": self.tie}[choice]
        if word is None:
            raise InputError("a tie cannot be written where none is allowed")
        form = {"tag": "[[{}]]", "line": "Verdict: {}", "json": '{{"verdict": "{}"}}'}[self.kind]
        return form.format(word)


def json_schema(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Wrap properties, all of them required, as the `response_format` of a request."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _tag(words: tuple[str, ...]) -> str:
    return f"End with your verdict on a line of its own: {_choice(f'[[{w}]]' for w in words)}."


def _line(words: tuple[str, ...]) -> str:
    return f"End with one line that reads {_choice(f'Verdict: {w}' for w in words)}."


def _json(words: tuple[str, ...]) -> str:
    allowed = _choice(f'"{w}"' for w in words)
    return (
        'Answer with one JSON object and nothing else: {"reasoning": "...", "verdict": "..."}, '
        f"where the verdict is {allowed}."
    )


_INSTRUCTIONS = {"tag": _tag, "line": _line, "json": _json}


def _with_confidence(asked: str, answer: AnswerFormat) -> str:
    if not answer.confidence:
        return asked
    if answer.kind == "json":
        return f'{asked} Add "confidence": a whole number from 0 to 100, how sure you are of it.'
    line = "Confidence: N"
    return (
        f"{asked} On the line before it write {line}, where N is a whole number from 0 to 100 that "
        "says how sure you are of the verdict."
    )


def _choice(words: Any) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
