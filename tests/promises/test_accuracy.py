"""Fits are as accurate on public votes as they were recorded to be, or better.

The ordinary suite measures a few splits of some families, too few for the gates: there a kind of
votes may not be worse by more than its gate and by more than chance. `make soak` has the gates.
"""

import gates
import numpy as np
import pytest
from scipy.stats import t as student

SIZES_OF_FEW = {
    "rb2, weak prior": (10, 100),
    "rb2, paper's fit": (20, 100),
    "rb2, neighbours": (0, 10, 50),
    "wmt23, weak prior": (10,),
    "rb2 with 3 to 8 votes": (20, 100),
    "rb2 strength, weak prior": (10, 100),
    "rb2 panel of three": (20, 100),
    "rb2_scores, weak prior": (10, 100),
    "rubric, weak prior": (10, 100),
    "rubric, neighbours": (10, 50),
    "vicuna80 with standing and length": (20, 100),
    "rubric with noise": (20, 100),
}
KINDS = sorted({gates.FAMILIES[name].kind for name in SIZES_OF_FEW})
N_SPLITS_OF_SOAK = 15


def worse(compared):
    """Describe what is worse by more than its gate and than chance, over families and splits."""
    for measure in gates.GATES:
        for is_few in (True, False):
            own = [g for g in compared if g.measure == measure and (g.size <= gates.FEW) == is_few]
            apart = np.concatenate([gate.differences for gate in own])
            mean, error = apart.mean(), apart.std(ddof=1) / np.sqrt(len(apart))
            lower = mean - student.ppf(0.95, len(apart) - 1) * error
            if mean > own[0].largest and lower > 0:
                yield f"worse by {mean:.4f} ({error:.4f}):", *map(str, own)


@pytest.mark.parametrize("kind", KINDS)
def test_few_splits_are_as_accurate_as_recorded(shared, kind):
    baseline, compared = gates.recorded(), []
    for name, sizes in SIZES_OF_FEW.items():
        if gates.FAMILIES[name].kind == kind:
            compared += gates.gates(name, gates.measured(name, range(2), sizes), baseline)
    failed = list(worse(compared))
    assert not failed, "\n".join(line for lines in failed for line in lines)


@pytest.mark.soak
@pytest.mark.parametrize("name", gates.FAMILIES)
def test_every_gate_holds(shared, name):
    figures = gates.measured(name, range(N_SPLITS_OF_SOAK))
    failed = [gate for gate in gates.gates(name, figures, gates.recorded()) if not gate.holds]
    assert not failed, "\n".join(map(str, failed))


def test_every_family_and_number_of_labels_is_recorded_on_fifty_splits():
    errors = gates.recorded()["errors"]
    keys = {
        gates.key_of(name, size, measure)
        for name, family in gates.FAMILIES.items()
        for size in family.sizes
        for measure in gates.GATES
    }
    assert set(errors) == keys
    assert {len(values) for values in errors.values()} == {50}


@pytest.mark.parametrize(
    ("size", "shift", "holds"), [(20, 60, True), (50, 60, False), (20, 90, False), (50, 20, True)]
)
def test_a_gate_is_the_upper_limit_of_the_difference(size, shift, holds):
    before = np.random.default_rng(1).integers(3000, 4000, 50)
    baseline = {"errors": {gates.key_of("rb2, weak prior", size, "mae"): before.tolist()}}

    def gate_of(spread):
        now = before + shift + np.tile([-spread, spread], 25)
        return gates.gates("rb2, weak prior", {(size, "mae"): now}, baseline)[0]

    assert gate_of(10).holds is holds
    assert gate_of(10).difference == pytest.approx(shift / 1e4)
    assert shift / 1e4 < gate_of(10).upper < shift / 1e4 + 0.0003
    assert not gate_of(300).holds  # splits that differ so much do not show that it is as good


def test_a_recorded_figure_is_replaced_by_a_better_one_alone():
    name, size = "rb2, weak prior", 20
    key = gates.key_of(name, size, "mae")

    def after(values, is_accepted=False):
        baseline = {"errors": {key: [3500, 3600]}}
        gates.record(name, {(size, "mae"): np.array(values)}, baseline, is_accepted)
        return baseline["errors"][key]

    assert after([3490, 3590]) == [3490, 3590]
    assert after([3490, 3590, 4000]) == [3490, 3590, 4000]
    assert after([3510, 3600]) == after([3000]) == [3500, 3600]
    assert after([3510, 3600], is_accepted=True) == [3510, 3600]
