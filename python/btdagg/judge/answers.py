r"""How a judge is asked to answer, and how its answer is read: without a verdict it is no vote.

A verdict is stated by

- a tag: ``[[A]]`` or ``<verdict>A</verdict>``;
- a JSON object with a key such as ``verdict`` or ``winner``;
- a label at the beginning of a line or sentence: ``Verdict: A``, ``The winner is B``;
- a last line that is nothing but the verdict: ``A``, ``Output (a)``, ``Choice: B``.

The last statement counts. If it is negated, conditional, quoted in passing, one of several side by
side, or not a word that was asked for, the answer is unparsed, whatever came before it. A template
may have a pattern of its own instead.

Answers may be of any length: whatever looks around a place looks no further than `_NEAR`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from btdagg._util.errors import InputError

Choice = Literal["first", "second", "tie"]
Status = Literal["ok", "unparsed", "refused", "truncated", "empty"]


CHOICES: dict[int, Choice] = {1: "first", 0: "tie", -1: "second"}  # of a vote where A is first
Kind = Literal["tag", "line", "json"]
_KINDS = ("tag", "line", "json")


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
        both = (self.first, self.second)
        return both if self.tie is None else (*both, self.tie)

    @property
    def instructions(self) -> str:
        """Tell the judge how to answer; stands where a template has ``{answer}``."""
        form = {"tag": "[[{}]]", "line": "Verdict: {}", "json": '"{}"'}[self.kind]
        *most, last = (form.format(word) for word in self.words)
        choice = f"{', '.join(most)} or {last}"
        if self.kind == "json":
            told = (
                'Answer with one JSON object and nothing else: {"reasoning": "...", "verdict": '
                f'"..."}}, where the verdict is {choice}.'
            )
            more = ' Add "confidence": a whole number from 0 to 100, how sure you are of it.'
        else:
            where = (
                "your verdict on a line of its own:"
                if self.kind == "tag"
                else "one line that reads"
            )
            told = f"End with {where} {choice}."
            more = (
                " On the line before it write Confidence: N, where N is a whole number from 0 to "
                "100 that says how sure you are of the verdict."
            )
        return told + more if self.confidence else told

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

    def written(self, choice: Choice) -> str:
        """Write a verdict, and nothing else, in the form that is asked for."""
        word = {"first": self.first, "second": self.second, "tie": self.tie}[choice]
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


# Reading


@dataclass(frozen=True)
class Verdict:
    """What an answer says.

    Attributes
    ----------
    choice : "first", "second", "tie" or None
        As shown to the judge; None unless `status` is ``ok``.
    status : "ok", "unparsed", "refused", "truncated" or "empty"
    confidence : float or None
        From 0 to 1, where it was asked for and given.
    reason : str
        Why there is no choice; empty where there is.
    """

    choice: Choice | None
    status: Status
    confidence: float | None = None
    reason: str = ""


def parse_verdict(
    text: str | None,
    answer: AnswerFormat | None = None,
    *,
    finish_reason: str | None = None,
    refusal: str | None = None,
) -> Verdict:
    """Read the verdict of an answer (:mod:`btdagg.judge.answers` says how).

    An answer that was cut off is truncated even if it holds a verdict, which may not be its last.

    Parameters
    ----------
    text : str or None
        The answer. A thought between ``<think>`` and ``</think>`` is passed over.
    answer : AnswerFormat, optional
        What was asked for; by default ``[[A]]``, ``[[B]]`` or ``[[TIE]]``.
    finish_reason : str, optional
        What the endpoint says: ``length`` is truncated, ``content_filter`` and ``refusal`` refused.
        ``too_long``, truncated too, is a reply that was not read to its end.
    refusal : str, optional
        What the endpoint returns in place of an answer.

    Returns
    -------
    Verdict
    """
    answer = answer or AnswerFormat()
    alone = ended_early(finish_reason, refusal) or answer_alone(text)
    if isinstance(alone, Verdict):
        return alone
    words = _words(answer)
    if answer.pattern is None:
        last = _last_statement(alone, words)
    else:
        last = _last_match(alone, answer.pattern, words)
    if last is None:
        if _REFUSAL.match(alone):
            return Verdict(None, "refused", reason=alone.partition("\n")[0][:120])
        return Verdict(None, "unparsed", reason="no explicit verdict")
    if last.choice is None:
        return Verdict(None, "unparsed", reason=last.why)
    if last.choice == "tie" and answer.tie is None:
        return Verdict(None, "unparsed", reason="a tie, where none was allowed")
    return Verdict(last.choice, "ok", _confidence(alone, last) if answer.confidence else None)


def vote_of(verdict: Verdict, order: str) -> int | None:
    """Return the vote of a verdict from A's point of view, None where there is no choice.

    `order` says which response was shown first, "AB" or "BA".
    """
    if verdict.choice is None:
        return None
    vote = {"first": 1, "tie": 0, "second": -1}[verdict.choice]
    return vote if order == "AB" else -vote


def sequence_probability(token_logprobs: Sequence[float]) -> float:
    """Length-normalised probability of a sequence: exp(mean log p), the geometric mean.

    Parameters
    ----------
    token_logprobs : sequence of float
        Natural logarithm of the probability of every token. Minus infinity, and whatever is below
        the smallest float (endpoints write -9999 for it), makes it 0 or nearly so.

    Raises
    ------
    InputError
        If there are no tokens, or a logarithm is positive by more than rounding does, or NaN.

    References
    ----------
    Taubenfeld et al. (2025), as used by the paper for confidence-informed self-consistency.
    """
    if not len(token_logprobs):
        raise InputError("token_logprobs is empty, expected one of every token")
    for row, value in enumerate(token_logprobs):
        if not value <= 1e-3:
            expected = "a number of at most 0"
            raise InputError(argument="token_logprobs", row=row, came=value, expected=expected)
    return min(math.exp(math.fsum(token_logprobs) / len(token_logprobs)), 1.0)


# The answer without what is none of it

_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad]")
_BEYOND_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,256}")
_REFUSAL = re.compile(
    r"\W{0,40}(?:(?:i['’]?m|i am)\s+(?:(?:really|very|so|truly)\s+)?"
    r"(?:sorry|afraid|unable|not able|not comfortable)\b"
    r"|(?:i\s+)?apologi[sz]e\b|my apologies\b|sorry\b|as an ai\b"
    r"|i\s+(?:can(?:not|\s+not|['’]t)|won['’]t|will not|must decline|have to decline|decline)\b"
    r"|unfortunately,? i (?:can(?:not|['’]t)|am un)"
    r"|es tut mir leid|je suis désolé|lo siento|很?抱歉|对不起|我(?:无法|不能)|申し訳)",
    re.IGNORECASE,
)


def ended_early(finish_reason: str | None, refusal: str | None) -> Verdict | None:
    """Return the verdict on an answer of which the endpoint says that it is none."""
    if refusal or finish_reason in ("content_filter", "refusal"):
        return Verdict(None, "refused", reason=refusal or f"finish reason {finish_reason}")
    if finish_reason == "length":
        return Verdict(None, "truncated", reason="cut off at the limit of tokens")
    if finish_reason == "too_long":
        return Verdict(None, "truncated", reason="longer than what is read of an answer")
    return None


def answer_alone(text: str | None) -> str | Verdict:
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
            return Verdict(None, "truncated", reason="the thought does not end")
    answer = answer.replace("\\[", "[").replace("\\]", "]").strip()
    return answer or Verdict(None, "empty", reason="no text")


# Words of a verdict

_TIE_WORDS = ("tie", "tied", "same", "equal", "draw")
_NOUNS = "response|translation|answer|option|candidate|assistant|output|text|model"
_OPENING = r"(?:[\"'“‘«`*_(\[{<$]|\\?boxed\b|\\(?:text(?:bf|tt)?|mathrm)\b|\\){0,24}\s*"
_CLOSING = r"\s*[\"'”’»`*_)\]}>$]{0,24}"
# How prose may go on after a verdict: "A.", "A (more fluent)", "A, since ...", "A is better".
_THEN = (
    r"(?=\s*$|\s*[.,;:!(—–\n]|\s+[-–—]+\s|\s+(?:because|since|as|due|wins)\b"
    r"|\s+(?:is\s+|was\s+)?(?:the\s+)?(?:\w+ly\s+|much\s+|far\s+|somewhat\s+|overall\s+)?"
    r"(?:better|best|superior|preferred|preferable|stronger|winner)\b)"
)
_BRACKETS = ("()", "[]", "{}", "<>")


@dataclass(frozen=True)
class _Words:
    choices: dict[str, Choice]
    exact: re.Pattern[str]
    leading: re.Pattern[str]
    hedged: re.Pattern[str]


@lru_cache(maxsize=32)
def _words(answer: AnswerFormat) -> _Words:
    choices: dict[str, Choice] = dict.fromkeys(_TIE_WORDS, "tie")
    if answer.tie is not None:
        choices[answer.tie.casefold()] = "tie"
    choices |= {answer.first.casefold(): "first", answer.second.casefold(): "second"}
    ties = [word for word, choice in choices.items() if choice == "tie"]
    a, b = re.escape(answer.first), re.escape(answer.second)
    tie = rf"(?:(?:it['’]?s|it is)\s+)?(?:(?:an?|the)\s+)?(?P<tie>{_any(ties)})(?:\s+quality)?"
    side = rf"(?P<noun>(?:the\s+)?(?:{_NOUNS})\s*\(?\s*)?(?P<side>{_any([*choices])})"
    than = rf"(?P<left>{a}|{b})\s*(?P<than>>+|<+|=+|≈|≫|≪)\s*(?P<right>{a}|{b})"
    value = rf"{_OPENING}(?:{than}|{tie}|{side})(?!\w){_CLOSING}"
    # "A or B" and "A, maybe a tie", but not "A, since B omits a line".
    hedge = r"\b(?:or|maybe|perhaps|possibly|(?:could|might|may) (?:also )?be)\b|/"
    every = _any([*choices])
    return _Words(
        choices,
        re.compile(rf"{value}[.!]?", re.IGNORECASE),
        re.compile(rf"(?:that\s+)?{value}{_THEN}", re.IGNORECASE),
        re.compile(rf"(?:{hedge})[^.\n]{{0,24}}?(?<!\w)(?:{every})(?!\w)|\?", re.IGNORECASE),
    )


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _chosen(match: re.Match[str], words: _Words) -> Choice | None:
    if match["tie"]:
        return "tie"
    if match["side"]:
        return words.choices[match["side"].casefold()]
    left, right = (words.choices[match[name].casefold()] for name in ("left", "right"))
    if left == right:
        return None
    sign = match["than"][0]
    return "tie" if sign in "=≈" else left if sign in ">≫" else right


def _exactly(value: object, words: _Words) -> Choice | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    match = words.exact.fullmatch(str(value).strip())
    return _chosen(match, words) if match else None


# Statements of a verdict


class _Statement(NamedTuple):
    """Where a verdict is stated; the choice is None where it is not clear which, and why."""

    start: int
    end: int
    choice: Choice | None
    why: str = ""
    fields: dict[str, Any] | None = None  # of a JSON object


_KEYS = (
    *("verdict", "winner", "choice", "decision", "preference", "preferred", "judgment"),
    *("judgement", "better", "best", "answer", "result", "output"),
)
_ALWAYS = ("verdict", "winner")  # keys that state a verdict even if it is none of the words
_AROUND_KEYS = re.compile(rf"^(?:final|my|overall)[ _-]|[ _-](?:{_NOUNS})$")
_TAG = re.compile(
    r"\[\[(?P<tag>[^\[\]\n]{1,40})\]\]"
    r"|<(?P<name>(?:final_)?(?:verdict|answer|choice|decision|winner))>"
    r"(?P<element>[^<>]{0,80})</(?P=name)>",
    re.IGNORECASE,
)
_JUDGEMENTS = "rating|judge?ment|decision|preference|choice|answer|result"
# "So my final verdict: A", but not "Fluency verdict: A".
_LABEL = re.compile(
    r"(?:^|(?<=[.!?;:\u2e80-\U0010ffff]))[^\w\n]{0,24}"
    r"(?P<label>(?:(?:so|thus|hence|therefore|the|my|our|this|final|overall|and|as)\b[ \t,*_]{1,8})"
    rf"{{0,6}}?(?:(?P<verdict>verdict)|winner|preferred[ \t](?:{_NOUNS})"
    rf"|(?:final|my|overall)[ \t](?:{_JUDGEMENTS})))"
    r"[ \t*_`]{0,16}(?:[:=]|->|→|is\b)[ \t]{0,40}(?=(?P<value>[^\n]{1,300}))",
    re.IGNORECASE | re.MULTILINE,
)
_LAST_LABEL = re.compile(
    rf"[\W_]{{0,16}}(?:{_JUDGEMENTS}|output|selection|selected|chosen|better|best|preferred)"
    rf"(?:[ \t](?:{_NOUNS}))?(?:[ \t*_`]{{0,8}}[:=]|\])\s*(?P<value>.{{1,300}})",
    re.IGNORECASE,
)
_AFTER_THE_LAST_LINE = re.compile(r"\s*(?:```|[\W_]*confidence\b[^\n]*)$", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*[\"'`\w]")
_INNERMOST = re.compile(r"\{[^{}]*\}")
_FIELD = re.compile(rf"[\"'`]?\b({'|'.join(_KEYS)})[\"'`]?\s*:\s*[\"']([^\"'\n]*)[\"']", re.I)
_MOST = 64  # broken objects that are looked at: no answer that means anything has more
_NEAR = 300  # characters around a statement that are looked at
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
_DOUBT_AFTER = re.compile(
    r"[\"'”’`*_)]*\s*(?:[?/]|(?:if|unless|when|means|would|could|might|for|in case|where|or)\b)",
    re.IGNORECASE,
)


def _last_statement(text: str, words: _Words) -> _Statement | None:
    """Find the last statement of a verdict, which is the one that counts."""
    statements = list(_objects(text, words))
    for find in (_tags, _labels):
        statements += find(_without(text, statements), words)
        statements.sort(key=lambda statement: statement.start)
    last = statements[-1] if statements else None
    stated = last and last.choice
    if last is not None and last.choice and last.fields is None:
        last = _meant(text, last, words)
    if last is not None and len(statements) > 1:
        before = statements[-2]
        if before.choice != stated and side_by_side(text, before[:2], last[:2]):
            last = last._replace(choice=None, why="one of several side by side")
    line = _last_line(text, words)
    if line is None or (last is not None and last.end > line.start):
        return last
    if last is not None and last.choice != line.choice:
        return line._replace(choice=None, why="verdicts contradict each other")
    return line


def _last_match(text: str, pattern: str, words: _Words) -> _Statement | None:
    """Read the last match of a user's pattern."""
    match = _last_of(re.finditer(pattern, text, re.MULTILINE))
    if match is None:
        return None
    value = match[1] or ""
    return _Statement(*match.span(), _exactly(value, words), _unknown(value))


def _last_of(matches: Iterator[re.Match[str]]) -> re.Match[str] | None:
    last = deque(matches, maxlen=1)
    return last[0] if last else None


def side_by_side(text: str, place: Sequence[int], next_place: Sequence[int]) -> bool:
    """Whether two places are in one line, or are the beginnings of a line and the next."""
    n_lines = text.count("\n", place[1], next_place[0])
    if n_lines != 1:
        return n_lines == 0
    starts = (place[0], next_place[0])
    before = (text[max(start - _NEAR, 0) : start].rpartition("\n")[2] for start in starts)
    return not any(map(str.isalpha, "".join(before)))


def _objects(text: str, words: _Words) -> Iterator[_Statement]:
    """Yield JSON objects that hold a verdict, and what is nearly JSON."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
    n_broken = place = 0
    while (opening := _OBJECT.search(text, place)) is not None:
        start = opening.start()
        try:
            fields, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            n_broken += 1
            whole = _INNERMOST.match(text, start)
            stated = whole and _FIELD.search(text, start, whole.end())
            place = whole.end() if whole and stated else start + 1
            fields = _pairs([stated.groups()]) if stated else {}
        if verdicts := _verdicts_in(fields, words):
            statement = verdicts[0]._replace(start=start, end=place)
            if len({verdict.choice for verdict in verdicts}) > 1:
                statement = statement._replace(choice=None, why="verdicts contradict each other")
            yield statement
        if n_broken == _MOST:
            yield _Statement(place, len(text), None, "too many objects that are broken")
            return


def _pairs(pairs: Sequence[Any]) -> dict[str, Any]:
    """Keys as they are known here; one that is there twice with different values has none."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        key = _AROUND_KEYS.sub("", name.strip().casefold())
        fields[key] = value if fields.get(key, value) == value else None
    return fields


def _verdicts_in(fields: dict[str, Any], words: _Words) -> list[_Statement]:
    """Return the verdicts of an object, or else of those within it that are the least deep."""
    level: list[Any] = [fields]
    while level:
        objects = [value for value in level if isinstance(value, dict)]
        if verdicts := [verdict for o in objects if (verdict := _verdict_of(o, words))]:
            return verdicts
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return []


def _verdict_of(fields: dict[str, Any], words: _Words) -> _Statement | None:
    for key in _KEYS:
        value = fields.get(key)
        choice = _exactly(value, words)
        if choice or (key in _ALWAYS and key in fields and not isinstance(value, dict)):
            return _Statement(0, 0, choice, _unknown(value), fields)
    return None


def _tags(text: str, words: _Words) -> Iterator[_Statement]:
    for match in _TAG.finditer(text):
        value = match["tag"] or match["element"]
        yield _Statement(*match.span(), _exactly(value, words), _unknown(value))


def _labels(text: str, words: _Words) -> Iterator[_Statement]:
    for label in _LABEL.finditer(text):
        value = label["value"]
        if match := words.leading.match(value):
            end = label.end() + match.end()
            yield _Statement(label.start("label"), end, _chosen(match, words), _unknown(match[0]))
        elif label["verdict"] and not value.startswith("\0"):  # which has been read
            yield _Statement(label.start("label"), label.end(), None, _unknown(value))


def _last_line(text: str, words: _Words) -> _Statement | None:
    """Read a last line that is nothing but a verdict; a letter alone is to be capital."""
    end = len(text)
    for _ in range(3):  # a fence, and the confidence
        start = text.rfind("\n", 0, end) + 1
        if not start or not _AFTER_THE_LAST_LINE.match(text, start, end):
            break
        end = len(text[:start].rstrip())
    line = text[start:end].strip()[-_LONGEST_LINE:]
    if any(line.count(pair[0]) != line.count(pair[1]) for pair in _BRACKETS):
        return None
    if label := _LAST_LABEL.match(line):
        match = words.leading.match(label["value"])
        if match is None or words.hedged.search(label["value"], match.end()):
            return None
    else:
        match = words.exact.fullmatch(line)
        word = line.strip(" \t*_.!")
        if match is None or (line != text and len(word) == 1 and word.islower()):
            return None
        if line != text and match["noun"] and "(" not in line:  # may be a heading
            return None
    return _Statement(start, len(text), _chosen(match, words), _unknown(line))


def _meant(text: str, stated: _Statement, words: _Words) -> _Statement:
    """Drop the choice of a statement where the words around it do not stand by it."""
    before = _SENTENCE_ENDS.split(text[max(stated.start - _NEAR, 0) : stated.start])[-1]
    after = text[stated.end : stated.end + _NEAR].partition("\n")[0]
    why = ""
    if _DOUBT.search(before) or _DOUBT_AFTER.match(after):
        why = "negated or conditional"
    elif words.hedged.search(after.partition(".")[0]):
        why = "hedged"
    elif before.endswith(tuple(_QUOTES)) and before.strip(_QUOTES + " *_>"):
        why = "quoted in passing"
    return stated._replace(choice=None, why=why) if why else stated


def _without(text: str, statements: Sequence[_Statement]) -> str:
    """Blank out what has been read; places stay."""
    parts, place = [], 0
    for statement in statements:
        start, end = statement[:2]
        parts += [text[place:start], "\0" * (end - start)]
        place = end
    return "".join([*parts, text[place:]]) if parts else text


def _unknown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return f"not one of the words asked for: {shown[:40]}"


# Confidence

_CONFIDENCE = re.compile(
    r"\bconfidence\b[*_`\s]{0,40}(?:[:=]|is\b)[*_`\s]{0,40}(\d{1,9}(?:\.\d{1,20})?)\s{0,8}"
    r"(%|/\s{0,8}100\b)?(?![\w.]{0,40}\d|\s{0,8}[-–/]\s{0,8}\d)",
    re.IGNORECASE,
)


def _confidence(text: str, stated: _Statement) -> float | None:
    match = None
    if stated.fields is not None:
        value = stated.fields.get("confidence")
        if not isinstance(value, bool) and isinstance(value, int | float | str):
            match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|/\s*100)?\s*", str(value))
    else:
        match = _last_of(_CONFIDENCE.finditer(text))
    if match is None:
        return None
    number = float(match[1])
    # 0 to 100 is asked for; 0.85 can only be meant as a fraction.
    share = number if number <= 1 and "." in match[1] and not match[2] else number / 100
    return share if share <= 1 else None
