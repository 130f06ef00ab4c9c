"""The example of a Rust service reads Python's model file and decides as Python does."""

import http.client
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from btdagg import DavidsonModel

FOLDER = Path(__file__).parents[2] / "examples/rust_service"

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def program(cargo):
    subprocess.run(["cargo", "build", "--quiet", "--offline", "--locked"], cwd=FOLDER, check=True)
    return FOLDER / "target/debug/btdagg-service"


def test_it_decides_as_python_does(program, tmp_path):
    model = DavidsonModel(1.2345678901234567, 2.1, -0.8, 0.5, 2.0)
    model.save(tmp_path / "model.json")
    command = [program, tmp_path / "model.json", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().removeprefix("listening on ").strip()
        connection = http.client.HTTPConnection(address, timeout=10)
        counts = np.random.default_rng(0).integers(0, 40, size=(300, 3))
        p = model.predict_proba(counts)
        for (minus, tie, plus), label, row in zip(counts, model.decide(counts), p, strict=True):
            connection.request("GET", f"/decide?minus={minus}&tie={tie}&plus={plus}")
            found = json.loads(connection.getresponse().read())
            assert found == {"label": label, "probabilities": row.tolist()}
        connection.request("GET", "/decide?minus=1&tie=x&plus=2")
        response = connection.getresponse()
        assert response.status == 422
        assert json.loads(response.read())["detail"] == (
            "tie is missing or none, expected an integer of at least 0"
        )
        connection.close()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_a_file_that_is_no_model_is_named(program, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    done = subprocess.run(
        [program, tmp_path / "model.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "model.json: format is null, expected" in done.stderr
