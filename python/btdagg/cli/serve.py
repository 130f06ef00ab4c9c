"""`btdagg serve`: serve a model over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

TOKEN = "BTDAGG_SERVE_TOKEN"


def serve(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate; it is read again when it changes.",
            show_default=False,
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    max_body: Annotated[
        int, typer.Option(help="Largest body in bytes; a larger one gets 413.")
    ] = 16 << 20,
    rate: Annotated[
        float, typer.Option(help="Requests per second from one client; more get 429. 0: no limit.")
    ] = 0.0,
    burst: Annotated[
        int, typer.Option(help="Requests that one client may send at once before --rate applies.")
    ] = 100,
    timeout: Annotated[
        float,
        typer.Option(help="Seconds that a client has to send a request, or to read an answer."),
    ] = 30.0,
    reload_every: Annotated[
        float, typer.Option(help="Seconds between checks of the model file.")
    ] = 1.0,
    workers: Annotated[
        int, typer.Option(help="Threads for large bodies.", show_default="one per core")
    ] = 0,
    max_connections: Annotated[
        int, typer.Option(help="Most connections at a time; further requests get 503.")
    ] = 1000,
) -> None:
    """Serve decisions over HTTP: POST /v1/decide and /v1/tally with JSON or Arrow bodies.

    The page /docs describes the API. If the environment variable BTDAGG_SERVE_TOKEN is set,
    requests need it as bearer token. SIGTERM finishes accepted requests and exits; SIGHUP or POST
    /v1/reload reads the model again.

    Example: btdagg serve model.json --port 8080
    """
    from btdagg.serve import Settings, run

    settings = Settings(
        model=model,
        max_body=max_body,
        rate=rate,
        burst=burst,
        token=os.environ.get(TOKEN),
        timeout=timeout,
        reload_every=reload_every,
        n_workers=workers or os.cpu_count() or 1,
        max_connections=max_connections,
    )
    run(settings, host=host, port=port)
