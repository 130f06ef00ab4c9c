"""A budget that all processes of a judge share, through the vote store.

Calls that wait are taken to the store together, one transaction at a time, along with what others
have used since. Each gets the moment at which it may be made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from btdagg.judge.limits import Budget, Limits, Reserved, Spent
from btdagg.judge.prices import Prices
from btdagg.judge.store.shared_use import Places, SharedUse
from btdagg.judge.storing import Storing

_LATE = 0.2  # seconds after its moment within which a call may still be made
_SETTLING = 0.5  # seconds in which what was used may gather, while nobody waits


class SharedBudget(Budget):
    """Rates and caps that are shared; `take` waits until a call may be made.

    Parameters
    ----------
    judge : str
        Name of the judge, by whose calls limits are shared.
    storing : Storing
        The store that has them.
    limits, prices, answer_tokens
        See :class:`btdagg.judge.limits.Budget`.
    """

    def __init__(
        self,
        judge: str,
        storing: Storing,
        limits: Limits,
        prices: Prices | None,
        answer_tokens: int | None,
    ) -> None:
        super().__init__(limits, prices, answer_tokens)
        self._judge, self._storing = judge, storing
        self._waiting: deque[tuple[Reserved, asyncio.Future[float | None]]] = deque()
        self._news, self._more_tokens = Spent(), 0.0  # that the store has not been told yet
        self._exchanging: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._error: Exception | None = None
        self._use: SharedUse | None = None
        self._loop = asyncio.get_running_loop()

    async def take(self, prompt_bytes: int, answers: int, expected: float = 0.0) -> Reserved | None:
        """Reserve a call and wait until it may be made; None where a cap is reached."""
        more = self._at_most(prompt_bytes, answers, expected)
        while not self.reached:
            moment = await self._place(more)
            if moment is None:
                break
            try:
                await asyncio.sleep(moment - self._loop.time())
            except asyncio.CancelledError:
                self.give_back(more)
                raise
            if not self.reached and self._loop.time() <= moment + _LATE:
                return more
            self.give_back(more)  # made now, it would come on top of those of others
        return None

    def close(self) -> None:
        """Release all who wait."""
        super().close()
        self._wake.set()
        self._release(None)

    def give_back(self, reserved: Reserved) -> None:
        """Take back a call that was not made."""
        super().give_back(reserved)
        self._not_made(reserved)

    def settle(
        self, reserved: Reserved, tokens: int, cost: float, *, is_known: bool = True
    ) -> None:
        """Replace what a call could have used by what it did, or may have where nobody knows."""
        super().settle(reserved, tokens, cost)
        self._news.settle(reserved, tokens, cost)
        if is_known:
            self._more_tokens += tokens - reserved.expected
        self._begin()

    async def settled(self) -> None:
        """Wait until all that was spent is written down.

        Raises
        ------
        StoreError
            If it could not be.
        """
        while self._exchanging is not None:
            await self._exchanging
        if self._error is not None:
            raise self._error

    async def _place(self, call: Reserved) -> float | None:
        """The moment at which a call may be made; None where none may any more."""
        place: asyncio.Future[float | None] = self._loop.create_future()
        if self._error is not None:
            raise self._error
        if not self._waiting:
            self._wake.set()
        self._waiting.append((call, place))
        self._begin()
        try:
            moment = await place
        except asyncio.CancelledError:
            if not place.cancelled() and not place.exception() and place.result() is not None:
                self._not_made(call)
            raise
        if moment is not None:
            self._begun(call)
        return moment

    def _not_made(self, call: Reserved) -> None:
        self._news.take(call, -1)
        self._more_tokens -= call.expected
        self._begin()

    def _begin(self) -> None:
        if self._exchanging is None and self._error is None:
            self._exchanging = asyncio.create_task(self._exchange())

    async def _exchange(self) -> None:
        """Tell the store what is new, and ask it for places, until there is neither."""
        try:
            while self._waiting or self._news != Spent():
                if not self._waiting:
                    await self._pause(_SETTLING)
                await self._pause(await self._ask())
        except Exception as error:  # those who wait must hear of it, whatever it is
            self._error = error
            self._release(error)
        finally:
            self._exchanging = None

    async def _ask(self) -> float:
        """One transaction; seconds after which to ask again."""
        asked = [(call, place) for call, place in self._waiting if not place.done()]
        self._waiting.clear()
        news, self._news = self._news, Spent()
        tokens, self._more_tokens = self._more_tokens, 0.0
        calls = [call for call, _ in asked]
        now, places = 0.0, Places([])
        try:
            now, places = await self._storing.commit(self._take, calls, news, tokens)
        finally:
            self._waiting.extendleft(reversed(asked[len(places.seconds) :]))
        for seconds, (call, place) in zip(places.seconds, asked, strict=False):
            if place.done():
                self._not_made(call)  # whoever waited does not any more
            else:
                place.set_result(now + seconds)
        self.reached = self.reached or places.reached
        if self.reached:
            self._release(None)
        return places.again

    def _take(self, calls: Sequence[Reserved], news: Spent, tokens: float) -> tuple[float, Places]:
        """Take places, and the time from which they count: a commit may take long."""
        if self._use is None:
            self._use = self._storing.owner.share(self._judge, self._limits)
        places = self._use.take(calls, news, tokens)
        return self._loop.time(), places

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end of the run, nor while somebody begins to wait."""
        self._wake.clear()
        if seconds > 0 and not self.reached:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()

    def _release(self, error: Exception | None) -> None:
        """Let those who wait go."""
        while self._waiting:
            _, place = self._waiting.popleft()
            if place.done():
                continue
            if error is None:
                place.set_result(None)
            else:
                place.set_exception(error)
