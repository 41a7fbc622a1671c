"""The outbox holds the notifications that wait for the sinks, and the pause of each receiver.

A notification waits until its sink took it or it is given up. What waits about one incident leaves together,
in the order of the decisions. The worst incident goes first; among equals, the newest. One that has failed
often lets the others pass, and so does one that the receiver refused.

What the initial scan of a run finds is deferred until that scan is done. If the run was over by then, all
that was found in such runs leaves in one message.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sentinel.incidents.incident import Event, Incident
from sentinel.storage.database import Database, utf8
from sentinel.storage.pages import forget_page, forget_withdrawn_pages

_MAX_PREFERRED_TRIES = 5  # an incident that was tried more often lets the others pass
_NO_SINK_ERROR = "the configuration has no sink of this name any more"

_ENTRIES = "SELECT number, key, incident, body, attempts, waited_seconds, group_key FROM outbox"
_OF_WORST_INCIDENTS = """
    WHERE state = 'pending' AND NOT deferred AND sink = ? AND incident IN (
        SELECT incident FROM outbox
        WHERE state = 'pending' AND NOT deferred AND sink = ?
            AND (attempts = 0 OR incident NOT IN (SELECT value FROM json_each(?)))
        GROUP BY incident
        ORDER BY max(max(attempts) - ?, 0), max(urgency) DESC, max(created_at) DESC, min(number) LIMIT ?)
    ORDER BY number
"""

_DEFERRED_OF_RUNS = "state = 'pending' AND deferred AND run IN (SELECT value FROM json_each(?1))"
_IS_NEWS = """
    (incident, sink) NOT IN (SELECT incident, sink FROM outbox WHERE state != 'failed' AND attempts > 0)
"""  # of an incident that the receiver holds, or may hold, the end must be told

_OF_GROUP = """
    WHERE state = 'pending' AND NOT deferred AND sink = ?1 AND incident IN (
        SELECT incident FROM outbox WHERE state = 'pending' AND NOT deferred AND sink = ?1 AND group_key = ?2)
    ORDER BY number
"""


class OutboxEntry(msgspec.Struct, frozen=True):
    """A notification to deliver. ``body`` holds the fields of a Notification as JSON."""

    number: int
    key: str
    incident: str
    body: str
    attempts: int
    waited_seconds: float  # the pauses after its tries, added up
    batch: str  # leaves in one message with the others of this batch; empty if alone


class Receiver(msgspec.Struct, frozen=True):
    """The state of a sink's receiver after the last try."""

    failures: int = 0  # in a row
    next_attempt: float = 0.0  # seconds since the epoch


class Undelivered(msgspec.Struct, frozen=True):
    """A notification that waits or was given up."""

    sink: str
    incident: str
    attempts: int
    failed: bool  # given up
    error: str | None
    next_attempt: float | None  # None if it waits only for its turn


class Outbox:
    """The outbox in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self, sink: str, without: Iterable[str] = ()) -> int:
        """Return how many notifications wait for the sink and may leave.

        Of the incidents in ``without``, only those that were never tried count.
        """
        query = (
            "SELECT count(*) FROM outbox WHERE state = 'pending' AND NOT deferred AND sink = ? "
            "AND (attempts = 0 OR incident NOT IN (SELECT value FROM json_each(?)))"
        )
        ((count,),) = self._database.rows(query, sink, json.dumps([*without]))
        return int(count)

    def waiting_counts(self) -> dict[tuple[str], int]:
        """Return how many notifications wait, by sink."""
        rows = self._database.rows("SELECT sink, count(*) FROM outbox WHERE state = 'pending' GROUP BY sink")
        return {(sink,): count for sink, count in rows}

    def urgency(self, sink: str) -> int:
        """Return the highest severity that waits for the sink and may leave; 0 if all that waits is over."""
        query = "SELECT max(urgency) FROM outbox WHERE state = 'pending' AND NOT deferred AND sink = ?"
        ((urgency,),) = self._database.rows(query, sink)
        return int(urgency or 0)

    def oldest(self, sink: str) -> float:
        """Return when the first of the notifications was decided that wait for the sink and may leave."""
        query = "SELECT min(created_at) FROM outbox WHERE state = 'pending' AND NOT deferred AND sink = ?"
        ((oldest,),) = self._database.rows(query, sink)
        return float(oldest or 0.0)

    def untaken_seconds(self, now: float) -> float:
        """Return for how long a tried notification waits while no sink took any; 0 if none waits."""
        ((oldest, last_sent),) = self._database.rows(
            "SELECT min(iif(state = 'pending' AND attempts > 0, created_at, NULL)), "
            "max(iif(state = 'sent', finished_at, NULL)) FROM outbox"
        )
        return 0.0 if oldest is None else max(0.0, now - max(oldest, last_sent or oldest))

    def pages(self, sink: str, since: float) -> int:
        """Return how many messages the sink took since this time, without those that only report ends."""
        query = (
            "SELECT count(DISTINCT finished_at) FROM outbox "
            "WHERE state = 'sent' AND finished_at > ? AND sink = ? AND urgency > 0"
        )
        ((count,),) = self._database.rows(query, since, sink)
        return int(count)

    def runs(self, since: float) -> int:
        """Return how many runs were under watch since this time."""
        ((count,),) = self._database.rows("SELECT count(*) FROM runs WHERE updated > ?", since)
        return int(count)

    def worst(self, sink: str, incidents: int, without: Iterable[str] = ()) -> list[OutboxEntry]:
        """Return all waiting notifications about the worst incidents, in the order of decision.

        ``incidents`` is the number of these incidents. Those in ``without`` are chosen only if they have
        notifications that were never tried.
        """
        excluded = json.dumps([*without])
        return self._entries(_OF_WORST_INCIDENTS, sink, sink, excluded, _MAX_PREFERRED_TRIES, incidents)

    def batch(self, sink: str, name: str) -> list[OutboxEntry]:
        """Return all waiting notifications about the incidents of a batch, in the order of decision."""
        return self._entries(_OF_GROUP, sink, name)

    def _entries(self, condition: str, *arguments: Any) -> list[OutboxEntry]:
        return [OutboxEntry(*row) for row in self._database.rows(f"{_ENTRIES} {condition}", *arguments)]

    def release(self, runs: Iterable[str], batch: str = "") -> None:
        """Release what was deferred of some runs, as one batch if it has a name."""
        with self._database.transaction() as connection:
            connection.execute(
                f"UPDATE outbox SET deferred = 0, group_key = ?2 WHERE {_DEFERRED_OF_RUNS}",  # noqa: S608
                (_list_of_runs(runs), batch),
            )

    def drop(self, runs: Iterable[str], sinks: Iterable[str]) -> None:
        """Delete what is deferred of some runs for these sinks, which count as notified of it.

        What they hold of an earlier process stays, because they wait for its end.
        """
        with self._database.transaction() as connection:
            connection.execute(
                f"DELETE FROM outbox WHERE {_DEFERRED_OF_RUNS} AND {_IS_NEWS} "  # noqa: S608
                "AND sink IN (SELECT value FROM json_each(?2))",
                (_list_of_runs(runs), json.dumps([*sinks])),
            )

    def drop_resolved(self, runs: Iterable[str]) -> None:
        """Delete what is deferred of some runs and over by now, as if it had never been decided.

        A sink that was told of it by an earlier process is told of its end.
        """
        is_over = "incident IN (SELECT id FROM incidents WHERE NOT open)"
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT DISTINCT incident, sink FROM outbox "  # noqa: S608
                f"WHERE {_DEFERRED_OF_RUNS} AND {is_over} AND {_IS_NEWS}",
                (_list_of_runs(runs),),
            ).fetchall()
            for incident, sink in rows:
                withdraw(connection, sink, incident)

    def release_all(self, batch: str) -> None:
        """Release as one batch what is deferred by a process that ended before it could release it."""
        rows = self._database.rows("SELECT DISTINCT run FROM outbox WHERE state = 'pending' AND deferred")
        self.release([run for (run,) in rows], batch)

    def receiver(self, sink: str) -> Receiver:
        """Return the state of the sink's receiver after the last try."""
        for row in self._database.rows(
            "SELECT failures, next_attempt FROM sink_backoff WHERE sink = ?", sink
        ):
            return Receiver(*row)
        return Receiver()

    def begin(self, entries: Iterable[OutboxEntry]) -> list[OutboxEntry]:
        """Record that these are tried now. Return those that still wait, in their order.

        What was withdrawn meanwhile must not be sent, and what is being sent can no longer be withdrawn.
        """
        entries = list(entries)
        with self._database.transaction() as connection:
            rows = connection.execute(
                "UPDATE outbox SET attempts = attempts + 1 "
                "WHERE state = 'pending' AND number IN (SELECT value FROM json_each(?)) RETURNING number",
                (json.dumps([entry.number for entry in entries]),),
            )
            waiting = {number for (number,) in rows}
        return [entry for entry in entries if entry.number in waiting]

    def sent(self, sink: str, entries: Iterable[OutboxEntry], now: float) -> None:
        """Record that the receiver took them."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE outbox SET error = NULL, state = 'sent', finished_at = ? WHERE number = ?",
                [(now, entry.number) for entry in entries],
            )
            connection.execute("DELETE FROM sink_backoff WHERE sink = ?", (sink,))

    def failed(self, sink: str, entries: Sequence[OutboxEntry], error: str, now: float) -> None:
        """Record that they are given up. Whether to notify of their incidents is then decided anew."""
        with self._database.transaction() as connection:
            _give_up(connection, [entry.number for entry in entries], error, now)
            connection.execute("DELETE FROM sink_backoff WHERE sink = ?", (sink,))

    def give_up_on_others(self, sinks: Iterable[str], now: float) -> None:
        """Give up what waits for sinks that no longer exist. ``sinks`` names all that do."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT number FROM outbox "
                "WHERE state = 'pending' AND sink NOT IN (SELECT value FROM json_each(?))",
                (json.dumps([*sinks]),),
            )
            _give_up(connection, [number for (number,) in rows], _NO_SINK_ERROR, now)

    def postponed(
        self,
        sink: str,
        entries: Iterable[OutboxEntry],
        error: str,
        pause_seconds: float,
        receiver: Receiver | None,
    ) -> None:
        """Record a failed try, and the state of the receiver after it; None if it does not rest."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE outbox SET error = ?, waited_seconds = waited_seconds + ? WHERE number = ?",
                [(error, pause_seconds, entry.number) for entry in entries],
            )
            connection.execute("DELETE FROM sink_backoff WHERE sink = ?", (sink,))
            if receiver is not None:
                connection.execute(
                    "INSERT INTO sink_backoff VALUES (?, ?, ?)",
                    (sink, receiver.failures, receiver.next_attempt),
                )

    def undelivered(self, limit: int = 1000) -> list[Undelivered]:
        """Return the notifications that wait, then those that were given up, the newest first."""
        rows = self._database.rows(
            "SELECT outbox.sink, incident, attempts, state = 'failed', error, next_attempt "
            "FROM outbox LEFT JOIN sink_backoff ON sink_backoff.sink = outbox.sink AND state = 'pending' "
            "WHERE state != 'sent' ORDER BY state = 'failed', number DESC LIMIT ?",
            limit,
        )
        return [
            Undelivered(sink, incident, attempts, bool(failed), error, next_attempt)
            for sink, incident, attempts, failed, error, next_attempt in rows
        ]

    def undelivered_count(self) -> int:
        """Return how many notifications wait or were given up."""
        ((count,),) = self._database.rows("SELECT count(*) FROM outbox WHERE state != 'sent'")
        return int(count)


def enqueue(
    connection: sqlite3.Connection,
    sink: str,
    incident: Incident,
    body: Mapping[str, Any],
    now: float,
    *,
    deferred: bool,
) -> None:
    """Put a notification into the outbox, inside a transaction. A key that was in it before is left out,
    unless that notification was given up.

    A resolution is less urgent than any open incident. What is ``deferred`` leaves after `Outbox.release`.
    """
    urgency = 0 if body["event"] == Event.RESOLVED else incident.severity
    connection.execute(
        "DELETE FROM outbox WHERE key = ? AND sink = ? AND state = 'failed'", (body["key"], sink)
    )
    connection.execute(
        "INSERT OR IGNORE INTO outbox (key, sink, incident, urgency, body, created_at, deferred, run) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (body["key"], sink, incident.id, urgency, json.dumps(body), now, deferred, utf8(incident.run)),
    )


def _give_up(connection: sqlite3.Connection, numbers: Iterable[int], error: str, now: float) -> None:
    """Give up notifications by their numbers, and forget that they were sent, inside a transaction."""
    for number in numbers:
        connection.execute(
            "DELETE FROM notification_log AS log WHERE EXISTS (SELECT 1 FROM outbox WHERE number = ? "
            "AND outbox.sink = log.sink AND outbox.incident = log.incident AND created_at = log.at "
            "AND CASE WHEN json_valid(body) THEN json_extract(body, '$.event') = log.event ELSE 1 END)",
            (number,),
        )
        forget_page(connection, number)
        connection.execute(
            "UPDATE outbox SET error = ?, state = 'failed', finished_at = ? WHERE number = ?",
            (error, now, number),
        )


def _list_of_runs(runs: Iterable[str]) -> str:
    return json.dumps([utf8(run) for run in runs])


def withdraw(connection: sqlite3.Connection, sink: str, incident: str) -> None:
    """Delete what waits about an incident, given by its id, as if it had never been decided.

    Call it inside a transaction.

    What was tried meanwhile stays, and so does what the sink was sent of the incident.
    """
    subject = (incident, sink)
    connection.execute(
        "DELETE FROM outbox WHERE incident = ? AND sink = ? AND state = 'pending' AND attempts = 0", subject
    )
    connection.execute(
        "DELETE FROM notification_log AS log WHERE incident = ? AND sink = ? AND NOT EXISTS ("
        "SELECT 1 FROM outbox WHERE outbox.incident = log.incident AND outbox.sink = log.sink)",
        subject,
    )
    forget_withdrawn_pages(connection, incident, sink)
