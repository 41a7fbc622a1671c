"""The first page of a day about an incident to a sink. Every function works inside a transaction."""

import sqlite3

from sentinel.common.days import day_of
from sentinel.incidents.incident import Incident


def record_page(connection: sqlite3.Connection, sink: str, incident: Incident, now: float) -> None:
    """Record that a sink is paged now, unless it was paged about the incident earlier on this day."""
    row = (incident.id, sink, day_of(now), now)
    connection.execute("INSERT OR IGNORE INTO pages VALUES (?, ?, ?, ?)", row)


def forget_page(connection: sqlite3.Connection, number: int) -> None:
    """Delete the page that a notification was, by its number in the outbox: it was never delivered."""
    connection.execute(
        "DELETE FROM pages WHERE EXISTS (SELECT 1 FROM outbox WHERE number = ? "
        "AND outbox.sink = pages.sink AND outbox.incident = pages.incident AND created_at = pages.at)",
        (number,),
    )


def forget_withdrawn_pages(connection: sqlite3.Connection, incident: str, sink: str) -> None:
    """Delete the pages about an incident to a sink of which the outbox holds no notification any more."""
    connection.execute(
        "DELETE FROM pages WHERE incident = ? AND sink = ? AND NOT EXISTS (SELECT 1 FROM outbox "
        "WHERE outbox.incident = pages.incident AND outbox.sink = pages.sink)",
        (incident, sink),
    )
