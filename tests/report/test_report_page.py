"""The page of a report: what it says as HTML, and what it does in a browser."""

import re
from html.parser import HTMLParser

import pytest

from browser import Visit, launched
from btdagg.report.folder import ReportFolder
from exhibits import Figure, Table

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!-- <script>",
    "\"><svg onload=alert(3)> ' onmouseover='alert(4)",
    "javascript:alert(5)",
    "</style><style>body{display:none}</style>",
    "]]>&amp;&lt;b&gt;\u2028\u2029 \x00 \ud800 \u202e",
    "</title></select><option>",
]


def write(folder, names):
    """A report in which every text is each of the names."""
    with ReportFolder(folder, names[0], names[-1], settings=dict.fromkeys(names, names)) as report:
        for name in names:
            report.section(name, name, name)
            report.remark(name)
            rows = ((name, "n = 4"), (name, name))
            report.add(Table(name, name, name, rows), Figure(name, name, name))
            report.skipped(name, name)
        report.choose({name: Table(name) for name in names})
    return folder / "index.html"


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


# ---------------------------------------------------------------- HTML


_ADDRESSES = (
    r"#[\w-]+|data:,|data:image/svg\+xml;base64,[\w+/=]+|report\.json|(tables|figures)/[\w.%-]+"
)


class Outline(HTMLParser):
    """Elements of a page, and its identifiers and addresses."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.addresses = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        for name, value in attrs:
            assert not name.startswith("on"), (tag, attrs)
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "srcset", "action", "data", "poster"):
                self.addresses.append(value)


def test_a_page_of_hostile_names_has_no_script_and_address_but_its_own(tmp_path):
    outline = Outline(write(tmp_path / "out", HOSTILE).read_text(encoding="utf-8"))
    assert [attrs for tag, attrs in outline.tags if tag == "script"] == [{}]
    assert len(set(outline.ids)) == len(outline.ids)
    for address in outline.addresses:
        assert re.fullmatch(_ADDRESSES, address)


# ---------------------------------------------------------------- in a browser


def test_hostile_names_are_text(browser, tmp_path):
    with Visit(browser, write(tmp_path / "out", HOSTILE)) as visit:
        shown = re.sub(r"\s+", " ", visit.page.locator("main").text_content())
        for name in HOSTILE[:6]:
            assert name in shown
        options = visit.page.locator(".choose option")
        assert options.all_text_contents()[:6] == HOSTILE[:6]
        visit.page.locator(".choose select").select_option(index=2)
        exhibits = visit.page.locator(".choices .exhibit").all()
        assert [exhibit.is_visible() for exhibit in exhibits] == [k == 2 for k in range(8)]
        assert visit.page.locator(".table img, iframe, object, embed").count() == 0
        assert visit.page.evaluate("document.body.checkVisibility()")
        visit.assert_quiet()


def test_the_policy_stops_what_an_exhibit_should_not_have(browser, tmp_path):
    class Careless(Table):
        def html(self):
            return "<table><tr><td><img src=x onerror='document.title=1'></td></tr></table>"

    with ReportFolder(tmp_path / "out", "title") as report:
        report.section("one", "one")
        report.add(Careless())
    with Visit(browser, tmp_path / "out" / "index.html") as visit:
        assert visit.page.title() == "title"
        assert [address for address in visit.requests if address not in visit.refused] == [
            visit.address
        ]
        assert all("Content Security Policy" in said for said in visit.said)
        assert len(visit.said) == 2  # the address and the handler


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_follows_the_colour_scheme(browser, tmp_path, width, scheme):
    folder = tmp_path / "out"
    wide = tuple(tuple(f"cell {row} {column}" for column in range(30)) for row in range(4))
    long = "averyveryverylongname" * 12
    with ReportFolder(folder, long, long, settings={long: long}) as report:
        report.section("one", long, long)
        report.remark(long)
        report.add(Table(title=long, note=long, rows=wide), Figure(title=long, note=long))
        report.skipped(long, long)
    with Visit(browser, folder / "index.html", width=width, scheme=scheme) as visit:
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        inner = "document.querySelector('.table .scroll')"
        assert visit.page.evaluate(f"{inner}.scrollWidth > {inner}.clientWidth")
        red, green, blue = map(
            int,
            re.findall(r"\d+", visit.page.evaluate("getComputedStyle(document.body).background"))[
                :3
            ],
        )
        assert (red + green + blue > 600) == (scheme == "light")
        visit.assert_quiet()
