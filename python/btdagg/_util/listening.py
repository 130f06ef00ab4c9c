"""A socket to listen on, and a server that says where it does."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn

from btdagg._util.errors import reworded
from btdagg._util.numbers import as_integer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A uvicorn server that calls `tell` when it has started, and a signal would end it."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[], object]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()


def serve(config: uvicorn.Config, listening: socket.socket, tell: Callable[[], object]) -> None:
    """Answer until SIGINT or SIGTERM, then finish what was accepted; `tell` that it has begun."""
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        _Server(config, tell).run([listening])
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
