"""Strengths of votes in tables: what they come to as counts, and what is refused."""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError, read_votes
from btdagg.methods import by_name
from btdagg.votes import Provenance, ProvenanceWarning
from refusals import refused


def shares_of(votes, model):
    """Label probabilities by `decisions`, which reads votes as the model's were."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no item has more|items have unequal", ProvenanceWarning)
        decided = btdagg.decisions(votes, model)
    return decided.select("p_minus", "p_tie", "p_plus").to_numpy().tolist()


def counts_by(votes, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProvenanceWarning)
        return btdagg.decisions(votes, model).select("minus", "tie", "plus").to_numpy().tolist()


def exact(rows, full_margin=None):
    """Counts by item in exact fractions, of (item, judge, vote, margin)."""
    margins = {}
    for _, judge, vote, margin in rows:
        margins.setdefault(judge, []).append(Fraction(margin) if vote else Fraction(0))
    whole = {
        judge: Fraction(full_margin) if full_margin else 2 * sum(own) / len(own)
        for judge, own in margins.items()
    }
    counts = {}
    for item, judge, vote, margin in rows:
        own = counts.setdefault(item, [Fraction(0)] * 3)
        share = min(Fraction(margin) / Fraction(float(whole[judge])), 1) if vote else 0
        strength = Fraction(math.floor(share * 1024 + Fraction(1, 2)), 1024)
        own[vote + 1] += strength if vote else 0
        own[1] += 1 - strength
    return np.array([[float(x) for x in own] for own in counts.values()])


def drawn(seed, n=400, scale=10):
    random = np.random.default_rng(seed)
    votes = random.integers(-1, 2, n)
    return [
        (f"i{item}", judge, int(vote), int(margin) * scale if vote else 0)
        for item, judge, vote, margin in zip(
            random.integers(0, 40, n),
            random.choice(["a", "b"], n),
            votes,
            random.integers(1, 10, n),
            strict=True,
        )
    ]


def columns_of(rows):
    item, judge, vote, margin = map(list, zip(*rows, strict=True))
    return {"item": item, "judge": judge, "vote": vote, "margin": margin}


@pytest.mark.parametrize("full_margin", [None, 45.0])
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_counts_are_those_of_exact_fractions(tmp_path, kind, full_margin):
    rows = drawn(1)
    source = columns_of(rows)
    if kind != "frame":
        path = tmp_path / f"votes.{kind}"
        frame = pl.DataFrame(source)
        frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
        source = path
    votes = read_votes(source, full_margin=full_margin)
    ids, counts = votes.counts()
    assert np.array_equal(counts, exact(rows, full_margin))
    assert np.array_equal(votes.signs().counts()[0], ids)
    assert votes.signs().counts()[1].dtype == np.int64
    assert counts.sum(axis=1).tolist() == votes.signs().counts()[1].sum(axis=1).tolist()
    # In any order of the rows and any scale of the margins.
    frame = pl.DataFrame(columns_of(rows)).sample(fraction=1, shuffle=True, seed=3)
    times = 8.0
    scaled = frame.with_columns(pl.col("margin") * times)
    again = read_votes(scaled, full_margin=full_margin and full_margin * times).tally().sort("item")
    assert again.equals(votes.tally().sort("item"))
    mirrored = frame.with_columns(-pl.col("vote"))
    other = read_votes(mirrored, full_margin=full_margin).tally().sort("item")
    assert np.array_equal(
        other.select("plus", "tie", "minus"), again.select("minus", "tie", "plus")
    )


def test_one_judge_whose_margins_are_a_hundred_times_those_of_another():
    rows = drawn(2)
    larger = [(item, j, v, m * (100 if j == "b" else 1)) for item, j, v, m in rows]
    votes = [read_votes(columns_of(own)) for own in (rows, larger)]
    assert votes[0].tally().equals(votes[1].tally())
    margins = {own.judge: own.margin for own in votes[1].strength.full_margins}
    assert margins["b"] > 50 * margins["a"]
    panels = [own.items(panel="judge") for own in votes]
    assert np.array_equal(panels[0].counts, panels[1].counts)
    given = read_votes(columns_of(larger), full_margin={"a": 30, "b": 3000})
    assert {own.margin for own in given.strength.full_margins} == {30, 3000}


def test_signed_margins_strengths_and_probabilities():
    by_margin = read_votes({"item": ["x", "x", "y"], "margin": [-1.0, 2.0, 0.0]}, full_margin=4)
    assert by_margin.counts()[1].tolist() == [[0.25, 1.25, 0.5], [0, 1, 0]]
    same = {"item": ["x", "x", "y"], "vote": ["B", "A", "tie"], "margin": [-1.0, 2.0, None]}
    assert read_votes(same, full_margin=4).counts()[1].tolist() == by_margin.counts()[1].tolist()
    rows = {"item": ["x", "x", "y"], "margin": [-1.0, 2.0, 0.0]}
    assert read_votes(rows, strength="none").counts()[1].tolist() == [[1, 0, 1], [0, 1, 0]]
    by_strength = read_votes({"item": [1, 1], "vote": [1, 0], "strength": [0.5, None]})
    assert by_strength.counts()[1].tolist() == [[0, 1.5, 0.5]]
    assert read_votes({"item": [1], "vote": [1], "confidence": [0.5]}).counts()[1].tolist() == [
        [0, 0, 1]
    ]
    confident = {"item": [1], "vote": [1], "confidence": [0.5]}
    assert read_votes(confident, strength="confidence").counts()[1].tolist() == [[0, 0.5, 0.5]]
    shares = {
        "item": ["x", "x"],
        "p_minus": [0.5, 0.125],
        "p_tie": [0, 0.125],
        "p_plus": [0.5, 0.75],
    }
    votes = read_votes(shares)
    assert votes.counts()[1].tolist() == [[0.625, 0.125, 1.25]]
    assert votes.frame["vote"].to_list() == [0, 1]


def test_probabilities_never_add_up_to_more_than_a_vote():
    random = np.random.default_rng(4)
    p = random.integers(0, 2048, 500) / 2048
    rows = {"item": np.arange(500), "p_minus": p, "p_tie": np.zeros(500), "p_plus": 1 - p}
    counts = read_votes(rows).counts()[1]
    assert (counts >= 0).all()
    assert (counts.sum(axis=1) == 1).all()
    turned = read_votes({**rows, "p_minus": 1 - p, "p_plus": p}).counts()[1]
    assert np.array_equal(turned, counts[:, ::-1])


def test_strengths_of_0_and_1_are_votes_to_the_last_bit():
    rows = {"item": ["x", "x", "y"], "vote": [1, 0, -1], "strength": [1, 0, 0]}
    counts = read_votes(rows).counts()[1]
    assert counts.dtype == np.int64
    assert counts.tolist() == [[0, 1, 1], [0, 1, 0]]


def test_a_judge_without_margins_beside_one_with():
    rows = {
        "item": [1, 1, 2],
        "judge": ["a", "b", "b"],
        "vote": [1, 1, -1],
        "margin": [2, None, None],
    }
    assert read_votes(rows, full_margin=4).items(panel="judge").counts.tolist() == [
        [[0, 0.5, 0.5], [0, 0, 1]],
        [[0, 0, 0], [1, 0, 0]],
    ]
    assert read_votes({**rows, "margin": [None] * 3}).strength is None


def test_repeated_samples_and_first_votes():
    rows = {
        "item": ["x"] * 5,
        "sample": [0, 1, 1, 2, 3],
        "vote": [1, -1, -1, 1, None],
        "margin": [1, 2, 2, 4, None],
    }
    votes = read_votes(rows, full_margin=4)
    assert votes.counts()[1].tolist() == [[0.5, 1.25, 1.25]]
    assert votes.counts(2)[1].tolist() == [[0.5, 1.25, 0.25]]
    assert votes.n_missing == 1


def test_baselines_count_signs_and_confidences_stay_what_they_were():
    rows = pl.DataFrame(columns_of(drawn(5))).with_columns(confidence=pl.col("margin") / 90)
    votes = read_votes(rows)
    items, signs = votes.items(), read_votes(rows, strength="none").items()
    assert items.counts.dtype == np.float64
    assert np.array_equal(items.facts["signs"], signs.pooled)
    few = np.arange(7)
    for method in by_name(["majority", "median", "soft-sc-mean", "soft-sc-min", "ci-sc"]):
        assert np.array_equal(method.decide(items), method.decide(signs)), method.name
        assert np.array_equal(method.decide(items[few]), method.decide(signs[few]))


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_model_counts_votes_as_those_that_it_was_fitted_to():
    votes = read_votes({key: own for key, own in columns_of(drawn(6)).items() if key != "judge"})
    ids, counts = votes.counts()
    labels = btdagg.read_labels({"item": ids, "label": np.sign(counts[:, 2] - counts[:, 0])})
    model = btdagg.calibrate(votes, labels, prior="weak").model
    (margin,) = model.provenance.full_margins
    assert btdagg.DavidsonModel.from_json(model.to_json()).provenance == model.provenance
    few = {"item": ["x"], "vote": [1], "margin": [5]}
    expected = btdagg.tally(["x"], [5], full_margin=margin.margin)[1]
    assert shares_of(read_votes(few), model) == model.predict_proba(expected).tolist()
    with pytest.warns(ProvenanceWarning) as caught:
        btdagg.decisions(read_votes({"item": ["x"], "vote": [1]}), model)
    texts = [str(warning.message) for warning in caught]
    assert any("count without their strength, but the model" in text for text in texts)
    of_signs = btdagg.calibrate(votes.signs(), labels, prior="weak")
    with pytest.warns(
        ProvenanceWarning,
        match="votes have a margin, but the model was fitted without vote strength",
    ):
        shares = shares_of(votes, of_signs.model)
    assert shares == of_signs.model.predict_proba(votes.signs().items().pooled).tolist()


BAD = {
    "larger strength": ({"strength": [0.5, 1.5]}, {}, 2, "strength", 1.5),
    "negative beside a sign": ({"margin": [2.0, -3.0], "vote": [1, 1]}, {}, 2, "margin", -3.0),
    "sign and size": ({"margin": [3.0, -2.0], "vote": [-1, -1]}, {}, 2, "margin", -2.0),
    "infinite": ({"margin": [1.0, math.inf]}, {}, 2, "margin", math.inf),
    "huge": ({"margin": [1e200, 1.0]}, {}, 1, "margin", 1e200),
    "missing": ({"margin": [1.0, None]}, {}, 2, "margin", None),
    "NaN": ({"margin": [math.nan, 1.0]}, {}, 1, "margin", None),
    "text": ({"margin": ["1", "much"]}, {}, 2, "margin", "much"),
    "shares": (
        {"p_minus": [0.2, 0.5], "p_tie": [0.3, 0.1], "p_plus": [0.5, 0.1]}, {}, 2, "p_minus", 0.5,
    ),
    "a share missing": (
        {"p_minus": [0.2, None], "p_tie": [0.3, 0.5], "p_plus": [0.5, 0.5]}, {}, 2, "p_minus", None,
    ),
    "a negative share": (
        {"p_minus": [0.2, 0.5], "p_tie": [0.3, -0.25], "p_plus": [0.5, 0.75]}, {}, 2, "p_tie",
        -0.25,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_strengths_name_their_row(case):
    columns, arguments, row, column, got = BAD[case]
    with pytest.raises(InputError) as error:
        read_votes({"item": ["x", "y"], "vote": [1, -1]} | columns, **arguments)
    assert (error.value.row, error.value.column, error.value.got) == (row, column, got)


@pytest.mark.parametrize(
    ("columns", "arguments", "message"),
    [
        ({"margin": [1]}, {"full_margin": 0}, "full_margin is 0, expected a number above 0"),
        ({"margin": [1]}, {"full_margin": math.nan}, "full_margin is nan"),
        ({}, {"full_margin": 2}, "no column 'margin'"),
        ({}, {"strength": "margin"}, "strength is margin, but there is no column margin"),
        ({"margin": [1]}, {"strength": "much"}, "strength is 'much', expected one of margin"),
        ({"strength": [1]}, {"full_margin": 2}, "full_margin needs a column margin"),
        ({"margin": [1], "strength": [1]}, {}, "columns for margin and strength; choose one by"),
        (
            {"margin": [1], "judge": ["a"]},
            {"full_margin": {"b": 2}},
            "full_margin is 'b', expected a",
        ),
    ],
)
def test_bad_arguments_are_refused(columns, arguments, message):
    with pytest.raises(InputError) as error:
        read_votes({"item": ["x"], "vote": [1]} | columns, **arguments)
    assert message in str(error.value)


def test_counts_of_votes_with_a_strength_are_read_again():
    counts = read_votes({"item": [1, 2], "minus": [0.5, 0], "tie": [1.5, 1], "plus": [0, 2]})
    assert counts.counts()[1].tolist() == [[0.5, 1.5, 0], [0, 1, 2]]
    items = counts.items()
    assert "signs" not in items.facts
    assert Provenance.of(counts).strength == ""
    assert json.loads(json.dumps(Provenance(full_margins=[["a", "", 2]]).as_dict())) == {
        "full_margins": [["a", "", 2.0]]
    }


def test_confidences_that_are_named_may_be_any_amounts():
    votes = read_votes({"item": ["x", "x"], "vote": [1, 0], "confidence": [6.0, 2.0]})
    assert votes.items(confidence="confidence").facts["confidences"].total.tolist() == [[0, 2, 6]]
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        votes.items().facts["confidences"]


def test_repeated_samples_do_not_move_the_margin_of_a_whole_win():
    once = {"item": ["x", "x", "y"], "sample": [0, 1, 0], "vote": [1, 1, -1], "margin": [2, 4, 6]}
    twice = {name: [*values, values[2], values[2]] for name, values in once.items()}
    assert read_votes(twice).tally().equals(read_votes(once).tally())
    assert read_votes(twice).strength == read_votes(once).strength


def test_margins_of_a_model_are_those_of_its_judges():
    rows = {
        "item": [1, 2, 3],
        "judge": ["a", "b", None],
        "vote": [1, 1, 1],
        "margin": [1.0, 10.0, 100.0],
    }
    own = Provenance.of(read_votes(rows))
    assert [margin.judge for margin in own.full_margins] == ["", "a", "b"]
    model = btdagg.DavidsonModel(1.2, 2.0, 0.8, provenance=own)
    assert counts_by(read_votes(rows), model) == read_votes(rows).counts()[1].tolist()
    of_a = Provenance(strength="margin", full_margins=[("a", "t", 4.0)])
    other = {"item": [1, 1], "judge": ["b", "b"], "vote": [1, 1], "margin": [50.0, 150.0]}
    of_margins = btdagg.DavidsonModel(1.2, 2.0, 0.8, provenance=of_a)
    assert counts_by(read_votes(other), of_margins) == [[0, 1, 1]]  # halves of 50 and 150, of 200
    unnamed = {"item": [1], "vote": [1], "margin": [1.0]}
    assert counts_by(read_votes(unnamed), of_margins) == [[0, 0.75, 0.25]]
    assert model.provenance == own


def test_what_was_chosen_is_kept_and_said():
    origin = Provenance(strength="margin", full_margins=[("", "", 4.0)])
    model = btdagg.DavidsonModel(1.2, 2.0, 0.8, provenance=origin)
    rows = {"item": ["x", "x"], "vote": [1, 1], "margin": [1.0, 2.0]}
    votes = read_votes(rows)
    for chosen, text in (
        (read_votes(rows, full_margin=2), "a full win is a margin of 2, but the model was fitted"),
        (read_votes(rows, strength="none"), "votes count without their strength"),
        (votes.signs(), "votes count without their strength"),
    ):
        with pytest.warns(ProvenanceWarning, match=text):
            shares = shares_of(chosen, model)
        assert shares == model.predict_proba(chosen.counts()[1]).tolist()
    expected = btdagg.tally(["x", "x"], [1, 2], full_margin=4)[1]
    assert shares_of(votes, model) == model.predict_proba(expected).tolist()
    ties = read_votes({"item": ["x"], "vote": [0], "margin": [0.0]})
    assert btdagg.decisions(ties, model)["label"].to_list() == [0]  # without a warning


def test_a_strength_that_was_asked_for_has_to_be_there():
    with refused("strength", source="data frame", expected="a margin for at least one vote"):
        read_votes({"item": ["x"], "vote": [1], "margin": [None]}, strength="margin")
    with refused("full_margin", got="a"):
        read_votes({"item": ["x"], "vote": [1], "margin": [1]}, full_margin={"a": 7})
