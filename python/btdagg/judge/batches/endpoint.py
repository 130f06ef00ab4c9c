"""Batches at an endpoint, in the formats of OpenAI and Anthropic."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from btdagg._util.errors import InputError
from btdagg._util.extensions import imported
from btdagg.judge.client import BATCHING, ChatError, ChatRequest
from btdagg.judge.dialects import WITH_TEMPERATURE, library_of
from btdagg.judge.faults import EndpointError
from btdagg.judge.provider import ModelClient

if TYPE_CHECKING:
    from btdagg.judge.store.owner import Batch

_MARK = "btdagg_batch"  # field of a batch's metadata
_RETRIES = 7
_PAGES = 50  # of batches, 100 each, that are looked through for one
_SYSTEM = ("system", "developer")  # roles of instructions, which have a field of their own
_SKEW = 600.0  # seconds by which clocks may differ
# Statuses of HTTP that Anthropic's errors of a request would have; others pass.
_STATUSES = {"invalid_request_error": 400, "request_too_large": 413}


_WRITTEN = re.compile(r"-batches/requests-[0-9a-f]{12}\.jsonl$")


def _requests_of(file: Path) -> bytes:
    """Return a file of requests; others that a store names are not read, also behind a link."""
    place = Path(os.path.realpath(file))
    if not _WRITTEN.search(place.as_posix()):
        raise EndpointError(f"{file} is not a file of requests that btdagg wrote; it is not sent")
    return place.read_bytes()


@dataclass(frozen=True)
class RemoteBatch:
    """How far a batch is at the endpoint: `done` of its requests; `reason` is why it failed."""

    status: str
    has_ended: bool = False
    done: int = 0
    files: tuple[str, ...] = ()
    reason: str = ""


class BatchResult(NamedTuple):
    """Outcome of a request: a reply, or with an HTTP status of 0 why it was not asked."""

    key: str
    status: int
    body: Any


class CallError(EndpointError):
    """A call that failed; `may_pass` says whether another can work."""

    def __init__(self, name: str, fault: ChatError) -> None:
        super().__init__(f"{name}: {fault}")
        self.may_pass = fault.kind in ("transient", "limited", "protocol")
        self.retry_after = fault.retry_after or 0.0


class BatchEndpoint:
    """Batches of OpenAI, and of servers with its API: a file is sent, then a batch made."""

    # The library repeats calls, except those that may have made a batch, which is looked up.

    has_marks = True  # by which a batch is known for sure
    _path, _after = "/batches", "after"
    _headers: Mapping[str, str] = {}

    def __init__(self, client: ModelClient) -> None:
        self.client, self.name = client, client.name
        library = library_of(client.provider, client.sending)
        self._library = library.with_options(default_headers=self._headers)
        self._errors = imported(client.provider)

    @staticmethod
    def of(client: object) -> BatchEndpoint:
        """Return the endpoint of a client in its provider's format."""
        if not isinstance(client, ModelClient) or client.provider not in BATCHING:
            expected = f"a ModelClient of {' or '.join(BATCHING)}"
            raise InputError(argument="client", got=client, expected=expected)
        return (AnthropicBatches if client.provider == "anthropic" else BatchEndpoint)(client)

    def line(self, key: str, body: Mapping[str, Any], request: ChatRequest) -> dict[str, Any]:
        """Return a request as files have it; `body` has the settings, `request` the messages."""
        sent = {**body, "messages": request.messages}
        return {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": sent}

    async def upload(self, file: Path) -> str:
        """Send a file of requests; return what the endpoint calls it."""
        files = {"file": (file.name, _requests_of(file))}
        options = {"headers": {"Content-Type": "multipart/form-data"}}
        sent: dict[str, Any] = {"body": {"purpose": "batch"}, "files": files, "options": options}
        return str((await self._once("post", "/files", **sent))["id"])

    async def create(self, batch: Batch) -> str:
        """Make a batch of a file; a `CallError` says that it was not made, or may have been."""
        content = {
            "input_file_id": batch.input_file,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_MARK: Path(batch.file).name},
        }
        return await self._created(batch, json.dumps(content).encode())

    async def find(self, batch: Batch, taken: set[str]) -> str | None:
        """Return what the endpoint calls a batch, if it was made; others are `taken`."""
        names: list[str] = []
        query: dict[str, Any] = {"limit": 100}
        for _ in range(_PAGES):
            page = await self._once("get", self._path, "data", options={"params": query})
            listed = page["data"] or ()
            names += [str(other["id"]) for other in listed if self._is_of(batch, other)]
            names = [name for name in names if name not in taken]
            if (names and self.has_marks) or not listed or not page.get("has_more"):
                break
            query[self._after] = listed[-1]["id"]
        if len(names) > 1 and not self.has_marks:
            raise EndpointError(
                f"{self.name}: batch {batch.id} may be any of {', '.join(names)}, expected one "
                f"batch of {batch.n_requests} requests"
            )
        return names[0] if names else None

    async def look(self, remote: str, *, is_patient: bool = True) -> RemoteBatch:
        """Return how far a batch is; unless patient, a fault is not waited out."""
        retries = _RETRIES if is_patient else 0
        batch = await self._once("get", f"{self._path}/{remote}", retries=retries)
        return self._state(batch, batch.get("request_counts") or {})

    async def cancel(self, remote: str) -> None:
        """Have a batch ended; what is answered by then can be collected."""
        await self._once("post", f"{self._path}/{remote}/cancel")

    async def results(self, remote: RemoteBatch) -> dict[str, BatchResult]:
        """Results of a batch by key, all that there are: what is missing would be bought again."""
        results: dict[str, BatchResult] = {}
        for path in remote.files:
            content = await self._once("get", path, "")
            for number, line in enumerate(content.splitlines(), 1):
                try:
                    result = self._result(json.loads(line))
                except (KeyError, TypeError, AttributeError, ValueError):
                    file = path.removeprefix("/files/").removesuffix("/content")
                    raise EndpointError(
                        f"{self.name}: file {file}: line {number} is not a result"
                    ) from None
                results.setdefault(result.key, result)
        if len(results) < remote.done:
            raise EndpointError(
                f"{self.name}: {len(results)} results for {remote.done} finished requests"
            )
        return results

    # The format

    def _state(self, batch: Mapping[str, Any], counts: Mapping[str, int]) -> RemoteBatch:
        errors = (batch.get("errors") or {}).get("data") or ()
        reason = "; ".join(f"{error.get('code')}: {error.get('message')}" for error in errors[:3])
        files = (batch.get("output_file_id"), batch.get("error_file_id"))
        return RemoteBatch(
            batch["status"],
            batch["status"] in ("completed", "failed", "expired", "cancelled"),
            counts.get("completed", 0) + counts.get("failed", 0),
            tuple(f"/files/{file}/content" for file in files if file),
            self.client.faults.brief(reason),
        )

    def _is_of(self, batch: Batch, other: Mapping[str, Any]) -> bool:
        mark = (other.get("metadata") or {}).get(_MARK)
        return other.get("input_file_id") == batch.input_file or mark == Path(batch.file).name

    def _result(self, line: Mapping[str, Any]) -> BatchResult:
        response = line.get("response")
        if response:
            status = int(response.get("status_code") or 200)
            return BatchResult(str(line["custom_id"]), status, response.get("body"))
        return BatchResult(str(line["custom_id"]), 0, line.get("error") or {})

    # Calls, by the provider's library

    async def _created(self, batch: Batch, content: bytes) -> str:
        headers = {"Content-Type": "application/json", "Idempotency-Key": Path(batch.file).name}
        options: dict[str, Any] = {"content": content, "options": {"headers": headers}}
        return str((await self._once("post", self._path, retries=0, **options))["id"])

    async def _once(
        self, method: str, path: str, key: str = "id", *, retries: int = _RETRIES, **options: Any
    ) -> Any:
        faults, library = self.client.faults, self._library.with_options(max_retries=retries)
        try:
            kind = object if key else bytes
            reply = await getattr(library, method)(path, cast_to=kind, **options)
            if not key or (isinstance(reply, dict) and key in reply):
                return reply
            fault = ChatError(f"expected a reply with {key!r}", "protocol", may_cost=True)
        except self._errors.APIStatusError as error:
            reply = error.response
            fault = faults.of_status(reply.status_code, error.body, dict(reply.headers))
        except self._errors.APITimeoutError:
            fault = ChatError("time-out", may_cost=True)
        except self._errors.APIConnectionError as error:
            fault = faults.of_connection(error)
        except ValueError:
            fault = ChatError("the reply is not JSON", "protocol", may_cost=True)
        raise CallError(self.name, fault)


class AnthropicBatches(BatchEndpoint):
    """Message batches of Anthropic, whose requests come with the call that makes them."""

    # They have no metadata: one that may have been made is guessed by its time and number of
    # requests, and confirmed by the keys of its results.

    has_marks = False
    _path, _after = "/v1/messages/batches", "after_id"
    _headers = WITH_TEMPERATURE

    def line(self, key: str, body: Mapping[str, Any], request: ChatRequest) -> dict[str, Any]:
        """Return a request as files have it; `body` has the settings, `request` the messages."""
        system = [m["content"] for m in request.messages if m["role"] in _SYSTEM]
        messages = [dict(m) for m in request.messages if m["role"] not in _SYSTEM]
        params = {name: value for name, value in body.items() if name != "system"}
        params |= {"system": "\n\n".join(system)} if system else {}
        return {"custom_id": key, "params": {**params, "messages": messages}}

    async def upload(self, file: Path) -> str:
        """Nothing is sent before the batch is made."""
        return file.name

    async def create(self, batch: Batch) -> str:
        """Make a batch of a file; return what the endpoint calls it."""
        requests = b",".join(_requests_of(Path(batch.file)).splitlines())
        return await self._created(batch, b'{"requests": [' + requests + b"]}")

    def _state(self, batch: Mapping[str, Any], counts: Mapping[str, int]) -> RemoteBatch:
        status = batch["processing_status"]
        has_ended = status == "ended"
        return RemoteBatch(
            status,
            has_ended,
            counts.get("succeeded", 0) + counts.get("errored", 0),
            (f"{self._path}/{batch['id']}/results",) if has_ended else (),
        )

    def _is_of(self, batch: Batch, other: Mapping[str, Any]) -> bool:
        made = datetime.fromisoformat(str(other["created_at"])).timestamp()
        n_requests = sum((other.get("request_counts") or {}).values())
        return n_requests == batch.n_requests and made > batch.created - _SKEW

    def _result(self, line: Mapping[str, Any]) -> BatchResult:
        key, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(key, 200, result["message"])
        if result["type"] != "errored":
            return BatchResult(key, 0, {"code": result["type"]})
        error = result["error"]
        kind = (error.get("error") or error).get("type")
        return BatchResult(key, _STATUSES.get(kind, 500), error)
