"""The page that lays the curves of several runs over each other, and their settings side by side."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request

from sentinel.web.views import WebPage

_MAX_COMPARED = 8  # as many colours as a person tells apart

_ABSENT = "not set"


def asked_keys(request: Request) -> Sequence[str]:
    """Return the keys of the runs that a request names, each once."""
    return [*dict.fromkeys(request.query_params.get("runs", "").split(","))][:_MAX_COMPARED]


def compare_page(pages: Mapping[str, WebPage]) -> WebPage:
    """Return the page about these runs, given the page of each by its key."""
    runs = {key: page.run for key, page in pages.items() if page.run}
    version = sum(page.version for page in pages.values())
    names = sorted({name for run in runs.values() for name in run.settings})
    rows = [(name, [run.settings.get(name, _ABSENT) for run in runs.values()]) for name in names]
    return WebPage.of(
        version,
        "compare.html",
        verdict=f"{len(runs)} runs compared",
        trouble="",
        live=f"/compare/events?{urlencode({'runs': ','.join(runs), 'since': version})}",
        runs=runs,
        different=[row for row in rows if len({*row[1]}) > 1],
        same=[(name, values[0]) for name, values in rows if len({*values}) == 1],
    )
