"""The scorer as processes that answer what they have accepted before they end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import uvicorn

from btdagg._util.files import digest_of, load_any
from btdagg._util.listening import DrainingServer, bound, place_of
from btdagg._util.numbers import as_integer, as_number
from btdagg._util.workers import Workers, ignore_signals, obey
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.serve.app import MAX_BODY, METRICS_FOLDER, create_app

if TYPE_CHECKING:
    import socket
    from multiprocessing.connection import Connection
    from pathlib import Path

    from fastapi import FastAPI

_Model: TypeAlias = DavidsonModel | GradeModel
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
    workers: int = 1,
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
    workers : int
        Number of processes that answer. Several are started by `multiprocessing`, so a script calls
        `run` below ``if __name__ == "__main__"``. One that dies is replaced.

    Raises
    ------
    InputError
        If an argument is bad, the file holds no model, or the address is taken.
    ChildProcessError
        If workers cannot start.
    """
    drain, workers = as_number(drain, "drain", least=0), as_integer(workers, "workers", 1)
    _log_all()
    path: Path | str | None = None
    seen = None
    if isinstance(model, DavidsonModel | GradeModel):
        loaded = model
    else:
        path, seen = model, _state_of(model)  # before it is read, so that no change is missed
        loaded = _load(model)
    app = create_app(loaded, token=token, max_body=max_body)
    tasks = []  # of which the loop has only weak references

    def started(use: Callable[[_Model], object]) -> None:
        if path is not None:
            tasks.append(asyncio.get_running_loop().create_task(_follow(path, use, seen)))
        _log.info("serving model %s", app.state.scorer.served.digest)
        print(f"listening on http://{place_of(listening)}", flush=True)

    with bound(host, port) as listening:
        if workers == 1:
            _answer(app, listening, drain, lambda _: started(app.state.scorer.use))
            return
        processes = Workers(workers, _work, loaded, listening, drain, token, max_body)
        with tempfile.TemporaryDirectory(prefix="btdagg-metrics-") as folder:
            os.environ[METRICS_FOLDER] = folder
            try:
                asyncio.run(processes.run(lambda: started(processes.use)))
            finally:
                del os.environ[METRICS_FOLDER]


def _log_all() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def _answer(
    app: FastAPI,
    listening: socket.socket,
    drain: float,
    started: Callable[[DrainingServer], object],
) -> None:
    config = uvicorn.Config(
        app,
        ws="none",
        timeout_graceful_shutdown=35,
        access_log=False,
        log_config=None,
        server_header=False,
    )
    drains = partial(setattr, app.state.scorer, "is_draining", True)
    DrainingServer(config, started, drain, drains).run([listening])


def _work(
    pipe: Connection,
    model: _Model,
    listening: socket.socket,
    drain: float,
    token: str | None,
    max_body: int,
) -> None:
    ignore_signals()
    _log_all()
    app = create_app(model, token=token, max_body=max_body)
    _answer(app, listening, drain, lambda server: obey(pipe, server, app.state.scorer.use))
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # which would have removed it
        shutil.rmtree(os.environ[METRICS_FOLDER], ignore_errors=True)


def _load(path: Path | str) -> _Model:
    model: _Model = load_any(path, DavidsonModel, GradeModel)
    return model


async def _follow(path: Path | str, use: Callable[[_Model], object], seen: Any) -> None:
    """Load a model anew whenever its file changes, or at a signal."""
    asked = asyncio.Event()
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
            model = _load(path)
            use(model)
        except Exception as error:  # whatever is wrong with a file, the next may be right
            _log.error("the model stays as it is: %s", error)
        else:
            _log.info("serving %s, model %s", path, digest_of(model))


def _state_of(path: Path | str) -> tuple[int, ...] | None:
    try:
        file = os.stat(path)
    except OSError:
        return None
    return file.st_ino, file.st_size, file.st_mtime_ns
