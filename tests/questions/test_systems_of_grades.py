"""Systems ranked by their mean grades: against differences by system."""

import numpy as np
import pytest

from btdagg import PASS_FAIL, GradeModel, InputError, Scale, estimate, estimate_systems
from btdagg.evaluation import holm

FIVE = Scale(range(1, 6))


def drawn(means, n_prompts=200, n_labelled=60, seed=0):
    """Arguments of `estimate_systems`, and all grades: each system answers each prompt."""
    rng = np.random.default_rng([5, seed])
    prompt, system = np.divmod(np.arange(n_prompts * len(means)), len(means))
    ease = rng.normal(0, 0.7, n_prompts)[prompt]
    quality = np.array(means)[system] + ease + rng.normal(0, 0.6, len(prompt))
    gold = np.clip(np.round(quality), 1, 5).astype(int)
    votes = np.clip(np.round(gold[:, None] + rng.normal(0.5, 0.8, (len(gold), 6))), 1, 5)
    labelled = np.isin(prompt, rng.permutation(n_prompts)[:n_labelled])
    return {
        "counts": np.stack([(votes == point).sum(axis=1) for point in FIVE.points], axis=1),
        "labels": np.where(labelled, gold, np.nan),
        "system_a": np.array(list("vwxyz"))[system],
        "groups": prompt,
        "scale": FIVE,
    }, gold


def test_means_and_comparisons_are_those_of_estimates_by_system():
    given, _ = drawn((3.0, 3.6, 3.1, 2.4))
    given["model"] = GradeModel(2.0, (1.9, 2.9, 3.9, 4.9), FIVE)
    found = estimate_systems(**given)
    by = estimate(**{("by" if n == "system_a" else n): v for n, v in given.items()})
    order = sorted(by.by, key=lambda name: -by.by[name]["mean grade"].value)
    assert list(found.systems) == order
    assert (found.quantity, found.n_items, found.n_labels, found.n_groups) == (
        "mean grade",
        800,
        240,
        60,
    )
    for name, system in found.systems.items():
        assert system.mean == by.by[name]["mean grade"]
        assert (system.n_items, system.n_labels, system.strength) == (200, 60, None)
    pvalues = np.ones((4, 4))
    for row, first in enumerate(order):
        for column, second in enumerate(order):
            if first != second:
                difference = by.difference(first, second)["mean grade"]
                pvalues[row, column] = difference.pvalue
    assert found.pvalues == pytest.approx(holm(pvalues))
    assert [system.rank for system in found.systems.values()] == [1, 2, 2, 3]
    assert [system.is_tied for system in found.systems.values()] == [True, False, False, False]
    assert found.tie_parameter is found.covariance is found.weight is None
    first, header, best, *_ = str(found).splitlines()
    assert first == "w is the best of 4 systems"
    assert (header.split()[0], *best.split()[:2]) == ("system", "w", "1")
    assert "mean grade" in found._repr_html_()
    assert found.plot().title == "Mean grades"


def test_the_order_of_rows_and_the_names_of_systems_change_nothing():
    given, _ = drawn((3.0, 3.6, 3.1))
    found = estimate_systems(**given)
    rows = np.random.default_rng(0).permutation(len(given["labels"]))
    mixed = {name: v[rows] for name, v in given.items() if name != "scale"}
    renamed = {"w": "c", "x": "b", "v": "a"}
    mixed["system_a"] = [renamed[name] for name in mixed["system_a"]]
    again = estimate_systems(**mixed, scale=FIVE)
    assert [renamed[name] for name in found.systems] == list(again.systems)
    for system, other in zip(found.systems.values(), again.systems.values(), strict=True):
        assert (system.mean.low, system.rank) == (pytest.approx(other.mean.low), other.rank)


def test_these_items_and_a_remark_on_the_other_population():
    given, gold = drawn((3.0, 3.6), n_prompts=100, n_labelled=100)
    how = given | {"population": "finite", "units": given["groups"]}
    found = estimate_systems(**how)
    for name, system in found.systems.items():
        truth = gold[given["system_a"] == name].mean()
        assert system.mean.low == system.mean.high == pytest.approx(truth)
    assert found.population == "finite"
    assert any(text.startswith("mean grades of new items like these: v ") for text in found.remarks)
    passes = np.where(np.isnan(given["labels"]), np.nan, given["labels"] >= 4)
    found = estimate_systems(**given | {"labels": passes}, label_scale=PASS_FAIL)
    assert list(found.systems) == ["w", "v"]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"system_b": ["x"] * 400}, "system_b is .*, expected None, since votes are grades"),
        ({"baseline": "v"}, "baseline is 'v', expected None, since votes are grades"),
        ({"system_a": ["v"] * 400}, r"system_a is \['v'\], expected two systems or more"),
        ({"system_a": ["v"] * 399 + ["w"]}, "w has . groups? with labels, expected at least 2"),
        ({"system_a": ["v"] * 399}, "system_a has 399 rows, expected 400"),
        ({"system_a": None}, "system_a is nothing, expected the system of each response"),
        ({"system_a": ["v", None] * 200}, r"system_a\[1\] is .*, expected a value for every item"),
        ({"scale": None}, r"labels\[2\] is 2.0, expected -1, 0 or 1"),
    ],
)
def test_what_makes_no_sense_is_refused(changed, text):
    given, _ = drawn((3.0, 3.6))
    with pytest.raises(InputError, match=text):
        estimate_systems(**given | changed)
