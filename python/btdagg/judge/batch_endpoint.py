"""The part of OpenAI's API that has requests asked by the file, at half the price."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from btdagg.judge.batch_files import REQUESTS_PATH
from btdagg.judge.errors import ChatError, EndpointError, delay_before

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from btdagg.judge.provider import ModelClient

_T = TypeVar("_T")

_MARK = "btdagg_batch"  # field of a batch's metadata
_ENDED = ("completed", "failed", "expired", "cancelled")
_ATTEMPTS = 8
_PAGES = 50  # of batches, 100 each, that are looked through for one


@dataclass(frozen=True)
class RemoteBatch:
    """A batch as the endpoint has it.

    Attributes
    ----------
    status : str
    files : tuple of str
        What it calls the files of results, answers and errors.
    said : str
        Why it failed, if it did.
    done, total : int
        Requests.
    """

    status: str
    files: tuple[str, ...]
    said: str
    done: int
    total: int

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in _ENDED


class BatchEndpoint:
    """Files and batches of an endpoint.

    Faults that pass are waited out, but for that of a batch that may have been made: whether it was
    has to be looked up first.

    Parameters
    ----------
    client : ModelClient
        Not closed.
    """

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.name = client.name
        self._draw = random.Random()

    async def upload(self, file: Path, name: str) -> str:
        """Send a file of requests; what the endpoint calls it.

        Raises
        ------
        OSError
            If it cannot be read.
        """

        async def call(library: Any) -> Any:
            opened.seek(0)
            return await library.files.create(file=(name, opened), purpose="batch")

        with file.open("rb") as opened:
            return str((await self._patiently(call)).id)

    async def create(self, input_file: str, key: str) -> str:
        """Have a file asked; what the endpoint calls the batch.

        Raises
        ------
        ChatError
            If it was not made, or nobody knows.
        """
        made = await self._once(
            lambda library: library.batches.create(
                input_file_id=input_file,
                endpoint=REQUESTS_PATH,
                completion_window="24h",
                metadata={_MARK: key},
                extra_headers={"Idempotency-Key": key},
            )
        )
        return str(made.id)

    async def find(self, input_file: str, key: str) -> str | None:
        """Return what the endpoint calls the batch of a file, if there is one."""
        after: Any = None
        for _ in range(_PAGES):
            options = {"limit": 100} | ({"after": after} if after else {})
            page = await self._patiently(partial(_listed, **options))
            for each in page.data or ():
                if each.input_file_id == input_file or (each.metadata or {}).get(_MARK) == key:
                    return str(each.id)
            if not page.data or not getattr(page, "has_more", False):
                return None
            after = page.data[-1].id
        return None

    async def look(self, remote: str) -> RemoteBatch:
        """Return how far a batch is."""
        found = await self._patiently(lambda library: library.batches.retrieve(remote))
        errors = (found.errors.data if found.errors else None) or ()
        said = "; ".join(f"{each.code}: {each.message}" for each in errors[:3])
        counts = found.request_counts
        files = [file for file in (found.output_file_id, found.error_file_id) if file]
        return RemoteBatch(
            found.status,
            tuple(files),
            self.client.faults.brief(said),
            counts.completed + counts.failed if counts else 0,
            counts.total if counts else 0,
        )

    async def cancel(self, remote: str) -> None:
        """Have a batch ended; what is answered by then can be collected."""
        await self._patiently(lambda library: library.batches.cancel(remote))

    async def download(self, file: str, to: Path) -> None:
        """Write a file of results."""

        async def call(library: Any) -> None:
            async with library.files.with_streaming_response.content(file) as response:
                await response.stream_to_file(to)

        await self._patiently(call)

    async def _patiently(self, call: Callable[[Any], Awaitable[_T]]) -> _T:
        """Call until it works; an error that will not pass is one of the endpoint."""
        attempt = 0
        while True:
            try:
                return await self._once(call)
            except ChatError as fault:
                attempt += 1
                passes = fault.kind in ("transient", "limited", "protocol")
                if not passes or attempt >= _ATTEMPTS:
                    raise EndpointError(f"{self.name}: {fault}") from None
                wait = fault.retry_after
                await asyncio.sleep(delay_before(attempt, self._draw) if wait is None else wait)

    async def _once(self, call: Callable[[Any], Awaitable[_T]]) -> _T:
        async with self._library() as library:
            try:
                return await call(library)
            except Exception as error:
                fault = self.client.explained(error)
        fault.__context__ = None  # which has the key
        raise fault

    @asynccontextmanager
    async def _library(self) -> AsyncIterator[Any]:
        library, http_client = self.client.long_reader()
        try:
            yield library
        finally:
            await http_client.aclose()


async def _listed(library: Any, **options: Any) -> Any:
    return await library.batches.list(**options)
