"""Files of requests, and of their results; samples in a file are claimed by its batch."""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from btdagg._core import InputError
from btdagg._util.addresses import without_credentials
from btdagg.judge.calls import Order, digest_of
from btdagg.judge.client import ChatRequest
from btdagg.judge.judging import Judging
from btdagg.judge.limits import Reserved, Spent
from btdagg.judge.prices import size_of
from btdagg.judge.providers import PROVIDERS, provider_of
from btdagg.judge.store import BATCHED, Claimed, Owner, StoreError, VoteStore
from btdagg.judge.work import Work, stretches_of

REQUESTS_PATH = "/v1/chat/completions"
MOST_REQUESTS = 50_000  # of a file
MOST_BYTES = 200_000_000

_OWN_ADDRESS = PROVIDERS["openai"].address
_STRETCH = 500  # samples that are claimed at a time


@dataclass(frozen=True)
class Result:
    """What came of a request of a batch.

    Attributes
    ----------
    key : str
        Its `custom_id`.
    status : int
        Of HTTP; 0 where it was not asked.
    body : object
        The reply, or what is said of why there is none.
    """

    key: str
    status: int
    body: object

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> Result:
        """Read a line of a file of results.

        Raises
        ------
        KeyError, TypeError, AttributeError, ValueError
            If it is none.
        """
        response, error = line.get("response"), line.get("error")
        key = str(line["custom_id"])
        if response:
            return cls(key, int(response.get("status_code") or 200), response.get("body"))
        return cls(key, 0, error or {})


def read_results(file: Path) -> Iterable[Result]:
    """Results of a file.

    Raises
    ------
    ValueError
        If a line is none, as where the file was cut off; the message names it.
    """
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield Result.of(json.loads(line))
            except (KeyError, TypeError, AttributeError, ValueError):
                raise ValueError(f"line {number} is no result") from None


def key_of_sample(item: str, order: Order, sample: int) -> str:
    """Return the key of a sample's request: short whatever the item, and the same in any batch."""
    return f"btdagg-{digest_of([item, order, sample])[:40]}"


def folder_of(store: VoteStore) -> Path:
    """Return the folder of requests of a store: beside its file, or here."""
    return Path(f"{store.path}-batches" if store.path is not None else "btdagg-batches")


@dataclass
class Written:
    """What was written, and what was not since it is there or under way.

    Attributes
    ----------
    batches : list of int
    n_items, n_wanted, n_requests : int
        Items and samples that were looked at, and requests that were written.
    there : Counter of str
        Samples that the store has, by status.
    n_batched, n_elsewhere : int
        Samples in other batches under way, and those that other processes are asking for.
    stopped : str
        The cap that was reached; empty where none was.
    """

    batches: list[int] = field(default_factory=list)
    n_items: int = 0
    n_wanted: int = 0
    n_requests: int = 0
    there: Counter[str] = field(default_factory=Counter)
    n_batched: int = 0
    n_elsewhere: int = 0
    stopped: str = ""


class BatchWriter:
    """Writes files of requests for what is neither in the store nor under way.

    Parameters
    ----------
    judging : Judging
        Its caps are on all that is written here.
    owner : Owner
        Of the store.
    store : VoteStore
    folder : Path, optional
        Where files go; see `folder_of`.
    base_url : str, optional
        Of the endpoint that they are for; OpenAI's own unless given.
    most_requests, most_bytes : int
        Of a file; there are as many files as it takes.

    Raises
    ------
    InputError
        If the store has votes of another endpoint, or a cap could not be kept.
    """

    def __init__(
        self,
        judging: Judging,
        owner: Owner,
        store: VoteStore,
        *,
        folder: Path | None = None,
        base_url: str | None = None,
        most_requests: int = MOST_REQUESTS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        judging.limits.refuse_unbounded(judging.max_answer_tokens, judging.prices)
        self._judging, self._owner = judging, owner
        self._folder = folder or folder_of(store)
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._address = without_credentials(
            base_url or os.environ.get("OPENAI_BASE_URL") or _OWN_ADDRESS
        )
        self._ask = store.ask_of(judging.asked)
        store.require_endpoint(self._ask, self._address, judging.same_endpoint)
        self._spent = Spent()
        self._written = Written()
        self._file: IO[bytes] | None = None
        self._in_file: list[Claimed] = []
        self._n_bytes = 0

    def write(self, plan: Iterable[Work], again: Iterable[str] = ()) -> Written:
        """Write requests for the samples of a plan, and for those with a status to ask again.

        Raises
        ------
        InputError
            If a file cannot be written, or an item is in the store with other texts. Then files
            that are whole are batches, and the others as if they had not been begun.
        """
        self._written = Written()
        again = tuple(again)
        left: list[Claimed] = []
        try:
            for stretch in stretches_of(plan, _STRETCH):
                left = self._claim(stretch, again)
                self._add_all(stretch, left)
                if self._written.stopped:
                    break
            self._end_file()
        except BaseException:
            self._owner.roll_back()
            left += self._in_file
            self._drop_file()
            with suppress(StoreError):
                self._give_back(left)
            raise
        self._give_back(left)
        return self._written

    def _claim(self, stretch: Sequence[Work], again: tuple[str, ...]) -> list[Claimed]:
        owner, found = self._owner, self._written
        owner.know_items([(work.item, work.digest, work.task) for work in stretch if work.digest])
        wanted = {work.item: work.wanted for work in stretch}
        claimed, elsewhere, there = owner.claim(self._ask, wanted, again)
        owner.commit()
        found.n_batched += there.pop(BATCHED, 0)
        found.there.update(there)
        found.n_elsewhere += sum(map(len, elsewhere.values()))
        found.n_items += len(stretch)
        found.n_wanted += sum(len(work.wanted) for work in stretch)
        return claimed

    def _add_all(self, stretch: Sequence[Work], left: list[Claimed]) -> None:
        """Write the requests of what is left, taking it away from that, until a cap is reached."""
        works = {work.item: work for work in stretch}
        requests: dict[tuple[str, Order], ChatRequest] = {}
        left.reverse()
        while left:
            each = left[-1]
            place = each.item, each.order
            if place not in requests:
                requests[place] = self._request(works[each.item], each.order)
            if not self._has_room_for(requests[place]):
                break
            line = self._line(each, requests[place])
            is_full = len(self._in_file) >= self._most_requests
            if is_full or self._n_bytes + len(line) > self._most_bytes:
                self._end_file()
            self._begun_file().write(line)
            self._n_bytes += len(line)
            self._in_file.append(left.pop())
        sent = {place: request.messages for place, request in requests.items()}
        self._owner.keep_messages(self._ask, sent)
        self._owner.commit()

    def _request(self, work: Work, order: Order) -> ChatRequest:
        if work.read is not None:
            raise InputError("answers that are read in a way of their own are not batched")
        return self._judging.request(work, order)

    def _has_room_for(self, request: ChatRequest) -> bool:
        judging = self._judging
        size, completion = size_of(request.messages), judging.max_answer_tokens or 0
        cost = judging.paid.of(size, completion) if judging.paid is not None else 0.0
        more = Reserved(size + completion, cost)
        self._written.stopped = self._spent.reaches(judging.limits, more)
        if not self._written.stopped:
            self._spent.take(more)
        return not self._written.stopped

    def _line(self, claimed: Claimed, request: ChatRequest) -> bytes:
        if self._judging.request_seed is not None:
            request = replace(request, seed=self._judging.request_seed + claimed.sample)
        line = {
            "custom_id": key_of_sample(claimed.item, claimed.order, claimed.sample),
            "method": "POST",
            "url": REQUESTS_PATH,
            "body": _body_of(request, _limit_at(self._address)),
        }
        return json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"

    # Files

    def _begun_file(self) -> IO[bytes]:
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f".requests-{uuid.uuid4().hex[:12]}.jsonl.part"
            self._file = (self._folder / name).open("xb")
        return self._file

    def _end_file(self) -> None:
        """Give a file its name, and what is in it to a batch."""
        if self._file is None:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        part = Path(self._file.name)
        whole = (part.parent / part.name[1:].removesuffix(".part")).resolve()
        part.rename(whole)
        prices = self._judging.paid
        batch = self._owner.add_batch(
            self._ask,
            self._in_file,
            file=str(whole),
            provider="openai",
            endpoint=self._address,
            answer=json.dumps(asdict(self._judging.prompt.answer)),
            price_in=prices.prompt if prices else None,
            price_out=prices.completion if prices else None,
        )
        self._owner.commit()
        self._written.batches.append(batch)
        self._written.n_requests += len(self._in_file)
        self._file, self._in_file, self._n_bytes = None, [], 0

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
            with suppress(OSError):
                os.unlink(self._file.name)
        self._file, self._in_file, self._n_bytes = None, [], 0

    def _give_back(self, claimed: list[Claimed]) -> None:
        self._owner.give_back(self._ask, claimed)
        self._owner.commit()


def _limit_at(address: str) -> str:
    """Return what an endpoint calls the limit on the tokens of an answer.

    OpenAI's own models that think take the new name alone, other servers know the old.
    """
    is_new = address.startswith(_OWN_ADDRESS.removesuffix("/v1"))
    return "max_completion_tokens" if is_new else "max_tokens"


def _body_of(
    request: ChatRequest, limit: str = "max_tokens", structured: str = "json_schema"
) -> dict[str, Any]:
    """Return the body of a request.

    Parameters
    ----------
    request : ChatRequest
    limit : str
        Field of the limit on the tokens of an answer; see `_limit_at`.
    structured : ``json_schema``, ``json_object`` or empty
        What structured answers are asked for by.
    """
    body: dict[str, Any] = {"model": provider_of(request.model)[1], "messages": request.messages}
    for name in ("temperature", "top_p", "reasoning_effort", "seed"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.max_tokens is not None:
        body[limit] = request.max_tokens
    if request.thinking_budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_budget}
    if request.response_format is not None and structured:
        is_schema = structured == "json_schema"
        plain = {"type": "json_object"}
        body["response_format"] = request.response_format if is_schema else plain
    if request.logprobs:
        body["logprobs"] = True
    return {**body, **request.extra}
