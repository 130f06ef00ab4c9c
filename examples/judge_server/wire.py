"""HTTP/1.1 with keep-alive: just enough of it, and fast."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

_END_OF_HEAD = b"\r\n\r\n"
_MOST = 64 * 2**20  # bytes of a request


@dataclass(frozen=True)
class Request:
    """A request; names of headers are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A response, and how it fails on its way: not at all, "reset" or "hang"."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str | None = None

    def encoded(self) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"content-type: {self.content_type}",
            f"content-length: {len(self.body)}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode() + _END_OF_HEAD + self.body


class Connection(asyncio.Protocol):
    """One connection: requests are answered one after the other."""

    def __init__(
        self,
        handle: Callable[[Request], Reply],
        opened: Callable[[], None],
        closed: Callable[[], None],
        answered: Callable[[], None],
    ) -> None:
        self._handle, self._opened, self._closed, self._answered = handle, opened, closed, answered
        self._received = bytearray()
        self._request_ends = 0  # 0 while the head of the request is not complete
        self._pending: asyncio.TimerHandle | None = None
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._opened()

    def connection_lost(self, error: Exception | None) -> None:
        if self._pending is not None:
            self._pending.cancel()
        if self._busy:
            self._answered()
        self._closed()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        received = self._received
        if not self._request_ends:
            head_ends = received.find(_END_OF_HEAD)
            if head_ends < 0:
                if len(received) > 65536:
                    self._refuse(431)
                return
            lines = received[:head_ends].decode("latin-1").split("\r\n")
            parts = lines[0].split(" ")
            if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
                return self._refuse(400)
            pairs = (line.partition(":") for line in lines[1:])
            self._headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            self._method, self._path, _ = parts
            length = self._headers.get("content-length", "0")
            if "transfer-encoding" in self._headers:
                return self._refuse(411)
            if not length.isdecimal() or int(length) > _MOST:
                return self._refuse(413)
            self._body_starts = head_ends + len(_END_OF_HEAD)
            self._request_ends = self._body_starts + int(length)
        if len(received) < self._request_ends:
            return
        body = bytes(received[self._body_starts : self._request_ends])
        del received[: self._request_ends]
        self._request_ends = 0
        self._busy = True
        reply = self._handle(Request(self._method, self._path, self._headers, body))
        if reply.fault == "hang":
            return  # until the client has had enough
        if reply.delay:
            self._pending = self._loop.call_later(reply.delay, self._send, reply)
        else:
            self._send(reply)

    def _send(self, reply: Reply) -> None:
        encoded = reply.encoded()
        if reply.fault == "reset":
            self._transport.write(encoded[: len(encoded) - len(reply.body) // 2 - 1])
            # The half has to be out before the connection is gone.
            self._pending = self._loop.call_later(0.002, self._reset)
            return
        self._transport.write(encoded)
        self._answered()
        self._pending, self._busy = None, False
        if self._headers.get("connection", "").lower() == "close":
            self._transport.close()
        elif self._received:
            self._loop.call_soon(self._resume)

    def _reset(self) -> None:
        if not self._transport.is_closing():
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _resume(self) -> None:
        if not self._busy:
            self._next()

    def _refuse(self, status: int) -> None:
        self._transport.write(Reply(status, b"", headers={"connection": "close"}).encoded())
        self._transport.close()
