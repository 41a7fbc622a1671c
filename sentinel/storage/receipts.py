"""What the receivers of the sinks hold of each incident."""

from collections.abc import Iterable

from sentinel.storage.database import Database


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
        """Return the last notification that the sink was sent of each incident that is not over, as JSON."""
        query = "SELECT body FROM receipts WHERE sink = ? AND body IS NOT NULL ORDER BY incident"
        return [str(body) for (body,) in self._database.rows(query, sink)]

    def keep(self, sink: str, receipts: Iterable[tuple[str, str, str | None]], now: float) -> None:
        """Record what a receiver took: the incident, the thread, and the notification unless that is over.

        A thread stays the first one of its incident.
        """
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO receipts (sink, at, incident, thread, body) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (incident, sink) DO UPDATE SET at = excluded.at, body = excluded.body, "
                "thread = CASE thread WHEN '' THEN excluded.thread ELSE thread END",
                [(sink, now, *receipt) for receipt in receipts],
            )
