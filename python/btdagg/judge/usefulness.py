"""Whether a judge's answers hold votes at all: a test after every answer, and the likely cause.

Page's cumulative sum of log-likelihood ratios: of a share of useless answers of 90% against one of
50%, never below 0. A judge of whose answers no more than half are useless is stopped less often
than once in a million answers; one whose answers all are, after 24.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from typing import TYPE_CHECKING

from btdagg.judge.work import Reading

if TYPE_CHECKING:
    from btdagg.judge.client import ChatReply
    from btdagg.judge.judging import Judging

USELESS_SHARE = 0.5
LEVEL = 1e-6
_CLEARLY_USELESS = 0.9
_STEP = math.log(_CLEARLY_USELESS / USELESS_SHARE)
_STEP_BACK = math.log((1 - _CLEARLY_USELESS) / (1 - USELESS_SHARE))
_REMEMBERED = 64
_OTHER_WORD = re.compile(r'not one of the words asked for: "(?:\[\[)?([^"\]]{1,24})')


class Usefulness:
    """Follows the answers of a run."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._last: deque[tuple[str, str, bool]] = deque(maxlen=_REMEMBERED)

    def see(self, reading: Reading, reply: ChatReply) -> bool:
        """Take an answer in; whether it shows that going on is of no use."""
        if reading.status == "ok":
            self._sum = max(self._sum + _STEP_BACK, 0.0)
        else:
            self._sum += _STEP
            self._last.append((reading.status, reading.reason, bool(reply.reasoning)))
        return self._sum >= -math.log(LEVEL)

    def cause(self, judging: Judging) -> str:
        """Say what the useless answers have in common, and what may help."""
        status, n = Counter(status for status, _, _ in self._last).most_common(1)[0]
        alike = [(why, thinks) for each, why, thinks in self._last if each == status]
        said = f"answers hold no votes: of the last {len(self._last)} without one {n} are {status}"
        return f"{said}; {_remedy(status, alike, judging)}"


def _remedy(status: str, alike: list[tuple[str, bool]], judging: Judging) -> str:
    why, _ = Counter(why for why, _ in alike).most_common(1)[0]
    thinks = sum(thinks for _, thinks in alike) > len(alike) / 2
    if status == "truncated":
        most = judging.max_answer_tokens
        bound = "the endpoint's limit on an answer" if most is None else f"{most} tokens"
        wanted = "N" if most is None else str(4 * most)
        less = ", or --reasoning-effort low" if thinks else ""
        return (
            f"{bound} cuts them off: --max-answer-tokens {wanted}{less}, with --retry truncated "
            "for these"
        )
    if status == "empty":
        if thinks:
            return (
                "they are reasoning alone: --reasoning-effort low, or more --max-answer-tokens, "
                "with --retry empty for these"
            )
        return "the endpoint sends no text: try the model with --stream, or by another name"
    if status == "refused":
        return f"the judge will not judge ({why}): another --template or model may"
    others = (_OTHER_WORD.match(said) for said, _ in alike)
    by_word = Counter(other[1].strip() for other in others if other is not None)
    for word, n in by_word.most_common(1):
        if n > len(alike) / 2:
            return (
                f"they say {word}, which is none of {', '.join(judging.prompt.answer.words)}: if "
                f'that is a tie, put tie = "{word}" under [answer] in the template'
            )
    asks_for_json = "" if judging.structured else "--structured asks for JSON, and "
    return (
        f"the most frequent reason is {why!r}: {asks_for_json}{{answer}} in a template tells the "
        "judge how to answer"
    )
