"""The page as a server: where it listens, who is let in, and a file that follows the labels."""

from __future__ import annotations

import ipaddress
import re
import secrets
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from btdagg._core import InputError
from btdagg._util.listening import Server, bound, place_of
from btdagg.labelling.app import Access, label_app

if TYPE_CHECKING:
    from btdagg.labelling.session import Session

_REFRESH = 1.0  # seconds between two writes of the file
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_labels(
    session: Session,
    write: Callable[[], object],
    say: Callable[[str], object],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    behind_proxy: str | None = None,
    token: str | None = None,
) -> None:
    """Serve a session until SIGINT or SIGTERM; then finish what was accepted.

    Parameters
    ----------
    session : Session
    write : callable
        Writes the file of labels: from a thread, at most once a second while labels come.
    say : callable
        Takes the address to open.
    host : str
        Address to listen on. One beyond this machine needs a proxy that ends TLS.
    port : int
        0 for any that is free.
    behind_proxy : str, optional
        Name under which a proxy serves the page by HTTPS, with its port unless that is 443.
    token : str, optional
        Of the address: 16 or more ASCII letters, digits, hyphens and underscores; random unless
        given.

    Raises
    ------
    InputError
        If the address cannot be listened on, or others reach it without encryption.
    """
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,}", token):
        raise InputError("token: expected 16 or more ASCII letters, digits, - and _")
    sockets = bound(host, port)
    port = sockets[0].getsockname()[1]
    places = [place_of(listening) for listening in sockets]
    if behind_proxy is not None:
        hosts = {behind_proxy.lower()}
    else:
        if not all(_is_loopback(listening.getsockname()[0]) for listening in sockets):
            for listening in sockets:
                listening.close()
            raise InputError(
                f"host is {host}, which others reach, expected behind_proxy as well: the "
                "name under which a proxy serves the page by HTTPS"
            )
        names = {"127.0.0.1", "localhost", "[::1]", host.lower()}
        hosts = {*places, *(f"{name}:{port}" for name in names)}
    access = Access(
        token=token or secrets.token_urlsafe(24),
        cookie=f"btdagg_label_{port}",
        is_secure=behind_proxy is not None,
        hosts=frozenset(hosts),
    )
    news, end = threading.Event(), threading.Event()
    config = uvicorn.Config(
        label_app(session, access, news.set),
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
            shown = f"https://{behind_proxy}" if behind_proxy else f"http://{place}"
            say(f"{shown}/?token={access.token}")

    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    follower = threading.Thread(target=_follow, args=(write, news, end), daemon=True)
    follower.start()
    try:
        Server(config, tell).run(sockets)
    finally:
        end.set()
        follower.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(write: Callable[[], object], news: threading.Event, end: threading.Event) -> None:
    """Write the file soon after `news` was set; the last write is the caller's."""
    while not end.wait(_REFRESH):
        if not news.is_set():
            continue
        news.clear()
        try:
            write()
        except (InputError, OSError) as error:
            # The labels are in the store; the file is tried again.
            print(f"btdagg: not written for now: {error}", file=sys.stderr, flush=True)


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
