"""Every code block of the pages, README to skill, runs as printed, and shows what it prints."""

import os
import shutil

import pytest

from pages import ROOT, Runner, blocks
from simulated_judge import SimulatedJudge

ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "skills/btdagg/SKILL.md")
PAGES = [*(ROOT / name for name in ROOT_PAGES), *sorted((ROOT / "docs").glob("*.md"))]
CRATE = ROOT / "rust/btdagg"


@pytest.fixture
def judge_url(tmp_path_factory):
    """A judge of the page's own: what it answers depends on what it was asked before."""
    server = SimulatedJudge(tmp_path_factory.mktemp("judge"))
    yield server.url
    server.stop()


@pytest.fixture
def run(tmp_path, judge_url, small_pngs):
    """Run a page, given its text."""

    def run(text, name="page.md"):
        runner = Runner(name, tmp_path, judge_url)
        try:
            for block in blocks(text):
                runner.run(block)
        finally:
            runner.close()
        return runner.folder

    return run


@pytest.mark.integration
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_as_printed(run, page, request, monkeypatch):
    text = page.read_text(encoding="utf-8")
    assert blocks(text)
    if "\ncurl " in text and shutil.which("curl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("curl is not installed: apt-get install curl")
        pytest.skip("curl is not installed")
    if "\ninspect " in text and os.environ.get("CI") != "true":
        pytest.importorskip("inspect_ai")
    if "pyspark" in text and os.environ.get("CI") != "true":
        for library in ("pyspark", "ray", "dask"):
            pytest.importorskip(library)
        if shutil.which("java") is None:
            pytest.skip("Java is not installed: apt-get install default-jre-headless")
    if "import mlflow" in text:
        if os.environ.get("CI") != "true":
            for library in ("langfuse", "opentelemetry.sdk", "phoenix.client"):
                pytest.importorskip(library)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", request.getfixturevalue("mlflow_server"))
        monkeypatch.setenv("PHOENIX_ENDPOINT", request.getfixturevalue("phoenix_server"))
    if "$DATABASE_URL" in text or '"DATABASE_URL"' in text:
        database = request.getfixturevalue("postgres").database(f"page_{page.stem}")
        monkeypatch.setenv("DATABASE_URL", database)
    if not any(block.language == "" and "MAE" in block.text for block in blocks(text)):
        request.getfixturevalue("quick_commands")  # no error that it takes 50 models to print
    run(text, page.name)


def test_the_readme_of_the_crate_is_a_doctest():
    """`cargo test` compiles its blocks, which are all Rust, and runs all but the example."""
    text = (CRATE / "README.md").read_text(encoding="utf-8")
    assert {block.language for block in blocks(text)} == {"rust", "rust,no_run"}
    (example,) = (block for block in blocks(text) if block.language == "rust,no_run")
    file = CRATE / "examples/votes_to_labels.rs"  # run by test_rust_example.py
    assert example.text == file.read_text(encoding="utf-8")
    source = (CRATE / "src/lib.rs").read_text(encoding="utf-8")
    assert '#[cfg(doctest)]\n#[doc = include_str!("../README.md")]' in source


# What runs the pages finds faults in them


def fenced(*several):
    """A page of blocks: a language and a text each."""
    return "\n".join(f"```{language}\n{text}\n```" for language, text in several)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (fenced(("python", "1 + 1  # 3")), r"page.md:2: 1 \+ 1  # 3: it is 2"),
        (
            fenced(("python", "print(1.5)"), ("", "1.4")),
            "page.md:4: not printed, or not there: 1.4",
        ),
        (fenced(("console", "exit 3")), "page.md:1: exit 3: status 3"),
        (fenced(("json", "{}")), "page.md:1: nobody runs 'json'; mark it, or give it a file name"),
    ],
)
def test_a_fault_of_a_page_is_found(run, page, message):
    with pytest.raises((AssertionError, ValueError), match=f"(?s){message}"):
        run(page)
