"""The routes of the scorer."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
import pyarrow as pa
from fastapi import FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from btdagg import __version__
from btdagg._util.errors import InputError, forbid
from btdagg._util.files import digest_of
from btdagg.questions.decisions import decided_columns, unknown_in
from btdagg.serve.bodies import ARROW, DecidedItems, RequestItems, Requests, write_stream

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel

MAX_BODY = 16 << 20
JSON = "application/json"
MODEL_HEADER = "x-btdagg-model"

_SMALL = 1 << 14  # bytes of a body up to which another thread costs more than the work itself
_LONGEST = 500  # characters of a message, which may quote what came
_NO_NAMES = ("query", "str", "constrained-int")

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


class ServedModel(BaseModel):
    """The model by its digest: of pairs, or of grades, which has cuts and a scale."""

    model: str
    beta: float
    eta0: float | None = None
    gamma: float | None = None
    alpha: float | None = None
    kappa: float | None = None
    usual_votes: float | None = None
    cuts: list[float] | None = None
    scale: dict[str, Any] | None = None
    label_scale: dict[str, Any] | None = None
    covariates: list[dict[str, Any]] | None = None
    provenance: dict[str, Any] | None


_BINARY = {ARROW: {"schema": {"type": "string", "format": "binary"}}}
_UNAUTHORIZED: dict[int | str, Any] = {
    401: {"model": Error, "description": "The bearer token is missing or wrong."}
}
_DECIDE: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"model": DecidedItems, "content": _BINARY, "description": "Decisions."},
        413: {"model": Error, "description": "The body is too large."},
        415: {"model": Error, "description": "The body is neither JSON nor an Arrow stream."},
        422: {"model": Error, "description": "Bad input; the message names the field and the row."},
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Body"}}, **_BINARY},
        }
    },
}


class Served(NamedTuple):
    """A model, as requests see it from their beginning to their end."""

    model: DavidsonModel | GradeModel
    decider: DavidsonModel | GradeModel  # without its origin, of which it would warn
    requests: Requests
    digest: str


class Scorer:
    """What an application serves; it is in `app.state.scorer`."""

    served: Served
    is_draining = False

    def __init__(self, app: FastAPI, model: DavidsonModel | GradeModel) -> None:
        self._app = app
        self.use(model)

    def use(self, model: DavidsonModel | GradeModel) -> None:
        """Serve a model from the next request on."""
        self.served = Served(
            model, replace(model, provenance=None), Requests(model), digest_of(model)
        )
        # The description is kept by the application.
        schemas = self._app.openapi()["components"]["schemas"]
        schemas["Body"] = self.served.requests.body.model_json_schema()


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
    workers = anyio.CapacityLimiter(os.cpu_count() or 1)
    registry = CollectorRegistry()
    decided = Counter("btdagg_items", "Items decided.", registry=registry)

    def authorized(credentials: Credentials) -> None:
        shown = "" if credentials is None else credentials.credentials
        if not hmac.compare_digest(shown.encode(), (token or "").encode()):
            raise HTTPException(401, "no valid bearer token", {"www-authenticate": "Bearer"})

    app = FastAPI(
        title="btdagg",
        version=__version__,
        description="Calibrated labels from the votes of LLM judges.",
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.add_middleware(_Measured, registry=registry)
    secured: dict[str, Any] = {} if token is None else {"dependencies": [Security(authorized)]}
    refusals: dict[int | str, Any] = {} if token is None else _UNAUTHORIZED

    def answer(served: Served, items: RequestItems, media: str, probabilities: bool) -> bytes:
        model, decider, _, digest = served
        counts, votes, covariates = items.counts, items.votes, items.covariates
        warnings = unknown_in(covariates)
        if model.provenance is not None and len(counts):
            how: Any = {"fewer": False, "scale": model.scale}
            warnings += model.provenance.differences(counts, votes, **how)
        if media == ARROW:
            columns: dict[str, Any] = {} if items.ids is None else {"item": items.ids}
            if votes is not None:
                columns |= dict(zip(model.scale.columns, counts.T, strict=True))
            columns |= decided_columns(
                decider, counts, probabilities=probabilities, covariates=covariates
            )
            return write_stream(columns, digest, warnings)
        chances = decider.predict_proba(counts, covariates=covariates) if probabilities else None
        values = {
            "model": digest,
            "items": items.ids if items.ids is None else pa.array(items.ids).to_pylist(),
            "counts": None if votes is None else counts.tolist(),
            "n_missing": None if votes is None else votes.n_missing,
            "labels": decider.decide(counts, covariates=covariates).tolist(),
            "probabilities": None if chances is None else chances.tolist(),
            "warnings": warnings or None,
        }
        return to_json({name: value for name, value in values.items() if value is not None})

    decide_responses = {**_DECIDE["responses"], **refusals}

    @app.post("/v1/decide", **{**_DECIDE, "responses": decide_responses}, **secured)
    async def decide(request: Request, query: Annotated[DecideQuery, Query()]) -> Response:
        """Decide the label of every item, given its counts or its votes.

        An Arrow stream has the columns `minus`, `tie`, `plus` or `item`, `vote`; of grades a column
        of counts for each vote, or `item`, `score`. The answer is of the same kind unless the
        Accept header names the other.
        """
        body = await _body_of(request, max_body)
        sent = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if sent not in (JSON, ARROW):
            raise HTTPException(415, f"content type {sent!r}, expected {JSON} or {ARROW}")
        accepted = request.headers.get("accept", "").lower()
        media = next((kind for kind in (sent, JSON, ARROW) if kind in accepted), sent)
        served = scorer.served

        def work() -> tuple[bytes, int]:
            read = served.requests.read_json if sent == JSON else served.requests.read_arrow
            items = read(body)
            return answer(served, items, media, query.probabilities), len(items.counts)

        if len(body) <= _SMALL:
            content, n_items = work()
        else:
            content, n_items = await anyio.to_thread.run_sync(work, limiter=workers)
        decided.inc(n_items)
        return Response(content, media_type=media, headers={MODEL_HEADER: served.digest})

    @app.get("/v1/model", response_model_exclude_unset=True, responses=refusals, **secured)
    async def show_model() -> ServedModel:
        """Show the model: its digest, its numbers and what it was fitted to."""
        model, decider, _, digest = scorer.served
        origin = None if model.provenance is None else model.provenance.as_dict()
        return ServedModel(model=digest, **decider.as_dict(), provenance=origin)

    @app.get("/metrics", response_class=Response, responses=refusals, **secured)
    async def show_metrics() -> Response:
        """Show counters and times, for Prometheus."""
        media = "text/plain; version=0.0.4; charset=utf-8"
        return Response(generate_latest(registry), media_type=media)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"model": Error, "description": "It will end soon."}})
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

    scorer = app.state.scorer = Scorer(app, model)
    return app


async def _body_of(request: Request, max_body: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_body:
            raise HTTPException(413, f"body is larger than {max_body} bytes")
    return bytes(body)


def _place(loc: Sequence[str | int]) -> str:
    first, *more = [part for part in loc if part not in _NO_NAMES] or ["body"]
    return f"{first}{''.join(f'[{part}]' for part in more)}"


def _refused(detail: str) -> JSONResponse:
    cut = detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}..."
    return JSONResponse({"detail": cut}, 422)


class _Measured:
    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        labels = ["path", "status"]
        self._requests = Counter("btdagg_requests", "Requests.", labels, registry=registry)
        self._seconds = Histogram(
            "btdagg_request_seconds", "Latency of answers.", ["path"], registry=registry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status = time.perf_counter(), 500

        async def with_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, with_status)
        finally:
            # Paths that clients invent would make any number of series.
            path = scope["path"] if "route" in scope else "other"
            self._requests.labels(path, str(status)).inc()
            self._seconds.labels(path).observe(time.perf_counter() - start)
