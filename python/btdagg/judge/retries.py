"""One request, as often as it takes, and when a run is given up.

Limits are waited for and faults repeated. A fault of the endpoint (its key, its model, a parameter
that it does not know) ends the run before any vote is marked; a fault of the pair (too long, not
allowed) marks the pair's votes. After a 403, a refusal without a reason, or where nobody is
answered, a short request that is the same except for its text settles which it is. If that is not
answered either, the run ends where nothing has worked yet; an endpoint that has worked is waited
for.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from btdagg._util.errors import InputError
from btdagg.judge.client import (
    ChatClient,
    ChatError,
    ChatReply,
    ChatRequest,
    Fault,
    Messages,
    current_request,
    rate_limits_of,
    seconds_of,
)
from btdagg.judge.judging import Judging
from btdagg.judge.pacing import AdmittedCall, Pacing
from btdagg.judge.pairs import Pair
from btdagg.judge.prices import BYTES_PER_TOKEN, size_of
from btdagg.judge.runs import Budget, JudgeRun

# Faults in a row of one request, or seconds until a fault, after which a short request is made if
# nobody was answered meanwhile.
_FAULTS_IN_A_ROW, _LONG = 3, 30.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 60.0  # seconds at most before a request is repeated
_REFUSALS_IN_A_ROW = 32  # at least, after which one that has worked is tried by a short request
_LOOK_AGAIN = (1.0, 15.0)  # seconds, at first and at most, between looks at one that is away
_SAID_AFTER = 2.0  # seconds without an answer, after which the last fault is said
_OF_THE_REQUEST = ("rejected", "forbidden")  # kinds of faults that another request may not have


class Asker:
    """Makes the requests of a run.

    `run` counts calls, tokens and cost; `budget` holds the caps, of this process or of all that
    share them; `halt` ends the run, with a reason and an error. Once `stopping` is set no further
    request is made.
    """

    def __init__(
        self,
        client: ChatClient,
        judging: Judging,
        pacing: Pacing,
        run: JudgeRun,
        budget: Budget,
        *,
        halt: Callable[[str, Exception | None], None],
    ) -> None:
        self.stopping = asyncio.Event()
        self._budget = budget
        self._client, self._judging, self._pacing = client, judging, pacing
        self._run, self._halt = run, halt
        self._name = getattr(client, "name", "") or f"judge {judging.setup.judge}"
        self._most_in_a_row = max(_REFUSALS_IN_A_ROW, 2 * judging.limits.concurrency)
        self._refusals = 0  # in a row
        # The last refusal that might be of every request, and the last call that worked, by when
        # it was made.
        self._forbidden_at = self._worked_at = -math.inf
        self._one_canary = asyncio.Lock()
        self._answers = 0  # whose tokens are known
        self._draw = random.Random()
        self._clock = asyncio.get_running_loop().time
        self._limited_by = ""
        self._troubled: tuple[float, str, int] | None = None  # since when, by what, how often
        self._answered_at = -math.inf  # the last time that the endpoint was at work
        self._back_at = -math.inf  # the last time that it was seen to be back
        self._is_away = False

    async def ask(self, request: ChatRequest) -> tuple[ChatReply | ChatError | None, int]:
        """Return an answer or a fault that asking again does not help, and the number of requests.

        The outcome is None where the run ends before.
        """
        size = size_of(request.messages)
        n_requests = n_faults = 0
        since = self._clock()  # the last fault
        while True:
            outcome = await self._once(request, size, is_repeated=n_requests > 0)
            if outcome is None:
                return None, n_requests
            n_requests += 1
            if isinstance(outcome, ChatReply):
                return outcome, n_requests
            if outcome.is_limit:
                continue
            if outcome.kind in _OF_THE_REQUEST:
                self._refusals += 1
                if outcome.kind == "forbidden":
                    self._forbidden_at = self._clock()
                if not self._is_trusted:
                    await self._try_a_short_request(request)
                    if self.stopping.is_set():
                        return None, n_requests
                self._run.n_pair_faults += 1
                return outcome, n_requests
            n_faults += 1
            is_last = n_faults >= self._judging.max_attempts
            is_telling = n_faults >= _FAULTS_IN_A_ROW or self._clock() - since > _LONG
            # Others may have been answered just before the endpoint went away: whoever would give
            # up looks anew.
            if is_last or (is_telling and self._answered_at < since):
                await self._try_a_short_request(request, self._clock())
                if self.stopping.is_set():
                    return None, n_requests
                was_away = self._back_at >= since
                if is_last and not was_away:
                    return outcome, n_requests
                n_faults = 0 if was_away else n_faults
            since = self._clock()
            longest = min(_FIRST_DELAY * 2.0 ** (n_faults - 1), _LONGEST_DELAY)
            await self.sleep(self._draw.uniform(0, longest))

    async def _try_a_short_request(self, request: ChatRequest, now: float | None = None) -> None:
        """End the run if a short request is refused, too; others may have been answered since."""
        async with self._one_canary:
            is_settled = self._is_trusted if now is None else self._answered_at >= now
            if self.stopping.is_set() or is_settled:
                return
            outcome = await self._outcome_of_short_request(request)
            if isinstance(outcome, ChatError) and not self._is_trusted:
                self._end(f"refuses a short request, too: {outcome}")

    async def _outcome_of_short_request(self, request: ChatRequest) -> ChatReply | ChatError | None:
        """Ask about a short pair until the endpoint says something; None if the run ends.

        An endpoint that has never worked has to answer at once.
        """
        canary = replace(request, messages=self._short_messages(), item="", order=None, sample=None)
        size = size_of(canary.messages)
        wait, longest = _LOOK_AGAIN
        try:
            while True:
                outcome = await self._once(canary, size)
                if outcome is None:
                    return None
                self._run.n_canaries += 1
                if isinstance(outcome, ChatReply) or outcome.kind in _OF_THE_REQUEST:
                    return outcome
                if outcome.is_limit:
                    continue
                since, fault, n_faults = self._troubled or (self._clock(), str(outcome), 1)
                if not self._pacing.has_worked:
                    self._end(f"{fault}; none of {n_faults} requests worked")
                    return None
                away_for, longest_away = self._clock() - since, self._judging.limits.max_wait
                if away_for >= longest_away:
                    self._end(
                        f"no answer for {_duration(away_for)} ({fault}); max_wait is "
                        f"{_duration(longest_away)}"
                    )
                    return None
                self._is_away = True
                await self.sleep(min(self._draw.uniform(wait / 2, wait), longest_away - away_for))
                wait = min(2 * wait, longest)
        finally:
            if self._is_away:
                self._is_away, self._back_at = False, self._clock()

    @property
    def _is_trusted(self) -> bool:
        """Whether others are answered, so that a refusal is of its own request."""
        is_doubtful = self._refusals > self._most_in_a_row or self._worked_at < self._forbidden_at
        return self._pacing.has_worked and not is_doubtful

    def state(self) -> tuple[str, float]:
        """What is waited for, empty for nothing, and the seconds that are left."""
        closed_for = self._pacing.closed_for
        if closed_for > 0 and self._limited_by:
            return f"rate limit ({self._limited_by})", closed_for
        now = self._clock()
        if self._troubled is not None and now - self._troubled[0] > _SAID_AFTER:
            since, fault, n_faults = self._troubled
            if self._is_away:
                return f"endpoint to come back ({fault}; away for {_duration(now - since)})", 0.0
            return f"answer ({fault}; {n_faults} calls in a row)", 0.0
        return "", 0.0

    # One request

    async def _once(
        self, request: ChatRequest, size: int, *, is_repeated: bool = False
    ) -> ChatReply | ChatError | None:
        """Make a request as soon as one may be made; None where the run ends."""
        reserved = await self._budget.take(size)
        if reserved is None:
            self._halt(self._budget.reached, None)
            return None
        completion = self._run.completion_tokens / self._answers if self._answers else 0.0
        call = None
        try:
            call = await self._pacing.admit(size / BYTES_PER_TOKEN + completion, self.stopping)
        finally:
            if call is None:
                self._budget.give_back(reserved)
        if call is None:
            return None
        self._run.n_calls += 1
        self._run.n_retries += is_repeated
        outcome: ChatReply | ChatError | None = None
        began = self._clock()
        try:
            outcome = await self._outcome(request)
        finally:
            self._settle(outcome, call, reserved)
        if isinstance(outcome, ChatReply):
            self._pacing.has_worked = True
            self._worked_at = max(self._worked_at, began)
            self._refusals = 0
        elif outcome.is_limit:
            self._refused(outcome, call)
            return outcome
        elif outcome.kind == "fatal":
            self._end(str(outcome))
            return None
        elif outcome.kind not in _OF_THE_REQUEST:
            since, _, n_faults = self._troubled or (self._clock(), "", 0)
            self._troubled = since, str(outcome), n_faults + 1
            return outcome
        self._troubled, self._answered_at = None, self._clock()
        return outcome

    async def _outcome(self, request: ChatRequest) -> ChatReply | ChatError:
        current_request.set(request)
        try:
            async with asyncio.timeout(self._judging.timeout):
                return await self._client.complete(request)
        except ChatError as fault:
            return fault
        except TimeoutError:
            words = f"no complete answer within {self._judging.timeout:g} s"
        except Exception as error:
            words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return ChatError(words, may_cost=True)

    def _settle(
        self, outcome: ChatReply | ChatError | None, call: AdmittedCall, reserved: float
    ) -> None:
        """Count what a call used; one that was interrupted has no outcome."""
        usage = outcome.usage if isinstance(outcome, ChatReply) else None
        tokens = None
        if usage is not None:
            tokens = usage.prompt + usage.completion
            self._answers += 1
            self._budget.settle(reserved, self._run.count_usage(usage, self._judging.prices))
        else:
            self._run.n_unknown_usage += isinstance(outcome, ChatReply)
            # What it used nobody knows; where it may have cost something, all that it could.
            is_free = isinstance(outcome, ChatError) and not outcome.may_cost
            self._budget.settle(reserved, 0.0 if is_free else reserved)
        self._run.charged_cost = self._budget.cost
        if not (isinstance(outcome, ChatError) and outcome.is_limit):
            self._pacing.answered(call, tokens, outcome.limits if outcome else None)

    def _refused(self, fault: ChatError, call: AdmittedCall) -> None:
        """Note a limit; end the run where it is one that is not waited for."""
        self._run.n_limited += 1
        self._limited_by = str(fault)
        seconds = self._pacing.refused(
            call,
            retry_after=fault.retry_after,
            of_tokens="token" in str(fault).lower(),
            limits=fault.limits,
        )
        longest = self._judging.limits.max_wait
        if max(seconds, fault.retry_after or 0.0) > longest:
            wait = _duration(fault.retry_after or seconds)
            self._end(f"asks to wait {wait} ({fault}); max_wait is {_duration(longest)}")

    # Faults

    def _end(self, why: str) -> None:
        self._halt(why, EndpointError(f"{self._name}: {why}"))

    def _short_messages(self) -> Messages:
        """The prompt of a pair that no endpoint could have anything against."""
        prompt = self._judging.prompt
        fields = dict.fromkeys(prompt.placeholders, "text")
        pair = Pair("canary", "Yes.", "No.", "Is 2 more than 1?", "Yes.", fields)
        return self._judging.messages(prompt.render(pair))

    async def sleep(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} minutes"


# What went wrong with a request: messages are one line without any part of a key

_LONGEST_MESSAGE = 200
_OUT_OF_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
# Codes of filters, however deep in the body of an error, and Anthropic's words, without a code.
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_BLOCKED = "blocked by content filtering policy"


class EndpointError(InputError):
    """No further call can work: a wrong key, no such model, an endpoint that is not one."""


class Faults:
    """Puts the errors of pydantic-ai, and of the libraries under it, into words.

    No message shows one of the `keys`; `variable` is the environment variable that holds the key,
    and `address` a base URL of the provider.
    """

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
            words, kind = f"the reply is no chat completion{shown}", "protocol"
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

    def of_redirection(self, target: str) -> ChatError:
        """Return the fault of a reply that points elsewhere, where neither key nor texts go."""
        words = f"redirects to {self.brief(target)}, which is not followed; give a base URL there"
        return ChatError(words, "fatal")

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
        elif status == 404:
            more = more or f"; a base URL is one such as {self._address}"
            words = f"knows no such path or no model {model!r} (HTTP 404){more}"
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
    if status in (429, 529):
        return "limited"
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return "transient"
    if status == 403:  # some say so of a text that they will not have judged
        return "forbidden"
    return "fatal" if status in (401, 404, 405, 501) else "rejected"


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
    """Return a message without words that begin or end as a secret, or have the form of a key."""

    def hide(match: re.Match[str]) -> str:
        word = match[0].strip("*.…")
        is_echo = any(word.startswith(s[:_CUT]) or word.endswith(s[-_CUT:]) for s in secrets)
        return _HIDDEN if is_echo else match[0]

    return _KEY_SHAPED.sub(_HIDDEN, _WORD.sub(hide, text))
