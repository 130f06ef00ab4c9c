"""`btdagg batch`: votes by files of requests, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._core import InputError
from btdagg._util.addresses import without_credentials
from btdagg._util.validation import as_number
from btdagg.cli.common import Json, note, out, print_json, tables_of
from btdagg.cli.judge_output import INCOMPLETE, say_estimate
from btdagg.cli.judge_settings import (
    Config,
    JudgeFlags,
    PairsFile,
    headers_of,
    read_config,
    with_judge_flags,
)

if TYPE_CHECKING:
    from btdagg.judge.batches.endpoint import BatchEndpoint
    from btdagg.judge.batches.steps import Collected
    from btdagg.judge.store import Batch, Owner, VoteStore

batch = typer.Typer(
    name="batch",
    help="Ask by batches of OpenAI (or servers with its API) or Anthropic, at half the price: "
    "write files of requests, send them, collect the answers. `btdagg judge --batch` does all of "
    "it, and waits.\n\n"
    "Example: btdagg batch write pairs.jsonl --model gpt-5.4 -n 4",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

Store = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        help="File of the votes, or postgresql://user@host/database.",
        rich_help_panel="Output",
    ),
]
Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="[BATCH]...", help="Numbers of batches.", show_default="all"),
]
_FAULT = 2  # exit status, as of any other error


@batch.command()
@partial(with_judge_flags, without=("stop", "batch", "concurrency"))
def write(
    pairs: PairsFile,
    flags: JudgeFlags,
    store: Store = "votes.db",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the files.",
            show_default="beside the store",
            rich_help_panel="Output",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Write files of requests for the votes that the store does not have.

    What is in a file is not asked for by anything else, until it is collected or cancelled.

    Example: btdagg batch write pairs.jsonl --model gpt-5.4 -n 12
    """
    from btdagg.judge.batches.files import BatchWriter
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.store import VoteStore

    settings = replace(flags, batch=True).settings()
    if settings.stop is not None:
        raise InputError("--stop is for judge and run, which ask in rounds (--batch)")
    judging = settings.judging
    (raw,) = tables_of(settings.columns, pairs)
    several = read_pairs(raw)
    judging.prompt.check(several)
    if flags.dry_run:
        say_estimate(judging, lambda _: several, store, json)
        return 0
    with VoteStore(store, keep_exchanges=not settings.drop_exchanges) as opened:
        with opened.owner() as owner:
            writer = BatchWriter(judging, owner, opened, settings.client(), output)
            found = asyncio.run(writer.write(judging.plan(several), judging.again))
        made = [each for each in opened.batches() if each.id in found.batches]
    if json:
        told = {**vars(found), "there": dict(found.there)}
        print_json({**told, "batches": [asdict(each) for each in made]})
    for each in made:
        if not json:
            out.print(f"batch {each.id}: {each.n_requests} requests, {each.file}", soft_wrap=True)
    if not made and not json:
        out.print("nothing to ask for")
    others = found.n_batched + found.n_elsewhere
    note(
        f"{found.there.total()} of {found.n_wanted} samples are in the store, {others} are under "
        "way elsewhere"
    )
    if found.stopped:
        note(f"stopped early: {found.stopped}")
        return INCOMPLETE
    return 0


@batch.command()
def send(
    batches: Numbers = None,
    store: Store = "votes.db",
    config: Config = None,
) -> int:
    """Send batches that are written. One that was sent is not sent again, whatever happened since.

    Example: btdagg batch send
    """
    from btdagg.judge.batches.steps import send_batch

    async def step(each: Batch, owner: Owner, endpoint: BatchEndpoint) -> bool:
        before = each.state
        sent = await send_batch(each.id, owner, endpoint)
        if sent is None:
            note(f"batch {each.id}: another process is at it")
            return False
        again = " before" if before == "sent" else ""
        out.print(f"batch {each.id}: sent{again} as {sent.remote}", soft_wrap=True)
        return True

    return _each(batches, store, step, config)


@batch.command()
def collect(
    batches: Numbers = None,
    store: Store = "votes.db",
    wait: Annotated[bool, typer.Option("--wait", help="Until all have ended.")] = False,
    config: Config = None,
    json: Json = False,
) -> int:
    """Write the answers of batches that have ended to the store.

    What came without an answer is free again: write asks for it anew. The exit status is 3 while
    some are under way.

    Example: btdagg batch collect --wait
    """
    from btdagg.judge.batches.steps import collect_batch, waited

    told: list[dict[str, Any]] = []

    async def step(each: Batch, owner: Owner, endpoint: BatchEndpoint) -> bool:
        if each.remote is None:
            note(f"batch {each.id} is not sent: btdagg batch send {each.id}")
            return False
        found = await (waited if wait else collect_batch)(each, owner, endpoint)
        if found is None:
            note(f"batch {each.id}: another process is at it")
            return False
        if json:
            told.append(_as_dict(found))
        else:
            _say(found)
        return found.remote.has_ended

    status = _each(batches, store, step, config)
    if json:
        print_json(told)
    return status


@batch.command("list")
def list_batches(store: Store = "votes.db", json: Json = False) -> int:
    """List batches that are not collected.

    Example: btdagg batch list
    """
    from btdagg.judge.store import VoteStore

    with VoteStore(store, create=False) as opened:
        found = opened.batches()
    if json:
        print_json([asdict(each) for each in found])
        return 0
    for each in found:
        where = f"{each.remote} at {each.endpoint}" if each.remote else each.file
        out.print(
            f"batch {each.id}: {each.state}, {each.n_requests} requests, {where}", soft_wrap=True
        )
    if not found:
        out.print("no batch is under way")
    return 0


@batch.command()
def cancel(
    batches: Annotated[list[int], typer.Argument(metavar="BATCH...", help="Numbers of batches.")],
    store: Store = "votes.db",
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Free what is in it without a word to the endpoint, whatever it costs."
        ),
    ] = False,
    config: Config = None,
) -> int:
    """Cancel batches: what was not sent is free, what was sent ends and can then be collected.

    Example: btdagg batch cancel 3
    """
    from btdagg.judge.batches.steps import cancel_batch, forget_batch
    from btdagg.judge.store import VoteStore

    async def step(each: Batch, owner: Owner, endpoint: BatchEndpoint) -> bool:
        freed = await cancel_batch(each.id, owner, endpoint)
        if freed is None:
            note(f"batch {each.id}: another process is at it")
        elif freed:
            out.print(f"batch {each.id}: {freed} samples are free")
        else:
            out.print(f"batch {each.id}: ends at the endpoint; btdagg batch collect {each.id}")
        return freed is not None

    if not forget:
        return _each(batches, store, step, config)
    with VoteStore(store, create=False) as opened, opened.owner() as owner:
        for each in _chosen(opened, batches):
            freed = forget_batch(each.id, owner)
            if freed is None:
                note(f"batch {each.id}: another process is at it")
                return INCOMPLETE
            out.print(f"batch {each.id}: {freed} samples are free")
    return 0


def _chosen(opened: VoteStore, numbers: list[int] | None) -> list[Batch]:
    """Return the batches of these numbers; all that are not done with unless some are given."""
    found = opened.batches()
    if unknown := set(numbers or ()) - {each.id for each in found}:
        raise InputError(f"{opened.name}: no batch {min(unknown)} is under way: btdagg batch list")
    return [each for each in found if not numbers or each.id in numbers]


def _each(
    numbers: list[int] | None,
    store: str,
    step: Callable[[Batch, Owner, BatchEndpoint], Any],
    config: Path | None,
) -> int:
    """Take a step with each of some batches; return the exit status.

    What the endpoint has against one of them is said, and keeps no other one back.
    """
    from btdagg.judge.batches.endpoint import BatchEndpoint
    from btdagg.judge.errors import EndpointError
    from btdagg.judge.judging import Judging
    from btdagg.judge.provider import ModelClient
    from btdagg.judge.store import VoteStore

    keys = read_config(config)
    timeout = as_number(keys.get("timeout", Judging.timeout), "timeout")
    if timeout <= 0:
        raise InputError(f"timeout is {timeout:g}, expected more than 0", argument="timeout")

    async def take(each: Batch, owner: Owner) -> int:
        own = keys if _is_for(keys, each) else {}
        client = ModelClient(
            each.provider,
            own.get("base_url") or each.endpoint,
            key_variable=own.get("key_variable"),
            headers=headers_of(own.get("headers", {})),
            timeout=timeout,
        )
        try:
            return 0 if await step(each, owner, BatchEndpoint.of(client)) else INCOMPLETE
        except EndpointError as error:
            owner.roll_back()
            freed = f"if it is lost, btdagg batch cancel --forget {each.id} frees what is in it"
            note(f"batch {each.id}: {error}; {freed}")
            return _FAULT
        finally:
            await client.close()

    async def all_of_them(opened: VoteStore, owner: Owner) -> list[int]:
        return [await take(each, owner) for each in _chosen(opened, numbers)]

    with VoteStore(store, create=False) as opened:
        if not numbers and not opened.batches():
            out.print("no batch is under way")
            return 0
        with opened.owner() as owner:
            statuses = asyncio.run(all_of_them(opened, owner))
    return _FAULT if _FAULT in statuses else max(statuses)


def _is_for(keys: Mapping[str, Any], each: Batch) -> bool:
    """Whether the endpoint of a file's keys is that of a batch; no other one sees its key."""
    from btdagg.judge.providers import provider_of

    if keys.get("base_url"):
        return without_credentials(keys["base_url"]) == each.endpoint
    return not keys.get("model") or provider_of(keys["model"])[0] == each.provider


def _say(found: Collected) -> None:
    n, remote = found.batch.id, found.remote
    if not remote.has_ended:
        out.print(f"batch {n}: {remote.status}, {remote.done} of {remote.total} requests are done")
        return
    by_status = ", ".join(f"{k} {status}" for status, k in found.statuses.most_common())
    cost = "" if found.run.cost is None else f", cost {found.run.cost:.4g}"
    out.print(
        f"batch {n}: {remote.status}, {by_status or 'no answers'}; {found.run.prompt_tokens} "
        f"tokens sent, {found.run.completion_tokens} received{cost}",
        soft_wrap=True,
    )
    if found.run.reasons:
        why = "; ".join(f"{k} {reason}" for reason, k in found.run.reasons.most_common(3))
        note(f"batch {n}: without a vote: {why}")
    if found.n_freed:
        why = "; ".join(f"{k} {reason}" for reason, k in found.why.most_common(3))
        note(f"batch {n}: {found.n_freed} samples without an answer are free again: {why}")
    if remote.said:
        note(f"batch {n}: {remote.said}")


def _as_dict(found: Collected) -> dict[str, Any]:
    return {
        "batch": found.batch.id,
        **asdict(found.remote),
        "statuses": dict(found.statuses),
        "n_freed": found.n_freed,
        "why": dict(found.why),
        "run": found.run.as_dict(),
    }
