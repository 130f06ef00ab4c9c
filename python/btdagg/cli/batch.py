"""`btdagg batch`: votes by files of requests, step by step."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from btdagg._util.addresses import without_credentials
from btdagg._util.errors import InputError, forbid
from btdagg._util.wording import counted
from btdagg.cli.common import Json, note, print_json, say
from btdagg.cli.flags import with_flags
from btdagg.cli.judge_output import INCOMPLETE, say_estimate, tokens_and_cost
from btdagg.cli.judge_settings import (
    EndpointFlags,
    JobFlags,
    JudgeFlags,
    PairsFile,
    Store,
    headers_of,
    store_of,
)

if TYPE_CHECKING:
    from btdagg.judge.batches.steps import BatchDesk, Collected
    from btdagg.judge.store.owner import Batch, Owner

batch = typer.Typer(
    name="batch",
    help="Ask in batches of OpenAI (or servers with its API) or Anthropic, at half the price: "
    "write files of requests, send them, collect the answers. `btdagg judge --batch` does all "
    "of it, and waits.\n\nExample: btdagg batch write pairs.jsonl --model gpt-5.4 -n 4",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="[BATCH]...", help="Numbers of batches.", show_default="all"),
]
_FAULT = 2  # exit status, as of any other error


@batch.command()
@with_flags
def write(flags: JobFlags, pairs: PairsFile = None, store: Store = None, json: Json = False) -> int:
    """Write files of requests, beside the store, for the votes that the store does not have.

    No other command asks for these votes until the batch is collected or cancelled.

    Example: btdagg batch write pairs.jsonl --model gpt-5.4 -n 12
    """
    from btdagg.judge.batches.files import BatchWriter
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.store.store import VoteStore

    settings = JudgeFlags(**vars(flags), batch=True).settings()
    forbid(
        settings.rule is not None,
        "batch write takes no --stop; use btdagg judge or btdagg run with --stop and --batch",
    )
    judging, place = settings.judging, store_of(store, settings.store)
    pairs_read = read_pairs(
        *flags.tables(settings.columns, ("pairs", flags.project.place("pairs", pairs))),
        criteria=settings.criteria,
    )
    judging.prompt.check(pairs_read)
    if flags.dry_run:
        say_estimate(judging, lambda _: pairs_read, settings.base_url, place, json)
        return 0
    with VoteStore(place, keep_exchanges=not settings.drop_exchanges) as opened:
        with opened.owner() as owner:
            writer = BatchWriter(judging, owner, opened, settings.client())
            written = asyncio.run(writer.write(judging.plan(pairs_read), judging.again))
        batches = [batch for batch in opened.batches() if batch.id in writer.batches]
    if json:
        n_requests = sum(batch.n_requests for batch in batches)
        as_json = [asdict(batch) for batch in batches]
        print_json({**written.as_dict(), "n_requests": n_requests, "batches": as_json})
    else:
        for batch in batches:
            say(f"batch {batch.id}: {batch.n_requests} requests, {batch.file}")
        if not batches:
            say("nothing to ask for")
    note(
        f"{written.stored.total()} of {written.n_wanted} samples are in the store, "
        f"{written.n_elsewhere} are being asked for elsewhere"
    )
    if written.stopped:
        note(f"stopped early: {written.stopped}")
        return INCOMPLETE
    return 0


@batch.command()
@with_flags
def send(flags: EndpointFlags, batches: Numbers = None, store: Store = None) -> int:
    """Send the batches that are written. A batch is never sent twice.

    Example: btdagg batch send
    """

    async def step(batch: Batch, desk: BatchDesk) -> bool | None:
        sent = await desk.send(batch.id)
        if sent is None:
            return None
        before = " before" if batch.state == "sent" else ""
        say(f"batch {batch.id}: sent{before} as {sent.remote}")
        return True

    return _each_batch(flags, batches, store, step)


@batch.command()
@with_flags
def collect(
    flags: EndpointFlags,
    batches: Numbers = None,
    store: Store = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until all batches have ended.")
    ] = False,
) -> int:
    """Write the answers of batches that have ended to the store.

    Requests without an answer are asked for again by the next btdagg batch write. The exit status
    is 3 while batches are still running.

    Example: btdagg batch collect --wait
    """

    async def step(batch: Batch, desk: BatchDesk) -> bool | None:
        if batch.remote is None:
            note(f"batch {batch.id} is not sent yet: btdagg batch send {batch.id}")
            return False
        collected = await (desk.collect_at_end if wait else desk.collect)(batch)
        if collected is None:
            return None
        _say(collected)
        return collected.remote.has_ended

    return _each_batch(flags, batches, store, step)


@batch.command("list")
@with_flags
def list_batches(store: Store = None) -> None:
    """List batches that are not collected yet.

    Example: btdagg batch list
    """
    from btdagg.judge.store.store import VoteStore

    with VoteStore(store_of(store), create=False) as opened:
        batches = opened.batches()
    for batch in batches:
        where = f"{batch.remote} at {batch.endpoint}" if batch.remote else batch.file
        say(f"batch {batch.id}: {batch.state}, {batch.n_requests} requests, {where}")
    if not batches:
        say("no batch is running")


@batch.command()
@with_flags
def cancel(
    flags: EndpointFlags,
    batches: Annotated[list[int], typer.Argument(metavar="BATCH...", help="Numbers of batches.")],
    store: Store = None,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Release the votes for another request without cancelling at the endpoint, which "
            "may still answer and charge.",
        ),
    ] = False,
) -> int:
    """Cancel batches.

    Votes of unsent batches can be requested again. A batch that was sent is ended at the
    endpoint; then collect its answers.

    Example: btdagg batch cancel 3
    """

    async def step(batch: Batch, desk: BatchDesk) -> bool | None:
        freed = desk.forget(batch.id) if forget else await desk.cancel(batch.id)
        if freed is None:
            return None
        released = f"{counted(freed, 'vote')} can be requested again"
        ends = f"ends at the endpoint; btdagg batch collect {batch.id}"
        say(f"batch {batch.id}: {released if freed or forget else ends}")
        return True

    return _each_batch(flags, batches, store, step, calls=not forget)


def _each_batch(
    flags: EndpointFlags,
    numbers: list[int] | None,
    store: str | None,
    step: Callable[[Batch, BatchDesk], Awaitable[bool | None]],
    *,
    calls: bool = True,
) -> int:
    # A step returns whether it is done, None where another process is at the batch. An endpoint's
    # error on one batch does not stop the others.
    from btdagg.judge.batches.endpoint import BatchEndpoint
    from btdagg.judge.batches.steps import BatchDesk
    from btdagg.judge.faults import EndpointError
    from btdagg.judge.judging import Judging
    from btdagg.judge.provider import ModelClient
    from btdagg.judge.store.store import VoteStore

    keys = flags.said_keys()

    async def take(batch: Batch, owner: Owner) -> int:
        settings = keys if _is_for(keys, batch) else {}
        if calls and not settings.get("base_url") and not _is_trusted(batch):
            note(
                f"batch {batch.id}: only the store names the endpoint {batch.endpoint}, which "
                "would get your API key; if you know it, pass "
                f"--set judge.base_url={quote(batch.endpoint)}"
            )
            return _FAULT
        client = ModelClient(
            batch.provider,
            settings.get("base_url") or batch.endpoint,
            key_variable=settings.get("key_variable"),
            headers=headers_of(settings.get("headers", {})),
            timeout=keys.get("timeout", Judging.timeout),
        )
        try:
            done = await step(batch, BatchDesk(owner, BatchEndpoint.of(client)))
        except EndpointError as error:
            owner.roll_back()
            freed = (
                f"if the batch is lost, btdagg batch cancel --forget {batch.id} frees its samples"
            )
            note(f"batch {batch.id}: {error}; {freed}")
            return _FAULT
        finally:
            await client.close()
        if done is None:
            note(f"batch {batch.id}: another process is working on it")
        return 0 if done else INCOMPLETE

    async def take_all(batches: list[Batch], owner: Owner) -> list[int]:
        return [await take(batch, owner) for batch in batches]

    with VoteStore(store_of(store, keys.get("store")), create=False) as opened:
        batches = opened.batches()
        if unknown := set(numbers or ()) - {batch.id for batch in batches}:
            raise InputError(
                f"{opened.name}: no batch {min(unknown)} is running; btdagg batch list shows "
                "those that are"
            )
        batches = [batch for batch in batches if not numbers or batch.id in numbers]
        if not batches:
            say("no batch is running")
            return 0
        with opened.owner() as owner:
            statuses = asyncio.run(take_all(batches, owner))
    return _FAULT if _FAULT in statuses else max(statuses)


def _is_for(keys: Mapping[str, Any], batch: Batch) -> bool:
    """Whether the endpoint of a file's keys is that of a batch; no other one sees its key."""
    from btdagg.judge.client import provider_of

    if keys.get("base_url"):
        return without_credentials(keys["base_url"]) == batch.endpoint
    return not keys.get("model") or provider_of(keys["model"])[0] == batch.provider


def _is_trusted(batch: Batch) -> bool:
    """Whether a batch's endpoint is its provider's own, or that of the environment.

    A store may come from anywhere, so the address in it alone gets no key.
    """
    from btdagg.judge.client import PROVIDERS

    provider = PROVIDERS.get(batch.provider)
    if provider is None:
        return False
    addresses = provider.address, os.environ.get(provider.address_variable, "")
    return batch.endpoint in filter(None, map(without_credentials, addresses))


def _say(collected: Collected) -> None:
    n, remote, run = collected.batch.id, collected.remote, collected.run
    if not remote.has_ended:
        total = collected.batch.n_requests
        say(f"batch {n}: {remote.status}, {remote.done} of {total} requests done")
        return
    by_status = ", ".join(f"{k} {status}" for status, k in run.statuses.most_common())
    say(f"batch {n}: {remote.status}, {by_status or 'no answers'}; {tokens_and_cost(run)}")
    if run.reasons:
        note(f"batch {n}: without a vote: {_most_common(run.reasons)}")
    if collected.why:
        why = _most_common(collected.why)
        note(
            f"batch {n}: {collected.why.total()} samples got no answer and can be asked for "
            f"again: {why}"
        )
    if remote.reason:
        note(f"batch {n}: {remote.reason}")


def _most_common(reasons: Counter[str]) -> str:
    return "; ".join(f"{k} {reason}" for reason, k in reasons.most_common(3))
