"""Whatever takes labels refuses masks, or takes them as missing, in one way."""

import numpy as np
import pytest

import btdagg
from btdagg import InputError
from btdagg.datasets import simulate
from btdagg.estimates import not_worse

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

ITEMS = simulate("rb2-math", 120, 6, seed=1)
COUNTS, LABELS = ITEMS.counts, ITEMS.labels
PANEL = np.stack([COUNTS, COUNTS], axis=1)
MASK = np.arange(len(LABELS)) >= 60
NAMES = np.array(list("xyz"))
SYSTEMS = NAMES[np.arange(len(LABELS)) % 3], NAMES[(np.arange(len(LABELS)) + 1) % 3]

WHOLE = {
    "calibrate": lambda labels: btdagg.calibrate(COUNTS, labels),
    "calibrate_panel": lambda labels: btdagg.calibrate_panel(PANEL, labels),
    "bootstrap": lambda labels: btdagg.bootstrap(COUNTS, labels, n_refits=20),
    "mean_absolute_error": lambda labels: btdagg.mean_absolute_error(labels, LABELS),
    "votes": lambda labels: btdagg.tally(np.arange(len(labels)), labels),
}
PARTIAL = {
    "estimate": lambda labels: btdagg.estimate(COUNTS, labels),
    "not_worse": lambda labels: not_worse(COUNTS, labels, candidate="B", baseline="A"),
    "estimate_systems": lambda labels: btdagg.estimate_systems(COUNTS, labels, *SYSTEMS),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_masked_label_is_named_where_every_item_needs_one(name):
    with pytest.raises(InputError, match=r"\[60\] is masked"):
        WHOLE[name](np.ma.array(LABELS, mask=MASK))


@pytest.mark.parametrize("name", PARTIAL)
def test_a_masked_label_is_no_label_where_some_may_be_missing(name):
    found = PARTIAL[name](np.ma.array(LABELS, mask=MASK))
    assert found.n_labels == 60
    assert str(found) == str(PARTIAL[name](np.where(MASK, np.nan, LABELS)))
