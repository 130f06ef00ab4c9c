"""The page of `btdagg label` in headless Chromium: by keyboard, hostile texts, states, audit."""

import itertools
import os
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from browser import launched
from labelling import CRITERIA, HOSTILE, LabelProcess, pairs_file, responses_file

WIDTHS = {"wide": (1400, 900), "narrow": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture
def serve(tmp_path):
    """Start `btdagg label` on the pairs of the folder; what is left is killed."""
    started = []

    def serve(*options, **more):
        started.append(LabelProcess(tmp_path, *options, **more))
        return started[-1]

    yield serve
    for each in started:
        each.kill()


def wait(page, condition, argument=None):
    """Wait for an expression, or a function of an argument; the policy forbids the driver's way."""
    end = time.monotonic() + 30
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(10)


def press(page, key):
    """Press a key, and wait for what the page then says."""
    before = page.evaluate("document.getElementById('status').textContent")
    page.keyboard.press(key)
    wait(page, "before => document.getElementById('status').textContent !== before", before)


class Rater:
    """Somebody with a browser of their own, who uses the keyboard alone."""

    def __init__(self, browser, server, name, *, size="wide", scheme="light"):
        width, height = WIDTHS[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.accept()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.name = name
        self.enter(server)

    def enter(self, server):
        """Open the address that was printed, and give the name if it is asked for."""
        self.page.goto(server.address)
        self.page.wait_for_url(f"http://127.0.0.1:{server.port}/")
        self.page.wait_for_selector("#start:not([hidden]), #work:not([hidden])")
        if self.page.is_visible("#rater"):
            self.page.keyboard.type(self.name)
            self.page.keyboard.press("Enter")
        self.settle()

    def settle(self):
        self.page.wait_for_selector("#work:not([hidden]), #done:not([hidden])")
        wait(self.page, "!document.body.hasAttribute('aria-busy')")

    def place(self):
        return self.page.inner_text("#place")

    def press(self, key):
        """Press a key, and wait for what it leads to."""
        press(self.page, key)
        self.settle()

    def is_done(self):
        return self.page.is_visible("#done")

    def chosen(self, key):
        """Item and label that a key stands for, by what is on the page."""
        number = int(self.page.inner_text("#prompt").split()[2])
        first = "A" if "says A of" in self.page.inner_text("#first") else "B"
        other = {"A": "B", "B": "A"}[first]
        label = {"1": first, "2": other, "t": "tie", "s": None}[key]
        return f"gpt-9-{number:03}", {"A": 1, "tie": 0, "B": -1, None: None}[label]


def test_forty_pairs_by_keyboard_with_a_reload_a_killed_server_and_a_second_rater(
    browser, serve, tmp_path
):
    pairs_file(tmp_path, 40)
    server = serve()
    ada = Rater(browser, server, "Ada Lovelace")
    ben, kept = None, {}
    for count, key in zip(itertools.count(), itertools.cycle("12ts1")):
        if ada.is_done():
            break
        assert ada.place() == f"Pair {count + 1} of 40"
        item, label = ada.chosen(key)
        assert (item, "Ada Lovelace") not in kept
        kept[item, "Ada Lovelace"] = label
        if count == 9:
            sides = ada.page.inner_text("#first")
            ada.page.reload()
            ada.settle()
            assert ada.page.inner_text("#first") == sides
        if count == 15:  # the choice is made while nobody answers
            server.kill()
            ada.page.keyboard.press(key)
            ada.page.wait_for_selector("#trouble:not([hidden])")
            assert "Not kept yet. The server does not answer." in ada.page.inner_text("#why")
            server = serve("--port", server.port)
            ada.press("Enter")  # the button to try again has the focus
            assert ada.page.is_hidden("#trouble")
            continue
        ada.press(key)
        if count in (20, 21, 22):
            ben = ben or Rater(browser, server, "Ben")
            item, label = ben.chosen("2")
            kept[item, "Ben"] = label
            ben.press("2")
    assert len(kept) == 43
    ada.press("z")  # back to the last, which is changed, not doubled
    assert "you chose" in ada.place()
    item, label = ada.chosen("t")
    kept[item, "Ada Lovelace"] = label
    ada.press("t")
    assert ada.is_done()
    refused = [text for text in ada.said if "ERR_CONNECTION_REFUSED" not in text]
    assert refused == ben.said == []
    assert server.stop()[0] == 0
    rows = [(row["item"], row["rater"], row["label"]) for row in server.rows()]
    assert len(rows) == 43
    assert {(item, rater): label for item, rater, label in rows} == kept
    assert all(0 < row["seconds"] < 60 or row["label"] is None for row in server.rows()
               if row["seconds"])  # fmt: skip
    ada.context.close()
    ben.context.close()


@pytest.mark.parametrize("size", WIDTHS)
def test_three_criteria_of_five_grades_by_keyboard(browser, serve, tmp_path, size):
    responses_file(tmp_path, 6)
    server = serve("--set", "labels.scale=1-5")
    ada, kept = Rater(browser, server, "Ada", size=size), {}

    def item():
        return f"gpt-9-{int(ada.page.inner_text('#prompt').split()[2]):03}"

    def row():
        return ada.page.inner_text(".criterion[aria-current=true] span")

    def keep(*grades):
        kept.update(zip([(item(), name) for name in CRITERIA], grades, strict=True))

    for count in range(6):
        assert ada.place() == f"Response {count + 1} of 6"
        assert (row(), ada.page.inner_text("#rubric")) == ("correct", "5: all is right")
        assert ada.page.is_hidden("#second")
        if count == 1:  # what is chosen of an item is kept when the rater leaves it
            ada.press("2")
            assert row() == "clear"
            ada.press("z")
            assert ada.place() == "Response 1 of 6 · you chose 4, 5, to skip it"
            ada.press("ArrowDown")
            ada.press("1")  # the second criterion alone
            kept[item(), "clear"] = 1
            ada.press("x")
            assert ada.place() == "Response 2 of 6"
            assert row() == "clear"
            ada.page.reload()
            ada.settle()
            keep(2, 3, 5)
            assert ada.page.get_attribute("[aria-pressed=true]", "data-choice") == "2"
        if count == 2:  # by arrows
            keep(1, 5, 3)
            for keys in (["ArrowRight", "Enter"], ["ArrowLeft"] * 2 + ["Enter"], ["3"]):
                for key in keys[:-1]:
                    ada.page.keyboard.press(key)
                ada.press(keys[-1])
            continue
        if count != 1:
            keep(4, 5, None)
        for key in "45s" if count != 1 else "35":
            ada.press(key)
    assert ada.is_done()
    assert ada.said == []
    assert server.stop()[0] == 0
    rows = {(row["item"], row["criterion"]): row["label"] for row in server.rows()}
    assert rows == kept
    ada.context.close()


@pytest.mark.parametrize(
    ("grades", "keys", "label"),
    [
        ("pass/fail", ["p"], 1),
        ("pass/fail", ["0"], 0),
        ("1-10", ["0"], 10),
        ("0-100", ["7", "7", "Enter"], 77),
        ("0,0.5,1", ["ArrowRight", "ArrowRight", "Enter"], 0.5),
    ],
)
def test_grades_of_other_scales_have_keys(browser, serve, tmp_path, grades, keys, label):
    responses_file(tmp_path, 1, criteria={"": ""})
    server = serve("--set", f"labels.scale={grades}")
    ada = Rater(browser, server, "Ada")
    for key in keys[:-1]:
        ada.page.keyboard.press(key)
    ada.press(keys[-1])
    assert ada.is_done()
    server.stop()
    assert [row["label"] for row in server.rows()] == [label]
    ada.context.close()


def test_who_leaves_while_a_choice_is_on_its_way_gives_nobody_else_their_sides(
    browser, serve, tmp_path
):
    pairs_file(tmp_path, 12)
    server = serve()
    held = []
    ada = Rater(browser, server, "Ada")
    ada.page.route("**/label", lambda route: held.append(route))
    ada.page.keyboard.press("1")
    wait(ada.page, "document.body.hasAttribute('aria-busy')")
    ada.page.click("#leave")
    ada.page.unroute("**/label")
    ada.page.keyboard.type("Ben")
    ada.page.keyboard.press("Enter")
    ada.settle()
    ada.page.wait_for_timeout(300)  # whatever still comes
    kept = {}
    while not ada.is_done():
        assert ada.page.inner_text("#name") == "Ben"
        item, label = ada.chosen("1")
        kept[item, "Ben"] = label
        ada.press("1")
    server.stop()
    rows = {(row["item"], row["rater"]): row["label"] for row in server.rows()}
    assert {key: label for key, label in rows.items() if key[1] == "Ben"} == kept
    assert len(held) == 1


def test_texts_cannot_run_load_or_leave(browser, serve, tmp_path):
    pairs_file(tmp_path, len(HOSTILE), texts=HOSTILE)
    server = serve()
    rater = Rater(browser, server, "Ada")
    for _ in HOSTILE:
        for key in ("d", "d", "m", "m"):
            rater.page.keyboard.press(key)
            rater.settle()
        assert rater.page.evaluate("window.ran") is None
        inside = rater.page.evaluate(
            "[...document.querySelectorAll('.text *')].filter(one => one.attributes.length > "
            "(one.tagName === 'OL')).length"
        )
        assert inside == 0
        assert (
            rater.page.locator(".text :is(a, img, script, style, iframe, svg, form)").count() == 0
        )
        assert rater.page.locator("#choices button").count() == 4
        rater.press("1")
    assert rater.is_done()
    assert rater.said == []
    assert all(
        url.startswith((f"http://127.0.0.1:{server.port}/", "data:,")) for url in rater.asked
    )
    rater.context.close()


@contextmanager
def states(browser, serve, size, scheme, grades):
    """A rater, and the names of states with what leads there."""
    server = serve("--items", 3, *grades)
    with closing(Rater(browser, server, "Ada", size=size, scheme=scheme).context) as context:
        (page,) = context.pages

        def others():
            for choice in ("first", "second", "tie") if not grades else "123":
                choices = [choice] * (3 if grades else 1)
                server.label("Ben", server.item("Ben"), *choices)
            page.keyboard.press("d")
            for key in "21s" if not grades else "21s43512s":
                press(page, key)
            page.wait_for_selector("#done:not([hidden])")

        def again():
            server.kill()
            page.click("#review")
            page.wait_for_selector("#trouble:not([hidden])")

        def differ():
            page.keyboard.press("d")
            page.wait_for_selector("#first mark")

        yield page, {
            "item": lambda: None,
            **({} if grades else {"differences": differ}),
            "done": others,
            "trouble": again,
        }  # fmt: skip


@pytest.mark.parametrize("grades", [(), ("--set", "labels.scale=1-5")])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS)
def test_no_state_has_a_finding_of_the_audit(browser, serve, tmp_path, size, scheme, grades):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    text = (
        "# Title\n\nSome **bold** `code`.\n\n```\nx = 1\n```\n\n> quoted\n\n|a|b|\n|-|-|\n|1|2|\n\n"
    )
    write = responses_file if grades else pairs_file
    write(tmp_path, 5, texts=[text + "More of it. " * 300], reference="A reference.")
    pictures = os.environ.get("BTDAGG_PICTURES")  # a folder, to look at the states
    with states(browser, serve, size, scheme, grades) as (page, leading):
        for name, lead in leading.items():
            lead()
            if pictures:
                page.screenshot(
                    path=Path(pictures) / f"label-{size}-{scheme}-{len(grades)}-{name}.png"
                )
            found = Axe().run(page).response
            assert len(found["passes"]) > 10
            assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == [], name
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= WIDTHS[size][0], name  # nothing sticks out


def test_keys_are_text_in_a_note(browser, serve, tmp_path):
    pairs_file(tmp_path, 3)
    server = serve()
    rater = Rater(browser, server, "Ada")
    rater.page.keyboard.press("n")
    rater.page.keyboard.type("t1 2s")
    rater.page.keyboard.press("Escape")
    assert rater.place() == "Pair 1 of 3"
    rater.press("1")
    rater.press("z")
    assert rater.page.input_value("#note") == "t1 2s"
    assert rater.page.get_attribute("[aria-pressed=true]", "data-choice") == "first"
    rater.context.close()
