"""What sentinel says of the reports, beside what it ought to say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from sentinel.api import replay
from sentinel.common.errors import SentinelError
from sentinel.incidents.json_body import IncidentBody
from studies.reports.report import Report

_PAGES = ("warning", "critical")


@dataclass(frozen=True)
class Verdict:
    """Whether the log was read, its trouble found, and the cause right that stands first.

    ``cause`` is None where none is expected. ``extra`` are the detectors whose pages nobody expects.
    """

    read: bool
    found: bool
    cause: bool | None
    extra: Sequence[str]
    says: str

    @property
    def right(self) -> bool:
        """Whether a person gets what the report asks for, and nothing else."""
        return self.read and self.found and self.cause is not False and not self.extra


def judged(report: Report, folder: Path) -> Verdict:
    """Write the log of a report below a folder and judge it."""
    place = folder / report.name
    place.mkdir(parents=True)
    report.write(place, np.random.default_rng(crc32(report.name.encode())))
    try:
        runs = replay(place).to_dict()["runs"]
    except SentinelError:
        return Verdict(False, report.healthy, None, (), "")
    incidents = [one for run in runs for one in run["incidents"] if not one["inhibited_by"]]
    pages = [one for one in incidents if _pages(one)]
    hits = [
        one for one in (incidents if report.note_is_enough else pages) if one["detector"] in report.expect
    ]
    firsts = [one["causes"][0]["id"] for one in hits if one["causes"]]
    return Verdict(
        read=bool(runs),
        found=report.healthy or bool(hits),
        cause=any(first in report.first for first in firsts) if report.first else None,
        extra=sorted({one["detector"] for one in pages} if report.healthy else ()),
        says="; ".join(_said(one) for one in (hits or pages or incidents)[:2]),
    )


def _pages(incident: IncidentBody) -> bool:
    return incident["severity"] in _PAGES and incident["maturity"] == "stable"


def _said(incident: IncidentBody) -> str:
    first = f" ({incident['causes'][0]['id']})" if incident["causes"] else ""
    return f"{incident['detector']}{first}: {incident['summary']}"


def shares(verdicts: Mapping[str, Verdict], reports: Sequence[Report]) -> Mapping[str, tuple[int, int]]:
    """Return how many reports were right of how many, by what is asked of them."""
    troubles = [verdicts[one.name] for one in reports if not one.healthy]
    named = [one for one in troubles if one.cause is not None]
    healthy = [verdicts[one.name] for one in reports if one.healthy]
    return {
        "found": (sum(one.found for one in troubles), len(troubles)),
        "first cause right": (sum(bool(one.cause) and one.found for one in named), len(named)),
        "healthy and paged": (sum(bool(one.extra) for one in healthy), len(healthy)),
    }
