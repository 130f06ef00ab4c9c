"""The routes of the page, and who gets in: a token in the address becomes a cookie."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from btdagg._core import InputError
from btdagg.report.markup import asset, script_hash

if TYPE_CHECKING:
    from btdagg.labelling.session import Session

_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

# A page and no redirect: browsers keep a strict cookie back from a redirect that began with a link
# on another site, such as one in a mail.
_WELCOME = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>btdagg label</title>'
    '<meta http-equiv="refresh" content="0; url=/"></head>'
    '<body><p><a href="/">Go to the page</a></p></body></html>'
)


@dataclass(frozen=True)
class Access:
    """Who is let in.

    Attributes
    ----------
    token : str
        Shown once in the address, then kept as a cookie.
    cookie : str
        Name of the cookie; browsers send those of one port to the others.
    is_secure : bool
        Whether browsers come by HTTPS.
    hosts : frozenset of str
        What the Host header may be, else a page elsewhere could have its name lead here.
    """

    token: str = field(repr=False)
    cookie: str
    is_secure: bool
    hosts: frozenset[str]


class Choice(BaseModel):
    """What the page sends when a rater has chosen."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rater: str
    key: str
    choice: Literal["first", "tie", "second", "skip"]
    seconds: float = Field(ge=0, allow_inf_nan=False)
    note: str = Field(max_length=10_000)


def label_app(session: Session, access: Access, answered: Callable[[], object]) -> FastAPI:
    """Return the ASGI application of a session; `answered` is called after each stored answer."""
    page, policy = label_page()
    app = FastAPI(openapi_url=None, redirect_slashes=False)

    @app.middleware("http")
    async def let_in(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        response = _at_the_door(request, access) or await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.get("/")
    def show() -> HTMLResponse:
        return HTMLResponse(page, headers={"content-security-policy": policy})

    @app.get("/item")
    def item(rater: str, key: str | None = None) -> dict[str, Any]:
        return session.view(rater, key)

    @app.get("/differences")
    def differences(rater: str, key: str) -> dict[str, Any]:
        return session.differences(rater, key)

    @app.post("/label")
    def label(choice: Choice) -> dict[str, Any]:
        following = session.keep(**choice.model_dump())
        answered()
        return following

    @app.exception_handler(InputError)
    def bad_input(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)[:500]}, 422)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    return app


def _at_the_door(request: Request, access: Access) -> Response | None:
    """Answer a request that does not get in, or that has just shown the token."""

    def is_token(text: str) -> bool:
        return hmac.compare_digest(text.encode(), access.token.encode())

    host = request.headers.get("host", "").lower()
    if host not in access.hosts:
        return PlainTextResponse("this name is not served here", 421)
    if request.method not in ("GET", "HEAD"):
        scheme = "https" if access.is_secure else "http"
        if request.headers.get("origin", "").lower() != f"{scheme}://{host}":
            return PlainTextResponse("the request comes from another page", 403)
    token = request.query_params.get("token")
    if request.scope["path"] == "/" and token:
        if not is_token(token):
            return PlainTextResponse("this address is of another run: take the one it printed", 403)
        welcome = HTMLResponse(_WELCOME)
        welcome.set_cookie(
            access.cookie, token, httponly=True, samesite="strict", secure=access.is_secure
        )
        return welcome
    if not is_token(request.cookies.get(access.cookie, "")):
        return PlainTextResponse("not let in: open the address that btdagg label printed", 403)
    return None


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
