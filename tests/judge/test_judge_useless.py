"""Answers that hold no votes: few are bought, and what may help is said."""

import asyncio
import json
import random

import pytest

from btdagg.judge import ChatReply, FunctionClient, Judging, Limits, VoteStore, judge
from judging import asked_of, config, pairs_of


def judged(tmp_path, answer, n_items=300, **options):
    async def answers(request):
        await asyncio.sleep(0.001)
        return answer(request)

    async def main():
        with VoteStore(tmp_path / "v.db") as store:
            judging = Judging("m", n=4, **{"limits": Limits(64), **options})
            return await judge(
                pairs_of(n_items), judging, store=store, client=FunctionClient(answers)
            )

    return asyncio.run(main())


def test_of_many_truncated_answers_few_are_bought(tmp_path):
    run = judged(tmp_path, lambda _: ChatReply("Well,", finish_reason="length"))
    assert run.n_calls <= 24 + 64
    assert run.is_useless
    assert not run.is_done
    assert "are truncated (most often: cut off at the token limit)" in run.stopped
    assert "raise max_answer_tokens" in run.stopped


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (ChatReply("[[C]]"), 'are unparsed (most often: not one of the allowed words: "C")'),
        (ChatReply("", "Hm."), "are empty (most often: no text); if they hold"),
        (ChatReply("I'm sorry, I cannot."), "are refused (most often: I'm sorry, I cannot.)"),
    ],
)
def test_what_may_help_is_said(tmp_path, reply, said):
    assert said in judged(tmp_path, lambda _: reply, 20).stopped


def test_half_of_the_answers_may_be_useless(tmp_path):
    draw = random.Random(1)
    run = judged(tmp_path, lambda _: ChatReply(draw.choice(("", "[[A]]"))))
    assert (run.n_calls, run.stopped) == (1200, "")


def test_missing_votes_are_an_exit_status(cli, folder, judge_server):
    pairs_of(40).frame.write_ndjson("pairs.jsonl")
    server = judge_server("--faults", "truncated=0.2")
    options = asked_of(server.url, "-n", "4")
    status, out, err = cli(*options, "-s", "v.db")
    assert status == 3
    assert "of the votes are missing, more than allow_missing = 0.05: exit status 3" in err
    status, out, _ = cli(*options, "-s", "v.db", "--json")
    found = json.loads(out)
    assert (status, found["is_done"], found["is_complete"]) == (3, True, False)
    assert found["n_without_vote"] == found["stored"]["truncated"] > 0
    assert cli(*options, "-s", "v.db", *config(allow_missing=0.5))[0] == 0
