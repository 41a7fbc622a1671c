"""What sinks were sent before, and which incidents other logs report, as the next decisions need it."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import JoinKeys, kind_of, outage_key
from sentinel.incidents.incident import SAME_STEPS, Event, Incident
from sentinel.notifications.decide import Sent
from sentinel.storage.database import Database, utf8
from sentinel.storage.decoding import Decoder, incident_from_json

_SENT_BEFORE = """
    SELECT incident, sink, event, at, severity, findings, number,
        EXISTS (SELECT 1 FROM outbox WHERE outbox.sink = log.sink AND outbox.incident = log.incident
            AND state = 'pending'),
        EXISTS (SELECT 1 FROM outbox WHERE outbox.sink = log.sink AND outbox.incident = log.incident
            AND state = 'pending' AND attempts = 0 AND created_at = log.at
            AND (deferred OR sink IN (SELECT sink FROM sink_backoff)))
    FROM notification_log AS log WHERE incident IN (SELECT value FROM json_each(?))
"""

_MAY_BE_SAME = """
    WITH subjects AS (
        SELECT value AS subject, json_array(value ->> '$.kind[0]', value ->> '$.kind[1]') AS kind,
            value ->> '$.onset' AS onset, value ->> '$.fired' AS fired,
            json_extract(value, '$.outage_key[0]', '$.outage_key[1]') AS outage FROM json_each(?1)
    )
    SELECT incident FROM incidents WHERE id IN (
        SELECT incidents.id FROM subjects
            CROSS JOIN json_each(subject, '$.key_ranges') AS ranges
            CROSS JOIN training_keys ON training_key = ranges.value ->> '$[0]'
                AND format > ranges.value ->> '$[1]' AND format < ranges.value ->> '$[2]'
            CROSS JOIN incidents ON incidents.run = training_keys.run AND finding = kind
        WHERE CASE WHEN json_valid(incident) THEN
            abs(onset - (incident ->> '$.onset_step')) <= ?2 * max(onset, incident ->> '$.onset_step')
            OR abs(fired - (incident ->> '$.fired_step')) <= ?2 * max(fired, incident ->> '$.fired_step')
            OR 0 IN (fired, incident ->> '$.fired_step') END
    ) OR outage_key IN (SELECT outage FROM subjects)
"""
"""In the words of `schema.sql`; see `sentinel.incidents.duplicates`."""

_MAY_RETURN = """
    SELECT incident FROM incidents WHERE NOT open AND id IN (
        SELECT incident FROM notification_log AS flapping WHERE event = 'flapping' AND NOT EXISTS (
            SELECT 1 FROM notification_log AS over
            WHERE over.incident = flapping.incident AND over.sink = flapping.sink
                AND over.event = 'resolved' AND over.number > flapping.number))
"""

_LAST_FORMAT = chr(0x10FFFF)
"""Sorts after the names of all formats."""


class NotificationHistory:
    """The notification log of a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database, decoded: Decoder) -> None:
        self._database = database
        self._decoded = decoded

    def sent_before(self, incidents: Iterable[str]) -> dict[tuple[str, str], dict[Event, Sent]]:
        """Return what the sinks were sent of some incidents, by incident id and sink name."""
        last_sent: dict[tuple[str, str], dict[Event, Sent]] = {}
        rows = self._database.rows(_SENT_BEFORE, json.dumps(list(incidents)))
        for incident_id, sink, event_name, at, severity_number, findings, number, waiting, untried in rows:
            event = self._decoded(Event, event_name)
            severity = self._decoded(Severity, severity_number)
            if event is not None and severity is not None:
                last = Sent(at, severity, findings, number, bool(waiting), bool(untried))
                last_sent.setdefault((incident_id, sink), {})[event] = last
        return last_sent

    def alike(self, incidents: Iterable[Incident], join_keys: Callable[[str], JoinKeys]) -> list[Incident]:
        """Return the recorded incidents that may report the same problem as one of these, and these
        themselves. ``join_keys`` gives those of a log by its run id.
        """
        subjects = [
            {
                "kind": kind_of(subject),
                "onset": subject.onset_step,
                "fired": subject.fired_step,
                "outage_key": outage_key(subject),
                "key_ranges": [*_key_ranges(join_keys(subject.run))],
            }
            for subject in incidents
        ]
        return self._incidents(_MAY_BE_SAME, json.dumps(subjects), SAME_STEPS)

    def may_return(self) -> list[Incident]:
        """Return the incidents that are over, although a sink was last told that they keep coming back."""
        return self._incidents(_MAY_RETURN)

    def _incidents(self, query: str, *arguments: Any) -> list[Incident]:
        rows = self._database.rows(query, *arguments)
        decoded = (self._decoded(incident_from_json, text) for (text,) in rows)
        return [incident for incident in decoded if incident is not None]


def _key_ranges(log: JoinKeys) -> Iterator[tuple[str, str, str]]:
    """Yield each key that joins a log with others, and two names between which the others' format lies.

    Only a process joins logs of one format.
    """
    for key in sorted(log.join_keys):
        if key in log.processes:
            yield utf8(key), "", _LAST_FORMAT
        else:
            yield utf8(key), "", log.format
            yield utf8(key), log.format, _LAST_FORMAT


def keep_training_keys(connection: sqlite3.Connection, run: str, log: JoinKeys) -> None:
    """Record what the log with a run id may share with others, inside a transaction."""
    connection.executemany(
        "INSERT OR IGNORE INTO training_keys VALUES (?, ?, ?)",
        [(utf8(key), log.format, run) for key in log.join_keys],
    )
