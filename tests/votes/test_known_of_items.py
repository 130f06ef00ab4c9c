"""What else is known of items: columns of tables, by name, in every function of data."""

import numpy as np
import polars as pl
import pytest

import btdagg
from refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore:this judge is not shown")
SYSTEMS = np.array(["a", "b", "c", "d"])


@pytest.fixture(scope="module")
def pairs():
    """Votes with systems and lengths in their rows, labels of a third of the items, arrays."""
    rng = np.random.default_rng(7)
    n = 240
    first, second = np.array([rng.choice(4, 2, replace=False) for _ in range(n)]).T
    chars = rng.integers(50, 900, (n, 2))
    strength = np.array([1.0, 0.4, -0.3, -1.0])
    u = 1.5 * (strength[first] - strength[second]) + 0.6 * np.log(chars[:, 0] / chars[:, 1])
    labels = np.sign(np.round(u + rng.logistic(size=n))).astype(int)
    votes = np.sign(np.round(0.5 * u[:, None] + rng.logistic(size=(n, 2)))).astype(int)
    item = np.array([f"item {i:03}" for i in range(n)])
    facts = {
        "system_a": SYSTEMS[first],
        "system_b": SYSTEMS[second],
        "chars_a": chars[:, 0],
        "chars_b": chars[:, 1],
        "mine": rng.normal(size=n),
    }
    frame = pl.DataFrame({"item": item, **facts}).join(
        pl.DataFrame({"item": item.repeat(2), "vote": votes.ravel()}), on="item"
    )
    known = pl.DataFrame({"item": item[:80], "label": labels[:80]})
    counts = (votes[:, :, None] == [-1, 0, 1]).sum(axis=1)
    gold = np.where(np.arange(n) < 80, labels, np.nan)
    return btdagg.read_votes(frame), btdagg.read_labels(known), counts, gold, facts


def columns_of(counts, facts):
    length = np.log1p(facts["chars_a"]) - np.log1p(facts["chars_b"])
    standing = btdagg.standing(counts, facts["system_a"], facts["system_b"])
    return {"standing": standing, "length": length}


def test_tables_items_and_arrays_give_one_model(pairs):
    votes, labels, counts, gold, facts = pairs
    known = columns_of(counts, facts)
    items = votes.items(labels).with_covariates("auto")
    assert [*items.covariates] == ["standing", "length"]
    for name, values in known.items():
        np.testing.assert_array_equal(items.covariates[name], values)
    of_tables = btdagg.calibrate(votes, labels, covariates="auto").model
    assert btdagg.calibrate(items).model == of_tables
    assert btdagg.calibrate(counts, gold, covariates=known).model == of_tables
    assert [*of_tables.covariates[0].standings] == [*SYSTEMS]
    named = btdagg.calibrate(votes, labels, covariates="length, mine").model
    assert [own.name for own in named.covariates] == ["length", "mine"]
    less = votes.items(labels).with_covariates(("chars",)).covariates["chars"]
    np.testing.assert_array_equal(less, facts["chars_a"] - facts["chars_b"])
    for wanted, got, expected in [
        ("lenght", "lenght", "standing, length, or a column lenght"),
        ("group-standing", "group-standing", "standing, length, or a column group-standing"),
        (["system_a"], "c", "a number in column system_a"),
        (["chars_b"], "chars_b", "chars, which is chars_a minus chars_b"),
    ]:
        with refused("covariates", got=got, expected=expected):
            votes.items(labels).with_covariates(wanted)


def test_a_models_standings_are_those_it_was_fitted_with(pairs):
    votes, labels, *_ = pairs
    model = btdagg.calibrate(votes, labels, covariates=("standing",)).model
    standings = model.covariates[0].standings
    rows = {
        "item": ["x", "y"],
        "vote": ["A", "B"],
        "system_a": ["a", "new"],
        "system_b": ["d", "b"],
    }
    items = btdagg.read_votes(rows).items().with_covariates(("standing",), model=model)
    wanted = [standings["a"] - standings["d"], np.nan]
    np.testing.assert_array_equal(items.covariates["standing"], wanted)


def test_a_column_of_the_name_is_one_where_nothing_makes_it(pairs):
    _, _, counts, gold, facts = pairs
    known = columns_of(counts, facts)
    frame = pl.DataFrame({"item": np.arange(240), **known}).join(
        pl.DataFrame([(i, v) for i, row in enumerate(counts.tolist())
                      for v, n in zip((-1, 0, 1), row, strict=True) for _ in range(n)],
                     schema=["item", "vote"], orient="row"), on="item"
    )  # fmt: skip
    votes, model = btdagg.read_votes(frame), btdagg.calibrate(counts, gold, covariates=known).model
    labels = btdagg.decisions(votes, model)["label"].to_numpy()
    of_a_task = btdagg.read_votes(frame.with_columns(task=pl.lit("chat")))
    assert btdagg.decisions(of_a_task, model)["label"].to_list() == labels.tolist()
    np.testing.assert_array_equal(labels, model.decide(counts, covariates=known))
    columns = "or a column length, or chars_a and chars_b, or response_a and response_b"
    with refused("covariates", got="length", expected=columns):
        btdagg.decisions(btdagg.read_votes(frame.drop("length")), model)


def error_of(scores):
    (cell,) = scores.cells
    return cell.methods[0].interval().mean


@pytest.mark.usefixtures("quick_commands")
def test_functions_of_data_use_what_is_known(pairs):
    votes, labels, counts, gold, facts = pairs
    known = columns_of(counts, facts)
    with_known = error_of(btdagg.evaluate(votes, labels, covariates="auto"))
    alone = error_of(btdagg.evaluate(votes, labels))
    assert with_known < alone - 0.05
    result = btdagg.compare(votes, votes, labels, covariates=(None, "auto"), names=("a", "b"))
    assert [own.mean for own in result.mae] == pytest.approx([alone, with_known])
    of_tables = btdagg.estimate(votes, labels, covariates="auto").estimates["net win rate"]
    of_arrays = btdagg.estimate(counts, gold, covariates=known).estimates["net win rate"]
    plain = btdagg.estimate(counts, gold).estimates["net win rate"]
    assert (of_tables.low, of_tables.high) == (of_arrays.low, of_arrays.high)
    assert of_tables.high - of_tables.low < plain.high - plain.low
    with pytest.raises(btdagg.InputError, match="first and second are the same votes"):
        btdagg.compare(votes, votes, labels, covariates="auto")


def test_sides_that_are_swapped_turn_covariates_round(pairs):
    votes, labels, *_ = pairs
    items = votes.items(labels, systems=("system_a", "system_b")).with_covariates("auto")
    own = items.of_pair("a", "b")
    rows = np.flatnonzero([{*pair} == {"a", "b"} for pair in items.systems.tolist()])
    turned = items.systems[rows, 0] != own.origin.sides.a
    assert turned.any()
    for name, values in own.covariates.items():
        wanted = items.covariates[name][rows]
        np.testing.assert_array_equal(values, np.where(turned, -wanted, wanted))
    gate = btdagg.estimates.not_worse(items, candidate="a", baseline="b", margin=0.5)
    assert gate.n_items == len(rows)
    with refused("counts", got=["standing", "length"], expected="items without"):
        btdagg.estimates.worth_a_look(items)
    with refused("covariates", got="standing"):
        btdagg.certify(items)


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_grades_have_systems_prompts_and_lengths():
    rng = np.random.default_rng(3)
    n, scale = 120, btdagg.Scale((1, 2, 3))
    system, group = rng.choice([*"xyz"], n), rng.choice([*"pqrst"], n)
    item = np.arange(n)
    scores = rng.integers(1, 4, (n, 2))
    response = np.array(["w" * k for k in rng.integers(1, 99, n)])
    frame = pl.DataFrame({"item": item, "system": system, "response": response}).join(
        pl.DataFrame({"item": item.repeat(2), "score": scores.ravel()}), on="item"
    )
    gold = pl.DataFrame({"item": item, "label": rng.integers(1, 4, n), "group": group})
    votes = btdagg.read_votes(frame, scale=scale)
    items = votes.items(btdagg.read_labels(gold, scale=scale)).with_covariates("auto")
    assert [*items.covariates] == ["standing", "group-standing", "length"]
    counts = (scores[:, :, None] == [1, 2, 3]).sum(axis=1)
    for name, names in (("standing", system), ("group-standing", group)):
        wanted = btdagg.standing(counts, names, scale=scale)
        np.testing.assert_array_equal(items.covariates[name], wanted)
    lengths = np.log1p([len(text) for text in response])
    np.testing.assert_allclose(items.covariates["length"], lengths)
    fitted = btdagg.calibrate(items)
    decided = fitted.model.decide(counts, covariates=items.covariates)
    assert len(decided) == n
