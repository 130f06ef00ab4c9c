"""Addresses of servers, as they may be shown."""

from __future__ import annotations


def without_credentials(url: str) -> str:
    """Return an address without the user, password and query that it may hold.

    Parameters
    ----------
    url : str
        Such as ``postgresql://me:secret@localhost/votes``.

    Returns
    -------
    str
        Such as ``postgresql://localhost/votes``.
    """
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}".rstrip("/")
