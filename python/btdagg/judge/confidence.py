"""How confident a judge was in what it wrote."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from btdagg._core import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


def sequence_probability(token_logprobs: Sequence[float]) -> float:
    """Length-normalised probability of a sequence: exp(mean log p), the geometric mean.

    Parameters
    ----------
    token_logprobs : sequence of float
        Natural logarithm of the probability of every token. Minus infinity, and whatever is below
        the smallest float (endpoints write -9999 for it), makes it 0 or nearly so.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    InputError
        If there are no tokens, or a logarithm is positive by more than rounding does, or NaN.

    References
    ----------
    Taubenfeld et al. (2025), as used by the paper for confidence-informed self-consistency.
    """
    if not len(token_logprobs):
        raise InputError("token_logprobs is empty, want one of every token")
    for number, value in enumerate(token_logprobs):
        if not value <= 1e-3:
            raise InputError(f"token_logprobs[{number}] is {value}, want a number of at most 0")
    return min(math.exp(math.fsum(token_logprobs) / len(token_logprobs)), 1.0)
