"""The site: it builds without a warning, every link leads somewhere, every public name is in it."""

import inspect
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module

import pytest

import btdagg
from browser import launched
from pages import ROOT

SCRIPTS = ROOT / "docs" / "site"
# What readers come for: words of the front page, the page behind them, and what they find there.
TASKS = (
    ("Calibrate on your own data", "calibrate.html", "btdagg calibrate -o model.json"),
    ("get a win rate with an interval", "estimates.html", "btdagg estimate votes.csv"),
    ("stop calls early", "online.html", "rule.stops_one("),
)
LOOKED_AT = (
    "index", "gate", "known", "benchmarks", "method", "notebook", "reference/python/model",
    "reference/commands/run", "report/index",
)  # fmt: skip
# Long by one table, whose audit takes as long as that of all others: looked at in two of six views.
LONG, AUDITED = ("benchmarks", "reference/python/model"), ((1400, "light"), (390, "dark"))


@pytest.fixture
def scripts(monkeypatch):
    """The modules that build the site, by name."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("sphinx")
        pytest.importorskip("ziamath")
    monkeypatch.syspath_prepend(SCRIPTS)
    return import_module


class Text(HTMLParser):
    """The article of a page: its text, and words and target of each link."""

    def __init__(self, file):
        super().__init__()
        self.text, self.links, self.inside, self.target = "", {}, 0, None
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        self.inside += tag == "article"
        if tag == "a":
            self.target = dict(attributes).get("href")

    def handle_endtag(self, tag):
        self.inside -= tag == "article"
        if tag == "a":
            self.target = None

    def handle_data(self, data):
        if self.inside:
            self.text += data
            if self.target:
                self.links.setdefault(data, self.target)


@pytest.mark.integration
def test_the_site_is_built_and_holds_together(scripts, tmp_path):
    """One test, because building takes most of its time."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    command = [sys.executable, str(SCRIPTS / "build.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"

    # A reader is one click away.
    front = Text(site / "index.html")
    for words, page, found in TASKS:
        assert front.links[words] == page
        assert found in Text(site / page).text

    # Every public name has an entry, by itself or as a link to where it is described, and stands
    # in the table of its topic.
    reference = scripts("python_pages")
    for topic in reference.TOPICS:
        page = (site / "reference/python" / f"{topic}.html").read_text(encoding="utf-8")
        plain = (site / "reference/python" / f"{topic}.md").read_text(encoding="utf-8")
        for place, entries in reference.described_in(topic).items():
            for name, _ in entries:
                assert f'id="{name}"' in page, name
                assert f'href="#{name}" title="{name}"><code' in page, name
                assert f"\n## {name}\n" in plain
            for name in reference.names_of(import_module(place)):
                described = reference.public_name(getattr(import_module(place), name), name)
                assert f'id="{described}"' in page or f'#{described}"' in page, described

    # So has every option of every command.
    from btdagg.cli.app import COMMANDS

    for name in COMMANDS:
        assert f"btdagg {name}" in Text(site / "reference/commands" / f"{name}.html").text
    page = (site / "reference/commands/calibrate.html").read_text(encoding="utf-8")
    assert 'id="cmdoption-btdagg-calibrate-prior"' in page
    said = Text(site / "reference/commands/calibrate.html").text
    assert "tasks and judges of the files (neighbours)" in said
    assert "--filter judge=gpt-5.4 -o model.json" in said

    listed = (site / "llms.txt").read_text(encoding="utf-8")
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert all(re.fullmatch(r"- \[.+\]\(https://\S+\.md\): .+[^:]", line) for line in lines)
    addresses = {re.search(r"btdagg\.github\.io/btdagg/(\S+)\)", line)[1] for line in lines}
    plain = [site / address for address in addresses]
    assert all(file.with_suffix(".html").exists() and len(file.read_text()) > 200 for file in plain)
    assert "<!--" not in "".join(file.read_text(encoding="utf-8") for file in plain)
    assert "<!--" not in (site / "llms-full.txt").read_text(encoding="utf-8")
    assert (site / "rust/btdagg/struct.Model.html").exists()
    assert "<img" in (site / "notebook.html").read_text(encoding="utf-8")  # it was run

    with launched() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True)
        page = context.new_page()
        requests = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{(site / 'search.html').as_uri()}?q=stopping+rule")
        page.wait_for_selector("#search-results li a")
        results = page.locator("#search-results li a").all_inner_texts()
        assert "Fewer votes, streams and drift" in results
        for size in ((1400, 900), (800, 900), (390, 844)):
            page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                for name in LOOKED_AT:
                    page.goto((site / f"{name}.html").as_uri())
                    where = f"{name} {size} {scheme}"
                    assert_fits(page, where)
                    if name not in LONG or (size[0], scheme) in AUDITED:
                        assert_sound(Axe(), page, where)
                page.goto((site / "index.html").as_uri())
                shown = page.locator(".highlight-console, .highlight-none, article img:visible")
                boxes = [shown.nth(place).bounding_box() for place in range(4)]
                assert all(box["y"] + box["height"] <= size[1] for box in boxes)
                assert "-dark" in shown.nth(3).get_attribute("src") or scheme == "light"
        # What is copied is commands, without what they print.
        assert page.locator(".highlight-console button.copybtn").count() == 3
        assert page.locator(".highlight-none button.copybtn").count() == 0
        assert all(url.startswith(("file:", "data:")) for url in requests)


def assert_fits(page, name):
    """Nothing sticks out of a page."""
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) == 0, name


def assert_sound(axe, page, name):
    """The audit finds nothing."""
    response = axe.run(page).response
    violations = [(one["id"], one["nodes"][0]["html"]) for one in response["violations"]]
    assert violations == [], name


def test_a_broken_link_of_the_site_is_found(scripts, tmp_path):
    site = tmp_path / "rust" / "site"  # its own folder is no part of a page's place in it
    (site / "rust").mkdir(parents=True)
    (tmp_path / "rust" / "outside.html").write_text("")
    (site / "rust" / "index.html").write_text('<a href="#read-by-a-script">')
    (site / "a.html").write_text(
        '<a id="here" href="#here"></a><a href="b.html#there"><a href="b.html#none">'
        '<a href="../outside.html"><a href="rust/index.html#read-by-a-script">'
        '<img src="none.svg"><script src="https://other.org/x.js"></script><a href="mailto:x@y">'
    )
    (site / "b.html").write_text('<a name="there" href="a.html?x=1"><link href="c/"><a href="#">')
    assert scripts("links").broken_links(site) == [
        "a.html: ../outside.html", "a.html: b.html#none", "a.html: none.svg", "b.html: c/",
    ]  # fmt: skip


@pytest.mark.integration
def test_the_reference_has_every_package_that_people_import(scripts):
    modules = scripts("python_pages").MODULES
    packages = {name for name in btdagg.__all__ if inspect.ismodule(getattr(btdagg, name))}
    assert {f"btdagg.{name}" for name in packages} <= set(modules)
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    imported = set(re.findall(r"^from (btdagg[\w.]*) import", text, flags=re.MULTILINE))
    assert imported <= set(modules)
