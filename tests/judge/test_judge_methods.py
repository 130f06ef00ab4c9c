"""Greedy decoding, few-shot, GSA and USC: calls made, by the server's log, and decisions kept."""

import asyncio
import json
from collections import Counter

import polars as pl
import pytest

from btdagg import InputError, Protocol, evaluate, read_labels, read_votes
from btdagg.evaluation import RandomSplits
from btdagg.judge import (
    FunctionClient,
    Judging,
    Limits,
    ModelClient,
    VoteStore,
    estimate,
    read_pairs,
)
from btdagg.judge.judging import JudgeJob
from btdagg.judge.methods import METHODS, asking_of, decide_by, order_of_aggregation
from btdagg.judge.prompts import labelled_pairs
from btdagg.judge.store.store import votes_frame
from btdagg.methods import RoundedMedian, by_name
from judging import asked_of, config

N_ITEMS = 12


def pairs_of_sums(n_items):
    """Pairs whose better response has fewer wrong sums."""
    rows = [
        {
            "item": f"q{number}",
            "prompt": f"Add up {number} and 1, and {number} and 2.",
            "a": f"{number} + 1 = {number + 1 + (number % 3 == 1)}\n{number} + 2 = {number + 2}",
            "b": f"{number} + 1 = {number + 1 + (number % 3 == 2)}\n{number} + 2 = {number + 2}.",
            "label": (0, -1, 1)[number % 3],
        }
        for number in range(n_items)
    ]
    return read_pairs(pl.DataFrame(rows))


PAIRS = pairs_of_sums(N_ITEMS)
LABELS = {"item": PAIRS.frame["item"].to_list(), "label": PAIRS.frame["label"].to_list()}
JUDGING = Judging("m", n=6, limits=Limits(4))


@pytest.fixture
def store(tmp_path):
    with VoteStore(tmp_path / "votes.db") as opened:
        yield opened


@pytest.fixture
def decide(store, monkeypatch):
    """Decide by a method at a simulated judge."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def call(server, method, judging=JUDGING, pairs=PAIRS, **options):
        async def run():
            client = ModelClient("openai", server.url)
            try:
                return await decide_by(method, pairs, judging, JudgeJob(store, client), **options)
            finally:
                await client.close()

        return asyncio.run(run())

    return call


def examples(n_examples=None):
    return labelled_pairs(PAIRS, LABELS, n_examples=n_examples)


def order_seen(line):
    shown = {line["first"], line["second"]}
    (pair,) = [pair for pair in PAIRS if {pair.a[:40], pair.b[:40]} == shown]
    return pair.item, "AB" if line["first"] == pair.a[:40] else "BA"


@pytest.mark.parametrize(("method", "n_examples"), [("greedy", 0), ("few-shot", 5)])
def test_two_calls_at_temperature_zero_one_in_each_order(judge_server, decide, method, n_examples):
    server = judge_server()
    found = decide(server, method, examples=examples(5))
    log = server.log()
    assert len(log) == 2 * N_ITEMS
    assert {line["temperature"] for line in log} == {0}
    seen = Counter(map(order_seen, log))
    assert seen == dict.fromkeys(((p.item, order) for p in PAIRS for order in ("AB", "BA")), 1)
    shown = {line["n_examples"] for line in log}
    # The pairs of the examples are not among their own examples.
    assert shown == ({n_examples, n_examples - 1} if n_examples else {0})
    assert len(found.decided) == N_ITEMS
    assert found.undecided == ()
    assert found.columns == (method.replace("-", "_"),)


@pytest.mark.parametrize("method", ["greedy", "few-shot"])
def test_the_decision_is_the_rounded_median(judge_server, decide, store, method):
    server = judge_server("--tie-width", 1.5, "--positional-bias", 1)
    found = decide(server, method, examples=examples())
    votes = read_votes(votes_frame(store, methods=[method]))
    ids, counts = votes.counts()
    assert counts.sum(axis=1).tolist() == [2] * N_ITEMS
    assert found.decided == dict(zip(ids, RoundedMedian().decide(counts).tolist(), strict=True))
    assert [1, 1, 0] in counts.tolist() or [0, 1, 1] in counts.tolist()  # where it has to round


@pytest.mark.parametrize("method", ["gsa", "usc"])
def test_one_call_more_than_there_are_samples(judge_server, decide, store, method):
    server = judge_server()
    found = decide(server, method)
    log = server.log()
    assert len(log) == N_ITEMS * (6 + 1)
    samples = [line for line in log if line["kind"] == "pair"]
    further = [line for line in log if line["kind"] == "samples"]
    assert {line["temperature"] for line in samples} == {0.5}
    assert Counter(map(order_seen, samples)) == dict.fromkeys(
        ((p.item, order) for p in PAIRS for order in ("AB", "BA")), 3
    )
    assert {line["temperature"] for line in further} == {0}
    assert {line["n_samples"] for line in further} == {6}
    assert Counter(map(order_seen, further)) == dict.fromkeys(
        ((p.item, order_of_aggregation(p.item)) for p in PAIRS), 1
    )
    assert found.columns == (method, f"{method}_6")
    assert set(found.decided) == {pair.item for pair in PAIRS}
    # The simulated judge goes with the majority: so it has to be where there is one.
    ids, counts = read_votes(votes_frame(store)).counts()
    for item, count in zip(ids, counts.tolist(), strict=True):
        if max(count) > 3:
            assert found.decided[item] == count.index(max(count)) - 1


def test_samples_that_are_there_are_not_asked_for_again(judge_server, decide, store):
    server = judge_server()
    decide(server, "gsa")
    assert decide(server, "gsa").runs[1].stored["ok"] == N_ITEMS
    assert len(server.log()) == N_ITEMS * 7
    assert estimate(PAIRS, asking_of("usc", JUDGING, store=store), store).n_calls == N_ITEMS
    decide(server, "usc")
    assert len(server.log()) == N_ITEMS * 8
    fewer = decide(server, "gsa", Judging("m", n=4))
    assert len(server.log()) == N_ITEMS * 9
    assert fewer.columns == ("gsa_4",)  # the store has more than those
    more = decide(server, "gsa", Judging("m", n=8))
    assert len(server.log()) == N_ITEMS * (9 + 2 + 1)
    assert more.columns == ("gsa", "gsa_8")


def test_examples_of_few_shot_are_scored_for_no_method(judge_server, decide, store):
    server = judge_server()
    decide(server, "few-shot", examples=examples(2))
    decide(server, "few-shot", examples=examples(4))  # two of these were decided before
    shown = {pair.item for pair, _ in examples(4)}
    decide(server, "usc", Judging("m", n=2))
    votes = read_votes(votes_frame(store))
    known = votes.frame.filter(pl.col("few_shot").is_not_null())["item"].unique()
    assert not shown & set(known.to_list())
    assert len(known) == N_ITEMS - 4
    protocol = Protocol(RandomSplits(size=3, n_splits=3))
    found = evaluate(
        votes,
        read_labels(LABELS),
        aggregators=by_name(("majority", "few-shot")),
        protocol=protocol,
    )
    (cell,) = found.cells
    assert (cell.n_items, cell.n_undecided) == (N_ITEMS - 4, 4)
    assert (
        "4 items have no decision by some method (its prompt shows them as examples, "
        "or an answer is missing) and are left out for all methods"
    ) in " ".join(found.remarks)


@pytest.mark.parametrize("method", ["few-shot", "usc"])
def test_what_is_missing_is_not_decided(judge_server, decide, method):
    server = judge_server("--faults", "unparsed=0.4")
    found = decide(server, method, examples=examples(3))
    assert 0 < len(found.undecided) < N_ITEMS
    assert set(found.undecided) | set(found.decided) == {pair.item for pair in PAIRS}
    assert found.runs[-1].statuses["unparsed"] > 0
    again = decide(server, method, Judging("m", n=6, again=("unparsed",)), examples=examples(3))
    assert len(again.undecided) <= len(found.undecided)


def test_caps_hold_for_samples_and_further_calls_together(judge_server, decide):
    server = judge_server()
    capped = decide(server, "gsa", Judging("m", n=6, limits=Limits(4, max_calls=6 * N_ITEMS + 5)))
    assert len(server.log()) == 6 * N_ITEMS + 5
    assert len(capped.decided) == 5
    assert capped.runs[-1].stopped == "5 calls were made, which is max_calls"


@pytest.mark.parametrize("structured", [False, True])
def test_universal_self_consistency_takes_the_vote_of_the_answer_chosen(store, structured):
    def answer(request):
        text = request.messages[-1]["content"]
        if "<sample_1>" not in text:
            first = text.index("q: yes") < text.index("q: no")
            word = "A" if first else "B"  # always in favour of yes, which is A's
            return f'{{"verdict": "{word}"}}' if structured else f"[[{word}]]"
        assert (request.response_format is not None) == structured
        return '{"reasoning": "x", "grade": 2}' if structured else "[[2]]"

    items = [*"stuvwxyz"]
    columns = {"a": ["q: yes"] * 8, "b": ["q: no"] * 8, "prompt": ["p"] * 8}
    pairs = read_pairs({"item": items, **columns})
    judging = Judging("m", n=2, structured=structured)
    found = asyncio.run(decide_by("usc", pairs, judging, JudgeJob(store, FunctionClient(answer))))
    assert found.decided == dict.fromkeys(items, 1)
    assert {order_of_aggregation(item) for item in items} == {"AB", "BA"}


def test_methods_that_cannot_be(tmp_path, store):
    client = FunctionClient(lambda _: "[[A]]")

    def run(method, where=store, **options):
        asyncio.run(decide_by(method, PAIRS, JUDGING, JudgeJob(where, client), **options))

    with pytest.raises(InputError, match="examples is empty"):
        run("few-shot")
    with VoteStore(tmp_path / "bare.db", keep_exchanges=False) as bare:
        with pytest.raises(InputError, match="which this store does not keep"):
            run("gsa", bare)
        run("greedy", bare)


# The command line


@pytest.fixture
def folder(folder):
    PAIRS.frame.drop("label").write_ndjson("pairs.jsonl")
    pl.DataFrame(LABELS).head(4).write_csv("labels.csv")


def test_methods_on_the_command_line(judge_server, cli, folder):
    server = judge_server()
    common = asked_of(server.url, "-n", "4")
    for method in METHODS:
        labels = ["--labels", "labels.csv", *config(examples=3)] if method == "few-shot" else []
        name = method.replace("-", "_")
        if method == "few-shot":
            said = cli(*common, "--method", method, *labels)[1].splitlines()[-1]
            assert said.startswith(f"{N_ITEMS} items decided: {name}")
        status, out, err = cli(*common, "--method", method, *labels, "--json")
        assert status == 0, err
        found = json.loads(out)
        assert (found["columns"][0], found["n_decided"], found["undecided"]) == (name, N_ITEMS, [])
        assert [run["is_complete"] for run in found["runs"]] == [True] * len(found["runs"])
    assert len(server.log()) == N_ITEMS * (2 + 2 + 4 + 1 + 1)
    assert cli("votes", "votes.db", "--export", "votes.csv")[0] == 0
    names = "majority,greedy,few-shot,gsa,usc"
    pl.DataFrame(LABELS).write_csv("gold.csv")
    few = ["--size", "4", "--splits", "2"]
    status, out, _ = cli("paper", "evaluate", "votes.csv", "gold.csv", *few, "--methods", names)
    assert status == 0
    assert all(word in out for word in ("majority", "greedy", "few-shot", "GSA", "USC"))


@pytest.mark.parametrize("options", [["--method", "few-shot"], ["--labels", "labels.csv"]])
def test_options_that_do_not_go_together(cli, folder, options):
    status, _, err = cli("judge", "pairs.jsonl", "--model", "m", *options)
    assert (status, err) == (2, "btdagg: --labels and --method few-shot must be given together\n")
