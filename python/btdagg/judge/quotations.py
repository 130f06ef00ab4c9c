"""Parts of an answer that decide nothing: thoughts in any tags, and text quoted from elsewhere."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

# Elements

# <reasoning>, [THINK] and ◁think▷; <|begin_of_thought|> and <|START_THINKING|> are elements too.
_TAG = re.compile(
    r"[<\[◁](?:(?P<end>/)?(?P<name>[a-z][\w:.-]{0,40})(?:\s[^<>\[\]\n]{0,200})?[>\]▷]"
    r"|\|(?:begin|start|(?P<ends>end))(?:_of)?_(?P<marked>\w{1,40})\|>)",
    re.IGNORECASE,
)
# The only elements whose texts decide: of a verdict, and of how a text looks.
_DECIDING = re.compile(
    r"(?:(?:final|my|overall)[_-]?)?(?:verdict|answer|choice|decision|winner|preference|scores?"
    r"|grade|rating|result|output|solution|conclusion|judge?ment)|final|[bius]|em|br|hr|tt|li|[ou]l"
    r"|t[rdh]|h[1-6]|strong|span|div|p|center|font|mark|code|pre|small|table|tbody|thead|html|body"
    r"|section|bos",
    re.IGNORECASE,
)
_DECIDING_MARKED = ("response", "text", "turn", "sentence")
_ROOTS = ("evaluation", "assessment", "comparison", "review", "report", "root", "xml")
_THOUGHTS = re.compile(
    r"(?:\w+[:_-])?(?:think(?:ing)?|thoughts?|reason(?:ing|s)?|reflections?|scratch_?pad|analysis"
    r"|rationale|deliberation|monologue|chain_of_thought|cot)",
    re.IGNORECASE,
)
# Channels of OpenAI's harmony format.
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,40}<\|message\|>", re.IGNORECASE)
_MESSAGE_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>", re.IGNORECASE)


def without_elements(text: str) -> str | None:
    """Return an answer without the elements that decide nothing; None if one does not end."""
    if channels := [*_CHANNEL.finditer(text)]:
        if channels[-1][1].lower() != "final":
            return None
        text = _MESSAGE_ENDS.split(text[channels[-1].end() :])[0]
    begun: dict[str, int] = {}  # where elements begin that have not ended
    hidden: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        name, marked = (tag["name"] or "").lower(), (tag["marked"] or "").lower()
        if _DECIDING.fullmatch(name or marked) or marked in _DECIDING_MARKED:
            continue
        name = name or marked
        if not (tag["end"] or tag["ends"]):
            begun.setdefault(name, tag.start())
            continue
        # What the prompt has begun is a thought from the start.
        start = begun.pop(name, 0 if _THOUGHTS.fullmatch(name) else None)
        around = (text[:start] + text[tag.end() :]).strip() if name in _ROOTS else "-"
        if start is not None and around:
            hidden = [span for span in hidden if span[0] < start] + [(start, tag.end())]
    first = len(text) - len(text.lstrip())
    for name, start in begun.items():
        is_thought = _THOUGHTS.fullmatch(name) or (start == first and text[start] == "<")
        if is_thought and not any(span[0] <= start < span[1] for span in hidden):
            return None
    parts: list[str] = []
    place = 0
    for start, end in hidden:
        line = text[place:start].rpartition("\n")[2]
        parts += [text[place:start], " " if line.strip() else "\n"]
        place = end
    return "".join([*parts, text[place:]])


# Quotations

_NEAR = 300  # characters around a verdict that are looked at
_SIDE = r"(?:[ab12]|first|second|one|two)"
_NAMES = r"(?:response|answer|translation|candidate|assistant|option|output|text|model|completion)"
# "Response A (verbatim):", "The first response is:", "**Assistant 1's answer**:"
_OF_A_RESPONSE = re.compile(
    rf"\W{{0,16}}(?:the\s+)?(?:{_NAMES}\s+{_SIDE}|{_SIDE}\s+{_NAMES})\b[*_]*"
    r"(?:\s*\([^)\n]{0,40}\)|['’]s\s+\w+|\s+(?:is|was|reads|says|in full|verbatim))?[*_\s]{0,8}:",
    re.IGNORECASE,
)
# What another text says, unless the judge says it ("I would say [[A]]").
_REPORTED = re.compile(
    r"\b(?:says|said|writes|wrote|written|outputs|prints|printed|replies|replied|responds|responded"
    r"|answers|answered|ends|ended|begins|starts|asks|asked|tells|told|reads|states|stated|claims"
    r"|claimed|mentions|mentioned"
    r"|(?:to|and|must|should|just|only) (?:say|write|output|print|reply|respond|answer|choose))\b",
    re.IGNORECASE,
)
# What is about another text, whoever says it.
_OF_OTHERS = re.compile(
    r"\b(?:contain|includ|inject|instruct|embed|insert|quot|verbatim|refus|ignor|obey|demand"
    r"|request|attempt|manipulat|append|disregard|the (?:text|string|phrase|tag|words))",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|my|we|our)\b", re.IGNORECASE)
_MARKS = (("“", "”"), ("«", "»"), ("「", "」"), ("„", "“"))
_SENTENCE = re.compile(r"[.!?。！？;；]\s|\n|<[^<>]*>")
_WORD = re.compile(r"\w")
_LABEL = re.compile(r"[\W_]*(?:[^\W\d_]+ ?){0,4}[:：][\W_]*|[\W_]*")
_FENCE = re.compile(r"^ {0,3}```.*$", re.MULTILINE)


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a verdict is in a quotation, or is what a text about a response reports."""
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    before, after = text[max(line_start, start - _NEAR) : start], text[end:line_end][:_NEAR]
    sentence = _SENTENCE.split(text[max(start - _NEAR, 0) : start])[-1]
    is_told = _REPORTED.search(sentence) and not _FIRST_PERSON.search(sentence)
    if is_told or _OF_OTHERS.search(sentence):
        return True
    return (
        _is_in_marks(text, before, after)
        or _is_in_block(text, before, after, line_start, line_end)
        or _is_in_section(text, before, line_start)
    )


def _is_in_marks(text: str, before: str, after: str) -> bool:
    is_open = before.count('"') % 2 and '"' in after
    is_open = is_open or any(
        before.rfind(left) > before.rfind(right) and right in after for left, right in _MARKS
    )
    is_all = text.startswith(before) and text.endswith(after) and not _WORD.search(after)
    return bool(is_open) and bool(_WORD.search(before)) and not is_all


def _is_in_block(text: str, before: str, after: str, line_start: int, line_end: int) -> bool:
    """Whether it is in a block quote, or in code, that says more."""
    is_alone = _LABEL.fullmatch(before) and not _WORD.search(after)
    if before.lstrip().startswith(">"):
        above = text[max(line_start - _NEAR, 0) : line_start].rstrip("\n").rpartition("\n")[2]
        below = text[line_end + 1 : line_end + _NEAR].partition("\n")[0]
        near = (line for line in (above, below) if line.lstrip().startswith(">"))
        return not is_alone or any(_WORD.search(line) for line in near)
    if re.match(r" {4}\w|\t\w", before):
        return not is_alone
    fences = _fences(text) if "```" in text else []
    k = bisect_right(fences, (line_start, line_start))
    if k % 2 == 0 or k == len(fences):
        return False
    inside = text[fences[k - 1][1] : line_start] + text[line_end : fences[k][0]]
    outside = text[: fences[k - 1][0]] + text[fences[k][1] :]
    is_more = not is_alone or _WORD.search(inside)
    return bool(is_more and _WORD.search(outside))


@lru_cache(maxsize=1)
def _fences(text: str) -> list[tuple[int, int]]:
    return [fence.span() for fence in _FENCE.finditer(text)]


def _is_in_section(text: str, before: str, line_start: int) -> bool:
    """Whether it is in what stands behind the name of a response."""
    if _OF_A_RESPONSE.match(before):
        return True
    begin = max(text.rfind("\n\n", 0, line_start), line_start - 10 * _NEAR, 0)
    for line in reversed(text[begin:line_start].strip("\n").split("\n")):
        if heading := _OF_A_RESPONSE.match(line):
            return not _WORD.search(line, heading.end())
    return False


# Responses that are known

_CONTEXT = 4  # words beside a verdict that tell whether it is copied
_SHORTEST = 4  # characters of a verdict that no prose has by chance


def plain(text: str) -> str:
    """Return a text in which copies are looked for, whatever their case and line breaks."""
    return " ".join(text.casefold().split())


def is_copied(text: str, start: int, end: int, responses: Sequence[str]) -> bool:
    """Whether a verdict stands in a response with the words beside it."""
    verdict = plain(text[start:end])
    if len(verdict) < _SHORTEST or not any(verdict in response for response in responses):
        return False
    before = plain(text[max(start - _NEAR, 0) : start]).split()[-_CONTEXT:]
    after = plain(text[end : end + _NEAR]).split()[:_CONTEXT] if len(before) < 2 else []
    if not before and not after:
        return False
    copied = " ".join([*before, verdict, *after])
    return any(copied in response for response in responses)
