"""What clients of endpoints have in common: a key, pools of connections, faults put into words.

Their libraries all send by httpx2. Retries are ours, never theirs: what they would repeat, nobody
would count or pay attention to.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from btdagg._core import InputError
from btdagg.addresses import without_credentials
from btdagg.judge.client import TOO_LONG, ChatReply, ChatRequest, Usage
from btdagg.judge.endpoint_faults import Faults
from btdagg.judge.retry import ChatError

if TYPE_CHECKING:
    import httpx2

_CALLS_OF_A_POOL = 16
# What is read of a reply. Answers have some 100 kB at most, their log-probabilities a few MB; in a
# stream each token comes with a few hundred bytes around it.
_LONGEST_REPLY = 8 * 1024**2  # bytes
_LONGEST_STREAM = 16 * _LONGEST_REPLY
_LONGEST_ANSWER = 1_000_000  # characters


class _ReplyTooLongError(Exception):
    """More came than is read of a reply."""


@dataclass
class _Pool:
    http_client: httpx2.AsyncClient
    client: Any  # of the library
    in_flight: int = 0


class EndpointClient(ABC):
    """A client of an endpoint, by the library of its protocol.

    Parameters
    ----------
    faults : Faults
        What goes wrong, in words without the key.
    stream : bool
        Ask for answers in parts, which keeps connections from going idle while a model thinks.
    timeout : float
        Seconds to wait for a connection or for further bytes.
    transport : httpx2.AsyncBaseTransport, optional
        How requests are sent, in place of connections; such as a mock.

    Attributes
    ----------
    name : str
        Address without credentials; where votes come from, as the store and messages have it.
    """

    name: str

    def __init__(
        self,
        faults: Faults,
        *,
        stream: bool,
        timeout: float,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        import httpx2

        self._faults, self._stream = faults, stream
        self._timeout, self._transport = timeout, transport
        # Finding a free connection takes a look at each that there is, so a few hundred of them in
        # one pool cost more than all else that a call takes. Pools are small, and made by need.
        self._pools: list[_Pool] = []
        self._ssl = httpx2.create_ssl_context()
        try:
            http_client = self._http_client()
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            said = faults.brief(str(error))
            raise InputError(
                f"the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY: {said}; "
                "want one such as http://localhost:3128"
            ) from None
        self._pools.append(_Pool(http_client, self._library_client(http_client)))

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request and read its reply.

        Raises
        ------
        ChatError
            If there is none.
        """
        while True:
            body = self._body(request)
            try:
                return await self._sent(request, body)
            except ChatError as fault:
                if not self._adapts(fault, body):
                    raise

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await self._closed(pool.client)
            await pool.http_client.aclose()  # not every library closes what it was given

    def long_reader(self) -> tuple[Any, httpx2.AsyncClient]:
        """Return a client of the library that reads replies of any length; the caller closes it.

        The other one is what it sends by, and what is to be closed.
        """
        http_client = self._http_client()
        http_client.event_hooks = {}
        return self._library_client(http_client), http_client

    def explained(self, error: Exception, model: str = "") -> ChatError:
        """Return the fault that an exception of the library stands for."""
        return self._explained(error, ChatRequest((), model))

    @property
    def faults(self) -> Faults:
        """What puts errors into words."""
        return self._faults

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def hidden(self, text: str) -> str:
        """Return a text without the key, should it hold it."""
        return self._faults.hidden(text)

    # Of a protocol

    @abstractmethod
    def _library_client(self, http_client: httpx2.AsyncClient) -> Any:
        """Return a client of the library that sends by this one."""

    @abstractmethod
    def _body(self, request: ChatRequest) -> dict[str, Any]:
        """Return what is sent.

        Raises
        ------
        ChatError
            If the protocol has no word for something that is asked for.
        """

    @abstractmethod
    async def _answered(self, client: Any, body: dict[str, Any], began: float) -> ChatReply:
        """Send a body and read the reply."""

    @abstractmethod
    async def _streamed(self, client: Any, body: dict[str, Any], began: float) -> ChatReply:
        """Send a body and read the reply in parts."""

    def _adapts(self, fault: ChatError, body: Mapping[str, Any]) -> bool:
        """Whether a refused request can be put in another way: from now on it is."""
        return False

    def _explained(self, error: Exception, request: ChatRequest) -> ChatError:
        return self._faults.explained(error, request)

    async def _closed(self, client: Any) -> None:
        await client.close()

    # Requests and replies

    async def _sent(self, request: ChatRequest, body: dict[str, Any]) -> ChatReply:
        began = time.perf_counter()
        pool = self._pool()
        pool.in_flight += 1
        try:
            send = self._streamed if self._stream else self._answered
            return await send(pool.client, body, began)
        except Exception as error:
            latency = time.perf_counter() - began
            if _is_too_long(error):
                return ChatReply("", finish_reason=TOO_LONG, latency=latency)
            filtered = self._faults.filtered(error, latency)
            if filtered is not None:
                return filtered
            fault = error if isinstance(error, ChatError) else self._explained(error, request)
        finally:
            pool.in_flight -= 1
        # Raised out here and without its context: the original holds the request, and that the
        # key, which some endpoints also echo in what they say.
        fault.__context__ = None
        raise fault

    def _made(
        self,
        text: str,
        reasoning: str,
        finish_reason: str,
        usage: Usage | None,
        logprobs: tuple[float, ...] | None,
        latency: float,
        model: str,
    ) -> ChatReply:
        """Return an answer, cut if it is beyond measure, without the key."""
        if max(len(text), len(reasoning)) > _LONGEST_ANSWER:
            text, reasoning = text[:_LONGEST_ANSWER], reasoning[:_LONGEST_ANSWER]
            finish_reason = TOO_LONG
        return ChatReply(
            self._faults.hidden(text),
            self._faults.hidden(reasoning),
            finish_reason,
            usage,
            logprobs,
            latency,
            model,
        )

    def _pool(self) -> _Pool:
        for pool in self._pools:
            if pool.in_flight < _CALLS_OF_A_POOL:
                return pool
        http_client = self._http_client()
        pool = _Pool(http_client, self._library_client(http_client))
        self._pools.append(pool)
        return pool

    def _http_client(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            timeout=self._timeout,
            verify=self._ssl,
            transport=self._transport,
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=True,
            headers={"Accept-Encoding": "identity"},  # so that a small reply is not a large one
            event_hooks={"response": [_read_no_more_than_needed]},
        )


def _is_too_long(error: BaseException | None) -> bool:
    """Whether an error is that of a reply without an end, or of a library that wraps it."""
    while error is not None and not isinstance(error, _ReplyTooLongError):
        error = error.__cause__ or error.__context__
    return error is not None


def key_of(variable: str, *, is_wanted: bool) -> str:
    """Return the key that an environment variable holds; empty where it may be and is.

    Raises
    ------
    InputError
        If it is not set, or holds what no key can be.
    """
    key = os.environ.get(variable, "").strip()
    if not key and is_wanted:
        raise InputError(f"environment variable {variable} is not set, want an API key")
    if not key.isascii() or not key.isprintable():
        raise InputError(f"environment variable {variable} has characters that no API key has")
    return key


def require_address(base_url: str, path: str, example: str) -> None:
    """Refuse a base URL that is none, or ends in the path that the library adds."""
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    shown = without_credentials(base_url)
    if good and parts.path.rstrip("/").endswith(path):
        raise InputError(f"base URL is {shown!r}, want it without {path}")
    if not good:
        raise InputError(f"base URL is {shown!r}, want one such as {example}")


async def _read_no_more_than_needed(response: httpx2.Response) -> None:
    """Cap what is read of a reply; what is encoded although nobody asked for it may unfold."""
    is_stream = "event-stream" in response.headers.get("content-type", "")
    longest = _LONGEST_STREAM if is_stream else _LONGEST_REPLY
    if "content-encoding" in response.headers:
        longest //= 16
    response.stream = _capped(response.stream, longest, fails=response.status_code < 400)


def _capped(stream: Any, longest: int, *, fails: bool) -> httpx2.AsyncByteStream:
    """Return a stream that ends, or fails, after so many bytes."""
    import httpx2

    class Capped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_bytes = 0
            async for chunk in stream:
                n_bytes += len(chunk)
                if n_bytes > longest:
                    if fails:
                        raise _ReplyTooLongError
                    return
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Capped()
