"""Votes from an LLM: pairs, prompts, sampling, parsing, the vote store."""

from typing import TYPE_CHECKING

from btdagg.lazy import loader

if TYPE_CHECKING:
    from btdagg.judge.answers import Verdict, parse_verdict, vote_of
    from btdagg.judge.batch_client import BatchClient
    from btdagg.judge.client import ChatReply, ChatRequest, FunctionClient, Usage
    from btdagg.judge.faults import ChatError
    from btdagg.judge.jobs import Estimate, estimate, judge
    from btdagg.judge.judging import Judging
    from btdagg.judge.limits import Limits
    from btdagg.judge.pairs import Pair, Pairs, read_pairs
    from btdagg.judge.prices import Prices
    from btdagg.judge.prompts import TEMPLATES, PromptTemplate, get_template, load_template
    from btdagg.judge.provider import ModelClient
    from btdagg.judge.runs import JudgeRun
    from btdagg.judge.store import VoteStore

__all__ = [
    "TEMPLATES",
    "BatchClient",
    "ChatError",
    "ChatReply",
    "ChatRequest",
    "Estimate",
    "FunctionClient",
    "JudgeRun",
    "Judging",
    "Limits",
    "ModelClient",
    "Pair",
    "Pairs",
    "Prices",
    "PromptTemplate",
    "Usage",
    "Verdict",
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
    "batch_client": ("BatchClient",),
    "client": ("ChatReply", "ChatRequest", "FunctionClient", "Usage"),
    "faults": ("ChatError",),
    "jobs": ("Estimate", "estimate", "judge"),
    "judging": ("Judging",),
    "limits": ("Limits",),
    "pairs": ("Pair", "Pairs", "read_pairs"),
    "prices": ("Prices",),
    "prompts": ("TEMPLATES", "PromptTemplate", "get_template", "load_template"),
    "provider": ("ModelClient",),
    "runs": ("JudgeRun",),
    "store": ("VoteStore",),
    "answers": ("Verdict", "parse_verdict", "vote_of"),
}
__getattr__ = loader(__name__, _NAMES_BY_MODULE)


def __dir__() -> list[str]:
    return __all__
