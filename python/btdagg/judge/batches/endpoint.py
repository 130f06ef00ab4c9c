"""Batches at an endpoint, in the formats of OpenAI and Anthropic."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from btdagg._core import InputError
from btdagg.judge.errors import ChatError, EndpointError, delay_before
from btdagg.judge.provider import ModelClient

if TYPE_CHECKING:
    from btdagg.judge.client import ChatRequest
    from btdagg.judge.store import Batch

_T = TypeVar("_T")

_MARK = "btdagg_batch"  # field of a batch's metadata
_PASSES = ("transient", "limited", "protocol")  # faults that may pass
_ATTEMPTS = 8
_PAGES = 50  # of batches, 100 each, that are looked through for one
_SYSTEM = ("system", "developer")  # roles of instructions, which have a field of their own
_SKEW = 600.0  # seconds by which clocks may differ
# Statuses of HTTP that Anthropic's errors would have.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


@dataclass(frozen=True)
class RemoteBatch:
    """How far a batch is at the endpoint: `done` of `total` requests; `said` is why it failed."""

    status: str
    has_ended: bool = False
    done: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    said: str = ""


class Result(NamedTuple):
    """What came of a request: a reply, or with an HTTP status of 0 why it was not asked."""

    key: str
    status: int
    body: Any


class BatchEndpoint:
    """Batches of OpenAI, and of the many servers with its API: a file is sent, then a batch made.

    Faults that pass are waited out, except when a batch may have been made: whether it was has to
    be looked up first.
    """

    has_marks = True  # by which a batch is known for sure

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.name = client.name
        self._draw = random.Random()

    @staticmethod
    def of(client: ModelClient) -> BatchEndpoint:
        """Return the endpoint of a client in its provider's format."""
        return AnthropicBatches(client) if client.provider == "anthropic" else BatchEndpoint(client)

    def line(self, key: str, body: Mapping[str, Any], request: ChatRequest) -> dict[str, Any]:
        """Return a request as files have it; `body` has the settings, `request` the messages."""
        asked = {**body, "messages": request.messages}
        return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": asked}

    async def upload(self, file: Path) -> str:
        """Send a file of requests; return what the endpoint calls it."""

        async def call() -> str:
            with file.open("rb") as opened:
                made = await self._call(
                    "POST",
                    "/files",
                    "id",
                    data={"purpose": "batch"},
                    files={"file": (file.name, opened)},
                )
            return str(made["id"])

        return await self.patiently(call)

    async def create(self, batch: Batch) -> str:
        """Make a batch of a file; return what the endpoint calls it.

        Raises
        ------
        ChatError
            If it was not made, or nobody knows.
        """
        key = Path(batch.file).name
        made = await self._call(
            "POST",
            "/batches",
            "id",
            json={
                "input_file_id": batch.input_file,
                "endpoint": "/v1/chat/completions",
                "completion_window": "24h",
                "metadata": {_MARK: key},
            },
            headers={"Idempotency-Key": key},
        )
        return str(made["id"])

    async def find(self, batch: Batch, taken: set[str]) -> str | None:
        """Return what the endpoint calls a batch, if it was made; others are `taken`.

        Raises
        ------
        EndpointError
            If it may be one of several.
        """
        found: list[str] = []
        after: dict[str, str] = {}
        for _ in range(_PAGES):
            page = await self.patiently(partial(self._listed, after))
            listed = page["data"] or ()
            mine = [str(each["id"]) for each in listed if self._is_of(batch, each)]
            found += [remote for remote in mine if remote not in taken]
            if (found and self.has_marks) or not listed or not page.get("has_more"):
                break
            after = {"after": listed[-1]["id"]}
        if len(found) > 1 and not self.has_marks:
            raise EndpointError(
                f"{self.name}: batch {batch.id} may be any of {', '.join(found)}, expected one "
                f"batch of {batch.n_requests} requests"
            )
        return found[0] if found else None

    async def look(self, remote: str) -> RemoteBatch:
        """Return how far a batch is.

        Raises
        ------
        ChatError
            Also for a fault that may pass.
        """
        batch = await self._call("GET", f"/batches/{remote}", "status")
        errors = (batch.get("errors") or {}).get("data") or ()
        said = "; ".join(f"{each.get('code')}: {each.get('message')}" for each in errors[:3])
        counts = batch.get("request_counts") or {}
        files = (batch.get("output_file_id"), batch.get("error_file_id"))
        return RemoteBatch(
            batch["status"],
            batch["status"] in ("completed", "failed", "expired", "cancelled"),
            counts.get("completed", 0) + counts.get("failed", 0),
            counts.get("total", 0),
            tuple(f"/files/{file}/content" for file in files if file),
            self.client.faults.brief(said),
        )

    async def cancel(self, remote: str) -> None:
        """Have a batch ended; what is answered by then can be collected."""
        await self.patiently(lambda: self._call("POST", f"/batches/{remote}/cancel", "id"))

    async def results(self, remote: RemoteBatch) -> dict[str, Result]:
        """Results of a batch by key, all that there are: what is missing would be bought again."""
        results: dict[str, Result] = {}
        for file in remote.files:
            for result in await self.patiently(partial(self._read, file)):
                results.setdefault(result.key, result)
        if len(results) < remote.done:
            raise EndpointError(
                f"{self.name}: {len(results)} results of {remote.done} requests that are done"
            )
        return results

    async def patiently(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Call until it works; a fault that does not pass is an error of the endpoint."""
        attempt = 0
        while True:
            try:
                return await call()
            except ChatError as fault:
                attempt += 1
                if not may_pass(fault) or attempt >= _ATTEMPTS:
                    raise EndpointError(f"{self.name}: {fault}") from None
                wait = fault.retry_after
                await asyncio.sleep(delay_before(attempt, self._draw) if wait is None else wait)

    # The format

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.client.key}"} if self.client.key else {}

    async def _listed(self, query: Mapping[str, str]) -> Any:
        return await self._call("GET", "/batches", "data", params={"limit": 100, **query})

    def _is_of(self, batch: Batch, listed: Mapping[str, Any]) -> bool:
        mark = (listed.get("metadata") or {}).get(_MARK)
        return listed.get("input_file_id") == batch.input_file or mark == Path(batch.file).name

    def _result(self, line: Mapping[str, Any]) -> Result:
        response = line.get("response")
        if response:
            status = int(response.get("status_code") or 200)
            return Result(str(line["custom_id"]), status, response.get("body"))
        return Result(str(line["custom_id"]), 0, line.get("error") or {})

    # HTTP

    async def _call(self, method: str, path: str, key: str, **options: Any) -> dict[str, Any]:
        """Make a request; return its reply, which has a key.

        Raises
        ------
        ChatError
            If there is none, or it is an error or something else.
        """
        try:
            reply = json.loads(await self._content(method, path, **options))
        except ValueError:
            raise ChatError("the reply is no JSON", "protocol", may_cost=True) from None
        if not isinstance(reply, dict) or key not in reply:
            raise ChatError(f"expected a reply with {key!r}", "protocol", may_cost=True)
        return reply

    async def _read(self, path: str) -> list[Result]:
        content, results = await self._content("GET", path), []
        for number, line in enumerate(content.splitlines(), 1):
            try:
                if line.strip():
                    results.append(self._result(json.loads(line)))
            except (KeyError, TypeError, AttributeError, ValueError):
                file = path.removeprefix("/files/").removesuffix("/content")
                raise EndpointError(
                    f"{self.name}: file {file}: line {number} is no result"
                ) from None
        return results

    async def _content(self, method: str, path: str, **options: Any) -> bytes:
        import httpx2

        headers = {**self._headers(), **options.pop("headers", {})}
        url = self.client.base_url.rstrip("/") + path
        fault: ChatError | None = None
        try:
            reply = await self.client.connections.request(method, url, headers=headers, **options)
            if reply.status_code < 400:
                return bytes(reply.content)
            try:
                body = reply.json()
            except ValueError:
                body = reply.text
            fault = self.client.faults.of_status(reply.status_code, body, dict(reply.headers))
        except httpx2.TimeoutException:
            fault = ChatError("time-out", may_cost=True)
        except httpx2.HTTPError as error:
            fault = self.client.faults.of_connection(error)
        fault.__context__ = None  # which has the key
        raise fault


class AnthropicBatches(BatchEndpoint):
    """Message batches of Anthropic, whose requests come with the call that makes them.

    They have no metadata: one that may have been made is guessed by when it was, and by its number
    of requests. Whether the guess is right its results say, whose keys no other batch has.
    """

    has_marks = False

    def line(self, key: str, body: Mapping[str, Any], request: ChatRequest) -> dict[str, Any]:
        """Return a request as files have it; `body` has the settings, `request` the messages."""
        system = [m["content"] for m in request.messages if m["role"] in _SYSTEM]
        others = [dict(m) for m in request.messages if m["role"] not in _SYSTEM]
        params = {name: value for name, value in body.items() if name != "system"}
        params |= {"system": "\n\n".join(system)} if system else {}
        return {"custom_id": key, "params": {**params, "messages": others}}

    async def upload(self, file: Path) -> str:
        """Nothing is sent before the batch is made."""
        return file.name

    async def create(self, batch: Batch) -> str:
        """Make a batch of a file; return what the endpoint calls it."""
        lines = Path(batch.file).read_bytes().splitlines()
        content = b'{"requests": [' + b",".join(lines) + b"]}"
        headers = {"Content-Type": "application/json", "Idempotency-Key": Path(batch.file).name}
        made = await self._call(
            "POST", "/v1/messages/batches", "id", content=content, headers=headers
        )
        return str(made["id"])

    async def look(self, remote: str) -> RemoteBatch:
        """Return how far a batch is."""
        batch = await self._call("GET", f"/v1/messages/batches/{remote}", "processing_status")
        counts = batch.get("request_counts") or {}
        status = batch["processing_status"]
        return RemoteBatch(
            status,
            status == "ended",
            counts.get("succeeded", 0) + counts.get("errored", 0),
            sum(counts.values()),
            (f"/v1/messages/batches/{remote}/results",) if status == "ended" else (),
        )

    async def cancel(self, remote: str) -> None:
        """Have a batch ended; what is answered by then can be collected."""
        path = f"/v1/messages/batches/{remote}/cancel"
        await self.patiently(lambda: self._call("POST", path, "id"))

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self.client.key, "anthropic-version": "2023-06-01"}

    async def _listed(self, query: Mapping[str, str]) -> Any:
        after = {"after_id": query["after"]} if query else {}
        params = {"limit": 100, **after}
        return await self._call("GET", "/v1/messages/batches", "data", params=params)

    def _is_of(self, batch: Batch, listed: Mapping[str, Any]) -> bool:
        made = datetime.fromisoformat(str(listed["created_at"]).replace("Z", "+00:00")).timestamp()
        n_requests = sum((listed.get("request_counts") or {}).values())
        return n_requests == batch.n_requests and made > batch.created - _SKEW

    def _result(self, line: Mapping[str, Any]) -> Result:
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return Result(key, 200, result["message"])
        if result["type"] != "errored":
            return Result(key, 0, {"code": result["type"]})
        error = result["error"]
        kind = (error.get("error") or error).get("type")
        return Result(key, _STATUSES.get(kind, 500), error)


def with_batches(client: object) -> ModelClient:
    """Refuse a client whose endpoint has no batches."""
    if not isinstance(client, ModelClient) or client.provider not in ("openai", "anthropic"):
        raise InputError("batches need a ModelClient of openai or anthropic as the client")
    return client


def may_pass(fault: ChatError) -> bool:
    """Whether a fault may pass, so that asking again can help."""
    return fault.kind in _PASSES
