"""Explicit verdicts in a text, and the one that it ends with (docs/judge.md)."""
# Recognisers of tags, objects and lines find statements; `verdict_of` has the rule.

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from btdagg.judge.quotations import is_copied, is_quoted
from btdagg.votes.words import PASS_WORDS, TIE_WORDS

Kind = Literal["tag", "line", "json"]
Scale = Literal["choice", "steps", "scores"]
# Of the response shown first and of the second, a win is (1, 0); or the grade of a response.
Points = tuple[float, ...]

# Words of a verdict

_NOUNS = "response|translation|answer|option|candidate|assistant|output|text|model"
_OPENING = r"(?:[\"'“‘«`*_(\[{<$]|\\?boxed\b|\\(?:text(?:bf|tt)?|mathrm)\b|\\){0,24}\s*"
_CLOSING = r"\s*[\"'”’»`*_)\]}>$]{0,24}"
_MARKS = "grade|score|rating|mark"
_GRADE = r"[-+]?\d{1,9}(?:\.\d{1,9})?"
_SCORE = r"(\d{1,2}(?:\.\d{1,4})?)(?:\s*/\s*10)?(?!\w|[./]\d)[*_`]{0,3}"
_STEPS = {">>": 2, "≫": 2, ">": 1, "=": 0, "≈": 0, "<": -1, "<<": -2, "≪": -2}

# Keys of objects and labels that state a verdict

_KEYS = (
    *("verdict", "winner", "choice", "decision", "preference", "preferred", "judgment"),
    *("judgement", "better", "best", "answer", "result", "output", "final", "overall"),
)
_GRADE_KEYS = ("grade", "score", "rating", "mark", "verdict", "pass", "passed", "final", "overall")
_QUIZ_KEYS = ("answer", "result")  # beside a grade, what was graded
_LABELS = (
    r"verdict|winner|judge?ment|decision|preference|preferred|choice|chosen|selection|selected|better"
    r"|best|answer|output|result|rating|final|overall"
)


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a verdict may be written, and where: by the scale that was asked for."""

    read: Callable[[re.Match[str]], Points | None]
    exact: re.Pattern[str]  # nothing but a verdict
    asked: str = "verdict"  # the label or key that is asked for
    keys: tuple[tuple[str, ...], ...] = (_KEYS,)  # of objects: all of a tuple have to agree
    always: tuple[str, ...] = ("verdict", "winner")  # state a verdict even if it is no word
    score_keys: tuple[str, ...] = ()  # that have a score each
    labels: str = _LABELS  # of a line
    has_numbers: bool = False
    types: frozenset[type] = frozenset((str, int))  # of JSON
    brackets: tuple[str, ...] = ("()", "[]", "{}", "<>")  # closed, unless a verdict was cut off


@lru_cache(maxsize=32)
def words_of(
    first: str, second: str, tie: str | None, scale: Scale, grades: tuple[float, ...] | None
) -> Words:
    """Return how verdicts may be written, by the words and the scale that were asked for."""
    if grades is not None:
        return _words_of_grades(grades)
    if scale == "scores":
        return _words_of_scores(first, second)
    return _words_of_choices(first, second, tie, is_steps=scale == "steps")


def _words_of_choices(first: str, second: str, tie: str | None, *, is_steps: bool) -> Words:
    points: dict[str, Points] = dict.fromkeys(TIE_WORDS, (0, 0))
    if tie is not None:
        points[tie.casefold()] = (0, 0)
    points |= {first.casefold(): (1, 0), second.casefold(): (0, 1)}
    word = "|".join(re.escape(name) for name in sorted(points, key=len, reverse=True))
    ties = "|".join(re.escape(name) for name, point in points.items() if point == (0, 0))
    side = f"{re.escape(first)}|{re.escape(second)}"
    value = (
        rf"(?:(?P<left>{side})\s*(?P<than>>+|<+|=+|≈|≫|≪)\s*(?P<right>{side})"
        rf"|(?:an?|the)\s+(?P<tie>{ties})"
        rf"|(?P<noun>(?:the\s+)?(?:{_NOUNS})\s*\(?\s*)?(?P<word>{word}))(?!\w|[.:!]=?\d)"
    )

    def read(match: re.Match[str]) -> Points | None:
        if name := match["tie"] or match["word"]:
            stated = points[name.casefold()]
            return None if is_steps and any(stated) else stated
        left, right = (points[match[name].casefold()] for name in ("left", "right"))
        than = match["than"] if is_steps else match["than"][0]
        if left == right or than not in _STEPS:
            return None
        step = _STEPS[than] if is_steps else min(max(_STEPS[than], -1), 1)
        winner = left if step > 0 else right
        return abs(step) * winner[0], abs(step) * winner[1]

    brackets = Words.brackets[:3] if is_steps else Words.brackets
    return _words(value, read, brackets=brackets)


def _words_of_scores(first: str, second: str) -> Words:
    name = rf"(?:(?:the\s+)?(?:{_NOUNS})\s+)?"
    both = r"(?:\s*[,;]\s*|\s+)".join(
        rf"(?:{name}{re.escape(side)}[*_`]{{0,3}}\s*[:=]\s*)?[*_`]{{0,3}}{_SCORE}"
        for side in (first, second)
    )
    head = r"(?:(?:(?:the|my|final|overall)\s+){0,3}scores?\s*[:=][\s*_`]{0,4})?"

    def read(match: re.Match[str]) -> Points | None:
        scores = float(match[1]), float(match[2])
        return scores if all(1 <= score <= 10 for score in scores) else None

    return _words(
        head + both,
        read,
        score_keys=(first.casefold(), second.casefold()),
        labels=f"{_LABELS}|scores?",
        has_numbers=True,
    )


def _words_of_grades(grades: tuple[float, ...]) -> Words:
    is_passing = grades == (0, 1)
    points = PASS_WORDS if is_passing else {}
    word = "|".join((*points, _GRADE))
    best = re.escape(str(grades[-1]))
    head = rf"(?:(?:(?:the|my|final|overall)\s+){{0,3}}(?:{_MARKS})\s*[:=][\s*_`]{{0,4}})?"
    # What makes it another number, or no single one: 4.55, 4/10, 4-5.
    another = r"(?!\w|[.,]\d|\s*[-–—/]\s*\d)"

    def read(match: re.Match[str]) -> Points | None:
        name = match["word"].casefold()
        grade = points[name] if name in points else float(name)
        return next(((point,) for point in grades if point == grade), None)

    return _words(
        rf"{head}(?P<word>{word})(?:\s*(?:/|out of)\s*{best})?{another}",
        read,
        asked="verdict" if is_passing else "grade",
        keys=(_GRADE_KEYS, _QUIZ_KEYS),
        always=_GRADE_KEYS,
        labels=f"verdict|final|overall|result|{_MARKS}|scores",
        has_numbers=True,
        types=frozenset((str, int, float, bool)),
    )


def _words(verdict: str, read: Callable[[re.Match[str]], Points | None], **more: Any) -> Words:
    exact = re.compile(f"{_OPENING}{verdict}{_CLOSING}[.!]?", re.IGNORECASE)
    return Words(read=read, exact=exact, **more)


# Which verdict counts

_CONTRADICTED = "verdicts contradict each other"
_NOT_LAST = "the answer does not end with the verdict"
_NOT_CLOSED = "the verdict is broken off"
# What may follow the verdict: marks, elements and tokens, and how sure the judge is of it.
_END = re.compile(
    r"(?:<[^<>\n]{0,40}>|confidence[\W_]{0,40}(?:is[\W_]{0,40})?\d[\d./%]*(?![^\W_])|[^\w?？]|_)*+\Z",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A verdict in a text, as the points of each response (None: `why` says so)."""

    start: int
    end: int
    verdict: Points | None
    why: str = ""
    fields: dict[str, Any] | None = None  # of a JSON object


def verdict_of(text: str, words: Words, responses: Sequence[str] = ()) -> Statement | None:
    """Return the verdict that a text ends with, or why it is none; None where nothing is stated.

    Every other verdict of the text has to be the same, unless it is a quotation.
    """
    statements = [
        statement
        for statement in _statements(text, words)
        if not is_quoted(text, statement.start, statement.end)
        and not is_copied(text, statement.start, statement.end, responses)
    ]
    if not statements:
        return None
    last = statements[-1]
    if last.verdict is None:
        return last
    if any(statement.verdict not in (None, last.verdict) for statement in statements):
        return last._replace(verdict=None, why=_CONTRADICTED)
    if not _END.match(text, last.end) or not _is_announced(text, last.start):
        return last._replace(verdict=None, why=_NOT_LAST)
    return last


def _statements(text: str, words: Words) -> list[Statement]:
    found = _objects(text, words)
    for others in (_tags(text, words), _lines(text, words)):
        inside = [(statement.start, statement.end) for statement in found]
        starts = [start for start, _ in inside]
        for statement in others:
            k = bisect_right(starts, statement.end) - 1
            if k < 0 or inside[k][1] <= statement.start:
                found.append(statement)
        found.sort(key=lambda statement: statement.start)
    return found


def statement_of(span: tuple[int, int], value: object, words: Words) -> Statement:
    """Return a statement of a value that is nothing but a verdict."""
    match = words.exact.fullmatch(str(value).strip()) if type(value) in words.types else None
    verdict = words.read(match) if match else None
    if verdict is not None:
        return Statement(*span, verdict)
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return Statement(*span, None, f"not one of the allowed words: {shown[:40]}")


def _agreed(statements: Sequence[Statement]) -> Statement:
    if len({statement.verdict for statement in statements}) > 1:
        return statements[-1]._replace(verdict=None, why=_CONTRADICTED)
    return statements[-1]


# What may stand before a tag or an object in its sentence: words that only announce it.
_LEAD = re.compile(
    rf"(?:(?:so|thus|hence|therefore|here|the|my|our|this|it|is|as|i|d|ll|would|will|say|choose|pick"
    r"|select|prefer|judge|give|rate|vote for|go with|revised|updated|corrected|winning|one"
    rf"|evaluation|assessment|json|判定|{_LABELS}|{_MARKS}|scores|{_NOUNS})\s)*",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<[^<>\n]{0,40}>|\\?\bboxed\b|\\(?:text(?:bf|tt)?|mathrm)\b|[\W_]", re.IGNORECASE
)
_SENTENCE_ENDS = re.compile(r"[.!?。！？;；]\s|\n")
_NEAR = 300  # characters before a verdict that are looked at


def _is_announced(text: str, start: int) -> bool:
    """Whether nothing in the sentence before a verdict says anything else."""
    sentence = _SENTENCE_ENDS.split(text[max(start - _NEAR, 0) : start])[-1]
    words = _MARKUP.sub(" ", sentence).split()
    return _LEAD.fullmatch("".join(f"{word} " for word in words)) is not None


# Tags

_TAG = re.compile(
    r"[\[<](?:(?<=\[)\[([^\[\]\n]{1,40})\]\]"  # what begins with [ or < is soon found
    r"|(?<=<)((?:final_)?(?:verdict|answer|choice|decision|winner|(?P<scores>scores?|grade|rating)))>"
    r"([^<>]{0,80}(?:[<>]{1,3}[^<>]{0,40})?)</\2>)",
    re.IGNORECASE,
)
_MOST_TAGS = 1000  # no answer that means anything has more, and the words around each take time


def _tags(text: str, words: Words) -> Iterator[Statement]:
    for number, tag in enumerate(_TAG.finditer(text)):
        if number == _MOST_TAGS:
            yield Statement(len(text), len(text), None, "too many verdicts")
            return
        if words.has_numbers or not tag["scores"]:
            yield statement_of(tag.span(), tag[1] or tag[4], words)


# Objects

_AROUND_KEYS = re.compile(rf"^(?:final|my|overall)[ _-]|[ _-](?:{_NOUNS})$")
_OBJECT = re.compile(r"\{\s*[\"'`\w]")
_MOST = 64  # broken objects that are looked at: no answer that means anything has more


def _objects(text: str, words: Words) -> list[Statement]:
    decoder = json.JSONDecoder(object_pairs_hook=_fields, strict=False)
    found: list[Statement] = []
    n_broken, place = 0, 0
    while opening := _OBJECT.search(text, place):
        start = opening.start()
        try:
            fields, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            n_broken += 1
            if n_broken == _MOST:
                end = len(text)
                found.append(Statement(end, end, None, "too many broken objects"))
                break
            place = start + 1
            continue
        if statement := _in_object(fields, words):
            found.append(statement._replace(start=start, end=place))
    return found


def _fields(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return values by keys as `_KEYS` has them; of two different ones nobody knows which."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        key = _AROUND_KEYS.sub("", name.strip().casefold())
        fields[key] = value if fields.get(key, value) == value else None
    return fields


def _in_object(fields: dict[str, Any], words: Words) -> Statement | None:
    """Return the verdict of an object, or else of those within it that are the least deep."""
    level: list[Any] = [fields]
    while level:
        objects = [value for value in level if isinstance(value, dict)]
        if statements := [stated for value in objects if (stated := _of_fields(value, words))]:
            return _agreed(statements)
        inner = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    return None


def _of_fields(fields: dict[str, Any], words: Words) -> Statement | None:
    """Return what the key that is asked for says, or else all others if they agree."""
    if words.score_keys:
        both = ", ".join(str(fields.get(name)) for name in words.score_keys)
        if fields.keys().isdisjoint(words.score_keys):
            return None
        return statement_of((0, 0), both, words)._replace(fields=fields)
    for keys in ((words.asked,), *words.keys):
        values = [(key, fields[key]) for key in keys if not isinstance(fields.get(key, {}), dict)]
        stated = [(key, statement_of((0, 0), value, words)) for key, value in values]
        if read := [
            statement for key, statement in stated if statement.verdict or key in words.always
        ]:
            verdicts = [statement for statement in read[1:] if statement.verdict]
            return _agreed([read[0], *verdicts])._replace(fields=fields)
    return None


# Lines

_LINE = re.compile(r"[^\n]+")
_LABEL = (
    r"[\W_]{{0,24}}(?:(?:so|thus|hence|therefore|the|my|our|this|final|overall|revised|updated"
    r"|corrected|new)[ ,*_]{{1,8}}){{0,6}}({labels})(?: (?:{nouns}))?"
    r"(?: \((?:final|revised|updated|corrected)\))?[ *_`]{{0,16}}(?:[:=\]]|->|→)"
)


def _lines(text: str, words: Words) -> Iterator[Statement]:
    """Read lines such as "Verdict: A", and a last line that is nothing but a verdict."""
    label = _label_of(words.labels)
    last = None
    for line in _LINE.finditer(text):
        if not _END.match(line[0]):
            last = line
        if named := label.match(line[0]):
            value = line[0][named.end() :].strip()
            statement = statement_of(line.span(), value, words)
            if statement.verdict is not None and not _is_closed(value, words):
                statement = statement._replace(verdict=None, why=_NOT_CLOSED)
            if statement.verdict is not None or named[1].casefold() == words.asked:
                yield statement
    if last is None or label.match(last[0]):
        return
    alone = last[0].strip()
    match = words.exact.fullmatch(alone)
    if match is None or not _is_closed(alone, words, both=True):
        return
    is_letter = len(alone.strip(" \t*_.!")) == 1 and alone.islower()
    is_heading = match.groupdict().get("noun") and "(" not in alone
    if alone == text or not (is_letter or is_heading):
        yield statement_of(last.span(), alone, words)


@lru_cache(maxsize=8)
def _label_of(labels: str) -> re.Pattern[str]:
    return re.compile(_LABEL.format(labels=labels, nouns=_NOUNS), re.IGNORECASE)


def _is_closed(text: str, words: Words, *, both: bool = False) -> bool:
    n_open = [text.count(pair[0]) - text.count(pair[1]) for pair in words.brackets]
    return not any(n_open) if both else max(n_open) <= 0
