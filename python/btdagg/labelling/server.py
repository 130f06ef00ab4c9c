"""The page as a server: where it listens, who is let in, and a file that follows the labels."""

from __future__ import annotations

import ipaddress
import secrets
import signal
import ssl
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from btdagg._core import InputError
from btdagg._util.listening import PatientProtocol, Server, bound
from btdagg.labelling.app import label_app
from btdagg.labelling.entrance import Access

if TYPE_CHECKING:
    from btdagg.labelling.session import Session

_REFRESH = 1.0  # seconds at least between two writes of the file
_SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class LabelServer:
    """Where the page is served.

    Attributes
    ----------
    host : str
        Address to listen on. One beyond this machine wants a certificate, or a proxy that has one.
    port : int
        0 for any that is free.
    certificate, key : Path, optional
        Files in PEM.
    behind_proxy : str, optional
        Name under which a proxy serves the page by HTTPS, with its port unless that is 443.
    token : str, optional
        Of the address; a new one unless given.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: str | None = None
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InputError("--certificate and --key want each other")
        if self.certificate is not None and self.behind_proxy is not None:
            raise InputError("--behind-proxy is given with --certificate; want one of the two")
        if self.token is not None and not (
            len(self.token) >= _SHORTEST_TOKEN
            and self.token.isascii()
            and all(letter.isalnum() or letter in "-_" for letter in self.token)
        ):
            raise InputError(
                f"BTDAGG_LABEL_TOKEN is no token, expected {_SHORTEST_TOKEN} or more ASCII "
                "letters, "
                "digits, - and _"
            )


def serve_labels(
    session: Session, server: LabelServer, write: Callable[[], object], say: Callable[[str], object]
) -> None:
    """Serve a session until SIGINT or SIGTERM; then finish what was accepted.

    Parameters
    ----------
    session : Session
    server : LabelServer
    write : callable
        Writes the file of labels; called at most once a second while labels come, from a thread.
    say : callable
        Called with the address to open.

    Raises
    ------
    InputError
        If the address cannot be listened on, or is to be reached without encryption.
    """
    sockets = bound(server.host, server.port)
    try:
        port = sockets[0].getsockname()[1]
        is_local = all(_is_loopback(each.getsockname()[0]) for each in sockets)
        if not is_local and server.certificate is None and server.behind_proxy is None:
            raise InputError(
                f"--host is {server.host}, which others reach: want --certificate and --key, or "
                "--behind-proxy NAME if a proxy there has a certificate"
            )
        access = _access(server, port, [each.getsockname()[0] for each in sockets])
        follower = _Follower(write)
        config = uvicorn.Config(
            label_app(session, access, follower.nudge),
            http=PatientProtocol,
            ws="none",
            lifespan="off",
            limit_concurrency=200,
            timeout_graceful_shutdown=10,
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            ssl_certfile=server.certificate,
            ssl_keyfile=server.key,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            wrong = f"--certificate is {server.certificate}"
            if server.key is not None:
                wrong += f" and --key is {server.key}"
            raise InputError(f"{wrong}: {error.strerror or error}") from None
    except BaseException:
        for each in sockets:
            each.close()
        raise
    page = _LabelPage(config, lambda place: say(_address(server, access, place)))
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    before = {number: signal.signal(number, lambda *_: None) for number in _ENDINGS}
    try:
        with follower:
            page.run(sockets)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDINGS = (signal.SIGINT, signal.SIGTERM)


class _LabelPage(Server):
    def __init__(self, config: uvicorn.Config, told: Callable[[str], object]) -> None:
        super().__init__(config)
        self._told = told

    def tell(self, place: str) -> None:
        self._told(place)


class _Follower:
    """Writes the file soon after labels have come, in a thread."""

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self._news, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def nudge(self) -> None:
        self._news.set()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._news.set()
        self._thread.join()

    def _follow(self) -> None:
        while True:
            self._news.wait()
            if self._end.is_set():  # the last write is the caller's
                return
            self._news.clear()
            start = time.monotonic()
            try:
                self._write()
            except (InputError, OSError) as error:
                # The labels are in the store; the file is tried again.
                print(f"btdagg: not written for now: {error}", file=sys.stderr, flush=True)
            # Most of the time is for raters.
            self._end.wait(max(_REFRESH, 20 * (time.monotonic() - start)))


def _access(server: LabelServer, port: int, addresses: Sequence[str]) -> Access:
    hosts: frozenset[str] | None
    if server.behind_proxy is not None:
        hosts = frozenset({server.behind_proxy.lower()})
    elif server.certificate is not None:
        hosts = None
    else:
        listened = (f"[{each}]" if ":" in each else each for each in (server.host, *addresses))
        names = {"127.0.0.1", "localhost", "[::1]", *map(str.lower, listened)}
        hosts = frozenset(f"{name}:{port}" for name in names)
        if port == 80:
            hosts |= names
    return Access(
        token=server.token or secrets.token_urlsafe(24),
        cookie=f"btdagg_label_{port}",
        is_secure=server.behind_proxy is not None or server.certificate is not None,
        hosts=hosts,
    )


def _address(server: LabelServer, access: Access, place: str) -> str:
    scheme = "https" if access.is_secure else "http"
    return f"{scheme}://{server.behind_proxy or place}/?token={access.token}"


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
