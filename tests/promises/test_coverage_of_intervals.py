"""Every interval that is printed holds the truth as often as promised, and levels are kept.

A cell fails if the upper 99% limit of its coverage is below the bound, or if an interval that
covered enough is wider than recorded. The ordinary suite draws few data sets, `make soak` many.
"""

import gates
import interval_draws
import pytest
from interval_draws import SCENARIOS


def check(name, n_draws, request):
    scenario = SCENARIOS[name]
    if scenario.of_public_votes:
        request.getfixturevalue("shared")
    found = interval_draws.coverage(scenario, n_draws)
    assert found
    low = {cell: of for cell, of in found.items() if of.upper < scenario.bound}
    assert not low, f"kept less often than {scenario.bound}"
    assert not list(gates.too_wide(name, n_draws, found, gates.recorded()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_few_draws_keep_what_is_promised(name, request):
    check(name, SCENARIOS[name].n_few, request)


@pytest.mark.soak
@pytest.mark.parametrize("name", SCENARIOS)
def test_many_draws_keep_what_is_promised(name, request):
    check(name, SCENARIOS[name].n_many, request)
