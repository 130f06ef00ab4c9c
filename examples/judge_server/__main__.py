"""A judge that costs nothing: `python examples/judge_server --port 8080`.

It speaks the chat-completions protocol over HTTP on this machine, reads the two responses of a
prompt and votes with noise, a taste for ties and a positional bias, as `--model simulated` does.
Faults can be injected.
"""

from __future__ import annotations

import argparse
import asyncio
import signal

from btdagg.judge.simulated import Habits
from completions import Options, Service
from faults import FAULTS, parse_faults
from records import Records
from wire import Connection


def options_of_the_command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser("judge_server", description=__doc__)
    add = parser.add_argument
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8080, help="0 takes a free one, which is printed")
    add("--seed", type=int, default=0)
    add("--model", default="simulated-judge", help="name in /v1/models; any name is answered")
    add("--api-key", help="refuse other keys with 401")
    add("--latency-ms", type=float, default=0.0)
    add("--log", metavar="FILE", help="a JSON line for every request")
    add("--faults", default="", help=f"NAME=PROBABILITY,...; all or {', '.join(FAULTS)}")
    add("--retry-after", type=float, default=0.05, help="seconds, of 429")
    add("--retry-after-date", action="store_true", help="as an HTTP date, in whole seconds")
    add(
        "--reasoning",
        choices=["reasoning_content", "reasoning", "think", "none"],
        default="reasoning_content",
        help="field of the thought, or <think> within the answer",
    )
    add("--ignore-n", action="store_true", help="one choice, however many are asked for")
    add("--no-logprobs", action="store_true", help="as an endpoint that does not know them")
    add("--sensitivity", type=float, default=Habits.sensitivity, help="to a difference in quality")
    add("--tie-width", type=float, default=Habits.tie_width, help="0: never a tie")
    add("--positional-bias", type=float, default=Habits.positional_bias, help="for the first")
    add("--noise", type=float, default=Habits.noise, help="of a vote, at temperature 0.5")
    add("--item-noise", type=float, default=Habits.item_noise, help="of all votes on an item")
    return parser.parse_args()


async def serve(given: argparse.Namespace) -> None:
    habits = Habits(
        given.sensitivity,
        given.tie_width,
        given.positional_bias,
        given.noise,
        given.item_noise,
    )
    options = Options(
        habits=habits,
        seed=given.seed,
        model=given.model,
        api_key=given.api_key,
        latency=given.latency_ms / 1000,
        faults=parse_faults(given.faults),
        retry_after=given.retry_after,
        retry_after_as_date=given.retry_after_date,
        reasoning=given.reasoning,
        honour_n=not given.ignore_n,
        has_logprobs=not given.no_logprobs,
    )
    records = Records(given.log)
    service = Service(options, records)

    def opened() -> None:
        records.connections += 1

    def closed() -> None:
        records.connections -= 1

    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(service.handle, opened, closed, records.end),
        given.host,
        given.port,
        backlog=4096,
    )
    port = server.sockets[0].getsockname()[1]
    print(f"http://{given.host}:{port}/v1", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(options_of_the_command_line()))
