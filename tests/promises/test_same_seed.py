"""The same seed gives the same numbers, to the last bit, in another process with other threads."""

import json
import os
import subprocess
import sys

import pytest

JOBS = """
import json, sys, warnings
import numpy as np, btdagg
from btdagg import Protocol
from btdagg.datasets import simulate
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits
from btdagg.methods import by_name
from btdagg.online import forecast, plan

warnings.simplefilter("ignore")
n_threads = int(sys.argv[1])
one, two = (simulate(name, 60, 6, seed=0) for name in ("rb2-math", "rb2-focus"))
counts, labels, groups = one.counts, one.labels, np.arange(60) // 2
prior = btdagg.fit_prior({"one": (one.counts, labels), "two": (two.counts, two.labels)})
methods = by_name(("davidson", "weak", "majority", "isotonic"))
splits = Protocol(RandomSplits(n_splits=3, size=20))
folds = Protocol(CrossFit(3, 1, 3, 0), GroupTest())
scored = [
    btdagg.evaluate(counts, labels, groups=groups, aggregators=methods, protocol=of).as_dict()
    for of in (splits, folds)
]
sure = btdagg.bootstrap(counts, labels, n_refits=20, groups=groups, seed=3, n_threads=n_threads)
test = btdagg.paired_permutation_test(
    abs(labels - one.counts[:, 2]), abs(labels - two.labels), method="monte-carlo", seed=1
)
told = {
    "evaluate": scored,
    "bootstrap": sure.parameters.tolist(),
    "prior": str(btdagg.calibrate(counts, labels, prior=prior).intervals()),
    "estimate": str(btdagg.estimate(counts, labels, groups=groups)),
    "certify": btdagg.certify(counts, labels).as_dict(),
    "plan": str(plan(counts, labels, n_items=100, n_votes=[4], n_labels=[25], seed=2)),
    "forecast": str(forecast(prior, n_items=100, n_votes=[4], n_labels=[10])),
    "pvalue": test.pvalue,
}
print(json.dumps(told, default=str))
"""


@pytest.fixture(scope="module")
def told():
    """What two processes say whose hashes and threads differ."""
    answers = []
    for hashes, threads in (("0", "1"), ("12345", "2")):
        more = {"PYTHONHASHSEED": hashes, "POLARS_MAX_THREADS": threads}
        command = [sys.executable, "-c", JOBS, threads]
        done = subprocess.run(
            command, env={**os.environ, **more}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    return answers


@pytest.mark.parametrize(
    "job",
    ["evaluate", "bootstrap", "prior", "estimate", "certify", "plan", "forecast", "pvalue"],
)
def test_a_seed_decides_every_bit(told, job):
    one, other = told
    assert one[job] == other[job]
    assert one[job]
