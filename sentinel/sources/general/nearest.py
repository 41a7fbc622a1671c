"""What came nearest to a metric in a text that is not read, and what was missing."""

from collections.abc import Iterable

from sentinel.common.secrets import masked_text
from sentinel.sources.readers.templates import Template, mask, template
from sentinel.sources.recurring.record import MIN_LINES

MAX_SHOWN = 160
"""Characters of the line that are shown."""

MAX_TEMPLATES = 10_000
"""Kinds of lines that are counted."""

_TIMES = {1: "once", 2: "twice"}


def nearest(lines: Iterable[str]) -> str:
    """Return the line that came nearest to a metric, and what it lacks; empty if no line has a number."""
    last_lines: dict[Template, str] = {}
    times: dict[Template, int] = {}
    for line in lines:
        masked, numbers = mask(line)
        if not numbers:
            continue
        plan = template(masked)
        if plan in last_lines or len(last_lines) < MAX_TEMPLATES:
            last_lines[plan] = line
            times[plan] = times.get(plan, 0) + 1
    if not last_lines:
        return "no line holds a number"
    best = max(
        last_lines, key=lambda plan: (plan.sure, plan.weak, min(times[plan], MIN_LINES), len(plan.counters))
    )
    often = _TIMES.get(times[best], f"{times[best]} times")
    text = masked_text(last_lines[best].strip())
    shown_line = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return f"nearest came “{shown_line}” ({often}): {_lack(best, times[best])}"


def _lack(plan: Template, times: int) -> str:
    """Return what a kind of line lacks that came so many times."""
    if not (plan.sure or plan.weak):
        return "no word in it names a metric"
    if times < MIN_LINES:
        return "it does not come again"
    if not plan.counters:
        return "nothing in it or above it counts, or its numbers do not change"
    return "its numbers do not change"
