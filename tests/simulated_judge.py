"""The simulated judge server of examples/, as a process of its own that a test starts and stops."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

SERVER = Path(__file__).parents[1] / "examples" / "judge_server"


class SimulatedJudge:
    """A server on a free port of this machine; `url` ends in /v1."""

    def __init__(self, folder, *arguments):
        self.path = Path(folder) / "requests.jsonl"
        command = [sys.executable, str(SERVER), "--port", "0", "--log", str(self.path)]
        self._process = subprocess.Popen(
            [*command, *map(str, arguments)], stdout=subprocess.PIPE, text=True
        )
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self.stop()
            raise RuntimeError("the simulated judge did not start")

    def log(self):
        """Every request that was judged or refused, as logged."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_text().rpartition("\n")  # a line may be half written
        return [json.loads(line) for line in whole.splitlines()]

    def stats(self):
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/stats") as answer:
            return json.load(answer)

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=10)
        self._process.stdout.close()
