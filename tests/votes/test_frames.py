"""Data frames of counts, soft labels and probabilities: read by the names of their columns.

Every public function that takes counts is given wide frames of every library with their columns in
every order, and has to answer as for the array; other names have to be refused.
"""

import importlib
import inspect
import itertools
import pkgutil
import subprocess
import sys
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg import (
    InputError,
    estimates,
    evaluation,
    methods,
    model,
    online,
    reference,
    votes,
)
from btdagg.evaluation import LabelledItems, Protocol, RandomSplits, calibration_curves
from btdagg.methods import AGGREGATORS
from btdagg.model import Refits

SIDES = ("minus", "tie", "plus")
ORDERS = list(itertools.permutations(SIDES))
LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow batch": pa.record_batch,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas of pyarrow": lambda columns: pd.DataFrame(columns).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "pandas of two types": lambda columns: pd.DataFrame(columns).astype(
        {next(iter(columns)): "i2"}
    ),
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
}
N_VOTES = 8


def drawn(n_items=60):
    rng = np.random.default_rng(4)
    labels = rng.integers(-1, 2, size=n_items)
    # Leaning to A, so that no order of the columns but the right one gives the same answers.
    chances = np.array([[0.6, 0.3, 0.1], [0.15, 0.45, 0.4], [0.02, 0.18, 0.8]])
    return np.array([rng.multinomial(N_VOTES, chances[label + 1]) for label in labels]), labels


COUNTS, LABELS = drawn()
MODEL = btdagg.DavidsonModel(beta=1.3, eta0=0.4, gamma=0.7)
VOTES = online.fit_votes(COUNTS, LABELS)
RULE = online.StoppingRule.risk_bounded(MODEL, 2 * N_VOTES, VOTES, epsilon=0.1)
POSTERIOR = btdagg.calibrate(COUNTS, LABELS, prior="weak").posterior
BOOTSTRAP = btdagg.bootstrap(COUNTS, LABELS, n_refits=20)
REFITS = Refits(BOOTSTRAP.calibration.model, BOOTSTRAP.parameters, 0.95)
SEVERAL = {"protocol": Protocol(RandomSplits(n_splits=2, size=20))}


def by_rule(name):
    return lambda counts, labels: getattr(RULE, name)(counts)


def evidence_of(counts):
    ones = np.ones((len(COUNTS), 3))
    return btdagg.votes.Evidence(counts, btdagg.votes.Confidences(ones, ones, np.log(ones)))


def compared(counts, labels):
    found = evaluation.compare(counts, labels, **SEVERAL)
    return [method.mae for method in found.methods]


def curves(counts, labels):
    found = calibration_curves(counts, labels, [20], **SEVERAL)
    return [curve.mae for curve in found.curves]


def aligned(counts, labels):
    known = btdagg.read_labels({"item": np.arange(len(labels)), "label": labels})
    return btdagg.align(np.arange(len(labels)), counts, known).counts


def fitted(make):
    return lambda counts, labels: make().fit(counts, labels).decide(COUNTS)


def deciding(make):
    return lambda counts, labels: make().fit(COUNTS[:25], LABELS[:25]).decide(counts)


LEARNING = (
    "davidson",
    "weak",
    "threshold",
    "davidson-mae",
    "isotonic",
)  # the others read nothing in `fit`
OF_COUNTS = (*LEARNING, "majority", "median")
# What each public function makes of counts and labels, under the name that it goes by.
CASES = {
    "DavidsonModel.decide": lambda counts, labels: MODEL.decide(counts),
    "DavidsonModel.predict_proba": lambda counts, labels: MODEL.predict_proba(counts),
    "DavidsonModel.risks": lambda counts, labels: MODEL.risks(counts),
    "DavidsonModel.features": lambda counts, labels: MODEL.features(counts),
    "DavidsonModel.drps": MODEL.drps,
    "DavidsonModel.drps_gradient": MODEL.drps_gradient,
    "calibrate": lambda counts, labels: btdagg.calibrate(counts, labels).model,
    "calibrate_by_mae": lambda counts, labels: btdagg.model.calibrate_by_mae(counts, labels).model,
    "bootstrap": lambda c, labels: btdagg.bootstrap(c, labels, n_refits=5).parameters,
    "Bootstrap.stability": lambda counts, labels: BOOTSTRAP.stability(counts).shares,
    "Refits.stability": lambda counts, labels: REFITS.stability(counts).shares,
    "Posterior.stable": lambda counts, labels: POSTERIOR.stable(counts).shares,
    "Posterior.predict_proba": lambda counts, labels: POSTERIOR.predict_proba(counts),
    "majority_vote": lambda counts, labels: btdagg.majority_vote(counts),
    "Evidence": lambda counts, labels: btdagg.votes.Evidence(counts).counts,
    "Evidence.of": lambda counts, labels: btdagg.votes.Evidence.of(counts).counts,
    "estimate": lambda counts, labels: [
        one.value
        for one in btdagg.estimate(
            counts, np.where(np.arange(len(labels)) < 30, labels, np.nan), model=MODEL
        ).estimates.values()
    ],
    "not_worse": lambda counts, labels: (
        estimates.not_worse(
            counts, np.where(np.arange(len(labels)) < 30, labels, np.nan), model=MODEL
        ).estimate
    ),
    "estimate_systems": lambda counts, labels: [
        one.strength.estimate
        for one in btdagg.estimate_systems(
            counts,
            np.where(np.arange(len(labels)) < 45, labels, np.nan),
            np.arange(len(labels)) % 2,
            np.where(np.arange(len(labels)) % 4 < 2, 2, 1 - np.arange(len(labels)) % 2),
            model=MODEL,
        ).systems.values()
    ],
    "choose": lambda counts, labels: estimates.choose(
        counts, 20, design="stratified"
    ).strata.tolist(),
    "align": aligned,
    "compare": compared,
    "calibration_curves": curves,
    "LabelledItems": lambda counts, labels: LabelledItems(counts, labels).evidence.counts,
    "StoppingRule.stops": by_rule("stops"),
    "StoppingRule.decide": by_rule("decide"),
    "StoppingRule.votes_to_ask": by_rule("votes_to_ask"),
    "StoppingRule.votes_left": by_rule("votes_left"),
    "StoppingRule.change_risk": by_rule("change_risk"),
    "StoppingRule.error": by_rule("error"),
    "VoteDistribution.log_chances": lambda counts, labels: VOTES.log_chances(counts),
    "fit_votes": lambda counts, labels: online.fit_votes(counts, labels).components,
    "plan": lambda c, y: online.plan(c, y, n_items=9, n_votes=[2], n_labels=[20]).budgets,
    "excess_by_labels": lambda c, y: online.excess_by_labels(c, y, n=2, n_labels=[20]),
    "plan_model": lambda counts, labels: online.plan_model(
        RULE.model, counts, labels, n=8, n_items=9
    ),
    "plan_rule": lambda counts, labels: online.plan_rule(RULE, counts, labels, n_items=9),
    "DriftMonitor": lambda counts, labels: online.DriftMonitor(counts).report().facets,
    "DriftMonitor.observe": lambda c, labels: online.DriftMonitor(COUNTS).observe(c).facets,
    "Provenance.differences": lambda counts, labels: btdagg.votes.Provenance(n_votes=2).differences(
        counts
    ),
    "reference.features": lambda counts, labels: reference.features(counts),
    **{f"{name}, fit": fitted(AGGREGATORS[name]) for name in LEARNING},
    **{f"{name}, decide": deciding(AGGREGATORS[name]) for name in OF_COUNTS},
}
OF_TOTALS = ("Provenance.differences",)  # the same in any order
SLOW = ("calibrate_by_mae", "davidson-mae, fit")  # these are given fewer items


def items_for(name):
    return (COUNTS[:25], LABELS[:25]) if name in SLOW else (COUNTS, LABELS)


def frame(library, names, counts=COUNTS):
    """Counts in columns of these names, in label order unless the names say another."""
    sides = [{"b": "minus", "same": "tie", "a": "plus"}.get(n.lower(), n.lower()) for n in names]
    columns = {n: counts[:, SIDES.index(side)] for n, side in zip(names, sides, strict=True)}
    return LIBRARIES[library](columns)


def assert_equal(found, wanted):
    np.testing.assert_equal(found, wanted)


@pytest.fixture(scope="module")
def expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
        return {name: case(*items_for(name)) for name, case in CASES.items()}


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_counts_in_frames_are_read_by_name_in_all_six_orders(name, library, expected):
    counts, labels = items_for(name)
    for order in ORDERS:
        assert_equal(CASES[name](frame(library, order, counts), labels), expected[name])


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_TOTALS])
def test_another_order_would_give_another_answer(name, expected):
    """Or the test of the six orders could not fail."""
    counts, labels = items_for(name)
    with pytest.raises(AssertionError):
        assert_equal(CASES[name](counts[:, [1, 2, 0]], labels), expected[name])


WRONG = {
    ("plus", "tie"): "counts has columns plus, tie, expected",
    ("minus", "ties", "plus"): "counts has columns minus, ties, plus, expected",
    ("x", "y", "z"): "counts has columns x, y, z, expected",
    (
        "column_0",
        "column_1",
        "column_2",
    ): "counts has columns column_0, column_1, column_2, expected",
    ("2", "1", "0"): "counts has columns 2, 1, 0, expected",
    ("item", "minus", "tie", "plus"): "counts has columns item, minus, tie, plus, expected",
    ("minus", "tie", "plus", "a"): "counts has columns minus, tie, plus, a, expected",
    ("p_minus", "p_tie", "p_plus"): "counts has columns p_minus, p_tie, p_plus, expected",
    (): "counts has columns none, expected",
}


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("name", CASES)
def test_counts_in_frames_of_other_names_are_refused(name):
    """By every function and library; what came and what is wanted is in the message."""
    wanted = "minus, tie, plus (or b, same, a) and no other, in any order"
    for library in ("pandas", "polars", "pyarrow"):
        for names, message in WRONG.items():
            columns = {n: COUNTS[:, place % 3] for place, n in enumerate(names)}
            with pytest.raises(InputError) as error:
                CASES[name](LIBRARIES[library](columns), LABELS)
            said = message.replace("counts", "reference") if name == "DriftMonitor" else message
            assert str(error.value) == f"{said} {wanted}"


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_and_every_name_of_a_column(library):
    wanted = MODEL.decide(COUNTS)
    for order in itertools.permutations(range(3)):
        for all_names in (SIDES, ("b", "same", "a"), ("B", "Tie", "A"), ("minus", "same", "a")):
            counts = frame(library, [all_names[place] for place in order])
            assert_equal(MODEL.decide(counts), wanted)
            assert_equal(btdagg.majority_vote(counts), btdagg.majority_vote(COUNTS))


def test_columns_without_names_are_read_by_position():
    wanted = MODEL.decide(COUNTS)
    unnamed = pd.DataFrame(COUNTS)
    assert list(unnamed.columns) == [0, 1, 2]
    assert_equal(MODEL.decide(unnamed), wanted)
    # Libraries that have texts for names keep the numbers as texts.
    assert_equal(MODEL.decide(pa.Table.from_pandas(unnamed)), wanted)
    with pytest.raises(InputError, match="counts has columns 2, 1, 0, expected minus, tie, plus"):
        MODEL.decide(unnamed[[2, 1, 0]])
    with pytest.raises(InputError, match=r"counts has shape \(60, 2\)"):
        MODEL.decide(unnamed.to_numpy()[:, :2])
    with pytest.raises(
        InputError, match="counts has columns column_0, column_1, column_2, expected"
    ):
        MODEL.decide(pl.DataFrame(COUNTS))


def test_blanks_around_names_and_columns_twice():
    named = pd.DataFrame(COUNTS[:, ::-1], columns=[" Plus", "TIE ", "minus"])
    assert_equal(MODEL.decide(named), MODEL.decide(COUNTS))
    twice = pd.DataFrame(COUNTS, columns=["minus", "tie", "tie"])
    with pytest.raises(InputError, match="counts has columns minus, tie, tie, expected minus"):
        MODEL.decide(twice)
    many = pd.DataFrame(np.zeros((2, 30)), columns=[f"c{n}" for n in range(30)])
    with pytest.raises(InputError, match=r"c8, c9, \.\.\., expected minus"):
        MODEL.decide(many)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_bad_count_in_a_frame_is_named_in_label_order(library):
    bad = np.array([[1, 2, 3], [4, -5, 6]])
    for order in ORDERS:
        with pytest.raises(
            InputError, match=r"counts\[1, 1\] \(tie\) is -5, expected a non-negative"
        ):
            MODEL.decide(frame(library, order, bad))
    columns = {"plus": [1, 2], "minus": [3, None], "tie": [1, 1]}
    with pytest.raises(InputError, match=r"counts\[1, 0\]"):
        MODEL.decide(LIBRARIES[library](columns))


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        (pl.LazyFrame({"minus": [1], "tie": [1], "plus": [1]}), "LazyFrame"),
        ({"minus": [1], "tie": [1], "plus": [1]}, "dict"),
    ],
)
def test_what_is_no_array_and_no_frame_in_memory_is_named_by_its_type(counts, kind):
    with pytest.raises(InputError) as error:
        MODEL.decide(counts)
    assert str(error.value) == f"counts is of type {kind}, expected an array of numbers"


def public_functions_that_take_counts():
    """Names of public functions, classes and methods with an argument for counts."""
    modules = [btdagg, methods, estimates, evaluation, online, votes, model, reference]
    found = set()
    for module in modules:
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value):
                found |= {f"{name}.{m}" for m, f in vars(value).items() if takes_counts(m, f)}
                if takes_counts(name, value):
                    found.add(name)
            elif takes_counts(name, value):
                found.add(f"reference.{name}" if module is reference else name)
    return found


def takes_counts(name, value):
    value = inspect.unwrap(getattr(value, "__func__", value))
    if name.startswith("_") or not callable(value):
        return False
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return False
    return bool({"counts", "evidence"} & set(parameters)) or name == "DriftMonitor"


def test_no_public_function_that_takes_counts_is_left_out():
    tested = {name.partition(",")[0] for name in CASES}
    aggregating = {
        f"{type(make()).__name__}.{method}"
        for make in AGGREGATORS.values()
        for method in ("fit", "decide", "expected")
    } | {"Aggregator.fit", "Aggregator.decide"}
    made_by_others = {
        "LabelledCounts",  # by `align`
        "PanelCounts",  # by `panel_counts`
        "Settled",
    }
    made_by_others |= {"Davidson.refitted"}  # by evaluations, which have read the counts
    of_arrays = {"reference.few_labels"}
    made_by_others |= of_arrays
    # Of several judges: arrays (n, judges, 3), or votes with a column of judges.
    of_panels = {
        name
        for name in public_functions_that_take_counts()
        if name == "calibrate_panel"
        or name.partition(".")[0] in ("PanelModel", "Panel", "OneJudge")
    }
    made_by_others |= of_panels
    left = public_functions_that_take_counts() - tested - aggregating - made_by_others
    assert left == set()


def test_no_submodule_hides_such_a_function():
    """What is in a module but not exported by its package is not public; packages are all seen."""
    packages = {m.name for m in pkgutil.iter_modules(btdagg.__path__) if m.ispkg}
    seen = {"estimates", "evaluation", "methods", "model", "online", "votes"}
    others = packages - seen - {"cli", "datasets", "integrations", "judge", "report", "serve"}
    others -= {"_util", "labelling", "paper"}  # labels by hand, its tables
    assert others == set()
    for name in seen:
        importlib.import_module(f"btdagg.{name}")


# Labels, weights, probabilities


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_soft_labels_and_probabilities_are_read_by_name(library):
    soft = MODEL.predict_proba(COUNTS)
    wanted = btdagg.calibrate(COUNTS, None, weights=soft).model
    scores = btdagg.evaluation.discrete_ranked_probability_score(LABELS, soft)
    for names in (SIDES, tuple(f"p_{side}" for side in SIDES)):
        for order in itertools.permutations(range(3)):
            given = LIBRARIES[library]({names[place]: soft[:, place] for place in order})
            assert btdagg.calibrate(COUNTS, None, weights=given).model == wanted
            assert MODEL.drps(COUNTS, None, given) == MODEL.drps(COUNTS, None, soft)
            assert_equal(btdagg.evaluation.discrete_ranked_probability_score(LABELS, given), scores)
    wrong = LIBRARIES[library]({"x": soft[:, 0], "tie": soft[:, 1], "plus": soft[:, 2]})
    with pytest.raises(
        InputError, match="weights has columns x, tie, plus, expected minus, tie, plus"
    ):
        btdagg.calibrate(COUNTS, None, weights=wrong)
    with pytest.raises(InputError, match="probabilities has columns x, tie, plus, expected"):
        btdagg.evaluation.discrete_ranked_probability_score(LABELS, wrong)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, lambda v: pa.chunked_array([v])])
def test_labels_and_weights_in_series(make):
    weights = np.linspace(0.1, 1, len(LABELS))
    wanted = btdagg.calibrate(COUNTS, LABELS, weights=weights).model
    assert btdagg.calibrate(COUNTS, make(LABELS), weights=make(weights)).model == wanted
    assert btdagg.mean_absolute_error(make(LABELS), make(LABELS)) == 0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_labels_and_weights_in_a_frame_of_one_column_are_refused(library):
    labels, weights = LIBRARIES[library]({"label": LABELS}), LIBRARIES[library]({"w": LABELS + 2.0})
    with pytest.raises(InputError, match=r"labels has shape \(60, 1\), expected one dimension"):
        btdagg.calibrate(COUNTS, labels)
    with pytest.raises(InputError, match=r"weights has shape \(60, 1\), expected \(n,\)"):
        btdagg.calibrate(COUNTS, LABELS, weights=weights)


INDEXED = pd.DataFrame(COUNTS, columns=SIDES, index=[f"q{n}" for n in range(len(COUNTS))])
OF_INDEXED = pd.Series(LABELS, index=INDEXED.index)
TWO = {
    "calibrate": btdagg.calibrate,
    "calibrate_by_mae": btdagg.model.calibrate_by_mae,
    "bootstrap": btdagg.bootstrap,
    "DavidsonModel.drps": MODEL.drps,
    "compare": lambda counts, labels: evaluation.compare(counts, labels, **SEVERAL),
    "calibration_curves": lambda c, y: calibration_curves(c, y, [20], **SEVERAL),
    "LabelledItems": LabelledItems,
    "fit_votes": online.fit_votes,
    "plan": lambda c, y: online.plan(c, y, n_items=9, n_votes=[2], n_labels=[20]),
    "plan_model": lambda counts, labels: online.plan_model(
        RULE.model, counts, labels, n=8, n_items=9
    ),
    "plan_rule": lambda counts, labels: online.plan_rule(RULE, counts, labels, n_items=9),
    "isotonic": AGGREGATORS["isotonic"]().fit,
    "davidson": AGGREGATORS["davidson"]().fit,
}


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize("name", TWO)
def test_series_with_another_index_are_refused(name):
    """Rows go by position, so that labels in another order would go to the wrong items."""
    few = INDEXED[:40] if name == "calibrate_by_mae" else INDEXED
    known = OF_INDEXED[: len(few)]
    TWO[name](few, known)
    TWO[name](few, known.to_numpy()[::-1])  # an array has no index: by position
    TWO[name](few, pl.Series(known.to_numpy()[::-1]))
    for other in (known[::-1], known.reset_index(drop=True)):
        with pytest.raises(InputError, match="labels and counts have different indexes, but rows"):
            TWO[name](few, other)


def test_other_arguments_with_another_index_are_refused():
    shuffled = OF_INDEXED.sample(frac=1, random_state=0)
    weights = (shuffled + 2).astype(float)
    for call in (
        lambda: btdagg.calibrate(INDEXED, OF_INDEXED, weights=weights),
        lambda: btdagg.bootstrap(INDEXED, OF_INDEXED, weights=weights, n_refits=5),
    ):
        with pytest.raises(InputError, match="weights and counts have different indexes"):
            call()
    with pytest.raises(InputError, match="groups and counts have different indexes"):
        btdagg.bootstrap(INDEXED, OF_INDEXED, groups=shuffled, n_refits=5)
    with pytest.raises(InputError, match="predicted and labels have different indexes"):
        btdagg.mean_absolute_error(OF_INDEXED, shuffled)
    with pytest.raises(InputError, match="votes and items have different indexes"):
        btdagg.tally(pd.Series(OF_INDEXED.index, index=OF_INDEXED.index), shuffled)
    with pytest.raises(InputError, match="votes and items have different indexes"):
        online.OnlineTally(deduplicate=False).add(
            pd.Series(OF_INDEXED.index, index=OF_INDEXED.index), shuffled
        )
    with pytest.raises(InputError, match="counts and ids have different indexes"):
        btdagg.align(
            pd.Series(range(60)), INDEXED, btdagg.read_labels({"item": [1, 2], "label": [1, 0]})
        )


# Masks


MASKED = np.ma.array(["x", "y", "x"], mask=[False, True, False])
MASKED_NUMBERS = np.ma.array([1, 2, 1], mask=[False, True, False])


@pytest.mark.parametrize("items", [MASKED, MASKED_NUMBERS], ids=["text", "integers"])
def test_masked_items_are_refused(items):
    """A mask that is dropped would give the votes to whatever is under it."""
    for call in (
        lambda: btdagg.tally(items, [1, 0, -1]),
        lambda: online.OnlineTally(deduplicate=False).add(items, [1, 0, -1]),
    ):
        with pytest.raises(InputError, match=r"^items\[\d+\] is masked, expected a value$"):
            call()
    plain = np.ma.array(items.data, mask=False)
    assert btdagg.tally(plain, [1, 0, -1])[1].tolist() == [[1, 0, 1], [0, 1, 0]]


def test_masked_names_of_any_kind_are_refused():
    three, labels = COUNTS[:3], btdagg.read_labels({"item": [1, 2], "label": [1, 0]})
    for name, call in {
        "ids": lambda: btdagg.align(MASKED_NUMBERS, three, labels),
        "ids of evidence": lambda: btdagg.votes.Evidence(three, ids=MASKED),
        "groups": lambda: btdagg.bootstrap(three, [1, 0, 1], groups=MASKED, n_refits=2),
        "judges": lambda: online.OnlineTally(deduplicate=False).add(
            [1, 2, 3], [1, 1, 1], judges=MASKED
        ),
        "votes": lambda: btdagg.tally([1, 2, 3], MASKED_NUMBERS),
    }.items():
        with pytest.raises(InputError, match=f"^{name.partition(' of ev')[0]}.*masked"):
            call()


# Imports


def test_a_frame_is_read_without_importing_anything():
    code = (
        "import sys, pandas as pd, btdagg\n"
        "others = {'polars', 'narwhals', 'pyarrow', 'scipy'}\n"
        "before = others & set(sys.modules)\n"
        "model = btdagg.DavidsonModel(beta=1.3, eta0=0.4, gamma=0.7)\n"
        "counts = pd.DataFrame({'plus': [9, 0], 'minus': [0, 9], 'tie': [0, 0]})\n"
        "assert model.decide(counts).tolist() == [1, -1]\n"
        "assert others & set(sys.modules) == before, sorted(others & set(sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
