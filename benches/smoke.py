"""Run benchmarks with `--smoke`, one after the other, to show that they run: `smoke.py NAME...`."""

import os
import runpy
import sys
from pathlib import Path

FOLDER, WHERE = Path(__file__).resolve().parent, Path.cwd()
os.environ["N_PROCESSES"] = "1"  # a pool's processes would each import everything again

for name in sys.argv[1:]:
    print(f"benches/{name}.py --smoke", flush=True)
    sys.argv = [str(FOLDER / f"{name}.py"), "--smoke"]
    runpy.run_path(sys.argv[0], run_name="__main__")
    os.chdir(WHERE)
