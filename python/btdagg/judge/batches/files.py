"""Files of requests: whole on the disk before their samples are claimed by a batch."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from btdagg._core import InputError
from btdagg.judge.batches.endpoint import BatchEndpoint
from btdagg.judge.client import ChatError, ChatRequest, Order, digest_of
from btdagg.judge.judging import Judging, Work, stretches_of
from btdagg.judge.prices import size_of
from btdagg.judge.retries import EndpointError
from btdagg.judge.runs import Budget, JudgeRun
from btdagg.judge.store import BATCHED, Claimed, Owner, StoreError, VoteStore

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000  # of a file
_STRETCH = 500  # samples that are claimed at a time


def key_of_sample(file: str, item: str, order: Order, sample: int) -> str:
    """Return the key of a sample's request: short whatever the item, and in no other file.

    `file` is the name of a file, which nobody else's has: so a batch is known by its results.
    """
    return f"btdagg-{digest_of([file, item, order, sample])[:40]}"


# What a request has of its own, or no request of a batch has.
_BY_REQUEST = ("messages", "stream", "stream_options")


class _File:
    """A file of requests that has its name once it is whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = (folder / f"requests-{uuid.uuid4().hex[:12]}.jsonl").resolve()
        self._part = self.path.with_name(f".{self.path.name}.part")
        self._opened = self._part.open("xb")
        self.samples: list[Claimed] = []
        self._n_bytes = 0

    def has_room_for(self, line: bytes) -> bool:
        is_full = len(self.samples) >= MOST_REQUESTS
        return not self.samples or not (is_full or self._n_bytes + len(line) > MOST_BYTES)

    def add(self, sample: Claimed, line: bytes) -> None:
        self._opened.write(line)
        self._n_bytes += len(line)
        self.samples.append(sample)

    def end(self) -> None:
        self._opened.flush()
        os.fsync(self._opened.fileno())
        self._opened.close()
        self._part.rename(self.path)

    def drop(self) -> None:
        self._opened.close()
        with suppress(OSError):
            self._part.unlink()


class BatchWriter:
    """Writes files of requests for what is neither in the store nor under way.

    The caps of `judging` are on all that is written here; `client` says how settings are sent.
    Files go to `folder`, unless given beside the store, or here if that is a server; `batches` are
    the numbers of those that were written.
    """

    def __init__(
        self,
        judging: Judging,
        owner: Owner,
        store: VoteStore,
        client: object,
        folder: Path | None = None,
    ) -> None:
        self._judging, self._owner = judging, owner
        self._endpoint = BatchEndpoint.of(client)
        self._client = self._endpoint.client
        self._folder = folder or Path(f"{store.path or 'btdagg'}-batches")
        self._ask = store.ask_of(judging.setup)
        self._budget = Budget(judging.limits, judging.paid, judging.max_answer_tokens)
        self.batches: list[int] = []
        self._run = JudgeRun()
        self._settings: dict[str, dict[str, Any]] = {}  # body by response format
        self._file: _File | None = None

    async def write(self, plan: Iterable[Work], again: Iterable[str] = ()) -> JudgeRun:
        """Write requests for the samples of a plan, and for those with a status to ask again.

        Returns what is stored or under way elsewhere, and the cap that stopped it, if any. After an
        error, files that are whole are batches, and the others as if never begun.
        """
        self.batches, self._run, again = [], JudgeRun(), tuple(again)
        left: list[Claimed] = []
        try:
            for stretch in stretches_of(plan, _STRETCH):
                left = self._claim(stretch, again)
                await self._add_all(stretch, left)
                if self._run.stopped:
                    break
            self._end_file()
        except BaseException:
            self._owner.roll_back()
            if self._file is not None:
                left += self._file.samples
                self._file.drop()
                self._file = None
            with suppress(StoreError):
                self._give_back(left)
            raise
        self._give_back(left)
        return self._run

    def _claim(self, stretch: Sequence[Work], again: tuple[str, ...]) -> list[Claimed]:
        owner, run = self._owner, self._run
        owner.know_items([(work.item, work.digest, work.task) for work in stretch if work.digest])
        wanted = {work.item: work.wanted for work in stretch}
        claimed, elsewhere, stored = owner.claim(self._ask, wanted, again)
        owner.commit()
        run.n_elsewhere += stored.pop(BATCHED, 0) + sum(map(len, elsewhere.values()))
        run.stored.update(stored)
        run.n_items += len(stretch)
        run.n_wanted += sum(len(work.wanted) for work in stretch)
        return claimed

    async def _add_all(self, stretch: Sequence[Work], left: list[Claimed]) -> None:
        """Write the requests of what is left, taking it away from that, until a cap is reached."""
        works = {work.item: work for work in stretch}
        requests: dict[tuple[str, Order], ChatRequest] = {}
        left.reverse()
        while left:
            sample = left[-1]
            place, work = (sample.item, sample.order), works[sample.item]
            if work.read is not None:
                raise InputError("answers that are read in a way of their own are not batched")
            if place not in requests:
                requests[place] = self._judging.request(work, sample.order)
            request = requests[place]
            _, self._run.stopped = self._budget.reserve(size_of(request.messages))
            if self._run.stopped:
                break
            self._file = self._file or _File(self._folder)
            line = await self._line(sample, request, self._file)
            if not self._file.has_room_for(line):
                self._end_file()
                self._file = _File(self._folder)
                line = await self._line(sample, request, self._file)  # its key is of the file
            self._file.add(left.pop(), line)
        sent = {place: request.messages for place, request in requests.items()}
        self._owner.keep_messages(self._ask, sent)
        self._owner.commit()

    async def _line(self, sample: Claimed, request: ChatRequest, file: _File) -> bytes:
        body = await self._settings_of(request)
        if self._judging.request_seed is not None:
            body = {**body, "seed": self._judging.request_seed + sample.sample}
        key = key_of_sample(file.path.name, sample.item, sample.order, sample.sample)
        line = self._endpoint.line(key, body, request)
        return json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"

    async def _settings_of(self, request: ChatRequest) -> Mapping[str, Any]:
        """Return the body of a request, which is the same for others but for their messages."""
        kind = json.dumps(request.response_format)
        if kind not in self._settings:
            try:
                await self._client.check(request)
            except ChatError as fault:
                raise EndpointError(f"{self._client.name}: {fault}") from None
            body = await self._client.body_of(request)
            self._settings[kind] = {k: body[k] for k in body if k not in _BY_REQUEST}
        return self._settings[kind]

    def _end_file(self) -> None:
        """Give a file its name, and what is in it to a batch."""
        if self._file is None:
            return
        file, prices = self._file, self._judging.paid
        file.end()
        batch = self._owner.add_batch(
            self._ask,
            file.samples,
            file=str(file.path),
            provider=self._client.provider,
            endpoint=self._client.name,
            answer=json.dumps(asdict(self._judging.prompt.answer)),
            price_in=prices.prompt if prices else None,
            price_out=prices.completion if prices else None,
        )
        self._owner.commit()
        self.batches.append(batch)
        self._file = None

    def _give_back(self, claimed: list[Claimed]) -> None:
        self._owner.give_back(self._ask, claimed)
        self._owner.commit()
