"""The simulated judge as a client, which asks no endpoint."""

from __future__ import annotations

from random import Random

from btdagg.judge.client import ChatReply, ChatRequest
from btdagg.judge.faults import ChatError
from btdagg.judge.simulated.answers import answer, asked
from btdagg.judge.simulated.judging import Habits, digest, read


class SimulatedClient:
    """A judge to try things on: it costs nothing, and answers in the form that is asked for.

    It counts the wrong sums of both responses, of the pairs of `btdagg demo --pairs`, and votes
    with noise, a taste for ties and a bias for what it sees first. How good texts without sums are
    is drawn from a hash of them.

    Parameters
    ----------
    habits : Habits
        What kind of judge it is.

    Notes
    -----
    The same request with the same seed gets the same answer, and so it does at temperature 0.
    Without a seed answers are random.
    """

    name = "the simulated judge"

    def __init__(self, habits: Habits = Habits()) -> None:  # noqa: B008  a frozen value
        self._habits = habits

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer a request.

        Raises
        ------
        ChatError
            If the prompt does not show two responses in the marks of the templates, or cannot be
            answered: the same prompt would fail again.
        """
        messages = request.messages
        seen = read(messages[-1]["content"])
        if not (seen.first or seen.second or seen.samples):
            raise ChatError(
                "the simulated judge finds no <response_a> and <response_b> in the prompt; want "
                "one of the templates of btdagg, or these marks",
                "fatal",
            )
        prompt = "\n\n".join(each["content"] for each in messages if each["role"] != "assistant")
        wanted = asked(prompt, request.response_format, seen)
        temperature = 1.0 if request.temperature is None else request.temperature
        random = Random()
        if not temperature or request.seed is not None:
            # The 0 keeps the votes of a seed what they were.
            drawn = (request.seed, 0) if temperature else ()
            random.seed(digest(temperature, prompt, *drawn))
        try:
            given = answer(
                seen, wanted, self._habits, temperature=temperature, random=random, seed=0
            )
        except ValueError as error:
            raise ChatError(f"the simulated judge cannot answer: {error}", "fatal") from error
        return ChatReply(given.text, given.reasoning, model=request.model)

    async def close(self) -> None:
        """Nothing to let go of."""
