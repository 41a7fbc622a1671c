"""`python -m studies.reports`: judges the logs of all reports and writes measurements/reports.md.

A report that was never judged gets its figure at first sight, which is never written again.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import studies.reports.later_logs
import studies.reports.logs  # noqa: F401  declares the reports
from studies import MEASUREMENTS
from studies.reports.judge import Verdict, judged
from studies.reports.page import rendered
from studies.reports.report import REPORTS

PAGE = MEASUREMENTS / "reports.md"
RESULTS = Path(__file__).with_name("results.json")


def read() -> dict[str, dict[str, Verdict]]:
    """What was said at first sight (``first``) and what is said ``now``, by report."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"first": {}, "now": {}}
    return {
        when: {name: Verdict(**one) for name, one in by_name.items()} for when, by_name in results.items()
    }


def write(results: Mapping[str, Mapping[str, Verdict]]) -> None:
    """Keep the results and render the page."""
    data = {when: {name: asdict(one) for name, one in by_name.items()} for when, by_name in results.items()}
    RESULTS.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    PAGE.write_text(rendered(REPORTS, results["first"], results["now"]), "utf-8")


def main() -> None:
    """Judge all reports."""
    results = read()
    with tempfile.TemporaryDirectory() as folder:
        now = {one.name: judged(one, Path(folder)) for one in REPORTS}
    write({"first": now | results["first"], "now": now})
    print(f"{sum(one.right for one in now.values())} of {len(now)} are right: {PAGE}")


if __name__ == "__main__":
    main()
