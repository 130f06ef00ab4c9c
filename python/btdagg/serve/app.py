"""The routes of the scorer."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
from fastapi import FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from btdagg import __version__
from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.files import digest_of
from btdagg.serve import arrow
from btdagg.serve.items import COUNTS, Body, DecidedItems, Items, VoteColumns, of_arrow, of_json
from btdagg.serve.page import page

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from btdagg.model.davidson import DavidsonModel
    from btdagg.votes.provenance import Provenance

MAX_BODY = 16 << 20
JSON = "application/json"
MODEL_HEADER = "x-btdagg-model"

_SMALL = 1 << 14  # bytes of a body up to which another thread costs more than the work itself
_LONGEST = 500  # characters of a message, which may quote what came
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_REFS = "#/components/schemas/{model}"

_bearer = HTTPBearer(auto_error=False)
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
Named = Annotated[str | None, Query(alias="model", description="Name of the model.")]
With = Annotated[bool, Query(description="Whether the answer has probabilities of -1, 0, 1.")]
Decided = Annotated[bool, Query(description="Whether the answer has labels.")]


class Error(BaseModel):
    """Why a request was refused."""

    detail: str


class ServedModel(BaseModel):
    """A model by its name."""

    name: str
    model: str
    beta: float
    eta0: float
    gamma: float
    alpha: float
    kappa: float
    provenance: dict[str, Any] | None


class _Served(NamedTuple):
    """A model without its provenance, of which it would warn, and that provenance."""

    model: DavidsonModel
    digest: str
    provenance: Provenance | None


_REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"model": Error, "description": "No model of this name."},
    413: {"model": Error, "description": "The body is too large."},
    415: {"model": Error, "description": "The body is neither JSON nor an Arrow stream."},
    422: {"model": Error, "description": "Bad input: the message names the field and the row."},
}
_UNAUTHORIZED: dict[int | str, dict[str, Any]] = {
    401: {"model": Error, "description": "No valid bearer token."}
}


def create_app(
    models: Mapping[str, DavidsonModel], *, token: str | None = None, max_body: int = MAX_BODY
) -> FastAPI:
    """Return the ASGI application that serves models.

    Parameters
    ----------
    models : mapping of str to DavidsonModel
        By their names; the first decides where a request names none.
    token : str, optional
        Bearer token that requests have to show, except for ``/healthz`` and the documentation.
    max_body : int
        Bytes of a body; a larger one is refused.

    Raises
    ------
    InputError
        If there is no model, or the token cannot stand in a header.
    """
    with needs("serve", "serving"):  # before the first request, which would else wait for them
        import polars  # noqa: F401
        import pyarrow.ipc  # noqa: F401

    if not models:
        raise InputError("models is empty; expected at least one")
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise InputError("token is not printable ASCII")
    served = {
        name: _Served(replace(model, provenance=None), digest_of(model), model.provenance)
        for name, model in models.items()
    }
    metrics, workers = _Metrics(), anyio.CapacityLimiter(os.cpu_count() or 1)

    def authorized(given: Credentials) -> None:
        shown = "" if given is None else given.credentials
        if not hmac.compare_digest(shown.encode(), (token or "").encode()):
            raise HTTPException(401, "no valid bearer token", {"www-authenticate": "Bearer"})

    app = FastAPI(
        title="btdagg",
        version=__version__,
        description="Calibrated labels from the three-way votes of LLM judges.",
        docs_url=None,  # it loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.add_middleware(_Counted, metrics=metrics)
    secured: dict[str, Any] = {}
    if token is not None:
        secured = {"dependencies": [Security(authorized)], "responses": _UNAUTHORIZED}

    def chosen(name: str | None) -> _Served:
        found = served.get(name) if name is not None else next(iter(served.values()))
        if found is None:
            raise HTTPException(404, f"no model {name!r}; expected {', '.join(served)}")
        return found

    async def answered(
        request: Request, name: str | None, votes_only: bool, labels: bool, probabilities: bool
    ) -> Response:
        body, one = await _body_of(request, max_body), chosen(name)
        came = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if came not in (JSON, arrow.CONTENT_TYPE):
            raise HTTPException(415, f"content type {came!r}; expected {JSON} or an Arrow stream")
        accepted = request.headers.get("accept", "").lower()
        kinds = (came, JSON, arrow.CONTENT_TYPE)
        media = next((kind for kind in kinds if kind in accepted), came)

        def work() -> tuple[bytes, int]:
            items = (of_json if came == JSON else of_arrow)(body, votes_only)
            write = _as_json if media == JSON else _as_arrow
            return write(items, one, labels, probabilities), len(items.counts)

        if len(body) <= _SMALL:
            content, n_items = work()
        else:
            content, n_items = await anyio.to_thread.run_sync(work, limiter=workers)
        metrics.items.inc(n_items)
        return Response(content, media_type=media, headers={MODEL_HEADER: one.digest})

    @app.post("/v1/decide", **_described(Body, secured))
    async def decide(
        request: Request, model: Named = None, probabilities: With = False
    ) -> Response:
        """Decide the label of every item, given its counts or its votes.

        An Arrow stream has the columns `minus`, `tie`, `plus` or `item`, `vote`. The answer is of
        the same kind unless the Accept header names the other.
        """
        return await answered(request, model, False, True, probabilities)

    @app.post("/v1/tally", **_described(VoteColumns, secured))
    async def tally(
        request: Request, model: Named = None, decide: Decided = True, probabilities: With = False
    ) -> Response:
        """Count the votes of every item, and decide it.

        A missing vote is counted as such and is no tie.
        """
        return await answered(request, model, True, decide, probabilities)

    @app.get("/v1/models", **secured)
    async def list_models() -> list[ServedModel]:
        """Show the models: their names, digests, numbers and what they were fitted to."""
        return [
            ServedModel(
                name=name,
                model=one.digest,
                **one.model.numbers,
                provenance=None if one.provenance is None else one.provenance.as_dict(),
            )
            for name, one in served.items()
        ]

    @app.get("/metrics", response_class=Response, **secured)
    async def show_metrics() -> Response:
        """Show counters and times, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=_METRICS)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @app.get("/", include_in_schema=False)
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        names = ", ".join(f"{name} ({one.digest})" for name, one in served.items())
        return HTMLResponse(page(app.openapi(), f"Models: {names}."))

    @app.exception_handler(InputError)
    async def bad_input(_: Request, error: InputError) -> JSONResponse:
        return _refused(str(error))

    @app.exception_handler(ValidationError)
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: ValidationError | RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        # A body's place begins with its form, a parameter's with where it stands.
        is_field = getattr(error, "title", "") == VoteColumns.model_config["title"]
        place = first["loc"] if is_field else first["loc"][1:]
        shown = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place)
        return _refused(f"{shown.removeprefix('.') or 'body'}: {first['msg']}")

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=400)  # which nobody reads

    app.openapi = _with_bodies(app)  # type: ignore[method-assign]
    return app


async def _body_of(request: Request, most: int) -> bytes:
    """The body; one that is too large is refused before it is read to its end."""
    too_large = HTTPException(413, f"body is larger than {most} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length[:20]) > most:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        if (size := size + len(part)) > most:
            raise too_large
    return b"".join(parts)


def _refused(detail: str) -> JSONResponse:
    cut = detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}..."
    return JSONResponse({"detail": cut}, 422)


def _parts(
    items: Items, served: _Served, labels: bool, probabilities: bool
) -> tuple[Any, Any, list[str]]:
    """Labels, probabilities, and where items differ from what the model was fitted to."""
    decided = served.model.decide(items.counts) if labels else None
    p = served.model.predict_proba(items.counts) if probabilities else None
    known = served.provenance
    if known is None or not len(items.counts) or not (labels or probabilities):
        return decided, p, []
    return decided, p, list(known.differences(items.counts, items.votes, fewer=False))


def _as_json(items: Items, served: _Served, labels: bool, probabilities: bool) -> bytes:
    decided, p, warnings = _parts(items, served, labels, probabilities)
    votes = items.votes
    answer = {
        "model": served.digest,
        "items": items.ids,
        "counts": None if votes is None else items.counts.tolist(),
        "n_missing": None if votes is None else votes.n_missing,
        "labels": None if decided is None else decided.tolist(),
        "probabilities": None if p is None else p.tolist(),
        "warnings": warnings or None,
    }
    return to_json({name: value for name, value in answer.items() if value is not None})


def _as_arrow(items: Items, served: _Served, labels: bool, probabilities: bool) -> bytes:
    decided, p, warnings = _parts(items, served, labels, probabilities)
    columns: dict[str, Any] = {} if items.ids is None else {"item": items.ids}
    if items.votes is not None:
        columns |= dict(zip(COUNTS, items.counts.T, strict=True))
    if decided is not None:
        columns["label"] = decided
    if p is not None:
        columns |= dict(zip(("p_minus", "p_tie", "p_plus"), p.T, strict=True))
    return arrow.write_stream(columns, served.digest, warnings)


# The description


def _described(body: type[BaseModel], secured: dict[str, Any]) -> dict[str, Any]:
    """What a route says of its bodies, which FastAPI does not read itself."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = {
        JSON: {"schema": {"$ref": _REFS.format(model=body.__name__)}},
        arrow.CONTENT_TYPE: binary,
    }
    done = {
        "model": DecidedItems,
        "content": {arrow.CONTENT_TYPE: binary},
        "description": "Decisions.",
    }
    return {
        **secured,
        "response_class": Response,
        "responses": {200: done, **_REFUSALS, **secured.get("responses", {})},
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
    }


def _with_bodies(app: FastAPI) -> Callable[[], dict[str, Any]]:
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        found = describe()
        forms = [(Body, "validation"), (VoteColumns, "validation")]
        _, bodies = models_json_schema(forms, ref_template=_REFS)  # type: ignore[arg-type]
        found["components"]["schemas"] |= bodies["$defs"]
        return found

    return openapi


# Metrics


class _Metrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        of_requests = ["path", "status"]
        self.requests = Counter("btdagg_requests", "Requests.", of_requests, registry=self.registry)
        self.seconds = Histogram(
            "btdagg_request_seconds", "Times of answers.", ["path"], registry=self.registry
        )
        self.items = Counter("btdagg_items", "Items decided or tallied.", registry=self.registry)


class _Counted:
    """ASGI middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, metrics: _Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            # Paths that clients invent would make any number of series.
            path = scope["path"] if "route" in scope else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - start)
