"""The routes of the scorer."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
from fastapi import FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from btdagg import __version__
from btdagg._util.errors import InputError, forbid
from btdagg._util.files import digest_of
from btdagg.estimates.deciding import covariates_in, decided_columns, unknown_in
from btdagg.serve.bodies import (
    ARROW,
    DecidedItems,
    Known,
    RequestItems,
    body_of,
    read_arrow,
    read_json,
    write_stream,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel
    from btdagg.votes.provenance import Provenance
    from btdagg.votes.scale import Scale

MAX_BODY = 16 << 20
JSON = "application/json"
MODEL_HEADER = "x-btdagg-model"

_SMALL = 1 << 14  # bytes of a body up to which another thread costs more than the work itself
_LONGEST = 500  # characters of a message, which may quote what came
_NO_NAMES = ("query", "str", "constrained-int")

Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(HTTPBearer(auto_error=False))]
ModelName = Annotated[str | None, Query(alias="model", description="Name of the model.")]
Probabilities = Annotated[
    bool, Query(description="Whether the answer has probabilities of -1, 0, 1, or of grades.")
]


class Error(BaseModel):
    """Why a request was refused."""

    detail: str


class ServedModel(BaseModel):
    """A model by its name: of pairs, or of grades, which has cuts and a scale."""

    name: str
    model: str
    beta: float
    eta0: float | None = None
    gamma: float | None = None
    alpha: float | None = None
    kappa: float | None = None
    cuts: list[float] | None = None
    scale: dict[str, Any] | None = None
    label_scale: dict[str, Any] | None = None
    covariates: list[dict[str, Any]] | None = None
    provenance: dict[str, Any] | None


class _Served(NamedTuple):
    """A model without its provenance, of which it would warn, and that provenance."""

    model: DavidsonModel | GradeModel
    digest: str
    provenance: Provenance | None
    known: Known

    @property
    def scale(self) -> Scale:
        return self.model.scale

    def known_of(self, items: RequestItems) -> RequestItems:
        known = covariates_in(items.facts, self.model, items.counts, "body")
        return items._replace(facts=known or {})


_BINARY = {ARROW: {"schema": {"type": "string", "format": "binary"}}}
_DECIDE: dict[str, Any] = {
    "response_class": Response,
    "responses": {
        200: {"model": DecidedItems, "content": _BINARY, "description": "Decisions."},
        404: {"model": Error, "description": "No model of this name."},
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


def create_app(
    models: Mapping[str, DavidsonModel | GradeModel],
    *,
    token: str | None = None,
    max_body: int = MAX_BODY,
) -> FastAPI:
    """Return the ASGI application that serves models.

    Parameters
    ----------
    models : mapping of str to DavidsonModel or GradeModel
        By name; the first decides if a request names none.
    token : str, optional
        Bearer token of requests, except for ``/healthz`` and the documentation.
    max_body : int
        Largest body in bytes.
    """
    is_empty = token is not None and not token.strip()
    forbid(is_empty, "token is empty, expected a text", "token")
    served = {
        name: _Served(
            replace(model, provenance=None), digest_of(model), model.provenance, Known.of(model)
        )
        for name, model in models.items()
    }
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

    @app.post("/v1/decide", **_DECIDE, **secured)
    async def decide(
        request: Request, name: ModelName = None, probabilities: Probabilities = False
    ) -> Response:
        """Decide the label of every item, given its counts or its votes.

        An Arrow stream has the columns `minus`, `tie`, `plus` or `item`, `vote`; of grades a column
        of counts for each vote, or `item`, `score`. The answer is of the same kind unless the
        Accept header names the other.
        """
        body = await _body_of(request, max_body)
        chosen = served.get(name) if name is not None else next(iter(served.values()))
        if chosen is None:
            raise HTTPException(404, f"no model {name!r}, expected {', '.join(served)}")
        sent = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if sent not in (JSON, ARROW):
            raise HTTPException(415, f"content type {sent!r}, expected {JSON} or {ARROW}")
        accepted = request.headers.get("accept", "").lower()
        media = next((kind for kind in (sent, JSON, ARROW) if kind in accepted), sent)

        def work() -> tuple[bytes, int]:
            read = read_json if sent == JSON else read_arrow
            items = read(body, chosen.provenance, chosen.scale, chosen.known)
            write = _as_json if media == JSON else _as_arrow
            return write(chosen.known_of(items), chosen, probabilities), len(items.counts)

        if len(body) <= _SMALL:
            content, n_items = work()
        else:
            content, n_items = await anyio.to_thread.run_sync(work, limiter=workers)
        decided.inc(n_items)
        return Response(content, media_type=media, headers={MODEL_HEADER: chosen.digest})

    @app.get("/v1/models", response_model_exclude_unset=True, **secured)
    async def list_models() -> list[ServedModel]:
        """Show the models: their names, digests, numbers and what they were fitted to."""
        return [
            ServedModel(
                name=name,
                model=digest,
                **model.as_dict(),
                provenance=None if provenance is None else provenance.as_dict(),
            )
            for name, (model, digest, provenance, _) in served.items()
        ]

    @app.get("/metrics", response_class=Response, **secured)
    async def show_metrics() -> Response:
        """Show counters and times, for Prometheus."""
        media = "text/plain; version=0.0.4; charset=utf-8"
        return Response(generate_latest(registry), media_type=media)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

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

    schemas = app.openapi()["components"]["schemas"]  # kept by the application
    kinds = {(entry.scale, entry.known): None for entry in served.values()}
    schemas["Body"] = {"anyOf": [body_of(*kind).model_json_schema() for kind in kinds]}
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


def _warnings(items: RequestItems, served: _Served) -> list[str]:
    said = unknown_in(items.facts)
    if served.provenance is None or not len(items.counts):
        return said
    counts, votes, scale = items.counts, items.votes, served.scale
    differences = served.provenance.differences(counts, votes, fewer=False, scale=scale)
    if votes is not None and scale.mirrored:
        differences += served.provenance.unused_strength(votes)
    return [*said, *differences]


def _as_json(items: RequestItems, served: _Served, probabilities: bool) -> bytes:
    counts, votes, covariates = items.counts, items.votes, items.facts or None
    answer = {
        "model": served.digest,
        "items": items.ids,
        "counts": None if votes is None else counts.tolist(),
        "n_missing": None if votes is None else votes.n_missing,
        "labels": served.model.decide(counts, covariates=covariates).tolist(),
        "probabilities": served.model.predict_proba(counts, covariates=covariates).tolist()
        if probabilities
        else None,
        "warnings": _warnings(items, served) or None,
    }
    return to_json({name: value for name, value in answer.items() if value is not None})


def _as_arrow(items: RequestItems, served: _Served, probabilities: bool) -> bytes:
    columns: dict[str, Any] = {} if items.ids is None else {"item": items.ids}
    if items.votes is not None:
        columns |= dict(zip(served.scale.columns, items.counts.T, strict=True))
    columns |= decided_columns(
        served.model, items.counts, probabilities=probabilities, covariates=items.facts or None
    )
    return write_stream(columns, served.digest, _warnings(items, served))


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
