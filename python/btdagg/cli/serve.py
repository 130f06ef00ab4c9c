"""`btdagg serve`: serve a model over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from btdagg._util.files import load_any

TOKEN = "BTDAGG_SERVE_TOKEN"


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model from btdagg calibrate.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.")] = 8000,
) -> None:
    """Serve decisions over HTTP: POST /v1/decide with a JSON or Arrow body.

    The page /docs describes the API. If the environment variable BTDAGG_SERVE_TOKEN is set,
    requests must send it as bearer token. On SIGTERM the server finishes accepted requests and
    exits. Put a proxy in front to limit clients and to cut off slow senders.

    Example: btdagg serve model.json --port 8080
    """
    from btdagg import DavidsonModel, GradeModel
    from btdagg.serve import run

    loaded = load_any(model, DavidsonModel, GradeModel)
    run(loaded, host=host, port=port, token=os.environ.get(TOKEN))
