"""The table of what shows each catalogue entry; `make docs` writes it, a test checks it."""

from sentinel import catalogue
from sentinel.detectors.discovery import all_detectors
from studies import MEASUREMENTS
from tests.tools.docs import table

COVERAGE = MEASUREMENTS / "coverage.md"

_HEAD = """\
# What shows each entry of the catalogue

`make docs` writes this file from the detectors and the pages of the catalogue.

- **Detectors** cite the entry among the causes of what they find.
- **Lines** are the number of console lines that point to it, **settings** the number of checks of a run's
  settings. `sentinel explain ID` lists both.
- **To log** is what a trainer can log to make it visible.
- The last column says how else it shows, or why no log can show it.
"""


def written() -> str:
    """The whole file."""
    citing: dict[str, list[str]] = {}
    for name, detector in all_detectors().items():
        for entry in detector.catalogue:
            citing.setdefault(entry, []).append(f"`{name}`")
    rows = [
        [
            entry.id,
            entry.title,
            ", ".join(citing.get(entry.id, ())),
            str(len(entry.signatures) or ""),
            str(len(entry.checks) or ""),
            ", ".join(f"`{name}`" for name in entry.probes),
            entry.visibility,
        ]
        for entry in catalogue.load().values()
    ]
    head = ["Entry", "Title", "Detectors", "Lines", "Settings", "To log", "Otherwise"]
    return f"{_HEAD}\n{_summary(rows)}\n\n{table(head, rows)}\n"


def _summary(rows: list[list[str]]) -> str:
    """How many entries something shows."""
    counts = {name: sum(bool(row[i]) for row in rows) for i, name in _COUNTED.items()}
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    only = sum(bool(row[6]) and not any(row[2:6]) for row in rows)
    return f"Of {len(rows)} entries, {told}. {only} have none of these; the last column says why."


_COUNTED = {
    2: "are cited by a detector",
    3: "have console lines",
    4: "have checks of settings",
    5: "name what to log",
}
