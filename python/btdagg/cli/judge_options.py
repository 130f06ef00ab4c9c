"""Options of the commands that judge, and what the engine takes for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._core import InputError

if TYPE_CHECKING:
    from btdagg.judge.judging import Judging

PairsFile = Annotated[
    Path,
    typer.Argument(
        metavar="PAIRS",
        help="Pairs (columns item, a, b; usually prompt): .jsonl, .csv, .tsv (or these with .gz) "
        "or .parquet; - is standard input.",
        show_default=False,
    ),
]
Model = Annotated[
    str, typer.Option("--model", "-m", help="As the endpoint calls it.", show_default=False)
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Of any OpenAI-compatible endpoint, such as http://localhost:8000/v1.",
        show_default="OpenAI's own",
    ),
]
KeyVariable = Annotated[
    str, typer.Option("--api-key-env", help="Environment variable that holds the API key.")
]
NVotes = Annotated[int, typer.Option("-n", help="Votes per pair, half of them in each order.")]
Template = Annotated[
    str, typer.Option("--template", "-t", help="Name of a prompt template, or a .toml file.")
]
Store = Annotated[
    str,
    typer.Option(
        "--store", "-s", help="File of the votes (SQLite), or postgresql://user@host/database."
    ),
]
JudgeName = Annotated[
    str, typer.Option("--judge", help="Name of the judge in tables.", show_default="the model")
]
OrderName = Annotated[str, typer.Option("--order", help="both, or AB or BA alone.")]
Temperature = Annotated[
    str, typer.Option(help='A number, or "default" to leave it to the endpoint.')
]
Effort = Annotated[
    str | None,
    typer.Option(
        "--reasoning-effort", help="For models that think: low, high ...", show_default=False
    ),
]
MaxAnswerTokens = Annotated[
    int | None,
    typer.Option(help="Limit on the tokens of an answer, thinking included.", show_default=False),
]
Confidence = Annotated[str, typer.Option(help="Of each vote: none, logprobs or verbal.")]
AllowTie = Annotated[
    bool | None,
    typer.Option("--tie/--no-tie", help="Whether a tie is a choice.", show_default=False),
]
Structured = Annotated[
    bool, typer.Option("--structured", help="Ask for JSON by a schema, where that is supported.")
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Have answers sent in parts; for models that think long.")
]
Concurrency = Annotated[int, typer.Option("--concurrency", "-c", help="Calls at the same time.")]
Rpm = Annotated[
    float | None, typer.Option("--requests-per-minute", help="At most.", show_default=False)
]
Tpm = Annotated[
    float | None, typer.Option("--tokens-per-minute", help="At most.", show_default=False)
]
MaxCalls = Annotated[
    int | None, typer.Option(help="Stop this run before more calls.", show_default=False)
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Stop this run before more tokens in all.", show_default=False)
]
MaxCost = Annotated[
    float | None, typer.Option(help="Stop this run before it costs more.", show_default=False)
]
PriceIn = Annotated[
    float | None, typer.Option(help="Price of a million tokens sent.", show_default=False)
]
PriceOut = Annotated[
    float | None, typer.Option(help="Price of a million tokens received.", show_default=False)
]
Timeout = Annotated[float, typer.Option(help="Seconds for a call.")]
Attempts = Annotated[int, typer.Option("--attempts", help="Requests for one answer, at most.")]
PerCall = Annotated[
    int,
    typer.Option(
        "--samples-per-call", help="Answers per request (n), where the endpoint gives several."
    ),
]
Retry = Annotated[
    str,
    typer.Option(
        help="Ask again for what has no vote: unparsed, refused, truncated, empty, failed, with "
        "commas between, or all.",
        show_default=False,
    ),
]
Values = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="What a placeholder of the template stands for in all pairs; repeat for others.",
        show_default=False,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="sample for votes; or decisions by greedy, few-shot, gsa or usc, which the votes are "
        "exported with."
    ),
]
LabelledBy = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="LABELS",
        help="Labels (columns item, label): the examples of few-shot are the pairs that have one.",
        show_default=False,
    ),
]
NExamples = Annotated[
    int | None,
    typer.Option(
        "--examples", help="The first so many of them.", show_default="all that have a label"
    ),
]
DropExchanges = Annotated[
    bool, typer.Option("--drop-exchanges", help="Keep the votes but not what was said.")
]


def judging_of(
    *,
    temperature: str,
    concurrency: int,
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
    max_calls: int | None,
    max_tokens: int | None,
    max_cost: float | None,
    price_in: float | None,
    price_out: float | None,
    attempts: int,
    retry: str,
    values: list[str] | None = None,
    **options: Any,
) -> Judging:
    """Options of the command line as the engine takes them."""
    from btdagg.judge.calls import STATUSES
    from btdagg.judge.judging import Judging
    from btdagg.judge.limits import Limits
    from btdagg.judge.prices import Prices

    try:
        degrees = None if temperature == "default" else float(temperature)
    except ValueError:
        raise InputError(f"--temperature is {temperature!r}, want a number or default") from None
    if (price_in is None) != (price_out is None):
        raise InputError("--price-in and --price-out: one is given, want both")
    prices = None if price_in is None or price_out is None else Prices(price_in, price_out)
    again = STATUSES[1:] if retry == "all" else [s.strip() for s in retry.split(",") if s.strip()]
    return Judging(
        temperature=degrees,
        limits=Limits(
            concurrency,
            requests_per_minute,
            tokens_per_minute,
            max_calls,
            max_tokens,
            max_cost,
        ),
        prices=prices,
        max_attempts=attempts,
        again=again,
        values=_values_of(values),
        **options,
    )


def _values_of(given: list[str] | None) -> dict[str, str]:
    """Values by name of NAME=VALUE texts."""
    values = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set is {text!r}, want NAME=VALUE")
        values[name.strip().lower()] = value.strip()
    return values
