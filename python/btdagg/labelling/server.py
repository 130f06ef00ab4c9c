"""The page as a server: where it listens, who is let in, and a file that follows the labels."""

from __future__ import annotations

import ipaddress
import re
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvicorn

from btdagg._core import InputError
from btdagg._util.listening import Server, bound, place_of
from btdagg.labelling.app import Access, label_app

if TYPE_CHECKING:
    from btdagg.labelling.session import Session

_REFRESH = 1.0  # seconds between two writes of the file
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class LabelServer:
    """Where the page is served.

    Attributes
    ----------
    host : str
        Address to listen on. One beyond this machine needs a proxy that ends TLS.
    port : int
        0 for any that is free.
    behind_proxy : str, optional
        Name under which a proxy serves the page by HTTPS, with its port unless that is 443.
    token : str, optional
        Of the address: 16 or more ASCII letters, digits, hyphens and underscores; random unless
        given.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    behind_proxy: str | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,}", self.token):
            raise InputError("token: expected 16 or more ASCII letters, digits, - and _")


def serve_labels(
    session: Session, server: LabelServer, write: Callable[[], object], say: Callable[[str], object]
) -> None:
    """Serve a session until SIGINT or SIGTERM; then finish what was accepted.

    While labels come, `write` is called from a thread, at most once a second, to write the file of
    labels; `say` is called with the address to open.

    Raises
    ------
    InputError
        If the address cannot be listened on, or others reach it without encryption.
    """
    sockets = bound(server.host, server.port)
    port = sockets[0].getsockname()[1]
    places = [place_of(listening) for listening in sockets]
    if server.behind_proxy is not None:
        hosts = {server.behind_proxy.lower()}
    else:
        if not all(_is_loopback(listening.getsockname()[0]) for listening in sockets):
            for listening in sockets:
                listening.close()
            raise InputError(
                f"host is {server.host}, which others reach, expected behind_proxy as well: the "
                "name under which a proxy serves the page by HTTPS"
            )
        names = {"127.0.0.1", "localhost", "[::1]", server.host.lower()}
        hosts = {*places, *(f"{name}:{port}" for name in names)}
    access = Access(
        token=server.token or secrets.token_urlsafe(24),
        cookie=f"btdagg_label_{port}",
        is_secure=server.behind_proxy is not None,
        hosts=frozenset(hosts),
    )
    follower = _Follower(write)
    config = uvicorn.Config(
        label_app(session, access, follower.news.set),
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=10,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
    )

    def tell() -> None:
        for place in places:
            shown = f"https://{server.behind_proxy}" if server.behind_proxy else f"http://{place}"
            say(f"{shown}/?token={access.token}")

    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    try:
        with follower:
            Server(config, tell).run(sockets)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Follower:
    """Writes the file soon after `news` was set, in a thread."""

    def __init__(self, write: Callable[[], object]) -> None:
        self.news = threading.Event()
        self._write, self._end = write, threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._end.wait(_REFRESH):  # the last write is the caller's
            if not self.news.is_set():
                continue
            self.news.clear()
            try:
                self._write()
            except (InputError, OSError) as error:
                # The labels are in the store; the file is tried again.
                print(f"btdagg: not written for now: {error}", file=sys.stderr, flush=True)


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
