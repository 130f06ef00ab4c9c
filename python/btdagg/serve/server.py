"""The scorer as a process that answers what it has accepted before it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import uvicorn

from btdagg._util.listening import bound, place_of, serve
from btdagg.serve.app import MAX_BODY, create_app

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel


def run(
    model: DavidsonModel | GradeModel,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    max_body: int = MAX_BODY,
) -> None:
    """Serve a model until SIGTERM or SIGINT, then finish what was accepted; see `create_app`."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    config = uvicorn.Config(
        create_app(model, token=token, max_body=max_body),
        ws="none",
        timeout_graceful_shutdown=35,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    listening = bound(host, port)
    place = f"listening on http://{place_of(listening)}"
    serve(config, listening, lambda: print(place, flush=True))
