r"""How a judge is asked to answer, and how its answer is read: without a verdict it is no vote.

A verdict is stated by

- a tag: ``[[A]]`` or ``<verdict>A</verdict>``;
- a JSON object with a key such as ``verdict`` or ``winner``;
- a line such as ``Verdict: A`` or ``The winner is B``;
- a last line that is nothing but the verdict: ``A``, ``Output (a)``, ``Choice: B``.

Of five steps it is ``A>>B``, ``A>B``, ``A=B``, ``B>A`` or ``B>>A`` in such a form. Scores are in a
tag, ``<scores>7, 4</scores>``, an object with both, or a last line such as ``A: 7, B: 4``. A grade
is a number in such a form, ``[[4]]`` or ``Grade: 4/5``, or pass or fail; one off its scale is none.

The last object counts, or the last paragraph after it that states a verdict. An answer whose
statements there disagree, are negated, conditional, quoted in passing, or not one of the words that
were asked for, is unparsed. A template may have a pattern of its own instead.

Answers may be of any length: the time to read one grows in proportion.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from btdagg._util.errors import InputError
from btdagg.judge.client import Verdict
from btdagg.votes.scale import listed, points_of
from btdagg.votes.schema import PASS_WORDS

if TYPE_CHECKING:
    from btdagg.judge.client import Token

Choice = Literal["first", "second", "tie"]
CHOICES: dict[int, Choice] = {1: "first", 0: "tie", -1: "second"}  # of a vote where A is first
Kind = Literal["tag", "line", "json"]
Scale = Literal["choice", "steps", "scores"]
_FORMS = {"tag": "[[{}]]", "line": "Verdict: {}", "json": '{{"verdict": "{}"}}'}  # by kind
# Of the response shown first and of the second, a win is (1, 0); or the grade of a response.
Points = tuple[float, ...]
_SCORES = {"tag": "<scores>X, Y</scores>", "line": "{}: X, {}: Y", "json": '"{}": X, "{}": Y'}
_GRADES = {"tag": "[[N]]", "line": "Grade: N", "json": '"grade": N'}
_OF_PAIRS = ("first", "second", "tie", "scale")  # what has no meaning beside grades


@dataclass(frozen=True)
class AnswerFormat:
    """Words of a verdict and the form around them.

    Attributes
    ----------
    kind : "tag", "line" or "json"
        ``[[A]]``, ``Verdict: A``, or a JSON object with the key ``verdict``. The judge is asked for
        it; an answer in another form is read as well.
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
        What the judge is asked for: A, B or a tie; one of five steps, ``A>>B`` to ``B>>A``; or a
        score of each response, 1 to 10. Steps and scores give votes a margin.
    grades : tuple of numbers, or str
        Of a judge that grades one response: the points of its scale, also as ``1-5``, ``0,0.5,1``
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
            points: Any = self.grades
            text = points if isinstance(points, str) else ",".join(map(str, points))
            object.__setattr__(self, "grades", points_of(text))
            for name in _OF_PAIRS:
                came = getattr(self, name)
                if came != getattr(AnswerFormat, name):
                    raise InputError(argument=name, came=came, expected="nothing beside grades")
        for name, allowed in (("kind", _FORMS), ("scale", ("choice", "steps", "scores"))):
            if getattr(self, name) not in allowed:
                expected = f"one of {', '.join(allowed)}"
                raise InputError(argument=name, came=getattr(self, name), expected=expected)
        for word in (self.first, self.second, *(() if self.tie is None else (self.tie,))):
            if not isinstance(word, str) or not word.strip() or set(word) & set('[]{}"\n'):
                expected = "a word without brackets or quotes"
                raise InputError(argument="answer word", came=word, expected=expected)
        try:
            is_pattern = re.compile(self.pattern or "()").groups == 1
        except re.error:
            is_pattern = False
        if not is_pattern:
            expected = "a regular expression with one group, the word of the verdict"
            raise InputError(argument="pattern", came=self.pattern, expected=expected)

    @property
    def is_passing(self) -> bool:
        """Whether the grades are pass and fail."""
        return self.grades == (0, 1)

    @property
    def words(self) -> tuple[str, ...]:
        """The verdicts in words that are allowed, with a tie if there is one; none for numbers."""
        first, second = self.first, self.second
        if self.grades is not None:
            return ("PASS", "FAIL") if self.is_passing else ()
        if self.scale == "scores":
            return ()
        if self.scale == "steps":
            tie = () if self.tie is None else (f"{first}={second}",)
            wins = (f"{first}>>{second}", f"{first}>{second}")
            return (*wins, *tie, f"{second}>{first}", f"{second}>>{first}")
        return (first, second) if self.tie is None else (first, second, self.tie)

    @property
    def instructions(self) -> str:
        """Tell the judge how to answer; stands where a template has ``{answer}``."""
        if self.grades is not None and not self.is_passing:
            form = verdict = _GRADES[self.kind]
            where = f", where N is {listed(self.grades)}"
        elif self.scale == "scores":
            form = verdict = _SCORES[self.kind].format(self.first, self.second)
            where = f", where X and Y are the scores of {self.first} and {self.second}"
            where += ", whole numbers from 1 to 10" + (" that differ" if self.tie is None else "")
        else:
            form, quoted = '"verdict": "..."', '"{}"' if self.kind == "json" else _FORMS[self.kind]
            *most, last = (quoted.format(word) for word in self.words)
            verdict = f"{', '.join(most)} or {last}"
            where = f", where the verdict is {verdict}" if self.kind == "json" else ""
        if self.kind == "json":
            fields = f'{{"reasoning": "...", {form}}}'
            how = f"Answer with one JSON object and nothing else: {fields}{where}."
            more = ' Add "confidence": a whole number from 0 to 100, how sure you are of it.'
        else:
            is_tag = self.kind == "tag"
            place = "your verdict on a line of its own:" if is_tag else "one line that reads"
            how = f"End with {place} {verdict}{where}."
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
        if self.kind != "json":
            return None
        properties: dict[str, Any] = {"reasoning": {"type": "string"}}
        if self.grades is not None and not self.is_passing:
            is_whole = all(isinstance(point, int) for point in self.grades)
            kind = "integer" if is_whole else "number"
            properties["grade"] = {"type": kind, "enum": list(self.grades)}
        elif self.scale == "scores":
            properties |= {name: {"type": "integer"} for name in (self.first, self.second)}
        else:
            properties["verdict"] = {"type": "string", "enum": list(self.words)}
        if self.confidence:
            properties["confidence"] = {"type": "integer"}
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
) -> Verdict:
    """Read the verdict of an answer (:mod:`btdagg.judge.answers` says how).

    An answer that was cut off is truncated even if it holds a verdict, which may not be its last.

    Parameters
    ----------
    text : str or None
        The answer. A thought between ``<think>`` and ``</think>`` is skipped.
    answer : AnswerFormat, optional
        The form that was asked for; by default ``[[A]]``, ``[[B]]`` or ``[[TIE]]``.
    order : "AB" or "BA"
        In which the responses were shown.
    finish_reason, refusal : str, optional
        As the endpoint states it: ``length`` is truncated, ``content_filter`` and ``refusal``
        refused; and what it returns in place of an answer.
    """
    answer = answer or AnswerFormat()
    alone = _ended_early(finish_reason, refusal) or _answer_alone(text)
    if isinstance(alone, Verdict):
        return alone
    words = _words(answer)
    if answer.pattern is None:
        stated = _last_statement(alone, words)
    else:
        stated = None
        for match in re.finditer(answer.pattern, alone, re.MULTILINE):
            stated = _Statement(_exactly(match[1], words), _unknown(match[1]))
    if stated is None:
        if _REFUSAL.match(alone):
            return Verdict("refused", reason=alone.partition("\n")[0][:120])
        return Verdict("unparsed", reason="no explicit verdict")
    if stated.points is None:
        return Verdict("unparsed", reason=stated.why)
    if answer.grades is not None:
        verdict = Verdict("ok", grade=stated.points[0])
    else:
        first, second = stated.points
        vote = (first > second) - (first < second)
        if not vote and answer.tie is None:
            return Verdict("unparsed", reason="a tie, where none was allowed")
        margin = None if answer.scale == "choice" else round(abs(float(first - second)), 6)
        verdict = Verdict("ok", vote if order == "AB" else -vote, margin=margin)
    if not answer.confidence:
        return verdict
    fields = stated.fields
    where = alone if fields is None else f"confidence: {fields.get('confidence')}"
    return verdict._replace(confidence=_confidence(where))


def verdict_probabilities(tokens: Sequence[Token], answer: AnswerFormat) -> dict[str, float] | None:
    """Probabilities of the choices at the token of the verdict, as shown; they sum to 1.

    Each is the mass of what begins its word there: the token that was drawn and its alternatives. A
    word that none of them begins has 0. Where words begin alike, later tokens tell them apart. None
    without a verdict in the very words that were asked for, or without alternatives.
    """
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
    """Choices whose words a token may begin, or go on with, after what stands before it."""
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
    """Length-normalised probability of a sequence: exp(mean log p), the geometric mean.

    None without tokens, or where a logarithm is NaN or positive by more than rounding does.
    Endpoints write -9999 for minus infinity. Taubenfeld et al. (2025), as the paper uses it for
    CI-SC.
    """
    if not token_logprobs or not all(value <= 1e-3 for value in token_logprobs):
        return None
    return min(math.exp(math.fsum(token_logprobs) / len(token_logprobs)), 1.0)


# The text of an answer

_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
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


def _ended_early(finish_reason: str | None, refusal: str | None) -> Verdict | None:
    """Return the verdict on an answer that the endpoint marks as refused or cut off."""
    if refusal or finish_reason in ("content_filter", "refusal"):
        return Verdict("refused", reason=refusal or f"finish reason {finish_reason}")
    reasons = {
        "length": "cut off at the limit of tokens",
        "too_long": "longer than what is read of an answer",
    }
    if finish_reason in reasons:
        return Verdict("truncated", reason=reasons[finish_reason])
    return None


def _answer_alone(text: str | None) -> str | Verdict:
    """Return the text of an answer without its thought; or the verdict where nothing is left."""
    answer = text or ""
    if not answer.isascii():
        # In pieces: combining marks in a row take time with the square of their number.
        answer = _BEYOND_ASCII.sub(
            lambda piece: unicodedata.normalize("NFKC", piece[0]), _INVISIBLE.sub("", answer)
        )
    if "<" in answer:
        answer = _THOUGHT_ENDS.split(answer)[-1]
        if _THOUGHT_BEGINS.search(answer):
            return Verdict("truncated", reason="the thought does not end")
    answer = answer.replace("\\[", "[").replace("\\]", "]").replace("\r", "").strip()
    return answer or Verdict("empty", reason="no text")


# Words of a verdict

_TIE_WORDS = ("tie", "tied", "same", "equal", "draw")
_NOUNS = "response|translation|answer|option|candidate|assistant|output|text|model"
_OPENING = r"(?:[\"'“‘«`*_(\[{<$]|\\?boxed\b|\\(?:text(?:bf|tt)?|mathrm)\b|\\){0,24}\s*"
_CLOSING = r"\s*[\"'”’»`*_)\]}>$]{0,24}"
# How a sentence may go on after a verdict: "A.", "A (more fluent)", "A, since ...", "A is better".
_THEN = (
    r"(?=\s*$|\s*[.,;:!(—–]|\s+[-–—]+\s|\s+(?:because|since|as|due|wins)\b"
    r"|\s+(?:is\s+|was\s+)?(?:the\s+)?(?:\w+ly\s+|much\s+|far\s+)?(?:better|best|preferred|winner))"
)


_MARKS = "grade|score|rating|mark"
_GRADE = r"[-+]?\d{1,9}(?:\.\d{1,9})?"
_SCORE = r"(\d{1,2}(?:\.\d{1,4})?)(?:\s*/\s*10)?(?!\w|[./]\d)[*_`]{0,3}"
_STEPS = {">>": 2, "≫": 2, ">": 1, "=": 0, "≈": 0, "<": -1, "<<": -2, "≪": -2}


@dataclass(frozen=True)
class _Words:
    scale: Scale
    grades: tuple[float, ...] | None
    points: dict[str, Points]
    exact: re.Pattern[str]  # nothing but a verdict
    leading: re.Pattern[str]  # a verdict, and how prose goes on
    doubted: re.Pattern[str]  # what follows takes it back


class _Statement(NamedTuple):
    """A verdict as stated, by the points of each response; where they are None, why."""

    points: Points | None
    why: str = ""
    fields: dict[str, Any] | None = None  # of a JSON object


@lru_cache(maxsize=32)
def _words(answer: AnswerFormat) -> _Words:
    points: dict[str, Points] = dict.fromkeys(_TIE_WORDS, (0, 0))
    closing = _THEN
    if answer.tie is not None:
        points[answer.tie.casefold()] = (0, 0)
    names = answer.first.casefold(), answer.second.casefold()
    points |= {names[0]: (1, 0), names[1]: (0, 1)}
    word = "|".join(re.escape(name) for name in sorted(points, key=len, reverse=True))
    tie = "|".join(re.escape(name) for name, each in points.items() if each == (0, 0))
    side = f"{re.escape(answer.first)}|{re.escape(answer.second)}"
    value = (
        rf"{_OPENING}(?:(?P<left>{side})\s*(?P<than>>+|<+|=+|≈|≫|≪)\s*(?P<right>{side})"
        rf"|(?:an?|the)\s+(?P<tie>{tie})"
        rf"|(?P<noun>(?:the\s+)?(?:{_NOUNS})\s*\(?\s*)?(?P<word>{word}))(?!\w){_CLOSING}"
    )
    if answer.grades is not None:
        points = {name: (grade,) for name, grade in PASS_WORDS.items() if answer.is_passing}
        word = "|".join((*points, _GRADE))
        top = rf"(?:\s*(?:/|out of)\s*{re.escape(str(answer.grades[-1]))})?"
        head = rf"(?:(?:(?:the|my|final|overall)\s+){{0,3}}(?:{_MARKS})\s*[:=][\s*_`]{{0,4}})?"
        # What makes it another number, or no single one: 4.55, 4/10, 4-5.
        another = r"(?!\w|[.,]\d|\s*[-–—/]\s*\d)"
        value = rf"{_OPENING}{head}(?P<word>{word}){top}{another}{_CLOSING}"
    elif answer.scale == "scores":
        name = rf"(?:(?:the\s+)?(?:{_NOUNS})\s+)?"
        first, second = (
            rf"(?:{name}{re.escape(side)}[*_`]{{0,3}}\s*[:=]\s*)?[*_`]{{0,3}}{_SCORE}"
            for side in (answer.first, answer.second)
        )
        head = r"(?:(?:(?:the|my|final|overall)\s+){0,3}scores?\s*[:=][\s*_`]{0,4})?"
        value, word = rf"{_OPENING}{head}{first}(?:\s*[,;]\s*|\s+){second}{_CLOSING}", _SCORE
        closing = r"\s*[.!]?\s*$"
    hedge = r"\b(?:or|maybe|perhaps|possibly|(?:could|might|may) (?:also )?be)\b|/"
    return _Words(
        answer.scale,
        answer.grades,
        points,
        re.compile(rf"{value}[.!]?", re.IGNORECASE),
        re.compile(rf"(?:that\s+)?{value}{closing}", re.IGNORECASE),
        re.compile(
            r"\s*(?:if|unless|when|means|would|could|might|for|in case|where|or)\b|[^.]*\?"
            rf"|[^.]*?(?:{hedge})[^.]{{0,24}}?(?<!\w)(?:{word})(?!\w)",
            re.IGNORECASE,
        ),
    )


def _points(match: re.Match[str], words: _Words) -> Points | None:
    if words.grades is not None:
        word = match["word"].casefold()
        (grade,) = words.points[word] if word in words.points else (float(word),)
        return next(((point,) for point in words.grades if point == grade), None)
    if words.scale == "scores":
        scores = float(match[1]), float(match[2])
        return scores if all(1 <= score <= 10 for score in scores) else None
    if match["tie"] or match["word"]:
        points = words.points[(match["tie"] or match["word"]).casefold()]
        return None if words.scale == "steps" and any(points) else points
    left, right = (words.points[match[name].casefold()] for name in ("left", "right"))
    than = match["than"] if words.scale == "steps" else match["than"][0]
    if left == right or than not in _STEPS:
        return None
    step = _STEPS[than] if words.scale == "steps" else min(max(_STEPS[than], -1), 1)
    winner = left if step > 0 else right
    return abs(step) * winner[0], abs(step) * winner[1]


def _exactly(value: object, words: _Words) -> Points | None:
    kinds = str | int if words.grades is None else str | int | float
    is_plain = isinstance(value, kinds)
    if not is_plain or (isinstance(value, bool) and words.grades is None):
        return None
    match = words.exact.fullmatch(str(value).strip())
    return _points(match, words) if match else None


# Statements of a verdict

_TAG = re.compile(
    r"\[\[([^\[\]\n]{1,40})\]\]"
    r"|<((?:final_)?(?:verdict|answer|choice|decision|winner|(?P<scores>scores?|grade|rating)))>"
    r"([^<>]{0,80}(?:[<>]{1,3}[^<>]{0,40})?)</\2>",
    re.IGNORECASE,
)
_KEYS = (
    *("verdict", "winner", "choice", "decision", "preference", "preferred", "judgment"),
    *("judgement", "better", "best", "answer", "result", "output"),
)
_ALWAYS = ("verdict", "winner")  # keys that state a verdict even if it is none of the words
_GRADE_KEYS = ("grade", "score", "rating", "mark", "verdict", "pass", "passed", "answer", "result")
_AROUND_KEYS = re.compile(rf"^(?:final|my|overall)[ _-]|[ _-](?:{_NOUNS})$")
_OBJECT = re.compile(r"\{\s*[\"'`\w]")
# An object that is nearly JSON (other quotes, a comma too many), and its fields.
_NEARLY = re.compile(r"\{[^{}]*\}")
_FIELD = re.compile(
    r"[{,\n][ \t]{0,40}[\"'`]?(\w[\w -]{0,40})[\"'`]? ?: {0,40}[\"']([^\"'\n]*)[\"'](?=\s*[,}\n])"
)
_NUMBER = re.compile(r"\W{0,8}\d")
_PLACES = 16  # of a word that may be the verdict: looked at from the end
_MOST = 64  # broken objects that are looked at: no answer that means anything has more
_JUDGEMENTS = "rating|judge?ment|decision|preference|choice|answer|result"
# "So my final verdict: A", but not "Fluency verdict: A".
_LABEL, _GRADE_LABEL = (
    re.compile(
        r"(?:.*[\u2e80-\U0010ffff])?[\W_]{0,24}"
        r"(?:(?:so|thus|hence|therefore|the|my|our|this|final|overall)\b[ ,*_]{1,8}){0,6}?"
        rf"(?:(?P<verdict>verdict)|{nouns}|(?:final|my) (?:{_JUDGEMENTS}))"
        r"[ *_`]{0,16}(?:[:=]|->|→|is\b) {0,40}(?P<value>.{1,300})",
        re.IGNORECASE,
    )
    for nouns in (rf"winner|preferred (?:{_NOUNS})", _MARKS)
)
_LAST_LABEL = re.compile(
    rf"[\W_]{{0,16}}(?:{_JUDGEMENTS}|output|selection|selected|chosen|better|best|preferred)"
    rf"(?: (?:{_NOUNS}))?(?:[ \t*_`]{{0,8}}[:=]|\])\s*(?P<value>.{{1,300}})",
    re.IGNORECASE,
)
_AFTER_THE_LAST_LINE = re.compile(r"```|[\W_]*confidence\b|$", re.IGNORECASE)
_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")
_NEAR = 300  # characters before a tag that are looked at
_LONGEST_LINE = 4000
_QUOTES = "\"'“‘”’`«»"
_SENTENCE_ENDS = re.compile(r"[.!?。！？;；]\s|\n")
# What stands before a verdict that is not meant: "not [[A]]", "it would be [[A]]", "if so, [[A]]".
_DOUBT = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|than|instead of|could|might|may|should|either)|n['’]t"
    r"|(?:\bwould|['’]d)(?=\s+(?:be|have|become)\b))(?:\s+\w+){0,3}\s*[\"'“‘`*_]*$"
    r"|\b(?:if|unless|suppose|assuming|had(?:\s+\w+){1,3}\s+been)\b",
    re.IGNORECASE,
)


def _last_statement(text: str, words: _Words) -> _Statement | None:
    """Read the last object, or what the last paragraph after it states that states anything."""
    stated, end = _last_object(text, words)
    rest = text[end:].strip()
    for paragraph in reversed(_BETWEEN_PARAGRAPHS.split(rest)):
        if of_paragraph := _in_paragraph(paragraph, words):
            stated = of_paragraph
            break
    points = _last_line(rest, words)
    if points is None:
        return stated
    return _agreed([_Statement(points), *([stated] if stated else [])])


def _agreed(statements: Sequence[_Statement]) -> _Statement:
    """Return the last statement, without its points if another has different ones."""
    if len({statement.points for statement in statements}) > 1:
        return _Statement(None, "verdicts contradict each other")
    return statements[-1]


def _last_object(text: str, words: _Words) -> tuple[_Statement | None, int]:
    """Read the last JSON object that holds a verdict; also returns where it ends."""
    decoder = json.JSONDecoder(object_pairs_hook=_fields, strict=False)
    stated, end, n_broken, place = None, 0, 0, 0
    while opening := _OBJECT.search(text, place):
        start = opening.start()
        try:
            fields, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            n_broken += 1
            if n_broken == _MOST:
                return _Statement(None, "too many objects that are broken"), len(text)
            nearly = _NEARLY.match(text, start)
            place = nearly.end() if nearly else start + 1
            fields = _fields(_FIELD.findall(text, start, place))
        if statement := _in_object(fields, words):
            stated, end = statement, place
    return stated, end


def _fields(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return values by keys as `_KEYS` has them; of two different ones nobody knows which."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        key = _AROUND_KEYS.sub("", name.strip().casefold())
        fields[key] = value if fields.get(key, value) == value else None
    return fields


def _in_object(fields: dict[str, Any], words: _Words) -> _Statement | None:
    """Return the verdict of an object, or else of those within it that are the least deep."""
    level: list[Any] = [fields]
    while level:
        objects = [value for value in level if isinstance(value, dict)]
        if statements := [stated for value in objects if (stated := _of_fields(value, words))]:
            return _agreed(statements)
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return None


def _of_fields(fields: dict[str, Any], words: _Words) -> _Statement | None:
    if words.scale == "scores":
        names = [name for name, points in words.points.items() if any(points)]
        both = ", ".join(str(fields.get(name)) for name in names)
        has_scores = any(name in fields for name in names)
        return _Statement(_exactly(both, words), _unknown(both), fields) if has_scores else None
    is_graded = words.grades is not None
    keys, always = (_GRADE_KEYS, _GRADE_KEYS[:7]) if is_graded else (_KEYS, _ALWAYS)
    for key in keys:
        value = fields.get(key)
        points = _exactly(value, words)
        if points or (key in always and key in fields and not isinstance(value, dict)):
            return _Statement(points, _unknown(value), fields)
    return None


def _in_paragraph(paragraph: str, words: _Words) -> _Statement | None:
    """Read the tags of a paragraph and lines such as ``Verdict: A``: all have to agree."""
    statements, last = [], None
    for tag in _TAG.finditer(paragraph):
        if tag["scores"] and words.scale != "scores" and words.grades is None:
            continue
        last, value = tag, tag[1] or tag[4]
        statements.append(_Statement(_exactly(value, words), _unknown(value)))
    if last is not None and _is_doubted(paragraph, last, words):
        return _Statement(None, "negated, conditional or quoted in passing")
    pattern = _LABEL if words.grades is None else _GRADE_LABEL
    for line in paragraph.split("\n"):
        label = pattern.match(line[:_LONGEST_LINE])
        if label is not None and not _TAG.search(line):
            points = _leading(label["value"], words)
            is_number = words.grades is not None and _NUMBER.match(label["value"])
            if points or label["verdict"] or is_number:
                statements.append(_Statement(points, _unknown(label["value"])))
    return _agreed(statements) if statements else None


def _is_doubted(paragraph: str, tag: re.Match[str], words: _Words) -> bool:
    """Whether the words around a tag do not stand by it."""
    before = paragraph[max(tag.start() - _NEAR, 0) : tag.start()]
    before = _SENTENCE_ENDS.split(before)[-1]
    after = paragraph[tag.end() : tag.end() + _NEAR].partition("\n")[0].lstrip("\"'”’`*_)")
    is_quoted = before.endswith(tuple(_QUOTES)) and before.strip(_QUOTES + " *_>")
    return bool(_DOUBT.search(before) or words.doubted.match(after) or is_quoted)


def _last_line(text: str, words: _Words) -> Points | None:
    """Read a last line that is nothing but a verdict; a letter alone has to be capital."""
    lines = [line.strip() for line in text.rsplit("\n", 3)]
    while len(lines) > 1 and _AFTER_THE_LAST_LINE.match(lines[-1]):
        lines.pop()
    line = lines[-1][-_LONGEST_LINE:]
    pairs = ("()", "[]", "{}", *(() if words.scale == "steps" else ("<>",)))
    if any(line.count(pair[0]) != line.count(pair[1]) for pair in pairs):
        return None
    if label := _LAST_LABEL.match(line):
        return _leading(label["value"], words)
    match, word = words.exact.fullmatch(line), line.strip(" \t*_.!")
    if match is None or (line != text and len(word) == 1 and word.islower()):
        return None
    if line != text and match.groupdict().get("noun") and "(" not in line:  # may be a heading
        return None
    return _points(match, words)


def _leading(value: str, words: _Words) -> Points | None:
    """Read a verdict that a sentence may follow, unless that takes it back."""
    match = words.leading.match(value)
    if match is None or words.doubted.match(value, match.end()):
        return None
    return _points(match, words)


def _unknown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return f"not one of the words asked for: {shown[:40]}"


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
