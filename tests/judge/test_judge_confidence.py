"""Length-normalised probabilities of sequences."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btdagg import InputError
from btdagg.judge.answers import sequence_probability

PROBABILITIES = st.lists(st.floats(1e-6, 1), min_size=1, max_size=50)


@given(PROBABILITIES)
def test_it_is_the_geometric_mean(probabilities):
    found = sequence_probability([math.log(p) for p in probabilities])
    expected = math.prod(p ** (1 / len(probabilities)) for p in probabilities)
    assert found == pytest.approx(expected, rel=1e-9)
    assert min(probabilities) * (1 - 1e-9) <= found <= max(probabilities) * (1 + 1e-9)


@given(PROBABILITIES, st.integers(2, 5))
def test_length_does_not_count(probabilities, times):
    logs = [math.log(p) for p in probabilities]
    assert sequence_probability(logs * times) == pytest.approx(sequence_probability(logs))


def test_extremes():
    assert sequence_probability([0.0]) == 1.0
    assert sequence_probability([1e-7, 0.0]) == 1.0  # rounding of an endpoint
    assert sequence_probability([-math.inf, 0.0]) == 0.0
    assert sequence_probability([-9999.0]) == 0.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "token_logprobs is empty, expected one of every token"),
        ([-1.0, 0.5], "token_logprobs[1] is 0.5, expected a number of at most 0"),
        ([math.nan], "token_logprobs[0] is nan, expected a number of at most 0"),
    ],
)
def test_what_is_no_logarithm_of_a_probability_is_refused(values, message):
    with pytest.raises(InputError) as caught:
        sequence_probability(values)
    assert str(caught.value) == message
