"""Deletes what belongs to runs that are gone, inside a transaction."""

import sqlite3
from collections.abc import Iterable


def forget_runs(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Delete the states of runs, given by their ids. Their incidents stay until they are old."""
    for run in runs:
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
        connection.execute("DELETE FROM stopped WHERE run = ?", (run,))


def forget_incidents(connection: sqlite3.Connection, before: float) -> None:
    """Delete incidents of forgotten runs that were over before this time, and what was sent of them."""
    connection.execute(
        "DELETE FROM incidents WHERE open = 0 AND updated < ? AND run NOT IN (SELECT id FROM runs)", (before,)
    )
    connection.execute(
        "DELETE FROM sent WHERE at < ? AND incident NOT IN (SELECT id FROM incidents)", (before,)
    )
