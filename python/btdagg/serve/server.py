"""The scorer as a process that answers what it has accepted before it ends."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

import uvicorn

from btdagg._util.listening import Server, bound, place_of
from btdagg.serve.app import MAX_BODY, create_app

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel


def run(
    models: Mapping[str, DavidsonModel],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    max_body: int = MAX_BODY,
) -> None:
    """Serve models until SIGTERM or SIGINT, then finish what was accepted; see `create_app`."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        create_app(models, token=token, max_body=max_body),
        ws="none",
        timeout_graceful_shutdown=35,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    sockets = bound(host, port)
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    places = "".join(f"listening on http://{place_of(socket)}\n" for socket in sockets)
    Server(config, lambda: print(places, end="", flush=True)).run(sockets)
