"""Files of requests: whole on the disk before their samples are claimed by a batch."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from btdagg._util.files import to_disk
from btdagg._util.outputs import require_no_link
from btdagg.judge.batches.endpoint import BatchEndpoint
from btdagg.judge.client import ChatError, ChatRequest, Order, batched, digest_of
from btdagg.judge.faults import EndpointError
from btdagg.judge.judging import Judging, Work
from btdagg.judge.prices import size_of
from btdagg.judge.runs import Budget, JudgeRun
from btdagg.judge.store.owner import BATCHED, Claimed, Owner
from btdagg.judge.store.store import VoteStore

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000  # of a file
_AT_A_TIME = 100  # items whose samples are claimed
# What a request has of its own, or no request of a batch has.
_BY_REQUEST = ("messages", "stream", "stream_options")


def key_of_sample(file: str, item: str, order: Order, sample: int) -> str:
    """Return the key of a sample's request: short, and unique, since `file` is."""
    return f"btdagg-{digest_of([file, item, order, sample])[:40]}"


class BatchWriter:
    """Writes files of requests for samples neither in the store nor under way."""

    # The caps of `judging` hold for all of them. Files go beside the store, or here if it is a
    # server.

    def __init__(self, judging: Judging, owner: Owner, store: VoteStore, client: object) -> None:
        self._judging, self._owner = judging, owner
        self._endpoint = BatchEndpoint.of(client)
        self._client = self._endpoint.client
        self._folder = Path(f"{store.path or 'btdagg'}-batches")
        self._ask = store.ask_of(judging.setup)
        self._budget = Budget(judging.limits, judging.paid, judging.max_answer_tokens)
        self.batches: list[int] = []
        self._run = JudgeRun()
        self._settings: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self._file = (self._folder / f"requests-{uuid.uuid4().hex[:12]}.jsonl").resolve()
        self._lines: list[bytes] = []
        self._samples: list[Claimed] = []
        self._size = 0

    async def write(self, plan: Iterable[Work], again: Iterable[str] = ()) -> JudgeRun:
        """Write requests for the samples of a plan, and for those with a status to ask again."""
        # Returns what is stored or under way elsewhere, and the cap that stopped it. A batch and
        # its claims are one transaction: after an error whole files are batches, and the rest is
        # free.
        self.batches, self._run, again = [], JudgeRun(), tuple(again)
        try:
            for stretch in batched(plan, _AT_A_TIME):
                await self._add(stretch, self._claim(stretch, again))
                if self._run.stopped:
                    break
            self._end_file()
        except BaseException:
            self._owner.roll_back()
            self._begin()
            raise
        return self._run

    def _claim(self, stretch: Sequence[Work], again: tuple[str, ...]) -> list[Claimed]:
        self._owner.know_items([work.pair.about for work in stretch])
        wanted = {work.item: work.wanted for work in stretch}
        claimed, elsewhere, stored = self._owner.claim(self._ask, wanted, again)
        self._run.n_elsewhere += stored.pop(BATCHED, 0) + sum(map(len, elsewhere.values()))
        self._run.look_at([work.wanted for work in stretch], stored)
        return claimed

    async def _add(self, stretch: Sequence[Work], claimed: list[Claimed]) -> None:
        works = {work.item: work for work in stretch}
        requests: dict[tuple[str, Order], ChatRequest] = {}
        for number, sample in enumerate(claimed):
            place, work = (sample.item, sample.order), works[sample.item]
            if place not in requests:
                requests[place] = self._judging.request(work, sample.order)
            request = requests[place]
            _, self._run.stopped = self._budget.reserve(size_of(request.messages))
            if self._run.stopped:
                self._owner.give_back(self._ask, claimed[number:])
                break
            line = await self._line(sample, request)
            is_full = len(self._lines) >= MOST_REQUESTS or self._size + len(line) > MOST_BYTES
            if self._lines and is_full:
                self._end_file()
                line = await self._line(sample, request)  # its key is of the file
            self._lines.append(line)
            self._samples.append(sample)
            self._size += len(line)
        sent = {place: request.messages for place, request in requests.items()}
        self._owner.keep_messages(self._ask, sent)

    async def _line(self, sample: Claimed, request: ChatRequest) -> bytes:
        body = await self._settings_of(request)
        if self._judging.request_seed is not None:
            body = {**body, "seed": self._judging.request_seed + sample.sample}
        key = key_of_sample(self._file.name, sample.item, sample.order, sample.sample)
        line = self._endpoint.line(key, body, request)
        return json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"

    async def _settings_of(self, request: ChatRequest) -> Mapping[str, Any]:
        if not self._settings:
            try:
                await self._client.check(request)
            except ChatError as fault:
                raise EndpointError(f"{self._client.name}: {fault}") from None
            body = await self._client.body_of(request)
            self._settings = {k: body[k] for k in body if k not in _BY_REQUEST}
        return self._settings

    def _end_file(self) -> None:
        prices = self._judging.paid
        if self._lines:
            require_no_link(self._folder)
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._file.open("xb") as file:
                file.writelines(self._lines)
                file.flush()
                to_disk(file.fileno())
            batch = self._owner.add_batch(
                self._ask,
                self._samples,
                file=str(self._file),
                provider=self._client.provider,
                endpoint=self._client.name,
                answer=json.dumps(asdict(self._judging.prompt.answer)),
                price_in=prices.prompt if prices else None,
                price_out=prices.completion if prices else None,
            )
            self.batches.append(batch)
        self._owner.commit()
        self._begin()
