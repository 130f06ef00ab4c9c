"""The page of a report: what it says as HTML, and what it does in a browser."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from browser import Visit, launched
from btdagg import DavidsonModel, majority_vote
from btdagg.report import ReportFolder
from btdagg.report.decision_map import decision_map
from exhibits import Figure, Table

MODELS = {
    "reluctant": DavidsonModel(beta=0.8, eta0=3.0, gamma=1.5),
    "eager": DavidsonModel(beta=2.123456789, eta0=-2.0, gamma=0.3, alpha=0.5, kappa=2.0),
}
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


def write(folder, names=("plain",), models=MODELS):
    """A report in which every text is each of the names."""
    with ReportFolder(folder, names[0], settings=dict.fromkeys(names, names)) as report:
        report.show_models(models)
        for name in names:
            report.section(name, name, name)
            report.remark(name)
            rows = ((name, "n = 4"), (name, name))
            report.add(Table(name, name, name, rows), Figure(name, name, name))
            report.skipped(name, name)
    return folder / "index.html"


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write(tmp_path_factory.mktemp("report"))


@pytest.fixture
def visit(browser, report):
    with Visit(browser, report) as found:
        yield found
        found.assert_quiet()


def cells(page, name="model"):
    """Class of every cell of a map, by votes for A and B."""
    found = page.eval_on_selector_all(
        f"#{name}-map rect[data-a]",
        "all => all.map(one => [+one.dataset.a, +one.dataset.b, one.getAttribute('class')])",
    )
    return {(a, b): {"a": 1, "t": 0, "b": -1}[style] for a, b, style in found}


def decisions(model, n):
    """What the map of a model is to show."""
    wanted = {}
    for a in range(n + 1):
        for b in range(n + 1 - a):
            wanted[a, b] = model.decide_one(b, n - a - b, a)
    return wanted


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
    models = dict.fromkeys(HOSTILE, MODELS["eager"])
    outline = Outline(write(tmp_path / "out", HOSTILE, models).read_text(encoding="utf-8"))
    assert [attrs for tag, attrs in outline.tags if tag == "script"] == [
        {"type": "application/json", "id": "presets"},
        {},
    ]
    assert len(set(outline.ids)) == len(outline.ids)
    for address in outline.addresses:
        assert re.fullmatch(_ADDRESSES, address)


def test_sliders_reach_every_preset():
    wide = {"wide": DavidsonModel(beta=-7.5, eta0=30.0, gamma=33.2)}
    found = decision_map(wide, 500)
    assert 'id="beta" min="-8" max="5"' in found
    assert 'id="nu" min="-4" max="14"' in found
    assert 'id="gamma" min="-10" max="34"' in found
    assert 'data-votes="40"' in found


# ---------------------------------------------------------------- in a browser


def test_the_maps_start_as_the_first_model_and_majority_vote(visit):
    assert cells(visit.page) == decisions(MODELS["reluctant"], 20)
    counts = [(b, 20 - a - b, a) for a, b in cells(visit.page, "majority")]
    shown = list(cells(visit.page, "majority").values())
    assert shown == majority_vote(counts).tolist()


def test_presets_change_the_map_and_are_exact(visit):
    visit.page.locator("#preset").select_option(label="eager")
    assert cells(visit.page) == decisions(MODELS["eager"], 20)
    assert visit.page.locator("#beta-number").input_value() == "2.123"
    assert "α = 0.5, κ = 2" in visit.page.locator("#smoothing").text_content()
    # n is no parameter of the model: the preset stays as it is.
    visit.page.locator("#n-number").fill("31")
    assert cells(visit.page) == decisions(MODELS["eager"], 31)
    assert visit.page.locator("#preset option:checked").text_content() == "eager"


def test_a_slider_moves_the_map(visit):
    name, value = "nu", "-2"
    model = DavidsonModel(beta=0.8, eta0=np.log(0.01), gamma=1.5)
    before = cells(visit.page)
    visit.page.locator(f"#{name}").fill(value)
    assert cells(visit.page) == decisions(model, 20) != before
    assert visit.page.locator("#preset option:checked").text_content() == "your own values"


def random_models(count):
    """Models over the default box and far outside, some with exactly equal risks."""
    rng = np.random.default_rng(3)
    drawn = [
        DavidsonModel(
            beta=rng.uniform(0, 5),
            eta0=rng.uniform(np.log(1e-4), np.log(1e3)),
            gamma=rng.uniform(-10, 10),
            alpha=np.exp(rng.normal()),
            kappa=np.exp(rng.normal()),
            usual_votes=(None, 8, 2.5)[k % 3],
        )
        for k in range(count)
    ]
    extremes = [
        DavidsonModel(beta=2, eta0=0, gamma=1),  # 3/2 - 2/3 = 15/18: equal risks
        DavidsonModel(beta=0, eta0=0, gamma=0),
        DavidsonModel(beta=-1.5, eta0=-1, gamma=2),
        DavidsonModel(beta=400, eta0=-700, gamma=-300),
        DavidsonModel(beta=1e308, eta0=1e308, gamma=-1e308),
        DavidsonModel(beta=1, eta0=0, gamma=1, alpha=5e-324, kappa=5e-324),
        DavidsonModel(beta=1, eta0=0, gamma=1, alpha=1e300, kappa=1e-300),
    ]
    # Small whole parameters and smoothing: odds are small fractions, and many risks equal.
    whole = [
        DavidsonModel(beta=beta, eta0=0, gamma=gamma)
        for beta in (1, 2, 4)
        for gamma in (-2, -1, 0, 1, 2)
    ]
    return drawn + extremes + whole


# Decisions as characters and numbers as the bytes of doubles: a million of them cross quickly.
COMPUTE = """([model, n]) => {
  let decided = "";
  const numbers = [];
  for (let minus = 0; minus <= n; minus++)
    for (let tie = 0; minus + tie <= n; tie++)
      for (let plus = 0; minus + tie + plus <= n; plus++) {
        const p = davidson.probabilities(model, minus, tie, plus);
        decided += davidson.decide(model, minus, tie, plus) + 1;
        numbers.push(...p, ...davidson.risks(p));
      }
  const bytes = new Uint8Array(new Float64Array(numbers).buffer);
  const parts = [];
  for (let k = 0; k < bytes.length; k += 9000)
    parts.push(btoa(String.fromCharCode(...bytes.subarray(k, k + 9000))));
  return [decided, parts.join("")];
}"""


def test_the_script_decides_as_the_package_does(visit):
    n = 30
    counts = np.array([c for c in np.ndindex(n + 1, n + 1, n + 1) if sum(c) <= n])
    n_ties = 0
    for model in random_models(200):
        numbers = model.as_dict()
        decided, text = visit.page.evaluate(COMPUTE, [numbers, n])
        wanted = model.decide(counts)
        assert decided == "".join(map(str, (wanted + 1).tolist())), model
        found = np.frombuffer(base64.b64decode(text)).reshape(-1, 2, 3)
        np.testing.assert_allclose(found[:, 0], model.predict_proba(counts), 1e-12, 1e-300)
        np.testing.assert_allclose(found[:, 1], model.risks(counts), 1e-12, 1e-300)
        minus, tie, plus = model.risks(counts).T
        n_ties += np.sum(np.isclose(tie, np.minimum(minus, plus), 1e-14, 0) & (minus != plus))
    assert n_ties > 100  # risks that are equal but for rounding were among them


def test_hostile_names_are_text(browser, tmp_path):
    models = dict.fromkeys(HOSTILE, MODELS["eager"])
    with Visit(browser, write(tmp_path / "out", HOSTILE, models)) as visit:
        shown = re.sub(r"\s+", " ", visit.page.locator("main").text_content())
        for name in HOSTILE[:6]:
            assert name in shown
        options = visit.page.locator("#preset option").all_text_contents()
        assert options[:6] == HOSTILE[:6]
        assert len(options) == len(HOSTILE) + 1
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
    with ReportFolder(folder, long, settings={long: long}) as report:
        report.section("one", long, long)
        report.remark(long)
        report.add(Table(title=long, note=long, rows=wide), Figure(title=long, note=long))
        report.skipped(long, long)
        report.show_models({long: MODELS["eager"]})
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
