"""A judge at work on the command line: progress on standard error, and Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len, set_cell_size

from btdagg.cli.common import err, note
from btdagg.report.wording import visible

if TYPE_CHECKING:
    from btdagg.cli.judge_settings import JudgeSettings
    from btdagg.judge.runs import JudgeRun

T = TypeVar("T")

_EVERY = 0.5 if err.is_terminal else 15.0  # seconds between lines of progress


def run_asking(asking: Callable[..., Awaitable[T]], total: int, settings: JudgeSettings) -> T:
    """Run what takes a client, a stop and a watch, with progress; `total` votes are expected.

    The first Ctrl-C ends it in good order, the second at once.
    """
    try:
        return asyncio.run(_asking(asking, total, settings))
    except asyncio.CancelledError:  # of the second Ctrl-C
        raise KeyboardInterrupt from None


async def _asking(asking: Callable[..., Awaitable[T]], total: int, settings: JudgeSettings) -> T:
    client = settings.client()
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
        return await asking(client=client, stop=stop, watch=_Progress(total))
    finally:
        await client.close()


class _Progress:
    """Writes a line now and then; on a terminal it replaces the one before."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._last = time.monotonic()
        self._n_before = self._n_earlier = 0
        self._run: JudgeRun | None = None
        self._said = ""  # what is waited for

    def __call__(self, run: JudgeRun) -> None:
        if run is not self._run:  # of a job that has several
            if self._run is not None:
                self._n_earlier += self._run.n_votes
            self._run, self._n_before = run, 0
        waits_anew = run.waits_for.partition(" (")[0] != self._said
        if time.monotonic() - self._last < (_EVERY if not waits_anew else min(_EVERY, 1.0)):
            return
        self._said = run.waits_for.partition(" (")[0]
        line = visible(", ".join(self._parts(run)))
        if not err.is_terminal:
            print(line, file=sys.stderr)
            return
        # The last column stays free: a terminal that goes on to the next line keeps what is there.
        print(set_cell_size(_cut(line, err.width - 1), err.width - 1), end="\r", file=sys.stderr)

    def _parts(self, run: JudgeRun) -> list[str]:
        now = time.monotonic()
        new = run.statuses["ok"]
        rate = (new - self._n_before) / (now - self._last)
        self._last, self._n_before = now, new
        done = self._n_earlier + run.n_votes
        parts = [f"{done}/{self._total} votes", f"{rate:.1f}/s"]
        parts += [f"{n} {status}" for status, n in sorted(run.statuses.items()) if status != "ok"]
        if run.cost is not None:
            parts.append(f"cost {run.cost:.4g}")
        if run.waits_for:
            seconds = f" for {_duration(run.waits_seconds)}" if run.waits_seconds else ""
            parts.append(f"waiting{seconds}: {run.waits_for}")
        elif rate > 0 and self._total > done:
            left = (self._total - done) * (now - self._began) / max(new, 1)
            parts.append(f"{_duration(left)} to go")
        return parts


def _cut(line: str, width: int) -> str:
    return line if cell_len(line) <= width else f"{set_cell_size(line, max(width - 3, 0))}..."


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
