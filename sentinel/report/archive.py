"""An archive of judged runs as the JSON of one replay."""

from sentinel.alerts.wire import incident_body
from sentinel.archives.reducing import Archive, Settled
from sentinel.report.json import ReplayBody, ReplayedRunBody, comparison_body, run_body, told_bodies


def document(archive: Archive) -> ReplayBody:
    """The archive as `sentinel replay --format json` gives the same runs."""
    bodies = [_body(run) for run in archive.runs]
    read = [run for run in archive.runs if not run.record.unread]
    problems = [*archive.complaints, *(f"{failed.path}: {failed.failure}" for failed in archive.failed)]
    return {
        "schema": 1,
        "coverage": {
            "read": len(read),
            "cut": sum(body["stopped"] is not None for body in bodies if body["points"]),
            "unread": len(archive.runs) - len(read) + len(problems),
        },
        "runs": bodies,
        "complaints": problems,
        "comparisons": [comparison_body(comparison) for comparison in archive.comparisons],
    }


def _body(run: Settled) -> ReplayedRunBody:
    record, seen = run.record, run.seen
    return {
        **run_body(seen, run.standing, seen.stopped, record.lacking, record.held_back),
        "complaints": list(record.complaints),
        "checks": [
            {"catalogue": list(check.catalogue), "because": check.because, "settings": dict(check.settings)}
            for check in record.checks
        ],
        "incidents": [
            {**incident_body(incident), "told": told_bodies(run.told.get(incident.id, ()))}
            for incident in record.incidents
        ],
    }
