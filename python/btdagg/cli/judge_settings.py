"""The settings of a judge: the keys of a TOML file, and flags, which win over the file."""

from __future__ import annotations

import inspect
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from btdagg._core import InputError
from btdagg.cli.common import differences_said
from btdagg.judge.client import STATUSES
from btdagg.judge.judging import Judging
from btdagg.judge.prices import Prices
from btdagg.judge.provider import client_of
from btdagg.judge.providers import SIMULATED, provider_of
from btdagg.judge.runs import Limits

if TYPE_CHECKING:
    from btdagg.judge.client import ChatClient
    from btdagg.online import StoppingRule
    from btdagg.online.rule import RuleKind

PairsFile = Annotated[
    Path,
    typer.Argument(
        metavar="PAIRS",
        help="Pairs (columns item, a, b; usually prompt): .jsonl, .csv, .tsv (or these with .gz) "
        "or .parquet; - is standard input.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="TOML file of settings. docs/judge.md lists its keys: what is sent, limits, prices, "
        "and these flags, which win over the file.",
        show_default=False,
        rich_help_panel="Judge",
    ),
]
_Run = "Run"


@dataclass(frozen=True, kw_only=True)
class JudgeFlags:
    """The settings that one changes by hand; None leaves a setting to the file."""

    config: Config = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="PROVIDER:NAME, of openai, anthropic, google, bedrock or ollama; a bare NAME is "
            "one of OpenAI, or of the endpoint at --base-url. simulated is a judge to try things "
            "on that asks no endpoint.",
            show_default=False,
            rich_help_panel="Judge",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(
            help="Of any OpenAI-compatible endpoint, such as http://localhost:8000/v1; or of "
            "another one with the protocol of the provider.",
            show_default="the provider's own",
            rich_help_panel="Judge",
        ),
    ] = None
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            "-t",
            help="Name of a prompt template, or a .toml file.",
            show_default=str(Judging.template),
            rich_help_panel="Judge",
        ),
    ] = None
    temperature: Annotated[
        str | None,
        typer.Option(
            help='A number, or "default" to leave it to the endpoint.',
            show_default=str(Judging.temperature),
            rich_help_panel="Judge",
        ),
    ] = None
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            help="Votes per pair, half of them in each order.",
            show_default=str(Judging.n),
            rich_help_panel="Judge",
        ),
    ] = None
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
            rich_help_panel="Judge",
        ),
    ] = None
    batch: Annotated[
        bool | None,
        typer.Option(
            "--batch",
            help="Ask by batches of OpenAI or Anthropic, at half the price, and wait: hours, at "
            "most a day.",
            show_default=False,
            rich_help_panel=_Run,
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-c",
            help="Calls at the same time.",
            show_default=str(Limits.concurrency),
            rich_help_panel=_Run,
        ),
    ] = None
    again: Annotated[
        str | None,
        typer.Option(
            "--retry",
            help="Ask again for what has no vote: unparsed, refused, truncated, empty, failed, "
            "with commas between, or all.",
            show_default=False,
            rich_help_panel=_Run,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say how many calls it takes and what they cost.",
            rich_help_panel=_Run,
        ),
    ] = False

    def settings(self) -> JudgeSettings:
        """The settings of the file and of these flags.

        Raises
        ------
        InputError
            If the file has an unknown key, or a value is out of range.
        """
        keys = read_config(self.config)
        flags = {each.name: getattr(self, each.name) for each in fields(self)}
        keys |= {name: flags[name] for name in flags.keys() & KEYS if flags[name] is not None}
        if not keys.get("model"):
            raise InputError("--model is missing, expected the name of the judge's model")
        rule = None
        if "stop" in keys:
            rule = _stopping_rule(keys["stop"], keys)
        own = {each.name: keys[each.name] for each in fields(JudgeSettings) if each.name in keys}
        share = keys.get("allow_missing")
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"allow_missing is {share}, expected a share from 0 to 1")
        provider = "" if keys["model"] == SIMULATED else provider_of(keys["model"])[0]
        if keys.get("batch") and (keys.get("stream") or provider not in ("openai", "anthropic")):
            other = "stream" if keys.get("stream") else f"--model {keys['model']}"
            raise InputError(f"{other} is not for --batch, which OpenAI and Anthropic answer")
        return JudgeSettings(**own | {"judging": _judging(keys), "rule": rule})


@dataclass(frozen=True, kw_only=True)
class JudgeSettings:
    """Who judges and how, and what the commands need besides."""

    judging: Judging
    rule: StoppingRule | RuleKind | None = None
    stop: str | None = None
    base_url: str | None = None
    key_variable: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    allow_missing: float | None = None
    drop_exchanges: bool = False
    examples: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def client(self) -> ChatClient:
        """The endpoint that is asked."""
        return client_of(
            self.judging.model,
            self.base_url,
            key_variable=self.key_variable,
            stream=self.stream,
            timeout=self.judging.timeout,
            headers=headers_of(self.headers),
        )


def _default(of: Any) -> Any:
    if of.default_factory is not MISSING:
        return of.default_factory()
    return "" if of.default is MISSING else of.default


KEYS = {
    each.name: _default(each)
    for kind in (Judging, Limits, JudgeSettings)
    for each in fields(kind)
    if each.name not in ("limits", "grace", "method", "judging", "rule")
}
"""Defaults of the keys of a file, by name."""
_ANNOTATIONS = {
    each.name: str(each.type).removesuffix(" | None")
    for kind in (Judging, Limits, JudgeSettings)
    for each in fields(kind)
} | {
    "template": "str",
    "temperature": "float | str",
    "again": "str | list[str]",
    "prices": "Mapping[str, float]",
}
_SEVERAL = {"float": ("numbers",), "str": ("texts",)}
_CAME = {
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}
_EXPECTED: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "true or false"),
    "int": ((int,), "an integer"),
    "float": ((int, float), "a number"),
    "str": ((str,), "text"),
    "float | str": ((int, float, str), 'a number or "default"'),
    "str | list[str]": ((str, list), "text or a list of texts"),
}


def read_config(path: Path | None) -> dict[str, Any]:
    """Read the keys of a file; none without one."""
    if path is None:
        return {}
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        raise InputError(f"{path}: {error}") from None
    for name, value in keys.items():
        if name not in KEYS:
            nearest = get_close_matches(name, KEYS, n=1, cutoff=0)
            raise InputError(f"{path}: unknown key {name!r}, expected {nearest[0]!r}, for example")
        _check(path, name, value, _ANNOTATIONS[name])
    return keys


def _check(path: Path, name: str, value: Any, annotation: str) -> None:
    """Check the kind of a value of a file; no message shows one of headers."""
    inside: dict[str, Any] = {}
    if annotation.startswith("Mapping"):
        inner = annotation.removeprefix("Mapping[str, ").removesuffix("]")
        kinds: tuple[type, ...] = (dict,)
        expected = " of ".join(["a table", *_SEVERAL.get(inner, ())])
        if isinstance(value, dict) and inner in _SEVERAL:
            inside = {f"{name}.{key}": each for key, each in value.items()}
    else:
        inner = "str"
        kinds, expected = _EXPECTED[annotation]
        if isinstance(value, list):
            inside = {f"{name}[{place}]": each for place, each in enumerate(value)}
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        shown = _CAME.get(type(value), "a date")
        if isinstance(value, bool):
            shown = str(value).lower()
        elif isinstance(value, str | int | float) and not name.startswith("headers"):
            shown = repr(value)
        raise InputError(f"{path}: {name} is {shown}, expected {expected}")
    for place, each in inside.items():
        _check(path, place, each, inner)
    if name == "extra":
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise InputError(
                f"{path}: extra has a date or a number without end, expected values of JSON"
            ) from None


def with_judge_flags(
    command: Callable[..., int], *, without: tuple[str, ...] = ()
) -> Callable[..., int]:
    """Give a command the fields of `JudgeFlags` as options.

    The command itself takes them together, in its parameter of that type.
    """
    hints = get_type_hints(JudgeFlags, include_extras=True)
    names = [each.name for each in fields(JudgeFlags) if each.name not in without]
    taken: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.annotation is not JudgeFlags:
            taken.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        place = parameter.name
        taken += (
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(JudgeFlags, name),
                annotation=hints[name],
            )
            for name in names
        )

    @wraps(command)
    def called(**given: Any) -> int:
        flags = JudgeFlags(**{name: given.pop(name) for name in names})
        return command(**given, **{place: flags})

    called.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
    return called


def parsed_temperature(value: str | float) -> float | None:
    """Parse a temperature; None leaves it to the endpoint."""
    try:
        return None if value == "default" else float(value)
    except (ValueError, OverflowError):
        raise InputError(f"--temperature is {value!r}, expected a number or default") from None


def _judging(keys: Mapping[str, Any]) -> Judging:
    values = {each.name: keys[each.name] for each in fields(Judging) if each.name in keys}
    limits = {each.name: keys[each.name] for each in fields(Limits) if each.name in keys}
    if "temperature" in keys:
        values["temperature"] = parsed_temperature(keys["temperature"])
    if isinstance(again := keys.get("again"), str):
        statuses = STATUSES[1:] if again == "all" else map(str.strip, again.split(","))
        values["again"] = tuple(filter(None, statuses))
    if keys["model"] == SIMULATED:
        values.setdefault("request_seed", 0)  # the same answers in every run
    if "prices" in keys:
        values["prices"] = _prices(keys["prices"])
    elif keys.get("base_url") is None and keys["model"] != SIMULATED:
        values["prices"] = Prices.of_model(keys["model"])
    return Judging(**{**values, "limits": Limits(**limits)})


def _prices(table: Mapping[str, float]) -> Prices:
    names = [each.name for each in fields(Prices)]
    if not {"prompt", "completion"} <= table.keys() <= set(names):
        raise InputError(f"prices has {', '.join(table) or 'nothing'}, expected {', '.join(names)}")
    return Prices(**table)


def headers_of(table: Mapping[str, str]) -> dict[str, str]:
    """Return headers, in which $NAME stands for an environment variable, which may be secret."""
    values = {}
    for name, text in table.items():
        value = os.environ.get(text[1:]) if text.startswith("$") else text
        if value is None:
            raise InputError(
                f"header {name}: its value names an environment variable that is not set"
            )
        values[name] = value
    return values


def _stopping_rule(text: str, keys: dict[str, Any]) -> StoppingRule | RuleKind:
    """Read a rule, or parse one to learn; that of a file sets the number of votes."""
    from btdagg.online.rule import KINDS, WANTED, RuleKind

    if text.partition("=")[0].strip().lower() in KINDS:
        try:
            return RuleKind.parse(text)
        except InputError as error:
            raise InputError(f"--{error}") from None
    file = Path(text)
    if not (file.suffix or file.name != text or file.exists()):
        raise InputError(f"--stop is {text!r}, expected {WANTED}, or the file of a rule")
    rule = _load_rule(file, keys.get("n"), keys.get("order", Judging.order))
    keys["n"] = rule.n
    return rule


def _load_rule(path: Path, n: int | None, order: str) -> StoppingRule:
    """Read a rule, and check that it fits the votes of the job."""
    from btdagg.online import StoppingRule

    with differences_said():
        rule = StoppingRule.load(path)
    if n not in (None, rule.n):
        raise InputError(f"-n is {n}, and the rule of {path} is for {rule.n} votes")
    if order == "both" and rule.step % 2:
        raise InputError(
            f"the rule of {path} has step {rule.step}, and votes come in both orders: make "
            "the rule with btdagg plan --step 2"
        )
    return rule
