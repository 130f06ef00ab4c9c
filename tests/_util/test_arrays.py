"""Every form in which counts, labels and weights come, and every form that is refused."""

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel, InputError, reference
from btdagg._util.validation import distinct_rows

MODEL = DavidsonModel(beta=1.3, eta0=1.9, gamma=0.7)
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def random_counts(n=5000, high=100):
    return np.random.default_rng(0).integers(0, high, size=(n, 3))


def expected(counts):
    s, t = reference.features(counts)
    p = reference.probabilities(s, t, MODEL.beta, MODEL.eta0, MODEL.gamma)
    return s, t, p


def assert_right(counts, values):
    s, t, p = expected(values)
    np.testing.assert_allclose(MODEL.features(counts).s, s, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(MODEL.features(counts).t, t, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(MODEL.predict_proba(counts), p, rtol=1e-12)
    np.testing.assert_allclose(MODEL.risks(counts), reference.risks(p), rtol=1e-12)
    np.testing.assert_array_equal(MODEL.decide(counts), reference.decide(p))
    assert MODEL.decide(counts).dtype == np.int8
    labels = np.arange(len(values)) % 3 - 1
    assert MODEL.drps(counts, labels) == pytest.approx(reference.drps(p, labels), rel=1e-12)
    np.testing.assert_allclose(
        MODEL.drps_gradient(counts, labels),
        reference.drps_gradient(s, t, labels, MODEL.beta, MODEL.eta0, MODEL.gamma),
        rtol=1e-9,
        atol=1e-13,
    )


@pytest.mark.parametrize("dtype", [*INTEGERS, "f2", "f4", "f8", "g", "?"])
@pytest.mark.parametrize("high", [2, 13, 100])
def test_every_number_type(dtype, high):
    if dtype == "?" and high > 2:
        return
    counts = random_counts(high=high)
    assert_right(counts.astype(dtype), counts)


@pytest.mark.parametrize("dtype", ["i8", "u1", "f8"])
def test_every_memory_order(dtype):
    counts = random_counts().astype(dtype)
    padded = np.zeros((len(counts) * 2, 7), dtype=dtype)
    padded[::2, 1:6:2] = counts
    read_only = counts.copy()
    read_only.flags.writeable = False
    raw = np.zeros(counts.nbytes + 1, dtype=np.uint8)
    unaligned = raw[1:].view(dtype).reshape(counts.shape)
    unaligned[:] = counts
    forms = {
        "Fortran": np.asfortranarray(counts),
        "strided": padded[::2, 1:6:2],
        "reversed": counts[::-1][::-1],
        "read-only": read_only,
        "unaligned": unaligned,
        "big-endian": counts.astype(counts.dtype.newbyteorder(">")),
        "little-endian": counts.astype(counts.dtype.newbyteorder("<")),
        "list": counts.tolist(),
        "object": counts.astype(object),
        "transposed": counts.T.copy().T,
    }
    for form in forms.values():
        assert_right(form, counts)
    np.testing.assert_array_equal(MODEL.decide(counts[::-1]), MODEL.decide(counts)[::-1])
    np.testing.assert_array_equal(MODEL.decide(counts[:, ::-1]), -MODEL.decide(counts))


def test_no_items():
    for empty in (np.zeros((0, 3)), np.zeros((0, 3), dtype=np.uint8), np.zeros((0, 3), object)):
        assert MODEL.decide(empty).shape == (0,)
        assert MODEL.predict_proba(empty).shape == (0, 3)
        assert MODEL.features(empty).s.shape == (0,)


def test_no_votes_and_very_many():
    counts = np.array([[0, 0, 0], [2**32, 0, 0], [0, 2**63, 0], [1, 2, 2**64 - 1]], dtype=np.uint64)
    assert MODEL.decide(counts).tolist() == [0, -1, 0, 1]
    assert_right(counts, counts.astype(np.float64))


def test_tables_and_computing_meet_without_a_seam():
    """The same items give the same bits alone, in small batches, and in batches of any range."""
    rng = np.random.default_rng(1)
    small = rng.integers(0, 8, size=(10_000, 3))
    large = np.concatenate([small, rng.integers(0, 1000, size=(10_000, 3)), small])
    for method in (MODEL.decide, MODEL.predict_proba, MODEL.risks):
        whole = method(large)
        np.testing.assert_array_equal(whole[:10_000], method(small))
        np.testing.assert_array_equal(whole[-10_000:], method(small))
        alone = np.concatenate([method(large[i : i + 1]) for i in range(0, 30_000, 997)])
        np.testing.assert_array_equal(whole[::997], alone)
    for row, label in zip(large[::997].tolist(), MODEL.decide(large[::997]), strict=True):
        assert MODEL.decide_one(*row) == label


def refused(call, *arguments, **named):
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    return caught.value


@pytest.mark.parametrize(
    ("counts", "row", "message"),
    [
        ([1, 2, 3], None, "has shape (3,), expected (n, 3): minus, tie, plus"),
        ([[1, 2]], None, "has shape (1, 2), expected (n, 3)"),
        ([[1, 2, 3], [1, 2]], None, "is not a rectangular array of numbers"),
        ([["a", "b", "c"]], None, "has dtype <U1, expected numbers"),
        ([[1, None, 2]], (0, 1), "is nothing, expected a 64-bit number"),
        ([[0, 0, 1], [0, -1, 1]], (1, 1), "is -1, expected a finite number of at least 0"),
        ([[np.nan, 0, 1]], (0, 0), "expected a finite number of at least 0"),
        ([[0, 0, 2**70]], (0, 2), "is 1180591620717411303424, expected a 64-bit number"),
        (np.ma.masked_less([[0, -1, 2]], 0), (0, 1), "is masked, expected a value"),
    ],
)
def test_bad_counts_are_named(counts, row, message):
    place = "" if row is None else f"[{row[0]}, {row[1]}]"
    for method in (MODEL.decide, lambda counts: btdagg.calibrate(counts, [0] * len(counts))):
        said = str(refused(method, counts))
        assert said.startswith(f"counts{place} ")
        assert message in said


@pytest.mark.parametrize(
    ("labels", "row", "message"),
    [
        ([0, 2, 0], 1, ""),
        ([0, 0.5, 0], 1, ""),
        (np.array([0, 0, 255], np.uint8), 2, ""),
        ([True, False, True], 0, ""),
        ([0, None, 1], 1, ""),
        ([0, 2**70, 1], 1, ""),
        ([0, 0], None, "labels has 2 rows, expected 3 as in counts"),
        ([[0], [0], [0]], None, "labels has shape (3, 1), expected one dimension"),
    ],
)
def test_bad_labels_are_named(labels, row, message):
    for method in (MODEL.drps, btdagg.calibrate):
        error = refused(method, [[1, 2, 3]] * 3, labels)
        assert (error.argument, error.row) == ("labels", row)
        assert message in str(error)
        assert row is None or error.expected == "-1, 0 or 1"


def test_labels_in_words_are_named():
    error = refused(btdagg.calibrate, [[1, 2, 3]] * 3, ["a", "b", "c"])
    assert (error.argument, error.row, error.got) == ("labels", 0, "a")
    error = refused(MODEL.drps, [[1, 2, 3]] * 3, ["a", "b", "c"])
    assert str(error) == "labels has dtype <U1, expected numbers"


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        ([0, 1], [1, -1], "weights[1] is -1, expected a finite number of at least 0"),
        ([0, 1], [1], "weights has 1 rows, expected 2 as in counts"),
        ([0, 1], [0, 0], "counts hold no item with a weight above 0, expected at least one"),
        ([0, 1], [[1, 0, 0]] * 2, "weights has shape (2, 3), expected (n,); for soft labels"),
        (None, [1, 1], "weights has shape (2,), expected (n, 3), a weight for each label"),
        (None, [[1, 0, -1]] * 2, "weights[0] is -1, expected a finite number of at least 0"),
        (None, None, "labels is nothing, expected labels or soft weights"),
    ],
)
def test_bad_weights_are_named(labels, weights, message):
    assert message in str(refused(MODEL.drps, [[1, 2, 3]] * 2, labels, weights))
    options = {"weights": weights, "prior": None}  # with one, counts alone are of unlabelled items
    error = refused(btdagg.calibrate, [[1, 2, 3]] * 2, labels, **options)
    assert str(error).startswith(("weights", "labels"))


def test_weights_are_repetitions_and_soft_labels_weights():
    counts, labels = random_counts(200), np.arange(200) % 3 - 1
    times = np.arange(200) % 4
    repeated = MODEL.drps(np.repeat(counts, times, axis=0), np.repeat(labels, times))
    assert MODEL.drps(counts, labels, times) == pytest.approx(repeated, rel=1e-14)
    soft = np.zeros((200, 3))
    soft[np.arange(200), labels + 1] = times
    assert MODEL.drps(counts, None, soft) == pytest.approx(repeated, rel=1e-14)
    reference_value = reference.drps(expected(counts)[2], labels, times)
    assert MODEL.drps(counts, labels, times) == pytest.approx(reference_value, rel=1e-12)


def test_one_bad_count_is_named():
    assert str(refused(MODEL.decide_one, -1, 0, 0)) == (
        "minus is -1, expected a finite number of at least 0"
    )


def test_tally_takes_every_id_and_vote_type():
    votes = [1, 0, -1, 1]
    wanted = [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
    for items in (
        [5, 3, 5, 9],
        np.array([5, 3, 5, 9], ">i2"),
        np.array([5, 3, 5, 2**64 - 9], np.uint64),
        np.array([5, 3, 5, 9], object),
        ["x", "y", "x", "zz"],
        np.array(["x", "y", "x", "zz"]),
        np.array(["x", "y", "x", "zz"], object),
        ["", "日本", "", "naïve"],
    ):
        ids, counts = btdagg.tally(items, votes)
        assert counts.tolist() == wanted
        assert counts.dtype == np.int64
        assert ids.tolist() == [np.asarray(items).tolist()[i] for i in (0, 1, 3)]
    assert btdagg.tally(np.array(["x"]), [1])[0].dtype.kind == "U"
    assert btdagg.tally(np.array([1], "u2"), [1.0])[0].dtype == np.dtype("u2")
    ids, counts = btdagg.tally([], [])
    assert (ids.shape, counts.shape) == ((0,), (0, 3))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["x", "y", "z"], "votes has 2 rows, expected 3 as in items"),
        (["x", None], "items[1] is None of <class 'NoneType'>, expected a str as before"),
        ([None, 3], "items has dtype object, expected integers or strings"),
        (["x", "\ud800"], "items[1] is no valid text, expected"),
        ([1, "x"], "items mixes strings and numbers, expected all strings or all numbers"),
        ([1.5, 2.0], "items has dtype float64, expected integers or strings"),
        ([["x"], ["y"]], "items has shape (2, 1), expected one dimension"),
    ],
)
def test_bad_tallies_are_named(items, message):
    assert message in str(refused(btdagg.tally, items, [1, 0]))


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(0).integers(0, 4, (500, 3)).astype(np.uint8),
        np.random.default_rng(2).integers(-2, 3, (200, 2)),
        np.random.default_rng(3).integers(0, 2, (100, 3)) * np.uint64(2**63),
        np.random.default_rng(4).integers(0, 2**31, (300, 4)) // 2**29 * 2**29,
        np.random.default_rng(5).integers(0, 3, (100, 2)) / 7,
        np.zeros((0, 3), dtype=np.int64),
    ],
    ids=["bytes", "negative", "huge", "many codes", "floats", "none"],
)
def test_distinct_rows_are_numbered_in_the_order_of_their_columns(table):
    rows, index, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    first, number = distinct_rows(*table.T)
    assert first.tolist() == index.tolist()
    assert number.tolist() == inverse.ravel().tolist()
    assert (table[first] == rows).all()
