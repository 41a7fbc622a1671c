"""All that is known of one incident, as lines for a person: what messages leave out."""

import math
from collections.abc import Iterator, Sequence

from sentinel.common.text import clean_text, sentence
from sentinel.report.evidence import evidence_rows
from sentinel.report.sparkline import sparkline
from sentinel.series.excerpt import Excerpt
from sentinel.sinks.message import LikelyCause, message
from sentinel.sinks.notification import Notification

_INDENT = 2


def lines(notification: Notification) -> Iterator[tuple[int, str]]:
    """Yield the lines with their indents: facts, causes, evidence, curves, other incidents and commands."""
    content = message(notification)
    yield 0, content.headline
    yield from _evidence_table(
        [("severity", content.title), ("id", notification.incident.id), *content.facts]
    )
    for cause_number, cause in enumerate(content.causes):
        yield from _cause("Or" if cause_number else "Likely", cause)
    if not content.causes:
        yield from ((0, f"Do: {line.text}") for line in content.lines if line.label == "Do")
    yield from _part("Evidence", [*_evidence_table(evidence_rows(notification.incident))])
    yield from _part("Curves", [(_INDENT, line) for line in map(_curve, notification.excerpts) if line])
    yield from _part(
        "Also open in this run", [(_INDENT, sentence(other)) for other in notification.also_open]
    )
    yield 0, ""
    yield from (
        (0, line)
        for line in (content.link, *(f"{command.label}: {command.text}" for command in content.commands[1:]))
        if line
    )


def _cause(word: str, cause: LikelyCause) -> Iterator[tuple[int, str]]:
    yield 0, ""
    yield 0, f"{word}: {cause.name}"
    for label, advice_text in ("Why", cause.reason), ("Do", cause.fix), ("Check", cause.check):
        if advice_text:
            yield _INDENT, f"{label}: {advice_text}"


def _part(title: str, table_rows: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    if table_rows:
        yield from ((0, ""), (0, title), *table_rows)


def _evidence_table(table_rows: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    width = max((len(label) for label, _ in table_rows), default=0)
    return ((_INDENT, f"{label:{width}}  {value}") for label, value in table_rows)


def _curve(excerpt: Excerpt) -> str:
    means = [value for value in excerpt.mean if value is not None]
    if not means:
        return ""
    curve_line = sparkline([math.nan if value is None else value for value in excerpt.mean])
    return (
        f"{curve_line}  {clean_text(excerpt.tag or excerpt.label, 60)}, {min(means):.4g} to {max(means):.4g}"
    )
