"""An event loop whose clock jumps to the next thing to do: hours of waiting in a moment."""

import asyncio


class VirtualTime(asyncio.SelectorEventLoop):
    """Time passes while nothing else is to be done, and no thread is at work."""

    def __init__(self):
        super().__init__()
        self._now = 0.0
        self._n_in_threads = 0
        select = self._selector.select

        def advance(timeout):
            if timeout is None or timeout <= 0 or self._n_in_threads:
                return select(0.001 if self._n_in_threads else timeout)
            self._now += timeout
            return select(0)

        self._selector.select = advance

    def time(self):
        return self._now

    def run_in_executor(self, executor, function, *arguments):
        self._n_in_threads += 1
        future = super().run_in_executor(executor, function, *arguments)
        future.add_done_callback(self._left)
        return future

    def _left(self, _):
        self._n_in_threads -= 1


def run(main):
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(main)
