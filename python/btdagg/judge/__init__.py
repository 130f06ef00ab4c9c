"""Votes from an LLM: pairs, prompts, sampling, parsing, the vote store."""

from typing import TYPE_CHECKING

from btdagg.lazy import loader

if TYPE_CHECKING:
    from btdagg.judge.anthropic_client import AnthropicClient
    from btdagg.judge.batch_client import BatchClient, VllmClient
    from btdagg.judge.client import ChatReply, ChatRequest, FunctionClient, Usage
    from btdagg.judge.gemini_client import GeminiClient
    from btdagg.judge.jobs import Estimate, estimate, judge
    from btdagg.judge.judging import Judging
    from btdagg.judge.limits import Limits
    from btdagg.judge.openai_client import OpenAIClient
    from btdagg.judge.pairs import Pair, Pairs, read_pairs
    from btdagg.judge.prices import Prices
    from btdagg.judge.prompts import TEMPLATES, PromptTemplate, get_template, load_template
    from btdagg.judge.retry import ChatError
    from btdagg.judge.runs import JudgeRun
    from btdagg.judge.store import VoteStore
    from btdagg.judge.verdicts import Verdict, parse_verdict, vote_of

__all__ = [
    "TEMPLATES",
    "AnthropicClient",
    "BatchClient",
    "ChatError",
    "ChatReply",
    "ChatRequest",
    "Estimate",
    "FunctionClient",
    "GeminiClient",
    "JudgeRun",
    "Judging",
    "Limits",
    "OpenAIClient",
    "Pair",
    "Pairs",
    "Prices",
    "PromptTemplate",
    "Usage",
    "Verdict",
    "VllmClient",
    "VoteStore",
    "estimate",
    "get_template",
    "judge",
    "load_template",
    "parse_verdict",
    "read_pairs",
    "vote_of",
]

# Loaded when first asked for: reading pairs needs neither the store's nor the client's library.
_NAMES_BY_MODULE = {
    "anthropic_client": ("AnthropicClient",),
    "batch_client": ("BatchClient", "VllmClient"),
    "client": ("ChatReply", "ChatRequest", "FunctionClient", "Usage"),
    "gemini_client": ("GeminiClient",),
    "jobs": ("Estimate", "estimate", "judge"),
    "judging": ("Judging",),
    "limits": ("Limits",),
    "openai_client": ("OpenAIClient",),
    "pairs": ("Pair", "Pairs", "read_pairs"),
    "prices": ("Prices",),
    "prompts": ("TEMPLATES", "PromptTemplate", "get_template", "load_template"),
    "retry": ("ChatError",),
    "runs": ("JudgeRun",),
    "store": ("VoteStore",),
    "verdicts": ("Verdict", "parse_verdict", "vote_of"),
}
__getattr__ = loader(__name__, _NAMES_BY_MODULE)


def __dir__() -> list[str]:
    return __all__
