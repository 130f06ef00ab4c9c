"""MLflow's and Phoenix's own servers, as processes that a test session starts and stops."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import metadata
from pathlib import Path

_SECONDS = 180  # on a machine that is new and busy


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class _Server:
    """A program on a free port, in a temporary folder; `url` is its address."""

    health = "/"

    def __init__(self):
        self._folder = Path(tempfile.mkdtemp(prefix="btdagg-traces-"))
        self._log = self._folder / "log"
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command(port), cwd=self._folder, env=os.environ | self.environment(port),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self):
        end = time.monotonic() + _SECONDS
        while True:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(
                    f"{type(self).__name__} does not answer: {self._log.read_text()}"
                )
            try:
                with urllib.request.urlopen(self.url + self.health, timeout=5):
                    return
            except OSError:
                time.sleep(0.1)


class MLflowServer(_Server):
    health = "/health"

    def command(self, port):
        program = Path(sys.prefix) / "bin" / "mlflow"
        store = f"sqlite:///{self._folder}/mlflow.db"
        return [program, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
                "--backend-store-uri", store, "--artifacts-destination",
                self._folder / "artifacts"]  # fmt: skip

    def environment(self, port):
        return {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


class PhoenixServer(_Server):
    health = "/healthz"

    def command(self, port):
        return [phoenix_program(), "serve"]

    def environment(self, port):
        return {
            "PHOENIX_WORKING_DIR": str(self._folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }


def has_mlflow():
    """Whether all of MLflow is installed, and not only its client."""
    try:
        return bool(metadata.version("mlflow"))
    except metadata.PackageNotFoundError:
        return False


def phoenix_program():
    """Its program, in an environment of its own beside this one: it wants other versions."""
    return Path(f"{sys.prefix}-phoenix") / "bin" / "phoenix"
