"""Threads that share models, arrays and tallies get the bits that one thread gets.

This needs NumPy, SciPy and pytest alone, so that it runs on a free-threaded Python too, where the
threads compute at once: `pytest --noconftest tests/model/test_threads.py`.
"""

import sys
import sysconfig
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import btdagg
from btdagg.methods import Calibrated, voting_behaviour
from btdagg.model import CalibrationWarning
from btdagg.online import OnlineTally

N_THREADS, N_ROUNDS = 8, 6


@pytest.fixture(scope="module")
def counts():
    """A shared array, read alone, of 60 items with twelve votes each."""
    generator = np.random.default_rng(7)
    chances = generator.dirichlet([1.0, 0.7, 1.2], size=60)
    array = np.stack([generator.multinomial(12, chance) for chance in chances])
    array.flags.writeable = False
    return array


@pytest.fixture(scope="module")
def labels(counts):
    generator = np.random.default_rng(8)
    noisy = counts[:, 2] - counts[:, 0] + generator.normal(0, 3, len(counts))
    return np.sign(np.where(np.abs(noisy) < 3, 0, noisy)).astype(int)


def at_once(work, n_threads=N_THREADS):
    """What each thread returns. All begin together, and switch often where there is a GIL."""
    start = threading.Barrier(n_threads)

    def wait_and_work(number):
        start.wait()
        return work(number)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(wait_and_work, range(n_threads)))
    finally:
        sys.setswitchinterval(before)


def bits(*arrays):
    """Text that tells any two numbers apart, for arrays of numbers and of strings."""
    return repr([np.asarray(array).tolist() for array in arrays])


def by_item(ids, counts):
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="it has a GIL")
def test_importing_btdagg_leaves_the_gil_off():
    assert not sys._is_gil_enabled()


def test_a_model_that_nobody_used_before_decides_for_all(counts):
    """Its kernel is made on first use, by whichever thread is first."""
    numbers = (1.2, 2.0, 0.8)

    def answers(model, n_threads):
        return bits(
            model.decide(counts, n_threads=n_threads),
            model.predict_proba(counts, n_threads=n_threads),
            model.risks(counts),
            *model.features(counts),
        )

    alone = answers(btdagg.DavidsonModel(*numbers), 1)
    for _ in range(N_ROUNDS):
        shared = btdagg.DavidsonModel(*numbers)
        found = at_once(lambda number, shared=shared: answers(shared, 1 + number % 3))
        assert set(found) == {alone}


def test_fits_of_shared_arrays_are_those_of_one_thread(counts, labels):
    weights = np.linspace(0.5, 1.5, len(labels))

    def fit(number):
        given = weights if number % 2 else None
        fitted = btdagg.calibrate(counts, labels, weights=given, n_threads=1 + number % 3)
        return fitted.model, fitted.drps

    alone = [fit(0), fit(1)]
    assert alone[0] != alone[1]
    assert at_once(fit) == [alone[number % 2] for number in range(N_THREADS)]


@pytest.mark.parametrize("kind", [int, str])
def test_a_tally_to_which_threads_add_has_all_votes(kind):
    """Votes in blocks and one by one, while others ask it to decide, to settle and for a copy."""
    generator = np.random.default_rng(10)
    items = generator.integers(0, 40, (N_THREADS, 300))
    votes = generator.integers(-1, 2, items.shape)
    model = btdagg.DavidsonModel(1.2, 2.0, 0.8)
    for _ in range(N_ROUNDS):
        tally = OnlineTally(model, deduplicate=False)
        whole = OnlineTally(model, deduplicate=False)

        def work(number, tally=tally, whole=whole):
            own = items[number].astype(kind)
            tally.add(own[:200], votes[number, :200])
            for item, vote in zip(own[200:].tolist(), votes[number, 200:].tolist(), strict=True):
                tally.add_one(item, vote)
            tally.decide()
            tally.to_bytes()
            part = OnlineTally(model, deduplicate=False)
            part.add(own, votes[number])
            whole.merge(part)

        at_once(work)
        wanted = by_item(*btdagg.tally(items.astype(kind).ravel(), votes.ravel()))
        assert by_item(*tally.counts()) == wanted
        assert by_item(*whole.counts()) == wanted
        assert bits(tally.decide()[1]) == bits(whole.decide()[1])


def test_a_permutation_test_gives_the_same_p_value_to_every_thread(labels):
    generator = np.random.default_rng(11)
    one, other = (np.abs(labels - generator.integers(-1, 2, len(labels))) for _ in range(2))

    def test(_):
        return btdagg.paired_permutation_test(one, other, seed=3).pvalue

    assert set(at_once(test, 4)) == {test(0)}


def test_threads_that_estimate_leave_warnings_as_they_were(counts, labels):
    """Fits that would warn of a bound do so in none of the threads, and afterwards as before."""
    one_label = np.ones(12, dtype=int)

    def work(number):
        btdagg.estimate(counts, labels, seed=number)
        btdagg.evaluate(counts[:12], labels[:12], aggregators=[Calibrated(prior=None)])
        voting_behaviour(Calibrated(prior="weak").fit(counts, labels), 50)

    work(0)  # other libraries add filters when they are imported
    before = list(warnings.filters)
    at_once(work, 4)
    assert warnings.filters == before
    for fit in (partial(btdagg.calibrate, prior=None), Calibrated(prior=None).fit):
        with pytest.warns(CalibrationWarning) as caught:
            fit(counts[:12], one_label)
        assert {warning.filename for warning in caught} == {__file__}
