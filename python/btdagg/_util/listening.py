"""A socket to listen on, and a server that says where it does."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from btdagg._util.errors import reworded
from btdagg._util.numbers import as_integer

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_GRACE = 0.1  # seconds for the requests of those who have connected last
_PAUSE = 1.0  # seconds until another attempt to accept


class DrainingServer(uvicorn.Server):
    """A uvicorn server that calls `tell` when it has started, and drains before a signal ends it.

    Draining calls `drains` and goes on for `drain` seconds, which a second signal cuts short.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        tell: Callable[[DrainingServer], object],
        drain: float = 0.0,
        drains: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._tell, self._drain, self._drains = tell, drain, drains
        self._end: asyncio.TimerHandle | None = None
        self._accepting: set[asyncio.Task[object]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the loop; uvicorn would raise them again once it is done."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.handle_exit, number, None)
        await super().startup([])
        for listening in sockets or ():
            listening.setblocking(False)
            self._listen(listening)
        self._tell(self)

    def _listen(self, listening: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> bool:
        """Accept one client; the loop's own server would leave none to the other workers."""
        loop = asyncio.get_running_loop()
        try:
            client, _ = listening.accept()
        except (BlockingIOError, ConnectionError):  # another worker was faster, or the client left
            return False
        except OSError:  # too many open files, say
            loop.remove_reader(listening)
            loop.call_later(_PAUSE, self._listen, listening)
            return False
        client.setblocking(False)
        task = loop.create_task(loop.connect_accepted_socket(self._protocol, client))
        self._accepting.add(task)  # the loop has only a weak reference
        task.add_done_callback(self._accepting.discard)
        return True

    def _protocol(self) -> asyncio.Protocol:
        protocol: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        state = self.lifespan.state
        return protocol(config=self.config, server_state=self.server_state, app_state=state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        drain, self._drain = self._drain, 0.0
        self._drains()
        if drain:
            loop = asyncio.get_running_loop()
            self._end = loop.call_later(drain, super().handle_exit, sig, frame)
            return
        if self._end is not None:
            self._end.cancel()  # or it would be a second signal, which ends at once
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, answer who has connected before, and close the rest."""
        for listening in sockets or ():
            asyncio.get_running_loop().remove_reader(listening)
            while self._accept(listening):
                pass
            listening.close()
        await asyncio.sleep(_GRACE)
        await super().shutdown(sockets)


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
