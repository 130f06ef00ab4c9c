"""What every request passes before a route sees it: rate, token, size and patience."""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.serve.metrics import Metrics
    from btdagg.serve.settings import Settings

# Addresses whose buckets are kept.
_MAX_CLIENTS = 10_000


class ClientGoneError(Exception):
    """The client left before its body was there."""


class Buckets:
    """A token bucket for each client; the least recently seen are forgotten."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, client: str) -> float:
        """Take one from the client's bucket; where it is empty say when there will be one."""
        if self._rate == 0:
            return 0.0
        now = self._clock()
        level, then = self._levels.pop(client, (float(self._burst), now))
        level = min(self._burst, level + (now - then) * self._rate)
        wait = 0.0 if level >= 1 else (1 - level) / self._rate
        self._levels[client] = (level - 1 if wait == 0 else level, now)
        while len(self._levels) > _MAX_CLIENTS:
            self._levels.popitem(last=False)
        return wait


class Gate:
    """ASGI middleware: refuses what is too fast, unauthorised, too large or too slow.

    A body is read here, whole, before the application is called: it never waits for a client.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, metrics: Metrics, is_leaving: Callable[[], bool]
    ) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._is_leaving = is_leaving
        self._buckets = Buckets(settings.rate, settings.burst)
        token = settings.token
        self._wanted = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), "500"
        self._metrics.accept()

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                if self._is_leaving():  # the client is not to send another
                    message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        try:
            await self._let_in(scope, receive, answer)
        except ClientGoneError:
            status = "gone"
        finally:
            self._metrics.answer(scope["path"], status, time.perf_counter() - start)

    def _is_allowed(self, given: bytes) -> bool:
        if self._wanted is None:
            return True
        scheme, _, token = given.partition(b" ")
        is_right = hmac.compare_digest(token.strip(), self._wanted)
        return is_right and scheme.lower() == b"bearer"

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["path"].startswith("/v1/") or scope["path"] == "/metrics":
            client = scope["client"][0] if scope["client"] else ""
            wait = self._buckets.seconds_to_wait(client)
            if wait > 0:
                after = str(math.ceil(wait))
                detail = f"more than {self._settings.rate:g} requests a second, wait {after} s"
                await refuse(send, 429, detail, ("retry-after", after))
                return
            if not self._is_allowed(headers.get(b"authorization", b"")):
                detail = "no valid bearer token in the Authorization header"
                await refuse(send, 401, detail, ("www-authenticate", "Bearer"))
                return
        limit = self._settings.max_body
        declared = headers.get(b"content-length", b"0")
        too_large = f"body is larger than {limit} bytes"
        # What is left of a body that is refused is thrown away as it comes, within the time limit:
        # a client that is still sending would else lose the answer.
        if not declared.isdigit() or int(declared[:20]) > limit:
            await refuse(send, 413, too_large)
            return
        try:
            async with asyncio.timeout(self._settings.timeout):
                body = await _read(receive, limit)
        except TimeoutError:
            detail = f"body took longer than {self._settings.timeout:g} s"
            await refuse(send, 408, detail, ("connection", "close"))
            return
        if body is None:
            await refuse(send, 413, too_large)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replay, send)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, None once it is larger than the limit."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def refuse(send: Send, status: int, detail: str, *headers: tuple[str, str]) -> None:
    """Answer with an error and its one message."""
    body = json.dumps({"detail": detail}).encode()
    sent: list[Any] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *((name.encode(), value.encode()) for name, value in headers),
    ]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
