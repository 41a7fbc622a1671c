"""The page of what an archive cost in a real browser: `make test-browser`."""

import pytest

from sentinel.report import cost_page
from tests.browser.looks import serious_findings
from tests.report.test_cost_page import cost, failure

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The page with as many failures as it ever has."""
    file = tmp_path_factory.mktemp("cost") / "cost.html"
    file.write_text(cost_page.html(cost([failure(number) for number in range(5000)], 995_000)), "utf-8")
    return f"file://{file}"


def test_failures_stand_in_pages_that_unfold(page, large):
    page.goto(large)
    pages = page.locator("details")
    assert pages.count() == 50
    assert page.locator("tr:visible").count() < 100  # the tables and the fifty worst
    pages.nth(49).locator("summary").click()
    last = pages.nth(49).locator("tbody tr")
    assert last.count() == 100
    assert last.last.is_visible()
    assert last.last.locator("a").get_attribute("href") == "file:///runs/run-4999"


def test_it_can_be_read_by_all(page, large):
    page.goto(large)
    page.locator("details").first.locator("summary").click()
    assert serious_findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
