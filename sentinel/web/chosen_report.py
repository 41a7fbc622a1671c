"""The report of the runs that a person chose on the live page: one file, to keep or to send."""

from collections.abc import Mapping

from sentinel.report.html import render
from sentinel.report.model import story_of
from sentinel.web.views import WebPage


def report_of(pages: Mapping[str, WebPage], now: float) -> str:
    """Return the HTML report of the runs of some pages, as they are at a time of day, the worst first."""
    runs = sorted((page.run.story for page in pages.values() if page.run), key=lambda run: -run.worst)
    return render(story_of(runs, "Chosen on the live page, with what the watch recorded of them.", now))
