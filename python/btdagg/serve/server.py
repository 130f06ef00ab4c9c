"""The scorer as a process that answers what it has accepted before it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import TYPE_CHECKING, TypeAlias

import uvicorn

from btdagg._util.files import load_any
from btdagg._util.listening import bound, place_of, serve
from btdagg._util.numbers import as_number
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.serve.app import MAX_BODY, Scorer, create_app

if TYPE_CHECKING:
    from pathlib import Path

_State: TypeAlias = "tuple[int, ...] | None"  # of a file
_LOOKS = 1.0  # seconds between two looks at a file
_log = logging.getLogger("btdagg.serve")


def run(
    model: DavidsonModel | GradeModel | Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    max_body: int = MAX_BODY,
    drain: float = 0.0,
) -> None:
    """Serve a model until SIGTERM or SIGINT, then finish what was accepted; see `create_app`.

    Parameters
    ----------
    model : DavidsonModel, GradeModel or path
        Of a path the model is loaded anew when the file changes, and at SIGHUP. A file that is none
        leaves the model as it is, and is logged.
    drain : float
        Seconds to go on after the signal while ``/readyz`` answers 503, so that a load balancer
        sends no more. A second signal ends at once.
    """
    drain = as_number(drain, "drain", least=0)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    path: Path | str | None = None
    seen: _State = None
    if isinstance(model, DavidsonModel | GradeModel):
        loaded = model
    else:
        path, seen = model, _state_of(model)  # before it is read, so that no change is missed
        loaded = _load(model)
    app = create_app(loaded, token=token, max_body=max_body)
    scorer: Scorer = app.state.scorer
    config = uvicorn.Config(
        app,
        ws="none",
        timeout_graceful_shutdown=35,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    listening = bound(host, port)
    tasks = []

    def started() -> None:
        if path is not None:
            tasks.append(asyncio.get_running_loop().create_task(_follow(path, scorer, seen)))
        _log.info("serving model %s", scorer.served.digest)
        print(f"listening on http://{place_of(listening)}", flush=True)

    def drains() -> None:
        scorer.is_draining = True

    serve(config, listening, started, drain, drains)


def _load(path: Path | str) -> DavidsonModel | GradeModel:
    model: DavidsonModel | GradeModel = load_any(path, DavidsonModel, GradeModel)
    return model


async def _follow(path: Path | str, scorer: Scorer, seen: _State) -> None:
    """Load a model anew whenever its file changes, or at a signal."""
    asked = asyncio.Event()
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), _LOOKS)
        state = _state_of(path)
        if not asked.is_set() and state == seen:
            continue
        asked.clear()
        seen = state
        try:
            scorer.use(_load(path))
        except Exception as error:  # whatever is wrong with a file, the next may be right
            _log.error("the model stays as it is: %s", error)
        else:
            _log.info("serving %s, model %s", path, scorer.served.digest)


def _state_of(path: Path | str) -> _State:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
