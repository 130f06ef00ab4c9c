"""The settings of a judge: the keys of a TOML file, and flags, which win over the file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from btdagg._util.errors import InputError, forbid, quoted, reworded
from btdagg._util.files import read_whole
from btdagg._util.outputs import require_no_link
from btdagg.cli.common import ProjectOption, differences_said, note, parse_pairs
from btdagg.judge.client import SIMULATED
from btdagg.judge.judging import Judging
from btdagg.judge.prices import Prices
from btdagg.judge.provider import client_of
from btdagg.judge.runs import Limits

if TYPE_CHECKING:
    from btdagg.judge.client import ChatClient
    from btdagg.online import StoppingRule
    from btdagg.online.rule import RuleKind
    from btdagg.votes import Table

PairsFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="PAIRS",
        help="Pairs (columns item, a, b; usually prompt), or responses to grade (item, response): "
        ".jsonl, .csv, .tsv (or these with .gz) or .parquet; - is standard input.",
        show_default="of btdagg.toml",
    ),
]


def _flag(*names: str, help: str, default: str | bool = False, panel: str = "Judge") -> Any:
    return typer.Option(*names, help=help, show_default=default, rich_help_panel=panel)


Config = Annotated[
    Path | None,
    _flag(
        "--config",
        help="TOML file of settings. docs/judge.md lists its keys: what is sent, limits and "
        "prices. Options of the command line override the file.",
    ),
]


Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        "-s",
        help="File of the votes (SQLite), or postgresql://user@host/database.",
        show_default="votes.db",
    ),
]


_STORE = "votes.db"


def store_of(flag: str | None, key: str | None = None) -> str:
    """Return the place of the votes: of the flag, of the file, or the default."""
    if not (flag or key):
        require_no_link(_STORE)
    return flag or key or _STORE


@dataclass(frozen=True, kw_only=True)
class EndpointFlags(ProjectOption):
    """Where settings of a judge are said: a file, typed keys, a project file that is named."""

    config: Config = None

    def said_keys(self) -> dict[str, Any]:
        """The keys of the files, and those that are typed."""
        return read_config(self.config) | self._judge_of_project()

    def _judge_of_project(self) -> dict[str, Any]:
        # A project that is only found sends nobody's key to its endpoint.
        project = self.project
        keys = project.keys.get("judge")
        keys = keys if isinstance(keys, dict) else {}  # a text is a column
        if self.typed.named_project is None:
            typed = {name for table, *names in project.typed if table == "judge" for name in names}
            if (ignored := keys.keys() - typed) and self.config != project.path:
                note(
                    f"[judge] of {project.path} is not used ({', '.join(sorted(ignored))}); to "
                    f"use it, name the file: --project {project.path}"
                )
            keys = {name: value for name, value in keys.items() if name in typed}
        keys = {name: _value(value) for name, value in keys.items()}
        return checked_keys(keys, f"[judge] of {project.path or '--set'}")


@dataclass(frozen=True, kw_only=True)
class JobFlags(EndpointFlags):
    """The settings that one changes by hand; None leaves a setting to the file."""

    model: Annotated[
        str | None,
        _flag(
            "--model",
            "-m",
            help="PROVIDER:NAME, where PROVIDER is openai, anthropic, google, bedrock or ollama. A "
            "bare NAME is a model of OpenAI, of the endpoint at --set judge.base_url=URL, or "
            "of an installed package. simulated is a built-in judge for trying things out; it "
            "makes no calls.",
        ),
    ] = None
    criteria: Annotated[
        list[str] | None,
        _flag(
            "--criterion",
            help="NAME=RUBRIC: judge every item by this criterion, in separate calls; repeat for "
            "more.",
            default="one criterion, or the column criterion",
        ),
    ] = None
    n: Annotated[
        int | None,
        _flag(
            "-n",
            help="Votes per pair, half of them in each order; or grades per response.",
            default=str(Judging.n),
        ),
    ] = None
    dry_run: Annotated[
        bool,
        _flag("--dry-run", help="Say how many calls it takes and what they cost.", panel="Run"),
    ] = False

    def tables(self, columns: Mapping[str, str], *sources: tuple[str, Any]) -> list[Table]:
        """Read tables, with the columns of the settings too."""
        said = [f"{name}={quoted(column)}" for name, column in columns.items()]
        return self.project.with_keys(said).read(*sources)

    def settings(self) -> JudgeSettings:
        """The settings of the files and of these flags."""
        keys = self.said_keys()
        flags = {name: value for name, value in vars(self).items() if name in KEYS}
        keys |= {name: value for name, value in flags.items() if value is not None}
        if self.criteria is not None:
            keys["criteria"] = dict(parse_pairs(self.criteria, "criteria", "NAME=RUBRIC"))
        forbid(not keys.get("model"), "model is missing, expected the name of a model", "model")
        rule = _rule_of(keys) if "stop" in keys else None
        # An estimate looks prices up where it comes to that, since it takes a while.
        if not self.dry_run or "max_cost" in keys:
            keys.setdefault("prices", listed_prices(keys["model"], keys.get("base_url")))
        judging = _judging(keys)
        forbid(
            judging.batch and keys.get("stream"),
            "stream cannot be combined with batches; leave it out",
            "stream",
        )
        values = {key.name: keys[key.name] for key in fields(JudgeSettings) if key.name in keys}
        return JudgeSettings(judging=judging, rule=rule, **values)


def _value(text: Any) -> Any:
    """Return the value of a key that is typed: TOML where it is, or a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"] if isinstance(text, str) else text
    except tomllib.TOMLDecodeError:
        return text


@dataclass(frozen=True, kw_only=True)
class JudgeFlags(JobFlags):
    """The same with those of commands that ask and wait."""

    stop: Annotated[
        str | None,
        _flag(
            "--stop",
            help="Ask for fewer votes on unlabelled pairs, by a stopping rule: a file that btdagg "
            "plan or run wrote; or, for run, a rule to learn from the labelled pairs: "
            "lossless (the same labels as with all votes), epsilon=0.05 (stop once the "
            "probability that all votes would change the label is below 0.05), price=0.01 "
            "(price of a vote, in units of error) or budget=5 (votes a pair).",
            default="all votes",
        ),
    ] = None
    batch: Annotated[
        bool | None,
        _flag(
            "--batch",
            help="Ask in batches of OpenAI or Anthropic, at half the price, and wait for them: "
            "hours, at most a day.",
            panel="Run",
        ),
    ] = None


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
    store: str | None = None
    allow_missing: float | None = None
    drop_exchanges: bool = False
    examples: int | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    criteria: Mapping[str, str] = field(default_factory=dict)

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


# The file


_KINDS = (Judging, Limits, JudgeSettings)
KEYS = [
    key.name
    for kind in _KINDS
    for key in fields(kind)
    if key.name not in ("limits", "grace", "method", "judging", "rule")
]
"""The keys of a file."""


@cache
def _file_model() -> Any:
    from pydantic import ConfigDict, Field, JsonValue, create_model

    from btdagg.online.rule import RuleKind, StoppingRule

    config = ConfigDict(strict=True, extra="forbid")
    rules = {"RuleKind": RuleKind, "StoppingRule": StoppingRule}
    hints = (get_type_hints(owner, localns=rules) for owner in _KINDS)
    types = {name: kind for of_owner in hints for name, kind in of_owner.items()} | {
        "template": str,
        "temperature": float | Literal["default"],
        "again": str | list[str],
        "extra": dict[str, JsonValue],
        "allow_missing": Annotated[float, Field(ge=0, le=1)],
    }
    types["prices"] = create_model(
        "prices", __config__=config, prompt=float, completion=float, cached=(float, None)
    )
    kinds: Any = {name: (types[name], None) for name in KEYS}
    return create_model("keys", __config__=config, **kinds)


def read_config(path: Path | None) -> dict[str, Any]:
    """Read the keys of a file; none without one."""
    if path is None:
        return {}
    with reworded(ValueError, f"{path}: {{error}}"):  # no TOML, or no UTF-8
        keys = tomllib.loads(read_whole(path).decode())
    # A project file has a table for them.
    return checked_keys(keys["judge"] if isinstance(keys.get("judge"), dict) else keys, str(path))


def checked_keys(keys: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check the keys of a file."""
    from pydantic import ValidationError

    try:
        checked = _file_model().model_validate(keys)
    except ValidationError as error:  # its text shows values, and headers may be secret
        raise InputError(f"{where}: {_words_of(error.errors())}") from None
    values: dict[str, Any] = checked.model_dump(exclude_unset=True)
    if "prices" in values:
        values["prices"] = Prices(**values["prices"])
    return values


def _words_of(faults: Sequence[Mapping[str, Any]]) -> str:
    # The value of a header may be secret.
    fault, (key, *place) = faults[0], faults[0]["loc"]
    if fault["type"] == "extra_forbidden" and not place:
        (nearest,) = get_close_matches(str(key), KEYS, n=1) or ["extra"]
        return f"unknown key {key!r}, expected {nearest!r}, for example"
    if key not in ("temperature", "again"):  # whose types have alternatives, named in the place
        key = ".".join(map(str, fault["loc"]))
    if fault["type"] == "missing":
        return f"{key} is missing"
    messages = (f["msg"] for f in faults if f["loc"][0] == fault["loc"][0])
    expected = (re.sub("^input (should be|was not) ", "", text, flags=re.I) for text in messages)
    got = {} if key.startswith(("headers", "extra")) else {"got": fault["input"]}
    return str(InputError(argument=key, **got, expected=" or ".join(dict.fromkeys(expected))))


def listed_prices(model: str, base_url: str | None) -> Prices | None:
    """Return the published prices of a provider's model; None for other endpoints."""
    return None if base_url is not None or model == SIMULATED else Prices.of_model(model)


def _judging(keys: Mapping[str, Any]) -> Judging:
    values = {key.name: keys[key.name] for key in fields(Judging) if key.name in keys}
    limits = {key.name: keys[key.name] for key in fields(Limits) if key.name in keys}
    if values.get("temperature") == "default":
        values["temperature"] = None
    if isinstance(again := keys.get("again"), str) and again != "all":
        values["again"] = tuple(filter(None, map(str.strip, again.split(","))))
    if keys["model"] == SIMULATED:
        values.setdefault("request_seed", 0)  # the same answers in every run
    return Judging(**values, limits=Limits(**limits))


def _rule_of(keys: dict[str, Any]) -> StoppingRule | RuleKind:
    from btdagg.online.rule import RuleKind, StoppingRule

    file = Path(keys["stop"])
    if file.suffix != ".json" and not file.exists():
        return RuleKind.parse(keys["stop"])
    with differences_said():
        rule = StoppingRule.load(file)
    keys.setdefault("n", rule.n)
    return rule


def headers_of(table: Mapping[str, str]) -> dict[str, str]:
    """Return headers, in which $NAME stands for an environment variable, which may be secret."""
    values = {}
    for name, text in table.items():
        value = os.environ.get(text[1:]) if text.startswith("$") else text
        if value is None:
            raise InputError(f"header {name} names an environment variable that is not set")
        values[name] = value
    return values
