"""A judge that costs nothing: how it votes, what it says, and a client that asks it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from random import Random
from statistics import NormalDist
from types import MappingProxyType
from typing import NamedTuple

from btdagg.judge.client import ChatError, ChatReply, ChatRequest, Token

_RESPONSE = r"<((?:response|translation|answer)_{0})>\n?(.*?)\n?</\1>"
_FIRST = re.compile(_RESPONSE.format("a"), re.DOTALL)
_SECOND = re.compile(_RESPONSE.format("b"), re.DOTALL)
_ALONE = re.compile(r"<(response)>\n?(.*?)\n?</\1>", re.DOTALL)
_SAMPLE = re.compile(r"<sample_(\d+)>\n?(.*?)\n?</sample_\1>", re.DOTALL)
_SUM = re.compile(r"(?<!\d)(\d{1,9}) \+ (\d{1,9}) = (\d{1,9})(?!\d)")
# What is the user's in a prompt: the marks of the templates, and what stands between them.
_PAIR = re.compile(
    r"<(instruction|source_text|response|(?:response|translation|answer)_[ab])>.*?</\1>", re.DOTALL
)


@dataclass(frozen=True)
class Habits:
    """Habits of a simulated judge."""

    # A vote is the sign of the quality difference times `sensitivity`, plus `positional_bias` for
    # the first response and noise of items and votes (at temperature 0.5, growing with it); below
    # `tie_width` it is a tie. Scores differ by a step each `score_width`; 4 steps are much better.

    sensitivity: float = 1.5
    tie_width: float = 0.25
    positional_bias: float = 0.2
    noise: float = 0.8
    item_noise: float = 0.4
    score_width: float = 0.6


class Seen(NamedTuple):
    """Contents of a prompt: two responses or one, and perhaps several answers to choose from."""

    first: str = ""
    second: str = ""
    samples: tuple[tuple[str, str], ...] = ()
    is_alone: bool = False


def read(prompt: str) -> Seen:
    """Find the responses between <response_a> and </response_a>, the answers in <sample_1>."""
    if alone := _ALONE.search(prompt):
        return Seen(alone[2], is_alone=True)
    first, second = _FIRST.search(prompt), _SECOND.search(prompt)
    samples = tuple((match[1], match[2]) for match in _SAMPLE.finditer(_PAIR.sub("", prompt)))
    return Seen(first[2] if first else "", second[2] if second else "", samples)


def instructions(prompt: str) -> str:
    """Return the prompt without the pair, and without answers to choose from."""
    return _SAMPLE.sub("", _PAIR.sub("", prompt))


def digest(*parts: object) -> bytes:
    """Hash of some values, to seed random numbers with."""
    return blake2b("\0".join(map(str, parts)).encode(errors="replace"), digest_size=16).digest()


@lru_cache(maxsize=65536)
def quality(text: str, seed: int) -> float:
    """Quality of a text: by its wrong sums where it has sums, else drawn from its hash."""
    sums = _SUM.findall(text)
    if sums:
        return -0.7 * sum(int(left) + int(right) != int(total) for left, right, total in sums)
    return Random(digest(seed, text)).gauss(0, 1)


@lru_cache(maxsize=65536)
def _misjudgement(first: str, second: str, seed: int) -> float:
    if first == second:
        return 0.0
    if first > second:
        return -_misjudgement(second, first, seed)
    return Random(digest(seed, "item", first, second)).gauss(0, 1)


def _leaning(seen: Seen, habits: Habits, temperature: float, seed: int) -> NormalDist:
    gap = quality(seen.first, seed) - (0 if seen.is_alone else quality(seen.second, seed))
    gap += habits.item_noise * _misjudgement(seen.first, seen.second, seed)
    # At temperature 0 a judge errs no less, but always in the same way.
    warmth = math.sqrt((0.3 + max(temperature, 0.0)) / 0.8)
    return NormalDist(
        habits.sensitivity * gap + habits.positional_bias, max(habits.noise * warmth, 1e-9)
    )


# What it says

_TAG = re.compile(r"\[\[([\w>=]+)\]\]|<scores>X, Y</scores>")
_LINE = re.compile(r"Verdict: ([\w>=]+)")
_GRADES = re.compile(
    r"\bPASS\b.{0,16}\bFAIL\b|\bN is (?:a whole number from (-?\d+) to (-?\d+)"
    r"|((?:-?[\d.]*\d(?:, | or )?)+))"
)
_TIE_WORDS = ("TIE", "SAME", "EQUAL", "A=B", "C")
_SCORES = re.compile(
    r"\bX and Y are the scores of A and B, whole numbers from 1 to 10( that differ)?"
)


class SimulatedAnswer(NamedTuple):
    """A thought, an answer, the decision as shown, and `chances` of the verdict's words."""

    reasoning: str
    text: str
    decision: str
    chances: Mapping[str, float] = MappingProxyType({})

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Tokens of the answer, with log-probabilities; alternatives to the verdict's."""
        texts = re.findall(r"\s*(?:\w+|[^\w\s])|\s+", self.text)
        random = Random(digest("logprobs", self.text))
        tokens = [Token(text, -random.expovariate(8.0)) for text in texts]
        logs = {word: math.log(max(chance, 1e-9)) for word, chance in self.chances.items()}
        places = [place for place, text in enumerate(texts) if text.strip() in logs]
        for place in places[-1:]:
            tokens[place] = Token(texts[place], logs[texts[place].strip()], logs)
        return tuple(tokens)


class WantedForm(NamedTuple):
    """The form in which a prompt wants its answer."""

    form: str  # json, tag or line
    tie: str  # the word for a tie; empty where none is allowed
    confidence: bool
    scale: str = "choice"  # or steps, or scores
    grades: tuple[str, ...] = ()  # of one response from the lowest, or numbers of samples


def wanted_form(prompt: str, response_format: object, seen: Seen) -> WantedForm:
    """Read from the instructions which words are allowed and how they are to be written."""
    prompt = instructions(prompt)
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    tags = _TAG.findall(prompt)
    words = {word.upper() for word in (*tags, *_LINE.findall(prompt))}
    schema = json.dumps(response_format) if kind == "json_schema" else prompt
    scores = _SCORES.search(prompt)
    if kind in ("json_schema", "json_object") or re.search('"(verdict|choice|grade|A)":', prompt):
        words |= {word for word in _TIE_WORDS[:4] if f'"{word}"' in schema}
        form = "json"
    else:
        form = "tag" if tags else "line"
    tie = next((word for word in _TIE_WORDS if word in words), "")
    if scores is not None:
        tie = "" if scores[1] else "="
    scale = "scores" if scores else "steps" if "A>>B" in prompt else "choice"
    grades = _grades_in(prompt) if seen.is_alone or seen.samples else ()
    if seen.is_alone:
        grades = grades or ("FAIL", "PASS")
    return WantedForm(form, tie, "confidence" in schema.lower(), scale, grades)


def _grades_in(prompt: str) -> tuple[str, ...]:
    wanted = _GRADES.search(prompt)
    if wanted is None:
        return ()
    if wanted[1]:
        return tuple(map(str, range(int(wanted[1]), int(wanted[2]) + 1)))
    return tuple(re.findall(r"-?[\d.]*\d", wanted[3] or ""))


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
    leaning = _leaning(seen, habits, temperature, seed)
    if seen.is_alone:
        place = NormalDist().cdf(leaning.mean + 0.5 + leaning.stdev * random.gauss(0, 1))
        grade = wanted.grades[min(int(place * len(wanted.grades)), len(wanted.grades) - 1)]
        sure = random.randint(55, 99)
        return SimulatedAnswer(
            "Let me see.", _written("It has its merits.", grade, sure, wanted), grade
        )
    seems = leaning.mean + leaning.stdev * random.gauss(0, 1)
    better = 0 if abs(seems) < habits.tie_width else 1 if seems > 0 else -1
    if not wanted.tie:
        better = better or random.choice((-1, 1))
    word = {1: "A", -1: "B", 0: wanted.tie}[better]
    chances: dict[str, float] = {}
    margin = abs(better) * min(1 + int(abs(seems) / habits.score_width), 9)
    if wanted.scale == "steps" and better:
        word = (">>" if margin >= 4 else ">").join("AB" if better > 0 else "BA")
    elif wanted.scale == "scores":
        scores = 5 - margin // 2 + margin, 5 - margin // 2
        word = ", ".join(map(str, scores if better > 0 else scores[::-1]))
    elif wanted.scale == "choice":
        minus, plus = leaning.cdf(-habits.tie_width), 1 - leaning.cdf(habits.tie_width)
        share = 0.0 if wanted.tie else (1 - minus - plus) / 2
        chances = {"A": plus + share, "B": minus + share}
        if wanted.tie:
            chances[wanted.tie] = 1 - minus - plus
    sure = random.randint(55, 99)
    opening = random.choice(("Let me compare the two.", "Reading both against the prompt.", "Hm."))
    reasoning = (
        f"{opening} A first: {seen.first[:60]!r}. Then B: {seen.second[:60]!r}. "
        "If A were clearly better I would say so, and likewise B."
    )
    text = {1: "A has fewer problems.", -1: "B has fewer problems.", 0: "They are on a par."}
    written = _written(text[better], word, sure, wanted)
    decision = {1: "A", -1: "B", 0: "tie"}[better]
    return SimulatedAnswer(reasoning, written, decision, chances)


def _aggregated(seen: Seen, wanted: WantedForm, random: Random) -> SimulatedAnswer:
    verdicts = {number: _verdict_in(text) for number, text in seen.samples}
    counts = Counter(verdicts.values())
    most = max(counts.values())
    winner = next(word for word, count in counts.items() if count == most)
    reasoning = f"The answers say {', '.join(verdicts.values())}."
    if wanted.grades:
        word = next(number for number, verdict in verdicts.items() if verdict == winner)
    else:
        word = wanted.tie if winner == "tie" and wanted.tie else winner
    return SimulatedAnswer(
        reasoning, _written("Most agree.", word, random.randint(55, 99), wanted), word
    )


def _verdict_in(text: str) -> str:
    words = re.findall(r'\[\[(\w+)\]\]|Verdict: (\w+)|"verdict": ?"(\w+)"', text)
    word = "".join(words[-1]).upper() if words else "TIE"
    return "tie" if word in _TIE_WORDS else word


def _written(text: str, word: str, sure: int, wanted: WantedForm) -> str:
    is_number = bool(wanted.grades) and word.lstrip("-")[:1].isdigit()
    key = "grade" if is_number else "verdict"
    scores = word.split(", ") if wanted.scale == "scores" else ()
    if wanted.form == "json":
        fields: dict[str, object] = {
            "reasoning": text,
            **dict(zip("AB", map(int, scores), strict=False)),
        }
        if not scores:
            fields[key] = json.loads(word) if is_number else word
        if wanted.confidence:
            fields["confidence"] = sure
        return json.dumps(fields)
    lines = [text, ""]
    if wanted.confidence:
        lines.append(f"Confidence: {sure}")
    if scores:
        tag, line = f"<scores>{word}</scores>", "A: {}, B: {}".format(*scores)
    else:
        tag, line = f"[[{word}]]", f"{key.capitalize()}: {word}"
    lines.append(tag if wanted.form == "tag" else line)
    return "\n".join(lines)


class SimulatedClient:
    """A judge to try things on: it costs nothing, and answers in the form that is asked for."""

    # It counts wrong sums (pairs of `btdagg demo --pairs`; other texts have a hashed quality) and
    # votes with noise, ties and a bias for the first. Seeds, or temperature 0, make answers
    # reproducible.

    name = "the simulated judge"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request whose prompt shows two responses in the marks of the templates."""
        messages = request.messages
        seen = read(messages[-1]["content"])
        if not (seen.first or seen.second or seen.samples):
            raise ChatError(
                "the simulated judge finds neither <response_a> and <response_b> nor <response> "
                "in the prompt; use a template of btdagg, or these marks",
                "fatal",
            )
        prompt = "\n\n".join(m["content"] for m in messages if m["role"] != "assistant")
        wanted = wanted_form(prompt, request.response_format, seen)
        temperature = 1.0 if request.temperature is None else request.temperature
        random = Random()
        if not temperature or request.seed is not None:
            # The 0 keeps the votes of a seed what they were.
            drawn = (request.seed, 0) if temperature else ()
            random.seed(digest(temperature, prompt, *drawn))
        reply = answer(seen, wanted, Habits(), temperature=temperature, random=random, seed=0)
        tokens = reply.tokens if request.logprobs else ()
        logprobs = tuple(token.logprob for token in tokens) or None
        return ChatReply(
            reply.text, reply.reasoning, token_logprobs=logprobs, model=request.model, tokens=tokens
        )

    async def close(self) -> None:
        """Nothing to let go of."""
