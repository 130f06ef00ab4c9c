"""What the simulated judge says: a thought, and an answer in the form that the prompt asks for."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from random import Random

from btdagg.judge.simulated.judging import Habits, Seen, decisive, instructions, vote

_TAG = re.compile(r"\[\[(\w+)\]\]")
_LINE = re.compile(r"Verdict: (\w+)")
_TIE_WORDS = ("TIE", "SAME", "EQUAL", "C")

REFUSAL = "I'm sorry, but I can't help with comparing these responses."
UNDECIDED = (
    "Both responses have their merits. Response A is longer; Response B is more to the point."
)


@dataclass(frozen=True)
class SimulatedAnswer:
    """A thought, an answer, and what it decides: A, B or tie as shown, or a sample's number."""

    reasoning: str
    text: str
    decision: str


@dataclass(frozen=True)
class WantedForm:
    """The form in which a prompt wants its answer.

    Attributes
    ----------
    form
        json, tag or line.
    tie
        The word for a tie; empty where none is allowed.
    confidence
        Whether the answer is to say how sure it is.
    choose
        Whether the number of a sample is asked for.
    """

    form: str
    tie: str
    confidence: bool
    choose: bool


def asked(prompt: str, response_format: object, seen: Seen) -> WantedForm:
    """Read from the instructions which words are allowed and how they are to be written."""
    prompt = instructions(prompt)
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    tags = _TAG.findall(prompt)
    words = {word.upper() for word in (*tags, *_LINE.findall(prompt))}
    schema = json.dumps(response_format) if kind == "json_schema" else prompt
    if kind in ("json_schema", "json_object") or re.search('"(verdict|choice)":', prompt):
        words |= {word for word in _TIE_WORDS[:3] if f'"{word}"' in schema}
        form = "json"
    else:
        form = "tag" if tags else "line"
    tie = next((word for word in _TIE_WORDS if word in words), "")
    asks_for_one = '"choice"' in schema or "[[1]]" in prompt or "Choice: " in prompt
    choose = bool(seen.samples) and asks_for_one
    return WantedForm(form, tie, "confidence" in schema.lower(), choose)


def answer(
    seen: Seen,
    wanted: WantedForm,
    habits: Habits,
    *,
    temperature: float,
    random: Random,
    seed: int,
) -> SimulatedAnswer:
    """Vote on what is seen; of several answers, go with the majority."""
    if seen.samples:
        return _aggregated(seen, wanted, random)
    better = vote(seen, habits, temperature, random, seed)
    if not wanted.tie:
        better = decisive(better, random)
    word = {1: "A", -1: "B", 0: wanted.tie}[better]
    sure = random.randint(55, 99)
    opening = random.choice(("Let me compare the two.", "Reading both against the prompt.", "Hm."))
    reasoning = (
        f"{opening} A first: {seen.first[:60]!r}. Then B: {seen.second[:60]!r}. "
        "If A were clearly better I would say so, and likewise B."
    )
    said = {1: "A has fewer problems.", -1: "B has fewer problems.", 0: "They are on a par."}
    return SimulatedAnswer(
        reasoning, _written(said[better], word, sure, wanted), word if better else "tie"
    )


def _aggregated(seen: Seen, wanted: WantedForm, random: Random) -> SimulatedAnswer:
    verdicts = {number: _verdict_in(text) for number, text in seen.samples}
    counts = Counter(verdicts.values())
    most = max(counts.values())
    winner = next(word for word, count in counts.items() if count == most)
    reasoning = f"The answers say {', '.join(verdicts.values())}."
    if wanted.choose:
        word = next(number for number, verdict in verdicts.items() if verdict == winner)
    else:
        word = wanted.tie if winner == "tie" and wanted.tie else winner
    return SimulatedAnswer(
        reasoning, _written("Most agree.", word, random.randint(55, 99), wanted), word
    )


def _verdict_in(text: str) -> str:
    found = re.findall(r'\[\[(\w+)\]\]|Verdict: (\w+)|"verdict": ?"(\w+)"', text)
    word = "".join(found[-1]).upper() if found else "TIE"
    return "tie" if word in _TIE_WORDS else word


def _written(said: str, word: str, sure: int, wanted: WantedForm) -> str:
    key = "choice" if wanted.choose else "verdict"
    if wanted.form == "json":
        fields: dict[str, object] = {"reasoning": said, key: int(word) if wanted.choose else word}
        if wanted.confidence:
            fields["confidence"] = sure
        return json.dumps(fields)
    lines = [said, ""]
    if wanted.confidence:
        lines.append(f"Confidence: {sure}")
    lines.append(f"[[{word}]]" if wanted.form == "tag" else f"{key.capitalize()}: {word}")
    return "\n".join(lines)
