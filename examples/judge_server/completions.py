"""The chat-completions protocol: from a request to a reply."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from email.utils import formatdate
from random import Random
from typing import Any

from btdagg.judge.simulated import (
    Habits,
    SimulatedAnswer,
    answer,
    digest,
    read,
    wanted_form,
)
from faults import draw
from records import Records, key_digest
from wire import Reply, Request

_REFUSAL = "I'm sorry, but I can't help with comparing these responses."
_UNDECIDED = (
    "Both responses have their merits. Response A is longer; Response B is more to the point."
)
_PAGE = b"<!doctype html><title>Welcome</title><p>Nothing to see here.</p>"


@dataclass(frozen=True)
class Options:
    """How the server behaves; see --help of the command line."""

    habits: Habits = field(default_factory=Habits)
    seed: int = 0
    model: str = "simulated-judge"
    api_key: str | None = None
    latency: float = 0.0
    faults: dict[str, float] = field(default_factory=dict)
    retry_after: float = 0.05
    retry_after_as_date: bool = False
    reasoning: str = "reasoning_content"
    honour_n: bool = True
    has_logprobs: bool = True


class Service:
    """Answers requests. What it answers depends on the seed, the messages and how often they came.

    At temperature 0 the answer does not depend on how often; faults always do.
    """

    def __init__(self, options: Options, records: Records) -> None:
        self._options = options
        self._records = records
        self._times_asked: Counter[bytes] = Counter()

    def handle(self, request: Request) -> Reply:
        self._records.begin()
        path = request.path.partition("?")[0].rstrip("/")
        if path == "/stats":
            return _json(200, self._records.stats())
        given = request.headers.get("authorization", "")
        wanted = self._options.api_key
        if wanted is not None and given != f"Bearer {wanted}":
            self._records.write(outcome="401", key=key_digest(given))
            key = given.removeprefix("Bearer ")  # echoed whole: clients must not pass that on
            return _error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        if path == "/v1/models" and request.method == "GET":
            listed = {"id": self._options.model, "object": "model", "created": 0, "owned_by": "-"}
            return _json(200, {"object": "list", "data": [listed]})
        if path != "/v1/chat/completions":
            self._records.write(outcome="404", path=path)
            return _error(404, f"No such path: {path}", "not_found")
        if request.method != "POST":
            return _error(405, "Want POST", "method_not_allowed")
        try:
            asked_for = json.loads(request.body)
            messages = asked_for["messages"]
            prompt = "\n\n".join(
                message["content"] for message in messages if message["role"] != "assistant"
            )
            last = messages[-1]["content"]
            n = int(asked_for.get("n") or 1)
            temperature = asked_for.get("temperature")
            temperature = 1.0 if temperature is None else float(temperature)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            self._records.write(outcome="400")
            return _error(400, "The body is no chat-completions request", "invalid_request")
        return self._complete(asked_for, messages, prompt, last, n, temperature, given)

    def _complete(
        self,
        request: dict[str, Any],
        messages: list[dict[str, str]],
        prompt: str,
        last: str,
        n: int,
        temperature: float,
        authorization: str,
    ) -> Reply:
        options = self._options
        key = digest(options.seed, temperature, *(message["content"] for message in messages))
        number = self._times_asked[key]
        self._times_asked[key] += 1
        seen = read(last)
        wanted = wanted_form(prompt, request.get("response_format"), seen)
        answers = []
        for choice in range(n if options.honour_n else 1):
            # One who asks for the same at temperature 0 is told the same.
            random = Random(digest(key, number if temperature > 0 else 0, choice))
            answers.append(
                answer(
                    seen,
                    wanted,
                    options.habits,
                    temperature=temperature,
                    random=random,
                    seed=options.seed,
                )
            )
        fault = draw(options.faults, Random(digest(key, number, "fault"))) if options.faults else ""
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        choices = [self._choice(each, fault, limit, request) for each in answers]
        cut = any(choice["finish_reason"] == "length" for choice in choices)
        said_nothing = fault in ("empty", "refusal", "unparsed")
        decisions = [] if said_nothing or cut else [each.decision for each in answers]
        n_examples = sum(message["role"] == "assistant" for message in messages)
        kind = "samples" if seen.samples else "pair" if seen.first or seen.second else "unread"
        self._records.write(
            outcome=fault or ("truncated" if cut else "ok"),
            kind=kind,
            first=seen.first[:40],
            second=seen.second[:40],
            temperature=temperature,
            n=n,
            n_examples=n_examples,
            n_samples=len(seen.samples),
            stream=bool(request.get("stream")),
            model=request.get("model"),
            prompt=key.hex(),
            time_asked=number,
            decisions=decisions,
            key=key_digest(authorization),
        )
        if fault == "429":
            return self._too_many()
        if fault == "500":
            return _error(500, "The judge has a headache.", "server_error", self._options.latency)
        if fault == "content-type":
            return Reply(200, _PAGE, "text/html", delay=options.latency)
        usage = self._usage(messages, choices)
        completion = {
            "id": f"chatcmpl-{key.hex()[:12]}{number}",
            "created": int(time.time()),
            "model": request.get("model") or options.model,
        }
        if request.get("stream"):
            include = (request.get("stream_options") or {}).get("include_usage")
            body = _events(completion, choices, usage if include else None)
            content_type = "text/event-stream"
        else:
            whole = completion | {"object": "chat.completion", "choices": choices, "usage": usage}
            body = json.dumps(whole).encode()
            content_type = "application/json"
        if fault == "malformed":
            body = body[: len(body) * 2 // 3]
        way = fault if fault in ("reset", "hang") else None
        return Reply(200, body, content_type, delay=options.latency, fault=way)

    def _choice(
        self, answer: SimulatedAnswer, fault: str | None, limit: int | None, request: dict[str, Any]
    ) -> dict[str, Any]:
        said = {"empty": "", "refusal": _REFUSAL, "unparsed": _UNDECIDED}.get(fault or "")
        text = answer.text if said is None else said
        reasoning = "" if fault in ("empty", "refusal") else answer.reasoning
        thinks = self._options.reasoning != "none" and reasoning != ""
        finish = "stop"
        n_words = _n_tokens(text) + (_n_tokens(reasoning) if thinks else 0)
        if fault == "truncated" or (limit is not None and n_words > limit):
            finish, text = "length", text[: max(len(text) // 2 - 8, 0)]
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if thinks and self._options.reasoning == "think":
            message["content"] = f"<think>\n{reasoning}\n</think>\n\n{text}"
        elif thinks:
            message[self._options.reasoning] = reasoning
        logprobs = None
        if request.get("logprobs") and self._options.has_logprobs:
            logprobs = {"content": _logprobs(answer._replace(text=text)), "refusal": None}
        return {
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": finish,
        }

    def _usage(
        self, messages: list[dict[str, str]], choices: list[dict[str, Any]]
    ) -> dict[str, Any]:
        for index, choice in enumerate(choices):
            choice["index"] = index
        prompt_tokens = sum(4 + _n_tokens(message["content"]) for message in messages)
        spoken = [choice["message"] for choice in choices]
        field = self._options.reasoning
        reasoning = sum(_n_tokens(message.get(field) or "") for message in spoken)
        completion = reasoning + sum(_n_tokens(message["content"]) for message in spoken)
        self._records.tokens.update(
            {"prompt": prompt_tokens, "completion": completion, "reasoning": reasoning}
        )
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": prompt_tokens + completion,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }

    def _too_many(self) -> Reply:
        wait = self._options.retry_after
        if self._options.retry_after_as_date:
            after = formatdate(time.time() + wait, usegmt=True)
        else:
            after = f"{wait:g}"
        return _error(429, "Too many requests.", "rate_limit_exceeded", after=after)


def _json(status: int, value: object) -> Reply:
    return Reply(status, json.dumps(value).encode())


def _error(status: int, message: str, code: str, delay: float = 0.0, after: str = "") -> Reply:
    error = {"error": {"message": message, "type": code, "param": None, "code": code}}
    headers = {"retry-after": after} if after else {}
    return Reply(status, json.dumps(error).encode(), headers=headers, delay=delay)


def _events(
    completion: dict[str, Any], choices: list[dict[str, Any]], usage: dict[str, Any] | None
) -> bytes:
    """Server-sent events, a few words each."""
    common = completion | {"object": "chat.completion.chunk"}

    def event(index: int, delta: dict[str, str], logprobs: Any, finish: str | None) -> bytes:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
        }
        return b"data: " + json.dumps(common | {"choices": [choice]}).encode() + b"\n\n"

    events = []
    for choice in choices:
        index = choice["index"]
        # The thought comes first.
        for name, text in sorted(choice["message"].items(), reverse=True):
            if name == "role":
                events.append(event(index, {"role": text, "content": ""}, None, None))
                continue
            step = max(24, len(text) // 8)
            for start in range(0, len(text), step):
                last = name == "content" and start + step >= len(text)
                logprobs = choice["logprobs"] if last else None
                events.append(event(index, {name: text[start : start + step]}, logprobs, None))
        events.append(event(index, {}, None, choice["finish_reason"]))
    if usage is not None:
        whole = common | {"choices": [], "usage": usage}
        events.append(b"data: " + json.dumps(whole).encode() + b"\n\n")
    return b"".join(events) + b"data: [DONE]\n\n"


def _n_tokens(text: str) -> int:
    return (len(text) + 3) // 4


def _logprobs(answer: SimulatedAnswer) -> list[dict[str, Any]]:
    def written(text: str, logprob: float) -> dict[str, Any]:
        return {"token": text, "logprob": logprob, "bytes": list(text.encode())}

    return [
        written(text, logprob)
        | {"top_logprobs": [written(*other) for other in alternatives.items()]}
        for text, logprob, alternatives in answer.tokens
    ]
