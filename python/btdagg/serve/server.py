"""The scorer as a server, with a shutdown that loses nothing it has accepted."""

from __future__ import annotations

import logging
import signal

import uvicorn

from btdagg.listening import PatientProtocol, Server, bound
from btdagg.serve.app import create_app
from btdagg.serve.settings import Settings


def run(settings: Settings, *, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serve a model until SIGTERM or SIGINT, then finish what was accepted.

    Raises
    ------
    InputError
        If the file holds no model, or the address cannot be listened on.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    protocol = type("Protocol", (PatientProtocol,), {"patience": settings.timeout})
    servers: list[Server] = []

    def is_leaving() -> bool:
        return bool(servers) and servers[0].should_exit

    config = uvicorn.Config(
        create_app(settings, is_leaving=is_leaving),
        http=protocol,
        ws="none",
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=int(settings.timeout) + 5,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    sockets = bound(host, port)
    servers.append(Server(config))
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    servers[0].run(sockets)
