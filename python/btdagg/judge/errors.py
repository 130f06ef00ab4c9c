"""What went wrong with a request: whose fault it is, whether asking again helps, and when.

Messages are one line without any part of a key, with a remedy where one is known.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

from btdagg._util.errors import InputError
from btdagg.judge.client import ChatError, ChatReply, Fault, rate_limits_of

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 60.0  # seconds
_LONGEST_MESSAGE = 200
_OUT_OF_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
# Codes of filters, however deep in the body of an error, and Anthropic's words, without a code.
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_BLOCKED = "blocked by content filtering policy"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# What may help where a connection failed.
_REMEDIES = {
    "CERTIFICATE_VERIFY_FAILED": "SSL_CERT_FILE names a file of certificates to trust",
    "WRONG_VERSION_NUMBER": "the endpoint may want http:// in place of https://",
}


class EndpointError(InputError):
    """No further call can work: a wrong key, no such model, an endpoint that is not one."""


def delay_before(attempt: int, draw: random.Random) -> float:
    """Seconds to wait after so many attempts: exponential back-off with full jitter."""
    return draw.uniform(0, min(_LONGEST_DELAY, _FIRST_DELAY * 2.0 ** (attempt - 1)))


def parse_retry_after(value: str | None, *, now: float | None = None) -> float | None:
    """Seconds that a Retry-After header asks for: a number or an HTTP date; None if neither."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (now or time.time())
        except (TypeError, ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None


class Faults:
    """Puts the errors of pydantic-ai, and of the libraries under it, into words.

    No message shows one of the `keys`; `variable` is the environment variable that holds the key,
    and `path` what the provider's library adds to a base URL.
    """

    def __init__(self, keys: Iterable[str], variable: str, path: str = "/chat/completions") -> None:
        self._secrets = [key for key in keys if len(key) >= _SHORTEST]
        self._variable, self._path = variable, path

    def hidden(self, text: str) -> str:
        """Return a text with a mark in place of each key that it holds whole."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def brief(self, text: str) -> str:
        """Return one line of a text from outside, without anything like a key."""
        # A look for echoes in megabytes would take minutes.
        beginning = " ".join(text[: 5 * _LONGEST_MESSAGE].split())
        line = _without_echoes(self.hidden(beginning), self._secrets)
        return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."

    def refusal(self, status: int | None, body: object, latency: float = 0.0) -> ChatReply | None:
        """Return the refusal that an error is if a filter has refused a text."""
        message, written = self.brief(_message_of(body)), str(body)
        is_filter = _BLOCKED in message or any(f"'{code}'" in written for code in _FILTERED)
        if status not in (400, 403) or not is_filter:
            return None
        message = message or "refused by the filter of the endpoint"
        return ChatReply(f"HTTP {status}: {message}", "", "refusal", latency=latency)

    def explained(
        self, error: Exception, model: str = "", content_type: str = "", *, has_begun: bool = False
    ) -> ChatError:
        """Return the fault that an exception stands for.

        `has_begun` says that a reply had begun, which may have cost something.
        """
        from pydantic_ai import exceptions

        if isinstance(error, ChatError):
            return error
        kind: Fault | None = None
        if isinstance(error, exceptions.ModelQuotaExceededError):
            kind = "fatal"
        elif isinstance(error, exceptions.ModelRateLimitError):
            kind = "limited"
        if isinstance(error, exceptions.ModelHTTPError):
            if error.in_stream:
                message = self.brief(_message_of(error.body))
                words = f"error within the stream{': ' if message else ''}{message}"
                return ChatError(words, kind or _kind_of(error.status_code), may_cost=True)
            status, body, headers = error.status_code, error.body, error.headers
            wait = error.retry_after
            return self.of_status(status, body, headers, model, kind=kind, retry_after=wait)
        if isinstance(
            error, exceptions.ModelTimeoutError | exceptions.ModelRequestTimeout | TimeoutError
        ):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, exceptions.ModelConnectionError) and not error.in_stream:
            return self.of_connection(error)
        broke_off = isinstance(error, exceptions.ModelConnectionError)
        if broke_off or "without a `finish_reason`" in str(error):
            return ChatError("the stream broke off", may_cost=True)
        if isinstance(error, exceptions.ModelAPIError) and (error.in_stream or error.body):
            message = self.brief(_message_of(error.body) or str(error))
            return ChatError(f"error within the stream: {message}", may_cost=True)
        if has_begun:
            shown = f" ({self.brief(content_type)})" if content_type else ""
            return ChatError(f"the reply is no chat completion{shown}", "protocol", may_cost=True)
        name, message = type(error).__name__, str(error).strip()
        return ChatError(self.brief(f"{name}: {message}" if message else name), may_cost=True)

    def of_connection(self, error: BaseException) -> ChatError:
        """Return the fault of a connection that was not made, or broke."""
        cause = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        words = str(cause).strip() or type(cause).__name__
        remedies = [remedy for sign, remedy in _REMEDIES.items() if sign in words]
        proxies = [n for n in _PROXIES if os.environ.get(n) or os.environ.get(n.lower())]
        if proxies:
            remedies.append(f"{' and '.join(proxies)} set a proxy, which may be at fault")
        is_refused = isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError)
        return ChatError(
            "; ".join((f"no connection: {self.brief(words)}", *remedies)),
            "protocol" if is_refused else "transient",  # nobody there is no fault of one request
            may_cost=not is_refused,
        )

    def of_status(
        self,
        status: int,
        body: object,
        headers: Mapping[str, str] | None = None,
        model: str = "",
        *,
        kind: Fault | None = None,
        retry_after: float | None = None,
    ) -> ChatError:
        """Return the fault of a reply that is an error."""
        message, headers = self.brief(_message_of(body)), headers or {}
        more = f": {message}" if message else ""
        is_quota, kind = kind == "fatal", kind or _kind_of(status)
        words = f"HTTP {status}{more}"
        if is_quota or status == 402 or _error_of(body).get("code") in _OUT_OF_QUOTA:
            words, kind = f"HTTP {status}: out of quota{more}", "fatal"
        elif status == 401 or "API_KEY_INVALID" in str(body):  # Google says 400 of a wrong key
            # What is said about a wrong key often shows a part of it.
            words, kind = f"refuses the key of {self._variable} (HTTP {status})", "fatal"
        elif status == 403:  # some say so of a text that they will not have judged
            words = f"does not permit this with the key of {self._variable} (HTTP 403)"
        elif status == 404:
            if not message:
                upto = ", mostly up to /v1" if self._path == "/chat/completions" else ""
                more = f"; a base URL is what comes before {self._path}{upto}"
            words = f"knows no such path or no model {model!r} (HTTP 404){more}"
        elif status in (405, 501):
            words, kind = f"takes no requests at {self._path} (HTTP {status}){more}", "fatal"
        # The library passes over fractions of seconds.
        thousandths = parse_retry_after(headers.get("retry-after-ms"))
        wait = parse_retry_after(headers.get("retry-after"))
        wait = wait if thousandths is None else thousandths / 1000
        return ChatError(
            words,
            kind,
            retry_after=retry_after if wait is None else wait,
            limits=rate_limits_of(headers),
            status=status,
        )


def _kind_of(status: int) -> Fault:
    if status in (429, 529):
        return "limited"
    if status in (408, 409, 425) or status >= 500:
        return "transient"
    if status == 403:
        return "forbidden"
    return "fatal" if status in (401, 404) else "rejected"


def _error_of(body: object) -> Mapping[str, object]:
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else {}


def _message_of(body: object) -> str:
    if error := _error_of(body):
        return str(error.get("message") or error.get("detail") or "")
    text = body.get("error", "") if isinstance(body, Mapping) else body
    shown = "" if text is None else str(text)
    return "" if shown.lstrip().startswith("<") else shown  # a page says nothing to people here


# Keys that endpoints echo, whole or abbreviated, are not shown

_HIDDEN = "[key]"
_SHORTEST, _SHORTEST_CUT = 8, 3  # characters of a key's beginning or end, and beside dots or stars
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_WORD = re.compile(r"(?P<cut>[*.…])?(?P<word>[\w+/~-]{3,})(?=(?P<dots>[*.…])?)")


def _without_echoes(text: str, secrets: list[str]) -> str:
    """Return a message without beginnings and ends of secrets, and words in the form of a key."""

    def hide(match: re.Match[str]) -> str:
        word = match["word"]
        least = _SHORTEST_CUT if match["cut"] or match["dots"] else _SHORTEST
        is_part = any(secret.startswith(word) or secret.endswith(word) for secret in secrets)
        return f"{match['cut'] or ''}{_HIDDEN}" if is_part and len(word) >= least else match[0]

    return _KEY_SHAPED.sub(_HIDDEN, _WORD.sub(hide, text))
