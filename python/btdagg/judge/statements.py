"""Explicit verdicts in a text, in whatever form, and which of them counts (docs/judge.md)."""
# Recognisers of tags, objects, labels and last lines find statements; `verdict_of` has the rule.

from __future__ import annotations

import json
import re
import string
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from btdagg.judge.quotations import is_copied, is_in, is_quoted
from btdagg.votes.schema import PASS_WORDS

Kind = Literal["tag", "line", "json"]
Scale = Literal["choice", "steps", "scores"]
# Of the response shown first and of the second, a win is (1, 0); or the grade of a response.
Points = tuple[float, ...]

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


# Keys of objects and labels that state a verdict

_KEYS = (
    *("verdict", "winner", "choice", "decision", "preference", "preferred", "judgment"),
    *("judgement", "better", "best", "answer", "result", "output", "final", "overall"),
)
_GRADE_KEYS = ("grade", "score", "rating", "mark", "verdict", "pass", "passed", "final", "overall")
_QUIZ_KEYS = ("answer", "result")  # beside a grade, what was graded
_OF_NUMBERS = ("grade", "score", "scores", "mark")
_SUMS_UP = ("final", "overall")


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a verdict may be written, and where: by the scale that was asked for."""

    read: Callable[[re.Match[str]], Points | None]
    exact: re.Pattern[str]  # nothing but a verdict
    leading: re.Pattern[str]  # a verdict, and how prose goes on
    doubted: re.Pattern[str]  # what follows takes it back
    asked: str = "verdict"  # the label or key that is asked for
    keys: tuple[tuple[str, ...], ...] = (
        _KEYS,
    )  # of objects, besides: all of a tuple have to agree
    always: tuple[str, ...] = ("verdict", "winner")  # state a verdict even if it is no word
    score_keys: tuple[str, ...] = ()  # that have a score each
    labels: frozenset[str] = frozenset(("verdict", "winner", *_SUMS_UP))  # whoever says them
    has_numbers: bool = False
    types: frozenset[type] = frozenset((str, int))  # of JSON
    brackets: tuple[str, ...] = ("()", "[]", "{}", "<>")  # closed, unless a verdict was cut off
    last_line: str = "last"  # form of a line that is nothing but a verdict


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
    points: dict[str, Points] = dict.fromkeys(_TIE_WORDS, (0, 0))
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
    return _words(value, word, read, brackets=brackets)


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
        _SCORE,
        read,
        closing=r"\s*(?:$|[.!](?=\s|$))",
        score_keys=(first.casefold(), second.casefold()),
        labels=Words.labels | {"score", "scores"},
        has_numbers=True,
        last_line="line",  # also what may be asked for, wherever it is
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
        word,
        read,
        other_scale=rf"\s*\(?(?:/|(?:out )?of)\s*(?!{best}(?:\.0)?(?!\.?\d))\d",
        asked="verdict" if is_passing else "grade",
        keys=(_GRADE_KEYS, _QUIZ_KEYS),
        always=_GRADE_KEYS,
        labels=frozenset(("verdict", "rating", *_OF_NUMBERS, *_SUMS_UP)),
        has_numbers=True,
        types=frozenset((str, int, float, bool)),
    )


def _words(
    verdict: str,
    word: str,
    read: Callable[[re.Match[str]], Points | None],
    *,
    closing: str = _THEN,
    other_scale: str = "(?!)",
    **more: Any,
) -> Words:
    value = f"{_OPENING}{verdict}{_CLOSING}"
    hedge = r"\b(?:or|maybe|perhaps|possibly|(?:could|might|may) (?:also )?be)\b|/"
    # "A, B", "4; revised 3", "A>B, B>A": nothing but another one follows.
    replaced = rf"\s*[,;–—-]+\s*(?:(?:no|now|rather|revised|just kidding),?\s+)?(?:{word})"
    doubted = (
        r"\s*(?:if|unless|when|means|would|could|might|for|in case|where|or)\b|[^.]*\?"
        r"|[^.]*?\b(?:only if|but if|unless|provided that)\b"
        rf"|[^.]*?(?:{hedge})[^.]{{0,24}}?(?<!\w)(?:{word})(?!\w)"
        rf"|{replaced}(?:[<>=]+(?:{word}))?\W*$|{other_scale}"
    )
    patterns = (rf"{value}[.!]?", rf"(?:that\s+)?{value}{closing}", doubted)
    exact, leading, doubted_by = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return Words(read=read, exact=exact, leading=leading, doubted=doubted_by, **more)


# Which verdict counts

_NEAR = 300  # characters around a verdict that are looked at
_CONTRADICTED = "verdicts contradict each other"
_DOUBTED = "negated, conditional or quoted in passing"
_FINAL = re.compile(
    r"\b(?:final|finally|overall|ultimately|in conclusion|revised|updated|corrected)\b"
    r"[^.!?\n]{0,40}\s{0,8}[\W_]{0,16}\Z",
    re.IGNORECASE,
)
_FINAL_AT = re.compile(r"<?(?:final|overall)", re.IGNORECASE)  # a label or an element
_FINAL_KEY = re.compile(r"[\"'`](?:final|overall)[ _-]", re.IGNORECASE)
_SENTENCE_ENDS = re.compile(r"[.!?。！？;；]\s|\n")
# What stands before a verdict in a list of several: a bullet, a name and a colon, cells of a table.
_ITEM = re.compile(
    r"[^\w\n]{0,16}(?P<name>\|[^\n]*\||(?:\d+\.)?[^\n:.!?\[\]{}<>]{1,40}(?::|=| [-–—]))?"
    r"[^\w\n]{0,16}"
)
_HEADING = re.compile(r"\s{0,16}(?:#.*|[^\w\n]{0,16}(?:\d+\.)?[^\n.!?]{1,40}[:*][\s*_]{0,8})")


class Statement(NamedTuple):
    """A verdict in a text, as the points of each response (None: `why` says so)."""

    # One that does not `count` is no verdict, but may contradict the one before it.

    form: str  # tag, line or json; others are never asked for
    start: int
    end: int
    verdict: Points | None
    why: str = ""
    counts: bool = True
    fields: dict[str, Any] | None = None  # of a JSON object


def verdict_of(
    text: str, words: Words, kind: Kind, responses: Sequence[str] = ()
) -> Statement | None:
    """Return the verdict that counts, or why none does; None where nothing is stated."""
    # The last of the kind asked for; else one marked as final, if last; else all have to agree.
    # Nothing that follows may differ.
    statements = [
        _unless_quoted(text, statement, responses) for statement in _statements(text, words, kind)
    ]
    verdicts = [statement for statement in statements if statement.counts]
    if not verdicts:
        unclear = [
            statement for statement in statements if statement.form and statement.verdict is None
        ]
        return unclear[-1] if unclear else None
    in_form = [verdict for verdict in verdicts if verdict.form == kind]
    chosen = (in_form or verdicts)[-1]
    # A response that holds a verdict may have been repeated in any form.
    is_planted = responses and any(
        is_in(text[verdict.start : verdict.end], responses) for verdict in verdicts
    )
    if is_planted or (not in_form and not _is_final(text, chosen)):
        chosen = _agreed(verdicts)
    later = [statement for statement in statements if statement.start > chosen.start]
    unlike = [statement for statement in later if statement.verdict != chosen.verdict]
    if unlike and chosen.verdict is not None:
        return chosen._replace(verdict=None, why=unlike[-1].why or _CONTRADICTED)
    return chosen


def _statements(text: str, words: Words, kind: Kind) -> list[Statement]:
    objects = _objects(text, words)
    begins, ends = [span.start for span in objects], [span.end for span in objects]

    def outside(statements: Iterable[Statement]) -> list[Statement]:
        places = ((bisect_right(begins, statement.start), statement) for statement in statements)
        return [statement for k, statement in places if not k or statement.start >= ends[k - 1]]

    found = _without_lists(text, objects)
    for recogniser in (_tags, _labels):
        found += _without_lists(text, outside(recogniser(text, words)))
    # What takes back the last verdict in the form asked for may follow it without a stop.
    asked = (statement.end for statement in found if statement.counts and statement.form == kind)
    found += outside(_retractions(text, max(asked, default=0)))
    places = sorted(statement.start for statement in found)
    for bare in outside(_bare(text, words, kind)):
        k = bisect_left(places, bare.start)
        if k == len(places) or places[k] > bare.end:
            found.append(bare)
    return sorted(found, key=lambda statement: statement.start)


def _unless_quoted(text: str, statement: Statement, responses: Sequence[str]) -> Statement:
    if not statement.form or statement.verdict is None:
        return statement
    place = text, statement.start, statement.end
    return _unless_doubted(statement, is_quoted(*place) or is_copied(*place, responses))


def _is_final(text: str, stated: Statement) -> bool:
    before = text[max(stated.start - _NEAR, 0) : stated.start]
    is_key = stated.fields is not None and _FINAL_KEY.search(text, stated.start, stated.end)
    return bool(is_key or _FINAL_AT.match(text, stated.start) or _FINAL.search(before))


def _without_lists(text: str, statements: list[Statement]) -> list[Statement]:
    """Take what is in one sentence, or line after line, for choices, if not all of it agrees."""
    runs: list[list[Statement]] = []
    for statement in statements:
        if runs and _are_items(text, runs[-1][-1], statement) and not _is_final(text, statement):
            runs[-1].append(statement)
        else:
            runs.append([statement])
    listed = [len({statement.verdict for statement in run}) > 1 for run in runs]
    return [
        statement._replace(verdict=None, why=_CONTRADICTED, counts=False) if is_list else statement
        for run, is_list in zip(runs, listed, strict=True)
        for statement in run
    ]


def _are_items(text: str, first: Statement, second: Statement) -> bool:
    """Whether two are in one sentence, in lines that begin alike, or under their own headings."""
    between = text[first.end : min(second.start, first.end + _NEAR)]
    if any(_retractions(between)):
        return False
    if not _SENTENCE_ENDS.search(between):
        return True
    *above, before = text[max(first.start - _NEAR, 0) : first.start].split("\n")
    _, *middle, last = between.split("\n") if "\n" in between else ("", "-", "")
    heads = _ITEM.fullmatch(before), _ITEM.fullmatch(last)
    if None in heads:
        return False
    if headings := [line for line in middle if line.strip()]:
        headings += [line for line in above if line.strip()][-1:]
        return len(headings) == 2 and all(map(_HEADING.fullmatch, headings))
    return not middle or all(head and head["name"] for head in heads)


def _agreed(statements: Sequence[Statement]) -> Statement:
    if len({statement.verdict for statement in statements}) > 1:
        return statements[-1]._replace(verdict=None, why=_CONTRADICTED)
    return statements[-1]


def statement_of(form: str, span: tuple[int, int], value: object, words: Words) -> Statement:
    """Return a statement of a value that is nothing but a verdict."""
    match = words.exact.fullmatch(str(value).strip()) if type(value) in words.types else None
    return _statement(form, span, words.read(match) if match else None, value)


def _statement(
    form: str, span: tuple[int, int], verdict: Points | None, value: object
) -> Statement:
    if verdict is not None:
        return Statement(form, *span, verdict)
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return Statement(form, *span, None, f"not one of the allowed words: {shown[:40]}")


def _unless_doubted(statement: Statement, doubt: object) -> Statement:
    """Take a verdict for none if the words around it do not stand by it."""
    return statement._replace(verdict=None, why=_DOUBTED, counts=False) if doubt else statement


# What stands before a verdict that is not meant: "not [[A]]", "it would be [[A]]", "if so, [[A]]".
_DOUBT = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|than|instead of|could|might|may|should|either)|n['’]t"
    r"|(?:\bwould|['’]d)(?=\s+(?:be|have|become)\b))(?:\s+\w+){0,3}\s*[\"'“‘`*_]*$"
    r"|(?:\b(?:no(?:\s+es)?|reject|disagree with|nicht|kein|pas|не)|不是|不选)\s*[\"'“‘`*_]*$"
    r"|(?:^\W*|\bthe\s+)(?:loser|(?:worse|weaker|worst|losing)(?:\s+\w+)?)(?:\s+is|:)[\s\"'“‘`*_]*$"
    r"|\b(?:if|unless|suppose|assuming|had(?:\s+\w+){1,3}\s+been|not\s+(?:\w+\s+)?final)\b",
    re.IGNORECASE,
)


def _sentence_before(text: str, start: int) -> str:
    return _SENTENCE_ENDS.split(text[max(start - _NEAR, 0) : start])[-1]


# Tags

# "[[A]] is too long": a name and no verdict.
_AS_SUBJECT = re.compile(
    r"\s+(?:is|was|has|does|did|lacks|fails|misses|ends|says|gives)\b"
    r"(?!\s+(?:(?!not\b|never\b)\w+\s+)?(?:better|best|preferred|the winner))|\s*ではな",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[\[<](?:(?<=\[)\[([^\[\]\n]{1,40})\]\]"  # what begins with [ or < is soon found
    r"|(?<=<)((?:final_)?(?:verdict|answer|choice|decision|winner|(?P<scores>scores?|grade|rating)))>"
    r"([^<>]{0,80}(?:[<>]{1,3}[^<>]{0,40})?)</\2>)",
    re.IGNORECASE,
)
_MOST_TAGS = 1000  # no answer that means anything has more, and the words around each take time
_QUOTES = "\"'“‘”’`«»"


def _tags(text: str, words: Words) -> Iterator[Statement]:
    for number, tag in enumerate(_TAG.finditer(text)):
        if number == _MOST_TAGS:
            yield Statement("tag", len(text), len(text), None, "too many verdicts")
            return
        if tag["scores"] and not words.has_numbers:
            continue
        before = _sentence_before(text, tag.start())
        after = text[tag.end() : tag.end() + _NEAR].partition("\n")[0].lstrip("\"'”’`*_)")
        is_quoted = before.endswith(tuple(_QUOTES)) and before.strip(_QUOTES + " *_>")
        is_doubted = _DOUBT.search(before) or words.doubted.match(after) or _AS_SUBJECT.match(after)
        yield _unless_doubted(
            statement_of("tag", tag.span(), tag[1] or tag[4], words), is_quoted or is_doubted
        )


# Objects

_AROUND_KEYS = re.compile(rf"^(?:final|my|overall)[ _-]|[ _-](?:{_NOUNS})$")
_OBJECT = re.compile(r"\{\s*[\"'`\w]")
# An object that is nearly JSON (other quotes, a comma too many), and its fields.
_NEARLY = re.compile(r"\{[^{}]*\}")
_FIELD = re.compile(
    r"[{,\n][ \t]{0,40}[\"'`]?(\w[\w -]{0,40})[\"'`]? ?: {0,40}[\"']([^\"'\n]*)[\"'](?=\s*[,}\n])"
)
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
                found.append(Statement("json", end, end, None, "too many broken objects"))
                break
            nearly = _NEARLY.match(text, start)
            place = nearly.end() if nearly else start + 1
            fields = _fields(_FIELD.findall(text, start, place))
        if statement := _in_object(fields, words):
            statement = statement._replace(start=start, end=place)
            found.append(_unless_doubted(statement, _DOUBT.search(_sentence_before(text, start))))
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
        return statement_of("json", (0, 0), both, words)._replace(fields=fields)
    for keys in ((words.asked,), *words.keys):
        values = [(key, fields[key]) for key in keys if not isinstance(fields.get(key, {}), dict)]
        stated = [(key, statement_of("json", (0, 0), value, words)) for key, value in values]
        if read := [
            statement for key, statement in stated if statement.verdict or key in words.always
        ]:
            verdicts = [statement for statement in read[1:] if statement.verdict]
            return _agreed([read[0], *verdicts])._replace(fields=fields)
    return None


# Labels

_JUDGEMENTS = "rating|judge?ment|decision|preference|choice|answer|result"
# In small letters, as is what is searched: to search regardless of case takes ten times as long.
_QUALIFIED = rf"( (?:{_NOUNS})| \((?:final|revised|updated|corrected)\))?[ *_`]{{0,16}}"
_LABEL = re.compile(
    rf"(verdict|winner|(?:final|overall)(?={_QUALIFIED.replace('(', '(?:', 1)}[:=])|grade|scores?"
    rf"|mark|{_JUDGEMENTS}|output|selection|selected|chosen|better|best|preferred)"
    rf"{_QUALIFIED}([:=\]]|->|→|(?:is|changed to)\b) {{0,40}}"
)
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)  # keeps the length
# "So my final verdict: A", but not "Fluency verdict: A" or "it says 'Verdict: A'".
_LEAD = re.compile(
    r"(?<![0-9a-z_\u00c0-\u2e7f])"
    r"((?:(?:so|thus|hence|therefore|the|my|our|this|final|overall|revised|updated"
    r"|corrected|new)\b[ ,*_]{1,8}){0,6})\Z"
)
_MINE = re.compile(r"\b(?:final|my|revised|updated|corrected)\b")
_OF_PROSE = ("better", "best", "preferred")
_IN_PASSING = re.compile(rf"[\w{_QUOTES}][ *_]*\Z")
_LINE_BEGINS = re.compile(r"(?:\A|\n)[\W_]{0,24}\Z")
_SENTENCE_BEGINS = re.compile(r"(?:\A|\n|[.!?。！？;；]\s|[\u2e80-\U0010ffff])[\W_]{0,24}\Z")
_STOPS = re.compile(r"\s*(?:[.!;]|$)")
_NUMBER = re.compile(r"\W{0,8}\d")


def _labels(text: str, words: Words) -> Iterator[Statement]:
    small = text.translate(_SMALL)
    last = _place_of_last_line(text)
    for label in _LABEL.finditer(small):
        begin, end = label.span()
        noun, sign = label[1], label[3]
        value = text[end : end + _NEAR].partition("\n")[0]
        match = words.leading.match(value)
        points = words.read(match) if match and _is_closed(match[0], words) else None
        is_number = words.has_numbers and _NUMBER.match(value)
        is_explicit = points or ((noun == "verdict" or is_number) and not _TAG.search(value))
        if noun in _SUMS_UP and not (match and _STOPS.match(value, match.end())):
            continue  # a word of prose
        lead = _LEAD.search(small, max(begin - 64, 0), begin)
        if not is_explicit or lead is None or (noun in _OF_NUMBERS and noun not in words.labels):
            continue
        before = small[max(lead.start() - 32, 0) : lead.start()]
        at_line, at_sentence = _LINE_BEGINS.search(before), _SENTENCE_BEGINS.search(before)
        is_own, is_mine = (
            noun in words.labels or (noun == "preferred" and label[2]),
            _MINE.search(lead[1]),
        )
        if is_own:
            counts = at_sentence is not None
        elif is_mine:  # "the final answer is B" may be of a quiz that was answered
            counts = bool(at_line or (at_sentence and sign != "is"))
        else:
            counts = at_line is not None and begin >= last
        is_heading = not (is_own or is_mine) and (lead[1] or sign not in (":", "=", "]"))
        if is_heading and points and at_sentence and noun in _OF_PROSE:
            counts = False  # "The better one is B" only speaks against another
        elif is_heading or (not at_sentence and not lead[1] and _IN_PASSING.search(before)):
            continue
        if points or counts:
            span = begin, end + (match.end() if match else 0)
            form = "line" if noun == words.asked else "label"
            found = _statement(form, span, points, value)._replace(counts=counts)
            yield _unless_doubted(found, match and words.doubted.match(value, match.end()))


# "Wait, no."
_RETRACTION = re.compile(
    r"[.!?;,:\n。—–-]\s?[\W_]{0,8}(?:(?:but|oh|hm+|no)\b,?\s+)?(?:wait|hold on|scratch that"
    r"|strike that|oops|my mistake|correction|erratum|edit:|actually|sorry|no[,:]|i meant"
    r"|on (?:second thought|reflection)|i take (?:it|that) back|i changed? my mind"
    r"|let me reconsider|更正|等等|不对)(?!\w)"
)


def _retractions(text: str, start: int = 0) -> Iterator[Statement]:
    for match in _RETRACTION.finditer("\n" + text[start:].translate(_SMALL)):
        end = start + match.end() - 1
        yield Statement("", end, end, None, "taken back", counts=False)


# A last line

_AFTER_THE_LAST_LINE = re.compile(r"```|[\W_]*confidence\b|$", re.IGNORECASE)
_LINE = re.compile(r"[^\n]+")


def _place_of_last_line(text: str) -> int:
    end = len(text)
    while True:
        start = text.rfind("\n", 0, end) + 1
        if start == 0 or not _AFTER_THE_LAST_LINE.match(text[start:end].strip()):
            return start
        end = start - 1


def _bare(text: str, words: Words, kind: Kind) -> Iterator[Statement]:
    """Read a last line that is nothing but a verdict; a letter alone has to be capital."""
    first = 0 if words.last_line == kind else _place_of_last_line(text)
    for place in _LINE.finditer(text, first):
        line = place[0].strip()
        match = words.exact.fullmatch(line)
        if match is None or not _is_closed(line, words, both=True):
            continue
        is_letter = len(line.strip(" \t*_.!")) == 1 and line.islower()
        is_heading = match.groupdict().get("noun") and "(" not in line
        if line == text or not (is_letter or is_heading):
            yield _statement(words.last_line, place.span(), words.read(match), line)


def _is_closed(text: str, words: Words, *, both: bool = False) -> bool:
    n_open = [text.count(pair[0]) - text.count(pair[1]) for pair in words.brackets]
    return not any(n_open) if both else max(n_open) <= 0
