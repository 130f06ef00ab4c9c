"""`btdagg serve`: serve a model over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

TOKEN = "BTDAGG_SERVE_TOKEN"


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model from btdagg calibrate.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    drain: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Go on so long after SIGTERM, while /readyz answers 503."
        ),
    ] = 0.0,
    workers: Annotated[int, typer.Option(help="Number of processes that answer.")] = 1,
) -> None:
    """Serve decisions over HTTP: POST /v1/decide with a JSON or Arrow body.

    The page /docs describes the API. If the environment variable BTDAGG_SERVE_TOKEN is set,
    requests must send it as bearer token. A model file that changes is loaded anew, as it is on
    SIGHUP. On SIGTERM the server finishes accepted requests and exits. Workers share the port, the
    model and /metrics, and are replaced if they die. Put a proxy in front to limit clients and to
    cut off slow senders.

    Example: btdagg serve model.json --port 8080
    """
    from btdagg.serve import run

    run(model, host=host, port=port, token=os.environ.get(TOKEN), drain=drain, workers=workers)
