"""What a scorer is told when it is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from btdagg._core import InputError
from btdagg.validation import as_integer, as_number


@dataclass(frozen=True)
class Settings:
    """Settings of the HTTP scorer.

    Attributes
    ----------
    model : Path
        File of the model; read again when it changes.
    max_body : int
        Bytes of a body; a larger one gets 413.
    rate : float
        Requests per second of one client address beyond which it gets 429; 0 for no limit.
    burst : int
        Requests that a client may make at once before `rate` counts.
    token : str, optional
        Bearer token that requests to ``/v1`` and ``/metrics`` have to show.
    timeout : float
        Seconds that a client may take to send a request, or to take in a piece of the answer.
    reload_every : float
        Seconds between two looks at the model file.
    n_workers : int
        Large bodies that are worked on at the same time.
    max_connections : int
        Connections beyond which requests get 503.

    Raises
    ------
    InputError
        If a number is out of range or the token is no printable ASCII.
    """

    model: Path
    max_body: int = 16 << 20
    rate: float = 0.0
    burst: int = 100
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    reload_every: float = 1.0
    n_workers: int = 2
    max_connections: int = 1000

    def __post_init__(self) -> None:
        for name in ("max_body", "burst", "n_workers", "max_connections"):
            as_integer(getattr(self, name), name, 1)
        for name, least in (("rate", 0.0), ("timeout", 0.01), ("reload_every", 0.01)):
            value = as_number(getattr(self, name), name)
            if value < least:
                raise InputError(f"{name} is {value:g}, want at least {least:g}")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise InputError("token has characters that are not printable ASCII")
        if self.token is not None and not self.token.strip():
            raise InputError("token is empty, want a token or no BTDAGG_SERVE_TOKEN")
        if self.token is not None and self.token != self.token.strip():
            raise InputError("token begins or ends with a blank, which HTTP drops")
