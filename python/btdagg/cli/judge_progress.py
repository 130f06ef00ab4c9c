"""A judge at work on the command line: progress on standard error, and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from btdagg.cli.common import err, note

if TYPE_CHECKING:
    from btdagg.cli.judge_options import JudgeOptions
    from btdagg.judge.runs import JudgeRun

T = TypeVar("T")

_EVERY = 0.5 if err.is_terminal else 15.0  # seconds between lines of progress


def run_asking(asking: Callable[..., Awaitable[T]], total: int, options: JudgeOptions) -> T:
    """Run what takes a client, a stop and a watch, with progress; `total` votes are expected.

    The first Ctrl-C ends it in good order, the second at once.
    """
    try:
        return asyncio.run(_asking(asking, total, options))
    except asyncio.CancelledError:  # of the second Ctrl-C
        raise KeyboardInterrupt from None


async def _asking(asking: Callable[..., Awaitable[T]], total: int, options: JudgeOptions) -> T:
    client = options.client()
    stop = asyncio.Event()
    task = asyncio.current_task()

    def interrupt() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
            return
        stop.set()
        note("stopping: calls under way have a few seconds to finish; Ctrl-C again ends them too")

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # Windows; not the main thread
        loop.add_signal_handler(signal.SIGINT, interrupt)
        loop.add_signal_handler(signal.SIGTERM, interrupt)
    try:
        return await asking(client=client, stop=stop, watch=_progress(total))
    finally:
        await client.close()


def _progress(total: int) -> Callable[[JudgeRun], None]:
    """Write a line now and then; on a terminal it replaces the one before."""
    began = last = time.monotonic()
    n_before = n_earlier = 0
    current: JudgeRun | None = None

    def watch(run: JudgeRun) -> None:
        nonlocal last, n_before, n_earlier, current
        if run is not current:  # of a job that has several
            if current is not None:
                n_earlier += current.statuses.total() + current.there.total()
            current, n_before = run, 0
        now = time.monotonic()
        if now - last < _EVERY:
            return
        new = run.statuses.total()
        rate = (new - n_before) / (now - last)
        last, n_before = now, new
        done = n_earlier + new + run.there.total()
        parts = [f"{done}/{total} votes", f"{rate:.1f}/s"]
        parts += [f"{n} {status}" for status, n in sorted(run.statuses.items()) if status != "ok"]
        if run.cost is not None:
            parts.append(f"cost {run.cost:.4g}")
        if rate > 0 and total > done:
            parts.append(f"{_duration((total - done) * (now - began) / max(new, 1))} to go")
        line = ", ".join(parts)
        end = "\r" if err.is_terminal else "\n"
        print(f"{line:<{max(err.width - 1, 0)}}" if end == "\r" else line, end=end, file=sys.stderr)

    return watch


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
