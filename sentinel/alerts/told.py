"""What was told before, as the next decisions need it."""

import json
from collections.abc import Iterable

from sentinel.alerts.database import Database
from sentinel.alerts.decision import Sent
from sentinel.alerts.duplicates import SAME_STEPS
from sentinel.alerts.incident import Event, Incident
from sentinel.alerts.tables import Decoder, as_json, incident
from sentinel.detectors.api import Severity

_SENT_BEFORE = """
    SELECT incident, sink, event, at, severity, findings, number,
        EXISTS (SELECT 1 FROM outbox WHERE outbox.sink = sent.sink AND outbox.incident = sent.incident
            AND state = 'pending'),
        EXISTS (SELECT 1 FROM outbox WHERE outbox.sink = sent.sink AND outbox.incident = sent.incident
            AND state = 'pending' AND attempts = 0 AND created_at = sent.at
            AND (held OR sink IN (SELECT sink FROM receivers)))
    FROM sent WHERE incident IN (SELECT value FROM json_each(?))
"""

_ALIKE = """
    SELECT incident FROM incidents WHERE id IN (
        SELECT incidents.id FROM (
            SELECT json_array(json_extract(value, '$.detector'), coalesce(
                nullif(json_extract(value, '$.signal'), ''), json_extract(value, '$.tag'))) AS kind,
                json_extract(value, '$.onset_step') AS onset, json_extract(value, '$.fired_step') AS fired
            FROM json_each(?1)
        ) AS wanted CROSS JOIN incidents ON finding = kind
        WHERE CASE WHEN json_valid(incident) THEN
            abs(onset - (incident ->> '$.onset_step')) <= ?2 * max(onset, incident ->> '$.onset_step')
            OR abs(fired - (incident ->> '$.fired_step')) <= ?2 * max(fired, incident ->> '$.fired_step') END
    ) OR silence IN (
        SELECT json_extract(value, '$.evidence.place', '$.evidence.since')
        FROM json_each(?1) WHERE json_extract(value, '$.evidence.runs_silent')
    )
"""
"""In the words of `schema.sql`; see `sentinel.alerts.duplicates`."""

_MAY_RETURN = """
    SELECT incident FROM incidents WHERE NOT open AND id IN (
        SELECT incident FROM sent AS told WHERE event = 'flapping' AND NOT EXISTS (
            SELECT 1 FROM sent AS over WHERE over.incident = told.incident AND over.sink = told.sink
                AND over.event = 'resolved' AND over.number > told.number))
"""


class Told:
    """What is known in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database, decoded: Decoder) -> None:
        self._database = database
        self._decoded = decoded

    def sent_before(self, incidents: Iterable[str]) -> dict[tuple[str, str], dict[Event, Sent]]:
        """What the sinks were sent of some incidents, by incident id and sink name."""
        last_sent: dict[tuple[str, str], dict[Event, Sent]] = {}
        for of, sink, event, at, severity, findings, number, *states in self._database.rows(
            _SENT_BEFORE, json.dumps(list(incidents))
        ):
            kind, worst = self._decoded(Event, event), self._decoded(Severity, severity)
            if kind is not None and worst is not None:
                last = Sent(at, worst, findings, number, *map(bool, states))
                last_sent.setdefault((of, sink), {})[kind] = last
        return last_sent

    def alike(self, incidents: Iterable[Incident]) -> list[Incident]:
        """The recorded incidents that may tell the same as one of these, which include these themselves."""
        wanted = f"[{','.join(map(as_json, incidents))}]"
        decoded = (
            self._decoded(incident, whole) for (whole,) in self._database.rows(_ALIKE, wanted, SAME_STEPS)
        )
        return [incident for incident in decoded if incident is not None]

    def may_return(self) -> list[Incident]:
        """Incidents that are over, although a sink was told last that they keep coming back."""
        decoded = (self._decoded(incident, whole) for (whole,) in self._database.rows(_MAY_RETURN))
        return [incident for incident in decoded if incident is not None]
