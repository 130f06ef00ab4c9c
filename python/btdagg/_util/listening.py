"""Sockets to listen on, and uvicorn with a limit to its patience."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from btdagg._core import InputError

# How long a connection without a request stays open at shutdown: one may be on its way.
_GRACE = 0.25

_LARGEST_PORT = 2**16 - 1


class PatientProtocol(H11Protocol):
    """HTTP/1.1 in which a client has so much time for a request, and for taking in an answer."""

    patience = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        for timer in (self._deadline, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; the whole has to come within the deadline."""
        if self._deadline is None:
            self._expect()
        super().data_received(data)
        if self._leaving and self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
        if not self._is_awaited():
            self._drop_deadline()
        elif self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            # The end of a body that was refused before it was all there: the next may come.
            self._drop_deadline()
            self._expect()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on once it has read."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, by force where its last answer is not taken."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.patience, self.transport.abort)

    def shutdown(self) -> None:
        """Finish the request that is being answered, or that is on its way."""
        self._leaving = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(_GRACE, self._close_if_idle)
        else:
            super().shutdown()

    def _close_if_idle(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _is_awaited(self) -> bool:
        """Whether a request, or a part of one, has still to come."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expect(self) -> None:
        # A little more than the body has: the application can still answer with 408.
        self._deadline = self.loop.call_later(self.patience * 1.1 + 0.1, self._too_slow)

    def _too_slow(self) -> None:
        self._deadline = None
        if self._is_awaited():
            self.transport.abort()


class Server(uvicorn.Server):
    """A uvicorn server that says where it listens, also where the system chose the port."""

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        for server in getattr(self, "servers", ()):
            for each in server.sockets:
                host, port = each.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                self.tell(f"{shown}:{port}")

    def tell(self, place: str) -> None:
        """Say where it listens, once for each socket."""
        print(f"listening on http://{place}", flush=True)


def bound(host: str, port: int) -> list[socket.socket]:
    """Bind a socket to each address of a host; nothing is listened on yet.

    Raises
    ------
    InputError
        If the port is out of range, or an address is unknown, taken or not to be had.
    """
    if not 0 <= port <= _LARGEST_PORT:
        raise InputError(f"port is {port}, expected 0 to {_LARGEST_PORT}")
    sockets: list[socket.socket] = []
    try:
        # A name may stand for addresses of both families; the same one may come twice.
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in dict.fromkeys(found):
            sockets.append(socket.socket(family, kind, protocol))
            if sys.platform != "win32":  # there it would let two servers share a port
                sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # the other family has a socket of its own
                sockets[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sockets[-1].bind(address)
    except (OSError, UnicodeError) as error:
        for each in sockets:
            each.close()
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host!r}, port {port}: {why}") from None
    return sockets
