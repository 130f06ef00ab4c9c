"""Transfer between tasks, and the tasks it is run on, against plain loops; real votes."""

import numpy as np
import polars as pl
import pytest

from btdagg import Protocol, calibrate, read_labels, read_votes
from btdagg.evaluation import RandomSplits
from btdagg.methods import Calibrated
from btdagg.paper import transfer_matrix
from btdagg.votes import as_items
from draws import comparison_of, random_splits

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")


def task(n_items, seed, tilt):
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 0, 1], n_items, p=[0.3, 0.4, 0.3])
    p = np.array([[0.6, tilt, 0.1], [0.4, tilt, 0.4], [0.1, tilt, 0.6]])[labels + 1]
    counts = np.array([rng.multinomial(8, row / row.sum()) for row in p])
    return as_items(counts, labels, np.arange(n_items) // 2)


@pytest.fixture(scope="module")
def tasks():
    return {"few": task(60, 0, 0.05), "many": task(90, 1, 1.0), "other": task(70, 2, 0.3)}


def test_transfer_equals_a_plain_loop(tasks):
    found = transfer_matrix(tasks, protocol=Protocol(RandomSplits(share=0.3, n_splits=3, seed=4)))
    assert found.tasks == ("few", "many", "other")
    drawn = {
        name: list(random_splits(len(t), share=0.3, n_splits=3, seed=4, groups=t.group))
        for name, t in tasks.items()
    }
    for k in range(3):
        for row, (source, a) in enumerate(tasks.items()):
            chosen = drawn[source][k].calibration
            model = calibrate(a.pooled[chosen], a.label[chosen], prior=None).model
            for column, (target, b) in enumerate(tasks.items()):
                errors = [
                    abs(model.decide_one(*b.pooled[i].tolist()) - int(b.label[i]))
                    for i in drawn[target][k].evaluation
                ]
                assert found.mae[row, column, k] == pytest.approx(sum(errors) / len(errors))
    mean = found.mae.sum(axis=2) / 3
    wanted = [[mean[s, t] - mean[t, t] for t in range(3)] for s in range(3)]
    np.testing.assert_allclose(found.change, wanted, atol=1e-12)
    assert (found.change.diagonal() == 0).all()
    assert found.change_interval("few", "many").mean == pytest.approx(found.change[0, 1])
    assert found.mae_interval("few", "many").mean == pytest.approx(mean[0, 1])


def test_real_tasks_transfer(shared):
    frame = pl.read_parquet(shared / "data/rb2/votes.parquet").filter(
        template="base", temperature="default", judge="gpt-5.4"
    )
    votes = read_votes(frame.cast({pl.Categorical: pl.String}))
    labels = read_labels(shared / "data/rb2/labels.csv")
    tasks = votes.items(labels).labelled().parts("task")
    assert len(tasks) == 5
    found = transfer_matrix(tasks, protocol=Protocol(RandomSplits(n_splits=10)))
    for place, (name, items) in enumerate(tasks.items()):
        of_task = labels.filter({"task": name})
        assert len(items) <= len(of_task.ids)
        alone = comparison_of(
            items,
            items.label,
            [Calibrated(prior=None)],
            groups=items.group,
            protocol=Protocol(RandomSplits(n_splits=10)),
        )
        np.testing.assert_array_equal(found.mae[place, place], alone.methods[0].mae)
    # A source whose judge needs little correction does harm where much is needed.
    source, target = found.tasks.index("precise-if"), found.tasks.index("safety")
    assert found.change_interval("precise-if", "safety").low > 0
    assert found.change[source, target] > found.change[target, source]
