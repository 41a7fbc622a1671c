"""What receivers hold of open incidents: where a message stands, and what they must be told again."""

import sqlite3
from collections.abc import Iterable

from sentinel.alerts.database import Database


class Receipts:
    """The receipts in a database. Every method raises StateError if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def thread(self, incident: str, sink: str) -> str:
        """Where the receiver put the first message about an incident; empty if it did not say."""
        query = "SELECT thread FROM receipts WHERE incident = ? AND sink = ?"
        for (thread,) in self._database.rows(query, incident, sink):
            return str(thread)
        return ""

    def standing(self, sink: str) -> list[str]:
        """The last notification of each incident that the sink was told of and that is not over, as JSON."""
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
                [(sink, now, *one) for one in taken],
            )


def forget_old(connection: sqlite3.Connection, before: float) -> None:
    """Delete the receipts of incidents that were over before this time, inside a transaction."""
    connection.execute("DELETE FROM receipts WHERE body IS NULL AND at < ?", (before,))
