"""Every function that takes votes and labels matches them by id, or says how to."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg import InputError
from btdagg.evaluation import CrossFit, GroupTest
from refusals import refused

N_ITEMS = 60


class Data:
    """Votes and labels of the same items, the labels in another order."""

    def __init__(self, ids):
        rng = np.random.default_rng(0)
        gold = rng.integers(-1, 2, N_ITEMS)
        cast = np.where(
            rng.random((N_ITEMS, 6)) < 0.8, gold[:, None], rng.integers(-1, 2, (N_ITEMS, 6))
        )
        self.votes = pd.DataFrame({"item": np.repeat(ids, 6), "vote": cast.ravel()})
        sums = [(cast == vote).sum(axis=1) for vote in (-1, 0, 1)]
        self.counts = pd.DataFrame(
            {"item": ids, **dict(zip(["minus", "tie", "plus"], sums, strict=True))}
        )
        order = rng.permutation(N_ITEMS)
        self.labels = pd.DataFrame({"item": np.array(ids)[order], "label": gold[order]})
        self.tables = btdagg.read_votes(self.votes), btdagg.read_labels(self.labels)
        self.arrays = np.stack(sums, axis=1), gold


DATA = {
    "text": Data([f"q{i}" for i in range(N_ITEMS)]),
    "integers": Data([*range(100, 100 + N_ITEMS)]),
    "row numbers": Data([*range(N_ITEMS)]),
}
QUICK = CrossFit(n_repeats=2, n_refits=5)
FUNCTIONS = {
    "calibrate": lambda *of: btdagg.calibrate(*of).model.numbers,
    "bootstrap": lambda *of: btdagg.bootstrap(*of, n_refits=3).parameters.tolist(),
    "estimate": lambda *of: btdagg.estimate(*of).estimates,
    "certify": lambda *of: btdagg.certify(*of, agreement=0.7).to_json(),
    "evaluate": lambda *of: str(btdagg.evaluate(*of, protocol=btdagg.Protocol(QUICK, GroupTest()))),
    "compare": lambda votes, labels: btdagg.compare(
        votes,
        votes,
        labels,
        methods=("weak", "majority"),
        protocol=btdagg.Protocol(QUICK, GroupTest()),
    ),
    "recalibrate": lambda votes, labels: str(
        btdagg.recalibrate(votes, votes, labels, protocol=QUICK)
    ),
    "fit_prior": lambda *of: btdagg.fit_prior({"a": of}).to_json(),
}
VOTES = {
    "votes": lambda d: d.tables[0],
    "pandas": lambda d: d.votes,
    "polars": lambda d: pl.DataFrame({k: d.votes[k].to_list() for k in d.votes}),
    "arrow": lambda d: pa.table({k: d.votes[k].to_list() for k in d.votes}),
    "counts": lambda d: d.counts,
    "counts by index": lambda d: d.counts.set_index("item"),
}
LABELS = {
    "labels": lambda d: d.tables[1],
    "pandas": lambda d: d.labels,
    "polars": lambda d: pl.DataFrame({k: d.labels[k].to_list() for k in d.labels}),
    "series by id": lambda d: d.labels.set_index("item")["label"],
}
"""Labels that say whose they are."""
SERIES = {
    "pandas": lambda d: d.labels["label"],
    "shuffled": lambda d: d.labels["label"].sample(frac=1, random_state=1),
    "shorter": lambda d: d.labels["label"].iloc[:40],
    "polars": lambda d: pl.Series("label", d.labels["label"].to_list()),
    "arrow": lambda d: pa.array(d.labels["label"].to_list()),
}
"""Labels that do not."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_labels_that_say_whose_they_are_are_joined_by_id(name):
    """Calibration with all forms of both; the others with each form once."""
    function = FUNCTIONS[name]
    for data in DATA.values():
        expected = repr(function(*data.tables))
        forms = itertools.product(VOTES, LABELS)
        if name != "calibrate":
            forms = zip(VOTES, itertools.cycle(LABELS))
        for votes, labels in forms:
            assert repr(function(VOTES[votes](data), LABELS[labels](data))) == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_series_is_never_matched_with_ids_by_position(name):
    for data in DATA.values():
        for how in ("votes", "pandas", "polars", "counts"):
            for labels in SERIES.values():
                with pytest.raises(InputError, match=r"item|index") as error:
                    FUNCTIONS[name](VOTES[how](data), labels(data))
                assert "to_numpy" not in str(error.value)


@pytest.mark.parametrize("name", ["calibrate", "evaluate", "compare", "fit_prior", "bootstrap"])
def test_items_are_joined_and_refused_as_their_votes(name):
    data = DATA["text"]
    items, expected = data.tables[0].items(), repr(FUNCTIONS[name](*data.tables))
    for labels in LABELS.values():
        assert repr(FUNCTIONS[name](items, labels(data))) == expected
    for labels in SERIES.values():
        with pytest.raises(InputError, match="ids of items"):
            FUNCTIONS[name](items, labels(data))


def test_an_estimate_joins_labels_of_some_items():
    data = DATA["integers"]
    some = data.labels.set_index("item")["label"].iloc[:30]
    expected = btdagg.estimate(data.tables[0], btdagg.read_labels(data.labels.iloc[:30]))
    for votes in (data.votes, data.counts, data.tables[0], data.tables[0].items()):
        assert btdagg.estimate(votes, some).estimates == expected.estimates


def test_arrays_and_equal_indexes_go_by_position():
    data = DATA["text"]
    counts, gold = data.arrays
    expected = btdagg.calibrate(counts, gold).model
    frame = data.counts.drop(columns="item")
    by_id = data.counts.set_index("item")
    for votes, labels in (
        (frame, pd.Series(gold)),
        (frame, gold),
        (by_id, pd.Series(gold, index=by_id.index)),
        (counts, pl.Series(gold)),
        (data.tables[0].items().by_row(), gold),
    ):
        assert btdagg.calibrate(votes, labels).model.numbers == expected.numbers
    with pytest.raises(InputError, match=r"different indexes.*\.loc\["):
        btdagg.calibrate(by_id, data.labels["label"])
    with pytest.raises(InputError, match="different indexes"):
        btdagg.calibrate(frame, gold, covariates=pd.DataFrame({"x": gold}).sample(frac=1))


def test_losses_of_other_rows_are_not_paired():
    losses = pd.Series([0.0, 1, 1, 0, 2, 1])
    with pytest.raises(InputError, match="different indexes"):
        btdagg.paired_permutation_test(losses, losses.sort_values())
    assert btdagg.paired_permutation_test(losses, losses + 1).statistic == -1


def test_a_frame_of_votes_without_ids_of_labels_says_what_is_missing():
    data = DATA["text"]
    with pytest.raises(InputError, match="read_votes"):
        btdagg.calibrate(data.arrays[0], data.labels)


def test_units_that_are_one_are_refused():
    counts, gold = DATA["text"].arrays
    for units in (np.zeros(N_ITEMS), ["item"] * N_ITEMS):
        for population in ("new", "finite"):
            with refused("units", got=units[0], expected="at least two"):
                btdagg.estimate(counts, gold, units=units, population=population)


def test_methods_are_aggregators_or_names_of_some():
    votes, labels = DATA["text"].tables
    by_name = btdagg.compare(votes, votes, labels, methods=("weak", "majority"))
    made = btdagg.methods.Calibrated(), btdagg.methods.MajorityVote()
    assert repr(by_name) == repr(btdagg.compare(votes, votes, labels, methods=made))
    names = btdagg.evaluate(votes, labels, aggregators=["weak", "majority"]).cells[0].methods
    assert [method.name for method in names] == [method.name for method in made]
    for wrong in (3, btdagg.methods.Calibrated, object()):
        with refused("methods", got=wrong):
            btdagg.compare(votes, votes, labels, methods=("weak", wrong))
        with refused("aggregators", got=wrong):
            btdagg.evaluate(votes, labels, aggregators=["weak", wrong])
    with pytest.raises(InputError, match="no method 'weka'"):
        btdagg.compare(votes, votes, labels, methods=("weka", "majority"))


def test_items_of_votes_and_labels_keep_systems_and_groups():
    data = DATA["text"]
    number = data.votes["item"].str[1:].astype(int)
    names = np.array(["x", "y", "z"])
    votes = data.votes.assign(system_a=names[number % 3], system_b=names[(number + 1) % 3])
    labels = data.labels.assign(group=(data.labels["item"].str[1:].astype(int) // 3).astype(str))
    tables = btdagg.read_votes(votes), btdagg.read_labels(labels)
    items = tables[0].items(tables[1])
    assert items.systems[:3].tolist() == [["x", "y"], ["y", "z"], ["z", "x"]]
    assert items.group[:4].tolist() == ["0", "0", "0", "1"]
    found = btdagg.estimate_systems(items)
    assert found.n_groups == 20
    for given in (tables, (votes, labels)):
        assert str(btdagg.estimate_systems(*given)) == str(found)
    with refused("labels"):
        btdagg.estimate_systems(*tables, system_a=["x"] * 60, system_b=["y"] * 60)
    assert str(btdagg.bias(items)) == str(btdagg.bias(*tables))
    assert len(btdagg.bias(items).systems) == 3


def test_items_of_grades_keep_the_system_of_each_response():
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 4, (40, 3))
    rows = {"item": np.repeat(np.arange(40), 3), "system": np.repeat(["x", "y"] * 20, 3)}
    votes = btdagg.read_votes({**rows, "score": scores.ravel()}, scale=btdagg.Scale("1-3"))
    gold = {"item": np.arange(40), "label": scores[:, 0]}
    labels = btdagg.read_labels(gold, scale=btdagg.Scale("1-3"))
    items = votes.items(labels)
    assert items.systems[:2].tolist() == [["x"], ["y"]]
    assert {*btdagg.estimate_systems(items).systems} == {"x", "y"}


def test_covariates_of_other_rows_are_not_those_of_the_items():
    data = DATA["integers"]
    items = data.tables[0].items(data.tables[1])
    x = pd.Series(np.arange(60.0), index=items.ids)
    expected = btdagg.calibrate(items, covariates={"x": x.to_numpy()}).model
    for of_items in (x, x.sample(frac=1, random_state=0)):
        for given in ({"x": of_items}, of_items.to_frame("x")):
            assert btdagg.calibrate(*data.tables, covariates=given).model == expected
            assert btdagg.calibrate(items, covariates=given).model == expected
    other = x.reset_index(drop=True)
    for given in ({"x": other}, other.to_frame("x"), {"x": x.to_numpy()}, {"x": pl.Series(x)}):
        with pytest.raises(InputError, match="ids of the items"):
            btdagg.calibrate(*data.tables, covariates=given)


def test_a_series_is_no_table():
    data = DATA["text"]
    for labels in (data.labels["label"], pl.Series([1, 0])):
        for read in (
            btdagg.read_labels,
            btdagg.read_votes,
            lambda of: btdagg.decide(data.votes, of),
        ):
            with pytest.raises(InputError, match="got Series, expected"):
                read(labels)


def test_lists_of_numpy_s_values_are_read_as_those_of_python_s():
    plain = {"item": ["x", "x", "y"], "vote": [1, 0, -1], "sample": [0, 1, 0]}
    columns = {name: list(np.array(values)) for name, values in plain.items()}
    mixed = {**plain, "vote": [np.int8(1), 0, np.float64(-1)], "item": [np.str_("x"), "x", "y"]}
    for table in (plain, columns, mixed):
        ids, counts = btdagg.read_votes(table).counts()
        assert (ids.tolist(), counts.tolist()) == (["x", "y"], [[0, 1, 1], [1, 0, 0]])
