"""From what a judge answered to a vote: strict, and never a tie for want of a verdict."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from btdagg._core import InputError
from btdagg.judge.answer_format import AnswerFormat
from btdagg.judge.mentions import Choice, Mention, last_mention

Status = Literal["ok", "unparsed", "refused", "truncated", "empty"]

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
_CONFIDENCE = re.compile(
    r"\bconfidence\b[*_`\s]{0,40}(?:[:=]|is\b)[*_`\s]{0,40}(\d{1,9}(?:\.\d{1,20})?)\s{0,8}"
    r"(%|/\s{0,8}100\b)?(?![\w.]{0,40}\d|\s{0,8}[-–/]\s{0,8}\d)",
    re.IGNORECASE,
)


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
    """Read the verdict of an answer.

    The last explicit mention of a verdict decides (:mod:`btdagg.judge.mentions` says what is one).
    If that mention is not clear the answer is unparsed, whatever was said before it. An answer that
    was cut off is truncated even if it holds a verdict: it is not known to be the last.

    Parameters
    ----------
    text : str or None
        The answer. A thought between ``<think>`` and ``</think>`` is passed over.
    answer : AnswerFormat, optional
        What was asked for; without it ``[[A]]``, ``[[B]]`` or ``[[TIE]]``.
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
    said = ended_early(finish_reason, refusal) or answer_alone(text)
    if isinstance(said, Verdict):
        return said
    whole = _whole_answers(answer).get(said)
    if whole is not None:
        return whole
    last = last_mention(said, answer)
    if last is None:
        if _REFUSAL.match(said):
            return Verdict(None, "refused", reason=_first_line(said))
        return Verdict(None, "unparsed", reason="no explicit verdict")
    if last.choice is None:
        return Verdict(None, "unparsed", reason=last.why or "verdicts contradict each other")
    if last.choice == "tie" and answer.tie is None:
        return Verdict(None, "unparsed", reason="a tie, where none was allowed")
    confidence = _confidence(said, last) if answer.confidence else None
    return Verdict(last.choice, "ok", confidence)


def vote_of(verdict: Verdict, order: str) -> int | None:
    """Turn a verdict on a pair as it was shown into a vote from A's point of view.

    Parameters
    ----------
    verdict : Verdict
    order : "AB" or "BA"
        Which response was shown first.

    Returns
    -------
    -1, 0, 1 or None
        1 where A is better, None where there is no choice.

    Raises
    ------
    InputError
        If the order is another.
    """
    if order not in ("AB", "BA"):
        raise InputError(f"order is {order!r}, want AB or BA")
    if verdict.choice is None:
        return None
    better_first = {"first": 1, "tie": 0, "second": -1}[verdict.choice]
    return better_first if order == "AB" else -better_first


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
    said = text or ""
    if not said.isascii():
        # In pieces: combining marks in a row take time with the square of their number.
        said = _BEYOND_ASCII.sub(
            lambda piece: unicodedata.normalize("NFKC", piece[0]), _INVISIBLE.sub("", said)
        )
    if "<" in said:
        said = _THOUGHT_ENDS.split(said)[-1]
        if _THOUGHT_BEGINS.search(said):
            return Verdict(None, "truncated", reason="the thought does not end")
    said = said.strip()
    return said or Verdict(None, "empty", reason="no text")


@lru_cache(maxsize=32)
def _whole_answers(answer: AnswerFormat) -> dict[str, Verdict]:
    """Verdicts by the answers that are nothing else: most are, and need no further reading."""
    choices: tuple[Choice, ...] = ("first", "second", "tie")
    words = zip(answer.words, choices, strict=False)
    return {f"[[{word}]]": Verdict(choice, "ok") for word, choice in words}


def _confidence(text: str, last: Mention) -> float | None:
    if last.fields is not None:
        value = last.fields.get("confidence")
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%|/\s*100)?\s*", str(value))
    else:
        found = None
        for found in _CONFIDENCE.finditer(text):  # noqa: B007  # the last one
            pass
    if found is None:
        return None
    number = float(found[1])
    # 0 to 100 is asked for; 0.85 can only be meant as a fraction.
    share = number if number <= 1 and "." in found[1] and not found[2] else number / 100
    return share if share <= 1 else None


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:120]
