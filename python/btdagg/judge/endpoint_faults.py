"""What went wrong at an endpoint: one line without the key, and the remedy where one is known."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from btdagg.judge.client import ChatReply, ChatRequest
from btdagg.judge.rate_limits import RateLimits
from btdagg.judge.retry import ChatError, Kind, parse_retry_after

_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_SHORTEST_KEY = 8  # shorter ones are placeholders, such as EMPTY
_LONGEST_MESSAGE = 200
_FATAL = {
    401: "refuses the key of {variable}",
    402: "wants to be paid",
    403: "does not permit this with the key of {variable}",
    404: "knows no such path or no model {model!r}",
    405: "is no chat-completions endpoint",
    501: "is no chat-completions endpoint",
}
_TRANSIENT = (408, 409, 425, 429)
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
# Fields of a request that endpoints refuse, and the option without which they are not sent.
_OPTIONS = {
    "temperature": "--temperature default",
    "top_p": "no --top-p",
    "reasoning_effort": "no --reasoning-effort",
    "thinking": "no --thinking-budget",
    "max_tokens": "another --max-answer-tokens",
    "max_completion_tokens": "another --max-answer-tokens",
    "response_format": "no --structured",
    "logprobs": "no --confidence logprobs",
    "seed": "no --request-seed",
    "stream_options": "no --stream",
    "stream": "no --stream",
    "system": "--system-role user",
    "developer": "--system-role system",
    "n": "--samples-per-call 1",
}
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# What is said of a connection that failed, and what may help.
_REMEDIES = {
    "CERTIFICATE_VERIFY_FAILED": "SSL_CERT_FILE names a file of certificates to trust",
    "WRONG_VERSION_NUMBER": "the endpoint may want http:// in place of https://",
}


class Faults:
    """Puts what goes wrong at an endpoint into words.

    Parameters
    ----------
    key : str
        What no message shows.
    variable : str
        Environment variable that holds it.
    """

    def __init__(self, key: str, variable: str) -> None:
        self._key, self._variable = key, variable

    def hidden(self, text: str) -> str:
        """Return a text without the key, should it hold it."""
        if len(self._key) >= _SHORTEST_KEY and self._key in text:
            return text.replace(self._key, "[key]")
        return text

    def filtered(self, error: Exception, latency: float) -> ChatReply | None:
        """Return the refusal that an error is where a filter has refused a text."""
        import openai

        if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 403):
            return None
        if not _names_a_filter(error.body):
            return None
        said = self.brief(_message_of(error.body)) or "refused by the filter of the endpoint"
        return ChatReply(f"HTTP {error.status_code}: {said}", "", "refusal", latency=latency)

    def explained(self, error: Exception, request: ChatRequest) -> ChatError:
        """Return the fault that an exception of the client library stands for."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return self._status_error(error, request)
        if isinstance(error, (openai.APITimeoutError, TimeoutError)):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, openai.APIConnectionError):
            cause: BaseException = error
            while cause.__cause__ is not None or cause.__context__ is not None:
                cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
            words = str(cause).strip() or type(cause).__name__
            refused = isinstance(cause, OSError) and not isinstance(cause, ConnectionResetError)
            # Nobody there is no fault of one request.
            kind: Kind = "protocol" if refused else "transient"
            said = f"no connection: {self.brief(words)}{_remedy_of(words)}"
            return ChatError(said, kind, may_cost=not refused)
        if isinstance(error, openai.APIError):  # an error event within a stream
            return ChatError(self.brief(error.message), may_cost=True)
        if isinstance(error, (ValueError, KeyError, TypeError, AttributeError)):
            return ChatError("the reply is no chat completion", "protocol", may_cost=True)
        words = str(error).strip()
        return ChatError(
            self.brief(f"{type(error).__name__}: {words}" if words else type(error).__name__),
            may_cost=True,
        )

    def _status_error(self, error: Any, request: ChatRequest) -> ChatError:
        status, said = error.status_code, self.brief(_message_of(error.body))
        if error.code in _OUT_OF_MONEY or error.type in _OUT_OF_MONEY:
            return ChatError(
                f"HTTP {status}: out of quota" + (f": {said}" if said else ""), "fatal"
            )
        if status in _FATAL:
            words = _FATAL[status].format(variable=self._variable, model=request.model)
            # What is said about a wrong key often shows a part of it.
            more = f": {said}" if said and status not in (401, 403) else ""
            if status == 404 and not said:
                more = "; a base URL is what comes before /chat/completions, mostly up to /v1"
            # Some endpoints say 403 of a text that they will not have judged.
            kind: Kind = "forbidden" if status == 403 else "fatal"
            return ChatError(f"{words} (HTTP {status}){more}", kind)
        words = f"HTTP {status}" + (f": {said}" if said else "")
        if status in _TRANSIENT or status >= 500:
            headers = error.response.headers
            retry_after = parse_retry_after(headers.get("retry-after"))
            if headers.get("retry-after-ms"):
                thousandths = parse_retry_after(headers.get("retry-after-ms"))
                retry_after = None if thousandths is None else thousandths / 1000
            return ChatError(
                words,
                "limited" if status == 429 else "transient",
                retry_after=retry_after,
                limits=RateLimits.of(headers),
            )
        if status < 400:
            return ChatError(words, "protocol")
        option = _option_for(str(error.param or ""), said)
        return ChatError(words + (f"; {option} avoids it" if option else ""), "rejected")

    def refused(self, error: object) -> ChatError:
        """Return the fault of an error in a reply that says 200."""
        code = error.get("code") if isinstance(error, Mapping) else None
        said = self.brief(_message_of({"error": error}))
        rejected = isinstance(code, int) and 400 <= code < 500 and code not in _TRANSIENT
        return ChatError(f"error in the reply: {said}", "rejected" if rejected else "transient")

    def no_completion(self, response: Any) -> ChatError:
        """Return the fault of a reply that is something else."""
        content_type = response.headers.get("content-type", "").partition(";")[0] or "no type"
        return ChatError(
            f"the reply is no chat completion ({self.brief(content_type)})",
            "protocol",
            may_cost=True,
        )

    def brief(self, text: str) -> str:
        """One line of a text from outside, without anything like a key."""
        line = _KEY_SHAPED.sub("[key]", self.hidden(" ".join(text.split())))
        return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."


def _remedy_of(words: str) -> str:
    """What may help where there is no connection."""
    remedies = [remedy for sign, remedy in _REMEDIES.items() if sign in words]
    proxies = [name for name in _PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    if proxies:
        remedies.append(f"{' and '.join(proxies)} set a proxy, which may be at fault")
    return "".join(f"; {remedy}" for remedy in remedies)


def _option_for(field: str, said: str) -> str:
    """The option that avoids a field that is refused; empty where none is known."""
    if field in _OPTIONS:
        return _OPTIONS[field]
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
