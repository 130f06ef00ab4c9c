"""What went wrong with a request: whose fault it is, whether asking again helps, and when.

The words are one line without the key, with a remedy where one is known.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from btdagg._core import InputError
from btdagg.judge.client import ChatReply, RateLimits
from btdagg.judge.pacing import rate_limits_of

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

Kind: TypeAlias = Literal["transient", "limited", "rejected", "protocol", "forbidden", "fatal"]

_FIRST_DELAY = 0.5  # seconds
_LONGEST_DELAY = 60.0
_LONGEST_MESSAGE = 200
_READ = 5 * _LONGEST_MESSAGE
_PROTOCOLS = {
    "/chat/completions": "chat-completions",
    "/v1/messages": "Messages",
    "/v1beta": "Gemini",
}
_TRANSIENT = (408, 409, 425)
# Fields of a request that endpoints refuse, and the option without which they are not sent.
_OPTIONS = {
    "temperature": "--temperature default",
    "top_p": "no --top-p",
    "reasoning_effort": "no --reasoning-effort",
    "thinking": "no --thinking-budget",
    "budget_tokens": "another --thinking-budget",
    "thinking_budget": "another --thinking-budget",
    "thinking_level": "no --reasoning-effort",
    "effort": "no --reasoning-effort",
    "max_output_tokens": "another --max-answer-tokens",
    "max_tokens": "another --max-answer-tokens",
    "max_completion_tokens": "another --max-answer-tokens",
    "response_format": "no --structured",
    "response_json_schema": "no --structured",
    "logprobs": "no --confidence logprobs",
    "seed": "no --request-seed",
    "stream_options": "no --stream",
    "stream": "no --stream",
    "system": "--system-role user",
    "developer": "--system-role system",
}
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_BLOCKED = "blocked by content filtering policy"  # Anthropic's words, without a code
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# What is said of a connection that failed, and what may help.
_REMEDIES = {
    "CERTIFICATE_VERIFY_FAILED": "SSL_CERT_FILE names a file of certificates to trust",
    "WRONG_VERSION_NUMBER": "the endpoint may want http:// in place of https://",
}


class EndpointError(InputError):
    """No further call can work: a wrong key, no such model, an endpoint that is not one."""


class ChatError(Exception):
    """A request without an answer.

    Parameters
    ----------
    message : str
        One line for people; without any part of a key.
    kind : str
        ``transient`` (asking again may help), ``limited`` (it will, later), ``protocol`` (what
        came is not what a chat endpoint sends: asking again may help, unless nothing else ever
        came), ``rejected`` and ``forbidden`` (this request will not work, another may), ``fatal``
        (none will).
    retry_after : float, optional
        Seconds that the endpoint asks to wait.
    limits : RateLimits, optional
        What it says of its limits.
    may_cost : bool
        Whether the endpoint may have worked, and billed, before things went wrong.
    status : int, optional
        Of HTTP.
    """

    def __init__(
        self,
        message: str,
        kind: Kind = "transient",
        *,
        retry_after: float | None = None,
        may_cost: bool = False,
        limits: RateLimits | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.retry_after = retry_after
        self.may_cost = may_cost
        self.limits = limits
        self.status = status

    @property
    def is_limit(self) -> bool:
        """Whether it is no fault of the call, but one to be waited for."""
        return self.kind == "limited" or self.retry_after is not None


def delay_before(attempt: int, draw: random.Random) -> float:
    """Seconds to wait before asking again: exponential back-off with full jitter.

    Parameters
    ----------
    attempt : int
        How often it was asked, at least 1.
    draw : random.Random
    """
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

    Parameters
    ----------
    keys : iterable of str
        What no message shows.
    variable : str
        Environment variable that holds the key.
    path : str
        What the provider's library adds to a base URL.
    """

    def __init__(self, keys: Iterable[str], variable: str, path: str = "/chat/completions") -> None:
        self._secrets = tuple(keys)
        self._variable, self._path = variable, path
        self._protocol = _PROTOCOLS.get(path, "such")

    def hidden(self, text: str) -> str:
        """Return a text without the key, should it hold it."""
        return without_secrets(text, self._secrets)

    def brief(self, text: str) -> str:
        """One line of a text from outside, without anything like a key."""
        # What is shown is the beginning; a look for echoes in megabytes would take minutes.
        line = without_echoes(" ".join(text[:_READ].split()), self._secrets)
        return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."

    def filtered(self, error: Exception, latency: float = 0.0) -> ChatReply | None:
        """Return the refusal that an error is where a filter has refused a text."""
        status = getattr(error, "status_code", None)
        if status not in (400, 403):
            return None
        body = getattr(error, "body", None)
        said = self.brief(_message_of(body))
        if not _names_a_filter(body) and _BLOCKED not in said:
            return None
        said = said or "refused by the filter of the endpoint"
        return ChatReply(f"HTTP {status}: {said}", "", "refusal", latency=latency)

    def explained(
        self, error: Exception, model: str, content_type: str = "", *, has_begun: bool = False
    ) -> ChatError:
        """Return the fault that an exception stands for.

        `has_begun` says that a reply had begun, which may have cost something.
        """
        from pydantic_ai import exceptions as kinds

        if isinstance(error, ChatError):
            return error
        if isinstance(error, kinds.ModelHTTPError):
            return self._of_status(error, model)
        if isinstance(error, (kinds.ModelTimeoutError, kinds.ModelRequestTimeout, TimeoutError)):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, kinds.ModelConnectionError) and not error.in_stream:
            return self.of_connection(error)
        broke_off = isinstance(error, kinds.ModelConnectionError)
        if broke_off or "without a `finish_reason`" in str(error):
            return ChatError("the stream broke off", may_cost=True)
        if isinstance(error, kinds.ModelAPIError) and (error.in_stream or error.body):
            said = self.brief(_message_of(error.body) or str(error))
            return ChatError(f"error within the stream: {said}", may_cost=True)
        if has_begun:
            shown = f" ({self.brief(content_type)})" if content_type else ""
            return ChatError(f"the reply is no chat completion{shown}", "protocol", may_cost=True)
        words = str(error).strip()
        name = type(error).__name__
        return ChatError(self.brief(f"{name}: {words}" if words else name), may_cost=True)

    def of_connection(self, error: BaseException) -> ChatError:
        """Return the fault of a connection that was not made, or broke."""
        cause = error
        while cause.__cause__ is not None or cause.__context__ is not None:
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        words = str(cause).strip() or type(cause).__name__
        refused = isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError)
        # Nobody there is no fault of one request.
        kind: Kind = "protocol" if refused else "transient"
        said = f"no connection: {self.brief(words)}{_remedy_of(words)}"
        return ChatError(said, kind, may_cost=not refused)

    def _of_status(self, error: ModelHTTPError, model: str) -> ChatError:
        """Return the fault of a reply that is an error."""
        from pydantic_ai import exceptions as kinds

        status, said = error.status_code, self.brief(_message_of(error.body))
        more = f": {said}" if said else ""
        headers = error.headers or {}
        if error.in_stream:
            return ChatError(f"error within the stream{more}", _kind_of(error), may_cost=True)
        words: str = f"HTTP {status}{more}"
        kind: Kind = _kind_of(error)
        if isinstance(error, kinds.ModelQuotaExceededError):
            words = f"HTTP {status}: out of quota{more}"
        elif status == 401 or "API_KEY_INVALID" in str(
            error.body
        ):  # Google says 400 of a wrong key
            # What is said about a wrong key often shows a part of it.
            words, kind = f"refuses the key of {self._variable} (HTTP {status})", "fatal"
        elif status == 403:  # some say so of a text that they will not have judged
            words = f"does not permit this with the key of {self._variable} (HTTP 403)"
        elif status == 404:
            if not said:
                upto = ", mostly up to /v1" if self._path == "/chat/completions" else ""
                more = f"; a base URL is what comes before {self._path}{upto}"
            words = f"knows no such path or no model {model!r} (HTTP 404){more}"
        elif status in (405, 501):
            words, kind = f"is no {self._protocol} endpoint (HTTP {status}){more}", "fatal"
        elif kind == "rejected":
            option = _option_for(_field_of(error.body), said)
            words += f"; {option} avoids it" if option else ""
        wait = _retry_after_of(headers)
        return ChatError(
            words,
            kind,
            retry_after=error.retry_after if wait is None else wait,
            limits=rate_limits_of(headers),
            status=status,
        )


def _kind_of(error: ModelAPIError) -> Kind:
    """What the type of an error says of asking again."""
    from pydantic_ai import exceptions as kinds

    status = getattr(error, "status_code", 0)
    if isinstance(error, kinds.ModelQuotaExceededError):
        return "fatal"
    if isinstance(error, kinds.ModelRateLimitError) or status in (429, 529):
        return "limited"
    if status in _TRANSIENT or status >= 500:
        return "transient"
    if status == 403:
        return "forbidden"
    if status in (401, 404) or isinstance(error, kinds.ModelAuthenticationError):
        return "fatal"
    return "rejected"


def _retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Seconds that headers ask to wait; fractions too, which the library passes over."""
    thousandths = parse_retry_after(headers.get("retry-after-ms"))
    if thousandths is not None:
        return thousandths / 1000
    return parse_retry_after(headers.get("retry-after"))


def _field_of(body: object) -> str:
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return str(error.get("param") or "") if isinstance(error, Mapping) else ""


def _remedy_of(words: str) -> str:
    """What may help where there is no connection."""
    remedies = [remedy for sign, remedy in _REMEDIES.items() if sign in words]
    proxies = [name for name in _PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    if proxies:
        remedies.append(f"{' and '.join(proxies)} set a proxy, which may be at fault")
    return "".join(f"; {remedy}" for remedy in remedies)


def _option_for(field: str, said: str) -> str:
    """The option that avoids a field that is refused; empty where none is known."""
    path = re.match(r"([a-z_.]+): ", said)  # such as thinking.enabled.budget_tokens
    for named in (field, *(path[1].split(".")[::-1] if path else ())):
        if named in _OPTIONS:
            return _OPTIONS[named]
    quoted = set(re.findall(r"[`'\"]([a-z_]+)[`'\"]", said)) | set(
        re.findall(r"\b[a-z]+_[a-z_]+\b", said)
    )
    return next((option for name, option in _OPTIONS.items() if name in quoted), "")


def _names_a_filter(error: object) -> bool:
    """Whether the code of an error, or of what caused it, is that of a filter."""
    if not isinstance(error, Mapping):
        return False
    if any(error.get(name) in _FILTERED for name in ("code", "type")):
        return True
    return any(_names_a_filter(error.get(name)) for name in ("error", "innererror", "inner_error"))


def _message_of(body: object) -> str:
    if isinstance(body, Mapping):
        error = body.get("error", body)
        if isinstance(error, Mapping):
            return str(error.get("message") or error.get("detail") or "")
        return str(error)
    said = "" if body is None else str(body)
    return "" if said.lstrip().startswith("<") else said  # a page says nothing to people here


# Keys that endpoints echo, whole or abbreviated, are not shown

_SHORTEST = 8  # shorter ones are placeholders, such as EMPTY
_SHORTEST_PART = 3  # of what is left of an abbreviated key before or after dots or stars
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_ABBREVIATED = re.compile(r"([\w+/=~-]*)(?:\*{2,}|\.{2,}|…)([\w+/=~-]*)")
HIDDEN = "[key]"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with a mark in place of each secret that it holds whole."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def without_echoes(text: str, secrets: Iterable[str]) -> str:
    """Return a message of an endpoint without secrets, their beginnings and their ends.

    A beginning or end is hidden beside dots or stars (``AIza...3456``), or if it has eight
    characters. Other words in the form of a key are hidden too.
    """
    secrets = [secret for secret in secrets if len(secret) >= _SHORTEST]
    text = without_secrets(text, secrets)

    def hide(found: re.Match[str]) -> str:
        head, tail = found[1], found[2]
        for secret in secrets:
            is_head = len(head) >= _SHORTEST_PART and secret.startswith(head)
            is_tail = len(tail) >= _SHORTEST_PART and secret.endswith(tail)
            if is_head or is_tail:
                return HIDDEN
        return found[0]

    text = _ABBREVIATED.sub(hide, text)
    for secret in secrets:
        for n in range(len(secret) - 1, _SHORTEST - 1, -1):
            text = text.replace(secret[:n], HIDDEN).replace(secret[-n:], HIDDEN)
    return _KEY_SHAPED.sub(HIDDEN, text)
