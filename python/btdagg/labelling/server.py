"""The page as a server: its routes, and who gets in: a token in the address becomes a cookie."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import BackgroundTasks, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from btdagg._core import InputError
from btdagg._util.listening import DrainingServer, bound, place_of
from btdagg._util.wording import in_line
from btdagg.report.markup import asset, script_hash
from btdagg.votes.scale import PAIRWISE, POINTWISE, Mode

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

_MAX_BODY = 256 * 1024  # bytes; a note of 10,000 characters takes 120,000 at most

# A page and no redirect: browsers keep a strict cookie back from a redirect that began with a link
# on another site, such as one in a mail.
_WELCOME = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>btdagg label</title>'
    '<meta http-equiv="refresh" content="0; url=/"></head>'
    '<body><p><a href="/">Go to the page</a></p></body></html>'
)


@dataclass(frozen=True)
class Access:
    """Access for whoever has shown the token in the address, by a cookie."""

    # Its name has the port, since browsers send cookies of one port to others; the Host header has
    # to be known, else a page elsewhere could have its name lead here.

    token: str = field(repr=False)
    cookie: str
    is_secure: bool  # whether browsers come by HTTPS
    hosts: frozenset[str]


class Choice(BaseModel):
    """A rater's choice, as the page sends it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rater: str
    key: str
    choices: list[str | None]
    seconds: float = Field(ge=0, allow_inf_nan=False)
    note: str = Field(max_length=10_000)
    then: str | None = None


def serve_labels(
    session: Session,
    write: Callable[[], object],
    say: Callable[[str], object],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    behind_proxy: str | None = None,
    token: str | None = None,
) -> None:
    """Serve a session until SIGINT or SIGTERM; then finish what was accepted.

    Parameters
    ----------
    session : Session
    write : callable
        Writes the file of labels, after each of them.
    say : callable
        Takes the address to open.
    host : str
        Address to listen on. One beyond this machine needs a proxy that ends TLS.
    port : int
        0 for any that is free.
    behind_proxy : str, optional
        Name (and port, unless 443) under which a proxy serves the page by HTTPS.
    token : str, optional
        At least 16 ASCII letters, digits, hyphens and underscores; random by default.

    Raises
    ------
    InputError
        If the address cannot be listened on, or others reach it without encryption.
    """
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,}", token):
        raise InputError("token: expected 16 or more ASCII letters, digits, - and _")
    listening = bound(host, port)
    address, port = listening.getsockname()[:2]
    place = place_of(listening)
    if behind_proxy is not None:
        hosts = {behind_proxy.lower()}
    elif ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        names = {"127.0.0.1", "localhost", "[::1]", host.lower()}
        hosts = {place, *(f"{name}:{port}" for name in names)}
    else:
        listening.close()
        raise InputError(
            f"host is {host}, which other machines can reach, expected behind_proxy too: the name "
            "under which a proxy serves the page by HTTPS"
        )
    access = Access(
        token=token or secrets.token_urlsafe(24),
        cookie=f"btdagg_label_{port}",
        is_secure=behind_proxy is not None,
        hosts=frozenset(hosts),
    )
    waiting, writing = threading.Lock(), threading.Lock()

    def follow() -> None:
        if not waiting.acquire(blocking=False):
            return  # another write is about to begin, and has this label too
        with writing:
            waiting.release()
            try:
                write()
            except (InputError, OSError) as error:
                # The labels are in the store; the next one writes the file again.
                text = f"btdagg: could not write the labels yet, will try again: {error}"
                print(in_line(text), file=sys.stderr, flush=True)

    config = uvicorn.Config(
        label_app(session, access, follow),
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=10,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
    )
    origin = f"https://{behind_proxy}" if behind_proxy else f"http://{place}"
    DrainingServer(config, lambda _: say(f"{origin}/?token={access.token}")).run([listening])


def label_app(session: Session, access: Access, follow: Callable[[], object]) -> FastAPI:
    """Return the ASGI application of a session; `follow` is called after each stored label."""
    page, policy = label_page(session.scale.mode)
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
    def label(choice: Choice, later: BackgroundTasks) -> dict[str, Any]:
        later.add_task(follow)
        return session.keep(**choice.model_dump())

    @app.exception_handler(InputError)
    def bad_input(_: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"detail": str(error)[:500]}, 422)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    return app


def _at_the_door(request: Request, access: Access) -> Response | None:

    def is_token(text: str) -> bool:
        return hmac.compare_digest(text.encode(), access.token.encode())

    host = request.headers.get("host", "").lower()
    if host not in access.hosts:
        return PlainTextResponse("this host name is not served here", 421)
    if request.method not in ("GET", "HEAD"):
        scheme = "https" if access.is_secure else "http"
        if request.headers.get("origin", "").lower() != f"{scheme}://{host}":
            return PlainTextResponse("the request comes from another page", 403)
    token = request.query_params.get("token")
    if request.scope["path"] == "/" and token:
        if not is_token(token):
            return PlainTextResponse(
                "this address is from another run: open the one that the present run printed", 403
            )
        welcome = HTMLResponse(_WELCOME)
        welcome.set_cookie(
            access.cookie, token, httponly=True, samesite="strict", secure=access.is_secure
        )
        return welcome
    if not is_token(request.cookies.get(access.cookie, "")):
        return PlainTextResponse("no access: open the address that btdagg label printed", 403)
    if request.method not in ("GET", "HEAD"):
        n_bytes = request.headers.get("content-length", "")
        is_chunked = "transfer-encoding" in request.headers  # of any length, whatever is said
        if is_chunked or not n_bytes.isdecimal() or int(n_bytes) > _MAX_BODY:
            detail = f"expected a body of at most {_MAX_BODY} bytes, and its length"
            return JSONResponse({"detail": detail}, 413)
    return None


_WORDS = {
    PAIRWISE: {
        "question": "Which response is better?",
        "about": "You will see pairs of responses. Choose the better one of each, or a tie if "
        "neither is better.",
    },
    POINTWISE: {
        "question": "How good is the response?",
        "about": "You will see responses, one at a time. Give each a grade.",
    },
}


def label_page(mode: Mode) -> tuple[str, str]:
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
    words = {"thing": mode.judged, **_WORDS[mode], "css": css, "script": script}
    for name, text in words.items():
        html = html.replace(f"{{{{ {name} }}}}", text)
    return html, policy
