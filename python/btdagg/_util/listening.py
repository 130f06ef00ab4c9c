"""A socket to listen on, and a server that says where it does."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from btdagg._util.errors import reworded
from btdagg._util.numbers import as_integer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A uvicorn server that calls `tell` when it has started, and a signal would end it."""

    def __init__(
        self,
        config: uvicorn.Config,
        tell: Callable[[], object],
        drain: float,
        drains: Callable[[], object] | None,
    ) -> None:
        super().__init__(config)
        self._tell, self._drain, self._drains = tell, drain, drains
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.TimerHandle | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._tell()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Go on for a while after the first signal."""
        drain, self._drain = self._drain, 0.0
        if not drain or self._loop is None:
            if self._end is not None:
                self._end.cancel()  # or it would be a second signal, which ends at once
            super().handle_exit(sig, frame)
            return
        if self._drains is not None:
            self._drains()
        self._end = self._loop.call_later(drain, super().handle_exit, sig, frame)
        self._loop.call_soon_threadsafe(lambda: None)  # wakes the loop, which then knows of it


def serve(
    config: uvicorn.Config,
    listening: socket.socket,
    tell: Callable[[], object],
    drain: float = 0.0,
    drains: Callable[[], object] | None = None,
) -> None:
    """Answer until SIGINT or SIGTERM, then finish what was accepted; `tell` that it has begun.

    It goes on for `drain` seconds after the signal, and says so to `drains`.
    """
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        _Server(config, tell, drain, drains).run([listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bound(host: str, port: int) -> socket.socket:
    """Listen on an address; of a name that has several, on the one of IPv4."""
    as_integer(port, "port", 0, 2**16 - 1)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with reworded((OSError, UnicodeError), f"cannot listen on {host!r}, port {port}: {{error}}"):
        listening = socket.create_server((host, port), family=family)
    # Connections inherit it. Else the body of an answer, which is written after its headers, waits
    # until the client has acknowledged these: 40 ms on a connection that is kept open.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def place_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
