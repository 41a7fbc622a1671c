"""What is deleted from the database, and when. Every function works inside a transaction."""

import sqlite3
from collections.abc import Iterable

_DAY_SECONDS = 86400.0
_KEEP_SENT_SECONDS = 7 * _DAY_SECONDS
_KEEP_RECORDS_SECONDS = 30 * _DAY_SECONDS


def forget_runs(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Delete the states of runs, given by their ids. Their incidents stay until they are old."""
    for run in runs:
        connection.execute("DELETE FROM runs WHERE id = ?", (run,))
        connection.execute("DELETE FROM unjudged_runs WHERE run = ?", (run,))


def prune(connection: sqlite3.Connection, now: float) -> None:
    """Delete old decisions, finished notifications, ended silences, and what is known of forgotten runs."""
    records_before = now - _KEEP_RECORDS_SECONDS
    sent_before = now - _KEEP_SENT_SECONDS
    connection.execute("DELETE FROM decisions WHERE at < ?", (records_before,))
    connection.execute("DELETE FROM outbox WHERE state = 'failed' AND finished_at < ?", (records_before,))
    connection.execute("DELETE FROM outbox WHERE state = 'sent' AND finished_at < ?", (sent_before,))
    connection.execute("DELETE FROM silences WHERE until < ?", (sent_before,))
    _forget_incidents(connection, records_before)
    connection.execute("DELETE FROM receipts WHERE body IS NULL AND at < ?", (records_before,))


def _forget_incidents(connection: sqlite3.Connection, before: float) -> None:
    """Delete incidents of forgotten runs that were over before this time, and what was sent of them."""
    incidents = connection.execute(
        "DELETE FROM incidents WHERE open = 0 AND updated < ? AND run NOT IN (SELECT id FROM runs)", (before,)
    )
    if incidents.rowcount:
        connection.execute("DELETE FROM training_keys WHERE run NOT IN (SELECT run FROM incidents)")
    connection.execute(
        "DELETE FROM notification_log WHERE at < ? AND incident NOT IN (SELECT id FROM incidents)", (before,)
    )
    connection.execute(
        "DELETE FROM pages WHERE at < ? AND incident NOT IN (SELECT id FROM incidents)", (before,)
    )
