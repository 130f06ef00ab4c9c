"""The routes of the scorer."""

from __future__ import annotations

import hmac
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect

from btdagg import __version__
from btdagg._util.errors import InputError, forbid
from btdagg.serve.bodies import ARROW, JSON, DecidedItems, ServedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel

MAX_BODY = 16 << 20
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client, before it is imported

_SMALL = 1 << 14  # bytes of a body up to which another thread costs more than the work itself
_LONGEST = 500  # characters of a message, which may quote what came
_NO_NAMES = ("query", "str", "constrained-int", "list[str]", "list[constrained-int]")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(HTTPBearer(auto_error=False))]


class DecideQuery(BaseModel):
    """The query of a request."""

    model_config = ConfigDict(extra="forbid")

    probabilities: bool = Field(
        False, description="Whether the answer has probabilities of -1, 0, 1, or of grades."
    )


class Error(BaseModel):
    """Why a request was refused."""

    detail: str


_REFUSALS = {
    401: "The bearer token is missing or wrong.",
    413: "The body is too large.",
    415: "The body is neither JSON nor an Arrow stream.",
    422: "Bad input; the message names the field and the row.",
    503: "It will end soon.",
}
_BINARY = {ARROW: {"schema": {"type": "string", "format": "binary"}}}
_BODY = {JSON: {"schema": {"$ref": "#/components/schemas/Body"}}, **_BINARY}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Error, "description": _REFUSALS[status]} for status in statuses}


class Scorer:
    """What an application serves; it is in `app.state.scorer`."""

    served: ServedModel
    is_draining = False

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def use(self, model: DavidsonModel | GradeModel) -> None:
        """Serve a model from the next request on."""
        self.served = ServedModel(model)
        # The description is kept by the application.
        schemas = self._app.openapi()["components"]["schemas"]
        schemas["Body"] = self.served.body.model_json_schema()


def create_app(
    model: DavidsonModel | GradeModel, *, token: str | None = None, max_body: int = MAX_BODY
) -> FastAPI:
    """Return the ASGI application that serves a model.

    Parameters
    ----------
    model : DavidsonModel or GradeModel
    token : str, optional
        Bearer token of requests, except for ``/healthz``, ``/readyz`` and the documentation.
    max_body : int
        Largest body in bytes.

    Notes
    -----
    ``app.state.scorer.use(model)`` serves another model from the next request on.
    """
    is_empty = token is not None and not token.strip()
    forbid(is_empty, "token is empty, expected a text", "token")
    threads = anyio.CapacityLimiter(os.cpu_count() or 1)
    registry = collected = CollectorRegistry()
    if METRICS_FOLDER in os.environ:
        collected = CollectorRegistry()
        MultiProcessCollector(collected)  # type: ignore[no-untyped-call]
    decided = Counter("btdagg_items", "Items decided.", registry=registry)
    app = FastAPI(
        title="btdagg",
        version=__version__,
        description="Calibrated labels from the votes of LLM judges.",
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    scorer = app.state.scorer = Scorer(app)
    app.add_middleware(_Measured, scorer=scorer, registry=registry)

    def authorize(credentials: Credentials) -> None:
        shown = "" if credentials is None else credentials.credentials
        if not hmac.compare_digest(shown.encode(), (token or "").encode()):
            raise HTTPException(401, "no valid bearer token", {"www-authenticate": "Bearer"})

    secured = APIRouter()
    if token is not None:
        secured = APIRouter(dependencies=[Security(authorize)], responses=_refusals(401))

    @secured.post(
        "/v1/decide",
        response_class=Response,
        responses={
            200: {"model": DecidedItems, "content": _BINARY, "description": "Decisions."},
            **_refusals(413, 415, 422),
        },
        openapi_extra={"requestBody": {"required": True, "content": _BODY}},
    )
    async def decide(request: Request, query: Annotated[DecideQuery, Query()]) -> Response:
        """Decide the label of every item, given its counts or its votes.

        An Arrow stream has the columns `minus`, `tie`, `plus` or `item`, `vote`; of grades a column
        of counts for each vote, or `item`, `score`. The answer is of the same kind unless the
        Accept header names the other.
        """
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > max_body:
                raise HTTPException(413, f"body is larger than {max_body} bytes")
        sent = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if sent not in (JSON, ARROW):
            raise HTTPException(415, f"content type {sent!r}, expected {JSON} or {ARROW}")
        accepted = request.headers.get("accept", "").lower()
        media = next((kind for kind in (sent, JSON, ARROW) if kind in accepted), sent)
        served = scorer.served

        def work() -> tuple[bytes, int]:
            items = served.read(bytes(body), sent)
            answer = served.answer(items, media, probabilities=query.probabilities)
            return answer, len(items.counts)

        if len(body) <= _SMALL:
            content, n_items = work()
        else:
            content, n_items = await anyio.to_thread.run_sync(work, limiter=threads)
        decided.inc(n_items)
        return Response(content, media_type=media, headers={"x-btdagg-model": served.digest})

    @secured.get("/v1/model")
    async def show_model() -> dict[str, Any]:
        """Show the model: its digest, its numbers and what it was fitted to."""
        model, digest = scorer.served.model, scorer.served.digest
        return {"model": digest, "provenance": None, **model.as_dict()}

    @secured.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Show counters and times, for Prometheus: of all workers together."""
        media = "text/plain; version=0.0.4; charset=utf-8"
        return Response(generate_latest(collected), media_type=media)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @app.get("/readyz", responses=_refusals(503))
    async def readyz() -> dict[str, str]:
        """Whether to send it requests: not once it was told to end."""
        if scorer.is_draining:
            raise HTTPException(503, "draining")
        return {"status": "ready", "model": scorer.served.digest}

    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> JSONResponse:
        return _refused(str(error))

    @app.exception_handler(ValidationError)
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: ValidationError | RequestValidationError) -> JSONResponse:
        errors = [(_place(fault["loc"]), fault["msg"]) for fault in error.errors()]
        place = errors[0][0]  # one message for each type that it may have
        return _refused(f"{place}: {'; '.join(text for where, text in errors if where == place)}")

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)  # which nobody reads

    app.include_router(secured)
    scorer.use(model)
    return app


def _place(loc: Sequence[str | int]) -> str:
    first, *more = [part for part in loc if part not in _NO_NAMES] or ["body"]
    return f"{first}{''.join(f'[{part}]' for part in more)}"


def _refused(detail: str) -> JSONResponse:
    cut = detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}..."
    return JSONResponse({"detail": cut}, 422)


class _Measured:
    def __init__(self, app: ASGIApp, scorer: Scorer, registry: CollectorRegistry) -> None:
        self._app, self._scorer = app, scorer
        labels = ["path", "status"]
        self._requests = Counter("btdagg_requests", "Requests.", labels, registry=registry)
        self._seconds = Histogram(
            "btdagg_request_seconds", "Latency of answers.", ["path"], registry=registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status = time.perf_counter(), 500

        async def with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._scorer.is_draining:  # so that no connection is closed amid a request
                    MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        try:
            await self._app(scope, receive, with_status)
        finally:
            # Paths that clients invent would make any number of series.
            path = scope["path"] if "route" in scope else "other"
            self._requests.labels(path, str(status)).inc()
            self._seconds.labels(path).observe(time.perf_counter() - start)
