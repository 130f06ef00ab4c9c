"""The options that `judge` and `run` share: one value, whose defaults are those of `Judging`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from btdagg._core import InputError
from btdagg.cli.common import at_least, is_given
from btdagg.cli.stopping import load_rule
from btdagg.judge.calls import STATUSES
from btdagg.judge.judging import Judging
from btdagg.judge.limits import Limits
from btdagg.judge.prices import Prices
from btdagg.judge.provider import client_of
from btdagg.judge.providers import SIMULATED, provider_of

if TYPE_CHECKING:
    from btdagg.judge.client import ChatClient
    from btdagg.online import StoppingRule
    from btdagg.online.rule_kind import RuleKind

PairsFile = Annotated[
    Path,
    typer.Argument(
        metavar="PAIRS",
        help="Pairs (columns item, a, b; usually prompt): .jsonl, .csv, .tsv (or these with .gz) "
        "or .parquet; - is standard input.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """What both commands take. A field named as one of `Judging` or `Limits` is that value."""

    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="PROVIDER:NAME, of openai, anthropic, google, bedrock or ollama; a bare NAME is "
            "one of OpenAI, or of the endpoint at --base-url. simulated is a judge to try things "
            "on that asks no endpoint.",
            show_default=False,
        ),
    ]
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Of any OpenAI-compatible endpoint, such as http://localhost:8000/v1; or of "
            "another one with the protocol of the provider.",
            show_default="the provider's own",
        ),
    ] = None
    key_variable: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            help="Environment variable that holds the API key.",
            show_default="the provider's, such as OPENAI_API_KEY",
        ),
    ] = None
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME=VALUE",
            help="Sent with each request, for gateways; repeat for others. Values are neither "
            "stored nor shown in messages.",
            show_default=False,
        ),
    ] = None
    n: Annotated[int, typer.Option("-n", help="Votes per pair, half of them in each order.")] = (
        Judging.n
    )
    template: Annotated[
        str, typer.Option("--template", "-t", help="Name of a prompt template, or a .toml file.")
    ] = str(Judging.template)
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="What a placeholder of the template stands for in all pairs; repeat for others.",
            show_default=False,
        ),
    ] = None
    judge: Annotated[
        str,
        typer.Option("--judge", help="Name of the judge in tables.", show_default="the model"),
    ] = Judging.judge
    order: Annotated[str, typer.Option("--order", help="both, or AB or BA alone.")] = Judging.order
    temperature: Annotated[
        str, typer.Option(help='A number, or "default" to leave it to the endpoint.')
    ] = str(Judging.temperature)
    reasoning_effort: Annotated[
        str | None, typer.Option(help="For models that think: low, high ...", show_default=False)
    ] = Judging.reasoning_effort
    top_p: Annotated[float | None, typer.Option(help="Nucleus sampling.", show_default=False)] = (
        Judging.top_p
    )
    thinking_budget: Annotated[
        int | None,
        typer.Option(help="Tokens of thinking, for endpoints that take it.", show_default=False),
    ] = Judging.thinking_budget
    request_seed: Annotated[
        int | None,
        typer.Option(
            help="Sent with each request, plus its sample's number.",
            show_default="none; 0 for the simulated judge",
        ),
    ] = Judging.request_seed
    system_role: Annotated[
        str, typer.Option(help="Of the instructions: system, developer, or user for no such role.")
    ] = Judging.system_role
    extra_body: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Further fields of each request, such as \'{"provider": {"sort": "price"}}\'.',
            show_default=False,
        ),
    ] = None
    max_answer_tokens: Annotated[
        int | None,
        typer.Option(
            help="Limit on the tokens of an answer, thinking included.", show_default=False
        ),
    ] = Judging.max_answer_tokens
    confidence: Annotated[str, typer.Option(help="Of each vote: none, logprobs or verbal.")] = (
        Judging.confidence
    )
    allow_tie: Annotated[
        bool | None,
        typer.Option("--tie/--no-tie", help="Whether a tie is a choice.", show_default=False),
    ] = Judging.allow_tie
    structured: Annotated[
        bool,
        typer.Option("--structured", help="Ask for JSON, by a schema where that is supported."),
    ] = Judging.structured
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Have answers sent in parts; for models that think long."),
    ] = False
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask by OpenAI-style batches, at half the price, and wait: hours, at most a day.",
        ),
    ] = Judging.batch
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", help="Calls at the same time.")
    ] = Limits.concurrency
    requests_per_minute: Annotated[
        float | None, typer.Option(help="At most.", show_default=False)
    ] = Limits.requests_per_minute
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="At most.", show_default=False)
    ] = Limits.tokens_per_minute
    max_calls: Annotated[
        int | None, typer.Option(help="Stop this run before more calls.", show_default=False)
    ] = Limits.max_calls
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Stop this run before more tokens in all.", show_default=False),
    ] = Limits.max_tokens
    max_cost: Annotated[
        float | None, typer.Option(help="Stop this run before it costs more.", show_default=False)
    ] = Limits.max_cost
    max_wait: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a limit of the endpoint to pass, or for one that is away to "
            "come back, before the run ends."
        ),
    ] = Limits.max_wait
    price_in: Annotated[
        float | None,
        typer.Option(help="Price of a million tokens sent.", show_default="as listed"),
    ] = None
    price_out: Annotated[
        float | None,
        typer.Option(help="Price of a million tokens received.", show_default="as listed"),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds for a call, from the request to the end of its answer, streamed or not."
        ),
    ] = Judging.timeout
    max_attempts: Annotated[
        int, typer.Option("--attempts", help="Requests for one answer, at most.")
    ] = Judging.max_attempts
    again: Annotated[
        str,
        typer.Option(
            "--retry",
            help="Ask again for what has no vote: unparsed, refused, truncated, empty, failed, "
            "with commas between, or all.",
            show_default=False,
        ),
    ] = ""
    same_endpoint: Annotated[
        bool,
        typer.Option(
            "--same-endpoint",
            help="The endpoint is the same judge as the one that gave the votes in the store.",
        ),
    ] = Judging.same_endpoint
    allow_missing: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Exit with status 3 if more of the votes wanted are missing.",
            show_default="0.05, and none that failed",
        ),
    ] = None
    drop_exchanges: Annotated[
        bool, typer.Option("--drop-exchanges", help="Keep the votes but not what was said.")
    ] = False
    stop: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Ask for fewer votes on pairs without a label. A file that btdagg plan or run "
            "wrote, or a rule to learn from the pairs of --labels: lossless (the very labels of "
            "all votes), epsilon=0.05 (stop where the chance that all votes would change the "
            "label is below that), price=0.01 (of a vote, in units of error) or budget=5 (votes a "
            "pair).",
            show_default="all votes",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many calls it takes and what they cost.")
    ] = False

    def judging(self) -> Judging:
        """Who judges, and how.

        Raises
        ------
        InputError
            If a value is out of range; the message names the option.
        """
        if self.allow_missing is not None and not 0 <= self.allow_missing <= 1:
            raise InputError(
                f"--allow-missing is {self.allow_missing:g}, expected a share from 0 to 1"
            )
        is_openai = self.model != SIMULATED and provider_of(self.model)[0] == "openai"
        if self.batch and (self.stream or not is_openai):
            other = "--stream" if self.stream else f"--model {self.model}"
            raise InputError(f"{other} is not for --batch, which OpenAI-style endpoints answer")
        for name in ("max_calls", "max_tokens"):
            at_least(getattr(self, name), f"--{name.replace('_', '-')}", 1)
        same = {
            each.name: getattr(self, each.name)
            for each in fields(Judging)
            if hasattr(self, each.name)
        }
        limits = Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})
        return Judging(
            **{
                **same,
                "values": _parsed_values(self.values),
                "request_seed": self._request_seed(),
                "temperature": parsed_temperature(self.temperature),
                "again": _parsed_statuses(self.again),
                "extra": _parsed_fields(self.extra_body),
                "limits": limits,
                "prices": self._prices(),
            }
        )

    def client(self) -> ChatClient:
        """The endpoint that is asked."""
        return client_of(
            self.model,
            self.base_url,
            key_variable=self.key_variable,
            stream=self.stream,
            timeout=self.timeout,
            headers=_parsed_headers(self.headers),
        )

    def _request_seed(self) -> int | None:
        """What a simulated judge says should be the same in every run."""
        if self.model == SIMULATED and self.request_seed is None:
            return 0
        return self.request_seed

    def _prices(self) -> Prices | None:
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("--price-in and --price-out: one is given, expected both")
        if self.price_in is None or self.price_out is None:
            if self.base_url is not None or self.model == SIMULATED:
                return None
            return Prices.of_model(self.model)
        return Prices(self.price_in, self.price_out)


def with_judge_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command every field of `JudgeOptions` as an option.

    The command itself takes them together, in its parameter of that type.
    """
    hints = get_type_hints(JudgeOptions, include_extras=True)
    own = inspect.signature(command, eval_str=True)
    taken: list[inspect.Parameter] = []
    place = ""
    for parameter in own.parameters.values():
        if parameter.annotation is not JudgeOptions:
            taken.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        place = parameter.name
        for each in fields(JudgeOptions):
            default = inspect.Parameter.empty if each.default is MISSING else each.default
            taken.append(
                inspect.Parameter(
                    each.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=hints[each.name],
                )
            )

    @wraps(command)
    def called(**given: Any) -> int:
        options = JudgeOptions(**{each.name: given.pop(each.name) for each in fields(JudgeOptions)})
        return command(**given, **{place: options})

    called.__signature__ = own.replace(parameters=taken)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return called


def parsed_temperature(text: str) -> float | None:
    """Parse --temperature; None leaves it to the endpoint."""
    try:
        return None if text == "default" else float(text)
    except ValueError:
        raise InputError(f"--temperature is {text!r}, expected a number or default") from None


def _parsed_statuses(text: str) -> tuple[str, ...]:
    if text == "all":
        return STATUSES[1:]
    return tuple(status.strip() for status in text.split(",") if status.strip())


def _parsed_fields(text: str | None) -> dict[str, Any]:
    try:
        fields = {} if text is None else json.loads(text)
    except ValueError as error:
        raise InputError(f"--extra-body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InputError(f"--extra-body is {text}, expected a JSON object")
    return fields


def _parsed_values(given: list[str] | None) -> dict[str, str]:
    """Values by name of NAME=VALUE texts."""
    values = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set is {text!r}, expected NAME=VALUE")
        values[name.strip().lower()] = value.strip()
    return values


def _parsed_headers(given: list[str] | None) -> dict[str, str]:
    """Values by name of NAME=VALUE texts, which no message shows: they are often secret."""
    headers = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError("--header is without a name or value, expected NAME=VALUE")
        headers[name.strip()] = value.strip()
    return headers


def stopping_rule(
    options: JudgeOptions, context: typer.Context
) -> tuple[StoppingRule | RuleKind | None, JudgeOptions]:
    """Read what `--stop` says; options whose `n` is that of a rule that was read.

    Raises
    ------
    InputError
        If it is nothing known, or the file of a rule for other votes than are asked for.
    """
    from btdagg.online.rule_kind import KINDS, WANTED, RuleKind

    said = options.stop
    if said is None:
        return None, options
    if said.partition("=")[0].strip().lower() in KINDS:
        try:
            return RuleKind.parse(said), options
        except InputError as error:
            raise InputError(f"--{error}") from None
    file = Path(said)
    if not (file.suffix or file.name != said or file.exists()):
        raise InputError(f"--stop is {said!r}, expected {WANTED}, or the file of a rule")
    n = options.n if is_given(context, "n") else None
    rule = load_rule(file, n, options.order)
    return rule, replace(options, n=rule.n)
