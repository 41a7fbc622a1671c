"""What the failures of an archive cost, as Markdown and as one HTML file without a script.

The file has the costliest failures in full lines and names where the rest lies, so it stays small however
many runs there are.
"""

from collections.abc import Iterator
from itertools import islice

from sentinel.common.text import counted
from sentinel.report.cost import CostOfFailures, Failure
from sentinel.report.html import asset, environment, policy
from sentinel.report.markdown import compared_lines, plain

_PAGE_ROWS = 100
_STYLE_FILE = "page.css"


def html(cost: CostOfFailures) -> str:
    """Return the page. It links to what lies on this machine; what lies elsewhere is named."""
    style = asset(_STYLE_FILE)
    return (
        environment()
        .get_template("cost.html")
        .render(
            cost=cost,
            verdict=cost.verdict,
            pages=[*_pages(cost)],
            style=style,
            policy=policy((), (style,)),
            counted=counted,
        )
    )


def markdown(cost: CostOfFailures) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    return "\n".join(_cost_lines(cost))


def _cost_lines(cost: CostOfFailures) -> Iterator[str]:
    yield f"**{plain(cost.verdict)}**"
    if cost.unread:
        yield f"\ncould not be read: {cost.unread}"
    for title, cost_groups in cost.tables:
        yield f"\n| {title} | Runs | Cost |\n| --- | --- | --- |"
        for cost_group in cost_groups:
            yield f"| {plain(cost_group.name)} | {cost_group.failures} | {cost_group.spent} |"
    if cost.worst:
        yield "\n| Run | What is wrong | Cost |\n| --- | --- | --- |"
    for failed in cost.worst:
        what = f"{failed.detector}: {plain(failed.headline)}"
        yield f"| {plain(failed.name)} | {what} | {failed.spent} |"
    yield from compared_lines(cost.comparisons)


def _pages(cost: CostOfFailures) -> Iterator[tuple[int, list[Failure]]]:
    """Yield the failures in pages, each with the number of its first one."""
    remaining = iter(cost.failures)
    first_page = 1
    while page := [*islice(remaining, _PAGE_ROWS)]:
        yield first_page, page
        first_page += len(page)
