"""The classifier is scikit-learn's in what it promises, and `calibrate` in what it computes."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from btdagg import Bounds, InputError, Scale, calibrate, fit_prior
from btdagg.integrations.sklearn import VoteClassifier
from btdagg.model import CalibrationWarning
from draws import triples

# What the data of scikit-learn's own checks violate: three columns, of counts.
RULED_OUT = (
    r"X has shape .* expected \(n, 3\)|minimum of 3 is required|X has columns 0, 1, expected|"
    "counts has columns 0, 1.*, expected the votes -1, 0, 1|at least one vote of each item|"
    "holds no votes|"
    "expected a finite number of at least 0|"
    "expected one of the classes -1, 0, 1|expected -1, 0 or 1|"
    "weights are all 0|"  # which says it in words of its own
    "can't predict when only one class is present"
)


def items(n=300, seed=0):
    """Counts and labels of a judge that errs, and the group of each item."""
    random = np.random.default_rng(seed)
    labels = random.integers(-1, 2, n)
    seen = labels[:, np.newaxis] + random.normal(0, 1.5, (n, 8))
    votes = np.clip(np.round(seen), -1, 1)
    counts = np.column_stack([(votes == side).sum(axis=1) for side in (-1, 0, 1)])
    return counts, labels, np.arange(n) // 3


COUNTED, LABELS, GROUPS = items()


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        yield


GRADED = Scale((-1, 0, 1))


@pytest.mark.parametrize("classifier", [VoteClassifier(), VoteClassifier(GRADED)])
def test_the_checks_of_scikit_learn_pass_but_for_those_that_the_contract_rules_out(classifier):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(classifier, on_fail=None, on_skip=None)
    for check in found:
        error, messages = check["exception"] if check["status"] == "failed" else None, []
        while error is not None:
            messages.append(str(error))
            error = error.__cause__ or error.__context__
        assert not messages or re.search(RULED_OUT, "\n".join(messages)), check["check_name"]
    skipped = [one["check_name"] for one in found if one["status"] == "skipped"]
    assert skipped == ["check_array_api_input"]  # by scikit-learn, unless SCIPY_ARRAY_API is set
    assert sum(one["status"] == "passed" for one in found) >= 30


@pytest.mark.parametrize("prior", [None, "weak", "fitted"])
def test_it_fits_and_decides_as_calibrate_does(prior):
    if prior == "fitted":
        prior = fit_prior([items(seed=1)[:2], items(seed=2)[:2]], alpha=0.5, kappa=2.0)
    model = calibrate(COUNTED, LABELS, prior=prior, alpha=0.5, kappa=2.0).model
    one = VoteClassifier(prior=prior, alpha=0.5, kappa=2.0).fit(COUNTED, LABELS)
    assert one.model_ == model
    assert one.calibration_.n_labels == 300
    new = np.concatenate([items(100, seed=3)[0], list(triples(30))])
    np.testing.assert_array_equal(one.predict(new), model.decide(new))
    np.testing.assert_array_equal(one.predict_proba(new), model.predict_proba(new))
    assert one.classes_.tolist() == [-1, 0, 1]
    assert one.n_features_in_ == 3
    assert one.score(new, model.decide(new)) == 1
    assert one.score(COUNTED, LABELS) == (model.decide(COUNTED) == LABELS).mean()


def test_weights_and_bounds_are_those_of_calibrate():
    weights, bounds = np.arange(300.0), Bounds(beta=(0.5, 0.6))
    wanted = calibrate(COUNTED, LABELS, weights=weights, bounds=bounds).model
    for given in (weights, weights.tolist(), pd.Series(weights)):
        one = VoteClassifier(bounds=bounds).fit(COUNTED, LABELS, sample_weight=given)
        assert one.model_ == wanted


def test_what_scikit_learn_checks_on_data_of_its_own_holds_for_counts():
    one = VoteClassifier(prior="weak")
    before = one.get_params()
    assert one.fit(COUNTED, LABELS) is one
    assert one.get_params() == before
    again = clone(one)
    with pytest.raises(NotFittedError):
        again.predict(COUNTED)
    predicted, shares = one.predict(COUNTED), one.predict_proba(COUNTED)
    for given in (COUNTED.tolist(), COUNTED.astype(float)):
        np.testing.assert_array_equal(again.fit(given, LABELS).predict(given), predicted)
    alone = clone(one).fit(COUNTED[LABELS == 1], LABELS[LABELS == 1])
    assert alone.predict_proba(COUNTED).shape == shares.shape
    other = pickle.loads(pickle.dumps(one))
    assert other.calibration_.n_labels == 300
    assert other.calibration_.shares == one.calibration_.shares
    np.testing.assert_array_equal(other.predict_proba(COUNTED), shares)
    through = make_pipeline(FunctionTransformer(), VoteClassifier(prior="weak"))
    np.testing.assert_array_equal(through.fit(COUNTED, LABELS).predict(COUNTED), predicted)


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_read_by_name(library):
    names = ["minus", "tie", "plus"]
    frame = library.DataFrame({name: COUNTED[:, k] for k, name in enumerate(names)})
    one = VoteClassifier().fit(frame[["plus", "minus", "tie"]], LABELS)
    assert one.model_ == calibrate(COUNTED, LABELS).model
    assert one.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(one.predict(frame), one.model_.decide(COUNTED))
    other = frame.rename(columns={"tie": "x"}) if library is pd else frame.rename({"tie": "x"})
    with pytest.raises(InputError, match="X has columns minus, x, plus, expected minus, tie, plus"):
        one.predict(other)


def test_cross_validation_predicts_as_fits_to_the_folds_do():
    folds = list(GroupKFold(5).split(COUNTED, LABELS, GROUPS))
    wanted, shares = np.empty(300), np.empty((300, 3))
    for train, test in folds:
        model = calibrate(COUNTED[train], LABELS[train], prior="weak").model
        wanted[test], shares[test] = model.decide(COUNTED[test]), model.predict_proba(COUNTED[test])
    options = {"groups": GROUPS, "cv": GroupKFold(5)}
    one = VoteClassifier(prior="weak")
    np.testing.assert_array_equal(cross_val_predict(one, COUNTED, LABELS, **options), wanted)
    numbered = VoteClassifier(prior="weak", classes=(0, 1, 2))
    found = cross_val_predict(numbered, COUNTED, LABELS, method="predict_proba", **options)
    np.testing.assert_array_equal(found, shares)
    # A reliability curve by label.
    for place, label in enumerate((-1, 0, 1)):
        share, mean = calibration_curve(label == LABELS, found[:, place], n_bins=4)
        assert np.abs(share - mean).max() < 0.25
    with pytest.raises(ValueError, match="is 2, expected one of the classes -1, 0, 1"):
        cross_val_predict(one, COUNTED, LABELS, method="predict_proba", **options)


def test_classes_may_have_other_names():
    words = np.array(["B", "tie", "A"])
    one = VoteClassifier(classes=("B", "tie", "A")).fit(COUNTED, words[LABELS + 1])
    assert one.model_ == calibrate(COUNTED, LABELS).model
    assert one.predict([[0, 0, 8], [8, 0, 0]]).tolist() == ["A", "B"]
    few = VoteClassifier(prior="weak").fit(COUNTED[LABELS > -1], LABELS[LABELS > -1])
    assert few.classes_.tolist() == [-1, 0, 1]
    assert few.predict_proba(COUNTED).shape == (300, 3)


@pytest.mark.parametrize(
    ("counts", "labels", "options", "message"),
    [
        ([[1, 2, 3]], ["A"], {}, r"y\[0\] is 'A', expected one of the classes -1, 0, 1"),
        ([[1, 2]], [1], {}, "a minimum of 3 is required"),
        ([[1, np.nan, 3]], [1], {}, r"counts\[0, 1\] is nan, expected a finite number"),
        (
            [[1, 2, 3]],
            [1],
            {"classes": (0, 1)},
            r"classes is \(0, 1\), expected 3 of them",
        ),
    ],
)
def test_what_is_wrong_is_named(counts, labels, options, message):
    with pytest.raises(ValueError, match=message):
        VoteClassifier(**options).fit(counts, labels)


LENGTH = LABELS + np.random.default_rng(5).normal(0, 1, 300)
PRICE = np.where(np.arange(300) % 9 == 0, np.nan, np.random.default_rng(6).normal(0, 3, 300))
X = np.column_stack([COUNTED, LENGTH, PRICE])


def test_columns_after_the_counts_are_covariates():
    known = {"x3": LENGTH, "x4": PRICE}
    model = calibrate(COUNTED, LABELS, covariates=known).model
    one = VoteClassifier().fit(X, LABELS)
    assert (one.model_, one.n_features_in_) == (model, 5)
    assert [own.name for own in one.model_.covariates] == ["x3", "x4"]
    np.testing.assert_array_equal(one.predict(X), model.decide(COUNTED, covariates=known))
    shares = model.predict_proba(COUNTED, covariates=known)
    np.testing.assert_array_equal(one.predict_proba(X), shares)
    again = pickle.loads(pickle.dumps(clone(one).fit(X, LABELS)))
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    through = make_pipeline(FunctionTransformer(lambda rows: rows[:, :4]), VoteClassifier())
    alone = calibrate(COUNTED, LABELS, covariates={"x3": LENGTH}).model
    assert through.fit(X, LABELS)[-1].model_ == alone
    assert calibrate(COUNTED, LABELS).model == VoteClassifier().fit(COUNTED, LABELS).model_
    search = GridSearchCV(VoteClassifier(), {"alpha": [0.5, 1]}, cv=3).fit(X, LABELS)
    assert search.best_estimator_.n_features_in_ == 5
    constant = np.column_stack([COUNTED, np.ones(300)])  # which tells no items apart
    predicted = one.fit(COUNTED, LABELS).predict(COUNTED)
    one.fit(constant, LABELS)
    np.testing.assert_array_equal(one.predict(np.column_stack([COUNTED, LENGTH])), predicted)


@pytest.mark.parametrize("library", [pd, pl])
def test_covariates_of_a_frame_have_its_names(library):
    columns = {"minus": COUNTED[:, 0], "length": LENGTH, "tie": COUNTED[:, 1]}
    frame = library.DataFrame({**columns, "plus": COUNTED[:, 2], "price": PRICE})
    one = VoteClassifier().fit(frame, LABELS)
    known = {"length": LENGTH, "price": PRICE}
    assert one.model_ == calibrate(COUNTED, LABELS, covariates=known).model
    assert one.feature_names_in_.tolist() == ["minus", "tie", "plus", "length", "price"]
    predicted = one.model_.decide(COUNTED, covariates=known)
    for names in (frame.columns, ["price", "plus", "minus", "length", "tie"]):
        np.testing.assert_array_equal(one.predict(frame[[*names]]), predicted)
    for names, message in (
        (["minus", "tie", "plus", "price"], "now missing:\n- length"),
        (["minus", "tie", "length", "price"], "X has columns minus, tie, length, price, expected"),
    ):
        with pytest.raises(ValueError, match=message):
            one.predict(frame[names])
    other = (
        frame.rename(columns={"price": "cost"})
        if library is pd
        else frame.rename({"price": "cost"})
    )
    with pytest.raises(ValueError, match="unseen at fit time:\n- cost"):
        one.predict(other)
    by_place = pd.DataFrame(X)
    assert VoteClassifier().fit(by_place, LABELS).model_ == VoteClassifier().fit(X, LABELS).model_


FIVE = Scale(range(1, 6))


def graded(n=120, seed=3):
    random = np.random.default_rng(seed)
    labels = random.integers(1, 6, n)
    votes = np.clip(labels[:, None] + 1 + random.integers(-1, 2, (n, 6)), 1, 5)
    return (votes[:, :, None] == FIVE.points).sum(axis=1), labels


def test_grades_are_fitted_and_decided_as_calibrate_does():
    counts, labels = graded()
    weights = np.arange(120.0)
    for options, plain in (({}, {}), ({"prior": None}, {"prior": None})):
        one = VoteClassifier(FIVE, **options).fit(counts, labels, sample_weight=weights)
        assert one.model_ == calibrate(counts, labels, scale=FIVE, weights=weights, **plain).model
    one = clone(one).fit(counts, labels)
    np.testing.assert_array_equal(one.predict(counts), one.model_.decide(counts))
    np.testing.assert_array_equal(one.predict_proba(counts), one.model_.predict_proba(counts))
    assert one.score(counts, labels) == (one.model_.decide(counts) == labels).mean()
    assert one.classes_.tolist() == [1, 2, 3, 4, 5]
    assert pickle.loads(pickle.dumps(one)).model_ == one.model_
    options = {"groups": np.arange(120) // 2, "cv": GroupKFold(5)}
    for places in ({"label_scale": Scale(range(5))}, {"classes": range(5)}):
        one = VoteClassifier(FIVE, **places)
        shares = cross_val_predict(one, counts, labels - 1, method="predict_proba", **options)
    assert shares.shape == (120, 5)


@pytest.mark.parametrize(
    ("counts", "labels", "scales", "message"),
    [
        (
            [[1, 2]],
            [4],
            (Scale((1, 2)), Scale((1, 2, 3))),
            r"y\[0\] is 4, expected one of the classes 1, 2, 3",
        ),
        ([[0, 0]], [1], (Scale((1, 2)), None), "expected at least one vote of each item"),
        ([[1, 2]], [1], (5, None), r"scale is 5, expected a btdagg\.Scale"),
    ],
)
def test_what_is_wrong_with_grades_is_named(counts, labels, scales, message):
    with pytest.raises(ValueError, match=message):
        VoteClassifier(*scales).fit(counts, labels)
