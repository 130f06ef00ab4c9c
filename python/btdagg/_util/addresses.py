"""Addresses of servers and databases, as they may be shown."""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(r"^([^:/?]*|[^:?]*:[^@]*)@")
# What has a password is all up to the last @: a password may hold slashes and question marks.
_PASSWORD = re.compile(r"://([^\s:]*):\S*@")
_QUERY = re.compile(
    r"([?&;][^\s=&;]*(?:pass|pwd|secret|token|key|credential|auth|signature)[^\s=&;]*=)[^\s&;]*",
    re.IGNORECASE,
)
# Such as `password=secret` in what libpq takes, or within a part of an address, there quoted.
_SETTING = re.compile(
    r"((?:passw(?:or)?d|pwd|secret|token)\s*(?:=|%3D)\s*)('[^']*'|[^\s&;'%]+)", re.IGNORECASE
)
_HIDDEN = "***"


def shown_address(text: str) -> str:
    """Return a text with the secrets of the address in it hidden; other texts as they are."""
    # Such as ``postgresql://me:***@localhost/votes?password=***``; also libpq's
    # ``password=secret``.

    def without_password(address: re.Match[str]) -> str:
        is_user = not re.search("[/?@]", address[1])
        return f"://{address[1] + ':' if is_user else ''}{_HIDDEN}@"

    text = _QUERY.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(without_password, text))
    return _SETTING.sub(rf"\1{_HIDDEN}", text)


def without_credentials(url: str) -> str:
    """Return an address without the user, password and query that it may hold."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = _CREDENTIALS.sub("", rest).partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}".partition("?")[0].rstrip("/")
