"""The routes of the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from btdagg._core import InputError
from btdagg.labelling.entrance import Access, Entrance
from btdagg.report.markup import asset, script_hash

if TYPE_CHECKING:
    from btdagg.labelling.session import Session

_FIELDS = {"rater", "key", "choice", "seconds", "note"}


def label_app(session: Session, access: Access, kept: Callable[[], object]) -> Starlette:
    """Return the ASGI application of a session.

    Parameters
    ----------
    session : Session
    access : Access
    kept : callable
        Called after each answer that was kept.
    """
    page, policy = label_page()

    async def show(_: Request) -> HTMLResponse:
        return HTMLResponse(page, headers={"content-security-policy": policy})

    async def item(request: Request) -> JSONResponse:
        asked = request.query_params
        work = partial(session.view, asked.get("rater", ""), asked.get("key"))
        return JSONResponse(await anyio.to_thread.run_sync(work))

    async def differ(request: Request) -> JSONResponse:
        asked = request.query_params
        work = partial(session.differences, asked.get("rater", ""), asked.get("key", ""))
        return JSONResponse(await anyio.to_thread.run_sync(work))

    async def label(request: Request) -> JSONResponse:
        said = _said(await request.body())

        def work() -> dict[str, Any]:
            following = session.keep(**said)
            kept()
            return following

        return JSONResponse(await anyio.to_thread.run_sync(work))

    async def bad_input(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"detail": str(error)[:500]}, 422)

    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # which nobody reads

    return Starlette(
        routes=[
            Route("/", show),
            Route("/item", item),
            Route("/differences", differ),
            Route("/label", label, methods=["POST"]),
        ],
        middleware=[Middleware(Entrance, access=access)],
        exception_handlers={InputError: bad_input, ClientDisconnect: gone},
    )


def label_page() -> tuple[str, str]:
    """Return the page as HTML, and its content policy, which names its script and its style."""
    html, css, script = (
        files("btdagg.labelling").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", "page.js")
    )
    css = asset("colours.css") + css
    policy = (
        f"default-src 'none'; script-src {script_hash(script)}; style-src {script_hash(css)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return html.replace("{{ css }}", css).replace("{{ script }}", script), policy


def _said(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("body is no JSON") from None
    if not isinstance(found, dict) or found.keys() != _FIELDS:
        raise InputError(f"body is no object with {', '.join(sorted(_FIELDS))}")
    return found
