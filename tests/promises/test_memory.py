"""Where memory is short a call raises MemoryError, and the process lives on."""

import subprocess
import sys

import pytest

# Each makes what a call gets, and then calls with next to no memory left.
CALLS = {
    "refits": """
        weights = np.ones((400_000, 60))
        refits = _core.Refits(
            counts[:60].astype(np.float64), labels[:60].astype(np.int8), 1.0, 1.0,
            [1e-3, -9.0, -10.0], [5.0, 6.9, 10.0],
        )
        call = lambda: refits.fit(weights, 1)
    """,
    "refits with a prior": """
        weights = np.ones((100_000, 60, 3))
        design = _core.pairs_design(np.ones((60, 1)), np.ones((60, 2)))
        call = lambda: _core.Prior.of_pairs([8.0]).posteriors(design, weights, 1)
    """,
    "calibrate": """
        call = lambda: calibrate(rng.integers(0, 2000, (200_000, 3)), labels[:200_000])
    """,
    "tally": """
        items = rng.integers(0, 2**60, 1_000_000)
        call = lambda: btdagg.tally(items, labels)
    """,
}
PROGRAM = """
import resource
import numpy as np
import btdagg
from btdagg import _core, calibrate

rng = np.random.default_rng(0)
counts = rng.integers(0, 9, (1_000_000, 3))
labels = rng.integers(-1, 2, 1_000_000)
{setup}
pages = int(open("/proc/self/statm").read().split()[0])
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (6 << 20), hard))
try:
    call()
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    print("MemoryError", btdagg.majority_vote([[0, 0, 1]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_beyond_the_memory_that_there_is_raises(name):
    setup = "\n".join(line.strip() for line in CALLS[name].splitlines())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "MemoryError [1]"), done.stderr[-300:]
