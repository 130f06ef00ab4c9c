"""What the script that builds the site says where it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.integration


def test_without_cargo_the_site_is_not_begun(tmp_path):
    if os.environ.get("CI") != "true":
        pytest.importorskip("sphinx")
        pytest.importorskip("ziamath")
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "site" / "build.py", tmp_path / "build"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1, "no cargo: the site has the reference of Rust, expected Rust 1.88 or later\n",
    )  # fmt: skip
    assert not (tmp_path / "build").exists()
