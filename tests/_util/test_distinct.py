"""Distinct rows, against NumPy's sort of whole rows."""

import numpy as np
import pytest

from btdagg._util.distinct import distinct_rows


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(0).integers(0, 4, (500, 3)),
        np.random.default_rng(1).integers(0, 3, (200, 3)).astype(np.uint8),
        np.random.default_rng(2).integers(-2, 3, (200, 2)),
        np.random.default_rng(3).integers(0, 2, (100, 3)) * np.uint64(2**63),
        np.random.default_rng(4).integers(0, 2**31, (300, 4)) // 2**29 * 2**29,
        np.random.default_rng(5).integers(0, 3, (100, 2)) / 7,
        np.zeros((0, 3), dtype=np.int64),
        np.ones((1, 3), dtype=np.int64),
    ],
    ids=["counts", "bytes", "negative", "huge", "many codes", "floats", "none", "one"],
)
def test_rows_are_numbered_in_the_order_of_their_columns(table):
    rows, index, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    first, number = distinct_rows(*table.T)
    assert first.tolist() == index.tolist()
    assert number.tolist() == inverse.ravel().tolist()
    assert (table[first] == rows).all()
