"""The small tables of the database: what is not judged, what receivers hold and what people said."""

import json
import logging
import math
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import msgspec

from sentinel.calibration.calibration import Opinion, PageSent
from sentinel.common.conversion import converter
from sentinel.incidents.incident import Event, Incident
from sentinel.notifications.decide import Reason
from sentinel.storage.database import Database, utf8

_T = TypeVar("_T")

_log = logging.getLogger(__name__)
_to_incident = converter(Incident)
_to_reason = converter(Reason)


class Decoder:
    """Decodes stored values."""

    def __init__(self) -> None:
        self._reported: set[object] = set()

    def __call__(self, decode: Callable[[Any], _T], kept: Any) -> _T | None:
        """Return the decoded value; None if it cannot be decoded, which is logged the first time."""
        try:
            return decode(kept)
        except (ValueError, RecursionError) as error:  # ValueErrors are also what json and msgspec raise
            if kept not in self._reported:
                self._reported.add(kept)
                _log.error("ignoring a row of the state directory that cannot be decoded: %s", error)
            return None


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""What stands for numbers that JSON does not know; SQLite before 3.42 takes no row that has one."""


def as_json(kept: Incident) -> str:
    """Return an incident as JSON that SQLite reads as well. `incident` undoes it."""
    fields = msgspec.to_builtins(kept)
    odd = {k: v for k, v in fields["evidence"].items() if isinstance(v, float) and not math.isfinite(v)}
    fields["evidence"] |= {name: json.dumps(number) for name, number in odd.items()}
    return json.dumps(fields)


def incident(kept: str) -> Incident:
    """Return an incident from its JSON. Raises ValueError."""
    incident = _to_incident(json.loads(kept))
    odd = {
        name: _NOT_FINITE[v]
        for name, v in incident.evidence.items()
        if isinstance(v, str) and v in _NOT_FINITE
    }
    return incident.replace(evidence={**incident.evidence, **odd}) if odd else incident


class Feedback:
    """The verdicts in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, incident: str, detector: str, verdict: Opinion, note: str, now: float) -> None:
        """Record a verdict about an incident, by its id, in place of an earlier one."""
        row = (incident, detector, verdict, note, now)
        with self._database.transaction(durable=True) as connection:
            connection.execute("INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?)", row)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many incidents were useful and how many false alarms, by detector and verdict."""
        query = "SELECT detector, verdict, count(*) FROM feedback GROUP BY 1, 2 ORDER BY 1, 2"
        return {(detector, verdict): count for detector, verdict, count in self._database.rows(query)}

    def verdicts(self) -> dict[str, str]:
        """Return what was said, by incident id."""
        return dict(self._database.rows("SELECT incident, verdict FROM feedback"))

    def useful_runs(self) -> list[str]:
        """Return the runs of which somebody called an incident useful, whether a sink was told of it or
        not.
        """
        query = (
            "SELECT DISTINCT run FROM incidents JOIN feedback ON feedback.incident = id "
            "WHERE verdict = 'useful' ORDER BY run"
        )
        return [run for (run,) in self._database.rows(query)]

    def pages(self, since: float) -> list[PageSent]:
        """Return the pages that were sent since a time, in seconds since the epoch, with what was said of
        them: one for each incident and day.
        """
        query = (
            "SELECT run, id, json_extract(incident, '$.detector'), "
            "coalesce(json_extract(incident, '$.variant'), ''), at, "
            "coalesce((SELECT verdict FROM feedback WHERE feedback.incident = id), '') "
            "FROM (SELECT incident AS about, min(at) AS at FROM pages "
            "WHERE at >= ? GROUP BY incident, day) "
            "JOIN incidents ON id = about WHERE json_valid(incident) ORDER BY at, id"
        )
        return [PageSent(*row) for row in self._database.rows(query, since)]


class Receipts:
    """The receipts in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def thread(self, incident: str, sink: str) -> str:
        """Return where the receiver put the first message about an incident; empty if it did not say."""
        query = "SELECT thread FROM receipts WHERE incident = ? AND sink = ?"
        for (thread,) in self._database.rows(query, incident, sink):
            return str(thread)
        return ""

    def standing(self, sink: str) -> list[str]:
        """Return the last notification of each incident that the sink was told of and that is not over, as
        JSON.
        """
        query = "SELECT body FROM receipts WHERE sink = ? AND body IS NOT NULL ORDER BY incident"
        return [str(body) for (body,) in self._database.rows(query, sink)]

    def keep(self, sink: str, taken: Iterable[tuple[str, str, str | None]], now: float) -> None:
        """Record what a receiver took: the incident, the thread, and the notification unless that is over.

        A thread stays the first one of its incident.
        """
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO receipts (sink, at, incident, thread, body) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (incident, sink) DO UPDATE SET at = excluded.at, body = excluded.body, "
                "thread = CASE thread WHEN '' THEN excluded.thread ELSE thread END",
                [(sink, now, *receipt) for receipt in taken],
            )


def forget_old(connection: sqlite3.Connection, before: float) -> None:
    """Delete the receipts of incidents that were over before this time, inside a transaction."""
    connection.execute("DELETE FROM receipts WHERE body IS NULL AND at < ?", (before,))


@dataclass(frozen=True)
class Stop:
    """Why a run is not judged, and since when."""

    run: str
    path: str
    reason: str
    since: float


class Stops:
    """The stops in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Stop]:
        """Return all stops by run id, the latest first."""
        rows = self._database.rows(
            "SELECT run, path, reason, since FROM unjudged_runs ORDER BY since DESC, run"
        )
        return {row[0]: Stop(*row) for row in rows}

    def set(self, run: str, path: str, reason: str | None, now: float) -> None:
        """Record why a run is not judged; None removes its stop."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM unjudged_runs WHERE run = ?", (utf8(run),))
            if reason is not None:
                row = (utf8(run), utf8(path), utf8(reason), now)
                connection.execute("INSERT INTO unjudged_runs VALUES (?, ?, ?, ?)", row)


def forget_runs(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Delete the states of runs, given by their ids. Their incidents stay until they are old."""
    for run in runs:
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
        connection.execute("DELETE FROM unjudged_runs WHERE run = ?", (run,))


def forget_incidents(connection: sqlite3.Connection, before: float) -> None:
    """Delete incidents of forgotten runs that were over before this time, and what was sent of them."""
    forgotten = connection.execute(
        "DELETE FROM incidents WHERE open = 0 AND updated < ? AND run NOT IN (SELECT id FROM runs)", (before,)
    )
    if forgotten.rowcount:
        connection.execute("DELETE FROM training_keys WHERE run NOT IN (SELECT run FROM incidents)")
    connection.execute(
        "DELETE FROM notification_log WHERE at < ? AND incident NOT IN (SELECT id FROM incidents)", (before,)
    )
    connection.execute(
        "DELETE FROM pages WHERE at < ? AND incident NOT IN (SELECT id FROM incidents)", (before,)
    )


def forget_page(connection: sqlite3.Connection, number: int) -> None:
    """Delete the page that a notification was, by its number in the outbox: it was never taken."""
    connection.execute(
        "DELETE FROM pages WHERE EXISTS (SELECT 1 FROM outbox WHERE number = ? "
        "AND outbox.sink = pages.sink AND outbox.incident = pages.incident AND created_at = pages.at)",
        (number,),
    )


def forget_pages(connection: sqlite3.Connection, incident: str, sink: str) -> None:
    """Delete the pages about an incident to a sink of which no notification is left: they were withdrawn."""
    connection.execute(
        "DELETE FROM pages WHERE incident = ? AND sink = ? AND NOT EXISTS (SELECT 1 FROM outbox "
        "WHERE outbox.incident = pages.incident AND outbox.sink = pages.sink)",
        (incident, sink),
    )


@dataclass(frozen=True)
class RunRow:
    """A run that was committed before."""

    id: str
    path: str
    format: str
    updated: float


@dataclass(frozen=True)
class DecisionRow:
    """The decision about one event of an incident for one sink."""

    at: float
    run: str
    incident: str
    detector: str
    sink: str
    event: Event
    reason: Reason

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Self:
        """Decode a row of the table. Raises ValueError."""
        at, run, incident, detector, sink, event, reason = row
        return cls(at, run, incident, detector, sink, Event(event), _to_reason(reason))

    @property
    def sent(self) -> bool:
        """Whether it was a decision to send."""
        return self.reason.sends

    @property
    def reason_text(self) -> str:
        """The reason in words."""
        return self.reason.text
