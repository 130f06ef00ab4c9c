r"""How a judge is asked to answer, and how its answer is read: an unclear answer is no vote."""
# Explicit verdicts alone are read, by the rules in docs/judge.md. Any other answer is unparsed. The
# time to read an answer is linear in its length.

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from btdagg._util.errors import InputError, expect, one_of
from btdagg.judge.client import TOO_LONG, Token, Verdict
from btdagg.judge.quotations import plain, without_elements
from btdagg.judge.statements import Kind, Scale, statement_of, verdict_of, words_of
from btdagg.votes.scale import PAIRS, PASS_FAIL, listed
from btdagg.votes.scale import Scale as VoteScale

Choice = Literal["first", "second", "tie"]
CHOICES: dict[int, Choice] = {1: "first", 0: "tie", -1: "second"}  # of a vote where A is first
_FORMS = {"tag": "[[{}]]", "line": "Verdict: {}", "json": '{{"verdict": "{}"}}'}  # by kind
_SCORES = {"tag": "<scores>X, Y</scores>", "line": "{}: X, {}: Y", "json": '"{}": X, "{}": Y'}
_GRADES = {"tag": "[[N]]", "line": "Grade: N", "json": '"grade": N'}
_OF_PAIRS = ("first", "second", "tie", "scale")  # what has no meaning beside grades


class _Asked(NamedTuple):
    """How a verdict is written, what that means, and its fields in JSON."""

    form: str
    where: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class AnswerFormat:
    """Words of a verdict and the form around them.

    Attributes
    ----------
    kind : "tag", "line" or "json"
        The form asked for: ``[[A]]``, ``Verdict: A``, or a JSON object with the key ``verdict``.
        Answers in another of these forms are read as well.
    first, second : str
        Names of the response shown first and of the one shown second.
    tie : str or None
        The word for a tie; None where the judge has to choose.
    confidence : bool
        Whether the judge is to say how confident it is, 0 to 100.
    pattern : str or None
        A regular expression with one group, the word of the verdict, as in ``Choice: (A|B)``. ``^``
        and ``$`` match at lines. Its last match is the verdict, and no other form is read.
    scale : "choice", "steps" or "scores"
        A, B or a tie; one of five steps, ``A>>B`` to ``B>>A``; or a score of each response, 1 to
        10. Steps and scores give votes a margin.
    grades : tuple of numbers, or str
        For a judge that grades one response: the points of its scale, also as ``1-5``, ``0,0.5,1``
        or ``pass/fail``, which are 1 and 0. None for pairs.
    """

    kind: Kind = "tag"
    first: str = "A"
    second: str = "B"
    tie: str | None = "TIE"
    confidence: bool = False
    pattern: str | None = None
    scale: Scale = "choice"
    grades: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.grades is not None:
            self.__dict__["grades"] = VoteScale(self.grades).points
            for name in _OF_PAIRS:
                got = getattr(self, name)
                expect(
                    got == getattr(AnswerFormat, name),
                    name,
                    got,
                    "no value, since the answers are grades",
                )
        for name, allowed in (("kind", _FORMS), ("scale", ("choice", "steps", "scores"))):
            one_of(getattr(self, name), allowed, name)
        for word in (self.first, self.second, *(() if self.tie is None else (self.tie,))):
            if not isinstance(word, str) or not word.strip() or set(word) & set('[]{}"\n'):
                expected = "a word without brackets or quotes"
                raise InputError(argument="answer word", got=word, expected=expected)
        try:
            is_pattern = re.compile(self.pattern or "()").groups == 1
        except re.error:
            is_pattern = False
        expected = "a regular expression with one group, the word of the verdict"
        expect(is_pattern, "pattern", self.pattern, expected)

    @property
    def votes(self) -> VoteScale:
        """The scale of the votes: pairs, or grades of one response."""
        return PAIRS if self.grades is None else VoteScale(self.grades)

    @cached_property
    def _asked(self) -> _Asked:
        first, second, tie = self.first, self.second, self.tie
        if self.scale == "scores":
            where = f", where X and Y are the scores of {first} and {second}"
            where += ", whole numbers from 1 to 10" + (" that differ" if tie is None else "")
            form = _SCORES[self.kind].format(first, second)
            return _Asked(form, where, {name: {"type": "integer"} for name in (first, second)})
        if self.scale == "steps":
            words = [f"{first}>>{second}", f"{first}>{second}", tie and f"{first}={second}"]
            words += [f"{second}>{first}", f"{second}>>{first}"]
        elif self.votes == PASS_FAIL:
            words = ["PASS", "FAIL"]
        elif self.votes.mirrored:
            words = [first, second, tie]
        else:
            points = self.votes.points
            is_whole = all(isinstance(point, int) for point in points)
            grade = {"type": "integer" if is_whole else "number", "enum": list(points)}
            return _Asked(_GRADES[self.kind], f", where N is {listed(points)}", {"grade": grade})
        allowed = [word for word in words if word is not None]
        quoted = '"{}"' if self.kind == "json" else _FORMS[self.kind]
        *most, last = map(quoted.format, allowed)
        form, where = f"{', '.join(most)} or {last}", ""
        if self.kind == "json":
            form, where = '"verdict": "..."', f", where the verdict is {form}"
        return _Asked(form, where, {"verdict": {"type": "string", "enum": allowed}})

    @property
    def instructions(self) -> str:
        """Tell the judge how to answer; stands where a template has ``{answer}``."""
        form, where, _ = self._asked
        if self.kind == "json":
            fields = f'{{"reasoning": "...", {form}}}'
            how = f"Answer with one JSON object and nothing else: {fields}{where}."
            more = ' Add "confidence": a whole number from 0 to 100, how sure you are of it.'
        else:
            is_tag = self.kind == "tag"
            place = "your verdict on a line of its own:" if is_tag else "one line that reads"
            how = f"End with {place} {form}{where}."
            more = (
                " On the line before it write Confidence: N, where N is a whole number from 0 to "
                "100 that says how sure you are of the verdict."
            )
        if self.scale == "steps":
            how += " Here >> means much better" + (
                ", and > better." if self.tie is None else ", > better, and = a tie."
            )
        return how + more if self.confidence else how

    @property
    def response_format(self) -> dict[str, Any] | None:
        """JSON schema for endpoints with structured output; None unless `kind` is ``json``."""
        return self._schema(scores=[*range(1, 11)], confidences=[*range(101)])

    @property
    def hashed_format(self) -> dict[str, Any] | None:
        """The schema as digests have it: without bounds, as when the first votes were stored."""
        return self._schema(scores=[], confidences=[])

    def _schema(self, scores: list[int], confidences: list[int]) -> dict[str, Any] | None:
        # Bounds are lists: not every provider's strict mode takes `minimum` and `maximum`.
        if self.kind != "json":
            return None
        fields = self._asked.fields
        if self.scale == "scores" and scores:
            fields = {name: {**field, "enum": scores} for name, field in fields.items()}
        properties = {"reasoning": {"type": "string"}, **fields}
        if self.confidence:
            bounds = {"enum": confidences} if confidences else {}
            properties["confidence"] = {"type": "integer", **bounds}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        named = {"name": "verdict", "strict": True, "schema": schema}
        return {"type": "json_schema", "json_schema": named}

    def written(self, choice: Choice) -> str:
        """Write a verdict, and nothing else, in the form that is asked for."""
        word = {"first": self.first, "second": self.second, "tie": self.tie}[choice]
        return _FORMS[self.kind].format(word)


# Reading


def parse_verdict(
    text: str | None,
    answer: AnswerFormat | None = None,
    *,
    order: str = "AB",
    finish_reason: str | None = None,
    refusal: str | None = None,
    responses: Sequence[str] = (),
) -> Verdict:
    """Read the verdict of an answer, by the rules in docs/judge.md.

    An answer that was cut off is truncated even if it holds a verdict, which may not be its last.

    Parameters
    ----------
    text : str or None
        The answer. A thought, between ``<think>`` and ``</think>`` or other tags, is skipped.
    answer : AnswerFormat, optional
        The form that was asked for; by default ``[[A]]``, ``[[B]]`` or ``[[TIE]]``.
    order : "AB" or "BA"
        In which the responses were shown.
    finish_reason, refusal : str, optional
        As the endpoint states them. ``stop`` and its like end a whole answer, ``content_filter``
        and ``refusal`` are refused, and every other reason is truncated. A `refusal` is returned
        in place of an answer.
    responses : sequence of str, optional
        The texts that were judged: a verdict that is copied from one of them does not count.
    """
    answer = answer or AnswerFormat()
    alone = _answer_alone(text or "", finish_reason, refusal)
    if isinstance(alone, Verdict):
        return alone
    words = words_of(answer.first, answer.second, answer.tie, answer.scale, answer.grades)
    if answer.pattern is None:
        counted = verdict_of(alone, words, [plain(text) for text in responses])
    else:
        counted = None
        for match in re.finditer(answer.pattern, alone, re.MULTILINE):
            counted = statement_of(match.span(), match[1], words)
    if counted is None:
        if _REFUSAL.match(alone):
            return Verdict("refused", reason=alone.partition("\n")[0][:120])
        return Verdict("unparsed", reason="no explicit verdict")
    if counted.verdict is None:
        return Verdict("unparsed", reason=counted.why)
    if len(counted.verdict) == 1:
        verdict = Verdict("ok", grade=counted.verdict[0])
    else:
        first, second = counted.verdict
        vote = (first > second) - (first < second)
        if not vote and answer.tie is None:
            return Verdict("unparsed", reason="a tie, where none was allowed")
        margin = None if answer.scale == "choice" else round(abs(float(first - second)), 6)
        verdict = Verdict("ok", vote if order == "AB" else -vote, margin=margin)
    if not answer.confidence:
        return verdict
    fields = counted.fields
    where = alone if fields is None else f"confidence: {fields.get('confidence')}"
    return verdict._replace(confidence=_confidence(where))


def verdict_probabilities(tokens: Sequence[Token], answer: AnswerFormat) -> dict[str, float] | None:
    """Probabilities of the choices at the token of the verdict, as shown; they sum to 1."""
    # A choice has the mass of the tokens (drawn, or alternatives) that begin its word; later tokens
    # tell apart words that begin alike. None without a verdict in the words asked for, or
    # alternatives.
    text = "".join(token.text for token in tokens)
    vote = parse_verdict(text, answer).vote
    names = {"first": answer.first, "second": answer.second, "tie": answer.tie}
    words = {word.casefold(): name for name, word in names.items() if word is not None}
    if vote is None:
        return None
    choice = CHOICES[vote]
    word, other = sorted(words, key=lambda word: words[word] != choice)[:2]
    places = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    for place in reversed([*places][-_PLACES:]):
        start = place.start()
        # The verdict's word is the one without which the verdict is another.
        if parse_verdict(text[:start] + other + text[place.end() :], answer).vote != vote:
            break
    else:
        return None
    masses = dict.fromkeys(names, 0.0)
    end, reached, has_alternatives = 0, 0.0, False
    for token in tokens:
        begin, end = end, end + len(token.text)
        if end <= start:
            continue
        before, lead = text[start : max(begin, start)], token.text[: max(start - begin, 0)].lstrip()
        for option, logprob in token.alternatives.items():
            has_alternatives = True
            meant = _begun(option, before, lead, words)
            if option != token.text and len(meant) == 1:
                masses[meant.pop()] += math.exp(min(reached + logprob, 0.0))
        reached += token.logprob
        if _begun(token.text, before, lead, words) == {choice}:
            masses[choice] += math.exp(min(reached, 0.0))
            break
    total = math.fsum(masses.values())
    is_known = has_alternatives and total > 0
    return {name: mass / total for name, mass in masses.items()} if is_known else None


def _begun(option: str, before: str, lead: str, words: Mapping[str, str]) -> set[str]:
    """Choices whose words a token may begin, or go on with, after what precedes it."""
    bare = option if before else option.lstrip()
    said = (before + bare[len(lead) :]).casefold()
    if not bare.startswith(lead) or len(bare) == len(lead):
        return set()
    return {
        name
        for word, name in words.items()
        if word.startswith(said) or re.match(rf"{re.escape(word)}(?!\w)", said)
    }


def sequence_probability(token_logprobs: Sequence[float]) -> float | None:
    """Length-normalised probability of a sequence: exp(mean log p), the geometric mean."""
    # None without tokens, or with a NaN or positive logarithm. Endpoints write -9999 for minus
    # infinity. Taubenfeld et al. (2025); the paper uses it for CI-SC.
    if not token_logprobs or not all(value <= 1e-3 for value in token_logprobs):
        return None
    return min(math.exp(math.fsum(token_logprobs) / len(token_logprobs)), 1.0)


# The text of an answer

_PLACES = 16  # of a word that may be the verdict: looked at from the end
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
_BEYOND_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,256}")
_REFUSAL = re.compile(
    r"\W{0,40}(?:(?:i['’]?m|i am)\s+(?:(?:really|very|so|truly)\s+)?"
    r"(?:sorry|afraid|unable|not able)\b|(?:i\s+)?apologi[sz]e\b|sorry\b|as an ai\b"
    r"|i\s+(?:can(?:not|\s+not|['’]t)|won['’]t|will not|must decline|decline)\b"
    r"|unfortunately,? i (?:can(?:not|['’]t)|am un)"
    r"|es tut mir leid|je suis désolé|lo siento|很?抱歉|对不起|我(?:无法|不能)|申し訳)",
    re.IGNORECASE,
)


# Finish reasons of whole answers, in small letters. Endpoints add others for answers that were
# aborted, so that no unknown one is of a whole answer.
_WHOLE = frozenset((
    *("stop", "stop_sequence", "eos", "eos_token", "endoftext", "end", "end_turn", "finish"),
    *("complete", "completed", "tool_calls", "tool_use", "function_call"),
))  # fmt: skip
_REFUSED = ("content_filter", "content_filtered", "refusal", "safety")
_AT_THE_LIMIT = ("length", "max_tokens", "max_output_tokens", "model_length")


def _answer_alone(answer: str, finish_reason: str | None, refusal: str | None) -> str | Verdict:
    end = str(finish_reason or "").lower()
    if refusal or end in _REFUSED:
        return Verdict("refused", reason=refusal or f"finish reason {finish_reason}")
    if end in _AT_THE_LIMIT:
        return Verdict("truncated", reason="cut off at the token limit")
    if end == TOO_LONG:
        return Verdict("truncated", reason="answer too long to be read")
    if end and end not in _WHOLE:
        return Verdict("truncated", reason=f"broken off: finish reason {finish_reason}"[:120])
    if not answer.isascii():
        # In pieces: combining marks in a row take time with the square of their number.
        answer = _BEYOND_ASCII.sub(
            lambda piece: unicodedata.normalize("NFKC", piece[0]), _INVISIBLE.sub("", answer)
        )
    rest = without_elements(answer)
    if rest is None:
        return Verdict("truncated", reason="the reasoning does not end")
    answer = rest.replace("\\[", "[").replace("\\]", "]").replace("\r", "").strip()
    return answer or Verdict("empty", reason="no text")


# Confidence

_CONFIDENCE = re.compile(
    r"\bconfidence\b[*_`\s]{0,40}(?:[:=]|is\b)[*_`\s]{0,40}(\d{1,9}(?:\.\d{1,20})?)\s{0,8}"
    r"(%|/\s{0,8}100\b)?(?![\w.]{0,40}\d|\s{0,8}[-–/]\s{0,8}\d)",
    re.IGNORECASE,
)


def _confidence(text: str) -> float | None:
    matches = _CONFIDENCE.findall(text)
    if not matches:
        return None
    written, is_percent = matches[-1]
    number = float(written)
    # 0 to 100 is asked for; 0.85 can only be meant as a fraction.
    share = number if number <= 1 and "." in written and not is_percent else number / 100
    return share if share <= 1 else None
