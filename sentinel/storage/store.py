"""The state directory: everything that must survive a kill, in one SQLite database.

One transaction holds everything that a poll of a run changes: its cursor and state, its incidents, the
decisions about them and the notifications to send. A kill at any moment leaves all of it or nothing, and
reading continues where the last transaction ended. A transaction with decisions is on the disk before
``commit`` returns. A power failure may undo the last others; the next watch derives them from the log again.

One process writes runs (``database.sole_watcher``). Any number of processes may read, add silences or
deliver at the same time. A ``Store`` belongs to the thread that opened it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec.structs import astuple

from sentinel.common.days import DAY_SECONDS
from sentinel.common.errors import SentinelError
from sentinel.detectors.api import Severity
from sentinel.incidents.duplicates import JoinKeys
from sentinel.incidents.incident import Incident, State
from sentinel.notifications.routing import SinkDecision
from sentinel.notifications.silences import Silence
from sentinel.storage.database import Database, utf8
from sentinel.storage.decisions import DecisionRow, record_decision
from sentinel.storage.decoding import Decoder, incident_from_json, incident_to_json
from sentinel.storage.feedback import Feedback
from sentinel.storage.notification_history import NotificationHistory, keep_training_keys
from sentinel.storage.outbox import Outbox
from sentinel.storage.receipts import Receipts
from sentinel.storage.retention import forget_runs, prune
from sentinel.storage.unjudged_runs import UnjudgedRuns

BEHIND = ": behind"
"""Ends a key of the health record that holds, in seconds by run id, how far runs are behind their logs."""


class RunRow(msgspec.Struct, frozen=True):
    """A run that was committed before."""

    id: str
    path: str
    format: str
    updated: float


class Update(msgspec.Struct, frozen=True):
    """What one poll changed in one run. ``state`` is the whole state of the run, opaque to the store."""

    run: str
    path: str
    format: str
    state: bytes
    incidents: Sequence[Incident] = ()  # those that changed, and those that are still open
    outcomes: Sequence[SinkDecision] = ()
    deferred: bool = False  # whether notifications wait until `Outbox.release`
    join_keys: JoinKeys | None = None  # of the log, unless it has no incident


class Store:
    """The content of one state directory. Every method raises StateError if the database fails.

    A row that cannot be decoded is logged once and ignored.
    """

    def __init__(self, directory: Path, *, create: bool = True, read_only: bool = False) -> None:
        """Open the store; with ``create``, make it if it is missing; with ``read_only``, change nothing.
        Raises StateOfAnotherSchema if another version wrote it, and StateError if it cannot be used.
        """
        self._database = Database(directory, create=create and not read_only, read_only=read_only)
        self.check_place = self._database.check_place
        self._decoded = Decoder()
        self.stops = UnjudgedRuns(self._database)
        self.receipts = Receipts(self._database)
        self.outbox = Outbox(self._database)
        self.history = NotificationHistory(self._database, self._decoded)
        self.feedback = Feedback(self._database)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> int:
        """Return a number that changes whenever another connection has committed something."""
        return int(self._database.rows("PRAGMA data_version")[0][0])

    def commit(self, updates: Iterable[Update], now: float) -> None:
        """Record some updates in one transaction. A notification enters the outbox once at most."""
        updates = list(updates)
        with self._database.transaction(durable=any(update.outcomes for update in updates)) as connection:
            for update in updates:
                run = utf8(update.run)
                connection.execute(
                    "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)",
                    (run, utf8(update.path), update.format, update.state, now),
                )
                if update.join_keys:
                    keep_training_keys(connection, run, update.join_keys)
                for incident in update.incidents:
                    connection.execute(
                        "INSERT OR REPLACE INTO incidents VALUES (?, ?, ?, ?, ?)",
                        (incident.id, run, incident.open, now, incident_to_json(incident)),
                    )
                for decision in update.outcomes:
                    record_decision(connection, run, decision, now, deferred=update.deferred)

    def runs(self) -> list[RunRow]:
        """Return all runs, the latest first."""
        rows = self._database.rows("SELECT id, path, format, updated FROM runs ORDER BY updated DESC, id")
        return [RunRow(*row) for row in rows]

    def run_state(self, run: str) -> bytes | None:
        """Return the last committed state of a run; None for a new run."""
        for (state,) in self._database.rows("SELECT state FROM runs WHERE id = ?", utf8(run)):
            return bytes(state)
        return None

    def incidents(self, *, open_only: bool = False, run: str = "", limit: int = 1000) -> list[Incident]:
        """Return the incidents of all runs or of one, given by its id; those that changed last come first.

        There are at most ``limit`` of them; with ``open_only`` there are all open ones.
        """
        query = (
            "SELECT incident FROM incidents WHERE open >= ?1 AND (?2 = '' OR run = ?2) "
            "ORDER BY updated DESC, rowid DESC LIMIT ?3"
        )
        rows = self._database.rows(query, int(open_only), utf8(run), -1 if open_only else limit)
        decoded = (self._decoded(incident_from_json, text) for (text,) in rows)
        return [incident for incident in decoded if incident is not None]

    def recorded(self, incident_id: str) -> Incident | None:
        """Return the incident with this id; None if it is not known, as of a test."""
        rows = self._database.rows("SELECT incident FROM incidents WHERE id = ?", incident_id)
        return next((self._decoded(incident_from_json, text) for (text,) in rows), None)

    def incident(self, beginning: str) -> Incident:
        """Return the incident whose id begins so. Raises SentinelError unless there is exactly one."""
        query = "SELECT incident FROM incidents WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2"
        rows = self._database.rows(query, beginning) if beginning else []
        decoded = (self._decoded(incident_from_json, text) for (text,) in rows)
        incidents = [incident for incident in decoded if incident is not None]
        if len(incidents) != 1:
            problem = (
                "several incidents have ids that begin" if incidents else "no incident has an id that begins"
            )
            raise SentinelError(f"{problem} with {beginning!r}; `sentinel status` shows them")
        return incidents[0]

    def open_counts(self) -> dict[tuple[str, str], int]:
        """Return how many incidents of runs that go on are open, by detector and severity.

        A run that ended is left out, and so is one whose log was silent for a day before it was last read.
        """
        rows = self._database.rows(
            "SELECT json_extract(incident, '$.detector'), json_extract(incident, '$.severity'), count(*) "
            "FROM incidents WHERE open AND json_valid(incident) "
            "AND coalesce(json_extract(incident, '$.ended'), '') = '' "
            "AND NOT (json_extract(incident, '$.state') = ?1 "
            "AND coalesce(updated - json_extract(incident, '$.last_time') > ?2, false)) GROUP BY 1, 2",
            State.LOST,
            DAY_SECONDS,
        )
        return {(detector, Severity(severity).name.lower()): count for detector, severity, count in rows}

    def decisions(self, limit: int = 100, run: str = "") -> list[DecisionRow]:
        """Return the latest decisions, about all runs or about one, given by its id; newest first."""
        query = "SELECT at, run, incident, detector, sink, event, reason FROM decisions"
        latest = "WHERE ?2 = '' OR run = ?2 ORDER BY number DESC LIMIT ?1"
        rows = self._database.rows(f"{query} {latest}", limit, utf8(run))
        decisions = (self._decoded(DecisionRow.from_row, row) for row in rows)
        return [decision for decision in decisions if decision is not None]

    def silences(self, now: float) -> list[Silence]:
        """Return the active silences; those that end first come first."""
        rows = self._database.rows("SELECT * FROM silences WHERE until > ? ORDER BY until", now)
        return [Silence(*row) for row in rows]

    def add_silence(self, silence: Silence) -> None:
        with self._database.transaction(durable=True) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO silences VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(silence)
            )

    def remove_silence(self, silence_id: str) -> bool:
        """End a silence. Return False if no silence has this id."""
        with self._database.transaction(durable=True) as connection:
            deleted = connection.execute("DELETE FROM silences WHERE id = ?", (silence_id,))
            return deleted.rowcount > 0

    def health(self) -> dict[str, Any]:
        """Return the last health record of the watching process and its parts."""
        rows = self._database.rows("SELECT key, value FROM health ORDER BY key")
        values = {key: self._decoded(json.loads, value) for key, value in rows}
        return {key: value for key, value in values.items() if value is not None}

    def set_health(self, values: Mapping[str, Any]) -> None:
        """Record the health of some parts; None removes a part. Values must be JSON-able."""
        with self._database.transaction() as connection:
            for key, value in values.items():
                if value is None:
                    connection.execute("DELETE FROM health WHERE key = ?", (key,))
                else:
                    connection.execute(
                        "INSERT OR REPLACE INTO health VALUES (?, ?)", (key, json.dumps(value))
                    )

    def move(self, run: str, new_run: str, path: str) -> None:
        """Give a run another id and path, with its incidents and all that was decided and sent of them."""
        with self._database.transaction(durable=True) as connection:
            connection.execute(
                "UPDATE OR REPLACE runs SET id = ?2, path = ?3 WHERE id = ?1",
                (utf8(run), utf8(new_run), utf8(path)),
            )
            connection.execute(
                "UPDATE incidents SET run = ?2, incident = json_set(incident, '$.run', ?2) "
                "WHERE run = ?1 AND json_valid(incident)",
                (utf8(run), utf8(new_run)),
            )
            connection.execute("UPDATE decisions SET run = ?2 WHERE run = ?1", (utf8(run), utf8(new_run)))
            connection.execute("UPDATE outbox SET run = ?2 WHERE run = ?1", (utf8(run), utf8(new_run)))
            connection.execute(
                "UPDATE OR REPLACE training_keys SET run = ?2 WHERE run = ?1", (utf8(run), utf8(new_run))
            )
            connection.execute("DELETE FROM unjudged_runs WHERE run = ?", (utf8(run),))

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the states of runs. Their incidents stay until they are old."""
        with self._database.transaction() as connection:
            forget_runs(connection, map(utf8, runs))

    def prune(self, now: float) -> None:
        """Delete what is old, and give disk space back; see `retention.prune`."""
        with self._database.transaction() as connection:
            prune(connection, now)
        self._database.shrink()
