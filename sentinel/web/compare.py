"""The page that lays the curves of several runs over each other, and their settings side by side."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request

from sentinel.common.text import clean_text
from sentinel.web.views import WebPage

_MAX_RUNS_COMPARED = 8  # as many colours as a person tells apart
_MAX_SETTING_CHARACTERS = 120  # of a value beside those of other runs
_ABSENT = "not set"


def requested_keys(request: Request) -> Sequence[str]:
    """Return the keys of the runs that a request names, each once."""
    return [*dict.fromkeys(request.query_params.get("runs", "").split(","))][:_MAX_RUNS_COMPARED]


def compare_page(pages: Mapping[str, WebPage]) -> WebPage:
    """Return the page about these runs, given the page of each by its key."""
    runs = {key: page for key, page in pages.items() if page.report}
    version = sum(page.version for page in pages.values())
    settings = [
        {name: clean_text(value, _MAX_SETTING_CHARACTERS) for name, value, _ in page.report.settings}
        for page in runs.values()
        if page.report
    ]
    setting_names = sorted({name for run in settings for name in run})
    setting_rows = [(name, [run.get(name, _ABSENT) for run in settings]) for name in setting_names]
    return WebPage.from_template(
        version,
        "compare.html",
        verdict=f"{len(runs)} runs compared",
        trouble="",
        live=f"/compare/events?{urlencode({'runs': ','.join(runs), 'since': version})}",
        runs=runs,
        different=[row for row in setting_rows if len({*row[1]}) > 1],
        same=[(name, values[0]) for name, values in setting_rows if len({*values}) == 1],
    )
