"""Description of a failed request, in one line without any part of a key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from btdagg._util.errors import InputError
from btdagg.judge.client import ChatError, ChatReply, Fault, rate_limits_of, seconds_of

_LONGEST_MESSAGE = 200
# Statuses that say more than that asking again may help, as servers and proxies add others: 498
# is Groq's for capacity, 499 nginx's for a closed connection.
_LIMITED = (429, 498, 529)
_REJECTED = (400, 402, 406, 411, 412, 413, 414, 415, 416, 417, 422, 426, 428, 431, 451)
_FATAL = (401, 404, 405, 407, 410, 501, 505, 511)
_OUT_OF_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
# Codes of filters, however deep in the body of an error, and Anthropic's words, without a code.
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_BLOCKED = "blocked by content filtering policy"


class EndpointError(InputError):
    """No further call can work: a wrong key, no such model, an endpoint that is not one."""


class ChoiceError(Exception):
    """A provider's fault in the place of an answer, or of its end; `body` is as of an error."""

    def __init__(self, error: object) -> None:
        super().__init__("the provider broke the answer off")
        self.body = {"error": error} if error else {}
        self.status_code = status_of(error)


def status_of(error: object) -> int:
    """Return the HTTP status that an error in a reply with status 200 stands for."""
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else 500


class Faults:
    """Puts the errors of pydantic-ai, and of the libraries under it, into words."""

    # No message shows one of the `keys`; `variable` names the key's environment variable.

    def __init__(self, keys: Iterable[str], variable: str, address: str) -> None:
        self._secrets = [key for key in keys if len(key) >= _SHORTEST]
        self._variable, self._address = variable, address

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

    def refusal(
        self, status: int | None, body: object, latency: float | None = None
    ) -> ChatReply | None:
        """Return the refusal that an error is if a filter has refused a text."""
        message, written = self.brief(_message_of(body)), str(body)
        is_filter = _BLOCKED in message or any(f"'{code}'" in written for code in _FILTERED)
        if status not in (400, 403) or not is_filter:
            return None
        message = message or "refused by the endpoint's content filter"
        return ChatReply(f"HTTP {status}: {message}", "", "refusal", latency=latency)

    def explained(
        self, error: Exception, model: str = "", content_type: str = "", *, has_begun: bool = False
    ) -> ChatError:
        """Return the fault that an exception stands for; a reply that `has_begun` may have cost."""
        from pydantic_ai import exceptions

        if isinstance(error, ChatError):
            return error
        if isinstance(error, ChoiceError):
            if not error.body:
                return ChatError(str(error), may_cost=True)
            return replace(self.of_status(error.status_code, error.body), may_cost=True)
        is_quota = isinstance(error, exceptions.ModelQuotaExceededError)
        is_limit = isinstance(error, exceptions.ModelRateLimitError)
        kind: Fault | None = "fatal" if is_quota else "limited" if is_limit else None
        if isinstance(error, exceptions.ModelHTTPError):
            if not error.in_stream:
                status, body, headers = error.status_code, error.body, error.headers
                wait = error.retry_after
                return self.of_status(status, body, headers, model, kind=kind, retry_after=wait)
            kind = kind or _kind_of(error.status_code)
        is_broken = isinstance(error, exceptions.ModelConnectionError)
        timeouts = exceptions.ModelTimeoutError, exceptions.ModelRequestTimeout, TimeoutError
        if isinstance(error, timeouts):
            words = "time-out"
        elif isinstance(error, exceptions.ModelConnectionError) and not error.in_stream:
            return self.of_connection(error)
        elif is_broken or "without a `finish_reason`" in str(error):
            words = "the stream broke off"
        elif isinstance(error, exceptions.ModelAPIError) and (error.in_stream or error.body):
            words = f"error within the stream: {self.brief(_message_of(error.body) or str(error))}"
        elif has_begun:
            shown = f" ({self.brief(content_type)})" if content_type else ""
            words, kind = f"the reply is not a chat completion{shown}", "protocol"
        else:
            words = self.brief(f"{type(error).__name__}: {error}")
        return ChatError(words, kind or "transient", may_cost=True)

    def of_connection(self, error: BaseException) -> ChatError:
        """Return the fault of a connection that was not made, or broke."""
        cause = error
        while (inner := cause.__cause__ or cause.__context__) is not None:
            cause = inner
        is_refused = isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError)
        return ChatError(
            f"no connection: {self.brief(str(cause).strip() or type(cause).__name__)}",
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
            words, kind = f"HTTP {status}: quota used up{more}", "fatal"
        elif status == 401 or "API_KEY_INVALID" in str(body):  # Google says 400 of a wrong key
            # What is said about a wrong key often shows a part of it.
            words, kind = f"refuses the key in {self._variable} (HTTP {status})", "fatal"
        elif status == 404:
            more = more or f"; a base URL is one such as {self._address}"
            words = f"has no such path or no model {model!r} (HTTP 404){more}"
        if "retry-after-ms" not in headers:  # the library passes over fractions of seconds
            retry_after = seconds_of(headers.get("retry-after")) or retry_after
        if kind == "rejected" and not message:
            kind = "forbidden"
        return ChatError(
            words,
            kind,
            retry_after=retry_after,
            limits=rate_limits_of(headers),
            status=status,
        )


def _kind_of(status: int) -> Fault:
    if status in _LIMITED:
        return "limited"
    if status == 403:  # some say so of a text that they will not have judged
        return "forbidden"
    if status in _FATAL:
        return "fatal"
    return "rejected" if status in _REJECTED or status < 400 else "transient"


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
_SHORTEST, _CUT = 8, 4  # characters of a key, and of the beginning or end of it that is an echo
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_WORD = re.compile(r"[\w+/~*.…-]{4,}")


def _without_echoes(text: str, secrets: list[str]) -> str:
    def hide(match: re.Match[str]) -> str:
        word = match[0].strip("*.…")
        is_echo = any(word.startswith(s[:_CUT]) or word.endswith(s[-_CUT:]) for s in secrets)
        return _HIDDEN if is_echo else match[0]

    return _KEY_SHAPED.sub(_HIDDEN, _WORD.sub(hide, text))
