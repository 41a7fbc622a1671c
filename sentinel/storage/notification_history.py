"""What was told before, as the next decisions need it."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import SAME_STEPS, JoinKeys, as_crash, kind_of, outage_key
from sentinel.incidents.incident import Event, Incident
from sentinel.notifications.decide import Sent
from sentinel.storage.database import Database, utf8
from sentinel.storage.tables import Decoder, incident

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
    WITH wanted AS (
        SELECT value AS it, json_array(value ->> '$.kind[0]', value ->> '$.kind[1]') AS kind,
            value ->> '$.onset' AS onset, value ->> '$.fired' AS fired,
            json_extract(value, '$.silence[0]', '$.silence[1]') AS common FROM json_each(?1)
    )
    SELECT incident FROM incidents WHERE id IN (
        SELECT incidents.id FROM wanted
            CROSS JOIN json_each(it, '$.joints') AS shared
            CROSS JOIN joints ON joint = shared.value ->> '$[0]'
                AND format > shared.value ->> '$[1]' AND format < shared.value ->> '$[2]'
            CROSS JOIN incidents ON incidents.run = joints.run AND finding = kind
        WHERE CASE WHEN json_valid(incident) THEN
            abs(onset - (incident ->> '$.onset_step')) <= ?2 * max(onset, incident ->> '$.onset_step')
            OR abs(fired - (incident ->> '$.fired_step')) <= ?2 * max(fired, incident ->> '$.fired_step')
            OR 0 IN (fired, incident ->> '$.fired_step') END
    ) OR silence IN (SELECT common FROM wanted)
"""
"""In the words of `schema.sql`; see `sentinel.incidents.duplicates`."""

_MAY_RETURN = """
    SELECT incident FROM incidents WHERE NOT open AND id IN (
        SELECT incident FROM sent AS told WHERE event = 'flapping' AND NOT EXISTS (
            SELECT 1 FROM sent AS over WHERE over.incident = told.incident AND over.sink = told.sink
                AND over.event = 'resolved' AND over.number > told.number))
"""

_ANY = ""
"""The joint of a log of which an older state does not tell what it may share with others."""
_LAST = chr(0x10FFFF)
"""Comes after all names of formats."""


class NotificationHistory:
    """What is known in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database, decoded: Decoder) -> None:
        self._database = database
        self._decoded = decoded

    def sent_before(self, incidents: Iterable[str]) -> dict[tuple[str, str], dict[Event, Sent]]:
        """Return what the sinks were sent of some incidents, by incident id and sink name."""
        last_sent: dict[tuple[str, str], dict[Event, Sent]] = {}
        for of, sink, event, at, severity, findings, number, *states in self._database.rows(
            _SENT_BEFORE, json.dumps(list(incidents))
        ):
            kind = self._decoded(Event, event)
            worst = self._decoded(Severity, severity)
            if kind is not None and worst is not None:
                last = Sent(at, worst, findings, number, *map(bool, states))
                last_sent.setdefault((of, sink), {})[kind] = last
        return last_sent

    def alike(self, incidents: Iterable[Incident], joints: Callable[[str], JoinKeys]) -> list[Incident]:
        """Return the recorded incidents that may tell the same as one of these, which include these
        themselves.
        """
        wanted = [
            {
                "kind": kind_of(incident),
                "onset": incident.onset_step,
                "fired": incident.fired_step,
                "silence": outage_key(incident),
                "joints": [*_shared(joints(incident.run))],
            }
            for incident in chain.from_iterable((one, as_crash(one)) for one in incidents)
            if incident is not None
        ]
        rows = self._database.rows(_ALIKE, json.dumps(wanted), SAME_STEPS)
        decoded = (self._decoded(incident, whole) for (whole,) in rows)
        return [incident for incident in decoded if incident is not None]

    def may_return(self) -> list[Incident]:
        """Incidents that are over, although a sink was told last that they keep coming back."""
        decoded = (self._decoded(incident, whole) for (whole,) in self._database.rows(_MAY_RETURN))
        return [incident for incident in decoded if incident is not None]


def _shared(log: JoinKeys) -> Iterator[tuple[str, str, str]]:
    """Yield what another log has to have, and between which formats its own must lie."""
    yield _ANY, "", _LAST
    for joint in sorted(log.join_keys):
        if joint in log.processes:
            yield utf8(joint), "", _LAST
        else:
            yield utf8(joint), "", log.format
            yield utf8(joint), log.format, _LAST


def keep_joints(connection: sqlite3.Connection, run: str, log: JoinKeys) -> None:
    """Record what the log with a run id may share with others, inside a transaction."""
    connection.execute(
        "DELETE FROM joints WHERE joint = ? AND format = ? AND run = ?", (_ANY, log.format, run)
    )
    connection.executemany(
        "INSERT OR IGNORE INTO joints VALUES (?, ?, ?)",
        [(utf8(joint), log.format, run) for joint in log.join_keys],
    )
