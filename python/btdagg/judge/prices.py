"""What tokens cost, as the user says it: a table of prices in here would go stale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.validation import as_number

if TYPE_CHECKING:
    from btdagg.judge.calls import Messages
    from btdagg.judge.client import Usage

_MILLION = 1_000_000
BYTES_PER_TOKEN = 4  # of English prose; a rule of thumb for estimates
_BYTES_AROUND = 16  # what separates messages, at most so many tokens


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in any currency.

    Parameters
    ----------
    prompt, completion : float
        Of tokens sent, and of tokens received with those of thinking.
    """

    prompt: float = 0.0
    completion: float = 0.0

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            if as_number(getattr(self, name), f"price of {name} tokens") < 0:
                raise InputError(f"price of {name} tokens is {getattr(self, name)}, want 0 or more")

    def cost(self, usage: Usage) -> float:
        """Price of a request."""
        return self.of(usage.prompt, usage.completion)

    def of(self, prompt: float, completion: float) -> float:
        """Price of so many tokens."""
        return (prompt * self.prompt + completion * self.completion) / _MILLION


def size_of(messages: Messages) -> int:
    """Bytes of messages, more than which no tokenizer makes tokens."""
    size = 0
    for message in messages:
        content = message["content"]
        written = content if isinstance(content, str) else str(content)
        size += _BYTES_AROUND + len(written.encode(errors="replace"))
    return size


def estimated_tokens(messages: Messages) -> int:
    """About how many tokens messages have."""
    return -(-size_of(messages) // BYTES_PER_TOKEN)
