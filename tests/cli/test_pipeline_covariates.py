"""What else is known of pairs, in a job that asks a judge and calibrates."""

import asyncio
import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Scale, read_labels
from btdagg.judge import FunctionClient, Judging, VoteStore, read_pairs
from btdagg.judge.judging import JudgeJob
from btdagg.online import StoppingRule
from btdagg.pipeline import Pipeline
from btdagg.votes.items import Facts
from refusals import refused

N, N_ITEMS, N_LABELS = 6, 90, 50
SYSTEMS = ("ant", "bee", "cat")
RNG = np.random.default_rng(5)
SIDES = RNG.permuted(np.tile(SYSTEMS, (N_ITEMS, 1)), axis=1)[:, :2]
CHARS = RNG.integers(5, 400, (N_ITEMS, 2))
LENGTHS = np.log1p(CHARS[:, 0]) - np.log1p(CHARS[:, 1])
SKILL = (SIDES == "ant").astype(float) @ [1, -1]
SHOWN = LENGTHS + SKILL + RNG.normal(0, 0.8, N_ITEMS)
TRUTH = np.where(np.abs(SHOWN) < 0.4, 0, np.sign(SHOWN)).astype(int)
# Of each pair, the votes in the order in which its samples are drawn.
DRAWN = np.sign(np.rint(SHOWN[:, None] + RNG.normal(0, 2, (N_ITEMS, N)))).astype(int)


def pairs_of(**columns):
    frame = {"item": [f"q{k}" for k in range(N_ITEMS)]}
    frame["prompt"] = [f"Number {k} ?" for k in range(N_ITEMS)]
    frame |= {side: ["x" * n for n in CHARS[:, i]] for i, side in enumerate("ab")}
    sides = {"system_a": SIDES[:, 0], "system_b": SIDES[:, 1]}
    return read_pairs(pl.DataFrame(frame | sides | columns))


PAIRS = pairs_of()
LABELS = pl.DataFrame({"item": PAIRS.frame["item"], "label": TRUTH}).head(N_LABELS)
JUDGING = Judging("m", n=N, order="AB")


class Answers:
    """A judge whose votes of a pair are those of a list, in turn."""

    def __init__(self):
        self.asked = [0] * N_ITEMS

    def __call__(self, request):
        number = int(request.messages[-1]["content"].split("Number ")[1].split()[0])
        self.asked[number] += 1
        return ["[[B]]", "[[TIE]]", "[[A]]"][DRAWN[number, self.asked[number] - 1] + 1]


def label(place, answers, pairs=PAIRS, **options):
    pipeline = Pipeline(pairs, LABELS, JUDGING, **options)

    async def run():
        with VoteStore(place) as store:
            return await pipeline.run(JudgeJob(store, FunctionClient(answers)))

    return asyncio.run(run())


def known_of(model, rows=slice(None)):
    standings = {own.name: own.standings for own in model.covariates}["standing"]
    of_sides = np.vectorize(standings.get)(SIDES[rows])
    return {"standing": of_sides[:, 0] - of_sides[:, 1], "length": LENGTHS[rows]}


def counts_of(votes):
    return (votes[..., None] == [-1, 0, 1]).sum(axis=-2)


def test_models_of_a_job_use_what_else_is_known(tmp_path):
    found = label(tmp_path / "v.db", Answers(), covariates="auto")
    model = found.fitted[""].model
    assert [own.name for own in model.covariates] == ["standing", "length"]
    assert [*model.covariates[0].standings] == list(SYSTEMS)
    counts = found.decided["minus", "tie", "plus"].to_numpy()
    assert counts.tolist() == counts_of(DRAWN).tolist()
    wanted = model.decide(counts, covariates=known_of(model))
    assert found.decided["label"].to_list() == wanted.tolist()
    systems = Facts(dict(zip(("system_a", "system_b"), np.transpose(SIDES), strict=True)))
    items = btdagg.votes.Items(
        counts=counts, facts=systems, labels=np.r_[TRUTH[:50], [np.nan] * 40]
    )
    known = items.with_covariates(["standing"]).covariates | {"length": LENGTHS}
    same = btdagg.calibrate(counts, items.label, covariates=known).model
    assert same.numbers == model.numbers
    assert "system_a" not in found.decided.columns
    assert any(
        "depend on standing are no independent evidence of which system is better" in n
        for n in found.notes
    )
    assert label(tmp_path / "v.db", Answers(), covariates="length").run.n_calls == 0


def test_a_rule_stops_pairs_by_standings_that_stay_as_they_are(tmp_path):
    answers = Answers()
    options = {"rule": "lossless", "covariates": "standing,length"}
    found = label(tmp_path / "v.db", answers, **options)
    rule = found.fitted[""].rule
    assert (rule.votes, rule.step) == (None, 1)  # one order alone is asked
    known = known_of(rule.model)
    of_all = rule.model.decide(counts_of(DRAWN), covariates=known)
    assert found.decided["label"].to_list() == of_all.tolist()
    assert found.decided["settled"].all()
    asked = np.array(answers.asked)
    assert (asked[:N_LABELS] == N).all()
    assert asked[N_LABELS:].sum() == found.run.settled.n_samples < 40 * N
    assert (asked == 0).any()  # what is known settles some before the first vote
    plain = Answers()
    label(tmp_path / "plain.db", plain, rule="lossless")
    assert answers.asked != plain.asked
    again = label(tmp_path / "v.db", Answers(), **options)
    assert again.run.n_calls == 0
    assert again.decided.equals(found.decided)


def test_what_a_job_cannot_know_is_refused_before_any_call():
    for covariates, pairs, columns in [
        ("price", PAIRS, "a column price, or price_a and price_b of"),
        ("group-standing", PAIRS, "a column group-standing of"),
        ("standing", read_pairs(PAIRS.frame.drop("system_a")), "system_a and system_b of"),
    ]:
        with refused("covariates", got=covariates, expected=columns):
            Pipeline(pairs, LABELS, JUDGING, covariates=covariates)
    for rule in ("epsilon=0.05", "price=0.1", "budget=3"):
        with refused("covariates", got=["length"]):
            Pipeline(PAIRS, LABELS, JUDGING, covariates="length", rule=rule)
    priced = pairs_of(price_a=CHARS[:, 0], price_b=CHARS[:, 1])
    assert Pipeline(priced, LABELS, JUDGING, covariates=["price"]).covariates == ("price",)


def test_certificates_of_a_job_leave_standings_out(tmp_path):
    found = label(tmp_path / "v.db", Answers(), covariates="auto", agreement=0.55)
    certificate = found.fitted[""].certificate
    assert [own.name for own in certificate.model.covariates] == ["length"]
    assert found.decided["trusted"].any()


def test_grades_that_need_no_vote_get_their_label(tmp_path):
    rng = np.random.default_rng(8)
    chars = np.exp(rng.uniform(1, 8, 60)).astype(int)
    responses = pl.DataFrame(
        {
            "item": [f"r{k}" for k in range(60)],
            "prompt": [f"Number {k} ?" for k in range(60)],
            "response": ["x" * n for n in chars],
        }
    )
    grades = 1 + (chars > 30) + (chars > 150) + (chars > 400) + (chars > 1000)
    scale = Scale((1, 2, 3, 4, 5))
    gold = read_labels(
        pl.DataFrame({"item": responses["item"], "label": grades}).head(40), scale=scale
    )
    judging = Judging("m", n=4, template="grade-5")
    options = {"rule": "lossless", "covariates": "auto"}
    pipeline = Pipeline(responses, gold, judging, **options)
    assert pipeline.covariates == ("length",)

    given = rng.integers(1, 6, 60)  # a judge that says little

    def grade(request):
        number = int(request.messages[-1]["content"].split("Number ")[1].split()[0])
        return f"[[{given[number]}]]"

    async def run():
        with VoteStore(tmp_path / "v.db") as store:
            return await pipeline.run(JudgeJob(store, FunctionClient(grade)))

    found = asyncio.run(run())
    rule, decided = found.fitted[""].rule, found.decided
    counts = decided["1", "2", "3", "4", "5"].to_numpy()
    empty = counts.sum(axis=1) == 0
    assert empty.any()
    known = {"length": np.log1p(chars)}
    assert decided["settled"].all()
    assert decided["label"].to_list() == rule.decide(counts, covariates=known).tolist()
    of_all = rule.model.decide(4 * (given[:, None] == scale.points), covariates=known)
    assert decided["label"].to_list() == of_all.tolist()


@pytest.mark.usefixtures("quick_commands")
def test_btdagg_run_takes_covariates_as_a_key(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"a": [f"{k} + {k} = {2 * k + k % 2}. Yes." + " Indeed." * (k % 5) for k in range(60)]}
    texts["b"] = [f"{k} + {k} = {2 * k + (k + 1) % 2}." + " Sure." * (k % 7) for k in range(60)]
    prompts = [f"What is {k} + {k}?" for k in range(60)]
    frame = pl.DataFrame({"item": np.arange(60), "prompt": prompts} | texts)
    frame.write_ndjson("pairs.jsonl")
    chars = frame.select(pl.col("a", "b").str.len_chars().cast(pl.Int64)).to_numpy()
    labels = np.sign(chars[:, 0] - chars[:, 1])
    frame.select("item", label=labels).head(40).write_csv("labels.csv")
    options = ["run", "pairs.jsonl", "--labels", "labels.csv", "--model", "simulated", "-n", "4"]
    options += ["--stop", "lossless", "--set", "covariates=length", "-o", "out"]
    status, _, err = cli(*options)
    assert status == 0, err
    saved = json.loads((tmp_path / "out/rule.json").read_text())
    assert [own["name"] for own in saved["model"]["covariates"]] == ["length"]
    rule, decided = StoppingRule.load("out/rule.json"), pl.read_csv("out/decided.csv")
    known = {"length": np.log1p(chars[:, 0]) - np.log1p(chars[:, 1])}
    counts = decided["minus", "tie", "plus"].to_numpy()
    assert decided["label"].to_list() == rule.decide(counts, covariates=known).tolist()
    assert (counts.sum(axis=1) == 0).any()
    evaluation = json.loads((tmp_path / "out/evaluation.json").read_text())
    assert evaluation["estimates"]["n_items"] == evaluation["estimates"]["n_labels"] == 40
    status, _, err = cli(*options[:-6], "--stop", "epsilon=0.1", *options[-4:])
    assert status == 2
    assert "covariates is" in err
    judge = ["judge", "pairs.jsonl", "--model", "simulated", "--stop", "out/rule.json"]
    status, _, err = cli(*judge, "--store", "new.db")
    assert status == 0, err
    status, _, err = cli(*judge, "--store", "new.db", "--dry-run")
    assert status == 0, err
    assert "60 pairs are settled already" in err
