"""Data frames of counts, soft labels and probabilities: read by the names of their columns.

Functions that take counts are given frames with their columns in every order, and have to answer as
for the array.
"""

import itertools
import subprocess
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg import (
    InputError,
    Protocol,
    online,
)
from btdagg.evaluation import RandomSplits
from gallery import simulated

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
# Leaning to A, so that no order of the columns but the right one gives the same answers.
COUNTS, LABELS = simulated(60)
MODEL = btdagg.DavidsonModel(beta=1.3, eta0=0.4, gamma=0.7)
SEVERAL = {"protocol": Protocol(RandomSplits(n_splits=2, size=20))}


def compared(counts):
    (cell,) = btdagg.evaluate(counts, LABELS, **SEVERAL).cells
    return [method.mae for method in cell.methods]


def frame(library, names, counts=COUNTS):
    """Counts in columns of these names, in label order unless the names say another."""
    sides = [{"b": "minus", "same": "tie", "a": "plus"}.get(n.lower(), n.lower()) for n in names]
    columns = {n: counts[:, SIDES.index(side)] for n, side in zip(names, sides, strict=True)}
    return LIBRARIES[library](columns)


def assert_equal(found, wanted):
    np.testing.assert_equal(found, wanted)


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize(
    "compute",
    [
        lambda counts: btdagg.calibrate(counts, LABELS).model,
        lambda counts: str(btdagg.estimate(counts, np.where(np.arange(60) < 30, LABELS, np.nan))),
        lambda counts: online.fit_votes(counts, LABELS).components,
        lambda counts: btdagg.votes.as_items(counts).counts,
        compared,
    ],
)
def test_counts_in_frames_are_read_by_name_in_all_six_orders(compute):
    expected = compute(COUNTS)
    for order in ORDERS:
        assert_equal(compute(frame("polars", order)), expected)


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
    with pytest.raises(
        InputError, match="counts has columns column_0, column_1, column_2, expected"
    ):
        MODEL.decide(pl.DataFrame(COUNTS))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_bad_count_in_a_frame_is_named_in_label_order(library):
    bad = np.array([[1, 2, 3], [4, -5, 6]])
    for order in ORDERS:
        with pytest.raises(
            InputError, match=r"counts\[1, 1\] \(tie\) is -5, expected a finite number"
        ):
            MODEL.decide(frame(library, order, bad))
    columns = {"plus": [1, 2], "minus": [3, None], "tie": [1, 1]}
    with pytest.raises(InputError, match=r"counts\[1, 0\]"):
        MODEL.decide(LIBRARIES[library](columns))


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


# Imports


def test_a_frame_is_read_without_importing_anything_and_tables_without_pyarrow():
    code = (
        "import sys; sys.modules['pyarrow'] = None  # which pandas imports where it is\n"
        "import pandas as pd, btdagg\n"
        "others = {'polars', 'narwhals', 'scipy'}\n"
        "before = others & set(sys.modules)\n"
        "model = btdagg.DavidsonModel(beta=1.3, eta0=0.4, gamma=0.7)\n"
        "counts = pd.DataFrame({'plus': [9, 0], 'minus': [0, 9], 'tie': [0, 0]})\n"
        "assert model.decide(counts).tolist() == [1, -1]\n"
        "assert others & set(sys.modules) == before, sorted(others & set(sys.modules))\n"
        "frame = pd.DataFrame({'item': pd.Categorical(['x', 'y']), 'vote': ['A', None]})\n"
        "assert btdagg.read_votes(frame).counts()[1].tolist() == [[0, 0, 1], [0, 0, 0]]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
