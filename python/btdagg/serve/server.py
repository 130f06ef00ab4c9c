"""The scorer as a process, with a shutdown that loses nothing it has accepted."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

import uvicorn

from btdagg._util.listening import Server, bound
from btdagg.serve.app import MAX_BODY, create_app

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.model.davidson import DavidsonModel


def run(
    models: Mapping[str, DavidsonModel],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    max_body: int = MAX_BODY,
) -> None:
    """Serve models until SIGTERM or SIGINT, then finish what was accepted; see `create_app`.

    Raises
    ------
    InputError
        If an argument is bad, or the address cannot be listened on.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    app = create_app(models, token=token, max_body=max_body)
    config = uvicorn.Config(
        app,
        ws="none",
        timeout_graceful_shutdown=35,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    sockets = bound(host, port)
    server = Server(config)
    config.app = _closing_at_shutdown(app, server)
    # uvicorn raises the signal again once it is done; a shutdown that was asked for is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    server.run(sockets)


def _closing_at_shutdown(app: ASGIApp, server: uvicorn.Server) -> ASGIApp:
    """Tell clients not to send another request; of uvicorn's protocols only one does so itself."""

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and server.should_exit:
                message["headers"] = [*message.get("headers", []), (b"connection", b"close")]
            await send(message)

        await app(scope, receive, send_closing)

    return closing
