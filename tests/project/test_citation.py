"""CITATION.cff is of the version that is released; `make lint` checks it by its schema."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.integration


@pytest.fixture
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_citation_is_of_this_version_and_license(citation):
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert (citation["version"], citation["license"]) == (package["version"], package["license"])
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert citation["repository-code"] == urls["Source"]
