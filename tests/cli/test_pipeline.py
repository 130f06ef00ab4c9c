"""Pairs and a few labels to labels of all pairs, from Python."""

import asyncio
import warnings

import polars as pl
import pytest

from btdagg import DavidsonModel, InputError, Scale, read_labels
from btdagg.judge import FunctionClient, Judging, VoteStore, read_pairs
from btdagg.judge.judging import JudgeJob
from btdagg.judge.simulated import SimulatedClient
from btdagg.judge.store.store import votes_frame
from btdagg.online import StoppingRule
from btdagg.pipeline import Pipeline, label_pairs
from btdagg.votes import Provenance, ProvenanceWarning
from judging import pairs_of
from refusals import refused

N = 4
PAIRS = pairs_of(30)
TRUTH = [(0, -1, 1)[number % 3] for number in range(30)]
JUDGING = Judging("m", n=N)


def labels_of(n_labels):
    frame = pl.DataFrame({"item": PAIRS.frame["item"], "label": TRUTH})
    return frame.head(n_labels)


class Answers:
    """A judge that says which sum is right, and counts what it is asked."""

    def __init__(self, wrong_every=10**9):
        self.n_calls = 0
        self.wrong_every = wrong_every

    def __call__(self, request):
        self.n_calls += 1
        text = request.messages[-1]["content"]
        number = int(text.split("What is ")[1].split()[0])
        right = f"{number} + {number} = {2 * number}."
        seen = [part.count(right) for part in text.split("<response_")[1:]]
        if self.n_calls % self.wrong_every == 0:
            return "[[TIE]]"
        return ("[[TIE]]", "[[A]]", "[[B]]")[seen[0] - seen[1]]


def label(place, answers, n_labels=15, judging=JUDGING, **options):
    client = FunctionClient(answers)
    return asyncio.run(
        label_pairs(PAIRS, labels_of(n_labels), judging, store=place, client=client, **options)
    )


def test_every_pair_gets_a_label_and_a_second_run_asks_nobody(tmp_path):
    answers = Answers()
    seen = []
    found = label(tmp_path / "v.db", answers, watch=lambda run: seen.append(run.n_votes))
    assert answers.n_calls == found.run.n_calls == 30 * N
    assert seen[-1] == 30 * N
    assert seen == sorted(seen)
    assert found.decided["item"].to_list() == PAIRS.frame["item"].to_list()
    assert found.decided["label"].to_list() == TRUTH
    assert found.not_decided == {}
    model = found.fitted[""].model
    counts = found.decided["minus", "tie", "plus"].to_numpy()
    assert found.decided["label"].to_list() == model.decide(counts).tolist()
    assert (model.provenance.judge, model.provenance.n_votes) == (("m",), N)
    again = label(tmp_path / "v.db", answers, n_labels=20)
    assert (answers.n_calls, again.run.n_calls) == (30 * N, 0)
    assert again.fitted[""].calibration.n_labels == 20


def test_it_goes_on_where_it_was_stopped(tmp_path):
    answers = Answers()

    async def stopped():
        stop = asyncio.Event()
        return await label_pairs(
            PAIRS,
            labels_of(15),
            JUDGING,
            store=tmp_path / "v.db",
            client=FunctionClient(answers),
            stop=stop,
            watch=lambda run: run.n_votes >= 20 and stop.set(),
        )

    found = asyncio.run(stopped())
    assert found.run.stopped == "interrupted"
    assert (found.decided, found.votes, found.fitted) == (None, None, {})
    first = answers.n_calls
    assert 20 <= first < 30 * N
    found = label(tmp_path / "v.db", answers)
    assert found.run.n_calls == 30 * N - found.run.stored["ok"]
    assert found.decided["label"].to_list() == TRUTH


def test_a_given_rule_is_for_the_pairs_without_a_label(tmp_path):
    rule = StoppingRule.lossless(DavidsonModel(1.2, 0.3, 0.8), N, step=2)
    found = label(tmp_path / "v.db", Answers(), rule=rule)
    assert found.fitted[""].rule is rule
    assert found.run.settled.n_items == 15
    assert len(found.votes.counts()[0]) == 15
    with VoteStore(tmp_path / "v.db") as store:
        asked = Pipeline(PAIRS, labels_of(15), JUDGING, rule=rule).pairs_to_ask(store)
    assert [pair.item for pair in asked] == [f"q{k}" for k in range(15)]


def test_a_rule_of_another_judge_is_said(tmp_path):
    fitted = label(tmp_path / "v.db", Answers(), rule="lossless").fitted[""].rule
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Pipeline(PAIRS, labels_of(15), JUDGING, rule=fitted)
    with pytest.warns(ProvenanceWarning, match="judge"):
        Pipeline(PAIRS, labels_of(15), Judging("another", n=N), rule=fitted)


def test_what_does_not_go_together_is_refused_before_any_call(tmp_path):
    answers = Answers()
    with refused("stop", got="soon"):
        label(tmp_path / "v.db", answers, rule="soon")
    with refused("epsilon", got=0.7):
        label(tmp_path / "v.db", answers, rule="epsilon=0.7")
    with pytest.raises(InputError, match="a client was given"):
        label(tmp_path / "v.db", answers, base_url="http://localhost:1/v1")
    assert answers.n_calls == 0
    assert not (tmp_path / "v.db").exists()
    elsewhere = pl.DataFrame({"item": ["x", "y"], "label": [1, 0]})
    with pytest.raises(InputError, match=r"items are x, y \.\.\. in the labels"):
        Pipeline(PAIRS, elsewhere, JUDGING)
    alike = labels_of(15).with_columns(label=pl.lit(1))
    with pytest.raises(InputError, match="all 15 labels of these pairs are 1"):
        Pipeline(PAIRS, alike, JUDGING)
    assert answers.n_calls == 0


@pytest.mark.parametrize("options", [{"strength": "none"}, {"full_margin": 3.0}], ids=str)
def test_strength_is_chosen_for_all_pairs(tmp_path, options):
    judging = Judging("sim", n=8, request_seed=0, template="response-scores")
    pipeline = Pipeline(PAIRS, labels_of(15), judging, rule="lossless", **options)
    with VoteStore(tmp_path / "v.db") as store:
        found = asyncio.run(pipeline.run(JudgeJob(store, SimulatedClient())))
    origin = found.fitted[""].model.provenance
    assert origin.strength == options.get("strength", "margin")
    assert [margin for *_, margin in origin.full_margins][:1] == [
        3.0
    ] or "full_margin" not in options
    assert Provenance.of(found.all_votes).full_margins == origin.full_margins
    rule, counts = found.fitted[""].rule, found.decided["minus", "tie", "plus"].to_numpy()
    assert found.decided["label"].to_list() == rule.decide(counts).tolist()
    assert rule.stops(counts).all()


# Grades

RESPONSES = PAIRS.frame.select("item", "prompt", response="a")
GRADES = [1 if truth == -1 else 4 for truth in TRUTH]
SCALE = Scale(range(1, 6))


def grade(request):
    """The right sums get 5, others 2; by another criterion all get 3 or 4."""
    text = request.messages[-1]["content"]
    number = int(text.split("What is ")[1].split()[0])
    is_right = f"= {2 * number}." in text
    if "how brief" in request.messages[0]["content"]:
        return f"[[{3 + number % 2}]]"
    return "[[5]]" if is_right else "[[2]]"


@pytest.mark.parametrize(("rule", "prior"), [(None, "weak"), ("lossless", "neighbours")])
def test_responses_get_grades_by_criteria(tmp_path, rule, prior):
    items = read_pairs(RESPONSES, criteria={"right": "how right", "brief": "how brief"})
    labels = pl.concat(
        pl.DataFrame({"item": RESPONSES["item"], "label": label, "criterion": criterion}).head(20)
        for criterion, label in (("right", GRADES), ("brief", [2 + n % 2 for n in range(30)]))
    )
    judging = Judging("m", n=5, template="grade-5")
    with pytest.raises(InputError, match="labels are 1, 2, 3, 4, and their scale is not given"):
        Pipeline(items, labels, judging)
    gold = read_labels(labels, scale=SCALE)
    pipeline = Pipeline(items, gold, judging, rule=rule, prior=prior)
    assert pipeline.tasks == ["right", "brief"]
    for _ in range(2):
        with VoteStore(tmp_path / "v.db") as store:
            job = JudgeJob(store, FunctionClient(grade))
            found = asyncio.run(pipeline.run(job))
            frame = votes_frame(store)
    assert found.run.n_calls == 0
    assert (len(frame) < 300) == (rule is not None)
    assert found.decided["task"].to_list() == ["right"] * 30 + ["brief"] * 30
    right = found.decided.filter(task="right")
    assert right["item"].to_list() == RESPONSES["item"].to_list()
    assert right["label"].to_list() == GRADES
    counts = right["1", "2", "3", "4", "5"].to_numpy()
    model = found.fitted["right"].model
    assert right["mean"].to_list() == model.means(counts).tolist()
    full = right.filter(counts.sum(axis=1) == 5)
    chances = model.predict_proba(counts[counts.sum(axis=1) == 5])
    assert full["p_1", "p_2", "p_3", "p_4", "p_5"].to_numpy().tolist() == chances.tolist()
    assert (model.provenance.n_votes, model.provenance.task) == (5, ("right",))


@pytest.mark.parametrize(
    ("template", "options", "argument"),
    [
        ("grade-5", {"rule": "epsilon=0.05"}, "stop"),
        ("grade-5", {"strength": "margin"}, "strength"),
        ("response", {}, "template"),
    ],
)
def test_grades_that_do_not_go_together(template, options, argument):
    labels = {"item": RESPONSES["item"], "label": [0 if g < 2 else 1 for g in GRADES]}
    with pytest.raises(InputError) as caught:
        Pipeline(RESPONSES, labels, Judging("m", n=4, template=template), **options)
    assert caught.value.argument == argument


def test_labels_of_the_other_kind_are_refused():
    graded = read_labels({"item": RESPONSES["item"], "label": GRADES}, scale=SCALE)
    of_pairs = read_labels(labels_of(20))
    for items, labels, template in ((PAIRS, graded, "response"), (RESPONSES, of_pairs, "grade-5")):
        with pytest.raises(InputError, match="but the template asks for"):
            Pipeline(items, labels, Judging("m", n=4, template=template))
