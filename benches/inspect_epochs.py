"""What a stopping rule saves in Inspect if epochs of a sample run at the same time.

Runs of Inspect with its mock model: 50 samples, up to 8 epochs, calls that take an exponentially
distributed time. Peer: the votes that the same rule needs if they come one at a time. Prints a
Markdown table. `--smoke` runs everything on little data.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import btdagg
from btdagg import DavidsonModel
from btdagg.online import StoppingRule

N = 8
RULE = StoppingRule.lossless(DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8), N)
SECONDS = 0.05  # of a call, on average


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="little data, one repetition")
    arguments = parser.parse_args()
    if find_spec("inspect_ai") is None:
        print("left out, it needs inspect-ai: pip install 'btdagg[inspect]'")
        return
    import inspect_ai

    print(
        f"btdagg {btdagg.__version__}, inspect-ai {inspect_ai.__version__}, "
        f"Python {platform.python_version()}\n"
    )
    n_items, repeats = (6, 1) if arguments.smoke else (50, 5)
    print("| samples at a time | of all samples | epochs run | beyond the rule's | savings kept |")
    print("|---:|---:|---:|---:|---:|")
    for share in (0, 0.2, 0.5, 1, 2, N):
        at_a_time = max(1, round(share * n_items))
        spent, wanted = zip(*(run(n_items, at_a_time, k) for k in range(repeats)), strict=True)
        whole, ours, least = n_items * N, statistics.mean(spent), statistics.mean(wanted)
        print(
            f"| {at_a_time} | {at_a_time / n_items:.0%} | {ours:.0f} | {ours / least - 1:+.1%} | "
            f"{(whole - ours) / (whole - least):.0%} |"
        )


def run(n_items: int, at_a_time: int, seed: int) -> tuple[int, int]:
    """Run a task; return the epochs that were run, and those that the rule needs in series."""
    from anyio import sleep
    from inspect_ai import Epochs, Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, mean, scorer

    from btdagg.integrations.inspect import StopByRule, calibrated

    random = np.random.default_rng(seed)
    seen = random.integers(-1, 2, n_items)[:, None] + random.normal(0, 0.7, (n_items, N))
    votes = np.sign(np.where(np.abs(seen) < 0.4, 0, seen)).astype(int)
    times = random.exponential(SECONDS, votes.shape)

    @scorer(metrics=[mean()])
    def judge():
        async def score(state, target):
            place = state.metadata["row"], state.epoch - 1
            await sleep(times[place])
            return Score(value=int(votes[place]))

        return score

    task = Task(
        dataset=[Sample(input="", metadata={"row": row}) for row in range(n_items)],
        solver=[],
        scorer=judge(),
        epochs=Epochs(N, calibrated(RULE)),
        early_stopping=StopByRule(RULE),
    )
    with TemporaryDirectory() as folder:
        options = {"max_samples": at_a_time, "display": "none", "score_display": False}
        (log,) = eval(task, model="mockllm/model", log_dir=str(Path(folder)), **options)
        if log.status != "success":
            sys.exit(f"inspect_epochs.py: the run failed: {log.error}")
        return len(log.samples), int(RULE.follow(votes).n_votes.sum())


if __name__ == "__main__":
    main()
