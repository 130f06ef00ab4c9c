"""Votes that did not come are made up for in both orders, and asked for again only if told to."""

import json
from collections import Counter

import pytest

from btdagg import DavidsonModel
from btdagg.online import StoppingRule
from judge_endpoints import completion
from judging import asked_of, config, pairs_of, rows_of, statuses_of

N = 10


@pytest.fixture
def folder(folder):
    """A folder to work in, with 6 pairs and a rule."""
    pairs_of(6).frame.write_ndjson("pairs.jsonl")
    model = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)
    StoppingRule.lossless(model, N, step=2).save("rule.json")
    return folder


class LateInOneOrder:
    """Prefers one answer, but says so only from the third time on where that is shown first."""

    def __init__(self):
        self.n_asked = Counter()

    def __call__(self, asked):
        shown = json.dumps(asked["messages"])
        self.n_asked[shown] += 1
        if shown.index("That is all.") > shown.index("I am sure."):
            return 200, completion("[[B]]")
        return 200, completion("[[A]]" if self.n_asked[shown] > 2 else "Hmm.")


def test_votes_that_do_not_come_are_made_up_for_in_their_order(cli, folder, endpoint):
    server, rule = endpoint(LateInOneOrder()), StoppingRule.load("rule.json")
    options = ["-s", "v.db", "-n", N, "--stop", "rule.json", *config(max_attempts=1)]
    assert cli(*asked_of(server.url, *options))[0] == 3  # samples without a vote
    rows = rows_of("v.db")
    for item in {row["item"] for row in rows}:
        own = [row for row in rows if row["item"] == item]
        votes = [row["vote"] for row in own if row["vote"] is not None]
        orders = Counter(row["order"] for row in own if row["vote"] is not None)
        assert rule.stops_one(*(votes.count(side) for side in (-1, 0, 1)))
        assert {*votes} == {1}
        assert orders["AB"] == orders["BA"]
        assert len(own) == len(votes) + 2 < N


def test_what_is_asked_for_again_and_not_reached_stays_as_it_was(cli, folder, endpoint):
    vague, sure = (
        endpoint(lambda _, text=text: (200, completion(text))) for text in ("Hmm.", "[[A]]")
    )
    options = ["-s", "v.db", "-n", 2]
    cli(*asked_of(vague.url, *options))
    before = rows_of("v.db")
    assert statuses_of("v.db") == {"unparsed": 12}
    again = ["--set", "judge.again=unparsed", "--set", "judge.max_calls=3"]
    cli(*asked_of(sure.url, *options, *again))
    assert (len(sure.requests), statuses_of("v.db")) == (3, {"unparsed": 9, "ok": 3})
    reasons = {row["reason"] for row in rows_of("v.db") if row["status"] == "unparsed"}
    assert reasons == {row["reason"] for row in before}
    cli(*asked_of(sure.url, *options))
    assert (len(sure.requests), statuses_of("v.db")) == (3, {"unparsed": 9, "ok": 3})


def test_a_cap_on_calls_is_of_all_rounds_of_a_rule(cli, folder, endpoint):
    """A judge that is of two minds is asked in several rounds, which together keep to the cap."""

    def counted():
        n_asked = Counter()

        def answer(asked):
            shown = json.dumps(asked["messages"])
            n_asked[shown] += 1
            return 200, completion(["[[A]]", "[[B]]", "[[TIE]]"][n_asked[shown] % 3])

        return endpoint(answer), n_asked

    (free, all_calls), (capped, calls) = counted(), counted()
    told = ["-n", N, "--stop", "rule.json"]
    assert cli(*asked_of(free.url, *told, "-s", "free.db"))[0] == 0
    most = all_calls.total() - 1
    status, out, err = cli(*asked_of(capped.url, *told, "-s", "capped.db", *config(max_calls=most)))
    assert status == 3
    assert "max_calls" in out + err
    assert calls.total() == len(rows_of("capped.db")) == most
