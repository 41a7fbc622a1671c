"""An archive of judged runs as the JSON of one replay."""

from collections.abc import Iterator

import orjson

from sentinel.archives.reducing import Archive, SettledRun
from sentinel.incidents.json_body import incident_body
from sentinel.report.json import ReplayBody, ReplayedRunBody, comparison_body, notification_bodies, run_body

_JSON_INDENT = "\n    "  # of a run


def pieces(archive: Archive) -> Iterator[str]:
    """Yield the archive as `sentinel replay --format json` gives the same runs, in pieces of a run each."""
    judged_rows = archive.contents.rows.filter("judged")
    failed = archive.failed
    problems = [*archive.read_issues, *(f"{run.path}: {run.failure}" for run in failed)]
    unread = int(judged_rows["unread"].sum())
    body: ReplayBody = {
        "schema": 1,
        "coverage": {
            "read": judged_rows.height - unread,
            "cut": int(judged_rows["cut"].sum()),
            "unread": unread + len(problems),
        },
        "runs": [],
        "read_issues": problems,
        "comparisons": [comparison_body(comparison) for comparison in archive.comparisons],
    }
    json_before, runs, json_after = _json_text(body).partition('"runs": [')
    yield json_before + runs
    separator = ""
    for run in archive.runs():
        yield separator + _JSON_INDENT + _json_text(_body(run)).replace("\n", _JSON_INDENT)
        separator = ","
    yield ("\n  " if separator else "") + json_after


def _json_text(body: ReplayBody | ReplayedRunBody) -> str:
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


def _body(run: SettledRun) -> ReplayedRunBody:
    archived = run.record
    overview = run.overview
    return {
        **run_body(overview, run.status, run.training, overview.stopped, archived.lacking, archived.skipped),
        "read_issues": list(archived.read_issues),
        "checks": [
            {"catalogue": list(check.catalogue), "reason": check.reason, "settings": dict(check.settings)}
            for check in archived.advisories
        ],
        "incidents": [
            {
                **incident_body(incident),
                "notifications": notification_bodies(run.notifications.get(incident.id, ())),
            }
            for incident in archived.incidents
        ],
    }
