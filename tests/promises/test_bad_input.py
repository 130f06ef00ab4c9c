"""Each kind of bad array is refused by every function that takes it, and the argument is named."""

import inspect

import numpy as np
import pytest

import btdagg
from btdagg import estimates, online
from btdagg.evaluation import CrossFit, GroupTest
from btdagg.votes import Items

N = 24
RNG = np.random.default_rng(0)
FIVE = btdagg.Scale("1-5")
PAIRS = RNG.integers(1, 5, (N, 3)), RNG.integers(-1, 2, N).astype(float)
GRADES = RNG.integers(1, 5, (N, 5)), RNG.integers(1, 6, N).astype(float)
FIRST, SECOND = np.tile([*"xyz"], 8), np.tile([*"yzx"], 8)
QUICK = btdagg.Protocol(CrossFit(3, 1, 2, 0), GroupTest())


def estimate_systems(counts, labels, **more):
    others = () if "scale" in more else (SECOND,)
    return btdagg.estimate_systems(counts, labels, FIRST, *others, **more)


def not_worse(counts, labels, **more):
    sides = {"candidate": "A", "baseline": "B", "margin": 0.3}
    if "scale" in more:
        sides |= {"candidate": "x", "baseline": "y", "by": FIRST}
    return estimates.not_worse(counts, labels, **sides, **more)


def compare(counts, labels, **more):
    return btdagg.compare(counts, np.asarray(counts)[:, ::-1], labels, protocol=QUICK, **more)


def recalibrate(counts, labels, **more):
    new = GRADES[0] if "scale" in more else PAIRS[0]
    return btdagg.recalibrate(
        counts, new[: len(counts)], labels, protocol=CrossFit(3, 1, 2), **more
    )


def change(counts, labels, **more):
    before, after = Items(counts=counts, labels=[*labels], **more), Items(counts=counts, **more)
    return estimates.change(before, after)


def decisions(counts, _, scale=btdagg.PAIRS):
    model = btdagg.calibrate(*(PAIRS if scale.mirrored else GRADES), scale=scale).model
    return btdagg.decisions(counts, model)


# Each with the function that has its arguments.
DOORS = {
    "calibrate": (btdagg.calibrate, btdagg.calibrate),
    "bootstrap": (btdagg.bootstrap, lambda *of, **how: btdagg.bootstrap(*of, n_refits=2, **how)),
    "estimate": (btdagg.estimate, btdagg.estimate),
    "estimate_systems": (btdagg.estimate_systems, estimate_systems),
    "certify": (btdagg.certify, btdagg.certify),
    "not_worse": (btdagg.estimate, not_worse),
    "evaluate": (btdagg.evaluate, lambda *of, **how: btdagg.evaluate(*of, protocol=QUICK, **how)),
    "compare": (btdagg.compare, compare),
    "recalibrate": (btdagg.recalibrate, recalibrate),
    "bias": (
        btdagg.bias,
        lambda *of, **how: btdagg.bias(*of, covariates={"x": np.arange(N) % 5}, **how),
    ),
    "plan": (
        online.plan,
        lambda *of, **how: online.plan(*of, n_items=99, n_votes=[4], n_labels=[12], **how),
    ),
    "choose": (estimates.choose, lambda counts, _, **how: estimates.choose(counts, 3, **how)),
    "change": (Items, change),
    "decisions": (btdagg.decisions, decisions),
}


def changed(array, place, value):
    array = np.array(array, dtype=float)
    array[place] = value
    return array


# What is wrong: arguments that replace good ones, the argument that is named, and its row.
KINDS = {
    "negative": (lambda c, _: {"counts": changed(c, (1, 2), -1)}, "counts", (1, 2)),
    "not a number": (lambda c, _: {"counts": changed(c, (1, 2), np.nan)}, "counts", (1, 2)),
    "too few columns": (lambda c, _: {"counts": c[:, :2]}, "counts", None),
    "text": (lambda c, _: {"counts": [["a"] * c.shape[1]] * N}, "counts", None),
    "off the scale": (lambda _, y: {"labels": changed(y, 1, 9)}, "labels", 1),
    "between points": (lambda _, y: {"labels": changed(y, 1, 0.5)}, "labels", 1),
    "labels of text": (lambda _, y: {"labels": ["x", *y[1:]]}, "labels", 0),
    "labels of other items": (lambda _, y: {"labels": y[:-1]}, "labels", None),
    "groups of other items": (lambda *_: {"groups": np.arange(N - 1)}, "groups", None),
    "an item without a group": (lambda *_: {"groups": [None, *range(1, N)]}, "groups", 0),
    "a level in percent": (lambda *_: {"level": 95}, "level", None),
    "a negative weight": (lambda *_: {"weights": changed(np.ones(N), 1, -1)}, "weights", 1),
    "weights of other items": (lambda *_: {"weights": np.ones(N - 1)}, "weights", None),
    "no chance": (lambda *_: {"probabilities": changed(np.ones(N), 1, 0)}, "probabilities", 1),
    "no scale": (lambda *_: {"scale": 5}, "scale", None),
    "no population": (lambda *_: {"population": "these"}, "population", None),
}
# Labels are none of theirs, or what items have is checked where it is used.
NOT_TAKEN = {("choose", "labels"), ("decisions", "labels"), ("bias", "probabilities")}
NOT_TAKEN |= {("bootstrap", "scale"), ("change", "groups"), ("change", "probabilities")}
NOT_TAKEN |= {("decisions", "probabilities")}  # a switch of another meaning


def cases():
    """A kind for each function that has the argument, of pairs and of grades."""
    for door, (signature, _) in DOORS.items():
        taken = {"counts", "labels", *inspect.signature(signature).parameters}
        for kind, (_, argument, _) in KINDS.items():
            if argument in taken and (door, argument) not in NOT_TAKEN:
                yield pytest.param(door, kind, PAIRS, {}, id=f"{door}-{kind}-pairs")
                if door != "bootstrap":
                    yield pytest.param(door, kind, GRADES, {"scale": FIVE}, id=f"{door}-{kind}")


@pytest.mark.parametrize(("door", "kind", "data", "more"), [*cases()])
@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_what_is_bad_is_refused_by_its_name(door, kind, data, more):
    bad, argument, row = KINDS[kind]
    given = dict(zip(("counts", "labels"), data, strict=True)) | more | bad(*data)
    with pytest.raises(btdagg.InputError) as error:
        DOORS[door][1](given.pop("counts"), given.pop("labels"), **given)
    assert error.value.argument == argument
    if (door, kind) != ("calibrate", "labels of text"):  # of which the type is named
        assert error.value.row == row
