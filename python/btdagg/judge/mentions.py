r"""Where an answer states a verdict, and whether it means it.

A mention is explicit: ``[[A]]``, ``Verdict: A``, ``Preferred response: A``,
``<verdict>A</verdict>`` or ``<answer>A</answer>``, a JSON object with the key ``verdict`` or
``winner``, or a last line that is nothing but the word. "A is better" is none. A mention that is
negated, conditional, quoted in passing, one of a list of choices, or not a word that was asked for
is there as well, with the choice None: it must not be skipped for an earlier one.

An answer may be anything, so all of this takes time in proportion to its length: what looks around
a place looks so far and no further, and an answer with hundreds of broken objects is given up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from btdagg.judge.answer_format import AnswerFormat

Choice = Literal["first", "second", "tie"]


@dataclass(frozen=True)
class Mention:
    """A place where a verdict is stated; the choice is None where it is not clear which.

    `form` says what the words around it can take back: those of a ``label`` or of a ``tag``.
    """

    start: int
    end: int
    choice: Choice | None
    why: str = ""
    fields: dict[str, Any] | None = None
    form: Literal["", "label", "tag"] = ""


_TIE_WORDS = ("tie", "tied", "same", "equal", "draw")
_KEYS = ("verdict", "winner")  # of JSON objects; the first that is there counts
_NOUNS = "response|translation|answer|option|candidate|assistant|output|text|model"
_LABEL = re.compile(
    r"(?<![a-z0-9_\"'])(?:verdict|(?P<weak>(?:final|my|overall)[ \t]{1,8}"
    r"(?:rating|judge?ment|decision|preference|choice|answer)|winner"
    rf"|preferred[ \t]{{1,8}}(?:{_NOUNS})))"
    r"(?P<after>[ \t]{0,40}[*_`]{0,8}[ \t]{0,40}(?:[:=]|->|→|is\b)"
    r"|[ \t]{0,40}[*_]{0,8}[ \t]{0,40}\n)[ \t]*",
    re.IGNORECASE,
)
# Words without which there is no label; to look for them is much faster.
_OF_LABELS = ("verdict", "winner", "preferred", "final", "my", "overall")
# What may stand before a label: "So my final verdict: A", but not "Fluency verdict: A".
_BEFORE_LABEL = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|the|my|our|this|final|overall|and|as)\b[\s,*_]*)+$",
    re.IGNORECASE,
)
_TAG = re.compile(r"\\?\[\\?\[([^\[\]\\\n]{1,40})\\?\]\\?\]")
_ELEMENT = re.compile(r"<((?:final_)?(?:verdict|answer))>([^<>]{0,80})</\1>", re.IGNORECASE)
_OBJECT = re.compile(r"\{\s*[\"'`\w]")
_INNERMOST = re.compile(r"\{[^{}]*\}")
_FIELD = re.compile(rf"[\"'`]?\b(?:{'|'.join(_KEYS)})\b[\"'`]?\s*:\s*[\"']([^\"'\n]*)[\"']", re.I)
# Broken objects, labels and tags that are looked at: no answer that means anything has more.
_MOST = 64
_DECORATION = re.compile(r"[ \t*_`\"'“‘]*")
_LINE = re.compile(r"[^\n]{0,300}")
_NEXT_LINE = re.compile(r"[\s*_]*([^\n]*)")
_REST_OF_LINE_IS_EMPTY = re.compile(r"[*_ \t]*(?:\n|$)")
_OPENING = r"(?:[\"'“‘«`*_(\[{<$\\]|boxed\b|text(?:bf|tt)?\b|(?<=\\)mathrm\b){0,24}"
_CLOSING = r"[\"'”’»`*_)\]}>$]{0,24}"
# Where prose may go on after the word: "A.", "A (more fluent)", "A, since ...", "A is better".
_THEN = (
    r"(?=\s*$|\s*[.,;:!(—–\n]|\s+[-–—]+\s|\s+(?:because|since|as|due)\b"
    r"|\s+(?:wins\b|(?:is\s+|was\s+)?(?:the\s+)?(?:(?:clearly|slightly|significantly|much|far|somewhat"
    r"|marginally|substantially|strongly|definitely|overall)\s+)?"
    r"(?:better|best|superior|preferred|preferable|stronger|winner)\b))"
)
_HEDGE = r"(?:\bor\b|\bmaybe\b|\bperhaps\b|\bpossibly\b|\b(?:could|might|may) (?:also )?be\b|/|\?)"
_NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|than|instead of)|n['’]t)(?:\s+\w+){0,2}"
    r"\s*[\"'“‘`*_]*$",
    re.IGNORECASE,
)
# "It would be [[A]]", but not "I would say [[A]]".
_UNSURE = re.compile(
    r"(?:\b(?:could|might|may|should|either)|(?:\bwould|['’]d)(?=\s+(?:be|have|become)\b))"
    r"(?:\s+\w+){0,3}\s*[\"'“‘`*_]*$",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|unless|suppose|assuming|had(?:\s+\w+){1,3}\s+been)\b", re.IGNORECASE
)
_CONDITION_AFTER = re.compile(
    r"[\"'”’`*_)]*\s*(?:\?|(?:if|unless|when|means|would|could|might|for|in case|where)\b)",
    re.IGNORECASE,
)
_LEGEND = re.compile(r"[\"'”’`*_)]*\s*(?:[:=–—-]|→|->)\s*\S")
_BETWEEN_CHOICES = re.compile(
    r"(?:[\s,/|;、，；•*_`\"'“”()\-–—]|\bor\b|\band\b|\bversus\b|\bvs\b\.?|\boder\b|或|和|\d[.)])*",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"[.!?。！？;；]\s|\n")
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_NEAR = 300  # characters around a mention that are looked at
_QUOTES = "\"'“‘”’`«»"


def last_mention(text: str, answer: AnswerFormat) -> Mention | None:
    """Find the last mention of a verdict, which is the one that counts.

    Parameters
    ----------
    text : str
        The answer, without the thought.
    answer : AnswerFormat
        The words that were asked for.
    """
    words = _words(answer)
    found: list[Mention] = []
    taken = bytearray(len(text))
    for form in (_json_objects, _elements, _labelled, _tags):
        for mention in form(text, words):
            if taken.find(1, mention.start, mention.end) < 0:
                found.append(mention)
                taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    found.sort(key=lambda mention: mention.start)
    # An earlier one matters where the last is part of a list with it.
    found = [_judged(text, mention, words) for mention in found[-2:]]
    last = _without_lists(text, found)[-1] if found else None
    bare = _bare(text, words)
    if bare is None or (last is not None and last.end > bare.start):
        return last
    agrees = last is None or last.choice == bare.choice
    return bare if agrees else replace(bare, choice=None)


# Words


@dataclass(frozen=True)
class _Words:
    choices: dict[str, Choice]
    exact: re.Pattern[str]
    leading: re.Pattern[str]
    alone: re.Pattern[str]
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
    side = rf"(?:the\s+)?(?:(?:{_NOUNS})\s+)?(?P<side>{_any([answer.first, answer.second])})"
    than = rf"(?P<left>{a}|{b})\s*(?P<than>>+|<+|=+|≈|≫|≪)\s*(?P<right>{a}|{b})"
    value = rf"(?:{than}|{tie}|{side})(?!\w)"
    every = _any([*choices])
    return _Words(
        choices,
        re.compile(rf"{_OPENING}\s*{value}\s*{_CLOSING}[.!]?", re.IGNORECASE),
        re.compile(rf"(?:that\s+)?{_OPENING}\s*{value}{_CLOSING}{_THEN}", re.IGNORECASE),
        re.compile(rf"{_OPENING}\s*(?P<side>{every})\s*{_CLOSING}[.!]?\s*", re.IGNORECASE),
        re.compile(rf"{_HEDGE}[^.\n]{{0,24}}?(?<!\w)(?:{every})(?!\w)|\?", re.IGNORECASE),
    )


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _chosen(match: re.Match[str], words: _Words) -> Choice | None:
    groups = match.groupdict()
    if groups.get("tie"):
        return "tie"
    if groups.get("side"):
        return words.choices[groups["side"].casefold()]
    left, right = (words.choices[groups[name].casefold()] for name in ("left", "right"))
    if left == right:
        return None
    sign = groups["than"][0]
    return "tie" if sign in "=≈" else left if sign in ">≫" else right


def _exactly(value: object, words: _Words) -> Choice | None:
    match = words.exact.fullmatch(value.strip()) if isinstance(value, str) else None
    return _chosen(match, words) if match else None


# Forms


def _json_objects(text: str, words: _Words) -> Iterator[Mention]:
    folded = text.casefold()
    if not any(key in folded for key in _KEYS):
        return
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
    n_tried = 0  # without finding one that holds a verdict, or as broken ones
    place = 0
    while (opening := _OBJECT.search(text, place)) is not None:
        start = opening.start()
        place = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            whole = _INNERMOST.match(text, start)
            stated = _FIELD.search(text, start, whole.end()) if whole else None
            if whole and stated:
                said, place = stated[1], whole.end()
                yield Mention(start, place, _exactly(said, words), _unknown(said))
        else:
            key = next((key for key in _KEYS if key in value), None)
            if key is not None:
                yield Mention(start, end, _exactly(value[key], words), _unknown(value[key]), value)
                place = end
                continue
            if not any(key in text[start:end].casefold() for key in _KEYS):
                place = end
                continue
        n_tried += 1
        if n_tried == _MOST:
            yield Mention(place, len(text), None, "too many objects that are broken")
            return


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keys in lower case; one that is there twice with different values has none."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        key = key.strip().casefold()
        found[key] = value if found.get(key, value) == value else None
    return found


def _elements(text: str, words: _Words) -> Iterator[Mention]:
    for match in _ELEMENT.finditer(text):
        yield Mention(*match.span(), _exactly(match[2], words), _unknown(match[2]))


def _labelled(text: str, words: _Words) -> Iterator[Mention]:
    folded = text.casefold()
    if not any(word in folded for word in _OF_LABELS):
        return
    labels = list(_LABEL.finditer(text))
    for label in labels[:-_MOST][-1:]:  # what stood there must not give way to an earlier verdict
        yield Mention(*label.span(), None, "too many labels")
    for label in labels[-_MOST:]:
        start = label.end()
        if not _may_stand_before(text, label.start()):
            continue
        heading = label["after"].endswith("\n")
        if heading or _REST_OF_LINE_IS_EMPTY.match(text, start):
            yield from _on_the_next_line(text, label, heading, words)
            continue
        opening = _DECORATION.match(text, start)
        tag = _TAG.match(text, opening.end() if opening else start)
        said = _LINE.match(text, start)
        value = said[0] if said else ""
        leading = words.leading.match(value)
        if tag:
            choice = _exactly(tag[1], words)
            yield Mention(label.start(), tag.end(), choice, _unknown(tag[1]), form="label")
        elif leading:
            choice, end = _chosen(leading, words), start + leading.end()
            yield Mention(label.start(), end, choice, _unknown(leading[0]), form="label")
        elif not label["weak"] and not label["after"].casefold().endswith("is"):
            # The label that is asked for, and something else after it.
            yield Mention(label.start(), start, None, _unknown(value))


def _on_the_next_line(
    text: str, label: re.Match[str], heading: bool, words: _Words
) -> Iterator[Mention]:
    line = _NEXT_LINE.match(text, label.end())
    value = line[1].strip() if line else ""
    choice = _exactly(value, words)
    if line and choice:
        yield Mention(label.start(), line.end(), choice)
    elif not label["weak"] and not heading and "[[" not in value:
        yield Mention(label.start(), label.end(), None, _unknown(value))


def _tags(text: str, words: _Words) -> Iterator[Mention]:
    for match in list(_TAG.finditer(text))[-_MOST:]:
        choice = _exactly(match[1], words)
        yield Mention(*match.span(), choice, _unknown(match[1]), form="tag")


def _bare(text: str, words: _Words) -> Mention | None:
    """Find a last line that is nothing but a word; single letters are to be capital."""
    whole = words.exact.fullmatch(text.strip())
    if whole:
        return Mention(0, len(text), _chosen(whole, words))
    start = text.rstrip().rfind("\n") + 1
    line = text[start:].strip()
    match = words.alone.fullmatch(line)
    if match is None or any(line.count(one) != line.count(other) for one, other in _BRACKETS):
        return None
    word = match["side"]
    if len(word) == 1 and word.islower():
        return None
    return Mention(start, len(text), words.choices[word.casefold()])


# What a mention means


def _judged(text: str, mention: Mention, words: _Words) -> Mention:
    """Drop the choice of a mention where the words around it do not stand by it."""
    if mention.choice is None or not mention.form:
        return mention
    start, end = mention.start, mention.end
    sentence = _SENTENCE_ENDS.split(text[max(start - _NEAR, 0) : start])[-1]
    rest = text[end : end + _NEAR].partition("\n")[0]
    why = ""
    if _NEGATED.search(sentence):
        why = "negated"
    elif _CONDITION.search(sentence) or _CONDITION_AFTER.match(rest):
        why = "conditional"
    elif _UNSURE.search(sentence):
        why = "not stated as fact"
    elif sentence.endswith(tuple(_QUOTES)) and sentence.strip(_QUOTES + " *_>"):
        why = "quoted in passing"
    elif mention.form == "label" and words.hedged.search(rest.partition(".")[0]):
        why = "hedged"
    return replace(mention, choice=None if why else mention.choice, why=why)


def _without_lists(text: str, mentions: list[Mention]) -> list[Mention]:
    """Drop the choice of mentions that are a list of what may be chosen, or its legend."""
    kept = list(mentions)
    for number in range(1, len(mentions)):
        one, other = mentions[number - 1], mentions[number]
        if one.choice == other.choice:
            continue
        between = text[one.end : other.start]
        listed = in_a_row(text, (one.start, one.end), (other.start, other.end))
        legend = (
            between.count("\n") <= 2
            and _starts_line(text, one)
            and _starts_line(text, other)
            and _LEGEND.match(text, one.end) is not None
            and _LEGEND.match(text, other.end) is not None
        )
        if listed or legend:
            why = "one of several in a row"
            kept[number - 1 : number + 1] = [
                replace(mention, choice=None, why=why) for mention in (one, other)
            ]
    return kept


def in_a_row(text: str, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether nothing stands between two places but what separates the members of a list."""
    return _BETWEEN_CHOICES.fullmatch(text, one[1], other[0]) is not None


def _starts_line(text: str, mention: Mention) -> bool:
    line = _line_before(text, mention.start)
    return not line.strip(" \t*_-•>`0123456789.)")


def _line_before(text: str, place: int) -> str:
    """Return what stands before a place in its line, as far as it is looked at."""
    return text[max(place - _NEAR, 0) : place].rpartition("\n")[2]


def _may_stand_before(text: str, start: int) -> bool:
    rest = _BEFORE_LABEL.sub("", _line_before(text, start)).rstrip()
    if not rest:
        return True
    last = rest[-1]
    if last in "'’-":
        return False
    # Words of a language without blanks may touch the label; others would qualify it.
    return not (last.isalnum() and ord(last) < 0x2E80)


def _unknown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return f"not one of the words asked for: {shown[:40]}"
