"""A headless Chromium for tests of the page."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    """Its path; where there is none the test is skipped, but fails in CI, which installs one."""
    given = os.environ.get("BTDAGG_CHROMIUM")
    found = given or next(filter(None, map(shutil.which, _NAMES)), None)
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("no Chromium here, and CI wants the page tested: apt-get install chromium")
    pytest.skip("no Chromium here: install one, or name it in BTDAGG_CHROMIUM")


@contextmanager
def launched():
    """A browser that is closed at the end."""
    path = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("no driver for Chromium here: pip install playwright")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened without a network, and what it said, asked for and threw."""

    def __init__(self, browser, file, *, width=1400, scheme="light", offline=True):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=offline
        )
        self.page = self.context.new_page()
        self.requests, self.refused, self.said = [], [], []
        self.page.on("request", self._request)
        self.page.on("requestfailed", self._failed)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.address = Path(file).absolute().as_uri()
        self.page.goto(self.address)

    def _request(self, request):
        if not request.url.startswith("data:image/svg+xml;base64,"):  # a figure of the page
            self.requests.append(request.url)

    def _failed(self, request):
        if request.failure == "csp":  # refused by the page's own policy
            self.refused.append(request.url)

    def _dialog(self, dialog):
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def assert_quiet(self):
        """Nothing was asked for but the page itself, nothing said, nothing thrown."""
        assert self.requests == [self.address]
        assert self.said == []
