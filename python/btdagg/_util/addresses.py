"""Addresses of servers and databases, as they may be shown."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://")
_SECRET = re.compile(r"pass|pwd|secret|token|key|credential|auth|signature", re.IGNORECASE)
_CREDENTIALS = re.compile(r"^([^:/?]*|[^:?]*:[^@]*)@")
# Such as `password=secret` in what libpq takes, or within a part of an address, there quoted.
_SETTING = re.compile(
    r"((?:passw(?:or)?d|pwd|secret|token)\s*(?:=|%3D)\s*)('[^']*'|[^\s&;'%]+)", re.IGNORECASE
)
_HIDDEN = "***"


def shown_address(text: str) -> str:
    """Return a text with the secrets of the address in it hidden; other texts as they are.

    Passwords in libpq's ``host=localhost password=secret`` are hidden too.

    Parameters
    ----------
    text : str
        Such as ``postgresql://me:secret@localhost/votes?password=secret``, also with something in
        front, such as ``--store=``.

    Returns
    -------
    str
        Such as ``postgresql://me:***@localhost/votes?password=***``. Where it cannot be parsed,
        user, password and query are hidden whole.
    """
    address = _ADDRESS.search(text)
    if address is not None:
        before, url = text[: address.start()], text[address.start() :]
        text = before + (_hidden(url) or _cut(url))
    return _SETTING.sub(rf"\1{_HIDDEN}", text)


def without_credentials(url: str) -> str:
    """Return an address without the user, password and query that it may hold.

    Parameters
    ----------
    url : str
        Such as ``https://me:secret@localhost/v1?key=secret``.

    Returns
    -------
    str
        Such as ``https://localhost/v1``.
    """
    scheme, mark, rest = url.partition("://")
    host, slash, path = _CREDENTIALS.sub("", rest).partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}".partition("?")[0].rstrip("/")


def _hidden(url: str) -> str | None:
    """Hide secrets by the parser that opens databases; None if it cannot read the address."""
    try:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        return None
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return None
    if parsed.host and "@" in parsed.host:  # the end of a password with an @ of its own
        parsed = parsed.set(host=parsed.host.rpartition("@")[2])
    if parsed.get_backend_name() != "sqlite" and "@" in (parsed.database or ""):
        return None  # the address has credentials that the parser did not take for such
    secrets = {name: _HIDDEN for name in parsed.query if _SECRET.search(name)}
    if not secrets and parsed.password is None:
        return url
    shown = parsed.update_query_dict(secrets).render_as_string(hide_password=True)
    return shown.replace("=%2A%2A%2A", f"={_HIDDEN}")


def _cut(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    place, query, _ = rest.partition("?")
    if "@" in rest:
        place = f"{_HIDDEN}@{rest.rpartition('@')[2].partition('?')[0]}"
    return f"{scheme}{mark}{place}{query}{_HIDDEN if query else ''}"
