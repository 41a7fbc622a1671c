"""The page of the reports: what was right at first sight, and what is right now."""

from collections.abc import Mapping, Sequence

from studies.reports.judge import Verdict, shares
from studies.reports.report import Report

HEAD = """# Public bug reports

`python -m studies.reports` writes this page. `studies/reports/logs.py` and `later_logs.py` rebuild the log of
each report in the form in which its framework prints it: the numbers that the report names, and noise between
them. No words of a report are used. What a good tool says was written down before sentinel had judged the
log, and so was the entry that has to stand first.

- **At first sight**: what the sentinel of that day said. This column is the honest figure, and is never
  written again.
- **Now**: what it says since, after the kinds of trouble behind the misses were mended, not the cases.

A report is right if the trouble is found, its first cause is right where one is known, and nobody is paged
for a healthy training. The logs are rebuilt by the authors of sentinel, who had mended the kinds of other
reports before; so the figures flatter it. The log of ms-swift#6049 was rebuilt wrongly at first sight: the
steps that the resume repeats had the old loss.
"""


def rendered(reports: Sequence[Report], first: Mapping[str, Verdict], now: Mapping[str, Verdict]) -> str:
    """The page as Markdown."""
    return "\n".join(
        [
            HEAD,
            *_sums(reports, first, now),
            "",
            _later(reports, first),
            "",
            *_table(reports, first, now),
            "",
            *_wrong(reports, now),
            "",
        ]
    )


def _sums(reports: Sequence[Report], first: Mapping[str, Verdict], now: Mapping[str, Verdict]) -> list[str]:
    at_first = shares(first, reports)
    lines = ["| | At first sight | Now |", "| --- | --- | --- |"]
    for name, (right, of) in shares(now, reports).items():
        lines.append(f"| {name} | {at_first[name][0]} of {at_first[name][1]} | {right} of {of} |")
    return lines


def _later(reports: Sequence[Report], first: Mapping[str, Verdict]) -> str:
    """Say how the reports fared at first sight of which no kind had been mended before."""
    later = [one for one in reports if one.write.__module__.endswith("later_logs")]
    of_each = "; ".join(f"{name} {right} of {of}" for name, (right, of) in shares(first, later).items())
    right = sum(first[one.name].right for one in later)
    return (
        f"The last {len(later)} were added at once, of frameworks that none of the others is of. At first "
        f"sight {right} of these were right ({of_each})."
    )


def _table(reports: Sequence[Report], first: Mapping[str, Verdict], now: Mapping[str, Verdict]) -> list[str]:
    lines = [
        "## Every report",
        "",
        "| Report | Framework | What a good tool says | At first sight | Now |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in reports:
        number = one.source.partition("#")
        link = f"[{one.source}](https://github.com/{number[0]}/issues/{number[2]})"
        lines.append(
            f"| {link} | {one.framework} | {one.says} | {_mark(first[one.name])} | {_mark(now[one.name])} |"
        )
    return lines


def _wrong(reports: Sequence[Report], now: Mapping[str, Verdict]) -> list[str]:
    wrong = [one for one in reports if not now[one.name].right]
    if not wrong:
        return ["Nothing is wrong any more."]
    return ["## Still wrong", "", *(f"- {one.source}: {_why(now[one.name])}" for one in wrong)]


def _mark(verdict: Verdict) -> str:
    return "right" if verdict.right else _why(verdict)


def _why(verdict: Verdict) -> str:
    if not verdict.read:
        return "the log is not read"
    if verdict.extra:
        return f"paged by `{'`, `'.join(verdict.extra)}`"
    if not verdict.found:
        return f"not found; it says `{verdict.says.partition(' ')[0]}`" if verdict.says else "not found"
    return f"found, but another cause stands first: {verdict.says.partition(':')[0]}"
