"""The protocols that judges are asked by: the same endpoint in the words of each.

An endpoint is a function from what was asked (`Question`) to what is answered (`Answer`, `Fault`,
an exception, or a reply of httpx2 as it is). It sits behind a mock transport of the library.
"""

import json
from dataclasses import dataclass, field
from typing import ClassVar

import httpx2

from btdagg.judge.provider import ModelClient

KEY = "sk-of-the-tests-0123456789"


@dataclass
class Question:
    """A request: its model, the text of its last message, and all of it."""

    model: str
    text: str
    body: dict
    headers: dict = field(default_factory=dict)


@dataclass
class Answer:
    text: str = "[[A]]"
    finish: str = "stop"  # length, refused, blocked (before there was an answer)
    thought: str = ""
    prompt: int = 10  # tokens, of which some were cached
    completion: int = 5  # of which some are thinking
    reasoning: int = 0
    cached: int = 0


@dataclass
class Fault:
    status: int
    said: str = ""
    kind: str = ""  # wrong_key, quota, filter
    retry_after: float | None = None


class Dialect:
    """A protocol."""

    finish: ClassVar[dict]  # from ours to theirs

    def __init__(self, name, variable, address):
        self.name, self.variable, self.address = name, variable, address

    def __repr__(self):
        return self.name

    def client_of(self, *address, **options):
        return ModelClient(self.name, *address, **options)

    def client(self, answer, **options):
        """A client whose endpoint answers so; `client.asked` has what it was asked."""
        asked = []

        async def handle(request):
            body = json.loads(request.content)
            question = self.question(request, body)
            asked.append(question)
            said = answer(question)
            if isinstance(said, Exception):
                raise said
            if isinstance(said, httpx2.Response):
                return said
            if isinstance(said, Fault):
                headers = {} if said.retry_after is None else self.waiting(said.retry_after)
                return httpx2.Response(said.status, json=self.error(said), headers=headers)
            if self.is_streamed(request, body):
                return self.streamed(self.events(said))
            return httpx2.Response(200, json=self.reply(said))

        options = {"key_variable": self.variable, **options}
        made = self.client_of(self.address, transport=httpx2.MockTransport(handle), **options)
        made.asked = asked
        return made

    def waiting(self, seconds):
        return {"retry-after": str(seconds)}

    def is_streamed(self, request, body):
        return bool(body.get("stream"))

    def streamed(self, events):
        lines = "".join(
            f"event: {e.get('type', 'message')}\ndata: {json.dumps(e)}\n\n" for e in events
        )
        return httpx2.Response(200, text=lines, headers={"content-type": "text/event-stream"})


class OpenAI(Dialect):
    finish: ClassVar = {"refused": "content_filter", "blocked": "content_filter"}

    def question(self, request, body):
        return Question(body["model"], body["messages"][-1]["content"], body, request.headers)

    def usage(self, said):
        return {
            "prompt_tokens": said.prompt,
            "completion_tokens": said.completion,
            "total_tokens": said.prompt + said.completion,
            "completion_tokens_details": {"reasoning_tokens": said.reasoning},
            "prompt_tokens_details": {"cached_tokens": said.cached},
        }

    def reply(self, said):
        message = {"role": "assistant", "content": said.text, "reasoning_content": said.thought}
        finish = self.finish.get(said.finish, said.finish)
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {"id": "1", "model": "m", "choices": [choice], "usage": self.usage(said)}

    def events(self, said):
        delta = {"content": said.text, "reasoning_content": said.thought}
        finish = self.finish.get(said.finish, said.finish)
        yield {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta}]}
        end = {"index": 0, "delta": {}, "finish_reason": finish}
        yield {"id": "1", "model": "m", "choices": [end]}
        yield {"id": "1", "model": "m", "choices": [], "usage": self.usage(said)}

    def streamed(self, events):
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        lines += "data: [DONE]\n\n"
        return httpx2.Response(200, text=lines, headers={"content-type": "text/event-stream"})

    def error(self, fault):
        codes = {"quota": "insufficient_quota", "filter": "content_filter"}
        return {"error": {"message": fault.said, "code": codes.get(fault.kind)}}


class Anthropic(Dialect):
    finish: ClassVar = {
        "stop": "end_turn",
        "length": "max_tokens",
        "refused": "refusal",
        "blocked": "refusal",
    }

    def question(self, request, body):
        blocks = body["messages"][-1]["content"]
        return Question(body["model"], blocks[-1]["text"], body, request.headers)

    def usage(self, said):
        return {
            "input_tokens": said.prompt - said.cached,
            "cache_read_input_tokens": said.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": said.completion,
            "output_tokens_details": {"thinking_tokens": said.reasoning},
        }

    def message(self, said, **fields):
        return {"id": "1", "type": "message", "role": "assistant", "model": "m", **fields}

    def blocks(self, said):
        if said.thought:
            yield {"type": "thinking", "thinking": said.thought, "signature": "s"}
        if said.finish not in ("refused", "blocked"):
            yield {"type": "text", "text": said.text}

    def ending(self, said):
        details = {"type": "refusal", "category": "cyber", "explanation": "It could harm."}
        refused = said.finish in ("refused", "blocked")
        return {
            "stop_reason": self.finish[said.finish],
            "stop_sequence": None,
            "stop_details": details if refused else None,
        }

    def reply(self, said):
        content, usage = list(self.blocks(said)), self.usage(said)
        return self.message(said, content=content, usage=usage, **self.ending(said))

    def events(self, said):
        begun = {**self.usage(said), "output_tokens": 1}
        begun.pop("output_tokens_details")
        message = self.message(said, content=[], usage=begun, stop_reason=None, stop_sequence=None)
        yield {"type": "message_start", "message": message}
        for index, block in enumerate(self.blocks(said)):
            kind = block["type"]
            empty = {**block, kind: ""}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            for part in (block[kind][:2], block[kind][2:]):
                delta = {"type": f"{kind}_delta", kind: part}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": self.ending(said), "usage": self.usage(said)}
        yield {"type": "message_stop"}

    def error(self, fault):
        if fault.kind == "quota":
            said = "Your credit balance is too low to access the Anthropic API."
        elif fault.kind == "filter":
            said = "Output blocked by content filtering policy"
        else:
            said = fault.said
        return {"type": "error", "error": {"type": "invalid_request_error", "message": said}}


class Gemini(Dialect):
    finish: ClassVar = {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}

    def question(self, request, body):
        model = request.url.path.rpartition("/")[2].partition(":")[0]
        return Question(model, body["contents"][-1]["parts"][-1]["text"], body, request.headers)

    def is_streamed(self, request, body):
        return "streamGenerateContent" in request.url.path

    def usage(self, said):
        return {
            "promptTokenCount": said.prompt,
            "candidatesTokenCount": said.completion - said.reasoning,
            "thoughtsTokenCount": said.reasoning,
            "cachedContentTokenCount": said.cached,
            "totalTokenCount": said.prompt + said.completion,
        }

    def reply(self, said):
        usage = self.usage(said)
        if said.finish == "blocked":
            feedback = {"blockReason": "PROHIBITED_CONTENT"}
            return {"promptFeedback": feedback, "usageMetadata": usage, "modelVersion": "m"}
        parts = [{"text": said.thought, "thought": True}] if said.thought else []
        if said.finish != "refused":
            parts.append({"text": said.text})
        content = {"role": "model", "parts": parts}
        finish = self.finish[said.finish]
        candidate = {"index": 0, "content": content, "finishReason": finish}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}

    def events(self, said):
        whole = self.reply(said)
        if "candidates" in whole:
            (candidate,) = whole["candidates"]
            for part in candidate["content"]["parts"]:
                for text in (part["text"][:2], part["text"][2:]):
                    content = {"role": "model", "parts": [{**part, "text": text}]}
                    yield {"candidates": [{"index": 0, "content": content}], "modelVersion": "m"}
            candidate.pop("content")
        yield whole

    def streamed(self, events):
        lines = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)
        return httpx2.Response(200, text=lines, headers={"content-type": "text/event-stream"})

    def waiting(self, seconds):
        return {}

    def error(self, fault):
        details = []
        if fault.retry_after is not None:
            named = "type.googleapis.com/google.rpc.RetryInfo"
            details.append({"@type": named, "retryDelay": f"{fault.retry_after:g}s"})
        if fault.kind == "wrong_key":
            named = "type.googleapis.com/google.rpc.ErrorInfo"
            details.append({"@type": named, "reason": "API_KEY_INVALID"})
        status = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED"}.get(fault.status, "UNKNOWN")
        told = {"code": fault.status, "message": fault.said, "status": status, "details": details}
        return {"error": told}


DIALECTS = [
    OpenAI("openai", "OPENAI_API_KEY", "http://judge.test/v1"),
    Anthropic("anthropic", "ANTHROPIC_API_KEY", "http://judge.test"),
    Gemini("google", "GEMINI_API_KEY", "http://judge.test"),
]
