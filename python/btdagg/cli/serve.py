"""`btdagg serve`: a model behind HTTP."""

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
            help="What btdagg calibrate wrote; read again when it changes.",
            show_default=False,
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
    max_body: Annotated[int, typer.Option(help="Bytes of a body; more gets 413.")] = 16 << 20,
    rate: Annotated[
        float, typer.Option(help="Requests a second of one client; more get 429. 0: no limit.")
    ] = 0.0,
    burst: Annotated[int, typer.Option(help="Requests at once before --rate counts.")] = 100,
    timeout: Annotated[
        float, typer.Option(help="Seconds a client has to send a request or take an answer in.")
    ] = 30.0,
    reload_every: Annotated[
        float, typer.Option(help="Seconds between two looks at the model file.")
    ] = 1.0,
    workers: Annotated[
        int, typer.Option(help="Threads for large bodies.", show_default="one per core")
    ] = 0,
    max_connections: Annotated[
        int, typer.Option(help="Connections; beyond them requests get 503.")
    ] = 1000,
) -> None:
    """Serve decisions over HTTP: POST /v1/decide and /v1/tally with JSON or Arrow bodies.

    /docs describes it. A bearer token is asked for where the environment variable
    BTDAGG_SERVE_TOKEN holds one. SIGTERM finishes what was accepted; SIGHUP or POST /v1/reload
    reads the model again.

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
