"""Every function that takes votes and labels matches them by id, or says how to."""

import inspect
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

    def __init__(self, ids, n_labels=N_ITEMS, **columns):
        rng = np.random.default_rng(0)
        gold = rng.integers(-1, 2, N_ITEMS)
        cast = np.where(
            rng.random((N_ITEMS, 6)) < 0.8, gold[:, None], rng.integers(-1, 2, (N_ITEMS, 6))
        )
        self.votes = pd.DataFrame({"item": np.repeat(ids, 6), "vote": cast.ravel()})
        self.votes = self.votes.assign(**{n: np.repeat(of, 6) for n, of in columns.items()})
        sums = [(cast == vote).sum(axis=1) for vote in (-1, 0, 1)]
        self.counts = pd.DataFrame(
            {"item": ids, **dict(zip(["minus", "tie", "plus"], sums, strict=True))}
        )
        order = rng.permutation(N_ITEMS)[:n_labels]
        self.labels = pd.DataFrame({"item": np.array(ids)[order], "label": gold[order]})
        self.tables = btdagg.read_votes(self.votes), btdagg.read_labels(self.labels)
        self.arrays = np.stack(sums, axis=1), gold


DATA = {
    "text": Data([f"q{i}" for i in range(N_ITEMS)]),
    "integers": Data([*range(100, 100 + N_ITEMS)]),
    "row numbers": Data([*range(N_ITEMS)]),
}
QUICK = CrossFit(n_repeats=2, n_refits=5)
PROTOCOL = btdagg.Protocol(QUICK, GroupTest())
MODEL = btdagg.calibrate(*DATA["text"].tables).model
# Every public function of votes and labels, by its name; of some, the votes alone.
QUESTIONS = {
    "calibrate": lambda *of: btdagg.calibrate(*of).model.numbers,
    "calibrate_panel": lambda *of: btdagg.calibrate_panel(*of).model,
    "bootstrap": lambda *of: btdagg.bootstrap(*of, n_refits=3).parameters.tolist(),
    "estimate": lambda *of: btdagg.estimate(*of).estimates,
    "estimate_systems": lambda *of: str(btdagg.estimate_systems(*of)),
    "certify": lambda *of: btdagg.certify(*of, agreement=0.7).to_json(),
    "evaluate": lambda *of: str(btdagg.evaluate(*of, protocol=PROTOCOL)),
    "compare": lambda votes, labels: btdagg.compare(
        votes, votes, labels, methods=("weak", "majority"), protocol=PROTOCOL
    ),
    "recalibrate": lambda votes, labels: str(
        btdagg.recalibrate(votes, votes, labels, protocol=QUICK)
    ),
    "fit_prior": lambda *of: btdagg.fit_prior([of]).to_json(),
    "agreement": lambda *of: str(btdagg.agreement(*of)),
    "bias": lambda *of: str(btdagg.bias(*of)),
    "align": lambda votes, labels: btdagg.align(DATA["text"].arrays[1], votes, labels),
    "decide": lambda *of: np.array(btdagg.decide(*of)).tolist(),
    "decisions": lambda votes, _: btdagg.decisions(votes, MODEL).rows(),
    "standing": lambda votes, _: btdagg.standing(votes, ["x"] * N_ITEMS, ["y"] * N_ITEMS),
    "majority_vote": lambda votes, _: btdagg.majority_vote(votes).tolist(),
    "change": lambda votes, _: btdagg.estimates.change(votes, votes),
    "choose": lambda votes, _: btdagg.estimates.choose(votes, 9).rows.tolist(),
    "not_worse": lambda *of: str(
        btdagg.estimates.not_worse(*of, candidate="x", baseline="y", margin=0.5)
    ),
    "worth_a_look": lambda *of: btdagg.estimates.worth_a_look(*of, 0.1).rows.tolist(),
    "fit_votes": lambda *of: str(btdagg.online.fit_votes(*of)),
    "plan": lambda *of: str(btdagg.online.plan(*of, n_items=100, n_votes=[2], n_labels=[20])),
    "drps": lambda *of: MODEL.drps(*of),
    "decide_by_model": lambda votes, _: MODEL.decide(votes).tolist(),
}
FUNCTIONS = {
    name: QUESTIONS[name]
    for name in (
        *("calibrate", "bootstrap", "estimate", "certify", "evaluate", "compare", "recalibrate"),
        *("fit_prior", "agreement"),
    )
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


PAIRED = Data(
    [f"q{i}" for i in range(N_ITEMS)],
    n_labels=50,
    system_a=["x", "y"] * (N_ITEMS // 2),
    system_b=["y", "x"] * (N_ITEMS // 2),
    judge=["j"] * N_ITEMS,
)
TABLES = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.DataFrame({k: frame[k].to_list() for k in frame}),
    "lazy": lambda frame, _: pl.DataFrame({k: frame[k].to_list() for k in frame}).lazy(),
    "arrow": lambda frame, _: pa.table({k: frame[k].to_list() for k in frame}),
    "mapping": lambda frame, _: {k: frame[k].to_list() for k in frame},
    "rows": lambda frame, _: frame.to_dict("records"),
    "path": lambda frame, path: frame.to_csv(path, index=False) or str(path),
    "Path": lambda frame, path: frame.to_csv(path, index=False) or path,
}


def answer(function, votes, labels):
    """The answer as text; None if a sentence says which function reads the table."""
    try:
        return repr(function(votes, labels))
    except InputError as error:
        if "read_votes(" in str(error) or "read_labels(" in str(error):
            return None
        raise


def test_no_question_of_votes_and_labels_is_forgotten():
    public = {"decisions", "change"}  # of items by other names
    for module in (btdagg, btdagg.estimates, btdagg.online):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            parameters = {*inspect.signature(function).parameters}
            if parameters & {"labels", "counts", "neighbours"} and "predicted" not in parameters:
                public.add(name)
    assert public == {*QUESTIONS} - {"drps", "decide_by_model"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_table_of_any_kind_is_read_or_who_reads_it_is_said(name, tmp_path):
    arrays_alone = "align", "drps", "decide_by_model"
    expected = None if name in arrays_alone else answer(QUESTIONS[name], *PAIRED.tables)
    for kind in TABLES.values():
        tables = kind(PAIRED.votes, tmp_path / "v.csv"), kind(PAIRED.labels, tmp_path / "l.csv")
        found = answer(QUESTIONS[name], *tables)
        if name == "decide":  # which returns a frame of the same kind
            assert found is not None
        else:
            assert found in (expected, None)
        if name in FUNCTIONS or name in ("estimate_systems", "bias", "choose", "decisions"):
            assert found == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", QUESTIONS)
def test_arrays_and_series_without_ids_are_not_matched_with_a_table(name):
    votes_alone = "decisions", "standing", "majority_vote", "change", "choose", "decide_by_model"
    if name in votes_alone:
        return
    gold = PAIRED.arrays[1]
    for labels in (gold, gold.tolist(), pd.Series(gold), pl.Series(gold)):
        for votes in (PAIRED.tables[0], PAIRED.votes, PAIRED.tables[0].items()):
            with pytest.raises(InputError):
                QUESTIONS[name](votes, labels)


def test_an_argument_with_a_row_for_each_item_is_matched_by_id():
    data = PAIRED
    items = data.tables[0].items(data.tables[1])
    prompts = pd.Series([f"p{i // 3}" for i in range(N_ITEMS)], index=items.ids)
    weights = pd.Series(np.linspace(0.5, 1, N_ITEMS), index=items.ids)
    shuffled = np.random.default_rng(1).permutation(N_ITEMS)
    expected = btdagg.estimate(*data.tables, groups=prompts)
    of_arrays = btdagg.estimate(items.by_judge, items.labels, groups=prompts.to_numpy())
    assert expected.estimates == of_arrays.estimates
    in_any_order = btdagg.estimate(*data.tables, groups=prompts.iloc[shuffled])
    assert in_any_order.estimates == expected.estimates
    labelled = items.labelled()
    of_labelled = weights.loc[labelled.ids].to_numpy()
    weighted = btdagg.calibrate(labelled, weights=of_labelled).model
    for given in (weights, weights.iloc[shuffled]):
        assert btdagg.calibrate(*data.tables, weights=given).model == weighted
        assert btdagg.calibrate(items, weights=given).model == weighted
    for name, values in (("groups", prompts), ("weights", weights)):
        for other in (values.to_numpy(), values.to_list(), values.reset_index(drop=True)):
            with refused(name, got=type(other).__name__):
                btdagg.calibrate(*data.tables, **{name: other})
    half = pd.Series(0.5, index=items.ids)
    by_id = btdagg.estimate(*data.tables, probabilities=half.iloc[shuffled])
    assert by_id.estimates == btdagg.estimate(*data.tables, probabilities=half).estimates
    with refused("probabilities", got="ndarray"):
        btdagg.estimate(*data.tables, probabilities=half.to_numpy())


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
    x = pd.Series(np.arange(60.0), index=pd.Index(items.ids, name="item"))
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


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "question",
    [
        lambda *of, **how: btdagg.calibrate(*of, **how).model,
        lambda *of, **how: btdagg.estimate(*of, **how).estimates,
        lambda *of, **how: btdagg.certify(*of, agreement=0.6, **how).to_json(),
        lambda *of, **how: str(btdagg.bias(*of, **how)),
        lambda *of, **how: str(btdagg.evaluate(*of, protocol=PROTOCOL, **how)),
    ],
    ids=["calibrate", "estimate", "certify", "bias", "evaluate"],
)
def test_covariates_beside_tables_are_matched_by_id(question):
    ids = DATA["text"].tables[0].ids
    x = pd.Series(np.random.default_rng(2).normal(size=N_ITEMS), index=ids)
    expected = question(*DATA["text"].tables, covariates={"x": x})
    assert question(*DATA["text"].tables, covariates={"x": x[::-1]}) == expected
    with refused("covariates", got="ndarray"):
        question(*DATA["text"].tables, covariates={"x": x.to_numpy()})


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("argument", ["weights", "groups", "probabilities", "covariates"])
def test_numbers_of_rows_are_not_taken_for_ids_that_are_numbers(argument, shift):
    # The index of a column of a plain frame is 0, 1, 2 ..., and so may be ids, in another order.
    truth = np.tile([1, -1, 0, 1, -1], 8)
    labels = pd.DataFrame({"item": np.arange(40) + shift, "label": truth}).iloc[::-1]
    labels = labels.reset_index(drop=True).assign(value=np.linspace(0.2, 0.9, 40))
    rows = {"item": np.repeat(np.arange(40) + shift, 4), "vote": np.repeat(truth, 4)}
    rows["vote"][::5] = 0
    votes, how = btdagg.read_votes(rows), {}
    question = btdagg.estimate if argument == "probabilities" else btdagg.calibrate
    if argument == "groups":
        question, how = btdagg.certify, {"agreement": 0.6}
        labels["value"] = [f"g{n // 2}" for n in range(40)]
    column = ["value"] if argument == "covariates" else "value"
    with refused(argument):
        question(votes, labels, **{argument: labels[column]}, **how)
    if question is btdagg.calibrate:
        with refused(argument):
            items = votes.items(btdagg.read_labels(labels))
            question(items, **{argument: labels[column]}, **how)
    question(votes, labels, **{argument: labels.set_index("item")[column]}, **how)


def test_ratings_of_items_without_a_label_are_none():
    votes = btdagg.read_votes({"item": ["a", "b", "c"], "vote": ["A", "B", "A"]})
    rows = {"item": ["a", "a", "b"], "label": ["A", "B", "B"], "rater": ["x", "y", "x"]}
    items = votes.items(btdagg.read_labels(rows))
    assert items.facts.ratings.tolist() == [[1, 0, 1], [1, 0, 0], [0, 0, 0]]
