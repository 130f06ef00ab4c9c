"""Cost of tokens: as the endpoint states it, as the user says it, or by `genai-prices`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from btdagg._util.extras import needs
from btdagg._util.numbers import as_number
from btdagg.judge.client import Messages, Usage, provider_of

_MILLION = 1_000_000
BYTES_PER_TOKEN = 4  # of English prose; a rule of thumb for estimates
_BYTES_AROUND = 16  # what separates messages, at most so many tokens


@dataclass(frozen=True)
class Prices:
    """Prices per million tokens, in any currency; those of `of_model` are in US dollars.

    `prompt` is of tokens sent, `completion` of tokens received with those of thinking, `cached` of
    tokens sent that the endpoint had in its cache; like the others sent by default.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "completion", "cached"):
            value = getattr(self, name)
            if value is not None:
                as_number(value, f"prices.{name}", least=0)

    @classmethod
    def of_model(cls, model: str) -> Prices | None:
        """Return the prices of a provider's model; None where `genai-prices` does not know them."""
        from datetime import UTC, datetime

        with needs("judge", "looking up a price"):
            from genai_prices.data_snapshot import get_snapshot

        provider, name = provider_of(model)
        provider = {"bedrock": "aws"}.get(provider, provider)
        try:
            _, priced = get_snapshot().find_provider_model(name, None, provider, None)
        except LookupError:
            return None
        price = priced.get_prices(datetime.now(UTC))
        tiers: list[Any] = [price.input_mtok, price.output_mtok, price.cache_read_mtok]
        prompt, completion, cached = (getattr(tier, "base", tier) for tier in tiers)
        if prompt is None or completion is None:
            return None
        return cls(float(prompt), float(completion), None if cached is None else float(cached))

    def of(self, prompt: float, completion: float) -> float:
        """Price of so many tokens."""
        return (prompt * self.prompt + completion * self.completion) / _MILLION


def cost_of(usage: Usage | None, prices: Prices | None) -> float | None:
    """Cost of a request, by prices unless the endpoint states it; None where nobody knows."""
    if usage is None or usage.cost is not None or prices is None:
        return None if usage is None else usage.cost
    cached = 0 if prices.cached is None else min(usage.cached, usage.prompt)
    rest = prices.of(usage.prompt - cached, usage.completion)
    return rest + cached * (prices.cached or 0.0) / _MILLION


def size_of(messages: Messages) -> int:
    """Bytes of messages, more than which no tokenizer makes tokens."""
    size = 0
    for message in messages:
        content = message["content"]
        written = content if isinstance(content, str) else str(content)
        size += _BYTES_AROUND + len(written.encode(errors="replace"))
    return size
