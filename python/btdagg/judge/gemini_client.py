"""Google's Gemini API, through `google.genai`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from btdagg.addresses import without_credentials
from btdagg.extras import needs
from btdagg.judge.chat_replies import together
from btdagg.judge.client import ChatReply, ChatRequest, Usage
from btdagg.judge.endpoint_client import EndpointClient, key_of, require_address
from btdagg.judge.endpoint_faults import Faults, Refused
from btdagg.judge.retry import ChatError

if TYPE_CHECKING:
    import httpx2
    from google import genai

KEY_VARIABLE = "GEMINI_API_KEY"

_PATH = "/v1beta"
_OWN = "https://generativelanguage.googleapis.com"
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
# Why an answer was held back, wholly or from some place on.
_FILTERED = (
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION",
    "MODEL_ARMOR", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip


class GeminiClient(EndpointClient):
    """A client of the Gemini API.

    The API keeps by itself what prompts have in common, and says how many tokens it had. Retries
    are left to whoever calls.

    Parameters
    ----------
    base_url : str, optional
        Of another endpoint with this API.
    key_variable : str
        Name of the environment variable that holds the key.
    stream : bool
        Ask for answers in parts, which keeps connections from going idle while a model thinks.
    timeout : float
        Seconds to wait for a connection or for further bytes.
    transport : httpx2.AsyncBaseTransport, optional
        How requests are sent, in place of connections; such as a mock.

    Raises
    ------
    InputError
        If there is no key, or the address is none.
    MissingExtraError
        If google-genai is not installed.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        key_variable: str = KEY_VARIABLE,
        stream: bool = False,
        timeout: float = 600.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        with needs("gemini", "asking the Gemini API"):
            import httpx2  # noqa: F401
            from google import genai  # noqa: F401
        if base_url is not None:
            require_address(base_url, _PATH, _OWN)
        self._key = key_of(key_variable, is_wanted=True)
        self._base_url = base_url or _OWN
        faults = Faults(self._key, key_variable, None, "Gemini", _PATH)
        super().__init__(faults, stream=stream, timeout=timeout, transport=transport)
        self.name = without_credentials(self._base_url)

    def _library_client(self, http_client: httpx2.AsyncClient) -> genai.Client:
        from google import genai
        from google.genai.types import HttpOptions

        # Without options for retries there are none.
        options = HttpOptions(
            base_url=self._base_url,
            api_version=_PATH.strip("/"),
            httpx_async_client=http_client,
            timeout=math.ceil(1000 * self._timeout),
        )
        return genai.Client(api_key=self._key, enterprise=False, http_options=options)

    async def _closed(self, client: genai.Client) -> None:
        await client.aio.aclose()
        client.close()

    # Requests

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        system, contents = _contents_of(request.messages)
        config: dict[str, Any] = {
            "system_instruction": system or None,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "max_output_tokens": request.max_tokens,
            "seed": request.seed,
            "candidate_count": request.n if request.n > 1 else None,
            "response_logprobs": True if request.logprobs else None,
        }
        if request.thinking_budget is not None or request.reasoning_effort is not None:
            config["thinking_config"] = {
                "include_thoughts": True,
                "thinking_budget": request.thinking_budget,
                "thinking_level": request.reasoning_effort,
            }
        schema = (request.response_format or {}).get("json_schema", {}).get("schema")
        if request.response_format is not None:
            config["response_mime_type"] = "application/json"
            config["response_json_schema"] = schema
        if request.extra:
            config["http_options"] = {"extra_body": dict(request.extra)}
        config = {name: value for name, value in config.items() if value is not None}
        # Otherwise the library would make several requests of one, and so count none of them.
        config["automatic_continuation"] = False
        return {"model": request.model, "contents": contents, "config": config}

    def _explained(self, error: Exception, request: ChatRequest) -> ChatError:
        import httpx2
        from google.genai.errors import APIError

        if isinstance(error, APIError):
            headers = getattr(error.response, "headers", {})
            return self._faults.of_status(
                Refused(error.code, error.details, headers), request.model
            )
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            return ChatError("time-out", may_cost=True)
        if isinstance(error, httpx2.TransportError):
            return self._faults.of_connection(error)
        return self._faults.of_other(error)

    # Replies

    async def _answered(
        self, client: genai.Client, body: dict[str, Any], began: float
    ) -> ChatReply:
        response = await client.aio.models.generate_content(**body)
        return self._reply([response], time.perf_counter() - began)

    async def _streamed(
        self, client: genai.Client, body: dict[str, Any], began: float
    ) -> ChatReply:
        stream = await client.aio.models.generate_content_stream(**body)
        chunks = [chunk async for chunk in stream]
        reply = self._reply(chunks, time.perf_counter() - began)
        if not all(each.finish_reason for each in (reply, *reply.further)):
            raise ChatError("the stream broke off", may_cost=True)
        return reply

    def _reply(self, chunks: Sequence[Any], latency: float) -> ChatReply:
        usage = next((_usage_of(c.usage_metadata) for c in chunks[::-1] if c.usage_metadata), None)
        model = next((c.model_version for c in chunks if c.model_version), "")
        by_place: dict[int, list[Any]] = {}
        for chunk in chunks:
            feedback = chunk.prompt_feedback
            if feedback is not None and feedback.block_reason is not None:
                said = feedback.block_reason_message or "the prompt was blocked"
                text = f"{feedback.block_reason.value}: {said}"
                return self._made(text, "", "refusal", usage, None, latency, model)
            for candidate in chunk.candidates or ():
                by_place.setdefault(candidate.index or 0, []).append(candidate)
        if not by_place:
            raise ChatError("the reply has no candidate", "protocol", may_cost=True)
        return together(
            [
                self._candidate(parts, usage if n == 0 else None, latency, model)
                for n, (_, parts) in enumerate(sorted(by_place.items()))
            ]
        )

    def _candidate(
        self, parts: Sequence[Any], usage: Usage | None, latency: float, model: str
    ) -> ChatReply:
        """Return the answer of a candidate that came in so many parts."""
        said: tuple[list[str], list[str]] = ([], [])
        logprobs: list[float] = []
        reason = explanation = ""
        for candidate in parts:
            content = candidate.content
            for part in (content.parts if content is not None else None) or ():
                said[bool(part.thought)].append(part.text or "")
            if candidate.logprobs_result is not None:
                chosen = candidate.logprobs_result.chosen_candidates or ()
                logprobs += [each.log_probability for each in chosen]
            if candidate.finish_reason is not None:
                reason = candidate.finish_reason.value
                explanation = candidate.finish_message or ""
        text = "".join(said[0])
        finish = _FINISH.get(reason, reason.lower())
        if reason in _FILTERED:
            finish = "refusal"
            text = f"{reason}: {explanation or 'the answer was held back'}"
        return self._made(
            text, "".join(said[1]), finish, usage, tuple(logprobs) or None, latency, model
        )


def _contents_of(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the parts of the instructions, and the turns of the conversation."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part["text"] for part in content]
        parts = [{"text": text} for text in texts]
        if message["role"] in ("system", "developer"):
            system += parts
        else:
            role = "model" if message["role"] == "assistant" else "user"
            turns.append({"role": role, "parts": parts})
    return system, turns


def _usage_of(usage: Any) -> Usage:
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        usage.prompt_token_count or 0,
        (usage.candidates_token_count or 0) + thoughts,
        thoughts,
        usage.cached_content_token_count or 0,
    )
