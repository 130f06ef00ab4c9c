"""The source distribution is what a checkout is, and has what its pages link to."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Read by Git and by the machine that tests changes.
LEFT_OUT = {".ci/run", ".gitignore", ".pre-commit-config.yaml", ".containerignore"}

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def sdist(cargo, tmp_path_factory):
    """Folder of an unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def files_of(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def links_of(page):
    """Relative links and images of a page, without anchors; code does not count."""
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S
    )
    found = (link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text))
    return {link for link in found if link and "://" not in link}


def test_sdist_has_all_that_git_tracks_and_nothing_else(sdist):
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if tracked.returncode:
        pytest.skip("this is no checkout")
    wanted = {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()}
    wanted = {name for name in wanted - LEFT_OUT if not name.startswith(".github/")}
    assert files_of(sdist) - {"PKG-INFO"} == wanted


def test_links_of_the_sdist_lead_to_files_of_it(sdist):
    assert {"docs/data.md", "DESIGN.md", "LICENSE"} <= links_of(sdist / "README.md")
    pages = list(sdist.rglob("*.md"))
    assert {"README.md", "docs/online.md", "benches/README.md"} <= {
        str(page.relative_to(sdist)) for page in pages
    }
    broken = [
        f"{page.relative_to(sdist)}: {link}"
        for page in pages
        for link in sorted(links_of(page))
        if not (page.parent / link).resolve().is_relative_to(sdist.resolve())
        or not (page.parent / link).exists()
    ]
    assert broken == []


def test_cargo_reads_the_workspace_of_the_sdist_as_locked(sdist):
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=sdist, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
