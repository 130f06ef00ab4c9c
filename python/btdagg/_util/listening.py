"""Sockets to listen on, and a server that says where it does."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from btdagg._core import InputError

_LARGEST_PORT = 2**16 - 1


class Server(uvicorn.Server):
    """A uvicorn server that calls `tell` when it has started, and a signal would end it."""

    def __init__(self, config: uvicorn.Config, tell: Callable[[], object]) -> None:
        super().__init__(config)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        self._tell()


def bound(host: str, port: int) -> list[socket.socket]:
    """Listen on each address of a host."""
    if not 0 <= port <= _LARGEST_PORT:
        raise InputError(f"port is {port}, expected 0 to {_LARGEST_PORT}")
    sockets: list[socket.socket] = []
    try:
        # A name may stand for addresses of both families; the same one may come twice.
        addresses = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(addresses):
            sockets.append(socket.create_server(address, family=family))
    except (OSError, UnicodeError) as error:
        for listening in sockets:
            listening.close()
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host!r}, port {port}: {why}") from None
    return sockets


def place_of(listening: socket.socket) -> str:
    """Return the host and port of a socket as a URL has them."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
