"""Worker processes that answer at one socket, and the process that starts and replaces them."""
# Both ends of their pipes are here. A worker says once that it is ready, and is told of signals and
# new values, such as a model. The end of its pipe means that the process above it was killed.

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from btdagg._util.listening import SIGNALS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from btdagg._util.listening import DrainingServer

Value = TypeVar("Value")

_SPAWN = multiprocessing.get_context("spawn")
_PAUSE = 1.0  # seconds until another attempt to replace a worker
_log = logging.getLogger(__name__)


class Workers(Generic[Value]):
    """Processes that each call `work(pipe, value, listening, *arguments)`.

    A worker that ends is logged and replaced, unless a signal came or none can start. A value that
    `use` gives reaches all workers, also later ones.
    """

    def __init__(
        self,
        number: int,
        work: Callable[..., object],
        value: Value,
        listening: socket.socket,
        *arguments: object,
    ) -> None:
        self._number, self._work, self._value = number, work, value
        self._listening, self._arguments = listening, arguments
        self._processes: dict[Connection, SpawnProcess] = {}
        self._ready: set[Connection] = set()
        self._is_up = self._is_ending = False

    async def run(self, started: Callable[[], object]) -> None:
        """Call `started` once all are ready, and return when all have ended after a signal."""
        self._started, self._loop = started, asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        for signum in SIGNALS:
            self._loop.add_signal_handler(signum, self._end, signum)
        try:
            for _ in range(self._number):
                self._start()
            await self._ended
        finally:
            for process in self._processes.values():
                process.kill()
                process.join()

    def use(self, value: Value) -> None:
        self._value = value
        self._tell(value)

    def _start(self) -> None:
        if self._is_ending:
            return
        pipe, other = _SPAWN.Pipe()
        arguments = (other, self._value, self._listening, *self._arguments)
        process = _SPAWN.Process(target=self._work, args=arguments)
        process.start()
        other.close()
        self._processes[pipe] = process
        self._loop.add_reader(pipe.fileno(), self._hear, pipe)

    def _end(self, signum: int) -> None:
        self._is_ending = True
        self._listening.close()  # or whoever connects after the last worker would wait
        self._tell(signum)

    def _tell(self, message: object) -> None:
        for pipe in self._processes:
            with suppress(OSError):  # of a worker that has died, which is heard as well
                pipe.send(message)

    def _hear(self, pipe: Connection) -> None:
        try:
            pipe.recv()
        except (EOFError, OSError):
            self._replace(pipe)
            return
        self._ready.add(pipe)
        if not (self._is_up or self._is_ending) and len(self._ready) == self._number:
            self._is_up = True
            self._started()

    def _replace(self, pipe: Connection) -> None:
        self._loop.remove_reader(pipe.fileno())
        pipe.close()
        process = self._processes.pop(pipe)
        process.join()
        ending, was_ready = f"worker {process.pid} ended", pipe in self._ready
        self._ready.discard(pipe)
        if process.exitcode or not self._is_ending:
            _log.error("%s with status %s", ending, process.exitcode)  # minus a signal's number
        if self._is_ending:
            if not self._processes and not self._ended.done():
                self._ended.set_result(None)
        elif was_ready:
            self._start()
        elif self._is_up and self._ready:
            self._loop.call_later(_PAUSE, self._start)
        elif not self._ended.done():
            self._ended.set_exception(ChildProcessError(f"{ending} before it could answer"))


def ignore_signals() -> None:
    """Block signals in a worker: a terminal and a service manager send them to it as well."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*SIGNALS, signal.SIGHUP})


def obey(pipe: Connection, server: DrainingServer, use: Callable[[Any], object]) -> None:
    """Say that a worker is ready, and take the values and signals that it is told of."""
    loop = asyncio.get_running_loop()

    def hear() -> None:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            loop.remove_reader(pipe.fileno())
            message = signal.SIGTERM
        if isinstance(message, int):
            server.handle_exit(message, None)
        else:
            use(message)

    loop.add_reader(pipe.fileno(), hear)
    pipe.send("ready")
