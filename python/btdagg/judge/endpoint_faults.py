"""What went wrong at an endpoint: one line without the key, and the remedy where one is known."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from btdagg.judge.client import ChatReply, ChatRequest
from btdagg.judge.rate_limits import RateLimits, seconds_of
from btdagg.judge.retry import ChatError, Kind, parse_retry_after

_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_SHORTEST_KEY = 8  # shorter ones are placeholders, such as EMPTY
_LONGEST_MESSAGE = 200
_FATAL = {
    401: "refuses the key of {variable}",
    402: "wants to be paid",
    403: "does not permit this with the key of {variable}",
    404: "knows no such path or no model {model!r}",
    405: "is no {protocol} endpoint",
    501: "is no {protocol} endpoint",
}
_TRANSIENT = (408, 409, 425, 429)
_LIMITED = (429, 529)  # the second is Anthropic's, of an API that is overloaded
_OUT_OF_MONEY = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
    "organization_on_hold",
)
# Of an error event within a stream of Anthropic's, which began as a reply that says 200.
_WITHIN = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
}
_NO_CREDIT = "credit balance is too low"  # which comes as a request that is not valid
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
    "n": "--samples-per-call 1",
}
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_BLOCKED = "blocked by content filtering policy"  # Anthropic's words, without a code


_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# What is said of a connection that failed, and what may help.
_REMEDIES = {
    "CERTIFICATE_VERIFY_FAILED": "SSL_CERT_FILE names a file of certificates to trust",
    "WRONG_VERSION_NUMBER": "the endpoint may want http:// in place of https://",
}


@dataclass(frozen=True)
class Refused:
    """A reply that is an error.

    Attributes
    ----------
    status : int
    body : object
        Its JSON, or its text where it is none.
    headers : mapping
    """

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> Mapping[str, Any]:
        """The error within the body, empty where it is no JSON."""
        inner = self.body.get("error", self.body) if isinstance(self.body, Mapping) else None
        return inner if isinstance(inner, Mapping) else {}

    @property
    def codes(self) -> set[str]:
        """What the error is called, by whatever field."""
        details = self.error.get("details")
        named = [details] if isinstance(details, Mapping) else list(_rows(details))
        codes = [self.error.get(name) for name in ("code", "type", "status")]
        codes += [each.get(name) for each in named for name in ("error_code", "reason")]
        return {code for code in codes if isinstance(code, str)}

    @property
    def retry_after(self) -> float | None:
        """Seconds that are asked to be waited, by a header or, as Google does, in the body."""
        if self.headers.get("retry-after-ms"):
            thousandths = parse_retry_after(self.headers.get("retry-after-ms"))
            return None if thousandths is None else thousandths / 1000
        if self.headers.get("retry-after"):
            return parse_retry_after(self.headers.get("retry-after"))
        for each in _rows(self.error.get("details")):
            if str(each.get("@type", "")).endswith("RetryInfo"):
                return seconds_of(str(each.get("retryDelay", "")))
        return None


class Faults:
    """Puts what goes wrong at an endpoint into words.

    Parameters
    ----------
    key : str
        What no message shows.
    variable : str
        Environment variable that holds it.
    library : module, optional
        The client library whose exceptions are explained; openai unless given.
    protocol, path : str
        What the endpoint should speak, and what its library adds to a base URL.
    """

    def __init__(
        self,
        key: str,
        variable: str,
        library: Any = None,
        protocol: str = "chat-completions",
        path: str = "/chat/completions",
    ) -> None:
        if library is None:
            import openai as library
        self._key, self._variable, self._library = key, variable, library
        self._protocol, self._path = protocol, path

    def hidden(self, text: str) -> str:
        """Return a text without the key, should it hold it."""
        if len(self._key) >= _SHORTEST_KEY and self._key in text:
            return text.replace(self._key, "[key]")
        return text

    def filtered(self, error: Exception, latency: float) -> ChatReply | None:
        """Return the refusal that an error is where a filter has refused a text."""
        if not isinstance(error, self._library.APIStatusError):
            return None
        return self.filtered_reply(Refused(error.status_code, error.body), latency)

    def filtered_reply(self, refused: Refused, latency: float = 0.0) -> ChatReply | None:
        """Return the refusal that an error is where a filter has refused a text."""
        if refused.status not in (400, 403):
            return None
        said = self.brief(_message_of(refused.body))
        if not _names_a_filter(refused.body) and _BLOCKED not in said:
            return None
        said = said or "refused by the filter of the endpoint"
        return ChatReply(f"HTTP {refused.status}: {said}", "", "refusal", latency=latency)

    def explained(self, error: Exception, request: ChatRequest) -> ChatError:
        """Return the fault that an exception of the client library stands for."""
        library = self._library
        if isinstance(error, library.APIStatusError):
            return self.of_status(
                Refused(error.status_code, error.body, error.response.headers), request.model
            )
        if isinstance(error, (library.APITimeoutError, TimeoutError)):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, library.APIConnectionError):
            return self.of_connection(error)
        if isinstance(error, library.APIError):  # an error event within a stream
            return ChatError(self.brief(error.message), may_cost=True)
        return self.of_other(error)

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

    def of_other(self, error: Exception) -> ChatError:
        """Return the fault of what is no error of the library: mostly a reply of another kind."""
        if isinstance(error, (ValueError, KeyError, TypeError, AttributeError)):
            return ChatError("the reply is no chat completion", "protocol", may_cost=True)
        words = str(error).strip()
        return ChatError(
            self.brief(f"{type(error).__name__}: {words}" if words else type(error).__name__),
            may_cost=True,
        )

    def of_status(self, refused: Refused, model: str) -> ChatError:
        """Return the fault of a reply that is an error."""
        status, codes, said = refused.status, refused.codes, self.brief(_message_of(refused.body))
        if not codes.isdisjoint(_OUT_OF_MONEY) or _NO_CREDIT in said:
            return ChatError(
                f"HTTP {status}: out of quota" + (f": {said}" if said else ""), "fatal"
            )
        within = next((_WITHIN[code] for code in codes if code in _WITHIN), 0)
        if status < 400 and within:
            limited: Kind = "limited" if within in _LIMITED else "transient"
            return ChatError(f"error within the stream: {said}", limited, may_cost=True)
        # Google says 400 of a wrong key.
        meant = 401 if "API_KEY_INVALID" in codes else status
        if meant in _FATAL:
            words = _FATAL[meant].format(
                variable=self._variable, model=model, protocol=self._protocol
            )
            # What is said about a wrong key often shows a part of it.
            more = f": {said}" if said and meant not in (401, 403) else ""
            if status == 404 and not said:
                upto = ", mostly up to /v1" if self._path == "/chat/completions" else ""
                more = f"; a base URL is what comes before {self._path}{upto}"
            # Some endpoints say 403 of a text that they will not have judged.
            kind: Kind = "forbidden" if status == 403 else "fatal"
            return ChatError(f"{words} (HTTP {status}){more}", kind)
        words = f"HTTP {status}" + (f": {said}" if said else "")
        if status in _TRANSIENT or status >= 500:
            return ChatError(
                words,
                "limited" if status in _LIMITED else "transient",
                retry_after=refused.retry_after,
                limits=RateLimits.of(refused.headers),
            )
        if status < 400:
            return ChatError(words, "protocol")
        option = _option_for(str(refused.error.get("param") or ""), said)
        return ChatError(words + (f"; {option} avoids it" if option else ""), "rejected")

    def unspoken(self, what: str, option: str) -> ChatError:
        """Return the fault of a request for something that the protocol has no word for."""
        return ChatError(
            f"the {self._protocol} protocol has no {what}; {option} avoids it", "fatal"
        )

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


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Mappings of a list; none of what is no list."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


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
