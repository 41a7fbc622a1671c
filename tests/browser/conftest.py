"""A real browser: Debian's `chromium`, driven by Playwright."""

import shutil

import pytest

from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def browser():
    """Ends with the module, because its event loop keeps other code from running one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="`make test-browser` installs it")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no `chromium` here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def page(browser):
    """A page that may ask for nothing but files and this machine, and whose console stays empty."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    said = []
    asked = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert said == []
    assert not [url for url in asked if not url.startswith(("file://", "http://127.0.0.1:"))]
