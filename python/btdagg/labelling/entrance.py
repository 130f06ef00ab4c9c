"""Who gets in: a token in the address becomes a cookie; other hosts and origins are refused."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LARGEST = 1 << 16  # bytes of a body

_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

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
    hosts : frozenset of str, optional
        What the Host header may be, else a page elsewhere could have its name lead here; None for
        any, as with a certificate, which vouches for the name.
    """

    token: str = field(repr=False)
    cookie: str
    is_secure: bool
    hosts: frozenset[str] | None


class Entrance:
    """ASGI middleware that lets in those who have the token, from pages of this server alone."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1")
                   for name, value in scope["headers"]}  # fmt: skip
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and given:
            if not self._is_token(given):
                await _answer(send, 403, "this address is of another run: take the one it printed")
                return
            secure = "; Secure" if self._access.is_secure else ""
            cookie = (
                f"{self._access.cookie}={self._access.token}; Path=/; HttpOnly; "
                f"SameSite=Strict{secure}"
            )
            await _answer(send, 200, _WELCOME, ("set-cookie", cookie), kind="text/html")
            return
        if not self._is_token(self._cookie(headers.get("cookie", ""))):
            await _answer(send, 403, "not let in: open the address that btdagg label printed")
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = dict(message.get("headers", []))
                more = {**_HEADERS, "content-security-policy": _NOTHING}
                sent = {**{k.encode(): v.encode() for k, v in more.items()}, **sent}
                message["headers"] = list(sent.items())
            await send(message)

        await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "").lower()
        if self._access.hosts is not None and host not in self._access.hosts:
            return 421, "this name is not served here"
        if scope["method"] in ("GET", "HEAD"):
            return None
        scheme = "https" if self._access.is_secure else "http"
        if headers.get("origin", "").lower() != f"{scheme}://{host}":
            return 403, "the request comes from another page"
        length = headers.get("content-length", "")
        if not length.isdigit():
            return 411, "want a Content-Length"
        if int(length[:20]) > _LARGEST:
            return 413, f"body is larger than {_LARGEST} bytes"
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._access.token.encode())

    def _cookie(self, header: str) -> str:
        # Every program on this machine shares its cookies with us; theirs may be no valid ones.
        for each in header.split(";"):
            name, _, value = each.strip().partition("=")
            if name == self._access.cookie:
                return value
        return ""


async def _answer(
    send: Send, status: int, text: str, *more: tuple[str, str], kind: str = "text/plain"
) -> None:
    body = text.encode()
    headers = {
        **_HEADERS,
        "content-security-policy": _NOTHING,
        "content-type": f"{kind}; charset=utf-8",
        "content-length": str(len(body)),
    }
    sent: list[Any] = [(k.encode(), v.encode()) for k, v in (*headers.items(), *more)]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})
