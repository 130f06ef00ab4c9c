"""The routes of the scorer."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse

from btdagg import __version__
from btdagg._core import InputError
from btdagg.extras import needs
from btdagg.serve import arrow, bodies, schema
from btdagg.serve.gate import Gate
from btdagg.serve.metrics import CONTENT_TYPE, Metrics
from btdagg.serve.models import ModelFile, ServedModel
from btdagg.serve.page import page
from btdagg.serve.settings import Settings

# Bytes of a body up to which handing it to another thread costs more than the work itself.
_SMALL = 1 << 14

# Characters of a message.
_LONGEST = 500

MODEL_HEADER = "x-btdagg-model"
_log = logging.getLogger("btdagg.serve")

Asked = Annotated[bool, Query(description="Whether the answer has probabilities of -1, 0, +1.")]
Decided = Annotated[bool, Query(description="Whether the answer has labels.")]


def create_app(settings: Settings, *, is_leaving: Callable[[], bool] = lambda: False) -> FastAPI:
    """Return the ASGI application that serves a model.

    Parameters
    ----------
    settings : Settings
        Model file and limits.
    is_leaving : callable
        Says whether the server is shutting down: then it is not ready, and answers close their
        connection.

    Raises
    ------
    InputError
        If the file holds no model.
    """
    # Loaded before the first request, which would else wait for them.
    with needs("serve", "serving"):
        import polars  # noqa: F401
        import pyarrow.ipc  # noqa: F401

    file, metrics = ModelFile(settings.model), Metrics()
    workers = anyio.CapacityLimiter(settings.n_workers)

    def reload() -> bool:
        try:
            changed = file.reload()
        except InputError as error:
            metrics.reloads.labels("failed").inc()
            _log.error("model %s stays in use: %s", file.current.digest, error)
            raise
        if changed:
            metrics.reloads.labels("changed").inc()
            _log.info("model %s is in use", file.current.digest)
        return changed

    async def watch() -> None:
        while True:
            await asyncio.sleep(settings.reload_every)
            if await anyio.to_thread.run_sync(file.is_stale):
                with suppress(InputError):  # it is in the log
                    await anyio.to_thread.run_sync(reload)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        def on_signal() -> None:
            with suppress(InputError):
                reload()

        hangup = getattr(signal, "SIGHUP", None)  # Windows has none
        if hangup is not None:
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not in this thread
                asyncio.get_running_loop().add_signal_handler(hangup, on_signal)
        watching = asyncio.create_task(watch())
        yield
        watching.cancel()
        _log.info(
            "accepted %d, answered %s", metrics.n_accepted, dict(sorted(metrics.answered.items()))
        )

    app = FastAPI(
        title="btdagg",
        version=__version__,
        description="Calibrated labels from the three-way votes of LLM judges.",
        docs_url=None,  # it loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirect goes to whatever Host the client sent
        lifespan=lifespan,
    )
    app.state.metrics, app.state.file = metrics, file
    app.add_middleware(Gate, settings=settings, metrics=metrics, is_leaving=is_leaving)

    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> JSONResponse:
        detail = str(error)
        if len(detail) > _LONGEST:  # it may quote what came
            detail = f"{detail[:_LONGEST]}..."
        return JSONResponse({"detail": detail}, 422)

    @app.exception_handler(RequestValidationError)
    async def bad_query(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        came = str(first["input"])[:60]
        return JSONResponse({"detail": f"{first['loc'][-1]} is {came!r}, want true or false"}, 422)

    async def answered(
        request: Request, *, votes_only: bool, labels: bool, probabilities: bool
    ) -> Response:
        body, came = await request.body(), request.headers.get("content-type", "")
        media = _wanted(request.headers.get("accept", ""), came)
        served = file.current
        work = partial(_work, body, came, media, served, votes_only, labels, probabilities)
        if len(body) <= _SMALL:
            out, n_items = work()
        else:
            out, n_items = await anyio.to_thread.run_sync(work, limiter=workers)
        metrics.items.inc(n_items)
        return Response(out, media_type=media, headers={MODEL_HEADER: served.digest})

    @app.post(
        "/v1/decide",
        openapi_extra=schema.operation(votes_only=False),
        response_class=Response,
    )
    async def decide(request: Request, probabilities: Asked = False) -> Response:
        """Decide the label of every item, given its counts or its votes.

        An Arrow stream has the columns `minus`, `tie`, `plus` or `item`, `vote`; the answer is of
        the same kind unless the Accept header names the other.
        """
        return await answered(request, votes_only=False, labels=True, probabilities=probabilities)

    @app.post("/v1/tally", openapi_extra=schema.operation(votes_only=True), response_class=Response)
    async def tally(
        request: Request, decide: Decided = True, probabilities: Asked = False
    ) -> Response:
        """Count the votes of every item, and decide it.

        A vote is -1, 0 or 1, or B, tie, A; null is a missing vote, which is counted as such and is
        no tie.
        """
        return await answered(request, votes_only=True, labels=decide, probabilities=probabilities)

    @app.post("/v1/reload")
    async def reload_model() -> dict[str, str | bool]:
        """Read the model file again; what cannot be read changes nothing and is an error."""
        changed = await anyio.to_thread.run_sync(reload)
        return {"model": file.current.digest, "changed": changed}

    @app.get("/v1/model")
    async def show_model() -> dict[str, Any]:
        """Show the model in use: its digest, its numbers and what it was fitted to."""
        served = file.current
        known = served.provenance_check.provenance
        return {
            "model": served.digest,
            **served.model.numbers,
            "provenance": None if known is None else known.as_dict(),
        }

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """Whether it takes requests: 503 once it is shutting down."""
        if is_leaving():
            return JSONResponse({"status": "leaving"}, 503)
        return JSONResponse({"status": "ready", "model": file.current.digest})

    @app.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Show counters and times, for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/docs", include_in_schema=False, response_class=HTMLResponse)
    async def docs() -> HTMLResponse:
        served = file.current
        known = served.provenance_check.provenance
        fitted = "" if known is None else f", fitted to {known}"
        return HTMLResponse(page(app.openapi(), f"Model {served.digest}{fitted}."))

    return app


def _work(
    body: bytes,
    came: str,
    media: str,
    served: ServedModel,
    votes_only: bool,
    labels: bool,
    probabilities: bool,
) -> tuple[bytes, int]:
    items = bodies.read_items(body, came, votes_only=votes_only)
    out = bodies.write_answer(items, served, media, labels=labels, probabilities=probabilities)
    return out, len(items.counts)


def _wanted(accept: str, came: str) -> str:
    """Return the kind of the answer: what Accept names, else what came."""
    for kind in (arrow.CONTENT_TYPE, bodies.JSON):
        if kind in accept.lower():
            return kind
    return arrow.CONTENT_TYPE if arrow.CONTENT_TYPE in came.lower() else bodies.JSON
